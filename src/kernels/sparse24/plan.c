/* SPDX-License-Identifier: Apache-2.0 */
#include "../plan.h"
#include "emit.h"

#include "../gemm/ring.h"

#include <stdio.h>
#include <string.h>

enum {
    LEAST_STAGES = 3,
    MOST_STAGES = 8,
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
        if (sizes[i].size == 0 || sizes[i].size > INT32_MAX)
            return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                               "sparse24: %s = %u is not between 1 and %d", sizes[i].name,
                               sizes[i].size, INT32_MAX);
    if (s->k % 8)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "sparse24: K = %u is not a multiple of 8, as 2:4 metadata needs", s->k);
    if (sparse24_is_s8(s) && s->k > MOST_S8_K)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "sparse24: K = %u is above %d, where sums of s8 products can overflow "
                           "s32", s->k, MOST_S8_K);
    return PTXGEN_OK;
}

static ptxgen_status check_types(const ptxgen_sparse24_spec *s, ptxgen_error *err)
{
    if (s->type > PTXGEN_SPARSE24_S8)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "sparse24: the type %u is no ptxgen_sparse24_type", s->type);
    if (s->tier > 2)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "sparse24: the tier %u is not 0, 1 or 2",
                           s->tier);
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
    const struct {
        const char *name;
        uint8_t value, most;
    } flags[] = {{"bias", s->bias, 1},
                 {"residual", s->residual, 1},
                 {"reserved[0]", s->reserved[0], 0},
                 {"reserved[1]", s->reserved[1], 0}};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (flags[i].value > flags[i].most)
            return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "sparse24: %s is %u, not 0%s",
                               flags[i].name, flags[i].value, flags[i].most ? " or 1" : "");
    return PTXGEN_OK;
}

ptxgen_status sparse24_check_spec(const ptxgen_sparse24_spec *spec, ptxgen_error *err)
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

static uint32_t shared_bytes(const ptxgen_sparse24_spec *s, const ptxgen_tile *v)
{
    uint32_t barriers = sparse24_is_wgmma(v) ? gemm_ring_barrier_bytes(v->stages) : 0;
    if (sparse24_exchanges(v))
        barriers +=
            gemm_exchange_bytes(sparse24_threads(v), 1, sparse24_warp_tiles(v), v->tile_m / 8);
    return v->stages * sparse24_stage_bytes(s, v) + sparse24_sums_bytes(v) + barriers;
}

static bool fits(const ptxgen_sparse24_spec *s, const ptxgen_target *target,
                 ptxgen_tile *v)
{
    v->shared_bytes = shared_bytes(s, v);
    v->dynamic_shared_bytes = plan_dynamic_shared(v->shared_bytes);
    return v->shared_bytes <= target->shared_per_cta;
}

/* Chooses as many stages as fit; false if too few fit. */
static bool fill_stages(const ptxgen_sparse24_spec *s, const ptxgen_target *target,
                        ptxgen_tile *v)
{
    for (v->stages = MOST_STAGES; v->stages >= LEAST_STAGES; v->stages--)
        if (fits(s, target, v))
            return true;
    return false;
}

/*
 * The time of a step of a tile, in picoseconds, where `busy` of `units` CTAs read weights, with
 * figures of an H100. It is the longest of three times: reading weights from memory (23 bytes a
 * nanosecond and multiprocessor), reading weights and activations from the L2 (45 bytes a
 * nanosecond by cp.async, 90 in bulk, but 62 while weights are read from memory), and multiplying
 * (2200 dense multiply-adds of 16 bits a nanosecond). Bulk copies add a little for the L2.
 */
static uint64_t step_cost(const ptxgen_sparse24_spec *s, const ptxgen_tile *v,
                          uint64_t busy, uint64_t units)
{
    uint64_t weights = (uint64_t)sparse24_tile_strips(v) * sparse24_block_bytes(s);
    uint64_t x = (uint64_t)v->tile_m * SPARSE24_STEP * sparse24_element(s);
    uint64_t memory = weights * 1000 / 23 * busy / units;
    uint64_t l2 = (weights + x) * 1000 / (sparse24_is_wgmma(v) ? 62 : 45);
    uint64_t products = x * sparse24_tile_n(v) / 2 * 10 / 22;
    uint64_t most = memory > l2 ? memory : l2;
    most = most > products ? most : products;
    return sparse24_is_wgmma(v) ? most + (weights + x) * 1000 / 90 / 16 : most;
}

