/* SPDX-License-Identifier: Apache-2.0 */
#include "plan.h"

#include <stdio.h>
#include <string.h>

/* ---- a family's plan ---- */

static uint32_t number_at(const void *plan, size_t at)
{
    uint32_t number;
    memcpy(&number, (const char *)plan + at, sizeof number);
    return number;
}

static const ptxgen_target *target_of(const struct gemm_planner *p, const void *plan)
{
    return (const ptxgen_target *)(const void *)((const char *)plan + p->target);
}

static const ptxgen_tile *variants_of(const struct gemm_planner *p, const void *plan)
{
    return (const ptxgen_tile *)(const void *)((const char *)plan + p->variants);
}

static void put_variant(const struct gemm_planner *p, void *plan, uint32_t at,
                        const ptxgen_tile *tile)
{
    uint32_t count = at + 1;
    memcpy((char *)plan + p->variants + at * sizeof *tile, tile, sizeof *tile);
    memcpy((char *)plan + p->variant_count, &count, sizeof count);
}

bool gemm_is_empty(const struct gemm_planner *p, const void *plan)
{
    return !number_at(plan, p->k) || !number_at(plan, p->n);
}

bool gemm_is_nothing(const struct gemm_planner *p, const void *plan)
{
    return !number_at(plan, p->n);
}

/* Whether the plan has a variant for the most tokens; one without variants has another plan. */
static bool serves_all(const struct gemm_planner *p, const void *plan)
{
    uint32_t most = number_at(plan, p->max_m);
    return p->is_plan(plan) &&
           (!number_at(plan, p->variant_count) || gemm_choose(p, plan, most ? most : GEMM_ANY_M));
}

ptxgen_status gemm_make_plan(const struct gemm_planner *p, const void *spec,
                             const ptxgen_target *target, void *plan, ptxgen_error *err)
{
    if (!spec || !target || !plan)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "%s: spec, target and plan must be given", p->family);
    ptxgen_status status = p->check_spec(spec, err);
    if (status == PTXGEN_OK)
        status = plan_check_target(p->family, target, err);
    if (status != PTXGEN_OK)
        return status;
    const ptxgen_target kept = *target; /* spec and target may be those of the plan itself */
    memmove(plan, spec, p->spec_bytes);
    memset((char *)plan + p->spec_bytes, 0, p->plan_bytes - p->spec_bytes);
    memcpy((char *)plan + p->target, &kept, sizeof kept);
    if (gemm_is_empty(p, plan))
        return PTXGEN_OK;
    status = p->choose_tiles(plan, err);
    if (status == PTXGEN_OK && !serves_all(p, plan))
        status = plan_no_tile(p->family, &kept, err);
    if (status != PTXGEN_OK)
        memset(plan, 0, p->plan_bytes);
    return status;
}

/* ---- tiles ---- */

/* Gives members that are 0 their defaults, and derives the others. */
static void complete(const struct gemm_planner *p, ptxgen_tile *tile)
{
    enum { MEMBERS = sizeof *tile / sizeof(uint32_t) };
    uint32_t members[MEMBERS], defaults[MEMBERS];
    memcpy(members, tile, sizeof members);
    memcpy(defaults, &p->defaults, sizeof defaults);
    for (int i = 0; i < MEMBERS; i++)
        members[i] = members[i] ? members[i] : defaults[i];
    memcpy(tile, members, sizeof members);
    if (p->derive)
        p->derive(tile);
}

bool gemm_fits(const struct gemm_planner *p, const void *plan, ptxgen_tile *tile)
{
    uint64_t bytes = p->shared_bytes(plan, tile);
    tile->shared_bytes = bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
    tile->dynamic_shared_bytes = plan_dynamic_shared(tile->shared_bytes);
    return tile->shared_bytes <= plan_shared_limit(target_of(p, plan), tile->ctas);
}

bool gemm_fill_stages(const struct gemm_planner *p, const void *plan, uint32_t most,
                      ptxgen_tile *tile)
{
    uint32_t fit = p->least_stages - 1, above = (most ? most : p->most_stages[tile->kind]) + 1;
    while (fit + 1 < above) {
        tile->stages = (fit + above) / 2;
        if (gemm_fits(p, plan, tile))
            fit = tile->stages;
        else
            above = tile->stages;
    }
    tile->stages = fit < p->least_stages ? p->least_stages : fit;
    return gemm_fits(p, plan, tile) && fit == tile->stages;
}

