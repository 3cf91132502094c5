/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The product on wgmma (sm_90a). One warp of a CTA sends for stages by tensor copies, warpgroups
 * multiply them, both operands in shared memory. In tiles of 64 and 128 tokens a warpgroup has 64
 * as the rows of wgmma's A and some rows of W as the columns of its B; of 16, and of 256, all or
 * half are its columns, and 64 rows of W its rows: Cᵀ = W · qᵀ. (With all 256 the assembler had
 * 784 instead of 454 million instructions to do, and 1024 tokens took 1 to 4 % less.) A stage has
 * boxes of 128 bytes of K by the rows of a row block, then as many by the tile's tokens, of a
 * launch of fewer by these alone.
 *
 *               K: stages of wk · 128 bytes ──▶
 *             ┌─────────┬─────────┬───
 *    W:       │ stage 0 │ stage 1 │ …
 *             ├─────────┼─────────┼───
 *    codes:   │ stage 0 │ stage 1 │ …
 *             └─────────┴─────────┴───
 *
 * On an H200, with quantisation, µs beside cuBLASLt's product alone; before that tokens were
 * columns, and 32 of them mma.sync's (of two runs, in which cuBLASLt took as long):
 *
 *     K × N, M            before   now   cuBLASLt
 *     4096 × 4096, 32       7.8    7.1     8.4      a multiprocessor takes 105 bytes a
 *     4096 × 4096, 64       9.6    7.3     8.4      nanosecond from the L2, the memory gives it
 *     4096 × 4096, 128     11.3    9.4    10.4      35: 64 tokens, 32 rows: 3.7 µs of either
 *     8192 × 8192, 64      21.3   20.2    22.0
 *     4096 × 14336, 64     19.8   18.2    19.2
 *     14336 × 4096, 128    32.5   24.1    25.6
 *
 * What did it: a stage took 266 clocks for four products of 32, since the next four were sent for
 * only when those before had ended: now when those two before have. Up to 64 tokens a stage has
 * two blocks of K (0.2 µs of 4096 × 4096, 0.3 to 0.7 of 14336 × 4096; with 128 tokens it took
 * longer). Weights that are under way delay what the quantising kernel stores, and the codes, in
 * the L2's queues: 40 KB a multiprocessor ahead of the codes is right (4096 × 4096: 7.6 with 20
 * or 40 KB, 8.5 with 80). Accumulators go to y straight, 16 bytes a lane (4 bytes: some 0.6 µs
 * more of 4096 × 14336). Rows of codes past M are not copied: 65 tokens take 8.9 where 128 take
 * 9.6 (15.6 and 11.2 before).
 *
 * What did not: clusters of two or four along K (10.0 and 16.0 where one CTA took 10.4: they
 * agree slowly, and start later), clusters of two that share the codes by multicast, two
 * warpgroups along K, CTAs that begin at stages of their own, weights that are fetched into the
 * L2 ahead.
 *
 * Weights that are read once leave the L2 first (policy.h): 8192 × 8192 takes 19.4 µs where it took
 * 20.3 with 64 tokens, overlapped with 16 16.9 and 17.2; 4096 × 14336 14.8 and 15.3.
 *
 * Up to 16 tokens where a CTA has 64 rows of W or more, µs plain and overlapping the launch before,
 * in the tile of 64 and in theirs (an H200, of one run):
 *
 *     8192 × 8192      20.0  19.2     19.9  17.2     85 % of what the memory can give: 17.1
 *     4096 × 14336     17.8  17.2     17.3  15.6
 *
 * There a launch before ends, x is seen 0.5 µs later, quantised at 2.0, its codes are seen at 2.4
 * and there at 2.7: for so long the memory has only weights to bring. With 40 KB of them ahead it
 * idles for half of that. With the whole ring ahead it does not, but x and codes come behind it,
 * the first products at 5.6, and it took 18.9. With some 48 KB under way at any time (a thread
 * sends for weights, at its own pace, and another for codes) products begin at 4.6, the ring being
 * full. Slots for 16 codes instead of 64 give weights 176 KB of the ring instead of 112. In stages
 * of 512 bytes of K it took 17.2 to 17.8, and 4096 × 14336 16.1; of 128, 18.5. The tile of 64 gains
 * nothing by a pace (18.9), and 4096 × 4096, with 32 rows a CTA, nothing by this tile.
 *
 * What is left: plain launches, which begin 1 µs after the kernel that quantises. The product alone
 * takes 17.7 plain and 16.4 overlapped, a copy of as many bytes 18.1 plain: multiprocessors end
 * between 16 and 19.5, and no better division is known in advance.
 */
