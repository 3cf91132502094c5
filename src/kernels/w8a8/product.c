/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The product entries of w8a8 with cp.async and mma.sync. A persistent CTA of eight warps walks
 * through its share of the tiles (fixup.h). A tile is tile_n features by tile_m tokens; in a
 * stage each warp along K has 128 bytes of K:
 *
 *               K: stages of wk · 128 bytes ──▶           wn × wm × wk = 2 × 4 × 1, 256 tokens
 *             ┌─────────┬─────────┬───                          tokens ──▶
 *    w:       │ stage 0 │ stage 1 │ …     features           ┌────┬────┬────┬────┐
 *             ├─────────┼─────────┼───              features │ w0 │ w1 │ w2 │ w3 │  64 × 64 each
 *    codes:   │ stage 0 │ stage 1 │ …     tokens             ├────┼────┼────┼────┤
 *                                                            │ w4 │ w5 │ w6 │ w7 │
 *
 * w is read once for each row of tiles, N·K bytes. Stages are copied `stages` − 2 ahead, across the
 * ends of tiles (pipeline.h). A fused entry keeps its codes in shared memory and copies w alone;
 * its first weights arrive while it quantises. Otherwise the first stages of w are copied while the
 * quantising kernel may still run (sm_90 and later). The two CTAs of a cluster have half of K each,
 * and finish half of the outputs each. Measurements are in docs/notes/w8a8.md.
 */
#include "emit.h"

#include "../gemm/empty.h"

#include "../gemm/wgmma.h"

/* ---- parameters ---- */

static ptx_u32 number_param(ptx_kernel *k, const char *name, bool used)
{
    if (used)
        return ptx_param_u32(k, name);
    ptx_param_declare(k, name, 4, 4);
    return U32(0);
}

void w8a8_load_params(struct product *q)
{
    const ptxgen_w8a8_spec *s = q->spec;
    bool wgmma = gemm_is_wgmma(q->v), fused = q->v->fused, copies = !fused && !wgmma;
    bool given = fused && s->scales != PTXGEN_W8A8_DYNAMIC;
    const struct gemm_param addresses[W8A8_X_STRIDE] = {
        [W8A8_X] = {"x", fused},
        [W8A8_W] = {"w", !wgmma},
        [W8A8_W_SCALE] = {"w_scale", true},
        [W8A8_W_SUM] = {"w_sum", s->asymmetric},
        [W8A8_BIAS] = {"bias", s->bias},
        [W8A8_X_SCALE] = {"x_scale", given},
        [W8A8_X_ZERO] = {"x_zero", given && s->asymmetric},
        [W8A8_Y] = {"y", true},
        [W8A8_CODES] = {"codes", copies},
        [W8A8_TOKEN_SCALES] = {"token_scales", !fused},
        [W8A8_TOKEN_ZEROS] = {"token_zeros", !fused && s->asymmetric},
        [W8A8_FLAGS] = {"flags", copies},
        [W8A8_PARTIALS] = {"partials", copies},
        [W8A8_RESIDUAL] = {"residual", s->residual}};
    ptx_kernel *k = q->g.k;
    gemm_params_u64(k, addresses, W8A8_X_STRIDE, q->address);
    q->x_stride = number_param(k, "x_stride", fused || (copies && w8a8_takes_codes(s)));
    q->y_stride = number_param(k, "y_stride", true);
    q->residual_stride = number_param(k, "residual_stride", s->residual);
    q->g.m = number_param(k, "m", true);
    gemm_division_begin(k, w8a8_own_steps(s, q->v), &q->g.division);
}

/* Warps are numbered along N first, then along M, then along K. */
static void find_warp(struct product *q)
{
    ptx_kernel *k = q->g.k;
    const ptxgen_tile *v = q->v;
    q->g.at = gemm_find_threads(k);
    ptx_u32 rest = q->g.at.warp;
    q->along_n = v->wn == 1 ? U32(0) : ptx_and_b32(k, rest, U32(v->wn - 1));
    rest = gemm_divide(k, rest, v->wn);
    q->along_m = v->wm == 1 ? U32(0) : ptx_and_b32(k, rest, U32(v->wm - 1));
    q->along_k = v->wk == 1 ? U32(0) : gemm_divide(k, rest, v->wm);
}

/* ---- shared memory ---- */

ptx_u32 w8a8_shared_buffer(struct product *q, const char *name, uint32_t bytes, uint32_t align)
{
    return ptx_shared_address(q->g.k, ptx_shared_declare(q->g.k, name, bytes, align));
}

