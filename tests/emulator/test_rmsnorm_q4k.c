/* SPDX-License-Identifier: Apache-2.0 */
/* The first kernel family, through the runtime and the emulator's driver table, against its
 * double-precision reference. */
#include "bench.h"

#include "ptxgen/device.h"
#include "ptxgen/gguf_types.h"
#include "ptxgen/rmsnorm_q4k.h"
#include "src/kernels/bound.h"
#include "src/kernels/half.h"
#include "src/kernels/rmsnorm_q4k/reference.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { K = 1024, N = 80, TOKENS = 8 };

static float next_value(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (float)(int32_t)*seed * 0x1p-31f;
}

static void agrees_with_reference(const char *device, uint32_t m)
{
    struct bench bench;
    ptxgen_error err = {0};
    uint32_t seed = 7 + m;
    size_t row_bytes;
    static float x[TOKENS * K], gamma[K], row[K], got[TOKENS * N];
    static double y[TOKENS * N], bound[TOKENS * N];
    assert_int_equal(ptxgen_gguf_row_bytes(PTXGEN_GGUF_Q4_K, K, &row_bytes, &err), PTXGEN_OK);
    uint8_t *weights = malloc(row_bytes * N);
    for (int i = 0; i < TOKENS * K; i++)
        x[i] = next_value(&seed) * 3;
    for (int i = 0; i < K; i++)
        gamma[i] = 1 + next_value(&seed);
    for (int n = 0; n < N; n++) {
        for (int i = 0; i < K; i++)
            row[i] = next_value(&seed) * 0.05f;
        ptxgen_gguf_quantise_row(PTXGEN_GGUF_Q4_K, row, K, weights + (size_t)n * row_bytes,
                                 row_bytes, &err);
    }
    struct rmsnorm_q4k_problem problem = {.m = m,
                                          .k = K,
                                          .n = N,
                                          .x_type = PTXGEN_F32,
                                          .y_type = PTXGEN_F32,
                                          .x = x,
                                          .x_stride = K,
                                          .gamma = gamma,
                                          .w = weights,
                                          .eps = 1e-6f,
                                          .dot_depth = 96,
                                          .square_depth = 96};
    assert_int_equal(
        rmsnorm_q4k_reference(&problem, &(struct rmsnorm_q4k_results){y, bound, NULL}, &err),
        PTXGEN_OK);

    bench_open(&bench, device);
    ptxgen_device_facts facts;
    assert_int_equal(ptxgen_device_read(&bench.driver, bench.ordinal, &facts, &err), PTXGEN_OK);
    ptxgen_target target = ptxgen_device_target(&facts);
    ptxgen_rmsnorm_q4k_spec spec = {
        .k = K, .n = {N}, .epsilon = 1e-6f, .x_type = PTXGEN_F32, .y_type = PTXGEN_F32};
    ptxgen_rmsnorm_q4k_plan plan;
    ptxgen_rmsnorm_q4k *kernel;
    assert_int_equal(ptxgen_rmsnorm_q4k_make_plan(&spec, &target, &plan, &err), PTXGEN_OK);
    if (ptxgen_rmsnorm_q4k_load(&bench.driver, &plan, NULL, &kernel, &err) != PTXGEN_OK)
        fail_msg("%s", err.message);
    ptxgen_rmsnorm_q4k_args args = {.x = bench_buffer(&bench, x, sizeof x),
                                    .gamma = bench_buffer(&bench, gamma, sizeof gamma),
                                    .w = {bench_buffer(&bench, weights, row_bytes * N)},
                                    .y = {bench_blank(&bench, sizeof got)},
                                    .m = m};
    if (ptxgen_rmsnorm_q4k_launch(kernel, &args, NULL, &err) != PTXGEN_OK)
        fail_msg("%s", err.message);
    bench_read(&bench, got, args.y[0], sizeof(float) * m * N);
    for (uint32_t i = 0; i < m * N; i++)
        if (!ptxgen_bound_agrees(got[i], y[i], bound[i]))
            fail_msg("y[%u] is %g, not %g ± %g", i, got[i], y[i], bound[i]);
    ptxgen_rmsnorm_q4k_destroy(kernel);
    bench_close(&bench);
    free(weights);
}

