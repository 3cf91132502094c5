/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entries of marlin that copy stages in bulk into a ring: their producer, for wgmma (sm_90a) as
 * for mma.sync (bulk.c). A producer thread of a persistent CTA issues the copies of stages, and
 * consumer warpgroups multiply, each its own strips of 64 features with all tokens of the tile:
 *
 *              K: stages ──▶          yᵀ = w·xᵀ: dequantised weights are wgmma's operand A, from
 *            ┌───────┬───────┬───     registers: word i of a lane holds what wgmma takes from the
 *    N:      │ warpgroup 0   │ …      lane for slice i of 16 of K. Activations are operand B, a
 *    strips  ├───────┼───────┼───     swizzled box of 64 of K by tile_m tokens that a tensor copy
 *            │ warpgroup 1   │ …      brings (boxes.h). The codes of a strip in a stage are one
 *            └───────┴───────┴───     bulk copy.
 *    x:      [tile_m tokens] × 64·steps of K a stage
 *
 * For 64 of K a tile of 128 tokens and 256 features takes 1024 cycles of wgmma (2048 multiply-adds
 * a cycle), a quarter of the issue slots for dequantisation (12 instructions of a warp for 256
 * weights), and 24 KB from the L2 (25 bytes a cycle); 256 tokens and 128 features would take 36 KB.
 *
 * Where tiles are fewer than multiprocessors, the two CTAs of a cluster divide a tile's K and
 * exchange partial sums (exchange.h); where tiles are divided otherwise, the fix-up goes through
 * the ring (fixup.h). Measurements and rejected designs are in docs/notes/marlin.md.
 */
#include "../policy.h"
#include "bulk.h"

/* ---- sizes ---- */

/*
 * Groups of a strip in a stage. Where whole numbers of mma.sync's warps along K share a group, the
 * groups of the stage are contiguous.
 */
static uint32_t groups_of(const ptxgen_marlin_spec *s, const ptxgen_tile *v)
{
    uint32_t steps = marlin_scale_rows(s) / MARLIN_STEP, all = marlin_stage_steps(v);
    bool whole = !gemm_is_wgmma(v) && steps && steps % v->steps == 0 && all % steps == 0;
    return whole ? all / steps : marlin_stage_groups(s, all);
}

static struct stage_layout layout_of(const ptxgen_marlin_spec *s, const ptxgen_tile *v)
{
    struct stage_layout l = {.strips = (v->tile_n + MARLIN_STRIP - 1) / MARLIN_STRIP,
                             .groups = groups_of(s, v)};
    l.codes = gemm_operand_stage_bytes(v->tile_m, marlin_stage_steps(v));
    l.codes_bytes = marlin_stage_steps(v) * MARLIN_STEP_BYTES;
    l.half = l.codes + v->tile_n / MARLIN_STRIP * l.codes_bytes;
    l.scales = l.half + (marlin_has_odd_halves(v) ? l.codes_bytes / 2 : 0);
    l.scales_bytes = l.groups * MARLIN_SCALES_BYTES;
    l.zeros = l.scales + l.strips * l.scales_bytes;
    l.zeros_bytes = s->zeros ? l.groups * MARLIN_ZEROS_BYTES : 0;
    l.copied = l.zeros + l.strips * l.zeros_bytes;
    l.totals = l.copied;
    if (marlin_stores_totals(s, v))
        l.totals_bytes = v->wk * marlin_corrected_groups(s, v) * marlin_total_bytes(s, v);
    l.bytes = (l.totals + l.totals_bytes + GEMM_RING_ALIGN - 1) / GEMM_RING_ALIGN * GEMM_RING_ALIGN;
    return l;
}

static uint32_t warpgroups(const ptxgen_tile *v)
{
    return v->wn * v->wk / GEMM_WARPGROUP_WARPS;
}

/*
 * Teams of a CTA: the warpgroups that have the same columns are a team and stage sums together.
 * Without wgmma all warps are one team.
 */
static uint32_t teams(const ptxgen_tile *v)
{
    return gemm_is_wgmma(v) ? warpgroups(v) / marlin_staged_wk(v) : 1;
}

