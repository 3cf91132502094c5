/* SPDX-License-Identifier: Apache-2.0 */
/* State that the files of dense's emitter share, and the functions of each file. */
#ifndef PTXGEN_KERNELS_DENSE_EMIT_H
#define PTXGEN_KERNELS_DENSE_EMIT_H

#include "../gemm/operand.h"
#include "../gemm/epilogue.h"
#include "../gemm/pipeline.h"
#include "layout.h"

enum {
    DENSE_TILES = 4,      /* most tiles of 16 features of a warp */
    DENSE_ROW_GROUPS = 8, /* most groups of 8 tokens of a warp; with wgmma 32 */
    DENSE_WGMMA_ROW_GROUPS = 32,
};

/* Operands of a warp in registers; they are loaded one mma step ahead of the products. */
struct dense_operands {
    ptx_u32 w[2][DENSE_TILES][4];           /* of the current mma step and of the next */
    ptx_u32 x[2][DENSE_ROW_GROUPS / 2][4];  /* of the same; a load brings two token groups */
    ptx_u32 w_lane, x_lane, w_step, x_step; /* the lane's addresses: of a block, of an mma step */
};

struct dense_product {
    ptx_kernel *k;
    const ptxgen_dense_spec *spec;
    const ptxgen_dense_plan *plan;
    const ptxgen_dense_variant *v;
    struct gemm_threads at;
    ptx_u32 along_m, along_n, along_k; /* index of the warp along M, N and K */
    ptx_u32 unit, rank, last_tile; /* number of the cluster, of the CTA in it, of its last tile */
    ptx_u64 address[DENSE_M];      /* the 64-bit parameters that are used */
    ptx_u32 m, tiles_m;
    struct gemm_division division;
    struct gemm_operand x, w;
    struct gemm_pipeline pipeline;
    struct gemm_epilogue output;
    ptx_f32 acc[DENSE_TILES][DENSE_WGMMA_ROW_GROUPS][4];
    struct dense_operands operands;
};

static inline uint32_t dense_tiles(const struct dense_product *q)
{
    return q->v->warp_n / DENSE_TILE;
}
static inline uint32_t dense_row_groups(const struct dense_product *q)
{
    return q->v->warp_m / 8;
}

/* ---- emit.c ---- */

void dense_load_params(struct dense_product *q);
/* Sets the epilogue up. */
void dense_begin_output(struct dense_product *q);
/* The first token and feature of a tile. */
struct gemm_place dense_find_tile(struct dense_product *q, ptx_u32 tile);

/* Sets along_m, along_n and along_k. */
void dense_find_warp(struct dense_product *q);
/* Sets the operands up for a warp that does not copy them. */
void dense_begin_reading(struct dense_product *q);

/* ---- hopper.c ---- */

void dense_emit_wgmma_entry(const ptxgen_dense_plan *plan, const ptxgen_dense_variant *v,
                            ptx_module *module);

/* ---- in_turn.c ---- */

void dense_emit_in_turn_entry(const ptxgen_dense_plan *plan, const ptxgen_dense_variant *v,
                              ptx_module *module);

/* ---- multiply.c ---- */

void dense_operands_begin(struct dense_product *q);
/* Loads the operands of the first mma step of the stage at `slot`. */
void dense_first_operands(struct dense_product *q, ptx_u32 slot);
void dense_clear(struct dense_product *q);
/* What is emitted between the mma steps of a stage. */
struct dense_between {
    void (*middle)(void *user);  /* with bulk copies: after half of the steps */
    ptx_u32 (*next)(void *user); /* before the last step: waits for the next stage; its slot */
    void *user;
};
/* Adds the current stage's products, and loads the first operands of the next stage. */
void dense_multiply(struct dense_product *q, const struct dense_between *between);

#endif
