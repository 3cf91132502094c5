/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sparse24 kernel, yᵀ = w·xᵀ: 16 features of w are the rows of mma.sp's operand A, which is the
 * sparse one, 8 tokens of x the columns of its B. A persistent CTA a multiprocessor, wn × wm × wk
 * warps, walks through its share of the tiles (gemm/walk.h). In a stage of the pipeline each
 * warp copies 32 features by 128 of K of w, and all share the tokens of x that go with them:
 *
 *              K: stages ──▶                  warps wn × wm × wk = 2 × 1 × 2
 *            ┌─────────┬─────────┬───
 *    N:      │ w0 │ w2 │ w0 │ w2 │ …          32 × 128 of w: 4608 bytes in 16 bits, 2560 of s8
 *    32·wn   ├────┼────┼────┼────┼───
 *            │ w1 │ w3 │ w1 │ w3 │ …
 *            └─────────┴─────────┴───
 *    x:      [tile_m tokens] × 128·wk of K a stage
 *
 * With many tokens two warps along M share 64 features, and each has half of the tokens: 64 × 64
 * products of a warp read 2/3 of the shared memory that 32 × 128 products read.
 *
 * A weight and its metadata are read from memory once, by the lane that multiplies them: 9/16 of
 * the bytes of dense weights, or 5/8 for s8. The pipeline goes on across the ends of tiles.
 *
 * Instead of dividing tiles among CTAs, the two CTAs of a cluster may each have half of K, and read
 * each other's sums in shared memory, which is faster than a fix-up through the L2.
 */
#include "emit.h"

/* ---- packed weights ---- */

/*
 * Packed weights, from global memory to fragments of mma.sp. A lane copies the 16 bytes of each
 * piece that the same lane of some warp multiplies later, so no swizzle is needed.
 *
 * Tiles may extend past the end of N, and stages past the end of K. There, a block that exists is
 * read again, so that metadata is valid everywhere. Past K its values become zeros (x is zero there
 * as well, but zero times a weight that is not finite is not zero); past N no sum is stored.
 */

static bool steps_have_tail(const struct sparse24_product *q)
{
    return sparse24_steps(q->spec) % q->v->wk != 0;
}

static bool strips_have_tail(const struct sparse24_product *q)
{
    return sparse24_strips(q->spec) % sparse24_tile_strips(q->v) != 0;
}

static void begin_weights(struct sparse24_product *q)
{
    ptx_kernel *k = q->g.k;
    ptx_u32 lane = ptx_mul_lo_u32(k, q->g.at.lane, U32(GEMM_CHUNK_BYTES));
    ptx_u32 first = ptx_add_u32(k, lane, U32(sparse24_stage_x_bytes(q->spec, q->v)));
    ptx_u32 block = U32(sparse24_block_bytes(q->spec));
    q->w.to = q->w.at = ptx_mad_lo_u32(k, q->g.at.warp, block, first);
    if (q->v->wm > 1)
        q->w.at = ptx_mad_lo_u32(k, ptx_sub_u32(k, q->g.at.warp, q->along_m), block, first);
    q->w.strip = ptx_mov_u64(k, U64(0));
    q->w.step = ptx_mov_u32(k, U32(0));
}

/* Makes stage `stage` of the warp's features in tile `tile_n` the next one to be copied. */
static void locate_weights(struct sparse24_product *q, ptx_u32 tile_n, ptx_u32 stage)
{
    ptx_kernel *k = q->g.k;
    const ptxgen_sparse24_spec *s = q->spec;
    ptx_u32 strip = ptx_mad_lo_u32(k, tile_n, U32(q->v->wn), q->along_n);
    if (q->v->wm > 1)
        strip = ptx_mad_lo_u32(k, strip, U32(q->v->wm), q->along_m);
    if (strips_have_tail(q))
        strip = ptx_min_u32(k, strip, U32(sparse24_strips(s) - 1));
    ptx_u64 lane = ptx_mad_wide_u32(k, q->g.at.lane, U32(GEMM_CHUNK_BYTES), q->address[SPARSE24_W]);
    uint64_t strip_bytes = (uint64_t)sparse24_steps(s) * sparse24_block_bytes(s);
    ptx_mad_lo_u64_to(k, q->w.strip, ptx_cvt_u64_u32(k, strip), U64(strip_bytes), lane);
    ptx_mad_lo_u32_to(k, q->w.step, stage, U32(q->v->wk), q->along_k);
}

