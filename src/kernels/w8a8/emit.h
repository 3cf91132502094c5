/* SPDX-License-Identifier: Apache-2.0 */
/* State that the files of w8a8's emitter share, and the functions of each file. */
#ifndef PTXGEN_W8A8_EMIT_H
#define PTXGEN_W8A8_EMIT_H

#include "../gemm/emit.h"
#include "../gemm/epilogue.h"
#include "../gemm/operand.h"
#include "layout.h"

#define F64(x) ptx_imm_f64(x)

/* The stage that block `block` of features begins with, see w8a8_rotates. */
static inline ptx_u32 w8a8_first_stage(ptx_kernel *k, ptx_u32 block, ptx_u32 stages,
                                       uint32_t multiprocessors)
{
    return gemm_divide(k, ptx_mul_lo_u32(k, block, stages), multiprocessors);
}

/* ---- work_type.c: values of the work type, f64 where `wide` ---- */

struct work {
    union {
        ptx_f32 f;
        ptx_f64 d;
    };
};

struct work work_constant(bool wide, double value);
struct work work_add(ptx_kernel *k, bool wide, struct work a, struct work b);
struct work work_sub(ptx_kernel *k, bool wide, struct work a, struct work b);
struct work work_mul(ptx_kernel *k, bool wide, struct work a, struct work b);
struct work work_min(ptx_kernel *k, bool wide, struct work a, struct work b);
struct work work_max(ptx_kernel *k, bool wide, struct work a, struct work b);
struct work work_fma(ptx_kernel *k, bool wide, struct work a, struct work b, struct work c);
struct work work_neg(ptx_kernel *k, bool wide, struct work a);
ptx_pred work_less(ptx_kernel *k, bool wide, struct work a, struct work b);
struct work work_select(ptx_kernel *k, bool wide, struct work a, struct work b, ptx_pred p);
struct work work_of_s32(ptx_kernel *k, bool wide, ptx_s32 x);
struct work work_load_global(ptx_kernel *k, bool wide, ptx_u64 address, int offset);
void work_load_global_to(ptx_kernel *k, bool wide, struct work to, ptx_u64 address, int offset);
/* Copies a value into a new register, and into a given one. */
struct work work_new(ptx_kernel *k, bool wide, struct work from);
void work_copy(ptx_kernel *k, bool wide, struct work to, struct work from);

/* ---- quantise.c: from a row of x to codes ---- */

struct quantiser {
    ptx_kernel *k;
    const ptxgen_w8a8_spec *spec;
    bool wide;        /* the work type is f64 */
    ptx_pred vectors; /* rows of x start at multiples of 16 bytes */
    ptx_u64 x, x_scale, x_zero;
    ptx_u32 x_stride;
};

/* The chunks of 8 elements that a thread has of a row: first, first + step, up to end. */
struct share {
    ptx_u64 row;
    ptx_u32 first, end;
    uint32_t step, rounds; /* rounds: the most chunks of any thread */
};

enum { CHUNK = 8, CHUNK_WORDS = 16, BATCH = 4, MAXIMA = 3 };

/* 8 elements as in memory. */
struct chunk {
    ptx_u32 words[CHUNK_WORDS];
};
struct batch {
    struct chunk chunks[BATCH];
    ptx_u32 index[BATCH];
};

/* Maxima over a row as bits that are ordered like them: of |x|, and for asymmetric of x and −x. */
struct range {
    ptx_u32 word[MAXIMA];
    ptx_u64 wide[MAXIMA];
};

/* The constants that turn a token's elements into codes. */
struct token {
    ptx_pred finite;
    struct work scale; /* 1 for a token that is not finite */
    ptx_s32 zero;
    ptx_u32 keep;          /* all ones, or 0 for a token that is not finite */
    struct work low, high; /* bounds of the rounded quotient in f32 */
    ptx_s32 least, most;   /* bounds of the rounded quotient of f64 */
    struct work adjust, minus_scaled, reciprocal, rest, limit; /* see division.c */
};

struct quantiser w8a8_start_quantiser(ptx_kernel *k, const ptxgen_w8a8_spec *spec, ptx_u64 x,
                                      ptx_u32 x_stride, ptx_u64 x_scale, ptx_u64 x_zero);
ptx_u64 w8a8_row_of_token(const struct quantiser *q, ptx_u32 token);
/* The chunks of a thread in a batch; whole batches cover a share. */
uint32_t w8a8_batch_rounds(const struct quantiser *q, uint32_t rounds);
/* Loads the batch whose first chunk is `first`, with zeros past the share's end and past K. */
void w8a8_load_batch(const struct quantiser *q, const struct share *share, ptx_u32 first,
                     uint32_t rounds, struct batch *batch);
