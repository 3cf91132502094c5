/* SPDX-License-Identifier: Apache-2.0 */
/* State and layout that the files of marlin's entries with a ring share. */
#ifndef PTXGEN_KERNELS_MARLIN_HOPPER_H
#define PTXGEN_KERNELS_MARLIN_HOPPER_H

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
struct stage_layout marlin_stage_layout(const ptxgen_marlin_spec *s,
                                        const ptxgen_marlin_variant *v);

/* Steps of 64 of K in a stage: each of the warps, or warpgroups, along K has `steps` of them. */
static inline uint32_t marlin_stage_steps(const ptxgen_marlin_variant *v)
{
    return v->wk * v->steps;
}

/* Strips that a warpgroup multiplies. */
static inline uint32_t group_strips(const struct marlin_product *q)
{
    return tiles(q);
}

struct hopper {
    struct marlin_product q;
    struct stage_layout stage;
    struct gemm_ring ring;
    ptx_param maps;
    struct gemm_boxes boxes;       /* of x */
    ptx_u32 first, end;            /* stages of the CTA */
    struct gemm_exchange exchange; /* with the other CTA of the cluster */
    ptx_u32 along_k; /* in a cluster: the first of a tile's stages that the CTA multiplies */
};

/* ---- hopper_multiply.c ---- */

/* The consumers' code with wgmma. To be executed by the consumer warpgroups. */
void marlin_emit_wgmma_multiply(struct hopper *h, ptx_u32 staging);

/* ---- bulk.c ---- */

/* The consumers' code with mma.sync. To be executed by all consumer warps. */
void marlin_emit_bulk_multiply(struct hopper *h, ptx_u32 staging);
/* Computes the sums of activations of each stage. To be executed by one warp. */
void marlin_emit_bulk_totals(struct hopper *h);

#endif
