/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel on the emulator, which refuses stray, misaligned and uninitialised accesses, races
 * and deadlocks, against the reference: random problems, and a named test for each way in which
 * such kernels have failed in the field.
 */
#include "problems.h"

#include "src/cli/family.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t allocate_on(const ptxgen_driver *driver, uint64_t bytes)
{
    ptxgen_cu_deviceptr address;
    assert_int_equal(driver->mem_alloc(&address, bytes), PTXGEN_CUDA_SUCCESS);
    return address;
}

static uint64_t allocate_workspace(const ptxgen_driver *driver, uint64_t bytes)
{
    uint64_t address = allocate_on(driver, bytes ? bytes : 1);
    assert_int_equal(driver->memset_d8(address, 0, bytes), PTXGEN_CUDA_SUCCESS);
    return address;
}

/* ---- many problems ---- */

static void random_problems_are_within_their_bounds(void **state)
{
    (void)state;
    assert_drawn_problems_are_right(&marlin_harness, 40);
}

static void golden_files_are_within_their_bounds(void **state)
{
    (void)state;
    static const char *const
        files[] = {GOLDEN_DIR "/marlin_g128.safetensors", GOLDEN_DIR "/marlin_channel.safetensors"},
        *const layers[] = {"gptq", "marlin"}, *const devices[] = {"cpu:sm_80", "cpu:sm_90"};
    for (int d = 0; d < 2; d++) {
        struct device device = open_device(devices[d]);
        for (int i = 0; i < 4; i++) {
            struct family_options *options = family_new_options(family_find("marlin"));
            assert_non_null(options);
            options->names = (struct data_names){
                .file = files[i / 2], .layer = layers[i % 2], .input = "A", .expect = "C"};
            struct run_request request = {.m = 1, .seed = 1};
            struct check check = {.outputs = 0};
            ptxgen_error err;
            assert_ok(family_run(options, &request, &device, &check, &err), &err);
            free(options);
            assert_right(&check);
            assert_non_null(strstr(check.note, "the file's expected output"));
        }
        device_close(&device);
    }
}

/* ---- reports from the field ---- */

static void an_all_zero_row_gives_the_bias(void **state)
{
    (void)state;
    struct device device = open_device("cpu");
    ptxgen_marlin_spec spec = f16(256, 64, 64);
    spec.bias = 1;
    struct problem p = make(&device, &spec, 3, PTXGEN_W4_GPTQ_V1, NULL);
    struct check check = {.outputs = 0};
    ptxgen_error err;
    memset(p.buffers[MARLIN_AT_X].host + 2 * p.strides[MARLIN_AT_X], 0, 2 * spec.k);
    assert_ok(problem_check(&p, &device, &check, &err), &err);
    assert_right(&check);
    assert_memory_equal(p.buffers[MARLIN_AT_Y].host + 2 * p.strides[MARLIN_AT_Y], p.buffers[MARLIN_AT_BIAS].host, 2 * spec.n);
    problem_release(&p);
    device_close(&device);
}

