/* SPDX-License-Identifier: Apache-2.0 */
#include <ptxgen/dense.h>

extern ptxgen_error err;
extern const ptxgen_dense_plan plan;
extern const ptxgen_dense_operands operands;
extern double *y, *bound, *output;
extern ptxgen_spread *spread;
extern size_t outputs;
