/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel on the emulator, which refuses stray, misaligned and uninitialised accesses, races and
 * deadlocks, against the reference.
 */
#include "tests/problems.h"

#include "src/harness/dense.h"

#include <math.h>

static struct problem make(struct device *device, const ptxgen_dense_spec *spec, uint32_t m,
                           const struct layout *layout)
{
    return make_tiled(device, &dense_harness, spec, NULL, m, layout, m + spec->k);
}

static ptxgen_dense_plan *plan_of(const struct problem *p)
{
    return p->plan;
}

static ptxgen_dense_spec spec_of(ptxgen_element type, uint32_t n, uint32_t k)
{
    return (ptxgen_dense_spec){.n = n, .k = k, .type = (uint8_t)type};
}

/* ---- many problems ---- */

static void random_problems_are_within_their_bounds(void **state)
{
    (void)state;
    assert_drawn_problems_are_right(&dense_harness, 20);
}

/*
 * What f32 is for: sums as near to the exact ones as those of plain f32 arithmetic in the order of K.
 */
static void f32_sums_are_as_near_as_those_of_plain_f32(void **state)
{
    (void)state;
    enum { N = 64, K = 1024, M = 32 };
    struct device device = open_device("cpu:sm_90");
    ptxgen_dense_spec spec = spec_of(PTXGEN_F32, N, K);
    struct problem p = make(&device, &spec, M, NULL);
    check_problem(&p, &device);
    const float *x = (const float *)(const void *)p.buffers[DENSE_AT_X].host, *w = (const float *)(const void *)p.buffers[DENSE_AT_W].host;
    double ours = 0, plain = 0;
    for (int i = 0; i < M * N; i++) {
        double exact = 0, y = ptxgen_element_load(PTXGEN_F32, p.buffers[DENSE_AT_Y].host, (size_t)i);
        float sum = 0;
        for (int k = 0; k < K; k++) {
            exact += (double)x[i / N * K + k] * w[i % N * K + k];
            sum += x[i / N * K + k] * w[i % N * K + k];
        }
        ours += (y - exact) * (y - exact);
        plain += (sum - exact) * (sum - exact);
    }
    assert_true(ours < 4 * plain); /* twice the root mean square */
    problem_release(&p);
    device_close(&device);
}

/*
 * Tensor cores cut products of subnormal numbers where they would cut those of 2^-14, the least
 * normal one: here the largest two products of a row cancel, and cut the others.
 */
static void products_of_subnormal_f16_are_within_the_bound(void **state)
{
    (void)state;
    enum { K = 16, ROWS = 16 };
    struct device device = open_device("cpu:sm_90");
    ptxgen_dense_spec spec = spec_of(PTXGEN_F16, ROWS, K);
    for (int of_w = 0; of_w < 2; of_w++) {
        struct problem p = make(&device, &spec, ROWS, NULL);
        const struct buffer *small = &p.buffers[of_w ? DENSE_AT_W : DENSE_AT_X], *large = &p.buffers[of_w ? DENSE_AT_X : DENSE_AT_W];
        for (size_t i = 0; i < (size_t)ROWS * K; i++) {
            double value = fabs(ptxgen_element_load(PTXGEN_F16, large->host, i));
            value = i % K == 0 ? 0x1p15 : i % K == 1 ? -0x1p15 : 0x1p9 + fmin(value, 1) * 0x1p8;
            ptxgen_element_store(PTXGEN_F16, small->host, i, 0x1p-24);
            ptxgen_element_store(PTXGEN_F16, large->host, i, value);
        }
        run_and_release(&p, &device);
    }
    device_close(&device);
}

/* ---- edges ---- */

static void no_rows_leave_no_error_for_the_next_launch(void **state)
{
    (void)state;
    struct device device = open_device("cpu");
    ptxgen_dense_spec spec = spec_of(PTXGEN_F16, 64, 128);
    for (uint32_t m = 0; m < 2; m++) {
        struct problem p = make(&device, &spec, m, NULL);
        run_and_release(&p, &device);
    }
    device_close(&device);
}

