/* SPDX-License-Identifier: Apache-2.0 */
/* bench sparse24: random operands, the weights several times over. */
#include "sparse24.h"

#include "../../harness/bench_emission.h"
#include "../../harness/bench_time.h"
#include "../../harness/progress.h"

#include <stdlib.h>

struct bench_state {
    struct device *device;
    ptxgen_sparse24 *kernel;
    ptxgen_sparse24_args args; /* over the first copy */
    uint64_t copy_bytes;
    struct bench_memory memory;
};

/* ---- launching ---- */

static ptxgen_status launch(void *state, uint32_t copy, ptxgen_error *err)
{
    const struct bench_state *b = state;
    ptxgen_sparse24_args args = b->args;
    args.w += copy * b->copy_bytes;
    return ptxgen_sparse24_launch(b->kernel, &args, b->device->stream, err);
}

static ptxgen_status launch_inflate(void *state, uint32_t copy, ptxgen_error *err)
{
    const struct bench_state *b = state;
    return ptxgen_sparse24_inflate(b->kernel, b->args.w + copy * b->copy_bytes, b->args.workspace,
                                   b->device->stream, err);
}

static void destroy(void *state)
{
    struct bench_state *b = state;
    bench_free(&b->memory);
    ptxgen_sparse24_destroy(b->kernel);
    free(b);
}

/* ---- operands ---- */

/* A weight of random numbers below 2 in magnitude, with valid metadata: packed on the host. */
static ptxgen_status allocate_weights(struct bench_state *b, const ptxgen_sparse24_spec *s,
                                      uint32_t copies, ptxgen_error *err)
{
    static const unsigned char nibbles[] = {0x4, 0x8, 0xC, 0x9, 0xD, 0xE};
    size_t values_bytes = (size_t)s->n * s->k / 2 * sparse24_x_element(s);
    size_t metadata_bytes = (size_t)s->n * s->k / 4;
    unsigned char *values = malloc(values_bytes), *metadata = malloc(metadata_bytes);
    unsigned char *packed = malloc(b->copy_bytes);
    ptxgen_status status = PTXGEN_ERROR_OUT_OF_MEMORY;
    if (values && metadata && packed) {
        struct random r = random_start(1);
        random_fill(&r, values, values_bytes);
        random_fill(&r, metadata, metadata_bytes);
        size_t element = sparse24_x_element(s);
        for (size_t i = element - 1; i < values_bytes && element > 1; i += element)
            values[i] &= 0xBF; /* the exponent's top bit */
        for (size_t i = 0; i < metadata_bytes; i++)
            metadata[i] = nibbles[metadata[i] % 6];
        status = ptxgen_sparse24_pack(s, (ptxgen_const_span){values, values_bytes},
                                      PTXGEN_SPARSE24_BYTES,
                                      (ptxgen_const_span){metadata, metadata_bytes},
                                      (ptxgen_span){packed, b->copy_bytes}, err);
        if (status == PTXGEN_OK)
            status = bench_copied_memory(&b->memory, "the weights", packed, b->copy_bytes, copies,
                                         &b->args.w, err);
    } else
        ptxgen_fail(err, status, "no memory for a weight of %u by %u", s->n, s->k);
    free(values);
    free(metadata);
    free(packed);
    return status;
}

static ptxgen_status allocate_workspace(struct bench_state *b, ptxgen_error *err)
{
    ptxgen_status status =
        ptxgen_sparse24_workspace_bytes(b->kernel, &b->args, &b->args.workspace_bytes, err);
    return status == PTXGEN_OK
               ? bench_zeroed_memory(&b->memory, "allocating the workspace",
                                     b->args.workspace_bytes, &b->args.workspace, err)
               : status;
}

