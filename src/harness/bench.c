/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What has rows is made anew only when M outgrows it, a kernel only when M or the tile asks for
 * another.
 */
#include "bench.h"

#include "bench_time.h"
#include "progress.h"
#include "random.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_SPEC = 256, COPY_ALIGN = 256 };

struct bench_state {
    const struct harness *harness;
    struct kernel_request request; /* whose spec and tile are these: */
    uint64_t spec[MOST_SPEC / 8];
    ptxgen_tile tile;
    bool untimed; /* a tile is given: how long it takes to get it is of no interest */
    struct device *device;
    void *plan; /* of the kernel: one variant */
    void *kernel;
    uint64_t m, rows;              /* of launches, and that there is room for */
    struct kernel_args args;       /* over the first copy */
    size_t address[MOST_OPERANDS]; /* of the operands that have copies */
    uint64_t copy_bytes[MOST_OPERANDS];
    unsigned copied;
    uint64_t workspace_bytes;
    struct bench_memory weights, with_rows, workspace;
};

/* ---- launching ---- */

static struct kernel_args args_of_copy(const struct bench_state *b, uint32_t copy)
{
    struct kernel_args args = b->args;
    for (unsigned i = 0; i < b->copied; i++) {
        uint64_t first;
        memcpy(&first, (char *)args.words + b->address[i], sizeof first);
        args_set(&args, b->address[i], first + copy * b->copy_bytes[i]);
    }
    return args;
}

static ptxgen_status launch(void *state, uint32_t copy, ptxgen_error *err)
{
    const struct bench_state *b = state;
    const struct kernel_args args = args_of_copy(b, copy);
    return b->harness->verbs->launch(b->kernel, &args, b->device->stream, err);
}

static ptxgen_status launch_prologue(void *state, uint32_t copy, ptxgen_error *err)
{
    const struct bench_state *b = state;
    const struct kernel_args args = args_of_copy(b, copy);
    return b->harness->launch_prologue(b->kernel, &args, b->device->stream, err);
}

static void destroy(void *state)
{
    struct bench_state *b = state;
    bench_free(&b->weights);
    bench_free(&b->with_rows);
    bench_free(&b->workspace);
    b->harness->verbs->destroy(b->kernel);
    free(b->plan);
    free(b);
}

/* ---- operands ---- */

/* A copy that the family fills on the host, several times. */
static ptxgen_status make_on_host(struct bench_state *b, struct bench_memory *memory,
                                  const struct operand *o, uint64_t bytes, uint32_t copies,
                                  uint64_t *address, ptxgen_error *err)
{
    void *host = calloc(bytes, 1);
    struct random r = random_start(1);
    if (!host)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for %zu bytes of %s",
                           (size_t)bytes, o->name);
    ptxgen_status status = o->random(o, b->plan, &r, host, err);
    if (status == PTXGEN_OK)
        status = bench_copied_memory(memory, o->name, host, bytes, bytes * copies, address, err);
    free(host);
    return status;
}

static ptxgen_status make_operand(struct bench_state *b, struct bench_memory *memory,
                                  const struct operand *o, uint64_t bytes, uint32_t copies,
                                  ptxgen_error *err)
{
    uint64_t address = 0;
    ptxgen_status status =
        o->random ? make_on_host(b, memory, o, bytes, copies, &address, err)
                  : bench_random_memory(memory, o->name, o->type, bytes * copies, &address, err);
    args_set(&b->args, o->address, address);
    return status;
}

static uint64_t copy_bytes_of(const struct operand *o)
{
    uint64_t bytes = operand_bytes(o, o->pitch ? o->pitch : o->columns);
    return (bytes + COPY_ALIGN - 1) / COPY_ALIGN * COPY_ALIGN;
}

static ptxgen_status allocate_weights(struct bench_state *b, struct bench_subject *s,
                                      ptxgen_error *err)
{
    struct operand operands[MOST_OPERANDS];
    unsigned count = b->harness->operands(b->plan, b->m, operands);
    ptxgen_status status = PTXGEN_OK;
    s->weight_bytes = 0;
    for (unsigned i = 0; i < count; i++)
        if (operands[i].used && operands[i].role == OPERAND_WEIGHTS)
            s->weight_bytes += copy_bytes_of(&operands[i]);
    s->copies = bench_copies(b->device, s->weight_bytes);
    for (unsigned i = 0; status == PTXGEN_OK && i < count; i++) {
        if (!operands[i].used || operands[i].role != OPERAND_WEIGHTS)
            continue;
        b->address[b->copied] = operands[i].address;
        b->copy_bytes[b->copied] = copy_bytes_of(&operands[i]);
        status =
            make_operand(b, &b->weights, &operands[i], b->copy_bytes[b->copied++], s->copies, err);
    }
    return status;
}

/* Room for m rows of all else; a power of two, or half of all sweeps would be allocation. */
static ptxgen_status allocate_rest(struct bench_state *b, uint32_t m, ptxgen_error *err)
{
    struct operand operands[MOST_OPERANDS];
    uint64_t rows = 1;
    b->m = m;
    harness_set_m(b->harness, b->plan, m, &b->args);
    if (m <= b->rows)
        return PTXGEN_OK;
    while (rows < m)
        rows *= 2;
    bench_free(&b->with_rows);
    b->rows = 0;
    unsigned count = b->harness->operands(b->plan, rows, operands);
    ptxgen_status status = PTXGEN_OK;
    for (unsigned i = 0; status == PTXGEN_OK && i < count; i++)
        if (operands[i].used && operands[i].role != OPERAND_WEIGHTS)
            status = make_operand(b, &b->with_rows, &operands[i], operand_net_bytes(&operands[i]),
                                  1, err);
    if (status == PTXGEN_OK)
        b->rows = rows;
    return status;
}

