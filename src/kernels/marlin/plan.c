/* SPDX-License-Identifier: Apache-2.0 */
#include "emit.h"
#include "spec.h"

#include <string.h>

enum {
    STATIC_SHARED = 48 * 1024,
    MOST_STAGES = 8,
    MOST_ROWS = 128,
    RESERVED_SHARED = 1024, /* of each CTA, for the system (CUDA C++ Programming Guide, 8.x and 9.0) */
};

/* ---- tiles ---- */

uint32_t marlin_shared_bytes(const ptxgen_marlin_spec *s, const ptxgen_marlin_variant *v)
{
    if (marlin_is_wgmma(v))
        return marlin_wgmma_shared_bytes(s, v);
    return v->stages * marlin_stage_bytes(s, v) +
           tile_sums_bytes(marlin_tile_n(v), v->pass_m, v->wk);
}

uint32_t marlin_shared_limit(const ptxgen_target *target, const ptxgen_marlin_variant *v)
{
    return (target->shared_per_cta + RESERVED_SHARED) / v->ctas - RESERVED_SHARED;
}

/*
 * Fills the sizes of a variant whose tile is chosen, with as many stages as fit; false when fewer
 * than three do.
 */
static bool complete(const ptxgen_marlin_spec *s, const ptxgen_target *target,
                     ptxgen_marlin_variant *v)
{
    if (marlin_gated(s) && marlin_tile_n(v) % MARLIN_STRIP)
        return false; /* gate and up would be in different tiles */
    for (v->stages = MOST_STAGES; v->stages >= 3; v->stages--) {
        v->shared_bytes = marlin_shared_bytes(s, v);
        if (v->shared_bytes <= marlin_shared_limit(target, v)) {
            v->dynamic_shared_bytes = v->shared_bytes > STATIC_SHARED ? v->shared_bytes : 0;
            return true;
        }
    }
    return false;
}

/*
 * How long a tile takes for 64 rows of K, in picoseconds, as measured on an H100: the longest of
 * reading its weights from memory (23 bytes a nanosecond and multiprocessor), reading weights and
 * activations from the L2 (45), dequantising (36 weights) and multiplying (1350 multiply-adds, more
 * where a warp has more to do with an operand).
 */
static uint64_t step_cost(const ptxgen_marlin_variant *v)
{
    uint64_t n = marlin_tile_n(v), weights = n * MARLIN_STEP, codes = weights / 2;
    uint64_t activations = (uint64_t)v->tile_m * MARLIN_STEP * 2;
    uint64_t rate = marlin_is_wgmma(v)     ? 2900
                    : v->tile_m == MOST_ROWS ? 1700 : v->tile_m * v->warp_n < 64 * 64 ? 1350 : 1450;
    const uint64_t times[] = {codes * 1000 / 23, (codes + activations) * 1000 / 45,
                              weights * 1000 / 36,
                              weights * v->tile_m * 1000 / rate};
    uint64_t most = 0;
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        most = times[i] > most ? times[i] : most;
    return most;
}

/*
 * How long the fullest CTA takes for m rows. Dividing tiles takes 2 µs, and a CTA that ends one
 * reads the others' sums at 64 bytes a nanosecond.
 */
static uint64_t cost(const ptxgen_marlin_plan *plan, const ptxgen_marlin_variant *v, uint64_t m)
{
    uint64_t steps = marlin_steps(&plan->spec), ctas = plan->target.multiprocessors;
    uint64_t tiles = (m + v->tile_m - 1) / v->tile_m * marlin_tiles_n(&plan->spec, v);
    if (tile_deals_whole(tiles, (uint32_t)ctas))
        return (tiles + ctas - 1) / ctas * steps * step_cost(v);
    uint64_t sums = tile_partials_bytes(marlin_threads(v), marlin_fragments(v)) * 1000 / 64;
    uint64_t shares = tiles < ctas ? sums * ctas / tiles : sums;
    return (tiles * steps + ctas - 1) / ctas * step_cost(v) + shares + 2000000;
}

