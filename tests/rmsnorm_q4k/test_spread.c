/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the spread notices of outputs whose activations were rounded too far, whose norm is off, or
 * of which something is left out: most of it stays within the bounds of sums of many terms.
 */
#include "tests/gguf/exact.h"
#include "tests/planted.h"
#include "tests/random.h"
#include "tests/share.h"

#include <ptxgen/rmsnorm_q4k.h>

enum { N = 64, SUB_BLOCK = 32 };
static const float epsilon = 1e-6f;

struct problem {
    uint32_t m, k;
    float *x, *gamma; /* [m, k], [k] */
    uint8_t *weights; /* [N, k] of Q4_K */
    double *w;        /* its values */
};

/* A kernel with a fault: what it does to a row of h·γ, and a factor; 0 counts as 1. */
struct fault {
    const char *name;
    void (*activations)(double *row, uint32_t k);
    double factor;
};

static void as_f16(double *row, uint32_t k)
{
    in_bits(row, k, 11);
}

static void as_bf16(double *row, uint32_t k)
{
    in_bits(row, k, 8);
}

static void in_16_bits(double *row, uint32_t k)
{
    in_bits(row, k, 16);
}

static void without_the_last(double *row, uint32_t k)
{
    row[k - 1] = 0;
}

/* A sub-block's scale and minimum a 63rd too large. */
static void with_a_scale_off_by_one(double *row, uint32_t k)
{
    for (uint32_t i = k / 2; i < k / 2 + SUB_BLOCK; i++)
        row[i] *= 64. / 63;
}

static void compute(const struct problem *p, const struct fault *f, double *y)
{
    double *row = allocate_some(p->k, sizeof *row);
    for (uint32_t m = 0; m < p->m; m++) {
        double squares = 0;
        for (uint32_t k = 0; k < p->k; k++) {
            double x = p->x[(size_t)m * p->k + k];
            squares += x * x;
            row[k] = x * p->gamma[k];
        }
        f->activations(row, p->k);
        double factor = (f->factor > 0 ? f->factor : 1) / sqrt(squares / p->k + (double)epsilon);
        for (uint32_t n = 0; n < N; n++) {
            double sum = 0;
            for (uint32_t k = 0; k < p->k; k++)
                sum += row[k] * p->w[(size_t)n * p->k + k];
            y[m * N + n] = sum * factor;
        }
    }
    free(row);
}

static void draw(struct problem *p)
{
    struct random r = {p->k + p->m};
    size_t row_bytes = p->k / 256 * 144, count = (size_t)N * p->k;
    p->x = allocate_some((size_t)p->m * p->k, sizeof *p->x);
    p->gamma = allocate_some(p->k, sizeof *p->gamma);
    p->weights = allocate_some(N, row_bytes);
    p->w = allocate_some(count, sizeof *p->w);
    for (size_t i = 0; i < (size_t)p->m * p->k; i++)
        p->x[i] = (float)random_normal(&r);
    for (uint32_t k = 0; k < p->k; k++)
        p->gamma[k] = (float)(0.5 + random_uniform(&r));
    for (size_t i = 0; i < N * row_bytes; i++)
        p->weights[i] = (uint8_t)(random_bits(&r) >> 56);
    for (size_t i = 0; i < N * row_bytes; i += 144) {
        double d = 0x1p-12 * (0.5 + random_uniform(&r));
        ptxgen_element_store(PTXGEN_F16, p->weights + i, 0, d);
        ptxgen_element_store(PTXGEN_F16, p->weights + i, 1, 7.5 * d); /* mean weights of about 0 */
    }
    for (uint32_t n = 0; n < N; n++)
        decode_exactly(PTXGEN_GGUF_Q4_K, p->weights + n * row_bytes, p->k, p->w + (size_t)n * p->k);
}

