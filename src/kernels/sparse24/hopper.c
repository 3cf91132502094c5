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

#include "../gemm/boxes.h"
#include "../gemm/exchange.h"
#include "../gemm/wgmma.h"

struct hopper {
    struct sparse24_product q;
    struct gemm_ring ring;
    struct gemm_boxes boxes; /* of x */
    struct gemm_exchange exchange;
    struct gemm_ring_place read;
    ptx_u32 to_read; /* stages of the CTA after the current one */
    ptx_u32 held;    /* full barrier of the slot that is to be released next */
    ptx_pred releases, accumulate;
    ptx_u32 a_at, metadata_at, x_at; /* offsets in a stage: the lane's; of the warpgroup's x */
    ptx_u32 a[2][SPARSE24_TILES][4]; /* of the current mma step and of the next */
    ptx_u32 metadata[SPARSE24_WORDS][SPARSE24_TILES];
};

enum { TILE_STRIPS = GEMM_WARPGROUP / 32 / 2 /* of 64 features */ };

static uint32_t warp_tiles(const struct hopper *h)
{
    return sparse24_warp_tiles(h->q.v);
}

/* Bytes of a strip in a stage, which has a block for each warpgroup along K. */
static uint32_t strip_stage_bytes(const struct sparse24_product *q)
{
    return q->v->wk * sparse24_block_bytes(q->spec);
}

/* ---- producer ---- */

struct sender {
    ptx_u64 strip;       /* address of the tile's first strip */
    ptx_u32 row;         /* the tile's first token */
    ptx_u32 strips_left; /* strips of w after the tile's first one */
    struct gemm_ring_place place;
    ptx_u64 policy; /* L2 policy of weights */
};

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

/* Moves the producer to the next part of the walk. */
static void turn_to(struct hopper *h, struct sender *s, struct gemm_walk *walk)
{
    struct sparse24_product *q = &h->q;
    ptx_kernel *k = q->k;
    gemm_walk_next(k, &q->division, walk);
    struct gemm_place place = sparse24_place_of(q, walk->tile);
    s->row = ptx_mul_lo_u32(k, place.m, U32(q->v->tile_m));
    gemm_boxes_locate(k, &h->boxes, s->row);
    ptx_u32 last = U32(sparse24_strips(q->spec) - 1);
    ptx_u32 first = ptx_mul_lo_u32(k, place.n, U32(sparse24_tile_strips(q->v)));
    ptx_u32 strip = ptx_min_u32(k, first, last); /* past the last strip, copy that again */
    s->strips_left = ptx_sub_u32(k, last, strip);
    s->strip =
        ptx_mad_lo_u64(k, ptx_cvt_u64_u32(k, strip), U64(strip_bytes(q)), q->address[SPARSE24_W]);
}

static void send_x(struct hopper *h, const struct sender *s, ptx_u32 stage)
{
    ptx_kernel *k = h->q.k;
    const ptxgen_sparse24_variant *v = h->q.v;
    uint32_t columns = GEMM_BLOCK_BYTES / sparse24_element(h->q.spec);
    ptx_u32 at = sparse24_stage_of(&h->q, stage);
    ptx_u32 column = ptx_mul_lo_u32(k, at, U32(v->wk * SPARSE24_STEP));
    for (uint32_t i = 0; i < sparse24_x_blocks(h->q.spec, v); i++) {
        const ptx_s32 corner[2] = {ptx_u32_as_s32(column), ptx_u32_as_s32(s->row)};
        int to = (int)gemm_operand_stage_bytes(v->tile_m, i);
        ptx_cp_async_bulk_tensor_2d_g2s(k, s->place.slot, to, h->boxes.map, corner,
                                        s->place.barrier, 0);
        column = ptx_add_u32(k, column, U32(columns));
    }
}

/*
 * The L2 policy of weights: evict_first where no other tile reads them, so that x stays in the L2.
 */
static ptx_u64 weights_policy(const struct sparse24_product *q)
{
    ptx_kernel *k = q->k;
    ptx_u64 first = ptx_createpolicy_fractional_L2_evict_first_b64(k);
    ptx_u64 normal = ptx_createpolicy_fractional_L2_evict_normal_b64(k);
    return ptx_selp_u64(k, first, normal, ptx_setp_eq_u32(k, q->tiles_m, U32(1)));
}

