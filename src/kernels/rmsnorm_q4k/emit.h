/* SPDX-License-Identifier: Apache-2.0 */
/* The types and functions that the files of the rmsnorm_q4k emitter share. */
#ifndef PTXGEN_RMSNORM_Q4K_EMIT_H
#define PTXGEN_RMSNORM_Q4K_EMIT_H

#include "../gemm/emit.h"
#include "layout.h"

enum { MAX_N_TILES = PTXGEN_RMSNORM_Q4K_MAX_M / BOX_TOKENS };

/* What a lane reads of a stage and of a record, and what the lane's columns stand for. */
struct rmsnorm_q4k_columns {
    ptx_u32 header, nibbles; /* offsets in a stage: its row, and the quad lane's bytes */
    ptx_u32 b, b_min, scale; /* offsets in a record; of one token, b is an address: */
    ptx_u32 b_step;          /* record 0's, a record apart, or that of the zeros, 0 apart */
    ptx_pred has_b, has_min; /* its columns of B, and of the mins' B, are not zero */
    ptx_f32 weight;          /* power of two of the lower of the lane's two planes */
    ptx_u32 scale_bytes[2];  /* one token: selectors of the lane's sub-blocks' scales */
    ptx_pred low_mins;       /* the lane's two of the eight mins are among the first four */
    ptx_u32 min_bytes;       /* selector of these two mins */
};

struct rmsnorm_q4k_shared {
    ptx_u32 rings, ring_barriers, records, staged, partials, squares, zeros;
};

struct rmsnorm_q4k_kernel {
    ptx_kernel *k;
    const ptxgen_rmsnorm_q4k_plan *plan;
    const ptxgen_rmsnorm_q4k_spec *spec;
    const ptxgen_rmsnorm_q4k_variant *v;
    struct gemm_threads at; /* its group is a row or a column of fragments */
    ptx_u32 row;            /* of a half of the tile: the group with its two bits swapped */
    ptx_pred lower;         /* an odd quad lane: finishes the sums of the tile's lower half */
    ptx_u32 wk, wn;         /* the warp's place along K and along N */
    struct rmsnorm_q4k_columns columns;
    struct rmsnorm_q4k_shared sh;
    ptx_u64 x, residual, residual_out, gamma;
    ptx_u64 w[PTXGEN_RMSNORM_Q4K_MATRICES], bias[PTXGEN_RMSNORM_Q4K_MATRICES],
        y[PTXGEN_RMSNORM_Q4K_MATRICES];
    ptx_u32 x_stride, residual_stride, residual_out_stride, y_stride[PTXGEN_RMSNORM_Q4K_MATRICES];
    ptx_u32 m;
    ptx_u64 maps[PTXGEN_RMSNORM_Q4K_MATRICES]; /* generic addresses of the tensor maps (sm_90) */
    ptx_u32 first_output;                      /* the first output of the warp's first tile */
    ptx_u32 partial;       /* where the lane's sums of this round lie in shared memory */
    ptx_u32 both_partials; /* the sum of the two addresses that `partial` alternates between */
    ptx_f32 inverse_rms[MAX_N_TILES]; /* of token quad / 2 + 2 · n-tile */
};

/* Whether weights come by tensor copies, or else by cp.async. */
static inline bool tensor(const struct rmsnorm_q4k_kernel *q)
{
    return has_tensor_copies(&q->plan->target);
}

/* Instructions with a constant: a · factor (+ b), a += step, a & mask, a >> bits, a == 0. */
static inline ptx_u32 times_plus(struct rmsnorm_q4k_kernel *q, ptx_u32 a, uint32_t factor,
                                 ptx_u32 b)
{
    return ptx_mad_lo_u32(q->k, a, U32(factor), b);
}
static inline ptx_u32 times(struct rmsnorm_q4k_kernel *q, ptx_u32 a, uint32_t factor)
{
    return ptx_mul_lo_u32(q->k, a, U32(factor));
}
static inline void move_on(struct rmsnorm_q4k_kernel *q, ptx_u32 a, uint32_t step)
{
    ptx_add_u32_to(q->k, a, a, U32(step));
}
static inline ptx_u32 masked(struct rmsnorm_q4k_kernel *q, ptx_u32 a, uint32_t mask)
{
    return ptx_and_b32(q->k, a, U32(mask));
}
static inline ptx_u32 shifted(struct rmsnorm_q4k_kernel *q, ptx_u32 a, uint32_t bits)
{
    return ptx_shr_u32(q->k, a, U32(bits));
}
static inline ptx_pred is_zero(struct rmsnorm_q4k_kernel *q, ptx_u32 a)
{
    return ptx_setp_eq_u32(q->k, a, U32(0));
}
/* The address of the token's part of an array at `base` that has `bytes` for each token. */
static inline ptx_u32 at_token(struct rmsnorm_q4k_kernel *q, ptx_u32 base, ptx_u32 token,
                               uint32_t bytes)
{
    return q->v->tile_m > 1 ? times_plus(q, token, bytes, base) : base;
}

