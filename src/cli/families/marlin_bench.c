/* SPDX-License-Identifier: Apache-2.0 */
/* bench marlin: random operands, the weights several times over. */
#include "marlin.h"

#include "../bench_emission.h"
#include "../bench_time.h"
#include "../progress.h"

#include <stdlib.h>
#include <string.h>

struct bench_state {
    struct device *device;
    ptxgen_marlin *kernel;
    ptxgen_marlin_args args;     /* over the first copy */
    ptxgen_marlin_packed packed; /* sizes of a copy */
    struct bench_memory memory;
};

/* ---- launching ---- */

static ptxgen_status launch(void *state, uint32_t copy, ptxgen_error *err)
{
    const struct bench_state *b = state;
    ptxgen_marlin_args args = b->args;
    args.codes += copy * b->packed.codes_bytes;
    args.scales += copy * b->packed.scales_bytes;
    args.zeros += copy * b->packed.zeros_bytes;
    return ptxgen_marlin_launch(b->kernel, &args, b->device->stream, err);
}

static void set_overlap(void *state, bool overlap)
{
    ((struct bench_state *)state)->args.overlap_previous = overlap;
}

static void destroy(void *state)
{
    struct bench_state *b = state;
    bench_free(&b->memory);
    ptxgen_marlin_destroy(b->kernel);
    free(b);
}

/* ---- operands ---- */

static ptxgen_status random_bits_memory(struct bench_memory *memory, const char *what, size_t bytes,
                                        uint64_t *address, ptxgen_error *err)
{
    ptxgen_cu_deviceptr at = 0;
    ptxgen_status status = bench_random_memory(memory->device, what, bytes, UINT64_MAX, &at, err);
    if (at)
        memory->items[memory->count++] = at;
    *address = at;
    return status;
}

static ptxgen_status allocate_weights(struct bench_state *b, uint32_t copies, ptxgen_error *err)
{
    ptxgen_status status = random_bits_memory(&b->memory, "the codes",
                                              copies * b->packed.codes_bytes, &b->args.codes, err);
    if (status == PTXGEN_OK)
        status = bench_random_elements(&b->memory, "the scales", copies * b->packed.scales_bytes, 2,
                                       &b->args.scales, err);
    if (status == PTXGEN_OK && b->packed.zeros_bytes)
        status = random_bits_memory(&b->memory, "the zero points", copies * b->packed.zeros_bytes,
                                    &b->args.zeros, err);
    return status;
}

static ptxgen_status allocate_order(struct bench_state *b, uint32_t k, ptxgen_error *err)
{
    uint32_t *order = malloc(k * sizeof *order);
    if (!order)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for the order of %u rows",
                           k);
    struct random r = random_start(1);
    for (uint32_t i = 0; i < k; i++) {
        uint32_t other = random_below(&r, i + 1);
        order[i] = order[other];
        order[other] = i;
    }
    ptxgen_status status = bench_copied_memory(&b->memory, "the order", order, k * sizeof *order, 1,
                                               &b->args.order, err);
    free(order);
    return status;
}

static ptxgen_status allocate_workspace(struct bench_state *b, ptxgen_error *err)
{
    ptxgen_status status =
        ptxgen_marlin_workspace_bytes(b->kernel, &b->args, &b->args.workspace_bytes, err);
    return status == PTXGEN_OK ? bench_zeroed_memory(&b->memory, "allocating the workspace",
                                                     b->args.workspace_bytes, &b->args.workspace, err)
                               : status;
}

