/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel on the emulator, which refuses stray, misaligned and uninitialised accesses, races,
 * deadlocks and metadata without meaning, against the reference.
 */
#include "tests/problems.h"

#include "golden.h"
#include "src/harness/sparse24.h"

#include <math.h>
#include <string.h>

/* ---- a problem on a device ---- */

static struct problem make(struct device *device, const ptxgen_sparse24_spec *spec, uint32_t m,
                           const struct layout *layout)
{
    return make_tiled(device, &sparse24_harness, spec, NULL, m, layout, m + spec->k);
}

static struct sparse24_weights *weights_of(const struct problem *p)
{
    return p->own;
}

static ptxgen_sparse24_spec spec_of(int type, uint32_t n, uint32_t k)
{
    return (ptxgen_sparse24_spec){.n = n,
                                  .k = k,
                                  .type = (uint8_t)type,
                                  .y_type =
                                      type == PTXGEN_SPARSE24_BF16 ? PTXGEN_BF16 : PTXGEN_F16};
}

/* ---- many problems ---- */

static void random_problems_are_within_their_bounds(void **state)
{
    (void)state;
    assert_drawn_problems_are_right(&sparse24_harness, 30);
}

/* Sums in s32 have no error, and the reference takes the kernel's roundings after them. */
static void outputs_of_s8_are_right_in_every_bit(void **state)
{
    (void)state;
    static const uint32_t ms[] = {3, 9, 17, 40, 150};
    struct device device = open_device("cpu:sm_90");
    for (size_t i = 0; i < sizeof ms / sizeof *ms; i++) {
        ptxgen_sparse24_spec spec = spec_of(PTXGEN_SPARSE24_S8, 300, 648);
        spec.bias = spec.residual = i % 2;
        spec.activation = i % 2 ? PTXGEN_ACTIVATION_RELU : PTXGEN_ACTIVATION_NONE;
        struct problem p = make(&device, &spec, ms[i], NULL);
        struct check check = {.outputs = 0};
        ptxgen_error err;
        assert_ok(problem_check(&p, &device, &check, &err), &err);
        assert_right(&check);
        assert_true(check.error == 0);
        assert_int_equal(check.outputs, ms[i] * spec.n);
        problem_release(&p);
    }
    device_close(&device);
}

/* PyTorch's compressed weights in the CUTLASS form, at which X = 1s on the diagonal looks. */
/* 0, of either sign, subnormal, and as large as f32 has them: in columns and in rows. */
static void scales_of_s8_at_the_ends_of_f32_give_the_references_numbers(void **state)
{
    (void)state;
    static const float scales[] = {1,          0,       -0.0f,    -3,    0x1p-149f,
                                   -0x1p-126f, 3.4e38f, -3.4e38f, 1e-20f};
    static const char *const devices[] = {"cpu:sm_80", "cpu:sm_90"};
    enum { SCALES = sizeof scales / sizeof *scales };
    static const uint32_t rows[] = {5, 40, 130};
    for (int d = 0; d < 2; d++) {
        struct device device = open_device(devices[d]);
        for (int i = 0; i < 6; i++) {
            ptxgen_sparse24_spec spec = spec_of(PTXGEN_SPARSE24_S8, 40, 128);
            spec.y_type = i % 2 ? PTXGEN_BF16 : PTXGEN_F16;
            spec.bias = i % 3 == 0;
            struct problem p = make(&device, &spec, rows[i / 2], NULL);
            float *x = (float *)(void *)p.buffers[SPARSE24_AT_X_SCALE].host, *w = (float *)(void *)p.buffers[SPARSE24_AT_W_SCALE].host;
            for (uint32_t m = 0; m < p.m; m++)
                x[m] = scales[m % SCALES];
            for (uint32_t n = 0; n < spec.n; n++)
                w[n] = scales[n / 2 % SCALES];
            run_and_release(&p, &device);
        }
        device_close(&device);
    }
}

