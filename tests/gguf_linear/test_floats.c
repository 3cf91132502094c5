/* SPDX-License-Identifier: Apache-2.0 */
/* Matrices in F32, F16 and BF16, alone and beside quantised ones. */
#include "tests/problems.h"

#include "src/harness/gguf_linear.h"

#include <math.h>
#include <string.h>

static const char *const devices[] = {"cpu:sm_80", "cpu:sm_90", "cpu:sm_120"};
enum { DEVICES = 3, TYPES = 3 };
static const uint8_t types[TYPES] = {PTXGEN_GGUF_F32, PTXGEN_GGUF_F16, PTXGEN_GGUF_BF16};

/* Least K, K that is no multiple of 32, whole steps and parts of one, and one to eight warps. */
static void floats_are_right_at_every_size(void **state)
{
    static const uint32_t ks[] = {8, 264, 1024, 2056, 4096, 8200}, ms[] = {1, 2, 3, 8};
    enum { KS = 6, MS = 4 };
    (void)state;
    for (unsigned i = 0; i < TYPES * KS * MS; i++) {
        const ptxgen_gguf_linear_spec spec = {.k = ks[i / MS % KS],
                                              .n = {i % 5 ? 37 : 1},
                                              .max_m = ms[i % MS],
                                              .w_type = {types[i / MS / KS]},
                                              .x_type = (uint8_t)(i % 3),
                                              .y_type = (uint8_t)(i / 2 % 3),
                                              .bias = i % 2};
        if (test_in_share((int)i))
            run_spec(devices[i % DEVICES], &gguf_linear_harness, &spec, ms[i % MS]);
    }
}

/* Norms, residuals and gates, of one type and of two, for few tokens and for many. */
static void each_epilogue_of_floats_is_right(void **state)
{
    static const uint8_t others[] = {PTXGEN_GGUF_F16, PTXGEN_GGUF_BF16, PTXGEN_GGUF_Q8_0,
                                     PTXGEN_GGUF_F32};
    static const uint32_t ms[] = {1, 3, 8, 11, 35};
    (void)state;
    for (unsigned i = 0; i < 2 * 3 * 3 * 2 * 3; i++) {
        ptxgen_gguf_linear_spec s = {.k = 352,
                                     .n = {21},
                                     .w_type = {types[i % 3]},
                                     .x_type = (uint8_t)(i / 2 % 3),
                                     .y_type = (uint8_t)(i / 3 % 3),
                                     .norm = (uint8_t)(i % 2),
                                     .residual = (uint8_t)(i / 2 % 3),
                                     .epilogue = (uint8_t)(i / 6 % 3),
                                     .bias = i / 18 % 2,
                                     .compute = (uint8_t)(i / 7 % 3)};
        s.residual_out = s.residual && i / 12 % 2;
        s.n[1] = s.epilogue ? s.n[0] : 0;
        s.w_type[1] = s.epilogue ? others[i % 4] : 0;
        s.epsilon = s.norm || s.residual == PTXGEN_GGUF_LINEAR_AFTER ? 1e-6f : 0;
        if (test_in_share((int)i))
            run_spec(devices[i % DEVICES], &gguf_linear_harness, &s, ms[i % 5]);
    }
}

/* Each of a triple by the kernel of its type, in passes from 9 to 32 tokens. */
static void a_triple_of_quantised_and_floats_is_right(void **state)
{
    static const uint32_t ms[] = {1, 4, 8, 19, 33};
    (void)state;
    for (unsigned i = 0; i < 10; i++) {
        const ptxgen_gguf_linear_spec spec = {
            .k = 512,
            .n = {40, 13, 24},
            .epsilon = 1e-5f,
            .w_type = {PTXGEN_GGUF_Q4_K, PTXGEN_GGUF_F16, PTXGEN_GGUF_Q6_K},
            .x_type = i % 2 ? PTXGEN_F32 : PTXGEN_BF16,
            .y_type = i % 2 ? PTXGEN_F32 : PTXGEN_BF16,
            .norm = i / 5,
            .residual = i / 5 ? PTXGEN_GGUF_LINEAR_BEFORE : 0,
            .residual_out = i / 5};
        if (test_in_share((int)i))
            run_spec(devices[i % DEVICES], &gguf_linear_harness, &spec, ms[i % 5]);
    }
}