/* In tiles of 8 and 16 rows sums are corrected, by the warps or a warp for all; in others not. */
static void nan_and_infinities_stay_in_their_rows(void **state)
{
    (void)state;
    struct device device = open_device("cpu");
    static const struct {
        uint32_t tile_m, kind;
    } tiles[] = {{8, PTXGEN_MMA},   {8, PTXGEN_BULK},  {16, PTXGEN_MMA},
                 {16, PTXGEN_BULK}, {32, PTXGEN_WGMMA}};
    for (uint32_t i = 0; i < sizeof tiles / sizeof *tiles; i++) {
        uint32_t m = tiles[i].tile_m - 1;
        bool wgmma = tiles[i].kind == PTXGEN_WGMMA;
        struct kernel_options options = {.spec = f16(256, 128, i % 2 ? 64 : 128)};
        options.tile = (ptxgen_tile){
            .tile_m = tiles[i].tile_m, .warp_n = wgmma ? 16 : 32, .wn = 4, .wk = 1, .stages = 3,
            .steps = 1, .ctas = 1, .pass_m = tiles[i].tile_m, .kind = tiles[i].kind};
        struct problem p = make_of(&device, &options, m, PTXGEN_W4_GPTQ_V1, NULL);
        ptxgen_element_store(PTXGEN_F16, p.buffers[MARLIN_AT_X].host, 1 * p.strides[MARLIN_AT_X] + 7, INFINITY);
        ptxgen_element_store(PTXGEN_F16, p.buffers[MARLIN_AT_X].host, 2 * p.strides[MARLIN_AT_X] + 9, NAN);
        struct check check = {.outputs = 0};
        ptxgen_error err;
        assert_ok(problem_check(&p, &device, &check, &err), &err);
        assert_right(&check);
        for (uint32_t n = 0; n < options.spec.n; n++) {
            for (uint32_t row = 0; row < m; row += row ? 1 : 3)
                assert_true(isfinite(ptxgen_element_load(PTXGEN_F16, p.buffers[MARLIN_AT_Y].host, row * p.strides[MARLIN_AT_Y] + n)));
            assert_false(isfinite(ptxgen_element_load(PTXGEN_F16, p.buffers[MARLIN_AT_Y].host, p.strides[MARLIN_AT_Y] + n)));
            assert_true(isnan(ptxgen_element_load(PTXGEN_F16, p.buffers[MARLIN_AT_Y].host, 2 * p.strides[MARLIN_AT_Y] + n)));
        }
        problem_release(&p);
    }
    device_close(&device);
}

static void no_rows_leave_no_error_for_the_next_launch(void **state)
{
    (void)state;
    struct device device = open_device("cpu");
    ptxgen_marlin_spec spec = f16(128, 64, 64);
    for (uint32_t m = 0; m < 2; m++) {
        struct problem p = make(&device, &spec, m, PTXGEN_W4_GPTQ_V1, NULL);
        run_and_release(&p, &device);
    }
    device_close(&device);
}

static void m_beyond_65536_rows_is_one_launch(void **state)
{
    (void)state;
    ptxgen_marlin_spec spec = f16(16, 8, 16);
    spec.act_order = 1; /* the gathering kernel has a CTA a row */
    run_spec("cpu", &marlin_harness, &spec, (uint32_t)test_share(65537));
}

static void addresses_at_2_4_and_8_bytes_off_give_the_same(void **state)
{
    (void)state;
    static const uint32_t ms[] = {1, 16, 33};
    struct device device = open_device("cpu:sm_80");
    ptxgen_marlin_spec spec = f16(192, 72, 64);
    spec.bias = spec.residual = 1;
    for (size_t offset = 2; offset <= 8; offset *= 2)
        for (int i = 0; i < 3; i++) {
            const struct layout layout = {.shift = {[MARLIN_AT_X] = (uint32_t)offset / 2,
                                                    [MARLIN_AT_RESIDUAL] = (uint32_t)offset / 2,
                                                    [MARLIN_AT_Y] = (uint32_t)offset / 2,
                                                    [MARLIN_AT_BIAS] = (uint32_t)offset / 2}};
            struct problem p = make(&device, &spec, ms[i], PTXGEN_W4_AWQ, &layout);
            run_and_release(&p, &device);
        }
    device_close(&device);
}

static void groups_of_32_and_64_and_models_odd_shapes(void **state)
{
    (void)state;
    static const struct {
        uint32_t k, n;
        int32_t group_size;
    } shapes[] = {{10944, 8, 64}, {7392, 16, 32}, {4544, 8, 64}, {13696, 8, 128}, {64, 59136, 32}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        ptxgen_marlin_spec spec = f16(shapes[i].k, shapes[i].n, shapes[i].group_size);
        run_spec("cpu", &marlin_harness, &spec, 2);
    }
}

