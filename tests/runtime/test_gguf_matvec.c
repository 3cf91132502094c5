/* SPDX-License-Identifier: Apache-2.0 */
/* Products by integers and addresses, as engines call them, against sums in double precision. */
#include "tests/status.h"

#include <ptxgen/emulator.h>
#include <ptxgen/gguf_linear.h>
#include <ptxgen/gguf_matvec.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { K = 512, MOST_M = 8, MOST_N = 40, GAP = 3 };

struct bench {
    ptxgen_driver driver;
    ptxgen_cu_context context;
    ptxgen_cu_stream stream;
    ptxgen_dispatcher *dispatcher;
};

static double draw(void)
{
    static uint32_t state = 7;
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
    assert_int_equal(b.driver.stream_create(&b.stream, 0), 0);
    assert_int_equal(ptxgen_dispatcher_create(&b.driver,
                                              &(ptxgen_dispatch_options){.no_cache = true},
                                              &b.dispatcher, NULL),
                     PTXGEN_OK);
    *state = &b;
    return 0;
}

static int teardown(void **state)
{
    struct bench *b = *state;
    ptxgen_dispatcher_destroy(b->dispatcher);
    b->driver.stream_destroy(b->stream);
    b->driver.device_primary_ctx_release(0);
    return 0;
}

static uint64_t upload(struct bench *b, const void *bytes, size_t size)
{
    ptxgen_cu_deviceptr at = 0;
    assert_int_equal(b->driver.mem_alloc(&at, size), 0);
    assert_int_equal(b->driver.memcpy_htod(at, bytes, size), 0);
    return at;
}

/* ---- one buffer of matrices ---- */

struct matrices {
    uint32_t count, types[3], n[3];
    uint64_t row_bytes[3];
    size_t bytes;
    unsigned char *packed;
    float (*rows)[K]; /* what they decode to, one after the other */
};

static struct matrices make_matrices(uint32_t count, const uint32_t *types, const uint32_t *n)
{
    struct matrices m = {.count = count};
    uint32_t all = 0;
    m.packed = calloc(3 * MOST_N, K * sizeof(float));
    m.rows = calloc(3 * MOST_N, sizeof *m.rows);
    assert_true(m.packed && m.rows);
    for (uint32_t i = 0; i < count; i++) {
        size_t row;
        assert_int_equal(ptxgen_gguf_row_bytes(types[i], K, &row, NULL), PTXGEN_OK);
        m.types[i] = types[i];
        m.n[i] = n[i];
        m.row_bytes[i] = row;
        for (uint32_t r = 0; r < n[i]; r++, all++, m.bytes += row) {
            float values[K];
            for (int k = 0; k < K; k++)
                values[k] = (float)draw();
            assert_int_equal(
                ptxgen_gguf_quantise_row(types[i], values, K, m.packed + m.bytes, row, NULL),
                PTXGEN_OK);
            assert_int_equal(
                ptxgen_gguf_decode_row(types[i], m.packed + m.bytes, row, K, m.rows[all], NULL),
                PTXGEN_OK);
        }
    }
    return m;
}

static void free_matrices(struct matrices *m)
{
    free(m->packed);
    free(m->rows);
}

static double dot(const float *w, const float *x, double *size)
{
    double sum = 0;
    for (int k = 0; k < K; k++) {
        sum += (double)w[k] * (double)x[k];
        *size += fabs((double)w[k] * (double)x[k]);
    }
    return sum;
}