static void pytorchs_weights_come_through_the_identity_bit_for_bit(void **state)
{
    (void)state;
    ptxgen_files *store = golden_open();
    struct device device = open_device("cpu:sm_90");
    for (int i = 0; i < 2; i++) {
        struct golden_weight w = golden_weight(store, i);
        ptxgen_sparse24_spec spec = spec_of(w.shape.type, (uint32_t)w.shape.n, (uint32_t)w.shape.k);
        struct problem p = make(&device, &spec, spec.k, NULL);
        ptxgen_error err;
        for (size_t x = 0; x < (size_t)spec.k * spec.k; x++)
            ptxgen_element_store((ptxgen_element)spec.y_type, p.buffers[SPARSE24_AT_X].host, x,
                                 x % (spec.k + 1) == 0 ? 1 : 0);
        memcpy(weights_of(&p)->values.data, w.values.data, w.values.bytes);
        assert_ok(ptxgen_sparse24_convert(&w.shape, PTXGEN_SPARSE24_CUTLASS, w.cutlass,
                                          PTXGEN_SPARSE24_BYTES, weights_of(&p)->metadata, &err),
                  &err);
        assert_ok(ptxgen_sparse24_pack(&spec, w.values, PTXGEN_SPARSE24_CUTLASS, w.cutlass,
                                       (ptxgen_span){p.buffers[SPARSE24_AT_W].host, p.buffers[SPARSE24_AT_W].bytes}, &err),
                  &err);
        check_problem(&p, &device);
        for (size_t n = 0; n < spec.n; n++)
            for (size_t k = 0; k < spec.k; k++)
                assert_true(
                    ptxgen_element_load((ptxgen_element)spec.y_type, p.buffers[SPARSE24_AT_Y].host, k * spec.n + n) ==
                    ptxgen_element_load((ptxgen_element)spec.y_type, w.dense.data, n * spec.k + k));
        problem_release(&p);
    }
    device_close(&device);
    ptxgen_files_close(store);
}

/* ---- edges ---- */

static void no_rows_leave_no_error_for_the_next_launch(void **state)
{
    (void)state;
    struct device device = open_device("cpu");
    ptxgen_sparse24_spec spec = spec_of(PTXGEN_SPARSE24_F16, 64, 128);
    for (uint32_t m = 0; m < 2; m++) {
        struct problem p = make(&device, &spec, m, NULL);
        run_and_release(&p, &device);
    }
    device_close(&device);
}

static void the_smallest_k_and_odd_m_are_done(void **state)
{
    (void)state;
    for (int type = PTXGEN_SPARSE24_F16; type <= PTXGEN_SPARSE24_S8; type++)
        for (uint32_t n = 1; n <= 101; n += 25) {
            ptxgen_sparse24_spec spec = spec_of(type, n, 8);
            run_spec("cpu:sm_80", &sparse24_harness, &spec, 3);
        }
}

static void n_beyond_65536_rows_is_one_launch(void **state)
{
    (void)state;
    ptxgen_sparse24_spec spec = spec_of(PTXGEN_SPARSE24_S8, 2, 8); /* aligned, a CTA a row */
    run_spec("cpu", &sparse24_harness, &spec, (uint32_t)test_share(65537));
}

static void addresses_at_every_element_give_the_same(void **state)
{
    (void)state;
    static const uint32_t ms[] = {1, 16, 33};
    struct device device = open_device("cpu:sm_80");
    for (int type = PTXGEN_SPARSE24_F16; type <= PTXGEN_SPARSE24_S8; type += 2)
        for (size_t offset = 1; offset <= 4; offset *= 2)
            for (int i = 0; i < 3; i++) {
                ptxgen_sparse24_spec spec = spec_of(type, 72, 192);
                const struct layout layout = {
                    .shift = {[SPARSE24_AT_X] = (uint32_t)offset,
                              [SPARSE24_AT_RESIDUAL] = (uint32_t)offset,
                              [SPARSE24_AT_Y] = (uint32_t)offset,
                              [SPARSE24_AT_BIAS] = (uint32_t)offset}};
                spec.bias = spec.residual = 1;
                struct problem p = make(&device, &spec, ms[i], &layout);
                run_and_release(&p, &device);
            }
    device_close(&device);
}

/* With warps in ten orders, and CTAs side by side. */
static void warps_in_any_order_do_not_race(void **state)
{
    (void)state;
    static const uint32_t ms[] = {1, 16, 32, 64, 128};
    struct device device = open_device("cpu:sm_80");
    for (uint64_t seed = 1; seed <= 2 + (uint64_t)test_share(8); seed++) {
        order_by(&device, seed);
        ptxgen_sparse24_spec spec =
            spec_of(seed % 2 ? PTXGEN_SPARSE24_F16 : PTXGEN_SPARSE24_S8, 256, 1024);
        struct problem p = make(&device, &spec, ms[seed % 5], NULL);
        run_and_release(&p, &device);
    }
    device_close(&device);
}

