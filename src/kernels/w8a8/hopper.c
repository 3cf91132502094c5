/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The product on wgmma (sm_90a). One warp of a CTA sends for stages by tensor copies, warpgroups
 * multiply them, 64 rows of W and a block of 128 bytes of K each with all tokens of the tile: Cᵀ =
 * W · qᵀ, both operands in shared memory. A stage has boxes of 128 bytes of K by the rows of a row
 * block, one for each warpgroup along K, then as many by the tile's tokens.
 *
 *               K: stages of wk · 128 bytes ──▶
 *             ┌─────────┬─────────┬───
 *    W:       │ stage 0 │ stage 1 │ …
 *             ├─────────┼─────────┼───
 *    codes:   │ stage 0 │ stage 1 │ …
 *             └─────────┴─────────┴───
 *
 * On an H200 at K = N = 8192 it takes 21 µs where mma.sync takes 26 with 64 tokens, 24 for 28 with
 * 128, 95 for 157 with 1024; with 32 tokens and less mma.sync is as fast, and starts 1 µs sooner.
 * What did not help: clusters of two that share the codes by multicast, two warpgroups along K with
 * 64 tokens, CTAs that begin at stages of their own, weights that are fetched into the L2 ahead.
 */
#include "../tile/ring.h"
#include "../tile/wgmma.h"
#include "emit.h"

enum { STEPS = W8A8_BLOCK / 32, WARPGROUP_ROWS = 64 };

struct hopper {
    struct product q;
    struct tile_ring ring;
    ptx_u64 w_map, codes_map;
    uint32_t w_block, codes_block; /* bytes of a block of 128 bytes of K, in a stage */
};

/* ---- sending ---- */

struct sender {
    ptx_u32 row, token; /* the tile's first */
    struct tile_ring_place place;
};

static uint32_t codes_offset(const struct hopper *h)
{
    return h->q.v->wk * h->w_block;
}

/* Bytes that land in a stage. */
static uint32_t copied_bytes(const struct hopper *h)
{
    return (w8a8_stage_rows(h->q.spec, h->q.v) + h->q.v->tokens) * w8a8_depth(h->q.v);
}

/* A box for each block of the stage, to `to` on. */
static void send_boxes(struct hopper *h, const struct sender *s, ptx_u32 stage, ptx_u64 map,
                       ptx_u32 row, uint32_t to, uint32_t block)
{
    ptx_kernel *k = h->q.k;
    ptx_u32 column = ptx_mul_lo_u32(k, stage, U32(w8a8_depth(h->q.v)));
    for (uint32_t i = 0; i < h->q.v->wk; i++) {
        ptx_u32 here = i ? ptx_add_u32(k, column, U32(i * W8A8_BLOCK)) : column;
        const ptx_s32 corner[2] = {ptx_u32_as_s32(here), ptx_u32_as_s32(row)};
        ptx_cp_async_bulk_tensor_2d_g2s(k, s->place.slot, (int)(to + i * block), map, corner,
                                        s->place.barrier, 0);
    }
}

static void send_weights(struct hopper *h, const struct sender *s, ptx_u32 stage)
{
    send_boxes(h, s, stage, h->w_map, s->row, 0, h->w_block);
}

static void send_codes(struct hopper *h, const struct sender *s, ptx_u32 stage)
{
    send_boxes(h, s, stage, h->codes_map, s->token, codes_offset(h), h->codes_block);
}

static struct sender new_sender(struct hopper *h)
{
    struct sender s = {.row = ptx_mov_u32(h->q.k, U32(0))};
    s.token = ptx_mov_u32(h->q.k, U32(0));
    s.place = tile_ring_first(h->q.k, &h->ring, true);
    return s;
}

/* Turns to the next tile of the walk. */
static void turn_to(struct hopper *h, struct sender *s, struct tile_walk *walk)
{
    struct product *q = &h->q;
    ptx_kernel *k = q->k;
    tile_walk_next(k, &q->division, walk);
    struct tile_place place = w8a8_place_of(q, walk->tile);
    ptx_mul_lo_u32_to(k, s->token, place.m, U32(q->v->tokens));
    ptx_mov_u32_to(k, s->row, w8a8_find_rows(q, place.n).first);
}

