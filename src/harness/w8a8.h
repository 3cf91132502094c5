/* SPDX-License-Identifier: Apache-2.0 */
/** The operands of w8a8's launches, as problems number them. */
#ifndef PTXGEN_HARNESS_W8A8_H
#define PTXGEN_HARNESS_W8A8_H

#include "problem.h"

#include <ptxgen/w8a8.h>

enum {
    W8A8_AT_X,
    W8A8_AT_W,
    W8A8_AT_W_SCALE,
    W8A8_AT_W_SUM,
    W8A8_AT_BIAS,
    W8A8_AT_X_SCALE,
    W8A8_AT_X_ZERO,
    W8A8_AT_RESIDUAL,
    W8A8_AT_Y,
    W8A8_OPERANDS
};

/** The sums of the weights' rows, where the spec needs them. */
void w8a8_sum_rows(struct problem *p);

#endif