/* Declares the buffers behind the stages in an order without padding, as the plan counts them. */
static void declare_shared(struct product *q)
{
    const ptxgen_tile *v = q->v;
    uint32_t work = w8a8_work_bytes(q->spec), ranges = W8A8_WARPS * w8a8_range_bytes(q->spec);
    uint32_t sums = w8a8_sums_bytes(v);
    if (v->fused) {
        q->resident =
            w8a8_shared_buffer(q, "codes", v->tile_m * w8a8_resident_stride(q->spec, v), 16);
        q->ranges = w8a8_shared_buffer(q, "ranges of the segments", v->tile_m * ranges, 8);
    }
    q->staging = w8a8_shared_buffer(q, "sums", sums, 16);
    if (v->fused) {
        q->token_scales = w8a8_shared_buffer(q, "scales of the tokens", v->tile_m * work, work);
        q->token_zeros = w8a8_shared_buffer(q, "zero points", v->tile_m * 4, 4);
    }
}

/* ---- the pipeline ---- */

struct gemm_place w8a8_place_of(struct product *q, ptx_u32 tile)
{
    ptx_kernel *k = q->g.k;
    if (w8a8_takes_all_tokens(q->v))
        return (struct gemm_place){.m = U32(0), .n = tile};
    ptx_u32 own = ptx_sub_u32(k, tile, q->first_granule);
    ptx_u32 dealt = gemm_deal_in_turn(&q->g, own, tile);
    return gemm_locate(k, dealt, q->g.tiles_m, q->v->blocks_n);
}

/*
 * Whether the loop over stages also issues the copies of the first stages. That makes the kernel
 * shorter, and costs no time with many tokens.
 */
static bool fills_in_loop(const struct product *q)
{
    return !w8a8_takes_all_tokens(q->v);
}

/* Whether weights are copied while the quantising kernel may still run. */
static bool issues_weights_early(const struct product *q)
{
    return q->v->fused || (gemm_overlaps(&q->plan->target) && !fills_in_loop(q));
}

static void wait_for_previous(struct product *q)
{
    if (!gemm_overlaps(&q->plan->target))
        return;
    ptx_griddepcontrol_launch_dependents(q->g.k);
    ptx_griddepcontrol_wait(q->g.k);
}

/* A stage of the CTA along all of K: the second CTA of a cluster has the second half. */
static ptx_u32 along_all(struct product *q, ptx_u32 stage)
{
    if (q->v->cluster == 1)
        return stage;
    return ptx_mad_lo_u32(q->g.k, q->g.rank, U32(q->g.division.stages), stage);
}

/* The stage that a part begins with; the walk of a whole tile, which alone rotates, begins at 0. */
static ptx_u32 stage_of(struct product *q, const struct gemm_walk *w)
{
    return along_all(q, q->rotates ? q->rotation : w->stage);
}

/* Moves the operand back to the start of K at its end; `left` counts the stages up to there. */
static void rotate(struct product *q, ptx_u32 left, struct gemm_operand *o)
{
    ptx_kernel *k = q->g.k;
    uint32_t all = q->g.division.stages * w8a8_depth(q->v);
    if (!q->rotates)
        return;
    ptx_sub_u32_to(k, left, left, U32(1));
    ptx_pred ends = ptx_setp_eq_u32(k, left, U32(0));
    ptx_u32 back = ptx_selp_u32(k, U32(all), U32(0), ends);
    ptx_selp_u32_to(k, left, U32(q->g.division.stages), left, ends);
    ptx_sub_u64_to(k, o->from, o->from, ptx_cvt_u64_u32(k, back));
    if (gemm_operand_has_tail(o))
        ptx_sub_u32_to(k, o->offset, o->offset, back);
    if (o == &q->w.operand && w8a8_copies_pieces(q->plan, q->v))
        ptx_add_s32_to(k, q->w.left, q->w.left, ptx_u32_as_s32(back));
}

static void begin_rotation(struct product *q, ptx_u32 left)
{
    if (q->rotates)
        ptx_sub_u32_to(q->g.k, left, U32(q->g.division.stages), q->rotation);
}

static void locate_codes(struct product *q, const struct gemm_walk *w)
{
    ptx_u32 first = ptx_mul_lo_u32(q->g.k, w8a8_place_of(q, w->tile).m, U32(q->v->tile_m));
    ptx_u32 stage = stage_of(q, w);
    gemm_operand_locate(q->g.k, &q->codes, q->address[W8A8_CODES], first, q->g.m, stage);
    begin_rotation(q, q->codes_left);
}

