/* SPDX-License-Identifier: Apache-2.0 */
/* Every class of rmsnorm_q4k's launches. */
#include "classes.h"

#include "src/harness/rmsnorm_q4k.h"
#include "src/kernels/rmsnorm_q4k/layout.h"

static const char *const chips[] = {"cpu:sm_80", "cpu:sm_90", "cpu:sm_86"};
enum { CHIPS = 3, KINDS = 3 };

static const struct axes grids[GRIDS] = {
    {{AXIS(1, 3, 20), AXIS(256, 1024, 3584, 4096, 5120, 8192, 14336, 28672, 53248),
      AXIS(16, 64, 100, 192, 400, 900), AXIS(1, 2, 3, 4, 8)}},
    {{AXIS(16, 84, 132, 188), AXIS(256, 1024, 3584, 4096, 5120, 8192, 14336, 28672, 53248),
      AXIS(64, 512, 1024, 4096, 14336, 152064), AXIS(1, 2, 3, 4, 5, 8)}},
};

static size_t problems_of(enum grid grid)
{
    return count_of(&grids[grid]) * CHIPS * KINDS;
}

static bool make_problem(enum grid grid, size_t number, struct point *p)
{
    *p = (struct point){.chip = chips[take_digit(&number, CHIPS)]};
    ptxgen_rmsnorm_q4k_spec *s = (void *)p->spec;
    take_sizes(&number, &grids[grid], (uint32_t *const[]){&p->sms, &s->k, &s->n[0], &p->m});
    s->x_type = number ? PTXGEN_F16 : PTXGEN_F32;
    s->residual = s->residual_out = s->bias = number == 1;
    s->y_type = PTXGEN_F16;
    s->epsilon = 1e-5f;
    s->max_m = p->m;
    return true;
}

static bool name_classes(const struct point *p, const void *of, struct class_names *names)
{
    const ptxgen_rmsnorm_q4k_plan *plan = of;
    const ptxgen_rmsnorm_q4k_variant *v = ptxgen_rmsnorm_q4k_choose(plan, p->m);
    const char *entry = ptxgen_rmsnorm_q4k_entry(v);
    const char *rounds = v->rounds > 2 ? "many rounds" : v->rounds > 1 ? "two rounds" : "one round";
    uint32_t staged = rmsnorm_q4k_staged_bytes(plan, v);
    snprintf(names->of[0], NAME, "%s, K among %s, N among %s, %s", entry,
             v->wk > 1 ? "warps" : "none", v->wn > 1 ? "warps" : "none", rounds);
    snprintf(names->of[1], NAME, "%s, %s, %u stages, K among %s", entry, rounds, v->stages,
             v->wk > 1 ? "warps" : "none");
    snprintf(names->of[2], NAME, "%s, %s, x %s, %s", entry, v->chunks > 1 ? "in chunks" : "at once",
             !staged                            ? "loaded"
             : staged == staged_second_bytes(v) ? "staged in part"
                                                : "staged",
             rounds);
    snprintf(names->of[3], NAME, "%s, x of %u bytes, residual and bias %u, %s", entry,
             plan->spec.x_type == PTXGEN_F16 ? 2 : 4, plan->spec.bias,
             plan->target.ptx.sm >= 90 ? "may overlap" : "in turn");
    return true;
}

static void every_class_of_rmsnorm_q4k_is_right(void **state)
{
    static const char *const wanted[] = {"rmsnorm_q4k_m1",
                                         "rmsnorm_q4k_m2",
                                         "rmsnorm_q4k_m4",
                                         "rmsnorm_q4k_m8",
                                         "K among none",
                                         "K among warps",
                                         "N among none",
                                         "N among warps",
                                         "one round",
                                         "two rounds",
                                         "many rounds",
                                         "2 stages",
                                         "3 stages",
                                         "4 stages",
                                         "in chunks",
                                         "at once",
                                         "x loaded",
                                         "x staged in part",
                                         NULL};
    const struct class_family family = {.harness = &rmsnorm_q4k_harness,
                                        .problems = {problems_of(SMALL), problems_of(WIDE)},
                                        .most_work = 1 << 25,
                                        .make_problem = make_problem,
                                        .name_classes = name_classes,
                                        .wanted = wanted};
    (void)state;
    run_classes(&family);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_class_of_rmsnorm_q4k_is_right)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
