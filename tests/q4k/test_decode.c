/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding Q4_K against ggml's own output and a decoder that fetches each number bit by bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "golden.h"
#include "tests/random.h"
#include "src/kernels/half.h"
#include "src/kernels/rmsnorm_q4k/q4k.h"

#include <math.h>
#include <stdio.h>

enum { BLOCK = PTXGEN_Q4K_BLOCK_WEIGHTS, BLOCK_BYTES = PTXGEN_Q4K_BLOCK_BYTES };

/* ---- the slow decoder ---- */

static unsigned bit(const uint8_t *bytes, unsigned byte, unsigned index)
{
    return bytes[byte] >> index & 1;
}

/* Bit i of sub-block j's scale: low bits where the layout puts them, the two high ones apart. */
static unsigned slow_scale(const uint8_t *block, unsigned j)
{
    unsigned value = 0;
    for (unsigned i = 0; i < 6; i++) {
        unsigned b = j < 4   ? bit(block, 4 + j, i)
                     : i < 4 ? bit(block, 4 + j + 4, i)
                             : bit(block, 4 + j - 4, i + 2);
        value += b << i;
    }
    return value;
}

static unsigned slow_min(const uint8_t *block, unsigned j)
{
    unsigned value = 0;
    for (unsigned i = 0; i < 6; i++) {
        unsigned b = j < 4   ? bit(block, 4 + j + 4, i)
                     : i < 4 ? bit(block, 4 + j + 4, i + 4)
                             : bit(block, 4 + j, i + 2);
        value += b << i;
    }
    return value;
}

static unsigned slow_code(const uint8_t *block, unsigned weight)
{
    unsigned value = 0, pair = weight / 64, within = weight % 64;
    for (unsigned i = 0; i < 4; i++)
        value += bit(block, 16 + pair * 32 + within % 32, within / 32 * 4 + i) << i;
    return value;
}

static double slow_f16(const uint8_t *at)
{
    unsigned fraction = 0, exponent = 0;
    for (unsigned i = 0; i < 10; i++)
        fraction += bit(at, i / 8, i % 8) << i;
    for (unsigned i = 0; i < 5; i++)
        exponent += bit(at, 1, 2 + i) << i;
    double value = exponent ? ldexp(1024 + fraction, (int)exponent - 25) : ldexp(fraction, -24);
    return bit(at, 1, 7) ? -value : value;
}

static double slow_decode(const uint8_t *block, unsigned weight)
{
    unsigned j = weight / 32;
    return slow_f16(block) * slow_scale(block, j) * slow_code(block, weight) -
           slow_f16(block + 2) * slow_min(block, j);
}

/* ---- claims ---- */

static void decoding_the_golden_rows_gives_ggml_floats_bit_for_bit(void **state)
{
    (void)state;
    struct tensor_store *store = golden_open();
    const struct named_tensor *w = golden_tensor(store, "blk.0.attn_q.weight");
    float *expected = golden_floats(store, "expected.dequantized");
    size_t rows = w->shape[0], k = w->shape[1], row_bytes;
    float *decoded = malloc(k * sizeof *decoded);
    assert_int_equal(ptxgen_q4k_row_bytes(k, &row_bytes, NULL), PTXGEN_OK);
    assert_int_equal(rows * row_bytes, w->bytes);
    for (size_t n = 0; n < rows; n++) {
        const uint8_t *row = (const uint8_t *)w->data + n * row_bytes;
        assert_int_equal(ptxgen_q4k_decode_row_f32(row, k, decoded, NULL), PTXGEN_OK);
        assert_memory_equal(decoded, expected + n * k, k * sizeof *decoded);
    }
    free(decoded);
    free(expected);
    tensor_store_close(store);
}

static void decoding_random_blocks_agrees_with_the_bitwise_decoder(void **state)
{
    (void)state;
    struct random r = {1};
    for (int round = 0; round < 500; round++) {
        uint8_t bytes[2 * BLOCK_BYTES + 1];
        uint8_t *row = bytes + (round & 1); /* any address */
        double exact[2 * BLOCK];
        float rounded[2 * BLOCK];
        random_fill(&r, bytes, sizeof bytes);
        for (int b = 0; b < 2; b++) { /* finite d and dmin */
            row[b * BLOCK_BYTES + 1] &= 0xBF;
            row[b * BLOCK_BYTES + 3] &= 0xBF;
        }
        assert_int_equal(ptxgen_q4k_decode_row_f64(row, 2 * BLOCK, exact, NULL), PTXGEN_OK);
        assert_int_equal(ptxgen_q4k_decode_row_f32(row, 2 * BLOCK, rounded, NULL), PTXGEN_OK);
        for (unsigned i = 0; i < 2 * BLOCK; i++) {
            double expected = slow_decode(row + i / BLOCK * BLOCK_BYTES, i % BLOCK);
            assert_true(exact[i] == expected);
            assert_true(rounded[i] == (float)expected);
        }
    }
}

