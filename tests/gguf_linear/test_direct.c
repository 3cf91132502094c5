/* SPDX-License-Identifier: Apache-2.0 */
/* Launches of more than 8 tokens whose weights are decoded in registers. */
#include "tests/problems.h"

#include "src/harness/gguf_linear.h"
#include "src/kernels/gguf/block.h"
#include "src/kernels/half.h"

#include <math.h>
#include <string.h>

static const char *const device_name = "cpu:sm_90";

/* Types, and the multiple of 256 that K has to be, so that rows are multiples of 16 bytes. */
static const struct {
    uint8_t type, units;
} types[] = {{PTXGEN_GGUF_Q4_K, 1},   {PTXGEN_GGUF_Q5_K, 1}, {PTXGEN_GGUF_Q8_0, 1},
             {PTXGEN_GGUF_Q6_K, 8},   {PTXGEN_GGUF_Q4_0, 1}, {PTXGEN_GGUF_Q4_1, 1},
             {PTXGEN_GGUF_Q5_0, 1},   {PTXGEN_GGUF_Q5_1, 1}, {PTXGEN_GGUF_IQ4_NL, 1},
             {PTXGEN_GGUF_IQ4_XS, 2}, {PTXGEN_GGUF_Q2_K, 4}, {PTXGEN_GGUF_Q3_K, 8},
             {PTXGEN_GGUF_MXFP4, 2}};
enum { TYPES = sizeof types / sizeof *types, UNIT = 256 };

static ptxgen_gguf_linear_plan plan_of(const ptxgen_gguf_linear_spec *spec, const char *target_name)
{
    const ptxgen_target target = target_of(target_name);
    ptxgen_gguf_linear_plan plan;
    ptxgen_error err;
    assert_ok(ptxgen_gguf_linear_make_plan(spec, &target, &plan, &err), &err);
    return plan;
}

static void assert_direct(const struct problem *p, bool expected)
{
    char text[256];
    ptxgen_gguf_linear_explain(p->plan, p->m, text, sizeof text);
    if (!strstr(text, "in registers") == expected)
        fail_msg("'%s' does not say what is done", text);
}

/* ---- weights ---- */

static double held_in_f16(double value)
{
    return ptxgen_element_round(PTXGEN_F16, fmin(fmax(value, -65504), 65504));
}

/*
 * Weight i of a row as it is multiplied: in f16 the block's scale and minimum are f16, and what
 * they make of the code is rounded once; in bf16, and of MXFP4, it is the exact weight that is
 * rounded.
 */
static double decoded(uint8_t type, ptxgen_element compute, const uint8_t *row, size_t i)
{
    const struct gguf_format *f = gguf_format_of(type);
    struct gguf_block block;
    f->unpack(row + i / f->info.block_weights * f->info.block_bytes, &block);
    i %= f->info.block_weights;
    double scale = (double)block.scale[i / block.group], min = (double)block.min[i / block.group];
    if (compute == PTXGEN_F16 && type != PTXGEN_GGUF_MXFP4)
        return ptxgen_element_round(PTXGEN_F16,
                                    held_in_f16(scale) * block.code[i] - held_in_f16(min));
    return ptxgen_element_round(compute, (double)(float)(scale * block.code[i] - min));
}

/*
 * Rows of x are those of a unit matrix, so that each output is one weight of one unit, rounded
 * once: of K and of the codes nothing is in another's place.
 */
static void check_unit(uint8_t type, uint8_t x_type, uint32_t k, uint32_t unit)
{
    enum { N = 24 };
    const ptxgen_gguf_linear_spec spec = {
        .k = k, .n = {N}, .w_type = {type}, .x_type = x_type, .y_type = PTXGEN_F32};
    struct device device = open_device(device_name);
    struct problem p = make_problem(&device, &gguf_linear_harness, &spec, UNIT, NULL);
    assert_direct(&p, true);
    for (size_t m = 0; m < UNIT; m++)
        for (size_t i = 0; i < k; i++)
            typed_store(x_type, (void *)problem_at(&p, GGUF_LINEAR_AT_X, m, i), 0,
                        i == (size_t)unit * UNIT + m);
    check_problem(&p, &device);
    for (size_t n = 0; n < N; n++)
        for (size_t m = 0; m < UNIT; m++) {
            const uint8_t *row = problem_at(&p, GGUF_LINEAR_AT_W, n, 0);
            double w = decoded(type, x_type, row, (size_t)unit * UNIT + m);
            assert_true(typed_load(PTXGEN_F32, problem_at(&p, GGUF_LINEAR_AT_Y, m, n), 0) == w);
        }
    problem_release(&p);
    device_close(&device);
}

