/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entries of marlin with cp.async and mma.sync: all warps copy and multiply. A persistent CTA
 * of wn × wk warps walks through its share of the tiles (fixup.h). In a stage of the pipeline each
 * warp has `steps` times 64 of K of its own features, and all warps along N share the activations:
 *
 *              K: stages ──▶                  warps wn × wk = 2 × 2
 *            ┌─────────┬─────────┬───
 *    N:      │ w0 │ w2 │ w0 │ w2 │ …          warp_n features × 64·steps of K each
 *    tile_n  ├────┼────┼────┼────┼───
 *            │ w1 │ w3 │ w1 │ w3 │ …
 *            └─────────┴─────────┴───
 *    x:      [tile_m tokens] × 64·steps·wk of K a stage
 *
 * A weight is read from memory once, by the lane that multiplies it: half a byte, plus its share of
 * the scales. The pipeline goes on across the ends of tiles.
 *
 *     codes   16 bytes a lane, tile and step ── cp.async ─▶ the same lane's 16 bytes ─▶ dequantise
 *
 * A lane copies exactly the 16 bytes of each tile and step that it reads later itself, so codes
 * have no bank conflicts and need no swizzle. The first lanes copy scales and zero points for the
 * warp.
 */
#include "emit.h"

enum { CHUNK = GEMM_CHUNK_BYTES };

/* ---- the layout of a stage ---- */

/* A stage in shared memory: activations, then the codes, scales and zero points of each warp. */
struct layout {
    uint32_t codes, scales, zeros;                /* offsets */
    uint32_t warp_codes, warp_scales, warp_zeros; /* bytes of a warp */
    uint32_t bytes;
};

static struct layout layout_of(const ptxgen_marlin_spec *s, const ptxgen_tile *v)
{
    uint32_t warps = v->wn * v->wk, groups = marlin_stage_groups(s, v->steps);
    struct layout l = {.codes = gemm_operand_stage_bytes(v->tile_m, v->wk * v->steps),
                       .warp_codes = v->steps * (v->warp_n / MARLIN_TILE) * MARLIN_TILE_BYTES,
                       .warp_scales = groups * MARLIN_SCALES_BYTES,
                       .warp_zeros = s->zeros ? groups * MARLIN_ZEROS_BYTES : 0};
    l.scales = l.codes + warps * l.warp_codes;
    l.zeros = l.scales + warps * l.warp_scales;
    uint32_t end = l.zeros + warps * l.warp_zeros;
    l.bytes = (end + GEMM_BLOCK_BYTES - 1) / GEMM_BLOCK_BYTES * GEMM_BLOCK_BYTES;
    return l;
}

uint32_t marlin_stage_bytes(const ptxgen_marlin_spec *s, const ptxgen_tile *v)
{
    return layout_of(s, v).bytes;
}

/* ---- a warp's weights ---- */

static bool steps_have_tail(const struct marlin_product *q)
{
    return marlin_steps(q->spec) % (q->v->wk * q->v->steps) != 0;
}

static void begin_weights(struct marlin_product *q)
{
    ptx_kernel *k = q->g.k;
    const struct layout l = layout_of(q->spec, q->v);
    struct copies *c = &q->copies;
    struct weights *w = &q->w;
    c->codes = ptx_mov_u64(k, U64(0));
    c->scales = ptx_mov_u64(k, U64(0));
    c->zeros = ptx_mov_u64(k, U64(0));
    c->step = ptx_mov_u32(k, U32(0));
    c->strip_bytes = ptx_mov_u32(k, U32(CHUNK));
    c->half = marlin_half_varies(q) ? ptx_mov_u32(k, U32(0)) : ptx_and_b32(k, q->along_n, U32(1));
    q->operands.half = marlin_half_varies(q) ? ptx_mov_u32(k, U32(0)) : c->half;
    ptx_u32 lane = ptx_mul_lo_u32(k, q->g.at.lane, U32(CHUNK));
    ptx_u32 codes = ptx_mad_lo_u32(k, q->g.at.warp, U32(l.warp_codes), lane);
    w->codes_at = ptx_add_u32(k, codes, U32(l.codes));
    w->step_bytes = tiles(q) * MARLIN_TILE_BYTES;
    if (!l.warp_scales)
        return;
    ptx_u32 scales = ptx_mad_lo_u32(k, q->g.at.warp, U32(l.warp_scales), U32(l.scales));
    c->scales_to = ptx_add_u32(k, scales, lane);
    w->scales_at = ptx_mad_lo_u32(k, q->g.at.group, U32(CHUNK), scales);
    if (!q->spec->zeros)
        return;
    ptx_u32 zeros = ptx_mad_lo_u32(k, q->g.at.warp, U32(l.warp_zeros), U32(l.zeros));
    c->zeros_to = ptx_add_u32(k, zeros, lane);
    w->zeros_at = ptx_mad_lo_u32(k, q->g.at.group, U32(4), zeros);
}

