/* SPDX-License-Identifier: Apache-2.0 */
/* A layer as one object, of every kind of weights, against the sums of what its weights decode to.
 */
#include "check.h"

#include <ptxgen/emulator.h>
#include <ptxgen/linear.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { M = 5, N = 64, K = 256, GROUP = 64, STRIDE = K + 3 };

struct bench {
    ptxgen_driver driver;
    ptxgen_cu_context context;
    ptxgen_dispatcher *dispatcher;
    float bias[N];
    double w[N][K]; /* what the layer multiplies by */
};

static double draw(void)
{
    static uint32_t state = 1;
    state = state * 1664525u + 1013904223u;
    return (double)(state >> 8) * 0x1p-23 - 1;
}

static int setup(void **state)
{
    static struct bench b;
    int ordinal;
    ptxgen_emulator_driver(&b.driver);
    assert_int_equal(ptxgen_emulator_ordinal("cpu:sm_80", &ordinal, NULL), PTXGEN_OK);
    assert_int_equal(ptxgen_driver_start(&b.driver, NULL), PTXGEN_OK);
    assert_int_equal(b.driver.device_primary_ctx_retain(&b.context, ordinal), 0);
    assert_int_equal(b.driver.ctx_set_current(b.context), 0);
    assert_int_equal(ptxgen_dispatcher_create(&b.driver,
                                              &(ptxgen_dispatch_options){.no_cache = true},
                                              &b.dispatcher, NULL),
                     PTXGEN_OK);
    for (int n = 0; n < N; n++)
        b.bias[n] = (float)draw();
    *state = &b;
    return 0;
}

static int teardown(void **state)
{
    struct bench *b = *state;
    ptxgen_dispatcher_destroy(b->dispatcher);
    b->driver.device_primary_ctx_release(0);
    return 0;
}

/* Runs the layer on x of strided rows, 4 bytes off alignment, and compares all outputs. */
static void assert_computes(const struct bench *b, const ptxgen_linear *linear, ptxgen_element type,
                            bool has_bias, double tolerance)
{
    size_t size = ptxgen_element_size(type);
    unsigned char x[M * STRIDE * 4] = {0}, y[M * N * 4];
    ptxgen_cu_deviceptr on_x, on_y;
    for (int i = 0; i < M * STRIDE; i++)
        ptxgen_element_store(type, x, (size_t)i, draw());
    assert_int_equal(b->driver.mem_alloc(&on_x, sizeof x + 16), 0);
    assert_int_equal(b->driver.mem_alloc(&on_y, sizeof y), 0);
    assert_int_equal(b->driver.memcpy_htod(on_x + 4, x, sizeof x), 0);
    assert_int_equal(b->driver.memset_d8(on_y, 0xFF, sizeof y), 0);
    const ptxgen_linear_args args = {
        .m = M, .x = on_x + 4, .x_stride = STRIDE, .y = on_y, .y_bytes = M * N * size};
    ptxgen_error err = {0};
    if (ptxgen_linear_run(linear, &args, NULL, &err) != PTXGEN_OK)
        fail_msg("%s", err.message);
    assert_int_equal(b->driver.ctx_synchronize(), 0);
    assert_int_equal(b->driver.memcpy_dtoh(y, on_y, sizeof y), 0);
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++) {
            double sum = has_bias ? b->bias[n] : 0, scale = 1;
            for (int k = 0; k < K; k++) {
                double xk = ptxgen_element_load(type, x, (size_t)(m * STRIDE + k));
                sum += xk * b->w[n][k];
                scale += fabs(xk * b->w[n][k]);
            }
            double got = ptxgen_element_load(type, y, (size_t)(m * N + n));
            if (!(fabs(got - sum) <= tolerance * scale))
                fail_msg("y[%d, %d] is %g, not %g", m, n, got, sum);
        }
    b->driver.mem_free(on_x);
    b->driver.mem_free(on_y);
}

static void assert_facts(const ptxgen_linear *linear, const char *family, size_t least_bytes)
{
    assert_int_equal(ptxgen_linear_k(linear), K);
    assert_int_equal(ptxgen_linear_n(linear), N);
    assert_string_equal(ptxgen_linear_family(linear), family);
    assert_true(ptxgen_linear_bytes(linear) >= least_bytes);
}

/* ---- 4 bits ---- */

/* A matrix in the neutral form, in pack-quantized tensors. */
struct packed_w4 {
    ptxgen_w4_matrix matrix;
    ptxgen_w4_checkpoint checkpoint;
};

static void *zeroed(size_t bytes)
{
    void *memory = calloc(1, bytes + 1);
    assert_non_null(memory);
    return memory;
}

