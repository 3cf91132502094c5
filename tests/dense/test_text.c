/* SPDX-License-Identifier: Apache-2.0 */
/* The emitted text: what it declares, that it is the same each time, that ptxas takes it. */
#include "tests/emitted.h"
#include "tests/share.h"
#include "tests/status.h"

#include <ptxgen/dense.h>

#include <stdlib.h>

static const char *const target_names[] = {"sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_120"};
enum { TARGETS = sizeof target_names / sizeof *target_names };

/* Whole blocks, and tails of everything with all of the epilogue. */
static const ptxgen_dense_spec specs[] = {
    {.n = 4096, .k = 4096, .type = PTXGEN_F16},
    {.n = 333, .k = 1401, .type = PTXGEN_BF16, .bias = 1, .residual = 1,
     .activation = PTXGEN_ACTIVATION_GELU},
    {.n = 4096, .k = 4096, .type = PTXGEN_F32},
    {.n = 333, .k = 1401, .type = PTXGEN_F32, .bias = 1, .residual = 1,
     .activation = PTXGEN_ACTIVATION_SILU},
};
enum { SPECS = sizeof specs / sizeof *specs };

static ptxgen_dense_plan plan_of(const ptxgen_dense_spec *spec, const char *target_name)
{
    ptxgen_target target = target_of(target_name);
    ptxgen_dense_plan plan;
    ptxgen_error err = {0};
    assert_ok(ptxgen_dense_make_plan(spec, &target, &plan, &err), &err);
    return plan;
}

static char *text_of(const ptxgen_dense_plan *plan, uint32_t variants)
{
    ptxgen_error err = {0};
    ptx_module *module = ptx_module_create(&plan->target.ptx, NULL);
    return text_of_module(module, ptxgen_dense_emit(plan, variants, module, &err), &err);
}

static void kernels_have_the_threads_and_shared_memory_of_their_plan(void **state)
{
    (void)state;
    for (int t = 0; t < TARGETS; t++)
        for (int s = 0; s < SPECS; s++) {
            ptxgen_dense_plan plan = plan_of(&specs[s], target_names[t]);
            ptx_module *module = ptx_module_create(&plan.target.ptx, NULL);
            ptx_kernel_info info;
            assert_int_equal(ptxgen_dense_emit(&plan, ~0u, module, NULL), PTXGEN_OK);
            assert_int_equal(ptx_module_kernels(module), plan.variant_count + 1);
            for (uint32_t i = 0; i < plan.variant_count; i++) {
                const ptxgen_tile *v = &plan.variants[i];
                uint32_t senders = v->kind == PTXGEN_WGMMA ? 4 : 0;
                assert_declares(
                    module, i,
                    (struct declared){.name = ptxgen_dense_entry(v),
                                      .threads = 32 * (v->wn * v->wm * v->wk + senders),
                                      .shared_bytes = v->shared_bytes,
                                      .dynamic_shared_bytes = v->dynamic_shared_bytes});
                assert_true(v->shared_bytes <= plan.target.shared_per_cta);
            }
            assert_int_equal(ptx_module_kernel_info(module, plan.variant_count, &info), PTXGEN_OK);
            assert_string_equal(info.name, "dense_align");
            ptx_module_destroy(module);
        }
}

static void equal_plans_give_equal_text_below_130_kb_a_tile(void **state)
{
    (void)state;
    for (int s = 0; s < SPECS; s++) {
        ptxgen_dense_plan plan = plan_of(&specs[s], "sm_90");
        for (uint32_t i = 0; i < plan.variant_count; i++) {
            char *first = text_of(&plan, 1u << i), *again = text_of(&plan, 1u << i);
            assert_string_equal(first, again);
            assert_true(strlen(first) < 130 * 1000);
            free(first);
            free(again);
        }
    }
}

static void assemble(const ptxgen_dense_plan *plan, const char *target_name)
{
    char *text = text_of(plan, ~0u);
    struct assembled a = assert_assembles_without_spills(text, target_name);
    assert_int_equal(a.count, plan->variant_count + 1);
    free(text);
}

static void text_assembles_without_spills_for_every_target(void **state)
{
    (void)state;
    skip_without_ptxas();
    for (int i = 0; i < TARGETS + SPECS - 1; i++) { /* one spec for all targets, the rest for one */
        const char *name = i < TARGETS ? target_names[i] : "sm_90";
        ptxgen_dense_plan plan = plan_of(&specs[i < TARGETS ? 0 : i - TARGETS + 1], name);
        if (test_in_share(i))
            assemble(&plan, name);
    }
}

/* ---- what is refused ---- */

