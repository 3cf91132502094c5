/* SPDX-License-Identifier: Apache-2.0 */
/** Tensors of floats, and of other numbers, in a file, read element by element. */
#ifndef PTXGEN_FILES_NUMBER_TENSOR_H
#define PTXGEN_FILES_NUMBER_TENSOR_H

#include "tensor_list.h"

/** F32, F16 or BF16. */
bool tensor_is_float(ptxgen_dtype dtype);
/** Element `index` of such a tensor, counted over all its dimensions. */
double tensor_float(const ptxgen_tensor *tensor, size_t index);
/** F64, F32, F16, BF16, or integers of 8 to 64 bits. */
bool tensor_is_number(ptxgen_dtype dtype);
/** Element `index` of such a tensor; integers above 2^53 are rounded. */
double tensor_number(const ptxgen_tensor *tensor, size_t index);
/** Over all its dimensions. */
uint64_t tensor_count(const ptxgen_tensor *tensor);
/** Refuses a tensor that is not `count` floats, or with `or_one` a single one, in any shape. */
ptxgen_status tensor_check_floats(const ptxgen_tensor *tensor, uint64_t count, bool or_one,
                                  ptxgen_error *err);
/**
 * The tensor of that name, of floats, whose last dimension is `columns`; *rows is the product of
 * the others.
 */
ptxgen_status require_floats(const ptxgen_files *store, const char *name, uint64_t columns,
                             uint64_t *rows, const ptxgen_tensor **tensor, ptxgen_error *err);

#endif
