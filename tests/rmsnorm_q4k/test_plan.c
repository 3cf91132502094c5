/* SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"

#include <math.h>
#include <stdio.h>

static void refused_with(ptxgen_status status, const ptxgen_rmsnorm_q4k_spec *spec,
                         const char *word)
{
    ptxgen_target target = target_of("sm_90");
    ptxgen_rmsnorm_q4k_plan plan;
    ptxgen_error err;
    assert_int_equal(ptxgen_rmsnorm_q4k_make_plan(spec, &target, &plan, &err), status);
    assert_says(&err, word);
}

static void refused(const ptxgen_rmsnorm_q4k_spec *spec, const char *word)
{
    refused_with(PTXGEN_ERROR_UNSUPPORTED, spec, word);
}

static void k_must_be_a_multiple_of_256(void **state)
{
    (void)state;
    static const uint32_t wrong[] = {0, 1, 128, 255, 257, 4000, 4544};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ptxgen_rmsnorm_q4k_spec spec = plain_spec(wrong[i], 64);
        refused(&spec, "multiple of 256");
    }
}

static void epsilon_must_be_finite_and_at_least_0(void **state)
{
    (void)state;
    const float wrong[] = {-1e-45f, -1e-6f, INFINITY, NAN};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ptxgen_rmsnorm_q4k_spec spec = plain_spec(256, 64);
        spec.epsilon = wrong[i];
        refused(&spec, "epsilon");
    }
    ptxgen_rmsnorm_q4k_spec spec = plain_spec(256, 64);
    ptxgen_target target = target_of("sm_80");
    ptxgen_rmsnorm_q4k_plan plan;
    spec.epsilon = 0;
    assert_int_equal(ptxgen_rmsnorm_q4k_make_plan(&spec, &target, &plan, NULL), PTXGEN_OK);
}

static void matrices_must_come_in_order_and_swiglu_in_equal_pairs(void **state)
{
    (void)state;
    ptxgen_rmsnorm_q4k_spec spec = plain_spec(256, 16);
    spec.n[2] = 16;
    refused(&spec, "in order");
    spec = plain_spec(256, 16);
    spec.epilogue = PTXGEN_EPILOGUE_SWIGLU;
    refused(&spec, "equal N");
}

static void flags_types_and_token_counts_are_checked(void **state)
{
    (void)state;
    ptxgen_rmsnorm_q4k_spec spec = plain_spec(256, 16);
    spec.max_m = 9;
    refused(&spec, "above 8");
    spec = plain_spec(256, 16);
    spec.x_type = 3;
    refused(&spec, "x_type");
    spec = plain_spec(256, 16);
    spec.residual_out = 1;
    refused(&spec, "without residual");
    spec = plain_spec(256, 16);
    spec.reserved[1] = 1;
    refused_with(PTXGEN_ERROR_INVALID_ARGUMENT, &spec, "reserved");
}

static void x_that_does_not_fit_into_shared_memory_is_refused(void **state)
{
    (void)state;
    ptxgen_rmsnorm_q4k_spec spec = plain_spec(1 << 24, 16);
    refused(&spec, "shared memory");
}

static void every_token_count_up_to_the_largest_has_a_variant(void **state)
{
    (void)state;
    ptxgen_target target = target_of("sm_90");
    for (uint32_t most = 0; most <= 8; most++) {
        ptxgen_rmsnorm_q4k_spec spec = plain_spec(4096, 4096);
        spec.max_m = most;
        ptxgen_rmsnorm_q4k_plan plan;
        assert_int_equal(ptxgen_rmsnorm_q4k_make_plan(&spec, &target, &plan, NULL), PTXGEN_OK);
        uint32_t largest = most ? most : 8;
        for (uint32_t m = 1; m <= largest; m++) {
            const ptxgen_rmsnorm_q4k_variant *v = ptxgen_rmsnorm_q4k_choose(&plan, m);
            assert_non_null(v);
            assert_true(v->tile_m >= m);
        }
        assert_null(ptxgen_rmsnorm_q4k_choose(&plan, 0));
        assert_null(ptxgen_rmsnorm_q4k_choose(&plan, largest + 1));
    }
}

static void specs_of_one_or_two_tokens_hold_no_entry_for_more(void **state)
{
    (void)state;
    static const uint32_t tokens[][2] = {{1, 0}, {1, 2}, {1, 4}}; /* of the entries, by max_m */
    ptxgen_target target = target_of("sm_90");
    for (uint32_t most = 1; most <= 3; most++) {
        ptxgen_rmsnorm_q4k_spec spec = plain_spec(512, 64);
        spec.max_m = most;
        ptxgen_rmsnorm_q4k_plan plan;
        assert_int_equal(ptxgen_rmsnorm_q4k_make_plan(&spec, &target, &plan, NULL), PTXGEN_OK);
        assert_int_equal(plan.variant_count, most > 1 ? 2 : 1);
        for (uint32_t i = 0; i < plan.variant_count; i++)
            assert_int_equal(plan.variants[i].tile_m, tokens[most - 1][i]);
    }
}

