/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entries of sparse24 on wgmma.sp (sm_90a). Two producer lanes of a persistent CTA issue the
 * copies of stages, one for weights and one for x, and consumer warpgroups multiply, each its own
 * features by all tokens of the tile:
 *
 *              K: stages of 128 ──▶    yᵀ = w·xᵀ: weights are wgmma's operand A, from registers; a
 *            ┌───────┬───────┬───      warp takes 16 of each 64 features, so two warps share a
 *    N:      │ warpgroup 0   │ …       packed strip of 32. Activations are operand B, swizzled
 *    strips  ├───────┼───────┼───      boxes of 128 bytes of K that a tensor copy brings, with
 *            │ warpgroup 1   │ …       zeros past the ends. A strip's block of a stage is one
 *            └───────┴───────┴───      bulk copy.
 *    x:      [tile_m tokens] × 128 of K a stage
 *
 * For 32 of K in 16 bits a tile of 256 features and 128 tokens takes 256 cycles of wgmma.sp, which
 * reads operand B at 128 bytes a cycle, all that shared memory gives. Beside that the tile reads 9
 * KB of weights and writes 17 KB of copies, so shared memory is busy for 450 cycles.
 *
 * With few tokens the copies of x start beside those of the first weights, tiles are whole, and the
 * two CTAs of a cluster may divide K and exchange sums (exchange.h). Overlapped launches fill the
 * ring with weights, and prefetch 36 KB more into the L2, before the kernel ahead has ended.
 * Weights that no other tile reads have the L2 policy evict_first, so that x stays in the L2.
 * Measurements and rejected designs are in docs/notes/sparse24.md.
 */
#include "emit.h"

enum { TILE_STRIPS = GEMM_WARPGROUP / 32 / 2 /* of 64 features */ };

/* Bytes of a strip in a stage: a block for each warpgroup along K. */
static uint32_t strip_stage_bytes(const struct sparse24_product *q)
{
    return q->v->wk * sparse24_block_bytes(q->spec);
}

/*
 * Tile t of the lane is in half warp % 2 of strip 2t + warp / 2 of the warpgroup. Warpgroups along
 * N have features of their own; warpgroups along K have blocks of their own, and their own part of
 * x.
 */
static void find_lane(struct sparse24_product *q)
{
    ptx_kernel *k = q->g.k;
    uint32_t block = sparse24_block_bytes(q->spec), tiles = sparse24_warp_tiles(q->v);
    ptx_u32 in_group = ptx_and_b32(k, q->g.at.warp, U32(GEMM_WARPGROUP_WARPS - 1));
    ptx_u32 of_all = ptx_shr_u32(k, q->g.at.warp, U32(2));
    ptx_u32 group = gemm_remainder(k, of_all, q->v->wn / GEMM_WARPGROUP_WARPS);
    ptx_u32 half = ptx_and_b32(k, q->g.at.warp, U32(1));
    ptx_u32 second = ptx_bfe_u32(k, q->g.at.warp, U32(1), U32(1));
    ptx_u32 strip = ptx_mad_lo_u32(k, group, U32(tiles * TILE_STRIPS), second);
    q->along_k = q->v->wk == 1 ? U32(0) : gemm_divide(k, q->g.at.warp, q->v->wn);
    q->along_n = ptx_mad_lo_u32(k, group, U32(tiles * GEMM_WARPGROUP_WARPS), in_group);
    q->along_m = U32(0);
    uint32_t x_blocks = sparse24_x_blocks(q->spec, q->v) / q->v->wk;
    q->x_at = ptx_mul_lo_u32(k, q->along_k, U32(gemm_operand_stage_bytes(q->v->tile_m, x_blocks)));
    ptx_u32 at = ptx_mad_lo_u32(k, strip, U32(strip_stage_bytes(q)),
                                U32(sparse24_stage_x_bytes(q->spec, q->v)));
    ptx_u32 own = ptx_mad_lo_u32(k, q->along_k, U32(block), at);
    ptx_u32 lane = ptx_mad_lo_u32(k, q->g.at.lane, U32(GEMM_CHUNK_BYTES), own);
    q->a_at = ptx_mad_lo_u32(k, half, U32(SPARSE24_PIECE), lane);
    ptx_u32 words = ptx_add_u32(k, lane, U32(sparse24_pieces(q->spec) * SPARSE24_PIECE));
    q->metadata_at = ptx_mad_lo_u32(k, half, U32(4), words);
}

