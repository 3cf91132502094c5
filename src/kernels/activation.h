/* SPDX-License-Identifier: Apache-2.0 */
/** Activations in double precision, as references take them, and what bounds and spreads need. */
#ifndef PTXGEN_KERNELS_ACTIVATION_H
#define PTXGEN_KERNELS_ACTIVATION_H

#include <ptxgen/types.h>

struct activation {
    double (*of)(double v);
    double steepest; /**< at least its largest slope */
    /** Where it is least; it falls before and rises after. SiLU and GELU fall below 0 there. */
    double least_at;
};

/** The activation of that name; it must be one, and not PTXGEN_ACTIVATION_NONE. */
const struct activation *activation_named(ptxgen_activation name);

#endif