/* Elements 2·pair and 2·pair + 1 of a chunk as numbers of the work type. */
void w8a8_unpack_pair(const struct quantiser *q, const struct chunk *c, int pair, struct work v[2]);
struct range w8a8_new_range(const struct quantiser *q);
void w8a8_widen_range(const struct quantiser *q, const struct batch *batch, uint32_t rounds,
                      struct range *range);
/* Reduces the maxima over the lanes; all lanes have the result. */
void w8a8_share_range(const struct quantiser *q, struct range *range);
/* Stores the maxima in a slot of w8a8_range_bytes in shared memory. */
void w8a8_store_range(const struct quantiser *q, ptx_u32 shared_slot, const struct range *range);
/* The maxima over `count` ≤ 32 slots; all lanes have the result. */
struct range w8a8_load_ranges(const struct quantiser *q, ptx_u32 shared_slots, ptx_u32 lane,
                              uint32_t count);
struct token w8a8_find_token(const struct quantiser *q, const struct range *range, ptx_u32 token);
/* The scale as the product reads it: NaN for a token that is not finite. */
struct work w8a8_written_scale(const struct quantiser *q, const struct token *token);
/* Stores the eight codes, in two words, of the chunk with number `index`. */
typedef void w8a8_store_codes(void *user, ptx_u32 index, const ptx_u32 codes[2]);
void w8a8_encode_batch(const struct quantiser *q, const struct token *token,
                       const struct batch *batch, uint32_t rounds, w8a8_store_codes *store,
                       void *user);
/* Lanes that have a group of 128 of K, from a chunk whose number is a multiple of so many. */
enum { GROUP_LANES = PTXGEN_W8A8_GROUP / CHUNK };
/* Stores what is known of group `group`, where the predicate `is_first` holds. */
typedef void w8a8_store_group(void *user, const struct token *token, ptx_u32 group,
                              ptx_pred is_first);
/*
 * Quantises a batch, of which every 16 lanes have a group, or lie past `chunks`; all lanes of the
 * warp take part.
 */
void w8a8_quantise_groups(const struct quantiser *q, const struct batch *batch, uint32_t rounds,
                          uint32_t chunks, w8a8_store_group *store_group,
                          w8a8_store_codes *store_codes, void *user);
/* division.c */
/* Whether scales cannot be extreme, as those of f16 values. */
bool w8a8_has_normal_scale(const struct quantiser *q);
/* x[i] = RN(x[i] / steps) for maxima of a row, which are not negative. */
void w8a8_divide_by_steps(const struct quantiser *q, int steps, struct work *x, int count);
/* Makes the constants of the division from a scale that is positive and finite. */
void w8a8_prepare_division(const struct quantiser *q, struct token *t);
/* RN(x / scale) of an x that has been multiplied by `adjust` and cut. */
struct work w8a8_divide_by_scale(const struct quantiser *q, const struct token *t, struct work x);
/* quantise_kernel.c: the entry "w8a8_quantise", with or without CTAs that prefetch weights. */
void w8a8_emit_quantise(const ptxgen_w8a8_plan *plan, bool prefetches, ptx_module *module);

/* ---- the product ---- */

enum { MAX_FEATURE_TILES = 4, MAX_TOKEN_TILES = 32 };

/* Copies of w, by gemm/operand.h where the rows of w start at multiples of 16 bytes. */
struct weights {
    struct gemm_operand operand;
    ptx_s32 left; /* otherwise: bytes of K from the thread's chunk of the next stage on */
};

/*
 * The operands of the current mma step and of the next. A load of codes brings two tiles of tokens
 * or, of a tile of 8 tokens, two steps.
 */
struct operands {
    ptx_u32 w[2][MAX_FEATURE_TILES][4], codes[2][4];
    ptx_u32 w_lane, codes_lane; /* the lane's addresses in the stage */
    ptx_u32 w_step, codes_step; /* the lane's addresses for the step */
};

/* What the columns of a chunk need; sums of weights are s32 in the registers of f32. */
struct columns {
    ptx_f32 scale[GEMM_SUMS_WIDTH], bias[GEMM_SUMS_WIDTH], sum[GEMM_SUMS_WIDTH];
};
struct row_token {
    ptx_u32 m; /* its number */
    ptx_pred exists;
    struct work scale;
    ptx_s32 zero;
};

/*
 * block_scales.c: scales of groups of K, of the lane's tokens and of its rows of w. Rows come in
 * octets, of which a warp's may lie in two blocks of features; with SwiGLU they are in turn of gate
 * and of up.
 */
