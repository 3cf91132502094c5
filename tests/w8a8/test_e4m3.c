/* SPDX-License-Identifier: Apache-2.0 */
/* e4m3 codes on the host: rounding, scales, refusals, and what the bound and the spread see. */
#include "support.h"
#include "tests/random.h"

/* The value of a code by the definition of the format, which has no infinities. */
static double value_of(uint8_t code)
{
    int exponent = code >> 3 & 15;
    double mantissa = (code & 7) / 8.0;
    double size = exponent ? (1 + mantissa) * exp2(exponent - 7) : mantissa * exp2(-6);
    return code & 0x80 ? -size : size;
}

/* The nearest number by search; of two that are as near, the one with an even code. */
static uint8_t nearest(double x)
{
    uint8_t best = 0;
    for (uint8_t code = 0; code < 0x7F; code++) {
        double error = fabs(fabs(x) - value_of(code)), least = fabs(fabs(x) - value_of(best));
        if (error < least || (error == least && code % 2 == 0))
            best = code;
    }
    return signbit(x) ? best | 0x80 : best;
}

static uint8_t code_of(float x)
{
    const float row[2] = {x, 448}; /* the scale is 1 */
    const ptxgen_w8a8_weights weights = {
        .n = 1, .k = 2, .type = PTXGEN_F32, .w = row, .codes = PTXGEN_W8A8_E4M3};
    int8_t codes[2];
    float scale;
    ptxgen_error err;
    assert_ok(ptxgen_w8a8_quantise(&weights, 2, codes, PTXGEN_F32, &scale, &err), &err);
    assert_true(scale == 1 && (uint8_t)codes[1] == 0x7E);
    return (uint8_t)codes[0];
}

static void every_number_is_its_own_code_and_ties_go_to_the_even_one(void **state)
{
    (void)state;
    for (uint8_t code = 0; code < 0x7E; code++)
        for (int sign = -1; sign <= 1; sign += 2) {
            double here = sign * value_of(code), next = sign * value_of(code + 1);
            float tie = (float)((here + next) / 2);
            uint8_t bit = sign < 0 ? 0x80 : 0;
            assert_int_equal(code_of((float)here * 1.0f), code | bit);
            assert_int_equal(code_of(tie), (code + code % 2) | bit);
            assert_int_equal(code_of(nextafterf(tie, sign * INFINITY)), (code + 1) | bit);
            assert_int_equal(code_of(nextafterf(tie, 0)), code | bit);
        }
}

static void codes_are_the_nearest_numbers(void **state)
{
    (void)state;
    struct random r = {3};
    for (int i = 0; i < 20000; i++) {
        float x = (float)((random_uniform(&r) - 0.5) * 896 * exp2(-(double)(random_bits(&r) % 20)));
        assert_int_equal(code_of(x), nearest(x));
    }
}

static void assert_refused(ptxgen_status got, const ptxgen_error *err, ptxgen_status status,
                           const char *words)
{
    assert_int_equal(got, status);
    assert_non_null(strstr(err->message, words));
}

#define INVALID PTXGEN_ERROR_INVALID_ARGUMENT
#define UNSUPPORTED PTXGEN_ERROR_UNSUPPORTED

enum { K = 4096, N = 24, M = 16 };

static int8_t weights_of[N * K];
static float w_scale[N], x_of[M * K];

/* A plan whose kernel for 16 tokens is wgmma's, and operands of ordinary numbers. */
static ptxgen_w8a8_plan prepare(const char *target_name, ptxgen_w8a8_operands *o)
{
    struct random r = {8};
    for (int i = 0; i < N * K; i++) {
        weights_of[i] = (int8_t)random_bits(&r);
        if ((weights_of[i] & 0x7F) == 0x7F)
            weights_of[i] = 0x38;
    }
    for (int i = 0; i < N; i++)
        w_scale[i] = (float)(0.01 + 0.01 * random_uniform(&r));
    for (int i = 0; i < M * K; i++)
        x_of[i] = (float)random_normal(&r);
    *o = (ptxgen_w8a8_operands){.x = x_of, .w = weights_of, .w_scale = w_scale, .m = M};
    const ptxgen_w8a8_spec spec = {
        .k = K, .n = N, .x_type = PTXGEN_F32, .y_type = PTXGEN_F32, .codes = PTXGEN_W8A8_E4M3};
    ptxgen_target target = target_of(target_name);
    ptxgen_w8a8_plan plan;
    ptxgen_error err;
    assert_ok(ptxgen_w8a8_make_plan(&spec, &target, &plan, &err), &err);
    return plan;
}

/* Outputs of all tokens and features, of rows whose codes from `from` to `to` are 0. */
static void compute(const ptxgen_w8a8_plan *plan, const ptxgen_w8a8_operands *o, int from, int to,
                    double *y, double *bound, ptxgen_spread *spread)
{
    static int8_t codes[K];
    ptxgen_w8a8_token token;
    ptxgen_error err;
    for (uint64_t m = 0; m < M; m++) {
        assert_ok(ptxgen_w8a8_reference_codes(&plan->spec, o, m, codes, &token, &err), &err);
        memset(codes + from, 0, (size_t)(to - from));
        assert_ok(ptxgen_w8a8_reference_bound(plan, o, codes, &token, 0, N, y + m * N,
                                              bound + m * N, spread + m * N, &err),
                  &err);
    }
}