bool gemm_adapt(const struct gemm_planner *p, const void *plan, const ptxgen_tile *candidate,
                ptxgen_tile *tile)
{
    *tile = *candidate;
    complete(p, tile);
    if (!p->adapt(plan, tile))
        return false;
    uint32_t most = tile->stages;
    while (!gemm_fill_stages(p, plan, most, tile)) {
        tile->pass_m /= 2;
        if (!p->least_pass_m || tile->pass_m < p->least_pass_m)
            return false;
    }
    return true;
}

void gemm_add(const struct gemm_planner *p, void *plan, const ptxgen_tile *tile)
{
    uint32_t count = number_at(plan, p->variant_count);
    for (uint32_t i = 0; i < count; i++)
        if (!memcmp(&variants_of(p, plan)[i], tile, sizeof *tile))
            return;
    if (count < p->most_variants)
        put_variant(p, plan, count, tile);
}

bool gemm_cheapest(const struct gemm_planner *p, const void *plan, const struct gemm_choice *choice,
                   uint64_t m, ptxgen_tile *tile)
{
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < choice->count; i++) {
        ptxgen_tile t = choice->among[i];
        complete(p, &t);
        if (t.tile_m < choice->least || t.tile_m > choice->most || !gemm_adapt(p, plan, &t, &t))
            continue;
        uint64_t cost = p->candidate_cost(plan, &t, m);
        if (cost >= least)
            continue;
        least = cost;
        *tile = t;
    }
    return least != UINT64_MAX;
}

bool gemm_add_cheapest(const struct gemm_planner *p, void *plan, const struct gemm_choice *choice,
                       uint64_t m)
{
    ptxgen_tile best;
    bool found = gemm_cheapest(p, plan, choice, m, &best);
    if (found)
        gemm_add(p, plan, &best);
    return found;
}

/* ---- tiles of the caller's choice ---- */

ptxgen_status gemm_check_warps(const char *family, const ptxgen_tile *tile, ptxgen_error *err)
{
    enum { MOST_WARPS = 16 };
    if ((uint64_t)tile->wm * tile->wn * tile->wk > MOST_WARPS)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "%s: %u times %u times %u warps are more than the %d of a CTA", family,
                           tile->wm, tile->wn, tile->wk, MOST_WARPS);
    return PTXGEN_OK;
}

/* No number of a tile is so large that products of them could wrap. */
static ptxgen_status check_sizes(const char *family, const ptxgen_tile *tile, ptxgen_error *err)
{
    enum { MOST = 1024 };
    const struct plan_number numbers[] = {
        {"tile_m", tile->tile_m, 0, MOST, false},   {"tile_n", tile->tile_n, 0, MOST, false},
        {"warp_m", tile->warp_m, 0, MOST, false},   {"warp_n", tile->warp_n, 0, MOST, false},
        {"wm", tile->wm, 0, MOST, false},           {"wn", tile->wn, 0, MOST, false},
        {"wk", tile->wk, 0, MOST, false},           {"steps", tile->steps, 0, MOST, false},
        {"ctas", tile->ctas, 0, MOST, false},       {"pass_m", tile->pass_m, 0, MOST, false},
        {"cluster", tile->cluster, 0, MOST, false}, {"split", tile->split, 0, MOST, false},
        {"fused", tile->fused, 0, MOST, false},
    };
    return plan_check_numbers(family, numbers, sizeof numbers / sizeof *numbers, err);
}