struct block_scales {
    ptx_u64 tokens;       /* address of those of the lane's first token */
    ptx_s32 tokens_left;  /* tokens of the launch from that one on */
    ptx_u64 blocks[2][2]; /* of gate and up: addresses of those of a block, and of the next */
    ptx_s32 rows_left;    /* rows of w from the warp's first to the next block */
    ptx_f32 of_token[W8A8_MOST_BLOCKS][2 * MAX_TOKEN_TILES]; /* for each block of K of a stage */
    ptx_f32 of_block[W8A8_MOST_BLOCKS][2][2];
};

/* wgmma_output.c: outputs of tiles whose tokens are wgmma's M. */
struct direct {
    ptx_pred aligned;       /* pairs of columns, or whole blocks, may be stored at once */
    struct gemm_chunk pair; /* a pair of columns of y, where y is not f64 */
    ptx_u32 column, n;      /* the lane's first column in a tile, and in all of N */
    ptx_s32 left;           /* columns of the tile from that one on */
    ptx_u32 row[2];         /* the lane's rows in the tile's first strip */
    ptx_u32 first;          /* the tile's first token */
    uint32_t strip;         /* which is stored */
    struct row_token tokens[2];
    ptx_u64 y[2], residual[2];         /* addresses of their outputs in the lane's first column */
    ptx_f32 scale[MAX_TOKEN_TILES][2]; /* of the lane's columns, where they are loaded ahead */
};

struct product {
    struct gemm g;
    const ptxgen_w8a8_plan *plan;
    const ptxgen_w8a8_spec *spec;
    const ptxgen_tile *v;
    bool wide;                         /* the work type is f64 */
    ptx_u32 along_n, along_m, along_k; /* the warp's place */
    ptx_u64 address[W8A8_X_STRIDE];    /* those parameters of 64 bits that are used */
    ptx_u32 x_stride, y_stride, residual_stride;
    ptx_u32 first_granule;      /* of the CTA, or its cluster */
    bool issues_codes;          /* the codes of a stage are issued with its weights */
    bool rotates;               /* see w8a8_rotates: */
    ptx_u32 rotation;           /* the stage that tiles begin with */
    ptx_u32 w_left, codes_left; /* stages from the next copy to the end of K */
    ptx_u32 to_fill;            /* first stages that the loop has not issued yet */
    struct weights w;
    struct gemm_operand codes;
    struct operands operands;
    struct gemm_epilogue output;
    ptx_u32 staging; /* shared, for sums */
    /* Loaded ahead: with SwiGLU of both matrices; the token where a thread has one chunk of a tile.
     */
    struct columns columns[2];
    struct row_token token;
    ptx_u32 resident, ranges, token_scales, token_zeros; /* shared addresses of a fused CTA */
    ptx_u32 resident_lane, resident_end; /* where the lane's addresses of ldmatrix start and end */
    ptx_u32 acc[MAX_FEATURE_TILES][MAX_TOKEN_TILES]
               [4]; /* of the type that code_type.c gives sums */

    /* wgmma, on copies in bulk. */
    ptx_u64 w_map, codes_map;
    uint32_t w_block, codes_block; /* bytes of a block of 128 bytes of K, in a stage */
    uint32_t codes_offset;         /* of the codes in a stage, behind w */
    uint32_t lag;                  /* groups of products that are in flight behind the newest */
    ptx_u32 w_at, codes_at;        /* from the start of a stage to the warpgroup's rows and codes */
    ptx_pred always, never;
    ptx_f32 block_sums[W8A8_MOST_BLOCKS]
                      [4 * MAX_TOKEN_TILES]; /* where each block of K has sums of its own */
    ptx_pred producer;                       /* whether the thread is the one that issues copies */
    struct direct direct;

    struct block_scales scales;
    ptx_u32 group_sums[MAX_FEATURE_TILES][MAX_TOKEN_TILES][4]; /* mma.sync: of the stage's group */
};
static inline struct product *w8a8_of(struct gemm *g)
{
    return (struct product *)g;
}

/* Tiles of 16 features, and tiles of 8 tokens, of a warp. */
static inline uint32_t feature_tiles(const struct product *q)
{
    return q->v->tile_n / W8A8_TILE_ROWS / q->v->wn;
}
static inline uint32_t token_tiles(const struct product *q)
{
    return w8a8_columns(q->v) / W8A8_TILE_TOKENS / q->v->wm;
}

/* Block number `block` of features: its first feature, and how many it has. */
struct feature_block {
    ptx_u32 first, count;
};
struct feature_block w8a8_find_block(struct product *q, ptx_u32 block);

