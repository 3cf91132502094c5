/* SPDX-License-Identifier: Apache-2.0 */
/* Every type by tokens, K and N on the emulator against the reference. */
#include "tests/problems.h"

#include "src/harness/gguf_linear.h"

static const char *const devices[] = {"cpu:sm_80", "cpu:sm_90"};

static bool is_super(uint8_t type)
{
    return ptxgen_gguf_type_find(type)->block_weights == 256;
}

/* The smallest K, odd numbers of blocks, whole units, and a last unit in part. */
static const uint32_t ks[2][6] = {{32, 96, 640, 672, 2304, 256}, {256, 768, 1280, 512, 2304, 256}};
static const uint32_t ms[] = {1, 2, 3, 5, 8}, ns[] = {1, 13, 16, 100};
enum { KS = 6, MS = 5, NS = 4 };

static void every_type_is_right_at_every_size(void **state)
{
    int type;
    int number = 0;
    (void)state;
    for (size_t t = 0; (type = gguf_linear_type_at(t)) >= 0; t++)
        for (unsigned i = 0; i < KS * MS * NS; i++) {
            if (!test_in_share(number++) || (i / NS % KS >= 4 && i % NS == 3))
                continue;
            const ptxgen_gguf_linear_spec spec = {.k = ks[is_super(type)][i / NS % KS],
                                                  .n = {ns[i % NS]},
                                                  .max_m = ms[i / NS / KS],
                                                  .w_type = {type},
                                                  .x_type = (uint8_t)(i % 3),
                                                  .y_type = (uint8_t)(i % 3)};
            run_spec(devices[i % 2], &gguf_linear_harness, &spec, ms[i / NS / KS]);
        }
}

/* At each multiple of the type's alignment, where files have multiples of 32. */
static void weights_may_start_at_their_own_alignment(void **state)
{
    int type;
    int number = 0;
    (void)state;
    for (size_t t = 0; (type = gguf_linear_type_at(t)) >= 0; t++)
        for (uint32_t shift = 1; shift < 16; shift += 2) {
            if (!test_in_share(number++))
                continue;
            const ptxgen_gguf_linear_spec spec = {.k = is_super(type) ? 256 : 96,
                                                  .n = {19},
                                                  .w_type = {type},
                                                  .x_type = PTXGEN_F16,
                                                  .y_type = PTXGEN_F32};
            const struct layout layout = {.shift = {[GGUF_LINEAR_AT_W] = shift}};
            struct device device = open_device(devices[shift / 2 % 2]);
            struct problem p = make_problem(&device, &gguf_linear_harness, &spec, 2, &layout);
            run_and_release(&p, &device);
            device_close(&device);
        }
}

/* Two matrices of each two types, as a pair with a gate and as outputs of their own. */
static void matrices_have_types_of_their_own(void **state)
{
    int one, two;
    int number = 0;
    (void)state;
    for (size_t t = 0; (one = gguf_linear_type_at(t)) >= 0; t++)
        for (size_t u = t; (two = gguf_linear_type_at(u)) >= 0; u++) {
            if (!test_in_share(number++))
                continue;
            const unsigned way = (unsigned)(t + u) % 3;
            const ptxgen_gguf_linear_spec spec = {.k = 512,
                                                  .n = {21, 21, way ? 0 : 5},
                                                  .w_type = {one, two, way ? 0 : one},
                                                  .x_type = PTXGEN_BF16,
                                                  .y_type = PTXGEN_F32,
                                                  .epilogue = (uint8_t)way,
                                                  .bias = (uint8_t)(u % 2)};
            run_spec(devices[u % 2], &gguf_linear_harness, &spec, 1 + (t + u) % 4);
        }
}

/*
 * Rows of multiples of 16 bytes, which tensor copies bring: pairs of units that begin at any
 * multiple of 4 bytes, an odd unit behind them, features that are no whole tiles, and several types
 * one after the other.
 */
