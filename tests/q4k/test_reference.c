/* SPDX-License-Identifier: Apache-2.0 */
/* The double-precision reference: its values, its rules, and a bound that holds and bites. */
#include "tests/status.h"

#include "golden.h"
#include "tests/gguf/exact.h"
#include "tests/random.h"
#include "src/kernels/bound.h"
#include "src/kernels/rmsnorm_q4k/reference.h"

#include <float.h>
#include <math.h>

enum { K = 512, N = 24, M = 3, ROW_BYTES = K / 256 * 144 };

/* A problem with storage of its own; every array is filled by make_case. */
struct test_case {
    struct rmsnorm_q4k_problem p;
    unsigned char x[M * (K + 8) * 4], residual[M * (K + 8) * 4], sum[M * (K + 8) * 4];
    float gamma[K], bias[N];
    uint8_t w[N * ROW_BYTES];
    double y[M * N], bound[M * N];
};

/* Chain of K additions: the simplest kernel, and the deepest. */
static struct test_case *make_case(ptxgen_element x_type, ptxgen_element y_type, uint64_t seed)
{
    struct test_case *c = calloc(1, sizeof *c);
    assert_non_null(c);
    struct random r = {seed};
    random_fill(&r, c->w, sizeof c->w);
    for (int b = 0; b < N * K / 256; b++) { /* weights within 0.3 or so, of both signs */
        ptxgen_element_store(PTXGEN_F16, c->w + b * 144, 0, 3e-4 * (1 + random_uniform(&r)));
        ptxgen_element_store(PTXGEN_F16, c->w + b * 144, 1, 2.5e-3 * (1 + random_uniform(&r)));
    }
    for (int n = 0; n < N; n++)
        c->bias[n] = (float)random_normal(&r);
    for (int k = 0; k < K; k++)
        c->gamma[k] = (float)(1 + 0.2 * random_normal(&r));
    for (size_t i = 0; i < M * (K + 8); i++) {
        ptxgen_element_store(x_type, c->x, i, random_normal(&r));
        ptxgen_element_store(x_type, c->residual, i, random_normal(&r));
    }
    c->p = (struct rmsnorm_q4k_problem){
        .m = M,
        .k = K,
        .n = N,
        .x_type = x_type,
        .y_type = y_type,
        .x = c->x,
        .x_stride = K + 8,
        .gamma = c->gamma,
        .w = c->w,
        .eps = 1e-5f,
        .dot_depth = 2 * K,
        .square_depth = K,
    };
    return c;
}

static void run(struct test_case *c)
{
    ptxgen_error err;
    assert_ok(
        rmsnorm_q4k_reference(&c->p, &(struct rmsnorm_q4k_results){c->y, c->bound, NULL}, &err),
        &err);
}

static void use_residual(struct test_case *c)
{
    c->p.residual = c->residual;
    c->p.residual_stride = K + 8;
    c->p.sum = c->sum;
    c->p.sum_stride = K + 8;
}

/* ---- f32 "kernels" to hold against the bound ---- */

struct kernel_style {
    bool decode_first; /* w = d·sc·q − dmin·m, then Σ w·t; else scale and min parts apart */
    unsigned threads;  /* each sums a slice, then a tree; 1 or a power of two */
};

static float sum_tree(float *partial, unsigned count)
{
    for (unsigned half = count / 2; half > 0; half /= 2)
        for (unsigned i = 0; i < half; i++)
            partial[i] += partial[i + half];
    return partial[0];
}

static float kernel_dot(const struct test_case *c, size_t n, const float *t,
                        struct kernel_style style)
{
    float partial[64] = {0};
    for (size_t j = 0; j < K / 32; j++) {
        struct gguf_block block;
        gguf_unpack_q4_k(c->w + n * ROW_BYTES + j / 8 * 144, &block);
        float scale = block.scale[j % 8], min = block.min[j % 8];
        float *acc = &partial[j % style.threads];
        float codes = 0, plain = 0;
        for (size_t i = 0; i < 32; i++) {
            float q = block.code[j % 8 * 32 + i], x = t[j * 32 + i];
            if (style.decode_first)
                *acc += (scale * q - min) * x;
            codes += q * x;
            plain += x;
        }
        if (!style.decode_first) {
            *acc += scale * codes;
            *acc -= min * plain;
        }
    }
    return sum_tree(partial, style.threads);
}

