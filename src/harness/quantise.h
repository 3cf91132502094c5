/* SPDX-License-Identifier: Apache-2.0 */
/** Problems of the quantise family, for those who fill operands of their own. */
#ifndef PTXGEN_HARNESS_QUANTISE_H
#define PTXGEN_HARNESS_QUANTISE_H

#include "problem.h"

#include <ptxgen/quantise.h>

/** The operands of a problem. */
enum {
    QUANTISE_AT_X,
    QUANTISE_AT_GAMMA,
    QUANTISE_AT_RESIDUAL,
    QUANTISE_AT_RESIDUAL_OUT,
    QUANTISE_AT_CODES,
    QUANTISE_AT_SCALES,
    QUANTISE_AT_ZEROS,
    QUANTISE_OPERANDS
};

#endif
