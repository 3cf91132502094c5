/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bound of each output type × epilogue of each family, where sums are exact: what a kernel
 * gives that rounds once for each operation after the sum lies within it, also where these
 * roundings are known to be worst, and it is at least half a unit of the output's type. It is
 * hardly wider, so that an output a unit further off is refused.
 */
#include "leaks.h"

#include "tests/random.h"
#include "tests/status.h"

#include "src/kernels/activation.h"
#include "src/kernels/bound.h"
#include "src/kernels/half.h"

#include <ptxgen/dense.h>
#include <ptxgen/marlin.h>
#include <ptxgen/rmsnorm_q4k.h>
#include <ptxgen/sparse24.h>

#include <stdio.h>

enum { COLUMNS = 64, MOST_K = 256, Q4_K_BYTES = 144 };

/*
 * One row of outputs. Each sum has two terms, `sums` and `ratio`, a power of two, of it; with
 * SwiGLU they are the gate's, and `ups` the other's.
 */
struct problem {
    const char *target;
    ptxgen_element type; /* of outputs */
    ptxgen_activation activation;
    bool bias, residual, swiglu;
    double ratio, sums[COLUMNS], ups[COLUMNS], biases[COLUMNS], residuals[COLUMNS];
};

struct outputs {
    double y[COLUMNS], bound[COLUMNS];
};

/* A family's reference, asked of operands that have these sums. */
struct family {
    const char *name;
    void (*ask)(const struct problem *p, struct outputs *o);
    bool has_f32, has_activations, has_relu, has_residual, has_swiglu;
    double activation_error; /* relative to |v|: what its approximation may be off by */
    /*
     * Relative to sums: what their bounds may have although they are exact, as that of kernels
     * that take a zero point out of them; sums are then smaller by `scale` than what is added.
     */
    double sum_error, scale;
};

/* ---- a kernel ---- */

static float activate(const struct family *f, ptxgen_activation activation, float v, int side)
{
    if (activation == PTXGEN_ACTIVATION_NONE)
        return v;
    double exact = activation_named(activation)->of((double)v);
    bool curved = activation != PTXGEN_ACTIVATION_RELU;
    return (float)(exact + (curved ? side * f->activation_error * fabs((double)v) : 0));
}

/* Operation by operation in f32; approximations are off to this side. */
static double emulate(const struct family *f, const struct problem *p, int i, int side)
{
    volatile float v = (float)(p->sums[i] * (1 + p->ratio)),
                   up = (float)(p->ups[i] * (1 + p->ratio));
    if (p->bias) {
        v = v + (float)p->biases[i];
        up = up + (float)p->biases[i];
    }
    v = activate(f, p->swiglu ? PTXGEN_ACTIVATION_SILU : p->activation, v, side);
    if (p->swiglu)
        v = v * up;
    if (p->residual)
        v = v + (float)p->residuals[i];
    return ptxgen_element_round(p->type, (double)v);
}

static const char *name_of(const struct family *f, const struct problem *p)
{
    static char text[160];
    static const char *const types[] = {"f32", "f16", "bf16"};
    snprintf(text, sizeof text, "%s, %s, %s, activation %d%s%s%s", f->name, p->target,
             types[p->type], (int)p->activation, p->swiglu ? ", SwiGLU" : "",
             p->bias ? ", bias" : "", p->residual ? ", residual" : "");
    return text;
}

/* Whatever is not the rounding of outputs, of numbers that are no larger than some hundred. */
static double besides(const struct family *f, const struct problem *p, int i, double y)
{
    double sums = fabs(p->sums[i]), factor = 2;
    if (p->swiglu) {
        sums += fabs(p->ups[i]);
        factor = 32; /* the other's size */
    }
    return 0x1p-17 * (fabs(y) + 64) + f->sum_error * factor * sums;
}

static void check_output(const struct family *f, const struct problem *p, int i, double y,
                         double bound)
{
    const double half = ptxgen_element_half_ulp(p->type, y);
    const bool rounds = p->type != PTXGEN_F32;
    for (int side = -1; side <= 1; side++) {
        double output = emulate(f, p, i, side);
        if (!ptxgen_bound_agrees(output, y, bound))
            fail_msg("%s: %a, rounded operation by operation, is not within %a of %a",
                     name_of(f, p), output, bound, y);
    }
    if (rounds && !(bound >= half))
        fail_msg("%s: the bound of %a, %a, is less than half a unit", name_of(f, p), y, bound);
    /* past a power of two units are twice as large */
    double most = rounds ? ptxgen_element_half_ulp(p->type, fabs(y) + bound) : 0;
    if (!(bound <= 1.001 * most + besides(f, p, i, y)))
        fail_msg("%s: the bound of %a, %a, is too wide", name_of(f, p), y, bound);
    double nearest = ptxgen_element_round(p->type, y);
    double further = nearest + (nearest < y ? -2.01 : 2.01) * most;
    if (most > 2 * besides(f, p, i, y) && ptxgen_bound_agrees(further, y, bound))
        fail_msg("%s: %a is admitted for %a", name_of(f, p), further, y);
}