static uint32_t team_staging_bytes(const ptxgen_tile *v)
{
    uint32_t columns = gemm_is_wgmma(v) ? GEMM_WARPGROUP_WARPS * v->warp_n : v->tile_n;
    return gemm_sums_bytes(columns, marlin_pass_tokens(v), marlin_staged_wk(v));
}

static uint32_t exchange_bytes(const ptxgen_tile *v)
{
    uint32_t tiles_of_warp = v->warp_n / MARLIN_TILE;
    return marlin_exchanges(v) ? gemm_exchange_bytes(gemm_tile_threads(v), marlin_exchange_teams(v),
                                                     tiles_of_warp, v->tile_m / 8)
                               : 0;
}

uint32_t marlin_ring_shared_bytes(const ptxgen_marlin_spec *s, const ptxgen_tile *v)
{
    uint32_t barriers = marlin_stores_totals(s, v) ? gemm_ring_side_barrier_bytes(v->stages)
                                                   : gemm_ring_barrier_bytes(v->stages);
    return v->stages * layout_of(s, v).bytes + teams(v) * team_staging_bytes(v) + barriers +
           exchange_bytes(v);
}

/* ---- copies ---- */

enum { FEW_ROWS = 32 };

static void issue_x(struct marlin_bulk *b, const struct marlin_producer *s, ptx_u32 stage)
{
    ptx_kernel *k = b->q.g.k;
    ptx_u32 column = ptx_mul_lo_u32(k, stage, U32(marlin_stage_steps(b->q.v) * MARLIN_STEP));
    for (uint32_t i = 0; i < marlin_stage_steps(b->q.v); i++) {
        ptx_u32 here = i ? ptx_add_u32(k, column, U32(i * MARLIN_STEP)) : column;
        const ptx_s32 corner[2] = {ptx_u32_as_s32(here), ptx_u32_as_s32(s->row)};
        int to = (int)gemm_operand_stage_bytes(b->q.v->tile_m, i);
        ptx_cp_async_bulk_tensor_2d_g2s(k, s->p.place.slot, to, b->boxes.map, corner,
                                        s->p.place.barrier, 0);
    }
}

/*
 * Issues one copy of weights, from `offset` past `from`. In tiles of mma.sync that are several
 * warps wide the weights have the L2 policy evict_first, so that the activations, which all CTAs
 * read, stay in the L2.
 */
static void copy_weights(struct marlin_bulk *b, const struct marlin_producer *s, uint32_t to,
                         ptx_u64 from, uint32_t offset, uint32_t bytes)
{
    ptx_kernel *k = b->q.g.k;
    if (!gemm_is_wgmma(b->q.v) && b->q.v->wn > 1)
        ptx_cp_async_bulk_g2s_hint(k, s->p.place.slot, (int)to, from, (int)offset, U32(bytes),
                                   s->p.place.barrier, 0, EVICT_FIRST);
    else
        ptx_cp_async_bulk_g2s(k, s->p.place.slot, (int)to, from, (int)offset, U32(bytes),
                              s->p.place.barrier, 0);
}

/*
 * Issues the copies of all strips of a tile, `bytes` bytes each, to offsets from `to` on. Strips
 * are `pitch` bytes apart in memory; the address of the next one is found by an addition, since
 * ptxas would keep every multiple of `pitch` in a register.
 */
static void issue_strips(struct marlin_bulk *b, const struct marlin_producer *s, ptx_u64 from,
                         uint32_t pitch, uint32_t to, uint32_t bytes, uint32_t each)
{
    ptx_kernel *k = b->q.g.k;
    uint32_t all = marlin_strips(b->q.spec);
    bool tail = all * MARLIN_STRIP % b->q.v->tile_n;
    ptx_u64 at = ptx_mad_wide_u32(k, s->strip, U32(pitch), from);
    for (uint32_t i = 0; i < b->stage.strips; i++) {
        if (i && tail) /* past the last strip, copy the last one again; its products are not used */
            ptx_guarded(k, ptx_setp_lt_u32(k, s->strip, U32(all > i ? all - i : 0)))
                ptx_add_u64_to(k, at, at, U64(pitch));
        else if (i)
            ptx_add_u64_to(k, at, at, U64(pitch));
        copy_weights(b, s, to + i * each, at, 0, bytes);
    }
}

