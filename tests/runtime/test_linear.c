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
    assert_int_equal(ptxgen_emulator_ordinal("cpu:sm_90", &ordinal, NULL), PTXGEN_OK);
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

/* How a layer is run. */
struct trial {
    ptxgen_element type;
    bool has_bias;
    double tolerance;
    bool codes;    /* x is s8 */
    float x_scale; /* of them, in the weights or, where it is above 1, one for each token */
};

static double x_of(const struct trial *t, const void *x, size_t i)
{
    return t->codes ? ((const int8_t *)x)[i] : ptxgen_element_load(t->type, x, i);
}

static void draw_x(const struct trial *t, void *x, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (t->codes)
            ((int8_t *)x)[i] = (int8_t)(127 * draw());
        else
            ptxgen_element_store(t->type, x, i, draw());
}

static void assert_sums(const struct bench *b, const struct trial *t, const void *x, const void *y)
{
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++) {
            double sum = 0, scale = 0, x_scale = t->x_scale > 1 ? t->x_scale + m : t->x_scale;
            for (int k = 0; k < K; k++) {
                double product = x_of(t, x, (size_t)(m * STRIDE + k)) * b->w[n][k];
                sum += (t->codes ? x_scale : 1) * product;
                scale += (t->codes ? x_scale : 1) * fabs(product);
            }
            sum += t->has_bias ? b->bias[n] : 0;
            double got = ptxgen_element_load(t->type, y, (size_t)(m * N + n));
            if (!(fabs(got - sum) <= t->tolerance * (1 + scale)))
                fail_msg("y[%d, %d] is %g, not %g", m, n, got, sum);
        }
}

/* Runs the layer on x of strided rows, 4 bytes off alignment, and compares all outputs. */
static void assert_trial(const struct bench *b, const ptxgen_linear *linear, const struct trial *t)
{
    size_t size = ptxgen_element_size(t->type);
    unsigned char x[M * STRIDE * 4] = {0}, y[M * N * 4];
    float x_scales[M];
    ptxgen_cu_deviceptr on_x, on_y, on_scales;
    draw_x(t, x, M * STRIDE);
    for (int m = 0; m < M; m++)
        x_scales[m] = t->x_scale + (float)m;
    assert_int_equal(b->driver.mem_alloc(&on_x, sizeof x + 16), 0);
    assert_int_equal(b->driver.mem_alloc(&on_y, sizeof y), 0);
    assert_int_equal(b->driver.mem_alloc(&on_scales, sizeof x_scales), 0);
    assert_int_equal(b->driver.memcpy_htod(on_x + 4, x, sizeof x), 0);
    assert_int_equal(b->driver.memcpy_htod(on_scales, x_scales, sizeof x_scales), 0);
    assert_int_equal(b->driver.memset_d8(on_y, 0xFF, sizeof y), 0);
    const ptxgen_linear_args args = {.m = M,
                                     .x = on_x + 4,
                                     .x_stride = STRIDE,
                                     .y = on_y,
                                     .y_bytes = M * N * size,
                                     .x_scale = t->x_scale > 1 ? on_scales : 0,
                                     .x_scale_bytes = t->x_scale > 1 ? sizeof x_scales : 0};
    ptxgen_error err = {0};
    if (ptxgen_linear_run(linear, &args, NULL, &err) != PTXGEN_OK)
        fail_msg("%s", err.message);
    assert_int_equal(b->driver.ctx_synchronize(), 0);
    assert_int_equal(b->driver.memcpy_dtoh(y, on_y, sizeof y), 0);
    assert_sums(b, t, x, y);
    b->driver.mem_free(on_x);
    b->driver.mem_free(on_y);
    b->driver.mem_free(on_scales);
}