/*
 * The address of the tile's first strip in a stage. Past w's last strip that one is copied again.
 */
static ptx_u64 first_strip(struct hopper *h, const struct sender *s, ptx_u32 stage)
{
    ptx_u32 bytes = U32(strip_stage_bytes(&h->q));
    return ptx_mad_wide_u32(h->q.k, sparse24_stage_of(&h->q, stage), bytes, s->strip);
}

static void turn_to_next_strip(struct hopper *h, const struct sender *s, ptx_u32 i, ptx_u64 strip)
{
    ptx_kernel *k = h->q.k;
    ptx_u64 next = ptx_add_u64(k, strip, U64(strip_bytes(&h->q)));
    ptx_selp_u64_to(k, strip, next, strip, ptx_setp_lt_u32(k, i, s->strips_left));
}

static void send_strip(struct hopper *h, const struct sender *s, ptx_u32 slot, int to, ptx_u64 from)
{
    ptx_cp_async_bulk_g2s_hint(h->q.k, slot, to, from, 0, U32(strip_stage_bytes(&h->q)),
                               s->place.barrier, 0, s->policy);
}

/* Issues the copies of the tile's strips in a loop. */
static void send_strips_in_a_loop(struct hopper *h, struct sender *s, ptx_u32 stage)
{
    struct sparse24_product *q = &h->q;
    ptx_kernel *k = q->k;
    s->policy = weights_policy(q);
    ptx_u64 strip = ptx_mov_u64(k, first_strip(h, s, stage));
    ptx_u32 slot = ptx_mov_u32(k, s->place.slot), i = ptx_mov_u32(k, U32(0));
    ptx_for(k, i, U32(sparse24_tile_strips(q->v)), U32(1)) {
        ptx_nounroll(k);
        send_strip(h, s, slot, (int)sparse24_stage_x_bytes(q->spec, q->v), strip);
        turn_to_next_strip(h, s, i, strip);
        ptx_add_u32_to(k, slot, slot, U32(strip_stage_bytes(q)));
    }
}

/* Issues the copies of the tile's strips without a loop. */
static void send_strips_in_turn(struct hopper *h, const struct sender *s, ptx_u32 stage)
{
    struct sparse24_product *q = &h->q;
    ptx_kernel *k = q->k;
    uint32_t strips = sparse24_tile_strips(q->v);
    bool tail = sparse24_strips(q->spec) % strips;
    ptx_u64 first = first_strip(h, s, stage), strip = first;
    for (uint32_t i = 0; i < strips; i++) {
        if (i && tail) {
            ptx_u32 exists = ptx_min_u32(k, s->strips_left, U32(i));
            strip = ptx_mad_lo_u64(k, ptx_cvt_u64_u32(k, exists), U64(strip_bytes(q)), first);
        } else if (i)
            strip = ptx_add_u64(k, strip, U64(strip_bytes(q)));
        int to = (int)(sparse24_stage_x_bytes(q->spec, q->v) + i * strip_stage_bytes(q));
        send_strip(h, s, s->place.slot, to, strip);
    }
}

/* Prefetches the weights of the next stages_prefetched stages, or of those that remain. */
static void prefetch_weights(struct hopper *h, const struct sender *s, const struct gemm_walk *w)
{
    struct sparse24_product *q = &h->q;
    ptx_kernel *k = q->k;
    ptx_u32 left = ptx_sub_u32(k, w->stage_end, w->stage);
    ptx_u32 stages = ptx_min_u32(k, left, U32(stages_prefetched(q)));
    ptx_u32 bytes = ptx_mul_lo_u32(k, stages, U32(strip_stage_bytes(q)));
    ptx_u64 strip = ptx_mov_u64(k, first_strip(h, s, w->stage));
    ptx_u32 i = ptx_mov_u32(k, U32(0));
    ptx_for(k, i, U32(sparse24_tile_strips(q->v)), U32(1)) {
        ptx_nounroll(k);
        ptx_cp_async_bulk_prefetch_L2(k, strip, 0, bytes);
        turn_to_next_strip(h, s, i, strip);
    }
}

/* The first two warps of the producer warpgroup issue copies, one of weights, one of x. */
enum { SENDERS = 2, BEGUN = 2 /* number of the CTA barrier after which the ring may be used */ };

