/* SPDX-License-Identifier: Apache-2.0 */
/* The shape of the kernel that multiplies up to 8 tokens by weights in floats; floats.c has it. */
#ifndef PTXGEN_GGUF_LINEAR_FLOATS_H
#define PTXGEN_GGUF_LINEAR_FLOATS_H

#include "layout.h"

enum {
    FLOAT_MULTIPLE = 8, /* of which K is a multiple, so that rows keep the alignment of the first */
    FLOAT_WARPS = 8,
    FLOAT_THREADS = 32 * FLOAT_WARPS,
    FLOAT_CHUNK = 256, /* values of K of a warp: eight of each lane */
    FLOAT_WORDS = 32,  /* registers of a step's weights as they are in memory, at most */
    FLOAT_WARP_K = 1024,
    FLOAT_LANE_TREE = 5 /* additions of a lane's sum to those of the others */
};

/* Features that a warp multiplies at once, so that more tokens are loaded less often. */
static inline uint32_t float_rows(uint32_t tile_m)
{
    return tile_m > 2 ? 4 : 2;
}
/* Chunks of a step: weights of all its rows are under way at once. More sums leave less room. */
static inline uint32_t float_chunks(uint32_t tile_m, uint32_t type)
{
    const uint32_t words = type == PTXGEN_GGUF_F32 ? 8 : 4;
    return tile_m > 2 ? 1 : FLOAT_WORDS / (float_rows(tile_m) * words);
}
/* Warps along K, of which each has at least some K; the others stand along N. */
static inline uint32_t float_wk(const ptxgen_gguf_linear_spec *s)
{
    uint32_t wk = 1;
    while (wk < FLOAT_WARPS && s->k >= 2 * wk * FLOAT_WARP_K)
        wk *= 2;
    return wk;
}
static inline uint32_t float_cta_rows(const ptxgen_gguf_linear_spec *s, uint32_t tile_m)
{
    return FLOAT_WARPS / float_wk(s) * float_rows(tile_m);
}
static inline uint32_t float_ctas(const ptxgen_gguf_linear_spec *s, uint32_t matrix,
                                  uint32_t tile_m)
{
    const uint32_t rows = float_cta_rows(s, tile_m);
    return is_float(s, matrix) ? (s->n[matrix] + rows - 1) / rows : 0;
}
static inline uint32_t float_all_ctas(const ptxgen_gguf_linear_spec *s, uint32_t tile_m)
{
    uint32_t ctas = 0;
    for (uint32_t i = 0; i < matrix_count(s); i++)
        ctas += float_ctas(s, i, tile_m);
    return ctas;
}
/* Steps of a warp along K. */
static inline uint32_t float_steps(const ptxgen_gguf_linear_spec *s, uint32_t tile_m, uint32_t type)
{
    const uint32_t step = float_wk(s) * float_chunks(tile_m, type) * FLOAT_CHUNK;
    return (s->k + step - 1) / step;
}
/* Bytes of shared memory: the sums of each warp. */
static inline uint32_t float_shared(uint32_t tile_m)
{
    return FLOAT_WARPS * tile_m * float_rows(tile_m) * 4;
}
/* The additions that a product passes at most. */
static inline double float_depth(const ptxgen_gguf_linear_spec *s, uint32_t tile_m, uint32_t type)
{
    enum { LAST = 2 };
    const uint32_t of_lane = float_steps(s, tile_m, type) * float_chunks(tile_m, type) * 8;
    return of_lane + FLOAT_LANE_TREE + float_wk(s) + LAST;
}
/* What a plan without quantised matrices says of the kernel for tile_m tokens. */
static inline ptxgen_gguf_linear_variant gguf_linear_float_variant(const ptxgen_gguf_linear_spec *s,
                                                                   uint32_t tile_m)
{
    return (ptxgen_gguf_linear_variant){.tile_m = tile_m,
                                        .parts = 1,
                                        .part_ctas = float_all_ctas(s, tile_m),
                                        .wn = FLOAT_WARPS / float_wk(s),
                                        .wk = float_wk(s),
                                        .shared_bytes = float_shared(tile_m)};
}

enum gguf_linear_float_param {
    FLOAT_W,
    FLOAT_BIAS = FLOAT_W + MATRICES,
    FLOAT_Y = FLOAT_BIAS + MATRICES,
    FLOAT_H = FLOAT_Y + MATRICES, /* the last one of 64 bits */
    FLOAT_Y_STRIDE,
    FLOAT_H_STRIDE = FLOAT_Y_STRIDE + MATRICES,
    FLOAT_M,
    FLOAT_PARAMS
};

/* The entry of the product, as "gguf_linear_float_m4". */
const char *gguf_linear_float_entry(uint32_t tile_m);
/* Emits the entry that makes rows of h, where h is not x, and the product. */
void gguf_linear_emit_floats(const ptxgen_gguf_linear_plan *plan,
                             const ptxgen_gguf_linear_variant *v, ptx_module *module);

#endif