/* Runs the kernel and counts outputs that the bound rejects; `worst` is the largest error/bound. */
static int count_rejected(struct test_case *c, struct kernel_style style, double *worst)
{
    int rejected = 0;
    unsigned tree = 0;
    while (1u << tree < style.threads)
        tree++;
    c->p.dot_depth = (style.decode_first ? K : 2 * K / 32) / style.threads + tree;
    if (!style.decode_first)
        c->p.dot_depth += 32;
    c->p.square_depth = K;
    run(c);
    for (size_t m = 0; m < M; m++) {
        float t[K], squares = 0;
        for (size_t k = 0; k < K; k++) {
            float x = (float)ptxgen_element_load(c->p.x_type, c->x, m * c->p.x_stride + k);
            t[k] = x * c->gamma[k];
            squares += x * x;
        }
        float rms = 1 / sqrtf(squares * (1.0f / K) + c->p.eps);
        for (size_t n = 0; n < N; n++) {
            float y = kernel_dot(c, n, t, style) * rms;
            if (c->p.bias)
                y += c->bias[n];
            double out = ptxgen_element_round(c->p.y_type, y);
            double error = fabs(out - c->y[m * N + n]);
            rejected += !ptxgen_bound_agrees(out, c->y[m * N + n], c->bound[m * N + n]);
            *worst = fmax(*worst, error / c->bound[m * N + n]);
        }
    }
    return rejected;
}

/* ---- claims ---- */

static void golden_output_agrees_to_the_last_bits(void **state)
{
    (void)state;
    ptxgen_files *store = golden_open();
    const ptxgen_tensor *w = golden_tensor(store, "blk.0.attn_q.weight");
    float *gamma = golden_floats(store, "blk.0.attn_norm.weight");
    float *x = golden_floats(store, "input");
    float *expected = golden_floats(store, "expected.output");
    size_t n = w->shape[0], k = w->shape[1];
    struct rmsnorm_q4k_problem p = {
        .m = 1, .k = k, .n = n, .x = x, .x_stride = k, .gamma = gamma, .w = w->data};
    assert_int_equal(ptxgen_gguf_get_f32(ptxgen_files_gguf(store),
                                         "llama.attention.layer_norm_rms_epsilon", &p.eps, NULL),
                     PTXGEN_OK);
    double *y = calloc(n, sizeof *y), *bound = calloc(n, sizeof *bound);
    assert_int_equal(rmsnorm_q4k_reference(&p, &(struct rmsnorm_q4k_results){y, bound, NULL}, NULL),
                     PTXGEN_OK);
    for (size_t i = 0; i < n; i++) /* stored as f32: half a unit in the last place, no more */
        assert_true((float)y[i] == expected[i]);
    free(y);
    free(bound);
    free(gamma);
    free(x);
    free(expected);
    ptxgen_files_close(store);
}

/* Written from the formula alone, in long double, over the public decoder. */
static void values_agree_with_the_formula(void **state)
{
    (void)state;
    for (int with = 0; with < 2; with++) {
        struct test_case *c = make_case(PTXGEN_BF16, PTXGEN_F32, 10);
        if (with)
            c->p.bias = c->bias;
        run(c);
        for (size_t m = 0; m < M; m++) {
            long double squares = 0;
            for (size_t k = 0; k < K; k++) {
                long double x = ptxgen_element_load(PTXGEN_BF16, c->x, m * c->p.x_stride + k);
                squares += x * x;
            }
            for (size_t n = 0; n < N; n++) {
                double w[K];
                long double sum = 0;
                decode_exactly(PTXGEN_GGUF_Q4_K, c->w + n * ROW_BYTES, K, w);
                for (size_t k = 0; k < K; k++)
                    sum += w[k] * ptxgen_element_load(PTXGEN_BF16, c->x, m * c->p.x_stride + k) *
                           (long double)c->gamma[k];
                sum = sum / sqrtl(squares / K + c->p.eps) + (with ? c->bias[n] : 0);
                assert_true(fabsl(sum - c->y[m * N + n]) <= 1e-13L);
            }
        }
        free(c);
    }
}