static void a_plan_is_not_run_beyond_its_tokens(void **state)
{
    (void)state;
    struct device device = open_device("cpu");
    ptxgen_dense_spec spec = spec_of(PTXGEN_F16, 64, 128);
    const struct kernel_request request = {.spec = &spec};
    struct problem p;
    ptxgen_error err;
    spec.max_m = 2;
    assert_int_equal(problem_allocate(&p, &dense_harness, &request, 3, NULL, &device, &err),
                     PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_says(&err, "dense: M = 3 is outside what the spec or the tile is for");
    device_close(&device);
}

static void the_smallest_k_and_odd_m_are_done(void **state)
{
    (void)state;
    for (int type = PTXGEN_F32; type <= PTXGEN_BF16; type++)
        for (uint32_t n = 1; n <= 101; n += 25) {
            ptxgen_dense_spec spec = spec_of(type, n, n % 4 + 1);
            run_spec("cpu:sm_80", &dense_harness, &spec, 3);
        }
}

static void n_beyond_65536_rows_is_one_launch(void **state)
{
    (void)state;
    ptxgen_dense_spec spec = spec_of(PTXGEN_F16, 2, 9); /* aligned, a CTA a row */
    run_spec("cpu", &dense_harness, &spec, (uint32_t)test_share(65537));
}

static void addresses_at_every_element_give_the_same(void **state)
{
    (void)state;
    static const uint32_t ms[] = {1, 16, 33};
    struct device device = open_device("cpu:sm_80");
    for (int type = PTXGEN_F32; type <= PTXGEN_F16; type++)
        for (size_t offset = 1; offset <= 4; offset *= 2)
            for (int i = 0; i < 3; i++) {
                ptxgen_dense_spec spec = spec_of(type, 72, 192);
                const struct layout layout = {
                    .shift = {(uint32_t)offset, (uint32_t)offset, (uint32_t)offset,
                              (uint32_t)offset, (uint32_t)offset}};
                spec.bias = spec.residual = 1;
                struct problem p = make(&device, &spec, ms[i], &layout);
                run_and_release(&p, &device);
            }
    device_close(&device);
}

/* 3 × 3 tiles: dealt out whole to three CTAs, divided among four. */
static void few_multiprocessors_take_several_tiles_each(void **state)
{
    (void)state;
    struct device device = open_device("cpu:sm_90");
    for (uint32_t ctas = 3; ctas <= 4; ctas++) {
        ptxgen_dense_spec spec = spec_of(PTXGEN_F16, 600, 320);
        struct problem p = make(&device, &spec, 300, NULL);
        plan_of(&p)->target.multiprocessors = ctas;
        run_and_release(&p, &device);
    }
    device_close(&device);
}

/* With warps in ten orders, and CTAs side by side. */
static void warps_in_any_order_do_not_race(void **state)
{
    (void)state;
    static const uint32_t ms[] = {1, 32, 64, 100, 128};
    struct device device = open_device("cpu:sm_80");
    for (uint64_t seed = 1; seed <= 2 + (uint64_t)test_share(8); seed++) {
        order_by(&device, seed);
        ptxgen_dense_spec spec =
            spec_of(seed % 2 ? PTXGEN_F16 : PTXGEN_F32, 256, 768);
        struct problem p = make(&device, &spec, ms[seed % 5], NULL);
        run_and_release(&p, &device);
    }
    device_close(&device);
}

/*
 * wgmma's tiles, in several turns and in warps of ten orders: pairs of CTAs, the second of which
 * has nothing of W in the last tile, whole tiles, divided ones, and pairs that divide K.
 */
static void warpgroups_in_any_order_do_not_race(void **state)
{
    (void)state;
    static const ptxgen_tile tiles[] = {
        {.kind = PTXGEN_WGMMA, .warp_n = 16, .warp_m = 256, .wn = 8, .cluster = 2},
        {.kind = PTXGEN_WGMMA, .warp_n = 16, .warp_m = 128, .wn = 8, .cluster = 1},
        {.kind = PTXGEN_WGMMA, .warp_n = 32, .warp_m = 64, .wn = 4, .cluster = 2},
        {.kind = PTXGEN_WGMMA, .warp_n = 16, .warp_m = 64, .wn = 4, .split = 2}};
    enum { TILES = sizeof tiles / sizeof *tiles };
    struct device device = open_device("cpu:sm_90");
    for (uint32_t seed = 1; seed <= TILES - 1 + (uint32_t)test_share(7); seed++) {
        ptxgen_emulator_options options = {.seed = seed};
        ptxgen_error err;
        assert_ok(ptxgen_emulator_set_options(device.context, &options, &err), &err);
        ptxgen_dense_spec spec = spec_of(seed % 2 ? PTXGEN_F16 : PTXGEN_BF16, 300, 584);
        spec.bias = spec.residual = seed % 4 < 2;
        ptxgen_tile tile = tiles[seed % TILES];
        struct problem p = make(&device, &spec, tile.split ? 60 : 300, NULL);
        plan_of(&p)->target.multiprocessors = tile.split ? 20 : 2 + seed % 3 * 2;
        tile.wm = tile.wk = 1;
        tile.pass_m = 16;
        assert_ok(ptxgen_dense_use_tile(p.plan, &tile, &err), &err);
        run_and_release(&p, &device);
    }
    device_close(&device);
}

/*
 * The tile of many rows that plain sm_90 has, in pairs and by itself, whole and at N's, M's and K's
 * ends, in warps of ten orders: sums are rounded in their registers, or first are added to.
 */
static void warps_that_send_in_turn_do_not_race(void **state)
{
    (void)state;
    struct device device = open_device("cpu:sm_90");
    for (uint32_t seed = 1; seed <= 2 + (uint32_t)test_share(8); seed++) {
        order_by(&device, seed);
        ptxgen_dense_spec spec = spec_of(seed % 2 ? PTXGEN_F16 : PTXGEN_BF16, 328, 584);
        spec.bias = spec.residual = seed % 4 < 2;
        ptxgen_tile tile = {.kind = PTXGEN_BULK, .warp_n = 64, .warp_m = 64, .wn = 2,
                                     .wm = 4, .wk = 1, .pass_m = 16, .cluster = 1 + seed / 2 % 2};
        struct problem p = make(&device, &spec, 300, NULL);
        plan_of(&p)->target.multiprocessors = 2 + seed % 3 * 2;
        ptxgen_error err;
        assert_ok(ptxgen_dense_use_tile(p.plan, &tile, &err), &err);
        run_and_release(&p, &device);
    }
    device_close(&device);
}

/* A weight that is not finite makes its own column of Y infinite, not NaN, and no other. */
static void weights_that_are_not_finite_stay_in_their_column(void **state)
{
    (void)state;
    struct device device = open_device("cpu:sm_90");
    ptxgen_dense_spec spec = spec_of(PTXGEN_F16, 33, 136);
    struct problem p = make(&device, &spec, 2, NULL);
    ptxgen_element_store(PTXGEN_F16, p.buffers[DENSE_AT_W].host, 32 * 136 + 135, INFINITY);
    check_problem(&p, &device);
    for (size_t n = 0; n < 32; n++)
        assert_true(isfinite(ptxgen_element_load(PTXGEN_F16, p.buffers[DENSE_AT_Y].host, n)));
    assert_true(isinf(ptxgen_element_load(PTXGEN_F16, p.buffers[DENSE_AT_Y].host, 32)));
    problem_release(&p);
    device_close(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_problems_are_within_their_bounds),
        cmocka_unit_test(products_of_subnormal_f16_are_within_the_bound),
        cmocka_unit_test(f32_sums_are_as_near_as_those_of_plain_f32),
        cmocka_unit_test(no_rows_leave_no_error_for_the_next_launch),
        cmocka_unit_test(a_plan_is_not_run_beyond_its_tokens),
        cmocka_unit_test(the_smallest_k_and_odd_m_are_done),
        cmocka_unit_test(n_beyond_65536_rows_is_one_launch),
        cmocka_unit_test(addresses_at_every_element_give_the_same),
        cmocka_unit_test(few_multiprocessors_take_several_tiles_each),
        cmocka_unit_test(warps_in_any_order_do_not_race),
        cmocka_unit_test(warpgroups_in_any_order_do_not_race),
        cmocka_unit_test(warps_that_send_in_turn_do_not_race),
        cmocka_unit_test(weights_that_are_not_finite_stay_in_their_column),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
