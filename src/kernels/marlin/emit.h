/* SPDX-License-Identifier: Apache-2.0 */
/* State that the files of marlin's emitter share, and the functions of each file. */
#ifndef PTXGEN_KERNELS_MARLIN_EMIT_H
#define PTXGEN_KERNELS_MARLIN_EMIT_H

#include "../gemm/emit.h"
#include "../gemm/epilogue.h"
#include "../gemm/operand.h"
#include "layout.h"

enum {
    MAX_TILES = 4,                /* tiles of 16 features of a warp */
    MAX_TOKEN_GROUPS = 32,        /* groups of 8 tokens of a tile */
    STEP_MMAS = MARLIN_STEP / 16, /* mma steps in a step of the packed weights */
};

/* Scales of one step for the lane's features, which are g and g + 8 of each tile. */
struct scales {
    ptx_u32 packed[MAX_TILES]; /* the scales of both features, in 16 bits each */
    ptx_u32 zeros;             /* nibble 2t + h: zero point of feature g + 8h of tile t */
};

/*
 * Constants that dequantise the codes of a group: pairs of equal halves, for features g and g + 8.
 */
struct dequantiser {
    ptx_u32 unit[MAX_TILES][2];  /* factor of a code */
    ptx_u32 zero[MAX_TILES][2];  /* addend after it */
    ptx_u32 scale[MAX_TILES][2]; /* factor of q − z, where scales are multiplied in separately */
    ptx_u32 minus_zero;          /* −0 */
};

/*
 * Sums of activations, which correct the sums of products: mma multiplies the fragments of a load
 * as its operand A by ones. The two registers of a fragment, the first and the second half along K,
 * are rows g and g + 8 of A, and their sums are then added. Both rows must belong to the same
 * token, since a NaN of one would be in the other's sum.
 */
struct totals {
    ptx_f32 sums[2][4]; /* of each fragment of a load; the first, where both are of one token */
    ptx_u32 ones;       /* a pair of ones */
    ptx_u32 source[2];  /* lanes that have the sums of tokens 2q and 2q + 1 */
};

/* Operands of a warp in registers; they are made one mma step ahead of the products. */
struct operands {
    ptx_u32 words[MAX_TILES][4]; /* codes of the 64 of K to which the newest operand belongs */
    struct scales scales;        /* of the newest operand's group, of the next, or of the feature */
    struct scales group;         /* of the group whose sums are accumulated, if sums are scaled */
    struct dequantiser dequantiser;
    struct totals totals;
    ptx_u32 a[2][MAX_TILES][4];   /* weights of the current mma step and of the next */
    ptx_u32 x[2][4];              /* activations, two fragments a load, alternating */
    ptx_u32 zero[4];              /* operand A of zero points, with which a group's sums start */
    ptx_u32 half;                 /* half of the strip that the warp has in the current tile */
    ptx_u32 x_at, x_lane, x_step; /* the lane's offset in a stage; its address there; of a step */
};

/* With cp.async: a warp's copies of packed weights. */
struct copies {
    ptx_u64 codes;         /* address of the lane's next 16 bytes */
    ptx_u64 scales, zeros; /* addresses of the lane's 16 bytes of the strip's first group */
    ptx_u32 step;          /* first step of the next stage; only where groups need it */
    ptx_u32 strip_bytes;   /* size of a copy: 16, or 0 where the strip does not exist */
    ptx_u32 half; /* half of the strip in the tile of the copies, for half a strip a warp */
    ptx_u32 scales_to, zeros_to; /* the lane's offsets in a stage */
};

/* Where a warp finds packed weights in a stage: offsets of the lane. */
struct weights {
    ptx_u32 codes_at, scales_at, zeros_at;
    uint32_t step_bytes; /* from a step of the warp's codes to the next */
    /* The rest is for tiles in which the warp's strip varies. Offsets in the first strip: */
    ptx_u32 strips_codes, strips_scales, strips_zeros;
    uint32_t codes_bytes, scales_bytes, zeros_bytes; /* bytes from strip to strip */
    ptx_u32 half_codes; /* offset of the codes in the half strip behind the whole ones */
    ptx_u32 codes_step; /* from a step of the codes to the next */
};

