/* SPDX-License-Identifier: Apache-2.0 */
/* The reference, and the way of GPTQ files to it, against one written from the definition. */
#include "tests/status.h"

#include "support.h"
#include "src/kernels/bound.h"
#include "src/kernels/half.h"
#include "src/kernels/marlin/reference.h"

enum { K = 256, N = 64, M = 3 };

/* A GPTQ layer as its definition has it: plain arrays beside the packed ones. */
struct layer {
    int code[K][N], group[K], zero[K][N];
    double scale[K][N];
    uint32_t qweight[K / 8][N], qzeros[K][N / 8], g_idx[K];
    uint16_t scales[K][N];
    double x[M][K], y[M][N]; /* y = x·w */
    ptxgen_w4_checkpoint checkpoint;
};

static struct layer *make_layer(struct random *r, int group_size, bool v2, bool act_order)
{
    struct layer *l = calloc(1, sizeof *l);
    assert_non_null(l);
    int groups = K / group_size;
    for (int k = 0; k < K; k++) {
        /* 77 is odd, so k·77 mod 256 is a permutation: every group has its rows, scattered */
        l->group[k] = (act_order ? k * 77 % K : k) / group_size;
        l->g_idx[k] = (uint32_t)l->group[k];
        for (int n = 0; n < N; n++) {
            l->code[k][n] = (int)(random_bits(r) % 16);
            l->qweight[k / 8][n] |= (uint32_t)l->code[k][n] << k % 8 * 4;
        }
        for (int m = 0; m < M; m++)
            l->x[m][k] = ptxgen_element_round(PTXGEN_F16, random_normal(r));
    }
    for (int g = 0; g < groups; g++)
        for (int n = 0; n < N; n++) {
            l->zero[g][n] = (g + n) % 16;
            uint32_t stored = v2 ? (uint32_t)l->zero[g][n] : (uint32_t)(l->zero[g][n] - 1) & 15;
            l->qzeros[g][n / 8] |= stored << n % 8 * 4;
            l->scales[g][n] = ptxgen_f64_to_f16(0.02 * random_uniform(r));
            l->scale[g][n] = (double)ptxgen_f16_to_f32(l->scales[g][n]);
        }
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++)
            for (int k = 0; k < K; k++) {
                int g = l->group[k];
                l->y[m][n] += l->x[m][k] * l->scale[g][n] * (l->code[k][n] - l->zero[g][n]);
            }
    size_t g = (size_t)groups;
    l->checkpoint = (ptxgen_w4_checkpoint){
        .format = v2 ? PTXGEN_W4_GPTQ_V2 : PTXGEN_W4_GPTQ_V1,
        .weights = {l->qweight, PTXGEN_W4_I32, {K / 8, N}},
        .scales = {l->scales, PTXGEN_W4_F16, {g, N}},
        .zeros = {l->qzeros, PTXGEN_W4_I32, {g, N / 8}},
        .g_idx = {l->g_idx, PTXGEN_W4_I32, {K, 1}},
    };
    return l;
}

static void expect_product(const struct layer *l, const ptxgen_w4_matrix *w, const uint32_t *order)
{
    ptxgen_error err;
    float x[M][K];
    double y[M][N];
    for (int m = 0; m < M; m++)
        for (int k = 0; k < K; k++)
            x[m][k] = (float)l->x[m][order ? order[k] : (uint32_t)k];
    struct marlin_problem p = {
        .m = M, .w = w, .x_type = PTXGEN_F32, .y_type = PTXGEN_F32, .x = x, .x_stride = K};
    assert_ok(marlin_reference(&p, &y[0][0], NULL, NULL, &err), &err);
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++)
            if (!(fabs(y[m][n] - l->y[m][n]) < 1e-12))
                fail_msg("y[%d, %d] is %.17g, not %.17g", m, n, y[m][n], l->y[m][n]);
}

