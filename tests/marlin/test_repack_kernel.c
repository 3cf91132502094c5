/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packing on the device, here the emulator, which refuses stray accesses and races: bit for bit
 * what packing on the host gives.
 */
#include "tests/checks.h"
#include "tests/status.h"

#include "repacking.h"
#include "scale_edges.h"

#include "src/harness/device.h"

static int setup(void **state)
{
    static struct device device;
    ptxgen_error err;
    *state = &device;
    return device_open("cpu:sm_80", &device, &err) == PTXGEN_OK ? 0 : -1;
}

static int teardown(void **state)
{
    device_close(*state);
    return 0;
}

static ptxgen_marlin_repack *load(struct device *device, const ptxgen_marlin_repack_spec *spec)
{
    ptxgen_error err;
    const ptxgen_target target = ptxgen_device_target(&device->facts);
    ptxgen_marlin_repack_plan plan;
    ptxgen_marlin_repack *kernel;
    assert_ok(ptxgen_marlin_repack_make_plan(spec, &target, &plan, &err), &err);
    assert_ok(ptxgen_marlin_repack_load(&device->driver, &plan, NULL, &kernel, &err), &err);
    return kernel;
}

static void launch(struct device *device, const ptxgen_marlin_repack *kernel,
                   const ptxgen_marlin_repack_args *args)
{
    ptxgen_error err;
    ptxgen_status status = ptxgen_marlin_repack_launch(kernel, args, device->stream, &err);
    if (status == PTXGEN_OK)
        status = device_wait(device, &err);
    assert_ok(device_explain(device, status, &err), &err);
}

/* Host and device pack these weights alike. */
static void expect_same(struct device *device, const struct weights *w)
{
    ptxgen_error err;
    const ptxgen_driver *driver = &device->driver;
    ptxgen_marlin_packed host = packed_allocate(&w->spec), packed = packed_allocate(&w->spec);
    ptxgen_marlin_repack_spec spec = repack_spec_of(&w->spec, &w->checkpoints[0]);
    assert_ok(ptxgen_marlin_pack(&w->spec, &w->checkpoints[0], up_of(w), &host, NULL, &err), &err);
    if (packed.order)
        assert_ok(ptxgen_marlin_row_order(&spec, w->matrices[0].g_idx, packed.order, &err), &err);

    ptxgen_marlin_repack *kernel = load(device, &spec);
    const ptxgen_marlin_repack_args args = upload_args(driver, w, &packed);
    launch(device, kernel, &args);
    download(driver, packed.codes, args.codes, packed.codes_bytes);
    download(driver, packed.scales, args.scales, packed.scales_bytes);
    download(driver, packed.zeros, args.zeros, packed.zeros_bytes);
    assert_same_packed(&packed, &host);

    free_args(driver, &args);
    ptxgen_marlin_repack_destroy(kernel);
    packed_free(&packed);
    packed_free(&host);
}

static void expect_random(struct device *device, const ptxgen_marlin_spec *spec,
                          ptxgen_w4_format format, ptxgen_element scale_type)
{
    struct random r = {spec->k * 31 + spec->n};
    struct weights w = make_weights(&r, spec, format, scale_type);
    expect_same(device, &w);
    free_weights(&w);
}

static const struct {
    uint32_t k, n;
    int32_t group_size;
} shapes[] = {{16, 8, 16},    {256, 256, 128}, {144, 72, 48},  {112, 200, 16}, {160, 64, 32},
              {192, 128, 96}, {208, 104, -1},  {384, 64, 384}, {640, 64, 320}, {320, 136, 32},
              {128, 64, -1},  {64, 1056, 32},  {1040, 64, 16}, {512, 320, 64}, {272, 328, 16}};

static void expect_every_format(struct device *device, ptxgen_marlin_spec spec)
{
    for (int f = 0; ptxgen_w4_format_name((ptxgen_w4_format)f); f++)
        if (format_holds((ptxgen_w4_format)f, &spec))
            expect_random(device, &spec, (ptxgen_w4_format)f, (ptxgen_element)spec.type);
}