/* Loads the weights and metadata of mma step i of the current stage. */
static void load_weights(struct sparse24_product *q, uint32_t i)
{
    ptx_kernel *k = q->g.k;
    uint32_t tile = TILE_STRIPS * strip_stage_bytes(q), word = i / sparse24_word_mmas(q->spec);
    ptx_u32 at = ptx_add_u32(k, q->g.read.slot, q->a_at);
    for (uint32_t t = 0; t < sparse24_warp_tiles(q->v); t++)
        ptx_ld_shared_v4_u32_to(k, q->a[i % 2][t], at,
                                (int)(t * tile + i * SPARSE24_TILES * SPARSE24_PIECE));
    if (i % sparse24_word_mmas(q->spec))
        return;
    ptx_u32 words = ptx_add_u32(k, q->g.read.slot, q->metadata_at);
    for (uint32_t t = 0; t < sparse24_warp_tiles(q->v); t++)
        ptx_ld_shared_u32_to(k, q->metadata[word][t], words,
                             (int)(t * tile + word * SPARSE24_TILES * 4));
}

static void multiply_tile(struct sparse24_product *q, uint32_t i, uint32_t t, ptx_u64 x)
{
    ptx_kernel *k = q->g.k;
    int n = (int)q->v->tile_m, selector = (int)(i % sparse24_word_mmas(q->spec));
    const ptx_u32 *a = q->a[i % 2][t], metadata = q->metadata[i / sparse24_word_mmas(q->spec)][t];
    ptx_f32 f[SPARSE24_ROW_GROUPS * 4];
    ptx_s32 s[SPARSE24_ROW_GROUPS * 4];
    for (int r = 0; r < n / 2; r++) {
        f[r] = ptx_u32_as_f32(q->acc[t][r / 4][r % 4]);
        s[r] = ptx_u32_as_s32(q->acc[t][r / 4][r % 4]);
    }
    if (sparse24_is_s8(q->spec))
        ptx_wgmma_sp_k64_s32_s8_s8_ra(k, n, s, a, x, metadata, 0, q->accumulate);
    else if (q->spec->type == PTXGEN_SPARSE24_BF16)
        ptx_wgmma_sp_k32_f32_bf16_ra(k, n, f, a, x, metadata, selector, q->accumulate, 1, 1, 0);
    else
        ptx_wgmma_sp_k32_f32_f16_ra(k, n, f, a, x, metadata, selector, q->accumulate, 1, 1, 0);
}

static void multiply_step(struct sparse24_product *q, uint32_t i, ptx_u64 stage)
{
    enum { BLOCK_STEPS = GEMM_BLOCK_BYTES / SPARSE24_MMA_BYTES };
    ptx_kernel *k = q->g.k;
    uint32_t bytes = gemm_operand_stage_bytes(q->v->tile_m, i / BLOCK_STEPS) +
                     i % BLOCK_STEPS * SPARSE24_MMA_BYTES;
    ptx_u64 x = gemm_wgmma_advance(k, stage, bytes);
    ptx_wgmma_fence(k);
    for (uint32_t t = 0; t < sparse24_warp_tiles(q->v); t++)
        multiply_tile(q, i, t, x);
    ptx_wgmma_commit_group(k);
}

/*
 * While an mma step is multiplied the next one's weights are loaded, into the registers that the
 * step before has left. A slot is released behind the first step of the next stage, when all
 * products that read it have ended.
 */
static void multiply(struct gemm *g, const struct gemm_part *part)
{
    struct sparse24_product *q = sparse24_of(g);
    ptx_kernel *k = g->k;
    uint32_t steps = sparse24_mmas(q->spec);
    ptx_u64 x = gemm_wgmma_descriptor(k, ptx_add_u32(k, g->read.slot, q->x_at));
    ptx_pred release = ptx_setp_bool_ne_u32(k, part->walk.stage, part->first, g->releases);
    for (uint32_t i = 0; i < steps; i++) {
        multiply_step(q, i, x);
        if (i + 1 == steps)
            gemm_ring_next(k, &g->ring, &g->read, g->held[0], g->to_read);
        ptx_wgmma_wait_group(k, 1);
        if (i == 0)
            gemm_ring_release(k, &g->ring, g->held[0], release);
        load_weights(q, (i + 1) % steps);
    }
}