static void issue_codes(struct product *q, ptx_u32 slot)
{
    ptx_u32 to = ptx_add_u32(q->g.k, slot, U32(q->v->tile_n * w8a8_depth(q->v)));
    gemm_operand_issue(q->g.k, &q->codes, to);
    rotate(q, q->codes_left, &q->codes);
}

static void locate(void *user, const struct gemm_walk *w)
{
    struct product *q = user;
    ptx_u32 stage = stage_of(q, w);
    struct gemm_place place = w8a8_place_of(q, w->tile);
    w8a8_locate_weights(q, place.n, stage);
    begin_rotation(q, q->w_left);
    if (q->issues_codes)
        locate_codes(q, w);
}

static void issue(void *user, ptx_u32 slot)
{
    struct product *q = user;
    w8a8_issue_weights(q, slot);
    rotate(q, q->w_left, &q->w.operand);
    if (q->issues_codes)
        issue_codes(q, slot);
}

/*
 * Issues the copies of the codes of those stages whose weights are in flight, one cp.async group
 * for each stage. These groups come after all of those weights, so a wait for the group of a
 * stage's codes is also a wait for its weights.
 */
static void issue_first_codes(struct product *q)
{
    ptx_kernel *k = q->g.k;
    struct gemm_walk walk = gemm_walk_begin(k, q->g.first, q->g.end);
    ptx_u32 slot = ptx_mov_u32(k, q->g.pipeline.begin), left = ptx_sub_u32(k, q->g.end, q->g.first);
    ptx_u32 issued = ptx_mov_u32(k, U32(2));
    ptx_for(k, issued, U32(q->v->stages), U32(1)) {
        ptx_nounroll(k);
        ptx_if(k, ptx_setp_ne_u32(k, left, U32(0))) {
            ptx_if(k, ptx_setp_eq_u32(k, walk.stage, walk.stage_end)) {
                gemm_walk_next(k, &q->g.division, &walk);
                locate_codes(q, &walk);
            }
            issue_codes(q, slot);
            ptx_add_u32_to(k, walk.stage, walk.stage, U32(1));
            ptx_sub_u32_to(k, left, left, U32(1));
            ptx_add_u32_to(k, slot, slot, U32(w8a8_stage_bytes(q->spec, q->v)));
        }
        ptx_cp_async_commit_group(k);
    }
}

/* Executed once the copies of the first stages are issued: quantises, or waits for the codes. */
static void prepare_codes(void *user)
{
    struct product *q = user;
    declare_shared(q);
    if (!issues_weights_early(q))
        return;
    wait_for_previous(q);
    if (q->v->fused)
        w8a8_emit_resident(q);
    else {
        issue_first_codes(q);
        q->issues_codes = true;
    }
}

/* Stages of weights that are copied ahead of x: only as many as keep the memory busy. */
static uint32_t early_stages(const struct product *q)
{
    enum { EARLY_BYTES = 40 * 1024 };
    uint32_t bytes = w8a8_stage_bytes(q->spec, q->v), stages = (EARLY_BYTES + bytes - 1) / bytes;
    return q->v->fused && stages < q->v->stages - 2 ? stages : 0;
}

/* Sets up the pipeline for fills_in_loop: no copies are issued before the loop. */
static void begin_pipeline(struct product *q)
{
    ptx_kernel *k = q->g.k;
    struct gemm_pipeline *p = &q->g.pipeline;
    uint32_t bytes = p->stages * p->stage_bytes;
    p->begin = w8a8_shared_buffer(q, "stages", bytes, GEMM_BLOCK_BYTES);
    p->end = ptx_add_u32(k, p->begin, U32(bytes));
    p->fill = ptx_mov_u32(k, p->begin);
    p->read = ptx_mov_u32(k, p->begin);
    p->copies = gemm_walk_begin(k, q->g.first, q->g.end);
    p->to_issue = ptx_sub_u32(k, q->g.end, q->g.first);
    p->to_read = ptx_mov_u32(k, p->to_issue);
    q->to_fill = ptx_mov_u32(k, U32(p->stages - 2));
    prepare_codes(q);
}

static void start_pipeline(struct product *q)
{
    q->issues_codes = !issues_weights_early(q);
    q->g.pipeline = (struct gemm_pipeline){.stages = q->v->stages,
                                           .stage_bytes = w8a8_stage_bytes(q->spec, q->v),
                                           .early = early_stages(q),
                                           .division = &q->g.division,
                                           .locate = locate,
                                           .issue = issue,
                                           .filled = prepare_codes,
                                           .user = q};
    if (q->issues_codes)
        wait_for_previous(q);
    if (fills_in_loop(q))
        begin_pipeline(q);
    else
        gemm_pipeline_begin(q->g.k, &q->g.pipeline, q->g.first, q->g.end);
}

