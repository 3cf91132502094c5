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

#include "../gemm/exchange.h"
#include "../gemm/wgmma.h"

enum { TILE_STRIPS = GEMM_WARPGROUP / 32 / 2 /* of 64 features */ };

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
    ptx_u32 at = ptx_mad_lo_u32(k, strip, U32(sparse24_strip_stage_bytes(q)),
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
    uint32_t tile = TILE_STRIPS * sparse24_strip_stage_bytes(q),
             word = i / sparse24_word_mmas(q->spec);
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

static void drain(struct gemm *g)
{
    ptx_wgmma_wait_group(g->k, 0);
    gemm_ring_release(g->k, &g->ring, g->held[0], g->releases);
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
    sparse24_begin_ring(q);
}

const struct gemm_ops sparse24_wgmma_ops = {.begin = begin,
                                            .begin_consumer = begin_consumer,
                                            .clear = sparse24_clear,
                                            .multiply = multiply,
                                            .drain = drain,
                                            .epilogue = epilogue,
                                            .produce = sparse24_produce};
