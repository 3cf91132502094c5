/* SPDX-License-Identifier: Apache-2.0 */
/* The emitted text: what it declares, that it is the same each time, that ptxas takes it. */
#include "specs.h"
#include "tests/emitted.h"
#include "tests/share.h"

#include <stdlib.h>

static char *text_of(const ptxgen_marlin_plan *plan, uint32_t variants)
{
    ptxgen_error err = {0};
    ptx_module *module = ptx_module_create(&plan->target.ptx, NULL);
    return text_of_module(module, ptxgen_marlin_emit(plan, variants, module, &err), &err);
}

/* Every way of scaling, zero points, both ends of an epilogue; and wgmma's widest tile of 64 rows. */
static const ptxgen_marlin_spec specs[] = {
    {.k = 4096, .n = 4096, .group_size = 128, .type = PTXGEN_F16},
    {.k = 8192, .n = 28672, .group_size = 128, .type = PTXGEN_F16},
    {.k = 4096, .n = 4096, .group_size = 32, .type = PTXGEN_BF16, .zeros = 1},
    {.k = 1040,
     .n = 1032,
     .group_size = -1,
     .type = PTXGEN_F16,
     .bias = 1,
     .residual = 1,
     .act_order = 1,
     .epilogue = PTXGEN_EPILOGUE_SWIGLU},
    {.k = 1072,
     .n = 72,
     .group_size = 16,
     .type = PTXGEN_BF16,
     .zeros = 1,
     .bias = 1,
     .residual = 1,
     .activation = PTXGEN_ACTIVATION_GELU},
};
enum { SPECS = sizeof specs / sizeof *specs };

static void kernels_have_the_threads_and_shared_memory_of_their_plan(void **state)
{
    (void)state;
    for (int t = 0; t < TARGETS; t++)
        for (int s = 0; s < SPECS; s++) {
            ptxgen_marlin_plan plan = plan_of(&specs[s], target_names[t]);
            ptx_module *module = ptx_module_create(&plan.target.ptx, NULL);
            ptx_kernel_info info;
            assert_int_equal(ptxgen_marlin_emit(&plan, ~0u, module, NULL), PTXGEN_OK);
            assert_int_equal(ptx_module_kernels(module), plan.variant_count + 1);
            for (uint32_t i = 0; i < plan.variant_count; i++) {
                const ptxgen_tile *v = &plan.variants[i];
                uint32_t senders = v->kind == PTXGEN_WGMMA  ? 128
                                   : v->kind != PTXGEN_BULK ? 0
                                   : v->wn >= 4                    ? 64
                                                                   : 32;
                assert_declares(module, i,
                                (struct declared){.name = ptxgen_marlin_entry(v),
                                                  .threads = 32 * v->wn * v->wk + senders,
                                                  .shared_bytes = v->shared_bytes,
                                                  .dynamic_shared_bytes = v->dynamic_shared_bytes});
                assert_true(v->shared_bytes <= plan.target.shared_per_cta);
            }
            assert_int_equal(ptx_module_kernel_info(module, plan.variant_count, &info), PTXGEN_OK);
            assert_string_equal(info.name, "marlin_gather");
            ptx_module_destroy(module);
        }
}

static void equal_plans_give_equal_text(void **state)
{
    (void)state;
    for (int s = 0; s < SPECS; s++) {
        ptxgen_marlin_plan plan = plan_of(&specs[s], "sm_90");
        char *first = text_of(&plan, ~0u);
        for (int i = 0; i < test_share(20); i++) {
            char *again = text_of(&plan, ~0u);
            assert_string_equal(first, again);
            free(again);
        }
        free(first);
    }
}

static void the_text_of_a_tile_is_below_150_kb(void **state)
{
    (void)state;
    for (int s = 0; s < SPECS; s++) {
        ptxgen_marlin_plan plan = plan_of(&specs[s], "sm_90");
        for (uint32_t i = 0; i < plan.variant_count; i++) {
            char *text = text_of(&plan, 1u << i);
            assert_true(strlen(text) < 150 * 1000);
            free(text);
        }
    }
}

