/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the spread notices of products whose operands were rounded too far, or of which something is
 * left out: all of it stays within the bounds of sums of many terms.
 */
#include "tests/planted_products.h"

#include "src/kernels/spread.h"

#include <ptxgen/dense.h>

static struct said ask(const char *target_name, ptxgen_element type, uint32_t m, uint32_t k,
                       double **x, double **w)
{
    const ptxgen_dense_spec spec = {.n = PRODUCT_N, .k = k, .type = (uint8_t)type};
    ptxgen_target target = target_of(target_name);
    ptxgen_dense_plan plan;
    ptxgen_error err;
    struct random r = {k + m};
    size_t x_count = (size_t)m * k, w_count = (size_t)PRODUCT_N * k;
    void *x_elements = allocate_some(x_count, 4), *w_elements = allocate_some(w_count, 4);
    *x = draw_elements(&r, type, x_count, x_elements);
    *w = draw_elements(&r, type, w_count, w_elements);
    assert_ok(ptxgen_dense_make_plan(&spec, &target, &plan, &err), &err);
    const ptxgen_dense_operands operands = {.m = m, .x = x_elements, .w = w_elements};
    struct said s = said_allocate((size_t)m * PRODUCT_N);
    assert_ok(ptxgen_dense_reference_spread(&plan, &operands, s.y, s.bound, s.spread, &err), &err);
    free(x_elements);
    free(w_elements);
    return s;
}

static void f32_products_with_a_fault_are_too_far_spread(void **state)
{
    (void)state;
    check_product_faults(PTXGEN_F32, 1, ask);
}

static void f16_products_with_a_fault_are_too_far_spread(void **state)
{
    (void)state;
    check_product_faults(PTXGEN_F16, 1, ask);
}

static void bf16_products_with_a_fault_are_too_far_spread(void **state)
{
    (void)state;
    check_product_faults(PTXGEN_BF16, 1, ask);
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