/* Makes stage `stage` of the warp's features in tile `tile_n` the next one to be copied. */
static void locate_weights(struct marlin_product *q, ptx_u32 tile_n, ptx_u32 stage)
{
    ptx_kernel *k = q->g.k;
    struct copies *c = &q->copies;
    const ptxgen_marlin_spec *s = q->spec;
    bool has_groups = marlin_scale_rows(s);
    ptx_u32 strip = marlin_emit_strip_of(q, tile_n);
    marlin_emit_half(q, tile_n, c->half);
    ptx_u32 part = ptx_mad_lo_u32(k, stage, U32(q->v->wk), q->along_k);
    ptx_mul_lo_u32_to(k, c->step, part, U32(q->v->steps));
    ptx_u64 lane = ptx_mul_wide_u32(k, q->g.at.lane, U32(CHUNK));
    ptx_u64 codes = ptx_add_u64(k, q->address[MARLIN_CODES], lane);
    if (has_half_strip(q))
        codes = ptx_mad_wide_u32(k, c->half, U32(MARLIN_STEP_BYTES / 2), codes);
    ptx_u64 in_strip = ptx_mad_wide_u32(k, c->step, U32(MARLIN_STEP_BYTES), codes);
    ptx_u64 strip_bytes = U64((uint64_t)marlin_steps(s) * MARLIN_STEP_BYTES);
    ptx_u64 strip64 = ptx_cvt_u64_u32(k, strip);
    ptx_mad_lo_u64_to(k, c->codes, strip64, strip_bytes, in_strip);
    if (has_groups) {
        ptx_u64 scales = ptx_add_u64(k, q->address[MARLIN_SCALES], lane);
        ptx_mad_wide_u32_to(k, c->scales, strip, U32(marlin_groups(s) * MARLIN_SCALES_BYTES),
                            scales);
    }
    if (has_groups && s->zeros) {
        ptx_u64 zeros = ptx_add_u64(k, q->address[MARLIN_ZEROS], lane);
        ptx_mad_wide_u32_to(k, c->zeros, strip, U32(marlin_groups(s) * MARLIN_ZEROS_BYTES), zeros);
    }
    if (strips_have_tail(q)) {
        ptx_pred exists = ptx_setp_lt_u32(k, strip, U32(marlin_strips(s)));
        ptx_selp_u32_to(k, c->strip_bytes, U32(CHUNK), U32(0), exists);
    }
}

/* Whether a group of the stage starts with this step of the stage. */
static bool starts_group(const struct marlin_product *q, uint32_t step)
{
    uint32_t groups = marlin_stage_groups(q->spec, q->v->steps);
    return groups && (groups > 1 || step == 0);
}

/*
 * The address of the groups of the step in register `step`, which have `bytes` bytes each; `strip`
 * is the address of the strip's first group.
 */
static ptx_u64 find_groups(struct marlin_product *q, ptx_u64 strip, ptx_u32 step, uint32_t bytes)
{
    uint32_t groups = marlin_step_groups(q->spec), rows = marlin_scale_rows(q->spec);
    ptx_u32 group = rows > MARLIN_STEP ? gemm_divide(q->g.k, step, rows / MARLIN_STEP) : step;
    return ptx_mad_wide_u32(q->g.k, group, U32(groups * bytes), strip);
}

/* ---- global to shared ---- */

/* Issues a copy of 16 bytes: `size` bytes from memory, then zeros. */
static void copy(struct marlin_product *q, ptx_u32 to, uint32_t to_offset, ptx_u64 from,
                 uint32_t from_offset, ptx_u32 size)
{
    if (steps_have_tail(q) || strips_have_tail(q))
        ptx_cp_async_cg_zfill(q->g.k, to, (int)to_offset, from, (int)from_offset, CHUNK, size);
    else
        ptx_cp_async_cg(q->g.k, to, (int)to_offset, from, (int)from_offset, CHUNK);
}

