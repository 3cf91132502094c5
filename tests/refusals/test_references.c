/* SPDX-License-Identifier: Apache-2.0 */
/* Every rule of the problems that the host's references take. */
#include "src/kernels/marlin/reference.h"
#include "tests/marlin/support.h"

#include <ptxgen/dense.h>
#include <ptxgen/gguf_linear.h>
#include <ptxgen/gguf_rows.h>
#include <ptxgen/quantise.h>
#include <ptxgen/rmsnorm_q4k.h>
#include <ptxgen/sparse24.h>
#include <ptxgen/w8a8.h>

#include <math.h>

#define INVALID PTXGEN_ERROR_INVALID_ARGUMENT
#define UNSUPPORTED PTXGEN_ERROR_UNSUPPORTED
#define REFUSED(status, call, sentence) assert_refusal(call, &err, status, sentence)
#define TAKEN(call) assert_ok(call, &err)

static void dense_reference_takes_rows_that_do_not_overlap(void **state)
{
    (void)state;
    enum { N = 24, K = 16 };
    const ptxgen_dense_spec spec = {
        .n = N, .k = K, .max_m = 2, .type = PTXGEN_F16, .bias = 1, .residual = 1};
    const ptxgen_target target = target_of("sm_80");
    uint16_t x[2 * K] = {0}, w[N * K] = {0}, bias[N] = {0}, residual[2 * N] = {0};
    double y[2 * N], bound[2 * N];
    ptxgen_dense_plan plan;
    ptxgen_error err = {0};
    TAKEN(ptxgen_dense_make_plan(&spec, &target, &plan, &err));
    const ptxgen_dense_operands good = {.m = 2,
                                        .x = x,
                                        .w = w,
                                        .bias = bias,
                                        .residual = residual,
                                        .x_stride = K,
                                        .w_stride = K,
                                        .residual_stride = N};
    ptxgen_dense_operands o = good;
#define CHANGED(change, sentence)                                                                  \
    o = good;                                                                                      \
    change;                                                                                        \
    REFUSED(INVALID, ptxgen_dense_reference(&plan, &o, y, bound, &err), sentence)
    TAKEN(ptxgen_dense_reference(&plan, &o, y, bound, &err));
    CHANGED(o.x = NULL, "dense: x is NULL");
    CHANGED(o.w = NULL, "dense: w is NULL");
    CHANGED(o.bias = NULL, "dense: bias is NULL");
    CHANGED(o.residual = NULL, "dense: residual is NULL");
    CHANGED(o.x_stride = 15, "dense: the row stride of x, 15, is below its 16 columns");
    CHANGED(o.w_stride = 15, "dense: the row stride of w, 15, is below its 16 columns");
    CHANGED(o.residual_stride = 23,
            "dense: the row stride of residual, 23, is below its 24 columns");
    CHANGED(o.m = 3, "dense: m = 3 is above the 2 tokens that the plan serves");
    bias[5] = 0x7C00;
    CHANGED((void)0, "dense: bias[5] is inf, not finite");
#undef CHANGED
}

static void marlin_reference_takes_matrices_of_one_shape(void **state)
{
    (void)state;
    struct random r = {1};
    ptxgen_w4_matrix w = matrix_random(&r, 32, 16, 16, PTXGEN_F32, false, false),
                     other = matrix_random(&r, 48, 16, 16, PTXGEN_F32, false, false);
    float x[2 * 32] = {0}, residual[2 * 16] = {0};
    double y[2 * 16], bound[2 * 16];
    ptxgen_error err = {0};
    const struct marlin_problem good = {.m = 2,
                                        .w = &w,
                                        .x = x,
                                        .x_stride = 32,
                                        .residual = residual,
                                        .residual_stride = 16,
                                        .depth = 32};
    struct marlin_problem p = good;
#define CHANGED(change, sentence)                                                                  \
    p = good;                                                                                      \
    change;                                                                                        \
    REFUSED(INVALID, marlin_reference(&p, y, bound, NULL, &err), sentence)
    TAKEN(marlin_reference(&p, y, bound, NULL, &err));
    CHANGED(p.x = NULL, "marlin: x is NULL");
    CHANGED(p.x_stride = 31, "marlin: the row stride of x, 31, is below its 32 columns");
    CHANGED(p.residual_stride = 15,
            "marlin: the row stride of residual, 15, is below its 16 columns");
    CHANGED((p.up = &other, p.activation = PTXGEN_ACTIVATION_SILU),
            "up is [48, 16], but w is [32, 16]");
    CHANGED((p.up = &w, p.activation = PTXGEN_ACTIVATION_GELU),
            "the activation is 2, but SwiGLU's is SiLU");
    ((float *)w.scales)[16 + 3] = NAN;
    CHANGED((void)0, "scales[1, 3] is nan, not finite");
    matrix_free(&w);
    matrix_free(&other);
#undef CHANGED
}