#include "../policy.h"
#include "../tile/ring.h"
#include "../tile/wgmma.h"
#include "emit.h"

enum { STEPS = W8A8_BLOCK / 32, WARPGROUP_ROWS = 64, MOST_LAG = 2, DEEP_RING = 8 };

struct hopper {
    struct product q;
    struct tile_ring ring;
    ptx_u64 w_map, codes_map;
    uint32_t w_block, codes_block; /* bytes of a block of 128 bytes of K, in a stage */
    uint32_t codes_offset;         /* behind W's */
    bool one_tile;
    uint32_t lag; /* groups of products that are under way behind the newest */
};

/* ---- sending ---- */

struct sender {
    ptx_u32 row, token; /* the tile's first */
    ptx_u32 bytes;      /* that it has land in a stage */
    ptx_u32 sent;       /* stages, where it keeps pace */
    struct tile_ring_place place;
};

/* Bytes of a stage's codes, of few tokens of no more than there are, and `more`. */
static ptx_u32 code_bytes(struct hopper *h, uint32_t more)
{
    const struct product *q = &h->q;
    uint32_t depth = w8a8_depth(q->v);
    if (w8a8_copies_present_tokens(q->v)) {
        ptx_u32 tokens = ptx_min_u32(q->k, q->m, U32(q->v->tile_m));
        return ptx_mad_lo_u32(q->k, tokens, U32(depth), U32(more));
    }
    return U32(more + q->v->tile_m * depth);
}

static uint32_t weight_bytes(const struct hopper *h)
{
    return h->q.v->wk * h->w_block;
}