/* y of the call, whose rows have a gap behind them that it leaves alone. */
static void assert_products(struct bench *b, const struct matrices *m, uint32_t tokens, bool plain)
{
    static float x[MOST_M][K + GAP], y[MOST_M][3 * MOST_N + GAP];
    uint32_t columns = 0;
    uint64_t bytes;
    ptxgen_error err;
    for (uint32_t i = 0; i < m->count; i++)
        columns += m->n[i];
    for (uint32_t t = 0; t < tokens; t++)
        for (int k = 0; k < K + GAP; k++)
            x[t][k] = (float)draw();
    for (size_t t = 0; t < MOST_M; t++)
        for (size_t n = 0; n < 3 * MOST_N + GAP; n++)
            y[t][n] = -1;
    assert_ok(ptxgen_gguf_matvec_workspace(b->dispatcher, m->count, m->types, m->n, 0, K,
                                           PTXGEN_F32, PTXGEN_F32, &bytes, &err),
              &err);
    const uint64_t w = upload(b, m->packed, m->bytes), on_x = upload(b, x, sizeof x);
    const uint64_t on_y = upload(b, y, sizeof y);
    ptxgen_cu_deviceptr room = 0;
    assert_int_equal(b->driver.mem_alloc(&room, bytes + 16), 0);
    const uint64_t y_stride = 3 * MOST_N + GAP;
    if (plain)
        assert_ok(ptxgen_gguf_matvec(b->dispatcher, m->types[0], w, on_x, on_y, K, m->n[0], tokens,
                                     K + GAP, y_stride, PTXGEN_F32, PTXGEN_F32, room, bytes,
                                     b->stream, &err),
                  &err);
    else
        assert_ok(ptxgen_gguf_matvec_merged(b->dispatcher, m->count, m->types, m->n, m->row_bytes,
                                            0, w, on_x, on_y, K, tokens, K + GAP, y_stride,
                                            PTXGEN_F32, PTXGEN_F32, room, bytes, b->stream, &err),
                  &err);
    assert_int_equal(b->driver.stream_synchronize(b->stream), 0);
    assert_int_equal(b->driver.memcpy_dtoh(y, on_y, sizeof y), 0);
    for (uint32_t t = 0; t < MOST_M; t++)
        for (uint32_t n = 0; n < 3 * MOST_N + GAP; n++) {
            double size = 0, right = -1;
            if (t < tokens && n < columns)
                right = dot(m->rows[n], x[t], &size);
            if (!(fabs((double)y[t][n] - right) <= size * 0x1p-20))
                fail_msg("y[%u, %u] is %g; due is %g", t, n, (double)y[t][n], right);
        }
    const uint64_t all[] = {w, on_x, on_y, room};
    for (int i = 0; i < 4; i++)
        b->driver.mem_free(all[i]);
}

static void matrices_of_one_buffer_are_multiplied(void **state)
{
    static const uint32_t types[][3] = {
        {PTXGEN_GGUF_Q4_K, PTXGEN_GGUF_Q6_K, PTXGEN_GGUF_Q8_0},
        {PTXGEN_GGUF_Q8_0, PTXGEN_GGUF_F16, PTXGEN_GGUF_Q8_0},
        {PTXGEN_GGUF_BF16, PTXGEN_GGUF_BF16, PTXGEN_GGUF_F32},
    };
    static const uint32_t n[] = {40, 8, 16};
    for (int i = 0; i < 3; i++) {
        struct matrices m = make_matrices(3, types[i], n);
        assert_products(*state, &m, i % 2 ? 8 : 3, false);
        free_matrices(&m);
    }
}

static void a_matrix_is_multiplied(void **state)
{
    static const uint32_t types[] = {PTXGEN_GGUF_Q4_0, PTXGEN_GGUF_Q6_K, PTXGEN_GGUF_F16};
    static const uint32_t n[] = {33};
    for (uint32_t i = 0; i < 3; i++) {
        struct matrices m = make_matrices(1, &types[i], n);
        assert_products(*state, &m, 1 + 2 * i, true);
        free_matrices(&m);
    }
}

