/* SPDX-License-Identifier: Apache-2.0 */
#include "plan.h"

#include <stdio.h>

enum {
    STATIC_SHARED = 48 * 1024, /* the most shared memory of a CTA without opt-in */
    RESERVED_SHARED = 1024, /* of each CTA, for the system (CUDA C++ Programming Guide, 8.x, 9.0) */
    MOST_MULTIPROCESSORS = 1 << 16, /* far above any chip: products with them do not wrap */
    MOST_SHARED = 1 << 24,
};

ptxgen_status plan_check_target(const char *family, const ptxgen_target *target, ptxgen_error *err)
{
    ptxgen_status status = ptx_target_check(&target->ptx, err);
    const bool is_one =
        target->multiprocessors && target->multiprocessors <= MOST_MULTIPROCESSORS &&
        target->shared_per_cta >= STATIC_SHARED && target->shared_per_cta <= MOST_SHARED;
    if (status == PTXGEN_OK && !is_one)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "%s: a target of %u multiprocessors with %u bytes of shared memory per "
                           "CTA is none",
                           family, target->multiprocessors, target->shared_per_cta);
    return status;
}

ptxgen_status plan_no_tile(const char *family, const ptxgen_target *target, ptxgen_error *err)
{
    return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                       "%s: no tile fits into the %u bytes of shared memory of a CTA", family,
                       target->shared_per_cta);
}

bool plan_explains_none(bool made, uint64_t m, bool serves, uint32_t most, char *text, size_t size)
{
    if (!made)
        snprintf(text, size, "no launch: there is no plan");
    else if (!m)
        snprintf(text, size, "no launch: there are no tokens");
    else if (!serves)
        snprintf(text, size, "no launch: %llu tokens are above the plan's %u",
                 (unsigned long long)m, most);
    return !made || !m || !serves;
}

uint32_t plan_shared_limit(const ptxgen_target *target, uint32_t ctas)
{
    return (target->shared_per_cta + RESERVED_SHARED) / ctas - RESERVED_SHARED;
}

uint32_t plan_dynamic_shared(uint32_t bytes)
{
    return bytes > STATIC_SHARED ? bytes : 0;
}

ptxgen_status plan_check_flags(const char *family, const struct plan_flag *flags, size_t count,
                               ptxgen_error *err)
{
    for (size_t i = 0; i < count; i++)
        if (flags[i].value > flags[i].most)
            return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%s: %s is %u, not 0%s", family,
                               flags[i].name, flags[i].value, flags[i].most ? " or 1" : "");
    return PTXGEN_OK;
}

static bool is_power_of_two(uint32_t x)
{
    return x && !(x & (x - 1));
}

ptxgen_status plan_check_numbers(const char *family, const struct plan_number *numbers,
                                 size_t count, ptxgen_error *err)
{
    for (size_t i = 0; i < count; i++) {
        const struct plan_number *n = &numbers[i];
        if (n->value < n->low || n->value > n->high || (n->power && !is_power_of_two(n->value)))
            return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                               "%s: a tile's %s is %u, not %s%u to %u", family, n->name, n->value,
                               n->power ? "a power of two of " : "", n->low, n->high);
    }
    return PTXGEN_OK;
}