/* What is multiplied for a weight s·(q − z), in units (weights.c). */
enum marlin_form {
    MARLIN_MASKED,   /* q + offset: sums are corrected, and scaled */
    MARLIN_UNSCALED, /* q − z: sums are scaled */
    MARLIN_SCALED,   /* s·(q − z), by a product of its own */
    MARLIN_FOLDED,   /* q·s − 8·s: the scale is part of the factor of codes and of the addend */
};

/*
 * How the sums of masked codes become those of q − z (weights.c). Where a group has at most two mma
 * steps, its sums start from their correction, which takes one more mma for each fragment of
 * activations; that is less than a correction of each sum at the end of the group.
 */
enum marlin_correction {
    MARLIN_NO_CORRECTION,    /* operands are q − z */
    MARLIN_FROM_ZEROS,       /* sums start from the products of −z and the activations */
    MARLIN_FROM_STORED_SUMS, /* these products are in the stage: another warp computes them */
    MARLIN_BY_TOTALS,        /* Σ activations, computed by each warp, is multiplied by −z */
    MARLIN_BY_STORED_TOTALS, /* Σ activations is in the stage: another warp computes it */
};

/* How a warp multiplies a stage by mma.sync; all follows from spec and tile. */
struct marlin_mma {
    uint32_t steps;  /* mma steps of a stage */
    uint32_t group;  /* mma steps of a group of scales in a stage, or of the stage without groups */
    uint32_t loads;  /* of activations in an mma step */
    uint32_t ahead;  /* mma steps by which words and scales are loaded ahead; with few products in a
                        step, one step is not enough to hide the latency of the load */
    bool pairs;      /* a load brings 8 tokens for two mma steps, instead of 16 tokens for one */
    bool has_groups; /* a feature has several scales */
    bool scales_groups; /* each group has sums of its own, which are scaled */
    bool parts_totals;  /* the two fragments of a load differ in tokens or group: separate totals */
    /*
     * The rest of a stage is read `ahead` steps before its end, so that the slot is released before
     * the wait for the next stage: where there are registers for one load of activations, and no
     * sums of activations are read at the end of a group, which would be too late.
     */
    bool leaves_slot;
    enum marlin_correction correction;
};

/* Where a warp finds the sums of activations that another warp has stored. */
struct marlin_totals_place {
    struct gemm_ring_place present; /* the slot of the present stage */
    ptx_u32 totals_at;              /* the lane's offset of these sums in a stage */
};

struct marlin_product {
    struct gemm g;
    const ptxgen_marlin_spec *spec;
    const ptxgen_marlin_plan *plan;
    const ptxgen_tile *v;
    ptx_u32 along_n, along_k; /* index of the warp along N and K; with wgmma, in its warpgroup */
    struct gemm_threads team; /* threads that end a part of a tile together: all, or a warpgroup */
    ptx_u32 team_index;
    uint32_t teams;            /* of a CTA */
    ptx_u64 address[MARLIN_M]; /* the 64-bit parameters that are used */
    struct gemm_operand x;
    struct copies copies;
    struct weights w;
    bool reads_ring;       /* mma.sync, and stages are copied in bulk by another warp */
    enum marlin_form form; /* of dequantised weights */
    struct marlin_mma mma; /* with mma.sync */
    struct marlin_totals_place totals_place;
    const struct gemm_exchange *exchange; /* of a cluster's two CTAs; NULL: there is none */
    struct gemm_epilogue output;
    struct gemm_bulk_fixup bulk_fixup; /* of divided tiles with wgmma; 0 threads: not used */
    ptx_f32 acc[MAX_TILES][MAX_TOKEN_GROUPS][4];
    struct operands operands;
};

