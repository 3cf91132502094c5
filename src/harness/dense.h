/* SPDX-License-Identifier: Apache-2.0 */
/** The operands of dense's launches, as problems number them. */
#ifndef PTXGEN_HARNESS_DENSE_H
#define PTXGEN_HARNESS_DENSE_H

#include "problem.h"

#include <ptxgen/dense.h>

enum { DENSE_AT_X, DENSE_AT_W, DENSE_AT_BIAS, DENSE_AT_RESIDUAL, DENSE_AT_Y, DENSE_OPERANDS };

#endif
