/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PTXGEN_KERNELS_MARLIN_SPEC_H
#define PTXGEN_KERNELS_MARLIN_SPEC_H

#include <ptxgen/marlin.h>

#include <stddef.h>

/* Checks the rules of a spec that hold for all targets. */
ptxgen_status marlin_check_spec(const void *spec, ptxgen_error *err);

/* The number of k that share a scale: all K where a feature has one scale. */
static inline size_t marlin_group_rows(const ptxgen_marlin_spec *spec)
{
    return spec->group_size == PTXGEN_W4_PER_CHANNEL ? spec->k : (size_t)spec->group_size;
}

#endif
