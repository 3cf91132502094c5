/* SPDX-License-Identifier: Apache-2.0 */
#include "rmsnorm_q4k.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARG(member) offsetof(ptxgen_rmsnorm_q4k_args, member)
enum { MATRICES = PTXGEN_RMSNORM_Q4K_MATRICES };
enum { BLOCK = 256, BLOCK_BYTES = 144 }; /* of Q4_K */

KERNEL_VERBS(rmsnorm_q4k, NULL);

unsigned rmsnorm_q4k_matrices(const ptxgen_rmsnorm_q4k_spec *s)
{
    return s->n[2] ? 3 : s->n[1] ? 2 : 1;
}

/* 1 with SwiGLU. */
static unsigned outputs_of(const ptxgen_rmsnorm_q4k_spec *s)
{
    return s->epilogue == PTXGEN_EPILOGUE_SWIGLU ? 1 : rmsnorm_q4k_matrices(s);
}

static void name(const void *spec, uint64_t m, char *text, size_t size)
{
    const ptxgen_rmsnorm_q4k_spec *s = spec;
    char n[48];
    int used = snprintf(n, sizeof n, "%u", s->n[0]);
    for (unsigned i = 1; i < rmsnorm_q4k_matrices(s); i++)
        used += snprintf(n + used, sizeof n - (size_t)used, ",%u", s->n[i]);
    snprintf(text, size, "K=%u N=%s M=%llu x=%s y=%s eps=%g%s%s%s%s", s->k, n,
             (unsigned long long)m, element_type_names[s->x_type], element_type_names[s->y_type],
             (double)s->epsilon, s->residual ? " residual" : "",
             s->residual_out ? " residual-out" : "", s->bias ? " bias" : "",
             s->epilogue == PTXGEN_EPILOGUE_SWIGLU ? " swiglu" : "");
}

static struct product product(const void *spec)
{
    const ptxgen_rmsnorm_q4k_spec *s = spec;
    return (struct product){.k = s->k, .n = s->n[0] + s->n[1] + s->n[2], .type = PTXGEN_F16};
}

KEEP_VARIANT(rmsnorm_q4k, ptxgen_rmsnorm_q4k_variant, true)

/* ---- operands ---- */

/* A positive f16 with a random fraction and an exponent in [low, low + 3]. */
static uint16_t random_f16(struct random *r, int low)
{
    uint32_t bits = (uint32_t)random_bits(r);
    return (uint16_t)(((uint32_t)(low + 15) + (bits >> 10 & 3)) << 10 | (bits & 0x3FF));
}

static size_t row_bytes(const ptxgen_rmsnorm_q4k_spec *s)
{
    return (size_t)s->k / BLOCK * BLOCK_BYTES;
}

/* Super-blocks of random codes and scales. */
static ptxgen_status random_weights(const struct operand *o, const void *plan, struct random *r,
                                    void *bytes, ptxgen_error *err)
{
    unsigned char *block = bytes, *end = block + operand_net_bytes(o);
    (void)plan, (void)err;
    for (; block < end; block += BLOCK_BYTES) {
        random_fill(r, block, BLOCK_BYTES);
        uint16_t d = random_f16(r, -14), dmin = random_f16(r, -12);
        block[0] = (unsigned char)d;
        block[1] = (unsigned char)(d >> 8);
        block[2] = (unsigned char)dmin;
        block[3] = (unsigned char)(dmin >> 8);
    }
    return PTXGEN_OK;
}

