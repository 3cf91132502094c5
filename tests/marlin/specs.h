/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PTXGEN_TESTS_MARLIN_SPECS_H
#define PTXGEN_TESTS_MARLIN_SPECS_H

#include "tests/status.h"

#include <ptxgen/marlin.h>

static inline ptxgen_marlin_spec plain_spec(uint32_t k, uint32_t n)
{
    return (ptxgen_marlin_spec){.k = k, .n = n, .group_size = 64, .type = PTXGEN_F16};
}

static inline ptxgen_marlin_plan plan_of(const ptxgen_marlin_spec *spec, const char *target_name)
{
    ptxgen_target target = target_of(target_name);
    ptxgen_marlin_plan plan;
    ptxgen_error err = {0};
    assert_ok(ptxgen_marlin_make_plan(spec, &target, &plan, &err), &err);
    return plan;
}

static const char *const target_names[] = {"sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_120"};
enum { TARGETS = sizeof target_names / sizeof *target_names };

#endif
