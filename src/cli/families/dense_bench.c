/* SPDX-License-Identifier: Apache-2.0 */
/* bench dense: random operands, the weights several times over. */
#include "dense.h"

#include "../bench_emission.h"
#include "../bench_time.h"
#include "../progress.h"

#include <stdlib.h>

struct bench_state {
    struct device *device;
    ptxgen_dense *kernel;
    ptxgen_dense_args args; /* over the first copy */
    uint64_t copy_bytes;
    struct bench_memory memory;
};

/* ---- launching ---- */

static ptxgen_status launch(void *state, uint32_t copy, ptxgen_error *err)
{
    const struct bench_state *b = state;
    ptxgen_dense_args args = b->args;
    args.w += copy * b->copy_bytes;
    return ptxgen_dense_launch(b->kernel, &args, b->device->stream, err);
}

static void destroy(void *state)
{
    struct bench_state *b = state;
    bench_free(&b->memory);
    ptxgen_dense_destroy(b->kernel);
    free(b);
}

/* ---- operands ---- */

static ptxgen_status allocate_workspace(struct bench_state *b, ptxgen_error *err)
{
    ptxgen_status status =
        ptxgen_dense_workspace_bytes(b->kernel, &b->args, &b->args.workspace_bytes, err);
    return status == PTXGEN_OK
               ? bench_zeroed_memory(&b->memory, "allocating the workspace",
                                     b->args.workspace_bytes, &b->args.workspace, err)
               : status;
}

static ptxgen_status allocate_operands(struct bench_state *b, const ptxgen_dense_spec *s,
                                       uint32_t m, uint32_t copies, ptxgen_error *err)
{
    size_t element = ptxgen_element_size((ptxgen_element)s->type), y_bytes = element * m * s->n;
    const struct bench_operand operands[] = {
        {"X", true, element * m * s->k, element, &b->args.x},
        {"the weights", true, b->copy_bytes * copies, element, &b->args.w},
        {"Y", true, y_bytes, element, &b->args.y},
        {"the residual", s->residual, y_bytes, element, &b->args.residual},
        {"the bias", s->bias, element * s->n, element, &b->args.bias},
    };
    b->args.m = m;
    ptxgen_status status =
        bench_random_operands(&b->memory, operands, sizeof operands / sizeof *operands, err);
    return status == PTXGEN_OK ? allocate_workspace(b, err) : status;
}

/* ---- from spec to loaded kernel, timed ---- */

static ptxgen_status emit(const void *plan, ptx_module *module, ptxgen_error *err)
{
    return ptxgen_dense_emit(plan, ~0u, module, err);
}

static ptxgen_status describe(const ptxgen_dense_plan *plan, const ptxgen_dense *kernel, uint32_t m,
                              struct bench_subject *s, ptxgen_error *err)
{
    const ptxgen_kernel_attributes *attributes = ptxgen_dense_attributes(kernel, m);
    struct work work;
    dense_work(&plan->spec, m, &work);
    dense_name(&plan->spec, m, s->shape, sizeof s->shape);
    s->bytes = work.bytes;
    s->flops = work.flops;
    s->tensor_f16 = plan->spec.type != PTXGEN_F32;
    s->k = plan->spec.k;
    s->n = plan->spec.n;
    s->m = m;
    s->type = (ptxgen_element)plan->spec.type;
    s->shared_bytes = (int)plan->variants[0].shared_bytes;
    s->registers = attributes->registers;
    s->local_bytes = attributes->local_bytes;
    return ptxgen_dense_ctas(plan, m, &s->grid, err);
}

static ptxgen_status prepare(struct bench_state *b, const struct dense_options *o, uint32_t m,
                             struct bench_subject *s, ptxgen_error *err)
{
    ptxgen_target target = ptxgen_device_target(&b->device->facts);
    ptxgen_dense_plan plan;
    double started = now_seconds();
    ptxgen_status status = dense_make_plan(o, m, &target, &plan, err);
    s->plan_seconds = now_seconds() - started;
    if (status == PTXGEN_OK)
        status = bench_emission(b->device, &target, emit, &plan, s, err);
    if (status == PTXGEN_OK)
        status = ptxgen_dense_load(&b->device->driver, &plan, NULL, &b->kernel, err);
    if (status == PTXGEN_OK)
        status = describe(&plan, b->kernel, m, s, err);
    if (status != PTXGEN_OK)
        return status;
    b->copy_bytes = ptxgen_element_size((ptxgen_element)plan.spec.type) * plan.spec.n * plan.spec.k;
    s->weight_bytes = b->copy_bytes;
    s->copies = bench_copies(b->device, s->weight_bytes);
    return allocate_operands(b, &plan.spec, m, s->copies, err);
}

ptxgen_status dense_bench(const void *options, uint32_t m, struct device *device,
                          struct bench_subject *subject, ptxgen_error *err)
{
    struct bench_state *b = calloc(1, sizeof *b);
    if (!b)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for a bench");
    b->device = b->memory.device = device;
    *subject = (struct bench_subject){.state = b, .launch = launch, .destroy = destroy};
    ptxgen_status status = prepare(b, options, m, subject, err);
    if (status != PTXGEN_OK)
        destroy(b);
    return status;
}