/* Else a launch that overlaps would not wait for what it reads. */
static void entries_wait_for_the_kernel_ahead_from_sm_90_on(void **state)
{
    (void)state;
    for (int t = 0; t < TARGETS; t++) {
        ptxgen_marlin_plan plan = plan_of(&specs[0], target_names[t]);
        char *text = text_of(&plan, ~0u);
        uint32_t waits = 0;
        for (const char *at = text; (at = strstr(at, "griddepcontrol.wait")); at++)
            waits++;
        assert_int_equal(waits, plan.target.ptx.sm >= 90 ? plan.variant_count + 1 : 0);
        free(text);
    }
}

/*
 * ptxas needs no more than a CTA has, and no other shared memory than the plan says. How many of
 * the plan's variants have this entry.
 */
static uint32_t compare_report(const ptxgen_marlin_plan *plan, const struct assembled_entry *r)
{
    enum { REGISTERS = 65536, GRANULE = 8 };
    uint32_t found = 0;
    for (uint32_t i = 0; i < plan->variant_count; i++) {
        const ptxgen_tile *v = &plan->variants[i];
        if (strcmp(r->name, ptxgen_marlin_entry(v)) != 0)
            continue;
        unsigned each = (r->registers + GRANULE - 1) / GRANULE * GRANULE;
        assert_in_range(each, 16, 255 + 1);
        if (each * 32 * v->wn * v->wk * v->ctas > REGISTERS)
            fail_msg("%s: %u registers of %u threads", r->name, r->registers, 32 * v->wn * v->wk);
        assert_int_equal(r->static_shared_bytes + v->dynamic_shared_bytes, v->shared_bytes);
        found++;
    }
    assert_int_equal(r->stack_bytes, 0);
    return found;
}

/* The registers of two slices take turns: those of the slice before the last are written anew. */
static void one_group_of_wgmma_at_most_is_under_way_after_a_wait(void **state)
{
    (void)state;
    static const char wait[] = "wgmma.wait_group.sync.aligned ";
    for (int s = 0; s < SPECS; s++) {
        ptxgen_marlin_plan plan = plan_of(&specs[s], "sm_90a");
        char *text = text_of(&plan, ~0u);
        unsigned waits = 0;
        for (const char *at = text; (at = strstr(at, wait)); waits++) {
            at += strlen(wait);
            assert_in_range(strtoul(at, NULL, 10), 0, 1);
        }
        assert_true(waits > 0);
        free(text);
    }
}

static void assemble(const ptxgen_marlin_plan *plan, const char *target_name)
{
    char *text = text_of(plan, ~0u);
    struct assembled a = assert_assembles_without_spills(text, target_name);
    free(text);
    assert_int_equal(a.count, plan->variant_count + 1);
    uint32_t found = 0;
    for (size_t i = 0; i < a.count; i++)
        found += compare_report(plan, &a.entries[i]);
    assert_int_equal(found, plan->variant_count);
}

static void text_assembles_without_spills_for_every_target(void **state)
{
    (void)state;
    skip_without_ptxas();
    for (int t = 0; t < TARGETS; t++)
        for (int s = 0; s < SPECS; s++) {
            ptxgen_marlin_plan plan = plan_of(&specs[s], target_names[t]);
            if (test_in_share(t * SPECS + s))
                assemble(&plan, target_names[t]);
        }
}

static void wide_matrices_with_up_to_192_rows_have_less_than_32_computed_for_nothing(void **state)
{
    (void)state;
    ptxgen_marlin_plan plan = plan_of(&specs[1], "sm_90a");
    for (uint32_t m = 1; m <= 192; m++) {
        uint32_t tile_m = ptxgen_marlin_choose(&plan, m)->tile_m;
        uint32_t rows = (m + tile_m - 1) / tile_m * tile_m;
        if (rows >= m + 32)
            fail_msg("%u rows are computed as %u, in tiles of %u", m, rows, tile_m);
    }
}

/* ---- tiles of the caller's choice ---- */