/* The stage along K of a round of that loop; only scales of groups ask for it. */
static ptx_u32 find_stage(struct product *q, const struct gemm_walk *w, ptx_u32 round)
{
    ptx_kernel *k = q->g.k;
    if (!w8a8_has_groups(q->spec))
        return round;
    return along_all(q, ptx_add_u32(k, w->stage, ptx_sub_u32(k, round, q->to_fill)));
}

/* The loop over a part; its first iterations issue the copies of the first stages. */
static void fill_and_multiply(struct gemm *g, struct gemm_part *part)
{
    struct product *q = w8a8_of(g);
    const struct gemm_walk *w = &part->walk;
    ptx_kernel *k = g->k;
    ptx_u32 round = ptx_mov_u32(k, U32(0)), stages = ptx_sub_u32(k, w->stage_end, w->stage);
    ptx_u32 rounds = ptx_add_u32(k, stages, q->to_fill);
    w8a8_clear_operands(q);
    ptx_for(k, round, rounds, U32(1)) {
        ptx_nounroll(k);
        ptx_u32 slot = ptx_mov_u32(k, q->g.pipeline.read);
        gemm_pipeline_issue(k, &q->g.pipeline);
        ptx_pred filled = ptx_setp_ge_u32(k, round, q->to_fill);
        ptx_guarded(k, filled) /* the first stage; the pipeline waits for the others */
            ptx_cp_async_wait_group(k, q->v->stages - 2);
        ptx_if(k, ptx_setp_eq_u32(k, round, q->to_fill)) {
            ptx_bar_sync(k, 0);
            w8a8_first_operands(q);
        }
        ptx_if(k, filled)
            w8a8_multiply_stage(q, slot, find_stage(q, w, round));
    }
    ptx_mov_u32_to(k, q->to_fill, U32(0));
}

/* ---- the entry ---- */

void w8a8_new_sums(struct product *q)
{
    bool tokens_are_m = w8a8_tokens_are_m(q->v);
    uint32_t tiles = tokens_are_m ? w8a8_strips(q->v) : feature_tiles(q);
    uint32_t groups = tokens_are_m ? w8a8_group_features(q->v) / 8 : token_tiles(q);
    for (uint32_t t = 0; t < tiles; t++)
        for (uint32_t j = 0; j < groups; j++)
            for (int r = 0; r < 4; r++)
                q->acc[t][j][r] = ptx_s32_as_u32(ptx_mov_s32(q->g.k, S32(0)));
}

static void clear_sums(struct product *q)
{
    for (uint32_t t = 0; t < feature_tiles(q); t++)
        for (uint32_t j = 0; j < token_tiles(q); j++)
            for (int r = 0; r < 4; r++)
                ptx_mov_s32_to(q->g.k, ptx_u32_as_s32(q->acc[t][j][r]), S32(0));
}

void w8a8_count_tiles(struct product *q)
{
    if (!w8a8_takes_all_tokens(q->v))
        q->g.tiles_m = gemm_divide_up(q->g.k, q->g.m, q->v->tile_m);
}

static void begin(struct product *q)
{
    ptx_kernel *k = q->g.k;
    w8a8_load_params(q);
    find_warp(q);
    w8a8_count_tiles(q);
    w8a8_begin_weights(q);
    if (!q->v->fused) {
        q->codes.rows = q->v->tile_m;
        q->codes.blocks = q->v->wk;
        q->codes.threads = W8A8_THREADS;
        bool given = w8a8_takes_codes(q->spec);
        uint64_t aligned = gemm_aligned_bytes(q->spec->k, 1), stride = w8a8_code_stride(q->spec);
        q->codes.row_bytes = (uint32_t)(given ? aligned : stride);
        ptx_u64 pitch = given ? ptx_cvt_u64_u32(k, q->x_stride) : U64(stride);
        gemm_operand_begin(k, &q->g.at, pitch, &q->codes);
    }
    w8a8_new_sums(q);
    if (w8a8_has_groups(q->spec))
        for (uint32_t t = 0; t < feature_tiles(q); t++)
            for (uint32_t j = 0; j < token_tiles(q); j++)
                gemm_new_registers(k, q->group_sums[t][j], 4);
    w8a8_begin_operands(q);
}