static void each_gptq_layer(void (*expect)(const struct layer *layer))
{
    struct random r = {1};
    const int group_sizes[] = {32, 64, 128, K};
    for (size_t g = 0; g < 4; g++)
        for (int v2 = 0; v2 < 2; v2++)
            for (int act_order = 0; act_order < 2; act_order++) {
                struct layer *l = make_layer(&r, group_sizes[g], v2, act_order);
                expect(l);
                free(l);
            }
}

static void expect_unpacked_product(const struct layer *l)
{
    ptxgen_error err;
    ptxgen_w4_matrix matrix = matrix_allocate(K, N, 1, PTXGEN_F16, true, true);
    assert_ok(ptxgen_w4_unpack(&l->checkpoint, &matrix, &err), &err);
    expect_product(l, &matrix, NULL);
    matrix_free(&matrix);
}

static void expect_repacked_product(const struct layer *l)
{
    ptxgen_error err;
    ptxgen_w4_info info;
    uint32_t order[K];
    assert_ok(ptxgen_w4_describe(&l->checkpoint, &info, &err), &err);
    ptxgen_w4_checkpoint marlin = checkpoint_allocate(&info, PTXGEN_W4_MARLIN);
    ptxgen_w4_repack_options options = {.threads = 2};
    assert_ok(ptxgen_w4_to_marlin(&l->checkpoint, &marlin, order, &options, &err), &err);
    ptxgen_w4_matrix matrix = matrix_allocate(K, N, info.group_size, PTXGEN_F16, true, false);
    assert_ok(ptxgen_w4_unpack(&marlin, &matrix, &err), &err);
    expect_product(l, &matrix, order);
    checkpoint_free(&marlin);
    matrix_free(&matrix);
}

static void gptq_of_any_version_zero_point_group_and_order_multiplies_as_defined(void **state)
{
    (void)state;
    each_gptq_layer(expect_unpacked_product);
}

static void gptq_repacked_for_marlin_multiplies_as_defined(void **state)
{
    (void)state;
    each_gptq_layer(expect_repacked_product);
}

/* A kernel: weights rounded to their type, f32 sums in order, an epilogue in f32. */
static float kernel_sum(const struct marlin_problem *p, const double *w, size_t m, size_t n,
                        const void *bias)
{
    float sum = 0;
    for (size_t k = 0; k < p->w->k; k++) {
        float weight = (float)ptxgen_element_round(p->weight_type, w[k * p->w->n + n]);
        sum += (float)ptxgen_element_load(p->x_type, p->x, m * p->x_stride + k) * weight;
    }
    return bias ? sum + (float)ptxgen_element_load(p->y_type, bias, n) : sum;
}

static float kernel_activate(ptxgen_activation activation, float v)
{
    switch (activation) {
    case PTXGEN_ACTIVATION_SILU: return v / (1 + expf(-v));
    case PTXGEN_ACTIVATION_GELU: return 0.5f * v * (1 + erff(v * 0.70710678f));
    case PTXGEN_ACTIVATION_GELU_TANH:
        return 0.5f * v * (1 + tanhf(0.79788456f * (v + 0.044715f * v * v * v)));
    case PTXGEN_ACTIVATION_NONE:
    case PTXGEN_ACTIVATION_RELU: break;
    }
    return v;
}

struct problem_data {
    ptxgen_w4_matrix matrix, up;
    void *x, *bias, *up_bias, *residual;
    double *w, *w_up;
};

static void *random_elements(struct random *r, ptxgen_element type, size_t count)
{
    void *array = allocate(count * ptxgen_element_size(type));
    for (size_t i = 0; i < count; i++)
        ptxgen_element_store(type, array, i, random_normal(r));
    return array;
}

/* s·(q − z) of every weight, exact. */
static double *decode(const ptxgen_w4_matrix *m)
{
    double *w = allocate(K * N * sizeof *w);
    for (size_t k = 0; k < K; k++)
        for (size_t n = 0; n < N; n++) {
            size_t at = (m->g_idx ? (size_t)m->g_idx[k] : k / (size_t)m->group_size) * N + n;
            double scale = ptxgen_element_load(m->scale_type, m->scales, at);
            w[k * N + n] = scale * (m->codes[k * N + n] - (m->zeros ? m->zeros[at] : 8));
        }
    return w;
}

