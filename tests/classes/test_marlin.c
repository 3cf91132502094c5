/* SPDX-License-Identifier: Apache-2.0 */
/* Every class of marlin's launches. */
#include "classes.h"

#include "src/harness/marlin.h"
#include "src/kernels/marlin/emit.h"

static const char *const chips[] = {"cpu:sm_80", "cpu:sm_120", "cpu:sm_90"};
static const int32_t groups[] = {128, 64, 32, 16, PTXGEN_W4_PER_CHANNEL};
enum { CHIPS = 3, GROUPS = 5, SCALES = 64 };

/* Of the last: each tile that a plan for the problem may have, with rows for so many of them. */
static const struct grid_sizes {
    struct axes axes;
    size_t tiles;
} grids[GRIDS] = {
    {{{AXIS(2, 3, 5, 20), AXIS(64, 208, 512, 1024, 4096, 8192), AXIS(64, 72, 264, 448, 512, 896),
       AXIS(1, 9, 13, 24, 40, 60, 90, 128, 150, 190, 256, 300)}},
     1},
    {{{AXIS(16, 84, 132, 188), AXIS(64, 256, 1024, 2048, 3584, 4096, 8192, 14336, 18944, 28672),
       AXIS(64, 1024, 3584, 5120, 14336, 28672, 152064),
       AXIS(1, 12, 16, 24, 32, 48, 64, 96, 128, 160, 192, 256, 500, 1024, 4096)}},
     1},
    {{{AXIS(2, 5), AXIS(64, 256, 512, 640, 1024, 2048, 8192), AXIS(64, 264, 448, 512), AXIS(1, 3)}},
     48},
};

struct point {
    size_t chip, front;
    uint32_t sms, m;
    struct {
        ptxgen_marlin_spec spec;
        ptxgen_tile tile; /* tile_m 0: the plan's own */
    } options;
    struct layout layout;
};
enum { AS_IT_IS, GATHERED, MISALIGNED, FRONTS };

static size_t problems_of(const struct grid_sizes *g)
{
    return g->tiles * count_of(&g->axes) * CHIPS * GROUPS;
}

/* What is not of the grid's axes is drawn, by the problem's number. */
static void draw_options(struct point *p, size_t number)
{
    ptxgen_marlin_spec *s = &p->options.spec;
    struct random r = random_start(number);
    p->front = random_below(&r, FRONTS);
    p->layout.gap[MARLIN_AT_X] = p->front == MISALIGNED;
    s->act_order = p->front == GATHERED;
    s->type = random_below(&r, 2) ? PTXGEN_F16 : PTXGEN_BF16;
    s->zeros = (uint8_t)random_below(&r, 2);
    s->bias = (uint8_t)random_below(&r, 2);
    s->residual = (uint8_t)random_below(&r, 2);
    if (random_below(&r, 5) == 0)
        s->epilogue = PTXGEN_EPILOGUE_SWIGLU;
    else
        s->activation = (uint8_t)random_below(&r, PTXGEN_ACTIVATION_GELU_TANH + 1);
}

/* The plan's candidate of this number becomes the options' tile, which M is counted in. */
static bool prescribe(struct point *p, size_t number)
{
    ptxgen_target target = small_target(chips[p->chip], p->sms);
    ptxgen_marlin_plan plan = {.spec = p->options.spec, .target = target};
    if (!marlin_candidate(&plan, number, &p->options.tile))
        return false;
    p->m *= p->options.tile.tile_m;
    return true;
}

static bool make_problem(enum grid grid, size_t number, struct point *p)
{
    const struct grid_sizes *g = &grids[grid];
    *p = (struct point){.chip = 0};
    ptxgen_marlin_spec *s = &p->options.spec;
    draw_options(p, number);
    size_t tile = take_digit(&number, g->tiles);
    take_sizes(&number, &g->axes, (uint32_t *const[]){&p->sms, &s->k, &s->n, &p->m});
    s->group_size = groups[take_digit(&number, GROUPS)];
    p->chip = number;
    return (s->group_size < 0 || s->k % (uint32_t)s->group_size == 0) &&
           (grid != PRESCRIBED || prescribe(p, tile));
}

static struct kernel_request request_of(const struct point *p)
{
    return (struct kernel_request){.spec = &p->options.spec,
                                   .tile = p->options.tile.tile_m ? &p->options.tile : NULL};
}

static bool make_plan(const struct point *p, ptxgen_marlin_plan *plan)
{
    ptxgen_target target = small_target(chips[p->chip], p->sms);
    const struct kernel_request request = request_of(p);
    return harness_plan(&marlin_harness, &request, p->m, &target, plan, NULL, NULL) == PTXGEN_OK;
}

