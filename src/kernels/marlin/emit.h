/* SPDX-License-Identifier: Apache-2.0 */
/* What the pieces of marlin's emitter hand to each other. */
#ifndef PTXGEN_KERNELS_MARLIN_EMIT_H
#define PTXGEN_KERNELS_MARLIN_EMIT_H

#include "../tile/activation.h"
#include "../tile/chunk.h"
#include "../tile/emit.h"
#include "../tile/operand.h"
#include "../tile/part.h"
#include "../tile/pipeline.h"
#include "../tile/ring.h"
#include "layout.h"

enum {
    MAX_TILES = 4,       /* of 16 columns, of a warp */
    MAX_ROW_GROUPS = 32, /* of 8 rows, of a tile */
    STEP_MMAS = MARLIN_STEP / 16, /* mma steps in a step of the packed weights */
};

/* Scales of one step for the lane's columns: g and g + 8 of each tile. */
struct scales {
    ptx_u32 packed[MAX_TILES]; /* both, in 16 bits each */
    ptx_u32 zeros;             /* nibbles 2t + h */
};

/* What dequantisation needs of a group: pairs of equal halves, for columns g and g + 8. */
struct dequantiser {
    /* What codes are multiplied by, and what is added. */
    ptx_u32 unit[MAX_TILES][2], zero[MAX_TILES][2];
    ptx_u32 scale[MAX_TILES][2];                    /* where weights are scaled by themselves */
    ptx_u32 minus_zero;                             /* −0 */
};

/*
 * Sums of activations, where sums are corrected: of mma with what a load brings as its A. The two
 * registers of a fragment, its first and its second half along K, stand in rows g and g + 8, which
 * are then added: no other row may be beside them, for its NaN would be theirs.
 */
struct totals {
    ptx_f32 sums[2][4]; /* of each fragment of a load; of all that is one row's, the first */
    ptx_u32 ones;       /* a pair */
    ptx_u32 source[2];  /* the lanes that have rows 2q and 2q + 1 */
};

/* What a warp holds of a stage while it goes through its mma steps, one ahead of the arithmetic. */
struct operands {
    ptx_u32 words[MAX_TILES][4]; /* of the 64 rows of the operand made last */
    struct scales scales;        /* of its group, or the next, or of the column */
    struct scales group;         /* of its group, where sums are scaled */
    struct dequantiser dequantiser;
    struct totals totals;
    ptx_u32 a[2][MAX_TILES][4]; /* of the present mma step and the next */
    ptx_u32 x[2][4];            /* activations, two fragments a load, in turn */
    ptx_u32 zero[4];            /* an A of zero points: a group's sums start from their share */
    ptx_u32 half;               /* of the strip, of the present tile */
    /* The lane's offset of them in a stage, and addresses: of it, of an mma step. */
    ptx_u32 x_at, x_lane, x_step;
};

/* A warp's copies of packed weights: where they come from, and where in a stage they go. */
struct weights {
    ptx_u64 codes;                 /* the lane's next 16 bytes */
    ptx_u64 scales, zeros;         /* its 16 bytes of the strip's first group */
    ptx_u32 step;                  /* the first step of the next stage, where that is needed */
    ptx_u32 strip_bytes;           /* 16, or 0 where the strip does not exist: what a copy takes */
    ptx_u32 half; /* of the strip, where a warp has half of one: of the copies' tile */
    ptx_u32 codes_at, scales_to, zeros_to, scales_at, zeros_at; /* the lane's offsets in a stage */
    uint32_t step_bytes; /* in a stage, from a step of the warp's codes to the next */
    /* Of the tile's first strip, where a warp's varies, … */
    ptx_u32 strips_codes, strips_scales, strips_zeros;
    uint32_t codes_bytes, scales_bytes, zeros_bytes;   /* … and of each strip */
    ptx_u32 half_codes, codes_step; /* … of the half past whole strips; from a step to the next */
};

/* Where a warp stands in a ring that another fills. */
struct ring_user {
    const struct tile_ring *ring; /* NULL: the warp fills a pipeline itself */
    struct tile_ring_place place;
    ptx_u32 held;      /* the barrier of the stage before the present one */
    ptx_u32 left;      /* stages of the CTA after the present one */
    ptx_pred releases; /* the lane that gives slots back */
    struct tile_ring_place present; /* where sums of activations are noted, the present stage … */
    ptx_u32 totals_at;              /* … and the lane's of them in it */
};

