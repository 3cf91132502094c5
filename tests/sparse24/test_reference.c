/* SPDX-License-Identifier: Apache-2.0 */
/* The double-precision reference: its values, its rules, and a bound that holds and bites. */
#include "tests/status.h"

#include "golden.h"
#include "src/kernels/bound.h"
#include "src/kernels/half.h"
#include "src/kernels/linear.h"
#include "tests/random.h"

#include <ptxgen/sparse24.h>

#include <math.h>

enum { N = 24, M = 5, K = 256, X_STRIDE = K + 8, RESIDUAL_STRIDE = N + 3 };

/* A random problem with storage of its own. */
struct test_case {
    ptxgen_sparse24_spec spec;
    ptxgen_sparse24_operands o;
    unsigned char x[M * X_STRIDE * 4], dense[N * K * 4], values[N * K * 2], metadata[N * K / 4];
    unsigned char residual[M * RESIDUAL_STRIDE * 4], bias[N * 4];
    float x_scale[M], w_scale[N];
    double y[M * N], bound[M * N];
};

static void store(ptxgen_sparse24_type type, void *array, size_t index, double value)
{
    if (type == PTXGEN_SPARSE24_S8)
        ((int8_t *)array)[index] = (int8_t)fmax(-128, fmin(127, 50 * value));
    else
        ptxgen_element_store((ptxgen_element)type, array, index, value);
}

static double load(ptxgen_sparse24_type type, const void *array, size_t index)
{
    if (type == PTXGEN_SPARSE24_S8)
        return ((const int8_t *)array)[index];
    return ptxgen_element_load((ptxgen_element)type, array, index);
}

static ptxgen_sparse24_type type_of(const struct test_case *c)
{
    return (ptxgen_sparse24_type)c->spec.type;
}

static ptxgen_element y_type_of(const struct test_case *c)
{
    return (ptxgen_element)c->spec.y_type;
}

/* Recompresses `dense`, which must be 2:4 sparse. */
static void compress(struct test_case *c)
{
    const ptxgen_sparse24_shape shape = {type_of(c), N, K};
    size_t bytes = N * K * element_bytes(shape.type);
    ptxgen_error err;
    assert_ok(ptxgen_sparse24_compress(&shape, (ptxgen_const_span){c->dense, bytes},
                                       (ptxgen_span){c->values, bytes / 2}, PTXGEN_SPARSE24_BYTES,
                                       (ptxgen_span){c->metadata, sizeof c->metadata}, &err),
              &err);
}

/* y has the type of x, or f16 where that is s8. */
static struct test_case *make_case(ptxgen_sparse24_type type, uint64_t seed)
{
    struct test_case *c = calloc(1, sizeof *c);
    assert_non_null(c);
    struct random r = {seed};
    const ptxgen_sparse24_shape shape = {type, N, K};
    size_t bytes = N * K * element_bytes(type);
    c->spec = (ptxgen_sparse24_spec){
        .n = N,
        .k = K,
        .type = (uint8_t)type,
        .y_type = (uint8_t)(type == PTXGEN_SPARSE24_S8 ? PTXGEN_F16 : (ptxgen_element)type)};
    c->o = (ptxgen_sparse24_operands){.m = M,
                                      .x = c->x,
                                      .values = {c->values, bytes / 2},
                                      .form = PTXGEN_SPARSE24_BYTES,
                                      .metadata = {c->metadata, sizeof c->metadata},
                                      .x_scale = c->x_scale,
                                      .w_scale = c->w_scale,
                                      .bias = c->bias,
                                      .residual = c->residual,
                                      .x_stride = X_STRIDE,
                                      .residual_stride = RESIDUAL_STRIDE};
    for (size_t i = 0; i < M * X_STRIDE; i++)
        store(type, c->x, i, random_normal(&r));
    for (size_t i = 0; i < N * K; i++)
        store(type, c->dense, i, random_normal(&r) / 8);
    ptxgen_span dense = {c->dense, bytes};
    assert_int_equal(ptxgen_sparse24_prune(&shape, read_only(dense), dense, NULL), PTXGEN_OK);
    compress(c);
    for (int n = 0; n < N; n++)
        c->w_scale[n] = (float)(0.01 * (1 + random_uniform(&r)));
    for (int m = 0; m < M; m++)
        c->x_scale[m] = (float)(0.02 * (1 + random_uniform(&r)));
    return c;
}

