/* SPDX-License-Identifier: Apache-2.0 */
/* What is before and after the sums: the caller's codes, SwiGLU's rows, the bound of a function. */
#include "support.h"
#include "tests/random.h"

enum { N = 16, K = 64, M = 2 };

static float x_of[M * K], residual_of[M * N];
static int8_t gate_of[N * K], up_of[N * K], paired_of[2 * N * K];
static float gate_scale[N], up_scale[N], paired_scale[2 * N];

static void fill(void)
{
    struct random r = {11};
    ptxgen_error err;
    for (int i = 0; i < M * K; i++)
        x_of[i] = (float)random_normal(&r);
    for (int i = 0; i < M * N; i++)
        residual_of[i] = (float)random_normal(&r);
    for (int i = 0; i < N * K; i++) {
        gate_of[i] = (int8_t)random_bits(&r);
        up_of[i] = (int8_t)random_bits(&r);
    }
    for (int i = 0; i < N; i++) {
        gate_scale[i] = (float)(0.002 + 0.001 * random_uniform(&r));
        up_scale[i] = (float)(0.002 + 0.001 * random_uniform(&r));
    }
    assert_ok(ptxgen_w8a8_pair(N, K, gate_of, up_of, paired_of, &err), &err);
    assert_ok(ptxgen_w8a8_pair(N, sizeof(float), gate_scale, up_scale, paired_scale, &err), &err);
}

static ptxgen_w8a8_plan plan_of(const ptxgen_w8a8_spec *of)
{
    ptxgen_w8a8_spec spec = *of;
    const ptxgen_target target = target_of("sm_80");
    ptxgen_w8a8_plan plan;
    ptxgen_error err;
    spec.k = K;
    spec.n = N;
    assert_ok(ptxgen_w8a8_make_plan(&spec, &target, &plan, &err), &err);
    return plan;
}

/* The outputs of token 1: exact ones, or those with a bound. */
static void compute(const ptxgen_w8a8_plan *plan, const ptxgen_w8a8_operands *o, double *y,
                    double *bound)
{
    int8_t codes[K];
    float exact[N];
    ptxgen_w8a8_token token;
    ptxgen_error err;
    assert_ok(ptxgen_w8a8_reference_codes(&plan->spec, o, 1, codes, &token, &err), &err);
    if (!ptxgen_w8a8_is_exact(&plan->spec)) {
        assert_ok(ptxgen_w8a8_reference_bound(plan, o, codes, &token, 0, N, y, bound, NULL, &err),
                  &err);
        return;
    }
    assert_ok(ptxgen_w8a8_reference(&plan->spec, o, codes, &token, 0, N, exact, NULL, &err), &err);
    for (int i = 0; i < N; i++)
        y[i] = exact[i];
}

static double silu(double v)
{
    return v / (1 + exp(-v));
}

/* Two products of plain specs, whose outputs are exact, are what SwiGLU's bound is about. */
static void swiglu_takes_eight_rows_of_gate_and_eight_of_up_in_turn(void **state)
{
    (void)state;
    fill();
    const ptxgen_w8a8_plan plain = plan_of(&(ptxgen_w8a8_spec){.q_max = 0});
    const ptxgen_w8a8_plan gated =
        plan_of(&(ptxgen_w8a8_spec){.epilogue = PTXGEN_EPILOGUE_SWIGLU, .residual = 1});
    const ptxgen_w8a8_operands gate = {.m = M, .x = x_of, .w = gate_of, .w_scale = gate_scale};
    const ptxgen_w8a8_operands up = {.m = M, .x = x_of, .w = up_of, .w_scale = up_scale};
    const ptxgen_w8a8_operands both = {
        .m = M, .x = x_of, .w = paired_of, .w_scale = paired_scale, .residual = residual_of};
    double v[N], u[N], y[N], bound[N], unused[N];
    assert_true(ptxgen_w8a8_is_exact(&plain.spec) && !ptxgen_w8a8_is_exact(&gated.spec));
    compute(&plain, &gate, v, unused);
    compute(&plain, &up, u, unused);
    compute(&gated, &both, y, bound);
    for (int i = 0; i < N; i++) {
        double expected = silu(v[i]) * u[i] + (double)residual_of[N + i];
        assert_true(fabs(y[i] - expected) <= bound[i]);
        assert_true(bound[i] < 0x1p-16 * (fabs(silu(v[i]) * u[i]) + 1));
    }
}