static void check_problem(const struct family *f, const struct problem *p)
{
    struct outputs o;
    f->ask(p, &o);
    for (int i = 0; i < COLUMNS; i++)
        check_output(f, p, i, o.y[i], o.bound[i]);
}

struct question {
    const struct family *family;
    const struct problem *problem;
};

static void ask_once(void *user)
{
    const struct question *q = user;
    struct outputs o;
    q->family->ask(q->problem, &o);
}

/* ---- problems ---- */

/* Up to 4, in steps of 2^-6: 8 bits, as bf16 has. */
static double draw_few_bits(struct random *r)
{
    double v = floor(random_uniform(r) * 255) / 64 + 1. / 64;
    return random_bits(r) >> 63 ? -v : v;
}

static void draw(const struct family *f, struct random *r, struct problem *p)
{
    p->ratio = 0x1p-9;
    for (int i = 0; i < COLUMNS; i++) {
        p->sums[i] = f->scale * draw_few_bits(r);
        p->ups[i] = f->scale * draw_few_bits(r);
        p->biases[i] = ptxgen_element_round(p->type, 5 * draw_few_bits(r) + random_uniform(r));
        p->residuals[i] = ptxgen_element_round(p->type, 5 * draw_few_bits(r) + random_uniform(r));
    }
}

/*
 * What is added to 16 is half a unit of the type, and a little that f32 loses: the sum is rounded
 * to a tie, the output to 16, and both are off the same way. Of f32 it is half a unit alone.
 */
static void make_ties(struct problem *p)
{
    const double half = ptxgen_element_half_ulp(p->type, 16), little = 0x1p-21;
    bool rounds = p->type != PTXGEN_F32;
    p->ratio = rounds ? little / half : 0;
    for (int i = 0; i < COLUMNS; i++) {
        double sign = i & 1 ? -1 : 1;
        p->sums[i] = p->ups[i] = sign * half;
        p->biases[i] = p->residuals[i] = sign * 16;
    }
}

static void check_type(const struct family *f, const char *target, ptxgen_element type)
{
    struct random r = {(uint64_t)type + 1};
    for (unsigned i = 0; i < 4 * 6; i++) {
        unsigned activation = i / 4;
        struct problem p = {.target = target,
                            .type = type,
                            .bias = i & 1,
                            .residual = i >> 1 & 1,
                            .swiglu = activation > PTXGEN_ACTIVATION_RELU};
        p.activation = p.swiglu ? PTXGEN_ACTIVATION_NONE : (ptxgen_activation)activation;
        if ((p.residual && !f->has_residual) || (p.swiglu && !f->has_swiglu) ||
            (p.activation && !f->has_activations) ||
            (p.activation == PTXGEN_ACTIVATION_RELU && !f->has_relu))
            continue;
        draw(f, &r, &p);
        check_problem(f, &p);
        if (p.bias && p.residual == f->has_residual)
            assert_keeps_nothing(name_of(f, &p), ask_once, &(struct question){f, &p});
        make_ties(&p);
        if (!p.swiglu && !p.activation && p.bias != p.residual)
            check_problem(f, &p);
    }
}

static void check_family(const struct family *f)
{
    static const char *const targets[] = {"sm_80", "sm_90a", "sm_120"};
    for (int t = 0; t < 3; t++)
        for (ptxgen_element type = f->has_f32 ? PTXGEN_F32 : PTXGEN_F16; type <= PTXGEN_BF16;
             type++)
            check_type(f, targets[t], type);
}

/* ---- families ---- */

/* 1 and the ratio: the rest of the row is zeros. */
static void store_row(const struct problem *p, ptxgen_element type, void *row)
{
    ptxgen_element_store(type, row, 0, 1);
    ptxgen_element_store(type, row, 1, p->ratio);
}

/* Two elements of each of the matrix's rows, which are `stride` apart. */
static void store_columns(ptxgen_element type, const double *values, size_t stride, void *matrix)
{
    for (size_t i = 0; i < COLUMNS; i++)
        for (size_t j = 0; j < 2; j++)
            ptxgen_element_store(type, matrix, i * stride + j, values[i]);
}