static inline uint32_t tiles(const struct marlin_product *q)
{
    return q->v->warp_n / MARLIN_TILE;
}
static inline uint32_t token_groups(const struct marlin_product *q)
{
    return q->v->tile_m / 8;
}
/* Packed features that a team multiplies. */
static inline uint32_t team_features(const struct marlin_product *q)
{
    return q->v->tile_n / q->teams;
}
/* Whether a warp has half a strip. */
static inline bool has_half_strip(const struct marlin_product *q)
{
    return q->v->warp_n < MARLIN_STRIP;
}
/* Whether the last tile along N has strips that do not exist. */
static inline bool strips_have_tail(const struct marlin_product *q)
{
    return marlin_strips(q->spec) * MARLIN_STRIP % q->v->tile_n != 0;
}
static inline bool is_bf16(const struct marlin_product *q)
{
    return q->spec->type == PTXGEN_BF16;
}

/* ---- layout of a stage in shared memory ---- */

/* Groups of scales of a step of 64 of K, and of a stage of `steps` steps of a warp. */
uint32_t marlin_step_groups(const ptxgen_marlin_spec *spec);
uint32_t marlin_stage_groups(const ptxgen_marlin_spec *spec, uint32_t steps);
/* Stages of a CTA along K; the CTAs of a cluster divide a tile's stages. */
uint32_t marlin_stages_along_k(const ptxgen_marlin_spec *spec, const ptxgen_tile *v);
/* Candidate `index` of the tiles that a plan may use; false past the last. */
bool marlin_candidate(const ptxgen_marlin_plan *plan, size_t index, ptxgen_tile *tile);
/* Whether scales are multiplied into sums, and not into weights. */
bool marlin_scales_sums(const ptxgen_marlin_spec *spec, const ptxgen_tile *v);
/* With wgmma: whether the sums of a stage are scaled, which has one scale for each feature. */
bool marlin_scales_stages(const ptxgen_marlin_spec *spec, const ptxgen_tile *v);

/* The number by which a code exceeds q as an operand, where sums are corrected. */
uint32_t marlin_code_offset(const ptxgen_marlin_spec *spec);

/* ---- emit.c ---- */

void marlin_emit_params(struct marlin_product *q);
/* With mma.sync: finds the warp's place; all warps are one team. */
void marlin_find_mma_warp(struct marlin_product *q);
static inline struct marlin_product *marlin_of(struct gemm *g)
{
    return (struct marlin_product *)g;
}

/* ---- cp_async.c ---- */

uint32_t marlin_stage_bytes(const ptxgen_marlin_spec *spec, const ptxgen_tile *v);
extern const struct gemm_ops marlin_cp_async_ops;

/* ---- bulk.c ---- */

uint32_t marlin_ring_shared_bytes(const ptxgen_marlin_spec *spec, const ptxgen_tile *v);

/* ---- weights.c ---- */

/* The warp's strip of packed features in a tile. */
ptx_u32 marlin_emit_strip_of(struct marlin_product *q, ptx_u32 tile_n);
/* Whether a warp has the lower half of a strip in some tiles and the upper half in others. */
bool marlin_half_varies(const struct marlin_product *q);
void marlin_emit_half(struct marlin_product *q, ptx_u32 tile_n, ptx_u32 half);
/* Sets the offsets of the warp's codes, scales and zero points, where these differ by tile. */
void marlin_emit_strip(struct marlin_product *q, ptx_u32 tile_n);
/* Loads the lane's codes of a step: words[t][i] for mma step i of tile t. */
void marlin_emit_weights_load(struct marlin_product *q, ptx_u32 slot, uint32_t step,
                              ptx_u32 words[MAX_TILES][4]);
/* Loads the lane's scales (and zero points) of group `group` of the stage. */
void marlin_emit_scales_load(struct marlin_product *q, ptx_u32 slot, uint32_t group,
                             struct scales *s);
/* Without groups: loads the lane's scales (and zero points) from global memory. */
void marlin_emit_column_scales_load(struct marlin_product *q, ptx_u32 tile_n, struct scales *s);
/* Converts the two scales of a tile to f32. */
void marlin_emit_scales_f32(struct marlin_product *q, const struct scales *s, uint32_t tile,
                            ptx_f32 scale[2]);