/* Stages of the CTA's first tile that the ring holds at once. */
static uint32_t stages_ahead(const struct hopper *h)
{
    uint32_t own = w8a8_own_steps(h->q.spec, h->q.v);
    return own < h->q.v->stages ? own : h->q.v->stages;
}

typedef void send_part(struct hopper *h, const struct sender *s, ptx_u32 stage);

/* Weights are sent for while the kernel that makes the codes still runs; then their codes. */
static void send_ahead(struct hopper *h, struct sender *s, struct tile_walk *walk, bool claims,
                       send_part *send)
{
    ptx_kernel *k = h->q.k;
    ptx_u32 end = ptx_add_u32(k, walk->stage, U32(stages_ahead(h)));
    ptx_for(k, walk->stage, end, U32(1)) {
        ptx_nounroll(k);
        if (claims)
            tile_ring_claim(k, &h->ring, &s->place, copied_bytes(h));
        send(h, s, walk->stage);
        tile_ring_advance(k, &h->ring, &s->place, NULL);
    }
}

static void send_first_weights(struct hopper *h)
{
    struct sender s = new_sender(h);
    struct tile_walk walk = tile_walk_begin(h->q.k, h->q.first, h->q.end);
    turn_to(h, &s, &walk);
    send_ahead(h, &s, &walk, true, send_weights);
    ptx_prefetch_tensormap(h->q.k, h->codes_map, 0);
}

/* One thread sends for all else. */
static void send_all(struct hopper *h)
{
    struct product *q = &h->q;
    ptx_kernel *k = q->k;
    struct sender s = new_sender(h);
    struct tile_walk walk = tile_walk_begin(k, q->first, q->end);
    turn_to(h, &s, &walk);
    send_ahead(h, &s, &walk, false, send_codes);
    ptx_loop(k, tiles) {
        ptx_nounroll(k);
        ptx_for(k, walk.stage, walk.stage_end, U32(1)) {
            ptx_nounroll(k);
            tile_ring_claim(k, &h->ring, &s.place, copied_bytes(h));
            send_weights(h, &s, walk.stage);
            send_codes(h, &s, walk.stage);
            tile_ring_advance(k, &h->ring, &s.place, NULL);
        }
        ptx_loop_break_if(&tiles, ptx_setp_le_u32(k, walk.end, q->first), false);
        turn_to(h, &s, &walk);
    }
}

/* ---- multiplying ---- */

struct consumer {
    struct hopper *h;
    ptx_u32 w_at, codes_at; /* bytes from the start of a stage to the warpgroup's rows and codes */
    struct tile_ring_place read;
    ptx_u32 to_read;   /* stages of the CTA after the present one */
    ptx_u32 held;      /* the barrier of the stage before the present one */
    ptx_pred releases; /* the lane does, slots */
    ptx_pred always;
};

/* The stage before is given back when its products have ended, while this one's are under way. */
static void multiply_stage(struct consumer *c, ptx_u32 stage, ptx_u32 first)
{
    struct hopper *h = c->h;
    ptx_kernel *k = h->q.k;
    ptx_u64 w = tile_wgmma_descriptor(k, ptx_add_u32(k, c->read.slot, c->w_at));
    ptx_u64 codes = tile_wgmma_descriptor(k, ptx_add_u32(k, c->read.slot, c->codes_at));
    ptx_pred later = ptx_setp_ne_u32(k, stage, first); /* the first products are the sums */
    ptx_wgmma_fence(k);
    for (uint32_t i = 0; i < STEPS; i++) {
        ptx_u64 a = tile_wgmma_advance(k, w, i * 32), b = tile_wgmma_advance(k, codes, i * 32);
        ptx_wgmma_k32_s32_s8_s8(k, (int)h->q.v->tokens, h->q.acc[0][0], a, b,
                                i ? c->always : later);
    }
    ptx_wgmma_commit_group(k);
    ptx_wgmma_wait_group(k, 1);
    tile_ring_release(k, &h->ring, c->held, ptx_and_pred(k, later, c->releases));
    tile_ring_turn(k, &h->ring, &c->read, c->held, c->to_read);
}

