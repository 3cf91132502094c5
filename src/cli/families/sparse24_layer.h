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

#include "../conversion.h"

#include <ptxgen/sparse24_formats.h>

/** Forms are those of ptxgen_sparse24_form, and then this one. */
enum { SPARSE24_DENSE = PTXGEN_SPARSE24_CUTLASS + 1, SPARSE24_FORMS };
/** Its tensors; a dense weight has values alone, and only a bitmask a shape. */
enum { SPARSE24_VALUES, SPARSE24_METADATA, SPARSE24_SHAPE, SPARSE24_TENSORS };

struct sparse24_layer {
    ptxgen_sparse24_shape shape;
    int form;
    ptxgen_const_span values;   /**< all of a dense weight */
    ptxgen_const_span metadata; /**< none of a dense one */
    const ptxgen_tensor *tensors[SPARSE24_TENSORS];
};

/** Finds the weight in `form`, or with -1 in the first form that there is, dense last. */
ptxgen_status sparse24_layer_find(const ptxgen_files *store, const char *prefix, int form,
                                  struct sparse24_layer *layer, ptxgen_error *err);
/** Whether a weight has a tensor PREFIX.SUFFIX in some form. */
bool sparse24_layer_has(const char *suffix);

/**
 * The weight in another form, in spans of its sizes. With `prune` a dense weight has two of each
 * four set to zero first; otherwise it must be 2:4 sparse.
 */
ptxgen_status sparse24_layer_convert(const struct sparse24_layer *layer, bool prune, int form,
                                     ptxgen_span values, ptxgen_span metadata, ptxgen_error *err);

/** Conversions of such weights, to these forms. */
extern const struct layer_kind sparse24_layers;
/** The options of its requests. */
struct sparse24_convert_options {
    int from;   /**< the form of the input; -1: the first that there is */
    bool prune; /**< a dense weight need not be 2:4 sparse */
};

#endif