static void make_w4(struct bench *b, struct packed_w4 *p, ptxgen_w4_format format)
{
    ptxgen_w4_info info;
    p->matrix = (ptxgen_w4_matrix){.k = K,
                                   .n = N,
                                   .group_size = GROUP,
                                   .codes = zeroed(K * N),
                                   .scale_type = PTXGEN_F16,
                                   .scales = zeroed(K / GROUP * N * 2),
                                   .zeros = zeroed(K / GROUP * N)};
    for (size_t i = 0; i < K / GROUP * N; i++) {
        ptxgen_element_store(PTXGEN_F16, p->matrix.scales, i, 0.02 + 0.01 * draw());
        p->matrix.zeros[i] = (uint8_t)(8 + 4 * draw());
    }
    for (size_t k = 0; k < K; k++)
        for (size_t n = 0; n < N; n++) {
            size_t group = k / GROUP * N + n;
            uint8_t code = (uint8_t)(8 + 7.9 * draw());
            p->matrix.codes[k * N + n] = code;
            b->w[n][k] = ptxgen_element_load(PTXGEN_F16, p->matrix.scales, group) *
                         (code - p->matrix.zeros[group]);
        }
    assert_int_equal(ptxgen_w4_describe_matrix(&p->matrix, &info, NULL), PTXGEN_OK);
    assert_int_equal(ptxgen_w4_layout(&info, format, &p->checkpoint, NULL), PTXGEN_OK);
    ptxgen_w4_tensor *tensors[] = {&p->checkpoint.weights, &p->checkpoint.scales,
                                   &p->checkpoint.zeros, &p->checkpoint.g_idx,
                                   &p->checkpoint.shape};
    for (int i = 0; i < 5; i++)
        if (tensors[i]->shape[0])
            tensors[i]->data = zeroed(ptxgen_w4_tensor_bytes(tensors[i]));
    assert_int_equal(ptxgen_w4_pack(&p->matrix, &p->checkpoint, NULL), PTXGEN_OK);
}

static void free_w4(struct packed_w4 *p)
{
    void *memory[] = {p->matrix.codes,           p->matrix.scales,
                      p->matrix.zeros,           p->checkpoint.weights.data,
                      p->checkpoint.scales.data, p->checkpoint.zeros.data,
                      p->checkpoint.g_idx.data,  p->checkpoint.shape.data};
    for (int i = 0; i < 8; i++)
        free(memory[i]);
}

static void four_bit_weights_of_any_format_become_a_layer(void **state)
{
    struct bench *b = *state;
    static const ptxgen_w4_format formats[] = {PTXGEN_W4_GPTQ_V2, PTXGEN_W4_AWQ,
                                               PTXGEN_W4_PACK_QUANTIZED};
    for (int i = 0; i < 3; i++) {
        struct packed_w4 packed;
        ptxgen_linear *linear;
        const ptxgen_linear_options options = {.max_m = 40, .type = PTXGEN_F16, .bias = b->bias};
        ptxgen_error err = {0};
        make_w4(b, &packed, formats[i]);
        if (ptxgen_linear_from_w4(b->dispatcher, &packed.checkpoint, NULL, &options, &linear,
                                  &err) != PTXGEN_OK)
            fail_msg("%s", err.message);
        free_w4(&packed); /* the layer has its own copy */
        assert_facts(linear, "marlin", K * N / 2);
        assert_computes(b, linear, PTXGEN_F16, true, 2e-3);
        ptxgen_linear_destroy(linear);
    }
}

static void a_gated_pair_is_one_layer(void **state)
{
    struct bench *b = *state;
    struct packed_w4 gate, up;
    ptxgen_linear *linear;
    const ptxgen_linear_options options = {.max_m = 8, .type = PTXGEN_BF16};
    make_w4(b, &gate, PTXGEN_W4_GPTQ_V1);
    make_w4(b, &up, PTXGEN_W4_GPTQ_V1);
    assert_int_equal(ptxgen_linear_from_w4(b->dispatcher, &gate.checkpoint, &up.checkpoint,
                                           &options, &linear, NULL),
                     PTXGEN_OK);
    assert_facts(linear, "marlin", K * N);
    ptxgen_linear_destroy(linear);
    free_w4(&gate);
    free_w4(&up);
}

/* ---- others ---- */