/* Where scales are multiplied, and what sums are rid of. */
static void name_scales(const ptxgen_marlin_spec *s, const ptxgen_tile *v, char *name)
{
    snprintf(name, SCALES, "%u groups a step, into %s%s%s", marlin_step_groups(s),
             marlin_scales_stages(s, v) ? "sums of stages"
             : marlin_scales_sums(s, v) ? "sums"
                                        : "weights",
             marlin_corrects_sums(s, v) ? ", corrected" : "",
             marlin_stores_first_sums(s, v) ? " from the first"
             : marlin_stores_totals(s, v)   ? " by totals"
                                            : "");
}

/* What is common to entries that end their tiles, and find their activations, in the same way. */
static const char *kind_of(const ptxgen_tile *v)
{
    return !marlin_has_producer(v) ? "copied by cp.async"
           : !marlin_is_wgmma(v)   ? "copied in bulk"
           : marlin_exchanges(v)   ? "wgmma in clusters"
                                   : "wgmma";
}

static void name_classes(const struct point *p, const ptxgen_marlin_plan *plan,
                         struct class_names *names)
{
    static const char *const fronts[] = {"as it is", "gathered", "aligned first"};
    static const char *const activations[] = {"no activation", "silu", "gelu", "gelu-tanh"};
    const ptxgen_marlin_spec *s = &plan->spec;
    const ptxgen_tile *v = &plan->variants[0];
    const char *entry = ptxgen_marlin_entry(v), *kind = kind_of(v);
    struct gemm_launch schedule;
    char scales[SCALES];
    ptxgen_error err;
    uint32_t stages = marlin_stages_along_k(s, v);
    assert_ok(gemm_make_launch(&marlin_planner, plan, v, p->m, &schedule, &err), &err);
    name_scales(s, v, scales);
    snprintf(names->of[0], NAME, "%s, %u warps of %u columns, %u along K, %u steps, scales %s",
             entry, v->wn, v->warp_n, v->wk, v->steps, scales);
    snprintf(names->of[1], NAME, "%s, %s", schedule.tiles.granule ? entry : kind,
             dealing_of(&schedule.tiles, stages));
    snprintf(names->of[2], NAME, "%s, weights of %s%s", entry,
             s->type == PTXGEN_F16 ? "f16" : "bf16", s->zeros ? ", zeros" : "");
    snprintf(names->of[3], NAME, "%s%s, activations %s, tiles %s", kind,
             marlin_overlaps(plan) ? ", may overlap" : "", fronts[p->front],
             schedule.tiles.divides ? "divided" : "whole");
    snprintf(names->of[4], NAME, "%s, %s%s", kind,
             marlin_gated(s) ? "swiglu" : activations[s->activation],
             s->residual ? ", residual" : "");
    snprintf(names->of[5], NAME, "%s, %s%s", kind, marlin_gated(s) ? "swiglu" : "one matrix",
             s->bias ? ", bias" : "");
    snprintf(names->of[6], NAME, "%s, %s tiles, %s", entry,
             schedule.tiles.divides ? "divided" : "whole",
             stages_of_cta(&schedule.tiles, stages) > v->stages ? "ring turns" : "ring suffices");
}

static bool describe(enum grid grid, size_t number, struct class_names *names, uint64_t *work)
{
    enum { MOST_WORK = 1 << 27 };
    struct point p;
    ptxgen_marlin_plan plan;
    if (!make_problem(grid, number, &p))
        return false;
    const ptxgen_marlin_spec *s = &p.options.spec;
    *work = (uint64_t)p.m * s->n * s->k * marlin_matrices(s);
    if ((grid != WIDE && *work > MOST_WORK) || !make_plan(&p, &plan))
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
    assert_ok(problem_allocate(&p, &marlin_harness, &request, at.m, &at.layout, &device, &err),
              &err);
    assert_ok(problem_fill(&p, &r, &err), &err);
    assert_ok(problem_check(&p, &device, &check, &err), &err);
    assert_right(&check);
    name_classes(&at, p.plan, names);
    problem_release(&p);
    device_close(&device);
}

static void every_class_of_marlin_is_right(void **state)
{
    static const char *const wanted[] = {"marlin_m8,",
                                         "marlin_m16,",
                                         "marlin_m32,",
                                         "marlin_m64,",
                                         "marlin_m128,",
                                         "marlin_bulk_m8",
                                         "marlin_bulk_m16",
                                         "marlin_wgmma_m32_",
                                         "marlin_wgmma_m64_",
                                         "marlin_wgmma_m128_",
                                         "_c2,",
                                         "a whole tile",
                                         "several whole tiles",
                                         "divided between two",
                                         "divided among many",
                                         "divided, several tiles",
                                         "divided, ending early",
                                         "ring turns",
                                         "ring suffices",
                                         "gathered",
                                         "aligned first",
                                         "into weights",
                                         "into sums",
                                         "into sums of stages",
                                         "corrected",
                                         "corrected by totals",
                                         "corrected from the first",
                                         NULL};
    const struct class_family family = {
        {problems_of(&grids[SMALL]), problems_of(&grids[WIDE]), problems_of(&grids[PRESCRIBED])},
        describe,
        run,
        wanted};
    (void)state;
    run_classes(&family);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_class_of_marlin_is_right)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
