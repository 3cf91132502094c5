/* SPDX-License-Identifier: Apache-2.0 */
#include "emit.h"

#include "../gemm/ring.h"

#include <stdio.h>

enum {
    MOST_ROWS = 128,
    WGMMA_ROWS = 64, /* tokens from which on wgmma is always used where the target has it */
    MOST_S8_K = INT32_MAX / (128 * 128) * 2, /* two of four columns are kept */
};

/* ---- the spec ---- */

static ptxgen_status check_sizes(const ptxgen_sparse24_spec *s, ptxgen_error *err)
{
    const struct {
        const char *name;
        uint32_t size;
    } sizes[] = {{"N", s->n}, {"K", s->k}};
    for (int i = 0; i < 2; i++)
        if (sizes[i].size > INT32_MAX)
            return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED, "sparse24: %s = %u is above %d",
                               sizes[i].name, sizes[i].size, INT32_MAX);
    if (s->k % 8)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "sparse24: K = %u is not a multiple of 8, as 2:4 metadata needs", s->k);
    if (sparse24_is_s8(s) && s->k > MOST_S8_K)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "sparse24: K = %u is above %d, where sums of s8 products can overflow "
                           "s32",
                           s->k, MOST_S8_K);
    return PTXGEN_OK;
}

static ptxgen_status check_types(const ptxgen_sparse24_spec *s, ptxgen_error *err)
{
    if (s->type > PTXGEN_SPARSE24_S8)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "sparse24: the type %u is no ptxgen_sparse24_type", s->type);
    if (s->tier > 2)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "sparse24: the tier %u is not 0, 1 or 2", s->tier);
    uint32_t missing = sparse24_is_s8(s) ? 1 : s->type == PTXGEN_SPARSE24_F32 ? 2 : 0;
    if (sparse24_tier(s) == missing)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "sparse24: tier %u does not have the type %s", s->tier,
                           sparse24_is_s8(s) ? "s8" : "f32");
    if (sparse24_is_s8(s) && s->y_type != PTXGEN_F16 && s->y_type != PTXGEN_BF16)
        return ptxgen_fail(err, plan_refuses_enumerator(s->y_type <= PTXGEN_F64),
                           "sparse24: the output type %u is neither PTXGEN_F16 nor PTXGEN_BF16",
                           s->y_type);
    if (!sparse24_is_s8(s) && s->y_type != s->type)
        return ptxgen_fail(err, plan_refuses_enumerator(s->y_type <= PTXGEN_F64),
                           "sparse24: the output type %u is not that of x, %u", s->y_type, s->type);
    if (s->activation > PTXGEN_ACTIVATION_RELU)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "sparse24: %u is not an activation",
                           s->activation);
    return PTXGEN_OK;
}

static ptxgen_status check_flags(const ptxgen_sparse24_spec *s, ptxgen_error *err)
{
    const struct plan_flag flags[] = {{"bias", s->bias, 1},
                                      {"residual", s->residual, 1},
                                      {"plain", s->plain, 1},
                                      {"reserved[0]", s->reserved[0], 0}};
    return plan_check_flags("sparse24", flags, sizeof flags / sizeof *flags, err);
}

ptxgen_status sparse24_check_spec(const void *spec, ptxgen_error *err)
{
    ptxgen_status status;
    if (!spec)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "sparse24: spec is NULL");
    if ((status = check_types(spec, err)) != PTXGEN_OK ||
        (status = check_sizes(spec, err)) != PTXGEN_OK)
        return status;
    return check_flags(spec, err);
}

/* ---- tiles ---- */

static void derive(ptxgen_tile *v)
{
    v->warp_m = v->tile_m / v->wm;
    v->tile_n = v->wn * v->wm * v->warp_n;
}

