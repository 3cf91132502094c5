/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles of the caller's choice, and the family's table for tuning. */
#include "emit.h"

#include <string.h>

enum { MOST_THREADS = 1024 };

static ptxgen_status check_numbers(const ptxgen_tile *v, ptxgen_error *err)
{
    bool wgmma = gemm_is_wgmma(v);
    const struct plan_number numbers[] = {
        {"tile_m", v->tile_m, 8, wgmma ? 256 : 128, !wgmma},
        {"wm", v->wm, 1, 1, false},
        {"warp_n", v->warp_n, wgmma ? 16 : 32, wgmma ? 32 : 64, true},
        {"wn", v->wn, wgmma ? 4 : 1, wgmma ? 16 : 32, false},
        {"wk", v->wk, 1, wgmma ? 4 : 32, true},
        {"steps", v->steps, 1, 4, true},
        {"ctas", v->ctas, 1, MARLIN_MOST_CTAS, false},
        {"pass_m", v->pass_m, 8, v->tile_m, !wgmma},
    };
    ptxgen_status status =
        plan_check_numbers("marlin", numbers, sizeof numbers / sizeof *numbers, err);
    if (status != PTXGEN_OK)
        return status;
    uint32_t tokens = marlin_finished_tokens(v);
    if ((tokens > 8 && tokens % 16) || v->pass_m % 8 || tokens % marlin_pass_tokens(v))
        return ptxgen_fail(
            err, PTXGEN_ERROR_INVALID_ARGUMENT,
            "marlin: %u tokens that a CTA finishes, pass_m %u: those are 8 or a multiple "
            "of 16, and this a multiple of 8 that divides them",
            tokens, v->pass_m);
    if (wgmma && v->wn % GEMM_WARPGROUP_WARPS)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "marlin: %u warps are no warpgroups, which have four", v->wn);
    if (wgmma &&
        v->wn / GEMM_WARPGROUP_WARPS * v->ctas > MARLIN_MOST_CTAS) /* flags, see layout.h */
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "marlin: %u CTAs of %u warpgroups are more than the %d of a "
                           "multiprocessor",
                           v->ctas, v->wn / GEMM_WARPGROUP_WARPS, MARLIN_MOST_CTAS);
    if (v->cluster > 1 &&
        (!gemm_is_bulk(v) || v->cluster > GEMM_SUMS_CTAS || (v->cluster & (v->cluster - 1))))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "marlin: a cluster of %u CTAs: with copies in bulk there are 2, 4 or 8, "
                           "else none",
                           v->cluster);
    if (marlin_cta_threads(v) > MOST_THREADS)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "marlin: %u times %u warps are more than the %d threads of a CTA", v->wn,
                           v->wk, MOST_THREADS);
    return PTXGEN_OK;
}

ptxgen_status marlin_check_tile(const void *of, ptxgen_tile *v, ptxgen_error *err)
{
    const ptxgen_marlin_plan *plan = of;
    ptxgen_status status = check_numbers(v, err);
    if (status != PTXGEN_OK)
        return status;
    uint32_t steps = v->steps * v->wk * v->cluster;
    bool whole = marlin_steps(&plan->spec) % steps == 0;
    if (gemm_is_bulk(v) && (!gemm_has_wgmma(&plan->target) || !whole))
        return ptxgen_fail(
            err, PTXGEN_ERROR_UNSUPPORTED,
            "marlin: a tile copied in bulk is for sm_90a, and for whole stages of %u "
            "along K",
            steps * MARLIN_STEP);
    if (!marlin_exchange_fits(&plan->target, v))
        return ptxgen_fail(
            err, PTXGEN_ERROR_UNSUPPORTED,
            "marlin: clusters of two CTAs are for PTX 8.1, and the target's is %d.%d",
            plan->target.ptx.max_ptx / 10, plan->target.ptx.max_ptx % 10);
    if (!marlin_halves_fit(&plan->spec, v))
        return ptxgen_fail(
            err, PTXGEN_ERROR_INVALID_ARGUMENT,
            "marlin: tiles of %u features, half strips copied in bulk, do not end with "
            "the %u strips of N",
            v->tile_n, marlin_strips(&plan->spec));
    return PTXGEN_OK;
}

/* ---- tiles that were measured ---- */

/* The numbers by which the table says a tile. */
static const char *const names[] = {"tile_m", "warp_n", "wn",   "wk",      "stages", "steps",
                                    "ctas",   "pass_m", "kind", "cluster", NULL};
enum { NUMBERS_BYTES = sizeof(uint32_t) * (sizeof names / sizeof *names - 1) };
_Static_assert(NUMBERS_BYTES <= sizeof(uint32_t) * PTXGEN_TILE_NUMBERS, "a range holds them");

