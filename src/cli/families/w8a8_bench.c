/* SPDX-License-Identifier: Apache-2.0 */
/* bench w8a8: random operands, the weights several times over. */
#include "w8a8.h"

#include "../../harness/bench_emission.h"
#include "../../harness/bench_time.h"
#include "../../harness/progress.h"

#include <stdlib.h>

struct bench_state {
    struct device *device;
    struct w8a8_options options;
    ptxgen_w8a8 *kernel;
    ptxgen_w8a8_args args; /* over the first copy */
    uint64_t copy_bytes;
    struct bench_memory weights, rest; /* rest: what depends on M, and vectors of N */
};

/* ---- launching ---- */

static ptxgen_status launch(void *state, uint32_t copy, ptxgen_error *err)
{
    const struct bench_state *b = state;
    ptxgen_w8a8_args args = b->args;
    args.w += copy * b->copy_bytes;
    return ptxgen_w8a8_launch(b->kernel, &args, b->device->stream, err);
}

static void destroy(void *state)
{
    struct bench_state *b = state;
    bench_free(&b->weights);
    bench_free(&b->rest);
    ptxgen_w8a8_destroy(b->kernel);
    free(b);
}

/* ---- operands ---- */

static ptxgen_status allocate_raw(struct bench_memory *memory, const char *what, uint64_t bytes,
                                  uint64_t mask, uint64_t *address, ptxgen_error *err)
{
    ptxgen_cu_deviceptr at = 0;
    ptxgen_status status = bench_random_memory(memory->device, what, bytes, mask, &at, err);
    if (at)
        memory->items[memory->count++] = at;
    *address = at;
    return status;
}

/* Random elements below 2 in magnitude, in f64 too: the exponent's top bit cleared. */
static ptxgen_status allocate_elements(struct bench_state *b, const char *what, uint64_t count,
                                       ptxgen_element type, uint64_t *address, ptxgen_error *err)
{
    size_t size = ptxgen_element_size(type);
    uint64_t mask = size == 8   ? 0xBFFFFFFFFFFFFFFF
                    : size == 4 ? 0xBFFFFFFFBFFFFFFF
                                : 0xBFFFBFFFBFFFBFFF;
    return allocate_raw(&b->rest, what, count * size, mask, address, err);
}

static ptxgen_status allocate_operands(struct bench_state *b, const ptxgen_w8a8_plan *plan,
                                       uint32_t m, ptxgen_error *err)
{
    const ptxgen_w8a8_spec *s = &plan->spec;
    ptxgen_element work = ptxgen_w8a8_work_type(s);
    uint64_t given = s->scales == PTXGEN_W8A8_TOKEN ? m : 1;
    const struct {
        const char *what;
        bool used;
        uint64_t count;
        ptxgen_element type;
        uint64_t *address;
    } operands[] = {
        {"x", true, (uint64_t)m * s->k, (ptxgen_element)s->x_type, &b->args.x},
        {"y", true, (uint64_t)m * s->n, (ptxgen_element)s->y_type, &b->args.y},
        {"w_scale", true, s->n, work, &b->args.w_scale},
        {"w_sum", s->asymmetric, s->n, PTXGEN_F32, &b->args.w_sum},
        {"bias", s->bias, s->n, work, &b->args.bias},
        {"x_scale", s->scales, given, work, &b->args.x_scale},
        {"x_zero", s->scales && s->asymmetric, given, PTXGEN_F32, &b->args.x_zero},
    };
    b->args.m = m;
    ptxgen_status status =
        ptxgen_w8a8_workspace_bytes(b->kernel, &b->args, &b->args.workspace_bytes, err);
    for (size_t i = 0; status == PTXGEN_OK && i < sizeof operands / sizeof *operands; i++)
        if (operands[i].used)
            status = allocate_elements(b, operands[i].what, operands[i].count, operands[i].type,
                                       operands[i].address, err);
    if (status == PTXGEN_OK && b->args.workspace_bytes)
        status = allocate_raw(&b->rest, "the workspace", b->args.workspace_bytes, UINT64_MAX,
                              &b->args.workspace, err);
    return status;
}

/* ---- from spec to loaded kernel, timed ---- */

