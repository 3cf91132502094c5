/* SPDX-License-Identifier: Apache-2.0 */
/** A layer's 4-bit weights among the tensors of a safetensors file. */
#ifndef PTXGEN_CLI_MARLIN_LAYER_H
#define PTXGEN_CLI_MARLIN_LAYER_H

#include "../../files/tensor_list.h"

#include <ptxgen/marlin.h>

/** Formats are those of ptxgen_w4_format, and then the order of <ptxgen/marlin.h>. */
enum { LAYER_PACKED = PTXGEN_W4_MARLIN + 1, LAYER_FORMATS };
/** The tensors of a layer. Of a packed one the weights are codes, and the shape is K, N, group
 * size.
 */
enum { LAYER_WEIGHTS, LAYER_SCALES, LAYER_ZEROS, LAYER_ORDER, LAYER_SHAPE, LAYER_TENSORS };
/** Their names behind "PREFIX."; NULL: not in the format. */
extern const char *const layer_suffixes[LAYER_FORMATS][LAYER_TENSORS];

/** The files' dtypes of ptxgen_w4_dtype. */
extern const ptxgen_dtype layer_dtypes[PTXGEN_W4_I8 + 1];

/** What goes before the file's metadata. */
struct layer_choice {
    const char *format;   /**< NULL: told from the names, the shapes and the metadata */
    ptrdiff_t group_size; /**< 0: the metadata's, or what the scales say */
};

/** The layer's tensors, borrowed from the store. */
ptxgen_status layer_find(const ptxgen_files *store, const char *prefix,
                         const struct layer_choice *choice, ptxgen_w4_checkpoint *checkpoint,
                         ptxgen_error *err);

/** Whether a tensor has the weights of a layer, and the layer's name. */
bool layer_recognise(const ptxgen_files *store, const ptxgen_tensor *weights, char *layer,
                     size_t size);

/** Whether the layer's weights are in the file in the order of <ptxgen/marlin.h>. */
bool layer_is_packed(const ptxgen_files *store, const char *prefix);
/**
 * Such a layer's arrays, borrowed from the store: `order`, if there is one, may start at any
 * address. Sets what the file says of the spec, and leaves the rest.
 */
ptxgen_status layer_find_packed(const ptxgen_files *store, const char *prefix,
                                ptxgen_marlin_spec *spec, ptxgen_marlin_packed *packed,
                                ptxgen_error *err);

/** The tensors that a layer has under the names of a format; NULL for the others. */
void layer_list_tensors(const ptxgen_files *store, const char *prefix, int format,
                        const ptxgen_tensor *tensors[LAYER_TENSORS]);
/** What a checkpoint says of its product's spec, where flags that are set stay set. */
void layer_complete_spec(const ptxgen_w4_info *info, bool type_given, ptxgen_marlin_spec *spec);

#endif
