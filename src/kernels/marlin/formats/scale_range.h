/* SPDX-License-Identifier: Apache-2.0 */
/* The scales that every tile of a plan multiplies by as <ptxgen/marlin.h> says. */
#ifndef PTXGEN_KERNELS_MARLIN_FORMATS_SCALE_RANGE_H
#define PTXGEN_KERNELS_MARLIN_FORMATS_SCALE_RANGE_H

#include <ptxgen/status.h>
#include <ptxgen/types.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* f16: |s·(q − z)| is at most this, whatever q is. bf16: |s| is below that. */
static const double marlin_largest_weight = 65504, marlin_scales_end = 0x1p25;

enum { MARLIN_UNKNOWN_ZERO = 16 };

/* A scale of a checkpoint, and what it is in the spec's type. */
struct marlin_scale {
    const char *matrix; /* the name that a refusal gives it */
    size_t group, feature;
    unsigned zero; /* if unknown, the one that admits least */
    double given, stored;
};

/* The most that |q − z| may be. */
static inline unsigned marlin_most_difference(unsigned zero)
{
    return zero >= MARLIN_UNKNOWN_ZERO ? 15 : zero > 15 - zero ? zero : 15 - zero;
}

/*
 * Whether bits of a scale are admitted whatever its zero point is, and where they are not as it was
 * given, whatever that is.
 */
static inline bool marlin_scale_is_ordinary(ptxgen_element type, uint16_t bits, bool as_given)
{
    enum { F16_4096 = 0x6C00, BF16_2_25 = 0x4C00 };
    unsigned magnitude = bits & 0x7FFF;
    return (magnitude || as_given) && magnitude < (type == PTXGEN_F16 ? F16_4096 : BF16_2_25);
}

/* Refuses with PTXGEN_ERROR_UNSUPPORTED a scale that is not admitted, by its place and value. */
ptxgen_status marlin_check_scale(ptxgen_element type, const struct marlin_scale *scale,
                                 ptxgen_error *err);

#endif