ptxgen_status gemm_use_tile(const struct gemm_planner *p, void *plan, const ptxgen_tile *tile,
                            ptxgen_error *err)
{
    if (!p->is_plan(plan) || !tile)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "%s: a plan that was made, and a tile, must be given", p->family);
    if (gemm_is_empty(p, plan))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "%s: K = %u and N = %u; a plan without products has no tiles", p->family,
                           number_at(plan, p->k), number_at(plan, p->n));
    enum { MOST_STAGES = 16 };
    ptxgen_tile t = *tile;
    uint32_t most = t.kind <= p->most_kind ? p->most_stages[t.kind] : 0;
    t.stages = t.stages ? t.stages : p->least_stages;
    const struct plan_number numbers[] = {
        {"kind", t.kind, PTXGEN_MMA, p->most_kind, false},
        {"stages", t.stages, p->least_stages, most > MOST_STAGES ? most : MOST_STAGES, false},
    };
    ptxgen_status status =
        plan_check_numbers(p->family, numbers, sizeof numbers / sizeof *numbers, err);
    for (int i = 0; status == PTXGEN_OK && p->unused[i]; i++) {
        const struct plan_number none = {p->unused[i], *ptxgen_tile_member(&t, p->unused[i]), 0, 0,
                                         false};
        status = plan_check_numbers(p->family, &none, 1, err);
    }
    if (status == PTXGEN_OK)
        status = check_sizes(p->family, &t, err);
    complete(p, &t);
    if (status == PTXGEN_OK)
        status = p->check_tile(plan, &t, err);
    if (status != PTXGEN_OK)
        return status;
    bool fit = tile->stages ? gemm_fits(p, plan, &t) : gemm_fill_stages(p, plan, 0, &t);
    if (!fit)
        return ptxgen_fail(err, PTXGEN_ERROR_SHARED_MEMORY,
                           "%s: the tile takes %u bytes of shared memory, but a CTA has %u",
                           p->family, t.shared_bytes,
                           plan_shared_limit(target_of(p, plan), t.ctas));
    memset((char *)plan + p->variants, 0, p->plan_bytes - p->variants);
    put_variant(p, plan, 0, &t);
    return PTXGEN_OK;
}

/* ---- launches ---- */

struct gemm_served gemm_served(const struct gemm_planner *p, const void *plan)
{
    uint32_t most = number_at(plan, p->max_m), least = p->min_m ? number_at(plan, p->min_m) : 0;
    return (struct gemm_served){number_at(plan, p->variant_count), least ? least : 1,
                                most ? most : GEMM_ANY_M};
}

static bool is_served(const struct gemm_planner *p, const void *plan, uint64_t m)
{
    const struct gemm_served served = gemm_served(p, plan);
    return m >= served.least && (m <= served.most || !number_at(plan, p->max_m));
}

const ptxgen_tile *gemm_choose(const struct gemm_planner *p, const void *plan, uint64_t m)
{
    if (!p->is_plan(plan) || !is_served(p, plan, m))
        return NULL;
    const ptxgen_tile *variants = variants_of(p, plan), *best = NULL;
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < number_at(plan, p->variant_count); i++) {
        uint64_t cost = p->cost(plan, &variants[i], m < GEMM_ANY_M ? m : GEMM_ANY_M);
        if (cost < least) {
            least = cost;
            best = &variants[i];
        }
    }
    return best;
}

ptxgen_status gemm_make_launch(const struct gemm_planner *p, const void *plan,
                               const ptxgen_tile *tile, uint64_t m, struct gemm_launch *launch,
                               ptxgen_error *err)
{
    const struct gemm_work work = p->work(plan, tile);
    const ptxgen_target *target = target_of(p, plan);
    uint32_t units = target->multiprocessors * tile->ctas / work.cluster;
    if (m > GEMM_ANY_M)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "%s: m = %llu tokens are more than a launch takes, %d", p->family,
                           (unsigned long long)m, GEMM_ANY_M);
    uint64_t tiles = (m + tile->tile_m - 1) / tile->tile_m * work.tiles_n;
    if (tiles * work.stages > UINT32_MAX)
        return ptxgen_fail(
            err, PTXGEN_ERROR_UNSUPPORTED,
            "%s: m = %llu tokens with N = %u, K = %u are %llu stages, more than 2^32", p->family,
            (unsigned long long)m, number_at(plan, p->n), number_at(plan, p->k),
            (unsigned long long)(tiles * work.stages));
    if (p->check_launch) {
        ptxgen_status status = p->check_launch(tile, m, tiles, units, err);
        if (status != PTXGEN_OK)
            return status;
    }
    struct gemm_launch l = {.partials = gemm_partials_offset(target, p->most_ctas)};
    uint32_t most = work.cluster > 1 && p->has_cluster_per_tile ? (uint32_t)tiles : units;
    l.tiles = gemm_deal(tiles, work.stages, most, p->is_whole(plan, tile, tiles, units));
    uint32_t early = p->early_stages ? p->early_stages(work.stages, tile) : 0;
    if (l.tiles.divides && early && tiles < units && tiles * (work.stages - early) >= units)
        l.tiles = gemm_deal_early(tiles, work.stages, early, units);
    l.grid = l.tiles.grid * work.cluster;
    l.copies = l.partials;
    if (l.tiles.divides) {
        l.copies += l.grid * work.partials;
        l.workspace_bytes = l.copies;
    }
    *launch = l;
    return PTXGEN_OK;
}

