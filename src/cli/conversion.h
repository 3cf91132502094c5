/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Converting the layers in a safetensors file, of whatever kind: the output has the input's tensors
 * in their order, and in the place of a layer's first tensor all tensors of its new form.
 */
#ifndef PTXGEN_CLI_CONVERSION_H
#define PTXGEN_CLI_CONVERSION_H

#include <ptxgen/files.h>

struct convert_request {
    const char *input, *output;
    int to;              /**< an index of the kind's forms; -1: not given */
    const char **layers; /**< prefixes; none: all that the file has */
    size_t layer_count;
    bool force;          /**< replaces an output that is there */
    const void *options; /**< of the kind's own */
};

/** The tensors of a layer in its new form: in places of the kind's own, NULL names where none is.
 */
enum { CONVERT_TENSORS = 5, CONVERT_NAME = 1024 };
struct layer_tensors {
    ptxgen_tensor items[CONVERT_TENSORS];
    char names[CONVERT_TENSORS][CONVERT_NAME];
    void *data[CONVERT_TENSORS];
};
/** Adds PREFIX.SUFFIX [rows, columns], of one dimension [rows]; its data is there later. */
void layer_tensors_add(struct layer_tensors *tensors, unsigned place, const char *prefix,
                       const char *suffix, ptxgen_dtype dtype, unsigned ndim, uint64_t rows,
                       uint64_t columns);

/** A line of the output's metadata. */
struct convert_metadata {
    const char *key; /**< NULL: none */
    char value[24];
};
enum { CONVERT_METADATA = 2 };

struct conversion;

/** A kind of layers. `layer` is a struct of the kind's own, zeroed first. */
struct layer_kind {
    const char *noun;         /**< "layer" */
    const char *none;         /**< what a file lacks that has no such layer, to end a sentence */
    const char *const *forms; /**< names, NULL-terminated */
    size_t layer_bytes;
    bool has_plain; /**< a tensor PREFIX may be a layer's, besides PREFIX.SUFFIX */

    /** Whether tensors of a layer are called so, in any form. */
    bool (*is_suffix)(const char *suffix);
    /** Whether a layer is converted that nobody names, at its tensor PREFIX.SUFFIX. */
    bool (*is_layer)(const struct conversion *c, const char *prefix, const char *suffix);
    ptxgen_status (*find)(const struct conversion *c, const char *prefix, void *layer,
                          ptxgen_error *err);
    /** Whether the tensor is one of those that the layer is made from; NULL: all others are silent.
     */
    bool (*reads)(const struct conversion *c, const char *prefix, const void *layer,
                  const ptxgen_tensor *tensor);
    /** What metadata of the input do not say, or not rightly any more; or NULL. */
    void (*describe)(const struct convert_request *request,
                     struct convert_metadata metadata[CONVERT_METADATA]);

    /** Lists the tensors of the new form. */
    ptxgen_status (*lay_out)(const struct convert_request *request, const char *prefix,
                             const void *layer, struct layer_tensors *tensors, ptxgen_error *err);
    /** Fills their data. */
    ptxgen_status (*fill)(const struct convert_request *request, const void *layer,
                          const struct layer_tensors *tensors, ptxgen_error *err);
};

struct conversion {
    const struct layer_kind *kind;
    const struct convert_request *request;
    ptxgen_files *store;
    struct safetensors_writer *writer;
    struct converted_layer {
        char *prefix;
        void *layer;
        bool done; /**< in the present pass */
    } * layers;
    size_t count, copied; /**< layers, and other tensors */
};

/** What a conversion has done. */
struct convert_outcome {
    size_t converted, copied; /**< layers; other tensors */
};
ptxgen_status convert(const struct layer_kind *kind, const struct convert_request *request,
                      struct convert_outcome *outcome, ptxgen_error *err);
/**
 * "out.safetensors: 1 layer as awq, 3 other tensors copied", on stderr when the output file is the
 * standard output.
 */
void convert_outcome_print(const struct layer_kind *kind, const struct convert_request *request,
                           const struct convert_outcome *outcome);

#endif
