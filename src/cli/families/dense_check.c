/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches dense on a problem, checks all that it may and may not write, and compares with the
 * reference, a slice of 64 rows and 64 columns at a time.
 */
#include "dense.h"

#include "../launch_check.h"
#include "../slices.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static size_t element_of(const struct dense_problem *p)
{
    return ptxgen_element_size((ptxgen_element)p->plan.spec.type);
}

/* ---- comparing ---- */

enum { SLICE = 64 };

/* Multiply-adds of the reference beyond which not every slice is compared. */
static const double most_work = 0x1p36;

struct comparing {
    const struct dense_problem *p;
    uint32_t across, every; /* slices along M; one in `every` is compared */
};

static const void *offset(const struct buffer *b, size_t bytes)
{
    return b->host ? b->host + bytes : NULL;
}

static ptxgen_status compare_part(void *state, uint32_t index, struct comparison *part,
                             ptxgen_error *err)
{
    const struct comparing *c = state;
    const struct dense_problem *p = c->p;
    uint64_t slice = (uint64_t)index * c->every, row = slice / c->across * SLICE;
    uint32_t all = p->plan.spec.m, column = (uint32_t)(slice % c->across) * SLICE;
    ptxgen_dense_plan plan = p->plan; /* has only the variant that was launched */
    plan.spec.m = all - column < SLICE ? all - column : SLICE;
    double y[SLICE * SLICE], bound[SLICE * SLICE];
    size_t e = element_of(p);
    const ptxgen_dense_operands operands = {
        .n = p->n - row < SLICE ? p->n - row : SLICE,
        .x = offset(&p->x, row * p->x_stride * e),
        .w = offset(&p->w, column * p->w_stride * e),
        .bias = offset(&p->bias, column * e),
        .residual = offset(&p->residual, (row * p->residual_stride + column) * e),
        .x_stride = p->x_stride,
        .w_stride = p->w_stride,
        .residual_stride = p->residual_stride,
    };
    ptxgen_status status = ptxgen_dense_reference(&plan, &operands, y, bound, err);
    if (status != PTXGEN_OK)
        return status;
    for (size_t i = 0; i < operands.n * plan.spec.m; i++) {
        size_t at_row = row + i / plan.spec.m, at_column = column + i % plan.spec.m;
        double output = ptxgen_element_load((ptxgen_element)plan.spec.type, p->y.host,
                                            at_row * p->y_stride + at_column);
        check_output(&part->reference, "y", at_row, at_column, output, y[i], bound[i]);
    }
    return PTXGEN_OK;
}

/* Outputs that are back on the host, and the gaps between their rows. */
static ptxgen_status compare(void *problem, struct check *check, ptxgen_error *err)
{
    const struct dense_problem *p = problem;
    const ptxgen_dense_spec *s = &p->plan.spec;
    struct comparing c = {.p = p, .across = s->m / SLICE + (s->m % SLICE != 0), .every = 1};
    double all = (double)p->n * s->m * s->k;
    if (all > most_work)
        c.every = (uint32_t)ceil(all / most_work);
    while (c.every > 1 && c.across % c.every == 0) /* so that every column has its turn */
        c.every++;
    uint64_t slices = (uint64_t)c.across * (((uint64_t)p->n + SLICE - 1) / SLICE);
    uint32_t compared = (uint32_t)((slices + c.every - 1) / c.every);
    struct comparison total = {.reference = {.outputs = 0}};
    buffer_check_gaps(&p->y, p->n, s->m, p->y_stride, element_of(p), check);
    ptxgen_status status = compare_slices("comparing with the reference, slices of 64 by 64",
                                          compared, compare_part, &c, &total, err);
    if (status != PTXGEN_OK)
        return status;
    check_add(check, &total.reference);
    if (compared < slices)
        snprintf(check->note, sizeof check->note,
                 "%u of %" PRIu64 " slices of 64 by 64 outputs were compared", compared, slices);
    return PTXGEN_OK;
}

/* ---- launching ---- */

static ptxgen_dense_args arguments_of(const struct dense_problem *p)
{
    return (ptxgen_dense_args){
        .n = p->n,
        .x = p->x.address,
        .w = p->w.address,
        .bias = p->bias.address,
        .residual = p->in_place ? p->y.address : p->residual.address,
        .y = p->y.address,
        .x_stride = p->x_stride,
        .w_stride = p->w_stride,
        .residual_stride = p->in_place ? p->y_stride : p->residual_stride,
        .y_stride = p->y_stride,
        .workspace = p->workspace.address,
        .workspace_bytes = p->workspace.bytes,
    };
}

static ptxgen_status create_workspace(const ptxgen_dense *kernel, struct dense_problem *p,
                                      struct device *d, ptxgen_error *err)
{
    const ptxgen_dense_args args = arguments_of(p);
    uint64_t bytes;
    ptxgen_status status = ptxgen_dense_workspace_bytes(kernel, &args, &bytes, err);
    return status == PTXGEN_OK ? buffer_create_workspace(d, bytes, &p->workspace, err) : status;
}

/* Where Y is the residual too, its rows hold that. */
static void prepare(void *problem)
{
    struct dense_problem *p = problem;
    size_t e = element_of(p);
    if (p->in_place)
        buffer_copy_rows(&p->y, e * p->y_stride, &p->residual, e * p->residual_stride, p->n,
                         e * p->plan.spec.m);
}

struct launching {
    const ptxgen_dense *kernel;
    ptxgen_dense_args args;
    ptxgen_cu_stream stream;
};

static ptxgen_status enqueue(void *state, uint32_t copy, ptxgen_error *err)
{
    (void)copy;
    const struct launching *l = state;
    return ptxgen_dense_launch(l->kernel, &l->args, l->stream, err);
}

static ptxgen_status launch_and_compare(const ptxgen_dense *kernel, struct dense_problem *p,
                                        struct device *d, struct check *check, ptxgen_error *err)
{
    struct buffer *const inputs[] = {&p->x, &p->w, &p->bias, &p->residual};
    struct buffer *const outputs[] = {&p->y};
    ptxgen_status status = create_workspace(kernel, p, d, err);
    if (status != PTXGEN_OK)
        return status;
    struct launching launching = {kernel, arguments_of(p), d->stream};
    const struct launch_check c = {
        .problem = p,
        .inputs = inputs,
        .outputs = outputs,
        .input_count = sizeof inputs / sizeof *inputs,
        .output_count = sizeof outputs / sizeof *outputs,
        .workspace = &p->workspace,
        .has_rows = p->n > 0,
        .in_place = p->in_place,
        .prepare = prepare,
        .launch = enqueue,
        .launching = &launching,
        .compare = compare,
    };
    return launch_check(&c, d, check, err);
}

ptxgen_status dense_check(struct dense_problem *p, struct device *device, struct check *check,
                           ptxgen_error *err)
{
    ptxgen_error local;
    ptxgen_dense *kernel = NULL;
    err = err ? err : &local;
    dense_name(&p->plan.spec, p->n, check->problem, sizeof check->problem);
    ptxgen_status status = ptxgen_dense_load(&device->driver, &p->plan, NULL, &kernel, err);
    if (status == PTXGEN_OK)
        status = launch_and_compare(kernel, p, device, check, err);
    ptxgen_dense_destroy(kernel);
    return status;
}
