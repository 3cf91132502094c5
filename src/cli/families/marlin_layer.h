/* SPDX-License-Identifier: Apache-2.0 */
/** A layer's 4-bit weights in a safetensors file, as the options name them. */
#ifndef PTXGEN_CLI_MARLIN_LAYER_H
#define PTXGEN_CLI_MARLIN_LAYER_H

#include "../../files/layer_kinds.h"

#include <ptxgen/linear.h>

/** What goes before the file's metadata. */
struct layer_choice {
    const char *format;   /**< NULL: told from the names, the shapes and the metadata */
    ptrdiff_t group_size; /**< 0: the metadata's, or what the scales say */
};

/** The layer's tensors, borrowed from the store. */
ptxgen_status marlin_layer_find(const ptxgen_files *store, const char *prefix,
                                const struct layer_choice *choice, ptxgen_layer *layer,
                                ptxgen_error *err);
/** Its weights, which are not packed, and what they are. */
ptxgen_status marlin_layer_describe(const ptxgen_layer *layer, ptxgen_w4_checkpoint *checkpoint,
                                    ptxgen_w4_info *info, ptxgen_error *err);
/** Whether the layer's weights are in the file in the order of <ptxgen/marlin.h>. */
bool marlin_layer_is_packed(const ptxgen_files *store, const char *prefix);
/** What a checkpoint says of its product's spec, where flags that are set stay set. */
void marlin_layer_complete_spec(const ptxgen_w4_info *info, bool type_given,
                                ptxgen_marlin_spec *spec);

#endif