struct gemm {
    ptx_kernel *k;
    const ptxgen_marlin_spec *spec;
    const ptxgen_marlin_plan *plan;
    const ptxgen_marlin_variant *v;
    struct tile_threads at;
    ptx_u32 along_n, along_k; /* the warp's place, with wgmma within its warpgroup */
    struct tile_threads team; /* threads that end a part of a tile together: all, or a warpgroup */
    ptx_u32 team_index;
    uint32_t teams; /* of a CTA */
    ptx_u64 address[MARLIN_M]; /* parameters of 64 bits, those that are used */
    ptx_u32 m, tiles_m;
    struct tile_division division;
    struct tile_operand x;
    struct weights w;
    struct tile_pipeline pipeline;
    struct ring_user user; /* … or what stands for it */
    const struct tile_exchange *exchange; /* of a cluster's two CTAs; else NULL */
    struct tile_sums sums;
    struct tile_halves halves; /* … or what is staged instead, see stages_halves */
    struct tile_partials partials;
    struct tile_handover handover; /* of wgmma's divided tiles; else of no threads */
    struct tile_ring_place *read;  /* where the ring is read, if so */
    ptx_pred releases;
    struct tile_chunk chunk; /* of C and of what is added to it */
    ptx_f32 acc[MAX_TILES][MAX_ROW_GROUPS][4];
    struct operands operands;
};

static inline uint32_t tiles(const struct gemm *q) { return q->v->warp_n / MARLIN_TILE; }
static inline uint32_t row_groups(const struct gemm *q) { return q->v->tile_m / 8; }
/* Packed columns that a team multiplies. */
static inline uint32_t team_columns(const struct gemm *q)
{
    return marlin_tile_n(q->v) / q->teams;
}
static inline bool is_bf16(const struct gemm *q) { return q->spec->type == PTXGEN_BF16; }

/* ---- layout of a stage in shared memory ---- */

/* Groups of scales that a stage holds for a warp, and that a step uses. */
uint32_t marlin_step_groups(const ptxgen_marlin_spec *spec);
uint32_t marlin_stage_groups(const ptxgen_marlin_spec *spec, uint32_t steps);
uint32_t marlin_stage_bytes(const ptxgen_marlin_spec *spec, const ptxgen_marlin_variant *v);
/* Of a CTA: a cluster's divide them. */
uint32_t marlin_stages_along_k(const ptxgen_marlin_spec *spec, const ptxgen_marlin_variant *v);
/* What one CTA takes. */
uint32_t marlin_shared_bytes(const ptxgen_marlin_spec *spec, const ptxgen_marlin_variant *v);
/*
 * Number `index` of the tiles that a plan for this spec and target may have; false past the last.
 */
bool marlin_candidate(const ptxgen_marlin_plan *plan, size_t index, ptxgen_marlin_variant *tile);
/* Whether scales are multiplied into sums, else into weights. */
bool marlin_scales_sums(const ptxgen_marlin_spec *spec, const ptxgen_marlin_variant *v);
/* … with wgmma those of a stage, which has one scale for all its rows of a warpgroup. */
bool marlin_scales_stages(const ptxgen_marlin_spec *spec, const ptxgen_marlin_variant *v);

/* What codes have more than q where sums are corrected. */
uint32_t marlin_code_offset(const ptxgen_marlin_spec *spec);

/* ---- emit.c ---- */

void marlin_emit_params(struct gemm *q);
/* Multiplies and ends all parts of the CTA's stages [first, end), the first of which has landed. */
void marlin_emit_parts(struct gemm *q, ptx_u32 first, ptx_u32 end);

/* ---- hopper.c ---- */

uint32_t marlin_ring_stage_bytes(const ptxgen_marlin_spec *spec, const ptxgen_marlin_variant *v);
uint32_t marlin_ring_shared_bytes(const ptxgen_marlin_spec *spec, const ptxgen_marlin_variant *v);
/* Entries with a sender. */
void marlin_emit_ring_entry(const ptxgen_marlin_plan *plan, const ptxgen_marlin_variant *v,
                            ptx_module *module);

/* ---- weights.c ---- */