static void multiply_tile(struct consumer *c, struct tile_walk *w)
{
    struct product *q = &c->h->q;
    ptx_kernel *k = q->k;
    ptx_section(k, "the next tile");
    ptx_u32 first = ptx_mov_u32(k, w->stage);
    w8a8_begin_part(q, w->tile);
    ptx_section(k, "stages");
    ptx_for(k, w->stage, w->stage_end, U32(1)) {
        ptx_nounroll(k);
        multiply_stage(c, w->stage, first);
    }
    ptx_wgmma_wait_group(k, 0);
    tile_ring_release(k, &c->h->ring, c->held, c->releases);
    ptx_section(k, "the end of the tile: scale, store");
    w8a8_emit_output(q, w, first);
}

static void multiply_all(struct hopper *h)
{
    struct product *q = &h->q;
    ptx_kernel *k = q->k;
    struct consumer c = {.h = h};
    q->at.team = w8a8_multipliers(q->v);
    q->at.barrier = U32(1);
    ptx_u32 group = ptx_shr_u32(k, q->along_n, U32(2));
    ptx_u32 rows = ptx_mul_lo_u32(k, group, U32(WARPGROUP_ROWS * W8A8_BLOCK));
    c.w_at = ptx_mad_lo_u32(k, q->along_k, U32(h->w_block), rows);
    c.codes_at = ptx_mad_lo_u32(k, q->along_k, U32(h->codes_block), U32(codes_offset(h)));
    c.releases = tile_ring_releasers(k, &h->ring, &q->at);
    c.read = tile_ring_first(k, &h->ring, false);
    c.held = ptx_mov_u32(k, c.read.barrier);
    c.to_read = ptx_sub_u32(k, ptx_sub_u32(k, q->end, q->first), U32(1));
    c.always = ptx_setp_eq_u32(k, q->m, q->m);
    w8a8_new_sums(q);
    w8a8_begin_output(q);
    tile_ring_wait(k, &c.read);
    struct tile_walk walk = tile_walk_begin(k, q->first, q->end);
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
    q->along_n = ptx_and_b32(k, q->at.warp, U32(q->v->wn - 1));
    q->along_m = U32(0);
    q->along_k = tile_divide(k, q->at.warp, q->v->wn);
    w8a8_count_tiles(q);
    w8a8_find_share(q);
    h->w_block = w8a8_stage_rows(q->spec, q->v) * W8A8_BLOCK;
    h->codes_block = q->v->tokens * W8A8_BLOCK;
    h->ring = (struct tile_ring){.stages = q->v->stages,
                                 .stage_bytes = w8a8_stage_bytes(q->spec, q->v),
                                 .users = q->v->wn * q->v->wk};
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
    q->sums.staging =
        w8a8_shared_buffer(q, "sums", tile_sums_bytes(v->rows, w8a8_pass_tokens(v), v->wk), 16);
    tile_ring_begin(k, &q->at, &h->ring);
    ptx_pred sends = ptx_setp_eq_u32(k, q->at.thread, U32(w8a8_multipliers(v)));
    ptx_section(k, "weights of the first stages, while the codes are made");
    ptx_griddepcontrol_launch_dependents(k);
    ptx_if(k, sends)
        send_first_weights(h);
    ptx_griddepcontrol_wait(k);
    ptx_if_else(k, ptx_setp_lt_u32(k, q->at.thread, U32(w8a8_multipliers(v)))) {
        if (w8a8_moves_registers(v))
            tile_wgmma_divide_registers(k, 2, true);
        multiply_all(h);
    } else {
        if (w8a8_moves_registers(v))
            tile_wgmma_divide_registers(k, 2, false);
        ptx_section(k, "send for stages");
        ptx_if(k, sends)
            send_all(h);
    }
    ptx_kernel_end(k);
}
