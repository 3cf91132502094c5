/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of scales in <ptxgen/marlin.h>, within which all tiles of a plan compute alike. */
#ifndef PTXGEN_KERNELS_MARLIN_FORMATS_SCALE_RANGE_H
#define PTXGEN_KERNELS_MARLIN_FORMATS_SCALE_RANGE_H

#include <ptxgen/status.h>
#include <ptxgen/types.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The limit of |s·(q − z)| for f16, whatever q is; the limit that |s| stays below for bf16. */
static const double marlin_largest_weight = 65504, marlin_scales_end = 0x1p25;

enum { MARLIN_UNKNOWN_ZERO = 16 };

/* A scale of a checkpoint, as the checkpoint has it and in the spec's type. */
struct marlin_scale {
    const char *matrix; /* the name of the matrix in a refusal */
    size_t group, feature;
    unsigned zero; /* if unknown, the one with the narrowest limits */
    double given, stored;
};

/* The largest |q − z| for a zero point. */
static inline unsigned marlin_most_difference(unsigned zero)
{
    return zero >= MARLIN_UNKNOWN_ZERO ? 15 : zero > 15 - zero ? zero : 15 - zero;
}

/*
 * Whether the bits of a scale are within the limits for every zero point, and, if they have been
 * converted (not `as_given`), for every value that may have been given.
 */
static inline bool marlin_scale_is_ordinary(ptxgen_element type, uint16_t bits, bool as_given)
{
    enum { F16_4096 = 0x6C00, BF16_2_25 = 0x4C00 };
    unsigned magnitude = bits & 0x7FFF;
    return (magnitude || as_given) && magnitude < (type == PTXGEN_F16 ? F16_4096 : BF16_2_25);
}

/* Refuses, with PTXGEN_ERROR_UNSUPPORTED, a scale outside of the limits, by its place and value. */
ptxgen_status marlin_check_scale(ptxgen_element type, const struct marlin_scale *scale,
                                 ptxgen_error *err);

#endif
