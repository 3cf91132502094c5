/* SPDX-License-Identifier: Apache-2.0 */
/** A layer's 4-bit weights among the tensors of a safetensors file. */
#ifndef PTXGEN_CLI_MARLIN_LAYER_H
#define PTXGEN_CLI_MARLIN_LAYER_H

#include "../tensor_store.h"

#include <ptxgen/marlin_formats.h>

/** Names of a format's tensors behind "PREFIX."; NULL: not in the format. */
struct layer_names {
    const char *weights, *scales, *zeros, *g_idx, *shape;
};
const struct layer_names *layer_names_of(ptxgen_w4_format format);

/** What goes before the file's metadata. */
struct layer_choice {
    const char *format;   /**< NULL: told from the names, the shapes and the metadata */
    ptrdiff_t group_size; /**< 0: the metadata's, or what the scales say */
};

/** The layer's tensors, borrowed from the store. */
ptxgen_status layer_find(const struct tensor_store *store, const char *prefix,
                         const struct layer_choice *choice, ptxgen_w4_checkpoint *checkpoint,
                         ptxgen_error *err);

/** The tensor "PREFIX.SUFFIX", or NULL. */
const struct named_tensor *layer_tensor(const struct tensor_store *store, const char *prefix,
                                        const char *suffix);

#endif