static void every_format_packs_as_on_the_host(void **state)
{
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (unsigned mode = 0; mode < 4; mode++)
            expect_every_format(*state,
                                (ptxgen_marlin_spec){.k = shapes[s].k,
                                                     .n = shapes[s].n,
                                                     .group_size = shapes[s].group_size,
                                                     .type = s & 1 ? PTXGEN_BF16 : PTXGEN_F16,
                                                     .zeros = mode & 1,
                                                     .act_order = mode >> 1});
}

static void gate_and_up_are_interleaved_as_on_the_host(void **state)
{
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (unsigned mode = 0; mode < 4; mode++)
            expect_every_format(*state, (ptxgen_marlin_spec){.k = shapes[s].k,
                                                             .n = shapes[s].n,
                                                             .group_size = shapes[s].group_size,
                                                             .type = PTXGEN_F16,
                                                             .zeros = mode & 1,
                                                             .act_order = mode >> 1,
                                                             .epilogue = PTXGEN_EPILOGUE_SWIGLU});
}

/* 99 KB hold 16 columns of up to 12,656 rows. */
static void columns_that_a_cta_cannot_hold_are_gathered_in_pieces(void **state)
{
    (void)state;
    struct device device = open_device("cpu:sm_86");
    for (uint32_t k = 12608; k <= 12864; k += 256)
        expect_random(&device,
                      &(ptxgen_marlin_spec){
                          .k = k, .n = 16, .group_size = 64, .type = PTXGEN_F16, .act_order = 1},
                      PTXGEN_W4_PACK_QUANTIZED, PTXGEN_F16);
    device_close(&device);
}

static void scales_are_converted_as_on_the_host(void **state)
{
    static const ptxgen_element types[] = {PTXGEN_F16, PTXGEN_BF16, PTXGEN_F32};
    for (int from = 0; from < 3; from++)
        for (int to = 0; to < 2; to++) {
            const ptxgen_marlin_spec spec = {
                .k = 128, .n = 72, .group_size = 32, .type = (uint8_t)types[to]};
            expect_random(*state, &spec, PTXGEN_W4_GPTQ_V2, types[from]);
            expect_random(*state, &spec, PTXGEN_W4_PACK_QUANTIZED, types[from]);
        }
}

static void absent_zero_points_are_8(void **state)
{
    struct device *device = *state;
    const ptxgen_marlin_spec plain = {.k = 64, .n = 64, .group_size = 32, .type = PTXGEN_F16};
    struct random r = {5};
    struct weights w = make_weights(&r, &plain, PTXGEN_W4_PACK_QUANTIZED, PTXGEN_F16);
    assert_null(w.checkpoints[0].zeros.data);
    w.spec.zeros = 1;
    expect_same(device, &w);
    free_weights(&w);
}

static void whole_tiles_leave_no_trace_of_tails_in_the_text(void **state)
{
    (void)state;
    ptxgen_error err;
    for (int f = 0; ptxgen_w4_format_name((ptxgen_w4_format)f); f++) {
        const ptxgen_marlin_repack_spec spec = {.k = 8192,
                                                .n = 8192,
                                                .group_size = 128,
                                                .type = PTXGEN_F16,
                                                .format = (uint8_t)f,
                                                .scale_type = PTXGEN_F16};
        const ptxgen_target target = target_of("sm_90");
        ptxgen_marlin_repack_plan plan;
        const char *text;
        assert_ok(ptxgen_marlin_repack_make_plan(&spec, &target, &plan, &err), &err);
        ptx_module *module = ptx_module_create(&target.ptx, NULL);
        assert_ok(ptxgen_marlin_repack_emit(&plan, module, &err), &err);
        assert_ok(ptx_module_text(module, 0, &text, NULL, &err), &err);
        const char *groups = strstr(text, ".entry marlin_repack_groups");
        assert_non_null(groups);
        assert_true(!strstr(text, "setp") || strstr(text, "setp") > groups);
        assert_null(strstr(groups, "setp.lt")); /* scales are compared by gt, eq and ne */
        ptx_module_destroy(module);
    }
}