static void tensor_copies_bring_every_type(void **state)
{
    static const uint32_t tokens[] = {1, 3, 8};
    int number = 0, type, plans = 0;
    (void)state;
    for (size_t t = 0; (type = gguf_linear_type_at(t)) >= 0; t++)
        for (unsigned i = 0; i < 3; i++) {
            if (ptxgen_gguf_type_find((uint32_t)type)->block_weights == 1 ||
                !test_in_share(number++))
                continue;
            const bool is_odd =
                i == 1 && ptxgen_gguf_type_find((uint32_t)type)->block_bytes % 16 == 0;
            const ptxgen_gguf_linear_spec spec = {
                .k = is_odd ? 2304 : 2048,
                .n = {21, 37, 5},
                .w_type = {(uint8_t)type, PTXGEN_GGUF_Q4_K, (uint8_t)type},
                .x_type = (uint8_t)((t + i) % 3),
                .y_type = PTXGEN_F32,
                .norm = (uint8_t)(t % 2)};
            const ptxgen_target target = target_of("sm_90a");
            ptxgen_gguf_linear_plan plan;
            ptxgen_status status = ptxgen_gguf_linear_make_plan(&spec, &target, &plan, NULL);
            assert_int_equal(status, PTXGEN_OK);
            assert_int_equal(ptxgen_gguf_linear_choose(&plan, tokens[i])->tensor, 1);
            run_spec("cpu:sm_90", &gguf_linear_harness, &spec, tokens[i]);
            plans++;
        }
    assert_true(plans > 0);
}

/* A warp multiplies more pairs of units than its ring has slots. */
static void rings_turn_over(void **state)
{
    const ptxgen_target target = target_of("sm_90a");
    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        const ptxgen_gguf_linear_spec spec = {.k = 65536,
                                              .n = {21, i ? 21 : 0},
                                              .max_m = 1,
                                              .w_type = {PTXGEN_GGUF_Q8_0, PTXGEN_GGUF_Q8_0},
                                              .x_type = PTXGEN_F16,
                                              .y_type = PTXGEN_F16,
                                              .epilogue = i ? PTXGEN_EPILOGUE_SWIGLU
                                                            : PTXGEN_EPILOGUE_NONE};
        ptxgen_gguf_linear_plan plan;
        assert_int_equal(ptxgen_gguf_linear_make_plan(&spec, &target, &plan, NULL), PTXGEN_OK);
        const ptxgen_gguf_linear_variant *v = plan.variants;
        assert_true(spec.k / 512 > v->wk * v->parts * v->stages);
        run_spec("cpu:sm_90", &gguf_linear_harness, &spec, 1);
    }
}

/*
 * Warps along K that share slots, which are filled again: features that are no whole tiles, several
 * matrices and a gate.
 */
static void warps_share_slots(void **state)
{
    static const struct {
        uint32_t k, n[3];
        uint8_t epilogue;
    } cases[] = {{8192, {5000, 24, 40}, PTXGEN_EPILOGUE_NONE},
                 {14336, {2500, 0, 0}, PTXGEN_EPILOGUE_NONE},
                 {8192, {2500, 2500, 0}, PTXGEN_EPILOGUE_SWIGLU}};
    const ptxgen_target target = target_of("sm_90a");
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const ptxgen_gguf_linear_spec spec = {
            .k = cases[i].k,
            .n = {cases[i].n[0], cases[i].n[1], cases[i].n[2]},
            .max_m = 1,
            .w_type = {PTXGEN_GGUF_Q6_K, PTXGEN_GGUF_Q6_K, PTXGEN_GGUF_Q6_K},
            .x_type = PTXGEN_BF16,
            .y_type = PTXGEN_BF16,
            .epilogue = cases[i].epilogue};
        ptxgen_gguf_linear_plan plan;
        assert_int_equal(ptxgen_gguf_linear_make_plan(&spec, &target, &plan, NULL), PTXGEN_OK);
        assert_int_equal(plan.variants[0].ring_warps, 4);
        run_spec("cpu:sm_90", &gguf_linear_harness, &spec, 1);
    }
}

