/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of targets and tiles for the plans of every family. Errors name the family. */
#ifndef PTXGEN_KERNELS_PLAN_H
#define PTXGEN_KERNELS_PLAN_H

#include <ptxgen/target.h>

#include <stdbool.h>

/* Refuses a target that the builder does not know, or whose sizes are too small. */
ptxgen_status plan_check_target(const char *family, const ptxgen_target *target, ptxgen_error *err);
/* The refusal of a plan that has no tile. */
ptxgen_status plan_no_tile(const char *family, const ptxgen_target *target, ptxgen_error *err);

/*
 * The status that refuses a value of an enumeration (status.h): it depends on whether the value is
 * an enumerator that the family does not support, or no enumerator.
 */
static inline ptxgen_status plan_refuses_enumerator(bool is_named)
{
    return is_named ? PTXGEN_ERROR_UNSUPPORTED : PTXGEN_ERROR_INVALID_ARGUMENT;
}

/*
 * Whether make_plan can have filled a plan with this target and this number of variants, of at most
 * `most`. Every function that takes a plan refuses other plans, such as zeros or stray bytes.
 * `is_empty`: K or N is 0, and there are no variants.
 */
static inline bool plan_is_made(const ptxgen_target *target, bool is_empty, uint32_t variants,
                                uint32_t most)
{
    return target->multiprocessors > 0 && (is_empty ? !variants : variants > 0 && variants <= most);
}

/*
 * Says why there is no launch of m tokens, and returns whether that is so: there is no plan, or no
 * variant `serves` them. `most`: of the plan's tokens.
 */
/* Bytes that may be written of a text: none where there is no text. */
static inline size_t plan_room(const char *text, size_t size)
{
    return text ? size : 0;
}
bool plan_explains_none(bool made, uint64_t m, bool serves, uint32_t most, char *text, size_t size);

/* Bytes of shared memory that each of `ctas` CTAs on a multiprocessor may use. */
uint32_t plan_shared_limit(const ptxgen_target *target, uint32_t ctas);
/* The dynamic shared memory of a launch whose CTAs use so many bytes: 0 up to 48 KB. */
uint32_t plan_dynamic_shared(uint32_t bytes);

/* A flag or a reserved byte of a spec, and the most that it may be. */
struct plan_flag {
    const char *name;
    uint8_t value, most;
};
/* Refuses the first flag that is neither 0 nor 1, or reserved byte that is not 0. */
ptxgen_status plan_check_flags(const char *family, const struct plan_flag *flags, size_t count,
                               ptxgen_error *err);

/* A number of a tile of the caller's choice, with its limits. */
struct plan_number {
    const char *name;
    uint32_t value, low, high;
    bool power; /* a power of two only */
};
/* Refuses the first number that is outside of its limits. */
ptxgen_status plan_check_numbers(const char *family, const struct plan_number *numbers,
                                 size_t count, ptxgen_error *err);

#endif