static void copy_codes(struct marlin_product *q, ptx_u32 slot, uint32_t step, ptx_u32 size)
{
    ptx_u32 to = ptx_add_u32(q->g.k, slot, q->w.codes_at);
    for (uint32_t t = 0; t < tiles(q); t++)
        copy(q, to, (step * tiles(q) + t) * MARLIN_TILE_BYTES, q->copies.codes,
             step * MARLIN_STEP_BYTES + t * MARLIN_TILE_BYTES, size);
}

/* The first lanes copy the groups of a step, `bytes` bytes each. */
static void copy_groups(struct marlin_product *q, ptx_u32 to, uint32_t step, ptx_u64 strip,
                        uint32_t bytes, ptx_u32 size)
{
    ptx_kernel *k = q->g.k;
    uint32_t all = marlin_step_groups(q->spec) * bytes;
    ptx_u32 at = step ? ptx_add_u32(k, q->copies.step, U32(step)) : q->copies.step;
    ptx_u64 from = find_groups(q, strip, at, bytes);
    ptx_guarded(k, ptx_setp_lt_u32(k, q->g.at.lane, U32(all / CHUNK)))
        copy(q, to, step * all, from, 0, size);
}

/* Issues the copies of the next stage to the shared address `slot`, and moves on by a stage. */
static void issue_weights(struct marlin_product *q, ptx_u32 slot)
{
    ptx_kernel *k = q->g.k;
    struct copies *c = &q->copies;
    uint32_t all = marlin_steps(q->spec), steps = q->v->wk * q->v->steps;
    for (uint32_t step = 0; step < q->v->steps; step++) {
        ptx_u32 size = c->strip_bytes;
        if (steps_have_tail(q)) {
            ptx_pred exists = ptx_setp_lt_u32(k, c->step, U32(all > step ? all - step : 0));
            size = ptx_selp_u32(k, size, U32(0), exists);
        }
        copy_codes(q, slot, step, size);
        if (!starts_group(q, step))
            continue;
        copy_groups(q, ptx_add_u32(k, slot, c->scales_to), step, c->scales, MARLIN_SCALES_BYTES,
                    size);
        if (q->spec->zeros)
            copy_groups(q, ptx_add_u32(k, slot, c->zeros_to), step, c->zeros, MARLIN_ZEROS_BYTES,
                        size);
    }
    ptx_add_u64_to(k, c->codes, c->codes, U64((uint64_t)steps * MARLIN_STEP_BYTES));
    ptx_add_u32_to(k, c->step, c->step, U32(steps));
}

static void locate(void *user, const struct gemm_walk *w)
{
    struct marlin_product *q = user;
    ptx_kernel *k = q->g.k;
    struct gemm_place place = marlin_emit_place(q, w->tile);
    ptx_u32 first_token = ptx_mul_lo_u32(k, place.m, U32(q->v->tile_m));
    gemm_operand_locate(k, &q->x, q->address[MARLIN_X], first_token, q->g.m, w->stage);
    locate_weights(q, place.n, w->stage);
}

/*
 * Issues all copies of a stage together, because a cp.async between reads of shared memory costs
 * more instructions.
 */
static void issue(void *user, ptx_u32 slot)
{
    struct marlin_product *q = user;
    issue_weights(q, slot);
    gemm_operand_issue(q->g.k, &q->x, slot);
}

/* ---- global to the L2, while the kernel ahead ends ---- */

static void prefetch_groups(struct marlin_product *q, ptx_u64 strip, ptx_u32 step, uint32_t bytes)
{
    ptx_cp_async_bulk_prefetch_L2(q->g.k, find_groups(q, strip, step, bytes), 0,
                                  U32(marlin_step_groups(q->spec) * bytes));
}

/* Prefetches step `i` of the stage whose first step is in register `step`. */
static void prefetch_step(struct marlin_product *q, ptx_u64 codes, ptx_u32 step, uint32_t i)
{
    ptx_kernel *k = q->g.k;
    ptx_u32 here = i ? ptx_add_u32(k, step, U32(i)) : step;
    ptx_if(k, ptx_setp_lt_u32(k, here, U32(marlin_steps(q->spec)))) {
        ptx_cp_async_bulk_prefetch_L2(k, codes, (int)(i * MARLIN_STEP_BYTES),
                                      U32(tiles(q) * MARLIN_TILE_BYTES));
        if (starts_group(q, i))
            prefetch_groups(q, q->copies.scales, here, MARLIN_SCALES_BYTES);
        if (starts_group(q, i) && q->spec->zeros)
            prefetch_groups(q, q->copies.zeros, here, MARLIN_ZEROS_BYTES);
    }
}

