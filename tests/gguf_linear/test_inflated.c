/* SPDX-License-Identifier: Apache-2.0 */
/* Launches of more than 8 tokens: in passes, or of weights that are decoded a slice at a time. */
#include "tests/problems.h"

#include "src/harness/gguf_linear.h"

#include <stdlib.h>
#include <string.h>

static const char *const devices[] = {"cpu:sm_80", "cpu:sm_90", "cpu:sm_120"};
enum { DEVICES = 3 };

static const uint32_t ms[] = {9, 16, 33, 100};
enum { MS = 4 };

/* ---- types, tokens and what stands around the product ---- */

static ptxgen_gguf_linear_spec spec_of(uint8_t type, unsigned i)
{
    ptxgen_gguf_linear_spec s = {.k = ptxgen_gguf_type_find(type)->block_weights == 256 ? 256 : 96,
                                 .n = {i % 2 ? 40 : 43},
                                 .w_type = {type},
                                 .x_type = (uint8_t)(i % 3),
                                 .y_type = (uint8_t)(i / 2 % 3),
                                 .residual = (uint8_t)(i / 3 % 3),
                                 .bias = i / 2 % 2,
                                 .compute = (uint8_t)(i / 5 % 3)};
    s.norm = i % 4 == 1;
    s.residual_out = s.residual && i % 4 < 2;
    if (s.norm || s.residual == PTXGEN_GGUF_LINEAR_AFTER)
        s.epsilon = 1e-5f;
    if (i % 3 != 1)
        return s;
    s.n[1] = s.n[0];
    s.w_type[1] = i % 2 ? type : PTXGEN_GGUF_Q8_0;
    s.epilogue = i % 4 < 2 ? PTXGEN_EPILOGUE_SWIGLU : PTXGEN_EPILOGUE_GEGLU;
    return s;
}

static void every_type_is_right_for_many_tokens(void **state)
{
    int type;
    unsigned number = 0;
    (void)state;
    for (size_t t = 0; (type = gguf_linear_type_at(t)) >= 0; t++)
        for (unsigned i = 0; i < 6; i++, number++) {
            const ptxgen_gguf_linear_spec spec = spec_of(type, (unsigned)t + i);
            if (test_in_share((int)number))
                run_spec(devices[number % DEVICES], &gguf_linear_harness, &spec, ms[i % MS]);
        }
}

/* Of the three, none is a whole number of tiles, and two of a type have one decoder. */
static void matrices_that_share_x_are_right(void **state)
{
    static const uint32_t ns[][3] = {{8, 264, 16}, {300, 1, 40}, {256, 256, 9}};
    static const uint8_t types[] = {PTXGEN_GGUF_Q5_0, PTXGEN_GGUF_MXFP4, PTXGEN_GGUF_Q5_0};
    (void)state;
    for (unsigned i = 0; i < 3 * DEVICES * 2; i++) {
        ptxgen_gguf_linear_spec spec = {.k = 64,
                                        .x_type = PTXGEN_F16,
                                        .y_type = i % 2 ? PTXGEN_F16 : PTXGEN_F32,
                                        .bias = i / DEVICES % 2};
        memcpy(spec.n, ns[i % 3], sizeof spec.n);
        memcpy(spec.w_type, types, sizeof spec.w_type);
        if (test_in_share((int)i))
            run_spec(devices[i / 2 % DEVICES], &gguf_linear_harness, &spec, ms[i % MS]);
    }
}

/* Rows of x that are not aligned are copied, and rows of y stored element by element. */
static void views_that_are_strided_or_misaligned_are_right(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 12; i++) {
        const ptxgen_gguf_linear_spec spec = {
            .k = 128,
            .n = {48, i % 2 ? 24 : 0},
            .w_type = {PTXGEN_GGUF_Q4_0, i % 2 ? PTXGEN_GGUF_Q8_0 : 0},
            .x_type = (uint8_t)(i % 3),
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
        struct device device = open_device(devices[i % DEVICES]);
        struct problem p =
            make_problem(&device, &gguf_linear_harness, &spec, i % 3 ? 35 : 17, &layout);
        run_and_release(&p, &device);
        device_close(&device);
    }
}

/* ---- slices ---- */

/* Plans of a chip of one multiprocessor, whose slices have 2 MB. */
static struct device open_small(const char *name)
{
    struct device device = open_device(name);
    device.facts.sm_count = 1;
    return device;
}

static void assert_explained(const struct problem *p, const char *words)
{
    char text[256];
    ptxgen_gguf_linear_explain(p->plan, p->m, text, sizeof text);
    if (!strstr(text, words))
        fail_msg("'%s' does not say '%s'", text, words);
}

