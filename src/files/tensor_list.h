/* SPDX-License-Identifier: Apache-2.0 */
/** How readers make the tensors and the lists of files.h. */
#ifndef PTXGEN_FILES_TENSOR_LIST_H
#define PTXGEN_FILES_TENSOR_LIST_H

#include "name_index.h"

#include <ptxgen/files.h>

/**
 * Sets `bytes` to what `shape` takes in its dtype. Refuses, naming the tensor, a product that
 * does not fit in memory's size and an element count that leaves a block incomplete.
 */
ptxgen_status tensor_measure(ptxgen_tensor *tensor, ptxgen_error *err);

/** "[96, 1024]" */
struct tensor_shape_text {
    char text[PTXGEN_TENSOR_MAX_DIMS * 22 + 3];
};
struct tensor_shape_text tensor_shape_text(const ptxgen_tensor *tensor);

/** Room for `count` tensors, zeroed, to be released by tensor_list_free. */
ptxgen_status tensor_list_allocate(ptxgen_tensor_list *list, size_t count, ptxgen_error *err);
/** Builds `by_name` once every item has its name; refuses a name that appears twice. */
ptxgen_status tensor_list_index(ptxgen_tensor_list *list, ptxgen_error *err);
/** Releases the arrays, not the names. */
void tensor_list_free(ptxgen_tensor_list *list);

#endif