static ptxgen_status emit(const void *plan, ptx_module *module, ptxgen_error *err)
{
    return ptxgen_w8a8_emit(plan, ~0u, module, err);
}

static ptxgen_status describe(const ptxgen_w8a8_plan *plan, const ptxgen_w8a8 *kernel, uint32_t m,
                              struct bench_subject *s, ptxgen_error *err)
{
    const ptxgen_kernel_attributes *attributes = ptxgen_w8a8_attributes(kernel, m);
    struct work work;
    w8a8_work(&plan->spec, m, &work);
    w8a8_name(&plan->spec, m, s->shape, sizeof s->shape);
    s->bytes = work.bytes;
    s->flops = work.flops;
    s->k = plan->spec.k;
    s->n = plan->spec.n;
    s->m = m;
    s->type = plan->spec.x_type == PTXGEN_BF16 ? PTXGEN_BF16 : PTXGEN_F16;
    s->shared_bytes = (int)ptxgen_w8a8_choose(plan, m)->shared_bytes;
    s->registers = attributes->registers;
    s->local_bytes = attributes->local_bytes;
    return ptxgen_w8a8_ctas(plan, m, &s->grid, err);
}

/* The plan with the one variant that serves M, so that times of text are that entry's. */
static ptxgen_status plan_for(const struct w8a8_options *o, uint32_t m, const ptxgen_target *target,
                              ptxgen_w8a8_plan *plan, ptxgen_error *err)
{
    ptxgen_status status = w8a8_make_plan(o, m, target, plan, err);
    if (status == PTXGEN_OK) {
        plan->variants[0] = *ptxgen_w8a8_choose(plan, m);
        plan->variant_count = 1;
    }
    return status;
}

static ptxgen_status set_m(struct bench_subject *s, uint32_t m, ptxgen_error *err)
{
    struct bench_state *b = s->state;
    ptxgen_target target = ptxgen_device_target(&b->device->facts);
    ptxgen_w8a8_plan plan;
    double started = now_seconds();
    ptxgen_status status = plan_for(&b->options, m, &target, &plan, err);
    s->plan_seconds = now_seconds() - started;
    if (status == PTXGEN_OK)
        status = bench_emission(b->device, &target, emit, &plan, s, err);
    if (status != PTXGEN_OK)
        return status;
    bench_free(&b->rest);
    ptxgen_w8a8_destroy(b->kernel);
    b->kernel = NULL;
    status = ptxgen_w8a8_load(&b->device->driver, &plan, NULL, &b->kernel, err);
    if (status == PTXGEN_OK)
        status = describe(&plan, b->kernel, m, s, err);
    return status == PTXGEN_OK ? allocate_operands(b, &plan, m, err) : status;
}

static ptxgen_status prepare(struct bench_state *b, uint32_t m, struct bench_subject *s,
                             ptxgen_error *err)
{
    ptxgen_status status = set_m(s, m, err);
    if (status != PTXGEN_OK)
        return status;
    const ptxgen_w8a8_spec *spec = &b->options.spec;
    uint64_t stride = spec->w_stride ? spec->w_stride : spec->k;
    b->copy_bytes = (spec->n * stride + 255) / 256 * 256;
    s->weight_bytes = b->copy_bytes;
    s->copies = bench_copies(b->device, s->weight_bytes);
    return allocate_raw(&b->weights, "the weights", s->copies * b->copy_bytes, UINT64_MAX,
                        &b->args.w, err);
}

ptxgen_status w8a8_bench(const void *options, uint32_t m, struct device *device,
                         struct bench_subject *subject, ptxgen_error *err)
{
    struct bench_state *b = calloc(1, sizeof *b);
    if (!b)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for a bench");
    b->options = *(const struct w8a8_options *)options;
    b->device = b->weights.device = b->rest.device = device;
    *subject =
        (struct bench_subject){.state = b, .set_m = set_m, .launch = launch, .destroy = destroy};
    if (device->facts.compute_capability >= 90)
        subject->overlap = &b->args.overlap_previous;
    ptxgen_status status = prepare(b, m, subject, err);
    if (status != PTXGEN_OK)
        destroy(b);
    return status;
}
