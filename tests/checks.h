/* SPDX-License-Identifier: Apache-2.0 */
/* Problems on a device, and what their checks say, as assertions. */
#ifndef PTXGEN_TESTS_CHECKS_H
#define PTXGEN_TESTS_CHECKS_H

#include "share.h"
#include "status.h"

#include "src/harness/check.h"
#include "src/harness/device.h"

#include <ptxgen/emulator.h>

static inline struct device open_device(const char *name)
{
    struct device device;
    ptxgen_error err;
    assert_ok(device_open(name, &device, &err), &err);
    return device;
}

/* The emulator's clusters begin, and they and their warps take turns, in the orders of this seed. */
static inline void order_by(struct device *device, uint64_t seed)
{
    ptxgen_emulator_options options = {.seed = seed};
    ptxgen_error err;
    assert_ok(ptxgen_emulator_set_options(device->context, &options, &err), &err);
}

static inline void assert_right(const struct check *check)
{
    if (!check_passed(check))
        fail_msg("%s: %s", check->problem, check->where);
}

/* This many of a family's random problems are right on every kind of device. */
static inline void assert_random_problems_are_right(
    int count,
    ptxgen_status (*run)(uint64_t seed, struct device *device, struct check *, ptxgen_error *))
{
    static const char *const devices[] = {"cpu:sm_80", "cpu:sm_86", "cpu:sm_89", "cpu:sm_90",
                                          "cpu:sm_120"};
    for (int d = 0; d < 5; d++) {
        struct device device = open_device(devices[d]);
        for (int seed = 0; seed < test_share(count); seed++) {
            struct check check = {.outputs = 0};
            ptxgen_error err;
            assert_ok(run((uint64_t)(1 + d * 1000 + seed), &device, &check, &err), &err);
            assert_right(&check);
        }
        device_close(&device);
    }
}

#endif
