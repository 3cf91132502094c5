/* SPDX-License-Identifier: Apache-2.0 */
/* A model of a GGUF file: what its metadata says, and its weights on the device, as the file has
 * them. */
#ifndef GENERATE_MODEL_H
#define GENERATE_MODEL_H

#include "device.h"

#include <ptxgen/gguf.h>

/* A matrix of n rows of k weights in a GGUF type. */
struct matrix {
    uint64_t at; /* device address */
    uint64_t bytes;
    uint32_t n, k;
    uint8_t type; /* ptxgen_gguf_type */
};

/* Norms are device addresses of f32, 0 where the architecture has none. */
struct layer {
    struct matrix q, k, v, o, gate, up, down;
    uint64_t attn_norm, q_norm, k_norm, post_attention_norm, ffn_norm, post_ffw_norm;
    bool is_local; /* attention sees the last `window` keys */
};

struct model {
    ptxgen_files *files;
    const ptxgen_gguf *gguf;
    uint32_t layers, hidden, heads, kv_heads, head_size, feed_forward, vocabulary;
    uint32_t context; /* positions that the model was trained for */
    uint32_t window;  /* of local layers */
    float epsilon, embedding_scale, attention_scale;
    bool is_gemma; /* gemma3, or else llama */
    struct matrix embedding, output;
    uint64_t output_norm;
    uint64_t turns[2]; /* RoPE's table (rope.h) of global layers, and of local ones */
    struct layer *layer;
    uint64_t bytes; /* of weights */
};

/* A model that was opened, or not, is to be closed; its weights go with the device. */
ptxgen_status model_open(const struct device *device, const char *path, struct model *model,
                         ptxgen_error *err);
void model_close(struct model *model);

#endif
