/* SPDX-License-Identifier: Apache-2.0 */
#include "problem.h"

#include "launch_check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory ---- */

static ptxgen_status create_buffers(struct problem *p, const struct layout *l,
                                    struct device *device, ptxgen_error *err)
{
    ptxgen_status status = PTXGEN_OK;
    for (unsigned i = 0; status == PTXGEN_OK && i < p->count; i++) {
        const struct operand *o = &p->operands[i];
        p->strides[i] = (o->pitch ? o->pitch : o->columns) + (o->stride ? l->gap[i] : 0);
        if (o->used)
            status = buffer_create(device, o->name, operand_bytes(o, p->strides[i]),
                                   l->shift[i] * o->shift, &p->buffers[i], err);
    }
    return status;
}

ptxgen_status problem_allocate(struct problem *p, const struct harness *h,
                               const struct kernel_request *request, uint64_t m,
                               const struct layout *l, struct device *device, ptxgen_error *err)
{
    static const struct layout packed;
    ptxgen_target target = ptxgen_device_target(&device->facts);
    *p = (struct problem){.harness = h, .m = m, .in_place = l && l->in_place};
    memcpy(p->spec, request->spec, h->family()->spec_bytes);
    ptxgen_status status = harness_new_plan(h, request, m, &target, &p->plan, NULL, err);
    if (status != PTXGEN_OK)
        return status;
    p->count = h->operands(p->plan, m, p->operands);
    status = create_buffers(p, l ? l : &packed, device, err);
    if (status != PTXGEN_OK)
        problem_release(p);
    return status;
}

void problem_release(struct problem *p)
{
    for (unsigned i = 0; i < MOST_OPERANDS; i++)
        buffer_destroy(&p->buffers[i]);
    buffer_destroy(&p->workspace);
    if (p->own && p->harness->release)
        p->harness->release(p);
    free(p->expected.values);
    free(p->plan);
    memset(p, 0, sizeof *p);
}

/* ---- random numbers ---- */

ptxgen_status problem_fill(struct problem *p, struct random *r, ptxgen_error *err)
{
    for (unsigned i = 0; i < p->count; i++)
        if (p->operands[i].used && p->operands[i].deviation > 0)
            operand_fill(&p->operands[i], p->strides[i], p->buffers[i].host, r);
    if (p->harness->fill)
        return p->harness->fill(p, r, err);
    ptxgen_status status = PTXGEN_OK;
    for (unsigned i = 0; status == PTXGEN_OK && i < p->count; i++)
        if (p->operands[i].used && p->operands[i].random)
            status = p->operands[i].random(&p->operands[i], p->plan, r, p->buffers[i].host, err);
    return status;
}

void problem_fill_ones(struct problem *p, unsigned operand)
{
    const struct operand *o = &p->operands[operand];
    for (uint64_t i = 0; o->used && i < o->columns; i++)
        typed_store(o->type, p->buffers[operand].host, i, 1);
}

static void scale_row(const struct operand *o, unsigned char *row, double factor)
{
    for (uint64_t i = 0; i < o->columns; i++)
        typed_store(o->type, row, i, typed_load(o->type, row, i) * factor);
}

static void make_huge(const struct operand *o, unsigned char *row, double huge, struct random *r)
{
    for (uint64_t i = 0; i < o->columns; i++) {
        double sign = copysign(1, typed_load(o->type, row, i));
        typed_store(o->type, row, i, sign * huge * (1 + random_normal(r) / 72));
    }
}

/* A NaN or an infinity somewhere in the row, or another factor for all of it. */
static void disturb_row(const struct harness *h, const struct operand *o, unsigned char *row,
                        struct random *r)
{
    enum { ELEMENTS = 3, KINDS = 16 };
    static const double elements[ELEMENTS] = {NAN, INFINITY, -INFINITY};
    bool multiplies = o->role == OPERAND_X;
    uint32_t kind = random_below(r, KINDS);
    if (o->type < 0)
        return;
    if (kind < ELEMENTS)
        typed_store(o->type, row, random_below(r, (uint32_t)o->columns), elements[kind]);
    else if (multiplies && kind - ELEMENTS < h->factor_count)
        scale_row(o, row, h->factors[kind - ELEMENTS]);
    else if (multiplies && kind == KINDS - 1 && h->huge > 0)
        make_huge(o, row, h->huge, r);
}

