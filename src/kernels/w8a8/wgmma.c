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
 * In tiles of 64 tokens and more, 64 tokens are the rows of wgmma's operand A, and features the
 * columns of its operand B. In tiles of 16 tokens, 64 features are the rows, and tokens the
 * columns. A multiprocessor takes 105 bytes a nanosecond from the L2, and memory gives it 35; 64
 * tokens and 32 features use both alike.
 *
 * Weights in flight delay the codes of the quantising kernel, so only 40 KB of weights a CTA are
 * copied ahead of them. In tiles of up to 16 tokens one producer paces the weights and another
 * copies codes. Weights of few tokens have the L2 policy evict_first (policy.h). Measurements and
 * rejected designs are in docs/notes/w8a8.md.
 */
#include "../policy.h"
#include "../gemm/wgmma.h"
#include "emit.h"

enum { WARPGROUP_ROWS = 64, DEEP_RING = 8, STRIP_BYTES = WARPGROUP_ROWS * W8A8_BLOCK };

/* ---- sending ---- */

struct producer {
    struct gemm_producer p;
    ptx_u32 row, token; /* the tile's first */
    ptx_u32 bytes;      /* of a stage that its barrier expects from this thread */
    ptx_u32 issued;     /* stages, where it keeps pace */
};

/* Bytes of a stage's codes, of the tokens that exist where tokens are few, plus `more`. */
static ptx_u32 code_bytes(struct product *q, uint32_t more)
{
    uint32_t depth = w8a8_depth(q->v);
    if (w8a8_copies_present_tokens(q->v)) {
        ptx_u32 tokens = ptx_min_u32(q->g.k, q->g.m, U32(q->v->tile_m));
        return ptx_mad_lo_u32(q->g.k, tokens, U32(depth), U32(more));
    }
    return U32(more + q->v->tile_m * depth);
}

static uint32_t weight_bytes(const struct product *q)
{
    return q->v->wk * q->w_block;
}

/* Issues the copy of a box for each block of the stage; `once`: they are not kept in the L2. */
static void issue_boxes(struct product *q, const struct producer *s, ptx_u32 stage, ptx_u64 map,
                        ptx_u32 row, uint32_t to, uint32_t block, uint32_t barrier, bool once)
{
    ptx_kernel *k = q->g.k;
    ptx_u32 column = ptx_mul_lo_u32(k, stage, U32(w8a8_depth(q->v)));
    for (uint32_t i = 0; i < q->v->wk; i++) {
        ptx_u32 here = i ? ptx_add_u32(k, column, U32(i * W8A8_BLOCK)) : column;
        const ptx_s32 corner[2] = {ptx_u32_as_s32(here), ptx_u32_as_s32(row)};
        int at = (int)(to + i * block);
        if (once)
            ptx_cp_async_bulk_tensor_2d_g2s_hint(k, s->p.place.slot, at, map, corner,
                                                 s->p.place.barrier, (int)barrier, EVICT_FIRST);
        else
            ptx_cp_async_bulk_tensor_2d_g2s(k, s->p.place.slot, at, map, corner, s->p.place.barrier,
                                            (int)barrier);
    }
}

/*
 * Whether weights have the L2 policy evict_first: one or two tiles read them, at about the same
 * time. With scales of groups the tiles of 128 tokens are also those of launches of many tokens.
 */
static bool reads_weights_once(const struct product *q)
{
    return w8a8_takes_all_tokens(q->v) || (q->v->tile_m <= 128 && !w8a8_has_groups(q->spec));
}

static void issue_weights(struct product *q, const struct producer *s, ptx_u32 stage)
{
    issue_boxes(q, s, stage, q->w_map, s->row, 0, q->w_block, 0, reads_weights_once(q));
}

static void issue_codes(struct product *q, const struct producer *s, ptx_u32 stage)
{
    uint32_t barrier = w8a8_has_two_producers(q->v) ? gemm_ring_side_offset(&q->g.ring) : 0;
    issue_boxes(q, s, stage, q->codes_map, s->token, q->codes_offset, q->codes_block, barrier,
                false);
}

static void locate(struct gemm *g, struct gemm_producer *p)
{
    struct product *q = w8a8_of(g);
    struct producer *s = (struct producer *)p;
    ptx_kernel *k = g->k;
    gemm_walk_next(k, &g->division, &p->walk);
    struct gemm_place place = w8a8_place_of(q, p->walk.tile);
    ptx_mul_lo_u32_to(k, s->token, place.m, U32(q->v->tile_m));
    ptx_mov_u32_to(k, s->row, w8a8_find_block(q, place.n).first);
}

