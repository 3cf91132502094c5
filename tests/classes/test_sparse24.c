/* SPDX-License-Identifier: Apache-2.0 */
/* Every class of sparse24's launches of tier 2; those of tier 1 are dense's. */
#include "classes.h"

#include "src/cli/families/sparse24.h"
#include "src/kernels/sparse24/layout.h"

static const char *const chips[] = {"cpu:sm_80", "cpu:sm_90", "cpu:sm_120"};
static const uint32_t sms[] = {2, 6, 20}, ms[] = {72, 320, 520}, ks[] = {64, 520, 1024};
static const uint32_t ns[] = {1, 13, 24, 50, 100, 200};
enum { CHIPS = 3, SMS = 3, MS = 3, KS = 3, NS = 6, TYPES = 2, GAPS = 2 };
enum { PROBLEMS = CHIPS * SMS * MS * KS * NS * TYPES * GAPS };

struct problem {
    size_t chip;
    uint32_t sms, n;
    struct sparse24_options options;
    struct sparse24_layout layout;
};

static struct problem problem_at(size_t number)
{
    struct problem p = {.chip = take_digit(&number, CHIPS)};
    ptxgen_sparse24_spec *s = &p.options.spec;
    p.sms = sms[take_digit(&number, SMS)];
    s->m = ms[take_digit(&number, MS)];
    s->k = ks[take_digit(&number, KS)];
    p.n = ns[take_digit(&number, NS)];
    s->type = take_digit(&number, TYPES) ? PTXGEN_SPARSE24_S8 : PTXGEN_SPARSE24_F16;
    p.layout.x_gap = (uint32_t)take_digit(&number, GAPS);
    s->y_type = PTXGEN_F16;
    s->bias = s->residual = p.n % 2;
    return p;
}

static bool plan_of(const struct problem *p, ptxgen_sparse24_plan *plan)
{
    ptxgen_target target = small_target(chips[p->chip], p->sms);
    return sparse24_make_plan(&p->options, p->n, &target, plan, NULL) == PTXGEN_OK;
}

static void name_class(const struct problem *p, const ptxgen_sparse24_plan *plan, char *name,
                       size_t size)
{
    const ptxgen_sparse24_variant *v = &plan->variants[0];
    struct sparse24_schedule s;
    ptxgen_error err;
    uint32_t stages = sparse24_own_stages(&plan->spec, v);
    assert_ok(sparse24_make_schedule(plan, v, p->n, &s, &err), &err);
    snprintf(name, size, "%s %s %s%s, wk %u, cluster %u, %s, %s%s", chips[p->chip],
             plan->spec.type == PTXGEN_SPARSE24_S8 ? "s8" : "f16", ptxgen_sparse24_entry(v),
             sparse24_is_wgmma(v) ? " wgmma" : "", v->wk, v->cluster, dealing_of(&s.tiles, stages),
             stages > v->stages ? "ring turns" : "ring suffices",
             p->layout.x_gap ? ", aligned first" : "");
}

static bool describe(size_t number, char *name, size_t size, uint64_t *work)
{
    struct problem p = problem_at(number);
    ptxgen_sparse24_plan plan;
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
    struct sparse24_problem p;
    ptxgen_error err;
    assert_ok(sparse24_allocate(&p, &at.options, at.n, &at.layout, &device, &err), &err);
    assert_ok(sparse24_fill(&p, &r, &err), &err);
    assert_ok(sparse24_check(&p, &device, &check, &err), &err);
    assert_right(&check);
    name_class(&at, &p.plan, name, size);
    sparse24_release(&p);
    device_close(&device);
}

static void every_class_of_sparse24_is_right(void **state)
{
    static const char *const wanted[] = {"sparse24_n8",
                                         "sparse24_n16",
                                         "sparse24_n32",
                                         "sparse24_n64",
                                         "sparse24_n128",
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
    const struct class_family family = {PROBLEMS, describe, run, wanted};
    (void)state;
    run_classes(&family);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_class_of_sparse24_is_right)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
