/* SPDX-License-Identifier: Apache-2.0 */
/* What the pieces of dense's emitter hand to each other. */
#ifndef PTXGEN_KERNELS_DENSE_EMIT_H
#define PTXGEN_KERNELS_DENSE_EMIT_H

#include "../tile/operand.h"
#include "../tile/output.h"
#include "../tile/pipeline.h"
#include "layout.h"

enum {
    DENSE_TILES = 4,      /* of 16 rows of W, of a warp, at most */
    DENSE_ROW_GROUPS = 8, /* of 8 rows of X, of a warp, at most; with wgmma 32 */
    DENSE_WGMMA_ROW_GROUPS = 32,
};

/* What a warp holds of a stage while it goes through its mma steps, loaded one ahead. */
struct dense_operands {
    ptx_u32 w[2][DENSE_TILES][4];          /* of the present mma step and the next */
    ptx_u32 x[2][DENSE_ROW_GROUPS / 2][4]; /* … two row groups a load */
    ptx_u32 w_lane, x_lane, w_step, x_step; /* the lane's addresses: of a block, of an mma step */
};

struct dense_product {
    ptx_kernel *k;
    const ptxgen_dense_spec *spec;
    const ptxgen_dense_plan *plan;
    const ptxgen_dense_variant *v;
    struct tile_threads at;
    ptx_u32 along_m, along_n, along_k; /* the warp's place */
    ptx_u32 unit, rank, last_tile; /* of a cluster: its number, the CTA's in it, its last tile */
    ptx_u64 address[DENSE_M];          /* parameters of 64 bits, those that are used */
    ptx_u32 m, tiles_m;
    struct tile_division division;
    struct tile_operand x, w;
    struct tile_pipeline pipeline;
    struct tile_output output;
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
/* `staging`: where sums are brought together. */
void dense_begin_output(struct dense_product *q);
/* The first row of X and of W of a tile. */
struct tile_place dense_find_tile(struct dense_product *q, ptx_u32 tile);

/* The warp's place among those of the CTA. */
void dense_find_warp(struct dense_product *q);
/* Operands that others have copied: the warp's fragments are those from its first row on. */
void dense_begin_reading(struct dense_product *q);

/* ---- hopper.c ---- */

void dense_emit_wgmma_entry(const ptxgen_dense_plan *plan, const ptxgen_dense_variant *v,
                            ptx_module *module);

/* ---- in_turn.c ---- */

void dense_emit_in_turn_entry(const ptxgen_dense_plan *plan, const ptxgen_dense_variant *v,
                              ptx_module *module);

/* ---- multiply.c ---- */

void dense_operands_begin(struct dense_product *q);
/* Those of the first mma step of the stage at `slot`. */
void dense_first_operands(struct dense_product *q, ptx_u32 slot);
void dense_clear(struct dense_product *q);
/* What goes between a stage's mma steps. */
struct dense_between {
    void (*middle)(void *user);  /* half of them done, from copies in bulk */
    ptx_u32 (*next)(void *user); /* before the last: waits for the next stage, says where it is */
    void *user;
};
/* acc += the present stage, and the first operands of the next. */
void dense_multiply(struct dense_product *q, const struct dense_between *between);

#endif
