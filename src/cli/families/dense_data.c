/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers of a run of dense, and random numbers in them. */
#include "dense.h"

#include <math.h>
#include <string.h>

/* ---- buffers ---- */

static ptxgen_status create_buffers(struct dense_problem *p, const struct dense_layout *l,
                                    struct device *device, ptxgen_error *err)
{
    const ptxgen_dense_spec *s = &p->plan.spec;
    size_t e = ptxgen_element_size((ptxgen_element)s->type);
    const struct buffer_plan plans[] = {
        {&p->x, "x", true, rows_bytes(p->m, p->x_stride, s->k, e), l->x_offset * e},
        {&p->w, "w", true, rows_bytes(s->n, p->w_stride, s->k, e), l->w_offset * e},
        {&p->bias, "bias", s->bias, s->n * e, l->bias_offset * e},
        {&p->residual, "residual", s->residual, rows_bytes(p->m, p->residual_stride, s->n, e),
         l->residual_offset * e},
        {&p->y, "y", true, rows_bytes(p->m, p->y_stride, s->n, e), l->y_offset * e},
    };
    return buffers_create(device, plans, sizeof plans / sizeof *plans, err);
}

ptxgen_status dense_allocate(struct dense_problem *p, const struct dense_options *options,
                             uint32_t m, const struct dense_layout *l, struct device *device,
                             ptxgen_error *err)
{
    ptxgen_target target = ptxgen_device_target(&device->facts);
    memset(p, 0, sizeof *p);
    ptxgen_status status = dense_make_plan(options, m, &target, &p->plan, err);
    if (status != PTXGEN_OK)
        return status;
    p->m = m;
    p->x_stride = p->plan.spec.k + l->x_gap;
    p->w_stride = p->plan.spec.k + l->w_gap;
    p->residual_stride = p->plan.spec.n + l->residual_gap;
    p->y_stride = p->plan.spec.n + l->y_gap;
    p->in_place = l->in_place;
    status = create_buffers(p, l, device, err);
    if (status != PTXGEN_OK)
        dense_release(p);
    return status;
}

void dense_release(struct dense_problem *p)
{
    struct buffer *all[] = {&p->x, &p->w, &p->bias, &p->residual, &p->y, &p->workspace};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        buffer_destroy(all[i]);
    memset(p, 0, sizeof *p);
}

/* ---- random numbers ---- */

void dense_fill(struct dense_problem *p, struct random *r)
{
    const ptxgen_dense_spec *s = &p->plan.spec;
    ptxgen_element type = (ptxgen_element)s->type;
    random_elements(r, type, p->x.host, p->m, p->x_stride, s->k);
    random_elements(r, type, p->w.host, s->n, p->w_stride, s->k);
    random_elements(r, type, p->bias.host, 1, 0, s->n);
    random_elements(r, type, p->residual.host, p->m, p->residual_stride, s->n);
}

void dense_disturb(struct dense_problem *p, struct random *r)
{
    static const double values[] = {NAN, INFINITY, -INFINITY};
    const ptxgen_dense_spec *s = &p->plan.spec;
    ptxgen_element type = (ptxgen_element)s->type;
    for (uint64_t row = 0; row < p->m; row++) {
        uint32_t kind = random_below(r, 12);
        if (kind < 3)
            ptxgen_element_store(type, p->x.host, row * p->x_stride + random_below(r, s->k),
                                 values[kind]);
        else if (kind < 6 && s->residual)
            ptxgen_element_store(type, p->residual.host,
                                 row * p->residual_stride + random_below(r, s->n),
                                 values[kind % 3]);
    }
}