static void write_numbers(ptxgen_tile *v, uint32_t numbers[PTXGEN_TILE_NUMBERS])
{
    memset(numbers, 0, sizeof(uint32_t) * PTXGEN_TILE_NUMBERS);
    for (size_t i = 0; names[i]; i++)
        numbers[i] = *ptxgen_tile_member(v, names[i]);
}

static bool candidate(const void *plan, size_t index, uint32_t numbers[PTXGEN_TILE_NUMBERS])
{
    ptxgen_tile v;
    if (!marlin_candidate(plan, index, &v))
        return false;
    write_numbers(&v, numbers);
    return true;
}

static ptxgen_status find_candidate(const ptxgen_marlin_plan *plan, const ptxgen_tuned_range *range,
                                    ptxgen_tile *v, ptxgen_error *err)
{
    uint32_t numbers[PTXGEN_TILE_NUMBERS];
    for (size_t i = 0; marlin_candidate(plan, i, v); i++) {
        write_numbers(v, numbers);
        if (memcmp(numbers, range->tile, NUMBERS_BYTES) == 0)
            return PTXGEN_OK;
    }
    return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                       "marlin: the tile for M up to %u is none that this plan may have",
                       range->to_m);
}

/* The index of the variant that has the same entry as `v`; `count` if there is none. */
static uint32_t find_entry(const ptxgen_tile *variants, uint32_t count, const ptxgen_tile *v)
{
    uint32_t i = 0;
    while (i < count && strcmp(ptxgen_marlin_entry(&variants[i]), ptxgen_marlin_entry(v)) != 0)
        i++;
    return i;
}

/* Inserts a variant into the plan, in the order of rising tile_m and then tile_n. */
static void add_variant(ptxgen_marlin_plan *plan, const ptxgen_tile *v)
{
    uint32_t at = plan->variant_count++;
    for (; at > 0; at--) {
        const ptxgen_tile *before = &plan->variants[at - 1];
        if (before->tile_m < v->tile_m ||
            (before->tile_m == v->tile_m && before->tile_n <= v->tile_n))
            break;
        plan->variants[at] = *before;
    }
    plan->variants[at] = *v;
}

static ptxgen_status add_tile(ptxgen_marlin_plan *plan, const ptxgen_tile *v, ptxgen_error *err)
{
    uint32_t at = find_entry(plan->variants, plan->variant_count, v);
    if (at < plan->variant_count && memcmp(&plan->variants[at], v, sizeof *v) == 0)
        return PTXGEN_OK;
    if (at < plan->variant_count)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED, "marlin: two different tiles are both %s",
                           ptxgen_marlin_entry(v));
    if (plan->variant_count == PTXGEN_MARLIN_VARIANTS)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "marlin: a plan has no more than %d tiles", PTXGEN_MARLIN_VARIANTS);
    add_variant(plan, v);
    return PTXGEN_OK;
}

/* Adds the variants that the model chooses for more than `m` tokens, as far as there is room. */
static void add_own(ptxgen_marlin_plan *plan, const ptxgen_marlin_plan *own, uint64_t m)
{
    enum { MOST_PROBED = 16384 };
    const ptxgen_tile *v;
    for (m++; m <= MOST_PROBED && (v = ptxgen_marlin_choose(own, m)); m += m / 8 + 1)
        if (plan->variant_count < PTXGEN_MARLIN_VARIANTS &&
            find_entry(plan->variants, plan->variant_count, v) == plan->variant_count)
            add_variant(plan, v);
}

static ptxgen_status use_ranges(void *tuned, const ptxgen_tuned_range *ranges, size_t count,
                                ptxgen_error *err)
{
    ptxgen_marlin_plan *plan = tuned;
    const ptxgen_marlin_plan own = *plan;
    ptxgen_tile tiles[PTXGEN_TUNED_RANGES];
    ptxgen_status status = PTXGEN_OK;
    memset(plan->variants, 0, sizeof plan->variants);
    plan->variant_count = 0;
    for (size_t i = 0; status == PTXGEN_OK && i < count; i++) {
        status = find_candidate(&own, &ranges[i], &tiles[i], err);
        if (status == PTXGEN_OK)
            status = add_tile(plan, &tiles[i], err);
    }
    if (status != PTXGEN_OK)
        return status;
    add_own(plan, &own, ranges[count - 1].to_m);
    for (size_t i = 0; i < count; i++)
        plan->tuned[i] = (ptxgen_tuned_variant){
            ranges[i].to_m, find_entry(plan->variants, plan->variant_count, &tiles[i])};
    plan->tuned_count = (uint32_t)count;
    return PTXGEN_OK;
}

const ptxgen_tiling marlin_tiling = {.names = names, .candidate = candidate, .use = use_ranges};
