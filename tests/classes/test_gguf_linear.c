/* SPDX-License-Identifier: Apache-2.0 */
/* Every class of gguf_linear's launches of few tokens. */
#include "classes.h"

#include "src/harness/gguf_linear.h"
#include "src/kernels/gguf_linear/layout.h"

static const char *const chips[] = {"cpu:sm_80", "cpu:sm_90", "cpu:sm_86"};
enum { CHIPS = 3, KINDS = 3 };

static const struct axes grids[GRIDS] = {
    {{AXIS(1, 3, 20), AXIS(256, 1024, 3584, 4096, 14336, 28672), AXIS(16, 100, 192, 400),
      AXIS(1, 2, 4, 8)}},
    {{AXIS(16, 84, 132), AXIS(256, 1024, 4096, 8192, 14336, 28672), AXIS(64, 512, 4096, 14336),
      AXIS(1, 2, 3, 4, 5, 8)}},
};

static size_t problems_of(enum grid grid)
{
    return count_of(&grids[grid]) * CHIPS * KINDS;
}

static bool make_problem(enum grid grid, size_t number, struct point *p)
{
    static const uint8_t types[KINDS] = {PTXGEN_GGUF_Q4_K, PTXGEN_GGUF_Q6_K, PTXGEN_GGUF_Q8_0};
    *p = (struct point){.chip = chips[take_digit(&number, CHIPS)]};
    ptxgen_gguf_linear_spec *s = (void *)p->spec;
    take_sizes(&number, &grids[grid], (uint32_t *const[]){&p->sms, &s->k, &s->n[0], &p->m});
    s->w_type[0] = types[number];
    s->x_type = number ? PTXGEN_F16 : PTXGEN_F32;
    s->y_type = PTXGEN_F16;
    s->bias = number == 1;
    s->max_m = p->m;
    return true;
}

static bool name_classes(const struct point *p, const void *of, struct class_names *names)
{
    const ptxgen_gguf_linear_plan *plan = of;
    const ptxgen_gguf_linear_variant *v = ptxgen_gguf_linear_choose(plan, p->m);
    const char *entry = ptxgen_gguf_linear_entry(v);
    const char *type = ptxgen_gguf_type_find(plan->spec.w_type[0])->name;
    uint32_t tiles = all_tiles(&plan->spec);
    uint32_t rounds = (tiles + v->part_ctas * v->wn - 1) / (v->part_ctas * v->wn);
    snprintf(names->of[0], NAME, "%s, %s, K among %s, N among %s", entry, type,
             v->wk > 1 ? "warps" : "none", v->wn > 1 ? "warps" : "none");
    snprintf(names->of[1], NAME, "%s, %s, %s", entry, v->parts > 1 ? "parts of K" : "one part",
             rounds > 1 ? "many rounds" : "one round");
    snprintf(names->of[2], NAME, "%s, %s stages, units %s", entry, v->stages > 2 ? "many" : "two",
             units(&plan->spec) % v->wk ? "uneven" : "even");
    snprintf(names->of[3], NAME, "%s, %s, %s", entry, type,
             plan->target.ptx.sm >= 90 ? "may overlap" : "in turn");
    return true;
}

static void every_class_of_gguf_linear_is_right(void **state)
{
    static const char *const wanted[] = {"gguf_linear_m1",
                                         "gguf_linear_m2",
                                         "gguf_linear_m4",
                                         "gguf_linear_m8",
                                         "K among none",
                                         "K among warps",
                                         "N among none",
                                         "N among warps",
                                         "parts of K",
                                         "one part",
                                         "one round",
                                         "many rounds",
                                         "two stages",
                                         "many stages",
                                         "units uneven",
                                         "units even",
                                         NULL};
    const struct class_family family = {.harness = &gguf_linear_harness,
                                        .problems = {problems_of(SMALL), problems_of(WIDE)},
                                        .most_work = 1 << 24,
                                        .make_problem = make_problem,
                                        .name_classes = name_classes,
                                        .wanted = wanted};
    (void)state;
    run_classes(&family);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_class_of_gguf_linear_is_right)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