static void groups_of_32_have_tiles_of_their_own_for_few_rows(void **state)
{
    (void)state;
    for (int small = 0; small < 2; small++) {
        const ptxgen_marlin_spec spec = {
            .k = 8192, .n = 8192, .group_size = small ? 32 : 128, .type = PTXGEN_F16};
        ptxgen_marlin_plan plan = plan_of(&spec, "sm_90a");
        assert_int_equal(ptxgen_marlin_choose(&plan, 16)->warp_n, small ? 32 : 64);
        assert_int_equal(ptxgen_marlin_choose(&plan, 32)->steps, small ? 4 : 2);
    }
}

static void a_tile_of_the_callers_choice_is_the_only_one(void **state)
{
    (void)state;
    ptxgen_marlin_plan plan = plan_of(&specs[0], "sm_90");
    ptxgen_tile tile = {
        .tile_m = 16, .warp_n = 64, .wn = 2, .wk = 2, .stages = 3, .steps = 1,
        .ctas = 1, .pass_m = 16};
    ptxgen_error err = {0};
    assert_int_equal(ptxgen_marlin_use_tile(&plan, &tile, &err), PTXGEN_OK);
    assert_int_equal(plan.variant_count, 1);
    assert_int_equal(ptxgen_marlin_choose(&plan, 4096)->wn, 2);
    ptx_module *module = ptx_module_create(&plan.target.ptx, NULL);
    ptx_kernel_info info;
    assert_int_equal(ptxgen_marlin_emit(&plan, ~0u, module, &err), PTXGEN_OK);
    assert_int_equal(ptx_module_kernel_info(module, 0, &info), PTXGEN_OK);
    assert_int_equal(info.static_shared_bytes + info.dynamic_shared_bytes,
                     plan.variants[0].shared_bytes);
    ptx_module_destroy(module);
}

static void tiles_that_no_cta_holds_are_refused(void **state)
{
    (void)state;
    const struct {
        ptxgen_tile tile;
        const char *words;
    } cases[] = {
        {{.tile_m = 24, .warp_n = 64, .wn = 1, .wk = 1, .stages = 3, .steps = 1, .ctas = 1, .pass_m = 8}, "tile_m is 24"},
        {{.tile_m = 8, .warp_n = 16, .wn = 1, .wk = 1, .stages = 3, .steps = 1, .ctas = 1, .pass_m = 8}, "warp_n is 16"},
        {{.tile_m = 8, .warp_n = 64, .wn = 8, .wk = 8, .stages = 3, .steps = 1, .ctas = 1, .pass_m = 8}, "1024 threads"},
        {{.tile_m = 8, .warp_n = 64, .wn = 1, .wk = 1, .stages = 2, .steps = 1, .ctas = 1, .pass_m = 8}, "stages is 2"},
        {{.tile_m = 8, .warp_n = 64, .wn = 4, .wk = 4, .stages = 16, .steps = 4, .ctas = 1, .pass_m = 8}, "shared memory"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ptxgen_marlin_plan plan = plan_of(&specs[0], "sm_86");
        ptxgen_error err = {0};
        assert_int_not_equal(ptxgen_marlin_use_tile(&plan, &cases[i].tile, &err), PTXGEN_OK);
        assert_says(&err, cases[i].words);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_have_the_threads_and_shared_memory_of_their_plan),
        cmocka_unit_test(equal_plans_give_equal_text),
        cmocka_unit_test(the_text_of_a_tile_is_below_150_kb),
        cmocka_unit_test(entries_wait_for_the_kernel_ahead_from_sm_90_on),
        cmocka_unit_test(one_group_of_wgmma_at_most_is_under_way_after_a_wait),
        cmocka_unit_test(wide_matrices_with_up_to_192_rows_have_less_than_32_computed_for_nothing),
        cmocka_unit_test(text_assembles_without_spills_for_every_target),
        cmocka_unit_test(groups_of_32_have_tiles_of_their_own_for_few_rows),
        cmocka_unit_test(a_tile_of_the_callers_choice_is_the_only_one),
        cmocka_unit_test(tiles_that_no_cta_holds_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