/* A box for each block of the stage, to `to` on; `once`: of what no other CTA reads. */
static void send_boxes(struct hopper *h, const struct sender *s, ptx_u32 stage, ptx_u64 map,
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

static void send_weights(struct hopper *h, const struct sender *s, ptx_u32 stage)
{
    send_boxes(h, s, stage, h->w_map, s->row, 0, h->w_block, 0, w8a8_takes_all_tokens(h->q.v));
}

static void send_codes(struct hopper *h, const struct sender *s, ptx_u32 stage)
{
    uint32_t barrier = w8a8_sends_apart(h->q.v) ? tile_ring_note_offset(&h->ring) : 0;
    send_boxes(h, s, stage, h->codes_map, s->token, h->codes_offset, h->codes_block, barrier,
               false);
}

/* Turns to the next tile of the walk. */
static void turn_to(struct hopper *h, struct sender *s, struct tile_walk *walk)
{
    struct product *q = &h->q;
    ptx_kernel *k = q->k;
    tile_walk_next(k, &q->division, walk);
    struct tile_place place = w8a8_place_of(q, walk->tile);
    ptx_mul_lo_u32_to(k, s->token, place.m, U32(q->v->tile_m));
    ptx_mov_u32_to(k, s->row, w8a8_find_rows(q, place.n).first);
}

/*
 * Stages of the CTA's first tile whose weights are sent for ahead. No more than keep the memory
 * busy: what the kernel that makes the codes stores, and the codes, queue up behind them.
 */
static uint32_t stages_ahead(const struct hopper *h)
{
    enum { AHEAD_BYTES = 40 * 1024 };
    const ptxgen_w8a8_variant *v = h->q.v;
    uint32_t own = w8a8_own_steps(h->q.spec, v);
    uint32_t bytes = weight_bytes(h), ahead = bytes < AHEAD_BYTES ? AHEAD_BYTES / bytes : 1;
    uint32_t most = own < v->stages ? own : v->stages;
    return ahead < most ? ahead : most;
}

typedef void send_part(struct hopper *h, const struct sender *s, ptx_u32 stage);

/* Weights, of slots that all are free, or the codes that go with them. */
static void send_ahead(struct hopper *h, const struct sender *first, send_part *send, bool claims)
{
    ptx_kernel *k = h->q.k;
    struct sender s = *first;
    for (uint32_t i = 0; i < stages_ahead(h); i++) {
        if (i) {
            s.place.slot = ptx_add_u32(k, first->place.slot, U32(i * h->ring.stage_bytes));
            s.place.barrier = ptx_add_u32(k, first->place.barrier, U32(8 * i));
        }
        if (claims)
            ptx_mbarrier_arrive_expect_tx(k, s.place.barrier, 0, s.bytes);
        send(h, &s, U32(i));
    }
}

static struct sender new_sender(struct hopper *h, ptx_u32 bytes)
{
    struct sender s = {.row = ptx_mov_u32(h->q.k, U32(0)), .bytes = bytes};
    s.token = ptx_mov_u32(h->q.k, U32(0));
    s.place = tile_ring_first(h->q.k, &h->ring, true);
    return s;
}

/* Behind the stages that were sent for ahead. */
static void pass_ahead(struct hopper *h, struct sender *s, struct tile_walk *walk)
{
    ptx_kernel *k = h->q.k;
    uint32_t ahead = stages_ahead(h), slot = ahead % h->q.v->stages;
    ptx_add_u32_to(k, walk->stage, walk->stage, U32(ahead));
    ptx_add_u32_to(k, s->place.slot, s->place.slot, U32(slot * h->ring.stage_bytes));
    ptx_add_u32_to(k, s->place.barrier, s->place.barrier, U32(8 * slot));
    if (slot < ahead)
        ptx_mov_u32_to(k, s->place.parity, U32(0));
}

static void send_stage(struct hopper *h, const struct sender *s, ptx_u32 stage)
{
    tile_ring_claim_some(h->q.k, &h->ring, &s->place, s->bytes);
    send_weights(h, s, stage);
    send_codes(h, s, stage);
}

static void send_tile(struct hopper *h, struct sender *s, struct tile_walk *walk, send_part *send)
{
    ptx_kernel *k = h->q.k;
    ptx_for(k, walk->stage, walk->stage_end, U32(1)) {
        ptx_nounroll(k);
        send(h, s, walk->stage);
        tile_ring_advance(k, &h->ring, &s->place, NULL);
    }
}

/* What is left of the walk, which has turned to its first tile. */
static void send_tiles(struct hopper *h, struct sender *s, struct tile_walk *walk, send_part *send)
{
    struct product *q = &h->q;
    ptx_kernel *k = q->k;
    if (h->one_tile) {
        send_tile(h, s, walk, send);
        return;
    }
    ptx_loop(k, tiles) {
        ptx_nounroll(k);
        send_tile(h, s, walk, send);
        ptx_loop_break_if(&tiles, ptx_setp_le_u32(k, walk->end, q->first), false);
        turn_to(h, s, walk);
    }
}

/* One thread sends for all, the first weights while the kernel that makes the codes still runs. */
static void send_all(struct hopper *h)
{
    struct product *q = &h->q;
    ptx_kernel *k = q->k;
    struct sender s = new_sender(h, code_bytes(h, weight_bytes(h)));
    struct tile_walk walk = tile_walk_begin(k, q->first, q->end);
    turn_to(h, &s, &walk);
    send_ahead(h, &s, send_weights, true);
    ptx_griddepcontrol_wait(k);
    send_ahead(h, &s, send_codes, false);
    pass_ahead(h, &s, &walk);
    send_tiles(h, &s, &walk, send_stage);
}

/* ---- sending apart: weights and codes ---- */

/*
 * Until the ring is full no more weights are under way than keep the memory busy: a stage is sent
 * for when one of some before has landed.
 */
static void keep_pace(struct hopper *h, const struct sender *s)
{
    enum { PACE_BYTES = 48 * 1024 }; /* three stages of 64 rows, no more than the least ring */
    ptx_kernel *k = h->q.k;
    uint32_t pace = (PACE_BYTES + weight_bytes(h) - 1) / weight_bytes(h);
    ptx_u32 landed = ptx_sub_u32(k, s->sent, U32(pace));
    ptx_if(k, ptx_setp_lt_u32(k, landed, U32(h->q.v->stages - pace))) {
        struct tile_ring_place place = {.parity = U32(0)};
        place.barrier = ptx_mad_lo_u32(k, landed, U32(8), h->ring.barriers);
        tile_ring_wait(k, &place);
    }
    ptx_add_u32_to(k, s->sent, s->sent, U32(1));
}

static void send_stage_weights(struct hopper *h, const struct sender *s, ptx_u32 stage)
{
    keep_pace(h, s);
    tile_ring_claim_some(h->q.k, &h->ring, &s->place, s->bytes);
    send_weights(h, s, stage);
}

static void send_stage_codes(struct hopper *h, const struct sender *s, ptx_u32 stage)
{
    tile_ring_claim_note(h->q.k, &h->ring, &s->place, s->bytes);
    send_codes(h, s, stage);
}

static void send_apart(struct hopper *h, ptx_u32 bytes, send_part *send)
{
    struct product *q = &h->q;
    struct sender s = new_sender(h, bytes);
    s.sent = ptx_mov_u32(q->k, U32(0));
    struct tile_walk walk = tile_walk_begin(q->k, q->first, q->end);
    turn_to(h, &s, &walk);
    send_tiles(h, &s, &walk, send);
}

/*
 * One warp sends for weights, which never wait for the kernel that makes the codes, one for codes.
 */
static void send_all_apart(struct hopper *h)
{
    ptx_kernel *k = h->q.k;
    for (uint32_t codes = 0; codes < 2; codes++) {
        uint32_t sender = w8a8_multipliers(h->q.v) + 32 * codes;
        ptx_if(k, ptx_setp_eq_u32(k, h->q.at.thread, U32(sender))) {
            if (codes)
                ptx_griddepcontrol_wait(k);
            send_apart(h, codes ? code_bytes(h, 0) : U32(weight_bytes(h)),
                       codes ? send_stage_codes : send_stage_weights);
        }
    }
}

/* ---- multiplying ---- */

struct consumer {
    struct hopper *h;
    ptx_u32 w_at, codes_at; /* bytes from the start of a stage to the warpgroup's rows and codes */
    struct tile_ring_place read;
    ptx_u32 to_read;   /* stages of the CTA after the present one */
    ptx_u32 held[MOST_LAG]; /* the barriers of the stages before the present one */
    ptx_pred releases; /* the lane does, slots */
    ptx_pred always;
    struct direct direct;
};

/* A stage is given back when its products have ended, while those of later ones are under way. */
static void multiply_stage(struct consumer *c, ptx_u32 stage, ptx_u32 first)
{
    struct hopper *h = c->h;
    ptx_kernel *k = h->q.k;
    ptx_u64 w = tile_wgmma_descriptor(k, ptx_add_u32(k, c->read.slot, c->w_at));
    ptx_u64 codes = tile_wgmma_descriptor(k, ptx_add_u32(k, c->read.slot, c->codes_at));
    bool tokens = w8a8_has_tokens_as_rows(h->q.v);
    ptx_u64 rows_of = tokens ? codes : w, columns_of = tokens ? w : codes;
    uint32_t steps = h->q.v->wk * STEPS;
    uint32_t columns = tokens ? w8a8_group_rows(h->q.v) : w8a8_group_tokens(h->q.v);
    ptx_pred later = ptx_setp_ne_u32(k, stage, first); /* the first products are the sums */
    ptx_wgmma_fence(k);
    uint32_t row_block = tokens ? h->codes_block : h->w_block;
    uint32_t column_block = tokens ? h->w_block : h->codes_block;
    for (uint32_t i = 0; i < steps; i++) {
        uint32_t block = i / STEPS, step = i % STEPS * 32;
        ptx_u64 a = tile_wgmma_advance(k, rows_of, block * row_block + step);
        ptx_u64 b = tile_wgmma_advance(k, columns_of, block * column_block + step);
        ptx_wgmma_k32_s32_s8_s8(k, (int)columns, h->q.acc[0][0], a, b, i ? c->always : later);
    }
    ptx_wgmma_commit_group(k);
    ptx_wgmma_wait_group(k, (int)h->lag);
    ptx_u32 done = ptx_add_u32(k, first, U32(h->lag));
    tile_ring_release(k, &h->ring, c->held[h->lag - 1],
                      ptx_setp_bool_ge_u32(k, stage, done, c->releases));
    if (h->lag > 1)
        ptx_mov_u32_to(k, c->held[1], c->held[0]);
    tile_ring_turn(k, &h->ring, &c->read, c->held[0], c->to_read);
    if (h->ring.noted)
        tile_ring_wait_for_note(k, &h->ring, &c->read);
}

/* All that is held is given back, for the next tile. */
static void end_stages(struct consumer *c)
{
    struct hopper *h = c->h;
    ptx_wgmma_wait_group(h->q.k, 0);
    if (h->one_tile)
        return;
    for (uint32_t i = 0; i < h->lag && i < h->q.division.stages; i++)
        tile_ring_release(h->q.k, &h->ring, c->held[i], c->releases);
}

static void multiply_tile(struct consumer *c, struct tile_walk *w)
{
    struct product *q = &c->h->q;
    ptx_kernel *k = q->k;
    ptx_section(k, "the next tile");
    ptx_u32 first = ptx_mov_u32(k, w->stage);
    if (w8a8_has_tokens_as_rows(q->v))
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
    if (w8a8_has_tokens_as_rows(q->v))
        w8a8_emit_direct(&c->direct);
    else
        w8a8_emit_output(q, w, first);
}

/*
 * Rows of codes that no copy brings, where there are fewer tokens than wgmma has rows: their
 * products count for nothing, but are to be of something.
 */
static void clear_missing_codes(struct hopper *h)
{
    enum { CHUNK = 16 };
    struct product *q = &h->q;
    ptx_kernel *k = q->k;
    const ptx_u32 zeros[4] = {U32(0), U32(0), U32(0), U32(0)};
    uint32_t step = w8a8_multipliers(q->v) * CHUNK;
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
        tile_sync(k, &q->at);
    }
}

