/* SPDX-License-Identifier: Apache-2.0 */
/* What stands around the product, and numbers that are no ordinary ones. */
#include "tests/problems.h"

#include "src/harness/gguf_linear.h"

#include <math.h>
#include <string.h>

static const ptxgen_gguf_linear_spec plain = {
    .k = 640, .n = {24}, .w_type = {PTXGEN_GGUF_Q5_0}, .x_type = PTXGEN_F32, .y_type = PTXGEN_F32};

/* Norm, residual, its sum written out, bias and gate, in each element type. */
static void each_epilogue_is_right(void **state)
{
    (void)state;
    for (int i = 0; i < 3 * 2 * 3 * 2 * 3; i++) {
        if (!test_in_share(i))
            continue;
        ptxgen_gguf_linear_spec spec = plain;
        spec.x_type = (uint8_t)(i % 3);
        spec.y_type = (uint8_t)(i / 3 % 3);
        spec.norm = (uint8_t)(i / 3 % 2);
        spec.residual = (uint8_t)(i / 6 % 3);
        spec.residual_out = spec.residual && i / 18 % 2;
        spec.epilogue = (uint8_t)(i / 36 % 3);
        spec.bias = (uint8_t)(i % 2);
        spec.n[1] = spec.epilogue ? spec.n[0] : 0;
        spec.w_type[1] = spec.epilogue ? spec.w_type[0] : 0;
        spec.epsilon = spec.norm || spec.residual == PTXGEN_GGUF_LINEAR_AFTER ? 1e-6f : 0;
        run_spec(i % 2 ? "cpu:sm_80" : "cpu:sm_90", &gguf_linear_harness, &spec,
                 1 + (uint64_t)i % 4);
    }
}

/* A NaN or infinity stays in its token's row; the others are right. */
static void what_is_not_finite_stays_in_its_row(void **state)
{
    (void)state;
    for (int i = 0; i < 3 * 3 * 2; i++) {
        ptxgen_gguf_linear_spec spec = plain;
        struct device device = open_device("cpu:sm_80");
        spec.x_type = (uint8_t)(i % 3);
        spec.residual = (uint8_t)(i / 3 % 3);
        spec.norm = (uint8_t)(i / 9);
        spec.epsilon = spec.norm || spec.residual == PTXGEN_GGUF_LINEAR_AFTER ? 1e-6f : 0;
        struct problem p = make_problem(&device, &gguf_linear_harness, &spec, 4, NULL);
        typed_store(spec.x_type, (void *)problem_at(&p, GGUF_LINEAR_AT_X, 1, 300), 0, NAN);
        typed_store(spec.x_type, (void *)problem_at(&p, GGUF_LINEAR_AT_X, 2, 639), 0, INFINITY);
        check_problem(&p, &device);
        for (size_t m = 0; m < 4; m++)
            for (size_t n = 0; n < spec.n[0]; n++) {
                double y = typed_load(PTXGEN_F32, problem_at(&p, GGUF_LINEAR_AT_Y, m, n), 0);
                assert_int_equal(!isnan(y), m == 0 || m == 3);
            }
        problem_release(&p);
        device_close(&device);
    }
}

/* A row of zeros gives NaN with an ε of 0, and else 0. */
static void a_row_of_zeros_is_divided_by_epsilon_alone(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        ptxgen_gguf_linear_spec spec = plain;
        struct device device = open_device("cpu:sm_90");
        spec.norm = PTXGEN_GGUF_LINEAR_RMSNORM;
        spec.epsilon = i ? 1e-6f : 0;
        struct problem p = make_problem(&device, &gguf_linear_harness, &spec, 1, NULL);
        memset((void *)problem_at(&p, GGUF_LINEAR_AT_X, 0, 0), 0, spec.k * sizeof(float));
        check_problem(&p, &device);
        double y = typed_load(PTXGEN_F32, problem_at(&p, GGUF_LINEAR_AT_Y, 0, 0), 0);
        assert_true(i ? y == 0 : isnan(y));
        problem_release(&p);
        device_close(&device);
    }
}

static void a_plan_may_be_made_of_its_own_spec_and_target(void **state)
{
    (void)state;
    const ptxgen_gguf_linear_spec spec = {.k = 512,
                                          .n = {64},
                                          .w_type = {PTXGEN_GGUF_Q6_K},
                                          .x_type = PTXGEN_F16,
                                          .y_type = PTXGEN_F16};
    const ptxgen_target target = target_of("sm_90a");
    ptxgen_gguf_linear_plan plan;
    ptxgen_error err = {0};
    assert_ok(ptxgen_gguf_linear_make_plan(&spec, &target, &plan, &err), &err);
    ptxgen_gguf_linear_plan again = plan;
    assert_ok(ptxgen_gguf_linear_make_plan(&again.spec, &again.target, &again, &err), &err);
    assert_memory_equal(&again, &plan, sizeof plan);
}

/* The bound follows from the integers' 16 or 24 bits. */
static void the_bound_is_that_of_the_planes(void **state)
{
    static const double most[] = {0x1p-18, 0x1p-12, 0x1p-12};
    (void)state;
    for (uint8_t type = PTXGEN_F32; type <= PTXGEN_BF16; type++) {
        ptxgen_gguf_linear_spec spec = plain;
        struct device device = open_device("cpu:sm_80");
        spec.x_type = type;
        struct problem p = make_problem(&device, &gguf_linear_harness, &spec, 1, NULL);
        for (size_t k = 0; k < spec.k; k++)
            typed_store(type, (void *)problem_at(&p, GGUF_LINEAR_AT_X, 0, k), 0, 1);
        check_problem(&p, &device);
        const ptxgen_gguf_linear_operands o = {.m = 1,
                                               .x = problem_at(&p, GGUF_LINEAR_AT_X, 0, 0),
                                               .w = {problem_at(&p, GGUF_LINEAR_AT_W, 0, 0)}};
        double y, bound, size = 0;
        float w[640];
        assert_int_equal(ptxgen_gguf_linear_reference(p.plan, &o, 0, 0, 1, &y, &bound, NULL, NULL),
                         PTXGEN_OK);
        assert_int_equal(
            ptxgen_gguf_decode_row(PTXGEN_GGUF_Q5_0, o.w[0], sizeof w, spec.k, w, NULL), PTXGEN_OK);
        for (size_t k = 0; k < spec.k; k++)
            size += fabs((double)w[k]);
        assert_true(bound > size * most[type] / 64 && bound < size * most[type]);
        problem_release(&p);
        device_close(&device);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_epilogue_is_right),
        cmocka_unit_test(what_is_not_finite_stays_in_its_row),
        cmocka_unit_test(a_row_of_zeros_is_divided_by_epsilon_alone),
        cmocka_unit_test(a_plan_may_be_made_of_its_own_spec_and_target),
        cmocka_unit_test(the_bound_is_that_of_the_planes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
