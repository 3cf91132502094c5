/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The product entries of w8a8 on wgmma (sm_90a). One or more producer warps of a CTA issue tensor
 * copies of stages, and consumer warpgroups multiply, with both operands in shared memory:
 *
 *               K: stages of wk · 128 bytes ──▶
 *             ┌─────────┬─────────┬───      boxes of 128 bytes of K by the features of a tile,
 *    w:       │ stage 0 │ stage 1 │ …       then boxes by the tile's tokens, or by those of the
 *             ├─────────┼─────────┼───      launch if these are fewer
 *    codes:   │ stage 0 │ stage 1 │ …
 *             └─────────┴─────────┴───
 *
 * In tiles of 64 and 128 tokens, 64 tokens are the rows of wgmma's operand A, and features the
 * columns of its operand B. In tiles of 16 and 256 tokens, 64 features are the rows, and all or
 * half of the tokens the columns. A multiprocessor takes 105 bytes a nanosecond from the L2, and
 * memory gives it 35; 64 tokens and 32 features use both alike.
 *
 * Weights in flight delay the codes of the quantising kernel, so only 40 KB of weights a CTA are
 * copied ahead of them. In tiles of up to 16 tokens one producer paces the weights and another
 * copies codes. Weights that are read once have the L2 policy evict_first (policy.h). Measurements
 * and rejected designs are in docs/notes/w8a8.md.
 */
#include "../policy.h"
#include "../gemm/ring.h"
#include "../gemm/wgmma.h"
#include "emit.h"

enum { STEPS = W8A8_BLOCK / 32, WARPGROUP_ROWS = 64, MOST_LAG = 2, DEEP_RING = 8 };

struct wgmma {
    struct product q;
    struct gemm_ring ring;
    ptx_u64 w_map, codes_map;
    uint32_t w_block, codes_block; /* bytes that a block of 128 bytes of K has in a stage */
    uint32_t codes_offset;         /* offset of the codes in a stage, after w */
    bool one_tile;
    uint32_t lag; /* wgmma groups that may be in flight behind the newest */
};

/* ---- producer ---- */

struct producer {
    ptx_u32 row, token; /* the tile's first feature and token */
    ptx_u32 bytes;      /* that the producer copies in a stage */
    ptx_u32 issued;     /* stages that a paced producer has issued */
    struct gemm_ring_place place;
};

/* Bytes of a stage's codes, of the tokens that exist where tokens are few, plus `more`. */
static ptx_u32 code_bytes(struct wgmma *h, uint32_t more)
{
    const struct product *q = &h->q;
    uint32_t depth = w8a8_depth(q->v);
    if (w8a8_copies_present_tokens(q->v)) {
        ptx_u32 tokens = ptx_min_u32(q->k, q->m, U32(q->v->tile_m));
        return ptx_mad_lo_u32(q->k, tokens, U32(depth), U32(more));
    }
    return U32(more + q->v->tile_m * depth);
}

static uint32_t weight_bytes(const struct wgmma *h)
{
    return h->q.v->wk * h->w_block;
}

/* Issues the copy of a box for each block of the stage; `once`: no other CTA reads these bytes. */
static void issue_boxes(struct wgmma *h, const struct producer *s, ptx_u32 stage, ptx_u64 map,
                        ptx_u32 row, uint32_t to, uint32_t block, uint32_t barrier, bool once)
{
    ptx_kernel *k = h->q.k;
    ptx_u32 column = ptx_mul_lo_u32(k, stage, U32(w8a8_depth(h->q.v)));
    for (uint32_t i = 0; i < h->q.v->wk; i++) {
        ptx_u32 here = i ? ptx_add_u32(k, column, U32(i * W8A8_BLOCK)) : column;
        const ptx_s32 corner[2] = {ptx_u32_as_s32(here), ptx_u32_as_s32(row)};
        int at = (int)(to + i * block);
        if (once)
            ptx_cp_async_bulk_tensor_2d_g2s_hint(k, s->place.slot, at, map, corner,
                                                 s->place.barrier, (int)barrier, EVICT_FIRST);
        else
            ptx_cp_async_bulk_tensor_2d_g2s(k, s->place.slot, at, map, corner, s->place.barrier,
                                            (int)barrier);
    }
}

