/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the spread notices of products with 4-bit weights whose operands were rounded too far, or of
 * which something is left out: most of it stays within the bounds of sums of many terms.
 */
#include "tests/planted.h"
#include "tests/random.h"
#include "tests/share.h"

#include <ptxgen/marlin.h>

enum { N = 16, GROUP = 128 };

struct problem {
    ptxgen_element type;
    uint32_t m, k;
    bool zeros;
    void *x;
    double *values; /* of x: [m, k] */
    uint8_t *codes; /* [k, N] */
    uint8_t *zero;  /* [k / GROUP, N] */
    void *scales;   /* [k / GROUP, N] */
};

/* A kernel with a fault: its own idea of a token in place, or of a weight. */
struct fault {
    const char *name;
    void (*x)(double *row, uint32_t k);
    double (*weight)(const struct problem *p, uint32_t k, uint32_t n);
    double factor; /* 0: 1 */
};

static double weight_of(const struct problem *p, uint32_t k, uint32_t n, uint32_t scale_group)
{
    double scale = ptxgen_element_load(p->type, p->scales, (size_t)scale_group * N + n);
    int zero = p->zeros ? p->zero[(size_t)(k / GROUP) * N + n] : 8;
    return scale * (p->codes[(size_t)k * N + n] - zero);
}

static double right(const struct problem *p, uint32_t k, uint32_t n)
{
    return weight_of(p, k, n, k / GROUP);
}

static double with_the_next_scale_in_group_1(const struct problem *p, uint32_t k, uint32_t n)
{
    return weight_of(p, k, n, k / GROUP == 1 ? 2 : k / GROUP);
}

static double without_the_last_row(const struct problem *p, uint32_t k, uint32_t n)
{
    return k + 1 < p->k ? right(p, k, n) : 0;
}

static double without_half_of_8_columns(const struct problem *p, uint32_t k, uint32_t n)
{
    return n < 8 && k >= p->k / 2 ? 0 : right(p, k, n);
}

static void multiply(const struct problem *p, const struct fault *f, double *y)
{
    double *row = allocate_some(p->k, sizeof *row);
    double *w = allocate_some((size_t)p->k * N, sizeof *w);
    for (uint32_t k = 0; k < p->k; k++)
        for (uint32_t n = 0; n < N; n++)
            w[(size_t)k * N + n] = f->weight(p, k, n);
    for (uint32_t m = 0; m < p->m; m++) {
        double sums[N] = {0};
        memcpy(row, p->values + (size_t)m * p->k, p->k * sizeof *row);
        f->x(row, p->k);
        for (uint32_t k = 0; k < p->k; k++)
            for (uint32_t n = 0; n < N; n++)
                sums[n] += row[k] * w[(size_t)k * N + n];
        for (uint32_t n = 0; n < N; n++)
            y[m * N + n] = sums[n] * (f->factor > 0 ? f->factor : 1);
    }
    free(row);
    free(w);
}

static void draw(struct problem *p)
{
    struct random r = {p->k + p->m};
    size_t x_count = (size_t)p->m * p->k, w_count = (size_t)p->k * N, scales = w_count / GROUP;
    p->x = allocate_some(x_count, 2);
    p->values = allocate_some(x_count, sizeof *p->values);
    p->codes = allocate_some(w_count, 1);
    p->zero = allocate_some(scales, 1);
    p->scales = allocate_some(scales, 2);
    for (size_t i = 0; i < x_count; i++) {
        ptxgen_element_store(p->type, p->x, i, random_normal(&r));
        p->values[i] = ptxgen_element_load(p->type, p->x, i);
    }
    for (size_t i = 0; i < w_count; i++)
        p->codes[i] = (uint8_t)(random_bits(&r) >> 60);
    for (size_t i = 0; i < scales; i++) {
        p->zero[i] = (uint8_t)(random_bits(&r) >> 60);
        ptxgen_element_store(p->type, p->scales, i, 0.002 + 0.05 * random_uniform(&r));
    }
}

