/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers of a run of w8a8, and random numbers in them. */
#include "w8a8.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- buffers ---- */

static ptxgen_status create_buffers(struct w8a8_problem *p, const struct w8a8_layout *l,
                                    struct device *device, ptxgen_error *err)
{
    const ptxgen_w8a8_spec *s = &p->plan.spec;
    size_t x = ptxgen_element_size((ptxgen_element)s->x_type);
    size_t y = ptxgen_element_size((ptxgen_element)s->y_type);
    size_t work = ptxgen_element_size(ptxgen_w8a8_work_type(s)), scales = l->scale_offset * work;
    size_t w = (size_t)l->w_offset * p->plan.copy_bytes;
    size_t given = s->scales == PTXGEN_W8A8_TOKEN ? p->m : 1;
    const struct buffer_plan plans[] = {
        {&p->x, "x", true, rows_bytes(p->m, p->x_stride, s->k, x), l->x_offset * x},
        {&p->w, "w", true, (size_t)s->n * s->w_stride, w},
        {&p->w_scale, "w_scale", true, s->n * work, scales},
        {&p->w_sum, "w_sum", s->asymmetric, s->n * sizeof(int32_t), l->scale_offset * 4},
        {&p->bias, "bias", s->bias, s->n * work, scales},
        {&p->x_scale, "x_scale", s->scales, given * work, scales},
        {&p->x_zero, "x_zero", s->scales && s->asymmetric, given * sizeof(int32_t), 0},
        {&p->y, "y", true, rows_bytes(p->m, p->y_stride, s->n, y), l->y_offset * y},
    };
    return buffers_create(device, plans, sizeof plans / sizeof *plans, err);
}

ptxgen_status w8a8_allocate(struct w8a8_problem *p, const struct w8a8_options *options, uint32_t m,
                            const struct w8a8_layout *l, struct device *device, ptxgen_error *err)
{
    ptxgen_target target = ptxgen_device_target(&device->facts);
    memset(p, 0, sizeof *p);
    ptxgen_status status = w8a8_make_plan(options, m, &target, &p->plan, err);
    if (status != PTXGEN_OK)
        return status;
    p->m = m;
    p->x_stride = p->plan.spec.k + l->x_gap;
    p->y_stride = p->plan.spec.n + l->y_gap;
    status = create_buffers(p, l, device, err);
    if (status != PTXGEN_OK)
        w8a8_release(p);
    return status;
}

void w8a8_release(struct w8a8_problem *p)
{
    struct buffer *all[] = {&p->x,       &p->w,      &p->w_scale, &p->w_sum,    &p->bias,
                            &p->x_scale, &p->x_zero, &p->y,       &p->workspace};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        buffer_destroy(all[i]);
    free(p->expected.values);
    memset(p, 0, sizeof *p);
}

/* ---- random numbers ---- */

static int32_t random_code(struct random *r, const ptxgen_w8a8_spec *s)
{
    return s->q_min + (int32_t)random_below(r, (uint32_t)(s->q_max - s->q_min + 1));
}

/* All of −128 … 127; the bytes between rows too. */
static void fill_weights(struct w8a8_problem *p, struct random *r)
{
    const ptxgen_w8a8_spec *s = &p->plan.spec;
    random_fill(r, p->w.host, p->w.bytes);
    if (random_below(r, 4) == 0)
        memset(p->w.host, 0x80, s->k); /* a row of −128 */
    w8a8_sum_rows(p);
}

void w8a8_sum_rows(struct w8a8_problem *p)
{
    const ptxgen_w8a8_spec *s = &p->plan.spec;
    if (s->asymmetric)
        ptxgen_w8a8_row_sums(s->n, s->k, (const int8_t *)p->w.host, s->w_stride,
                             (int32_t *)(void *)p->w_sum.host, NULL);
}

static void fill_work(struct w8a8_problem *p, struct random *r, struct buffer *b, double mean,
                      double spread, bool positive)
{
    ptxgen_element work = ptxgen_w8a8_work_type(&p->plan.spec);
    for (size_t i = 0; i < b->bytes / ptxgen_element_size(work); i++) {
        double value = mean + spread * random_normal(r);
        ptxgen_element_store(work, b->host, i, positive ? fabs(value) + mean / 16 : value);
    }
}

static void fill_zeros(struct w8a8_problem *p, struct random *r)
{
    int32_t *zeros = (int32_t *)(void *)p->x_zero.host;
    for (size_t i = 0; i < p->x_zero.bytes / sizeof *zeros; i++)
        zeros[i] = random_code(r, &p->plan.spec);
}

void w8a8_fill(struct w8a8_problem *p, struct random *r)
{
    const ptxgen_w8a8_spec *s = &p->plan.spec;
    random_activations(r, (ptxgen_element)s->x_type, p->x.host, p->m, p->x_stride, s->k);
    fill_weights(p, r);
    fill_work(p, r, &p->w_scale, 0.01, 0.004, true);
    fill_work(p, r, &p->bias, 0, 2, false);
    fill_work(p, r, &p->x_scale, 0.03, 0.01, true);
    fill_zeros(p, r);
}

static void fill_ones(struct w8a8_problem *p, struct buffer *b)
{
    ptxgen_element work = ptxgen_w8a8_work_type(&p->plan.spec);
    for (size_t i = 0; i < b->bytes / ptxgen_element_size(work); i++)
        ptxgen_element_store(work, b->host, i, 1);
}

void w8a8_fill_exact(struct w8a8_problem *p, struct random *r)
{
    const ptxgen_w8a8_spec *s = &p->plan.spec;
    w8a8_fill(p, r);
    for (uint32_t row = 0; row < p->m; row++)
        for (uint32_t i = 0; i < s->k; i++)
            ptxgen_element_store((ptxgen_element)s->x_type, p->x.host,
                                 (size_t)row * p->x_stride + i, random_code(r, s));
    fill_ones(p, &p->w_scale);
    fill_ones(p, &p->x_scale);
}

/* ---- tokens that are no ordinary ones ---- */

static void scale_row(const ptxgen_w8a8_spec *s, void *x, size_t first, double factor)
{
    ptxgen_element type = (ptxgen_element)s->x_type;
    for (size_t i = first; i < first + s->k; i++)
        ptxgen_element_store(type, x, i, ptxgen_element_load(type, x, i) * factor);
}

void w8a8_disturb(struct w8a8_problem *p, struct random *r)
{
    const ptxgen_w8a8_spec *s = &p->plan.spec;
    static const double elements[] = {NAN, INFINITY, -INFINITY};
    /* Down to where x, then its scale, is subnormal and then 0; up to where f32 ends. */
    static const double factors[] = {0,        0x1p-148, 0x1p-144, 0x1p-130,
                                     0x1p-126, 0x1p-70,  0x1p-20,  0x1p110};
    for (uint32_t m = 0; m < p->m; m++) {
        size_t first = (size_t)m * p->x_stride;
        uint32_t kind = random_below(r, 16);
        if (kind < 3)
            ptxgen_element_store((ptxgen_element)s->x_type, p->x.host,
                                 first + random_below(r, s->k), elements[kind]);
        else if (kind < 11)
            scale_row(s, p->x.host, first, factors[kind - 3]);
    }
}