static ptxgen_status allocate_operands(struct bench_state *b, const ptxgen_marlin_spec *s,
                                       uint32_t m, ptxgen_error *err)
{
    size_t a_bytes = (size_t)m * s->k * 2, c_bytes = (size_t)m * s->n * 2;
    const struct {
        const char *what;
        bool used;
        size_t bytes;
        uint64_t *address;
    } operands[] = {
        {"A", true, a_bytes, &b->args.a},
        {"C", true, c_bytes, &b->args.c},
        {"the residual", s->residual, c_bytes, &b->args.residual},
        {"the bias", s->bias, 2 * (size_t)s->n, &b->args.bias},
        {"up's bias", s->bias && marlin_matrices(s) == 2, 2 * (size_t)s->n, &b->args.up_bias},
    };
    ptxgen_status status = PTXGEN_OK;
    b->args.m = m;
    for (size_t i = 0; status == PTXGEN_OK && i < sizeof operands / sizeof *operands; i++)
        if (operands[i].used)
            status = bench_random_elements(&b->memory, operands[i].what, operands[i].bytes, 2,
                                           operands[i].address, err);
    if (status == PTXGEN_OK && s->act_order)
        status = allocate_order(b, s->k, err);
    return status == PTXGEN_OK ? allocate_workspace(b, err) : status;
}

/* ---- from spec to loaded kernel, timed ---- */

static ptxgen_status emit(const void *plan, ptx_module *module, ptxgen_error *err)
{
    return ptxgen_marlin_emit(plan, ~0u, module, err);
}

static ptxgen_status describe(const ptxgen_marlin_plan *plan, const ptxgen_marlin *kernel,
                              uint32_t m, struct bench_subject *s, ptxgen_error *err)
{
    const ptxgen_kernel_attributes *attributes = ptxgen_marlin_attributes(kernel, m);
    struct work work;
    marlin_work(&plan->spec, m, &work);
    marlin_name(&plan->spec, m, s->shape, sizeof s->shape);
    s->bytes = work.bytes;
    s->flops = work.flops;
    s->k = plan->spec.k;
    s->n = marlin_matrices(&plan->spec) * plan->spec.n;
    s->m = m;
    s->type = (ptxgen_element)plan->spec.type;
    s->shared_bytes = (int)ptxgen_marlin_choose(plan, m)->shared_bytes;
    s->registers = attributes->registers;
    s->local_bytes = attributes->local_bytes;
    return ptxgen_marlin_ctas(plan, m, &s->grid, err);
}

static ptxgen_status prepare(struct bench_state *b, const struct marlin_options *o, uint32_t m,
                             struct bench_subject *s, ptxgen_error *err)
{
    ptxgen_target target = ptxgen_device_target(&b->device->facts);
    ptxgen_marlin_plan plan;
    double started = now_seconds();
    ptxgen_status status = marlin_make_plan(o, m, &target, &plan, err);
    s->plan_seconds = now_seconds() - started;
    if (status == PTXGEN_OK)
        marlin_keep_variant(&plan, m);
    if (status == PTXGEN_OK)
        status = bench_emission(b->device, &target, emit, &plan, s, err);
    if (status == PTXGEN_OK)
        status = ptxgen_marlin_load(&b->device->driver, &plan, NULL, &b->kernel, err);
    if (status == PTXGEN_OK)
        status = ptxgen_marlin_packed_layout(&o->spec, &b->packed, err);
    if (status == PTXGEN_OK)
        status = describe(&plan, b->kernel, m, s, err);
    if (status != PTXGEN_OK)
        return status;
    s->weight_bytes = b->packed.codes_bytes + b->packed.scales_bytes + b->packed.zeros_bytes;
    s->copies = bench_copies(b->device, s->weight_bytes);
    status = allocate_operands(b, &o->spec, m, err);
    return status == PTXGEN_OK ? allocate_weights(b, s->copies, err) : status;
}

ptxgen_status marlin_bench(const void *options, uint32_t m, struct device *device,
                           struct bench_subject *subject, ptxgen_error *err)
{
    struct bench_state *b = calloc(1, sizeof *b);
    if (!b)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for a bench");
    b->device = b->memory.device = device;
    *subject = (struct bench_subject){.state = b, .launch = launch, .destroy = destroy};
    if (device->facts.compute_capability >= 90)
        subject->set_overlap = set_overlap;
    ptxgen_status status = prepare(b, options, m, subject, err);
    if (status != PTXGEN_OK)
        destroy(b);
    return status;
}
