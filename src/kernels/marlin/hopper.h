/* SPDX-License-Identifier: Apache-2.0 */
/* What the pieces of marlin's wgmma entries hand to each other. */
#ifndef PTXGEN_KERNELS_MARLIN_HOPPER_H
#define PTXGEN_KERNELS_MARLIN_HOPPER_H

#include "../tile/boxes.h"
#include "../tile/exchange.h"
#include "../tile/wgmma.h"
#include "emit.h"

/* Where things stand in a stage: activations, then codes, scales and zero points strip by strip. */
struct stage_layout {
    uint32_t strips, groups;       /* of a tile, in part or whole; of scales, of a strip */
    uint32_t codes, half, scales, zeros; /* offsets; of half a strip past whole ones */
    uint32_t codes_bytes, scales_bytes, zeros_bytes; /* of a strip */
    uint32_t copied, bytes;        /* in all; with what pads it */
    uint32_t totals, totals_bytes; /* sums of activations, past what is copied */
};
struct stage_layout marlin_stage_layout(const ptxgen_marlin_spec *s,
                                        const ptxgen_marlin_variant *v);

/* Steps of a stage: each of the warpgroups along K has `steps` of them. */
static inline uint32_t marlin_stage_steps(const ptxgen_marlin_variant *v)
{
    return v->wk * v->steps;
}

/* Strips that a warpgroup multiplies. */
static inline uint32_t group_strips(const struct gemm *q)
{
    return tiles(q);
}

struct hopper {
    struct gemm q;
    struct stage_layout stage;
    struct tile_ring ring;
    ptx_param maps;
    struct tile_boxes boxes; /* of A */
    ptx_u32 first, end; /* stages of the CTA */
    struct tile_exchange exchange; /* with a cluster's other CTA */
    ptx_u32 along_k;    /* of a cluster's: the first of a tile's stages that are the CTA's */
};

/* ---- hopper_multiply.c ---- */

/* Multiplies the stages of the CTA: executed by the warpgroups that do. */
void marlin_emit_wgmma_multiply(struct hopper *h, ptx_u32 staging);

/* ---- bulk.c ---- */

/* … by mma.sync: executed by all warps but the sender's. */
void marlin_emit_bulk_multiply(struct hopper *h, ptx_u32 staging);
/* Sums up the activations of each stage, for corrections: executed by one warp. */
void marlin_emit_bulk_totals(struct hopper *h);

#endif