static void use_epilogue(struct test_case *c, ptxgen_element y_type, int activation)
{
    struct random r = {99};
    c->spec.y_type = (uint8_t)y_type;
    c->spec.activation = (uint8_t)activation;
    c->spec.bias = c->spec.residual = 1;
    for (size_t i = 0; i < M * RESIDUAL_STRIDE; i++)
        ptxgen_element_store(y_type, c->residual, i, random_normal(&r));
    for (size_t n = 0; n < N; n++)
        ptxgen_element_store(y_type, c->bias, n, random_normal(&r));
}

static void run(struct test_case *c)
{
    const ptxgen_target target = target_of("sm_80");
    ptxgen_sparse24_plan plan;
    ptxgen_error err;
    assert_ok(ptxgen_sparse24_make_plan(&c->spec, &target, &plan, &err), &err);
    assert_ok(ptxgen_sparse24_reference(&plan, &c->o, c->y, c->bound, &err), &err);
}

/* ---- values ---- */

static double dense_sum(const struct test_case *c, size_t m, size_t n)
{
    double sum = 0;
    for (size_t k = 0; k < K; k++)
        sum += load(type_of(c), c->x, m * X_STRIDE + k) * load(type_of(c), c->dense, n * K + k);
    return sum;
}

static void the_product_is_that_of_the_dense_weight(void **state)
{
    (void)state;
    for (int type = 0; type < PTXGEN_SPARSE24_S8; type++) {
        struct test_case *c = make_case(type, 1);
        run(c);
        for (size_t i = 0; i < M * N; i++)
            assert_true(fabs(c->y[i] - dense_sum(c, i / N, i % N)) <= 1e-13 * (1 + fabs(c->y[i])));
        free(c);
    }
}

/* Each output is its exact sum, scaled and rounded step by step. */
static void s8_sums_are_exact_in_s32(void **state)
{
    (void)state;
    struct test_case *c = make_case(PTXGEN_SPARSE24_S8, 2);
    for (size_t k = 0; k < K; k++) { /* the largest sum there is: two of four, all −128 */
        ((int8_t *)c->x)[k] = -128;
        ((int8_t *)c->dense)[k] = k % 4 < 2 ? -128 : 0;
    }
    compress(c);
    run(c);
    assert_true(dense_sum(c, 0, 0) == K / 2 * 128 * 128);
    for (size_t i = 0; i < M * N; i++) {
        volatile float v = (float)dense_sum(c, i / N, i % N);
        v = v * c->x_scale[i / N];
        v = v * c->w_scale[i % N];
        assert_true(c->y[i] == ptxgen_element_round(PTXGEN_F16, v) && c->bound[i] == 0);
    }
    free(c);
}

/* One output, of a sum that is `value`, in a kernel of many additions. */
static double activated(int activation, double rough, double value, double *bound)
{
    const struct linear_sum how = {.terms = 4, .depth = 1000};
    const struct linear_output output = {(ptxgen_activation)activation, rough, PTXGEN_F32, 4};
    const struct walk walk = {.sum = 0};
    const struct linear_result r =
        linear_finish(&output, linear_add_up(&how, value, fabs(value), &walk, 0), NULL, NULL, true);
    *bound = r.bound;
    return r.y;
}

static void activations_have_their_known_values(void **state)
{
    (void)state;
    static const struct {
        int activation;
        double v, y;
    } known[] = {
        {PTXGEN_ACTIVATION_NONE, -3, -3},
        {PTXGEN_ACTIVATION_RELU, -3, 0},
        {PTXGEN_ACTIVATION_RELU, 3, 3},
        {PTXGEN_ACTIVATION_SILU, 1, 0.73105857863000488},
        {PTXGEN_ACTIVATION_SILU, -2, -0.23840584404423517},
        {PTXGEN_ACTIVATION_GELU, 1, 0.84134474606854293},
        {PTXGEN_ACTIVATION_GELU, -2, -0.045500263896358417},
        {PTXGEN_ACTIVATION_GELU_TANH, 1, 0.84119199060827676},
        {PTXGEN_ACTIVATION_GELU_TANH, -2, -0.045402305912225},
    };
    double bound;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        assert_true(fabs(activated(known[i].activation, 0, known[i].v, &bound) - known[i].y) <
                    1e-14);
}