static void begin_consumer(struct gemm *g)
{
    struct sparse24_product *q = sparse24_of(g);
    ptx_kernel *k = g->k;
    ptx_griddepcontrol_wait(k);
    g->at.team = gemm_tile_threads(q->v);
    g->at.barrier = U32(1);
    find_lane(q);
    for (uint32_t t = 0; t < sparse24_warp_tiles(q->v); t++) {
        gemm_new_registers(k, q->a[0][t], 4);
        gemm_new_registers(k, q->a[1][t], 4);
    }
    for (uint32_t word = 0; word < SPARSE24_WORDS; word++)
        gemm_new_registers(k, q->metadata[word], sparse24_warp_tiles(q->v));
    ptx_u32 stages = gemm_begin_reading(g);
    q->accumulate = ptx_setp_eq_u32(k, stages, stages);
    if (!sparse24_has_few_registers(q->v))
        sparse24_output_begin(q);
    gemm_ring_wait(k, &g->read);
    load_weights(q, 0);
}

static void epilogue(struct gemm *g, struct gemm_part *part)
{
    struct sparse24_product *q = sparse24_of(g);
    ptx_kernel *k = g->k;
    if (sparse24_exchanges(q->v)) {
        gemm_exchange_open(k, &g->at, &q->exchange);
        gemm_exchange_send(k, &q->exchange, sparse24_accumulator, q);
    }
    if (sparse24_has_few_registers(q->v))
        sparse24_output_begin(q);
    gemm_epilogue(g, part);
}

/* ---- producers ---- */

/*
 * Copies in bulk of the stages that wgmma.sp multiplies (wgmma.c). Two lanes go through all stages
 * of the CTA, each at its own pace: one copies weights, a bulk copy for each strip of a stage, one
 * copies x, a tensor copy for each 128 bytes of K.
 */

static uint64_t strip_bytes(const struct sparse24_product *q)
{
    return (uint64_t)sparse24_steps(q->spec) * sparse24_block_bytes(q->spec);
}

/* Stages whose weights are prefetched into the L2, after those that are copied ahead. */
static uint32_t stages_prefetched(const struct sparse24_product *q)
{
    enum { BYTES = 36864 /* of a CTA */ };
    uint32_t stages = BYTES / (sparse24_tile_strips(q->v) * strip_stage_bytes(q));
    return stages ? stages : 1;
}

static void locate(struct gemm *g, struct gemm_producer *p)
{
    struct sparse24_product *q = sparse24_of(g);
    struct sparse24_producer *s = &q->producer;
    ptx_kernel *k = g->k;
    gemm_walk_next(k, &g->division, &p->walk);
    struct gemm_place place = sparse24_place_of(q, p->walk.tile);
    s->row = ptx_mul_lo_u32(k, place.m, U32(q->v->tile_m));
    gemm_boxes_locate(k, &q->boxes, s->row);
    ptx_u32 last = U32(sparse24_strips(q->spec) - 1);
    ptx_u32 first = ptx_mul_lo_u32(k, place.n, U32(sparse24_tile_strips(q->v)));
    ptx_u32 strip = ptx_min_u32(k, first, last); /* past the last strip the last again, unused */
    s->strips_left = ptx_sub_u32(k, last, strip);
    s->strip =
        ptx_mad_lo_u64(k, ptx_cvt_u64_u32(k, strip), U64(strip_bytes(q)), q->address[SPARSE24_W]);
}

