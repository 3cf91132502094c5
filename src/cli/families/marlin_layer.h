/* SPDX-License-Identifier: Apache-2.0 */
/** A layer's 4-bit weights among the tensors of a safetensors file. */
#ifndef PTXGEN_CLI_MARLIN_LAYER_H
#define PTXGEN_CLI_MARLIN_LAYER_H

#include "../tensor_store.h"

#include <ptxgen/marlin.h>

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

/** Names of a packed layer's tensors behind "PREFIX."; the shape is K, N, group size. */
struct packed_names {
    const char *codes, *scales, *zeros, *order, *shape;
};
extern const struct packed_names packed_names;

/** Whether the layer's weights are in the file in the order of <ptxgen/marlin.h>. */
bool layer_is_packed(const struct tensor_store *store, const char *prefix);
/**
 * Such a layer's arrays, of the sizes of its spec and borrowed from the store: `order`, if there is
 * one, may start at any address.
 */
ptxgen_status layer_find_packed(const struct tensor_store *store, const char *prefix,
                                ptxgen_marlin_spec *spec, ptxgen_marlin_packed *packed,
                                ptxgen_error *err);

/** The tensors that a layer has under the names of its format, or packed; NULL for the others. */
enum { LAYER_TENSORS = 5 };
void layer_list_tensors(const struct tensor_store *store, const char *prefix,
                        ptxgen_w4_format format, const struct named_tensor *tensors[LAYER_TENSORS]);

/** The tensor "PREFIX.SUFFIX", or NULL. */
const struct named_tensor *layer_tensor(const struct tensor_store *store, const char *prefix,
                                        const char *suffix);

#endif
