/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel of the example's own, between the products q, k, v and attention: each head of q and k
 * is normalised (RMSNorm with a gain, where the model has it), each pair of it rotated by its
 * position (RoPE), and k and v go to their places in the cache.
 *
 *     pair i of a head of D:   (i, i + D/2), or (2i, 2i + 1) where pairs are interleaved
 *     angle                    position · base^(−2i/D) / factor[i]
 *
 * The cache holds [slots, kv heads, context, D], so that the keys of a head follow each other.
 */
#ifndef GENERATE_ROPE_H
#define GENERATE_ROPE_H

#include <ptxgen/dispatch.h>
#include <ptxgen/types.h>

struct rope_spec {
    uint32_t heads, kv_heads;
    uint32_t head_size;  /* 64, 128 or 256 */
    float epsilon;       /* of the norm */
    uint8_t type;        /* ptxgen_element of q, k and v */
    uint8_t cache_type;  /* ptxgen_element of the cache */
    uint8_t has_norm;    /* 1: q and k are normalised */
    uint8_t interleaved; /* 1: pairs are neighbours */
};

/*
 * Device addresses. A launch overlaps the kernel ahead, which must not be the one that writes
 * turns, positions or slots.
 */
struct rope_args {
    uint64_t m;              /* tokens, below 65536 */
    uint64_t q, k, v;        /* [m, heads · D] and [m, kv heads · D] */
    uint64_t q_norm, k_norm; /* f32 [D] */
    uint64_t turns;          /* u64 [D/2] of rope_turns */
    uint64_t positions;      /* s32 [m], each below the context */
    uint64_t slots;          /* s32 [m] */
    uint64_t rotated;        /* f32 [m, heads · D]: q */
    uint64_t keys, values;   /* the cache of a layer */
    uint32_t context;        /* positions of a slot */
};

const ptxgen_family *rope_family(void);
ptxgen_status rope_launch(const ptxgen_loaded *loaded, const struct rope_args *args,
                          ptxgen_cu_stream stream, ptxgen_error *err);

/*
 * How far each pair turns from one position to the next, in units of 2⁻⁶⁴ of a full turn. Whole
 * turns fall off the top of position · turns, so that an angle is exact at any position. `factors`
 * divide the frequencies, or are NULL.
 */
void rope_turns(double base, const float *factors, uint32_t head_size, uint64_t *turns);

#endif