static void floats_become_a_layer_in_eight_bits(void **state)
{
    struct bench *b = *state;
    static float w[N][K];
    for (int n = 0; n < N; n++)
        for (int k = 0; k < K; k++)
            b->w[n][k] = w[n][k] = (float)(0.05 * draw());
    const ptxgen_w8a8_weights weights = {.n = N, .k = K, .type = PTXGEN_F32, .w = w};
    const ptxgen_linear_options options = {.max_m = 200, .type = PTXGEN_F32, .bias = b->bias};
    ptxgen_linear *linear;
    assert_int_equal(ptxgen_linear_from_w8a8(b->dispatcher, &weights, &options, &linear, NULL),
                     PTXGEN_OK);
    assert_facts(linear, "w8a8", K * N);
    assert_computes(b, linear, PTXGEN_F32, true, 1e-2);
    ptxgen_linear_destroy(linear);
}

static void floats_become_a_dense_layer(void **state)
{
    struct bench *b = *state;
    static uint16_t w[N][K];
    for (int n = 0; n < N; n++)
        for (int k = 0; k < K; k++) {
            ptxgen_element_store(PTXGEN_BF16, w[n], (size_t)k, draw());
            b->w[n][k] = ptxgen_element_load(PTXGEN_BF16, w[n], (size_t)k);
        }
    const ptxgen_linear_options options = {.max_m = 17, .type = PTXGEN_BF16};
    ptxgen_linear *linear;
    assert_int_equal(ptxgen_linear_from_floats(b->dispatcher, w, N, K, &options, &linear, NULL),
                     PTXGEN_OK);
    assert_facts(linear, "dense", K * N * 2);
    assert_computes(b, linear, PTXGEN_BF16, false, 8e-3);
    ptxgen_linear_destroy(linear);
}

static void rows_of_a_gguf_type_become_a_layer(void **state)
{
    struct bench *b = *state;
    static const uint32_t types[] = {PTXGEN_GGUF_Q4_K, PTXGEN_GGUF_Q8_0, PTXGEN_GGUF_Q5_0};
    for (int t = 0; t < 3; t++) {
        static unsigned char rows[N * K * 2];
        size_t bytes;
        ptxgen_linear *linear;
        const ptxgen_linear_options options = {.max_m = 8, .type = PTXGEN_F32, .bias = b->bias};
        assert_int_equal(ptxgen_gguf_row_bytes(types[t], K, &bytes, NULL), PTXGEN_OK);
        for (int n = 0; n < N; n++) {
            float w[K];
            for (int k = 0; k < K; k++)
                w[k] = (float)draw();
            assert_int_equal(
                ptxgen_gguf_quantise_row(types[t], w, K, rows + n * bytes, bytes, NULL), PTXGEN_OK);
            assert_int_equal(ptxgen_gguf_decode_row(types[t], rows + n * bytes, bytes, K, w, NULL),
                             PTXGEN_OK);
            for (int k = 0; k < K; k++)
                b->w[n][k] = w[k];
        }
        assert_int_equal(ptxgen_linear_from_gguf(b->dispatcher, types[t], rows, N * bytes, N, K,
                                                 &options, &linear, NULL),
                         PTXGEN_OK);
        assert_facts(linear, "gguf_linear", N * bytes);
        assert_computes(b, linear, PTXGEN_F32, true, 1e-5);
        ptxgen_linear_destroy(linear);
    }
}

/* ---- refusals ---- */