/* The time of the CTA with the most work, of `units` CTAs, for whole tiles. */
static uint64_t whole_cost(const ptxgen_sparse24_spec *s, const ptxgen_tile *v,
                           uint64_t tiles, uint64_t units)
{
    uint64_t step = step_cost(s, v, tiles < units ? tiles : units, units);
    return (tiles + units - 1) / units * sparse24_steps(s) * step;
}

/* The same time for divided tiles: the fix-up takes 2500 ns, and more for more tokens. */
static uint64_t divided_cost(const ptxgen_sparse24_spec *s, const ptxgen_tile *v,
                             uint64_t tiles, uint64_t units)
{
    return tiles * sparse24_steps(s) * step_cost(s, v, 1, 1) / units + 2500000 +
           (uint64_t)v->tile_m * 60000;
}

/*
 * Whether tiles are whole. A single row of tiles is also whole where it has fewer tiles than there
 * are multiprocessors, but enough to read the weights as fast as memory gives them.
 */
static bool deals_whole(const ptxgen_sparse24_spec *s, const ptxgen_tile *v,
                        uint64_t tiles, uint32_t units)
{
    if (v->cluster > 1 || gemm_deals_whole(tiles, units))
        return true;
    return sparse24_is_wgmma(v) && tiles == sparse24_tiles_n(s, v) &&
           tiles * 100 >= units * 80ull &&
           whole_cost(s, v, tiles, units) <= divided_cost(s, v, tiles, units);
}

/*
 * The time of the CTA with the most work for one row of tiles. Clusters take 3000 ns more, or 1000
 * ns where their CTAs exchange sums.
 */
static uint64_t row_cost(const ptxgen_sparse24_spec *s, const ptxgen_target *target,
                         const ptxgen_tile *v)
{
    uint64_t tiles = sparse24_tiles_n(s, v);
    uint32_t units = target->multiprocessors / v->cluster;
    if (sparse24_exchanges(v))
        return whole_cost(s, v, tiles, units) / v->cluster + 1000000;
    if (v->cluster > 1)
        return (tiles + units - 1) / units *
               (sparse24_steps(s) / v->cluster * step_cost(s, v, 1, 1) + 3000000);
    return deals_whole(s, v, tiles, units) ? whole_cost(s, v, tiles, units)
                                           : divided_cost(s, v, tiles, units);
}

/*
 * The cost of one row of tiles. Where the target has bulk copies, cp.async costs a thirtieth more.
 */
static uint64_t cost(const ptxgen_sparse24_spec *s, const ptxgen_target *target,
                     const ptxgen_tile *v)
{
    uint64_t row = row_cost(s, target, v);
    return sparse24_is_wgmma(v) || !sparse24_has_wgmma(target) ? row : row + row / 32;
}

/* The cost for many rows of tiles: the time of a step of 32 features. */
static uint64_t cost_of_many(const ptxgen_sparse24_spec *s, const ptxgen_target *target,
                             const ptxgen_tile *v)
{
    (void)target;
    return step_cost(s, v, 1, 1) / sparse24_tile_strips(v);
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
            (!sparse24_is_wgmma(v) || sparse24_tiles_n(&p->spec, v) <= clusters));
}

/*
 * Whether warpgroups can divide K: a bulk copy brings whole blocks, and no zeros past the end of K.
 */
static bool can_divide_steps(const ptxgen_sparse24_plan *p, const ptxgen_tile *v)
{
    return !sparse24_is_wgmma(v) || sparse24_steps(&p->spec) % v->wk == 0;
}

/*
 * Candidates, in the order of their tokens. Of the candidates with equally many tokens the cheapest
 * is used, and of equally cheap ones the first.
 */