/*
 * Stages of the CTA's first tile whose weights are copied ahead: only as many as keep the memory
 * busy, because the stores of the quantising kernel, and the codes, queue behind them.
 */
static uint32_t stages_ahead(const struct product *q)
{
    enum { AHEAD_BYTES = 40 * 1024 };
    const ptxgen_tile *v = q->v;
    uint32_t own = w8a8_own_steps(q->spec, v);
    uint32_t bytes = weight_bytes(q), ahead = bytes < AHEAD_BYTES ? AHEAD_BYTES / bytes : 1;
    uint32_t most = own < v->stages ? own : v->stages;
    return ahead < most ? ahead : most;
}

typedef void issue_part(struct product *q, const struct producer *s, ptx_u32 stage);

/*
 * Issues the copies of the first stages: their weights, while all slots are empty, or their codes.
 */
static void issue_ahead(struct product *q, const struct producer *first, issue_part *issue,
                        bool claims)
{
    ptx_kernel *k = q->g.k;
    struct producer s = *first;
    for (uint32_t i = 0; i < stages_ahead(q); i++) {
        if (i) {
            s.p.place.slot = ptx_add_u32(k, first->p.place.slot, U32(i * q->g.ring.stage_bytes));
            s.p.place.barrier = ptx_add_u32(k, first->p.place.barrier, U32(8 * i));
        }
        if (claims)
            ptx_mbarrier_arrive_expect_tx(k, s.p.place.barrier, 0, s.bytes);
        issue(q, &s, U32(i));
    }
}

typedef void issue_stage(struct gemm *g, struct gemm_producer *p);

/* A producer of all that `issue` copies, which stands at its first tile. */
static struct producer new_producer(struct product *q, ptx_u32 bytes, issue_stage *issue)
{
    ptx_kernel *k = q->g.k;
    struct producer s = {.p = {.located = true, .locate = locate, .issue = issue}};
    s.bytes = bytes;
    s.row = ptx_mov_u32(k, U32(0));
    s.token = ptx_mov_u32(k, U32(0));
    s.p.place = gemm_ring_first(k, &q->g.ring, true);
    return s;
}

static void start_walk(struct product *q, struct producer *s)
{
    s->p.walk = gemm_walk_begin(q->g.k, q->g.first, q->g.end);
    locate(&q->g, &s->p);
}

/* Moves a producer past the stages that were issued ahead. */
static void pass_ahead(struct product *q, struct producer *s)
{
    ptx_kernel *k = q->g.k;
    uint32_t ahead = stages_ahead(q), slot = ahead % q->v->stages;
    ptx_add_u32_to(k, s->p.walk.stage, s->p.walk.stage, U32(ahead));
    ptx_add_u32_to(k, s->p.place.slot, s->p.place.slot, U32(slot * q->g.ring.stage_bytes));
    ptx_add_u32_to(k, s->p.place.barrier, s->p.place.barrier, U32(8 * slot));
    if (slot < ahead)
        ptx_mov_u32_to(k, s->p.place.parity, U32(0));
}

static void issue_both(struct gemm *g, struct gemm_producer *p)
{
    const struct producer *s = (const struct producer *)p;
    gemm_ring_claim_some(g->k, &g->ring, &p->place, s->bytes);
    issue_weights(w8a8_of(g), s, p->walk.stage);
    issue_codes(w8a8_of(g), s, p->walk.stage);
}

/* One thread issues all, the first weights while the kernel that makes the codes still runs. */
static void produce_together(struct product *q)
{
    struct producer s = new_producer(q, code_bytes(q, weight_bytes(q)), issue_both);
    start_walk(q, &s);
    issue_ahead(q, &s, issue_weights, true);
    ptx_griddepcontrol_wait(q->g.k);
    issue_ahead(q, &s, issue_codes, false);
    pass_ahead(q, &s);
    gemm_issue_parts(&q->g, &s.p);
}

/* ---- weights and codes by two warps ---- */

/*
 * Paces the producer of weights until the ring is full: a stage is issued when an earlier stage has
 * arrived, so that only as many bytes are in flight as keep the memory busy.
 */
static void keep_pace(struct product *q, const struct producer *s)
{
    enum { PACE_BYTES = 48 * 1024 }; /* three stages of 64 rows, no more than the least ring */
    ptx_kernel *k = q->g.k;
    uint32_t pace = (PACE_BYTES + weight_bytes(q) - 1) / weight_bytes(q);
    ptx_u32 landed = ptx_sub_u32(k, s->issued, U32(pace));
    ptx_if(k, ptx_setp_lt_u32(k, landed, U32(q->v->stages - pace))) {
        struct gemm_ring_place place = {.parity = U32(0)};
        place.barrier = ptx_mad_lo_u32(k, landed, U32(8), q->g.ring.barriers);
        gemm_ring_wait(k, &place);
    }
    ptx_add_u32_to(k, s->issued, s->issued, U32(1));
}