static void what_is_wrong_with_a_layer_is_said(void **state)
{
    struct bench *b = *state;
    static uint16_t w[N][K];
    ptxgen_linear_options options = {.max_m = 4, .type = PTXGEN_F16};
    ptxgen_linear *linear;
    ptxgen_error err = {0};
#define REFUSES(status, says, call)                                                                \
    do {                                                                                           \
        ptxgen_status got = call;                                                                  \
        if (got != status)                                                                         \
            fail_msg("%s", err.message);                                                           \
        assert_string_equal(err.message, says);                                                    \
    } while (0)
    options.max_m = 0;
    REFUSES(PTXGEN_ERROR_INVALID_ARGUMENT, "a layer: max_m = 0 is not from 1 to 65536",
            ptxgen_linear_from_floats(b->dispatcher, w, N, K, &options, &linear, &err));
    assert_null(linear);
    options.max_m = 65537;
    REFUSES(PTXGEN_ERROR_INVALID_ARGUMENT, "a layer: max_m = 65537 is not from 1 to 65536",
            ptxgen_linear_from_floats(b->dispatcher, w, N, K, &options, &linear, &err));
    options = (ptxgen_linear_options){.max_m = 4, .type = PTXGEN_F64};
    REFUSES(PTXGEN_ERROR_INVALID_ARGUMENT, "a layer: type 3 is not f32, f16 or bf16",
            ptxgen_linear_from_floats(b->dispatcher, w, N, K, &options, &linear, &err));
    options.type = PTXGEN_F16;
    REFUSES(PTXGEN_ERROR_INVALID_ARGUMENT, "a layer: dispatcher and options must be given",
            ptxgen_linear_from_floats(NULL, w, N, K, &options, &linear, &err));
    REFUSES(PTXGEN_ERROR_INVALID_ARGUMENT, "a layer: w is NULL",
            ptxgen_linear_from_floats(b->dispatcher, NULL, N, K, &options, &linear, &err));
    REFUSES(PTXGEN_ERROR_INVALID_ARGUMENT, "a layer: linear is NULL",
            ptxgen_linear_from_floats(b->dispatcher, w, N, K, &options, NULL, &err));
    REFUSES(PTXGEN_ERROR_INVALID_ARGUMENT, "a layer: weights is NULL",
            ptxgen_linear_from_w4(b->dispatcher, NULL, NULL, &options, &linear, &err));
    REFUSES(PTXGEN_ERROR_INVALID_ARGUMENT, "a layer: rows is NULL",
            ptxgen_linear_from_gguf(b->dispatcher, PTXGEN_GGUF_Q8_0, NULL, 0, N, K, &options,
                                    &linear, &err));
    REFUSES(PTXGEN_ERROR_INVALID_ARGUMENT, "a layer: 64 rows of 272 bytes do not fit into 17407",
            ptxgen_linear_from_gguf(b->dispatcher, PTXGEN_GGUF_Q8_0, w, 64 * 272 - 1, N, K,
                                    &options, &linear, &err));
    options.reserved[5] = 1;
    REFUSES(PTXGEN_ERROR_INVALID_ARGUMENT, "a layer: reserved[5] of the options is not 0",
            ptxgen_linear_from_floats(b->dispatcher, w, N, K, &options, &linear, &err));
    options.reserved[5] = 0;
    options.activation = PTXGEN_ACTIVATION_SILU;
    REFUSES(PTXGEN_ERROR_UNSUPPORTED, "a layer: gguf_linear has no activation",
            ptxgen_linear_from_gguf(b->dispatcher, PTXGEN_GGUF_Q8_0, w, sizeof w, N, K, &options,
                                    &linear, &err));
    ptxgen_w4_checkpoint pair = {.format = PTXGEN_W4_GPTQ_V1};
    REFUSES(PTXGEN_ERROR_INVALID_ARGUMENT,
            "a layer: gate and up take neither a bias nor an activation",
            ptxgen_linear_from_w4(b->dispatcher, &pair, &pair, &options, &linear, &err));
    ptxgen_w4_checkpoint huge = {.format = PTXGEN_W4_GPTQ_V1, /* of which no element is read */
                                 .weights = {w, PTXGEN_W4_I32, {(size_t)1 << 29, 8}},
                                 .scales = {w, PTXGEN_W4_F16, {1, 8}}};
    REFUSES(PTXGEN_ERROR_INVALID_ARGUMENT, "K = 4294967296 is not between 1 and 2147483647",
            ptxgen_linear_from_w4(b->dispatcher, &huge, NULL, &options, &linear, &err));
    assert_int_equal(ptxgen_linear_from_floats(b->dispatcher, w, N, K, &options, &linear, &err),
                     PTXGEN_OK);
    ptxgen_linear_args args = {.m = 5};
    REFUSES(PTXGEN_ERROR_INVALID_ARGUMENT, "a layer's run: M = 5 is above max_m, 4",
            ptxgen_linear_run(linear, &args, NULL, &err));
    REFUSES(PTXGEN_ERROR_INVALID_ARGUMENT, "a layer's run: linear and args must be given",
            ptxgen_linear_run(linear, NULL, NULL, &err));
    args.m = 1;
    REFUSES(PTXGEN_ERROR_INVALID_ARGUMENT, "dense: x is null",
            ptxgen_linear_run(linear, &args, NULL, &err));
    args.m = 0;
    assert_int_equal(ptxgen_linear_run(linear, &args, NULL, &err), PTXGEN_OK);
    ptxgen_linear_destroy(linear);
    ptxgen_linear_destroy(NULL);
    assert_int_equal(ptxgen_linear_k(NULL) + ptxgen_linear_n(NULL), 0);
    assert_int_equal(ptxgen_linear_bytes(NULL), 0);
    assert_null(ptxgen_linear_family(NULL));
#undef REFUSES
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(four_bit_weights_of_any_format_become_a_layer),
        cmocka_unit_test(a_gated_pair_is_one_layer),
        cmocka_unit_test(floats_become_a_layer_in_eight_bits),
        cmocka_unit_test(floats_become_a_dense_layer),
        cmocka_unit_test(rows_of_a_gguf_type_become_a_layer),
        cmocka_unit_test(what_is_wrong_with_a_layer_is_said),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