static void store_all(ptxgen_element type, const double *values, void *array)
{
    for (size_t i = 0; i < COLUMNS; i++)
        ptxgen_element_store(type, array, i, values[i]);
}

static void ask_dense(const struct problem *p, struct outputs *o)
{
    enum { K = 2 };
    float x[K], w[COLUMNS * K], bias[COLUMNS], residual[COLUMNS];
    const ptxgen_dense_spec spec = {.n = COLUMNS,
                                    .k = K,
                                    .type = (uint8_t)p->type,
                                    .activation = (uint8_t)p->activation,
                                    .bias = p->bias,
                                    .residual = p->residual};
    const ptxgen_dense_operands operands = {
        .m = 1, .x = x, .w = w, .bias = bias, .residual = residual};
    ptxgen_target target = target_of(p->target);
    ptxgen_dense_plan plan;
    ptxgen_error err;
    store_row(p, p->type, x);
    store_columns(p->type, p->sums, K, w);
    store_all(p->type, p->biases, bias);
    store_all(p->type, p->residuals, residual);
    assert_ok(ptxgen_dense_make_plan(&spec, &target, &plan, &err), &err);
    assert_ok(ptxgen_dense_reference(&plan, &operands, o->y, o->bound, &err), &err);
}

/* The first two columns are kept, and the first two of the other group. */
static void ask_sparse24(const struct problem *p, struct outputs *o)
{
    enum { K = 8 };
    float x[K] = {0}, values[COLUMNS * K / 2] = {0}, bias[COLUMNS], residual[COLUMNS];
    unsigned char metadata[COLUMNS * K / 4];
    const ptxgen_sparse24_spec spec = {.n = COLUMNS,
                                       .k = K,
                                       .type = (uint8_t)p->type,
                                       .y_type = (uint8_t)p->type,
                                       .activation = (uint8_t)p->activation,
                                       .bias = p->bias,
                                       .residual = p->residual};
    const ptxgen_sparse24_operands operands = {
        .m = 1,
        .x = x,
        .values = {values, COLUMNS * K / 2 * ptxgen_element_size(p->type)},
        .metadata = {metadata, sizeof metadata},
        .bias = bias,
        .residual = residual};
    ptxgen_target target = target_of(p->target);
    ptxgen_sparse24_plan plan;
    ptxgen_error err;
    memset(metadata, 0 | 1 << 2, sizeof metadata);
    store_row(p, p->type, x);
    store_columns(p->type, p->sums, K / 2, values);
    store_all(p->type, p->biases, bias);
    store_all(p->type, p->residuals, residual);
    assert_ok(ptxgen_sparse24_make_plan(&spec, &target, &plan, &err), &err);
    assert_ok(ptxgen_sparse24_reference(&plan, &operands, o->y, o->bound, &err), &err);
}

/* A column's scale is its sum; the codes of the first two rows stand for 1, of the others for 0. */
static void ask_marlin(const struct problem *p, struct outputs *o)
{
    enum { K = 16 };
    uint16_t a[K] = {0}, bias[COLUMNS], residual[COLUMNS], scales[2][COLUMNS];
    uint8_t codes[K * COLUMNS];
    ptxgen_w4_matrix w[2];
    const ptxgen_marlin_spec spec = {.k = K,
                                     .n = COLUMNS,
                                     .group_size = PTXGEN_W4_PER_CHANNEL,
                                     .type = (uint8_t)p->type,
                                     .activation = (uint8_t)p->activation,
                                     .epilogue = p->swiglu,
                                     .bias = p->bias,
                                     .residual = p->residual};
    const ptxgen_marlin_operands operands = {.m = 1,
                                             .x = a,
                                             .weights = &w[0],
                                             .up = p->swiglu ? &w[1] : NULL,
                                             .bias = bias,
                                             .up_bias = bias,
                                             .residual = residual};
    ptxgen_target target = target_of(p->target);
    ptxgen_marlin_plan plan;
    ptxgen_error err;
    memset(codes, PTXGEN_W4_SYMMETRIC_ZERO, sizeof codes);
    memset(codes, PTXGEN_W4_SYMMETRIC_ZERO + 1, 2 * COLUMNS);
    for (int i = 0; i < 2; i++)
        w[i] = (ptxgen_w4_matrix){.k = K,
                                  .n = COLUMNS,
                                  .group_size = PTXGEN_W4_PER_CHANNEL,
                                  .codes = codes,
                                  .scale_type = p->type,
                                  .scales = scales[i]};
    store_row(p, p->type, a);
    store_all(p->type, p->sums, scales[0]);
    store_all(p->type, p->ups, scales[1]);
    store_all(p->type, p->biases, bias);
    store_all(p->type, p->residuals, residual);
    assert_ok(ptxgen_marlin_make_plan(&spec, &target, &plan, &err), &err);
    assert_ok(ptxgen_marlin_reference(&plan, &operands, o->y, o->bound, &err), &err);
}