/* Warps along what wgmma takes as rows, four of which are a warpgroup, come first. */
static void find_warp(struct product *q)
{
    const ptxgen_w8a8_variant *v = q->v;
    bool tokens = w8a8_has_tokens_as_rows(v);
    uint32_t rows = tokens ? v->wm : v->wn;
    ptx_u32 along_rows = ptx_and_b32(q->k, q->at.warp, U32(rows - 1));
    ptx_u32 along_columns = tile_divide(q->k, q->at.warp, rows);
    q->along_m = tokens ? along_rows : along_columns;
    q->along_n = tokens ? along_columns : along_rows;
    q->along_k = U32(0);
}

static void find_operands(struct consumer *c)
{
    const struct product *q = &c->h->q;
    ptx_kernel *k = q->k;
    bool tokens = w8a8_has_tokens_as_rows(q->v);
    ptx_u32 group = ptx_shr_u32(k, tokens ? q->along_m : q->along_n, U32(2));
    ptx_u32 rows_at = ptx_mul_lo_u32(k, group, U32(WARPGROUP_ROWS * W8A8_BLOCK));
    uint32_t columns = tokens ? w8a8_group_rows(q->v) : w8a8_group_tokens(q->v);
    ptx_u32 columns_at =
        ptx_mul_lo_u32(k, tokens ? q->along_n : q->along_m, U32(columns * W8A8_BLOCK));
    c->w_at = tokens ? columns_at : rows_at;
    c->codes_at = ptx_add_u32(k, tokens ? rows_at : columns_at, U32(c->h->codes_offset));
}

