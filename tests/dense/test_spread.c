/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the spread notices of products whose operands were rounded too far, or of which something is
 * left out: all of it stays within the bounds of sums of many terms.
 */
#include "tests/planted.h"
#include "tests/share.h"

#include "src/kernels/spread.h"

#include <ptxgen/dense.h>

enum { N = 64 };

struct operands {
    uint32_t m, k;
    double *x, *w; /* [m, k], [N, k], values of the type */
};

static struct said ask(const char *target_name, ptxgen_element type, struct operands *o)
{
    ptxgen_dense_spec spec = {.n = N, .k = o->k, .type = (uint8_t)type};
    ptxgen_target target;
    ptxgen_dense_plan plan;
    ptxgen_error err;
    struct random r = {o->k + o->m};
    size_t x_count = (size_t)o->m * o->k, w_count = (size_t)N * o->k;
    void *x = allocate_some(x_count, 4), *w = allocate_some(w_count, 4);
    o->x = draw_elements(&r, type, x_count, x);
    o->w = draw_elements(&r, type, w_count, w);
    assert_ok(ptxgen_target_parse(target_name, &target, &err), &err);
    assert_ok(ptxgen_dense_make_plan(&spec, &target, &plan, &err), &err);
    const ptxgen_dense_operands operands = {.m = o->m, .x = x, .w = w};
    struct said s = said_allocate((size_t)o->m * N);
    assert_ok(ptxgen_dense_reference_spread(&plan, &operands, s.y, s.bound, s.spread, &err), &err);
    free(x);
    free(w);
    return s;
}

/* Far over its limit for each fault but the first, which is none. */
static void check_faults(const char *target, ptxgen_element type,
                         const struct product_fault *faults, size_t count, uint32_t m, uint32_t k)
{
    struct operands o = {.m = m, .k = k};
    struct said s = ask(target, type, &o);
    double *y = allocate_some(s.count, sizeof *y);
    for (size_t i = 0; i < count; i++) {
        multiply_with_fault(&faults[i], o.x, o.w, m, N, k, y);
        assert_tells(&s, type, y, i > 0, faults[i].name, target, k);
    }
    free(y);
    free(o.x);
    free(o.w);
    said_free(&s);
}

static void check_everywhere(ptxgen_element type, const struct product_fault *faults, size_t count)
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
    static const struct product_fault faults[] = {
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
    static const struct product_fault faults[] = {
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
    static const struct product_fault faults[] = {
        {"none", same, same, 0, 0},
        {"X in 7 bits", as_7_bits, same, 0, 0},
        {"W in 7 bits", same, as_7_bits, 0, 0},
        {"the last of K left out", same, same, 1, 0},
        {"2^-9 too large", same, same, 0, 1 + 0x1p-9},
    };
    check_everywhere(PTXGEN_BF16, faults, sizeof faults / sizeof *faults);
}

/* SiLU and GELU fall and rise: what lies between the ends may be below what either end gives. */
static void an_activation_takes_all_between_its_ends(void **state)
{
    (void)state;
    static const double ends[] = {0, 0x1p-20, 0.3, 2, 9, 100};
    enum { ENDS = sizeof ends / sizeof *ends, STEPS = 64 };
    for (int name = PTXGEN_ACTIVATION_SILU; name <= PTXGEN_ACTIVATION_RELU; name++)
        for (int i = 0; i < ENDS * ENDS; i++)
            for (double v = -12; v <= 4; v += 0.75) {
                const struct activation *f = activation_named((ptxgen_activation)name);
                const double below = ends[i / ENDS], above = ends[i % ENDS];
                struct spread s = {below, above, 0};
                spread_activate(&s, f, v, 0x1p-40);
                for (int step = 0; step <= STEPS; step++) {
                    double y = f->of(v - below + (below + above) * step / STEPS);
                    assert_true(y >= f->of(v) - s.below && y <= f->of(v) + s.above);
                }
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_activation_takes_all_between_its_ends),
        cmocka_unit_test(f32_products_with_a_fault_are_too_far_spread),
        cmocka_unit_test(f16_products_with_a_fault_are_too_far_spread),
        cmocka_unit_test(bf16_products_with_a_fault_are_too_far_spread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