void marlin_emit_weights_begin(struct gemm *q);
/* Whether a warp has the low half of a strip in one tile and the high half in another. */
bool marlin_half_varies(const struct gemm *q);
void marlin_emit_half(struct gemm *q, ptx_u32 tile_n, ptx_u32 half);
/* … or its columns' codes, scales and zero points in different places of a stage. */
void marlin_emit_strip(struct gemm *q, ptx_u32 tile_n);
/* Turns to the warp's columns of column tile `tile_n`, at stage `stage`. */
void marlin_emit_weights_locate(struct gemm *q, ptx_u32 tile_n, ptx_u32 stage);
/* Sends for the next stage, to the shared address `slot`, and moves on. */
void marlin_emit_weights_send(struct gemm *q, ptx_u32 slot);
/* Brings the first stages of what was located, up to stage `stage_end` of the tile, into the L2. */
void marlin_emit_weights_prefetch(struct gemm *q, ptx_u32 stage, ptx_u32 stage_end);
/* The lane's words of a step's tiles: words[t][i] for mma step i. */
void marlin_emit_weights_load(struct gemm *q, ptx_u32 slot, uint32_t step,
                              ptx_u32 words[MAX_TILES][4]);
/* The lane's scales (and zero points) of group `group` within the stage. */
void marlin_emit_scales_load(struct gemm *q, ptx_u32 slot, uint32_t group, struct scales *s);
/* … and of a column without groups, from global memory; not in a stage. */
void marlin_emit_column_scales_load(struct gemm *q, ptx_u32 tile_n, struct scales *s);
/* The two scales of a tile as f32. */
void marlin_emit_scales_f32(struct gemm *q, const struct scales *s, uint32_t tile,
                            ptx_f32 scale[2]);
void marlin_emit_dequantiser_begin(struct gemm *q);
/* Sets the dequantiser for these scales. */
void marlin_emit_dequantiser(struct gemm *q, const struct scales *s);
/* q − z, s·(q − z), or q and an offset, in units, of a word: operand A of an mma step. */
void marlin_emit_dequantise(struct gemm *q, uint32_t tile, ptx_u32 word, const ptx_u32 a[4]);
/* Where sums are corrected: a unit of theirs, in columns g or g + 8. */
float marlin_code_unit(const struct gemm *q, uint32_t half);
/* … and −(offset + z) of symmetric codes in it, a pair. */
uint32_t marlin_zero_pair(const struct gemm *q, uint32_t half);
/* … and what takes (offset + z)·total off them, in their unit: the factor, of zero points `s`. */
ptx_f32 marlin_emit_correction(struct gemm *q, const struct scales *s, uint32_t tile,
                               uint32_t half);

/* ---- pipeline.c ---- */

/* First stages are sent for, and the first has landed, for the stages [first, end) of the CTA. */
void marlin_emit_pipeline_begin(struct gemm *q, ptx_u32 first, ptx_u32 end);

/* ---- multiply.c ---- */

void marlin_emit_operands_begin(struct gemm *q);
/* Groups of a warp in a stage whose sums are corrected by themselves. */
uint32_t marlin_corrected_groups(const ptxgen_marlin_spec *spec, const ptxgen_marlin_variant *v);
/* For a warp that only sums up activations: ones, and then row g of the fragments of a load. */
void marlin_emit_totals_begin(struct gemm *q);
/* The sums of the activations of group `group` of a warp at `along_k`, in the stage at `slot`. */
void marlin_emit_totals(struct gemm *q, ptx_u32 slot, uint32_t along_k, uint32_t group,
                        ptx_f32 totals[2]);
/* Those of the first mma step of the stage that is to be read. */
void marlin_emit_first_operands(struct gemm *q);
/* acc = 0; turns to column tile `tile_n`, whose first stage is to be read. */
void marlin_emit_clear(struct gemm *q, ptx_u32 tile_n);
/* acc += the stage that is to be read, and the first operands of the next. */
void marlin_emit_multiply(struct gemm *q);
/* At the end of a part: corrects and scales sums where that is still to be done. */
void marlin_emit_finish_sums(struct gemm *q);

/* ---- epilogue.c ---- */

/* Register r of tile t, row group j. */
ptx_u32 marlin_accumulator(const void *gemm, uint32_t t, uint32_t j, uint32_t r);
/* Sums are brought together in shared memory at `staging`. */
void marlin_emit_epilogue_begin(struct gemm *q, ptx_u32 staging);
/* Finishes the part of a tile that `w` has just walked through, from stage `first` on. */
void marlin_emit_epilogue(struct gemm *q, const struct tile_walk *w, ptx_u32 first);

/* Sums of the first CTA. */
ptx_u64 marlin_emit_partials(struct gemm *q);
/* Tiles along M. */
ptx_u32 marlin_emit_tiles_m(struct gemm *q);
/* The place of a walk's tile in C. */
struct tile_place marlin_emit_place(struct gemm *q, ptx_u32 tile);

/* ---- gather.c ---- */

void marlin_emit_gather(const ptxgen_marlin_plan *plan, ptx_module *module);

#endif
