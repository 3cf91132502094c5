/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes that the plan and the emitter of rmsnorm_q4k share. */
#ifndef PTXGEN_RMSNORM_Q4K_LAYOUT_H
#define PTXGEN_RMSNORM_Q4K_LAYOUT_H

#include "../plan.h"

#include <ptxgen/rmsnorm_q4k.h>

#include <stdbool.h>

enum {
    SUPER_BLOCK = 256,       /* weights */
    SUPER_BLOCK_BYTES = 144, /* f16 d, f16 dmin, 12 bytes of scales, 128 of nibbles */
    TILE_ROWS = 16,
    /* Super-blocks of a row that are copied together. 288 bytes are whole sectors of 32 bytes. As
     * the stride between the rows of a stage they spread reads of 8 bytes by 8 rows over all
     * banks. */
    PAIR = 2,
    PAIR_BYTES = PAIR * SUPER_BLOCK_BYTES,
    STAGE_BYTES = TILE_ROWS * PAIR_BYTES,
    HALF_ROWS = TILE_ROWS / 2,
};

/*
 * Activations are fixed point: a super-block of a token is i·2^e with 31-bit integers i, and i is
 * four signed bytes, the planes. The record of a super-block in shared memory, for `tokens` tokens:
 *   B     4 pairs of sub-blocks × tokens × 4 planes × 4 quad lanes × 2 × 8 bytes: B fragments of
 *         mma.m16n8k32; of one token, 2 halves × {low, high nibbles} × 4 planes × 4 quad lanes × 16
 *   Bmin  tokens × {hi, lo} × 4 quad lanes × 4 bytes: the sub-blocks' sums, B of mma.m16n8k8
 *   scale tokens × f32: 2^e, or NaN for a super-block with a NaN or infinity
 */
enum { PLANES = 4, BOX_TOKENS = 8 / PLANES /* tokens of one product's 8 columns */ };

static inline uint32_t record_bmin(uint32_t tokens)
{
    return tokens * 1024;
}
static inline uint32_t record_scale(uint32_t tokens)
{
    return record_bmin(tokens) + tokens * 32;
}
/* With one token a record starts at the first bank: zeros are read from the other banks. */
static inline uint32_t record_bytes(uint32_t tokens)
{
    uint32_t unit = tokens == 1 ? 128 : 16;
    return (record_scale(tokens) + tokens * 4 + unit - 1) / unit * unit;
}

/* With one token, the bytes that lanes read whose B fragments are zero. */
static inline uint32_t zero_bytes(uint32_t tokens)
{
    return tokens == 1 ? 3 * 256 + 64 : 0;
}

static inline uint32_t super_blocks(const ptxgen_rmsnorm_q4k_spec *spec)
{
    return spec->k / SUPER_BLOCK;
}
static inline uint32_t pairs(const ptxgen_rmsnorm_q4k_spec *spec)
{
    return (super_blocks(spec) + PAIR - 1) / PAIR;
}
/* The most pairs of a tile that one warp multiplies. */
static inline uint32_t steps(const ptxgen_rmsnorm_q4k_spec *spec, uint32_t wk)
{
    return (pairs(spec) + wk - 1) / wk;
}

/* Bytes of a warp's sums of a tile, as the lanes hold them. */
static inline uint32_t partial_bytes(const ptxgen_rmsnorm_q4k_variant *v)
{
    return 32 * 4 * (v->tile_m > BOX_TOKENS ? v->tile_m / BOX_TOKENS : 1);
}

static inline bool is_gated(const ptxgen_rmsnorm_q4k_spec *spec)
{
    return spec->epilogue == PTXGEN_EPILOGUE_SWIGLU;
}

/* Outputs of a tile: with SwiGLU a tile is 8 features of gate and the same 8 of up. */
static inline uint32_t tile_outputs(const ptxgen_rmsnorm_q4k_spec *spec)
{
    return is_gated(spec) ? TILE_ROWS / 2 : TILE_ROWS;
}

/*
 * Outputs of a token are numbered over all matrices. Each matrix starts at a multiple of a tile, so
 * that no tile has features of two. Whole tiles are dealt out: CTA c has tiles c, c + grid, and so
 * on.
 */
static inline uint32_t matrix_end(const ptxgen_rmsnorm_q4k_spec *spec, int matrix)
{
    uint32_t end = 0, unit = tile_outputs(spec);
    for (int i = 0; i <= matrix && !(is_gated(spec) && i); i++)
        end += (spec->n[i] + unit - 1) / unit * unit;
    return end;
}
static inline uint32_t outputs(const ptxgen_rmsnorm_q4k_spec *spec)
{
    return matrix_end(spec, PTXGEN_RMSNORM_Q4K_MATRICES - 1);
}

static inline uint32_t tiles(const ptxgen_rmsnorm_q4k_spec *spec)
{
    return outputs(spec) / tile_outputs(spec);
}

/* Whether weights come by tensor copies with mbarriers (sm_90), or else by cp.async. */
static inline bool has_tensor_copies(const ptxgen_target *target)
{
    return target->ptx.sm >= 90;
}

/* Whether one token's x and gamma are more bytes than the first slots of all warps of a CTA. */
static inline bool x_is_larger(const ptxgen_rmsnorm_q4k_spec *spec,
                               const ptxgen_rmsnorm_q4k_variant *v)
{
    uint32_t value_bytes = (spec->x_type == PTXGEN_F32 ? 4 : 2) * (spec->residual ? 2 : 1) + 4;
    return v->tile_m == 1 && spec->k * value_bytes > v->wk * v->wn * STAGE_BYTES;
}

/*
 * Bytes of one token's x that are staged in shared memory: none, all, or a place for the second
 * super-block of each warp. Where x does not allow vectors, the first super-block takes that place
 * too.
 */
uint32_t rmsnorm_q4k_staged_bytes(const ptxgen_rmsnorm_q4k_plan *p,
                                  const ptxgen_rmsnorm_q4k_variant *v);
static inline uint32_t staged_second_bytes(const ptxgen_rmsnorm_q4k_variant *v)
{
    return v->wk * v->wn * SUPER_BLOCK * 2;
}

/* Whether it is a plan that ptxgen_rmsnorm_q4k_make_plan filled. */
static inline bool rmsnorm_q4k_is_plan(const void *plan)
{
    const ptxgen_rmsnorm_q4k_plan *p = plan;
    enum { VARIANTS = sizeof p->variants / sizeof *p->variants };
    return p && plan_is_made(&p->target, !p->spec.n[0], p->variant_count, VARIANTS);
}

/* The sentence for an m that no variant serves. */
ptxgen_status rmsnorm_q4k_refuse_m(const ptxgen_rmsnorm_q4k_plan *plan, uint64_t m,
                                   ptxgen_error *err);

#endif
