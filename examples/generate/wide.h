/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a layer does with many tokens of a prompt, but for attention. A matrix is decoded to the
 * type of the activations (gguf_rows) and then multiplied on tensor cores (dense): decoding costs
 * what it takes to write the decoded matrix, which many tokens share. The stream of residuals is
 * brought up to date and normalised, and gate and up are joined, by kernels of their own.
 */
#ifndef GENERATE_WIDE_H
#define GENERATE_WIDE_H

#include "model.h"

#include <ptxgen/types.h>

struct wide;

/* Device addresses: the stream of its own type, the others of the type of activations. */
struct wide_arrays {
    uint64_t stream;   /* [tokens, hidden], updated in place */
    uint64_t q, k, v;  /* [tokens, heads · D] and so on */
    uint64_t attended; /* [tokens, heads · D] */
};

struct wide_options {
    uint8_t type, stream_type; /* ptxgen_element of activations and of the stream */
    uint32_t most_tokens;
    struct wide_arrays arrays;
};

/* Loads all kernels. *wide is the caller's, NULL after a failure. */
ptxgen_status wide_create(const struct device *device, const struct model *model,
                          const struct wide_options *options, struct wide **wide,
                          ptxgen_error *err);
void wide_destroy(struct wide *wide);

/* Of layer l and m tokens: from the stream to q, k and v; and from what was attended to on. */
ptxgen_status wide_before(struct wide *wide, uint32_t l, uint64_t m, ptxgen_error *err);
ptxgen_status wide_after(struct wide *wide, uint32_t l, uint64_t m, ptxgen_error *err);
/* After the last layer: the stream is the sum of all. */
ptxgen_status wide_end(struct wide *wide, uint64_t m, ptxgen_error *err);

#endif
