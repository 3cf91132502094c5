/* SPDX-License-Identifier: Apache-2.0 */
/* Describes a variant in words, for `ptxgen inspect`. */
#include "emit.h"

#include <stdio.h>

bool ptxgen_marlin_rounds_weights(const ptxgen_marlin_plan *plan, const ptxgen_tile *variant)
{
    return marlin_is_plan(plan) && variant && !marlin_scales_sums(&plan->spec, variant);
}

void marlin_describe(const void *of, const ptxgen_tile *v, uint64_t m, char *text, size_t size)
{
    const ptxgen_marlin_plan *plan = of;
    (void)m;
    char weights[64] = "scales are multiplied into sums, in f32";
    if (ptxgen_marlin_rounds_weights(plan, v))
        snprintf(weights, sizeof weights, "weights are scaled and rounded to %s",
                 plan->spec.type == PTXGEN_F16 ? "f16" : "bf16");
    snprintf(text, size, "tiles of %u tokens by %u features, %s; %s", v->tile_m, v->tile_n,
             gemm_name_kind(v), weights);
}
