/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers of a run of marlin, packed weights and random numbers in them. */
#include "marlin.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- random checkpoints ---- */

bool marlin_format_holds(ptxgen_w4_format format, const ptxgen_marlin_spec *s)
{
    if (format == PTXGEN_W4_MARLIN)
        return s->n % 64 == 0 && !s->act_order;
    return format != PTXGEN_W4_AWQ || !s->act_order;
}

static size_t group_rows(const ptxgen_marlin_spec *s)
{
    return s->group_size == PTXGEN_W4_PER_CHANNEL ? s->k : (size_t)s->group_size;
}

static ptxgen_w4_info info_of(const ptxgen_marlin_spec *s)
{
    return (ptxgen_w4_info){.k = s->k,
                            .n = s->n,
                            .groups = s->k / group_rows(s),
                            .group_size = (ptrdiff_t)group_rows(s),
                            .scale_type = (ptxgen_element)s->type,
                            .symmetric = !s->zeros,
                            .act_order = s->act_order};
}

/* Memory for the tensors of checkpoint `index` that have a shape. */
static ptxgen_status allocate_tensors(struct marlin_weights *w, unsigned index, ptxgen_error *err)
{
    ptxgen_w4_checkpoint *c = &w->checkpoints[index];
    ptxgen_w4_tensor *tensors[] = {&c->weights, &c->scales, &c->zeros, &c->g_idx, &c->shape};
    for (int i = 0; i < 5; i++) {
        size_t bytes = ptxgen_w4_tensor_bytes(tensors[i]);
        tensors[i]->data = w->memory[index][i] = bytes ? calloc(bytes, 1) : NULL;
        if (bytes && !tensors[i]->data)
            return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY,
                               "no memory for %zu bytes of weights", bytes);
    }
    return PTXGEN_OK;
}

static void fill_g_idx(const ptxgen_marlin_spec *s, struct random *r, int32_t *g_idx)
{
    for (uint32_t k = 0; k < s->k; k++)
        g_idx[k] = (int32_t)(k / group_rows(s));
    for (uint32_t k = s->k; s->act_order && k > 1; k--) {
        uint32_t other = random_below(r, k);
        int32_t swapped = g_idx[k - 1];
        g_idx[k - 1] = g_idx[other];
        g_idx[other] = swapped;
    }
}

/* Weights of a product about as large as its activations, whatever K. */
static void fill_checkpoint(const ptxgen_marlin_spec *s, struct random *r,
                            const ptxgen_w4_checkpoint *c)
{
    double size = 0.25 / sqrt((double)s->k);
    random_fill(r, c->weights.data, ptxgen_w4_tensor_bytes(&c->weights));
    for (size_t i = 0; i < c->scales.shape[0] * c->scales.shape[1]; i++)
        ptxgen_element_store((ptxgen_element)s->type, c->scales.data, i,
                             size * (0.25 + fabs(random_normal(r))));
    size_t zero_bytes = ptxgen_w4_tensor_bytes(&c->zeros);
    if (s->zeros)
        random_fill(r, c->zeros.data, zero_bytes);
    else if (zero_bytes)
        memset(c->zeros.data, c->format == PTXGEN_W4_GPTQ_V1 ? 0x77 : 0x88, zero_bytes);
    if (c->g_idx.data)
        fill_g_idx(s, r, c->g_idx.data);
    if (c->shape.data)
        memcpy(c->shape.data, (int64_t[]){s->n, s->k}, 2 * sizeof(int64_t));
}

ptxgen_status marlin_random_weights(const ptxgen_marlin_spec *spec, ptxgen_w4_format format,
                                    struct random *r, struct marlin_weights *w, ptxgen_error *err)
{
    ptxgen_w4_info info = info_of(spec);
    ptxgen_status status = PTXGEN_OK;
    memset(w, 0, sizeof *w);
    for (; status == PTXGEN_OK && w->count < marlin_matrices(spec); w->count++) {
        ptxgen_w4_checkpoint *c = &w->checkpoints[w->count];
        status = ptxgen_w4_layout(&info, format, c, err);
        if (status == PTXGEN_OK)
            status = allocate_tensors(w, w->count, err);
        if (status == PTXGEN_OK)
            fill_checkpoint(spec, r, c);
    }
    if (status == PTXGEN_OK && w->count == 2 && spec->act_order) /* they share activations */
        memcpy(w->checkpoints[1].g_idx.data, w->checkpoints[0].g_idx.data,
               ptxgen_w4_tensor_bytes(&w->checkpoints[0].g_idx));
    return status;
}