/* Issues the copies of the groups of a stage from `step` on, `bytes` bytes each, of all strips. */
static void issue_groups(struct marlin_bulk *b, const struct marlin_producer *s, ptx_u64 from,
                         ptx_u32 step, uint32_t to, uint32_t bytes)
{
    ptx_kernel *k = b->q.g.k;
    const ptxgen_marlin_spec *spec = b->q.spec;
    uint32_t rows = marlin_scale_rows(spec), groups = b->stage.groups;
    uint32_t pitch = marlin_groups(spec) * bytes, steps = rows / MARLIN_STEP;
    if (rows <= MARLIN_STEP || groups * steps == marlin_stage_steps(b->q.v)) { /* side by side */
        ptx_u32 group = rows > MARLIN_STEP ? gemm_divide(k, step, steps) : step;
        ptx_u32 offset = ptx_mul_lo_u32(k, group, U32(marlin_step_groups(spec) * bytes));
        ptx_u64 at = ptx_add_u64(k, from, ptx_cvt_u64_u32(k, offset));
        issue_strips(b, s, at, pitch, to, groups * bytes, groups * bytes);
        return;
    }
    for (uint32_t i = 0; i < groups; i++) {
        ptx_u32 here = i ? ptx_add_u32(k, step, U32(i)) : step;
        ptx_u32 group = gemm_divide(k, here, steps);
        ptx_u64 at = ptx_mad_wide_u32(k, group, U32(bytes), from);
        issue_strips(b, s, at, pitch, to + i * bytes, bytes, groups * bytes);
    }
}

/*
 * Issues the copies of a tile that starts (`odd`) or ends with half a strip: first the whole
 * strips, then the half strip, which has 1 KB of each step.
 */
static void issue_halves(struct marlin_bulk *b, const struct marlin_producer *s, ptx_u64 from)
{
    ptx_kernel *k = b->q.g.k;
    enum { HALF = MARLIN_STEP_BYTES / 2 };
    uint32_t pitch = marlin_steps(b->q.spec) * MARLIN_STEP_BYTES, whole = b->q.v->wn / 2;
    ptx_u64 first = ptx_mad_wide_u32(k, s->strip, U32(pitch), from);
    ptx_u64 strip = ptx_mad_wide_u32(k, s->odd, U32(pitch), first);
    for (uint32_t i = 0; i < whole; i++)
        copy_weights(b, s, b->stage.codes + i * b->stage.codes_bytes, strip, i * pitch,
                     b->stage.codes_bytes);
    ptx_u32 past = ptx_sub_u32(k, U32(1), s->odd); /* past the whole ones */
    ptx_u64 half = ptx_mad_wide_u32(k, past, U32(whole * pitch), first);
    half = ptx_mad_wide_u32(k, s->odd, U32(HALF), half);
    for (uint32_t step = 0; step < marlin_stage_steps(b->q.v); step++)
        copy_weights(b, s, b->stage.half + step * HALF, half, step * MARLIN_STEP_BYTES, HALF);
}

static void issue_weights(struct marlin_bulk *b, const struct marlin_producer *s, ptx_u32 stage)
{
    ptx_kernel *k = b->q.g.k;
    const struct stage_layout *l = &b->stage;
    const ptx_u64 *address = b->q.address;
    ptx_u32 step = ptx_mul_lo_u32(k, stage, U32(marlin_stage_steps(b->q.v)));
    ptx_u64 codes = ptx_mad_wide_u32(k, step, U32(MARLIN_STEP_BYTES), address[MARLIN_CODES]);
    if (marlin_has_odd_halves(b->q.v))
        issue_halves(b, s, codes);
    else
        issue_strips(b, s, codes, marlin_steps(b->q.spec) * MARLIN_STEP_BYTES, l->codes,
                     l->codes_bytes, l->codes_bytes);
    if (l->groups)
        issue_groups(b, s, address[MARLIN_SCALES], step, l->scales, MARLIN_SCALES_BYTES);
    if (l->groups && b->q.spec->zeros)
        issue_groups(b, s, address[MARLIN_ZEROS], step, l->zeros, MARLIN_ZEROS_BYTES);
}