static unsigned operands(const void *plan, uint64_t m, struct operand *to)
{
    static const char *const names[3][MATRICES] = {
        {"w[0]", "w[1]", "w[2]"}, {"bias[0]", "bias[1]", "bias[2]"}, {"y[0]", "y[1]", "y[2]"}};
    const ptxgen_rmsnorm_q4k_spec *s = plan;
    const struct operand single[] = {
        [RMSNORM_Q4K_AT_X] =
            OPERAND_ROWS(x, X, true, m, s->k, s->x_type, .deviation = 1, .outliers = true),
        [RMSNORM_Q4K_AT_RESIDUAL] = OPERAND_ROWS(residual, INPUT, s->residual, m, s->k, s->x_type,
                                                 .deviation = 1, .outliers = true),
        [RMSNORM_Q4K_AT_RESIDUAL_OUT] =
            OPERAND_ROWS(residual_out, OUTPUT, s->residual_out, m, s->k, s->x_type),
        [RMSNORM_Q4K_AT_GAMMA] =
            OPERAND_ROW(gamma, INPUT, true, s->k, PTXGEN_F32, .mean = 1, .deviation = 0.25),
    };
    memcpy(to, single, sizeof single);
    for (unsigned i = 0; i < MATRICES; i++) {
        uint32_t n = s->n[i];
        to[RMSNORM_Q4K_AT_W + i] = (struct operand)OPERAND(
            names[0][i], OPERAND_WEIGHTS, n > 0, n, row_bytes(s), ELEMENT_BYTES,
            .address = ARG(w) + 8 * i, .bytes = ARG(w_bytes) + 8 * i, .random = random_weights);
        to[RMSNORM_Q4K_AT_BIAS + i] = (struct operand)OPERAND(
            names[1][i], OPERAND_INPUT, n && s->bias, 1, n, PTXGEN_F32,
            .address = ARG(bias) + 8 * i, .bytes = ARG(bias_bytes) + 8 * i, .deviation = 2);
        to[RMSNORM_Q4K_AT_Y + i] =
            (struct operand)OPERAND(names[2][i], OPERAND_OUTPUT, i < outputs_of(s), m, n, s->y_type,
                                    .address = ARG(y) + 8 * i, .bytes = ARG(y_bytes) + 8 * i,
                                    .stride = ARG(y_stride) + 8 * i);
    }
    for (int i = 0; i < RMSNORM_Q4K_OPERANDS; i++)
        to[i].shift = to[i].role == OPERAND_WEIGHTS ? 0 : typed_bytes(to[i].type);
    return RMSNORM_Q4K_OPERANDS;
}

static void release(struct problem *p)
{
    free(p->own);
    p->own = NULL;
}

/* Up to where x*x leaves f32, which f16 does not reach; down to where it is subnormal. */
static const double factors[] = {0, 0x1p-110, 0x1p-70, 0x1p-20, 0x1p70};

/* ---- the reference ---- */

static ptxgen_rmsnorm_q4k_operands operands_of(const struct problem *p)
{
    ptxgen_rmsnorm_q4k_operands o = {.x = problem_at(p, RMSNORM_Q4K_AT_X, 0, 0),
                                     .residual = problem_at(p, RMSNORM_Q4K_AT_RESIDUAL, 0, 0),
                                     .gamma = problem_at(p, RMSNORM_Q4K_AT_GAMMA, 0, 0),
                                     .x_stride = p->strides[RMSNORM_Q4K_AT_X],
                                     .residual_stride = p->strides[RMSNORM_Q4K_AT_RESIDUAL],
                                     .m = p->m};
    for (unsigned i = 0; i < MATRICES; i++) {
        o.w[i] = problem_at(p, RMSNORM_Q4K_AT_W + i, 0, 0);
        o.bias[i] = problem_at(p, RMSNORM_Q4K_AT_BIAS + i, 0, 0);
    }
    return o;
}

/* residual_out holds the reference's bits, whatever NaN stands for. */
static ptxgen_status reference_sums(const struct problem *p, const struct block *b,
                                    struct block_reference *r, ptxgen_error *err)
{
    const ptxgen_rmsnorm_q4k_spec *s = p->plan;
    const ptxgen_rmsnorm_q4k_operands operands = operands_of(p);
    void *sums = malloc((size_t)p->m * s->k * typed_bytes(s->x_type));
    double unused;
    if (!sums)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for the reference's sums");
    ptxgen_status status =
        ptxgen_rmsnorm_q4k_reference(p->plan, &operands, 0, 0, 0, &unused, NULL, sums, err);
    r->exact = true;
    for (size_t i = 0; status == PTXGEN_OK && i < b->rows * b->columns; i++) {
        size_t at = (b->row + i / b->columns) * s->k + b->column + i % b->columns;
        r->value[i] = typed_load(s->x_type, sums, at);
        r->bound[i] = 0;
    }
    free(sums);
    return status;
}