void marlin_release_weights(struct marlin_weights *w)
{
    for (unsigned i = 0; i < 2; i++)
        for (int j = 0; j < 5; j++)
            free(w->memory[i][j]);
    memset(w, 0, sizeof *w);
}

/* ---- a problem's memory ---- */

static ptxgen_status create_buffers(struct marlin_problem *p, const ptxgen_marlin_packed *packed,
                                    const struct marlin_layout *l, struct device *device,
                                    ptxgen_error *err)
{
    const ptxgen_marlin_spec *s = &p->plan.spec;
    const struct buffer_plan plans[] = {
        {&p->x, "x", true, rows_bytes(p->m, p->x_stride, s->k, 2), l->x_offset},
        {&p->codes, "codes", true, packed->codes_bytes, 0},
        {&p->scales, "scales", true, packed->scales_bytes, 0},
        {&p->zeros, "zeros", s->zeros, packed->zeros_bytes, 0},
        {&p->order, "order", s->act_order, packed->order_bytes, 0},
        {&p->bias, "bias", s->bias, 2 * (size_t)s->n, l->bias_offset},
        {&p->up_bias, "up_bias", s->bias && marlin_matrices(s) == 2, 2 * (size_t)s->n,
         l->bias_offset},
        {&p->residual, "residual", s->residual, rows_bytes(p->m, p->residual_stride, s->n, 2),
         l->residual_offset},
        {&p->y, "y", true, rows_bytes(p->m, p->y_stride, s->n, 2), l->y_offset},
    };
    return buffers_create(device, plans, sizeof plans / sizeof *plans, err);
}

static void copy_packed(const ptxgen_marlin_packed *to, const ptxgen_marlin_packed *from)
{
    memcpy(to->codes, from->codes, to->codes_bytes);
    memcpy(to->scales, from->scales, to->scales_bytes);
    if (to->zeros_bytes)
        memcpy(to->zeros, from->zeros, to->zeros_bytes);
    if (to->order_bytes)
        memcpy(to->order, from->order, to->order_bytes);
}

static ptxgen_status pack_weights(struct marlin_problem *p, ptxgen_marlin_packed *packed,
                                  const struct marlin_weights *w, ptxgen_error *err)
{
    const ptxgen_w4_repack_options options = {.threads = (unsigned)sysconf(_SC_NPROCESSORS_ONLN)};
    packed->codes = p->codes.host;
    packed->scales = p->scales.host;
    packed->zeros = p->zeros.host;
    packed->order = (uint32_t *)(void *)p->order.host;
    if (!w->count) {
        copy_packed(packed, &w->packed);
        return ptxgen_marlin_check_packed(&p->plan.spec, packed, err);
    }
    return ptxgen_marlin_pack(&p->plan.spec, &w->checkpoints[0],
                              w->count == 2 ? &w->checkpoints[1] : NULL, packed, &options, err);
}

/* A matrix with room for everything. */
static ptxgen_status allocate_matrix(size_t k, size_t n, size_t groups, ptxgen_element scale_type,
                                     ptxgen_w4_matrix *m, ptxgen_error *err)
{
    m->codes = malloc(k * n);
    m->scales = malloc(groups * n * ptxgen_element_size(scale_type));
    m->zeros = malloc(groups * n);
    m->g_idx = malloc(k * sizeof *m->g_idx);
    return m->codes && m->scales && m->zeros && m->g_idx
               ? PTXGEN_OK
               : ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for %zu codes", k * n);
}

static ptxgen_status unpack_checkpoint(const ptxgen_w4_checkpoint *from, ptxgen_w4_matrix *m,
                                       ptxgen_error *err)
{
    ptxgen_w4_info info;
    ptxgen_status status = ptxgen_w4_describe(from, &info, err);
    if (status == PTXGEN_OK)
        status = allocate_matrix(info.k, info.n, info.groups, info.scale_type, m, err);
    return status == PTXGEN_OK ? ptxgen_w4_unpack(from, m, err) : status;
}