static void issue_weights(struct wgmma *h, const struct producer *s, ptx_u32 stage)
{
    issue_boxes(h, s, stage, h->w_map, s->row, 0, h->w_block, 0, w8a8_takes_all_tokens(h->q.v));
}

static void issue_codes(struct wgmma *h, const struct producer *s, ptx_u32 stage)
{
    uint32_t barrier = w8a8_has_two_producers(h->q.v) ? gemm_ring_side_offset(&h->ring) : 0;
    issue_boxes(h, s, stage, h->codes_map, s->token, h->codes_offset, h->codes_block, barrier,
                false);
}

/* Moves the producer to the next tile of the walk. */
static void move_to(struct wgmma *h, struct producer *s, struct gemm_walk *walk)
{
    struct product *q = &h->q;
    ptx_kernel *k = q->k;
    gemm_walk_next(k, &q->division, walk);
    struct gemm_place place = w8a8_place_of(q, walk->tile);
    ptx_mul_lo_u32_to(k, s->token, place.m, U32(q->v->tile_m));
    ptx_mov_u32_to(k, s->row, w8a8_find_block(q, place.n).first);
}

/*
 * Stages of the CTA's first tile whose weights are copied ahead: only as many as keep the memory
 * busy, because the stores of the quantising kernel, and the codes, queue behind them.
 */
static uint32_t stages_ahead(const struct wgmma *h)
{
    enum { AHEAD_BYTES = 40 * 1024 };
    const ptxgen_w8a8_variant *v = h->q.v;
    uint32_t own = w8a8_own_steps(h->q.spec, v);
    uint32_t bytes = weight_bytes(h), ahead = bytes < AHEAD_BYTES ? AHEAD_BYTES / bytes : 1;
    uint32_t most = own < v->stages ? own : v->stages;
    return ahead < most ? ahead : most;
}

typedef void issue_part(struct wgmma *h, const struct producer *s, ptx_u32 stage);

/*
 * Issues the copies of the first stages: their weights, while all slots are empty, or their codes.
 */
static void issue_ahead(struct wgmma *h, const struct producer *first, issue_part *issue,
                        bool claims)
{
    ptx_kernel *k = h->q.k;
    struct producer s = *first;
    for (uint32_t i = 0; i < stages_ahead(h); i++) {
        if (i) {
            s.place.slot = ptx_add_u32(k, first->place.slot, U32(i * h->ring.stage_bytes));
            s.place.barrier = ptx_add_u32(k, first->place.barrier, U32(8 * i));
        }
        if (claims)
            ptx_mbarrier_arrive_expect_tx(k, s.place.barrier, 0, s.bytes);
        issue(h, &s, U32(i));
    }
}

static struct producer new_producer(struct wgmma *h, ptx_u32 bytes)
{
    struct producer s = {.row = ptx_mov_u32(h->q.k, U32(0)), .bytes = bytes};
    s.token = ptx_mov_u32(h->q.k, U32(0));
    s.place = gemm_ring_first(h->q.k, &h->ring, true);
    return s;
}

/* Moves a producer past the stages that were copied ahead. */
static void pass_ahead(struct wgmma *h, struct producer *s, struct gemm_walk *walk)
{
    ptx_kernel *k = h->q.k;
    uint32_t ahead = stages_ahead(h), slot = ahead % h->q.v->stages;
    ptx_add_u32_to(k, walk->stage, walk->stage, U32(ahead));
    ptx_add_u32_to(k, s->place.slot, s->place.slot, U32(slot * h->ring.stage_bytes));
    ptx_add_u32_to(k, s->place.barrier, s->place.barrier, U32(8 * slot));
    if (slot < ahead)
        ptx_mov_u32_to(k, s->place.parity, U32(0));
}

static void issue_stage(struct wgmma *h, const struct producer *s, ptx_u32 stage)
{
    gemm_ring_claim_some(h->q.k, &h->ring, &s->place, s->bytes);
    issue_weights(h, s, stage);
    issue_codes(h, s, stage);
}

