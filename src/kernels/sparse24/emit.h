/* SPDX-License-Identifier: Apache-2.0 */
/* What the pieces of sparse24's emitter hand to each other. */
#ifndef PTXGEN_KERNELS_SPARSE24_EMIT_H
#define PTXGEN_KERNELS_SPARSE24_EMIT_H

#include "../tile/operand.h"
#include "../tile/output.h"
#include "../tile/pipeline.h"
#include "layout.h"

enum {
    SPARSE24_ROW_GROUPS = 16, /* of 8 rows, of a warp, at most */
    SPARSE24_WARP_TILES = SPARSE24_MOST_WM * SPARSE24_TILES
};

/* A warp's copies of packed weights: where they come from, and where in a stage they go. */
struct sparse24_weights {
    ptx_u64 strip; /* the lane's 16 bytes of the strip's first block */
    ptx_u32 step;  /* of the next stage */
    ptx_u32 to;    /* the lane's offset in a stage, where the strip goes … */
    ptx_u32 at;    /* … and where the warp's first strip stands */
};

/* What a warp holds of a stage while it goes through its mma steps. */
struct sparse24_operands {
    ptx_u32 a[SPARSE24_WARP_TILES][4]; /* each of the next mma step as soon as it is used up */
    ptx_u32 x[2][4];                   /* a load each, in turn */
    ptx_u32 metadata[SPARSE24_WARP_TILES];
};

struct sparse24_product {
    ptx_kernel *k;
    const ptxgen_sparse24_spec *spec;
    const ptxgen_sparse24_plan *plan;
    const ptxgen_sparse24_variant *v;
    struct tile_threads at;
    ptx_u32 along_m, along_n, along_k; /* the warp's place */
    ptx_u64 address[SPARSE24_M]; /* parameters of 64 bits, those that are used */
    ptx_u32 m, tiles_m;
    ptx_u32 unit, rank; /* the CTA, or its cluster and the place there */
    ptx_u32 first, end, end_granule; /* the unit's stages, and granules */
    struct tile_division division;
    struct tile_operand x;
    ptx_u32 x_lane; /* the lane's offset of X in a stage, for loads */
    struct sparse24_weights w;
    struct tile_pipeline pipeline;
    ptx_u32 staging; /* shared, for sums */
    struct tile_output output;
    ptx_u32 acc[SPARSE24_WARP_TILES][SPARSE24_ROW_GROUPS][4]; /* f32, or s32 of s8 */
    struct sparse24_operands operands;
};

static inline uint32_t sparse24_row_groups(const struct sparse24_product *q)
{
    return sparse24_warp_m(q->v) / 8;
}

/* ---- a stage in shared memory: X, then each warp's block of the packed weights ---- */

static inline uint32_t sparse24_x_blocks(const ptxgen_sparse24_spec *s,
                                         const ptxgen_sparse24_variant *v)
{
    return v->wk * SPARSE24_STEP * sparse24_element(s) / TILE_BLOCK_BYTES;
}
static inline uint32_t sparse24_stage_x_bytes(const ptxgen_sparse24_spec *s,
                                              const ptxgen_sparse24_variant *v)
{
    return tile_operand_stage_bytes(v->tile_m, sparse24_x_blocks(s, v));
}
static inline uint32_t sparse24_stage_bytes(const ptxgen_sparse24_spec *s,
                                            const ptxgen_sparse24_variant *v)
{
    return sparse24_stage_x_bytes(s, v) + sparse24_tile_strips(v) * v->wk * sparse24_block_bytes(s);
}

/* ---- emit.c ---- */

void sparse24_load_params(struct sparse24_product *q);
/* The unit of the CTA, and its share. */
void sparse24_find_share(struct sparse24_product *q);
/* Where a tile that the walk has come to stands. */
struct tile_place sparse24_place_of(struct sparse24_product *q, ptx_u32 tile);
/* `stage` of the CTA's share of a tile's K, among all along K. */
ptx_u32 sparse24_stage_of(struct sparse24_product *q, ptx_u32 stage);

/* ---- hopper.c ---- */

void sparse24_emit_wgmma_entry(const ptxgen_sparse24_plan *plan, const ptxgen_sparse24_variant *v,
                               ptx_module *module);

/* ---- weights.c ---- */

void sparse24_weights_begin(struct sparse24_product *q);
/* Turns to the warp's rows of W of tile `tile_n`, at stage `stage`. */
void sparse24_weights_locate(struct sparse24_product *q, ptx_u32 tile_n, ptx_u32 stage);
/* Sends for the next stage, to the shared address `slot`, and moves on. */
void sparse24_weights_send(struct sparse24_product *q, ptx_u32 slot);
/* Brings those of the first stages that were located, before stage `stage_end`, to the L2. */
void sparse24_weights_prefetch(struct sparse24_product *q, ptx_u32 stage, ptx_u32 stage_end);
/* The lane's operand A of the warp's tile t in mma step i, and its metadata of word j. */
void sparse24_weights_load(struct sparse24_product *q, ptx_u32 slot, uint32_t i, uint32_t t,
                           ptx_u32 a[4]);
void sparse24_metadata_load(struct sparse24_product *q, ptx_u32 slot, uint32_t j,
                            ptx_u32 words[SPARSE24_WARP_TILES]);

/* ---- multiply.c ---- */

void sparse24_operands_begin(struct sparse24_product *q);
/* Those of the first mma step of the stage at `slot`. */
void sparse24_first_operands(struct sparse24_product *q, ptx_u32 slot);
void sparse24_clear(struct sparse24_product *q);
/* acc += the stage at the pipeline's read slot, and the first operands of the next. */
void sparse24_multiply(struct sparse24_product *q);

/* ---- output.c ---- */

void sparse24_output_begin(struct sparse24_product *q);
/* Register r of tile t and row group j. */
ptx_u32 sparse24_accumulator(const void *product, uint32_t t, uint32_t j, uint32_t r);

#endif