static void residual_is_rounded_to_the_type_and_written_back(void **state)
{
    (void)state;
    static const ptxgen_element types[] = {PTXGEN_F32, PTXGEN_F16, PTXGEN_BF16};
    for (size_t i = 0; i < 3; i++) {
        struct test_case *added = make_case(types[i], PTXGEN_F32, 11);
        struct test_case *plain = make_case(types[i], PTXGEN_F32, 11);
        memset(added->sum, 0xA5, sizeof added->sum);
        use_residual(added);
        run(added);
        for (size_t m = 0; m < M; m++)
            for (size_t k = 0; k < K; k++) {
                size_t at = m * (K + 8) + k;
                float x = (float)ptxgen_element_load(types[i], added->x, at);
                float r = (float)ptxgen_element_load(types[i], added->residual, at);
                double sum = ptxgen_element_round(types[i], (double)(x + r)); /* as in f32 */
                assert_true(ptxgen_element_load(types[i], added->sum, at) == sum);
                ptxgen_element_store(types[i], plain->x, at, sum);
            }
        size_t size = ptxgen_element_size(types[i]); /* between rows nothing is touched */
        for (size_t b = K * size; b < (K + 8) * size; b++)
            assert_int_equal(added->sum[b], 0xA5);
        run(plain);
        assert_memory_equal(added->y, plain->y, sizeof plain->y);
        assert_memory_equal(added->bound, plain->bound, sizeof plain->bound);
        free(added);
        free(plain);
    }
}

static void residual_sum_may_replace_the_residual(void **state)
{
    (void)state;
    struct test_case *apart = make_case(PTXGEN_F16, PTXGEN_F16, 12);
    struct test_case *in_place = make_case(PTXGEN_F16, PTXGEN_F16, 12);
    use_residual(apart);
    use_residual(in_place);
    in_place->p.sum = in_place->residual;
    run(apart);
    run(in_place);
    assert_memory_equal(apart->y, in_place->y, sizeof apart->y);
    for (size_t m = 0; m < M; m++)
        assert_memory_equal(apart->sum + m * (K + 8) * 2, in_place->residual + m * (K + 8) * 2,
                            K * 2);
    free(apart);
    free(in_place);
}

static void a_row_that_is_not_finite_is_nan_and_no_other(void **state)
{
    (void)state;
    const double bad[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < 3; i++) {
        struct test_case *good = make_case(PTXGEN_F16, PTXGEN_F16, 13);
        struct test_case *c = make_case(PTXGEN_F16, PTXGEN_F16, 13);
        ptxgen_element_store(PTXGEN_F16, c->x, 1 * (K + 8) + 77, bad[i]);
        c->p.bias = good->p.bias = c->bias;
        run(good);
        run(c);
        for (size_t n = 0; n < N; n++) {
            assert_true(isnan(c->y[N + n]));
            assert_true(c->y[n] == good->y[n]);
            assert_true(c->y[2 * N + n] == good->y[2 * N + n]);
            assert_true(ptxgen_bound_agrees(NAN, c->y[N + n], c->bound[N + n]));
            assert_false(ptxgen_bound_agrees(0, c->y[N + n], c->bound[N + n]));
        }
        free(good);
        free(c);
    }
}

static void a_residual_that_overflows_makes_its_row_nan(void **state)
{
    (void)state;
    struct test_case *c = make_case(PTXGEN_F16, PTXGEN_F16, 14);
    use_residual(c);
    ptxgen_element_store(PTXGEN_F16, c->x, 5, 65504);
    ptxgen_element_store(PTXGEN_F16, c->residual, 5, 16);
    run(c);
    assert_true(isnan(c->y[0]));
    assert_false(isnan(c->y[N]));
    free(c);
}

