/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel of the example's own: attention of each token to the keys of its sequence up to its own
 * position, or to the last `window` of them.
 *
 *     y[m, h, :] = Σ_p softmax_p(scale · q[m, h, :] · key[p, g, :]) · value[p, g, :]
 *     g = h / (heads / kv heads);  p from max(0, position + 1 − window) to position
 *
 * The keys of a token may be split over several CTAs (flash-decoding): each finds its largest
 * score, its sums with that as the reference, and the CTA that comes last adds them up, in the
 * order of the splits, so that results do not depend on which that is.
 *
 * Where each token is the only one of its sequence, as in a step of decoding, the launch may also
 * do what rope.h does, rotate q and k and put k and v into the cache: a kernel less.
 */
#ifndef GENERATE_ATTENTION_H
#define GENERATE_ATTENTION_H

#include <ptxgen/dispatch.h>
#include <ptxgen/types.h>

struct attention_spec {
    uint32_t heads, kv_heads; /* heads a multiple of kv heads */
    uint32_t head_size;       /* 64, 128 or 256 */
    uint32_t window;          /* keys that a token sees, itself included; 0: all */
    float scale;
    uint8_t type;       /* ptxgen_element of y */
    uint8_t cache_type; /* ptxgen_element of the cache */
    uint8_t rotates;    /* 1: what rope.h does is part of the launch; the three below are rope's */
    uint8_t has_norm, interleaved;
    uint8_t reserved[3];
    float epsilon;
};

/*
 * Device addresses. A launch overlaps the kernel ahead, and that may overlap those ahead of it.
 * What writes turns, positions, slots or, where the launch rotates, the keys and values that the
 * cache has must have ended before any of these begins: all of that is read early.
 */
struct attention_args {
    uint64_t m;               /* tokens, below 65536 */
    uint64_t q;               /* f32 [m, heads, D] */
    uint64_t k, v;            /* rotates: f32 [m, kv heads, D] */
    uint64_t q_norm, k_norm;  /* rotates: f32 [D] */
    uint64_t turns;           /* rotates: u64 [D/2] of rope_turns */
    uint64_t keys, values;    /* [slots, kv heads, context, D] of the cache's type */
    uint64_t positions;       /* s32 [m], each below the context */
    uint64_t slots;           /* s32 [m] */
    uint64_t y;               /* [m, heads, D] */
    uint64_t partials;        /* attention_partials_bytes, if there are several splits */
    uint64_t tickets;         /* attention_tickets_bytes, zeroed once; every launch leaves zeros */
    uint32_t context, splits; /* positions of a slot; CTAs for the keys of a token, at least 1 */
};

const ptxgen_family *attention_family(void);
/* What the kernels of this spec have in common: their rules, and the spec for people to read. */
ptxgen_status attention_check(const struct attention_spec *spec, ptxgen_error *err);
void attention_describe(const void *spec, char *text, size_t size);
uint64_t attention_partials_bytes(const struct attention_spec *spec, uint64_t m, uint32_t splits);
uint64_t attention_tickets_bytes(const struct attention_spec *spec, uint64_t m);
/* As many splits as give every multiprocessor of the target two CTAs, for m tokens, and no more
 * than so many keys are worth. */
uint32_t attention_splits(const struct attention_spec *spec, const ptxgen_target *target,
                          uint64_t m, uint32_t context);
ptxgen_status attention_launch(const ptxgen_loaded *loaded, const struct attention_args *args,
                               ptxgen_cu_stream stream, ptxgen_error *err);

#endif
