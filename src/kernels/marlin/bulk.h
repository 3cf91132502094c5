/* SPDX-License-Identifier: Apache-2.0 */
/* What the entries share whose stages are copied in bulk. */
#ifndef PTXGEN_KERNELS_MARLIN_BULK_H
#define PTXGEN_KERNELS_MARLIN_BULK_H

#include "../gemm/boxes.h"
#include "../gemm/exchange.h"
#include "../gemm/wgmma.h"
#include "emit.h"

/*
 * Layout of a stage in shared memory: activations, then the codes of all strips, the scales of all
 * strips, the zero points of all strips, and the sums of activations.
 */
struct stage_layout {
    uint32_t strips, groups;             /* strips of a tile, halves included; groups of a strip */
    uint32_t codes, half, scales, zeros; /* offsets; `half`: of half a strip past the whole ones */
    uint32_t codes_bytes, scales_bytes, zeros_bytes; /* of a strip */
    uint32_t copied, bytes;                          /* bytes that are copied; bytes of a slot */
    uint32_t totals, totals_bytes; /* offset and size of the sums of activations */
};

/* Steps of 64 of K in a stage: each of the warps, or warpgroups, along K has `steps` of them. */
static inline uint32_t marlin_stage_steps(const ptxgen_tile *v)
{
    return v->wk * v->steps;
}

/* Adds `bytes` to an offset for each warp, or warpgroup, before this one along K. */
static inline ptx_u32 past_others(struct marlin_product *q, ptx_u32 offset, uint32_t bytes)
{
    return q->v->wk > 1 ? ptx_mad_lo_u32(q->g.k, q->along_k, U32(bytes), offset) : offset;
}

/* A product whose stages are copied in bulk. */
struct marlin_bulk {
    struct marlin_product q;
    struct stage_layout stage;
    ptx_param maps;
    struct gemm_boxes boxes;       /* of x */
    ptx_u32 staging;               /* shared, for sums */
    struct gemm_exchange exchange; /* with a cluster's other CTA */
    ptx_u32 along_k; /* of a CTA of a cluster: the first of a tile's stages that are its own */
    struct marlin_producer {
        struct gemm_producer p;
        ptx_u32 row, strip; /* the tile's first */
        ptx_u32 odd;        /* 1 where it starts with the second half of that strip */
    } producer;
    ptx_pred issues; /* whether the thread is the producer */

    /* A warpgroup of wgmma. */
    ptx_u32 codes_at, scales_at, zeros_at; /* the lane's offsets in a stage; one of the last two */
    ptx_u32 block_at;           /* where the warpgroup's x starts in a stage, with others along K */
    ptx_pred accumulate, start; /* what wgmma does to its sums: always, and never */
    ptx_f32 sums[MAX_TILES][MAX_TOKEN_GROUPS][4]; /* of a stage, where they are scaled */
    ptx_u32 a[2][STEP_MMAS][MAX_TILES][4];        /* operands of a group and of the next */
};
static inline struct marlin_bulk *marlin_bulk_of(struct gemm *g)
{
    return (struct marlin_bulk *)g;
}

/* ---- bulk.c ---- */

/* All threads, up to where roles part; the producer. */
void marlin_begin_bulk(struct gemm *g);
void marlin_produce(struct gemm *g);
struct gemm_registers marlin_registers(const ptxgen_tile *v);

/* ---- the consumers: wgmma.c, mma_bulk.c ---- */

extern const struct gemm_ops marlin_wgmma_ops, marlin_mma_bulk_ops;
/* Whether a warpgroup has registers for the walk and what the epilogue needs, beside its sums. */
bool marlin_keeps_walk(const ptxgen_tile *v);
/* Sums up x over the groups of each stage, for corrections: executed by one warp. */
void marlin_sum_x(struct marlin_bulk *b);

#endif