/* Every CTA has tiles, and several: more of them than CTAs, and fewer than all warps along N. */
static void tiles_are_dealt_out(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        const ptxgen_gguf_linear_spec spec = {.k = 1024,
                                              .n = {5000, i ? 5000 : 130},
                                              .max_m = 1,
                                              .w_type = {PTXGEN_GGUF_Q4_K, PTXGEN_GGUF_Q5_K},
                                              .x_type = PTXGEN_F16,
                                              .y_type = PTXGEN_F16};
        run_spec("cpu:sm_90", &gguf_linear_harness, &spec, 1);
    }
}

/* The token's h by each CTA, or by a kernel of its own where a warp would have many units. */
static void one_token_is_one_launch_where_k_is_small(void **state)
{
    const ptxgen_target target = target_of("sm_90a");
    (void)state;
    const struct {
        uint32_t k, n, norm, residual, makes_h;
    } cases[] = {{4096, 64, PTXGEN_GGUF_LINEAR_RMSNORM, PTXGEN_GGUF_LINEAR_AFTER, 1},
                 {14336, 64, PTXGEN_GGUF_LINEAR_RMSNORM, PTXGEN_GGUF_LINEAR_AFTER, 0},
                 {14336, 2112, PTXGEN_GGUF_LINEAR_NO_NORM, PTXGEN_GGUF_LINEAR_BEFORE, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const ptxgen_gguf_linear_spec spec = {.k = cases[i].k,
                                              .n = {cases[i].n},
                                              .epsilon = 1e-6f,
                                              .max_m = 1,
                                              .w_type = {PTXGEN_GGUF_Q6_K},
                                              .x_type = PTXGEN_BF16,
                                              .y_type = PTXGEN_BF16,
                                              .norm = (uint8_t)cases[i].norm,
                                              .residual = (uint8_t)cases[i].residual,
                                              .residual_out = 1};
        ptxgen_gguf_linear_plan plan;
        assert_int_equal(ptxgen_gguf_linear_make_plan(&spec, &target, &plan, NULL), PTXGEN_OK);
        assert_int_equal(plan.variants[0].makes_h, cases[i].makes_h);
        run_spec("cpu:sm_90", &gguf_linear_harness, &spec, 1);
    }
}

/* Parts of K: records of eight tokens that one CTA cannot hold. */
static void parts_of_k_are_added_up(void **state)
{
    const ptxgen_gguf_linear_spec spec = {.k = 14336,
                                          .n = {40},
                                          .w_type = {PTXGEN_GGUF_Q4_K},
                                          .x_type = PTXGEN_F32,
                                          .y_type = PTXGEN_F32,
                                          .norm = PTXGEN_GGUF_LINEAR_RMSNORM};
    const ptxgen_target target = target_of("sm_90a");
    ptxgen_gguf_linear_plan plan;
    (void)state;
    assert_int_equal(ptxgen_gguf_linear_make_plan(&spec, &target, &plan, NULL), PTXGEN_OK);
    assert_true(ptxgen_gguf_linear_choose(&plan, 8)->parts > 1);
    run_spec("cpu:sm_90", &gguf_linear_harness, &spec, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_is_right_at_every_size),
        cmocka_unit_test(weights_may_start_at_their_own_alignment),
        cmocka_unit_test(matrices_have_types_of_their_own),
        cmocka_unit_test(tensor_copies_bring_every_type),
        cmocka_unit_test(rings_turn_over),
        cmocka_unit_test(warps_share_slots),
        cmocka_unit_test(tiles_are_dealt_out),
        cmocka_unit_test(one_token_is_one_launch_where_k_is_small),
        cmocka_unit_test(parts_of_k_are_added_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