static struct problem_data make_data(struct random *r, ptxgen_element type)
{
    struct problem_data d = {.matrix = matrix_random(r, K, N, 64, type, true, true),
                             .up = matrix_random(r, K, N, 32, type, false, false)};
    d.x = random_elements(r, type, M * (K + 1));
    d.bias = random_elements(r, type, N);
    d.up_bias = random_elements(r, type, N);
    d.residual = random_elements(r, type, M * (N + 2));
    d.w = decode(&d.matrix);
    d.w_up = decode(&d.up);
    return d;
}

static void free_data(struct problem_data *d)
{
    matrix_free(&d->matrix);
    matrix_free(&d->up);
    free(d->x);
    free(d->bias);
    free(d->up_bias);
    free(d->residual);
    free(d->w);
    free(d->w_up);
}

/* Counts outputs outside the bound, and notes the largest bound. */
static size_t count_outside(const struct marlin_problem *p, const struct problem_data *d,
                            double *loosest)
{
    ptxgen_error err;
    double c[M * N], bound[M * N];
    size_t outside = 0;
    assert_ok(marlin_reference(p, c, bound, NULL, &err), &err);
    for (size_t m = 0; m < M; m++)
        for (size_t n = 0; n < N; n++) {
            float y = kernel_activate(p->activation, kernel_sum(p, d->w, m, n, p->bias));
            if (p->up)
                y *= kernel_sum(p, d->w_up, m, n, p->up_bias);
            if (p->residual)
                y += (float)ptxgen_element_load(p->y_type, p->residual, m * p->residual_stride + n);
            double stored = ptxgen_element_round(p->y_type, (double)y);
            outside += !(fabs(stored - c[m * N + n]) <= bound[m * N + n]);
            *loosest = fmax(*loosest, bound[m * N + n]);
        }
    return outside;
}

static void every_epilogue_in_f32_is_within_the_bound_and_a_wrong_weight_is_not(void **state)
{
    (void)state;
    struct random r = {2};
    for (int type = 0; type < 3; type++) {
        struct problem_data d = make_data(&r, (ptxgen_element)type);
        for (int variant = 0; variant < 5 * 4; variant++) {
            bool swiglu = variant % 5 == 4;
            struct marlin_problem p = {.m = M,
                                       .w = &d.matrix,
                                       .up = swiglu ? &d.up : NULL,
                                       .x_type = (ptxgen_element)type,
                                       .y_type = (ptxgen_element)type,
                                       .x = d.x,
                                       .x_stride = K + 1,
                                       .bias = variant / 5 % 2 ? d.bias : NULL,
                                       .up_bias = variant / 5 % 2 ? d.up_bias : NULL,
                                       .residual = variant / 10 ? d.residual : NULL,
                                       .residual_stride = N + 2,
                                       .activation = swiglu ? PTXGEN_ACTIVATION_SILU
                                                            : (ptxgen_activation)(variant % 5),
                                       .depth = K,
                                       .weight_type = (ptxgen_element)type,
                                       .activation_error = 0x1p-21};
            double loosest = 0;
            assert_int_equal(count_outside(&p, &d, &loosest), 0);
            assert_true(loosest < (type == PTXGEN_BF16 ? 2 : type == PTXGEN_F16 ? 0.2 : 0.01));

            double kept = d.w[10 * N + 20];
            d.w[10 * N + 20] += type == PTXGEN_BF16 ? 8 : 2;
            assert_true(count_outside(&p, &d, &loosest) > 0);
            d.w[10 * N + 20] = kept;
        }
        free_data(&d);
    }
}