static void issue_x(struct sparse24_product *q, const struct sparse24_producer *s, ptx_u32 stage)
{
    ptx_kernel *k = q->g.k;
    const ptxgen_tile *v = q->v;
    uint32_t columns = GEMM_BLOCK_BYTES / sparse24_element(q->spec);
    ptx_u32 at = sparse24_stage_of(q, stage);
    ptx_u32 column = ptx_mul_lo_u32(k, at, U32(v->wk * SPARSE24_STEP));
    for (uint32_t i = 0; i < sparse24_x_blocks(q->spec, v); i++) {
        const ptx_s32 corner[2] = {ptx_u32_as_s32(column), ptx_u32_as_s32(s->row)};
        int to = (int)gemm_operand_stage_bytes(v->tile_m, i);
        ptx_cp_async_bulk_tensor_2d_g2s(k, s->p.place.slot, to, q->boxes.map, corner,
                                        s->p.place.barrier, 0);
        column = ptx_add_u32(k, column, U32(columns));
    }
}

/*
 * The L2 policy of weights: evict_first where no other tile reads them, so that x stays in the L2.
 */
static ptx_u64 weights_policy(const struct sparse24_product *q)
{
    ptx_kernel *k = q->g.k;
    ptx_u64 first = ptx_createpolicy_fractional_L2_evict_first_b64(k);
    ptx_u64 normal = ptx_createpolicy_fractional_L2_evict_normal_b64(k);
    return ptx_selp_u64(k, first, normal, ptx_setp_eq_u32(k, q->g.tiles_m, U32(1)));
}

/*
 * The address of the tile's first strip in a stage. Past w's last strip that one is copied again.
 */
static ptx_u64 first_strip(struct sparse24_product *q, const struct sparse24_producer *s,
                           ptx_u32 stage)
{
    ptx_u32 bytes = U32(strip_stage_bytes(q));
    return ptx_mad_wide_u32(q->g.k, sparse24_stage_of(q, stage), bytes, s->strip);
}

static void advance_strip(struct sparse24_product *q, const struct sparse24_producer *s, ptx_u32 i,
                          ptx_u64 strip)
{
    ptx_kernel *k = q->g.k;
    ptx_u64 next = ptx_add_u64(k, strip, U64(strip_bytes(q)));
    ptx_selp_u64_to(k, strip, next, strip, ptx_setp_lt_u32(k, i, s->strips_left));
}

static void issue_strip(struct sparse24_product *q, const struct sparse24_producer *s, ptx_u32 slot,
                        int to, ptx_u64 from)
{
    ptx_cp_async_bulk_g2s_hint(q->g.k, slot, to, from, 0, U32(strip_stage_bytes(q)),
                               s->p.place.barrier, 0, s->policy);
}

/* The text has one copy. */
static void issue_strips_in_a_loop(struct sparse24_product *q, struct sparse24_producer *s,
                                   ptx_u32 stage)
{
    ptx_kernel *k = q->g.k;
    s->policy = weights_policy(q);
    ptx_u64 strip = ptx_mov_u64(k, first_strip(q, s, stage));
    ptx_u32 slot = ptx_mov_u32(k, s->p.place.slot), i = ptx_mov_u32(k, U32(0));
    ptx_for(k, i, U32(sparse24_tile_strips(q->v)), U32(1)) {
        ptx_nounroll(k);
        issue_strip(q, s, slot, (int)sparse24_stage_x_bytes(q->spec, q->v), strip);
        advance_strip(q, s, i, strip);
        ptx_add_u32_to(k, slot, slot, U32(strip_stage_bytes(q)));
    }
}

/* The text has a copy for each. */
static void issue_strips(struct sparse24_product *q, const struct sparse24_producer *s,
                         ptx_u32 stage)
{
    ptx_kernel *k = q->g.k;
    uint32_t strips = sparse24_tile_strips(q->v);
    bool tail = sparse24_strips(q->spec) % strips;
    ptx_u64 first = first_strip(q, s, stage), strip = first;
    for (uint32_t i = 0; i < strips; i++) {
        if (i && tail) {
            ptx_u32 exists = ptx_min_u32(k, s->strips_left, U32(i));
            strip = ptx_mad_lo_u64(k, ptx_cvt_u64_u32(k, exists), U64(strip_bytes(q)), first);
        } else if (i)
            strip = ptx_add_u64(k, strip, U64(strip_bytes(q)));
        int to = (int)(sparse24_stage_x_bytes(q->spec, q->v) + i * strip_stage_bytes(q));
        issue_strip(q, s, s->p.place.slot, to, strip);
    }
}