/* Issues the copies of the next stage to the shared address `slot`, and moves on by a stage. */
static void issue_weights(struct sparse24_product *q, ptx_u32 slot)
{
    ptx_kernel *k = q->g.k;
    struct sparse24_weights *w = &q->w;
    uint32_t pieces = sparse24_pieces(q->spec), steps = sparse24_steps(q->spec);
    bool tail = steps_have_tail(q);
    ptx_u32 size = U32(GEMM_CHUNK_BYTES), step = w->step;
    if (tail) {
        ptx_pred exists = ptx_setp_lt_u32(k, w->step, U32(steps));
        size = ptx_selp_u32(k, U32(GEMM_CHUNK_BYTES), U32(0), exists);
        step = ptx_min_u32(k, w->step, U32(steps - 1));
    }
    ptx_u64 from = ptx_mad_wide_u32(k, step, U32(sparse24_block_bytes(q->spec)), w->strip);
    ptx_u32 to = ptx_add_u32(k, slot, w->to);
    for (uint32_t i = 0; i <= pieces; i++) {
        int offset = (int)(i * SPARSE24_PIECE);
        if (tail && i < pieces)
            ptx_cp_async_cg_zfill(k, to, offset, from, offset, GEMM_CHUNK_BYTES, size);
        else
            ptx_cp_async_cg(k, to, offset, from, offset, GEMM_CHUNK_BYTES);
    }
    ptx_add_u32_to(k, w->step, w->step, U32(q->v->wk));
}

/* Prefetches the located weights of the first stages, before `stage_end`, into the L2. */
static void prefetch_weights(struct sparse24_product *q, ptx_u32 stage, ptx_u32 stage_end)
{
    ptx_kernel *k = q->g.k;
    uint32_t bytes = sparse24_block_bytes(q->spec);
    ptx_u32 below = ptx_add_u32(k, stage, U32(q->v->stages - 2)), step = ptx_mov_u32(k, q->w.step);
    ptx_u32 end = ptx_min_u32(k, below, stage_end), at = ptx_mov_u32(k, stage);
    ptx_if(k, ptx_setp_eq_u32(k, q->g.at.lane, U32(0)))
        ptx_for(k, at, end, U32(1)) {
            ptx_nounroll(k);
            ptx_if(k, ptx_setp_lt_u32(k, step, U32(sparse24_steps(q->spec))))
                ptx_cp_async_bulk_prefetch_L2(k, ptx_mad_wide_u32(k, step, U32(bytes), q->w.strip),
                                              0, U32(bytes));
            ptx_add_u32_to(k, step, step, U32(q->v->wk));
        }
}

/* Loads the lane's operand A of tile t in mma step i. */
static void load_weights(struct sparse24_product *q, ptx_u32 slot, uint32_t i, uint32_t t,
                         ptx_u32 a[4])
{
    ptx_u32 at = ptx_add_u32(q->g.k, slot, q->w.at);
    uint32_t piece = i * SPARSE24_TILES + t % SPARSE24_TILES;
    uint32_t offset = t / SPARSE24_TILES * sparse24_block_bytes(q->spec) + piece * SPARSE24_PIECE;
    ptx_ld_shared_v4_u32_to(q->g.k, a, at, (int)offset);
}

/* Loads word j of the lane's metadata. */
static void load_metadata_word(struct sparse24_product *q, ptx_u32 slot, uint32_t j,
                               ptx_u32 words[SPARSE24_WARP_TILES])
{
    ptx_u32 at = ptx_add_u32(q->g.k, slot, q->w.at);
    uint32_t offset = sparse24_pieces(q->spec) * SPARSE24_PIECE + j * SPARSE24_TILES * 4;
    for (uint32_t strip = 0; strip < q->v->wm; strip++)
        ptx_ld_shared_v2_u32_to(q->g.k, words + strip * SPARSE24_TILES, at,
                                (int)(strip * sparse24_block_bytes(q->spec) + offset));
}

/* ---- products ---- */

/*
 * The products of a stage by mma.sp. An mma step takes 64 bytes of K of each token: m16n8k32 in
 * 16-bit types, m16n8k64 of s8. Operands of x are loaded one load ahead of the products, those of w
 * after their last product, across the end of a stage as well: the wait for the next stage comes
 * one mma step before the end of the current one.
 *
 * The metadata words of all 32 lanes are used: in 16-bit types two mma steps share a word, and the
 * selector says whose metadata an mma step takes.
 */

/*
 * mma steps in the text: all of a stage, or with many tokens in 16-bit types those of one word, in
 * a loop, because ptxas takes twice as long for all.
 */
static uint32_t text_steps(const struct sparse24_product *q)
{
    bool many = sparse24_row_groups(q) >= 8 && !sparse24_is_s8(q->spec);
    return many ? sparse24_word_mmas(q->spec) : sparse24_mmas(q->spec);
}

