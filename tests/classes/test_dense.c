/* SPDX-License-Identifier: Apache-2.0 */
/* Every class of dense's launches. */
#include "classes.h"

#include "src/cli/families/dense.h"
#include "src/kernels/dense/layout.h"

/* The last is sm_90 without what its exact target has. */
static const char *const chips[] = {"cpu:sm_80", "cpu:sm_90", "cpu:sm_90"};
static const uint32_t sms[] = {4, 6, 20}, ms[] = {72, 300, 512}, ks[] = {64, 200, 712};
static const uint32_t ns[] = {1, 17, 40, 70, 130, 300};
enum { CHIPS = 3, PLAIN = 2, SMS = 3, MS = 3, KS = 3, NS = 6, TYPES = 2 };
enum { PROBLEMS = CHIPS * SMS * MS * KS * NS * TYPES };

struct problem {
    size_t chip;
    uint32_t sms, n;
    struct dense_options options;
    struct dense_layout layout;
};

static struct problem problem_at(size_t number)
{
    struct problem p = {.chip = take_digit(&number, CHIPS)};
    p.sms = sms[take_digit(&number, SMS)];
    p.options.spec.m = ms[take_digit(&number, MS)];
    p.options.spec.k = ks[take_digit(&number, KS)];
    p.n = ns[take_digit(&number, NS)];
    p.options.spec.type = take_digit(&number, TYPES) ? PTXGEN_F32 : PTXGEN_F16;
    p.layout.x_gap = p.sms == 6;
    p.options.spec.bias = p.options.spec.residual = p.n % 2;
    return p;
}

static bool plan_of(const struct problem *p, ptxgen_dense_plan *plan)
{
    ptxgen_target target = small_target(chips[p->chip], p->sms);
    if (p->chip == PLAIN)
        target.ptx.suffix = 0;
    return dense_make_plan(&p->options, p->n, &target, plan, NULL) == PTXGEN_OK;
}

static void name_class(const struct problem *p, const ptxgen_dense_plan *plan, char *name,
                       size_t size)
{
    const ptxgen_dense_variant *v = &plan->variants[0];
    struct dense_schedule s;
    ptxgen_error err;
    uint32_t stages = dense_own_stages(&plan->spec, v);
    assert_ok(dense_make_schedule(plan, v, p->n, &s, &err), &err);
    snprintf(name, size, "%s%s %s %s, %s, %s%s", chips[p->chip], p->chip == PLAIN ? " plain" : "",
             plan->spec.type == PTXGEN_F32 ? "f32" : "f16", ptxgen_dense_entry(v),
             dealing_of(&s.tiles, stages), stages > v->stages ? "ring turns" : "ring suffices",
             p->layout.x_gap ? ", aligned first" : "");
}

static bool describe(size_t number, char *name, size_t size, uint64_t *work)
{
    struct problem p = problem_at(number);
    ptxgen_dense_plan plan;
    *work = (uint64_t)p.n * p.options.spec.m * p.options.spec.k;
    if (*work > 1 << 25 || !plan_of(&p, &plan))
        return false;
    name_class(&p, &plan, name, size);
    return true;
}

static void run(size_t number, uint64_t seed, char *name, size_t size)
{
    struct problem at = problem_at(number);
    struct device device = open_small(chips[at.chip], (int)at.sms, seed);
    struct random r = random_start(seed);
    struct check check = {.outputs = 0};
    struct dense_problem p;
    ptxgen_error err;
    assert_ok(dense_allocate(&p, &at.options, at.n, &at.layout, &device, &err), &err);
    assert_true(plan_of(&at, &p.plan));
    dense_fill(&p, &r);
    assert_ok(dense_check(&p, &device, &check, &err), &err);
    assert_right(&check);
    name_class(&at, &p.plan, name, size);
    dense_release(&p);
    device_close(&device);
}

static void every_class_of_dense_is_right(void **state)
{
    static const char *const wanted[] = {"dense_n16,",           "dense_n32,",
                                         "dense_n64,",           "dense_n128,",
                                         "dense_wgmma_n",        "dense_wgmma_pair_n",
                                         "dense_wgmma_split_n",  "dense_bulk_n256",
                                         "dense_bulk_pair_n256", "a whole tile",
                                         "several whole tiles",  "divided between two",
                                         "divided among many",   "divided, several tiles",
                                         "ring turns",           "ring suffices",
                                         "aligned first",        NULL};
    const struct class_family family = {PROBLEMS, describe, run, wanted};
    (void)state;
    run_classes(&family);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_class_of_dense_is_right)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
