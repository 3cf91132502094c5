/* SPDX-License-Identifier: Apache-2.0 */
/* Problems of any family on a device, by its harness, as assertions. */
#ifndef PTXGEN_TESTS_PROBLEMS_H
#define PTXGEN_TESTS_PROBLEMS_H

#include "checks.h"

#include "src/harness/problem.h"

/* A problem with random data, to be changed before it is run. The tile and the layout may be NULL.
 */
static inline struct problem make_tiled(struct device *device, const struct harness *harness,
                                        const void *spec, const void *tile, uint64_t m,
                                        const struct layout *layout, uint64_t seed)
{
    const struct kernel_request request = {.spec = spec, .tile = tile};
    struct problem p;
    struct random r = random_start(seed);
    ptxgen_error err;
    assert_ok(problem_allocate(&p, harness, &request, m, layout, device, &err), &err);
    assert_ok(problem_fill(&p, &r, &err), &err);
    return p;
}

static inline struct problem make_problem(struct device *device, const struct harness *harness,
                                          const void *spec, uint64_t m, const struct layout *layout)
{
    return make_tiled(device, harness, spec, NULL, m, layout, m);
}

/* All outputs were compared, and are right. */
static inline void check_problem(struct problem *p, struct device *device)
{
    struct check check = {.outputs = 0};
    uint64_t outputs = 0;
    ptxgen_error err;
    assert_ok(problem_check(p, device, &check, &err), &err);
    assert_right(&check);
    for (unsigned i = 0; i < p->count; i++)
        if (p->operands[i].used && p->operands[i].role == OPERAND_OUTPUT)
            outputs += p->operands[i].rows * p->operands[i].columns;
    assert_int_equal(check.outputs, outputs);
}

/* The same of a problem that is not needed any more. */
static inline void run_and_release(struct problem *p, struct device *device)
{
    check_problem(p, device);
    problem_release(p);
}

static inline void run_spec(const char *device_name, const struct harness *harness,
                            const void *spec, uint64_t m)
{
    struct device device = open_device(device_name);
    struct problem p = make_problem(&device, harness, spec, m, NULL);
    run_and_release(&p, &device);
    device_close(&device);
}

/* This many of a family's random problems are right on every kind of device. */
static inline void assert_drawn_problems_are_right(const struct harness *harness, int count)
{
    static const char *const devices[] = {"cpu:sm_80", "cpu:sm_86", "cpu:sm_89", "cpu:sm_90",
                                          "cpu:sm_120"};
    for (int d = 0; d < 5; d++) {
        struct device device = open_device(devices[d]);
        for (int seed = 0; seed < test_share(count); seed++) {
            struct check check = {.outputs = 0};
            ptxgen_error err;
            assert_ok(
                problem_run_random(harness, (uint64_t)(1 + d * 1000 + seed), &device, &check, &err),
                &err);
            assert_right(&check);
        }
        device_close(&device);
    }
}

#endif
