/* SPDX-License-Identifier: Apache-2.0 */
/** What families do with the matrices of a GGUF file: several that share x, their norm, biases. */
#ifndef PTXGEN_CLI_GGUF_LAYER_H
#define PTXGEN_CLI_GGUF_LAYER_H

#include "files.h"

#include <ptxgen/gguf.h>

enum { GGUF_LAYER_MATRICES = 3 };

struct gguf_layer {
    const ptxgen_tensor *weights[GGUF_LAYER_MATRICES], *bias[GGUF_LAYER_MATRICES], *norm;
    unsigned count; /**< matrices */
    uint32_t k, n[GGUF_LAYER_MATRICES];
};

/** The types that a family takes, and how a sentence says so: "in Q4_K". */
struct gguf_layer_types {
    bool (*takes)(const ptxgen_tensor *tensor);
    const char *expected;
};

/**
 * Finds the tensors that the options name: matrices that share x, a bias for each where they name
 * some, and a norm's weight where they name one.
 */
ptxgen_status gguf_layer_find(const ptxgen_files *store, const struct family_options *o,
                              const struct gguf_layer_types *types, struct gguf_layer *layer,
                              ptxgen_error *err);
/**
 * The epsilon of the norm's model: of the model of text, which general.architecture names; of a
 * file without that key, the only one that there is. What is left is for the user to say.
 */
ptxgen_status gguf_layer_find_epsilon(const ptxgen_gguf *gguf, const char *norm, float *epsilon,
                                      ptxgen_error *err);
/** Of each matrix NAME.weight: what else is called NAME.…, as a bias that was not asked for. */
void gguf_layer_warn(const ptxgen_files *store, const struct gguf_layer *layer);
/** Fills operands with the matrices and biases; those of matrix i are the i-th from the first. */
void gguf_layer_take(struct problem *p, const struct gguf_layer *layer, unsigned first_w,
                     unsigned first_bias);
/**
 * Keeps the activations as the file has them, before they are rounded to x's type, as the problem's
 * own: with these the file's output was made.
 */
ptxgen_status gguf_layer_keep_input(struct problem *p, const ptxgen_tensor *input, uint32_t k,
                                    ptxgen_error *err);
/**
 * The name of the norm whose output is the matrix's input, as converters to GGUF name both, where
 * the file has it: false, or true with the name in `norm`.
 */
bool gguf_layer_norm_of(const ptxgen_files *files, const char *weight, char *norm, size_t size);

#endif