static void rmsnorm_q4k_reference_takes_rows_of_its_outputs(void **state)
{
    (void)state;
    enum { K = 256, N = 3 };
    const ptxgen_rmsnorm_q4k_spec spec = {.k = K,
                                          .n = {N},
                                          .max_m = 2,
                                          .x_type = PTXGEN_F32,
                                          .y_type = PTXGEN_F32,
                                          .bias = 1,
                                          .residual = 1};
    const ptxgen_target target = target_of("sm_80");
    float x[2 * K] = {0}, gamma[K] = {0}, bias[N] = {0};
    unsigned char weights[N * 144] = {0};
    double y[2 * N], bound[2 * N];
    ptxgen_rmsnorm_q4k_plan plan;
    ptxgen_error err = {0};
    TAKEN(ptxgen_rmsnorm_q4k_make_plan(&spec, &target, &plan, &err));
    const ptxgen_rmsnorm_q4k_operands good = {
        .x = x, .residual = x, .gamma = gamma, .w = {weights}, .bias = {bias}, .m = 2};
    ptxgen_rmsnorm_q4k_operands o = good;
#define REFERENCE(matrix, first, rows)                                                             \
    ptxgen_rmsnorm_q4k_reference(&plan, &o, matrix, first, rows, y, bound, NULL, &err)
#define CHANGED(change, sentence)                                                                  \
    o = good;                                                                                      \
    change;                                                                                        \
    REFUSED(INVALID, REFERENCE(0, 0, N), sentence)
    TAKEN(REFERENCE(0, 0, N));
    TAKEN(REFERENCE(0, N, 0));
    TAKEN(REFERENCE(2, 0, 0));
    REFUSED(INVALID, REFERENCE(0, 1, N),
            "rmsnorm_q4k: the plan has no features 1 to 4 of output 0");
    REFUSED(INVALID, REFERENCE(0, N + 1, 0),
            "rmsnorm_q4k: the plan has no features 4 to 4 of output 0");
    REFUSED(INVALID, REFERENCE(0, 1, UINT32_MAX),
            "rmsnorm_q4k: the plan has no features 1 to 4294967296 of output 0");
    REFUSED(INVALID, REFERENCE(1, 0, 1),
            "rmsnorm_q4k: the plan has no features 0 to 1 of output 1");
    REFUSED(INVALID, REFERENCE(3, 0, 0),
            "rmsnorm_q4k: the plan has no features 0 to 0 of output 3");
    CHANGED(o.m = 3, "rmsnorm_q4k: m = 3 is above the 2 tokens that the plan serves");
    CHANGED(o.gamma = NULL, "rmsnorm_q4k: gamma is NULL");
    CHANGED(o.x = NULL, "rmsnorm_q4k: x is NULL");
    CHANGED(o.residual = NULL, "rmsnorm_q4k: residual is NULL");
    CHANGED(o.w[0] = NULL, "rmsnorm_q4k: w[0] is NULL");
    CHANGED(o.bias[0] = NULL, "rmsnorm_q4k: bias[0] is NULL");
#undef CHANGED
#undef REFERENCE
}

