/* SPDX-License-Identifier: Apache-2.0 */
/* The strings of the table: each kept once, and all packed together for printing. */
#ifndef PTXGEN_GENERATOR_STRINGS_H
#define PTXGEN_GENERATOR_STRINGS_H

#include <stddef.h>

/* Keeps the string, unless it is there already; its number. */
size_t place_string(const char *string);
/* Packs what was placed; call it once, before the rest. */
void pack_strings(void);
/* Where the packed string of that number starts. */
size_t packed_place(size_t number);
/* Prints ptx_strings and ptx_pairs, which ../table.h explains. */
void print_strings(void);

#endif
