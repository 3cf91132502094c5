/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel of the example's own: attention of each token to the keys of its sequence up to its own
 * position, or to the last `window` of them.
 *
 *     y[m, h, :] = Σ_p softmax_p(scale · q[m, h, :] · key[p, g, :]) · value[p, g, :]
 *     g = h / (heads / kv heads);  p from max(0, position + 1 − window) to position
 *
 * The keys of a token may be split over several CTAs (flash-decoding). Each CTA finds the largest
 * score of its keys, and its sums relative to that. The CTA of a token that finishes last merges
 * the sums in the order of the splits, so that results do not depend on which CTA that is.
 *
 * Where each token is the only one of its sequence, as in a step of decoding, the launch may also
 * do what rope.h does, rotate q and k and put k and v into the cache, which saves a launch.
 */
#ifndef GENERATE_ATTENTION_H
#define GENERATE_ATTENTION_H

#include <ptxgen/dispatch.h>
#include <ptxgen/types.h>

struct attention_spec {
    uint32_t heads, kv_heads; /* heads a multiple of kv heads; neither is 0 */
    uint32_t head_size;       /* D: 64, 128 or 256 */
    uint32_t window;          /* keys that a token sees, itself included; 0: all */
    float scale;
    uint8_t type;        /* ptxgen_element of y: f32, f16 or bf16 */
    uint8_t cache_type;  /* ptxgen_element of the cache: f32, f16 or bf16 */
    uint8_t rotates;     /* 1: the launch does what rope.h does, too */
    uint8_t has_norm;    /* rotates: as in rope_spec */
    uint8_t interleaved; /* rotates: as in rope_spec */
    uint8_t reserved[3];
    float epsilon; /* rotates: as in rope_spec */
};

/*
 * Device addresses. A launch overlaps the kernel ahead of it on the stream, which in turn may
 * overlap the kernels ahead of that one. Before it waits for the kernel ahead, the kernel reads
 * positions and slots, and with `rotates` also turns, q_norm, k_norm and the cache's keys and
 * values of earlier positions. So between a kernel that writes any of these and the attention that
 * reads them there must be a launch that does not overlap the kernel ahead of it. The embedding is
 * that launch in a step of forward.c: greedy.h writes the positions of the next step, and attention
 * of this step the keys that attention of the next one reads.
 *
 * Scores, in units of log₂(e), must be finite and the largest of a token above −1e30. With an f16
 * cache, elements of the query times scale · log₂(e) must be within ±65504, after norm and
 * rotation. Otherwise outputs are NaN.
 */
struct attention_args {
    uint64_t m;               /* tokens, 1 to 65535 */
    uint64_t q;               /* f32 [m, heads, D] */
    uint64_t k, v;            /* rotates: f32 [m, kv heads, D] */
    uint64_t q_norm, k_norm;  /* rotates and has_norm: f32 [D] */
    uint64_t turns;           /* rotates: u64 [D/2] of rope_turns, in 2⁻⁶⁴ turns a position */
    uint64_t keys, values;    /* [slots, kv heads, context, D] of the cache's type */
    uint64_t positions;       /* s32 [m], each 0 to context − 1 */
    uint64_t slots;           /* s32 [m], each a slot of the cache */
    uint64_t y;               /* [m, heads, D] */
    uint64_t partials;        /* attention_partials_bytes, if there are several splits */
    uint64_t tickets;         /* attention_tickets_bytes, zeroed once; every launch leaves zeros */
    uint32_t context, splits; /* positions of a slot; CTAs for the keys of a token, 1 to 65535 */
};

const ptxgen_family *attention_family(void);
/* Refuses a spec that breaks a rule above; prefill.h has the same spec and rules. */
ptxgen_status attention_check(const struct attention_spec *spec, ptxgen_error *err);
/* The spec for people to read, for ptxgen_family. */
void attention_describe(const void *spec, char *text, size_t size);
uint64_t attention_partials_bytes(const struct attention_spec *spec, uint64_t m, uint32_t splits);
uint64_t attention_tickets_bytes(const struct attention_spec *spec, uint64_t m);
/*
 * How many splits to launch with, for m tokens, which is at least 1: as many as give every
 * multiprocessor of the target two CTAs, where each token and kv head counts as one CTA for each
 * split. There are at most 32, at most one for each 128 keys of the context, and only one where the
 * context is at most 256.
 */
uint32_t attention_splits(const struct attention_spec *spec, const ptxgen_target *target,
                          uint64_t m, uint32_t context);
ptxgen_status attention_launch(const ptxgen_loaded *loaded, const struct attention_args *args,
                               ptxgen_cu_stream stream, ptxgen_error *err);

#endif