static uint64_t shared_bytes(const void *plan, const ptxgen_tile *v)
{
    const ptxgen_sparse24_spec *s = &((const ptxgen_sparse24_plan *)plan)->spec;
    uint32_t barriers = gemm_is_wgmma(v) ? gemm_ring_barrier_bytes(v->stages) : 0;
    if (sparse24_exchanges(v))
        barriers +=
            gemm_exchange_bytes(gemm_tile_threads(v), 1, sparse24_warp_tiles(v), v->tile_m / 8);
    return v->stages * sparse24_stage_bytes(s, v) + sparse24_sums_bytes(v) + barriers;
}

/*
 * The time of a step of a tile, in picoseconds, where `busy` of `units` CTAs read weights, with
 * figures of an H100. It is the longest of three times: reading weights from memory (23 bytes a
 * nanosecond and multiprocessor), reading weights and activations from the L2 (45 bytes a
 * nanosecond by cp.async, 90 in bulk, but 62 while weights are read from memory), and multiplying
 * (2200 dense multiply-adds of 16 bits a nanosecond). Bulk copies add a little for the L2.
 */
static uint64_t step_cost(const ptxgen_sparse24_spec *s, const ptxgen_tile *v, uint64_t busy,
                          uint64_t units)
{
    uint64_t weights = (uint64_t)sparse24_tile_strips(v) * sparse24_block_bytes(s);
    uint64_t x = (uint64_t)v->tile_m * SPARSE24_STEP * sparse24_element(s);
    uint64_t memory = weights * 1000 / 23 * busy / units;
    uint64_t l2 = (weights + x) * 1000 / (gemm_is_wgmma(v) ? 62 : 45);
    uint64_t products = x * v->tile_n / 2 * 10 / 22;
    uint64_t most = memory > l2 ? memory : l2;
    most = most > products ? most : products;
    return gemm_is_wgmma(v) ? most + (weights + x) * 1000 / 90 / 16 : most;
}

/* The time of the CTA with the most work, of `units` CTAs, for whole tiles. */
static uint64_t whole_cost(const ptxgen_sparse24_spec *s, const ptxgen_tile *v, uint64_t tiles,
                           uint64_t units)
{
    uint64_t step = step_cost(s, v, tiles < units ? tiles : units, units);
    return (tiles + units - 1) / units * sparse24_steps(s) * step;
}

/* The same time for divided tiles: the fix-up takes 2500 ns, and more for more tokens. */
static uint64_t divided_cost(const ptxgen_sparse24_spec *s, const ptxgen_tile *v, uint64_t tiles,
                             uint64_t units)
{
    return tiles * sparse24_steps(s) * step_cost(s, v, 1, 1) / units + 2500000 +
           (uint64_t)v->tile_m * 60000;
}

/*
 * Whether tiles are whole. A single row of tiles is also whole where it has fewer tiles than there
 * are multiprocessors, but enough to read the weights as fast as memory gives them.
 */
static bool is_whole(const void *plan, const ptxgen_tile *v, uint64_t tiles, uint32_t units)
{
    const ptxgen_sparse24_spec *s = &((const ptxgen_sparse24_plan *)plan)->spec;
    if (v->cluster > 1 || gemm_deals_whole(tiles, units))
        return true;
    return gemm_is_wgmma(v) && tiles == sparse24_tiles_n(s, v) && tiles * 100 >= units * 80ull &&
           whole_cost(s, v, tiles, units) <= divided_cost(s, v, tiles, units);
}

/*
 * The time of the CTA with the most work for one row of tiles. Clusters take 3000 ns more, or 1000
 * ns where their CTAs exchange sums.
 */
static uint64_t row_cost(const ptxgen_sparse24_plan *p, const ptxgen_tile *v)
{
    const ptxgen_sparse24_spec *s = &p->spec;
    uint64_t tiles = sparse24_tiles_n(s, v);
    uint32_t units = p->target.multiprocessors / v->cluster;
    if (sparse24_exchanges(v))
        return whole_cost(s, v, tiles, units) / v->cluster + 1000000;
    if (v->cluster > 1)
        return (tiles + units - 1) / units *
               (sparse24_steps(s) / v->cluster * step_cost(s, v, 1, 1) + 3000000);
    return is_whole(p, v, tiles, units) ? whole_cost(s, v, tiles, units)
                                        : divided_cost(s, v, tiles, units);
}