/* Of units that begin at all places between multiples of 16 bytes. */
static void each_weight_is_decoded_to_its_own_bits(void **state)
{
    enum { MOST_UNITS = 8 };
    (void)state;
    for (uint32_t i = 0; i < TYPES * MOST_UNITS; i++) {
        const uint32_t t = i / MOST_UNITS, unit = i % MOST_UNITS;
        const uint32_t units = types[t].units < 2 ? 2 : types[t].units;
        if (!test_in_share((int)i) || unit >= units)
            continue;
        check_unit(types[t].type, PTXGEN_F16, units * UNIT, unit);
        check_unit(types[t].type, PTXGEN_BF16, units * UNIT, unit);
    }
}

/* Scales and minima of 189,000, whose weights are zeros: as f16 they are 65504, not infinities. */
static void scales_beyond_f16_make_no_nan(void **state)
{
    enum { BYTES = 144, D = 0x69DC /* 3000 */, N = 24 };
    const ptxgen_gguf_linear_spec spec = {.k = 256,
                                          .n = {N},
                                          .w_type = {PTXGEN_GGUF_Q4_K},
                                          .x_type = PTXGEN_F16,
                                          .y_type = PTXGEN_F32};
    struct device device = open_device(device_name);
    struct problem p = make_problem(&device, &gguf_linear_harness, &spec, 34, NULL);
    (void)state;
    for (size_t n = 0; n < N; n++) {
        const uint16_t ends[2] = {D, n % 2 ? D : 0}; /* of codes 1 with minima, or codes 0 */
        uint8_t *row = (void *)problem_at(&p, GGUF_LINEAR_AT_W, n, 0);
        memcpy(row, ends, sizeof ends);
        memset(row + 4, 0xFF, 12);
        memset(row + 16, n % 2 ? 0x11 : 0, BYTES - 16);
    }
    check_problem(&p, &device);
    for (size_t m = 0; m < 34; m++)
        for (size_t n = 0; n < N; n++)
            assert_true(typed_load(PTXGEN_F32, problem_at(&p, GGUF_LINEAR_AT_Y, m, n), 0) == 0);
    problem_release(&p);
    device_close(&device);
}

/* Whatever the exponent of a block of MXFP4 is, each weight of it is the nearest number. */
static void powers_of_two_scale_exactly(uint8_t x_type, uint8_t first, uint8_t step)
{
    enum { N = 48, K = 512, BLOCK = 17 };
    const double most = x_type == PTXGEN_F16 ? 65504 : 0x1p127;
    const ptxgen_gguf_linear_spec spec = {
        .k = K, .n = {N}, .w_type = {PTXGEN_GGUF_MXFP4}, .x_type = x_type, .y_type = PTXGEN_F32};
    struct device device = open_device(device_name);
    struct problem p = make_problem(&device, &gguf_linear_harness, &spec, K, NULL);
    for (size_t n = 0; n < N; n++) {
        uint8_t *row = (void *)problem_at(&p, GGUF_LINEAR_AT_W, n, 0);
        for (size_t i = 0; i < K / 32 * BLOCK; i++) {
            const unsigned e = first + (unsigned)n * step;
            unsigned code = (unsigned)(i * 7 + n) % 8;
            while (ldexp(gguf_e2m1[code], (int)e - 128) > most)
                code--;
            row[i] = (uint8_t)(i % BLOCK ? code | (code | 8) << 4 : e);
        }
    }
    for (size_t m = 0; m < K; m++)
        for (size_t i = 0; i < K; i++)
            typed_store(x_type, (void *)problem_at(&p, GGUF_LINEAR_AT_X, m, i), 0, i == m);
    check_problem(&p, &device);
    for (size_t n = 0; n < N; n++)
        for (size_t m = 0; m < K; m++) {
            double w =
                decoded(PTXGEN_GGUF_MXFP4, x_type, problem_at(&p, GGUF_LINEAR_AT_W, n, 0), m);
            assert_true(typed_load(PTXGEN_F32, problem_at(&p, GGUF_LINEAR_AT_Y, m, n), 0) == w);
        }
    problem_release(&p);
    device_close(&device);
}