static struct said ask(const char *target_name, const struct problem *p, ptxgen_element y_type)
{
    const ptxgen_rmsnorm_q4k_spec spec = {
        .k = p->k, .n = {N}, .epsilon = epsilon, .x_type = PTXGEN_F32, .y_type = (uint8_t)y_type};
    const ptxgen_rmsnorm_q4k_operands operands = {
        .x = p->x, .gamma = p->gamma, .w = {p->weights}, .m = p->m};
    ptxgen_target target = target_of(target_name);
    ptxgen_rmsnorm_q4k_plan plan;
    ptxgen_error err;
    struct said s = said_allocate((size_t)p->m * N);
    assert_ok(ptxgen_rmsnorm_q4k_make_plan(&spec, &target, &plan, &err), &err);
    assert_ok(ptxgen_rmsnorm_q4k_reference_spread(&plan, &operands, 0, 0, N, s.y, s.bound, s.spread,
                                                  NULL, &err),
              &err);
    return s;
}

static void check_faults(ptxgen_element y_type, const struct fault *faults, size_t count)
{
    static const uint32_t depths[] = {4096, 16384}, tokens[] = {1, 3};
    for (int i = 0; i < 4; i++) {
        if (!test_in_share(i + (int)y_type))
            continue;
        struct problem p = {.m = tokens[i % 2], .k = depths[i / 2]};
        draw(&p);
        struct said s = ask("sm_90", &p, y_type);
        double *y = allocate_some(s.count, sizeof *y);
        for (size_t j = 0; j < count; j++) {
            compute(&p, &faults[j], y);
            assert_tells(&s, y_type, y, j > 0, faults[j].name, "sm_90", p.k);
        }
        free(y);
        free(p.x);
        free(p.gamma);
        free(p.weights);
        free(p.w);
        said_free(&s);
    }
}

static void f32_outputs_with_a_fault_are_too_far_spread(void **state)
{
    (void)state;
    static const struct fault faults[] = {
        {"none", whole, 0},
        {"x·γ in f16", as_f16, 0},
        {"x·γ in bf16", as_bf16, 0},
        {"x·γ in 16 bits", in_16_bits, 0},
        {"x·γ in blocks of 8 bits", in_blocks_of_8_bits, 0},
        {"the last of K left out", without_the_last, 0},
        {"a scale off by one", with_a_scale_off_by_one, 0},
        {"rms off by 2^-16", whole, 1 + 0x1p-16},
        {"rms off by -2^-16", whole, 1 - 0x1p-16},
    };
    check_faults(PTXGEN_F32, faults, sizeof faults / sizeof *faults);
}

static void f16_outputs_with_a_fault_are_too_far_spread(void **state)
{
    (void)state;
    static const struct fault faults[] = {
        {"none", whole, 0},
        {"x·γ in f16", as_f16, 0},
        {"x·γ in bf16", as_bf16, 0},
        {"x·γ in blocks of 8 bits", in_blocks_of_8_bits, 0},
        {"the last of K left out", without_the_last, 0},
        {"a scale off by one", with_a_scale_off_by_one, 0},
        {"2^-9 too large", whole, 1 + 0x1p-9},
    };
    check_faults(PTXGEN_F16, faults, sizeof faults / sizeof *faults);
}

static void bf16_outputs_with_a_fault_are_too_far_spread(void **state)
{
    (void)state;
    static const struct fault faults[] = {
        {"none", whole, 0},
        {"x·γ in bf16", as_bf16, 0},
        {"x·γ in 7 bits", in_7_bits, 0},
        {"x·γ in blocks of 8 bits", in_blocks_of_8_bits, 0},
        {"the last of K left out", without_the_last, 0},
        {"2^-9 too large", whole, 1 + 0x1p-9},
    };
    check_faults(PTXGEN_BF16, faults, sizeof faults / sizeof *faults);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f32_outputs_with_a_fault_are_too_far_spread),
        cmocka_unit_test(f16_outputs_with_a_fault_are_too_far_spread),
        cmocka_unit_test(bf16_outputs_with_a_fault_are_too_far_spread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