static void a_row_of_zeros_gives_the_bias(void **state)
{
    (void)state;
    struct test_case *c = make_case(PTXGEN_F32, PTXGEN_F32, 15);
    memset(c->x, 0, K * sizeof(float));
    c->p.bias = c->bias;
    for (float eps = 1e-12f; eps < 1e-2f; eps *= 1e3f) {
        c->p.eps = eps;
        run(c);
        for (size_t n = 0; n < N; n++) {
            assert_true(c->y[n] == (double)c->bias[n]);
            assert_true(c->bound[n] <= 0x1p-23 * fabs(c->y[n]) + 1e-30);
        }
    }
    c->p.eps = 0;
    run(c);
    assert_true(isnan(c->y[0]));
    assert_false(isnan(c->y[N]));
    free(c);
}

static void outputs_beyond_the_type_are_infinite(void **state)
{
    (void)state;
    struct test_case *c = make_case(PTXGEN_F32, PTXGEN_F16, 16);
    c->p.bias = c->bias;
    c->bias[0] = 70000;
    c->bias[1] = -70000;
    c->bias[2] = 65520; /* with |y - bias| small, rounding decides */
    for (size_t k = 0; k < K; k++)
        c->gamma[k] *= 1e-6f;
    run(c);
    assert_true(c->y[0] == INFINITY && c->bound[0] == 0);
    assert_true(c->y[1] == -INFINITY && c->bound[1] == 0);
    assert_true(ptxgen_bound_agrees(INFINITY, c->y[0], c->bound[0]));
    assert_false(ptxgen_bound_agrees(65504, c->y[0], c->bound[0]));
    assert_true(ptxgen_bound_agrees(INFINITY, c->y[2], c->bound[2]));
    assert_true(ptxgen_bound_agrees(65504, c->y[2], c->bound[2]));
    assert_false(ptxgen_bound_agrees(NAN, c->y[2], c->bound[2]));
    c->p.y_type = PTXGEN_BF16;
    run(c);
    assert_true(fabs(c->y[0] - 70000) < 1);
    free(c);
}

static void scale_x(struct test_case *c, double by)
{
    for (size_t i = 0; i < M * (K + 8); i++) {
        double x = ptxgen_element_load(c->p.x_type, c->x, i);
        ptxgen_element_store(c->p.x_type, c->x, i, by * x);
    }
}

static void nothing_is_promised_where_f32_sums_could_overflow(void **state)
{
    (void)state;
    struct test_case *c = make_case(PTXGEN_F32, PTXGEN_F32, 17);
    scale_x(c, 1e36); /* Σ|q·t| near 3e39 */
    run(c);
    for (size_t i = 0; i < M * N; i++) {
        assert_true(isfinite(c->y[i]) && isnan(c->bound[i]));
        assert_true(ptxgen_bound_agrees(NAN, c->y[i], c->bound[i]));
    }
    free(c);
}

static void squares_beyond_f32_change_nothing(void **state)
{
    (void)state;
    struct test_case *plain = make_case(PTXGEN_F32, PTXGEN_F32, 17);
    struct test_case *large = make_case(PTXGEN_F32, PTXGEN_F32, 17);
    scale_x(large, 0x1p70);
    plain->p.eps = large->p.eps = 0;
    run(plain);
    run(large);
    for (size_t i = 0; i < M * N; i++) {
        assert_true(fabs(plain->y[i] - large->y[i]) <= 1e-13);
        assert_true(fabs(plain->bound[i] - large->bound[i]) <= 1e-6 * plain->bound[i]);
    }
    free(plain);
    free(large);
}

static void a_product_with_gamma_that_f32_cannot_hold_makes_its_row_nan(void **state)
{
    (void)state;
    struct test_case *c = make_case(PTXGEN_F32, PTXGEN_F32, 17);
    c->gamma[40] = 1e30f;
    ptxgen_element_store(PTXGEN_F32, c->x, 1 * (K + 8) + 40, 1e9);
    ptxgen_element_store(PTXGEN_F32, c->x, 2 * (K + 8) + 40, 1e7);
    run(c);
    assert_false(isnan(c->y[0]));
    assert_true(isnan(c->y[N]));
    assert_false(isnan(c->y[2 * N]));
    free(c);
}

