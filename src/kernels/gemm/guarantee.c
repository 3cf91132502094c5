/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For which M a row of y has the same bits. Columns of an accumulator do not affect each other, so
 * these bits follow from the tile and from the parts in which its K is summed:
 *
 *     exact sums                                 any M
 *     one variant, whose tiles are never divided any M
 *     otherwise                                  M with the same variant and as many tiles along M,
 *                                                whose tiles are divided among CTAs alike
 */
#include "plan.h"

#include <stdio.h>
#include <string.h>

/* Whether tiles of this variant are whole in every launch, or cannot be divided. */
static bool is_never_divided(const struct gemm_planner *p, const void *plan, const ptxgen_tile *v)
{
    return p->work(plan, v).stages == 1 || p->is_whole(plan, v, 1, UINT32_MAX);
}

static void find_range(const struct gemm_planner *p, const void *plan, const ptxgen_tile *v,
                       uint32_t m, ptxgen_guarantee *g)
{
    const struct gemm_served served = gemm_served(p, plan);
    uint32_t first = (m - 1) / v->tile_m * v->tile_m + 1, last = first + (v->tile_m - 1);
    bool one = served.variants == 1 && is_never_divided(p, plan, v);
    if (g->sums == PTXGEN_SUMS_S32 || one) {
        g->from_m = served.least;
        g->to_m = served.most;
    } else {
        first = first > served.least ? first : served.least;
        last = last < served.most ? last : served.most;
        g->from_m = g->to_m = m;
        while (g->from_m > first && gemm_choose(p, plan, g->from_m - 1) == v)
            g->from_m--;
        while (g->to_m < last && gemm_choose(p, plan, g->to_m + 1) == v)
            g->to_m++;
    }
    g->batch_invariant = g->from_m == served.least && g->to_m == served.most;
}

ptxgen_guarantee gemm_guarantee_of_nothing(const char *family, uint32_t from_m, uint32_t to_m)
{
    ptxgen_guarantee g = {.same_bits = 1,
                          .batch_invariant = 1,
                          .sums = PTXGEN_SUMS_S32,
                          .bound = PTXGEN_BOUND_SUM,
                          .from_m = from_m,
                          .to_m = to_m};
    snprintf(g.sku, sizeof g.sku, "%s_empty", family);
    return g;
}

ptxgen_status gemm_guarantee(const struct gemm_planner *p, const void *plan, uint64_t m,
                             ptxgen_guarantee *guarantee, ptxgen_error *err)
{
    if (!p->is_plan(plan) || !guarantee || !m)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "%s: a plan that was made, m above 0 and a guarantee must be given",
                           p->family);
    const struct gemm_served served = gemm_served(p, plan);
    if (gemm_is_empty(p, plan) && m >= served.least && m <= served.most) {
        *guarantee = gemm_guarantee_of_nothing(p->family, served.least, served.most);
        return PTXGEN_OK;
    }
    const ptxgen_tile *v;
    struct gemm_launch launch;
    ptxgen_status status = gemm_find_launch(p, plan, m, &v, &launch, err);
    if (status != PTXGEN_OK)
        return status;
    ptxgen_guarantee g = {.same_bits = 1};
    strncpy(g.sku, p->entry(v), sizeof g.sku - 1);
    p->guarantee(plan, v, &g);
    find_range(p, plan, v, (uint32_t)m, &g);
    *guarantee = g;
    return PTXGEN_OK;
}