static void issue_weights_apart(struct gemm *g, struct gemm_producer *p)
{
    struct product *q = w8a8_of(g);
    const struct producer *s = (const struct producer *)p;
    keep_pace(q, s);
    gemm_ring_claim_some(g->k, &g->ring, &p->place, s->bytes);
    issue_weights(q, s, p->walk.stage);
}

static void issue_codes_apart(struct gemm *g, struct gemm_producer *p)
{
    const struct producer *s = (const struct producer *)p;
    gemm_ring_claim_side(g->k, &g->ring, &p->place, s->bytes);
    issue_codes(w8a8_of(g), s, p->walk.stage);
}

static void produce_one_kind(struct product *q, ptx_u32 bytes, issue_stage *issue)
{
    struct producer s = new_producer(q, bytes, issue);
    s.issued = ptx_mov_u32(q->g.k, U32(0));
    start_walk(q, &s);
    gemm_issue_parts(&q->g, &s.p);
}

/* The warp of the weights never waits for the kernel that makes the codes. */
static void produce_apart(struct product *q)
{
    ptx_kernel *k = q->g.k;
    for (uint32_t codes = 0; codes < 2; codes++) {
        uint32_t producer = w8a8_consumer_threads(q->v) + 32 * codes;
        ptx_if(k, ptx_setp_eq_u32(k, q->g.at.thread, U32(producer))) {
            if (codes)
                ptx_griddepcontrol_wait(k);
            ptx_u32 bytes = codes ? code_bytes(q, 0) : U32(weight_bytes(q));
            produce_one_kind(q, bytes, codes ? issue_codes_apart : issue_weights_apart);
        }
    }
}

static void produce(struct gemm *g)
{
    struct product *q = w8a8_of(g);
    if (w8a8_has_two_producers(q->v))
        produce_apart(q);
    else
        ptx_if(g->k, q->producer)
            produce_together(q);
}

/* ---- multiplying ---- */

/* Issues the products of a strip of the stage at the ring's place. */
static void issue_products(struct product *q, const struct gemm_part *part, uint32_t strip)
{
    ptx_kernel *k = q->g.k;
    ptx_u64 w = gemm_wgmma_descriptor(k, ptx_add_u32(k, q->g.read.slot, q->w_at));
    ptx_u64 codes = gemm_wgmma_descriptor(k, ptx_add_u32(k, q->g.read.slot, q->codes_at));
    bool tokens = w8a8_tokens_are_m(q->v);
    ptx_u64 a_of = tokens ? codes : w, b_of = tokens ? w : codes;
    uint32_t steps = q->v->wk * W8A8_STEPS;
    uint32_t columns = tokens ? w8a8_group_features(q->v) : w8a8_group_tokens(q->v);
    ptx_pred later = ptx_setp_ne_u32(k, part->walk.stage,
                                     part->first); /* the first products overwrite the sums */
    ptx_wgmma_fence(k);
    uint32_t a_block = tokens ? q->codes_block : q->w_block;
    uint32_t b_block = tokens ? q->w_block : q->codes_block;
    for (uint32_t i = 0; i < steps; i++) {
        uint32_t block = i / W8A8_STEPS, step = i % W8A8_STEPS;
        ptx_u64 a = gemm_wgmma_advance(k, a_of, block * a_block + step * 32 + strip * STRIP_BYTES);
        ptx_u64 b = gemm_wgmma_advance(k, b_of, block * b_block + step * 32);
        w8a8_wgmma(q, block, step, columns, a, b, later);
    }
    ptx_wgmma_commit_group(k);
}

/* Moves to the next stage, and waits for it; the place before is held. */
static void next_stage(struct product *q)
{
    gemm_ring_next(q->g.k, &q->g.ring, &q->g.read, q->g.held[0], q->g.to_read);
    if (q->g.ring.has_side)
        gemm_ring_side_wait(q->g.k, &q->g.ring, &q->g.read);
}

/* A slot is released when its products have completed, while those of later stages are in flight.
 */
static void keep_in_flight(struct product *q, const struct gemm_part *part)
{
    ptx_kernel *k = q->g.k;
    ptx_wgmma_wait_group(k, (int)q->lag);
    ptx_u32 done = ptx_add_u32(k, part->first, U32(q->lag));
    gemm_ring_release(k, &q->g.ring, q->g.held[q->lag - 1],
                      ptx_setp_bool_ge_u32(k, part->walk.stage, done, q->g.releases));
    if (q->lag > 1)
        ptx_mov_u32_to(k, q->g.held[1], q->g.held[0]);
    next_stage(q);
}