/* A block for each row, whose step is the sum; its first two codes are 1, the others 0. */
static void store_blocks(const double *sums, unsigned char *blocks)
{
    enum { SCALES = 4, CODES = 16 };
    memset(blocks, 0, COLUMNS * Q4_K_BYTES);
    for (size_t i = 0; i < COLUMNS; i++) {
        unsigned char *block = blocks + i * Q4_K_BYTES;
        ptxgen_element_store(PTXGEN_F16, block, 0, sums[i]);
        block[SCALES] = block[CODES] = block[CODES + 1] = 1;
    }
}

/* All of x are 1, and so is its root mean square: the row stands in gamma. */
static void ask_rmsnorm_q4k(const struct problem *p, struct outputs *o)
{
    static unsigned char blocks[2][COLUMNS * Q4_K_BYTES];
    float x[MOST_K], gamma[MOST_K] = {0}, bias[COLUMNS];
    const ptxgen_rmsnorm_q4k_spec spec = {.k = MOST_K,
                                          .n = {COLUMNS, p->swiglu ? COLUMNS : 0},
                                          .y_type = (uint8_t)p->type,
                                          .epilogue = p->swiglu,
                                          .bias = p->bias};
    const ptxgen_rmsnorm_q4k_operands operands = {
        .x = x, .gamma = gamma, .w = {blocks[0], blocks[1]}, .bias = {bias, bias}, .m = 1};
    ptxgen_target target = target_of(p->target);
    ptxgen_rmsnorm_q4k_plan plan;
    ptxgen_error err;
    for (int k = 0; k < MOST_K; k++)
        x[k] = 1;
    store_row(p, PTXGEN_F32, gamma);
    store_blocks(p->sums, blocks[0]);
    store_blocks(p->ups, blocks[1]);
    store_all(PTXGEN_F32, p->biases, bias);
    assert_ok(ptxgen_rmsnorm_q4k_make_plan(&spec, &target, &plan, &err), &err);
    assert_ok(
        ptxgen_rmsnorm_q4k_reference(&plan, &operands, 0, 0, COLUMNS, o->y, o->bound, NULL, &err),
        &err);
}

static void the_bound_of_dense_has_each_rounding(void **state)
{
    const struct family f = {.name = "dense",
                             .ask = ask_dense,
                             .has_f32 = true,
                             .has_activations = true,
                             .has_relu = true,
                             .has_residual = true,
                             .activation_error = 0x1p-21,
                             .scale = 1};
    (void)state;
    check_family(&f);
}

static void the_bound_of_sparse24_has_each_rounding(void **state)
{
    const struct family f = {.name = "sparse24",
                             .ask = ask_sparse24,
                             .has_f32 = true,
                             .has_activations = true,
                             .has_relu = true,
                             .has_residual = true,
                             .activation_error = 0x1p-21,
                             .scale = 1};
    (void)state;
    check_family(&f);
}

static void the_bound_of_marlin_has_each_rounding(void **state)
{
    const struct family f = {.name = "marlin",
                             .ask = ask_marlin,
                             .has_activations = true,
                             .has_residual = true,
                             .has_swiglu = true,
                             .activation_error = 0x1p-21,
                             .sum_error = 0x1p-8,
                             .scale = 0x1p-8};
    (void)state;
    check_family(&f);
}

static void the_bound_of_rmsnorm_q4k_has_each_rounding(void **state)
{
    const struct family f = {.name = "rmsnorm_q4k",
                             .ask = ask_rmsnorm_q4k,
                             .has_f32 = true,
                             .has_swiglu = true,
                             .activation_error = 0x1p-24,
                             .scale = 1};
    (void)state;
    check_family(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bound_of_dense_has_each_rounding),
        cmocka_unit_test(the_bound_of_sparse24_has_each_rounding),
        cmocka_unit_test(the_bound_of_marlin_has_each_rounding),
        cmocka_unit_test(the_bound_of_rmsnorm_q4k_has_each_rounding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