/* A super-block whose scales and minima are all `scale`, and whose codes are all `code`. */
static void store_uniform(uint8_t *block, double d, double dmin, unsigned scale, unsigned code)
{
    ptxgen_element_store(PTXGEN_F16, block, 0, d);
    ptxgen_element_store(PTXGEN_F16, block, 1, dmin);
    memset(block + 4, (int)(scale | scale >> 4 << 6), 8);
    memset(block + 12, (int)(scale & 15) * 0x11, 4);
    memset(block + 16, (int)code * 0x11, 128);
}

/* One large t with a weight of 0 beside small ones: what its super-block's pieces may lose. */
static void operand_floor_counts_the_largest_of_each_super_block(void **state)
{
    (void)state;
    struct test_case *c = make_case(PTXGEN_F32, PTXGEN_F32, 23);
    c->p.dot_depth = c->p.square_depth = 0;
    for (int b = 0; b < N * K / 256; b++) { /* w = 1, but 0 for weight 0 and all of block 1 */
        store_uniform(c->w + b * 144, b % 2 ? 0 : 1, 0, 1, 1);
        c->w[b * 144 + 16] = 0x10;
    }
    for (size_t m = 0; m < M; m++)
        for (size_t k = 0; k < K; k++)
            ptxgen_element_store(PTXGEN_F32, c->x, m * c->p.x_stride + k, k % 256 ? 0x1p-20 : 1024);
    for (size_t k = 0; k < K; k++)
        c->gamma[k] = 1;
    double without[M * N];
    run(c);
    memcpy(without, c->bound, sizeof without);
    c->p.operand_floor = 0x1p-40;
    run(c);
    double rms = sqrt(2 * 1024.0 * 1024.0 / K), lost = 255 * 1024 * 0x1p-40 / rms;
    for (size_t i = 0; i < M * N; i++) {
        double added = c->bound[i] - without[i];
        assert_true(added >= lost && added <= 1.001 * lost);
    }
    free(c);
}

static void f32_kernels_stay_within_the_bound(void **state)
{
    (void)state;
    static const struct kernel_style styles[] = {{false, 1}, {false, 8}, {true, 1}, {true, 16}};
    static const ptxgen_element types[] = {PTXGEN_F32, PTXGEN_F16, PTXGEN_BF16};
    double worst[3] = {0};
    for (uint64_t seed = 0; seed < 20; seed++)
        for (size_t s = 0; s < 4; s++)
            for (size_t y = 0; y < 3; y++) {
                struct test_case *c = make_case(types[seed % 3], types[y], 100 + seed);
                if (seed & 1)
                    c->p.bias = c->bias;
                assert_int_equal(count_rejected(c, styles[s], &worst[y]), 0);
                free(c);
            }
    /* and it is not far from what happens: rounding to a half decides, f32 sums err less */
    assert_true(worst[PTXGEN_F32] > 0.01);
    assert_true(worst[PTXGEN_F16] > 0.5);
    assert_true(worst[PTXGEN_BF16] > 0.9);
}

/* All weights alike, made of a large scale part less a large min part: Σ nearly cancels. */
static void cancelling_scale_and_min_parts_stay_within_the_bound(void **state)
{
    (void)state;
    double worst = 0, largest_y = 0, smallest_bound = INFINITY, depth = 0;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct test_case *c = make_case(PTXGEN_F32, PTXGEN_F32, 200 + seed);
        struct random r = {seed};
        for (int b = 0; b < N * K / 256; b++) {
            double dmin = 7 * 0.25f + (float)(1e-3 * random_uniform(&r));
            store_uniform(c->w + b * 144, 0.25, dmin, 63, 7);
        }
        for (size_t i = 0; i < M * (K + 8); i++) /* one sign, so that Σt is large as well */
            ptxgen_element_store(PTXGEN_F32, c->x, i, 1 + random_uniform(&r));
        assert_int_equal(count_rejected(c, (struct kernel_style){false, 8}, &worst), 0);
        for (size_t i = 0; i < M * N; i++) {
            largest_y = fmax(largest_y, fabs(c->y[i]));
            smallest_bound = fmin(smallest_bound, c->bound[i]);
        }
        depth = c->p.dot_depth;
        free(c);
    }
    /* the kernel errs by more than a bound from Σ|w·t|, here |y|, would allow it */
    assert_true(worst * smallest_bound > 10 * depth * 0x1p-24 * largest_y);
}