/* Views at each address, whose rows are loaded in vectors or element by element. */
static void views_that_are_not_aligned_are_right(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 24; i++) {
        const ptxgen_gguf_linear_spec spec = {.k = 648,
                                              .n = {19, i % 2 ? 5 : 0},
                                              .w_type = {types[i % 3], types[i / 3 % 3]},
                                              .x_type = (uint8_t)(i / 2 % 3),
                                              .y_type = PTXGEN_F32,
                                              .norm = i / 12};
        struct layout layout = {.gap = {0}};
        layout.shift[GGUF_LINEAR_AT_W] = i % 4;
        layout.shift[GGUF_LINEAR_AT_X] = i / 2 % 3;
        layout.gap[GGUF_LINEAR_AT_X] = i / 4 % 3;
        layout.gap[GGUF_LINEAR_AT_Y] = i % 2;
        if (!test_in_share((int)i))
            continue;
        struct device device = open_device(devices[i % DEVICES]);
        struct problem p =
            make_problem(&device, &gguf_linear_harness, &spec, i % 5 ? 1 + i % 8 : 20, &layout);
        run_and_release(&p, &device);
        device_close(&device);
    }
}

/* ---- where weights are read ---- */

static uint64_t workspace_of(const ptxgen_gguf_linear_spec *spec, uint64_t m, uint64_t w)
{
    const ptxgen_gguf_linear_args args = {.m = m, .x = 1024, .w = {w}, .y = {UINT64_C(1) << 30}};
    const ptxgen_target target = target_of("sm_80");
    struct device device = open_device("cpu:sm_80");
    ptxgen_gguf_linear_plan plan;
    ptxgen_gguf_linear *kernel;
    ptxgen_error err;
    uint64_t bytes = 0;
    assert_ok(ptxgen_gguf_linear_make_plan(spec, &target, &plan, &err), &err);
    assert_ok(ptxgen_gguf_linear_load(&device.driver, &plan, NULL, &kernel, &err), &err);
    assert_ok(ptxgen_gguf_linear_workspace_bytes(kernel, &args, &bytes, &err), &err);
    ptxgen_gguf_linear_destroy(kernel);
    device_close(&device);
    return bytes;
}

/* A single matrix of the compute type is not copied, but for one that is not aligned. */
static void a_matrix_of_the_compute_type_is_multiplied_where_it_is(void **state)
{
    ptxgen_gguf_linear_spec spec = {.k = 1024,
                                    .n = {16384},
                                    .w_type = {PTXGEN_GGUF_F16},
                                    .x_type = PTXGEN_F16,
                                    .y_type = PTXGEN_F32};
    const uint64_t matrix = UINT64_C(1024) * 16384 * 2;
    (void)state;
    assert_int_equal(workspace_of(&spec, 2, 4096), 0);
    assert_true(workspace_of(&spec, 40, 4096) < matrix);
    assert_true(workspace_of(&spec, 40, 4098) >= matrix);
    spec.w_type[0] = PTXGEN_GGUF_BF16;
    assert_true(workspace_of(&spec, 40, 4096) >= matrix);
}

/* Tiles that are divided among CTAs, whose flags in the workspace are poison before. */
static void flags_are_cleared_where_nothing_is_decoded(void **state)
{
    (void)state;
    for (int i = 0; i < DEVICES; i++) {
        const ptxgen_gguf_linear_spec spec = {.k = 8192,
                                              .n = {64},
                                              .w_type = {PTXGEN_GGUF_BF16},
                                              .x_type = PTXGEN_BF16,
                                              .y_type = PTXGEN_F32};
        struct device device = open_device(devices[i]);
        order_by(&device, (uint64_t)i + 1);
        struct problem p = make_problem(&device, &gguf_linear_harness, &spec, 34, NULL);
        run_and_release(&p, &device);
        device_close(&device);
    }
}

/* ---- plans ---- */