static ptxgen_status allocate_operands(struct bench_state *b, const ptxgen_sparse24_spec *s,
                                       uint32_t m, ptxgen_error *err)
{
    bool scaled = s->type == PTXGEN_SPARSE24_S8;
    size_t x = sparse24_x_element(s), y = ptxgen_element_size((ptxgen_element)s->y_type);
    const struct bench_operand operands[] = {
        {"X", true, m * s->k * x, x < 2 ? 2 : x, &b->args.x},
        {"Y", true, m * s->n * y, y, &b->args.y},
        {"the residual", s->residual, m * s->n * y, y, &b->args.residual},
        {"the bias", s->bias, s->n * y, y, &b->args.bias},
        {"scales of X", scaled, 4 * (size_t)m, 4, &b->args.x_scale},
        {"scales of W", scaled, 4 * (size_t)s->n, 4, &b->args.w_scale},
    };
    b->args.m = m;
    ptxgen_status status =
        bench_random_operands(&b->memory, operands, sizeof operands / sizeof *operands, err);
    return status == PTXGEN_OK ? allocate_workspace(b, err) : status;
}

/* ---- from spec to loaded kernel, timed ---- */

static ptxgen_status emit(const void *plan, ptx_module *module, ptxgen_error *err)
{
    return ptxgen_sparse24_emit(plan, ~0u, module, err);
}

static ptxgen_status describe(const ptxgen_sparse24_plan *plan, const ptxgen_sparse24 *kernel,
                              uint32_t m, struct bench_subject *s, ptxgen_error *err)
{
    const ptxgen_kernel_attributes *attributes = ptxgen_sparse24_attributes(kernel, m);
    struct work work;
    ptxgen_status status = sparse24_work(&plan->spec, m, &work, err);
    if (status != PTXGEN_OK)
        return status;
    sparse24_name(&plan->spec, m, s->shape, sizeof s->shape);
    s->bytes = work.bytes;
    s->flops = work.flops;
    s->k = plan->spec.k;
    s->n = plan->spec.n;
    s->m = m;
    s->type = (ptxgen_element)plan->spec.y_type;
    s->shared_bytes = (int)(plan->variant_count ? plan->variants[0].shared_bytes
                                                : plan->dense.variants[0].shared_bytes);
    s->registers = attributes->registers;
    s->local_bytes = attributes->local_bytes;
    return ptxgen_sparse24_ctas(plan, m, &s->grid, err);
}

static ptxgen_status prepare(struct bench_state *b, const struct sparse24_options *o, uint32_t m,
                             struct bench_subject *s, ptxgen_error *err)
{
    ptxgen_target target = ptxgen_device_target(&b->device->facts);
    ptxgen_sparse24_plan plan;
    size_t bytes = 0;
    double started = now_seconds();
    ptxgen_status status = sparse24_make_plan(o, m, &target, &plan, err);
    s->plan_seconds = now_seconds() - started;
    if (status == PTXGEN_OK)
        status = bench_emission(b->device, &target, emit, &plan, s, err);
    if (status == PTXGEN_OK)
        status = ptxgen_sparse24_load(&b->device->driver, &plan, NULL, &b->kernel, err);
    if (status == PTXGEN_OK)
        status = ptxgen_sparse24_packed_bytes(&plan.spec, &bytes, err);
    if (status == PTXGEN_OK)
        status = describe(&plan, b->kernel, m, s, err);
    if (status != PTXGEN_OK)
        return status;
    s->weight_bytes = b->copy_bytes = bytes;
    s->copies = bench_copies(b->device, s->weight_bytes);
    status = allocate_operands(b, &plan.spec, m, err);
    return status == PTXGEN_OK ? allocate_weights(b, &plan.spec, s->copies, err) : status;
}

ptxgen_status sparse24_bench(const void *options, uint32_t m, struct device *device,
                             struct bench_subject *subject, ptxgen_error *err)
{
    struct bench_state *b = calloc(1, sizeof *b);
    if (!b)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for a bench");
    b->device = b->memory.device = device;
    *subject = (struct bench_subject){.state = b, .launch = launch, .destroy = destroy};
    ptxgen_status status = prepare(b, options, m, subject, err);
    const ptxgen_sparse24_spec *s = &((const struct sparse24_options *)options)->spec;
    if (device->facts.compute_capability >= 90 && s->type != PTXGEN_SPARSE24_F32 && s->tier != 1)
        subject->overlap = &b->args.overlap_previous;
    if (((const struct sparse24_options *)options)->inflate) {
        subject->launch = launch_inflate;
        subject->bytes = b->copy_bytes + (uint64_t)s->n * s->k * sparse24_x_element(s);
        subject->flops = 0;
    }
    if (status != PTXGEN_OK)
        destroy(b);
    return status;
}
