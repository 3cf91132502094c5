/* SPDX-License-Identifier: Apache-2.0 */
/* What the pieces of marlin's emitter hand to each other. */
#ifndef PTXGEN_KERNELS_MARLIN_EMIT_H
#define PTXGEN_KERNELS_MARLIN_EMIT_H

#include "../tile/activation.h"
#include "../tile/emit.h"
#include "../tile/operand.h"
#include "../tile/stream_k.h"
#include "../tile/sums.h"
#include "layout.h"

enum {
    MAX_TILES = 4,       /* of 16 columns, of a warp */
    MAX_ROW_GROUPS = 16, /* of 8 rows, of a tile */
    STEP_MMAS = MARLIN_STEP / 16, /* mma steps in a step of the packed weights */
};

/* Scales of one step for the lane's columns: g and g + 8 of each tile. */
struct scales {
    ptx_u32 packed[MAX_TILES]; /* both, in 16 bits each */
    ptx_u32 zeros;             /* nibbles 2t + h */
};

/* What dequantisation needs of the scales, once for each group: pairs of equal halves. */
struct dequantiser {
    ptx_u32 low[MAX_TILES], high[MAX_TILES]; /* subtracted, added: zero points of columns g, g + 8 */
    ptx_u32 scale[MAX_TILES][2];             /* where weights are scaled */
};

/* A warp's copies of packed weights: where they come from, and where in a stage they go. */
struct weights {
    ptx_u64 codes;                 /* the lane's next 16 bytes */
    ptx_u64 scales, zeros;         /* its 16 bytes of the strip's first group */
    ptx_u32 step;                  /* the first step of the next stage, where that is needed */
    ptx_u32 strip_bytes;           /* 16, or 0 where the strip does not exist: what a copy takes */
    ptx_pred has_scales, has_zeros; /* whether the lane takes part in these copies */
    ptx_u32 half;                  /* of the strip, where a warp has half of one */
    ptx_u32 sixteenth, one, minus_zero; /* pairs of f16, and of bf16 */
    ptx_u32 codes_at, scales_to, zeros_to, scales_at, zeros_at; /* the lane's offsets in a stage */
};

struct gemm {
    ptx_kernel *k;
    const ptxgen_marlin_spec *spec;
    const ptxgen_marlin_plan *plan;
    const ptxgen_marlin_variant *v;
    struct tile_threads at;
    ptx_u32 along_n, along_k; /* the warp's place */
    ptx_u64 address[MARLIN_M]; /* parameters of 64 bits, those that are used */
    ptx_u32 m, tiles_m;
    struct tile_division division;
    struct tile_operand a;
    struct weights w;
    struct tile_sums sums;
    ptx_pred aligned; /* chunks of C and of what is added to it may be accessed whole */
    ptx_f32 acc[MAX_TILES][MAX_ROW_GROUPS][4];
    struct scales column; /* without groups: of the present tile */
    struct dequantiser column_dequantiser;
};

static inline uint32_t tiles(const struct gemm *q) { return q->v->warp_n / MARLIN_TILE; }
static inline uint32_t row_groups(const struct gemm *q) { return q->v->tile_m / 8; }
static inline bool is_bf16(const struct gemm *q) { return q->spec->type == PTXGEN_BF16; }

/* ---- layout of a stage in shared memory ---- */

/* Groups of scales that a stage holds for a warp, and that a step uses. */
uint32_t marlin_step_groups(const ptxgen_marlin_spec *spec);
uint32_t marlin_stage_groups(const ptxgen_marlin_spec *spec, const ptxgen_marlin_variant *v);
uint32_t marlin_stage_bytes(const ptxgen_marlin_spec *spec, const ptxgen_marlin_variant *v);
uint32_t marlin_stages_along_k(const ptxgen_marlin_spec *spec, const ptxgen_marlin_variant *v);
/* Rows that the epilogue stages at once, and where its area begins: behind the pipeline. */
uint32_t marlin_pass_m(const ptxgen_marlin_variant *v);
/* Whether scales are multiplied into sums, else into weights. */
bool marlin_scales_sums(const ptxgen_marlin_spec *spec, const ptxgen_marlin_variant *v);

/* ---- weights.c ---- */

void marlin_emit_weights_begin(struct gemm *q);
/* Turns to the warp's columns of column tile `tile_n`, at stage `stage`. */
void marlin_emit_weights_locate(struct gemm *q, ptx_u32 tile_n, ptx_u32 stage);
/* Sends for the next stage, to the shared address `slot`, and moves on. */
void marlin_emit_weights_send(struct gemm *q, ptx_u32 slot);
/* The lane's words of a step's tiles: words[t][i] for mma step i. */
void marlin_emit_weights_load(struct gemm *q, ptx_u32 slot, uint32_t step, ptx_u32 words[MAX_TILES][4]);
/* The lane's scales (and zero points) of group `group` within the stage. */
void marlin_emit_scales_load(struct gemm *q, ptx_u32 slot, uint32_t group, struct scales *s);
/* … and of a column without groups, from global memory; not in a stage. */
void marlin_emit_column_scales_load(struct gemm *q, ptx_u32 tile_n, struct scales *s);
/* The two scales of a tile as f32. */
void marlin_emit_scales_f32(struct gemm *q, const struct scales *s, uint32_t tile, ptx_f32 scale[2]);
void marlin_emit_dequantiser(struct gemm *q, const struct scales *s, struct dequantiser *d);
/* q − z, or s·(q − z), of a word: operand A of an mma step. */
void marlin_emit_dequantise(struct gemm *q, const struct dequantiser *d, uint32_t tile, ptx_u32 word,
                     ptx_u32 a[4]);

/* ---- multiply.c ---- */

/* acc = 0; turns to column tile `tile_n`. */
void marlin_emit_clear(struct gemm *q, ptx_u32 tile_n);
/* acc += the stage at `slot`. */
void marlin_emit_multiply(struct gemm *q, ptx_u32 slot);
/* Without groups: acc *= the columns' scales. */
void marlin_emit_scale_columns(struct gemm *q);

/* ---- epilogue.c ---- */

void marlin_emit_epilogue_begin(struct gemm *q);
/* Finishes the part of a tile that `w` has just walked through, from stage `first` on. */
void marlin_emit_epilogue(struct gemm *q, const struct tile_walk *w, ptx_u32 first);

/* ---- gather.c ---- */

void marlin_emit_gather(const ptxgen_marlin_plan *plan, ptx_module *module);

#endif