static void multiply(struct gemm *g, const struct gemm_part *part)
{
    struct product *q = w8a8_of(g);
    if (w8a8_code_type(q->spec->codes)->integer) {
        issue_products(q, part, 0);
        keep_in_flight(q, part);
        return;
    }
    for (uint32_t strip = 0; strip < w8a8_strips(q->v); strip++) {
        issue_products(q, part, strip);
        if (strip + 1 == w8a8_strips(q->v))
            next_stage(q); /* this wait overlaps the products */
        ptx_wgmma_wait_group(g->k, 0);
        if (w8a8_has_groups(q->spec))
            w8a8_add_groups(q, part->walk.stage);
        else
            w8a8_add_blocks(q, strip);
    }
    gemm_ring_release(g->k, &g->ring, g->held[0], g->releases);
}

/* All slots that are held are released, for the next tile. */
static void drain(struct gemm *g)
{
    struct product *q = w8a8_of(g);
    ptx_wgmma_wait_group(g->k, 0);
    for (uint32_t i = 0; i < q->lag && i < g->division.stages && !g->one_part; i++)
        gemm_ring_release(g->k, &g->ring, g->held[i], g->releases);
}

static void wait_for_stage(struct product *q)
{
    gemm_ring_wait(q->g.k, &q->g.read);
    if (q->g.ring.has_side)
        gemm_ring_side_wait(q->g.k, &q->g.ring, &q->g.read);
}

/*
 * Loads of scales of groups are issued before the wait for the first stage, whose products need
 * them; behind that wait they would queue behind the copies of the whole ring. The first stages of
 * later tiles have been waited for, and the wait returns at once.
 */
static void clear(struct gemm *g, const struct gemm_part *part)
{
    struct product *q = w8a8_of(g);
    w8a8_begin_wgmma_sums(q);
    if (w8a8_has_groups(q->spec))
        w8a8_locate_scales(q, part->walk.tile, part->walk.stage);
    if (w8a8_tokens_are_m(q->v))
        w8a8_locate_direct(q, part->walk.tile);
    else
        gemm_epilogue_locate(&q->output, part->walk.tile);
    if (w8a8_has_groups(q->spec))
        wait_for_stage(q);
}

static void epilogue(struct gemm *g, struct gemm_part *part)
{
    struct product *q = w8a8_of(g);
    if (w8a8_tokens_are_m(q->v))
        w8a8_store_direct(q);
    else
        gemm_epilogue(g, part);
}

/*
 * Clears the rows of codes that no copy brings, where there are fewer tokens than wgmma has rows:
 * their products are not used, but shared memory must be initialised.
 */
static void clear_missing_codes(struct product *q)
{
    enum { CHUNK = 16 };
    ptx_kernel *k = q->g.k;
    const ptx_u32 zeros[4] = {U32(0), U32(0), U32(0), U32(0)};
    uint32_t step = w8a8_consumer_threads(q->v) * CHUNK;
    ptx_if(k, ptx_setp_lt_u32(k, q->g.m, U32(q->v->tile_m))) {
        ptx_u32 row = ptx_mad_lo_u32(k, q->g.m, U32(W8A8_BLOCK), U32(q->codes_offset));
        ptx_u32 from = ptx_mad_lo_u32(k, q->g.at.thread, U32(CHUNK), row);
        ptx_u32 slot = ptx_mov_u32(k, q->g.ring.slots);
        ptx_for(k, slot, q->g.ring.slots_end, U32(q->g.ring.stage_bytes)) {
            ptx_nounroll(k);
            ptx_u32 to = ptx_add_u32(k, slot, from);
            ptx_u32 end = ptx_add_u32(k, slot, U32(q->codes_offset + q->codes_block));
            ptx_for(k, to, end, U32(step)) {
                ptx_nounroll(k);
                for (uint32_t i = 0; i < q->v->wk; i++)
                    ptx_st_shared_v4_u32(k, to, (int)(i * q->codes_block), zeros);
            }
        }
        ptx_fence_proxy_async_shared_cta(k);
        gemm_sync(k, &q->g.at);
    }
}

/* Warps along the rows of wgmma, four of which are a warpgroup, come first. */
static void find_warp(struct product *q)
{
    const ptxgen_tile *v = q->v;
    bool tokens = w8a8_tokens_are_m(v);
    uint32_t rows = tokens ? v->wm : v->wn;
    ptx_u32 along_rows = ptx_and_b32(q->g.k, q->g.at.warp, U32(rows - 1));
    ptx_u32 along_columns = gemm_divide(q->g.k, q->g.at.warp, rows);
    q->along_m = tokens ? along_rows : along_columns;
    q->along_n = tokens ? along_columns : along_rows;
    q->along_k = U32(0);
}