static void issue_tile(struct wgmma *h, struct producer *s, struct gemm_walk *walk,
                       issue_part *issue)
{
    ptx_kernel *k = h->q.k;
    ptx_for(k, walk->stage, walk->stage_end, U32(1)) {
        ptx_nounroll(k);
        issue(h, s, walk->stage);
        gemm_ring_advance(k, &h->ring, &s->place, NULL);
    }
}

/* Issues the copies of the rest of the walk, which is at its first tile. */
static void issue_tiles(struct wgmma *h, struct producer *s, struct gemm_walk *walk,
                        issue_part *issue)
{
    struct product *q = &h->q;
    ptx_kernel *k = q->k;
    if (h->one_tile) {
        issue_tile(h, s, walk, issue);
        return;
    }
    ptx_loop(k, tiles) {
        ptx_nounroll(k);
        issue_tile(h, s, walk, issue);
        ptx_loop_break_if(&tiles, ptx_setp_le_u32(k, walk->end, q->first), false);
        move_to(h, s, walk);
    }
}

/* The loop of a single producer; it copies the first weights while the quantising kernel runs. */
static void produce(struct wgmma *h)
{
    struct product *q = &h->q;
    ptx_kernel *k = q->k;
    struct producer s = new_producer(h, code_bytes(h, weight_bytes(h)));
    struct gemm_walk walk = gemm_walk_begin(k, q->first, q->end);
    move_to(h, &s, &walk);
    issue_ahead(h, &s, issue_weights, true);
    ptx_griddepcontrol_wait(k);
    issue_ahead(h, &s, issue_codes, false);
    pass_ahead(h, &s, &walk);
    issue_tiles(h, &s, &walk, issue_stage);
}

/* ---- separate producers for weights and codes ---- */

/*
 * Paces the producer of weights until the ring is full: a stage is issued when an earlier stage has
 * arrived, so that only as many bytes are in flight as keep the memory busy.
 */
static void keep_pace(struct wgmma *h, const struct producer *s)
{
    enum { PACE_BYTES = 48 * 1024 }; /* three stages of 64 rows, no more than the least ring */
    ptx_kernel *k = h->q.k;
    uint32_t pace = (PACE_BYTES + weight_bytes(h) - 1) / weight_bytes(h);
    ptx_u32 landed = ptx_sub_u32(k, s->issued, U32(pace));
    ptx_if(k, ptx_setp_lt_u32(k, landed, U32(h->q.v->stages - pace))) {
        struct gemm_ring_place place = {.parity = U32(0)};
        place.barrier = ptx_mad_lo_u32(k, landed, U32(8), h->ring.barriers);
        gemm_ring_wait(k, &place);
    }
    ptx_add_u32_to(k, s->issued, s->issued, U32(1));
}

static void issue_stage_weights(struct wgmma *h, const struct producer *s, ptx_u32 stage)
{
    keep_pace(h, s);
    gemm_ring_claim_some(h->q.k, &h->ring, &s->place, s->bytes);
    issue_weights(h, s, stage);
}

static void issue_stage_codes(struct wgmma *h, const struct producer *s, ptx_u32 stage)
{
    gemm_ring_claim_side(h->q.k, &h->ring, &s->place, s->bytes);
    issue_codes(h, s, stage);
}

static void issue_apart(struct wgmma *h, ptx_u32 bytes, issue_part *issue)
{
    struct product *q = &h->q;
    struct producer s = new_producer(h, bytes);
    s.issued = ptx_mov_u32(q->k, U32(0));
    struct gemm_walk walk = gemm_walk_begin(q->k, q->first, q->end);
    move_to(h, &s, &walk);
    issue_tiles(h, &s, &walk, issue);
}

/*
 * The loops of two producer warps: one copies weights, which do not depend on the quantising
 * kernel, and one copies codes.
 */
static void produce_apart(struct wgmma *h)
{
    ptx_kernel *k = h->q.k;
    for (uint32_t codes = 0; codes < 2; codes++) {
        uint32_t producer = w8a8_consumer_threads(h->q.v) + 32 * codes;
        ptx_if(k, ptx_setp_eq_u32(k, h->q.at.thread, U32(producer))) {
            if (codes)
                ptx_griddepcontrol_wait(k);
            issue_apart(h, codes ? code_bytes(h, 0) : U32(weight_bytes(h)),
                        codes ? issue_stage_codes : issue_stage_weights);
        }
    }
}