/* ---- scales that are not admitted ---- */

/* Packs with a word for refusals, and gives what is left in it. */
static uint64_t refused_by(struct device *device, const ptxgen_marlin_repack_spec *spec,
                           const struct weights *w)
{
    const ptxgen_driver *driver = &device->driver;
    ptxgen_marlin_packed packed = packed_allocate(&w->spec);
    ptxgen_marlin_repack *kernel = load(device, spec);
    ptxgen_marlin_repack_args args = upload_args(driver, w, &packed);
    uint64_t refused = 0;
    launch(device, kernel, &args); /* without a word nothing is reported, or written elsewhere */
    args.refused = upload(driver, &refused, sizeof refused);
    launch(device, kernel, &args);
    download(driver, &refused, args.refused, sizeof refused);
    driver->mem_free(args.refused);
    free_args(driver, &args);
    ptxgen_marlin_repack_destroy(kernel);
    packed_free(&packed);
    return refused;
}

static void scales_are_refused_at_the_same_edges_as_on_the_host(void **state)
{
    for (size_t i = 0; i < SCALE_EDGES; i++) {
        const struct scale_edge *e = &scale_edges[i];
        struct weights w = make_edge(e, (ptxgen_w4_format)(i % 5));
        const ptxgen_marlin_repack_spec spec = repack_spec_of(&w.spec, &w.checkpoints[0]);
        uint64_t refused = refused_by(*state, &spec, &w);
        ptxgen_error err = {0};
        ptxgen_status status = ptxgen_marlin_repack_verdict(&spec, refused, &err);
        assert_int_equal(status, e->refused ? PTXGEN_ERROR_UNSUPPORTED : PTXGEN_OK);
        assert_int_equal(refused != 0, e->refused != NULL);
        if (e->refused && e->zeros && e->type == PTXGEN_F16)
            assert_says(&err, "group 3, feature 17, makes with its zero point weights past 65504");
        else if (e->refused)
            assert_says(&err, e->refused);
        free_weights(&w);
    }
}

static void the_first_refused_scale_is_named_and_gates_before_ups(void **state)
{
    const ptxgen_marlin_spec product = {.k = 192,
                                        .n = 72,
                                        .group_size = 48,
                                        .type = PTXGEN_F16,
                                        .epilogue = PTXGEN_EPILOGUE_SWIGLU};
    static const struct {
        unsigned matrix;
        size_t at;
        double value;
        const char *words;
    } scales[] = {
        {1, 3 * 72 + 71, -9000, "scale -9000 of up, group 3, feature 71, with the zero point 8"},
        {1, 2 * 72 + 70, 10000, "scale 10000 of up, group 2, feature 70, "},
        {0, 3 * 72 + 71, INFINITY, "scale inf of gate, group 3, feature 71, is not finite as f16"},
        {0, 3, NAN, "scale nan of gate, group 0, feature 3, is not finite as f16"},
    };
    struct random r = {17};
    struct weights w = make_weights(&r, &product, PTXGEN_W4_GPTQ_V2, PTXGEN_F32);
    const ptxgen_marlin_repack_spec spec = repack_spec_of(&w.spec, &w.checkpoints[0]);
    ptxgen_error err = {0};
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
        ptxgen_element_store(PTXGEN_F32, w.checkpoints[scales[i].matrix].scales.data, scales[i].at,
                             scales[i].value);
        uint64_t refused = refused_by(*state, &spec, &w);
        assert_int_equal(ptxgen_marlin_repack_verdict(&spec, refused, &err),
                         PTXGEN_ERROR_UNSUPPORTED);
        assert_says(&err, scales[i].words);
    }
    /* no launch's: an index past the last scale, and a scale that is admitted */
    static const uint64_t others[] = {1, 0xFFFFFFFF3F800000u};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ptxgen_marlin_repack_verdict(&spec, others[i], &err),
                         PTXGEN_ERROR_INVALID_ARGUMENT);
        assert_says(&err, "is not what a launch of this spec leaves");
    }
    free_weights(&w);
}