/* Prefetches the weights of the CTA's first stages. */
static void prefetch(struct marlin_product *q)
{
    ptx_kernel *k = q->g.k;
    struct copies *c = &q->copies;
    uint32_t steps = q->v->wk * q->v->steps;
    struct gemm_walk walk = gemm_walk_begin(k, q->g.first, q->g.end);
    gemm_walk_next(k, &q->g.division, &walk);
    locate_weights(q, marlin_emit_place(q, walk.tile).n, walk.stage);
    ptx_u32 below = ptx_add_u32(k, walk.stage, U32(q->v->stages - 2));
    ptx_u32 step = ptx_mov_u32(k, c->step);
    ptx_u32 end = ptx_min_u32(k, below, walk.stage_end), at = ptx_mov_u32(k, walk.stage);
    ptx_u32 exists = ptx_min_u32(k, c->strip_bytes, U32(1));
    ptx_u32 first_lane = ptx_selp_u32(k, exists, U32(0), ptx_setp_eq_u32(k, q->g.at.lane, U32(0)));
    ptx_u64 codes = ptx_mov_u64(k, c->codes);
    ptx_if(k, ptx_setp_ne_u32(k, first_lane, U32(0))) {
        ptx_for(k, at, end, U32(1)) {
            ptx_nounroll(k);
            for (uint32_t i = 0; i < q->v->steps; i++)
                prefetch_step(q, codes, step, i);
            ptx_add_u64_to(k, codes, codes, U64((uint64_t)steps * MARLIN_STEP_BYTES));
            ptx_add_u32_to(k, step, step, U32(steps));
        }
    }
}

/*
 * Programmatic dependent launch: weights are prefetched while the kernel ahead still runs, and
 * accesses to activations, workspace and y wait for the end of that kernel. A CTA with few stages
 * does not prefetch, since that would cost as much time as it saves.
 */
static void wait_for_previous(struct marlin_product *q)
{
    ptx_kernel *k = q->g.k;
    if (!gemm_overlaps(&q->plan->target))
        return;
    ptx_section(k, "weights to the L2, while the kernel ahead ends");
    ptx_griddepcontrol_launch_dependents(k);
    ptx_if(k, ptx_setp_gt_u32(k, ptx_sub_u32(k, q->g.end, q->g.first), U32(q->v->stages)))
        prefetch(q);
    ptx_griddepcontrol_wait(k);
}

/* ---- the entry ---- */

static void begin(struct gemm *g)
{
    struct marlin_product *q = marlin_of(g);
    const ptxgen_tile *v = q->v;
    marlin_emit_params(q);
    g->at = gemm_find_threads(g->k);
    marlin_find_mma_warp(q);
    g->tiles_m = marlin_emit_tiles_m(q);
    q->x = (struct gemm_operand){.rows = v->tile_m,
                                 .blocks = v->wk * v->steps,
                                 .threads = gemm_tile_threads(v),
                                 .row_bytes = q->spec->k * 2};
    gemm_operand_begin(g->k, &g->at, ptx_shl_b64(g->k, q->address[MARLIN_X_STRIDE], U32(1)), &q->x);
    begin_weights(q);
    gemm_find_share(g);
    g->pipeline = (struct gemm_pipeline){.stages = v->stages,
                                         .stage_bytes = marlin_stage_bytes(q->spec, v),
                                         .division = &g->division,
                                         .locate = locate,
                                         .issue = issue,
                                         .user = q};
    wait_for_previous(q);
    gemm_pipeline_begin(g->k, &g->pipeline, g->first, g->end);
}

static void begin_consumer(struct gemm *g)
{
    struct marlin_product *q = marlin_of(g);
    const ptxgen_tile *v = q->v;
    uint32_t staging = gemm_sums_bytes(v->tile_n, v->pass_m, v->wk);
    marlin_emit_epilogue_begin(
        q, ptx_shared_address(g->k, ptx_shared_declare(g->k, "sums", staging, 16)));
    marlin_begin_mma(q);
}

const struct gemm_ops marlin_cp_async_ops = {.begin = begin,
                                             .begin_consumer = begin_consumer,
                                             .clear = marlin_clear_mma,
                                             .multiply = marlin_multiply_mma,
                                             .epilogue = gemm_epilogue};
