/* SPDX-License-Identifier: Apache-2.0 */
/** Activations in double precision for references, and their properties for bounds and spreads. */
#ifndef PTXGEN_KERNELS_ACTIVATION_H
#define PTXGEN_KERNELS_ACTIVATION_H

#include <ptxgen/types.h>

struct activation {
    double (*of)(double v);
    double steepest; /**< an upper limit of the function's slope */
    /** Where the function has its minimum; it falls before that point and rises after it. */
    double least_at;
};

/** The properties of an activation, which is not PTXGEN_ACTIVATION_NONE. */
const struct activation *activation_named(ptxgen_activation name);

#endif
