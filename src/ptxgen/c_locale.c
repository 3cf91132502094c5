/* SPDX-License-Identifier: Apache-2.0 */
#include "src/ptxgen/c_locale.h"

bool c_locale_begin(struct c_locale *locale)
{
    locale->c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!locale->c)
        return false;
    locale->before = uselocale(locale->c);
    return true;
}

void c_locale_end(const struct c_locale *locale)
{
    uselocale(locale->before);
    freelocale(locale->c);
}
