/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scales of groups of K and of blocks of w: every kind of launch against the reference, the
 * reference's own scales, and what bound and spread see.
 */
#include "support.h"
#include "tests/problems.h"

#include "src/harness/quantise.h"
#include "src/harness/w8a8.h"
#include "src/kernels/w8a8/code_type.h"

static const char *const devices[] = {"cpu:sm_89", "cpu:sm_90", "cpu:sm_120"};
enum { DEVICES = sizeof devices / sizeof *devices };

/* ---- launches ---- */

/* Sizes that end within a group and within a block, and tiles that begin in the middle of one. */
static void launches_are_right_at_the_edges_of_every_tile(void **state)
{
    (void)state;
    static const uint32_t sizes[][2] = {{256, 256}, {261, 328}, {127, 72}, {640, 136}, {1, 8}};
    static const uint32_t ms[] = {1, 9, 16, 17, 33, 64, 65, 129, 257};
    enum { SIZES = sizeof sizes / sizeof *sizes, MS = sizeof ms / sizeof *ms };
    for (int i = 0; i < SIZES * MS; i++) {
        const char *device = devices[(i + i / SIZES) % DEVICES];
        const ptxgen_w8a8_spec spec = {
            .k = sizes[i % SIZES][0],
            .n = sizes[i % SIZES][1],
            .x_type = (uint8_t)(i % 3),
            .y_type = (uint8_t)(i / 2 % 3),
            .scales = i % 4 == 1 ? PTXGEN_W8A8_QUANTISED : PTXGEN_W8A8_DYNAMIC,
            .codes = PTXGEN_W8A8_E4M3,
            .group = PTXGEN_W8A8_GROUP,
            .epilogue = i % 7 == 2 ? PTXGEN_EPILOGUE_SWIGLU : PTXGEN_EPILOGUE_NONE,
            .bias = i % 2,
            .residual = i % 3 == 0};
        if (test_in_share(i))
            run_spec(device, &w8a8_harness, &spec, ms[i % MS]);
    }
}

/* Tiles whose warps have all features of a block, or lie in two of them. */
static void tiles_of_the_callers_choice_are_right(void **state)
{
    (void)state;
    static const ptxgen_tile tiles[] = {
        {.kind = PTXGEN_WGMMA, .tile_m = 128, .tile_n = 128, .wn = 1, .ctas = 1, .cluster = 1},
        {.kind = PTXGEN_WGMMA, .tile_m = 128, .tile_n = 64, .wn = 1, .ctas = 1, .cluster = 1},
        {.kind = PTXGEN_WGMMA, .tile_m = 128, .tile_n = 96, .wk = 2, .ctas = 1, .cluster = 1},
        {.kind = PTXGEN_WGMMA, .tile_m = 64, .tile_n = 80, .wk = 4, .ctas = 1, .cluster = 1},
        {.kind = PTXGEN_WGMMA, .tile_m = 16, .tile_n = 64, .ctas = 1, .cluster = 1},
        {.tile_m = 16, .tile_n = 64, .wn = 2, .wm = 1, .wk = 4, .ctas = 1, .cluster = 2},
        {.tile_m = 64, .tile_n = 32, .wn = 2, .wm = 4, .wk = 1, .ctas = 1, .cluster = 1}};
    enum { TILES = sizeof tiles / sizeof *tiles };
    struct device device = open_device("cpu:sm_90");
    for (int i = 0; i < 2 * TILES; i++) {
        const ptxgen_w8a8_spec spec = {.k = 2048,
                                       .n = i % 2 ? 168 : 300,
                                       .x_type = PTXGEN_BF16,
                                       .y_type = PTXGEN_BF16,
                                       .codes = PTXGEN_W8A8_E4M3,
                                       .group = PTXGEN_W8A8_GROUP,
                                       .epilogue =
                                           i % 2 ? PTXGEN_EPILOGUE_SWIGLU : PTXGEN_EPILOGUE_NONE};
        const ptxgen_tile *tile = &tiles[i / 2];
        if (!test_in_share(i))
            continue;
        uint64_t m = tile->tile_m < 64 ? 15 : tile->tile_m + 5;
        struct problem p =
            make_tiled(&device, &w8a8_harness, &spec, tile, tile->tile_m == 64 ? 61 : m, NULL, i);
        run_and_release(&p, &device);
    }
    device_close(&device);
}