static void scales_of_mxfp4_are_exact(void **state)
{
    (void)state;
    powers_of_two_scale_exactly(PTXGEN_F16, 97, 1); /* from weights that are all 0 to 2¹⁵ */
    powers_of_two_scale_exactly(PTXGEN_BF16, 0, 5);
    powers_of_two_scale_exactly(PTXGEN_BF16, 206, 1); /* to weights of 2¹²⁷ */
}

/* ---- what stands around the product ---- */

static ptxgen_gguf_linear_spec spec_of(uint8_t type, uint32_t units, unsigned i)
{
    ptxgen_gguf_linear_spec s = {.k = units * UNIT * (i % 3 || units > 1 ? 1 : 3),
                                 .n = {i % 2 ? 264 : 43},
                                 .w_type = {type},
                                 .x_type = (uint8_t)(i % 3),
                                 .y_type = (uint8_t)(i / 2 % 3),
                                 .residual = (uint8_t)(i / 3 % 3),
                                 .bias = i / 2 % 2};
    s.compute = s.x_type == PTXGEN_F32 ? PTXGEN_F16 : i % 5 ? 0 : PTXGEN_BF16;
    s.norm = i % 4 == 1;
    s.residual_out = s.residual && i % 4 < 2;
    if (s.norm || s.residual == PTXGEN_GGUF_LINEAR_AFTER)
        s.epsilon = 1e-5f;
    if (i % 3 != 1)
        return s;
    s.n[1] = s.n[0];
    s.w_type[1] = type;
    s.epilogue = i % 4 < 2 ? PTXGEN_EPILOGUE_SWIGLU : PTXGEN_EPILOGUE_GEGLU;
    return s;
}

static void every_type_is_right_whatever_stands_around(void **state)
{
    static const uint32_t ms[] = {9, 32, 33, 64, 65, 140, 300};
    enum { CASES = sizeof ms / sizeof *ms };
    (void)state;
    for (unsigned t = 0; t < TYPES; t++)
        for (unsigned i = 0; i < CASES; i++) {
            const ptxgen_gguf_linear_spec spec = spec_of(types[t].type, types[t].units, t + i);
            if (!test_in_share((int)(t * CASES + i)))
                continue;
            struct device device = open_device(device_name);
            struct problem p =
                make_problem(&device, &gguf_linear_harness, &spec, ms[(t + i) % CASES], NULL);
            assert_direct(&p, true);
            run_and_release(&p, &device);
            device_close(&device);
        }
}

/* Of the three, none is a whole number of tiles. */
static void matrices_that_share_x_are_right(void **state)
{
    static const uint32_t ns[][3] = {{8, 264, 16}, {300, 1, 40}, {256, 256, 9}, {513, 24, 0}};
    (void)state;
    for (unsigned i = 0; i < 8; i++) {
        ptxgen_gguf_linear_spec spec = {.k = 512,
                                        .x_type = PTXGEN_F16,
                                        .y_type = i % 2 ? PTXGEN_F16 : PTXGEN_F32,
                                        .bias = i / 4};
        memcpy(spec.n, ns[i % 4], sizeof spec.n);
        spec.k *= types[i % TYPES].units;
        memset(spec.w_type, types[i % TYPES].type, 2 + (spec.n[2] > 0));
        if (test_in_share((int)i))
            run_spec(device_name, &gguf_linear_harness, &spec, i < 4 ? 40 : i < 6 ? 70 : 140);
    }
}