static void floats_are_multiplied_in_one_pass(void **state)
{
    const ptxgen_target target = target_of("sm_90a");
    (void)state;
    for (int way = 0; way < 3; way++) {
        const bool mixed = way == 1, has_compute_type = way == 2;
        const ptxgen_gguf_linear_spec spec = {.k = 256,
                                              .n = {64, mixed ? 8 : 0},
                                              .w_type = {PTXGEN_GGUF_F16, PTXGEN_GGUF_Q8_0},
                                              .x_type =
                                                  has_compute_type ? PTXGEN_F16 : PTXGEN_BF16};
        const uint32_t most = mixed ? 32 : has_compute_type ? 2 : 8;
        ptxgen_gguf_linear_plan plan;
        ptxgen_guarantee g;
        ptxgen_error err;
        char text[256];
        assert_ok(ptxgen_gguf_linear_make_plan(&spec, &target, &plan, &err), &err);
        for (uint32_t m = 1; m < 40; m++) {
            assert_int_equal(ptxgen_gguf_linear_choose(&plan, m) != NULL, m <= most);
            assert_int_equal(ptxgen_gguf_linear_choose_inflated(&plan, m) != NULL, m > most);
        }
        assert_ok(ptxgen_gguf_linear_guarantee(&plan, 2, &g, &err), &err);
        assert_string_equal(g.sku, mixed ? "gguf_linear_m2" : "gguf_linear_float_m2");
        assert_int_equal(g.x_rounding, mixed ? PTXGEN_ROUNDING_FIXED_16 : PTXGEN_ROUNDING_NONE);
        assert_int_equal(g.w_rounding, PTXGEN_ROUNDING_NONE);
        assert_int_equal(g.to_m, 2);
        ptxgen_gguf_linear_explain(&plan, 30, text, sizeof text);
        assert_int_equal(strstr(text, "w is multiplied as it is, if it is aligned: ") != NULL,
                         has_compute_type);
        if (way)
            continue;
        ptxgen_gguf_linear_explain(&plan, 3, text, sizeof text);
        assert_string_equal(text, "1 kernel: 2 CTAs of 8 x 1 warps along N and K take 32 features "
                                  "each for the 3 tokens (at most 4), in f32");
    }
}

/* ---- values ---- */

/* Whatever is not finite stays in its token's row. */
static void a_nan_stays_in_its_row(void **state)
{
    (void)state;
    for (int i = 0; i < TYPES * 2; i++) {
        const ptxgen_gguf_linear_spec spec = {.k = 640,
                                              .n = {24},
                                              .epsilon = 1e-6f,
                                              .w_type = {types[i % TYPES]},
                                              .x_type = (uint8_t)(i % 3),
                                              .y_type = PTXGEN_F32,
                                              .norm = (uint8_t)(i / TYPES)};
        struct device device = open_device(devices[i % DEVICES]);
        struct problem p = make_problem(&device, &gguf_linear_harness, &spec, 4, NULL);
        typed_store(spec.x_type, (void *)problem_at(&p, GGUF_LINEAR_AT_X, 1, 300), 0, NAN);
        typed_store(spec.x_type, (void *)problem_at(&p, GGUF_LINEAR_AT_X, 2, 639), 0, INFINITY);
        check_problem(&p, &device);
        for (size_t m = 0; m < 4; m++)
            for (size_t n = 0; n < spec.n[0]; n++) {
                double y = typed_load(PTXGEN_F32, problem_at(&p, GGUF_LINEAR_AT_Y, m, n), 0);
                if (m == 1)
                    assert_true(isnan(y));
                else if (m != 2)
                    assert_true(isfinite(y));
            }
        problem_release(&p);
        device_close(&device);
    }
}

static void the_reference_refuses_weights_that_are_not_finite(void **state)
{
    const ptxgen_gguf_linear_spec spec = {
        .k = 8, .n = {2}, .w_type = {PTXGEN_GGUF_F32}, .x_type = PTXGEN_F32};
    const ptxgen_target target = target_of("sm_80");
    const float x[8] = {0}, w[16] = {[13] = INFINITY};
    const ptxgen_gguf_linear_operands o = {.m = 1, .x = x, .w = {w}};
    ptxgen_gguf_linear_plan plan;
    ptxgen_error err;
    double y;
    (void)state;
    assert_ok(ptxgen_gguf_linear_make_plan(&spec, &target, &plan, &err), &err);
    assert_ok(ptxgen_gguf_linear_reference(&plan, &o, 0, 0, 1, &y, NULL, NULL, &err), &err);
    assert_int_equal(ptxgen_gguf_linear_reference(&plan, &o, 0, 1, 1, &y, NULL, NULL, &err),
                     PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_string_equal(err.message, "row 1 of w[0] has a weight (5) that is not finite");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(floats_are_right_at_every_size),
        cmocka_unit_test(each_epilogue_of_floats_is_right),
        cmocka_unit_test(a_triple_of_quantised_and_floats_is_right),
        cmocka_unit_test(views_that_are_not_aligned_are_right),
        cmocka_unit_test(a_matrix_of_the_compute_type_is_multiplied_where_it_is),
        cmocka_unit_test(flags_are_cleared_where_nothing_is_decoded),
        cmocka_unit_test(floats_are_multiplied_in_one_pass),
        cmocka_unit_test(a_nan_stays_in_its_row),
        cmocka_unit_test(the_reference_refuses_weights_that_are_not_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