void w8a8_find_share(struct product *q)
{
    ptx_kernel *k = q->g.k;
    gemm_find_share(&q->g);
    ptx_u32 more = ptx_min_u32(k, q->g.unit, q->g.division.extra);
    q->first_granule = ptx_mad_lo_u32(k, q->g.unit, q->g.division.share, more);
    q->rotates = w8a8_rotates(q->plan, q->v);
    q->w_left = ptx_mov_u32(k, U32(0));
    q->codes_left = ptx_mov_u32(k, U32(0));
    if (q->rotates)
        q->rotation = w8a8_first_stage(k, q->g.unit, U32(q->g.division.stages),
                                       q->plan->target.multiprocessors);
}

static void begin_cp_async(struct gemm *g)
{
    struct product *q = w8a8_of(g);
    begin(q);
    w8a8_find_share(q);
    start_pipeline(q);
}

static void begin_consumer(struct gemm *g)
{
    struct product *q = w8a8_of(g);
    w8a8_begin_output(q);
    if (!fills_in_loop(q))
        w8a8_first_operands(q);
}

static void clear(struct gemm *g, const struct gemm_part *part)
{
    struct product *q = w8a8_of(g);
    gemm_epilogue_locate(&q->output, part->walk.tile);
    if (w8a8_has_groups(q->spec))
        w8a8_locate_scales(q, part->walk.tile, along_all(q, part->walk.stage));
    clear_sums(q);
}

static void multiply(struct gemm *g, const struct gemm_part *part)
{
    struct product *q = w8a8_of(g);
    ptx_u32 slot = ptx_mov_u32(g->k, g->pipeline.read), stage = part->walk.stage;
    gemm_pipeline_issue(g->k, &g->pipeline);
    w8a8_multiply_stage(q, slot, w8a8_has_groups(q->spec) ? along_all(q, stage) : stage);
}

static const struct gemm_ops cp_async_ops = {.begin = begin_cp_async,
                                             .begin_consumer = begin_consumer,
                                             .clear = clear,
                                             .multiply = multiply,
                                             .multiply_part = fill_and_multiply,
                                             .epilogue = gemm_epilogue};

static void emit_entry(const ptxgen_w8a8_plan *plan, const ptxgen_tile *v, ptx_module *module)
{
    bool wgmma = gemm_is_wgmma(v);
    struct product q = {.g = {.ops = &cp_async_ops,
                              .name = ptxgen_w8a8_entry(v),
                              .consumers = wgmma ? w8a8_consumer_threads(v) : W8A8_THREADS,
                              .threads = w8a8_threads(v),
                              .ctas = 1,
                              .cluster = v->cluster,
                              .parts_by_thread = true,
                              .one_part = wgmma && w8a8_has_one_tile(plan, v)},
                        .spec = &plan->spec,
                        .plan = plan,
                        .v = v,
                        .wide = w8a8_is_wide(&plan->spec)};
    if (wgmma)
        q.g.ops = &w8a8_wgmma_ops;
    else
        q.g.loops_itself = fills_in_loop(&q);
    if (wgmma && w8a8_moves_registers(v))
        q.g.registers = gemm_wgmma_registers(w8a8_consumer_threads(v) / GEMM_WARPGROUP);
    gemm_emit_entry(&q.g, module);
}

ptxgen_status ptxgen_w8a8_emit(const ptxgen_w8a8_plan *plan, uint32_t variants, ptx_module *module,
                               ptxgen_error *err)
{
    if (!w8a8_is_plan(plan) || !module)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "w8a8: a plan that was made, and a module, must be given");
    const ptxgen_w8a8_spec *s = &plan->spec;
    if (gemm_is_empty(&w8a8_planner, plan)) {
        const struct gemm_empty empty = {.n = s->n,
                                         .type = (ptxgen_element)s->y_type,
                                         .bias_type = ptxgen_w8a8_work_type(s),
                                         .activation = (ptxgen_activation)s->activation,
                                         .bias = s->bias,
                                         .residual = s->residual,
                                         .pairs = w8a8_gated(s),
                                         .bias_pairs =
                                             w8a8_gated(s) && s->bias ? W8A8_PAIR_ROWS : 0};
        gemm_emit_empty(module, "w8a8_empty", &empty);
        return ptx_module_status(module, err);
    }
    const struct w8a8_entries before = w8a8_entries(plan, variants);
    if (before.prepares && w8a8_takes_codes(s))
        gemm_emit_align(module, "w8a8_align_x", s->k, 1);
    else if (before.prepares)
        w8a8_emit_quantise(plan, before.prefetches, module);
    if (before.aligns)
        gemm_emit_align(module, "w8a8_align", w8a8_align_columns(plan), w8a8_align_element(plan));
    for (uint32_t i = 0; i < plan->variant_count; i++)
        if (variants >> i & 1)
            emit_entry(plan, &plan->variants[i], module);
    return ptx_module_status(module, err);
}
