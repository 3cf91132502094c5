/* SPDX-License-Identifier: Apache-2.0 */
/* Every class of dense's launches. */
#include "classes.h"

#include "src/harness/dense.h"
#include "src/kernels/dense/layout.h"

/* The second is sm_90 without what its exact target has. */
static const char *const chips[] = {"cpu:sm_80", "cpu:sm_90", "cpu:sm_90"};
enum { CHIPS = 3, PLAIN = 1, TYPES = 2 };

/* Of the last: with a tile that a plan of the problems in `tiles` has. */
static const struct axes tiles = {{AXIS(16, 132), AXIS(300, 1024, 4096, 152064), AXIS(64, 4096),
                                   AXIS(1, 8, 17, 32, 64, 100, 128, 256, 500, 4096)}};
static const struct grid_sizes {
    struct axes axes;
    const struct axes *tiles;
} grids[GRIDS] = {
    {{{AXIS(4, 6, 20), AXIS(72, 300, 512), AXIS(64, 200, 712), AXIS(1, 17, 40, 70, 130, 300)}},
     NULL},
    {{{AXIS(16, 84, 108, 132, 188), AXIS(72, 300, 512, 1024, 3584, 4096, 14336, 152064),
       AXIS(64, 200, 1024, 4096, 8192, 28672), AXIS(1, 8, 17, 32, 64, 100, 128, 256, 500, 4096)}},
     NULL},
    {{{AXIS(2, 4, 20), AXIS(72, 300, 520), AXIS(64, 200, 712, 2048), AXIS(30, 60, 130, 300)}},
     &tiles},
};

static size_t problems_of(enum grid grid)
{
    const struct grid_sizes *g = &grids[grid];
    return (g->tiles ? count_of(g->tiles) : 1) * count_of(&g->axes) * CHIPS * TYPES;
}

static void take(size_t *number, const struct axes *axes, struct point *p)
{
    ptxgen_dense_spec *s = (void *)p->spec;
    take_sizes(number, axes, (uint32_t *const[]){&p->sms, &s->n, &s->k, &p->m});
}

static bool make_problem(enum grid grid, size_t number, struct point *p)
{
    const struct grid_sizes *g = &grids[grid];
    struct random r = random_start(number);
    struct point model = {.chip = chips[number % CHIPS], .plain = number % CHIPS == PLAIN};
    ptxgen_dense_spec *s = (void *)model.spec;
    size_t rest = number / CHIPS;
    s->type = take_digit(&rest, TYPES) ? PTXGEN_F32 : PTXGEN_F16;
    *p = model;
    s = (void *)p->spec;
    take(&rest, &g->axes, p);
    p->layout.gap[DENSE_AT_X] = random_below(&r, 2);
    s->bias = s->residual = (uint8_t)random_below(&r, 2);
    if (!g->tiles)
        return true;
    ptxgen_dense_plan plan;
    take(&rest, g->tiles, &model);
    if (!make_plan(&dense_harness, &model, &plan))
        return false;
    p->tile = plan.variants[0];
    p->prescribes = true;
    return true;
}

static bool name_classes(const struct point *p, const void *of, struct class_names *names)
{
    const ptxgen_dense_plan *plan = of;
    const ptxgen_tile *v = &plan->variants[0];
    const char *target = p->plain              ? "may overlap"
                         : p->chip == chips[0] ? "sm_80"
                                               : "sm_90a",
               *entry = ptxgen_dense_entry(v),
               *type = plan->spec.type == PTXGEN_F32 ? "f32" : "f16";
    struct gemm_launch s;
    ptxgen_error err;
    uint32_t stages = dense_own_stages(&plan->spec, v);
    assert_ok(gemm_make_launch(&dense_planner, plan, v, p->m, &s, &err), &err);
    snprintf(names->of[0], NAME, "%s, %s, %s, bias and residual %u", target, type, entry,
             plan->spec.bias);
    snprintf(names->of[1], NAME, "%s, %s, %s", type, entry, dealing_of(&s.tiles, stages));
    snprintf(names->of[2], NAME, "%s, %s, %s tiles, %s", type, entry,
             s.tiles.divides ? "divided" : "whole",
             stages_of_cta(&s.tiles, stages) > v->stages ? "ring turns" : "ring suffices");
    snprintf(names->of[3], NAME, "%s, %s, %s tiles, %s", target, type,
             s.tiles.divides ? "divided" : "whole",
             p->layout.gap[DENSE_AT_X] ? "aligned first" : "as they are");
    return true;
}

static void every_class_of_dense_is_right(void **state)
{
    static const char *const wanted[] = {"dense_m16,",           "dense_m32,",
                                         "dense_m64,",           "dense_m128,",
                                         "dense_wgmma_m",        "dense_wgmma_pair_m",
                                         "dense_wgmma_split_m",  "dense_bulk_m256",
                                         "dense_bulk_pair_m256", "a whole tile",
                                         "several whole tiles",  "divided between two",
                                         "divided among many",   "divided, several tiles",
                                         "ring turns",           "ring suffices",
                                         "aligned first",        NULL};
    const struct class_family family = {
        .harness = &dense_harness,
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_class_of_dense_is_right)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