static void gguf_linear_reference_takes_rows_of_its_outputs(void **state)
{
    (void)state;
    enum { K = 32, N = 3 };
    const ptxgen_gguf_linear_spec spec = {.k = K,
                                          .n = {N},
                                          .max_m = 2,
                                          .w_type = {PTXGEN_GGUF_Q8_0},
                                          .norm = 1,
                                          .residual = PTXGEN_GGUF_LINEAR_AFTER,
                                          .bias = 1};
    const ptxgen_target target = target_of("sm_80");
    float x[2 * K] = {0}, gamma[K] = {0}, bias[N] = {0}, bad[K] = {0};
    unsigned char weights[N * 34] = {0}, infinite[N * 34] = {[34 + 1] = 0x7C};
    double y[2 * N], bound[2 * N];
    ptxgen_gguf_linear_plan plan;
    ptxgen_error err = {0};
    bad[1] = NAN;
    TAKEN(ptxgen_gguf_linear_make_plan(&spec, &target, &plan, &err));
    const ptxgen_gguf_linear_operands good = {.m = 2,
                                              .x = x,
                                              .residual = x,
                                              .gamma = gamma,
                                              .post_gamma = gamma,
                                              .w = {weights},
                                              .bias = {bias}};
    ptxgen_gguf_linear_operands o = good;
#define REFERENCE(matrix, first, rows)                                                             \
    ptxgen_gguf_linear_reference(&plan, &o, matrix, first, rows, y, bound, NULL, &err)
#define CHANGED(change, sentence)                                                                  \
    o = good;                                                                                      \
    change;                                                                                        \
    REFUSED(INVALID, REFERENCE(0, 0, N), sentence)
    TAKEN(REFERENCE(0, 0, N));
    TAKEN(REFERENCE(0, N, 0));
    TAKEN(REFERENCE(2, 0, 0));
    REFUSED(INVALID, REFERENCE(0, 1, N),
            "gguf_linear: the plan has no features 1 to 4 of output 0");
    REFUSED(INVALID, REFERENCE(1, 0, 1),
            "gguf_linear: the plan has no features 0 to 1 of output 1");
    REFUSED(INVALID, REFERENCE(3, 0, 0),
            "gguf_linear: the plan has no features 0 to 0 of output 3");
    CHANGED(o.m = 3, "gguf_linear: m = 3 is above the 2 tokens that the plan serves");
    CHANGED(o.gamma = NULL, "gguf_linear: gamma is NULL");
    CHANGED(o.post_gamma = NULL, "gguf_linear: post_gamma is NULL");
    CHANGED(o.x = NULL, "gguf_linear: x is NULL");
    CHANGED(o.residual = NULL, "gguf_linear: residual is NULL");
    CHANGED(o.w[0] = NULL, "gguf_linear: w[0] is NULL");
    CHANGED(o.bias[0] = NULL, "gguf_linear: bias[0] is NULL");
    CHANGED(o.x_stride = K - 1, "gguf_linear: x_stride = 31 is less than K = 32");
    CHANGED(o.residual_stride = K - 1, "gguf_linear: residual_stride = 31 is less than K = 32");
    CHANGED(o.gamma = bad, "gamma[1] is nan, not finite");
    CHANGED(o.post_gamma = bad, "post_gamma[1] is nan, not finite");
    CHANGED(o.bias[0] = bad, "bias[1] is nan, not finite");
    CHANGED(o.w[0] = infinite,
            "row 1 of w[0] has a block (0) whose scale or minimum is not finite");
#undef CHANGED
#undef REFERENCE
}

static void sparse24_reference_takes_what_its_kernels_do(void **state)
{
    (void)state;
    enum { N = 4, K = 16, M = 2 };
    const ptxgen_sparse24_spec spec = {.n = N,
                                       .k = K,
                                       .max_m = M,
                                       .type = PTXGEN_SPARSE24_S8,
                                       .y_type = PTXGEN_F16,
                                       .bias = 1,
                                       .residual = 1};
    const ptxgen_target target = target_of("sm_80");
    int8_t values[N * K / 2] = {0}, x[M * K] = {0};
    uint16_t bias[N] = {0}, residual[M * N] = {0};
    unsigned char metadata[N * K / 4];
    float x_scale[M] = {1, 1}, w_scale[N] = {1, 1, 1, 1};
    double y[M * N], bound[M * N];
    ptxgen_sparse24_plan plan;
    ptxgen_error err = {0};
    memset(metadata, 0x4, sizeof metadata);
    TAKEN(ptxgen_sparse24_make_plan(&spec, &target, &plan, &err));
    const ptxgen_sparse24_operands good = {.m = M,
                                           .x = x,
                                           .values = {values, sizeof values},
                                           .form = PTXGEN_SPARSE24_BYTES,
                                           .metadata = {metadata, sizeof metadata},
                                           .x_scale = x_scale,
                                           .w_scale = w_scale,
                                           .bias = bias,
                                           .residual = residual};
    ptxgen_sparse24_operands o = good;
#define CHANGED(change, sentence)                                                                  \
    o = good;                                                                                      \
    change;                                                                                        \
    REFUSED(INVALID, ptxgen_sparse24_reference(&plan, &o, y, bound, &err), sentence)
    TAKEN(ptxgen_sparse24_reference(&plan, &o, y, bound, &err));
    CHANGED(o.x = NULL, "sparse24: x is NULL");
    CHANGED(o.x_stride = K - 1, "sparse24: the row stride of x, 15, is below its 16 columns");
    CHANGED(o.bias = NULL, "sparse24: bias is NULL");
    CHANGED(o.residual = NULL, "sparse24: residual is NULL");
    CHANGED(o.residual_stride = N - 1,
            "sparse24: the row stride of residual, 3, is below its 4 columns");
    CHANGED(o.x_scale = NULL, "sparse24: x_scale is NULL");
    CHANGED(o.w_scale = NULL, "sparse24: w_scale is NULL");
    CHANGED(o.values.bytes--, "values has 31 bytes; its shape takes exactly 32");
    CHANGED(o.metadata.bytes--, "byte metadata has 15 bytes; its shape takes exactly 16");
    CHANGED(o.m = M + 1, "sparse24: m = 3 is above the 2 tokens that the plan serves");
    x_scale[1] = INFINITY;
    CHANGED((void)0, "x_scale[1] is inf, not finite");
    x_scale[1] = 1, w_scale[3] = NAN;
    CHANGED((void)0, "w_scale[3] is nan, not finite");
    w_scale[3] = 1, bias[2] = 0x7C00;
    CHANGED((void)0, "sparse24: bias[2] is inf, not finite");
#undef CHANGED
}

