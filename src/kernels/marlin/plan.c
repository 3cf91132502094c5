/* SPDX-License-Identifier: Apache-2.0 */
#include "emit.h"
#include "spec.h"

#include <string.h>

enum { STATIC_SHARED = 48 * 1024 };

/* ---- tiles ---- */

static uint32_t shared_bytes(const ptxgen_marlin_spec *s, const ptxgen_marlin_variant *v)
{
    return v->stages * marlin_stage_bytes(s, v) +
           tile_sums_bytes(marlin_tile_n(v), marlin_pass_m(v), v->wk);
}

/*
 * Fills the sizes of a variant whose tile is chosen, with as many stages as fit; false when
 * fewer than two do.
 */
static bool complete(const ptxgen_marlin_spec *s, const ptxgen_target *target, uint32_t most_stages,
                     ptxgen_marlin_variant *v)
{
    for (v->stages = most_stages; v->stages >= 2; v->stages--) {
        v->shared_bytes = shared_bytes(s, v);
        if (v->shared_bytes <= target->shared_per_cta) {
            v->dynamic_shared_bytes = v->shared_bytes > STATIC_SHARED ? v->shared_bytes : 0;
            return true;
        }
    }
    return false;
}

/* Tiles by what they take of M, the preferred first; later ones are for less shared memory. */
static const ptxgen_marlin_variant tiles_of_m[] = {
    {.tile_m = 8, .warp_n = 64, .wn = 1, .wk = 8, .steps = 1},
    {.tile_m = 16, .warp_n = 64, .wn = 2, .wk = 4, .steps = 1},
    {.tile_m = 32, .warp_n = 64, .wn = 4, .wk = 2, .steps = 1},
    {.tile_m = 64, .warp_n = 64, .wn = 4, .wk = 2, .steps = 1},
    {.tile_m = 64, .warp_n = 32, .wn = 8, .wk = 1, .steps = 1},
    {.tile_m = 128, .warp_n = 32, .wn = 8, .wk = 1, .steps = 1},
    {.tile_m = 128, .warp_n = 32, .wn = 4, .wk = 1, .steps = 1},
};

enum { MOST_STAGES = 8 };

static ptxgen_status choose_tiles(ptxgen_marlin_plan *plan, ptxgen_error *err)
{
    const ptxgen_marlin_spec *s = &plan->spec;
    uint32_t served = 0;
    for (size_t i = 0; i < sizeof tiles_of_m / sizeof *tiles_of_m; i++) {
        ptxgen_marlin_variant v = tiles_of_m[i];
        if (v.tile_m == served || (s->max_m && served >= s->max_m))
            continue;
        if (!complete(s, &plan->target, MOST_STAGES, &v))
            continue;
        plan->variants[plan->variant_count++] = v;
        served = v.tile_m;
    }
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

const ptxgen_marlin_variant *ptxgen_marlin_choose(const ptxgen_marlin_plan *plan, uint64_t m)
{
    if (!m || (plan->spec.max_m && m > plan->spec.max_m))
        return NULL;
    for (uint32_t i = 0; i < plan->variant_count; i++)
        if (m <= plan->variants[i].tile_m || i + 1 == plan->variant_count)
            return &plan->variants[i];
    return NULL;
}

const char *ptxgen_marlin_entry(const ptxgen_marlin_variant *variant)
{
    return variant->tile_m == 8    ? "marlin_m8"
           : variant->tile_m == 16 ? "marlin_m16"
           : variant->tile_m == 32 ? "marlin_m32"
           : variant->tile_m == 64 ? "marlin_m64"
                                   : "marlin_m128";
}

/* ---- a launch's division of work ---- */

/* Whole tiles are dealt out where that leaves no multiprocessor idle for more than this share. */
enum { WHOLE_TILES_PERCENT = 94 };

static bool deals_whole_tiles(uint64_t tiles, uint32_t multiprocessors)
{
    uint64_t rounds = (tiles + multiprocessors - 1) / multiprocessors;
    return tiles * 100 >= rounds * multiprocessors * WHOLE_TILES_PERCENT;
}

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
    bool whole = deals_whole_tiles(tiles, plan->target.multiprocessors);
    uint64_t granules = whole ? tiles : tiles * stages;
    struct marlin_schedule s = {.granule = whole ? stages : 1};
    s.grid = granules < plan->target.multiprocessors ? (uint32_t)granules
                                                     : plan->target.multiprocessors;
    s.share = (uint32_t)(granules / s.grid);
    s.extra = (uint32_t)(granules % s.grid);
    s.partials = marlin_partials_offset(plan);
    s.gathered = s.partials;
    if (!whole && stages > 1) {
        s.gathered += (uint64_t)s.grid * v->tile_m * marlin_tile_n(v) * 4;
        s.workspace_bytes = s.gathered;
    }
    *schedule = s;
    return PTXGEN_OK;
}
