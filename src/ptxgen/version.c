/* SPDX-License-Identifier: Apache-2.0 */
#include <ptxgen/version.h>

const char *ptxgen_version(void)
{
    return PTXGEN_VERSION;
}
