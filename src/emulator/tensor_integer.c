/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor_integer.h"

#include "host_vector.h"

#include <string.h>

/** Values of integer elements in the low bits of words. */
EMU_WIDE static void decode_signed(unsigned spare, const uint32_t *bits, unsigned count,
                                   float *value)
{
    for (unsigned i = 0; i < count; i++)
        value[i] = (float)((int32_t)(bits[i] << spare) >> spare);
}

static void decode(emu_element type, const uint32_t *bits, unsigned count, float *value)
{
    if (type == EMU_S8 || type == EMU_S4)
        decode_signed(32 - emu_element_bits(type), bits, count, value);
    else
        for (unsigned i = 0; i < count; i++)
            value[i] = (float)(int32_t)bits[i];
}

void emu_integer_load_a(emu_element type, const uint32_t *bits, const uint8_t *depth, unsigned rows,
                        unsigned terms, emu_integer_a *out)
{
    out->terms = terms;
    out->dense = !depth;
    if (depth)
        memcpy(out->depth, depth, rows * terms);
    decode(type, bits, rows * terms, out->value);
}

void emu_integer_load_b(emu_element type, const uint32_t *bits, unsigned rows, emu_integer_b *out)
{
    decode(type, bits, rows * EMU_TILE_COLUMNS, out->value[0]);
}

static uint32_t accumulate(uint32_t c, int32_t sum, bool saturate)
{
    if (!saturate)
        return c + (uint32_t)sum;
    int64_t total = (int64_t)(int32_t)c + sum;
    if (total > INT32_MAX)
        return INT32_MAX;
    return total < INT32_MIN ? 0x80000000u : (uint32_t)total;
}

EMU_INLINE void dot_row(const emu_integer_a *a, const emu_integer_b *b, unsigned row, bool dense,
                        float sum[EMU_TILE_COLUMNS])
{
    const float *x = a->value + row * a->terms;
    const uint8_t *depth = a->depth + row * a->terms;
    float even[EMU_TILE_COLUMNS] = {0}, odd[EMU_TILE_COLUMNS] = {0};
    for (unsigned i = 0; i < a->terms; i += 2) {
        const float *y = b->value[dense ? i : depth[i]];
        const float *z = b->value[dense ? i + 1 : depth[i + 1]];
        for (unsigned j = 0; j < EMU_TILE_COLUMNS; j++) {
            even[j] += x[i] * y[j];
            odd[j] += x[i + 1] * z[j];
        }
    }
    for (unsigned j = 0; j < EMU_TILE_COLUMNS; j++)
        sum[j] = even[j] + odd[j];
}

EMU_WIDE static void dot_rows(const emu_integer_a *a, const emu_integer_b *b, unsigned rows,
                              float sum[][EMU_TILE_COLUMNS])
{
    if (a->dense) {
        for (unsigned row = 0; row < rows; row++)
            dot_row(a, b, row, true, sum[row]);
    } else {
        for (unsigned row = 0; row < rows; row++)
            dot_row(a, b, row, false, sum[row]);
    }
}

void emu_integer_dot(const emu_integer_a *a, const emu_integer_b *b, unsigned rows, bool saturate,
                     emu_tile *tile)
{
    float sum[EMU_TILE_ROWS][EMU_TILE_COLUMNS];
    dot_rows(a, b, rows, sum);
    for (unsigned row = 0; row < rows; row++)
        for (unsigned j = 0; j < EMU_TILE_COLUMNS; j++)
            tile->at[row][j] = accumulate(tile->at[row][j], (int32_t)sum[row][j], saturate);
}

static uint32_t count_bits(uint32_t word)
{
    word -= word >> 1 & 0x55555555;
    word = (word & 0x33333333) + (word >> 2 & 0x33333333);
    return ((word + (word >> 4)) & 0x0F0F0F0F) * 0x01010101u >> 24;
}

void emu_bit_dot(const uint32_t *a, const uint32_t *b, unsigned words, unsigned rows,
                 emu_mma_bit_op op, emu_tile *tile)
{
    for (unsigned row = 0; row < rows; row++) {
        for (unsigned column = 0; column < EMU_TILE_COLUMNS; column++) {
            for (unsigned w = 0; w < words; w++) {
                uint32_t x = a[row * words + w], y = b[w * EMU_TILE_COLUMNS + column];
                tile->at[row][column] += count_bits(op == EMU_BIT_AND ? x & y : x ^ y);
            }
        }
    }
}