/* ---- consumer ---- */

struct consumer {
    struct wgmma *h;
    ptx_u32 w_at, codes_at; /* bytes from a stage's start to the warpgroup's features and codes */
    struct gemm_ring_place read;
    ptx_u32 to_read;        /* stages of the CTA after the current one */
    ptx_u32 held[MOST_LAG]; /* full barriers of the slots that are to be released next */
    ptx_pred releases;      /* the lane releases slots */
    ptx_pred always;
    struct direct direct;
};

/*
 * A slot is released when its products have completed, while those of later stages are in flight.
 */
static void multiply_stage(struct consumer *c, ptx_u32 stage, ptx_u32 first)
{
    struct wgmma *h = c->h;
    ptx_kernel *k = h->q.k;
    ptx_u64 w = gemm_wgmma_descriptor(k, ptx_add_u32(k, c->read.slot, c->w_at));
    ptx_u64 codes = gemm_wgmma_descriptor(k, ptx_add_u32(k, c->read.slot, c->codes_at));
    bool tokens = w8a8_tokens_are_m(h->q.v);
    ptx_u64 a_of = tokens ? codes : w, b_of = tokens ? w : codes;
    uint32_t steps = h->q.v->wk * STEPS;
    uint32_t columns = tokens ? w8a8_group_features(h->q.v) : w8a8_group_tokens(h->q.v);
    ptx_pred later = ptx_setp_ne_u32(k, stage, first); /* the first products overwrite the sums */
    ptx_wgmma_fence(k);
    uint32_t a_block = tokens ? h->codes_block : h->w_block;
    uint32_t b_block = tokens ? h->w_block : h->codes_block;
    for (uint32_t i = 0; i < steps; i++) {
        uint32_t block = i / STEPS, step = i % STEPS * 32;
        ptx_u64 a = gemm_wgmma_advance(k, a_of, block * a_block + step);
        ptx_u64 b = gemm_wgmma_advance(k, b_of, block * b_block + step);
        ptx_wgmma_k32_s32_s8_s8(k, (int)columns, h->q.acc[0][0], a, b, i ? c->always : later);
    }
    ptx_wgmma_commit_group(k);
    ptx_wgmma_wait_group(k, (int)h->lag);
    ptx_u32 done = ptx_add_u32(k, first, U32(h->lag));
    gemm_ring_release(k, &h->ring, c->held[h->lag - 1],
                      ptx_setp_bool_ge_u32(k, stage, done, c->releases));
    if (h->lag > 1)
        ptx_mov_u32_to(k, c->held[1], c->held[0]);
    gemm_ring_next(k, &h->ring, &c->read, c->held[0], c->to_read);
    if (h->ring.noted)
        gemm_ring_side_wait(k, &h->ring, &c->read);
}

/* Releases all held slots at the end of a tile. */
static void end_stages(struct consumer *c)
{
    struct wgmma *h = c->h;
    ptx_wgmma_wait_group(h->q.k, 0);
    if (h->one_tile)
        return;
    for (uint32_t i = 0; i < h->lag && i < h->q.division.stages; i++)
        gemm_ring_release(h->q.k, &h->ring, c->held[i], c->releases);
}

static void multiply_tile(struct consumer *c, struct gemm_walk *w)
{
    struct product *q = &c->h->q;
    ptx_kernel *k = q->k;
    ptx_section(k, "the next tile");
    ptx_u32 first = ptx_mov_u32(k, w->stage);
    if (w8a8_tokens_are_m(q->v))
        w8a8_locate_direct(&c->direct, w8a8_place_of(q, w->tile));
    else
        w8a8_begin_part(q, w->tile);
    ptx_section(k, "stages");
    ptx_for(k, w->stage, w->stage_end, U32(1)) {
        ptx_nounroll(k);
        multiply_stage(c, w->stage, first);
    }
    end_stages(c);
    ptx_section(k, "the end of the tile: scale, store");
    if (w8a8_tokens_are_m(q->v))
        w8a8_store_direct(&c->direct);
    else
        w8a8_emit_output(q, w, first);
}