/* An error that the sum may have, sent through the activation, is within the output's bound. */
static void the_bound_follows_an_activations_steepest_slope(void **state)
{
    (void)state;
    for (int activation = 0; activation <= PTXGEN_ACTIVATION_RELU; activation++)
        for (double v = -6; v < 6; v += 0x1p-5) {
            double before, after, ignored;
            activated(PTXGEN_ACTIVATION_NONE, 0, v, &before);
            double y = activated(activation, 0, v, &after);
            float moved = (float)(v + 0.99 * before); /* a float, on the way to the peak */
            if (fabs(moved - v) > before)
                continue;
            assert_true(fabs(activated(activation, 0, moved, &ignored) - y) <= after);
        }
}

static void the_bound_grants_what_the_activation_may_err(void **state)
{
    (void)state;
    double exact, rough;
    activated(PTXGEN_ACTIVATION_GELU, 0, 1.5, &exact);
    activated(PTXGEN_ACTIVATION_GELU, 0x1p-10, 1.5, &rough);
    assert_true(rough - exact >= 0x1p-10 * 1.5);
    assert_true(rough - exact < 0x1.01p-10 * 1.5);
}

/* ---- the bound, against f32 "kernels" ---- */

static float f32_activation(int activation, float v)
{
    switch (activation) {
    case PTXGEN_ACTIVATION_RELU: return v < 0 ? 0 : v;
    case PTXGEN_ACTIVATION_SILU: return v / (1 + expf(-v));
    case PTXGEN_ACTIVATION_GELU: return 0.5f * v * (1 + erff(v * 0.70710678f));
    case PTXGEN_ACTIVATION_GELU_TANH:
        return 0.5f * v * (1 + tanhf(0.79788456f * (v + 0.044715f * v * v * v)));
    default: return v;
    }
}

struct style {
    unsigned threads; /* each sums a slice, then a tree; a power of two */
    bool fused;       /* fma */
    size_t skipped;   /* a column left out: a fault; K for none */
    bool half_adds;   /* accumulates in f16: a fault */
    bool drops_residual;
};

static double kernel(const struct test_case *c, size_t m, size_t n, struct style style)
{
    float partial[64] = {0};
    size_t term = 0;
    for (size_t k = 0; k < K; k++) {
        float w = (float)load(type_of(c), c->dense, n * K + k);
        float x = (float)load(type_of(c), c->x, m * X_STRIDE + k);
        if (w == 0 || k == style.skipped)
            continue;
        float *acc = &partial[term++ % style.threads];
        *acc = style.fused ? fmaf(w, x, *acc) : *acc + w * x;
        if (style.half_adds)
            *acc = ptxgen_f16_to_f32(ptxgen_f64_to_f16(*acc));
    }
    for (unsigned half = style.threads / 2; half > 0; half /= 2)
        for (unsigned i = 0; i < half; i++)
            partial[i] += partial[i + half];
    float v = partial[0];
    if (type_of(c) == PTXGEN_SPARSE24_S8)
        v = v * c->x_scale[m] * c->w_scale[n];
    if (c->spec.bias)
        v += (float)ptxgen_element_load(y_type_of(c), c->bias, n);
    v = f32_activation(c->spec.activation, v);
    if (c->spec.residual && !style.drops_residual)
        v += (float)ptxgen_element_load(y_type_of(c), c->residual, m * RESIDUAL_STRIDE + n);
    return ptxgen_element_round(y_type_of(c), v);
}

/* Outputs of a kernel that are out of bounds. */
static unsigned violations(const struct test_case *c, struct style style)
{
    unsigned count = 0;
    for (size_t i = 0; i < M * N; i++) {
        assert_true(isfinite(c->bound[i]));
        count += !ptxgen_bound_agrees(kernel(c, i / N, i % N, style), c->y[i], c->bound[i]);
    }
    return count;
}