/* Makes some rows of the activations and of the residual no ordinary ones. */
static void disturb(struct problem *p, struct random *r)
{
    for (unsigned i = 0; i < p->count; i++) {
        const struct operand *o = &p->operands[i];
        if (!o->used || (o->role != OPERAND_X && o->role != OPERAND_RESIDUAL))
            continue;
        size_t pitch = p->strides[i] * typed_bytes(o->type);
        for (uint64_t row = 0; row < o->rows; row++)
            disturb_row(p->harness, o, p->buffers[i].host + row * pitch, r);
    }
}

/* ---- launching ---- */

const void *problem_at(const struct problem *p, unsigned operand, uint64_t row, uint64_t column)
{
    const unsigned char *host = p->buffers[operand].host;
    size_t element = typed_bytes(p->operands[operand].type);
    return host ? host + (row * p->strides[operand] + column) * element : NULL;
}

static int find_role(const struct problem *p, enum operand_role role)
{
    for (unsigned i = 0; i < p->count; i++)
        if (p->operands[i].used && p->operands[i].role == role)
            return (int)i;
    return -1;
}

/* The operand whose buffer and stride a launch gets: of a residual in place the output. */
static unsigned placed(const struct problem *p, unsigned i)
{
    bool elsewhere = p->in_place && p->operands[i].role == OPERAND_RESIDUAL;
    return elsewhere ? (unsigned)find_role(p, OPERAND_OUTPUT) : i;
}

struct kernel_args problem_args(const struct problem *p)
{
    const struct harness *h = p->harness;
    struct kernel_args args = {{0}};
    harness_set_m(h, p->plan, p->m, &args);
    for (unsigned i = 0; i < p->count; i++) {
        unsigned at = placed(p, i);
        if (!p->operands[i].used)
            continue;
        args_set(&args, p->operands[i].address, p->buffers[at].address);
        args_set(&args, p->operands[i].bytes, p->buffers[at].bytes);
        if (p->operands[i].stride)
            args_set(&args, p->operands[i].stride, p->strides[at]);
    }
    if (h->workspace_bytes) {
        args_set(&args, h->workspace, p->workspace.address);
        args_set(&args, h->workspace_bytes, p->workspace.bytes);
    }
    return args;
}

static ptxgen_status create_workspace(const void *kernel, struct problem *p, struct device *device,
                                      uint32_t *flags, ptxgen_error *err)
{
    const struct harness *h = p->harness;
    const struct kernel_args args = problem_args(p);
    uint64_t bytes;
    if (!h->workspace_bytes)
        return PTXGEN_OK;
    ptxgen_status status = h->verbs->workspace_bytes(kernel, &args, &bytes, err);
    if (status == PTXGEN_OK)
        status = buffer_create(device, "workspace", bytes, 0, &p->workspace, err);
    if (status != PTXGEN_OK)
        return status;
    if (!h->poisons_workspace || !h->poisons_workspace(p->plan))
        memset(p->workspace.host, 0, bytes);
    return h->flags ? h->flags(p, flags, err) : h->verbs->ctas(p->plan, p->m, flags, err);
}

/* Where the output is the residual too, its rows hold that. */
static void prepare(void *problem)
{
    struct problem *p = problem;
    if (!p->in_place)
        return;
    int from = find_role(p, OPERAND_RESIDUAL), to = find_role(p, OPERAND_OUTPUT);
    const struct operand *o = &p->operands[from];
    size_t element = typed_bytes(o->type);
    for (uint64_t row = 0; row < o->rows; row++)
        memcpy(p->buffers[to].host + row * p->strides[to] * element,
               p->buffers[from].host + row * p->strides[from] * element, o->columns * element);
}

struct launching {
    const struct kernel_verbs *verbs;
    const void *kernel;
    struct kernel_args args;
    ptxgen_cu_stream stream;
};

static ptxgen_status enqueue(void *state, uint32_t copy, ptxgen_error *err)
{
    (void)copy;
    const struct launching *l = state;
    return l->verbs->launch(l->kernel, &l->args, l->stream, err);
}

static ptxgen_status compare(void *problem, struct check *check, ptxgen_error *err)
{
    return problem_compare(problem, check, err);
}

