/* SPDX-License-Identifier: Apache-2.0 */
/* Random problems on a device, run and compared with the reference. */
#ifndef PTXGEN_TESTS_MARLIN_PROBLEMS_H
#define PTXGEN_TESTS_MARLIN_PROBLEMS_H

#include "tests/checks.h"

#include "src/cli/families/marlin.h"

/* A random problem of the options, to be changed before it is run. */
static inline struct marlin_problem make_of(struct device *device,
                                            const struct marlin_options *options, uint32_t m,
                                            ptxgen_w4_format format,
                                            const struct marlin_layout *layout)
{
    const struct marlin_layout packed = {.x_gap = 0};
    struct marlin_problem p;
    struct marlin_weights weights;
    struct random r = random_start(m + options->spec.k);
    ptxgen_error err;
    assert_ok(marlin_random_weights(&options->spec, format, &r, &weights, &err), &err);
    assert_ok(marlin_allocate(&p, options, m, layout ? layout : &packed, &weights, device, &err),
              &err);
    marlin_release_weights(&weights);
    marlin_fill(&p, &r);
    return p;
}

static inline struct marlin_problem make(struct device *device, const ptxgen_marlin_spec *spec,
                                         uint32_t m, ptxgen_w4_format format,
                                         const struct marlin_layout *layout)
{
    const struct marlin_options options = {.spec = *spec};
    return make_of(device, &options, m, format, layout);
}

static inline void run_and_release(struct marlin_problem *p, struct device *device)
{
    struct check check = {.outputs = 0};
    ptxgen_error err;
    assert_ok(marlin_check(p, device, &check, &err), &err);
    assert_right(&check);
    assert_int_equal(check.outputs, (uint64_t)p->m * p->plan.spec.n);
    marlin_release(p);
}

static inline void run_spec(const char *device_name, const ptxgen_marlin_spec *spec, uint32_t m)
{
    struct device device = open_device(device_name);
    struct marlin_problem p = make(&device, spec, m, PTXGEN_W4_PACK_QUANTIZED, NULL);
    run_and_release(&p, &device);
    device_close(&device);
}

static inline ptxgen_marlin_spec f16(uint32_t k, uint32_t n, int32_t group_size)
{
    return (ptxgen_marlin_spec){.k = k, .n = n, .group_size = group_size, .type = PTXGEN_F16};
}

#endif