/*
 * The cost of one row of tiles; for any number of tokens, the time of a step of 32 features. Where
 * the target has bulk copies, a row with cp.async costs a thirtieth more.
 */
static uint64_t cost(const void *of, const ptxgen_tile *v, uint64_t m)
{
    const ptxgen_sparse24_plan *p = of;
    if (m == GEMM_ANY_M)
        return step_cost(&p->spec, v, 1, 1) / sparse24_tile_strips(v);
    uint64_t row = row_cost(p, v);
    return gemm_is_wgmma(v) || !sparse24_has_wgmma(&p->target) ? row : row + row / 32;
}

/*
 * Whether the tile can have clusters. Their tiles are not divided in another way, so all CTAs must
 * have equally many stages. With wgmma a cluster has one tile only: the cluster barrier at the end
 * of a tile waits for all threads that have not exited, and a producer that goes on to the next
 * tile would not arrive.
 */
static bool can_cluster(const ptxgen_sparse24_plan *p, const ptxgen_tile *v)
{
    uint32_t clusters = p->target.multiprocessors / v->cluster;
    return v->cluster == 1 ||
           (p->target.ptx.sm >= 90 && p->target.multiprocessors % v->cluster == 0 &&
            sparse24_stages_along_k(&p->spec, v) % v->cluster == 0 &&
            (!gemm_is_wgmma(v) || sparse24_tiles_n(&p->spec, v) <= clusters));
}

/*
 * Whether warpgroups can divide K: a bulk copy brings whole blocks, and no zeros past the end of K.
 */
static bool can_divide_steps(const ptxgen_sparse24_plan *p, const ptxgen_tile *v)
{
    return !gemm_is_wgmma(v) || sparse24_steps(&p->spec) % v->wk == 0;
}

/*
 * Candidates, in the order of their tokens. Of the candidates with equally many tokens the cheapest
 * is used, and of equally cheap ones the first.
 */
static const ptxgen_tile candidates[] = {
    {.kind = PTXGEN_WGMMA, .tile_m = 8, .warp_n = 16, .wn = 4, .wk = 4, .pass_m = 8},
    {.kind = PTXGEN_WGMMA, .tile_m = 8, .warp_n = 16, .wn = 8, .wk = 2, .pass_m = 8},
    {.tile_m = 8, .wn = 2, .wk = 2, .pass_m = 8},
    {.tile_m = 8, .wn = 1, .wk = 4, .pass_m = 8},
    {.tile_m = 8, .wn = 4, .wk = 2, .pass_m = 8},
    {.kind = PTXGEN_WGMMA, .tile_m = 16, .warp_n = 16, .wn = 4, .wk = 2, .pass_m = 16},
    {.kind = PTXGEN_WGMMA, .tile_m = 16, .warp_n = 16, .wn = 8, .wk = 2, .pass_m = 16},
    {.tile_m = 16, .wn = 2, .wk = 2, .pass_m = 16},
    {.tile_m = 16, .wn = 1, .wk = 4, .pass_m = 16},
    {.tile_m = 16, .wn = 4, .wk = 2, .pass_m = 16},
    {.kind = PTXGEN_WGMMA, .tile_m = 32, .warp_n = 16, .wn = 4, .wk = 2, .pass_m = 16},
    {.kind = PTXGEN_WGMMA, .tile_m = 32, .warp_n = 16, .wn = 8, .wk = 2, .pass_m = 16},
    {.kind = PTXGEN_WGMMA, .tile_m = 32, .warp_n = 16, .wn = 4, .pass_m = 16, .cluster = 2},
    {.tile_m = 32, .wn = 2, .wk = 2, .pass_m = 32},
    {.tile_m = 32, .wn = 4, .pass_m = 16},
    {.kind = PTXGEN_WGMMA, .tile_m = 64, .warp_n = 16, .wn = 8, .pass_m = 32},
    {.kind = PTXGEN_WGMMA, .tile_m = 64, .warp_n = 16, .wn = 4, .pass_m = 32},
    {.kind = PTXGEN_WGMMA, .tile_m = 64, .warp_n = 16, .wn = 4, .pass_m = 32, .cluster = 2},
    {.kind = PTXGEN_WGMMA, .tile_m = 64, .warp_n = 16, .wn = 8, .pass_m = 16, .cluster = 2},
    {.tile_m = 64, .wn = 4, .pass_m = 64, .cluster = 2},
    {.tile_m = 64, .wn = 4, .pass_m = 16},
    {.tile_m = 64, .wn = 2, .wk = 2, .pass_m = 16},
    {.tile_m = 64, .wn = 2, .pass_m = 16},
    {.kind = PTXGEN_WGMMA, .tile_m = 128, .warp_n = 16, .wn = 8, .pass_m = 32},
};