/* weight_copies.c */
void w8a8_begin_weights(struct product *q);
/* Makes stage `stage` of block `block` of features the next one to be copied. */
void w8a8_locate_weights(struct product *q, ptx_u32 block, ptx_u32 stage);
/* Issues the copies of the next stage to the shared address `slot`, and moves on by a stage. */
void w8a8_issue_weights(struct product *q, ptx_u32 slot);
/* fused_codes.c: makes the codes of a fused CTA, at q->resident. */
void w8a8_emit_resident(struct product *q);

/* multiply.c */
void w8a8_begin_operands(struct product *q);
/* Loads the operands of the first step of the pipeline's next stage. */
void w8a8_first_operands(struct product *q);
/* Gives the operands' registers a value, so that none is live before the first loads. */
void w8a8_clear_operands(struct product *q);
/*
 * Multiplies the stage at `slot`, number `stage` along K, and loads the first operands of the next
 * stage.
 */
void w8a8_multiply_stage(struct product *q, ptx_u32 slot, ptx_u32 stage);

/* code_type.c: all that depends on the type of the codes, and so on the type of their sums. */

/* The code of a quotient x / scale, clamped and rounded, in the low byte of a word. */
ptx_u32 w8a8_code_of(const struct quantiser *q, const struct token *t, struct work quotient);
/* acc += w·codesᵀ, 16 features by 8 tokens and 32 of K. */
void w8a8_mma(struct product *q, ptx_u32 acc[4], const ptx_u32 w[4], const ptx_u32 codes[2]);
/* Makes the sums of a part of a tile 0, where the first products do not overwrite them. */
void w8a8_begin_wgmma_sums(struct product *q);
/*
 * A step of a block of a stage, 64 rows of A by `columns` of B and 32 of K. `later`: the stage is
 * not the first of its part.
 */
void w8a8_wgmma(struct product *q, uint32_t block, uint32_t step, uint32_t columns, ptx_u64 a,
                ptx_u64 b, ptx_pred later);
/* Where blocks have sums apart: adds those of a stage, whose products have completed. */
void w8a8_add_blocks(struct product *q, uint32_t strip);
/* block_scales.c, where scales are of groups of K: */
/* Finds the scales of a tile, and loads those of a stage along K, with which its part begins. */
void w8a8_locate_scales(struct product *q, ptx_u32 tile, ptx_u32 stage);
/* mma.sync: makes the sums of a stage's group 0. */
void w8a8_clear_group_sums(struct product *q);
/* Scales the sums of each group of a stage, adds them to the tile's, and loads the next scales. */
void w8a8_add_groups(struct product *q, ptx_u32 stage);

/* A sum as a number of the work type. */
struct work w8a8_work_of_sum(ptx_kernel *k, bool wide, const ptxgen_w8a8_spec *s, ptx_u32 sum);

/* output.c */
void w8a8_begin_output(struct product *q);

uint32_t w8a8_y_bytes(const struct product *q);
/* The address of feature n in an array with an element of `bytes` bytes for each feature. */
ptx_u64 w8a8_of_column(struct product *q, enum w8a8_param param, ptx_u32 n, uint32_t bytes);
/* Loads the scale and the zero point of token m if it exists, else 0. */
void w8a8_load_token(struct product *q, ptx_u32 m, struct row_token *t);
/* The address of y[m, n], or of the residual's element there. */
ptx_u64 w8a8_find_y(struct product *q, ptx_u32 m, ptx_u32 n);
ptx_u64 w8a8_find_residual(struct product *q, ptx_u32 m, ptx_u32 n);
/* The scale, bias and sum of weights of a column, and an output of the column. */
struct column {
    struct work scale, bias;
    ptx_s32 sum;
};
struct work w8a8_finish(struct product *q, const struct row_token *t, const struct column *c,
                        ptx_u32 acc);
/* Rounds a value of the work type to f32, for y of f32 and narrower. */
ptx_f32 w8a8_narrow(struct product *q, struct work v);
/* Stores element `i` of the row at y. */
void w8a8_store_one(struct product *q, ptx_u64 y, uint32_t i, struct work v);

/* wgmma_output.c */
void w8a8_begin_direct(struct product *q);
/* Makes a tile the current one, and loads the scales of its first outputs. */
void w8a8_locate_direct(struct product *q, ptx_u32 tile);
void w8a8_store_direct(struct product *q);

/* product.c */
struct gemm_place w8a8_place_of(struct product *q, ptx_u32 tile);
void w8a8_load_params(struct product *q);
/* Counts the tiles along M. */
void w8a8_count_tiles(struct product *q);
/* Finds the stages of the CTA or of its cluster. */
void w8a8_find_share(struct product *q);
void w8a8_new_sums(struct product *q);
ptx_u32 w8a8_shared_buffer(struct product *q, const char *name, uint32_t bytes, uint32_t align);
/* wgmma.c */
extern const struct gemm_ops w8a8_wgmma_ops;

#endif