static double ratio_of(const double *output, const double *y, const double *bound,
                       const ptxgen_spread *spread)
{
    ptxgen_tally tally = {0};
    for (int i = 0; i < M * N; i++)
        ptxgen_tally_add(&tally, PTXGEN_F32, output[i], y[i], bound[i], &spread[i]);
    return ptxgen_tally_ratio(&tally);
}

/* 32 products of 4096 that are left out lie within the bound, and far outside of the spread. */
static void the_spread_sees_a_step_that_is_left_out(void **state)
{
    (void)state;
    static double y[M * N], bound[M * N], without[M * N], unused[M * N];
    static ptxgen_spread spread[M * N], not_used[M * N];
    const char *const targets[] = {"sm_89", "sm_90a", "sm_120"};
    for (int i = 0; i < 3; i++) {
        ptxgen_w8a8_operands o;
        const ptxgen_w8a8_plan plan = prepare(targets[i], &o);
        compute(&plan, &o, 0, 0, y, bound, spread);
        compute(&plan, &o, 1024, 1056, without, unused, not_used);
        assert_true(ratio_of(without, y, bound, spread) > 2);
    }
}

static void a_bound_is_stated_where_it_can_be(void **state)
{
    (void)state;
    ptxgen_w8a8_operands o;
    ptxgen_w8a8_plan plan = prepare("sm_90a", &o);
    int8_t codes[K];
    ptxgen_w8a8_token token;
    double y[2], bound[2];
    ptxgen_error err;
    assert_ok(ptxgen_w8a8_reference_codes(&plan.spec, &o, 0, codes, &token, &err), &err);
#define BOUND(plan, o, first, count)                                                               \
    ptxgen_w8a8_reference_bound(plan, o, codes, &token, first, count, y, bound, NULL, &err)
    weights_of[K + 5] = 0x7F;
    assert_ok(BOUND(&plan, &o, 0, 2), &err);
    assert_true(isfinite(y[0]) && bound[0] > 0 && isnan(y[1]));
    token.scale = 1e38; /* acc · sx leaves the range of f32 */
    assert_ok(BOUND(&plan, &o, 0, 1), &err);
    assert_true(isnan(bound[0]));
    token.scale = NAN; /* of a token with a NaN */
    assert_ok(BOUND(&plan, &o, 0, 1), &err);
    assert_true(isnan(y[0]));
    assert_refused(BOUND(NULL, &o, 0, 1), &err, INVALID,
                   "w8a8: a plan that was made, codes, a token, y and bound must be given");
    assert_refused(BOUND(&plan, &o, N, 1), &err, INVALID, "w8a8: features 24 to 25 of N = 24");
    plan.spec.max_m = 5;
    assert_refused(BOUND(&plan, &o, 0, 1), &err, INVALID,
                   "w8a8: m = 16 is outside the 0 to 5 tokens");
    assert_refused(ptxgen_w8a8_reference(&plan.spec, &o, codes, &token, 0, 1, y, NULL, &err), &err,
                   UNSUPPORTED,
                   "w8a8: outputs of e4m3 codes, or of a function, are not exact; "
                   "ptxgen_w8a8_reference_bound says how far y may be off");
    const ptxgen_w8a8_spec spec = {.k = K, .n = N, .x_type = PTXGEN_F32, .y_type = PTXGEN_F32};
    const ptxgen_target target = target_of("sm_90a");
    assert_ok(ptxgen_w8a8_make_plan(&spec, &target, &plan, &err), &err);
    assert_refused(BOUND(&plan, &o, 0, 1), &err, UNSUPPORTED,
                   "w8a8: outputs of s8 codes have no bound; ptxgen_w8a8_reference computes their "
                   "bits");
#undef BOUND
}

/* A scale of w may be negative, and changes the sign of its feature's outputs alone. */
static void the_bound_of_a_negative_scale_is_that_of_its_magnitude(void **state)
{
    (void)state;
    static double y[M * N], bound[M * N], negative_y[M * N], negative_bound[M * N];
    static ptxgen_spread spread[M * N], negative_spread[M * N];
    ptxgen_w8a8_operands o;
    const ptxgen_w8a8_plan plan = prepare("sm_90a", &o);
    compute(&plan, &o, 0, 0, y, bound, spread);
    for (int i = 0; i < N; i++)
        w_scale[i] = -w_scale[i];
    compute(&plan, &o, 0, 0, negative_y, negative_bound, negative_spread);
    for (int i = 0; i < M * N; i++)
        assert_true(negative_y[i] == -y[i] && bound[i] > 0 && negative_bound[i] == bound[i]);
}