/* Values from the closed forms, by an arbitrary-precision calculator. */
static void activations_have_their_published_values(void **state)
{
    (void)state;
    ptxgen_error err;
    uint8_t codes[16] = {[0] = 9, [1] = 7, [2] = 10};
    float scale = 1;
    const struct {
        ptxgen_activation activation;
        double at[3]; /* f(1), f(−1), f(2) */
    } known[] = {
        {PTXGEN_ACTIVATION_NONE, {1, -1, 2}},
        {PTXGEN_ACTIVATION_SILU, {0.7310585786300049, -0.2689414213699951, 1.7615941559557649}},
        {PTXGEN_ACTIVATION_GELU, {0.8413447460685429, -0.15865525393145705, 1.9544997361036416}},
        {PTXGEN_ACTIVATION_GELU_TANH,
         {0.8411919906082768, -0.15880800939172324, 1.954597694087775}},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        for (int j = 0; j < 3; j++) {
            ptxgen_w4_matrix w = {.k = 1,
                                  .n = 1,
                                  .group_size = -1,
                                  .codes = &codes[j],
                                  .scale_type = PTXGEN_F32,
                                  .scales = &scale};
            float one = 1;
            double y;
            struct marlin_problem p = {
                .m = 1, .w = &w, .x = &one, .x_stride = 1, .activation = known[i].activation};
            assert_ok(marlin_reference(&p, &y, NULL, NULL, &err), &err);
            assert_true(fabs(y - known[i].at[j]) < 1e-15);
        }
}

static void nothing_is_promised_where_f32_overflows_and_nonfinite_rows_stay_alone(void **state)
{
    (void)state;
    ptxgen_error err;
    struct random r = {3};
    ptxgen_w4_matrix w = matrix_random(&r, 32, 8, 32, PTXGEN_F32, true, false);
    for (int n = 0; n < 8; n++)
        ptxgen_element_store(PTXGEN_F32, w.scales, (size_t)n, 1);
    float x[3][32] = {{3e38f, -3e38f}, {NAN}, {1}};
    double y[3][8], bound[3][8];
    struct marlin_problem p = {.m = 3, .w = &w, .x = x, .x_stride = 32, .depth = 32};
    memset(w.codes, 15, 16);
    memset(w.zeros, 0, 8);
    assert_ok(marlin_reference(&p, &y[0][0], &bound[0][0], NULL, &err), &err);
    for (int n = 0; n < 8; n++) {
        assert_true(isnan(bound[0][n]));
        assert_true(isnan(y[1][n]) && bound[1][n] == 0);
        assert_true(y[2][n] == 15 && bound[2][n] > 0 && bound[2][n] < 1e-3);
    }
    float infinite = INFINITY;
    memcpy(w.scales, &infinite, sizeof infinite);
    assert_int_equal(marlin_reference(&p, &y[0][0], NULL, NULL, &err),
                     PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_says(&err, "scales[0, 0] is inf");
    matrix_free(&w);
}

/* −65504 ± 65500 may be anything from −4 to −infinity, and 1 ± 1e6 either infinity. */
static void a_bound_that_passes_the_types_range_admits_every_number(void **state)
{
    (void)state;
    const struct {
        double y, bound, y_settled, bound_settled;
    } cases[] = {{-65504, 65500, -65504, INFINITY},
                 {1, 1e6, 1, INFINITY},
                 {-1e-300, 1e9, -1e-300, INFINITY},
                 {1e6, 1, INFINITY, 0},
                 {1, 1e-3, 1, 1e-3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double y = cases[i].y, bound = cases[i].bound;
        ptxgen_bound_settle(PTXGEN_F16, &y, &bound);
        assert_true(y == cases[i].y_settled);
        assert_true(bound == cases[i].bound_settled);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gptq_of_any_version_zero_point_group_and_order_multiplies_as_defined),
        cmocka_unit_test(gptq_repacked_for_marlin_multiplies_as_defined),
        cmocka_unit_test(every_epilogue_in_f32_is_within_the_bound_and_a_wrong_weight_is_not),
        cmocka_unit_test(activations_have_their_published_values),
        cmocka_unit_test(a_bound_that_passes_the_types_range_admits_every_number),
        cmocka_unit_test(nothing_is_promised_where_f32_overflows_and_nonfinite_rows_stay_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
