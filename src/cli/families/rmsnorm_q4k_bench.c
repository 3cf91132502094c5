/* SPDX-License-Identifier: Apache-2.0 */
/* bench rmsnorm_q4k: random operands, the weights several times over. */
#include "rmsnorm_q4k.h"

#include "../../harness/bench_emission.h"
#include "../../harness/bench_time.h"
#include "../../harness/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bench_state {
    struct device *device;
    ptxgen_rmsnorm_q4k *kernel;
    ptxgen_rmsnorm_q4k_args args; /* over the first copy */
    uint64_t copy_bytes;
    struct bench_memory memory;
};

/* ---- launching ---- */

static ptxgen_status launch(void *state, uint32_t copy, ptxgen_error *err)
{
    const struct bench_state *b = state;
    ptxgen_rmsnorm_q4k_args args = b->args;
    for (int i = 0; i < MATRICES; i++)
        if (args.w[i])
            args.w[i] += copy * b->copy_bytes;
    return ptxgen_rmsnorm_q4k_launch(b->kernel, &args, b->device->stream, err);
}

static void destroy(void *state)
{
    struct bench_state *b = state;
    bench_free(&b->memory);
    ptxgen_rmsnorm_q4k_destroy(b->kernel);
    free(b);
}

/* ---- operands ---- */

/* All matrices of a copy one after another, each at a multiple of 256 bytes. */
static uint64_t place_matrices(const ptxgen_rmsnorm_q4k_spec *s, uint64_t offsets[MATRICES])
{
    uint64_t at = 0;
    for (unsigned i = 0; i < rmsnorm_q4k_matrices(s); i++) {
        offsets[i] = at;
        at += (uint64_t)s->n[i] * (s->k / PTXGEN_Q4K_BLOCK_WEIGHTS) * PTXGEN_Q4K_BLOCK_BYTES;
        at = (at + 255) / 256 * 256;
    }
    return at;
}

static ptxgen_status allocate_weights(struct bench_state *b, const ptxgen_rmsnorm_q4k_spec *s,
                                      uint32_t copies, ptxgen_error *err)
{
    uint64_t offsets[MATRICES], bytes = b->copy_bytes;
    uint64_t memory = 0;
    place_matrices(s, offsets);
    unsigned char *host = calloc(bytes + PTXGEN_Q4K_BLOCK_BYTES, 1);
    if (!host)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for the weights");
    struct random r = random_start(1);
    for (unsigned i = 0; i < rmsnorm_q4k_matrices(s); i++)
        rmsnorm_q4k_random_weights(&r, host + offsets[i],
                                   (size_t)s->n[i] * (s->k / PTXGEN_Q4K_BLOCK_WEIGHTS));
    ptxgen_status status =
        bench_copied_memory(&b->memory, "the weights", host, bytes, copies, &memory, err);
    free(host);
    for (unsigned i = 0; i < rmsnorm_q4k_matrices(s); i++)
        b->args.w[i] = memory + offsets[i];
    return status;
}

static ptxgen_status allocate_operands(struct bench_state *b, const ptxgen_rmsnorm_q4k_spec *s,
                                       uint32_t m, uint32_t copies, ptxgen_error *err)
{
    size_t x_size = ptxgen_element_size((ptxgen_element)s->x_type);
    size_t y_size = ptxgen_element_size((ptxgen_element)s->y_type);
    size_t x_bytes = (size_t)m * s->k * x_size, rows = (size_t)s->n[0] + s->n[1] + s->n[2];
    uint64_t y = 0, bias = 0;
    ptxgen_status status = bench_random_elements(&b->memory, "x", x_bytes, x_size, &b->args.x, err);
    if (status == PTXGEN_OK && s->residual)
        status = bench_random_elements(&b->memory, "the residual", 2 * x_bytes, x_size,
                                       &b->args.residual, err);
    if (status == PTXGEN_OK)
        status =
            bench_random_elements(&b->memory, "gamma", 4 * (size_t)s->k, 4, &b->args.gamma, err);
    if (status == PTXGEN_OK && s->bias)
        status = bench_random_elements(&b->memory, "bias", 4 * rows, 4, &bias, err);
    if (status == PTXGEN_OK)
        status = bench_random_elements(&b->memory, "y", m * rows * y_size, y_size, &y, err);
    b->args.residual_out = b->args.residual + x_bytes;
    for (unsigned i = 0; i < rmsnorm_q4k_matrices(s); i++) {
        b->args.bias[i] = bias;
        b->args.y[i] = y;
        bias += 4 * (uint64_t)s->n[i];
        y += (uint64_t)m * s->n[i] * y_size;
    }
    b->args.m = m;
    return status == PTXGEN_OK ? allocate_weights(b, s, copies, err) : status;
}