static void shapes_that_cannot_be_done_are_refused_by_name(void **state)
{
    (void)state;
    const struct {
        ptxgen_marlin_spec spec;
        const char *words;
    } cases[] = {{f16(10944, 64, 128), "K = 10944"}, {f16(512, 105, 128), "N = 105"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ptxgen_target target;
        ptxgen_marlin_plan plan;
        ptxgen_error err;
        assert_int_equal(ptxgen_target_parse("sm_90", &target, &err), PTXGEN_OK);
        assert_int_equal(ptxgen_marlin_make_plan(&cases[i].spec, &target, &plan, &err),
                         PTXGEN_ERROR_UNSUPPORTED);
        assert_non_null(strstr(err.message, cases[i].words));
    }
}

/* K = 512, N = 256, 16 rows raced once; here with warps in ten orders, and CTAs side by side. */
static void warps_in_any_order_do_not_race(void **state)
{
    (void)state;
    static const uint32_t ms[] = {1, 16, 32, 64, 128};
    struct device device = open_device("cpu:sm_80");
    for (uint64_t seed = 1; seed <= 2 + (uint64_t)test_share(8); seed++) {
        order_by(&device, seed);
        ptxgen_marlin_spec spec = f16(512, 256, seed % 2 ? 128 : 32);
        spec.zeros = seed % 3 == 0;
        struct problem p =
            make(&device, &spec, ms[seed % 5], PTXGEN_W4_PACK_QUANTIZED, NULL);
        run_and_release(&p, &device);
    }
    device_close(&device);
}

/* Zero points of 0, 8 and 15 in every column and group, as GPTQ's two versions store them. */
static void zero_points_0_8_and_15_are_exact_in_gptq_v1_and_v2(void **state)
{
    (void)state;
    static const uint8_t zeros[] = {0, 8, 15};
    struct device device = open_device("cpu");
    for (int f = PTXGEN_W4_GPTQ_V1; f <= PTXGEN_W4_GPTQ_V2; f++)
        for (int z = 0; z < 3; z++) {
            struct kernel_options options = {.spec = f16(128, 64, 32)};
            struct marlin_weights weights;
            struct problem p;
            struct random r = random_start(7);
            ptxgen_error err;
            options.spec.zeros = 1;
            assert_ok(marlin_random_weights(&options.spec, (ptxgen_w4_format)f, &r, &weights, &err),
                      &err);
            unsigned stored = (zeros[z] + (f == PTXGEN_W4_GPTQ_V1 ? 15u : 0u)) & 15;
            const ptxgen_w4_tensor *qzeros = &weights.checkpoints[0].zeros;
            memset(qzeros->data, (int)(stored * 0x11), ptxgen_w4_tensor_bytes(qzeros));
            p = make_with(&device, &options, 17, &weights, NULL);
            for (size_t i = 0; i < 4 * 64; i++)
                assert_int_equal(((const struct marlin_matrices *)p.own)->of[0].zeros[i], zeros[z]);
            run_and_release(&p, &device);
        }
    device_close(&device);
}

static void act_order_with_shuffled_groups_is_right_in_every_format_that_has_it(void **state)
{
    (void)state;
    static const ptxgen_w4_format formats[] = {PTXGEN_W4_GPTQ_V1, PTXGEN_W4_GPTQ_V2,
                                               PTXGEN_W4_PACK_QUANTIZED};
    struct device device = open_device("cpu");
    for (int f = 0; f < 3; f++)
        for (int gated = 0; gated < 2; gated++) {
            ptxgen_marlin_spec spec = f16(192, 40, 48);
            spec.act_order = 1;
            spec.epilogue = gated ? PTXGEN_EPILOGUE_SWIGLU : PTXGEN_EPILOGUE_NONE;
            struct problem p = make(&device, &spec, 9, formats[f], NULL);
            run_and_release(&p, &device);
        }
    device_close(&device);
}

/*
 * Activations of ±60000 whose products with equal weights cancel in pairs half of K apart, so that
 * every part of K has sums far beyond f16 and the whole has not: summing parts in f16 gives
 * infinities.
 */
static void sums_that_would_overflow_f16_cancel_in_f32(void **state)
{
    (void)state;
    static const uint32_t ms[] = {1, 16, 64};
    struct device device = open_device("cpu");
    for (int i = 0; i < 3; i++) {
        enum { K = 2048, N = 64 };
        struct kernel_options options = {.spec = f16(K, N, 128)};
        struct marlin_weights weights;
        struct problem p;
        struct random r = random_start(3);
        ptxgen_error err;
        assert_ok(marlin_random_weights(&options.spec, PTXGEN_W4_GPTQ_V2, &r, &weights, &err),
                  &err);
        const ptxgen_w4_checkpoint *c = &weights.checkpoints[0];
        size_t half = ptxgen_w4_tensor_bytes(&c->weights) / 2;
        memset(c->weights.data, 0xCC, half); /* q − z = 4 */
        memset((char *)c->weights.data + half, 0xCC, half);
        for (size_t s = 0; s < K / 128 * N; s++)
            ptxgen_element_store(PTXGEN_F16, c->scales.data, s, 0.25);
        p = make_with(&device, &options, ms[i], &weights, NULL);
        for (uint64_t m = 0; m < p.m; m++)
            for (size_t k = 0; k < K; k++)
                ptxgen_element_store(PTXGEN_F16, p.buffers[MARLIN_AT_X].host, m * p.strides[MARLIN_AT_X] + k,
                                     (k < K / 2 ? 60000.0 : -60000.0) + (k == 5 ? 1024.0 : 0));
        struct check check = {.outputs = 0};
        assert_ok(problem_check(&p, &device, &check, &err), &err);
        assert_right(&check);
        for (size_t n = 0; n < N; n++)
            assert_true(ptxgen_element_load(PTXGEN_F16, p.buffers[MARLIN_AT_Y].host, n) == 1024);
        problem_release(&p);
    }
    device_close(&device);
}

/* What codes are multiplied by is a scale and 2¹⁰³, and what sums are in is 2⁻³⁰. */
static void bf16_scales_between_2_minus_80_and_2_25_are_within_the_bound(void **state)
{
    (void)state;
    static const double scales[] = {0x1.FEp24, 0x1p-80, 0};
    static const struct {
        uint32_t m;
        uint8_t zeros;
    } cases[] = {{16, 0}, {24, 1}, {64, 0}, {65, 1}};
    struct device device = open_device("cpu");
    for (int i = 0; i < 4; i++)
        for (int s = 0; s < 3; s++) {
            struct kernel_options options = {.spec = f16(256, 64, 32)};
            struct marlin_weights weights;
            struct problem p;
            struct random r = random_start(5);
            ptxgen_error err;
            options.spec.type = PTXGEN_BF16;
            options.spec.zeros = cases[i].zeros;
            assert_ok(marlin_random_weights(&options.spec, PTXGEN_W4_GPTQ_V2, &r, &weights, &err), &err);
            const ptxgen_w4_tensor *own = &weights.checkpoints[0].scales;
            for (size_t at = 0; at < ptxgen_w4_tensor_bytes(own) / 2; at++)
                ptxgen_element_store(PTXGEN_BF16, own->data, at, scales[s]);
            p = make_with(&device, &options, cases[i].m, &weights, NULL);
            run_and_release(&p, &device);
        }
    device_close(&device);
}

/* ---- many launches ---- */

/* A problem uploaded, with a kernel, ready to be launched into its y. */
struct running {
    struct device device;
    struct problem p;
    ptxgen_marlin *kernel;
    ptxgen_marlin_args args;
};

/*
 * N of a strip and a long K, whose odd steps no cluster divides, so that CTAs share the tile and hand
 * sums over; all entries.
 */
static void start(struct running *r, uint32_t m)
{
    ptxgen_marlin_spec spec = f16(2112, 64, 64);
    ptxgen_marlin_plan plan;
    ptxgen_error err;
    r->device = open_device("cpu");
    r->p = make(&r->device, &spec, m, PTXGEN_W4_GPTQ_V1, NULL);
    assert_ok(ptxgen_marlin_make_plan(&spec, &((const ptxgen_marlin_plan *)r->p.plan)->target, &plan, &err), &err);
    assert_ok(ptxgen_marlin_load(&r->device.driver, &plan, NULL, &r->kernel, &err), &err);
    struct buffer *inputs[] = {&r->p.buffers[MARLIN_AT_X], &r->p.buffers[MARLIN_AT_CODES], &r->p.buffers[MARLIN_AT_SCALES], &r->p.buffers[MARLIN_AT_Y]};
    assert_ok(buffers_each(inputs, 4, buffer_upload, &err), &err);
    r->args = (ptxgen_marlin_args){.m = r->p.m,
                                   .x = r->p.buffers[MARLIN_AT_X].address,
                                   .codes = r->p.buffers[MARLIN_AT_CODES].address,
                                   .scales = r->p.buffers[MARLIN_AT_SCALES].address,
                                   .y = r->p.buffers[MARLIN_AT_Y].address};
    assert_ok(ptxgen_marlin_workspace_bytes(r->kernel, &r->args, &r->args.workspace_bytes, &err),
              &err);
    r->args.workspace = allocate_workspace(&r->device.driver, r->args.workspace_bytes);
}

static void stop(struct running *r)
{
    r->device.driver.mem_free(r->args.workspace);
    ptxgen_marlin_destroy(r->kernel);
    problem_release(&r->p);
    device_close(&r->device);
}

static void expect_right_y(struct running *r, ptxgen_cu_deviceptr y)
{
    struct check check = {.outputs = 0};
    ptxgen_error err;
    assert_int_equal(r->device.driver.memcpy_dtoh(r->p.buffers[MARLIN_AT_Y].host, y, r->p.buffers[MARLIN_AT_Y].bytes),
                     PTXGEN_CUDA_SUCCESS);
    assert_ok(problem_compare(&r->p, &check, &err), &err);
    assert_right(&check);
}

static void one_kernel_serves_every_m_with_the_entry_for_it(void **state)
{
    (void)state;
    static const uint32_t ms[] = {1, 8, 9, 16, 17, 33, 65, 129, 200};
    for (size_t i = 0; i < sizeof ms / sizeof *ms; i++) {
        struct running r;
        ptxgen_error err;
        start(&r, ms[i]);
        assert_ok(ptxgen_marlin_launch(r.kernel, &r.args, r.device.stream, &err), &err);
        assert_ok(device_wait(&r.device, &err), &err);
        expect_right_y(&r, r.args.y);
        stop(&r);
    }
}

static void replay_a_hundred_times(uint32_t m)
{
    struct running r;
    start(&r, m);
    assert_true(r.args.workspace_bytes > 0);
    ptxgen_driver *driver = &r.device.driver;
    ptxgen_cu_graph graph;
    ptxgen_cu_graph_exec exec;
    ptxgen_error err;
    assert_int_equal(
        driver->stream_begin_capture(r.device.stream, PTXGEN_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
        PTXGEN_CUDA_SUCCESS);
    assert_ok(ptxgen_marlin_launch(r.kernel, &r.args, r.device.stream, &err), &err);
    assert_int_equal(driver->stream_end_capture(r.device.stream, &graph), PTXGEN_CUDA_SUCCESS);
    assert_int_equal(driver->graph_instantiate(&exec, graph, 0), PTXGEN_CUDA_SUCCESS);
    unsigned char *first = malloc(r.p.buffers[MARLIN_AT_Y].bytes), *again = malloc(r.p.buffers[MARLIN_AT_Y].bytes);
    for (int i = 0; i < test_share(100); i++) {
        driver->memset_d8(r.args.y, BUFFER_POISON, r.p.buffers[MARLIN_AT_Y].bytes);
        assert_int_equal(driver->graph_launch(exec, r.device.stream), PTXGEN_CUDA_SUCCESS);
        assert_ok(device_wait(&r.device, &err), &err);
        assert_int_equal(driver->memcpy_dtoh(i ? again : first, r.args.y, r.p.buffers[MARLIN_AT_Y].bytes),
                         PTXGEN_CUDA_SUCCESS);
        if (i)
            assert_memory_equal(again, first, r.p.buffers[MARLIN_AT_Y].bytes);
    }
    expect_right_y(&r, r.args.y);
    free(first);
    free(again);
    driver->graph_exec_destroy(exec);
    driver->graph_destroy(graph);
    stop(&r);
}

static void a_hundred_graph_replays_of_either_of_two_entries_give_the_same_bits(void **state)
{
    (void)state;
    replay_a_hundred_times(8);
    replay_a_hundred_times(16);
}

static void two_streams_with_a_workspace_each_give_the_same_bits(void **state)
{
    (void)state;
    struct running r;
    start(&r, 16);
    assert_true(r.args.workspace_bytes > 0);
    ptxgen_driver *driver = &r.device.driver;
    ptxgen_marlin_args args[2] = {r.args, r.args};
    ptxgen_cu_stream streams[2];
    ptxgen_error err;
    unsigned char *outputs[2];
    args[1].workspace = allocate_workspace(driver, args[1].workspace_bytes);
    args[1].y = allocate_on(driver, r.p.buffers[MARLIN_AT_Y].bytes);
    for (int i = 0; i < 2; i++)
        assert_int_equal(driver->stream_create(&streams[i], 1), PTXGEN_CUDA_SUCCESS);
    for (int i = 0; i < 10; i++)
        assert_ok(ptxgen_marlin_launch(r.kernel, &args[i % 2], streams[i % 2], &err), &err);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(driver->stream_synchronize(streams[i]), PTXGEN_CUDA_SUCCESS);
        outputs[i] = malloc(r.p.buffers[MARLIN_AT_Y].bytes);
        assert_int_equal(driver->memcpy_dtoh(outputs[i], args[i].y, r.p.buffers[MARLIN_AT_Y].bytes),
                         PTXGEN_CUDA_SUCCESS);
        driver->stream_destroy(streams[i]);
    }
    assert_memory_equal(outputs[0], outputs[1], r.p.buffers[MARLIN_AT_Y].bytes);
    expect_right_y(&r, args[0].y);
    for (int i = 0; i < 2; i++)
        free(outputs[i]);
    driver->mem_free(args[1].workspace);
    driver->mem_free(args[1].y);
    stop(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_problems_are_within_their_bounds),
        cmocka_unit_test(golden_files_are_within_their_bounds),
        cmocka_unit_test(an_all_zero_row_gives_the_bias),
        cmocka_unit_test(nan_and_infinities_stay_in_their_rows),
        cmocka_unit_test(no_rows_leave_no_error_for_the_next_launch),
        cmocka_unit_test(m_beyond_65536_rows_is_one_launch),
        cmocka_unit_test(addresses_at_2_4_and_8_bytes_off_give_the_same),
        cmocka_unit_test(groups_of_32_and_64_and_models_odd_shapes),
        cmocka_unit_test(shapes_that_cannot_be_done_are_refused_by_name),
        cmocka_unit_test(warps_in_any_order_do_not_race),
        cmocka_unit_test(zero_points_0_8_and_15_are_exact_in_gptq_v1_and_v2),
        cmocka_unit_test(act_order_with_shuffled_groups_is_right_in_every_format_that_has_it),
        cmocka_unit_test(sums_that_would_overflow_f16_cancel_in_f32),
        cmocka_unit_test(bf16_scales_between_2_minus_80_and_2_25_are_within_the_bound),
        cmocka_unit_test(one_kernel_serves_every_m_with_the_entry_for_it),
        cmocka_unit_test(a_hundred_graph_replays_of_either_of_two_entries_give_the_same_bits),
        cmocka_unit_test(two_streams_with_a_workspace_each_give_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