static void w8a8_reference_takes_scales_and_rows_that_are_there(void **state)
{
    (void)state;
    enum { N = 3, K = 4 };
    ptxgen_w8a8_spec spec = {
        .k = K, .n = N, .q_min = -100, .q_max = 50, .scales = PTXGEN_W8A8_TOKEN, .asymmetric = 1};
    float x[2 * K] = {0}, x_scale[2] = {1, 1}, w_scale[N] = {1, 1, 1}, y[N];
    int32_t x_zero[2] = {-100, 50}, acc[N];
    int8_t w[N * K] = {0}, codes[K];
    ptxgen_w8a8_token token;
    ptxgen_error err = {0};
    ptxgen_w8a8_operands o = {.x = x,
                              .w = w,
                              .w_scale = w_scale,
                              .x_scale = x_scale,
                              .x_zero = x_zero,
                              .x_stride = K,
                              .m = 2};
#define CODES(m) ptxgen_w8a8_reference_codes(&spec, &o, m, codes, &token, &err)
    REFUSED(INVALID, ptxgen_w8a8_reference_codes(NULL, &o, 0, codes, &token, &err),
            "w8a8: a spec and operands must be given");
#define ROWS(first, rows) ptxgen_w8a8_reference(&spec, &o, codes, &token, first, rows, y, acc, &err)
    TAKEN(CODES(0));
    TAKEN(CODES(1));
    x_zero[0] = -101;
    REFUSED(INVALID, CODES(0), "w8a8: x_zero[0] is -101, not within -100 ... 50");
    x_zero[1] = 51;
    REFUSED(INVALID, CODES(1), "w8a8: x_zero[1] is 51, not within -100 ... 50");
    x_scale[1] = 0;
    REFUSED(INVALID, CODES(1), "w8a8: x_scale[1] is 0, not positive and finite");
    o.x_stride = K - 1;
    REFUSED(INVALID, CODES(0), "w8a8: the row stride of x, 3, is below its 4 columns");
    o.x_stride = 0;
    o.w = NULL;
    REFUSED(INVALID, CODES(0), "w8a8: w is NULL");
    o.w = w;
    spec.residual = 1;
    REFUSED(INVALID, CODES(0), "w8a8: residual is NULL");
    o.residual = x;
    o.residual_stride = N - 1;
    REFUSED(INVALID, CODES(0), "w8a8: the row stride of residual, 2, is below its 3 columns");
    o.residual_stride = 0;
    TAKEN(ROWS(0, N));
    TAKEN(ROWS(N, 0));
    REFUSED(INVALID, ROWS(1, N), "w8a8: features 1 to 4 of N = 3");
    REFUSED(INVALID, ROWS(N + 1, 0), "w8a8: features 4 to 4 of N = 3");
    REFUSED(INVALID, ROWS(1, UINT32_MAX), "w8a8: features 1 to 4294967296 of N = 3");
    spec =
        (ptxgen_w8a8_spec){.k = K, .n = N, .codes = PTXGEN_W8A8_E4M3, .group = PTXGEN_W8A8_GROUP};
    o = (ptxgen_w8a8_operands){.x = x, .w = w, .w_scale = w_scale, .m = 1};
    token.scales = NULL;
    REFUSED(INVALID, CODES(0),
            "w8a8: token.scales is NULL; with a group of 128 it has room for 1 scales");
    token.scales = x_scale;
    TAKEN(CODES(0));
#undef CODES
#undef ROWS
}