/* Matrices and gates that begin and end within slices, and slices that no matrix fills. */
static void weights_are_decoded_a_slice_at_a_time(void **state)
{
    static const struct {
        uint32_t k, n[3];
        uint8_t x_type, epilogue;
        const char *words;
    } rows[] = {
        {4096, {300}, PTXGEN_F16, 0, "256 rows at a time in 2 slices"},
        {4096, {260, 20, 8}, PTXGEN_BF16, 0, "256 rows at a time in 4 slices"},
        {4096, {140, 140}, PTXGEN_F16, PTXGEN_EPILOGUE_SWIGLU, "256 rows at a time in 2 slices"},
        {2048, {260}, PTXGEN_F32, 0, "256 rows at a time in 2 slices"},
        {2048, {260, 260}, PTXGEN_F16, PTXGEN_EPILOGUE_GEGLU, "512 rows at a time in 2 slices"},
    };
    enum { ROWS = sizeof rows / sizeof *rows };
    (void)state;
    for (unsigned i = 0; i < ROWS; i++) {
        ptxgen_gguf_linear_spec spec = {.k = rows[i].k,
                                        .w_type = {PTXGEN_GGUF_Q8_0},
                                        .x_type = rows[i].x_type,
                                        .y_type = rows[i].x_type,
                                        .epilogue = rows[i].epilogue,
                                        .bias = i % 2};
        memcpy(spec.n, rows[i].n, sizeof spec.n);
        for (int j = 1; j < 3; j++)
            spec.w_type[j] = spec.n[j] ? PTXGEN_GGUF_Q4_0 : 0;
        if (!test_in_share((int)i))
            continue;
        struct device device = open_small(devices[i % DEVICES]);
        struct problem p = make_problem(&device, &gguf_linear_harness, &spec, 33, NULL);
        assert_explained(&p, rows[i].words);
        run_and_release(&p, &device);
        device_close(&device);
    }
}

/* Tiles of all CTAs, in several orders, whose flags in the workspace are poison before. */
static void tiles_are_divided_in_a_workspace_that_holds_anything(void **state)
{
    (void)state;
    for (int i = 0; i < DEVICES * 2; i++) {
        const ptxgen_gguf_linear_spec spec = {.k = 8192,
                                              .n = {64},
                                              .w_type = {PTXGEN_GGUF_Q8_0},
                                              .x_type = PTXGEN_F16,
                                              .y_type = PTXGEN_F16};
        if (!test_in_share(i))
            continue;
        struct device device = open_device(devices[i % DEVICES]);
        order_by(&device, (uint64_t)i + 1);
        struct problem p = make_problem(&device, &gguf_linear_harness, &spec, 34, NULL);
        run_and_release(&p, &device);
        device_close(&device);
    }
}

/* ---- plans ---- */

/* The tile of tensor cores, whichever way they multiply. */
static const ptxgen_tile *choose_many(const ptxgen_gguf_linear_plan *plan, uint64_t m)
{
    const ptxgen_tile *direct = ptxgen_gguf_linear_choose_direct(plan, m);
    return direct ? direct : ptxgen_gguf_linear_choose_inflated(plan, m);
}

static void plans_have_as_many_entries_as_they_serve_tokens(void **state)
{
    static const uint32_t most[] = {0, 4, 8, 9, 32, 33, 0};
    const ptxgen_target target = target_of("sm_90a");
    (void)state;
    for (int i = 0; i < 7; i++) {
        const ptxgen_gguf_linear_spec spec = {
            .k = 256,
            .n = {64},
            .max_m = most[i],
            .w_type = {i % 2 ? PTXGEN_GGUF_Q4_K : PTXGEN_GGUF_Q2_K},
            .x_type = PTXGEN_F16};
        const uint32_t limit = most[i] ? most[i] : INT32_MAX;
        ptxgen_gguf_linear_plan plan;
        ptxgen_error err;
        assert_ok(ptxgen_gguf_linear_make_plan(&spec, &target, &plan, &err), &err);
        const bool direct = spec.w_type[0] == PTXGEN_GGUF_Q4_K;
        const uint32_t most_in_passes = direct ? 8 : 32;
        assert_int_equal(plan.direct_count > 0, direct && limit > 8);
        assert_int_equal(plan.inflated.variant_count > 0, !direct && limit > 32);
        for (uint32_t m = 1; m < 36; m++) {
            assert_int_equal(ptxgen_gguf_linear_choose(&plan, m) != NULL,
                             m <= limit && m <= most_in_passes);
            assert_int_equal(choose_many(&plan, m) != NULL, m <= limit && m > most_in_passes);
        }
    }
    assert_null(ptxgen_gguf_linear_choose_inflated(NULL, 33));
    assert_null(ptxgen_gguf_linear_inflated_entry(NULL));
}