/*
 * One term, nothing to cancel, and every rounding as large as its model allows and in the same
 * direction: three products, two units in 1/rms, rsqrt, the last product, the bias.
 */
static void bound_covers_the_worst_of_every_rounding_and_little_more(void **state)
{
    (void)state;
    const double u = 0x1p-24;
    for (int with_bias = 0; with_bias < 2; with_bias++) {
        struct test_case *c = make_case(PTXGEN_F32, PTXGEN_F32, 22);
        for (int b = 0; b < N * K / 256; b++)
            memset(c->w + b * 144 + 2, 0, 2); /* dmin = 0 */
        memset(c->x, 0, sizeof c->x);
        for (size_t m = 0; m < M; m++)
            ptxgen_element_store(PTXGEN_F32, c->x, m * c->p.x_stride + 5 + m, 1.5);
        c->p.dot_depth = c->p.square_depth = 0;
        run(c);
        double z[M * N];
        memcpy(z, c->y, sizeof z);
        c->p.bias = with_bias ? c->bias : NULL;
        for (int n = 0; n < N; n++)
            c->bias[n] = 1;
        run(c);
        for (int i = 0; i < M * N; i++) {
            double out = z[i] * (1 + 3 * u) * (1 + 2 * u) * (1 + pow(2, -22.9)) * (1 + u);
            if (z[i] <= 0)
                continue;
            if (with_bias)
                out = (out + 1) * (1 + u);
            assert_true(ptxgen_bound_agrees(out, c->y[i], c->bound[i]));
            assert_true(c->bound[i] <= 1.001 * fabs(out - c->y[i]));
        }
        free(c);
    }
}

static void small_outputs_of_f16_get_subnormal_spacing(void **state)
{
    (void)state;
    struct test_case *c = make_case(PTXGEN_F16, PTXGEN_F16, 18);
    for (size_t k = 0; k < K; k++)
        c->gamma[k] *= 1e-7f;
    run(c);
    for (size_t i = 0; i < M * N; i++) {
        assert_true(fabs(c->y[i]) < 1e-5);
        assert_true(c->bound[i] >= 0x1p-25 && c->bound[i] < 0x1.2p-25);
        assert_true(
            ptxgen_bound_agrees(ptxgen_element_round(PTXGEN_F16, c->y[i]), c->y[i], c->bound[i]));
    }
    free(c);
}

/* mean(x²) near 1e-4, so that ε = 1e-5 counts */
static struct test_case *make_small_x_case(void)
{
    struct test_case *c = make_case(PTXGEN_F32, PTXGEN_F32, 19);
    scale_x(c, 0.01);
    return c;
}

/* The faults of kernels seen in the field, each on nearly every output. */
static void bound_rejects_wrong_kernels(void **state)
{
    (void)state;
    struct test_case *right = make_small_x_case();
    right->p.dot_depth = 64;
    right->p.square_depth = 64;
    run(right);
    enum { NO_EPSILON, FIRST_ELEMENT, ONE_TERM_LOST, SCALE_OF_NEIGHBOUR, FAULTS };
    for (int fault = 0; fault < FAULTS; fault++) {
        struct test_case *c = make_small_x_case();
        for (size_t m = 0; m < M; m++) {
            if (fault == FIRST_ELEMENT) /* 1/rms stored over x[0] */
                ptxgen_element_store(PTXGEN_F32, c->x, m * c->p.x_stride, 95);
            if (fault == ONE_TERM_LOST)
                ptxgen_element_store(PTXGEN_F32, c->x, m * c->p.x_stride + K - 1, 0);
        }
        if (fault == NO_EPSILON)
            c->p.eps = 0;
        for (size_t n = 0; n < N && fault == SCALE_OF_NEIGHBOUR; n++)
            c->w[n * ROW_BYTES + 4 + 9] ^= 1; /* sub-block 5, the lowest bit */
        run(c);
        int rejected = 0;
        for (size_t i = 0; i < M * N; i++)
            rejected += !ptxgen_bound_agrees(c->y[i], right->y[i], right->bound[i]);
        assert_true(rejected >= M * N * 9 / 10);
        free(c);
    }
    free(right);
}