/* Every launch leaves it as it has to be for the next, of whatever entry. */
static ptxgen_status allocate_workspace(struct bench_state *b, ptxgen_error *err)
{
    const struct harness *h = b->harness;
    uint64_t bytes, address = 0;
    if (!h->workspace_bytes)
        return PTXGEN_OK;
    ptxgen_status status = h->verbs->workspace_bytes(b->kernel, &b->args, &bytes, err);
    if (status != PTXGEN_OK || bytes <= b->workspace_bytes)
        return status;
    bench_free(&b->workspace);
    b->workspace_bytes = 0;
    status = bench_zeroed_memory(&b->workspace, "allocating the workspace", bytes, &address, err);
    args_set(&b->args, h->workspace, address);
    args_set(&b->args, h->workspace_bytes, bytes);
    if (status == PTXGEN_OK)
        b->workspace_bytes = bytes;
    return status;
}

/* ---- from spec to loaded kernel, timed ---- */

static ptxgen_status describe(const struct bench_state *b, const struct chosen *chosen,
                              struct bench_subject *s, ptxgen_error *err)
{
    const struct harness *h = b->harness;
    const ptxgen_kernel_attributes *attributes = h->verbs->attributes(b->kernel, b->m);
    const struct product product = h->product(b->plan);
    h->name(b->plan, b->m, s->shape, sizeof s->shape);
    harness_count(h, b->plan, b->m, &s->bytes, &s->flops);
    s->tensor_f16 = product.tensor_f16;
    s->k = product.k;
    s->n = product.n;
    s->m = (uint32_t)b->m;
    s->type = product.type;
    s->e4m3 = product.e4m3;
    s->shared_bytes = (int)chosen->shared_bytes;
    s->registers = attributes->registers;
    s->local_bytes = attributes->local_bytes;
    s->entry = chosen->entry;
    if (h->family()->tiling) {
        ptxgen_tile tile = *(const ptxgen_tile *)chosen->tile;
        for (size_t i = 0; h->family()->tiling->names[i]; i++)
            s->tile[i] = *ptxgen_tile_member(&tile, h->family()->tiling->names[i]);
    }
    if (b->request.prologue) {
        s->bytes = h->prologue_bytes(b->plan);
        s->flops = 0;
    }
    return h->verbs->ctas(b->plan, b->m, &s->grid, err);
}

/* Makes the plan's only kernel the state's, if it is not; takes the plan. */
static ptxgen_status load(struct bench_state *b, void *plan, const ptxgen_target *target,
                          struct bench_subject *s, ptxgen_error *err)
{
    const struct harness *h = b->harness;
    bool same = b->kernel && !memcmp(b->plan, plan, h->family()->plan_bytes);
    free(b->plan);
    b->plan = plan;
    if (same)
        return PTXGEN_OK;
    h->verbs->destroy(b->kernel);
    b->kernel = NULL;
    ptxgen_status status =
        b->untimed ? PTXGEN_OK : bench_emission(b->device, target, h->family(), plan, s, err);
    return status == PTXGEN_OK ? h->verbs->load(&b->device->driver, plan, &b->kernel, err) : status;
}

static ptxgen_status set_m(struct bench_subject *s, uint32_t m, ptxgen_error *err)
{
    struct bench_state *b = s->state;
    ptxgen_target target = ptxgen_device_target(&b->device->facts);
    struct chosen chosen;
    void *plan;
    double started = now_seconds();
    ptxgen_status status =
        harness_new_plan(b->harness, &b->request, m, &target, &plan, &chosen, err);
    s->plan_seconds = now_seconds() - started;
    if (status == PTXGEN_OK)
        status = load(b, plan, &target, s, err);
    if (status == PTXGEN_OK)
        status = allocate_rest(b, m, err);
    if (status == PTXGEN_OK)
        status = allocate_workspace(b, err);
    if (status != PTXGEN_OK)
        return status;
    bool can = chosen.overlaps && b->harness->overlap && !b->request.prologue &&
               b->device->facts.compute_capability >= 90;
    s->overlap = can ? (uint32_t *)(void *)((char *)b->args.words + b->harness->overlap) : NULL;
    return describe(b, &chosen, s, err);
}

static void use_tile(void *state, const uint32_t tile[PTXGEN_TILE_NUMBERS])
{
    struct bench_state *b = state;
    b->tile = (ptxgen_tile){0};
    for (size_t i = 0; b->harness->family()->tiling->names[i]; i++)
        *ptxgen_tile_member(&b->tile, b->harness->family()->tiling->names[i]) = tile[i];
    b->request.tile = &b->tile;
    b->untimed = true;
}

ptxgen_status bench_prepare(const struct harness *h, const struct kernel_request *request,
                            uint32_t m, struct device *device, struct bench_subject *subject,
                            ptxgen_error *err)
{
    struct bench_state *b = calloc(1, sizeof *b);
    if (!b)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for a bench");
    b->harness = h;
    b->request = *request;
    b->request.spec = memcpy(b->spec, request->spec, h->family()->spec_bytes);
    if (request->tile) {
        b->tile = *request->tile;
        b->request.tile = &b->tile;
    }
    b->device = b->weights.device = b->with_rows.device = b->workspace.device = device;
    *subject = (struct bench_subject){
        .state = b,
        .set_m = set_m,
        .use_tile = h->family()->tiling ? use_tile : NULL,
        .launch = request->prologue ? launch_prologue : launch,
        .destroy = destroy,
    };
    ptxgen_status status = set_m(subject, m, err);
    if (status == PTXGEN_OK)
        status = allocate_weights(b, subject, err);
    if (status != PTXGEN_OK)
        destroy(b);
    return status;
}