/*
 * Clears the rows of codes that no copy brings, where there are fewer tokens than wgmma has rows:
 * their products are not used, but shared memory must be initialised.
 */
static void clear_missing_codes(struct wgmma *h)
{
    enum { CHUNK = 16 };
    struct product *q = &h->q;
    ptx_kernel *k = q->k;
    const ptx_u32 zeros[4] = {U32(0), U32(0), U32(0), U32(0)};
    uint32_t step = w8a8_consumer_threads(q->v) * CHUNK;
    ptx_if(k, ptx_setp_lt_u32(k, q->m, U32(q->v->tile_m))) {
        ptx_u32 row = ptx_mad_lo_u32(k, q->m, U32(W8A8_BLOCK), U32(h->codes_offset));
        ptx_u32 from = ptx_mad_lo_u32(k, q->at.thread, U32(CHUNK), row);
        ptx_u32 slot = ptx_mov_u32(k, h->ring.slots);
        ptx_for(k, slot, h->ring.slots_end, U32(h->ring.stage_bytes)) {
            ptx_nounroll(k);
            ptx_u32 to = ptx_add_u32(k, slot, from);
            ptx_u32 end = ptx_add_u32(k, slot, U32(h->codes_offset + h->codes_block));
            ptx_for(k, to, end, U32(step)) {
                ptx_nounroll(k);
                for (uint32_t i = 0; i < q->v->wk; i++)
                    ptx_st_shared_v4_u32(k, to, (int)(i * h->codes_block), zeros);
            }
        }
        ptx_fence_proxy_async_shared_cta(k);
        gemm_sync(k, &q->at);
    }
}

/* Warps along the rows of wgmma, four of which are a warpgroup, come first. */
static void find_warp(struct product *q)
{
    const ptxgen_w8a8_variant *v = q->v;
    bool tokens = w8a8_tokens_are_m(v);
    uint32_t rows = tokens ? v->wm : v->wn;
    ptx_u32 along_rows = ptx_and_b32(q->k, q->at.warp, U32(rows - 1));
    ptx_u32 along_columns = gemm_divide(q->k, q->at.warp, rows);
    q->along_m = tokens ? along_rows : along_columns;
    q->along_n = tokens ? along_columns : along_rows;
    q->along_k = U32(0);
}

static void find_operands(struct consumer *c)
{
    const struct product *q = &c->h->q;
    ptx_kernel *k = q->k;
    bool tokens = w8a8_tokens_are_m(q->v);
    ptx_u32 group = ptx_shr_u32(k, tokens ? q->along_m : q->along_n, U32(2));
    ptx_u32 rows_at = ptx_mul_lo_u32(k, group, U32(WARPGROUP_ROWS * W8A8_BLOCK));
    uint32_t columns = tokens ? w8a8_group_features(q->v) : w8a8_group_tokens(q->v);
    ptx_u32 columns_at =
        ptx_mul_lo_u32(k, tokens ? q->along_n : q->along_m, U32(columns * W8A8_BLOCK));
    c->w_at = tokens ? columns_at : rows_at;
    c->codes_at = ptx_add_u32(k, tokens ? rows_at : columns_at, U32(c->h->codes_offset));
}

static void consume(struct wgmma *h)
{
    struct product *q = &h->q;
    ptx_kernel *k = q->k;
    struct consumer c = {.h = h};
    q->at.team = w8a8_consumer_threads(q->v);
    q->at.barrier = U32(1);
    bool tokens_are_m = w8a8_tokens_are_m(q->v);
    if (w8a8_copies_present_tokens(q->v))
        clear_missing_codes(h);
    ptx_griddepcontrol_wait(k);
    find_operands(&c);
    c.releases = gemm_ring_releasers(k, &h->ring, &q->at);
    c.read = gemm_ring_first(k, &h->ring, false);
    for (uint32_t i = 0; i < h->lag; i++)
        c.held[i] = ptx_mov_u32(k, c.read.barrier);
    c.to_read = ptx_sub_u32(k, ptx_sub_u32(k, q->end, q->first), U32(1));
    c.always = ptx_setp_eq_u32(k, q->m, q->m);
    w8a8_new_sums(q);
    if (tokens_are_m)
        w8a8_begin_direct(q, &c.direct);
    else
        w8a8_begin_output(q);
    gemm_ring_wait(k, &c.read);
    if (h->ring.noted)
        gemm_ring_side_wait(k, &h->ring, &c.read);
    struct gemm_walk walk = gemm_walk_begin(k, q->first, q->end);
    if (h->one_tile) {
        gemm_walk_next(k, &q->division, &walk);
        multiply_tile(&c, &walk);
        return;
    }
    ptx_loop(k, tiles) {
        ptx_nounroll(k);
        gemm_walk_next(k, &q->division, &walk);
        multiply_tile(&c, &walk);
        ptx_loop_break_if(&tiles, ptx_setp_le_u32(k, walk.end, q->first), false);
    }
}