/* Turns a number among the CTA's stages of a tile's K into a number among all of the tile's. */
static ptx_u32 of_tile(struct marlin_bulk *b, ptx_u32 stage)
{
    return b->q.v->cluster > 1 ? ptx_add_u32(b->q.g.k, stage, b->along_k) : stage;
}

static void locate(struct gemm *g, struct gemm_producer *p);
static void issue(struct gemm *g, struct gemm_producer *p);

static void begin_producer(struct marlin_bulk *b)
{
    struct marlin_producer *s = &b->producer;
    ptx_kernel *k = b->q.g.k;
    s->p = (struct gemm_producer){.located = true, .locate = locate, .issue = issue};
    s->row = ptx_mov_u32(k, U32(0));
    s->strip = ptx_mov_u32(k, U32(0));
    if (marlin_has_odd_halves(b->q.v))
        s->odd = ptx_mov_u32(k, U32(0));
    s->p.walk = gemm_walk_begin(k, b->q.g.first, b->q.g.end);
}

static void locate(struct gemm *g, struct gemm_producer *p)
{
    struct marlin_bulk *b = marlin_bulk_of(g);
    struct marlin_producer *s = (struct marlin_producer *)p;
    struct marlin_product *q = &b->q;
    gemm_walk_next(q->g.k, &q->g.division, &s->p.walk);
    struct gemm_place place = marlin_emit_place(q, s->p.walk.tile);
    ptx_mul_lo_u32_to(q->g.k, s->row, place.m, U32(q->v->tile_m));
    if (q->v->tile_m > FEW_ROWS) /* computed here again, since few registers are free to keep it */
        b->boxes.maps = ptx_param_address(q->g.k, b->maps);
    gemm_boxes_locate(q->g.k, &b->boxes, s->row);
    if (marlin_has_odd_halves(q->v)) {
        ptx_u32 half = ptx_mul_lo_u32(q->g.k, place.n, U32(q->v->wn));
        ptx_shr_u32_to(q->g.k, s->strip, half, U32(1));
        ptx_and_b32_to(q->g.k, s->odd, half, U32(1));
    } else
        ptx_mul_lo_u32_to(q->g.k, s->strip, place.n, U32(b->stage.strips));
}

/*
 * The end of the stages whose weights are copied before the kernel ahead has ended. Activations
 * wait behind these copies, so they are few: one stage, two with few tokens, and with 8 tokens as
 * many as 60 KB hold.
 */
static ptx_u32 ahead(struct marlin_bulk *b, const struct marlin_producer *s)
{
    enum { FEWEST_ROWS = 8, AHEAD_BYTES = 60 * 1024 };
    const ptxgen_tile *v = b->q.v;
    uint32_t most = v->tile_m <= FEW_ROWS ? 2 : 1,
             fit = AHEAD_BYTES / (b->stage.copied - b->stage.codes);
    if (v->tile_m == FEWEST_ROWS && fit > most)
        most = fit < v->stages ? fit : v->stages;
    ptx_u32 below = ptx_add_u32(b->q.g.k, s->p.walk.stage, U32(most));
    return ptx_min_u32(b->q.g.k, below, s->p.walk.stage_end);
}

/*
 * Programmatic dependent launch: the weights of the first stages are copied while the kernel ahead
 * still runs. Accesses to activations, workspace and y wait for the end of that kernel; then the
 * activations of these stages are copied. All slots are empty at this point.
 */
static void issue_ahead(struct marlin_bulk *b, struct marlin_producer *s, bool weights)
{
    ptx_kernel *k = b->q.g.k;
    s->p.place = gemm_ring_first(k, &b->q.g.ring, true);
    ptx_u32 end = ahead(b, s), stage = weights ? ptx_mov_u32(k, s->p.walk.stage) : s->p.walk.stage;
    ptx_for(k, stage, end, U32(1)) {
        ptx_nounroll(k);
        if (weights)
            ptx_mbarrier_arrive_expect_tx(k, s->p.place.barrier, 0, b->boxes.bytes);
        (weights ? issue_weights : issue_x)(b, s, of_tile(b, stage));
        gemm_ring_advance(k, &b->q.g.ring, &s->p.place, NULL);
    }
}