/* A pass has the bits of a launch of its tokens. */
static void passes_are_launches_of_eight(void **state)
{
    const ptxgen_gguf_linear_spec spec = {.k = 512,
                                          .n = {40, 24},
                                          .epsilon = 1e-6f,
                                          .w_type = {PTXGEN_GGUF_Q6_K, PTXGEN_GGUF_Q8_0},
                                          .x_type = PTXGEN_F16,
                                          .y_type = PTXGEN_F32,
                                          .norm = PTXGEN_GGUF_LINEAR_RMSNORM,
                                          .residual = PTXGEN_GGUF_LINEAR_BEFORE,
                                          .residual_out = 1};
    struct device device = open_device("cpu:sm_90");
    struct problem all = make_problem(&device, &gguf_linear_harness, &spec, 21, NULL);
    struct problem some = make_problem(&device, &gguf_linear_harness, &spec, 5, NULL);
    (void)state;
    for (unsigned i = 0; i < GGUF_LINEAR_AT_Y; i++)
        if (some.operands[i].used && some.operands[i].role != OPERAND_OUTPUT)
            memcpy(some.buffers[i].host,
                   problem_at(&all, i, some.operands[i].rows == 5 ? 16 : 0, 0),
                   some.buffers[i].bytes);
    check_problem(&all, &device);
    check_problem(&some, &device);
    for (unsigned i = GGUF_LINEAR_AT_Y; i < GGUF_LINEAR_AT_Y + 2; i++)
        assert_memory_equal(problem_at(&all, i, 16, 0), some.buffers[i].host,
                            some.buffers[i].bytes);
    problem_release(&all);
    problem_release(&some);
    device_close(&device);
}

/* Warps that stage sums alone have no pairs of gate and up. */
static void gates_have_no_tiles_whose_warps_end_alone(void **state)
{
    const ptxgen_target target = target_of("sm_90");
    (void)state;
    for (uint8_t epilogue = 0; epilogue < 3; epilogue++) {
        const ptxgen_gguf_linear_spec spec = {.k = 256,
                                              .n = {2048, 2048},
                                              .w_type = {PTXGEN_GGUF_Q4_K, PTXGEN_GGUF_Q4_K},
                                              .x_type = PTXGEN_F16,
                                              .epilogue = epilogue};
        ptxgen_gguf_linear_plan plan;
        ptxgen_error err;
        unsigned bulk = 0;
        assert_ok(ptxgen_gguf_linear_make_plan(&spec, &target, &plan, &err), &err);
        for (uint32_t i = 0; i < plan.inflated.variant_count; i++)
            bulk += plan.inflated.variants[i].kind == PTXGEN_BULK;
        assert_int_equal(bulk > 0, !epilogue);
        assert_non_null(ptxgen_gguf_linear_choose_inflated(&plan, 5000));
    }
}

static void what_is_rounded_is_guaranteed(void **state)
{
    static const uint8_t roundings[] = {PTXGEN_ROUNDING_TF32_PAIR, PTXGEN_ROUNDING_F16,
                                        PTXGEN_ROUNDING_BF16};
    const ptxgen_target target = target_of("sm_90a");
    (void)state;
    for (unsigned i = 0; i < 12; i++) {
        ptxgen_gguf_linear_spec spec = {.k = 256,
                                        .n = {64},
                                        .w_type = {i % 4 ? PTXGEN_GGUF_Q4_K : PTXGEN_GGUF_Q2_K},
                                        .x_type = (uint8_t)(i % 3),
                                        .y_type = PTXGEN_F32,
                                        .norm = i / 3 % 2,
                                        .compute = i / 6 ? PTXGEN_BF16 : 0};
        const uint8_t type = spec.compute ? spec.compute : spec.x_type;
        ptxgen_gguf_linear_plan plan;
        ptxgen_guarantee g;
        ptxgen_error err;
        assert_ok(ptxgen_gguf_linear_make_plan(&spec, &target, &plan, &err), &err);
        assert_ok(ptxgen_gguf_linear_guarantee(&plan, 300, &g, &err), &err);
        assert_int_equal(g.w_rounding, roundings[type]);
        assert_int_equal(g.x_rounding,
                         spec.norm || type != spec.x_type || !type ? roundings[type] : 0);
        assert_int_equal(g.batch_invariant, 0);
        assert_true(g.from_m >= 33 && g.from_m <= 300 && g.to_m >= 300);
        const ptxgen_tile *tile = choose_many(&plan, 300);
        assert_string_equal(g.sku, plan.direct_count ? ptxgen_gguf_linear_direct_entry(tile)
                                                     : ptxgen_gguf_linear_inflated_entry(tile));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_is_right_for_many_tokens),
        cmocka_unit_test(matrices_that_share_x_are_right),
        cmocka_unit_test(views_that_are_strided_or_misaligned_are_right),
        cmocka_unit_test(weights_are_decoded_a_slice_at_a_time),
        cmocka_unit_test(tiles_are_divided_in_a_workspace_that_holds_anything),
        cmocka_unit_test(plans_have_as_many_entries_as_they_serve_tokens),
        cmocka_unit_test(passes_are_launches_of_eight),
        cmocka_unit_test(gates_have_no_tiles_whose_warps_end_alone),
        cmocka_unit_test(what_is_rounded_is_guaranteed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