static const ptxgen_tile candidates[] = {
    {.kind = PTXGEN_WGMMA, .tile_m = 8, .wm = 1, .wn = 4, .wk = 4, .warp_n = 16,
     .cluster = 1, .pass_m = 8},
    {.kind = PTXGEN_WGMMA, .tile_m = 8, .wm = 1, .wn = 8, .wk = 2, .warp_n = 16,
     .cluster = 1, .pass_m = 8},
    {.tile_m = 8, .wm = 1, .wn = 2, .wk = 2, .cluster = 1, .pass_m = 8},
    {.tile_m = 8, .wm = 1, .wn = 1, .wk = 4, .cluster = 1, .pass_m = 8},
    {.tile_m = 8, .wm = 1, .wn = 4, .wk = 2, .cluster = 1, .pass_m = 8},
    {.kind = PTXGEN_WGMMA, .tile_m = 16, .wm = 1, .wn = 4, .wk = 2, .warp_n = 16,
     .cluster = 1, .pass_m = 16},
    {.kind = PTXGEN_WGMMA, .tile_m = 16, .wm = 1, .wn = 8, .wk = 2, .warp_n = 16,
     .cluster = 1, .pass_m = 16},
    {.tile_m = 16, .wm = 1, .wn = 2, .wk = 2, .cluster = 1, .pass_m = 16},
    {.tile_m = 16, .wm = 1, .wn = 1, .wk = 4, .cluster = 1, .pass_m = 16},
    {.tile_m = 16, .wm = 1, .wn = 4, .wk = 2, .cluster = 1, .pass_m = 16},
    {.kind = PTXGEN_WGMMA, .tile_m = 32, .wm = 1, .wn = 4, .wk = 2, .warp_n = 16,
     .cluster = 1, .pass_m = 16},
    {.kind = PTXGEN_WGMMA, .tile_m = 32, .wm = 1, .wn = 8, .wk = 2, .warp_n = 16,
     .cluster = 1, .pass_m = 16},
    {.kind = PTXGEN_WGMMA, .tile_m = 32, .wm = 1, .wn = 4, .wk = 1, .warp_n = 16,
     .cluster = 2, .pass_m = 16},
    {.tile_m = 32, .wm = 1, .wn = 2, .wk = 2, .cluster = 1, .pass_m = 32},
    {.tile_m = 32, .wm = 1, .wn = 4, .wk = 1, .cluster = 1, .pass_m = 16},
    {.kind = PTXGEN_WGMMA, .tile_m = 64, .wm = 1, .wn = 8, .wk = 1, .warp_n = 16,
     .cluster = 1, .pass_m = 32},
    {.kind = PTXGEN_WGMMA, .tile_m = 64, .wm = 1, .wn = 4, .wk = 1, .warp_n = 16,
     .cluster = 1, .pass_m = 32},
    {.kind = PTXGEN_WGMMA, .tile_m = 64, .wm = 1, .wn = 4, .wk = 1, .warp_n = 16,
     .cluster = 2, .pass_m = 32},
    {.kind = PTXGEN_WGMMA, .tile_m = 64, .wm = 1, .wn = 8, .wk = 1, .warp_n = 16,
     .cluster = 2, .pass_m = 16},
    {.tile_m = 64, .wm = 1, .wn = 4, .wk = 1, .cluster = 2, .pass_m = 64},
    {.tile_m = 64, .wm = 1, .wn = 4, .wk = 1, .cluster = 1, .pass_m = 16},
    {.tile_m = 64, .wm = 1, .wn = 2, .wk = 2, .cluster = 1, .pass_m = 16},
    {.tile_m = 64, .wm = 1, .wn = 2, .wk = 1, .cluster = 1, .pass_m = 16},
    {.kind = PTXGEN_WGMMA, .tile_m = 128, .wm = 1, .wn = 8, .wk = 1, .warp_n = 16,
     .cluster = 1, .pass_m = 32},
};

/* Candidates for any number of tokens. */
static const ptxgen_tile many[] = {
    {.kind = PTXGEN_WGMMA, .tile_m = 128, .wm = 1, .wn = 16, .wk = 1, .warp_n = 16,
     .cluster = 1, .pass_m = 16},
    {.tile_m = 128, .wm = 2, .wn = 4, .wk = 1, .cluster = 1, .pass_m = 8},
    {.tile_m = 128, .wm = 1, .wn = 4, .wk = 1, .cluster = 1, .pass_m = 16},
};