/*
 * There is no branch about a copy here: one that asks whether weights were issued ahead makes whole
 * products slower.
 */
static void issue(struct gemm *g, struct gemm_producer *p)
{
    struct marlin_bulk *b = marlin_bulk_of(g);
    const struct marlin_producer *s = (const struct marlin_producer *)p;
    gemm_ring_claim_some(g->k, &g->ring, &p->place, b->boxes.bytes);
    ptx_u32 stage = of_tile(b, p->walk.stage);
    issue_x(b, s, stage);
    issue_weights(b, s, stage);
}

static void issue_all(struct marlin_bulk *b)
{
    issue_ahead(b, &b->producer, false);
    gemm_issue_parts(&b->q.g, &b->producer.p);
}

/* ---- fix-up ---- */

/*
 * The flag warp, which follows the producer warp, publishes that the CTA has stored partial sums of
 * a tile which another CTA ends.
 */
static void publish_partials(struct marlin_bulk *b)
{
    struct marlin_product *q = &b->q;
    ptx_kernel *k = q->g.k;
    ptx_pred in_flag_warp = ptx_setp_eq_u32(k, q->g.at.warp, U32(q->v->wn * q->v->wk + 1));
    ptx_u32 past = gemm_remainder(k, b->q.g.end, q->g.division.stages);
    ptx_if(k, ptx_setp_bool_ne_u32(k, past, U32(0), in_flag_warp))
        gemm_bulk_fixup_publish(k, &q->bulk_fixup, &q->g.at, q->address[MARLIN_WORKSPACE]);
}

/*
 * The producer's share of the fix-up: copies the partial sums of the CTA's first tile, if the CTA
 * ends that tile and other CTAs have parts of it. The end of the CTA's stages is computed again,
 * since no register is free to keep it.
 */
static void issue_fixup(struct marlin_bulk *b, struct marlin_producer *s)
{
    struct marlin_product *q = &b->q;
    ptx_kernel *k = q->g.k;
    uint32_t stages = q->g.division.stages;
    ptx_u32 start = ptx_mul_lo_u32(k, gemm_divide(k, b->q.g.first, stages), U32(stages));
    const struct gemm_threads at = {.cta = ptx_sreg_ctaid_x(k)};
    ptx_u32 end = gemm_first_stage(k, &q->g.division, ptx_add_u32(k, at.cta, U32(1)));
    ptx_if(k, ptx_setp_ge_u32(k, end, ptx_add_u32(k, start, U32(stages)))) {
        ptx_u32 lowest = gemm_fixup_lowest_cta(k, &q->g.division, &at, start);
        gemm_bulk_fixup_issue(k, &q->bulk_fixup, lowest, q->address[MARLIN_WORKSPACE],
                              marlin_emit_partials(q), &s->p.place);
    }
}

/* ---- the entry ---- */

/* Of a thread, by the CTAs of a multiprocessor and the warpgroups that multiply. */
struct gemm_registers marlin_registers(const ptxgen_tile *v)
{
    enum { CTAS = 2, GROUPS = 4 };
    static const struct gemm_registers registers[CTAS + 1][GROUPS + 1] = {
        [1] = {[2] = {56, 224}, [3] = {32, 160}, [4] = {32, 112}}, [2] = {[2] = {48, 96}}};
    uint32_t groups = warpgroups(v);
    bool known = gemm_is_wgmma(v) && v->ctas <= CTAS && groups <= GROUPS;
    return known ? registers[v->ctas][groups] : registers[0][0];
}