/* The matrices for the reference: of the checkpoints, or where there are none as packed. */
static ptxgen_status unpack_weights(struct marlin_problem *p, const ptxgen_marlin_packed *packed,
                                    const struct marlin_weights *w, ptxgen_error *err)
{
    const ptxgen_marlin_spec *s = &p->plan.spec;
    ptxgen_status status = PTXGEN_OK;
    for (unsigned i = 0; status == PTXGEN_OK && i < w->count; i++)
        status = unpack_checkpoint(&w->checkpoints[i], &p->matrices[i], err);
    if (w->count)
        return status;
    status = allocate_matrix(s->k, s->n, s->k / group_rows(s), (ptxgen_element)s->type,
                             &p->matrices[0], err);
    return status == PTXGEN_OK ? ptxgen_marlin_unpack(s, packed, &p->matrices[0], NULL, err)
                               : status;
}

ptxgen_status marlin_allocate(struct marlin_problem *p, const struct marlin_options *options,
                              uint32_t m, const struct marlin_layout *l,
                              const struct marlin_weights *w, struct device *device,
                              ptxgen_error *err)
{
    const ptxgen_marlin_spec *s = &options->spec;
    ptxgen_marlin_packed packed;
    memset(p, 0, sizeof *p);
    ptxgen_target target = ptxgen_device_target(&device->facts);
    ptxgen_status status = marlin_make_plan(options, m, &target, &p->plan, err);
    if (status == PTXGEN_OK)
        status = ptxgen_marlin_packed_layout(s, &packed, err);
    if (status != PTXGEN_OK)
        return status;
    if (m)
        marlin_keep_variant(&p->plan, m);
    p->m = m;
    p->x_stride = (uint64_t)s->k + l->x_gap;
    p->y_stride = (uint64_t)s->n + l->y_gap;
    p->residual_stride = (uint64_t)s->n + l->residual_gap;
    p->in_place = l->in_place;
    status = create_buffers(p, &packed, l, device, err);
    if (status == PTXGEN_OK)
        status = pack_weights(p, &packed, w, err);
    if (status == PTXGEN_OK)
        status = unpack_weights(p, &packed, w, err);
    if (status != PTXGEN_OK)
        marlin_release(p);
    return status;
}

void marlin_release(struct marlin_problem *p)
{
    struct buffer *const buffers[] = {&p->x,     &p->codes,    &p->scales,  &p->zeros,
                                      &p->order, &p->bias,     &p->up_bias, &p->residual,
                                      &p->y,     &p->workspace};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        buffer_destroy(buffers[i]);
    for (int i = 0; i < 2; i++) {
        free(p->matrices[i].codes);
        free(p->matrices[i].scales);
        free(p->matrices[i].zeros);
        free(p->matrices[i].g_idx);
    }
    free(p->expected.values);
    memset(p, 0, sizeof *p);
}

/* ---- random numbers ---- */

void marlin_fill(struct marlin_problem *p, struct random *r)
{
    const ptxgen_marlin_spec *s = &p->plan.spec;
    ptxgen_element type = (ptxgen_element)s->type;
    random_activations(r, type, p->x.host, p->m, p->x_stride, s->k);
    random_activations(r, type, p->bias.host, 1, s->n, s->n);
    random_activations(r, type, p->up_bias.host, 1, s->n, s->n);
    random_activations(r, type, p->residual.host, p->m, p->residual_stride, s->n);
}

static double disturbed(struct random *r, uint32_t kind, double value)
{
    switch (kind) {
    case 0: return 0;
    case 1: return ldexp(value, -22);
    case 2: return copysign(60000 + 5000 * random_normal(r) / 6, value);
    case 3: return random_below(r, 40) ? value : NAN;
    default: return random_below(r, 40) ? value : copysign(INFINITY, value);
    }
}

void marlin_disturb(struct marlin_problem *p, struct random *r)
{
    ptxgen_element type = (ptxgen_element)p->plan.spec.type;
    for (uint64_t row = 0; row < p->m; row++) {
        uint32_t kind = random_below(r, 10);
        for (uint64_t i = 0; kind < 5 && i < p->plan.spec.k; i++) {
            uint64_t at = row * p->x_stride + i;
            double value = ptxgen_element_load(type, p->x.host, at);
            ptxgen_element_store(type, p->x.host, at, disturbed(r, kind, value));
        }
    }
}