/* ---- operands ---- */

/*
 * Shared addresses of the operands of the text's first mma step: of a stage, or of one of its
 * words.
 */
struct bases {
    ptx_u32 x, weights, metadata;
};

static struct bases find_bases(struct sparse24_product *q, ptx_u32 slot, ptx_u32 word)
{
    ptx_kernel *k = q->g.k;
    uint32_t pieces = sparse24_word_mmas(q->spec) * SPARSE24_TILES,
             x_bytes = q->v->tile_m * GEMM_BLOCK_BYTES;
    struct bases b = {.x = ptx_mad_lo_u32(k, word, U32(x_bytes), slot)};
    b.weights = ptx_mad_lo_u32(k, word, U32(pieces * SPARSE24_PIECE), slot);
    b.metadata = ptx_mad_lo_u32(k, word, U32(SPARSE24_TILES * 4), slot);
    return b;
}

/* The lane's offset in a stage for the first block of the warp's K and the first of its tokens. */
static ptx_u32 find_x_lane(struct sparse24_product *q)
{
    ptx_kernel *k = q->g.k;
    uint32_t blocks = sparse24_mmas(q->spec) * SPARSE24_MMA_BYTES / GEMM_BLOCK_BYTES;
    ptx_u32 lane = gemm_operand_lane(k, &q->x, U32(0), ptx_mul_lo_u32(k, q->along_k, U32(blocks)));
    if (q->v->wm == 1)
        return lane;
    return ptx_mad_lo_u32(k, q->along_m, U32(q->v->warp_m * GEMM_BLOCK_BYTES), lane);
}

static void begin_operands(struct sparse24_product *q)
{
    q->x_lane = find_x_lane(q);
    struct sparse24_operands *o = &q->operands;
    for (int i = 0; i < 2; i++)
        gemm_new_registers(q->g.k, o->x[i], 4);
    for (uint32_t t = 0; t < sparse24_warp_tiles(q->v); t++)
        gemm_new_registers(q->g.k, o->a[t], 4);
    gemm_new_registers(q->g.k, o->metadata, sparse24_warp_tiles(q->v));
}

/* Issues load p of mma step i: the tokens of group p. */
static void load_x(struct sparse24_product *q, const struct bases *b, uint32_t i, uint32_t p)
{
    enum {
        BLOCK_MMAS = GEMM_BLOCK_BYTES / SPARSE24_MMA_BYTES,
        MMA_STEPS = SPARSE24_MMA_BYTES / 32
    };
    ptx_u32 lane = ptx_add_u32(q->g.k, b->x, q->x_lane);
    ptx_u32 step = gemm_operand_step(q->g.k, &q->x, lane, i % BLOCK_MMAS * MMA_STEPS);
    uint32_t row8 = i / BLOCK_MMAS * q->v->tile_m / 8 + p;
    gemm_operand_load_to(q->g.k, step, row8, q->operands.x[(i * sparse24_row_groups(q) + p) % 2]);
}

/* Loads the word of metadata that begins with mma step i, if there is one. */
static void load_metadata(struct sparse24_product *q, const struct bases *b, uint32_t i)
{
    if (i % sparse24_word_mmas(q->spec) == 0)
        load_metadata_word(q, b->metadata, i / sparse24_word_mmas(q->spec), q->operands.metadata);
}

/* Loads the operands of the first mma step of the stage at `slot`. */
static void load_first_operands(struct sparse24_product *q, ptx_u32 slot)
{
    const struct bases b = {slot, slot, slot};
    load_x(q, &b, 0, 0);
    load_metadata(q, &b, 0);
    for (uint32_t t = 0; t < sparse24_warp_tiles(q->v); t++)
        load_weights(q, b.weights, 0, t, q->operands.a[t]);
}

/* ---- products ---- */

static bool has_ordered_metadata(const ptx_target *target)
{
    return target->max_ptx == 0 || target->max_ptx >= 85;
}

/* The selector is part of the instruction, so each selector has an emitter call. */
static void mma_16(struct sparse24_product *q, const ptx_u32 acc[4], const ptx_u32 a[4],
                   const ptx_u32 b[4], ptx_u32 metadata, int selector)
{
    ptx_kernel *k = q->g.k;
    bool ordered = has_ordered_metadata(&q->plan->target.ptx);
    ptx_f32 c[4];
    for (int r = 0; r < 4; r++)
        c[r] = ptx_u32_as_f32(acc[r]);
    if (q->spec->type == PTXGEN_SPARSE24_BF16 && ordered)
        ptx_mma_spo_m16n8k32_f32_bf16_to(k, c, a, b, c, metadata, selector);
    else if (q->spec->type == PTXGEN_SPARSE24_BF16)
        ptx_mma_sp_m16n8k32_f32_bf16_to(k, c, a, b, c, metadata, selector);
    else if (ordered)
        ptx_mma_spo_m16n8k32_f32_f16_to(k, c, a, b, c, metadata, selector);
    else
        ptx_mma_sp_m16n8k32_f32_f16_to(k, c, a, b, c, metadata, selector);
}