/* Weights begin at any multiple of 16 bytes; y is stored element by element. */
static void views_that_are_strided_or_misaligned_are_right(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 9; i++) {
        const ptxgen_gguf_linear_spec spec = {.k = 256,
                                              .n = {48, i % 2 ? 24 : 0, i % 2 ? 8 : 0},
                                              .w_type = {PTXGEN_GGUF_Q8_0,
                                                         i % 2 ? PTXGEN_GGUF_Q8_0 : 0,
                                                         i % 2 ? PTXGEN_GGUF_Q8_0 : 0},
                                              .x_type = i % 3 ? PTXGEN_F16 : PTXGEN_BF16,
                                              .y_type = PTXGEN_BF16,
                                              .bias = i / 2 % 2};
        struct layout layout = {.gap = {0}};
        layout.gap[GGUF_LINEAR_AT_X] = i % 4 == 1 ? 8 : i % 4;
        layout.shift[GGUF_LINEAR_AT_X] = i % 3;
        layout.shift[GGUF_LINEAR_AT_W] = i % 5;
        layout.gap[GGUF_LINEAR_AT_Y] = i / 4;
        layout.shift[GGUF_LINEAR_AT_Y] = i / 6;
        layout.shift[GGUF_LINEAR_AT_BIAS] = i / 4 % 2;
        if (!test_in_share((int)i))
            continue;
        struct device device = open_device(device_name);
        struct problem p =
            make_problem(&device, &gguf_linear_harness, &spec, i % 3 ? 35 : 77, &layout);
        assert_direct(&p, true);
        run_and_release(&p, &device);
        device_close(&device);
    }
}

/*
 * Tiles of all CTAs, or of clusters of two, in several orders, whose flags in the workspace are
 * poison before.
 */
static void tiles_are_divided_in_a_workspace_that_holds_anything(void **state)
{
    static const struct {
        uint32_t k, n, m, cluster;
    } rows[] = {{8192, 64, 12, 1},
                {8192, 64, 34, 1},
                {8192, 64, 100, 1},
                {8192, 64, 200, 1},
                {4096, 1024, 200, 2}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const ptxgen_gguf_linear_spec spec = {.k = rows[i].k,
                                              .n = {rows[i].n},
                                              .w_type = {types[i % TYPES].type},
                                              .x_type = PTXGEN_F16,
                                              .y_type = PTXGEN_F16};
        if (!test_in_share((int)i))
            continue;
        struct device device = open_device(device_name);
        uint32_t ctas = 0;
        order_by(&device, (uint64_t)i + 1);
        struct problem p = make_problem(&device, &gguf_linear_harness, &spec, rows[i].m, NULL);
        const ptxgen_tile *v = ptxgen_gguf_linear_choose_direct(p.plan, rows[i].m);
        assert_int_equal(ptxgen_gguf_linear_ctas(p.plan, rows[i].m, &ctas, NULL), PTXGEN_OK);
        assert_int_equal(v->cluster, rows[i].cluster);
        assert_true(ctas > (rows[i].n + v->tile_n - 1) / v->tile_n);
        run_and_release(&p, &device);
        device_close(&device);
    }
}

/* A NaN or infinity stays in its token's row. */
static void what_is_not_finite_stays_in_its_row(void **state)
{
    const ptxgen_gguf_linear_spec spec = {.k = 256,
                                          .n = {40},
                                          .w_type = {PTXGEN_GGUF_Q4_K},
                                          .x_type = PTXGEN_F16,
                                          .y_type = PTXGEN_F32};
    struct device device = open_device(device_name);
    struct problem p = make_problem(&device, &gguf_linear_harness, &spec, 34, NULL);
    (void)state;
    typed_store(spec.x_type, (void *)problem_at(&p, GGUF_LINEAR_AT_X, 1, 200), 0, NAN);
    check_problem(&p, &device);
    for (size_t m = 0; m < 34; m++)
        for (size_t n = 0; n < spec.n[0]; n++)
            assert_int_equal(
                isnan(typed_load(PTXGEN_F32, problem_at(&p, GGUF_LINEAR_AT_Y, m, n), 0)), m == 1);
    problem_release(&p);
    device_close(&device);
}

/* ---- plans ---- */

