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

struct point {
    size_t chip;
    uint32_t sms, m;
    ptxgen_dense_spec spec;
    ptxgen_tile tile; /* warp_n 0: the plan's own */
    struct layout layout;
};

static void take(size_t *number, const struct axes *axes, struct point *p)
{
    ptxgen_dense_spec *s = &p->spec;
    take_sizes(number, axes, (uint32_t *const[]){&p->sms, &s->n, &s->k, &p->m});
}

static struct kernel_request request_of(const struct point *p)
{
    return (struct kernel_request){.spec = &p->spec, .tile = p->tile.warp_n ? &p->tile : NULL};
}

static bool make_plan(const struct point *p, ptxgen_dense_plan *plan)
{
    ptxgen_target target = small_target(chips[p->chip], p->sms);
    if (p->chip == PLAIN)
        target.ptx.suffix = 0;
    const struct kernel_request request = request_of(p);
    return harness_plan(&dense_harness, &request, p->m, &target, plan, NULL, NULL) == PTXGEN_OK;
}

static bool make_problem(enum grid grid, size_t number, struct point *p)
{
    const struct grid_sizes *g = &grids[grid];
    struct random r = random_start(number);
    struct point model = {.chip = number % CHIPS};
    size_t rest = number / CHIPS;
    model.spec.type = take_digit(&rest, TYPES) ? PTXGEN_F32 : PTXGEN_F16;
    *p = model;
    take(&rest, &g->axes, p);
    p->layout.gap[DENSE_AT_X] = random_below(&r, 2);
    p->spec.bias = p->spec.residual = (uint8_t)random_below(&r, 2);
    if (!g->tiles)
        return true;
    ptxgen_dense_plan plan;
    take(&rest, g->tiles, &model);
    if (!make_plan(&model, &plan))
        return false;
    p->tile = plan.variants[0];
    return true;
}

static void name_classes(const struct point *p, const ptxgen_dense_plan *plan,
                         struct class_names *names)
{
    static const char *const targets[] = {"sm_80", "may overlap", "sm_90a"};
    const ptxgen_tile *v = &plan->variants[0];
    const char *target = targets[p->chip], *entry = ptxgen_dense_entry(v),
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
}

static bool describe(enum grid grid, size_t number, struct class_names *names, uint64_t *work)
{
    struct point p;
    ptxgen_dense_plan plan;
    if (!make_problem(grid, number, &p))
        return false;
    *work = (uint64_t)p.m * p.spec.n * p.spec.k;
    if ((grid != WIDE && *work > 1 << 26) || !make_plan(&p, &plan))
        return false;
    name_classes(&p, &plan, names);
    return true;
}

static void run(enum grid grid, size_t number, uint64_t seed, bool once, struct class_names *names)
{
    struct point at;
    assert_true(make_problem(grid, number, &at));
    struct device device = open_small(chips[at.chip], (int)at.sms, seed);
    struct random r = random_start(seed);
    struct check check = {.once = once};
    const struct kernel_request request = request_of(&at);
    struct problem p;
    ptxgen_error err;
    assert_ok(problem_allocate(&p, &dense_harness, &request, at.m, &at.layout, &device, &err), &err);
    assert_true(make_plan(&at, p.plan));
    assert_ok(problem_fill(&p, &r, &err), &err);
    assert_ok(problem_check(&p, &device, &check, &err), &err);
    assert_right(&check);
    name_classes(&at, p.plan, names);
    problem_release(&p);
    device_close(&device);
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
        {problems_of(SMALL), problems_of(WIDE), problems_of(PRESCRIBED)}, describe, run, wanted};
    (void)state;
    run_classes(&family);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_class_of_dense_is_right)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
