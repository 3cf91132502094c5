/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the spread notices of products whose operands were rounded too far, or of which something is
 * left out: all of it stays within the bounds of sums of many terms.
 */
#include "tests/planted.h"
#include "tests/random.h"
#include "tests/share.h"

#include <ptxgen/dense.h>

enum { M = 64 };

struct operands {
    uint32_t n, k;
    double *x, *w; /* [n, k], [M, k], values of the type */
};

/* A kernel with a fault: its own idea of an element of X and of W, k along the row, and a factor.
 */
struct fault {
    const char *name;
    double (*x)(double value);
    double (*w)(double value);
    uint32_t left_out; /* of the last columns */
    double factor;     /* 0: 1 */
};

static double same(double value)
{
    return value;
}

static double as_tf32(double value)
{
    return round_to_bits(value, 11);
}

static double cut_to_tf32(double value)
{
    return truncate_to_bits(value, 11);
}

static double as_8_bits(double value)
{
    return round_to_bits(value, 8);
}

static double as_7_bits(double value)
{
    return round_to_bits(value, 7);
}

static void multiply(const struct operands *o, const struct fault *f, double *y)
{
    uint32_t k = o->k - f->left_out;
    double *x = allocate_some(k, sizeof *x), *w = allocate_some((size_t)M * k, sizeof *w);
    for (uint32_t m = 0; m < M; m++)
        for (uint32_t i = 0; i < k; i++)
            w[(size_t)m * k + i] = f->w(o->w[(size_t)m * o->k + i]);
    for (uint32_t n = 0; n < o->n; n++) {
        for (uint32_t i = 0; i < k; i++)
            x[i] = f->x(o->x[(size_t)n * o->k + i]);
        for (uint32_t m = 0; m < M; m++) {
            double sum = 0;
            for (uint32_t i = 0; i < k; i++)
                sum += x[i] * w[(size_t)m * k + i];
            y[n * M + m] = sum * (f->factor ? f->factor : 1);
        }
    }
    free(x);
    free(w);
}

static double *draw(struct random *r, ptxgen_element type, size_t count, void *elements)
{
    double *values = allocate_some(count, sizeof *values);
    for (size_t i = 0; i < count; i++) {
        ptxgen_element_store(type, elements, i, random_normal(r));
        values[i] = ptxgen_element_load(type, elements, i);
    }
    return values;
}

static struct said ask(const char *target_name, ptxgen_element type, struct operands *o)
{
    ptxgen_dense_spec spec = {.m = M, .k = o->k, .type = (uint8_t)type};
    ptxgen_target target;
    ptxgen_dense_plan plan;
    ptxgen_error err;
    struct random r = {o->k + o->n};
    size_t x_count = (size_t)o->n * o->k, w_count = (size_t)M * o->k;
    void *x = allocate_some(x_count, 4), *w = allocate_some(w_count, 4);
    o->x = draw(&r, type, x_count, x);
    o->w = draw(&r, type, w_count, w);
    assert_ok(ptxgen_target_parse(target_name, &target, &err), &err);
    assert_ok(ptxgen_dense_make_plan(&spec, &target, &plan, &err), &err);
    const ptxgen_dense_operands operands = {.n = o->n, .x = x, .w = w};
    struct said s = said_allocate((size_t)o->n * M);
    assert_ok(ptxgen_dense_reference_spread(&plan, &operands, s.y, s.bound, s.spread, &err), &err);
    free(x);
    free(w);
    return s;
}

/* Far over its limit for each fault but the first, which is none. */
static void check_faults(const char *target, ptxgen_element type, const struct fault *faults,
                         size_t count, uint32_t n, uint32_t k)
{
    struct operands o = {.n = n, .k = k};
    struct said s = ask(target, type, &o);
    double *y = allocate_some(s.count, sizeof *y);
    for (size_t i = 0; i < count; i++) {
        multiply(&o, &faults[i], y);
        assert_tells(&s, type, y, i > 0, faults[i].name, target, k);
    }
    free(y);
    free(o.x);
    free(o.w);
    said_free(&s);
}

static void check_everywhere(ptxgen_element type, const struct fault *faults, size_t count)
{
    static const uint32_t depths[] = {4096, 16384}, rows[] = {1, 3};
    static const char *const targets[] = {"sm_80", "sm_90a"};
    for (int i = 0; i < 8; i++)
        if (test_in_share(i + (int)type))
            check_faults(targets[i & 1], type, faults, count, rows[i >> 1 & 1], depths[i >> 2]);
}

static void f32_products_with_a_fault_are_too_far_spread(void **state)
{
    (void)state;
    static const struct fault faults[] = {
        {"none", same, same, 0, 0},
        {"one tf32 product for three", as_tf32, as_tf32, 0, 0},
        {"one tf32 product for three, cut off", cut_to_tf32, cut_to_tf32, 0, 0},
        {"two tf32 products for three, of X", same, as_tf32, 0, 0},
        {"two tf32 products for three, of W", as_tf32, same, 0, 0},
        {"bf16 operands", as_8_bits, as_8_bits, 0, 0},
        {"the last of K left out", same, same, 1, 0},
        {"2^-9 too large", same, same, 0, 1 + 0x1p-9},
    };
    check_everywhere(PTXGEN_F32, faults, sizeof faults / sizeof *faults);
}

static void f16_products_with_a_fault_are_too_far_spread(void **state)
{
    (void)state;
    static const struct fault faults[] = {
        {"none", same, same, 0, 0},
        {"X in 8 bits", as_8_bits, same, 0, 0},
        {"W in 8 bits", same, as_8_bits, 0, 0},
        {"X in 7 bits", as_7_bits, same, 0, 0},
        {"the last of K left out", same, same, 1, 0},
        {"2^-9 too large", same, same, 0, 1 + 0x1p-9},
    };
    check_everywhere(PTXGEN_F16, faults, sizeof faults / sizeof *faults);
}

static void bf16_products_with_a_fault_are_too_far_spread(void **state)
{
    (void)state;
    static const struct fault faults[] = {
        {"none", same, same, 0, 0},
        {"X in 7 bits", as_7_bits, same, 0, 0},
        {"W in 7 bits", same, as_7_bits, 0, 0},
        {"the last of K left out", same, same, 1, 0},
        {"2^-9 too large", same, same, 0, 1 + 0x1p-9},
    };
    check_everywhere(PTXGEN_BF16, faults, sizeof faults / sizeof *faults);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f32_products_with_a_fault_are_too_far_spread),
        cmocka_unit_test(f16_products_with_a_fault_are_too_far_spread),
        cmocka_unit_test(bf16_products_with_a_fault_are_too_far_spread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