/* 256 features of a warp may lie in three blocks, and with SwiGLU, whose blocks have 256 rows, not. */
static void no_warp_has_rows_in_three_blocks(void **state)
{
    (void)state;
    const ptxgen_target target = target_of("sm_90a");
    for (uint8_t swiglu = 0; swiglu < 2; swiglu++) {
        const ptxgen_tile tile = {.kind = PTXGEN_WGMMA,
                                  .tile_m = 64,
                                  .tile_n = 256,
                                  .wn = 1,
                                  .wk = 1,
                                  .ctas = 1,
                                  .cluster = 1};
        const ptxgen_w8a8_spec spec = {.k = 512,
                                       .n = 2048,
                                       .codes = PTXGEN_W8A8_E4M3,
                                       .group = PTXGEN_W8A8_GROUP,
                                       .epilogue = swiglu};
        ptxgen_w8a8_plan plan;
        ptxgen_error err;
        assert_ok(ptxgen_w8a8_make_plan(&spec, &target, &plan, &err), &err);
        assert_int_equal(ptxgen_w8a8_use_tile(&plan, &tile, &err),
                         swiglu ? PTXGEN_OK : PTXGEN_ERROR_UNSUPPORTED);
    }
}

/* A NaN in one group of a token makes all outputs of that token NaN, and no others. */
static void a_nan_stays_in_its_token(void **state)
{
    (void)state;
    const ptxgen_w8a8_spec spec = {.k = 300,
                                   .n = 40,
                                   .y_type = PTXGEN_F32,
                                   .codes = PTXGEN_W8A8_E4M3,
                                   .group = PTXGEN_W8A8_GROUP};
    for (int d = 0; d < DEVICES; d++) {
        struct device device = open_device(devices[d]);
        struct problem p = make_problem(&device, &w8a8_harness, &spec, 5, NULL);
        typed_store(PTXGEN_F32, p.buffers[W8A8_AT_X].host, 3 * p.strides[W8A8_AT_X] + 299, NAN);
        check_problem(&p, &device);
        const struct buffer *y = &p.buffers[W8A8_AT_Y];
        for (uint32_t m = 0; m < 5; m++)
            for (uint32_t n = 0; n < spec.n; n++) {
                uint64_t at = m * p.strides[W8A8_AT_Y] + n;
                assert_int_equal(isnan(ptxgen_element_load(PTXGEN_F32, y->host, at)), m == 3);
            }
        problem_release(&p);
        device_close(&device);
    }
}

/* ---- the reference ---- */

enum { LONG_K = 7168, N = 136, M = 3, GROUPS = LONG_K / PTXGEN_W8A8_GROUP };

static int8_t weights_of[N * LONG_K], codes_of[M * LONG_K];
static float w_scale[2 * GROUPS], x_scale[M * GROUPS];
static double y_of[M * N], bound_of[M * N], other_y[M * N], other_bound[M * N];
static ptxgen_spread spread_of[M * N], other_spread[M * N];

static void fill(void)
{
    struct random r = random_start(8);
    for (int i = 0; i < N * LONG_K; i++)
        weights_of[i] = (int8_t)(random_bits(&r) % 2 ? random_bits(&r) % 0x7F : 0xFE);
    for (int i = 0; i < M * LONG_K; i++)
        codes_of[i] = (int8_t)((random_bits(&r) % 0x7F) | (random_bits(&r) % 2 ? 0x80 : 0));
    for (int i = 0; i < 2 * GROUPS; i++)
        w_scale[i] = (float)(1e-4 * (1 + random_below(&r, 1000) / 1000.0));
    for (int i = 0; i < M * GROUPS; i++)
        x_scale[i] = (float)(1e-2 * (1 + random_below(&r, 1000) / 1000.0));
}

static void compute(const char *target_name, double *y, double *bound, ptxgen_spread *spread)
{
    static int8_t codes[LONG_K];
    float scales[GROUPS];
    const ptxgen_w8a8_operands o = {
        .m = M, .x = codes_of, .w = weights_of, .w_scale = w_scale, .x_scale = x_scale};
    const ptxgen_w8a8_spec spec = {.k = LONG_K,
                                   .n = N,
                                   .y_type = PTXGEN_F32,
                                   .scales = PTXGEN_W8A8_QUANTISED,
                                   .codes = PTXGEN_W8A8_E4M3,
                                   .group = PTXGEN_W8A8_GROUP};
    ptxgen_target target = target_of(target_name);
    ptxgen_w8a8_plan plan;
    ptxgen_error err;
    assert_ok(ptxgen_w8a8_make_plan(&spec, &target, &plan, &err), &err);
    for (uint64_t m = 0; m < M; m++) {
        ptxgen_w8a8_token token = {.scales = scales};
        assert_ok(ptxgen_w8a8_reference_codes(&spec, &o, m, codes, &token, &err), &err);
        assert_ok(ptxgen_w8a8_reference_bound(&plan, &o, codes, &token, 0, N, y + m * N,
                                              bound + m * N, spread + m * N, &err),
                  &err);
    }
}

/* How far the outputs with other scales, of which one was changed, are off; above 1: noticed. */
static double ratio_of(const char *target, float *scale, float value)
{
    float before = *scale;
    ptxgen_tally tally = {0};
    compute(target, y_of, bound_of, spread_of);
    *scale = value;
    compute(target, other_y, other_bound, other_spread);
    *scale = before;
    for (int i = 0; i < M * N; i++)
        ptxgen_tally_add(&tally, PTXGEN_F32, other_y[i], y_of[i], bound_of[i], &spread_of[i]);
    return ptxgen_tally_ratio(&tally);
}

