/* SPDX-License-Identifier: Apache-2.0 */
/* Every class of w8a8's launches. */
#include "classes.h"

#include "src/cli/families/w8a8.h"
#include "src/kernels/w8a8/layout.h"

static const char *const chips[] = {"cpu:sm_80", "cpu:sm_90", "cpu:sm_120"};
static const uint32_t sms[] = {4, 20, 132}, ks[] = {256, 261, 260, 1536}, ns[] = {72, 320, 520};
static const uint32_t ms[] = {1, 7, 16, 30, 60, 100, 200, 300};
enum { CHIPS = 3, SMS = 3, KS = 4, NS = 3, MS = 8, KINDS = 2 };
enum { PROBLEMS = CHIPS * SMS * KS * NS * MS * KINDS };

struct problem {
    size_t chip;
    uint32_t sms, m;
    struct w8a8_options options;
};

static struct problem problem_at(size_t number)
{
    struct problem p = {.chip = take_digit(&number, CHIPS)};
    ptxgen_w8a8_spec *s = &p.options.spec;
    p.sms = sms[take_digit(&number, SMS)];
    s->k = ks[take_digit(&number, KS)];
    s->n = ns[take_digit(&number, NS)];
    p.m = ms[take_digit(&number, MS)];
    s->asymmetric = s->bias = (uint8_t)take_digit(&number, KINDS);
    s->x_type = s->asymmetric ? PTXGEN_F32 : PTXGEN_F16;
    s->y_type = PTXGEN_BF16;
    return p;
}

static bool plan_of(const struct problem *p, ptxgen_w8a8_plan *plan)
{
    ptxgen_target target = small_target(chips[p->chip], p->sms);
    return w8a8_make_plan(&p->options, p->m, &target, plan, NULL) == PTXGEN_OK;
}

static void name_class(const struct problem *p, const ptxgen_w8a8_plan *plan, char *name,
                       size_t size)
{
    const ptxgen_w8a8_variant *v = ptxgen_w8a8_choose(plan, p->m);
    struct w8a8_schedule s;
    ptxgen_error err;
    uint32_t stages = w8a8_own_steps(&plan->spec, v);
    assert_ok(w8a8_schedule(plan, v, p->m, &s, &err), &err);
    snprintf(name, size, "%s %u tokens%s%s, wk %u, cluster %u, %s, %s%s, copies of %u%s%s",
             chips[p->chip], v->tokens, v->fused ? " fused" : "", v->wgmma ? " wgmma" : "", v->wk,
             v->cluster, dealing_of(&s.tiles, stages),
             stages > v->stages ? "ring turns" : "ring suffices",
             w8a8_rotates(plan, v) ? ", rotated" : "", w8a8_copy_bytes(plan, v),
             w8a8_aligns(plan, v) ? ", aligned first" : "",
             s.prefetch.lines ? ", fetched ahead" : "");
}

static bool describe(size_t number, char *name, size_t size, uint64_t *work)
{
    struct problem p = problem_at(number);
    ptxgen_w8a8_plan plan;
    *work = (uint64_t)p.m * p.options.spec.n * p.options.spec.k;
    if (*work > 1 << 25 || !plan_of(&p, &plan))
        return false;
    name_class(&p, &plan, name, size);
    return true;
}

static void run(size_t number, uint64_t seed, char *name, size_t size)
{
    const struct w8a8_layout packed = {.x_gap = 0};
    struct problem at = problem_at(number);
    struct device device = open_small(chips[at.chip], (int)at.sms, seed);
    struct random r = random_start(seed);
    struct check check = {.outputs = 0};
    struct w8a8_problem p;
    ptxgen_error err;
    assert_ok(w8a8_allocate(&p, &at.options, at.m, &packed, &device, &err), &err);
    w8a8_fill(&p, &r);
    assert_ok(w8a8_check(&p, &device, &check, &err), &err);
    assert_right(&check);
    name_class(&at, &p.plan, name, size);
    w8a8_release(&p);
    device_close(&device);
}

static void every_class_of_w8a8_is_right(void **state)
{
    static const char *const wanted[] = {"fused",
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
                                         "rotated",
                                         "copies of 16",
                                         "copies of 4",
                                         "aligned first",
                                         "fetched ahead",
                                         NULL};
    const struct class_family family = {PROBLEMS, describe, run, wanted};
    (void)state;
    run_classes(&family);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_class_of_w8a8_is_right)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
