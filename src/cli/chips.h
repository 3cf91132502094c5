/* SPDX-License-Identifier: Apache-2.0 */
/** What inspect knows of chips that are not at hand: limits by architecture, bandwidths by name. */
#ifndef PTXGEN_CLI_CHIPS_H
#define PTXGEN_CLI_CHIPS_H

#include <stddef.h>

/** Limits of one multiprocessor, from the CUDA programming guide's table of capabilities. */
struct architecture {
    int sm;
    unsigned warps, ctas;
    unsigned shared_bytes; /**< for all its CTAs; each takes 1 KB more than it asks for */
};
/** NULL for an sm that is not in the table. */
const struct architecture *architecture_find(int sm);

/** CTAs of `threads` threads that fit at once; 0 when one does not. */
unsigned architecture_occupancy(const struct architecture *a, unsigned threads,
                                unsigned registers_a_thread, size_t shared_bytes);

/** A product, with multiprocessors and memory bandwidth as its data sheet gives them. */
struct chip {
    const char *name;
    int sm;
    unsigned multiprocessors;
    double bandwidth; /**< bytes a second */
};
/** The table; NULL past its end. */
const struct chip *chip_at(size_t index);
/** By name, letter case apart. */
const struct chip *chip_find(const char *name);
/** The first chip of an architecture, or NULL. */
const struct chip *chip_of(int sm);

#endif