static void no_tokens_or_no_outputs_touch_nothing(void **state)
{
    (void)state;
    struct test_case *c = make_case(PTXGEN_F32, PTXGEN_F32, 20);
    c->p.m = 0;
    c->p.x = NULL;
    assert_int_equal(
        rmsnorm_q4k_reference(&c->p, &(struct rmsnorm_q4k_results){NULL, NULL, NULL}, NULL),
        PTXGEN_OK);
    c->p.m = M;
    c->p.x = c->x;
    c->p.n = 0;
    c->p.w = NULL;
    assert_int_equal(
        rmsnorm_q4k_reference(&c->p, &(struct rmsnorm_q4k_results){NULL, NULL, NULL}, NULL),
        PTXGEN_OK);
    free(c);
}

static void expect_refusal(struct test_case *c, ptxgen_status status, const char *sentence)
{
    ptxgen_error err;
    assert_int_equal(
        rmsnorm_q4k_reference(&c->p, &(struct rmsnorm_q4k_results){c->y, c->bound, NULL}, &err),
        status);
    assert_string_equal(err.message, sentence);
    free(c);
}

static struct test_case *plain_case(void)
{
    return make_case(PTXGEN_F32, PTXGEN_F32, 21);
}

static void bad_problems_are_refused_by_name(void **state)
{
    (void)state;
    struct test_case *c = plain_case();
    c->p.x_stride = K - 1;
    expect_refusal(c, PTXGEN_ERROR_INVALID_ARGUMENT, "x_stride = 511 is less than K = 512");
    c = plain_case();
    use_residual(c);
    c->p.residual_stride = 3;
    expect_refusal(c, PTXGEN_ERROR_INVALID_ARGUMENT, "residual_stride = 3 is less than K = 512");
    c = plain_case();
    c->gamma[9] = INFINITY;
    expect_refusal(c, PTXGEN_ERROR_INVALID_ARGUMENT, "gamma[9] is inf, not finite");
    c = plain_case();
    c->p.bias = c->bias;
    c->bias[3] = NAN;
    expect_refusal(c, PTXGEN_ERROR_INVALID_ARGUMENT, "bias[3] is nan, not finite");
    c = plain_case();
    c->w[5 * ROW_BYTES + 144 + 3] = 0x7C; /* dmin of row 5, block 1 */
    expect_refusal(c, PTXGEN_ERROR_INVALID_ARGUMENT,
                   "row 5 of W has a super-block (1) whose scale or minimum is not finite");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_output_agrees_to_the_last_bits),
        cmocka_unit_test(values_agree_with_the_formula),
        cmocka_unit_test(residual_is_rounded_to_the_type_and_written_back),
        cmocka_unit_test(residual_sum_may_replace_the_residual),
        cmocka_unit_test(a_row_that_is_not_finite_is_nan_and_no_other),
        cmocka_unit_test(a_residual_that_overflows_makes_its_row_nan),
        cmocka_unit_test(a_row_of_zeros_gives_the_bias),
        cmocka_unit_test(outputs_beyond_the_type_are_infinite),
        cmocka_unit_test(nothing_is_promised_where_f32_sums_could_overflow),
        cmocka_unit_test(squares_beyond_f32_change_nothing),
        cmocka_unit_test(a_product_with_gamma_that_f32_cannot_hold_makes_its_row_nan),
        cmocka_unit_test(operand_floor_counts_the_largest_of_each_super_block),
        cmocka_unit_test(f32_kernels_stay_within_the_bound),
        cmocka_unit_test(cancelling_scale_and_min_parts_stay_within_the_bound),
        cmocka_unit_test(bound_covers_the_worst_of_every_rounding_and_little_more),
        cmocka_unit_test(small_outputs_of_f16_get_subnormal_spacing),
        cmocka_unit_test(bound_rejects_wrong_kernels),
        cmocka_unit_test(no_tokens_or_no_outputs_touch_nothing),
        cmocka_unit_test(bad_problems_are_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
