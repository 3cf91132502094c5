/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding Q4_K against a decoder that fetches each number bit by bit. */
#include "tests/random.h"
#include "tests/status.h"

#include <ptxgen/gguf_types.h>

#include <math.h>

enum { BLOCK = 256, BLOCK_BYTES = 144 };

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

static void decoding_random_blocks_agrees_with_the_bitwise_decoder(void **state)
{
    (void)state;
    struct random r = {1};
    for (int round = 0; round < 500; round++) {
        uint8_t bytes[2 * BLOCK_BYTES + 1];
        uint8_t *row = bytes + (round & 1); /* any address */
        float decoded[2 * BLOCK];
        ptxgen_error err;
        random_fill(&r, bytes, sizeof bytes);
        for (int b = 0; b < 2; b++) { /* finite d and dmin */
            row[b * BLOCK_BYTES + 1] &= 0xBF;
            row[b * BLOCK_BYTES + 3] &= 0xBF;
        }
        assert_ok(ptxgen_gguf_decode_row(PTXGEN_GGUF_Q4_K, row, 2 * BLOCK_BYTES, 2 * BLOCK, decoded,
                                         &err),
                  &err);
        for (unsigned i = 0; i < 2 * BLOCK; i++) {
            double expected = slow_decode(row + i / BLOCK * BLOCK_BYTES, i % BLOCK);
            assert_true(decoded[i] == (float)expected);
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
    static const float scales[] = {1, 2, 3, 4, 16 + 1, 32 + 3, 48 + 5, 7};
    static const float mins[] = {5, 6, 7, 8, 48 + 2, 32 + 4, 16 + 6, 8};
    float decoded[BLOCK];
    ptxgen_error err;
    memset(bytes + 16, 0xF1, 128); /* even sub-blocks have code 1, odd ones 15 */
    assert_ok(ptxgen_gguf_decode_row(PTXGEN_GGUF_Q4_K, bytes, sizeof bytes, BLOCK, decoded, &err),
              &err);
    for (unsigned i = 0; i < BLOCK; i++) {
        unsigned j = i / 32;
        assert_true(decoded[i] == scales[j] * (float)(j & 1 ? 15 : 1) - mins[j]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decoding_random_blocks_agrees_with_the_bitwise_decoder),
        cmocka_unit_test(sub_blocks_4_to_7_take_their_high_bits_from_the_first_eight_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