/*
 * wgmma's tiles, in several turns and in warps of fourteen orders: whole ones, divided ones, such
 * as have strips past the last of W, warpgroups that divide K, and clusters that do.
 */
static void warpgroups_in_any_order_do_not_race(void **state)
{
    (void)state;
    static const ptxgen_tile tiles[] = {
        {.kind = PTXGEN_WGMMA, .tile_m = 128, .wn = 8, .wk = 1},
        {.kind = PTXGEN_WGMMA, .tile_m = 128, .wn = 16, .wk = 1, .warp_n = 16},
        {.kind = PTXGEN_WGMMA, .tile_m = 64, .wn = 4, .wk = 1},
        {.kind = PTXGEN_WGMMA, .tile_m = 64, .wn = 4, .wk = 2, .warp_n = 16},
        {.kind = PTXGEN_WGMMA, .tile_m = 16, .wn = 8, .wk = 2, .warp_n = 16},
        {.kind = PTXGEN_WGMMA, .tile_m = 32, .wn = 4, .wk = 1, .warp_n = 16, .cluster = 2},
        {.kind = PTXGEN_WGMMA, .tile_m = 64, .wn = 8, .wk = 1, .cluster = 2}};
    enum { TILES = sizeof tiles / sizeof *tiles };
    struct device device = open_device("cpu:sm_90");
    for (uint32_t seed = 1; seed <= TILES + (uint32_t)test_share(7); seed++) {
        ptxgen_emulator_options options = {.seed = seed};
        ptxgen_error err;
        assert_ok(ptxgen_emulator_set_options(device.context, &options, &err), &err);
        int type = PTXGEN_SPARSE24_F16 + (int)(seed / 2 % 3);
        ptxgen_sparse24_spec spec = spec_of(type, 600, 1416);
        spec.bias = spec.residual = seed % 4 < 2;
        ptxgen_tile tile = tiles[seed % TILES];
        struct problem p = make(&device, &spec, tile.cluster ? 31 : 300, NULL);
        ((ptxgen_sparse24_plan *)p.plan)->target.multiprocessors = tile.cluster ? 20 : 2 + seed % 3 * 2;
        tile.wm = 1;
        tile.pass_m = 16;
        assert_ok(ptxgen_sparse24_use_tile(p.plan, &tile, &err), &err);
        run_and_release(&p, &device);
    }
    device_close(&device);
}

/*
 * A weight that is not finite, in a matrix whose steps of 128 columns the warps along K do not
 * divide and whose rows end within a tile: it makes its own column of Y infinite, not NaN, and no
 * other.
 */
static void weights_that_are_not_finite_stay_in_their_column(void **state)
{
    (void)state;
    struct device device = open_device("cpu:sm_90");
    ptxgen_sparse24_spec spec = spec_of(PTXGEN_SPARSE24_F16, 33, 136);
    struct problem p = make(&device, &spec, 2, NULL);
    ptxgen_error err;
    ptxgen_element_store(PTXGEN_F16, weights_of(&p)->values.data, 32 * 68 + 67, INFINITY);
    assert_ok(sparse24_pack_weights(&p, &err), &err);
    check_problem(&p, &device);
    for (size_t n = 0; n < 32; n++)
        assert_true(isfinite(ptxgen_element_load(PTXGEN_F16, p.buffers[SPARSE24_AT_Y].host, n)));
    assert_true(isinf(ptxgen_element_load(PTXGEN_F16, p.buffers[SPARSE24_AT_Y].host, 32)));
    problem_release(&p);
    device_close(&device);
}

