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

enum { AS_IT_IS, GATHERED, MISALIGNED, FRONTS };

static size_t problems_of(const struct grid_sizes *g)
{
    return g->tiles * count_of(&g->axes) * CHIPS * GROUPS;
}

/* What is not of the grid's axes is drawn, by the problem's number. */
static void draw_options(struct point *p, size_t number)
{
    ptxgen_marlin_spec *s = (void *)p->spec;
    struct random r = random_start(number);
    uint32_t front = random_below(&r, FRONTS);
    p->layout.gap[MARLIN_AT_X] = front == MISALIGNED;
    s->act_order = front == GATHERED;
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
    ptxgen_marlin_plan plan = {.target = small_target(p->chip, p->sms)};
    memcpy(&plan.spec, p->spec, sizeof plan.spec);
    p->prescribes = marlin_candidate(&plan, number, &p->tile);
    p->m *= p->tile.tile_m;
    return p->prescribes;
}

static bool make_problem(enum grid grid, size_t number, struct point *p)
{
    const struct grid_sizes *g = &grids[grid];
    *p = (struct point){.chip = NULL};
    ptxgen_marlin_spec *s = (void *)p->spec;
    draw_options(p, number);
    size_t tile = take_digit(&number, g->tiles);
    take_sizes(&number, &g->axes, (uint32_t *const[]){&p->sms, &s->k, &s->n, &p->m});
    s->group_size = groups[take_digit(&number, GROUPS)];
    p->chip = chips[number];
    return (s->group_size < 0 || s->k % (uint32_t)s->group_size == 0) &&
           (grid != PRESCRIBED || prescribe(p, tile));
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
    return !gemm_is_bulk(v) ? "copied by cp.async"
           : !gemm_is_wgmma(v)   ? "copied in bulk"
           : marlin_exchanges(v)   ? "wgmma in clusters"
                                   : "wgmma";
}

static bool name_classes(const struct point *p, const void *of, struct class_names *names)
{
    const ptxgen_marlin_plan *plan = of;
    static const char *const activations[] = {"no activation", "silu", "gelu", "gelu-tanh"};
    const ptxgen_marlin_spec *s = &plan->spec;
    const ptxgen_tile *v = &plan->variants[0];
    const char *entry = ptxgen_marlin_entry(v), *kind = kind_of(v);
    struct gemm_launch schedule;
    char scales[SCALES];
    const char *front = s->act_order                 ? "gathered"
                        : p->layout.gap[MARLIN_AT_X] ? "aligned first"
                                                     : "as it is";
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
             gemm_overlaps(&plan->target) ? ", may overlap" : "", front,
             schedule.tiles.divides ? "divided" : "whole");
    snprintf(names->of[4], NAME, "%s, %s%s", kind,
             marlin_gated(s) ? "swiglu" : activations[s->activation],
             s->residual ? ", residual" : "");
    snprintf(names->of[5], NAME, "%s, %s%s", kind, marlin_gated(s) ? "swiglu" : "one matrix",
             s->bias ? ", bias" : "");
    snprintf(names->of[6], NAME, "%s, %s tiles, %s", entry,
             schedule.tiles.divides ? "divided" : "whole",
             stages_of_cta(&schedule.tiles, stages) > v->stages ? "ring turns" : "ring suffices");
    return true;
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
    const struct class_family family = {.harness = &marlin_harness,
                                        .problems = {problems_of(&grids[SMALL]),
                                                     problems_of(&grids[WIDE]),
                                                     problems_of(&grids[PRESCRIBED])},
                                        .most_work = 1 << 27,
                                        .make_problem = make_problem,
                                        .name_classes = name_classes,
                                        .wanted = wanted};
    (void)state;
    run_classes(&family);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_class_of_marlin_is_right)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
