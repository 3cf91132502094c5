/* SPDX-License-Identifier: Apache-2.0 */
/* What plans of every family ask of a target and of a tile. Errors name the family. */
#ifndef PTXGEN_KERNELS_PLAN_H
#define PTXGEN_KERNELS_PLAN_H

#include <ptxgen/target.h>

#include <stdbool.h>

/* Refuses a target that the builder does not know, or that is too small to be one. */
ptxgen_status plan_check_target(const char *family, const ptxgen_target *target, ptxgen_error *err);
/* The refusal of a plan that has no tile. */
ptxgen_status plan_no_tile(const char *family, const ptxgen_target *target, ptxgen_error *err);

/*
 * The status for a number of an enumeration that a family does not take (status.h): whether it
 * names an enumerator at all makes the difference.
 */
static inline ptxgen_status plan_refuses_enumerator(bool is_named)
{
    return is_named ? PTXGEN_ERROR_UNSUPPORTED : PTXGEN_ERROR_INVALID_ARGUMENT;
}

/*
 * Whether a make_plan can have filled a plan with such a K and so many variants, of `most`: a plan
 * of zeros or of stray bytes is none. Every function that takes a plan asks this.
 */
static inline bool plan_is_made(uint32_t k, uint32_t variants, uint32_t most)
{
    return k > 0 && variants > 0 && variants <= most;
}

/*
 * Says why there is no launch of m tokens, and returns whether that is so: there is no plan, or no
 * variant `serves` them. `most`: of the plan's tokens.
 */
bool plan_explains_none(bool made, uint64_t m, bool serves, uint32_t most, char *text, size_t size);

/* Bytes of shared memory that each of `ctas` CTAs of a multiprocessor may take. */
uint32_t plan_shared_limit(const ptxgen_target *target, uint32_t ctas);
/* What a launch passes for CTAs of so many bytes: 0 where they need not be asked for. */
uint32_t plan_dynamic_shared(uint32_t bytes);

/* A number of a tile of the caller's choice, and what it may be. */
struct plan_number {
    const char *name;
    uint32_t value, low, high;
    bool power; /* of two */
};
/* Refuses the first that is out of its range. */
ptxgen_status plan_check_numbers(const char *family, const struct plan_number *numbers,
                                 size_t count, ptxgen_error *err);

#endif
