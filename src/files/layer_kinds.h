/* SPDX-License-Identifier: Apache-2.0 */
/** The finders of a layer's tensors, one for each kind of layer. */
#ifndef PTXGEN_FILES_LAYER_KINDS_H
#define PTXGEN_FILES_LAYER_KINDS_H

#include "layer_parts.h"

#include <ptxgen/layer.h>

/** What is known of a kind of layers. */
struct layer_kind_row {
    /** Whether the file has weights of such a layer under that name, right or wrong. */
    bool (*has)(const ptxgen_files *files, const char *name);
    /**
     * Finds the parts. PTXGEN_ERROR_NOT_FOUND, naming what was looked for and the nearest, where
     * the layer's weights are not there.
     */
    ptxgen_status (*find)(const ptxgen_files *files, const char *name,
                          const ptxgen_layer_choice *choice, ptxgen_layer *layer,
                          ptxgen_error *err);
    /** Whether a tensor has the weights of such a layer, by its name and type; and the name. */
    bool (*recognise)(const ptxgen_files *files, const ptxgen_tensor *tensor, char *name,
                      size_t size);
    ptxgen_layer_form first_form, last_form; /**< that may be chosen */
};
extern const struct layer_kind_row layer_w4, layer_w8, layer_sparse24, layer_gguf, layer_floats;

/** What a part of a 4-bit or a sparse form is called behind "L."; NULL: the form has none. */
const char *layer_suffix(ptxgen_layer_form form, ptxgen_layer_part part);

/**
 * The weight PREFIX of a sparse layer, with its metadata and shape, in `form`, or with 0 in the
 * first form that there is, dense last.
 */
ptxgen_status layer_find_sparse24_weight(const ptxgen_files *files, const char *prefix,
                                         ptxgen_layer_form form, ptxgen_layer *layer,
                                         ptxgen_error *err);

#endif