/* Prefetches the weights of the next stages_prefetched stages, or of those that remain. */
static void prefetch_weights(struct sparse24_product *q, const struct sparse24_producer *s,
                             const struct gemm_walk *w)
{
    ptx_kernel *k = q->g.k;
    ptx_u32 left = ptx_sub_u32(k, w->stage_end, w->stage);
    ptx_u32 stages = ptx_min_u32(k, left, U32(stages_prefetched(q)));
    ptx_u32 bytes = ptx_mul_lo_u32(k, stages, U32(strip_stage_bytes(q)));
    ptx_u64 strip = ptx_mov_u64(k, first_strip(q, s, w->stage));
    ptx_u32 i = ptx_mov_u32(k, U32(0));
    ptx_for(k, i, U32(sparse24_tile_strips(q->v)), U32(1)) {
        ptx_nounroll(k);
        ptx_cp_async_bulk_prefetch_L2(k, strip, 0, bytes);
        advance_strip(q, s, i, strip);
    }
}

/* The first two warps of the producer warpgroup issue copies, one of weights, one of x. */
enum { PRODUCERS = 2, BEGUN = 2 /* number of the CTA barrier after which the ring may be used */ };

static uint32_t producer_warp(const struct sparse24_product *q, uint32_t producer)
{
    return gemm_tile_threads(q->v) / 32 + producer;
}

/*
 * The producer warp of weights sets the ring up, and goes on without waiting for the other warps.
 * These wait at a single bar.sync of the text, since compute-sanitizer's synccheck (CUDA 13.0)
 * takes two of them for divergence.
 */
static void begin_ring(struct sparse24_product *q)
{
    ptx_kernel *k = q->g.k;
    ptx_u32 all = U32(gemm_cta_threads(q->v));
    ptx_if_else(k, ptx_setp_eq_u32(k, q->g.at.warp, U32(producer_warp(q, 0)))) {
        ptx_if(k, ptx_setp_eq_u32(k, q->g.at.lane, U32(0))) {
            gemm_ring_init_full(k, &q->g.ring);
            gemm_ring_init_others(k, &q->g.ring);
        }
        ptx_bar_warp_sync(k, ALL_LANES);
        ptx_bar_arrive_n(k, U32(BEGUN), all);
    } else
        ptx_bar_sync_n(k, U32(BEGUN), all);
}

/* Stages whose weights are copied before the kernel ahead has ended: the whole ring, or fewer. */
static uint32_t stages_ahead(const struct sparse24_product *q)
{
    const ptxgen_tile *v = q->v;
    bool few = sparse24_exchanges(v) && v->tile_m >= 64;
    return few ? 256 / v->tile_n : q->g.ring.stages;
}

/*
 * Whether strips are copied in a loop: eight copies in the text take more than the 32 registers of
 * a producer lane. A stage of s8 is half as long, which makes a loop too slow, but its copies fit
 * into the registers.
 */
static bool loops_over_strips(const struct sparse24_product *q)
{
    return sparse24_has_few_registers(q->v) && !sparse24_is_s8(q->spec);
}

/*
 * The weights of a stage. Behind those of the first stages, and a prefetch of some more into the
 * L2, the lane waits for the kernel ahead.
 */
static void issue_weights(struct sparse24_product *q, struct sparse24_producer *s)
{
    ptx_kernel *k = q->g.k;
    ptx_if(k, ptx_setp_eq_u32(k, s->ahead, U32(0))) {
        prefetch_weights(q, s, &s->p.walk);
        ptx_griddepcontrol_wait(k);
    }
    ptx_sub_u32_to(k, s->ahead, s->ahead, U32(1));
    gemm_ring_claim_some(k, &q->g.ring, &s->p.place, q->boxes.bytes);
    if (loops_over_strips(q))
        issue_strips_in_a_loop(q, s, s->p.walk.stage);
    else
        issue_strips(q, s, s->p.walk.stage);
}