/* ---- refusals ---- */

static void refused(const ptxgen_marlin_repack_spec *spec, ptxgen_status expected,
                    const char *words)
{
    const ptxgen_target target = target_of("sm_90");
    ptxgen_marlin_repack_plan plan;
    ptxgen_error err = {0};
    assert_int_equal(ptxgen_marlin_repack_make_plan(spec, &target, &plan, &err), expected);
    assert_says(&err, words);
}

static void what_a_format_cannot_hold_is_refused(void **state)
{
    (void)state;
    const ptxgen_marlin_repack_spec plain = {.k = 64,
                                             .n = 72,
                                             .group_size = 64,
                                             .type = PTXGEN_F16,
                                             .format = PTXGEN_W4_GPTQ_V1,
                                             .scale_type = PTXGEN_F16};
    ptxgen_marlin_repack_spec s = plain;
    s.k = 40;
    refused(&s, PTXGEN_ERROR_UNSUPPORTED, "K = 40");
    s = plain, s.format = PTXGEN_W4_MARLIN;
    refused(&s, PTXGEN_ERROR_UNSUPPORTED, "N = 72 is not a multiple of 64, which marlin needs");
    s = plain, s.format = PTXGEN_W4_AWQ, s.act_order = 1;
    refused(&s, PTXGEN_ERROR_UNSUPPORTED, "awq has no g_idx");
    s = plain, s.format = 5;
    refused(&s, PTXGEN_ERROR_INVALID_ARGUMENT, "5 is not the number");
    s = plain, s.scale_type = PTXGEN_F64;
    refused(&s, PTXGEN_ERROR_UNSUPPORTED, "scales' type 3");
    s = plain, s.n = (1u << 28) + 8;
    refused(&s, PTXGEN_ERROR_UNSUPPORTED, "N = 268435464 is above");
    s = plain, s.reserved[1] = 1;
    refused(&s, PTXGEN_ERROR_INVALID_ARGUMENT, "reserved");
}

static void null_and_misaligned_addresses_are_refused_by_name(void **state)
{
    const ptxgen_marlin_repack_spec spec = {.k = 64,
                                            .n = 64,
                                            .group_size = 64,
                                            .type = PTXGEN_F16,
                                            .zeros = 1,
                                            .act_order = 1,
                                            .epilogue = PTXGEN_EPILOGUE_SWIGLU,
                                            .format = PTXGEN_W4_GPTQ_V1,
                                            .scale_type = PTXGEN_F32};
    const ptxgen_marlin_repack_args good = {.weights.weights = 0x1000,
                                            .weights.scales = 0x2000,
                                            .weights.zeros = 0x3000,
                                            .up.weights = 0x4000,
                                            .up.scales = 0x5000,
                                            .up.zeros = 0x6000,
                                            .order = 0x7000,
                                            .codes = 0x8000,
                                            .scales = 0x9000,
                                            .zeros = 0xA000};
    static const struct {
        const char *name;
        size_t offset;
        unsigned align;
        bool optional;
    } arrays[] = {
        {"weights", offsetof(ptxgen_marlin_repack_args, weights.weights), 16, false},
        {"weights' scales", offsetof(ptxgen_marlin_repack_args, weights.scales), 4, false},
        {"weights' zeros", offsetof(ptxgen_marlin_repack_args, weights.zeros), 4, true},
        {"up", offsetof(ptxgen_marlin_repack_args, up.weights), 16, false},
        {"up's scales", offsetof(ptxgen_marlin_repack_args, up.scales), 4, false},
        {"up's zeros", offsetof(ptxgen_marlin_repack_args, up.zeros), 4, true},
        {"order", offsetof(ptxgen_marlin_repack_args, order), 16, false},
        {"codes", offsetof(ptxgen_marlin_repack_args, codes), 16, false},
        {"scales", offsetof(ptxgen_marlin_repack_args, scales), 16, false},
        {"zeros", offsetof(ptxgen_marlin_repack_args, zeros), 16, false},
        {"refused", offsetof(ptxgen_marlin_repack_args, refused), 8, true}};
    ptxgen_marlin_repack *kernel = load(*state, &spec);
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        for (unsigned off = arrays[i].optional; off < 2; off++) {
            ptxgen_marlin_repack_args args = good;
            uint64_t *address = (uint64_t *)(void *)((char *)&args + arrays[i].offset);
            *address = off ? *address + arrays[i].align / 2 : 0;
            char words[80];
            snprintf(words, sizeof words,
                     off ? "marlin_repack: %s at 0x" : "marlin_repack: %s is null", arrays[i].name);
            ptxgen_error err = {0};
            assert_int_equal(ptxgen_marlin_repack_launch(kernel, &args, NULL, &err),
                             PTXGEN_ERROR_INVALID_ARGUMENT);
            assert_says(&err, words);
        }
    ptxgen_marlin_repack_destroy(kernel);
}

