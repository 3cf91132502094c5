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

#endif