static ptxgen_status reference(const struct problem *p, const struct block *b,
                               struct block_reference *r, ptxgen_error *err)
{
    const ptxgen_rmsnorm_q4k_operands operands = operands_of(p);
    if (b->output == RMSNORM_Q4K_AT_RESIDUAL_OUT)
        return reference_sums(p, b, r, err);
    return ptxgen_rmsnorm_q4k_reference_spread(p->plan, &operands, b->output - RMSNORM_Q4K_AT_Y,
                                               b->column, b->columns, r->value, r->bound, r->spread,
                                               NULL, err);
}

/*
 * The file's expected output was computed from x as the file has it, which is the problem's `own`,
 * and rounded to f32. Where x was rounded on its way to the kernel, the reference's own two answers
 * say how much that matters.
 */
static ptxgen_status widen(const struct problem *p, const struct block *b,
                           struct block_reference *r, ptxgen_error *err)
{
    ptxgen_rmsnorm_q4k_plan plan = *(const ptxgen_rmsnorm_q4k_plan *)p->plan;
    ptxgen_rmsnorm_q4k_operands operands = operands_of(p);
    double unrounded[BLOCK_OUTPUTS];
    plan.spec.x_type = PTXGEN_F32;
    operands.x = p->own;
    operands.x_stride = 0;
    ptxgen_status status =
        ptxgen_rmsnorm_q4k_reference(&plan, &operands, b->output - RMSNORM_Q4K_AT_Y, b->column,
                                     b->columns, unrounded, NULL, NULL, err);
    for (size_t i = 0; status == PTXGEN_OK && i < b->rows * b->columns; i++) {
        double apart = fabs(r->value[i] - unrounded[i]);
        r->bound[i] += apart;
        r->spread[i].below += apart;
        r->spread[i].above += apart;
    }
    return status;
}

/* ---- a random problem ---- */

/* Most are small, some large; often just beside a multiple of the tile. */
static uint32_t draw_n(struct random *r, bool small, bool deep)
{
    uint32_t most = random_below(r, 4) || small ? 200 : 6000;
    return 1 + random_below(r, deep ? RANDOM_DEEP_FEATURES : most);
}

static uint32_t draw(struct random *r, bool small, const ptxgen_target *target, void *spec)
{
    (void)target;
    static const float epsilons[] = {1e-12f, 1e-8f, 1e-6f, 1e-5f, 1e-3f, 0.25f};
    ptxgen_rmsnorm_q4k_spec *s = spec;
    uint32_t most = random_below(r, 4) || small ? 8 : 64;
    uint32_t usual = 256 * (1 + random_below(r, most)), deep = random_deep_k(r, 256);
    s->k = deep ? deep : usual;
    s->epsilon = epsilons[random_below(r, sizeof epsilons / sizeof *epsilons)];
    s->x_type = (uint8_t)random_below(r, 3);
    s->y_type = (uint8_t)random_below(r, 3);
    s->bias = (uint8_t)random_below(r, 2);
    s->residual = (uint8_t)random_below(r, 2);
    s->residual_out = s->residual && random_below(r, 2);
    s->max_m = random_below(r, 9);
    uint32_t shape = random_below(r, 4);
    s->n[0] = draw_n(r, small, deep);
    if (shape == 0) {
        s->epilogue = PTXGEN_EPILOGUE_SWIGLU;
        s->n[1] = s->n[0];
    } else
        for (uint32_t i = 1; i < shape; i++)
            s->n[i] = draw_n(r, small, deep);
    return random_below(r, (s->max_m ? s->max_m : PTXGEN_RMSNORM_Q4K_MAX_M) + 1);
}

const struct harness rmsnorm_q4k_harness = {
    HARNESS_MEMBERS(rmsnorm_q4k),
    .overlap = ARG(overlap_previous),
    .release = release,
    HARNESS_FACTORS,
    .block_rows = PTXGEN_RMSNORM_Q4K_MAX_M,
    .block_columns = 64,
    .widen = widen,
};