static void orders_of_unequal_groups_are_refused(void **state)
{
    (void)state;
    const ptxgen_marlin_repack_spec spec = {.k = 32,
                                            .n = 64,
                                            .group_size = 16,
                                            .type = PTXGEN_F16,
                                            .act_order = 1,
                                            .scale_type = PTXGEN_F16};
    int32_t g_idx[32] = {0};
    uint32_t order[32];
    ptxgen_error err = {0};
    assert_int_equal(ptxgen_marlin_row_order(&spec, g_idx, order, &err), PTXGEN_ERROR_UNSUPPORTED);
    assert_says(&err, "more than its 16 rows");
    g_idx[3] = 2;
    assert_int_equal(ptxgen_marlin_row_order(&spec, g_idx, order, &err), PTXGEN_ERROR_MALFORMED);
    assert_says(&err, "g_idx[3] is 2");
    for (int k = 0; k < 32; k++)
        g_idx[k] = k % 2;
    assert_ok(ptxgen_marlin_row_order(&spec, g_idx, order, &err), &err);
    for (uint32_t i = 0; i < 32; i++)
        assert_int_equal(order[i], i % 16 * 2 + i / 16);
}

static void groups_that_pack_quantized_leaves_unset_are_plain_order(void **state)
{
    (void)state;
    ptxgen_marlin_repack_spec spec = {.k = 32,
                                      .n = 64,
                                      .group_size = 16,
                                      .type = PTXGEN_F16,
                                      .act_order = 1,
                                      .format = PTXGEN_W4_PACK_QUANTIZED,
                                      .scale_type = PTXGEN_F16};
    int32_t g_idx[32];
    uint32_t order[32];
    ptxgen_error err = {0};
    memset(g_idx, 0xFF, sizeof g_idx);
    assert_ok(ptxgen_marlin_row_order(&spec, g_idx, order, &err), &err);
    for (uint32_t i = 0; i < 32; i++)
        assert_int_equal(order[i], i);
    spec.format = PTXGEN_W4_GPTQ_V1;
    assert_int_equal(ptxgen_marlin_row_order(&spec, g_idx, order, &err), PTXGEN_ERROR_MALFORMED);
    assert_says(&err, "g_idx[0] is -1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_format_packs_as_on_the_host),
        cmocka_unit_test(gate_and_up_are_interleaved_as_on_the_host),
        cmocka_unit_test(scales_are_converted_as_on_the_host),
        cmocka_unit_test(absent_zero_points_are_8),
        cmocka_unit_test(whole_tiles_leave_no_trace_of_tails_in_the_text),
        cmocka_unit_test(scales_are_refused_at_the_same_edges_as_on_the_host),
        cmocka_unit_test(the_first_refused_scale_is_named_and_gates_before_ups),
        cmocka_unit_test(what_a_format_cannot_hold_is_refused),
        cmocka_unit_test(null_and_misaligned_addresses_are_refused_by_name),
        cmocka_unit_test(orders_of_unequal_groups_are_refused),
        cmocka_unit_test(groups_that_pack_quantized_leaves_unset_are_plain_order),
        /* leaves no context current */
        cmocka_unit_test(columns_that_a_cta_cannot_hold_are_gathered_in_pieces),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