static void multiply_all(struct hopper *h)
{
    struct product *q = &h->q;
    ptx_kernel *k = q->k;
    struct consumer c = {.h = h};
    q->at.team = w8a8_multipliers(q->v);
    q->at.barrier = U32(1);
    bool tokens_as_rows = w8a8_has_tokens_as_rows(q->v);
    if (w8a8_copies_present_tokens(q->v))
        clear_missing_codes(h);
    ptx_griddepcontrol_wait(k);
    find_operands(&c);
    c.releases = tile_ring_releasers(k, &h->ring, &q->at);
    c.read = tile_ring_first(k, &h->ring, false);
    for (uint32_t i = 0; i < h->lag; i++)
        c.held[i] = ptx_mov_u32(k, c.read.barrier);
    c.to_read = ptx_sub_u32(k, ptx_sub_u32(k, q->end, q->first), U32(1));
    c.always = ptx_setp_eq_u32(k, q->m, q->m);
    w8a8_new_sums(q);
    if (tokens_as_rows)
        w8a8_begin_direct(q, &c.direct);
    else
        w8a8_begin_output(q);
    tile_ring_wait(k, &c.read);
    if (h->ring.noted)
        tile_ring_wait_for_note(k, &h->ring, &c.read);
    struct tile_walk walk = tile_walk_begin(k, q->first, q->end);
    if (h->one_tile) {
        tile_walk_next(k, &q->division, &walk);
        multiply_tile(&c, &walk);
        return;
    }
    ptx_loop(k, tiles) {
        ptx_nounroll(k);
        tile_walk_next(k, &q->division, &walk);
        multiply_tile(&c, &walk);
        ptx_loop_break_if(&tiles, ptx_setp_le_u32(k, walk.end, q->first), false);
    }
}