/* Candidates for any number of tokens. */
static const ptxgen_tile many[] = {
    {.kind = PTXGEN_WGMMA, .tile_m = 128, .warp_n = 16, .wn = 16, .pass_m = 16},
    {.tile_m = 128, .wm = 2, .wn = 4, .pass_m = 8},
    {.tile_m = 128, .wn = 4, .pass_m = 16},
};

/*
 * Whether ptxas spills registers of the tile: for sm_90 and sm_100, in tiles of s8 with two warps
 * along M, where K has one step or there is one row of tiles.
 */
static bool is_spilled(const ptxgen_sparse24_plan *p, const ptxgen_tile *v)
{
    return sparse24_is_s8(&p->spec) && v->wm == 2 && !gemm_is_wgmma(v) &&
           (sparse24_steps(&p->spec) == 1 || sparse24_tiles_n(&p->spec, v) == 1);
}

/* Whether the target has the instructions and the shared memory that the tile needs. */
static bool adapt(const void *of, ptxgen_tile *v)
{
    const ptxgen_sparse24_plan *p = of;
    bool wgmma = sparse24_has_wgmma(&p->target);
    bool fits_target = gemm_is_wgmma(v) ? wgmma : !wgmma || v->tile_m < WGMMA_ROWS;
    return fits_target && !is_spilled(p, v) && can_cluster(p, v) && can_divide_steps(p, v);
}

/* The plan of tier 1, whose tiles are dense's. */
static ptxgen_status plan_dense(ptxgen_sparse24_plan *plan, ptxgen_error *err)
{
    const ptxgen_sparse24_spec *s = &plan->spec;
    const ptxgen_dense_spec dense = {.n = s->n,
                                     .k = s->k,
                                     .max_m = s->max_m,
                                     .type = s->type, /* the enumerators have the same numbers */
                                     .activation = s->activation,
                                     .bias = s->bias,
                                     .residual = s->residual};
    return ptxgen_dense_make_plan(&dense, &plan->target, &plan->dense, err);
}

static ptxgen_status choose_tiles(void *of, ptxgen_error *err)
{
    ptxgen_sparse24_plan *plan = of;
    if (sparse24_tier(&plan->spec) == 1)
        return plan_dense(plan, err);
    uint32_t most = plan->spec.max_m ? plan->spec.max_m : UINT32_MAX, served = 0;
    for (uint32_t tile_m = 8; tile_m <= MOST_ROWS && served < most; tile_m *= 2)
        if (gemm_add_cheapest(&sparse24_planner, plan, GEMM_AMONG(candidates, tile_m, tile_m),
                              tile_m))
            served = tile_m;
    if (served < most)
        gemm_add_cheapest(&sparse24_planner, plan, GEMM_AMONG(many, MOST_ROWS, MOST_ROWS),
                          GEMM_ANY_M);
    return PTXGEN_OK;
}

