/* SPDX-License-Identifier: Apache-2.0 */
/* Every class of sparse24's launches of tier 2; those of tier 1 are dense's. */
#include "classes.h"

#include "src/harness/sparse24.h"
#include "src/kernels/sparse24/layout.h"

static const char *const chips[] = {"cpu:sm_80", "cpu:sm_90", "cpu:sm_120"};
enum { CHIPS = 3, TYPES = 2 };

/* Of the last, some are drawn, with a tile that the plan of a wide problem has. */
static const struct axes grids[GRIDS] = {
    {{AXIS(2, 6, 20), AXIS(72, 320, 520), AXIS(64, 520, 1024), AXIS(1, 13, 24, 50, 100, 200)}},
    {{AXIS(16, 84, 132, 188), AXIS(72, 512, 1024, 3584, 4096, 14336, 152064),
      AXIS(64, 520, 1024, 4096, 8192, 28672), AXIS(1, 12, 24, 32, 64, 100, 128, 256, 500, 4096)}},
    {{AXIS(2, 4, 20), AXIS(72, 300, 520), AXIS(64, 520, 1024, 2048),
      AXIS(1, 13, 30, 60, 130, 300)}},
};

static size_t problems_of(enum grid grid)
{
    enum { DRAWN = 60000 };
    return grid == PRESCRIBED ? DRAWN : count_of(&grids[grid]) * CHIPS * TYPES;
}

static struct point point_at(enum grid grid, size_t number)
{
    struct random r = random_start(number);
    struct point p = {.chip = chips[take_digit(&number, CHIPS)]};
    ptxgen_sparse24_spec *s = (void *)p.spec;
    s->type = take_digit(&number, TYPES) ? PTXGEN_SPARSE24_S8 : PTXGEN_SPARSE24_F16;
    s->y_type = PTXGEN_F16;
    s->bias = s->residual = (uint8_t)random_below(&r, 2);
    p.layout.gap[SPARSE24_AT_X] = random_below(&r, 2);
    take_sizes(&number, &grids[grid], (uint32_t *const[]){&p.sms, &s->n, &s->k, &p.m});
    return p;
}

static bool make_problem(enum grid grid, size_t number, struct point *p)
{
    if (grid != PRESCRIBED) {
        *p = point_at(grid, number);
        return true;
    }
    struct random r = random_start(number);
    size_t kind = random_below(&r, CHIPS * TYPES);
    uint32_t small = random_below(&r, (uint32_t)count_of(&grids[grid]));
    uint32_t wide = random_below(&r, (uint32_t)count_of(&grids[WIDE]));
    struct point model = point_at(WIDE, kind + CHIPS * TYPES * wide);
    ptxgen_sparse24_plan plan;
    *p = point_at(grid, kind + CHIPS * TYPES * small);
    if (!make_plan(&sparse24_harness, &model, &plan))
        return false;
    p->tile = plan.variants[0];
    p->prescribes = true;
    return true;
}

/* False where a tile that is prescribed takes no such launch. */
static bool name_classes(const struct point *p, const void *of, struct class_names *names)
{
    const ptxgen_sparse24_plan *plan = of;
    const ptxgen_tile *v = &plan->variants[0];
    const char *type = plan->spec.type == PTXGEN_SPARSE24_S8 ? "s8" : "f16",
               *entry = ptxgen_sparse24_entry(v), *wgmma = gemm_is_wgmma(v) ? " wgmma" : "";
    struct gemm_launch s;
    ptxgen_error err;
    uint32_t stages = sparse24_own_stages(&plan->spec, v);
    if (gemm_make_launch(&sparse24_planner, plan, v, p->m, &s, &err) != PTXGEN_OK)
        return false;
    snprintf(names->of[0], NAME, "%s, %s%s, %u tokens, wk %u, cluster %u, bias and residual %u",
             type, entry, wgmma, v->tile_m, v->wk, v->cluster, plan->spec.bias);
    snprintf(names->of[1], NAME, "%s%s, wk %u, cluster %u, %s", entry, wgmma, v->wk, v->cluster,
             dealing_of(&s.tiles, stages));
    snprintf(names->of[2], NAME, "%s, %s%s, %s tiles, %s", type, entry, wgmma,
             s.tiles.divides ? "divided" : "whole",
             stages_of_cta(&s.tiles, stages) > v->stages ? "ring turns" : "ring suffices");
    snprintf(names->of[3], NAME, "%s, %s%s, %s tiles, %s", type,
             plan->target.ptx.sm >= 90 ? "may overlap" : "in turn", wgmma,
             s.tiles.divides ? "divided" : "whole",
             p->layout.gap[SPARSE24_AT_X] ? "aligned first" : "as they are");
    return true;
}

static void every_class_of_sparse24_is_right(void **state)
{
    static const char *const wanted[] = {"sparse24_m8",
                                         "sparse24_m16",
                                         "sparse24_m32",
                                         "sparse24_m64",
                                         "sparse24_m128",
                                         "wgmma",
                                         "wk 1",
                                         "wk 2",
                                         "cluster 1",
                                         "cluster 2",
                                         "a whole tile",
                                         "several whole tiles",
                                         "divided between two",
                                         "divided among many",
                                         "divided, several tiles",
                                         "ring turns",
                                         "ring suffices",
                                         "aligned first",
                                         NULL};
    const struct class_family family = {
        .harness = &sparse24_harness,
        .problems = {problems_of(SMALL), problems_of(WIDE), problems_of(PRESCRIBED)},
        .most_work = 1 << 26,
        .make_problem = make_problem,
        .name_classes = name_classes,
        .wanted = wanted};
    (void)state;
    run_classes(&family);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_class_of_sparse24_is_right)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