static void begin_exchange(struct marlin_bulk *b)
{
    const ptxgen_tile *v = b->q.v;
    if (!marlin_exchanges(v))
        return;
    b->exchange = (struct gemm_exchange){.threads = gemm_tile_threads(v),
                                         .teams = marlin_exchange_teams(v),
                                         .barrier = teams(v) + 1,
                                         .tiles = tiles(&b->q),
                                         .row_groups = token_groups(&b->q),
                                         .rank = b->q.g.rank};
    gemm_exchange_begin(b->q.g.k, &b->q.g.at, &b->exchange);
    b->q.exchange = &b->exchange;
}

static void begin(struct marlin_bulk *b)
{
    struct marlin_product *q = &b->q;
    ptx_kernel *k = q->g.k;
    marlin_emit_params(q);
    q->g.at = gemm_find_threads(k);
    q->g.tiles_m = marlin_emit_tiles_m(q);
    gemm_find_share(&q->g);
    if (q->v->cluster > 1)
        b->along_k = ptx_mul_lo_u32(k, q->g.rank, U32(q->g.division.stages));
    b->stage = layout_of(q->spec, q->v);
    b->q.g.ring = (struct gemm_ring){.stages = q->v->stages,
                                     .stage_bytes = b->stage.bytes,
                                     .users = q->v->wn * q->v->wk,
                                     .by_lane = true,
                                     .has_side = marlin_stores_totals(q->spec, q->v)};
    if (gemm_is_wgmma(q->v) && q->v->cluster == 1)
        q->bulk_fixup = (struct gemm_bulk_fixup){.threads = gemm_tile_threads(q->v),
                                                 .fragments = marlin_fragments(q->v),
                                                 .barrier = teams(q->v) + 1,
                                                 .ring = &b->q.g.ring};
}

void marlin_begin_bulk(struct gemm *g)
{
    struct marlin_bulk *b = marlin_bulk_of(g);
    const ptxgen_tile *v = b->q.v;
    ptx_kernel *k = g->k;
    begin(b);
    b->maps = ptx_param_declare(k, "x_maps", 2 * GEMM_MAP_BYTES, GEMM_MAP_ALIGN);
    gemm_ring_declare(k, &g->ring);
    uint32_t staging = teams(v) * team_staging_bytes(v);
    b->staging = ptx_shared_address(k, ptx_shared_declare(k, "sums", staging, 16));
    b->issues = ptx_setp_eq_u32(k, g->at.thread, U32(gemm_tile_threads(v)));
    gemm_ring_declare_barriers(k, &g->ring);
    b->boxes = (struct gemm_boxes){.rows = v->tile_m,
                                   .blocks = marlin_stage_steps(v),
                                   .stage_bytes = b->stage.copied,
                                   .maps = ptx_param_address(k, b->maps),
                                   .all = g->m};
    gemm_boxes_begin(k, &b->boxes);
    begin_producer(b);
    ptx_section(k, "weights of the first stages, while the kernel ahead ends");
    ptx_griddepcontrol_launch_dependents(k);
    ptx_if(k, b->issues) {
        gemm_ring_init_full(k, &g->ring);
        locate(g, &b->producer.p);
        issue_ahead(b, &b->producer, true);
    }
    begin_exchange(b); /* after the first copies, since a cluster barrier would delay them */
    ptx_if(k, ptx_setp_eq_u32(k, g->at.thread, U32(0)))
        gemm_ring_init_others(k, &g->ring);
    ptx_bar_sync(k, 0);
    gemm_boxes_clear(k, &b->boxes, &g->at, marlin_cta_threads(v), &g->ring);
    ptx_griddepcontrol_wait(k);
}

void marlin_produce(struct gemm *g)
{
    struct marlin_bulk *b = marlin_bulk_of(g);
    const ptxgen_tile *v = b->q.v;
    ptx_kernel *k = g->k;
    bool fixes_up = b->q.bulk_fixup.threads;
    if (fixes_up)
        publish_partials(b);
    ptx_if(k, b->issues) {
        issue_all(b);
        if (fixes_up)
            issue_fixup(b, &b->producer);
    }
    if (marlin_stores_totals(b->q.spec, v))
        ptx_if(k, ptx_setp_gt_u32(k, g->at.warp, U32(v->wn * v->wk)))
            marlin_sum_x(b);
}