static void release(struct problem *p)
{
    free(p->x);
    free(p->values);
    free(p->codes);
    free(p->zero);
    free(p->scales);
}

static struct said ask(const char *target_name, const struct problem *p)
{
    const ptxgen_marlin_spec spec = {
        .k = p->k, .n = N, .group_size = GROUP, .type = (uint8_t)p->type, .zeros = p->zeros};
    const ptxgen_w4_matrix weights = {.k = p->k,
                                      .n = N,
                                      .group_size = GROUP,
                                      .codes = p->codes,
                                      .scale_type = p->type,
                                      .scales = p->scales,
                                      .zeros = p->zeros ? p->zero : NULL};
    const ptxgen_marlin_operands operands = {.m = p->m, .x = p->x, .weights = &weights};
    ptxgen_target target = target_of(target_name);
    ptxgen_marlin_plan plan;
    ptxgen_error err;
    struct said s = said_allocate((size_t)p->m * N);
    assert_ok(ptxgen_marlin_make_plan(&spec, &target, &plan, &err), &err);
    assert_ok(ptxgen_marlin_reference_spread(&plan, &operands, s.y, s.bound, s.spread, &err), &err);
    return s;
}

static void check_faults(struct problem *p, const char *target, const struct fault *faults,
                         size_t count)
{
    draw(p);
    struct said s = ask(target, p);
    double *c = allocate_some(s.count, sizeof *c);
    for (size_t i = 0; i < count; i++) {
        multiply(p, &faults[i], c);
        assert_tells(&s, p->type, c, i > 0, faults[i].name, target, p->k);
    }
    free(c);
    release(p);
    said_free(&s);
}

static void check_everywhere(ptxgen_element type, const struct fault *faults, size_t count)
{
    static const uint32_t depths[] = {4096, 16384}, rows[] = {1, 16, 48};
    static const char *const targets[] = {"sm_80", "sm_90a"};
    for (int i = 0; i < 12; i++)
        if (test_in_share(i + (int)type)) {
            struct problem p = {
                .type = type, .m = rows[i % 3], .k = depths[i / 6], .zeros = i % 2 == 1};
            check_faults(&p, targets[i / 3 % 2], faults, count);
        }
}

static void f16_products_with_a_fault_are_too_far_spread(void **state)
{
    (void)state;
    static const struct fault faults[] = {
        {"none", whole, right, 0},
        {"x in 8 bits", in_8_bits, right, 0},
        {"x in 7 bits", in_7_bits, right, 0},
        {"x in blocks of 8 bits", in_blocks_of_8_bits, right, 0},
        {"another group's scale", whole, with_the_next_scale_in_group_1, 0},
        {"the last row of K left out", whole, without_the_last_row, 0},
        {"half of K left out of 8 columns", whole, without_half_of_8_columns, 0},
        {"2^-9 too large", whole, right, 1 + 0x1p-9},
    };
    check_everywhere(PTXGEN_F16, faults, sizeof faults / sizeof *faults);
}

static void bf16_products_with_a_fault_are_too_far_spread(void **state)
{
    (void)state;
    static const struct fault faults[] = {
        {"none", whole, right, 0},
        {"x in 7 bits", in_7_bits, right, 0},
        {"x in blocks of 8 bits", in_blocks_of_8_bits, right, 0},
        {"another group's scale", whole, with_the_next_scale_in_group_1, 0},
        {"the last row of K left out", whole, without_the_last_row, 0},
        {"half of K left out of 8 columns", whole, without_half_of_8_columns, 0},
        {"2^-8 too large", whole, right, 1 + 0x1p-8},
    };
    check_everywhere(PTXGEN_BF16, faults, sizeof faults / sizeof *faults);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f16_products_with_a_fault_are_too_far_spread),
        cmocka_unit_test(bf16_products_with_a_fault_are_too_far_spread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
