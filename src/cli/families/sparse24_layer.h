/* SPDX-License-Identifier: Apache-2.0 */
/**
 * 2:4 sparse weights in a file of tensors. A weight PREFIX, N by K, stands there in one form or in
 * several:
 *
 *     dense     PREFIX.dense, or PREFIX itself   [N, K] F32, F16, BF16 or I8
 *     bytes     PREFIX.sparse                    [N, K/2], with PREFIX.meta_bytes    [N, K/4] U8
 *     nibbles   PREFIX.sparse                    …         with PREFIX.meta_nibbles  [N, K/8] U8
 *     bitmask   PREFIX.compressed, as compressed-tensors has it, PREFIX.bitmask      [N, K/8] U8
 *     cutlass   PREFIX.sparse                    …         with PREFIX.meta_cutlass
 *                                                [N, K/16] I16 of 16-bit types, [N, K/32] I32 of I8
 */
#ifndef PTXGEN_CLI_SPARSE24_LAYER_H
#define PTXGEN_CLI_SPARSE24_LAYER_H

#include "../tensor_store.h"

#include <ptxgen/sparse24_formats.h>

/** Forms are those of ptxgen_sparse24_form, and then this one. */
enum { SPARSE24_DENSE = PTXGEN_SPARSE24_CUTLASS + 1, SPARSE24_FORMS };
/** Their names, NULL-terminated. */
extern const char *const sparse24_form_names[SPARSE24_FORMS + 1];

struct sparse24_layer {
    ptxgen_sparse24_shape shape;
    int form;
    ptxgen_const_span values;              /**< all of a dense weight */
    ptxgen_const_span metadata;            /**< none of a dense one */
    const struct named_tensor *tensors[3]; /**< of values, metadata and shape; NULL: none */
};

/** Finds the weight in `form`, or with -1 in the first form that there is, dense last. */
ptxgen_status sparse24_layer_find(const struct tensor_store *store, const char *prefix, int form,
                                  struct sparse24_layer *layer, ptxgen_error *err);
/** The length of the prefix when `name` is a tensor of a weight in any form but a plain PREFIX. */
size_t sparse24_layer_prefix(const char *name);

/** The tensors of a weight in a form, in a file: names have room for PREFIX and a suffix. */
enum { SPARSE24_LAYER_TENSORS = 3, SPARSE24_NAME = 1024 };
struct sparse24_layer_tensors {
    struct named_tensor items[SPARSE24_LAYER_TENSORS]; /**< values, metadata, shape; no data yet */
    char names[SPARSE24_LAYER_TENSORS][SPARSE24_NAME];
    unsigned count;
};
ptxgen_status sparse24_layer_lay_out(const char *prefix, const ptxgen_sparse24_shape *shape,
                                     int form, struct sparse24_layer_tensors *tensors,
                                     ptxgen_error *err);

#endif