/* Of 56 groups one has the scale of its neighbour, or none. */
static void the_spread_sees_the_scale_of_a_neighbour(void **state)
{
    (void)state;
    static const char *const targets[] = {"sm_89", "sm_90a", "sm_120"};
    fill();
    for (int i = 0; i < 3; i++) {
        assert_true(ratio_of(targets[i], &w_scale[20], w_scale[20]) == 0);
        assert_true(ratio_of(targets[i], &w_scale[20], w_scale[21]) > 1);
        assert_true(ratio_of(targets[i], &w_scale[20], w_scale[GROUPS + 20]) > 1);
        assert_true(ratio_of(targets[i], &w_scale[7], 1) > 1);
        assert_true(ratio_of(targets[i], &x_scale[30], x_scale[31]) > 1);
        assert_true(ratio_of(targets[i], &x_scale[30], x_scale[GROUPS + 30]) > 1);
        assert_true(ratio_of(targets[i], &x_scale[30], 1) > 1);
    }
}

/* y by the rule alone: a sum in double precision for each group, times both scales. */
static void outputs_follow_the_rule(void **state)
{
    (void)state;
    fill();
    compute("sm_90a", y_of, bound_of, spread_of);
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++) {
            double y = 0;
            for (int k = 0; k < LONG_K; k++) {
                double x = w8a8_code_value(PTXGEN_W8A8_E4M3, (uint8_t)codes_of[m * LONG_K + k]);
                double w = w8a8_code_value(PTXGEN_W8A8_E4M3, (uint8_t)weights_of[n * LONG_K + k]);
                int b = k / PTXGEN_W8A8_GROUP;
                y += x * w * x_scale[m * GROUPS + b] * w_scale[n / 128 * GROUPS + b];
            }
            assert_true(fabs(y - y_of[m * N + n]) <= 1e-9 * fabs(y) + 1e-9);
        }
}

/* ---- codes of the caller's ---- */

static void take(struct problem *to, unsigned operand, const struct problem *from, unsigned source)
{
    const struct buffer *b = &from->buffers[source];
    assert_int_equal(to->buffers[operand].bytes, b->bytes);
    memcpy(to->buffers[operand].host, b->host, b->bytes);
}

static void codes_and_scales_of_quantise_give_the_same_bits(void **state)
{
    (void)state;
    struct device device = open_device("cpu:sm_90");
    for (uint64_t m = 3; m < 200; m *= 5) {
        const ptxgen_quantise_spec quantise = {.k = 333,
                                               .x_type = PTXGEN_F16,
                                               .codes = PTXGEN_W8A8_E4M3,
                                               .group = PTXGEN_QUANTISE_GROUP};
        ptxgen_w8a8_spec spec = {.k = 333,
                                 .n = 72,
                                 .x_type = PTXGEN_F16,
                                 .y_type = PTXGEN_F16,
                                 .codes = PTXGEN_W8A8_E4M3,
                                 .group = PTXGEN_W8A8_GROUP};
        struct problem own = make_problem(&device, &w8a8_harness, &spec, m, NULL);
        struct problem codes = make_problem(&device, &quantise_harness, &quantise, m, NULL);
        spec.scales = PTXGEN_W8A8_QUANTISED;
        struct problem given = make_problem(&device, &w8a8_harness, &spec, m, NULL);
        take(&codes, QUANTISE_AT_X, &own, W8A8_AT_X);
        check_problem(&own, &device);
        check_problem(&codes, &device);
        take(&given, W8A8_AT_W, &own, W8A8_AT_W);
        take(&given, W8A8_AT_W_SCALE, &own, W8A8_AT_W_SCALE);
        take(&given, W8A8_AT_X, &codes, QUANTISE_AT_CODES);
        take(&given, W8A8_AT_X_SCALE, &codes, QUANTISE_AT_SCALES);
        check_problem(&given, &device);
        assert_memory_equal(given.buffers[W8A8_AT_Y].host, own.buffers[W8A8_AT_Y].host,
                            own.buffers[W8A8_AT_Y].bytes);
        problem_release(&own);
        problem_release(&codes);
        problem_release(&given);
    }
    device_close(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launches_are_right_at_the_edges_of_every_tile),
        cmocka_unit_test(tiles_of_the_callers_choice_are_right),
        cmocka_unit_test(no_warp_has_rows_in_three_blocks),
        cmocka_unit_test(a_nan_stays_in_its_token),
        cmocka_unit_test(the_spread_sees_the_scale_of_a_neighbour),
        cmocka_unit_test(outputs_follow_the_rule),
        cmocka_unit_test(codes_and_scales_of_quantise_give_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
