/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes that the plan, the emitter and the launch of w8a8 share. */
#ifndef PTXGEN_W8A8_LAYOUT_H
#define PTXGEN_W8A8_LAYOUT_H

#include <ptxgen/w8a8.h>

enum {
    CTA_THREADS = 256,
    CTA_WARPS = CTA_THREADS / 32,
    TILE_ROWS = 16,   /* rows of W in an mma.m16n8k32, its A */
    TILE_TOKENS = 8,  /* tokens in it, its B */
    TILE_DEPTH = 32,  /* bytes of K in it */
    CODES_ALIGN = 256, /* rows of codes are padded with zeros to this: a multiple of every depth */
};

/* Where the workspace of a two-launch plan keeps its parts, in bytes. */
struct w8a8_workspace {
    uint64_t codes;    /* [m] rows of code_stride bytes */
    uint64_t scales;   /* [m] of the work type */
    uint64_t zeros;    /* s32 [m], where asymmetric */
    uint64_t counters; /* u32, one a tile, where K is split */
    uint64_t partials; /* s32 [tile][split][rows · tokens] */
    uint64_t bytes;
};

/* False when it does not fit into 64 bits. */
bool w8a8_lay_out_workspace(const ptxgen_w8a8_plan *plan, const ptxgen_w8a8_variant *v, uint32_t m,
                            struct w8a8_workspace *to);

static inline uint64_t code_stride(const ptxgen_w8a8_spec *spec)
{
    return ((uint64_t)spec->k + CODES_ALIGN - 1) / CODES_ALIGN * CODES_ALIGN;
}

static inline uint32_t w_stride(const ptxgen_w8a8_spec *spec)
{
    return spec->w_stride ? spec->w_stride : spec->k;
}

static inline bool is_f64(const ptxgen_w8a8_spec *spec)
{
    return ptxgen_w8a8_work_type(spec) == PTXGEN_F64;
}

static inline uint32_t work_bytes(const ptxgen_w8a8_spec *spec)
{
    return is_f64(spec) ? 8 : 4;
}

/* Stages of `depth` bytes that cover K. */
static inline uint32_t depth_steps(const ptxgen_w8a8_spec *spec, const ptxgen_w8a8_variant *v)
{
    return (spec->k + v->depth - 1) / v->depth;
}

/* Bytes from one token's codes to the next where a fused CTA keeps them: off by 16 from a multiple of
 * 128, so that ldmatrix meets all banks. */
static inline uint32_t resident_stride(const ptxgen_w8a8_spec *spec, uint32_t depth)
{
    return (spec->k + depth - 1) / depth * depth + 16;
}

#endif