static void assert_computes(const struct bench *b, const ptxgen_linear *linear, ptxgen_element type,
                            bool has_bias, double tolerance)
{
    const struct trial t = {type, has_bias, tolerance, false, 0};
    assert_trial(b, linear, &t);
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

/* ---- workspaces ---- */

/* x is off alignment, so that a run has to copy it there. */
static void a_run_may_bring_its_own_workspace(void **state)
{
    struct bench *b = *state;
    static uint16_t w[N][K];
    const ptxgen_linear_options options = {.max_m = 4, .type = PTXGEN_F16};
    ptxgen_linear *linear;
    ptxgen_cu_deviceptr on_x, on_y, own;
    ptxgen_error err;
    assert_int_equal(ptxgen_linear_from_floats(b->dispatcher, w, N, K, &options, &linear, NULL),
                     PTXGEN_OK);
    assert_int_equal(b->driver.mem_alloc(&on_x, 4 * K * 2 + 16), 0);
    assert_int_equal(b->driver.mem_alloc(&on_y, 4 * N * 2), 0);
    assert_int_equal(b->driver.memset_d8(on_x, 0x3C, 4 * K * 2 + 16), 0);
    uint64_t bytes;
    ptxgen_linear_args args = {.m = 4, .x = on_x + 2, .y = on_y};
    assert_int_equal(ptxgen_linear_workspace_bytes(linear, &args, &bytes, NULL), PTXGEN_OK);
    assert_true(bytes >= 4 * K * 2 && bytes < ptxgen_linear_bytes(linear));
    assert_int_equal(b->driver.mem_alloc(&own, bytes), 0);
    assert_int_equal(b->driver.memset_d8(own, 0, bytes), 0);
    args.workspace = own;
    args.workspace_bytes = bytes;
    assert_int_equal(ptxgen_linear_run(linear, &args, NULL, NULL), PTXGEN_OK);
    unsigned char used[2];
    assert_int_equal(b->driver.ctx_synchronize(), 0);
    assert_int_equal(b->driver.memcpy_dtoh(used, own + bytes - 2, 2), 0);
    args.workspace_bytes = 1;
    assert_int_equal(ptxgen_linear_run(linear, &args, NULL, &err), PTXGEN_ERROR_INVALID_ARGUMENT);
    args.workspace = 0;
    assert_int_equal(ptxgen_linear_run(linear, &args, NULL, NULL), PTXGEN_OK);
    assert_int_equal(b->driver.ctx_synchronize(), 0);
    ptxgen_linear_destroy(linear);
    b->driver.mem_free(on_x);
    b->driver.mem_free(on_y);
    b->driver.mem_free(own);
    assert_int_equal(used[0], 0x3C);
}

/* ---- others ---- */

static void floats_become_a_layer_in_eight_bits(void **state)
{
    struct bench *b = *state;
    static float w[N][K];
    for (int n = 0; n < N; n++)
        for (int k = 0; k < K; k++)
            b->w[n][k] = w[n][k] = (float)(0.05 * draw());
    static const double tolerances[] = {
        [PTXGEN_W8A8_S8] = 1e-2, [PTXGEN_W8A8_E4M3] = 4e-2, [PTXGEN_W8A8_E5M2] = 8e-2};
    for (ptxgen_w8a8_codes codes = PTXGEN_W8A8_S8; codes <= PTXGEN_W8A8_E5M2; codes++) {
        const ptxgen_w8a8_weights weights = {
            .n = N, .k = K, .type = PTXGEN_F32, .w = w, .codes = codes};
        const ptxgen_linear_options options = {.max_m = 200, .type = PTXGEN_F32, .bias = b->bias};
        ptxgen_linear *linear;
        assert_int_equal(ptxgen_linear_from_w8a8(b->dispatcher, &weights, &options, &linear, NULL),
                         PTXGEN_OK);
        assert_facts(linear, "w8a8", K * N);
        assert_computes(b, linear, PTXGEN_F32, true, tolerances[codes]);
        ptxgen_linear_destroy(linear);
    }
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

/* ---- 2:4 ---- */

/* A dense 2:4 weight of the type, and compressed. */
struct sparse {
    ptxgen_sparse24_weights weights;
    unsigned char dense[N * K * 4], values[N * K * 2], metadata[N * K / 4];
    float scales[N];
};

static void make_sparse(struct bench *b, struct sparse *s, ptxgen_sparse24_type type,
                        ptxgen_sparse24_form form)
{
    const bool codes = type == PTXGEN_SPARSE24_S8;
    const ptxgen_sparse24_shape shape = {type, N, K};
    size_t dense_bytes, metadata_bytes;
    for (size_t i = 0; i < N * K; i++)
        if (codes)
            ((int8_t *)s->dense)[i] = (int8_t)(120 * draw());
        else
            ptxgen_element_store((ptxgen_element)type, s->dense, i, draw());
    assert_int_equal(ptxgen_sparse24_dense_bytes(&shape, &dense_bytes, NULL), PTXGEN_OK);
    assert_int_equal(ptxgen_sparse24_metadata_bytes(&shape, form, &metadata_bytes, NULL),
                     PTXGEN_OK);
    const ptxgen_const_span dense = {s->dense, dense_bytes};
    const ptxgen_span values = {s->values, dense_bytes / 2};
    const ptxgen_span metadata = {s->metadata, metadata_bytes};
    assert_int_equal(
        ptxgen_sparse24_prune(&shape, dense, (ptxgen_span){s->dense, dense_bytes}, NULL),
        PTXGEN_OK);
    assert_int_equal(ptxgen_sparse24_compress(&shape, dense, values, form, metadata, NULL),
                     PTXGEN_OK);
    for (int n = 0; n < N; n++) {
        s->scales[n] = codes ? (float)(0.01 * (2 + draw())) : 1;
        for (size_t k = 0; k < K; k++) {
            size_t i = (size_t)n * K + k;
            b->w[n][k] = codes ? ((int8_t *)s->dense)[i] * (double)s->scales[n]
                               : ptxgen_element_load((ptxgen_element)type, s->dense, i);
        }
    }
    s->weights = (ptxgen_sparse24_weights){.shape = shape,
                                           .values = {s->values, values.bytes},
                                           .metadata = {s->metadata, metadata.bytes},
                                           .form = form,
                                           .scales = codes ? s->scales : NULL};
}

static void sparse_weights_become_a_layer(void **state)
{
    struct bench *b = *state;
    static struct sparse s;
    static const struct {
        ptxgen_sparse24_type type;
        ptxgen_sparse24_form form;
        bool dense;
        struct trial trial;
    } rows[] = {
        {PTXGEN_SPARSE24_F16, PTXGEN_SPARSE24_BYTES, true, {PTXGEN_F16, true, 2e-3, false, 0}},
        {PTXGEN_SPARSE24_BF16, PTXGEN_SPARSE24_CUTLASS, false, {PTXGEN_BF16, true, 8e-3, false, 0}},
        {PTXGEN_SPARSE24_F32, PTXGEN_SPARSE24_BITMASK, false, {PTXGEN_F32, false, 2e-3, false, 0}},
        {PTXGEN_SPARSE24_S8,
         PTXGEN_SPARSE24_NIBBLES,
         false,
         {PTXGEN_F16, true, 2e-3, true, 0.125f}},
        {PTXGEN_SPARSE24_S8, PTXGEN_SPARSE24_NIBBLES, true, {PTXGEN_BF16, false, 8e-3, true, 2}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct trial *t = &rows[i].trial;
        const ptxgen_linear_options options = {
            .max_m = 33, .type = (uint8_t)t->type, .bias = t->has_bias ? b->bias : NULL};
        ptxgen_linear *linear;
        ptxgen_error err = {0};
        make_sparse(b, &s, rows[i].type, rows[i].form);
        if (rows[i].dense) {
            s.weights.dense = (ptxgen_const_span){s.dense, 2 * s.weights.values.bytes};
            s.weights.values = s.weights.metadata = (ptxgen_const_span){NULL, 0};
        }
        s.weights.x_scale = t->x_scale > 1 ? 0 : t->x_scale;
        if (ptxgen_linear_from_sparse24(b->dispatcher, &s.weights, &options, &linear, &err))
            fail_msg("%s", err.message);
        assert_facts(linear, "sparse24", s.weights.values.bytes);
        assert_trial(b, linear, t);
        ptxgen_linear_destroy(linear);
    }
}

static void what_is_wrong_with_a_sparse_layer_is_said(void **state)
{
    struct bench *b = *state;
    static struct sparse s;
    ptxgen_linear *linear;
    ptxgen_linear_options options = {.max_m = 4, .type = PTXGEN_F16};
    ptxgen_error err = {0};
#define REFUSES(status, says)                                                                      \
    do {                                                                                           \
        assert_int_equal(                                                                          \
            ptxgen_linear_from_sparse24(b->dispatcher, &s.weights, &options, &linear, &err),       \
            status);                                                                               \
        assert_string_equal(err.message, says);                                                    \
        assert_null(linear);                                                                       \
    } while (0)
    make_sparse(b, &s, PTXGEN_SPARSE24_F16, PTXGEN_SPARSE24_BYTES);
    assert_int_equal(ptxgen_linear_from_sparse24(b->dispatcher, NULL, &options, &linear, &err),
                     PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_string_equal(err.message, "a layer: weights is NULL");
    options.type = PTXGEN_BF16;
    REFUSES(PTXGEN_ERROR_INVALID_ARGUMENT,
            "a layer: type 2 of the options is not that of the weights, 1");
    options.type = PTXGEN_F16;
    const ptxgen_const_span values = s.weights.values;
    s.weights.dense = (ptxgen_const_span){s.dense, N * K * 2};
    REFUSES(PTXGEN_ERROR_INVALID_ARGUMENT,
            "a layer: weights are dense, or values and metadata, not both");
    s.weights.dense.bytes = 0;
    s.weights.values.bytes--;
    REFUSES(PTXGEN_ERROR_INVALID_ARGUMENT, "values has 16383 bytes; its shape takes exactly 16384");
    s.weights.values = values;
    s.metadata[5] = 5;
    REFUSES(PTXGEN_ERROR_MALFORMED, "row 0, group 5 of byte metadata is 0x5, twice the position 1; "
                                    "a group keeps two different elements");
    ptxgen_element_store(PTXGEN_F16, s.dense, 4, 1);
    ptxgen_element_store(PTXGEN_F16, s.dense, 5, 1);
    ptxgen_element_store(PTXGEN_F16, s.dense, 6, 1);
    ptxgen_element_store(PTXGEN_F16, s.dense, 7, 0);
    s.weights.dense.bytes = N * K * 2;
    s.weights.values.bytes = s.weights.metadata.bytes = 0;
    REFUSES(PTXGEN_ERROR_INVALID_ARGUMENT, "row 0, group 1 (columns 4 to 7) has 3 non-zeros; a 2:4 "
                                           "weight has at most two of every four");
    s.weights.shape.n = (size_t)INT32_MAX + 1;
    REFUSES(PTXGEN_ERROR_UNSUPPORTED,
            "a layer: a weight of 2147483648 by 256 is too large for sparse24");
    make_sparse(b, &s, PTXGEN_SPARSE24_S8, PTXGEN_SPARSE24_BYTES);
    s.scales[7] = INFINITY;
    REFUSES(PTXGEN_ERROR_INVALID_ARGUMENT, "a layer: scale 7 of the weights is inf, not finite");
    s.weights.x_scale = -INFINITY;
    REFUSES(PTXGEN_ERROR_INVALID_ARGUMENT, "a layer: x_scale of the weights is -inf, not finite");
#undef REFUSES
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
        cmocka_unit_test(a_run_may_bring_its_own_workspace),
        cmocka_unit_test(floats_become_a_layer_in_eight_bits),
        cmocka_unit_test(floats_become_a_dense_layer),
        cmocka_unit_test(rows_of_a_gguf_type_become_a_layer),
        cmocka_unit_test(sparse_weights_become_a_layer),
        cmocka_unit_test(what_is_wrong_with_a_sparse_layer_is_said),
        cmocka_unit_test(what_is_wrong_with_a_layer_is_said),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