static void the_bound_holds_for_kernels_of_any_order_type_and_epilogue(void **state)
{
    (void)state;
    static const struct style styles[] = {
        {1, false, K, false, false}, {1, true, K, false, false}, {32, true, K, false, false}};
    for (int type = 0; type <= PTXGEN_SPARSE24_S8; type++)
        for (int y_type = PTXGEN_F32; y_type <= PTXGEN_BF16; y_type++)
            for (int activation = 0; activation <= PTXGEN_ACTIVATION_RELU; activation++)
                for (int s = 0; s < 3; s++) {
                    if (type == PTXGEN_SPARSE24_S8 ? y_type == PTXGEN_F32 : y_type != type)
                        continue; /* not among sparse24's types */
                    struct test_case *c = make_case(type, 10 + (uint64_t)activation);
                    use_epilogue(c, y_type, activation);
                    run(c);
                    assert_int_equal(violations(c, styles[s]), 0);
                    free(c);
                }
}

/* Half sums are no fault that an output of bf16 shows. */
static void the_bound_catches_a_lost_column_half_sums_and_a_lost_residual(void **state)
{
    (void)state;
    for (int type = 0; type <= PTXGEN_SPARSE24_S8; type++) {
        struct test_case *c = make_case(type, 3);
        run(c);
        /* about half of the rows keep a given column */
        assert_in_range(violations(c, (struct style){1, true, 17, false, false}), M * N / 4, M * N);
        if (type <= PTXGEN_SPARSE24_F16)
            assert_in_range(violations(c, (struct style){1, true, K, true, false}), M * N / 2,
                            M * N);
        use_epilogue(c, y_type_of(c), PTXGEN_ACTIVATION_SILU);
        run(c);
        assert_in_range(violations(c, (struct style){1, true, K, false, true}), M * N / 2, M * N);
        free(c);
    }
}

/* Eight mma steps, which count 22 additions each, and a few additions of partial sums. */
static void the_bound_is_a_small_part_of_the_terms(void **state)
{
    (void)state;
    enum { DEPTH = 8 * 22 + 8 };
    struct test_case *c = make_case(PTXGEN_SPARSE24_F16, 4);
    run(c);
    for (size_t i = 0; i < M * N; i++) {
        double abs_sum = 0;
        for (size_t k = 0; k < K; k++)
            abs_sum += fabs(load(1, c->x, i / N * X_STRIDE + k) * load(1, c->dense, i % N * K + k));
        double stored = ptxgen_element_half_ulp(PTXGEN_F16, fabs(c->y[i]) + c->bound[i]);
        assert_true(c->bound[i] > stored);
        assert_true(c->bound[i] < stored + 1.01 * DEPTH * 0x1p-24 * abs_sum);
    }
    free(c);
}

/* ---- what is not an ordinary number ---- */

static void nan_in_a_kept_column_is_nan_and_in_another_promises_nothing(void **state)
{
    (void)state;
    for (int activation = 0; activation <= PTXGEN_ACTIVATION_RELU; activation++) {
        struct test_case *c = make_case(PTXGEN_SPARSE24_BF16, 5);
        c->spec.activation = (uint8_t)activation;
        store(PTXGEN_SPARSE24_BF16, c->x, 1 * X_STRIDE + 9, NAN);
        run(c);
        for (size_t n = 0; n < N; n++) {
            if (load(PTXGEN_SPARSE24_BF16, c->dense, n * K + 9) != 0) {
                assert_true(isnan(c->y[N + n]) && c->bound[N + n] == 0);
                assert_false(ptxgen_bound_agrees(0, c->y[N + n], c->bound[N + n]));
            } else {
                assert_true(isnan(c->bound[N + n]));
            }
            assert_true(isfinite(c->y[n]) && isfinite(c->bound[n]));
            assert_true(isfinite(c->y[2 * N + n]) && isfinite(c->bound[2 * N + n]));
        }
        free(c);
    }
}