static uint32_t sender_warp(const struct hopper *h, uint32_t sender)
{
    return sparse24_threads(h->q.v) / 32 + sender;
}

/*
 * The producer warp of weights sets the ring up, and goes on without waiting for the other warps.
 * These wait at a single bar.sync of the text, since compute-sanitizer's synccheck (CUDA 13.0)
 * takes two of them for divergence.
 */
static void set_up_ring(struct hopper *h)
{
    ptx_kernel *k = h->q.k;
    ptx_u32 all = U32(sparse24_cta_threads(h->q.v));
    ptx_if_else(k, ptx_setp_eq_u32(k, h->q.at.warp, U32(sender_warp(h, 0)))) {
        ptx_if(k, ptx_setp_eq_u32(k, h->q.at.lane, U32(0))) {
            gemm_ring_init_full(k, &h->ring);
            gemm_ring_init_others(k, &h->ring);
        }
        ptx_bar_warp_sync(k, ALL_LANES);
        ptx_bar_arrive_n(k, U32(BEGUN), all);
    } else
        ptx_bar_sync_n(k, U32(BEGUN), all);
}

/* Stages whose weights are copied before the kernel ahead has ended: the whole ring, or fewer. */
static uint32_t stages_ahead(const struct hopper *h)
{
    const ptxgen_sparse24_variant *v = h->q.v;
    bool few = sparse24_exchanges(v) && v->tile_m >= 64;
    return few ? 256 / sparse24_tile_n(v) : h->ring.stages;
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
 * Issues the copies of a stage's weights. After `ahead` stages the lane prefetches weights into the
 * L2, and waits for the end of the kernel ahead.
 */
static void send_weights(struct hopper *h, struct sender *s, const struct gemm_walk *w,
                         ptx_u32 ahead)
{
    ptx_kernel *k = h->q.k;
    ptx_if(k, ptx_setp_eq_u32(k, ahead, U32(0))) {
        prefetch_weights(h, s, w);
        ptx_griddepcontrol_wait(k);
    }
    ptx_sub_u32_to(k, ahead, ahead, U32(1));
    gemm_ring_claim_some(k, &h->ring, &s->place, h->boxes.bytes);
    if (loops_over_strips(&h->q))
        send_strips_in_a_loop(h, s, w->stage);
    else
        send_strips_in_turn(h, s, w->stage);
}

/*
 * The producers' loop: two lanes go through all stages of the CTA, part by part, one for weights
 * and one for x. They share the code of one loop, which takes the assembler less time than two.
 */
static void send_stages(struct hopper *h, ptx_pred weights)
{
    struct sparse24_product *q = &h->q;
    ptx_kernel *k = q->k;
    struct sender s = {.place = gemm_ring_first(k, &h->ring, true)};
    if (!loops_over_strips(q))
        s.policy = weights_policy(q);
    ptx_u32 ahead = ptx_mov_u32(k, U32(stages_ahead(h)));
    struct gemm_walk walk = gemm_walk_begin(k, q->first, q->end);
    ptx_loop(k, parts) {
        ptx_nounroll(k);
        turn_to(h, &s, &walk);
        ptx_for(k, walk.stage, walk.stage_end, U32(1)) {
            ptx_nounroll(k);
            ptx_if_else(k, weights)
                send_weights(h, &s, &walk, ahead);
            else {
                gemm_ring_wait_free(k, &h->ring, &s.place);
                send_x(h, &s, walk.stage);
            }
            gemm_ring_advance(k, &h->ring, &s.place, NULL);
        }
        ptx_loop_break_if(&parts, ptx_setp_le_u32(k, walk.end, q->first), false);
    }
}

/*
 * Programmatic dependent launch: the weights of the first stages are copied while the kernel ahead
 * still runs. Accesses to x, workspace and y wait for the end of that kernel.
 */
static void send_all(struct hopper *h)
{
    ptx_kernel *k = h->q.k;
    ptx_u32 first = U32(sender_warp(h, 0));
    ptx_pred weights = ptx_setp_eq_u32(k, h->q.at.warp, first);
    ptx_if(k, ptx_setp_ne_u32(k, h->q.at.warp, first))
        ptx_griddepcontrol_wait(k);
    ptx_if(k, ptx_setp_eq_u32(k, h->q.at.lane, U32(0)))
        send_stages(h, weights);
}

/* ---- consumer ---- */

/*
 * Tile t of the lane is in half warp % 2 of strip 2t + warp / 2 of the warpgroup. Warpgroups along
 * N have features of their own; warpgroups along K have blocks of their own, and their own part of
 * x.
 */
static void find_lane(struct hopper *h)
{
    struct sparse24_product *q = &h->q;
    ptx_kernel *k = q->k;
    uint32_t block = sparse24_block_bytes(q->spec), tiles = warp_tiles(h);
    ptx_u32 in_group = ptx_and_b32(k, q->at.warp, U32(SPARSE24_WARPGROUP - 1));
    ptx_u32 of_all = ptx_shr_u32(k, q->at.warp, U32(2));
    ptx_u32 group = gemm_remainder(k, of_all, q->v->wn / SPARSE24_WARPGROUP);
    ptx_u32 half = ptx_and_b32(k, q->at.warp, U32(1));
    ptx_u32 second = ptx_bfe_u32(k, q->at.warp, U32(1), U32(1));
    ptx_u32 strip = ptx_mad_lo_u32(k, group, U32(tiles * TILE_STRIPS), second);
    q->along_k = q->v->wk == 1 ? U32(0) : gemm_divide(k, q->at.warp, q->v->wn);
    q->along_n = ptx_mad_lo_u32(k, group, U32(tiles * SPARSE24_WARPGROUP), in_group);
    q->along_m = U32(0);
    uint32_t x_blocks = sparse24_x_blocks(q->spec, q->v) / q->v->wk;
    h->x_at = ptx_mul_lo_u32(k, q->along_k, U32(gemm_operand_stage_bytes(q->v->tile_m, x_blocks)));
    ptx_u32 at = ptx_mad_lo_u32(k, strip, U32(strip_stage_bytes(q)),
                                U32(sparse24_stage_x_bytes(q->spec, q->v)));
    ptx_u32 own = ptx_mad_lo_u32(k, q->along_k, U32(block), at);
    ptx_u32 lane = ptx_mad_lo_u32(k, q->at.lane, U32(GEMM_CHUNK_BYTES), own);
    h->a_at = ptx_mad_lo_u32(k, half, U32(SPARSE24_PIECE), lane);
    ptx_u32 words = ptx_add_u32(k, lane, U32(sparse24_pieces(q->spec) * SPARSE24_PIECE));
    h->metadata_at = ptx_mad_lo_u32(k, half, U32(4), words);
}

static uint32_t word_mmas(const struct hopper *h)
{
    return sparse24_mmas(h->q.spec) / SPARSE24_WORDS;
}

/* Loads the weights and metadata of mma step i of the current stage. */
static void load_weights(struct hopper *h, uint32_t i)
{
    struct sparse24_product *q = &h->q;
    ptx_kernel *k = q->k;
    uint32_t tile = TILE_STRIPS * strip_stage_bytes(q), word = i / word_mmas(h);
    ptx_u32 at = ptx_add_u32(k, h->read.slot, h->a_at);
    for (uint32_t t = 0; t < warp_tiles(h); t++)
        ptx_ld_shared_v4_u32_to(k, h->a[i % 2][t], at,
                                (int)(t * tile + i * SPARSE24_TILES * SPARSE24_PIECE));
    if (i % word_mmas(h))
        return;
    ptx_u32 words = ptx_add_u32(k, h->read.slot, h->metadata_at);
    for (uint32_t t = 0; t < warp_tiles(h); t++)
        ptx_ld_shared_u32_to(k, h->metadata[word][t], words,
                             (int)(t * tile + word * SPARSE24_TILES * 4));
}

static void multiply_tile(struct hopper *h, uint32_t i, uint32_t t, ptx_u64 x)
{
    struct sparse24_product *q = &h->q;
    ptx_kernel *k = q->k;
    int n = (int)q->v->tile_m, selector = (int)(i % word_mmas(h));
    const ptx_u32 *a = h->a[i % 2][t], metadata = h->metadata[i / word_mmas(h)][t];
    ptx_f32 f[SPARSE24_ROW_GROUPS * 4];
    ptx_s32 s[SPARSE24_ROW_GROUPS * 4];
    for (int r = 0; r < n / 2; r++) {
        f[r] = ptx_u32_as_f32(q->acc[t][r / 4][r % 4]);
        s[r] = ptx_u32_as_s32(q->acc[t][r / 4][r % 4]);
    }
    if (sparse24_is_s8(q->spec))
        ptx_wgmma_sp_k64_s32_s8_s8_ra(k, n, s, a, x, metadata, 0, h->accumulate);
    else if (q->spec->type == PTXGEN_SPARSE24_BF16)
        ptx_wgmma_sp_k32_f32_bf16_ra(k, n, f, a, x, metadata, selector, h->accumulate, 1, 1, 0);
    else
        ptx_wgmma_sp_k32_f32_f16_ra(k, n, f, a, x, metadata, selector, h->accumulate, 1, 1, 0);
}

static void multiply_step(struct hopper *h, uint32_t i, ptx_u64 stage)
{
    enum { BLOCK_STEPS = GEMM_BLOCK_BYTES / SPARSE24_MMA_BYTES };
    ptx_kernel *k = h->q.k;
    uint32_t bytes = gemm_operand_stage_bytes(h->q.v->tile_m, i / BLOCK_STEPS) +
                     i % BLOCK_STEPS * SPARSE24_MMA_BYTES;
    ptx_u64 x = gemm_wgmma_advance(k, stage, bytes);
    ptx_wgmma_fence(k);
    for (uint32_t t = 0; t < warp_tiles(h); t++)
        multiply_tile(h, i, t, x);
    ptx_wgmma_commit_group(k);
}

/*
 * Multiplies stage `stage` of a part whose first stage is `first`. While an mma step is multiplied,
 * the weights of the next step are loaded into the registers of the step before. The slot of a
 * stage is released after the first step of the next stage, when all products that read it have
 * completed.
 */
static void multiply_stage(struct hopper *h, ptx_u32 stage, ptx_u32 first)
{
    ptx_kernel *k = h->q.k;
    uint32_t steps = sparse24_mmas(h->q.spec);
    ptx_u64 x = gemm_wgmma_descriptor(k, ptx_add_u32(k, h->read.slot, h->x_at));
    ptx_pred release = ptx_setp_bool_ne_u32(k, stage, first, h->releases);
    for (uint32_t i = 0; i < steps; i++) {
        multiply_step(h, i, x);
        if (i + 1 == steps)
            gemm_ring_next(k, &h->ring, &h->read, h->held, h->to_read);
        ptx_wgmma_wait_group(k, 1);
        if (i == 0)
            gemm_ring_release(k, &h->ring, h->held, release);
        load_weights(h, (i + 1) % steps);
    }
}

static void begin_multiplying(struct hopper *h)
{
    struct sparse24_product *q = &h->q;
    ptx_kernel *k = q->k;
    q->at.team = sparse24_threads(q->v);
    q->at.barrier = U32(1);
    find_lane(h);
    for (uint32_t t = 0; t < warp_tiles(h); t++) {
        gemm_new_registers(k, h->a[0][t], 4);
        gemm_new_registers(k, h->a[1][t], 4);
    }
    for (uint32_t word = 0; word < SPARSE24_WORDS; word++)
        gemm_new_registers(k, h->metadata[word], warp_tiles(h));
    ptx_u32 stages = ptx_sub_u32(k, q->end, q->first);
    h->to_read = ptx_sub_u32(k, stages, U32(1));
    h->read = gemm_ring_first(k, &h->ring, false);
    h->held = ptx_mov_u32(k, h->read.barrier);
    h->releases = gemm_ring_releasers(k, &h->ring, &q->at);
    h->accumulate = ptx_setp_eq_u32(k, stages, stages);
}

static void multiply_all(struct hopper *h)
{
    struct sparse24_product *q = &h->q;
    ptx_kernel *k = q->k;
    ptx_griddepcontrol_wait(k);
    begin_multiplying(h);
    if (!sparse24_has_few_registers(q->v))
        sparse24_output_begin(q);
    gemm_ring_wait(k, &h->read);
    load_weights(h, 0);
    struct gemm_walk walk = gemm_walk_begin(k, q->first, q->end);
    ptx_loop(k, parts) {
        ptx_nounroll(k);
        ptx_section(k, "the next part of a tile");
        gemm_walk_next(k, &q->division, &walk);
        ptx_u32 first = ptx_mov_u32(k, walk.stage);
        sparse24_clear(q);
        ptx_section(k, "stages: multiply an mma step, load the next one's weights");
        ptx_for(k, walk.stage, walk.stage_end, U32(1)) {
            ptx_nounroll(k);
            multiply_stage(h, walk.stage, first);
        }
        ptx_wgmma_wait_group(k, 0);
        gemm_ring_release(k, &h->ring, h->held, h->releases);
        ptx_section(k, "the end of the part: sum over CTAs, store");
        if (sparse24_exchanges(q->v)) {
            gemm_exchange_open(k, &q->at, &h->exchange);
            gemm_exchange_send(k, &h->exchange, sparse24_accumulator, q);
            gemm_exchange_receive(k, &h->exchange, sparse24_accumulator, q);
        }
        if (sparse24_has_few_registers(q->v))
            sparse24_output_begin(q);
        gemm_epilogue_end(&q->output, &walk, first);
        ptx_loop_break_if(&parts, ptx_setp_le_u32(k, walk.end, q->first), false);
    }
}

/* ---- the entry ---- */

static void begin(struct hopper *h)
{
    struct sparse24_product *q = &h->q;
    ptx_kernel *k = q->k;
    sparse24_load_params(q);
    q->at = gemm_find_threads(k);
    sparse24_find_share(q);
    h->ring = (struct gemm_ring){.stages = q->v->stages,
                                 .stage_bytes = sparse24_stage_bytes(q->spec, q->v),
                                 .users = sparse24_threads(q->v) / 32,
                                 .by_lane = true};
}

void sparse24_emit_wgmma_entry(const ptxgen_sparse24_plan *plan, const ptxgen_sparse24_variant *v,
                               ptx_module *module)
{
    struct hopper *h = &(struct hopper){.q = {.spec = &plan->spec, .plan = plan, .v = v}};
    struct sparse24_product *q = &h->q;
    ptx_kernel *k = q->k = ptx_kernel_begin(module, ptxgen_sparse24_entry(v));
    ptx_kernel_reqntid(k, sparse24_cta_threads(v), 1, 1);
    ptx_kernel_minnctapersm(k, 1);
    begin(h);
    ptx_param maps = ptx_param_declare(k, "x_maps", 2 * GEMM_MAP_BYTES, GEMM_MAP_ALIGN);
    gemm_ring_declare(k, &h->ring);
    q->staging =
        ptx_shared_address(k, ptx_shared_declare(k, "sums", sparse24_sums_bytes(v), 16));
    gemm_ring_declare_barriers(k, &h->ring);
    h->boxes = (struct gemm_boxes){.rows = v->tile_m,
                                   .blocks = sparse24_x_blocks(q->spec, v),
                                   .stage_bytes = sparse24_stage_bytes(q->spec, v),
                                   .maps = ptx_param_address(k, maps),
                                   .all = q->m};
    if (sparse24_exchanges(v)) {
        h->exchange = (struct gemm_exchange){.threads = sparse24_threads(v),
                                             .teams = 1,
                                             .tiles = warp_tiles(h),
                                             .row_groups = v->tile_m / 8,
                                             .integer = sparse24_is_s8(q->spec),
                                             .rank = q->rank};
        gemm_exchange_begin(k, &q->at, &h->exchange);
    }
    gemm_boxes_begin(k, &h->boxes);
    gemm_boxes_clear(k, &h->boxes, &q->at, sparse24_cta_threads(v), &h->ring);
    ptx_griddepcontrol_launch_dependents(k);
    set_up_ring(h);
    uint32_t groups = sparse24_threads(v) / GEMM_WARPGROUP;
    ptx_if_else(k, ptx_setp_lt_u32(k, q->at.warp, U32(groups * SPARSE24_WARPGROUP))) {
        gemm_wgmma_divide_registers(k, groups, true);
        multiply_all(h);
    } else {
        gemm_wgmma_divide_registers(k, groups, false);
        ptx_section(k, "send for stages");
        ptx_if(k, ptx_setp_lt_u32(k, q->at.warp, U32(sender_warp(h, SENDERS))))
            send_all(h);
        if (sparse24_exchanges(v)) {
            ptx_bar_warp_sync(k, ALL_LANES);
            ptx_barrier_cluster_wait(k);
        }
    }
    ptx_kernel_end(k);
}