/* Tiles by the rows that they take; of those for equally many the cheapest, the first among equals. */
static const ptxgen_marlin_variant candidates[] = {
    {.tile_m = 8, .warp_n = 64, .wn = 2, .wk = 4, .pass_m = 8},
    {.tile_m = 8, .warp_n = 64, .wn = 1, .wk = 8, .pass_m = 8},
    {.tile_m = 8, .warp_n = 32, .wn = 1, .wk = 8, .pass_m = 8},
    {.tile_m = 8, .warp_n = 32, .wn = 7, .wk = 2, .pass_m = 8},
    {.tile_m = 16, .warp_n = 64, .wn = 2, .wk = 4, .pass_m = 16},
    {.tile_m = 16, .warp_n = 64, .wn = 1, .wk = 8, .pass_m = 16},
    {.tile_m = 16, .warp_n = 32, .wn = 1, .wk = 8, .pass_m = 16},
    {.tile_m = 16, .warp_n = 32, .wn = 7, .wk = 2, .pass_m = 16},
    {.tile_m = 32, .warp_n = 64, .wn = 4, .wk = 2, .pass_m = 32},
    {.tile_m = 32, .warp_n = 32, .wn = 2, .wk = 4, .pass_m = 32},
    {.tile_m = 32, .warp_n = 32, .wn = 1, .wk = 8, .pass_m = 32},
    {.tile_m = 64, .warp_n = 64, .wn = 4, .wk = 2, .pass_m = 32},
    {.tile_m = 64, .warp_n = 32, .wn = 4, .wk = 2, .pass_m = 32},
    {.tile_m = 64, .warp_n = 32, .wn = 2, .wk = 4, .pass_m = 32},
    {.tile_m = 128, .warp_n = 32, .wn = 8, .wk = 1, .pass_m = 32},
    {.tile_m = 128, .warp_n = 32, .wn = 4, .wk = 1, .pass_m = 32},
    {.kind = PTXGEN_MARLIN_WGMMA, .tile_m = 128, .warp_n = 16, .wn = 8, .wk = 1, .pass_m = 32},
    {.kind = PTXGEN_MARLIN_WGMMA, .tile_m = 128, .warp_n = 32, .wn = 8, .wk = 1, .pass_m = 32},
};
enum { CANDIDATES = sizeof candidates / sizeof *candidates };

static bool make_candidate(const ptxgen_marlin_plan *plan, size_t i, ptxgen_marlin_variant *v)
{
    *v = candidates[i];
    v->steps = v->ctas = 1;
    if (marlin_is_wgmma(v) && !marlin_has_wgmma(&plan->target))
        return false;
    return complete(&plan->spec, &plan->target, v);
}

bool marlin_candidate(const ptxgen_marlin_plan *plan, size_t index, ptxgen_marlin_variant *v)
{
    for (size_t i = 0; i < CANDIDATES; i++)
        if (make_candidate(plan, i, v) && marlin_variant_alike(plan, v) < plan->variant_count &&
            !index--)
            return true;
    return false;
}

/* For one row of tiles; of the widest tile, for any number of them: what a column takes. */
static uint64_t candidate_cost(const ptxgen_marlin_plan *plan, const ptxgen_marlin_variant *v)
{
    if (v->tile_m == MOST_ROWS)
        return step_cost(v) * MARLIN_STRIP / marlin_tile_n(v);
    return cost(plan, v, v->tile_m);
}

static bool choose_tile(const ptxgen_marlin_plan *plan, uint32_t tile_m, ptxgen_marlin_variant *best)
{
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < CANDIDATES; i++) {
        ptxgen_marlin_variant v;
        if (candidates[i].tile_m != tile_m || marlin_is_wgmma(&candidates[i]) ||
            !make_candidate(plan, i, &v))
            continue;
        uint64_t time = candidate_cost(plan, &v);
        if (time >= least)
            continue;
        least = time;
        *best = v;
    }
    return least != UINT64_MAX;
}

/* All that use wgmma: an entry each. */
static void add_wgmma_tiles(ptxgen_marlin_plan *plan)
{
    for (size_t i = 0; i < CANDIDATES; i++) {
        ptxgen_marlin_variant v;
        if (marlin_is_wgmma(&candidates[i]) && make_candidate(plan, i, &v))
            plan->variants[plan->variant_count++] = v;
    }
}

static ptxgen_status choose_tiles(ptxgen_marlin_plan *plan, ptxgen_error *err)
{
    uint32_t most = plan->spec.max_m ? plan->spec.max_m : UINT32_MAX;
    bool wgmma = marlin_has_wgmma(&plan->target);
    uint32_t widest = wgmma ? MOST_ROWS / 2 : MOST_ROWS, served = 0;
    for (uint32_t tile_m = 8; tile_m <= widest && served < most; tile_m *= 2)
        if (choose_tile(plan, tile_m, &plan->variants[plan->variant_count])) {
            served = tile_m;
            plan->variant_count++;
        }
    if (wgmma && served < most)
        add_wgmma_tiles(plan);
    if (!plan->variant_count)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "marlin: no tile fits into the %u bytes of shared memory of a CTA",
                           plan->target.shared_per_cta);
    return PTXGEN_OK;
}