static void find_operands(struct product *q)
{
    ptx_kernel *k = q->g.k;
    bool tokens = w8a8_tokens_are_m(q->v);
    ptx_u32 group = ptx_shr_u32(k, tokens ? q->along_m : q->along_n, U32(2));
    ptx_u32 rows_at = ptx_mul_lo_u32(k, group, U32(w8a8_strips(q->v) * STRIP_BYTES));
    uint32_t columns = tokens ? w8a8_group_features(q->v) : w8a8_group_tokens(q->v);
    ptx_u32 columns_at =
        ptx_mul_lo_u32(k, tokens ? q->along_n : q->along_m, U32(columns * W8A8_BLOCK));
    q->w_at = tokens ? columns_at : rows_at;
    q->codes_at = ptx_add_u32(k, tokens ? rows_at : columns_at, U32(q->codes_offset));
}

static void begin_consumer(struct gemm *g)
{
    struct product *q = w8a8_of(g);
    ptx_kernel *k = g->k;
    g->at.team = w8a8_consumer_threads(q->v);
    g->at.barrier = U32(1);
    if (w8a8_copies_present_tokens(q->v))
        clear_missing_codes(q);
    ptx_griddepcontrol_wait(k);
    find_operands(q);
    g->releases = gemm_ring_releasers(k, &g->ring, &g->at);
    g->read = gemm_ring_first(k, &g->ring, false);
    for (uint32_t i = 0; i < q->lag || i == 0; i++)
        g->held[i] = ptx_mov_u32(k, g->read.barrier);
    g->to_read = ptx_sub_u32(k, ptx_sub_u32(k, g->end, g->first), U32(1));
    q->always = ptx_setp_eq_u32(k, g->m, g->m);
    w8a8_new_sums(q);
    if (w8a8_tokens_are_m(q->v))
        w8a8_begin_direct(q);
    else
        w8a8_begin_output(q);
    if (!w8a8_has_groups(q->spec))
        wait_for_stage(q);
}

/* ---- all threads ---- */

static void begin(struct gemm *g)
{
    struct product *q = w8a8_of(g);
    ptx_kernel *k = g->k;
    w8a8_load_params(q);
    ptx_param w_map = ptx_param_declare(k, "w_map", W8A8_MAP_BYTES, W8A8_MAP_ALIGN);
    ptx_param codes_map = ptx_param_declare(k, "codes_map", W8A8_MAP_BYTES, W8A8_MAP_ALIGN);
    q->w_map = ptx_param_address(k, w_map);
    q->codes_map = ptx_param_address(k, codes_map);
    g->at = gemm_find_threads(k);
    find_warp(q);
    w8a8_count_tiles(q);
    w8a8_find_share(q);
    q->w_block = w8a8_stage_features(q->spec, q->v) * W8A8_BLOCK;
    q->codes_block = q->v->tile_m * W8A8_BLOCK;
    q->codes_offset = q->v->wk * q->w_block;
    if (w8a8_code_type(q->spec->codes)->integer)
        q->lag = q->v->stages < DEEP_RING ? 1 : GEMM_MOST_LAG;
    g->ring = (struct gemm_ring){.stages = q->v->stages,
                                 .stage_bytes = w8a8_stage_bytes(q->spec, q->v),
                                 .users = w8a8_consumer_threads(q->v) / 32,
                                 .has_side = w8a8_has_two_producers(q->v)};
    gemm_ring_declare(k, &g->ring);
    if (w8a8_sums_bytes(q->v))
        q->staging = w8a8_shared_buffer(q, "sums", w8a8_sums_bytes(q->v), 16);
    q->producer = ptx_setp_eq_u32(k, g->at.thread, U32(w8a8_consumer_threads(q->v)));
    ptx_if(k, q->producer) {
        ptx_prefetch_tensormap(k, q->w_map, 0);
        ptx_prefetch_tensormap(k, q->codes_map, 0);
    }
    gemm_ring_begin(k, &g->at, &g->ring);
    ptx_griddepcontrol_launch_dependents(k);
}

const struct gemm_ops w8a8_wgmma_ops = {.begin = begin,
                                        .begin_consumer = begin_consumer,
                                        .clear = clear,
                                        .multiply = multiply,
                                        .drain = drain,
                                        .epilogue = epilogue,
                                        .produce = produce};