static void rmsnorm_q4k_runs_on_every_emulated_generation(void **state)
{
    (void)state;
    static const char *const devices[] = {"cpu:sm_80", "cpu:sm_89", "cpu:sm_90", "cpu:sm_100"};
    for (int i = 0; i < 4; i++) {
        agrees_with_reference(devices[i], 1);
        agrees_with_reference(devices[i], 3);
        agrees_with_reference(devices[i], 8);
    }
}

/* How many times tensor copies were sent. */
static uint64_t copies_of(struct bench *bench)
{
    ptxgen_emulator_profile *profile;
    uint64_t copies = 0;
    assert_int_equal(ptxgen_emulator_profile_take(bench->context, &profile, NULL), PTXGEN_OK);
    for (size_t i = 0; i < ptxgen_emulator_profile_count(profile); i++) {
        ptxgen_emulator_line line = ptxgen_emulator_profile_line(profile, i);
        if (strstr(line.text, "cp.async.bulk.tensor"))
            copies += line.lanes;
    }
    ptxgen_emulator_profile_free(profile);
    return copies;
}

static void sends_for_each_piece_once(uint32_t k, uint32_t n, uint32_t m)
{
    struct bench bench;
    ptxgen_error err = {0};
    size_t row_bytes;
    ptxgen_rmsnorm_q4k_spec spec = {.k = k, .n = {n}, .epsilon = 1e-6f, .max_m = m};
    ptxgen_rmsnorm_q4k_plan plan;
    ptxgen_rmsnorm_q4k *kernel;
    bench_open(&bench, "cpu:sm_90");
    bench_options(&bench, &(ptxgen_emulator_options){.profile = true});
    ptxgen_target target;
    assert_int_equal(ptxgen_target_parse("sm_90", &target, &err), PTXGEN_OK);
    target.multiprocessors = 4; /* several rounds of few rows */
    assert_int_equal(ptxgen_gguf_row_bytes(PTXGEN_GGUF_Q4_K, k, &row_bytes, &err), PTXGEN_OK);
    assert_int_equal(ptxgen_rmsnorm_q4k_make_plan(&spec, &target, &plan, &err), PTXGEN_OK);
    if (ptxgen_rmsnorm_q4k_load(&bench.driver, &plan, NULL, &kernel, &err) != PTXGEN_OK)
        fail_msg("%s", err.message);
    size_t bytes = row_bytes * n + (size_t)m * k * 4; /* enough for any of them */
    void *zeros = calloc(bytes, 1);
    ptxgen_rmsnorm_q4k_args args = {.x = bench_buffer(&bench, zeros, (size_t)m * k * 4),
                                    .gamma = bench_buffer(&bench, zeros, (size_t)k * 4),
                                    .w = {bench_buffer(&bench, zeros, row_bytes * n)},
                                    .y = {bench_blank(&bench, (size_t)m * n * 4)},
                                    .m = m};
    if (ptxgen_rmsnorm_q4k_launch(kernel, &args, NULL, &err) != PTXGEN_OK)
        fail_msg("%s", err.message);
    uint64_t pieces = (uint64_t)(n + 15) / 16 * ((k / 256 + 1) / 2), sent = copies_of(&bench);
    if (sent != pieces)
        fail_msg("K=%u N=%u M=%u: %llu copies for %llu pieces", k, n, m, (unsigned long long)sent,
                 (unsigned long long)pieces);
    ptxgen_rmsnorm_q4k_destroy(kernel);
    bench_close(&bench);
    free(zeros);
}

static void rmsnorm_q4k_reads_each_weight_once(void **state)
{
    (void)state;
    static const uint32_t k[] = {256, 512, 1024, 1280, 4096}, n[] = {16, 250, 900};
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 3; j++)
            for (uint32_t m = 1; m <= 8; m *= 2)
                sends_for_each_piece_once(k[i], n[j], m);
}

/* Buffers are as large as the row; f32 takes registers for fewer super-blocks at once than a warp
 * has. */
static void rmsnorm_q4k_reads_no_x_past_its_row(void **state)
{
    (void)state;
    static const uint32_t k[] = {4096, 8192, 14336, 16384};
    for (int i = 0; i < 4; i++)
        sends_for_each_piece_once(k[i], 64, 1);
}