static void weights_of_unknown_codes_are_refused(void **state)
{
    (void)state;
    const float row[2] = {1, 2};
    ptxgen_w8a8_weights weights = {
        .n = 1, .k = 2, .type = PTXGEN_F32, .w = row, .codes = (ptxgen_w8a8_codes)3};
    int8_t codes[2];
    float scale;
    ptxgen_error err;
    assert_refused(ptxgen_w8a8_quantise(&weights, 2, codes, PTXGEN_F32, &scale, &err), &err,
                   INVALID, "w8a8: weights with codes = 3; s8, e4m3 and e5m2 are 0, 1 and 2");
}

static uint32_t widest(const char *target_name, uint8_t codes)
{
    const ptxgen_w8a8_spec spec = {
        .k = 4096, .n = 4096, .x_type = PTXGEN_F16, .y_type = PTXGEN_F16, .codes = codes};
    ptxgen_target target = target_of(target_name);
    ptxgen_w8a8_plan plan;
    ptxgen_error err;
    assert_ok(ptxgen_w8a8_make_plan(&spec, &target, &plan, &err), &err);
    assert_non_null(ptxgen_w8a8_choose(&plan, 100000));
    return plan.variants[plan.variant_count - 1].tile_m;
}

/* Where operands that are turned into f16 need registers beside the sums. */
static void the_widest_tile_is_halved_where_registers_are_short(void **state)
{
    (void)state;
    const char *const halved[] = {"sm_90", "sm_100"}, *const same[] = {"sm_89", "sm_90a", "sm_120"};
    for (int i = 0; i < 2; i++)
        assert_int_equal(widest(halved[i], PTXGEN_W8A8_E4M3), 128);
    for (int i = 0; i < 3; i++)
        assert_int_equal(widest(same[i], PTXGEN_W8A8_E4M3), widest(same[i], PTXGEN_W8A8_S8));
}

/* On wgmma two warpgroups have registers for two strips of 64 tokens, and four do not. */
static void the_widest_tile_has_strips_of_tokens(void **state)
{
    (void)state;
    ptxgen_target target = target_of("sm_90a");
    for (uint32_t group = 0; group <= PTXGEN_W8A8_GROUP; group += PTXGEN_W8A8_GROUP)
        for (uint32_t wn = 0; wn <= 2; wn++) {
            const ptxgen_w8a8_spec spec = {
                .k = 512, .n = 512, .codes = PTXGEN_W8A8_E4M3, .group = (uint8_t)group};
            const ptxgen_tile tile = {.kind = PTXGEN_WGMMA,
                                      .tile_m = 256,
                                      .tile_n = 128,
                                      .wn = wn,
                                      .ctas = 1,
                                      .cluster = 1};
            ptxgen_w8a8_plan plan;
            ptxgen_error err;
            assert_ok(ptxgen_w8a8_make_plan(&spec, &target, &plan, &err), &err);
            assert_int_equal(ptxgen_w8a8_use_tile(&plan, &tile, &err),
                             group || wn == 2 ? PTXGEN_ERROR_UNSUPPORTED : PTXGEN_OK);
            if (!group && wn < 2)
                assert_true(plan.variants[0].wm == 8 && plan.variants[0].wn == 1);
        }
}

/* CTAs that quantise more tokens than there are multiprocessors need shared memory themselves. */
static void wide_tiles_leave_room_to_ctas_that_quantise(void **state)
{
    (void)state;
    ptxgen_target target = target_of("sm_90a");
    for (uint8_t scales = PTXGEN_W8A8_DYNAMIC; scales <= PTXGEN_W8A8_QUANTISED; scales++) {
        const ptxgen_w8a8_spec spec = {
            .k = 8192, .n = 8192, .x_type = PTXGEN_F16, .y_type = PTXGEN_F16, .scales = scales};
        ptxgen_w8a8_plan plan;
        ptxgen_error err;
        assert_ok(ptxgen_w8a8_make_plan(&spec, &target, &plan, &err), &err);
        const ptxgen_tile *v = ptxgen_w8a8_choose(&plan, 256);
        assert_true(v->tile_m == 128 && v->tile_n == 128);
        assert_int_equal(v->stages, scales == PTXGEN_W8A8_QUANTISED ? 7 : 6);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_is_its_own_code_and_ties_go_to_the_even_one),
        cmocka_unit_test(codes_are_the_nearest_numbers),
        cmocka_unit_test(the_spread_sees_a_step_that_is_left_out),
        cmocka_unit_test(a_bound_is_stated_where_it_can_be),
        cmocka_unit_test(the_bound_of_a_negative_scale_is_that_of_its_magnitude),
        cmocka_unit_test(weights_of_unknown_codes_are_refused),
        cmocka_unit_test(the_widest_tile_is_halved_where_registers_are_short),
        cmocka_unit_test(the_widest_tile_has_strips_of_tokens),
        cmocka_unit_test(wide_tiles_leave_room_to_ctas_that_quantise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