static void specs_that_cannot_be_done_are_refused_by_name(void **state)
{
    (void)state;
    const struct {
        ptxgen_dense_spec spec;
        const char *words;
    } cases[] = {
        {{.n = 0, .k = 8, .type = 1}, "N = 0"},
        {{.n = 8, .k = 0, .type = 1}, "K = 0"},
        {{.n = 8, .k = 1u << 30, .type = 1}, "K = 1073741824"},
        {{.n = 8, .k = 8, .type = 3}, "the type 3"},
        {{.n = 8, .k = 8, .type = 1, .activation = 5}, "5 is not an activation"},
        {{.n = 8, .k = 8, .type = 1, .bias = 2}, "bias is 2"},
        {{.n = 8, .k = 8, .type = 1, .residual = 3}, "residual is 3"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ptxgen_target target = target_of("sm_90");
        ptxgen_dense_plan plan;
        ptxgen_error err = {0};
        assert_int_not_equal(ptxgen_dense_make_plan(&cases[i].spec, &target, &plan, &err),
                             PTXGEN_OK);
        assert_says(&err, cases[i].words);
    }
}

/* One warp a scheduler at least, whatever tiles divide evenly among the multiprocessors. */
static void no_plan_leaves_a_scheduler_without_a_warp(void **state)
{
    (void)state;
    static const uint32_t shapes[][2] = {{8192, 8192}, {4096, 4096}, {14336, 4096}, {4096, 14336}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int t = 0; t < TARGETS; t++) {
            ptxgen_dense_spec s = {.n = shapes[i][0], .k = shapes[i][1], .type = PTXGEN_F16};
            ptxgen_dense_plan plan = plan_of(&s, target_names[t]);
            for (uint32_t m = 1; m <= 64; m++) {
                const ptxgen_tile *v = ptxgen_dense_choose(&plan, m);
                assert_true(v->wn * v->wm * v->wk * v->ctas >= 4);
            }
        }
}

static void tiles_that_no_cta_holds_are_refused(void **state)
{
    (void)state;
    const struct {
        ptxgen_tile tile;
        const char *words;
    } cases[] = {
        {{.warp_m = 16, .warp_n = 24, .wm = 1, .wn = 1, .wk = 1, .pass_m = 8}, "warp_n is 24"},
        {{.warp_m = 16, .warp_n = 64, .wm = 1, .wn = 8, .wk = 8, .pass_m = 8}, "the 16 of a CTA"},
        {{.warp_m = 64, .warp_n = 64, .wm = 4, .wn = 4, .wk = 1, .pass_m = 8}, "tile_m is 256"},
        {{.warp_m = 16, .warp_n = 64, .wm = 1, .wn = 1, .wk = 1, .stages = 2, .pass_m = 8},
         "stages is 2"},
        {{.warp_m = 64, .warp_n = 64, .wm = 2, .wn = 4, .wk = 1, .stages = 4, .pass_m = 32},
         "shared memory"},
        {{.warp_m = 16, .warp_n = 64, .wm = 1, .wn = 1, .wk = 1, .pass_m = 32}, "pass_m is 32"},
        {{.kind = 1, .warp_m = 64, .warp_n = 16, .wm = 1, .wn = 8, .wk = 1, .pass_m = 16},
         "wgmma needs sm_90a"},
        {{.kind = 1, .warp_m = 64, .warp_n = 16, .wm = 1, .wn = 2, .wk = 1, .pass_m = 16},
         "wn is 2"},
        {{.kind = 2, .warp_m = 64, .warp_n = 64, .wm = 4, .wn = 2, .wk = 1, .pass_m = 16},
         "copies in bulk need sm_90"},
        {{.kind = 2, .warp_m = 64, .warp_n = 64, .wm = 2, .wn = 2, .wk = 2, .pass_m = 16},
         "wk is 2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ptxgen_dense_plan plan = plan_of(&specs[0], "sm_86");
        ptxgen_error err = {0};
        assert_int_not_equal(ptxgen_dense_use_tile(&plan, &cases[i].tile, &err), PTXGEN_OK);
        assert_says(&err, cases[i].words);
    }
}

/* CTAs that divide K have one tile: of a second one they would wait for their sender. */
static void ctas_that_divide_k_get_no_second_tile(void **state)
{
    (void)state;
    const ptxgen_tile tile = {.kind = PTXGEN_WGMMA, .warp_n = 16, .warp_m = 64,
                                       .wn = 4, .wm = 1, .wk = 1, .split = 2, .pass_m = 16};
    const ptxgen_dense_spec spec = {.n = 4096, .k = 4096, .type = PTXGEN_F16};
    ptxgen_dense_plan plan = plan_of(&spec, "sm_90a");
    ptxgen_error err = {0};
    uint32_t ctas;
    assert_ok(ptxgen_dense_use_tile(&plan, &tile, &err), &err);
    assert_ok(ptxgen_dense_ctas(&plan, 64, &ctas, &err), &err);
    assert_int_equal(ctas, 128);
    assert_int_equal(ptxgen_dense_ctas(&plan, 65, &ctas, &err), PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_says(&err, "dense: no variant serves m = 65");
}

/* 16 pairs for 66 clusters: of 256 tokens each has one of its own, of 128 all have a share. */
static void tiles_of_most_sums_are_never_divided(void **state)
{
    (void)state;
    const ptxgen_dense_spec spec = {.n = 4096, .k = 4096, .type = PTXGEN_F16};
    for (uint32_t rows = 128; rows <= 256; rows *= 2) {
        const ptxgen_tile tile = {.kind = PTXGEN_WGMMA, .warp_n = 16, .warp_m = rows,
                                           .wn = 8, .wm = 1, .wk = 1, .cluster = 2, .pass_m = 32};
        ptxgen_dense_plan plan = plan_of(&spec, "sm_90a");
        ptxgen_error err = {0};
        uint32_t ctas;
        assert_ok(ptxgen_dense_use_tile(&plan, &tile, &err), &err);
        assert_ok(ptxgen_dense_ctas(&plan, rows, &ctas, &err), &err);
        assert_int_equal(ctas, rows == 256 ? 32 : 132);
    }
}

/* The sentence of a plan with that tile, of up to 128 tokens. */
static void explains(const ptxgen_tile *tile, uint64_t m, const char *sentence)
{
    const ptxgen_dense_spec spec = {.n = 4096, .k = 4096, .max_m = 128, .type = PTXGEN_F16};
    ptxgen_dense_plan plan = plan_of(&spec, "sm_90a");
    ptxgen_error err = {0};
    char text[256];
    assert_ok(ptxgen_dense_use_tile(&plan, tile, &err), &err);
    ptxgen_dense_explain(&plan, m, text, sizeof text);
    assert_string_equal(text, sentence);
}

static void a_plan_explains_the_tiles_of_a_launch(void **state)
{
    (void)state;
    const ptxgen_tile mma = {
        .warp_m = 16, .warp_n = 32, .wm = 1, .wn = 2, .wk = 4, .stages = 3, .pass_m = 16};
    const ptxgen_tile split = {.kind = PTXGEN_WGMMA, .warp_m = 64, .warp_n = 16,
                                        .wm = 1, .wn = 4, .wk = 1, .stages = 4, .split = 2,
                                        .pass_m = 16};
    const ptxgen_tile pair = {.kind = PTXGEN_BULK, .warp_m = 64, .warp_n = 64,
                                       .wm = 2, .wn = 2, .wk = 1, .stages = 3, .cluster = 2,
                                       .pass_m = 16};
    explains(&mma, 7,
             "tiles of 16 tokens by 64 features, 1 x 2 x 4 warps along M, N and K, 3 stages, "
             "mma.sync");
    explains(&split, 64,
             "tiles of 64 tokens by 64 features, 1 x 4 x 1 warps along M, N and K, 4 stages, "
             "wgmma; two CTAs divide K");
    explains(&pair, 128,
             "tiles of 128 tokens by 128 features, 2 x 2 x 1 warps along M, N and K, 3 stages, "
             "mma.sync with copies in bulk; two CTAs share their tokens");
    explains(&mma, 129, "no launch: 129 tokens are above the plan's 128");
    explains(&mma, 0, "no launch: there are no tokens");
    char text[64];
    ptxgen_dense_explain(NULL, 1, text, sizeof text);
    assert_string_equal(text, "no launch: there is no plan");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_have_the_threads_and_shared_memory_of_their_plan),
        cmocka_unit_test(equal_plans_give_equal_text_below_130_kb_a_tile),
        cmocka_unit_test(text_assembles_without_spills_for_every_target),
        cmocka_unit_test(specs_that_cannot_be_done_are_refused_by_name),
        cmocka_unit_test(no_plan_leaves_a_scheduler_without_a_warp),
        cmocka_unit_test(tiles_that_no_cta_holds_are_refused),
        cmocka_unit_test(ctas_that_divide_k_get_no_second_tile),
        cmocka_unit_test(tiles_of_most_sums_are_never_divided),
        cmocka_unit_test(a_plan_explains_the_tiles_of_a_launch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