/*
 * Whether ptxas spills registers of the tile: for sm_90 and sm_100, in tiles of s8 with two warps
 * along M, where K has one step or there is one row of tiles.
 */
static bool is_spilled(const ptxgen_sparse24_plan *p, const ptxgen_tile *v)
{
    return sparse24_is_s8(&p->spec) && v->wm == 2 && !sparse24_is_wgmma(v) &&
           (sparse24_steps(&p->spec) == 1 || sparse24_tiles_n(&p->spec, v) == 1);
}

/* Whether the target has the instructions and the shared memory that the tile needs. */
static bool is_usable(const ptxgen_sparse24_plan *p, const ptxgen_tile *v)
{
    bool wgmma = sparse24_has_wgmma(&p->target);
    bool fits_target = sparse24_is_wgmma(v) ? wgmma : !wgmma || v->tile_m < WGMMA_ROWS;
    return fits_target && !is_spilled(p, v) && can_cluster(p, v) && can_divide_steps(p, v);
}

struct choice {
    const ptxgen_tile *among;
    size_t count;
    uint64_t (*cost)(const ptxgen_sparse24_spec *s, const ptxgen_target *target,
                     const ptxgen_tile *v);
};

/* Makes the cheapest candidate for `tile_m` tokens the plan's next variant. */
static bool choose_tile(ptxgen_sparse24_plan *p, uint32_t tile_m, const struct choice *c)
{
    const ptxgen_sparse24_spec *s = &p->spec;
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < c->count; i++) {
        ptxgen_tile v = c->among[i];
        v.warp_n = v.warp_n ? v.warp_n : SPARSE24_STRIP;
        if (v.tile_m != tile_m || !is_usable(p, &v) || !fill_stages(s, &p->target, &v) ||
            c->cost(s, &p->target, &v) >= least)
            continue;
        least = c->cost(s, &p->target, &v);
        p->variants[p->variant_count] = v;
    }
    p->variant_count += least != UINT64_MAX;
    return least != UINT64_MAX;
}

static ptxgen_status choose_tiles(ptxgen_sparse24_plan *plan, ptxgen_error *err)
{
    static const struct choice few = {candidates, sizeof candidates / sizeof *candidates, cost};
    static const struct choice any = {many, sizeof many / sizeof *many, cost_of_many};
    uint32_t most = plan->spec.max_m ? plan->spec.max_m : UINT32_MAX, served = 0;
    for (uint32_t tile_m = 8; tile_m <= MOST_ROWS && served < most; tile_m *= 2)
        if (choose_tile(plan, tile_m, &few))
            served = tile_m;
    if (served < most)
        choose_tile(plan, MOST_ROWS, &any);
    if (!plan->variant_count)
        return plan_no_tile("sparse24", &plan->target, err);
    return PTXGEN_OK;
}

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

ptxgen_status ptxgen_sparse24_make_plan(const ptxgen_sparse24_spec *spec,
                                        const ptxgen_target *target, ptxgen_sparse24_plan *plan,
                                        ptxgen_error *err)
{
    if (!spec || !target || !plan)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "sparse24: spec, target and plan must be given");
    ptxgen_status status = sparse24_check_spec(spec, err);
    if (status == PTXGEN_OK)
        status = plan_check_target("sparse24", target, err);
    if (status != PTXGEN_OK)
        return status;
    memset(plan, 0, sizeof *plan);
    plan->spec = *spec;
    plan->target = *target;
    return sparse24_tier(spec) == 1 ? plan_dense(plan, err) : choose_tiles(plan, err);
}

/* ---- tiles of the caller's choice ---- */