static void plans_decode_in_registers_where_wgmma_can(void **state)
{
    const ptxgen_gguf_linear_spec base = {.k = 512,
                                          .n = {64, 64},
                                          .w_type = {PTXGEN_GGUF_Q4_K, PTXGEN_GGUF_Q4_K},
                                          .x_type = PTXGEN_F16};
    static const struct {
        const char *target;
        uint32_t k, max_m;
        uint8_t second, x_type, compute;
        bool direct;
    } rows[] = {
        {"sm_90a", 512, 0, PTXGEN_GGUF_Q4_K, PTXGEN_F16, 0, true},
        {"sm_90a", 512, 33, PTXGEN_GGUF_Q4_K, PTXGEN_BF16, 0, true},
        {"sm_90a", 512, 9, PTXGEN_GGUF_Q4_K, PTXGEN_F16, 0, true},
        {"sm_90a", 512, 8, PTXGEN_GGUF_Q4_K, PTXGEN_F16, 0, false},
        {"sm_90a", 512, 0, PTXGEN_GGUF_Q4_K, PTXGEN_F32, PTXGEN_BF16, true},
        {"sm_90a", 512, 0, PTXGEN_GGUF_Q4_K, PTXGEN_F32, 0, false},
        {"sm_90a", 512, 0, PTXGEN_GGUF_Q8_0, PTXGEN_F16, 0, false},
        {"sm_90", 512, 0, PTXGEN_GGUF_Q4_K, PTXGEN_F16, 0, false},
        {"sm_80", 512, 0, PTXGEN_GGUF_Q4_K, PTXGEN_F16, 0, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ptxgen_gguf_linear_spec spec = base;
        spec.k = rows[i].k;
        spec.max_m = rows[i].max_m;
        spec.w_type[1] = rows[i].second;
        spec.x_type = rows[i].x_type;
        spec.compute = rows[i].compute;
        const ptxgen_gguf_linear_plan plan = plan_of(&spec, rows[i].target);
        const bool many = !spec.max_m || spec.max_m > 32;
        assert_int_equal(plan.direct_count > 0, rows[i].direct);
        assert_int_equal(plan.inflated.variant_count > 0, many && !rows[i].direct);
        assert_int_equal(ptxgen_gguf_linear_choose_direct(&plan, 9) != NULL, rows[i].direct);
        assert_null(ptxgen_gguf_linear_choose_direct(&plan, 8));
        assert_int_equal(ptxgen_gguf_linear_choose(&plan, 9) != NULL,
                         !rows[i].direct && spec.max_m != 8);
    }
    assert_null(ptxgen_gguf_linear_choose_direct(NULL, 33));
    assert_null(ptxgen_gguf_linear_direct_entry(NULL));
}

/* Where K is no multiple of 256, or rows are no multiple of 16 bytes, inflate.h's launches are. */
static void rows_are_multiples_of_16_bytes(void **state)
{
    ptxgen_gguf_linear_spec spec = {
        .k = 288, .n = {64}, .w_type = {PTXGEN_GGUF_Q8_0}, .x_type = PTXGEN_F16};
    (void)state;
    assert_int_equal(plan_of(&spec, "sm_90a").direct_count, 0);
    spec.k = 512;
    assert_true(plan_of(&spec, "sm_90a").direct_count > 0);
    spec.w_type[0] = PTXGEN_GGUF_Q6_K;
    assert_int_equal(plan_of(&spec, "sm_90a").direct_count, 0);
    spec.k = 2048;
    assert_true(plan_of(&spec, "sm_90a").direct_count > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_weight_is_decoded_to_its_own_bits),
        cmocka_unit_test(scales_beyond_f16_make_no_nan),
        cmocka_unit_test(scales_of_mxfp4_are_exact),
        cmocka_unit_test(every_type_is_right_whatever_stands_around),
        cmocka_unit_test(matrices_that_share_x_are_right),
        cmocka_unit_test(views_that_are_strided_or_misaligned_are_right),
        cmocka_unit_test(tiles_are_divided_in_a_workspace_that_holds_anything),
        cmocka_unit_test(what_is_not_finite_stays_in_its_row),
        cmocka_unit_test(plans_decode_in_registers_where_wgmma_can),
        cmocka_unit_test(rows_are_multiples_of_16_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