static void mma_s8(struct sparse24_product *q, const ptx_u32 acc[4], const ptx_u32 a[4],
                   const ptx_u32 b[4], ptx_u32 metadata)
{
    ptx_s32 c[4];
    for (int r = 0; r < 4; r++)
        c[r] = ptx_u32_as_s32(acc[r]);
    if (has_ordered_metadata(&q->plan->target.ptx))
        ptx_mma_spo_m16n8k64_s32_s8_s8_to(q->g.k, c, a, b, c, metadata, 0);
    else
        ptx_mma_sp_m16n8k64_s32_s8_s8_to(q->g.k, c, a, b, c, metadata, 0);
}

/* Multiplies tile t by token group p in mma step i. */
static void multiply_tile(struct sparse24_product *q, uint32_t i, uint32_t p, uint32_t t)
{
    struct sparse24_operands *o = &q->operands;
    const ptx_u32 *b = o->x[(i * sparse24_row_groups(q) + p) % 2];
    ptx_u32 metadata = o->metadata[t];
    if (sparse24_is_s8(q->spec))
        mma_s8(q, q->acc[t][p], o->a[t], b, metadata);
    else
        mma_16(q, q->acc[t][p], o->a[t], b, metadata, (int)(i % sparse24_word_mmas(q->spec)));
}

/*
 * Multiplies token group p in mma step i, and issues the loads of what follows; at the end of the
 * text these are the loads of its next iteration.
 */
static void multiply_group(struct sparse24_product *q, const struct bases *present,
                           const struct bases *next, uint32_t i, uint32_t p)
{
    bool last = p + 1 == sparse24_row_groups(q);
    uint32_t following = (i + 1) % text_steps(q);
    const struct bases *from = following ? present : next;
    if (last)
        load_x(q, from, following, 0);
    else
        load_x(q, present, i, p + 1);
    for (uint32_t t = 0; t < sparse24_warp_tiles(q->v); t++) {
        multiply_tile(q, i, p, t);
        if (last)
            load_weights(q, from->weights, following, t, q->operands.a[t]);
    }
    if (last)
        load_metadata(q, from, following);
}

static void multiply_step(struct sparse24_product *q, const struct bases *present,
                          const struct bases *next, uint32_t i)
{
    for (uint32_t p = 0; p < sparse24_row_groups(q); p++)
        multiply_group(q, present, next, i, p);
}

static void multiply_words(struct sparse24_product *q, ptx_u32 slot)
{
    ptx_kernel *k = q->g.k;
    uint32_t last = text_steps(q) - 1;
    ptx_u32 word = ptx_mov_u32(k, U32(0));
    ptx_for(k, word, U32(SPARSE24_WORDS), U32(1)) {
        ptx_nounroll(k);
        struct bases present = find_bases(q, slot, word);
        for (uint32_t i = 0; i < last; i++)
            multiply_step(q, &present, NULL, i);
        ptx_if(k, ptx_setp_eq_u32(k, word, U32(SPARSE24_WORDS - 1)))
            gemm_pipeline_next(k, &q->g.pipeline);
        struct bases next = find_bases(q, q->g.pipeline.read, ptx_xor_b32(k, word, U32(1)));
        multiply_step(q, &present, &next, last);
    }
}

/* Adds the products of the stage in the read slot, and loads the next stage's first operands. */
static void multiply(struct gemm *g, const struct gemm_part *part)
{
    struct sparse24_product *q = sparse24_of(g);
    (void)part;
    ptx_u32 slot = ptx_mov_u32(q->g.k, q->g.pipeline.read);
    uint32_t steps = sparse24_mmas(q->spec);
    gemm_pipeline_issue(q->g.k, &q->g.pipeline);
    if (text_steps(q) < steps) {
        multiply_words(q, slot);
        return;
    }
    const struct bases present = {slot, slot, slot};
    for (uint32_t i = 0; i + 1 < steps; i++)
        multiply_step(q, &present, NULL, i);
    gemm_pipeline_next(q->g.k, &q->g.pipeline);
    const struct bases next = {q->g.pipeline.read, q->g.pipeline.read, q->g.pipeline.read};
    multiply_step(q, &present, &next, steps - 1);
}