static ptxgen_status check_tile(const ptxgen_tile *v, ptxgen_error *err)
{
    bool wgmma = sparse24_is_wgmma(v);
    uint32_t most_pass = sparse24_finished_rows(v) / (v->wm == 2 ? 2 : 1);
    const struct plan_number numbers[] = {
        {"kind", v->kind, PTXGEN_MMA, PTXGEN_WGMMA, false},
        {"tile_m", v->tile_m, sparse24_exchanges(v) ? 16 : 8, MOST_ROWS, true},
        {"wm", v->wm, 1, wgmma ? 1 : SPARSE24_MOST_WM, true},
        {"wn", v->wn, wgmma ? SPARSE24_WARPGROUP : 1, wgmma ? 16 : 8, wgmma},
        {"wk", v->wk, 1, sparse24_exchanges(v) ? 1 : 8, true},
        {"warp_n", v->warp_n, wgmma ? SPARSE24_TILE : SPARSE24_STRIP, SPARSE24_STRIP, true},
        {"cluster", v->cluster, 1, wgmma ? 2 : GEMM_SUMS_CTAS, true},
        {"stages", v->stages, LEAST_STAGES, 16, false},
        {"pass_m", v->pass_m, 8, most_pass, true},
    };
    ptxgen_status status =
        plan_check_numbers("sparse24", numbers, sizeof numbers / sizeof *numbers, err);
    if (status != PTXGEN_OK)
        return status;
    if (sparse24_threads(v) > 512)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "sparse24: %u times %u times %u warps are more than the 16 of a CTA",
                           v->wm, v->wn, v->wk);
    return PTXGEN_OK;
}

ptxgen_status ptxgen_sparse24_use_tile(ptxgen_sparse24_plan *plan,
                                       const ptxgen_tile *tile, ptxgen_error *err)
{
    if (!sparse24_is_plan(plan) || !tile)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "sparse24: a plan that was made, and a tile, must be given");
    if (sparse24_tier(&plan->spec) == 1)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "sparse24: the tiles of tier 1 are dense's, not of this family");
    ptxgen_tile v = *tile;
    v.stages = tile->stages ? tile->stages : LEAST_STAGES;
    v.cluster = tile->cluster ? tile->cluster : 1;
    v.warp_n = tile->warp_n ? tile->warp_n : SPARSE24_STRIP;
    ptxgen_status status = check_tile(&v, err);
    if (status != PTXGEN_OK)
        return status;
    if (sparse24_is_wgmma(&v) && !sparse24_has_wgmma(&plan->target))
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "sparse24: wgmma.sp needs sm_90a, PTX 8.2");
    if (!can_cluster(plan, &v))
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "sparse24: a cluster of %u CTAs needs sm_90, as many multiprocessors "
                           "that can be divided by it, and so the %u stages along K; with wgmma no "
                           "more tiles than clusters", v.cluster,
                           sparse24_stages_along_k(&plan->spec, &v));
    if (!can_divide_steps(plan, &v))
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "sparse24: %u warpgroups along K do not divide its %u steps of %d", v.wk,
                           sparse24_steps(&plan->spec), SPARSE24_STEP);
    bool fit = tile->stages ? fits(&plan->spec, &plan->target, &v)
                            : fill_stages(&plan->spec, &plan->target, &v);
    if (!fit)
        return ptxgen_fail(err, PTXGEN_ERROR_SHARED_MEMORY,
                           "sparse24: the tile takes %u bytes of shared memory, but a CTA has %u",
                           v.shared_bytes, plan->target.shared_per_cta);
    memset(plan->variants, 0, sizeof plan->variants);
    plan->variants[0] = v;
    plan->variant_count = 1;
    return PTXGEN_OK;
}

/* ---- what serves a launch ---- */

const ptxgen_tile *ptxgen_sparse24_choose(const ptxgen_sparse24_plan *plan, uint64_t m)
{
    if (!sparse24_is_plan(plan) || !m || (plan->spec.max_m && m > plan->spec.max_m))
        return NULL;
    for (uint32_t i = 0; i < plan->variant_count; i++)
        if (m <= plan->variants[i].tile_m || i + 1 == plan->variant_count)
            return &plan->variants[i];
    return NULL;
}