enum marlin_form marlin_find_form(const ptxgen_marlin_spec *spec, const ptxgen_tile *v);
void marlin_emit_dequantiser_begin(struct marlin_product *q);
/* Sets the dequantiser for these scales. */
void marlin_emit_dequantiser(struct marlin_product *q, const struct scales *s);
/* Makes operand A of an mma step from a word: q − z, s·(q − z), or q + offset, in units. */
void marlin_emit_dequantise(struct marlin_product *q, uint32_t tile, ptx_u32 word,
                            const ptx_u32 a[4]);
/* Where sums are corrected: the unit of the sums of features g (half 0) or g + 8 (half 1). */
float marlin_code_unit(const struct marlin_product *q, uint32_t half);
/* −(offset + z) for symmetric codes in that unit, as a pair. */
uint32_t marlin_zero_pair(const struct marlin_product *q, uint32_t half);
/* −(offset + z) for zero points `s` in that unit: the factor of Σ activations in the correction. */
ptx_f32 marlin_emit_correction(struct marlin_product *q, const struct scales *s, uint32_t tile,
                               uint32_t half);

/* ---- multiply.c ---- */

struct marlin_mma marlin_find_mma(const struct marlin_product *q);
/* Groups of a warp in a stage whose sums are corrected separately. */
uint32_t marlin_corrected_groups(const ptxgen_marlin_spec *spec, const ptxgen_tile *v);
void marlin_emit_mma(struct marlin_product *q, ptx_f32 acc[4], const ptx_u32 a[4],
                     const ptx_u32 b[2]);
/* The consumers of mma.sync: declare registers, and make the first operands of the first stage. */
void marlin_begin_mma(struct marlin_product *q);
void marlin_clear_mma(struct gemm *g, const struct gemm_part *part);
/* Adds the current stage's products, and makes the first operands of the next stage. */
void marlin_multiply_mma(struct gemm *g, const struct gemm_part *part);
/* At the end of a part: corrects and scales the sums that have not been corrected by group. */
void marlin_emit_finish_sums(void *product);

/* ---- totals.c; totals[j][e] are those of token 8j + 2q + e ---- */

void marlin_emit_totals_begin(struct marlin_product *q);
void marlin_emit_totals_clear(struct marlin_product *q);
/* Adds a load of activations. */
void marlin_emit_totals_add(struct marlin_product *q, const ptx_u32 x[4]);
/* The sums over the mma steps up to i, or without groups over the stages of the part. */
void marlin_emit_totals_find(struct marlin_product *q, uint32_t i, ptx_f32 totals[2][2]);
/* Loads what another warp has stored of group `group` of the current stage: sums of activations. */
void marlin_emit_totals_load(struct marlin_product *q, uint32_t group, ptx_f32 totals[2][2]);
/* Without groups: adds the stage's stored sums to those of the part. */
void marlin_emit_totals_add_stored(struct marlin_product *q);
/* Loads what another warp has stored of a small group: what the sums of products start from. */
void marlin_emit_first_sums_load(struct marlin_product *q, uint32_t group,
                                 ptx_f32 first[MAX_TOKEN_GROUPS][4]);

/* ---- epilogue.c ---- */

/* Register r of tile t and row group j of the accumulators. */
ptx_u32 marlin_accumulator(const void *gemm, uint32_t t, uint32_t j, uint32_t r);
/* Sets the epilogue up; sums are staged at the shared address `staging`. */
void marlin_emit_epilogue_begin(struct marlin_product *q, ptx_u32 staging);
/* Address of the partial sums of CTA 0. */
ptx_u64 marlin_emit_partials(struct marlin_product *q);
/* Tiles along M. */
ptx_u32 marlin_emit_tiles_m(struct marlin_product *q);
/* The place in y of tile number `tile`. */
struct gemm_place marlin_emit_place(struct marlin_product *q, ptx_u32 tile);

/* ---- gather.c ---- */

void marlin_emit_gather(const ptxgen_marlin_plan *plan, ptx_module *module);

#endif