/* Two lanes run this code, one for weights, one for x. */
static void issue(struct gemm *g, struct gemm_producer *p)
{
    struct sparse24_product *q = sparse24_of(g);
    struct sparse24_producer *s = &q->producer;
    ptx_if_else(g->k, s->weights)
        issue_weights(q, s);
    else {
        gemm_ring_wait_free(g->k, &g->ring, &p->place);
        issue_x(q, s, p->walk.stage);
    }
}

static void issue_stages(struct sparse24_product *q, ptx_pred weights)
{
    ptx_kernel *k = q->g.k;
    struct sparse24_producer *s = &q->producer;
    s->weights = weights;
    s->p = (struct gemm_producer){.locate = locate, .issue = issue};
    s->p.place = gemm_ring_first(k, &q->g.ring, true);
    if (!loops_over_strips(q))
        s->policy = weights_policy(q);
    s->ahead = ptx_mov_u32(k, U32(stages_ahead(q)));
    s->p.walk = gemm_walk_begin(k, q->g.first, q->g.end);
    gemm_issue_parts(&q->g, &s->p);
}

/*
 * Weights may be read while the kernel ahead of this one still runs: those of the first stages are.
 * All else, x, the workspace and y, waits for that kernel's end.
 */
static void produce(struct gemm *g)
{
    struct sparse24_product *q = sparse24_of(g);
    ptx_kernel *k = g->k;
    ptx_if(k, ptx_setp_lt_u32(k, g->at.warp, U32(producer_warp(q, PRODUCERS)))) {
        ptx_u32 first = U32(producer_warp(q, 0));
        ptx_pred weights = ptx_setp_eq_u32(k, g->at.warp, first);
        ptx_if(k, ptx_setp_ne_u32(k, g->at.warp, first))
            ptx_griddepcontrol_wait(k);
        ptx_if(k, ptx_setp_eq_u32(k, g->at.lane, U32(0)))
            issue_stages(q, weights);
    }
    if (sparse24_exchanges(q->v)) {
        ptx_bar_warp_sync(k, ALL_LANES);
        ptx_barrier_cluster_wait(k);
    }
}

/* ---- all threads ---- */

static void begin(struct gemm *g)
{
    struct sparse24_product *q = sparse24_of(g);
    const ptxgen_tile *v = q->v;
    ptx_kernel *k = g->k;
    sparse24_load_params(q);
    g->at = gemm_find_threads(k);
    sparse24_find_share(q);
    g->ring = (struct gemm_ring){.stages = v->stages,
                                 .stage_bytes = sparse24_stage_bytes(q->spec, v),
                                 .users = gemm_tile_threads(v) / 32,
                                 .by_lane = true};
    ptx_param maps = ptx_param_declare(k, "x_maps", 2 * GEMM_MAP_BYTES, GEMM_MAP_ALIGN);
    gemm_ring_declare(k, &g->ring);
    q->staging = ptx_shared_address(k, ptx_shared_declare(k, "sums", sparse24_sums_bytes(v), 16));
    gemm_ring_declare_barriers(k, &g->ring);
    q->boxes = (struct gemm_boxes){.rows = v->tile_m,
                                   .blocks = sparse24_x_blocks(q->spec, v),
                                   .stage_bytes = sparse24_stage_bytes(q->spec, v),
                                   .maps = ptx_param_address(k, maps),
                                   .all = g->m};
    if (sparse24_exchanges(v)) {
        q->exchange = (struct gemm_exchange){.threads = gemm_tile_threads(v),
                                             .teams = 1,
                                             .tiles = sparse24_warp_tiles(q->v),
                                             .row_groups = v->tile_m / 8,
                                             .integer = sparse24_is_s8(q->spec),
                                             .rank = g->rank};
        gemm_exchange_begin(k, &g->at, &q->exchange);
    }
    gemm_boxes_begin(k, &q->boxes);
    gemm_boxes_clear(k, &q->boxes, &g->at, gemm_cta_threads(v), &g->ring);
    ptx_griddepcontrol_launch_dependents(k);
    begin_ring(q);
}

const struct gemm_ops sparse24_wgmma_ops = {.begin = begin,
                                            .begin_consumer = begin_consumer,
                                            .clear = sparse24_clear,
                                            .multiply = multiply,
                                            .drain = gemm_drain_wgmma,
                                            .epilogue = epilogue,
                                            .produce = produce};