void ptxgen_sparse24_explain(const ptxgen_sparse24_plan *plan, uint64_t m, char *text, size_t size)
{
    bool made = sparse24_is_plan(plan);
    if (made && sparse24_tier(&plan->spec) == 1) {
        char dense[160];
        ptxgen_dense_explain(&plan->dense, m, dense, sizeof dense);
        bool serves = ptxgen_dense_choose(&plan->dense, m) != NULL;
        snprintf(text, size, "%s%s", serves ? "w is inflated first; " : "", dense);
        return;
    }
    const ptxgen_tile *v = ptxgen_sparse24_choose(plan, m);
    if (plan_explains_none(made, m, v, made ? plan->spec.max_m : 0, text, size))
        return;
    int length = snprintf(text, size,
                          "tiles of %u tokens by %u features, %u x %u x %u warps along M, N and K, "
                          "%u stages, %s", v->tile_m, sparse24_tile_n(v), v->wm, v->wn, v->wk,
                          v->stages, sparse24_is_wgmma(v) ? "wgmma.sp" : "mma.sp");
    if (v->cluster > 1 && (size_t)length < size)
        snprintf(text + length, size - (size_t)length, "; %u CTAs divide K", v->cluster);
}

const char *ptxgen_sparse24_entry(const ptxgen_tile *variant)
{
    static const char *const mma[] = {"sparse24_m8", "sparse24_m16", "sparse24_m32", "sparse24_m64",
                                      "sparse24_m128"};
    static const char *const wgmma[] = {"sparse24_wgmma_m8", "sparse24_wgmma_m16",
                                        "sparse24_wgmma_m32", "sparse24_wgmma_m64",
                                        "sparse24_wgmma_m128"};
    if (!variant)
        return NULL;
    uint32_t i = 0;
    while (i < 4 && 8u << i < variant->tile_m)
        i++;
    if (sparse24_is_wgmma(variant) && sparse24_tile_n(variant) > 128)
        return "sparse24_wgmma";
    return sparse24_is_wgmma(variant) ? wgmma[i] : mma[i];
}

ptxgen_status sparse24_make_schedule(const ptxgen_sparse24_plan *plan,
                                     const ptxgen_tile *v, uint64_t m,
                                     struct sparse24_schedule *schedule, ptxgen_error *err)
{
    uint32_t stages = sparse24_own_stages(&plan->spec, v);
    uint32_t units = plan->target.multiprocessors / v->cluster;
    if (m > INT32_MAX)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "sparse24: m = %llu tokens are more than a launch takes, %d",
                           (unsigned long long)m, INT32_MAX);
    uint64_t tiles = (m + v->tile_m - 1) / v->tile_m * sparse24_tiles_n(&plan->spec, v);
    if (tiles * stages > UINT32_MAX)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "sparse24: m = %llu tokens with N = %u, K = %u are %llu stages, more than "
                           "2^32", (unsigned long long)m, plan->spec.n, plan->spec.k,
                           (unsigned long long)(tiles * stages));
    if (sparse24_is_wgmma(v) && v->cluster > 1 && tiles > units)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "sparse24: m = %llu tokens make %llu tiles, more than the %u clusters of "
                           "this tile's launch", (unsigned long long)m, (unsigned long long)tiles,
                           units);
    struct sparse24_schedule s = {.partials = sparse24_partials_offset(plan)};
    s.tiles = gemm_deal(tiles, stages, units, deals_whole(&plan->spec, v, tiles, units));
    s.grid = s.tiles.grid * v->cluster;
    s.aligned = s.partials;
    if (s.tiles.divides) {
        s.aligned += s.grid * gemm_partials_bytes(sparse24_threads(v), sparse24_fragments(v));
        s.workspace_bytes = s.aligned;
    }
    *schedule = s;
    return PTXGEN_OK;
}

ptxgen_status ptxgen_sparse24_ctas(const ptxgen_sparse24_plan *plan, uint64_t m, uint32_t *ctas,
                                   ptxgen_error *err)
{
    if (!sparse24_is_plan(plan) || !ctas)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "sparse24: a plan that was made, and ctas, must be given");
    if (sparse24_tier(&plan->spec) == 1)
        return ptxgen_dense_ctas(&plan->dense, m, ctas, err);
    const ptxgen_tile *v = ptxgen_sparse24_choose(plan, m);
    struct sparse24_schedule schedule = {.partials = 0};
    ptxgen_status status = PTXGEN_OK;
    if (v)
        status = sparse24_make_schedule(plan, v, m, &schedule, err);
    else if (m)
        status = ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                             "sparse24: no variant serves m = %llu", (unsigned long long)m);
    *ctas = schedule.grid;
    return status;
}