static void outputs_past_the_types_range_are_infinite(void **state)
{
    (void)state;
    struct test_case *c = make_case(PTXGEN_SPARSE24_F16, 6);
    for (size_t k = 0; k < K; k++)
        store(PTXGEN_SPARSE24_F16, c->x, k, 6e4 * load(PTXGEN_SPARSE24_F16, c->dense, k));
    run(c);
    assert_true(c->y[0] == INFINITY && c->bound[0] == 0);
    free(c);
    c = make_case(PTXGEN_SPARSE24_BF16, 6); /* and beyond f32 on the way, nothing is promised */
    for (size_t k = 0; k < K; k++)
        store(PTXGEN_SPARSE24_BF16, c->x, k, k % 8 < 4 ? 3e38 : -3e38);
    run(c);
    assert_true(isnan(c->bound[0]));
    free(c);
}

static void an_infinite_residual_makes_its_output_infinite(void **state)
{
    (void)state;
    struct test_case *c = make_case(PTXGEN_SPARSE24_F16, 7);
    use_epilogue(c, PTXGEN_F16, PTXGEN_ACTIVATION_SILU);
    ptxgen_element_store(PTXGEN_F16, c->residual, 2, -INFINITY);
    ptxgen_element_store(PTXGEN_F16, c->residual, 3, NAN);
    run(c);
    assert_true(c->y[2] == -INFINITY && c->bound[2] == 0);
    assert_true(isnan(c->y[3]) && c->bound[3] == 0);
    assert_true(isfinite(c->y[4]));
    free(c);
}

static void what_leaves_f32_before_an_activation_or_a_residual_promises_nothing(void **state)
{
    (void)state;
    struct test_case *c = make_case(PTXGEN_SPARSE24_BF16, 9);
    use_epilogue(c, PTXGEN_BF16, PTXGEN_ACTIVATION_NONE);
    for (size_t k = 0; k < K; k++) /* each product of the same sign, none past 1e37 */
        store(PTXGEN_SPARSE24_BF16, c->x, k, copysign(1e36, load(2, c->dense, k)));
    ptxgen_element_store(PTXGEN_BF16, c->bias, 0, 3.38e38);
    run(c);
    assert_true(isnan(c->bound[0]) && isfinite(c->bound[N]));
    c->spec.residual = 0;
    run(c);
    assert_true(c->y[0] == INFINITY && c->bound[0] == 0);
    c->spec.activation = PTXGEN_ACTIVATION_SILU;
    run(c);
    assert_true(isnan(c->bound[0]) && isfinite(c->bound[N]));
    free(c);
}

/* tests/refusals/test_references.c has all other rules. */
static void refuses_metadata_that_is_none(void **state)
{
    (void)state;
    const ptxgen_target target = target_of("sm_80");
    for (int type = 0; type <= PTXGEN_SPARSE24_S8; type++) {
        struct test_case *c = make_case(type, 8);
        ptxgen_sparse24_plan plan;
        ptxgen_error err = {0};
        c->metadata[N * K / 4 - 1] = 0xF;
        assert_ok(ptxgen_sparse24_make_plan(&c->spec, &target, &plan, &err), &err);
        assert_int_equal(ptxgen_sparse24_reference(&plan, &c->o, c->y, c->bound, &err),
                         PTXGEN_ERROR_MALFORMED);
        assert_says(&err, "row 23, group 63");
        free(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_product_is_that_of_the_dense_weight),
        cmocka_unit_test(s8_sums_are_exact_in_s32),
        cmocka_unit_test(activations_have_their_known_values),
        cmocka_unit_test(the_bound_follows_an_activations_steepest_slope),
        cmocka_unit_test(the_bound_holds_for_kernels_of_any_order_type_and_epilogue),
        cmocka_unit_test(the_bound_catches_a_lost_column_half_sums_and_a_lost_residual),
        cmocka_unit_test(the_bound_is_a_small_part_of_the_terms),
        cmocka_unit_test(nan_in_a_kept_column_is_nan_and_in_another_promises_nothing),
        cmocka_unit_test(outputs_past_the_types_range_are_infinite),
        cmocka_unit_test(what_leaves_f32_before_an_activation_or_a_residual_promises_nothing),
        cmocka_unit_test(the_bound_grants_what_the_activation_may_err),
        cmocka_unit_test(an_infinite_residual_makes_its_output_infinite),
        cmocka_unit_test(refuses_metadata_that_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