/* One token of 16-bit x: y for x and gamma that start `off` elements into their buffers. */
static void run_one_token(const char *device, uint32_t k, uint32_t off, uint16_t y[N])
{
    struct bench bench;
    ptxgen_error err = {0};
    ptxgen_device_facts facts;
    uint32_t seed = k;
    size_t row_bytes;
    uint16_t *x = calloc(k + off, 2);
    float *gamma = calloc(k + off, 4), *row = calloc(k, 4);
    bench_open(&bench, device);
    assert_int_equal(ptxgen_gguf_row_bytes(PTXGEN_GGUF_Q4_K, k, &row_bytes, &err), PTXGEN_OK);
    uint8_t *weights = malloc(row_bytes * N);
    for (uint32_t i = 0; i < k; i++) {
        x[off + i] = ptxgen_f64_to_f16(next_value(&seed));
        gamma[off + i] = 1 + next_value(&seed);
    }
    for (uint32_t n = 0; n < N; n++) {
        for (uint32_t i = 0; i < k; i++)
            row[i] = next_value(&seed) * 0.05f;
        ptxgen_gguf_quantise_row(PTXGEN_GGUF_Q4_K, row, k, weights + n * row_bytes, row_bytes,
                                 &err);
    }
    assert_int_equal(ptxgen_device_read(&bench.driver, bench.ordinal, &facts, &err), PTXGEN_OK);
    ptxgen_target target = ptxgen_device_target(&facts);
    ptxgen_rmsnorm_q4k_spec spec = {
        .k = k, .n = {N}, .epsilon = 1e-6f, .max_m = 1, .x_type = PTXGEN_F16, .y_type = PTXGEN_F16};
    ptxgen_rmsnorm_q4k_plan plan;
    ptxgen_rmsnorm_q4k *kernel;
    assert_int_equal(ptxgen_rmsnorm_q4k_make_plan(&spec, &target, &plan, &err), PTXGEN_OK);
    if (ptxgen_rmsnorm_q4k_load(&bench.driver, &plan, NULL, &kernel, &err) != PTXGEN_OK)
        fail_msg("%s", err.message);
    ptxgen_rmsnorm_q4k_args args = {.x = bench_buffer(&bench, x, (k + off) * 2) + off * 2,
                                    .gamma = bench_buffer(&bench, gamma, (k + off) * 4) + off * 4,
                                    .w = {bench_buffer(&bench, weights, row_bytes * N)},
                                    .y = {bench_blank(&bench, N * 2)},
                                    .m = 1};
    if (ptxgen_rmsnorm_q4k_launch(kernel, &args, NULL, &err) != PTXGEN_OK)
        fail_msg("%s", err.message);
    bench_read(&bench, y, args.y[0], N * 2);
    ptxgen_rmsnorm_q4k_destroy(kernel);
    bench_close(&bench);
    free(weights);
    free(row);
    free(gamma);
    free(x);
}

/* Staged in shared memory: of K = 8192 a warp's second super-block, of 14336 all of x. */
static void rmsnorm_q4k_takes_one_token_at_any_alignment(void **state)
{
    (void)state;
    static const char *const devices[] = {"cpu:sm_80", "cpu:sm_90"};
    static const uint32_t k[] = {4096, 8192, 14336};
    for (int d = 0; d < 2; d++)
        for (int i = 0; i < 3; i++) {
            uint16_t aligned[N], moved[N];
            run_one_token(devices[d], k[i], 0, aligned);
            run_one_token(devices[d], k[i], 1, moved);
            assert_memory_equal(aligned, moved, sizeof aligned);
        }
}

/* ---- the edges of the range ---- */

enum { EDGE_K = 4096, EDGE_N = 24, EDGE_TOKENS = 3 };

struct edge {
    struct bench bench;
    ptxgen_rmsnorm_q4k_plan plan;
    ptxgen_rmsnorm_q4k_operands operands;
    float x[EDGE_TOKENS * EDGE_K], gamma[EDGE_K], y[EDGE_TOKENS * EDGE_N];
    double wanted[EDGE_TOKENS * EDGE_N], bound[EDGE_TOKENS * EDGE_N];
    uint8_t *weights;
    size_t weight_bytes;
};

