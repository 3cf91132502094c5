/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C locale for the calling thread. The numbers that the library reads and writes have a decimal
 * point whatever locale the program has chosen, and libc's own functions, which round correctly,
 * have it only in that locale. Only the calling thread's locale changes, and only for a while.
 * glibc and musl keep the C locale ready, so that it costs no allocation there.
 */
#ifndef PTXGEN_C_LOCALE_H
#define PTXGEN_C_LOCALE_H

#include <locale.h>
#include <stdbool.h>

struct c_locale {
    locale_t c, before;
};

/* False, with the locale as it was, when libc has no memory for the C locale. */
bool c_locale_begin(struct c_locale *locale);
/* Gives the thread back what it had when c_locale_begin returned true. */
void c_locale_end(const struct c_locale *locale);

#endif