static void plans_stay_within_the_targets_limits(void **state)
{
    (void)state;
    uint64_t seed = 12345;
    for (int i = 0; i < 2000; i++) {
        ptxgen_rmsnorm_q4k_spec spec = random_spec(&seed);
        ptxgen_target target = target_of(target_names[draw(&seed) % TARGETS]);
        ptxgen_rmsnorm_q4k_plan plan;
        if (ptxgen_rmsnorm_q4k_make_plan(&spec, &target, &plan, NULL) != PTXGEN_OK)
            continue;
        for (uint32_t j = 0; j < plan.variant_count; j++) {
            const ptxgen_rmsnorm_q4k_variant *v = &plan.variants[j];
            assert_true(v->shared_bytes <= target.shared_per_cta);
            assert_true(v->wk * v->wn <= 16 && v->wk >= 1 && v->wn >= 1);
            assert_true(v->grid >= 1 && v->grid <= target.multiprocessors);
            assert_true(v->chunks == 1 || v->chunk % (2 * v->wk) == 0);
            assert_true((uint64_t)v->chunk * v->chunks >= spec.k / 256);
            uint64_t rows = (uint64_t)v->grid * v->wn * v->rounds * (spec.epilogue ? 8 : 16);
            assert_true(rows >= (uint64_t)spec.n[0] + (spec.epilogue ? 0 : spec.n[1] + spec.n[2]));
        }
    }
}

static void ctas_and_sentence_are_those_of_the_variant(void **state)
{
    (void)state;
    ptxgen_rmsnorm_q4k_spec spec = plain_spec(4096, 14336);
    ptxgen_target target = target_of("sm_90");
    ptxgen_rmsnorm_q4k_plan plan;
    ptxgen_error err = {0};
    spec.max_m = 5;
    assert_ok(ptxgen_rmsnorm_q4k_make_plan(&spec, &target, &plan, &err), &err);
    for (uint64_t m = 1; m <= 5; m++) {
        const ptxgen_rmsnorm_q4k_variant *v = ptxgen_rmsnorm_q4k_choose(&plan, m);
        char text[200], words[40];
        uint32_t ctas = 0;
        assert_ok(ptxgen_rmsnorm_q4k_ctas(&plan, m, &ctas, &err), &err);
        assert_int_equal(ctas, v->grid);
        ptxgen_rmsnorm_q4k_explain(&plan, m, text, sizeof text);
        snprintf(words, sizeof words, "one launch: %u CTAs of %u x %u", v->grid, v->wn, v->wk);
        assert_non_null(strstr(text, words));
        snprintf(words, sizeof words, "the %u tokens (at most %u)", (unsigned)m, v->tile_m);
        assert_non_null(strstr(text, words));
    }
    const uint64_t beyond[] = {6, ((uint64_t)1 << 32) + 1};
    for (size_t i = 0; i < sizeof beyond / sizeof *beyond; i++) {
        char text[200];
        uint32_t ctas = 0;
        assert_null(ptxgen_rmsnorm_q4k_choose(&plan, beyond[i]));
        assert_int_equal(ptxgen_rmsnorm_q4k_ctas(&plan, beyond[i], &ctas, &err),
                         PTXGEN_ERROR_INVALID_ARGUMENT);
        assert_says(&err, "is above the 5 tokens that the plan serves");
        ptxgen_rmsnorm_q4k_explain(&plan, beyond[i], text, sizeof text);
        assert_non_null(strstr(text, "tokens are above the plan's 5"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ctas_and_sentence_are_those_of_the_variant),
        cmocka_unit_test(k_must_be_a_multiple_of_256),
        cmocka_unit_test(epsilon_must_be_finite_and_at_least_0),
        cmocka_unit_test(matrices_must_come_in_order_and_swiglu_in_equal_pairs),
        cmocka_unit_test(flags_types_and_token_counts_are_checked),
        cmocka_unit_test(x_that_does_not_fit_into_shared_memory_is_refused),
        cmocka_unit_test(every_token_count_up_to_the_largest_has_a_variant),
        cmocka_unit_test(specs_of_one_or_two_tokens_hold_no_entry_for_more),
        cmocka_unit_test(plans_stay_within_the_targets_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
