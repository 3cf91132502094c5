/* SPDX-License-Identifier: Apache-2.0 */
/* What makers of layers of files share: the tensors' numbers, and their checks. */
#ifndef PTXGEN_RUNTIME_LINEAR_LAYER_H
#define PTXGEN_RUNTIME_LINEAR_LAYER_H

#include "src/runtime/linear.h"

/* What a maker needs: the layer, and that of `up` or NULL. */
struct linear_file {
    const ptxgen_layer *layer, *up;
};

ptxgen_status linear_refuse_part(const ptxgen_tensor *t, const char *expected, ptxgen_error *err);
/* `count` floats, malloc'ed, of a tensor of so many, or of one for all; NULL for none. */
ptxgen_status linear_read_floats(const ptxgen_tensor *t, size_t count, float **floats,
                                 ptxgen_error *err);
/* The only number of a tensor: an integer, little-endian with its sign, or a float. */
double linear_read_number(const ptxgen_tensor *t);
/* A matrix of INT32_MAX rows and columns at most, of elements of so many bytes. */
ptxgen_status linear_check_matrix(const ptxgen_tensor *t, size_t size, const char *expected,
                                  ptxgen_error *err);

ptxgen_status linear_fill_w8(const struct linear_making *m, const struct linear_file *f,
                             ptxgen_linear *linear, ptxgen_error *err);

#endif
