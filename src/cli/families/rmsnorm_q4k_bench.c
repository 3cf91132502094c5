/* SPDX-License-Identifier: Apache-2.0 */
/* bench rmsnorm_q4k: random operands, the weights several times over. */
#include "rmsnorm_q4k.h"

#include "../bench_time.h"
#include "../progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bench_state {
    struct device *device;
    ptxgen_rmsnorm_q4k *kernel;
    ptxgen_rmsnorm_q4k_args args; /* over the first copy */
    uint64_t copy_bytes;
    ptxgen_cu_deviceptr memory[6]; /* to be freed */
    int memory_count;
};

/* ---- launching ---- */

static ptxgen_status launch(void *state, uint32_t copy, ptxgen_error *err)
{
    const struct bench_state *b = state;
    ptxgen_rmsnorm_q4k_args args = b->args;
    for (int i = 0; i < MATRICES; i++)
        if (args.weights[i])
            args.weights[i] += copy * b->copy_bytes;
    return ptxgen_rmsnorm_q4k_launch(b->kernel, &args, b->device->stream, err);
}

static void set_overlap(void *state, bool overlap)
{
    ((struct bench_state *)state)->args.overlap_previous = overlap;
}

static void destroy(void *state)
{
    struct bench_state *b = state;
    for (int i = 0; i < b->memory_count; i++)
        b->device->driver.mem_free(b->memory[i]);
    ptxgen_rmsnorm_q4k_destroy(b->kernel);
    free(b);
}

/* ---- operands ---- */

/* Random bits of f16, bf16 or f32 below 2 in magnitude: the exponent's top bit cleared. */
static ptxgen_status allocate(struct bench_state *b, const char *what, size_t bytes, size_t element,
                              uint64_t *address, ptxgen_error *err)
{
    ptxgen_cu_deviceptr memory = 0;
    uint64_t mask = element == 4 ? 0xBFFFFFFFBFFFFFFF : 0xBFFFBFFFBFFFBFFF;
    ptxgen_status status = bench_random_memory(b->device, what, bytes, mask, &memory, err);
    if (memory)
        b->memory[b->memory_count++] = memory;
    *address = memory;
    return status;
}

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
    ptxgen_cu_deviceptr memory = 0;
    place_matrices(s, offsets);
    ptxgen_cu_result result = b->device->driver.mem_alloc(&memory, copies * bytes);
    if (result != PTXGEN_CUDA_SUCCESS)
        return ptxgen_driver_fail(&b->device->driver, result, err,
                                  "allocating %u copies of the weights", copies);
    b->memory[b->memory_count++] = memory;
    for (unsigned i = 0; i < rmsnorm_q4k_matrices(s); i++)
        b->args.weights[i] = memory + offsets[i];
    unsigned char *host = calloc(bytes + PTXGEN_Q4K_BLOCK_BYTES, 1);
    if (!host)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for the weights");
    struct random r = random_start(1);
    for (unsigned i = 0; i < rmsnorm_q4k_matrices(s); i++)
        rmsnorm_q4k_random_weights(&r, host + offsets[i],
                                   (size_t)s->n[i] * (s->k / PTXGEN_Q4K_BLOCK_WEIGHTS));
    ptxgen_status status =
        device_check(b->device, b->device->driver.memcpy_htod(memory, host, bytes),
                     "copying the weights to the device", err);
    free(host);
    return status == PTXGEN_OK ? bench_repeat_memory(b->device, memory, bytes, copies * bytes, err)
                               : status;
}

static ptxgen_status allocate_operands(struct bench_state *b, const ptxgen_rmsnorm_q4k_spec *s,
                                       uint32_t m, uint32_t copies, ptxgen_error *err)
{
    size_t x_size = ptxgen_element_size((ptxgen_element)s->x_type);
    size_t y_size = ptxgen_element_size((ptxgen_element)s->y_type);
    size_t x_bytes = (size_t)m * s->k * x_size, rows = (size_t)s->n[0] + s->n[1] + s->n[2];
    uint64_t y = 0, bias = 0;
    ptxgen_status status = allocate(b, "x", x_bytes, x_size, &b->args.x, err);
    if (status == PTXGEN_OK && s->residual)
        status = allocate(b, "the residual", 2 * x_bytes, x_size, &b->args.residual, err);
    if (status == PTXGEN_OK)
        status = allocate(b, "gamma", 4 * (size_t)s->k, 4, &b->args.gamma, err);
    if (status == PTXGEN_OK && s->bias)
        status = allocate(b, "bias", 4 * rows, 4, &bias, err);
    if (status == PTXGEN_OK)
        status = allocate(b, "y", m * rows * y_size, y_size, &y, err);
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

/* Emits; the module, which the caller destroys, owns the text. */
static ptxgen_status emit(const ptxgen_rmsnorm_q4k_plan *plan, ptx_module **module,
                          const char **text, size_t *length, double *seconds, ptxgen_error *err)
{
    double started = now_seconds();
    *module = ptx_module_create(&plan->target.ptx, NULL);
    if (!*module)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for a module");
    ptxgen_status status = ptxgen_rmsnorm_q4k_emit(plan, *module, err);
    if (status == PTXGEN_OK)
        status = ptx_module_text(*module, 0, text, length, err);
    *seconds = now_seconds() - started;
    return status;
}

enum { EMISSIONS = 11, LOADS = 7 };

static ptxgen_status time_loads(struct device *device, const char *text, double *seconds,
                                ptxgen_error *err)
{
    ptxgen_status status = PTXGEN_OK;
    double each[LOADS];
    for (int i = 0; status == PTXGEN_OK && i < LOADS; i++) {
        ptxgen_module *loaded = NULL;
        double started = now_seconds();
        status = ptxgen_module_load_ptx(&device->driver, text, NULL, &loaded, err);
        each[i] = now_seconds() - started;
        ptxgen_module_destroy(loaded);
    }
    if (status == PTXGEN_OK)
        *seconds = bench_median(each, LOADS);
    return status;
}

/* Medians: of several emissions, and of several loads of the text with nothing cached. */
static ptxgen_status time_emission(const ptxgen_rmsnorm_q4k_plan *plan, struct device *device,
                                   struct bench_subject *subject, ptxgen_error *err)
{
    double seconds[EMISSIONS];
    ptx_module *module = NULL;
    const char *text = NULL;
    size_t length = 0;
    ptxgen_status status = PTXGEN_OK;
    for (int i = 0; status == PTXGEN_OK && i < EMISSIONS; i++) {
        ptx_module_destroy(module);
        status = emit(plan, &module, &text, &length, &seconds[i], err);
    }
    subject->text_bytes = length;
    if (status == PTXGEN_OK) {
        subject->emit_seconds = bench_median(seconds, EMISSIONS);
        status = time_loads(device, text, &subject->jit_seconds, err);
    }
    ptx_module_destroy(module);
    return status;
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
        status = time_emission(&plan, b->device, s, err);
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
    b->device = device;
    *subject = (struct bench_subject){.state = b, .launch = launch, .destroy = destroy};
    if (device->facts.compute_capability >= 90)
        subject->set_overlap = set_overlap;
    ptxgen_status status =
        prepare(b, &((const struct rmsnorm_q4k_options *)options)->spec, m, subject, err);
    if (status != PTXGEN_OK)
        destroy(b);
    return status;
}
