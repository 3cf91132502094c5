/* SPDX-License-Identifier: Apache-2.0 */
/* Every class of rmsnorm_q4k's launches. */
#include "classes.h"

#include "src/cli/families/rmsnorm_q4k.h"
#include "src/kernels/rmsnorm_q4k/layout.h"

static const char *const chips[] = {"cpu:sm_80", "cpu:sm_90", "cpu:sm_86"};
static const uint32_t sms[] = {1, 3, 20}, ks[] = {256, 1024, 4096, 5120, 8192, 16384},
                      ns[] = {16, 64, 100, 192, 400};
static const uint32_t ms[] = {1, 2, 3, 8};
enum { CHIPS = 3, SMS = 3, KS = 6, NS = 5, MS = 4, KINDS = 3 };
enum { PROBLEMS = CHIPS * SMS * KS * NS * MS * KINDS };

struct problem {
    size_t chip;
    uint32_t sms, m;
    struct rmsnorm_q4k_options options;
};

static struct problem problem_at(size_t number)
{
    struct problem p = {.chip = take_digit(&number, CHIPS)};
    ptxgen_rmsnorm_q4k_spec *s = &p.options.spec;
    p.sms = sms[take_digit(&number, SMS)];
    s->k = ks[take_digit(&number, KS)];
    s->n[0] = ns[take_digit(&number, NS)];
    p.m = ms[take_digit(&number, MS)];
    size_t kind = take_digit(&number, KINDS);
    s->x_type = kind ? PTXGEN_F16 : PTXGEN_F32;
    s->residual = s->residual_out = s->bias = kind == 1;
    s->y_type = PTXGEN_F16;
    s->epsilon = 1e-5f;
    s->max_tokens = p.m;
    return p;
}

static bool plan_of(const struct problem *p, ptxgen_rmsnorm_q4k_plan *plan)
{
    ptxgen_target target = small_target(chips[p->chip], p->sms);
    return rmsnorm_q4k_make_plan(&p->options.spec, p->m, &target, plan, NULL) == PTXGEN_OK;
}

static void name_class(const struct problem *p, const ptxgen_rmsnorm_q4k_plan *plan, char *name,
                       size_t size)
{
    const ptxgen_rmsnorm_q4k_variant *v = ptxgen_rmsnorm_q4k_choose(plan, p->m);
    uint32_t staged = staged_bytes(plan, v);
    snprintf(name, size, "%s %s, K among %s, rows among %s, %s, %u stages, %s, x %s",
             chips[p->chip], ptxgen_rmsnorm_q4k_entry(v), v->wk > 1 ? "warps" : "none",
             v->wr > 1 ? "warps" : "none",
             v->rounds > 2   ? "many rounds"
             : v->rounds > 1 ? "two rounds"
                             : "one round",
             v->stages, v->chunks > 1 ? "in chunks" : "at once",
             !staged                            ? "loaded"
             : staged == staged_second_bytes(v) ? "staged in part"
                                                : "staged");
}

static bool describe(size_t number, char *name, size_t size, uint64_t *work)
{
    struct problem p = problem_at(number);
    ptxgen_rmsnorm_q4k_plan plan;
    *work = (uint64_t)p.m * p.options.spec.n[0] * p.options.spec.k;
    if (*work > 1 << 24 || !plan_of(&p, &plan))
        return false;
    name_class(&p, &plan, name, size);
    return true;
}

static void run(size_t number, uint64_t seed, char *name, size_t size)
{
    const struct rmsnorm_q4k_layout packed = {.x_gap = 0};
    struct problem at = problem_at(number);
    struct device device = open_small(chips[at.chip], (int)at.sms, seed);
    struct random r = random_start(seed);
    struct check check = {.outputs = 0};
    struct rmsnorm_q4k_problem p;
    ptxgen_error err;
    assert_ok(rmsnorm_q4k_allocate(&p, &at.options.spec, at.m, &packed, &device, &err), &err);
    rmsnorm_q4k_fill(&p, &r);
    assert_ok(rmsnorm_q4k_check(&p, &device, &check, &err), &err);
    assert_right(&check);
    name_class(&at, &p.plan, name, size);
    rmsnorm_q4k_release(&p);
    device_close(&device);
}

static void every_class_of_rmsnorm_q4k_is_right(void **state)
{
    static const char *const wanted[] = {"rmsnorm_q4k_m1",
                                         "rmsnorm_q4k_m2",
                                         "rmsnorm_q4k_m4",
                                         "rmsnorm_q4k_m8",
                                         "K among none",
                                         "K among warps",
                                         "rows among none",
                                         "rows among warps",
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
    const struct class_family family = {PROBLEMS, describe, run, wanted};
    (void)state;
    run_classes(&family);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_class_of_rmsnorm_q4k_is_right)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
