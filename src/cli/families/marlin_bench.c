/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench and tune marlin: random operands, the weights several times over. What has rows is made
 * anew only when M outgrows it, a kernel only when M or the tile asks for another.
 */
#include "marlin.h"

#include "../../harness/bench_emission.h"
#include "../../harness/bench_time.h"
#include "../../harness/progress.h"

#include <stdlib.h>
#include <string.h>

struct bench_state {
    struct marlin_options options;
    bool untimed; /* a tile is given: how long it takes to get it is of no interest */
    struct device *device;
    ptxgen_marlin_plan plan; /* of the kernel: one variant */
    ptxgen_marlin *kernel;
    ptxgen_marlin_args args;     /* over the first copy */
    ptxgen_marlin_packed packed; /* sizes of a copy */
    uint32_t rows;               /* that there is room for */
    struct bench_memory weights, with_rows, workspace;
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

static void destroy(void *state)
{
    struct bench_state *b = state;
    bench_free(&b->weights);
    bench_free(&b->with_rows);
    bench_free(&b->workspace);
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
    ptxgen_status status = bench_copied_memory(&b->weights, "the order", order, k * sizeof *order,
                                               1, &b->args.order, err);
    free(order);
    return status;
}

/* All that does not grow with M. */
static ptxgen_status allocate_weights(struct bench_state *b, uint32_t copies, ptxgen_error *err)
{
    const ptxgen_marlin_spec *s = &b->options.spec;
    struct bench_memory *memory = &b->weights;
    ptxgen_status status = random_bits_memory(memory, "the codes", copies * b->packed.codes_bytes,
                                              &b->args.codes, err);
    if (status == PTXGEN_OK)
        status = bench_random_elements(memory, "the scales", copies * b->packed.scales_bytes, 2,
                                       &b->args.scales, err);
    if (status == PTXGEN_OK && b->packed.zeros_bytes)
        status = random_bits_memory(memory, "the zero points", copies * b->packed.zeros_bytes,
                                    &b->args.zeros, err);
    if (status == PTXGEN_OK && s->bias)
        status = bench_random_elements(memory, "the bias", 2 * (size_t)s->n, 2, &b->args.bias, err);
    if (status == PTXGEN_OK && s->bias && marlin_matrices(s) == 2)
        status =
            bench_random_elements(memory, "up's bias", 2 * (size_t)s->n, 2, &b->args.up_bias, err);
    return status == PTXGEN_OK && s->act_order ? allocate_order(b, s->k, err) : status;
}

/* Room for m rows; a power of two, or half of all sweeps would be allocation. */
static ptxgen_status allocate_rows(struct bench_state *b, uint32_t m, ptxgen_error *err)
{
    const ptxgen_marlin_spec *s = &b->options.spec;
    b->args.m = m;
    if (m <= b->rows)
        return PTXGEN_OK;
    size_t rows = 1;
    while (rows < m)
        rows *= 2;
    const struct bench_operand operands[] = {
        {"x", true, 2 * rows * s->k, 2, &b->args.x},
        {"y", true, 2 * rows * s->n, 2, &b->args.y},
        {"the residual", s->residual, 2 * rows * s->n, 2, &b->args.residual}};
    bench_free(&b->with_rows);
    b->rows = 0;
    ptxgen_status status =
        bench_random_operands(&b->with_rows, operands, sizeof operands / sizeof *operands, err);
    if (status == PTXGEN_OK)
        b->rows = (uint32_t)(rows <= UINT32_MAX ? rows : m);
    return status;
}

/* Every launch leaves it as it has to be for the next, of whatever entry. */
static ptxgen_status allocate_workspace(struct bench_state *b, ptxgen_error *err)
{
    uint64_t bytes;
    ptxgen_status status = ptxgen_marlin_workspace_bytes(b->kernel, &b->args, &bytes, err);
    if (status != PTXGEN_OK || bytes <= b->args.workspace_bytes)
        return status;
    bench_free(&b->workspace);
    b->args.workspace_bytes = bytes;
    return bench_zeroed_memory(&b->workspace, "allocating the workspace", bytes, &b->args.workspace,
                               err);
}

/* ---- from spec to loaded kernel, timed ---- */

static ptxgen_status emit(const void *plan, ptx_module *module, ptxgen_error *err)
{
    return ptxgen_marlin_emit(plan, ~0u, module, err);
}

static ptxgen_status describe(const struct bench_state *b, uint32_t m, struct bench_subject *s,
                              ptxgen_error *err)
{
    const ptxgen_marlin_plan *plan = &b->plan;
    const ptxgen_marlin_variant *variant = ptxgen_marlin_choose(plan, m);
    const ptxgen_kernel_attributes *attributes = ptxgen_marlin_attributes(b->kernel, m);
    struct work work;
    marlin_work(&plan->spec, m, &work);
    marlin_name(&plan->spec, m, s->shape, sizeof s->shape);
    s->bytes = work.bytes;
    s->flops = work.flops;
    s->tensor_f16 = true;
    s->k = plan->spec.k;
    s->n = marlin_matrices(&plan->spec) * plan->spec.n;
    s->m = m;
    s->type = (ptxgen_element)plan->spec.type;
    s->shared_bytes = (int)variant->shared_bytes;
    s->registers = attributes->registers;
    s->local_bytes = attributes->local_bytes;
    s->entry = ptxgen_marlin_entry(variant);
    memcpy(s->tile, variant, MARLIN_TILE_NUMBERS_BYTES);
    return ptxgen_marlin_ctas(plan, m, &s->grid, err);
}

/* Makes the plan's only kernel the state's, if it is not. */
static ptxgen_status load(struct bench_state *b, const ptxgen_marlin_plan *plan,
                          const ptxgen_target *target, struct bench_subject *s, ptxgen_error *err)
{
    ptxgen_status status = PTXGEN_OK;
    if (b->kernel && !memcmp(&b->plan.variants[0], &plan->variants[0], sizeof *plan->variants))
        return PTXGEN_OK;
    ptxgen_marlin_destroy(b->kernel);
    b->kernel = NULL;
    b->plan = *plan;
    if (!b->untimed)
        status = bench_emission(b->device, target, emit, plan, s, err);
    return status == PTXGEN_OK ? ptxgen_marlin_load(&b->device->driver, plan, NULL, &b->kernel, err)
                               : status;
}

static ptxgen_status set_m(struct bench_subject *s, uint32_t m, ptxgen_error *err)
{
    struct bench_state *b = s->state;
    ptxgen_target target = ptxgen_device_target(&b->device->facts);
    ptxgen_marlin_plan plan;
    double started = now_seconds();
    ptxgen_status status = marlin_make_plan(&b->options, m, &target, &plan, err);
    s->plan_seconds = now_seconds() - started;
    if (status != PTXGEN_OK)
        return status;
    marlin_keep_variant(&plan, m);
    status = load(b, &plan, &target, s, err);
    if (status == PTXGEN_OK)
        status = allocate_rows(b, m, err);
    if (status == PTXGEN_OK)
        status = allocate_workspace(b, err);
    return status == PTXGEN_OK ? describe(b, m, s, err) : status;
}

static void use_tile(void *state, const uint32_t tile[PTXGEN_TILE_NUMBERS])
{
    struct bench_state *b = state;
    memcpy(&b->options.tile, tile, MARLIN_TILE_NUMBERS_BYTES);
    b->untimed = true;
}

static ptxgen_status prepare(struct bench_state *b, uint32_t m, struct bench_subject *s,
                             ptxgen_error *err)
{
    ptxgen_status status = set_m(s, m, err);
    if (status == PTXGEN_OK)
        status = ptxgen_marlin_packed_layout(&b->options.spec, &b->packed, err);
    if (status != PTXGEN_OK)
        return status;
    s->weight_bytes = b->packed.codes_bytes + b->packed.scales_bytes + b->packed.zeros_bytes;
    s->copies = bench_copies(b->device, s->weight_bytes);
    return allocate_weights(b, s->copies, err);
}

ptxgen_status marlin_bench(const void *options, uint32_t m, struct device *device,
                           struct bench_subject *subject, ptxgen_error *err)
{
    struct bench_state *b = calloc(1, sizeof *b);
    if (!b)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for a bench");
    b->options = *(const struct marlin_options *)options;
    b->device = b->weights.device = b->with_rows.device = b->workspace.device = device;
    *subject = (struct bench_subject){
        .state = b, .set_m = set_m, .use_tile = use_tile, .launch = launch, .destroy = destroy};
    if (device->facts.compute_capability >= 90)
        subject->overlap = &b->args.overlap_previous;
    ptxgen_status status = prepare(b, m, subject, err);
    if (status != PTXGEN_OK)
        destroy(b);
    return status;
}