/* Gate and up lie one behind the other, and y has the features of one. */
static void gate_and_up_give_one_output(void **state)
{
    static const uint32_t types[] = {PTXGEN_GGUF_Q8_0, PTXGEN_GGUF_Q8_0}, n[] = {16, 16};
    struct bench *b = *state;
    struct matrices m = make_matrices(2, types, n);
    float x[K], y[16];
    uint64_t bytes;
    ptxgen_error err;
    for (int k = 0; k < K; k++)
        x[k] = (float)draw() / 16;
    assert_ok(ptxgen_gguf_matvec_workspace(b->dispatcher, 2, types, n, PTXGEN_EPILOGUE_SWIGLU, K,
                                           PTXGEN_F32, PTXGEN_F32, &bytes, &err),
              &err);
    const uint64_t w = upload(b, m.packed, m.bytes), on_x = upload(b, x, sizeof x);
    const uint64_t on_y = upload(b, y, sizeof y);
    ptxgen_cu_deviceptr room = 0;
    assert_int_equal(b->driver.mem_alloc(&room, bytes + 16), 0);
    assert_ok(ptxgen_gguf_matvec_merged(b->dispatcher, 2, types, n, NULL, PTXGEN_EPILOGUE_SWIGLU, w,
                                        on_x, on_y, K, 1, 0, 0, PTXGEN_F32, PTXGEN_F32, room, bytes,
                                        b->stream, &err),
              &err);
    assert_int_equal(b->driver.stream_synchronize(b->stream), 0);
    assert_int_equal(b->driver.memcpy_dtoh(y, on_y, sizeof y), 0);
    for (int i = 0; i < 16; i++) {
        double size = 0, gate = dot(m.rows[i], x, &size), up = dot(m.rows[16 + i], x, &size);
        assert_true(fabs((double)y[i] - gate / (1 + exp(-gate)) * up) <= 1e-4 * size * size);
    }
    const uint64_t all[] = {w, on_x, on_y, room};
    for (int i = 0; i < 4; i++)
        b->driver.mem_free(all[i]);
    free_matrices(&m);
}

/* ---- what is refused ---- */

static void refuses(struct bench *b, uint32_t count, uint32_t type, uint32_t k, uint32_t m,
                    uint64_t row_bytes, uint32_t y_type, ptxgen_status status, const char *sentence)
{
    const uint32_t types[3] = {type, type, type}, n[3] = {8, 8, 8};
    const uint64_t rows[3] = {0, row_bytes, 0};
    ptxgen_error err = {0};
    assert_int_equal(ptxgen_gguf_matvec_merged(b->dispatcher, count, types, n, rows, 0, 1 << 20,
                                               1 << 24, 1 << 26, k, m, 0, 0, PTXGEN_F32, y_type,
                                               1 << 28, 1 << 20, NULL, &err),
                     status);
    assert_string_equal(err.message, sentence);
}

static void what_does_not_fit_is_refused(void **state)
{
    const uint32_t type = PTXGEN_GGUF_Q4_K, n = 8;
    uint64_t bytes;
    ptxgen_error err = {0};
    refuses(*state, 4, type, 256, 1, 0, 0, PTXGEN_ERROR_INVALID_ARGUMENT,
            "gguf_matvec: count = 4; w_types and n of 1 to 3 matrices must be given");
    refuses(*state, 1, 300, 256, 1, 0, 0, PTXGEN_ERROR_INVALID_ARGUMENT,
            "gguf_matvec: 300 is the number of no type and of no epilogue");
    refuses(*state, 1, type, 256, 1, 0, 256, PTXGEN_ERROR_INVALID_ARGUMENT,
            "gguf_matvec: 256 is the number of no type and of no epilogue");
    refuses(*state, 2, type, 256, 1, 160, 0, PTXGEN_ERROR_INVALID_ARGUMENT,
            "gguf_matvec: row_bytes[1] = 160; a row of Q4_K with K = 256 has 144, and rows are "
            "without gaps");
    refuses(*state, 1, type, 260, 1, 0, 0, PTXGEN_ERROR_UNSUPPORTED,
            "gguf_linear: K = 260 is not a multiple of 256: a row of Q4_K is whole blocks");
    refuses(*state, 1, type, 256, 9, 0, 0, PTXGEN_ERROR_INVALID_ARGUMENT,
            "gguf_linear: m = 9 is above the 8 tokens that the plan serves");
    assert_int_equal(ptxgen_gguf_matvec_workspace(((struct bench *)*state)->dispatcher, 1, &type,
                                                  &n, 0, 256, 0, 0, NULL, &err),
                     PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_string_equal(err.message, "gguf_matvec: bytes is NULL");
    assert_int_equal(ptxgen_gguf_matvec_workspace(((struct bench *)*state)->dispatcher, 0, &type,
                                                  &n, 0, 256, 0, 0, &bytes, &err),
                     PTXGEN_ERROR_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matrices_of_one_buffer_are_multiplied),
        cmocka_unit_test(a_matrix_is_multiplied),
        cmocka_unit_test(gate_and_up_give_one_output),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