/* Of a function: outputs with the bound are those of the exact sums, and the residual is added. */
static void a_function_is_applied_to_the_exact_sum(void **state)
{
    (void)state;
    static const ptxgen_activation functions[] = {PTXGEN_ACTIVATION_SILU, PTXGEN_ACTIVATION_RELU};
    fill();
    const ptxgen_w8a8_plan plain = plan_of(&(ptxgen_w8a8_spec){.asymmetric = 1});
    const ptxgen_w8a8_operands o = {
        .m = M, .x = x_of, .w = gate_of, .w_scale = gate_scale, .residual = residual_of};
    double v[N], y[N], bound[N], unused[N];
    compute(&plain, &o, v, unused);
    for (int f = 0; f < 2; f++) {
        const ptxgen_w8a8_plan plan = plan_of(&(ptxgen_w8a8_spec){
            .asymmetric = 1, .activation = (uint8_t)functions[f], .residual = 1});
        compute(&plan, &o, y, bound);
        for (int i = 0; i < N; i++) {
            double expected = (f ? fmax(v[i], 0) : silu(v[i])) + (double)residual_of[N + i];
            assert_true(fabs(y[i] - expected) <= bound[i]);
            assert_true(bound[i] < 0x1p-17 * (fabs(v[i]) + 4));
        }
    }
}

/* The codes, the scale and the zero point of a token that quantises itself, given by the caller. */
static void codes_of_the_caller_give_the_same_bits(void **state)
{
    (void)state;
    fill();
    for (uint8_t asymmetric = 0; asymmetric < 2; asymmetric++)
        for (int nan = 0; nan < 2; nan++) {
            const ptxgen_w8a8_plan own = plan_of(&(ptxgen_w8a8_spec){.asymmetric = asymmetric});
            const ptxgen_w8a8_plan given = plan_of(&(ptxgen_w8a8_spec){
                .asymmetric = asymmetric, .x_type = PTXGEN_BF16, .scales = PTXGEN_W8A8_QUANTISED});
            ptxgen_w8a8_operands o = {
                .m = M, .x = x_of, .w = gate_of, .w_scale = gate_scale, .x_stride = K};
            int8_t codes[M * K];
            float scales[M] = {1, 1};
            int32_t zeros[M] = {0, 0};
            ptxgen_w8a8_token token;
            double y[N], expected[N], unused[N];
            ptxgen_error err;
            x_of[K] = nan ? NAN : 1;
            compute(&own, &o, expected, unused);
            assert_ok(ptxgen_w8a8_reference_codes(&own.spec, &o, 1, codes + K, &token, &err), &err);
            scales[1] = (float)token.scale;
            zeros[1] = token.zero;
            o.x = codes;
            o.x_scale = scales;
            o.x_zero = zeros;
            compute(&given, &o, y, unused);
            for (int i = 0; i < N; i++)
                assert_true(nan ? isnan(y[i]) && isnan(expected[i]) : y[i] == expected[i]);
            scales[1] = -1;
            assert_refusal(ptxgen_w8a8_reference_codes(&given.spec, &o, 1, codes, &token, &err),
                           &err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "w8a8: x_scale[1] is -1, not positive and finite");
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(swiglu_takes_eight_rows_of_gate_and_eight_of_up_in_turn),
        cmocka_unit_test(a_function_is_applied_to_the_exact_sum),
        cmocka_unit_test(codes_of_the_caller_give_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