/* ---- the pipeline's copies ---- */

static void locate(void *user, const struct gemm_walk *w)
{
    struct sparse24_product *q = user;
    ptx_kernel *k = q->g.k;
    struct gemm_place place = sparse24_place_of(q, w->tile);
    ptx_u32 first_row = ptx_mul_lo_u32(k, place.m, U32(q->v->tile_m));
    ptx_u32 stage = sparse24_stage_of(q, w->stage);
    gemm_operand_locate(k, &q->x, q->address[SPARSE24_X], first_row, q->g.m, stage);
    locate_weights(q, place.n, stage);
}

static void issue(void *user, ptx_u32 slot)
{
    struct sparse24_product *q = user;
    issue_weights(q, slot);
    gemm_operand_issue(q->g.k, &q->x, slot);
}

/*
 * Programmatic dependent launch: the weights of the first stages are prefetched into the L2 while
 * the kernel ahead still runs. Accesses to x, workspace and y wait for the end of that kernel.
 */
static void wait_for_previous(struct sparse24_product *q)
{
    ptx_kernel *k = q->g.k;
    if (!gemm_overlaps(&q->plan->target))
        return;
    ptx_section(k, "weights to the L2, while the kernel ahead ends");
    ptx_griddepcontrol_launch_dependents(k);
    struct gemm_walk walk = gemm_walk_begin(k, q->g.first, q->g.end);
    gemm_walk_next(k, &q->g.division, &walk);
    ptx_u32 stage = sparse24_stage_of(q, walk.stage);
    struct gemm_place place = sparse24_place_of(q, walk.tile);
    locate_weights(q, place.n, stage);
    prefetch_weights(q, walk.stage, walk.stage_end);
    ptx_griddepcontrol_wait(k);
}

/* ---- the entry ---- */

static void find_warp(struct sparse24_product *q)
{
    ptx_kernel *k = q->g.k;
    q->g.at = gemm_find_threads(k);
    q->along_m = q->v->wm == 1 ? U32(0) : ptx_rem_u32(k, q->g.at.warp, U32(q->v->wm));
    ptx_u32 rest = gemm_divide(k, q->g.at.warp, q->v->wm);
    q->along_k = q->v->wk == 1 ? U32(0) : gemm_divide(k, rest, q->v->wn);
    q->along_n = q->v->wk == 1   ? rest
                 : q->v->wn == 1 ? U32(0)
                                 : ptx_rem_u32(k, rest, U32(q->v->wn));
}

static ptx_u64 in_bytes(ptx_kernel *k, ptx_u64 elements, uint32_t element)
{
    return element == 1 ? elements : ptx_shl_b64(k, elements, U32(element / 2));
}

static void begin(struct gemm *g)
{
    struct sparse24_product *q = sparse24_of(g);
    const ptxgen_tile *v = q->v;
    ptx_kernel *k = g->k;
    sparse24_load_params(q);
    find_warp(q);
    q->x = (struct gemm_operand){.rows = v->tile_m,
                                 .blocks = sparse24_x_blocks(q->spec, v),
                                 .threads = gemm_tile_threads(v),
                                 .row_bytes = (uint32_t)sparse24_x_bytes(q->spec),
                                 .deep = true};
    ptx_u64 pitch = in_bytes(k, q->address[SPARSE24_X_STRIDE], sparse24_element(q->spec));
    gemm_operand_begin(k, &g->at, pitch, &q->x);
    begin_weights(q);
    begin_operands(q);
    sparse24_find_share(q);
    g->pipeline = (struct gemm_pipeline){.stages = v->stages,
                                         .stage_bytes = sparse24_stage_bytes(q->spec, v),
                                         .division = &g->division,
                                         .locate = locate,
                                         .issue = issue,
                                         .user = q};
    wait_for_previous(q);
    gemm_pipeline_begin(k, &g->pipeline, g->first, g->end);
    q->staging = ptx_shared_address(k, ptx_shared_declare(k, "sums", sparse24_sums_bytes(v), 16));
}

static void begin_consumer(struct gemm *g)
{
    load_first_operands(sparse24_of(g), g->pipeline.read);
}

static void epilogue(struct gemm *g, struct gemm_part *part)
{
    struct sparse24_product *q = sparse24_of(g);
    sparse24_output_begin(q);
    gemm_epilogue(g, part);
}

const struct gemm_ops sparse24_mma_ops = {.begin = begin,
                                          .begin_consumer = begin_consumer,
                                          .clear = sparse24_clear,
                                          .multiply = multiply,
                                          .epilogue = epilogue};
