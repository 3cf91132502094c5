/* SPDX-License-Identifier: Apache-2.0 */
#include "format_table.h"

enum { PER_WORD = 8, NIBBLE_BITS = 4 };

static size_t words(size_t nibbles)
{
    return nibbles / PER_WORD + (nibbles % PER_WORD != 0);
}

static struct w4_place place(size_t word, size_t nibble)
{
    return (struct w4_place){word, (unsigned)nibble * NIBBLE_BITS};
}

static struct w4_place gptq_code(const struct w4_dims *d, size_t k, size_t n)
{
    return place(k / PER_WORD * d->n + n, k % PER_WORD);
}

static struct w4_place gptq_zero(const struct w4_dims *d, size_t g, size_t n)
{
    return place(g * words(d->n) + n / PER_WORD, n % PER_WORD);
}

/* AWQ's interleaved rows of nibbles along N, which are codes (row k) or zero points (row g). */
static struct w4_place interleaved(const struct w4_dims *d, size_t row, size_t n)
{
    return place(row * words(d->n) + n / PER_WORD, w4_interleaved(n % PER_WORD));
}

static struct w4_place by_column_code(const struct w4_dims *d, size_t k, size_t n)
{
    return place(n * words(d->k) + k / PER_WORD, k % PER_WORD);
}

static struct w4_place by_column_zero(const struct w4_dims *d, size_t g, size_t n)
{
    return place(n / PER_WORD * d->groups + g, n % PER_WORD);
}

/*
 * mma.m16n8k16 takes its 16×8 operand B as four elements of each lane: element e of lane l is row
 * 2·(l%4) + e%2 + 8·(e/2), column l/4 (PTX ISA, matrix fragments of mma.m16n8k16). A 16×16 tile
 * consists of two such operands, so each lane has eight elements of it, which are one word. The
 * words of the four tiles of a 16×64 block are contiguous, so that a lane loads them in one access
 * of 16 bytes.
 */
static struct w4_place marlin_code(const struct w4_dims *d, size_t k, size_t n)
{
    size_t row = k % 16, column = n % 8;
    size_t lane = column * 4 + row % 8 / 2;
    size_t element = row / 8 * 2 + row % 2, operand = n % 16 / 8, tile = n % 64 / 16;
    size_t block = k / 16 * (d->n / 64) + n / 64;
    return place(block * 128 + lane * 4 + tile, w4_interleaved(operand * 4 + element));
}

/*
 * With groups, scales are multiplied into the fragments of B: a lane needs the scales of column l/4
 * of the eight operands of its 16×64 block, which are one load of 16 bytes. With a single group,
 * scales are multiplied into sums, whose fragments have columns 2·(l%4) and 2·(l%4) + 1: a lane
 * needs these two scales of four operands, which are 32 columns.
 */
static size_t marlin_column(const struct w4_dims *d, size_t n)
{
    if (d->groups > 1)
        return n / 64 * 64 + n % 8 * 8 + n % 64 / 8;
    size_t operand = n % 32 / 8, pair = n % 8 / 2;
    return n / 32 * 32 + pair * 8 + operand * 2 + n % 2;
}

static struct w4_place marlin_zero(const struct w4_dims *d, size_t g, size_t n)
{
    return interleaved(d, g, marlin_column(d, n));
}

static size_t plain_scale(const struct w4_dims *d, size_t g, size_t n)
{
    return g * d->n + n;
}

static size_t by_column_scale(const struct w4_dims *d, size_t g, size_t n)
{
    return n * d->groups + g;
}

static size_t marlin_scale(const struct w4_dims *d, size_t g, size_t n)
{
    return g * d->n + marlin_column(d, n);
}

static void gptq_weights(const struct w4_dims *d, size_t shape[2])
{
    shape[0] = words(d->k), shape[1] = d->n;
}

static void awq_weights(const struct w4_dims *d, size_t shape[2])
{
    shape[0] = d->k, shape[1] = words(d->n);
}

static void by_column_weights(const struct w4_dims *d, size_t shape[2])
{
    shape[0] = d->n, shape[1] = words(d->k);
}

static void marlin_weights(const struct w4_dims *d, size_t shape[2])
{
    shape[0] = d->k / 16, shape[1] = 2 * d->n;
}

static void zeros_by_group(const struct w4_dims *d, size_t shape[2])
{
    shape[0] = d->groups, shape[1] = words(d->n);
}

static void zeros_by_column(const struct w4_dims *d, size_t shape[2])
{
    shape[0] = words(d->n), shape[1] = d->groups;
}

#define GPTQ(title, bias)                                                                          \
    {                                                                                              \
        .name = title, .weights = "qweight", .scales = "scales", .zeros = "qzeros",                \
        .g_idx = "g_idx", .k_multiple = 8, .n_multiple = 8, .k_dimension = 0, .k_per_unit = 8,     \
        .always_zeros = true, .always_g_idx = true, .stored_zero_bias = bias, .code = gptq_code,   \
        .zero = gptq_zero, .scale = plain_scale, .weights_shape = gptq_weights,                    \
        .zeros_shape = zeros_by_group                                                              \
    }

static const struct w4_format formats[] = {
    [PTXGEN_W4_GPTQ_V1] = GPTQ("gptq", 15),
    [PTXGEN_W4_GPTQ_V2] = GPTQ("gptq_v2", 0),
    [PTXGEN_W4_AWQ] = {.name = "awq",
                       .weights = "qweight",
                       .scales = "scales",
                       .zeros = "qzeros",
                       .k_multiple = 1,
                       .n_multiple = 8,
                       .k_dimension = 0,
                       .k_per_unit = 1,
                       .always_zeros = true,
                       .code = interleaved,
                       .zero = interleaved,
                       .scale = plain_scale,
                       .weights_shape = awq_weights,
                       .zeros_shape = zeros_by_group},
    [PTXGEN_W4_PACK_QUANTIZED] = {.name = "pack-quantized",
                                  .weights = "weight_packed",
                                  .scales = "weight_scale",
                                  .zeros = "weight_zero_point",
                                  .g_idx = "weight_g_idx",
                                  .k_multiple = 1,
                                  .n_multiple = 1,
                                  .k_dimension = 1,
                                  .k_per_unit = 8,
                                  .scales_by_column = true,
                                  .has_shape = true,
                                  .code = by_column_code,
                                  .zero = by_column_zero,
                                  .scale = by_column_scale,
                                  .weights_shape = by_column_weights,
                                  .zeros_shape = zeros_by_column},
    [PTXGEN_W4_MARLIN] = {.name = "marlin",
                          .weights = "B",
                          .scales = "s",
                          .zeros = "zeros",
                          .k_multiple = 16,
                          .n_multiple = 64,
                          .k_dimension = 0,
                          .k_per_unit = 16,
                          .code = marlin_code,
                          .zero = marlin_zero,
                          .scale = marlin_scale,
                          .weights_shape = marlin_weights,
                          .zeros_shape = zeros_by_group},
};

const struct w4_format *w4_format_of(ptxgen_w4_format format)
{
    return (unsigned)format < sizeof formats / sizeof *formats ? &formats[format] : NULL;
}
