/* SPDX-License-Identifier: Apache-2.0 */
/* What the pieces of the rmsnorm_q4k emitter hand to each other. */
#ifndef PTXGEN_RMSNORM_Q4K_EMIT_H
#define PTXGEN_RMSNORM_Q4K_EMIT_H

#include <ptxgen/instr.h>

#include "layout.h"

#define U32(x) ptx_imm_u32(x)
#define S32(x) ptx_imm_s32(x)
#define U64(x) ptx_imm_u64(x)
#define F32(x) ptx_imm_f32(x)

/* A warp's lanes hold fragments by group (lane / 4: a row, or a column) and quad lane (lane % 4). */
struct threads {
    ptx_u32 tid, cta, warp, lane, group, quad;
    ptx_u32 wk, wr; /* the warp's place along K and along rows */
};

/* Shared memory: the warps' rings of weights, activation records, sums of squares, partial sums. */
struct shared {
    ptx_u32 rings, records, squares, partials;
};

struct kernel {
    ptx_kernel *k;
    const ptxgen_rmsnorm_q4k_plan *plan;
    const ptxgen_rmsnorm_q4k_spec *spec;
    const ptxgen_rmsnorm_q4k_variant *v;
    struct threads at;
    struct shared sh;
    ptx_u64 x, residual, residual_out, gamma;
    ptx_u64 weights[PTXGEN_RMSNORM_Q4K_MATRICES], bias[PTXGEN_RMSNORM_Q4K_MATRICES],
        y[PTXGEN_RMSNORM_Q4K_MATRICES];
    ptx_u32 x_stride, residual_stride, residual_out_stride, y_stride[PTXGEN_RMSNORM_Q4K_MATRICES];
    ptx_u32 m;
};

/* ---- activations.c ---- */

/*
 * Prepares super-blocks [first, first + chunk) of all tokens: h = x (+ residual), its sums of
 * squares, and h·γ split into two f16 as B fragments (see layout.h).
 */
void emit_activations(struct kernel *q, ptx_u32 first);
/* 1 / sqrt(mean(h²) + ε) of token `token` (the same in all lanes of its column), from the sums of squares. */
ptx_f32 emit_inverse_rms(struct kernel *q, ptx_u32 token);

/* ---- weights.c ---- */

/* Where a warp's next loads come from and go to: it runs stages − 1 turns ahead of the arithmetic. */
struct stream {
    ptx_u32 tile, super_block;
    ptx_u64 piece[LANE_PIECES];       /* the lane's sources */
    ptx_u32 slot_offset[LANE_PIECES]; /* and destinations within a slot */
    ptx_u32 ring, ring_end, fill;
};

struct stream start_stream(struct kernel *q);
/* Sends for the stream's super-block (a group of its own, empty past the end) and moves on. */
void emit_load(struct kernel *q, struct stream *s);
ptx_u32 next_slot(struct kernel *q, const struct stream *s, ptx_u32 slot);

/* Sums of the lane: acc[n-tile][row] for token quad + 4 · n-tile. */
struct sums {
    ptx_f32 acc[2][2];
};
static inline int n_tiles(const struct kernel *q)
{
    return q->v->tokens > 4 ? 2 : 1;
}
/* acc += the super-block in the ring's slot times the activation record at `record`. */
void emit_multiply(struct kernel *q, ptx_u32 slot, ptx_u32 record, struct sums *sums);

#endif