static void quantise_reference_takes_tokens_that_are_there(void **state)
{
    (void)state;
    enum { K = 130 };
    const ptxgen_quantise_spec spec = {.k = K,
                                       .epsilon = 1e-5f,
                                       .x_type = PTXGEN_F32,
                                       .group = PTXGEN_QUANTISE_GROUP,
                                       .producer = PTXGEN_QUANTISE_RMSNORM,
                                       .residual = 1};
    float x[2 * K] = {0}, gamma[K] = {0}, scales[2];
    int8_t codes[K];
    ptxgen_error err = {0};
    const ptxgen_quantise_token token = {.codes = codes, .scales = scales};
    const ptxgen_quantise_operands good = {.m = 2, .x = x, .gamma = gamma, .residual = x};
    ptxgen_quantise_operands o = good;
#define REFERENCE(m) ptxgen_quantise_reference(&spec, &o, m, &token, &err)
#define CHANGED(change, sentence)                                                                  \
    o = good;                                                                                      \
    change;                                                                                        \
    REFUSED(INVALID, REFERENCE(1), sentence)
    TAKEN(REFERENCE(1));
    REFUSED(INVALID, REFERENCE(2), "quantise: there is no token 2 among 2");
    CHANGED(o.x = NULL, "quantise: spec, operands, token or an array that the spec needs is NULL");
    CHANGED(o.gamma = NULL,
            "quantise: spec, operands, token or an array that the spec needs is NULL");
    CHANGED(o.residual = NULL,
            "quantise: spec, operands, token or an array that the spec needs is NULL");
    CHANGED(o.x_stride = K - 1, "quantise: a row stride, 129 of x or 0 of residual, is below the "
                                "row's 130 columns");
    CHANGED(o.residual_stride = K - 1, "quantise: a row stride, 0 of x or 129 of residual, is below "
                                       "the row's 130 columns");
#undef REFERENCE
#undef CHANGED
}

static void gguf_rows_reference_takes_rows_that_are_there(void **state)
{
    (void)state;
    const ptxgen_gguf_rows_spec spec = {.k = 2, .w_type = PTXGEN_GGUF_F32, .indexed = 1};
    const float w[2] = {0};
    const int32_t ids[2] = {0};
    float y[2];
    ptxgen_error err = {0};
    const ptxgen_gguf_rows_operands good = {.m = 2, .n = 1, .ids = ids, .w = w};
    ptxgen_gguf_rows_operands o = good;
#define REFERENCE(m) ptxgen_gguf_rows_reference(&spec, &o, m, y, &err)
    TAKEN(REFERENCE(1));
    REFUSED(INVALID, REFERENCE(2), "gguf_rows: there is no row 2 among 2");
    o.ids = NULL;
    REFUSED(INVALID, REFERENCE(1),
            "gguf_rows: spec, operands, y or an array that the spec needs is NULL");
    o = good;
    o.w = NULL;
    REFUSED(INVALID, REFERENCE(1),
            "gguf_rows: spec, operands, y or an array that the spec needs is NULL");
    o.n = 0;
    TAKEN(REFERENCE(1));
#undef REFERENCE
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dense_reference_takes_rows_that_do_not_overlap),
        cmocka_unit_test(marlin_reference_takes_matrices_of_one_shape),
        cmocka_unit_test(rmsnorm_q4k_reference_takes_rows_of_its_outputs),
        cmocka_unit_test(gguf_linear_reference_takes_rows_of_its_outputs),
        cmocka_unit_test(sparse24_reference_takes_what_its_kernels_do),
        cmocka_unit_test(w8a8_reference_takes_scales_and_rows_that_are_there),
        cmocka_unit_test(quantise_reference_takes_tokens_that_are_there),
        cmocka_unit_test(gguf_rows_reference_takes_rows_that_are_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
