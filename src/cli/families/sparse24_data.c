/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers of a run of sparse24, and random numbers in them. */
#include "sparse24.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- buffers ---- */

static ptxgen_status create_buffers(struct sparse24_problem *p, const struct sparse24_layout *l,
                                    struct device *device, ptxgen_error *err)
{
    const ptxgen_sparse24_spec *s = &p->plan.spec;
    bool scaled = s->type == PTXGEN_SPARSE24_S8;
    size_t x = sparse24_x_element(s), y = ptxgen_element_size((ptxgen_element)s->y_type), packed;
    ptxgen_status status = ptxgen_sparse24_packed_bytes(s, &packed, err);
    const struct buffer_plan plans[] = {
        {&p->x, "x", true, rows_bytes(p->m, p->x_stride, s->k, x), l->x_offset * x},
        {&p->w, "w", true, packed, 0},
        {&p->x_scale, "x_scale", scaled, p->m * sizeof(float), 4},
        {&p->w_scale, "w_scale", scaled, s->n * sizeof(float), 4},
        {&p->bias, "bias", s->bias, s->n * y, l->bias_offset * y},
        {&p->residual, "residual", s->residual, rows_bytes(p->m, p->residual_stride, s->n, y),
         l->residual_offset * y},
        {&p->y, "y", true, rows_bytes(p->m, p->y_stride, s->n, y), l->y_offset * y},
    };
    return status == PTXGEN_OK ? buffers_create(device, plans, sizeof plans / sizeof *plans, err)
                               : status;
}

static ptxgen_status create_weight(struct sparse24_problem *p, ptxgen_error *err)
{
    const ptxgen_sparse24_spec *s = &p->plan.spec;
    p->values.bytes = (size_t)s->n * s->k / 2 * sparse24_x_element(s);
    p->metadata.bytes = (size_t)s->n * s->k / 4;
    p->values.data = malloc(p->values.bytes);
    p->metadata.data = malloc(p->metadata.bytes);
    if (!p->values.data || !p->metadata.data)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for the weight");
    return PTXGEN_OK;
}

ptxgen_status sparse24_allocate(struct sparse24_problem *p, const struct sparse24_options *options,
                                uint32_t m, const struct sparse24_layout *l, struct device *device,
                                ptxgen_error *err)
{
    ptxgen_target target = ptxgen_device_target(&device->facts);
    memset(p, 0, sizeof *p);
    ptxgen_status status = sparse24_make_plan(options, m, &target, &p->plan, err);
    if (status != PTXGEN_OK)
        return status;
    p->m = m;
    p->x_stride = p->plan.spec.k + l->x_gap;
    p->residual_stride = p->plan.spec.n + l->residual_gap;
    p->y_stride = p->plan.spec.n + l->y_gap;
    p->in_place = l->in_place;
    status = create_weight(p, err);
    if (status == PTXGEN_OK)
        status = create_buffers(p, l, device, err);
    if (status != PTXGEN_OK)
        sparse24_release(p);
    return status;
}

void sparse24_release(struct sparse24_problem *p)
{
    struct buffer *all[] = {&p->x,    &p->w,        &p->x_scale, &p->w_scale,
                            &p->bias, &p->residual, &p->y,       &p->workspace};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        buffer_destroy(all[i]);
    free(p->values.data);
    free(p->metadata.data);
    free(p->expected.values);
    memset(p, 0, sizeof *p);
}

/* ---- random numbers ---- */

static void store(const ptxgen_sparse24_spec *s, void *array, size_t index, double value)
{
    if (s->type == PTXGEN_SPARSE24_S8)
        ((int8_t *)array)[index] = (int8_t)fmax(-128, fmin(127, round(48 * value)));
    else
        ptxgen_element_store((ptxgen_element)s->type, array, index, value);
}

static void fill_scales(struct random *r, struct buffer *b)
{
    for (size_t i = 0; i < b->bytes / sizeof(float); i++)
        ptxgen_element_store(PTXGEN_F32, b->host, i, 0.01 * (1 + fabs(random_normal(r))));
}

ptxgen_status sparse24_repack(struct sparse24_problem *p, ptxgen_error *err)
{
    return ptxgen_sparse24_pack(&p->plan.spec, (ptxgen_const_span){p->values.data, p->values.bytes},
                                PTXGEN_SPARSE24_BYTES,
                                (ptxgen_const_span){p->metadata.data, p->metadata.bytes},
                                (ptxgen_span){p->w.host, p->w.bytes}, err);
}

/* Any two of each four are kept, zeros among them. */
static void fill_weight(struct sparse24_problem *p, struct random *r)
{
    static const unsigned char nibbles[] = {0x4, 0x8, 0xC, 0x9, 0xD, 0xE};
    const ptxgen_sparse24_spec *s = &p->plan.spec;
    for (size_t i = 0; i < (size_t)s->n * s->k / 2; i++)
        store(s, p->values.data, i, random_below(r, 16) ? random_normal(r) : 0);
    for (size_t i = 0; i < p->metadata.bytes; i++)
        ((unsigned char *)p->metadata.data)[i] = nibbles[random_below(r, 6)];
}

ptxgen_status sparse24_fill(struct sparse24_problem *p, struct random *r, ptxgen_error *err)
{
    const ptxgen_sparse24_spec *s = &p->plan.spec;
    ptxgen_element type = (ptxgen_element)s->y_type;
    for (uint64_t row = 0; row < p->m; row++)
        for (uint64_t i = 0; i < s->k; i++)
            store(s, p->x.host, row * p->x_stride + i, random_normal(r));
    fill_scales(r, &p->x_scale);
    fill_scales(r, &p->w_scale);
    random_elements(r, type, p->bias.host, 1, 0, s->n);
    random_elements(r, type, p->residual.host, p->m, p->residual_stride, s->n);
    fill_weight(p, r);
    return sparse24_repack(p, err);
}

void sparse24_disturb(struct sparse24_problem *p, struct random *r)
{
    static const double values[] = {NAN, INFINITY, -INFINITY};
    const ptxgen_sparse24_spec *s = &p->plan.spec;
    for (uint64_t row = 0; row < p->m; row++) {
        uint32_t kind = random_below(r, 12);
        if (kind < 3 && s->type != PTXGEN_SPARSE24_S8)
            store(s, p->x.host, row * p->x_stride + random_below(r, s->k), values[kind]);
        else if (kind < 6 && s->residual)
            ptxgen_element_store((ptxgen_element)s->y_type, p->residual.host,
                                 row * p->residual_stride + random_below(r, s->n),
                                 values[kind % 3]);
    }
}