/* ggml's order in float: (d·sc)·q − dmin·m, each operation rounded. */
static void float_decoding_equals_float_arithmetic_over_all_scales(void **state)
{
    (void)state;
    struct random r = {2};
    for (int round = 0; round < 2000; round++) {
        uint8_t bytes[BLOCK_BYTES];
        float decoded[BLOCK];
        random_fill(&r, bytes, sizeof bytes);
        struct q4k_block block;
        q4k_unpack(bytes, &block);
        volatile float d = ptxgen_f16_to_f32(block.d), dmin = ptxgen_f16_to_f32(block.dmin);
        if (!isfinite(d) || !isfinite(dmin))
            continue;
        ptxgen_q4k_decode_row_f32(bytes, BLOCK, decoded, NULL);
        for (unsigned i = 0; i < BLOCK; i++) {
            volatile float scale = d * block.scale[i / 32], min = dmin * block.min[i / 32];
            volatile float product = scale * block.code[i];
            volatile float difference = product - min;
            assert_true(decoded[i] == difference);
        }
    }
}

/* d = dmin = 1; sub-blocks 4 to 7 have numbers that need all six bits. */
static void sub_blocks_4_to_7_take_their_high_bits_from_the_first_eight_bytes(void **state)
{
    (void)state;
    uint8_t bytes[BLOCK_BYTES] = {
        0x00, 0x3C, 0x00, 0x3C, /* d, dmin */
        0x41, 0x82, 0xC3, 0x04, /* scales 1 2 3 4; high bits 1 2 3 0 */
        0xC5, 0x86, 0x47, 0x08, /* mins 5 6 7 8; high bits 3 2 1 0 */
        0x21, 0x43, 0x65, 0x87, /* low halves: scales 1 3 5 7, mins 2 4 6 8 */
    };
    static const double scales[] = {1, 2, 3, 4, 16 + 1, 32 + 3, 48 + 5, 7};
    static const double mins[] = {5, 6, 7, 8, 48 + 2, 32 + 4, 16 + 6, 8};
    double decoded[BLOCK];
    memset(bytes + 16, 0xF1, 128); /* even sub-blocks have code 1, odd ones 15 */
    assert_int_equal(ptxgen_q4k_decode_row_f64(bytes, BLOCK, decoded, NULL), PTXGEN_OK);
    for (unsigned i = 0; i < BLOCK; i++) {
        unsigned j = i / 32;
        assert_true(decoded[i] == scales[j] * (j & 1 ? 15 : 1) - mins[j]);
    }
}

static void packing_undoes_unpacking(void **state)
{
    (void)state;
    struct random r = {3};
    for (int round = 0; round < 500; round++) {
        uint8_t bytes[BLOCK_BYTES], again[BLOCK_BYTES];
        struct q4k_block block;
        random_fill(&r, bytes, sizeof bytes);
        q4k_unpack(bytes, &block);
        q4k_pack(&block, again);
        assert_memory_equal(bytes, again, sizeof bytes);
    }
}

static void rows_that_are_not_whole_blocks_are_refused_by_name(void **state)
{
    (void)state;
    static const size_t bad[] = {1, 255, 257, 4544, 10944, 13696};
    uint8_t row[BLOCK_BYTES] = {0};
    float f32[BLOCK] = {0};
    double f64[BLOCK];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char expected[128];
        ptxgen_error err[4];
        size_t bytes = 7;
        snprintf(expected, sizeof expected,
                 "K = %zu is not a multiple of 256: a Q4_K row is whole super-blocks", bad[i]);
        assert_int_equal(ptxgen_q4k_row_bytes(bad[i], &bytes, &err[0]), PTXGEN_ERROR_UNSUPPORTED);
        assert_int_equal(ptxgen_q4k_decode_row_f32(row, bad[i], f32, &err[1]),
                         PTXGEN_ERROR_UNSUPPORTED);
        assert_int_equal(ptxgen_q4k_decode_row_f64(row, bad[i], f64, &err[2]),
                         PTXGEN_ERROR_UNSUPPORTED);
        assert_int_equal(ptxgen_q4k_quantise_row(f32, bad[i], row, &err[3]),
                         PTXGEN_ERROR_UNSUPPORTED);
        assert_int_equal(bytes, 7);
        for (int e = 0; e < 4; e++)
            assert_string_equal(err[e].message, expected);
    }
}

static void row_bytes_are_144_a_block(void **state)
{
    (void)state;
    size_t bytes;
    assert_int_equal(ptxgen_q4k_row_bytes(0, &bytes, NULL), PTXGEN_OK);
    assert_int_equal(bytes, 0);
    assert_int_equal(ptxgen_q4k_row_bytes(4096, &bytes, NULL), PTXGEN_OK);
    assert_int_equal(bytes, 16 * 144);
    assert_int_equal(ptxgen_q4k_row_bytes(SIZE_MAX - 255, &bytes, NULL), PTXGEN_OK);
    assert_true(bytes == (SIZE_MAX - 255) / 256 * 144);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decoding_the_golden_rows_gives_ggml_floats_bit_for_bit),
        cmocka_unit_test(decoding_random_blocks_agrees_with_the_bitwise_decoder),
        cmocka_unit_test(float_decoding_equals_float_arithmetic_over_all_scales),
        cmocka_unit_test(sub_blocks_4_to_7_take_their_high_bits_from_the_first_eight_bytes),
        cmocka_unit_test(packing_undoes_unpacking),
        cmocka_unit_test(rows_that_are_not_whole_blocks_are_refused_by_name),
        cmocka_unit_test(row_bytes_are_144_a_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