static ptxgen_status check_tile(const void *of, ptxgen_tile *v, ptxgen_error *err)
{
    const ptxgen_sparse24_plan *plan = of;
    bool wgmma = gemm_is_wgmma(v);
    uint32_t most_pass = sparse24_finished_rows(v) / (v->wm == 2 ? 2 : 1);
    if (sparse24_tier(&plan->spec) == 1)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "sparse24: the tiles of tier 1 are dense's, not of this family");
    const struct plan_number numbers[] = {
        {"tile_m", v->tile_m, sparse24_exchanges(v) ? 16 : 8, MOST_ROWS, true},
        {"wm", v->wm, 1, wgmma ? 1 : SPARSE24_MOST_WM, true},
        {"wn", v->wn, wgmma ? GEMM_WARPGROUP_WARPS : 1, wgmma ? 16 : 8, wgmma},
        {"wk", v->wk, 1, sparse24_exchanges(v) ? 1 : 8, true},
        {"warp_n", v->warp_n, wgmma ? SPARSE24_TILE : SPARSE24_STRIP, SPARSE24_STRIP, true},
        {"cluster", v->cluster, 1, wgmma ? 2 : GEMM_SUMS_CTAS, true},
        {"pass_m", v->pass_m, 8, most_pass, true},
        {"ctas", v->ctas, 1, 1, false},
    };
    ptxgen_status status =
        plan_check_numbers("sparse24", numbers, sizeof numbers / sizeof *numbers, err);
    if (status == PTXGEN_OK)
        status = gemm_check_warps("sparse24", v, err);
    if (status != PTXGEN_OK)
        return status;
    if (wgmma && !sparse24_has_wgmma(&plan->target))
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "sparse24: wgmma.sp needs sm_90a, PTX 8.2");
    if (!can_cluster(plan, v))
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "sparse24: a cluster of %u CTAs needs sm_90, as many multiprocessors "
                           "that can be divided by it, and so the %u stages along K; with wgmma no "
                           "more tiles than clusters",
                           v->cluster, sparse24_stages_along_k(&plan->spec, v));
    if (!can_divide_steps(plan, v))
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "sparse24: %u warpgroups along K do not divide its %u steps of %d",
                           v->wk, sparse24_steps(&plan->spec), SPARSE24_STEP);
    return PTXGEN_OK;
}

/* ---- launches ---- */

/* The variant with the fewest tokens that m does not exceed serves, and the last one any M. */
static uint64_t variant_cost(const void *of, const ptxgen_tile *v, uint64_t m)
{
    const ptxgen_sparse24_plan *plan = of;
    bool last = v == &plan->variants[plan->variant_count - 1];
    return m <= v->tile_m ? v->tile_m : last ? UINT32_MAX : UINT64_MAX;
}

static struct gemm_work work(const void *of, const ptxgen_tile *v)
{
    const ptxgen_sparse24_spec *s = &((const ptxgen_sparse24_plan *)of)->spec;
    return (struct gemm_work){sparse24_tiles_n(s, v), sparse24_own_stages(s, v), v->cluster,
                              gemm_partials_bytes(gemm_tile_threads(v), sparse24_fragments(v))};
}

static ptxgen_status check_launch(const ptxgen_tile *v, uint64_t m, uint64_t tiles, uint32_t units,
                                  ptxgen_error *err)
{
    if (sparse24_exchanges(v) && tiles > units)
        return ptxgen_fail(
            err, PTXGEN_ERROR_UNSUPPORTED,
            "sparse24: m = %llu tokens make %llu tiles, more than the %u clusters of "
            "this tile's launch",
            (unsigned long long)m, (unsigned long long)tiles, units);
    return PTXGEN_OK;
}

static void describe(const void *of, const ptxgen_tile *v, uint64_t m, char *text, size_t size)
{
    char divides[32] = "";
    (void)of, (void)m;
    if (v->cluster > 1)
        snprintf(divides, sizeof divides, "; %u CTAs divide K", v->cluster);
    gemm_describe_tile(v, gemm_is_wgmma(v) ? "wgmma.sp" : "mma.sp", divides, text, size);
}