/* The matrix that an output belongs to (SwiGLU's outputs belong to the first). */
struct rmsnorm_q4k_place {
    ptx_u64 address; /* of the three given, that of the matrix */
    ptx_u32 number;  /* of the three given, that of the matrix */
    ptx_u32 row, rows;
};
/* Outputs from a warp's tile to its next tile. */
static inline uint32_t tile_step(const struct rmsnorm_q4k_kernel *q)
{
    return q->v->grid * q->v->wn * tile_outputs(q->spec);
}
struct rmsnorm_q4k_place rmsnorm_q4k_locate(struct rmsnorm_q4k_kernel *q, ptx_u32 output,
                                            const ptx_u64 addresses[3], const ptx_u32 numbers[3]);

/* ---- stream.c ---- */

/* A slot of a warp's ring, and, for waiting, the parity of the phase of the slot's mbarrier. */
struct rmsnorm_q4k_slot {
    ptx_u32 index, parity;
    bool has_parity;
};
struct rmsnorm_q4k_slot rmsnorm_q4k_start_slot(struct rmsnorm_q4k_kernel *q, bool has_parity);

/*
 * Steps by which copies are ahead of the arithmetic. With four or eight tokens the copies of the
 * ring's last slot are issued after x has been prepared, so that x arrives sooner.
 */
static inline uint32_t loads_ahead(const ptxgen_rmsnorm_q4k_variant *v)
{
    return v->tile_m <= 2 ? v->stages : v->stages - 1;
}

/* Where a warp's next copies come from and go to; they are loads_ahead() steps ahead. */
struct rmsnorm_q4k_stream {
    ptx_u32 output, pair; /* the first output of the tile, counted over all matrices */
    ptx_u64 source;       /* cp.async: the lane's row at `pair` */
    ptx_u64 maps[2];      /* tensor copies: maps and first rows of the tile's two halves */
    ptx_u32 rows[2];
    struct rmsnorm_q4k_slot fill;
    ptx_u32 ring, barriers; /* shared addresses */
};

struct rmsnorm_q4k_stream rmsnorm_q4k_start_stream(struct rmsnorm_q4k_kernel *q);
/* Issues the copies of the stream's pair, unless it is past the end, and moves on. */
void rmsnorm_q4k_issue_load(struct rmsnorm_q4k_kernel *q, struct rmsnorm_q4k_stream *s);
/* The same for the ring's first slot, and for the other slots that are filled ahead. */
void rmsnorm_q4k_issue_first_load(struct rmsnorm_q4k_kernel *q, struct rmsnorm_q4k_stream *s);
void rmsnorm_q4k_issue_other_loads(struct rmsnorm_q4k_kernel *q, struct rmsnorm_q4k_stream *s);
/* Waits for the slot's copies. */
void rmsnorm_q4k_wait(struct rmsnorm_q4k_kernel *q, const struct rmsnorm_q4k_stream *s,
                      struct rmsnorm_q4k_slot slot);
void rmsnorm_q4k_advance_slot(struct rmsnorm_q4k_kernel *q, struct rmsnorm_q4k_slot *slot);
ptx_u32 rmsnorm_q4k_slot_address(struct rmsnorm_q4k_kernel *q, const struct rmsnorm_q4k_stream *s,
                                 struct rmsnorm_q4k_slot slot);

/* ---- product.c ---- */

void rmsnorm_q4k_find_columns(struct rmsnorm_q4k_kernel *q);

/*
 * Sums of the lane, by n-tile and half of the tile, for token quad / 2 + 2 · n-tile or for the only
 * token: an even quad lane has the share of the two low planes, an odd one that of the two high.
 */
struct rmsnorm_q4k_sums {
    ptx_f32 acc[MAX_N_TILES][2];
};
static inline int n_tiles(const struct rmsnorm_q4k_kernel *q)
{
    return q->v->tile_m > BOX_TOKENS ? (int)q->v->tile_m / BOX_TOKENS : 1;
}
/* Adds to the sums the pair in the slot at `stage` times the chunk's records from `number` on. */
void rmsnorm_q4k_multiply(struct rmsnorm_q4k_kernel *q, ptx_u32 stage, ptx_u32 pair, ptx_u32 number,
                          struct rmsnorm_q4k_sums *sums);

/* ---- activations.c ---- */

/*
 * Prepares the chunk of super-blocks from `first` on, of all tokens: h = x (+ residual), its sums
 * of squares, and h·γ as fixed-point B fragments, see layout.h. With a stream, the copies of the
 * ring's other slots are issued after the loads of x, which would else wait behind a full ring.
 */
void rmsnorm_q4k_prepare_activations(struct rmsnorm_q4k_kernel *q, ptx_u32 first,
                                     struct rmsnorm_q4k_stream *stream);

/* ---- squares.c ---- */

enum { LANE_VALUES = 8 }; /* consecutive values of a super-block that a lane has */
/* The sum over the lanes that differ in the bits from `last_mask` to `first_mask`. */
ptx_f32 rmsnorm_q4k_warp_sum(ptx_kernel *k, ptx_f32 value, unsigned first_mask, unsigned last_mask);
/* Stores the sum of a super-block's squares over the warp. */
void rmsnorm_q4k_store_squares(struct rmsnorm_q4k_kernel *q, ptx_u32 token, ptx_u32 super_block,
                               const ptx_f32 h[LANE_VALUES]);

/* 1 / sqrt(mean(h²) + ε) of a token from the sums of squares; `token` may differ by quad lane. */
ptx_f32 rmsnorm_q4k_inverse_rms(struct rmsnorm_q4k_kernel *q, ptx_u32 token);

#endif