/* ---- the entry ---- */

static void begin(struct hopper *h)
{
    struct product *q = &h->q;
    ptx_kernel *k = q->k;
    w8a8_load_params(q);
    ptx_param w_map = ptx_param_declare(k, "w_map", W8A8_MAP_BYTES, W8A8_MAP_ALIGN);
    ptx_param codes_map = ptx_param_declare(k, "codes_map", W8A8_MAP_BYTES, W8A8_MAP_ALIGN);
    h->w_map = ptx_param_address(k, w_map);
    h->codes_map = ptx_param_address(k, codes_map);
    q->at = tile_find_threads(k);
    find_warp(q);
    w8a8_count_tiles(q);
    w8a8_find_share(q);
    h->w_block = w8a8_stage_rows(q->spec, q->v) * W8A8_BLOCK;
    h->codes_block = q->v->tile_m * W8A8_BLOCK;
    h->codes_offset = q->v->wk * h->w_block;
    h->one_tile = w8a8_has_one_tile(q->plan, q->v);
    h->lag = q->v->stages < DEEP_RING ? 1 : MOST_LAG;
    h->ring = (struct tile_ring){.stages = q->v->stages,
                                 .stage_bytes = w8a8_stage_bytes(q->spec, q->v),
                                 .users = w8a8_multipliers(q->v) / 32,
                                 .noted = w8a8_sends_apart(q->v)};
}

void w8a8_emit_wgmma(const ptxgen_w8a8_plan *plan, const ptxgen_w8a8_variant *v, ptx_module *module)
{
    struct hopper *h = &(struct hopper){.q = {.spec = &plan->spec, .plan = plan, .v = v}};
    struct product *q = &h->q;
    ptx_kernel *k = q->k = ptx_kernel_begin(module, ptxgen_w8a8_entry(v));
    q->wide = w8a8_is_wide(&plan->spec);
    ptx_kernel_reqntid(k, w8a8_threads(v), 1, 1);
    ptx_kernel_minnctapersm(k, 1);
    begin(h);
    tile_ring_declare(k, &h->ring);
    if (w8a8_sums_bytes(v))
        q->sums.staging = w8a8_shared_buffer(q, "sums", w8a8_sums_bytes(v), 16);
    ptx_pred sends = ptx_setp_eq_u32(k, q->at.thread, U32(w8a8_multipliers(v)));
    ptx_if(k, sends) {
        ptx_prefetch_tensormap(k, h->w_map, 0);
        ptx_prefetch_tensormap(k, h->codes_map, 0);
    }
    tile_ring_begin(k, &q->at, &h->ring);
    ptx_griddepcontrol_launch_dependents(k);
    ptx_if_else(k, ptx_setp_lt_u32(k, q->at.thread, U32(w8a8_multipliers(v)))) {
        if (w8a8_moves_registers(v))
            tile_wgmma_divide_registers(k, 4, true);
        multiply_all(h);
    } else {
        if (w8a8_moves_registers(v))
            tile_wgmma_divide_registers(k, 4, false);
        ptx_section(k, "send for stages");
        if (w8a8_sends_apart(v))
            send_all_apart(h);
        else
            ptx_if(k, sends)
                send_all(h);
    }
    ptx_kernel_end(k);
}
