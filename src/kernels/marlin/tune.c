/* SPDX-License-Identifier: Apache-2.0 */
/* What tuning asks for: a tile of the caller's choice, and the size of a launch. */
#include "emit.h"

enum { STATIC_SHARED = 48 * 1024, MOST_THREADS = 1024 };

static bool is_power_of_two(uint32_t x)
{
    return x && !(x & (x - 1));
}

static ptxgen_status check_tile(const ptxgen_marlin_variant *v, ptxgen_error *err)
{
    const struct {
        const char *name;
        uint32_t value, low, high;
        bool power;
    } members[] = {{"tile_m", v->tile_m, 8, 128, true}, {"warp_n", v->warp_n, 32, 64, true},
                   {"wn", v->wn, 1, 32, false},         {"wk", v->wk, 1, 32, true},
                   {"stages", v->stages, 3, 16, false}, {"steps", v->steps, 1, 4, true},
                   {"ctas", v->ctas, 1, MARLIN_MOST_CTAS, false}, {"pass_m", v->pass_m, 8, v->tile_m, true}};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (members[i].value < members[i].low || members[i].value > members[i].high ||
            (members[i].power && !is_power_of_two(members[i].value)))
            return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                               "marlin: a tile's %s is %u, not %s%u to %u", members[i].name,
                               members[i].value, members[i].power ? "a power of two of " : "",
                               members[i].low, members[i].high);
    if (marlin_threads(v) > MOST_THREADS)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "marlin: %u times %u warps are more than the %d threads of a CTA", v->wn,
                           v->wk, MOST_THREADS);
    return PTXGEN_OK;
}

ptxgen_status ptxgen_marlin_use_tile(ptxgen_marlin_plan *plan, const ptxgen_marlin_variant *tile,
                                     ptxgen_error *err)
{
    if (!plan || !tile)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "marlin: plan and tile must be given");
    ptxgen_status status = check_tile(tile, err);
    if (status != PTXGEN_OK)
        return status;
    ptxgen_marlin_variant v = *tile;
    v.shared_bytes = marlin_shared_bytes(&plan->spec, &v);
    v.dynamic_shared_bytes = v.shared_bytes > STATIC_SHARED ? v.shared_bytes : 0;
    uint32_t limit = marlin_shared_limit(&plan->target, &v);
    if (v.shared_bytes > limit)
        return ptxgen_fail(err, PTXGEN_ERROR_SHARED_MEMORY,
                           "marlin: the tile takes %u bytes of shared memory, but a CTA has %u",
                           v.shared_bytes, limit);
    for (uint32_t i = 0; i < PTXGEN_MARLIN_VARIANTS; i++)
        plan->variants[i] = (ptxgen_marlin_variant){0};
    plan->variants[0] = v;
    plan->variant_count = 1;
    return PTXGEN_OK;
}

ptxgen_status ptxgen_marlin_ctas(const ptxgen_marlin_plan *plan, uint64_t m, uint32_t *ctas,
                                 ptxgen_error *err)
{
    if (!plan || !ctas)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "marlin: plan and ctas must be given");
    const ptxgen_marlin_variant *v = ptxgen_marlin_choose(plan, m);
    struct marlin_schedule schedule = {.partials = 0};
    ptxgen_status status = PTXGEN_OK;
    if (v)
        status = marlin_schedule(plan, v, m, &schedule, err);
    else if (m)
        status = ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                             "marlin: no variant serves m = %llu", (unsigned long long)m);
    *ctas = schedule.tiles.grid;
    return status;
}
