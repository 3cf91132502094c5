/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

const char *const element_type_names[] = {"f32", "f16", "bf16", "f64", NULL};
const char *const activation_kind_names[] = {"none", "silu", "gelu", "gelu-tanh", "relu", NULL};

void args_set(struct kernel_args *args, size_t offset, uint64_t value)
{
    memcpy((char *)args->words + offset, &value, sizeof value);
}

void harness_set_m(const struct harness *h, const void *plan, uint64_t m, struct kernel_args *args)
{
    args_set(args, h->m, m);
    if (h->numbers)
        h->numbers(plan, m, args);
}

/* ---- plans ---- */

ptxgen_status harness_plan(const struct harness *h, const struct kernel_request *request,
                           uint64_t m, const ptxgen_target *target, void *plan,
                           struct chosen *chosen, ptxgen_error *err)
{
    struct chosen unwanted;
    ptxgen_status status =
        ptxgen_tuned_plan(request->tuning, h->family(), request->spec, target, plan, NULL, err);
    if (status == PTXGEN_OK && request->tile)
        status = h->verbs->use_tile(plan, request->tile, err);
    if (status == PTXGEN_OK && m && !h->keep(plan, m, chosen ? chosen : &unwanted))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "%s: M = %llu is outside what the spec or the tile is for",
                           h->family()->name, (unsigned long long)m);
    return status;
}

ptxgen_status harness_new_plan(const struct harness *h, const struct kernel_request *request,
                               uint64_t m, const ptxgen_target *target, void **plan,
                               struct chosen *chosen, ptxgen_error *err)
{
    *plan = calloc(1, h->family()->plan_bytes);
    if (!*plan)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for a plan");
    ptxgen_status status = harness_plan(h, request, m, target, *plan, chosen, err);
    if (status != PTXGEN_OK) {
        free(*plan);
        *plan = NULL;
    }
    return status;
}

/* ---- what a launch costs ---- */

void harness_count(const struct harness *h, const void *plan, uint64_t m, uint64_t *bytes,
                   double *flops)
{
    struct operand operands[MOST_OPERANDS];
    const struct product product = h->product(plan);
    unsigned count = h->operands(plan, m, operands);
    *bytes = 0;
    for (unsigned i = 0; i < count; i++)
        if (operands[i].used)
            *bytes += operand_net_bytes(&operands[i]);
    *flops = 2.0 * product.n * product.k * (double)m;
}

ptxgen_status harness_describe(const struct harness *h, const struct kernel_request *request,
                               uint64_t m, const ptxgen_target *target, struct work *work,
                               ptxgen_error *err)
{
    struct chosen chosen;
    void *plan;
    ptxgen_status status = harness_new_plan(h, request, m, target, &plan, &chosen, err);
    if (status != PTXGEN_OK)
        return status;
    *work = (struct work){.entry = chosen.entry};
    harness_count(h, plan, m, &work->bytes, &work->flops);
    h->verbs->explain(plan, m, work->explanation, sizeof work->explanation);
    status = h->verbs->ctas(plan, m, &work->grid, err);
    free(plan);
    return status;
}