/* Token 1 has an infinity in column 8, which some features keep and others do not. */
static void check_infinity(const char *device_name, int type, uint8_t tier)
{
    enum { N = 40, K = 64, M = 4, COLUMN = 8 };
    struct device device = open_device(device_name);
    ptxgen_sparse24_spec spec = spec_of(type, N, K);
    const ptxgen_element element = (ptxgen_element)type;
    spec.tier = tier;
    spec.y_type = (uint8_t)type;
    struct problem p = make(&device, &spec, M, NULL);
    ptxgen_element_store(element, p.buffers[SPARSE24_AT_X].host, K + COLUMN, INFINITY);
    check_problem(&p, &device);
    int kept_by = 0;
    const unsigned char *metadata = weights_of(&p)->metadata.data;
    for (size_t n = 0; n < N; n++) {
        size_t group = n * (K / 4) + COLUMN / 4;
        bool second = metadata[group] >> 2 == COLUMN % 4;
        bool kept = second || (metadata[group] & 3) == COLUMN % 4;
        bool is_zero =
            ptxgen_element_load(element, weights_of(&p)->values.data, 2 * group + second) == 0;
        kept_by += kept;
        for (size_t m = 0; m < M; m++) {
            double y = ptxgen_element_load(element, p.buffers[SPARSE24_AT_Y].host, m * N + n);
            if (m != 1 || (!kept && tier == 2))
                assert_true(isfinite(y));
            else if (!kept || is_zero)
                assert_true(isnan(y));
            else if (type != PTXGEN_SPARSE24_F32)
                assert_true(isinf(y));
        }
    }
    assert_in_range(kept_by, 1, N - 1);
    problem_release(&p);
    device_close(&device);
}

static void an_infinity_at_what_w_drops_is_nan_in_tier_1_and_not_seen_in_tier_2(void **state)
{
    (void)state;
    static const char *const devices[] = {"cpu:sm_80", "cpu:sm_90"};
    for (int i = 0; i < 2; i++) {
        check_infinity(devices[i], PTXGEN_SPARSE24_F32, 1);
        check_infinity(devices[i], PTXGEN_SPARSE24_F16, 1);
        check_infinity(devices[i], PTXGEN_SPARSE24_F16, 2);
        check_infinity(devices[i], PTXGEN_SPARSE24_BF16, 2);
    }
}

static void invalid_metadata_is_refused_when_it_is_packed(void **state)
{
    (void)state;
    struct device device = open_device("cpu");
    ptxgen_sparse24_spec spec = spec_of(PTXGEN_SPARSE24_F16, 40, 136);
    struct problem p = make(&device, &spec, 1, NULL);
    ptxgen_error err = {0};
    unsigned char *byte = (unsigned char *)weights_of(&p)->metadata.data + 39 * 34 + 33, kept = *byte;
    for (unsigned value = 0; value < 256; value++) {
        bool valid = value < 16 && (value & 3) != value >> 2;
        *byte = (unsigned char)value;
        assert_int_equal(sparse24_pack_weights(&p, &err), valid ? PTXGEN_OK : PTXGEN_ERROR_MALFORMED);
        if (!valid)
            assert_non_null(strstr(err.message, "row 39, group 33"));
    }
    *byte = kept;
    weights_of(&p)->metadata.bytes--;
    assert_int_equal(sparse24_pack_weights(&p, &err), PTXGEN_ERROR_INVALID_ARGUMENT);
    weights_of(&p)->metadata.bytes++;
    p.buffers[SPARSE24_AT_W].bytes--;
    assert_int_equal(sparse24_pack_weights(&p, &err), PTXGEN_ERROR_INVALID_ARGUMENT);
    p.buffers[SPARSE24_AT_W].bytes++;
    problem_release(&p);
    device_close(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_problems_are_within_their_bounds),
        cmocka_unit_test(outputs_of_s8_are_right_in_every_bit),
        cmocka_unit_test(scales_of_s8_at_the_ends_of_f32_give_the_references_numbers),
        cmocka_unit_test(pytorchs_weights_come_through_the_identity_bit_for_bit),
        cmocka_unit_test(no_rows_leave_no_error_for_the_next_launch),
        cmocka_unit_test(the_smallest_k_and_odd_m_are_done),
        cmocka_unit_test(n_beyond_65536_rows_is_one_launch),
        cmocka_unit_test(addresses_at_every_element_give_the_same),
        cmocka_unit_test(warps_in_any_order_do_not_race),
        cmocka_unit_test(warpgroups_in_any_order_do_not_race),
        cmocka_unit_test(weights_that_are_not_finite_stay_in_their_column),
        cmocka_unit_test(an_infinity_at_what_w_drops_is_nan_in_tier_1_and_not_seen_in_tier_2),
        cmocka_unit_test(invalid_metadata_is_refused_when_it_is_packed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