/* x = `scale` times random numbers; the caller changes what it wants to. */
static struct edge *new_edge(const char *device, float scale, float epsilon)
{
    struct edge *e = calloc(1, sizeof *e);
    ptxgen_error err = {0};
    uint32_t seed = 5;
    size_t row_bytes;
    float row[EDGE_K];
    bench_open(&e->bench, device);
    ptxgen_device_facts facts;
    assert_int_equal(ptxgen_device_read(&e->bench.driver, e->bench.ordinal, &facts, &err),
                     PTXGEN_OK);
    ptxgen_target target = ptxgen_device_target(&facts);
    ptxgen_rmsnorm_q4k_spec spec = {
        .k = EDGE_K, .n = {EDGE_N}, .epsilon = epsilon, .x_type = PTXGEN_F32, .y_type = PTXGEN_F32};
    assert_int_equal(ptxgen_rmsnorm_q4k_make_plan(&spec, &target, &e->plan, &err), PTXGEN_OK);
    assert_int_equal(ptxgen_gguf_row_bytes(PTXGEN_GGUF_Q4_K, EDGE_K, &row_bytes, &err), PTXGEN_OK);
    e->weight_bytes = row_bytes * EDGE_N;
    e->weights = malloc(e->weight_bytes);
    for (int n = 0; n < EDGE_N; n++) {
        for (int i = 0; i < EDGE_K; i++)
            row[i] = next_value(&seed) * 0.05f;
        ptxgen_gguf_quantise_row(PTXGEN_GGUF_Q4_K, row, EDGE_K, e->weights + (size_t)n * row_bytes,
                                 row_bytes, &err);
    }
    for (int i = 0; i < EDGE_TOKENS * EDGE_K; i++)
        e->x[i] = next_value(&seed) * scale;
    for (int i = 0; i < EDGE_K; i++)
        e->gamma[i] = 1 + next_value(&seed) / 2;
    e->operands = (ptxgen_rmsnorm_q4k_operands){
        .x = e->x, .gamma = e->gamma, .w = {e->weights}, .m = EDGE_TOKENS};
    return e;
}

static void run_edge(struct edge *e)
{
    ptxgen_error err = {0};
    ptxgen_rmsnorm_q4k *kernel;
    struct bench *b = &e->bench;
    if (ptxgen_rmsnorm_q4k_load(&b->driver, &e->plan, NULL, &kernel, &err) != PTXGEN_OK)
        fail_msg("%s", err.message);
    ptxgen_rmsnorm_q4k_args args = {.x = bench_buffer(b, e->x, sizeof e->x),
                                    .gamma = bench_buffer(b, e->gamma, sizeof e->gamma),
                                    .w = {bench_buffer(b, e->weights, e->weight_bytes)},
                                    .y = {bench_blank(b, sizeof e->y)},
                                    .m = EDGE_TOKENS};
    if (ptxgen_rmsnorm_q4k_launch(kernel, &args, NULL, &err) != PTXGEN_OK)
        fail_msg("%s", err.message);
    bench_read(b, e->y, args.y[0], sizeof e->y);
    assert_int_equal(ptxgen_rmsnorm_q4k_reference(&e->plan, &e->operands, 0, 0, EDGE_N, e->wanted,
                                                  e->bound, NULL, &err),
                     PTXGEN_OK);
    ptxgen_rmsnorm_q4k_destroy(kernel);
    for (int i = 0; i < EDGE_TOKENS * EDGE_N; i++)
        if (!ptxgen_rmsnorm_q4k_agrees(e->y[i], e->wanted[i], e->bound[i]))
            fail_msg("y[%d] is %g, not %g within %g", i, e->y[i], e->wanted[i], e->bound[i]);
}

static void free_edge(struct edge *e)
{
    bench_close(&e->bench);
    free(e->weights);
    free(e);
}

static const char *const edge_devices[] = {"cpu:sm_80", "cpu:sm_90"};

