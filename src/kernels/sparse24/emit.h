/* SPDX-License-Identifier: Apache-2.0 */
/* State that the files of sparse24's emitter share, and the functions of each file. */
#ifndef PTXGEN_KERNELS_SPARSE24_EMIT_H
#define PTXGEN_KERNELS_SPARSE24_EMIT_H

#include "../gemm/boxes.h"
#include "../gemm/entry.h"
#include "../gemm/epilogue.h"
#include "../gemm/exchange.h"
#include "../gemm/operand.h"
#include "layout.h"

enum {
    SPARSE24_ROW_GROUPS = 16, /* most groups of 8 tokens of a warp */
    SPARSE24_WARP_TILES = SPARSE24_MOST_WM * SPARSE24_TILES
};

/* A warp's copies of packed weights: their source, and their place in a stage. */
struct sparse24_weights {
    ptx_u64 strip; /* address of the lane's 16 bytes of the strip's first block */
    ptx_u32 step;  /* first step of the next stage */
    ptx_u32 to;    /* the lane's offset in a stage to which the strip is copied */
    ptx_u32 at;    /* the lane's offset in a stage of the first strip that the warp multiplies */
};

/* Operands of a warp in registers. */
struct sparse24_operands {
    ptx_u32 a[SPARSE24_WARP_TILES][4]; /* weights; each is loaded anew after its last product */
    ptx_u32 x[2][4];                   /* activations of two loads, alternating */
    ptx_u32 metadata[SPARSE24_WARP_TILES];
};

struct sparse24_product {
    struct gemm g;
    const ptxgen_sparse24_spec *spec;
    const ptxgen_sparse24_plan *plan;
    const ptxgen_tile *v;
    ptx_u32 along_m, along_n, along_k; /* the warp's place in the CTA */
    ptx_u64 address[SPARSE24_M];       /* the 64-bit parameters that are used */
    ptx_u32 end_granule;               /* of the CTA, or its cluster */
    struct gemm_operand x;
    ptx_u32 x_lane; /* the lane's offset of x in a stage, for loads */
    struct sparse24_weights w;
    ptx_u32 staging; /* shared, for sums */
    struct gemm_epilogue output;
    ptx_u32 acc[SPARSE24_WARP_TILES][SPARSE24_ROW_GROUPS][4]; /* f32, or s32 of s8 */
    struct sparse24_operands operands;                        /* of mma.sp */

    /* wgmma.sp, on copies in bulk. */
    struct gemm_boxes boxes; /* of x */
    struct gemm_exchange exchange;
    struct sparse24_producer {
        struct gemm_producer p;
        ptx_u64 strip;       /* the first strip of the tile's rows of w */
        ptx_u32 row;         /* the CTA's first row of x */
        ptx_u32 strips_left; /* of w, after the first */
        ptx_u64 policy;      /* of the L2, for weights */
        ptx_pred weights;    /* whether the thread copies weights, else x */
        ptx_u32 ahead;       /* stages of weights that do not wait for the kernel ahead */
    } producer;
    ptx_pred accumulate;             /* "always" */
    ptx_u32 a_at, metadata_at, x_at; /* the lane's, in a stage; the warpgroup's of x */
    ptx_u32 a[2][SPARSE24_TILES][4]; /* of the present mma step and the next */
    ptx_u32 metadata[SPARSE24_WORDS][SPARSE24_TILES];
};
static inline struct sparse24_product *sparse24_of(struct gemm *g)
{
    return (struct sparse24_product *)g;
}

static inline uint32_t sparse24_row_groups(const struct sparse24_product *q)
{
    return q->v->warp_m / 8;
}

/* ---- layout of a stage in shared memory: x, then the block of packed weights of each warp ---- */

static inline uint32_t sparse24_x_blocks(const ptxgen_sparse24_spec *s, const ptxgen_tile *v)
{
    return v->wk * SPARSE24_STEP * sparse24_element(s) / GEMM_BLOCK_BYTES;
}
static inline uint32_t sparse24_stage_x_bytes(const ptxgen_sparse24_spec *s, const ptxgen_tile *v)
{
    return gemm_operand_stage_bytes(v->tile_m, sparse24_x_blocks(s, v));
}
static inline uint32_t sparse24_stage_bytes(const ptxgen_sparse24_spec *s, const ptxgen_tile *v)
{
    return sparse24_stage_x_bytes(s, v) + sparse24_tile_strips(v) * v->wk * sparse24_block_bytes(s);
}

void sparse24_load_params(struct sparse24_product *q);
/* Sets the unit of the CTA, and the unit's stages. */
void sparse24_find_share(struct sparse24_product *q);
/* The place in y of tile number `tile`. */
struct gemm_place sparse24_place_of(struct sparse24_product *q, ptx_u32 tile);
/* The number of the CTA's stage `stage` of a tile among all of the tile's stages along K. */
ptx_u32 sparse24_stage_of(struct sparse24_product *q, ptx_u32 stage);

void sparse24_clear(struct gemm *g, const struct gemm_part *part);
void sparse24_output_begin(struct sparse24_product *q);
/* Register r of tile t and row group j of the accumulators. */
ptx_u32 sparse24_accumulator(const void *product, uint32_t t, uint32_t j, uint32_t r);

/* ---- the ways to multiply ---- */

extern const struct gemm_ops sparse24_mma_ops;   /* mma.c */
extern const struct gemm_ops sparse24_wgmma_ops; /* wgmma.c */

#endif