ptxgen_status gemm_refuse_m(const struct gemm_planner *p, const void *plan, uint64_t m,
                            ptxgen_error *err)
{
    if (is_served(p, plan, m)) /* by some plans, but not by a tile of the caller's choice */
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%s: no variant serves m = %llu",
                           p->family, (unsigned long long)m);
    if (p->min_m)
        return ptxgen_fail(
            err, PTXGEN_ERROR_INVALID_ARGUMENT,
            "%s: m = %llu is outside the %u to %u tokens that the plan serves (0: any)", p->family,
            (unsigned long long)m, number_at(plan, p->min_m), number_at(plan, p->max_m));
    return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                       "%s: m = %llu is above the %u tokens that the plan serves", p->family,
                       (unsigned long long)m, number_at(plan, p->max_m));
}

ptxgen_status gemm_find_launch(const struct gemm_planner *p, const void *plan, uint64_t m,
                               const ptxgen_tile **tile, struct gemm_launch *launch,
                               ptxgen_error *err)
{
    *tile = gemm_choose(p, plan, m);
    return *tile ? gemm_make_launch(p, plan, *tile, m, launch, err)
                 : gemm_refuse_m(p, plan, m, err);
}

ptxgen_status gemm_ctas(const struct gemm_planner *p, const void *plan, uint64_t m, uint32_t *ctas,
                        ptxgen_error *err)
{
    if (!p->is_plan(plan) || !ctas)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "%s: a plan that was made, and ctas, must be given", p->family);
    const ptxgen_tile *tile;
    struct gemm_launch launch = {.grid = 0};
    if (gemm_is_empty(p, plan)) {
        if (m && !is_served(p, plan, m))
            return gemm_refuse_m(p, plan, m, err);
        *ctas = gemm_is_nothing(p, plan) ? 0 : (uint32_t)m; /* one for each token */
        return PTXGEN_OK;
    }
    ptxgen_status status = m ? gemm_find_launch(p, plan, m, &tile, &launch, err) : PTXGEN_OK;
    *ctas = launch.grid;
    return status;
}

void gemm_describe_tile(const ptxgen_tile *v, const char *kind, const char *more, char *text,
                        size_t size)
{
    snprintf(text, size,
             "tiles of %u tokens by %u features, %u x %u x %u warps along M, N and K, %u stages, "
             "%s%s",
             v->tile_m, v->tile_n, v->wm, v->wn, v->wk, v->stages, kind, more);
}

void gemm_explain(const struct gemm_planner *p, const void *plan, uint64_t m, char *text,
                  size_t size)
{
    const ptxgen_tile *tile = gemm_choose(p, plan, m);
    size = plan_room(text, size);
    if (tile)
        p->describe(plan, tile, m, text, size);
    else if (!p->is_plan(plan) || !m)
        plan_explains_none(p->is_plan(plan), m, false, 0, text, size);
    else if (is_served(p, plan, m) && gemm_is_nothing(p, plan))
        snprintf(text, size, "no launch: N is 0");
    else if (is_served(p, plan, m) && gemm_is_empty(p, plan))
        snprintf(text, size, "one launch: K is 0, so outputs are made of bias and residual alone");
    else if (is_served(p, plan, m))
        snprintf(text, size, "no launch: no variant serves %llu tokens", (unsigned long long)m);
    else if (p->min_m)
        snprintf(text, size, "no launch: %llu tokens are outside the plan's %u ... %u",
                 (unsigned long long)m, number_at(plan, p->min_m), number_at(plan, p->max_m));
    else
        plan_explains_none(true, m, false, number_at(plan, p->max_m), text, size);
}