static void rmsnorm_q4k_is_right_or_nan_for_the_largest_x(void **state)
{
    (void)state;
    for (int d = 0; d < 2; d++)
        for (float scale = 1e35f; scale < 3e38f; scale *= 4) {
            struct edge *e = new_edge(edge_devices[d], scale, 1e-6f);
            run_edge(e);
            int promised = 0;
            for (int i = 0; i < EDGE_TOKENS * EDGE_N; i++) {
                double tolerance = 1e-5 * fabs(e->wanted[i]) + 1e-4;
                promised += !isnan(e->bound[i]);
                if (!isnan(e->y[i]) && !(fabs(e->y[i] - e->wanted[i]) <= tolerance))
                    fail_msg("x near %g: y[%d] is %g, not %g", scale, i, e->y[i], e->wanted[i]);
            }
            if (scale < 1e36f) /* Σ|W·h·γ| is below 3.4e38 */
                assert_int_equal(promised, EDGE_TOKENS * EDGE_N);
            free_edge(e);
        }
}

/* A small γ keeps the sums in range, and the reference does not excuse any. */
static void rmsnorm_q4k_has_a_root_for_the_largest_squares(void **state)
{
    (void)state;
    for (int d = 0; d < 2; d++) {
        struct edge *e = new_edge(edge_devices[d], 3.4e38f, 1e-6f);
        for (int i = 0; i < EDGE_K; i++)
            e->gamma[i] *= 1e-6f;
        run_edge(e);
        for (int i = 0; i < EDGE_TOKENS * EDGE_N; i++)
            assert_true(isfinite(e->bound[i]) && e->bound[i] < 1e-9);
        free_edge(e);
    }
}

static void rmsnorm_q4k_loses_of_small_products_what_its_bound_says(void **state)
{
    (void)state;
    for (int d = 0; d < 2; d++)
        for (float scale = 1e-28f; scale > 1e-41f; scale *= 0.04f) {
            struct edge *e = new_edge(edge_devices[d], scale, 1e-12f);
            run_edge(e);
            for (int i = 0; i < EDGE_TOKENS * EDGE_N; i++)
                assert_true(isfinite(e->bound[i]));
            free_edge(e);
        }
}

static void rmsnorm_q4k_of_zeros_is_nan_without_epsilon_and_zero_with_one(void **state)
{
    (void)state;
    const float epsilons[] = {0, 1e-45f, 1e-6f};
    for (int d = 0; d < 2; d++)
        for (int i = 0; i < 3; i++) {
            struct edge *e = new_edge(edge_devices[d], 1, epsilons[i]);
            memset(e->x + EDGE_K, 0, EDGE_K * sizeof *e->x); /* the second of three tokens */
            run_edge(e);
            for (int n = 0; n < EDGE_N; n++) {
                float y = e->y[EDGE_N + n];
                assert_true(epsilons[i] > 0 ? y == 0 : isnan(y));
                assert_true(isfinite(e->y[n]) && isfinite(e->bound[n]));
            }
            free_edge(e);
        }
}

static void rmsnorm_q4k_without_epsilon_is_nan_where_squares_vanish(void **state)
{
    (void)state;
    struct edge *e = new_edge("cpu:sm_80", 1e-25f, 0);
    run_edge(e);
    for (int i = 0; i < EDGE_TOKENS * EDGE_N; i++)
        assert_true(isnan(e->y[i]) && isnan(e->bound[i]));
    free_edge(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rmsnorm_q4k_reads_no_x_past_its_row),
        cmocka_unit_test(rmsnorm_q4k_takes_one_token_at_any_alignment),
        cmocka_unit_test(rmsnorm_q4k_runs_on_every_emulated_generation),
        cmocka_unit_test(rmsnorm_q4k_reads_each_weight_once),
        cmocka_unit_test(rmsnorm_q4k_is_right_or_nan_for_the_largest_x),
        cmocka_unit_test(rmsnorm_q4k_has_a_root_for_the_largest_squares),
        cmocka_unit_test(rmsnorm_q4k_loses_of_small_products_what_its_bound_says),
        cmocka_unit_test(rmsnorm_q4k_of_zeros_is_nan_without_epsilon_and_zero_with_one),
        cmocka_unit_test(rmsnorm_q4k_without_epsilon_is_nan_where_squares_vanish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
