/* SPDX-License-Identifier: Apache-2.0 */
/** Tensors of floats, and of other numbers, in a file, read element by element. */
#ifndef PTXGEN_CLI_FLOAT_TENSOR_H
#define PTXGEN_CLI_FLOAT_TENSOR_H

#include "tensor_store.h"

/** F32, F16 or BF16. */
bool tensor_is_float(enum tensor_dtype dtype);
/** Element `index` of such a tensor, counted over all its dimensions. */
double tensor_float(const struct named_tensor *tensor, size_t index);
/** F64, F32, F16, BF16, or integers of 8 to 64 bits. */
bool tensor_is_number(enum tensor_dtype dtype);
/** Element `index` of such a tensor; integers above 2^53 are rounded. */
double tensor_number(const struct named_tensor *tensor, size_t index);
/** Over all its dimensions. */
uint64_t tensor_count(const struct named_tensor *tensor);
/** Refuses a tensor that is not `count` floats, or with `or_one` a single one, in any shape. */
ptxgen_status tensor_check_floats(const struct named_tensor *tensor, uint64_t count, bool or_one,
                                  ptxgen_error *err);
/**
 * The tensor of that name, of floats, whose last dimension is `columns`; *rows is the product of
 * the others.
 */
ptxgen_status tensor_store_require_floats(const struct tensor_store *store, const char *name,
                                          uint64_t columns, uint64_t *rows,
                                          const struct named_tensor **tensor, ptxgen_error *err);

#endif