ptxgen_status ptxgen_marlin_make_plan(const ptxgen_marlin_spec *spec, const ptxgen_target *target,
                                      ptxgen_marlin_plan *plan, ptxgen_error *err)
{
    if (!spec || !target || !plan)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "marlin: spec, target and plan must be given");
    ptxgen_status status = marlin_check_spec(spec, err);
    if (status == PTXGEN_OK)
        status = ptx_target_check(&target->ptx, err);
    if (status != PTXGEN_OK)
        return status;
    if (!target->multiprocessors || target->shared_per_cta < STATIC_SHARED)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "marlin: a target of %u multiprocessors with %u bytes of shared memory per "
                           "CTA is none", target->multiprocessors, target->shared_per_cta);
    memset(plan, 0, sizeof *plan);
    plan->spec = *spec;
    plan->target = *target;
    return choose_tiles(plan, err);
}

/* A few rows more than a tile's may be cheaper as two tiles than as half of a larger one. */
const ptxgen_marlin_variant *ptxgen_marlin_choose(const ptxgen_marlin_plan *plan, uint64_t m)
{
    if (!m || (plan->spec.max_m && m > plan->spec.max_m))
        return NULL;
    for (uint32_t i = 0; i < plan->tuned_count; i++)
        if (m <= plan->tuned[i].to_m)
            return &plan->variants[plan->tuned[i].variant];
    const ptxgen_marlin_variant *best = NULL;
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < plan->variant_count; i++) {
        uint64_t time = cost(plan, &plan->variants[i], m < INT32_MAX ? m : INT32_MAX);
        if (time < least) {
            least = time;
            best = &plan->variants[i];
        }
    }
    return best;
}

static const char *wgmma_entry(const ptxgen_marlin_variant *v)
{
    static const struct {
        uint32_t tile_m, tile_n;
        const char *name;
    } names[] = {{128, 128, "marlin_wgmma_m128_n128"}, {128, 256, "marlin_wgmma_m128_n256"},
                 {256, 128, "marlin_wgmma_m256_n128"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].tile_m == v->tile_m && names[i].tile_n == marlin_tile_n(v))
            return names[i].name;
    return "marlin_wgmma";
}

const char *ptxgen_marlin_entry(const ptxgen_marlin_variant *variant)
{
    if (marlin_is_wgmma(variant))
        return wgmma_entry(variant);
    return variant->tile_m == 8    ? "marlin_m8"
           : variant->tile_m == 16 ? "marlin_m16"
           : variant->tile_m == 32 ? "marlin_m32"
           : variant->tile_m == 64 ? "marlin_m64"
                                   : "marlin_m128";
}

/* ---- a launch's division of work ---- */

ptxgen_status marlin_schedule(const ptxgen_marlin_plan *plan, const ptxgen_marlin_variant *v,
                              uint64_t m, struct marlin_schedule *schedule, ptxgen_error *err)
{
    uint32_t stages = marlin_stages_along_k(&plan->spec, v);
    if (m > INT32_MAX)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "marlin: m = %llu rows are more than a launch takes, %d",
                           (unsigned long long)m, INT32_MAX);
    uint64_t tiles = (m + v->tile_m - 1) / v->tile_m * marlin_tiles_n(&plan->spec, v);
    if (tiles * stages > UINT32_MAX)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "marlin: m = %llu rows with K = %u, N = %u are %llu stages, more than 2^32",
                           (unsigned long long)m, plan->spec.k, plan->spec.n,
                           (unsigned long long)(tiles * stages));
    struct marlin_schedule s = {.partials = marlin_partials_offset(plan)};
    s.tiles = tile_make_schedule(tiles, stages, plan->target.multiprocessors * v->ctas);
    s.gathered = s.partials;
    if (s.tiles.divides) {
        s.gathered += s.tiles.grid * tile_partials_bytes(marlin_threads(v), marlin_fragments(v));
        s.workspace_bytes = s.gathered;
    }
    *schedule = s;
    return PTXGEN_OK;
}
