/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers of a run of rmsnorm_q4k, and random numbers in them. */
#include "rmsnorm_q4k.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- sizes ---- */

ptxgen_status rmsnorm_q4k_allocate(struct rmsnorm_q4k_problem *p,
                                   const ptxgen_rmsnorm_q4k_spec *spec, uint32_t m,
                                   const struct rmsnorm_q4k_layout *l, struct device *device,
                                   ptxgen_error *err)
{
    static const char *const names[3][MATRICES] = {{"w[0]", "w[1]", "w[2]"},
                                                   {"bias[0]", "bias[1]", "bias[2]"},
                                                   {"y[0]", "y[1]", "y[2]"}};
    memset(p, 0, sizeof *p);
    ptxgen_target target = ptxgen_device_target(&device->facts);
    ptxgen_status status = rmsnorm_q4k_make_plan(spec, m, &target, &p->plan, err);
    if (status != PTXGEN_OK)
        return status;
    size_t x_size = ptxgen_element_size((ptxgen_element)spec->x_type);
    size_t y_size = ptxgen_element_size((ptxgen_element)spec->y_type);
    p->m = m;
    p->x_stride = spec->k + l->x_gap;
    p->residual_stride = spec->k + l->residual_gap;
    p->residual_out_stride = spec->k + l->residual_out_gap;

    struct buffer_plan plans[4 + 3 * MATRICES] = {
        {&p->x, "x", true, rows_bytes(m, p->x_stride, spec->k, x_size), l->x_offset},
        {&p->residual, "residual", spec->residual,
         rows_bytes(m, p->residual_stride, spec->k, x_size), l->residual_offset},
        {&p->residual_out, "residual_out", spec->residual_out,
         rows_bytes(m, p->residual_out_stride, spec->k, x_size), l->residual_out_offset},
        {&p->gamma, "gamma", true, 4 * (size_t)spec->k, l->gamma_offset},
    };
    size_t row_bytes = (size_t)spec->k / PTXGEN_Q4K_BLOCK_WEIGHTS * PTXGEN_Q4K_BLOCK_BYTES;
    for (unsigned i = 0; i < MATRICES; i++) {
        uint32_t n = spec->n[i];
        p->y_stride[i] = n + l->y_gap[i];
        plans[4 + i] = (struct buffer_plan){&p->w[i], names[0][i], n > 0, n * row_bytes, 0};
        plans[7 + i] = (struct buffer_plan){&p->bias[i], names[1][i], n && spec->bias,
                                            4 * (size_t)n, l->gamma_offset};
        plans[10 + i] = (struct buffer_plan){&p->y[i], names[2][i], i < rmsnorm_q4k_outputs(spec),
                                             rows_bytes(m, p->y_stride[i], n, y_size), l->y_offset};
    }
    status = buffers_create(device, plans, sizeof plans / sizeof *plans, err);
    if (status != PTXGEN_OK)
        rmsnorm_q4k_release(p);
    return status;
}

void rmsnorm_q4k_release(struct rmsnorm_q4k_problem *p)
{
    struct buffer *single[] = {&p->x, &p->residual, &p->residual_out, &p->gamma};
    for (int i = 0; i < 4; i++)
        buffer_destroy(single[i]);
    for (int i = 0; i < MATRICES; i++) {
        buffer_destroy(&p->w[i]);
        buffer_destroy(&p->bias[i]);
        buffer_destroy(&p->y[i]);
    }
    free(p->expected.values);
    free(p->exact_x);
    memset(p, 0, sizeof *p);
}

/* ---- random numbers ---- */

/* A positive f16 with a random fraction and an exponent in [low, low + 3]. */
static uint16_t random_f16(struct random *r, int low)
{
    uint32_t bits = (uint32_t)random_bits(r);
    return (uint16_t)(((uint32_t)(low + 15) + (bits >> 10 & 3)) << 10 | (bits & 0x3FF));
}

void rmsnorm_q4k_random_weights(struct random *r, void *blocks, size_t count)
{
    unsigned char *block = blocks;
    for (; count; count--, block += PTXGEN_Q4K_BLOCK_BYTES) {
        random_fill(r, block, PTXGEN_Q4K_BLOCK_BYTES);
        uint16_t d = random_f16(r, -14), dmin = random_f16(r, -12);
        block[0] = (unsigned char)d;
        block[1] = (unsigned char)(d >> 8);
        block[2] = (unsigned char)dmin;
        block[3] = (unsigned char)(dmin >> 8);
    }
}

static void random_floats(struct random *r, struct buffer *b, double mean, double spread)
{
    float *values = (float *)(void *)b->host;
    for (size_t i = 0; i < b->bytes / sizeof *values; i++)
        values[i] = (float)(mean + spread * random_normal(r));
}

/* ---- rows that are no ordinary ones ---- */

static void scale_row(ptxgen_element type, void *x, size_t first, uint32_t k, double factor)
{
    for (size_t i = first; i < first + k; i++)
        ptxgen_element_store(type, x, i, ptxgen_element_load(type, x, i) * factor);
}

void rmsnorm_q4k_disturb(struct rmsnorm_q4k_problem *p, struct random *r)
{
    const ptxgen_rmsnorm_q4k_spec *s = &p->plan.spec;
    ptxgen_element type = (ptxgen_element)s->x_type;
    static const double elements[] = {NAN, INFINITY, -INFINITY};
    /* Up to where x*x leaves f32, which f16 does not reach; down to where it is subnormal. */
    static const double factors[] = {0, 0x1p-110, 0x1p-70, 0x1p-20, 0x1p70};
    for (uint32_t m = 0; m < p->m; m++) {
        size_t first = (size_t)m * p->x_stride;
        uint32_t kind = random_below(r, 16);
        if (kind < 3)
            ptxgen_element_store(type, p->x.host, first + random_below(r, s->k), elements[kind]);
        else if (kind < 8)
            scale_row(type, p->x.host, first, s->k, factors[kind - 3]);
    }
}

/* ---- an ordinary problem ---- */

void rmsnorm_q4k_fill(struct rmsnorm_q4k_problem *p, struct random *r)
{
    const ptxgen_rmsnorm_q4k_spec *s = &p->plan.spec;
    ptxgen_element type = (ptxgen_element)s->x_type;
    random_activations(r, type, p->x.host, p->m, p->x_stride, s->k);
    random_activations(r, type, p->residual.host, p->m, p->residual_stride, s->k);
    random_floats(r, &p->gamma, 1, 0.25);
    for (unsigned i = 0; i < rmsnorm_q4k_matrices(s); i++) {
        rmsnorm_q4k_random_weights(r, p->w[i].host,
                                   p->w[i].bytes / PTXGEN_Q4K_BLOCK_BYTES);
        random_floats(r, &p->bias[i], 0, 2);
    }
}