/* ---- the entry ---- */

static void begin(struct wgmma *h)
{
    struct product *q = &h->q;
    ptx_kernel *k = q->k;
    w8a8_load_params(q);
    ptx_param w_map = ptx_param_declare(k, "w_map", W8A8_MAP_BYTES, W8A8_MAP_ALIGN);
    ptx_param codes_map = ptx_param_declare(k, "codes_map", W8A8_MAP_BYTES, W8A8_MAP_ALIGN);
    h->w_map = ptx_param_address(k, w_map);
    h->codes_map = ptx_param_address(k, codes_map);
    q->at = gemm_find_threads(k);
    find_warp(q);
    w8a8_count_tiles(q);
    w8a8_find_share(q);
    h->w_block = w8a8_stage_features(q->spec, q->v) * W8A8_BLOCK;
    h->codes_block = q->v->tile_m * W8A8_BLOCK;
    h->codes_offset = q->v->wk * h->w_block;
    h->one_tile = w8a8_has_one_tile(q->plan, q->v);
    h->lag = q->v->stages < DEEP_RING ? 1 : MOST_LAG;
    h->ring = (struct gemm_ring){.stages = q->v->stages,
                                 .stage_bytes = w8a8_stage_bytes(q->spec, q->v),
                                 .users = w8a8_consumer_threads(q->v) / 32,
                                 .noted = w8a8_has_two_producers(q->v)};
}

void w8a8_emit_wgmma(const ptxgen_w8a8_plan *plan, const ptxgen_w8a8_variant *v, ptx_module *module)
{
    struct wgmma *h = &(struct wgmma){.q = {.spec = &plan->spec, .plan = plan, .v = v}};
    struct product *q = &h->q;
    ptx_kernel *k = q->k = ptx_kernel_begin(module, ptxgen_w8a8_entry(v));
    q->wide = w8a8_is_wide(&plan->spec);
    ptx_kernel_reqntid(k, w8a8_threads(v), 1, 1);
    ptx_kernel_minnctapersm(k, 1);
    begin(h);
    gemm_ring_declare(k, &h->ring);
    if (w8a8_sums_bytes(v))
        q->sums.staging = w8a8_shared_buffer(q, "sums", w8a8_sums_bytes(v), 16);
    ptx_pred produces = ptx_setp_eq_u32(k, q->at.thread, U32(w8a8_consumer_threads(v)));
    ptx_if(k, produces) {
        ptx_prefetch_tensormap(k, h->w_map, 0);
        ptx_prefetch_tensormap(k, h->codes_map, 0);
    }
    gemm_ring_begin(k, &q->at, &h->ring);
    ptx_griddepcontrol_launch_dependents(k);
    ptx_if_else(k, ptx_setp_lt_u32(k, q->at.thread, U32(w8a8_consumer_threads(v)))) {
        if (w8a8_moves_registers(v))
            gemm_wgmma_divide_registers(k, 4, true);
        consume(h);
    } else {
        if (w8a8_moves_registers(v))
            gemm_wgmma_divide_registers(k, 4, false);
        ptx_section(k, "issue the copies of stages");
        if (w8a8_has_two_producers(v))
            produce_apart(h);
        else
            ptx_if(k, produces)
                produce(h);
    }
    ptx_kernel_end(k);
}