/* Sums of s8 are exact; so is what follows them, but for an activation that is approximated. */
static void guarantee(const void *of, const ptxgen_tile *v, ptxgen_guarantee *g)
{
    const ptxgen_sparse24_spec *s = &((const ptxgen_sparse24_plan *)of)->spec;
    bool is_s8 = sparse24_is_s8(s);
    (void)v;
    g->exact = is_s8 && (!s->activation || s->activation == PTXGEN_ACTIVATION_RELU);
    g->sums = is_s8 ? PTXGEN_SUMS_S32 : PTXGEN_SUMS_F32;
    g->bound = g->exact ? PTXGEN_BOUND_ZERO : is_s8 ? PTXGEN_BOUND_SUM : PTXGEN_BOUND_PRODUCTS;
}

const struct gemm_planner sparse24_planner = {
    GEMM_PLANNER_MEMBERS(sparse24),
    .is_plan = sparse24_is_plan,
    .check_spec = sparse24_check_spec,
    .choose_tiles = choose_tiles,
    .defaults =
        {.warp_n = SPARSE24_STRIP, .wm = 1, .wn = 1, .wk = 1, .ctas = 1, .pass_m = 8, .cluster = 1},
    .unused = {"steps", "split", "blocks_n", "fused"},
    .most_kind = PTXGEN_WGMMA,
    .least_stages = 3,
    .most_stages = {8, 8},
    .derive = derive,
    .adapt = adapt,
    .shared_bytes = shared_bytes,
    .candidate_cost = cost,
    .cost = variant_cost,
    .check_tile = check_tile,
    .most_ctas = 1,
    .work = work,
    .is_whole = is_whole,
    .check_launch = check_launch,
    .guarantee = guarantee,
    .describe = describe,
};
GEMM_PLANS(sparse24, sparse24_planner)

/* Whether launches are dense's, behind one that inflates w. */
static bool has_dense_plan(const ptxgen_sparse24_plan *plan)
{
    return sparse24_is_plan(plan) && plan->dense.variant_count > 0;
}

ptxgen_status ptxgen_sparse24_ctas(const ptxgen_sparse24_plan *plan, uint64_t m, uint32_t *ctas,
                                   ptxgen_error *err)
{
    if (!ctas || !has_dense_plan(plan))
        return gemm_ctas(&sparse24_planner, plan, m, ctas, err);
    *ctas = 0;
    if (m && !ptxgen_dense_choose(&plan->dense, m))
        return gemm_refuse_m(&sparse24_planner, plan, m, err);
    return ptxgen_dense_ctas(&plan->dense, m, ctas, err);
}

ptxgen_status ptxgen_sparse24_guarantee(const ptxgen_sparse24_plan *plan, uint64_t m,
                                        ptxgen_guarantee *guarantee, ptxgen_error *err)
{
    if (!guarantee || !m || !has_dense_plan(plan))
        return gemm_guarantee(&sparse24_planner, plan, m, guarantee, err);
    if (!ptxgen_dense_choose(&plan->dense, m))
        return gemm_refuse_m(&sparse24_planner, plan, m, err);
    return ptxgen_dense_guarantee(&plan->dense, m, guarantee, err);
}

void ptxgen_sparse24_explain(const ptxgen_sparse24_plan *plan, uint64_t m, char *text, size_t size)
{
    if (!has_dense_plan(plan)) {
        gemm_explain(&sparse24_planner, plan, m, text, size);
        return;
    }
    char dense[160];
    ptxgen_dense_explain(&plan->dense, m, dense, sizeof dense);
    bool serves = ptxgen_dense_choose(&plan->dense, m) != NULL;
    snprintf(text, plan_room(text, size), "%s%s", serves ? "w is inflated first; " : "", dense);
}

const char *ptxgen_sparse24_entry(const ptxgen_tile *variant)
{
    static const char *const mma[] = GEMM_NAMES("sparse24_m");
    static const char *const wgmma[] = GEMM_NAMES("sparse24_wgmma_m");
    if (!variant)
        return NULL;
    if (gemm_is_wgmma(variant) && variant->tile_n > 128)
        return "sparse24_wgmma";
    return (gemm_is_wgmma(variant) ? wgmma : mma)[gemm_width(variant)];
}