static ptxgen_status launch_and_compare(const void *kernel, struct problem *p, struct device *d,
                                        struct check *check, ptxgen_error *err)
{
    const struct harness *h = p->harness;
    struct buffer *inputs[MOST_OPERANDS], *outputs[MOST_OPERANDS];
    int x = find_role(p, OPERAND_X);
    struct launch_check c = {.problem = p,
                             .inputs = inputs,
                             .outputs = outputs,
                             .workspace = &p->workspace,
                             .activations = &p->buffers[x],
                             .activation_type = p->operands[x].type,
                             .has_rows = p->m > 0,
                             .in_place = p->in_place,
                             .prepare = prepare,
                             .launch = enqueue,
                             .compare = compare};
    for (unsigned i = 0; i < p->count; i++)
        if (p->operands[i].used && p->operands[i].role == OPERAND_OUTPUT)
            outputs[c.output_count++] = &p->buffers[i];
        else if (p->operands[i].used)
            inputs[c.input_count++] = &p->buffers[i];
    ptxgen_status status = create_workspace(kernel, p, d, &c.flags, err);
    if (status != PTXGEN_OK)
        return status;
    struct launching launching = {h->verbs, kernel, problem_args(p), d->stream};
    c.launching = &launching;
    if (h->overlap)
        c.overlap = (uint32_t *)(void *)((char *)launching.args.words + h->overlap);
    return launch_check(&c, d, check, err);
}

/* What the packs have for the spec; it holds more variants than the plan does. */
static ptxgen_status load_packed(const struct problem *p, const struct device *d, void **kernel,
                                 struct check *check, ptxgen_error *err)
{
    ptxgen_loaded *loaded;
    ptxgen_status status = ptxgen_dispatch(d->packs, p->harness->family(), p->spec, &loaded, err);
    if (status != PTXGEN_OK)
        return status;
    const ptxgen_load_report *report = ptxgen_loaded_report(loaded);
    *kernel = loaded;
    if (report->origin != PTXGEN_ORIGIN_PACK)
        return ptxgen_fail(err, PTXGEN_ERROR_NOT_FOUND,
                           "the pack has no kernel of this spec that runs on %s", d->facts.name);
    snprintf(check->source, sizeof check->source, "%s of %zu bytes",
             report->cubin_bytes ? "a cubin" : "a text",
             report->cubin_bytes ? report->cubin_bytes : report->text_bytes);
    return PTXGEN_OK;
}

ptxgen_status problem_check(struct problem *p, struct device *device, struct check *check,
                            ptxgen_error *err)
{
    const struct harness *h = p->harness;
    ptxgen_error local;
    void *kernel = NULL;
    err = err ? err : &local;
    h->name(p->plan, p->m, check->problem, sizeof check->problem);
    ptxgen_status status = device->packs ? load_packed(p, device, &kernel, check, err)
                                         : h->verbs->load(&device->driver, p->plan, &kernel, err);
    if (status == PTXGEN_OK)
        status = launch_and_compare(kernel, p, device, check, err);
    h->verbs->destroy(kernel);
    buffer_destroy(&p->workspace);
    return status;
}

/* ---- a random problem ---- */

/*
 * Views as they come: rows with a gap after them, starts some elements on, the output over the
 * residual.
 */
static struct layout draw_layout(struct random *r, const struct problem *p)
{
    struct layout l = {.in_place = find_role(p, OPERAND_RESIDUAL) >= 0 && random_below(r, 3) == 0};
    bool gaps = random_below(r, 2), shifts = gaps && random_below(r, 2);
    for (unsigned i = 0; i < p->count; i++) {
        if (gaps && p->operands[i].stride)
            l.gap[i] = random_gap(r, p->operands[i].role == OPERAND_OUTPUT ? 8 : 16);
        if (shifts)
            l.shift[i] = random_below(r, 8);
    }
    return l;
}

ptxgen_status problem_run_random(const struct harness *h, uint64_t seed, struct device *device,
                                 struct check *check, ptxgen_error *err)
{
    uint64_t spec[PROBLEM_SPEC_WORDS] = {0};
    struct random r = random_start(seed);
    struct problem p = {.harness = h};
    struct kernel_request request = {.spec = spec};
    ptxgen_target target = ptxgen_device_target(&device->facts);
    uint32_t m = h->draw(&r, device->emulated, &target, spec);
    h->name(spec, m, check->problem, sizeof check->problem);
    ptxgen_status status = harness_new_plan(h, &request, m, &target, &p.plan, NULL, err);
    if (status != PTXGEN_OK)
        return status;
    p.count = h->operands(p.plan, m, p.operands);
    free(p.plan);
    struct layout layout = draw_layout(&r, &p);
    status = problem_allocate(&p, h, &request, m, &layout, device, err);
    if (status == PTXGEN_OK)
        status = problem_fill(&p, &r, err);
    if (status == PTXGEN_OK) {
        if (random_below(&r, 4) == 0)
            disturb(&p, &r);
        status = problem_check(&p, device, check, err);
    }
    problem_release(&p);
    return status;
}
