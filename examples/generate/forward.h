/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The forward pass: which kernels make the logits of a batch of sequences, and where their operands
 * are. Tokens go through it m at a time, each with its id, its position and the slot of the cache
 * that its sequence has: a piece of a prompt, or one token of each sequence in a step of decoding.
 */
#ifndef GENERATE_FORWARD_H
#define GENERATE_FORWARD_H

#include "model.h"

#include <ptxgen/types.h>

struct forward_options {
    uint8_t type;            /* ptxgen_element of activations: f32, f16 or bf16 */
    uint8_t cache_type;      /* ptxgen_element of keys and values */
    uint8_t stream_type;     /* that of the stream of residuals: f32 or bf16 */
    uint32_t batch;          /* sequences */
    uint32_t context;        /* positions of each */
    uint32_t longest_prompt; /* of the prompts that are expected: longer ones may be slower */
    /* Called while a prompt is read, with the tokens that are done; may be NULL. */
    void (*progress)(void *user, uint32_t done, uint32_t count);
    void *user;
};

struct forward;

/* Compiles or loads all kernels. The device and the model outlive *forward, which is the caller's
 * and NULL after a failure. */
ptxgen_status forward_create(const struct device *device, const struct model *model,
                             const struct forward_options *options, struct forward **forward,
                             ptxgen_error *err);
void forward_destroy(struct forward *forward);

/*
 * Reads the prompt of sequence `slot`, of at least one token, whose logits are then those of its
 * last token.
 */
ptxgen_status forward_prompt(struct forward *forward, uint32_t slot, const int32_t *ids,
                             uint32_t count, ptxgen_error *err);
/* Makes the largest logit of each sequence its next token, on the device. */
ptxgen_status forward_choose(struct forward *forward, ptxgen_error *err);
/* Makes `ids` the next tokens, one for each sequence. */
ptxgen_status forward_set(struct forward *forward, const int32_t *ids, ptxgen_error *err);
/*
 * Computes the logits of the next tokens, with `chooses` followed by forward_choose; all of it is
 * one CUDA graph where the driver has graphs. `chooses` is the same in all calls.
 */
ptxgen_status forward_step(struct forward *forward, bool chooses, ptxgen_error *err);

/* Copies to the host, in the order of the stream (device.h): the next tokens of all sequences, and
 * f32 [batch, vocabulary]. */
ptxgen_status forward_tokens(const struct forward *forward, int32_t *ids, ptxgen_error *err);
ptxgen_status forward_logits(const struct forward *forward, float *logits, ptxgen_error *err);

#endif
