/* SPDX-License-Identifier: Apache-2.0 */
/* State that the files of dense's emitter share, and the functions of each file. */
#ifndef PTXGEN_KERNELS_DENSE_EMIT_H
#define PTXGEN_KERNELS_DENSE_EMIT_H

#include "../gemm/boxes.h"
#include "../gemm/epilogue.h"
#include "../gemm/operand.h"
#include "../gemm/entry.h"
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

struct dense_product;

/* What another family's entries that multiply as dense does have of their own. */
struct dense_use {
    const char *name;
    /* Declares the parameters of 64 bits that follow dense's. */
    void (*params)(struct dense_product *q);
    /* Changes the epilogue, which is set up as dense's, before it begins. */
    void (*output)(struct dense_product *q, struct gemm_epilogue *o);
    void *user;
};

struct dense_product {
    struct gemm g;
    const struct dense_use *use; /* or NULL */
    const ptxgen_dense_spec *spec;
    const ptxgen_dense_plan *plan;
    const ptxgen_tile *v;
    ptx_u32 along_m, along_n, along_k; /* the warp's place in the CTA */
    ptx_u32 last_tile;                 /* of the CTA, or its cluster */
    ptx_u64 address[DENSE_M];          /* the 64-bit parameters that are used */
    struct gemm_operand x, w;
    struct gemm_epilogue output;
    ptx_f32 acc[DENSE_TILES][DENSE_WGMMA_ROW_GROUPS][4];
    struct dense_operands operands; /* of mma.sync */

    /* Copies in bulk. */
    struct gemm_boxes boxes; /* of x */
    ptx_param w_map;
    struct dense_producer {
        struct gemm_producer p;
        ptx_u64 w_map;
        ptx_u32 x_row, w_row; /* the first of the tile that this CTA copies */
    } producer;
    ptx_u32 to_issue; /* stages that are not issued yet, where the multiplying warps issue them */

    /* wgmma: where the warpgroup's rows of w stand in a stage, and "always". */
    ptx_u32 w_at;
    ptx_pred accumulate;
};
static inline struct dense_product *dense_of(struct gemm *g)
{
    return (struct dense_product *)g;
}

static inline uint32_t dense_tiles(const struct dense_product *q)
{
    return q->v->warp_n / DENSE_TILE;
}
static inline uint32_t dense_row_groups(const struct dense_product *q)
{
    return q->v->warp_m / 8;
}

/* ---- emit.c ---- */

/* The entry of a variant before it is emitted: what plan and tile decide. */
struct dense_product dense_make_product(const ptxgen_dense_plan *plan, const ptxgen_tile *v,
                                        const struct dense_use *use);
/* Emits the entry of a variant, dense's or, unless `use` is NULL, another family's. */
void dense_emit_entry(const ptxgen_dense_plan *plan, const ptxgen_tile *v,
                      const struct dense_use *use, ptx_module *module);

void dense_load_params(struct dense_product *q);
/* Sets the epilogue up. */
void dense_begin_output(struct dense_product *q);
/* The first token and feature of a tile. */
struct gemm_place dense_find_tile(struct dense_product *q, ptx_u32 tile);

/* Sets along_m, along_n and along_k. */
void dense_find_warp(struct dense_product *q);
/* Sets the operands up for a warp, which also copies them where copies are no bulk copies. */
void dense_begin_operands(struct dense_product *q);

/* ---- bulk.c: stages that are copied in bulk ---- */

/* Emits the part of the kernel before producers and consumers branch. */
void dense_begin_bulk(struct gemm *g);
void dense_end_bulk(struct gemm *g);
/* Bytes of x in a stage, which w follows. */
uint32_t dense_stage_x_bytes(const struct dense_product *q);
/* A thread's walk through the stages that it issues. */
void dense_begin_producer(struct dense_product *q);
void dense_locate(struct gemm *g, struct gemm_producer *p);
void dense_issue(struct gemm *g, struct gemm_producer *p);

/* ---- the ways to multiply ---- */

extern const struct gemm_ops dense_wgmma_ops; /* wgmma.c */
/* Finds a warp's place in its warpgroup, whose number among those of the CTA it returns. */
ptx_u32 dense_begin_warpgroup(struct gemm *g);
extern const struct gemm_ops dense_in_turn_ops; /* in_turn.c */

/* ---- multiply.c ---- */

void dense_declare_sums(struct dense_product *q);
void dense_clear(struct gemm *g, const struct gemm_part *part); /* of every way to multiply */
void dense_declare_operands(struct dense_product *q);
/* Loads the operands of the first mma step of the stage at `slot`. */
void dense_first_operands(struct dense_product *q, ptx_u32 slot);
/* What is emitted between the mma steps of a stage. */
struct dense_between {
    void (*middle)(void *user);  /* with bulk copies: after half of the steps */
    ptx_u32 (*next)(void *user); /* before the last step: waits for the next stage; its slot */
    void *user;
};
/* Adds the current stage's products, and loads the first operands of the next stage. */
void dense_multiply(struct dense_product *q, const struct dense_between *between);

#endif