/* ---- from spec to loaded kernel, timed ---- */

static ptxgen_status emit(const void *plan, ptx_module *module, ptxgen_error *err)
{
    return ptxgen_rmsnorm_q4k_emit(plan, ~0u, module, err);
}

static void describe(const ptxgen_rmsnorm_q4k_plan *plan, const ptxgen_rmsnorm_q4k *kernel,
                     uint32_t m, struct bench_subject *s)
{
    const ptxgen_rmsnorm_q4k_variant *v = ptxgen_rmsnorm_q4k_choose(plan, m);
    const ptxgen_kernel_attributes *attributes = ptxgen_rmsnorm_q4k_attributes(kernel, m);
    struct work work;
    rmsnorm_q4k_work(&plan->spec, m, &work);
    rmsnorm_q4k_name(&plan->spec, m, s->shape, sizeof s->shape);
    s->bytes = work.bytes;
    s->flops = work.flops;
    s->k = plan->spec.k;
    s->n = plan->spec.n[0] + plan->spec.n[1] + plan->spec.n[2];
    s->m = m;
    s->grid = v->grid;
    s->shared_bytes = (int)v->shared_bytes;
    s->registers = attributes->registers;
    s->local_bytes = attributes->local_bytes;
}

static ptxgen_status prepare(struct bench_state *b, const ptxgen_rmsnorm_q4k_spec *spec, uint32_t m,
                             struct bench_subject *s, ptxgen_error *err)
{
    ptxgen_target target = ptxgen_device_target(&b->device->facts);
    ptxgen_rmsnorm_q4k_plan plan;
    double started = now_seconds();
    ptxgen_status status = rmsnorm_q4k_make_plan(spec, m, &target, &plan, err);
    s->plan_seconds = now_seconds() - started;
    if (status == PTXGEN_OK)
        status = bench_emission(b->device, &target, emit, &plan, s, err);
    if (status == PTXGEN_OK)
        status = ptxgen_rmsnorm_q4k_load(&b->device->driver, &plan, NULL, &b->kernel, err);
    if (status != PTXGEN_OK)
        return status;
    uint64_t offsets[MATRICES];
    describe(&plan, b->kernel, m, s);
    b->copy_bytes = place_matrices(spec, offsets);
    s->weight_bytes = b->copy_bytes;
    s->copies = bench_copies(b->device, b->copy_bytes);
    return allocate_operands(b, spec, m, s->copies, err);
}

ptxgen_status rmsnorm_q4k_bench(const void *options, uint32_t m, struct device *device,
                                struct bench_subject *subject, ptxgen_error *err)
{
    struct bench_state *b = calloc(1, sizeof *b);
    if (!b)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for a bench");
    b->device = b->memory.device = device;
    *subject = (struct bench_subject){.state = b, .launch = launch, .destroy = destroy};
    if (device->facts.compute_capability >= 90)
        subject->overlap = &b->args.overlap_previous;
    ptxgen_status status =
        prepare(b, &((const struct rmsnorm_q4k_options *)options)->spec, m, subject, err);
    if (status != PTXGEN_OK)
        destroy(b);
    return status;
}
