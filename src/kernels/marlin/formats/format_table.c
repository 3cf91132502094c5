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

static struct w4_place awq_code(const struct w4_dims *d, size_t k, size_t n)
{
    return place(k * words(d->n) + n / PER_WORD, w4_interleaved(n % PER_WORD));
}

static struct w4_place by_column_code(const struct w4_dims *d, size_t k, size_t n)
{
    return place(n * words(d->k) + k / PER_WORD, k % PER_WORD);
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

/* Where column n of scales and zero points is in a row. */
static size_t column_of(const struct w4_format *f, const struct w4_dims *d, size_t n)
{
    return f->permutes_columns ? marlin_column(d, n) : n;
}

struct w4_place w4_zero_place(const struct w4_format *f, const struct w4_dims *d, size_t g,
                              size_t n)
{
    size_t column = column_of(f, d, n), word = column / PER_WORD, nibble = column % PER_WORD;
    return place(f->by_column ? word * d->groups + g : g * words(d->n) + word,
                 f->interleaves ? w4_interleaved(nibble) : nibble);
}

size_t w4_scale_index(const struct w4_format *f, const struct w4_dims *d, size_t g, size_t n)
{
    return f->by_column ? n * d->groups + g : g * d->n + column_of(f, d, n);
}

void w4_shapes(const struct w4_format *f, const struct w4_dims *d, size_t shapes[W4_TENSORS][2])
{
    const size_t all[W4_TENSORS][2] = {
        [W4_WEIGHTS] = {(d->k + f->k_per_unit - 1) / f->k_per_unit, words(d->n * f->k_per_unit)},
        [W4_SCALES] = {d->groups, d->n},
        [W4_ZEROS] = {d->groups, words(d->n)},
        [W4_G_IDX] = {d->k, 1},
        [W4_SHAPE] = {2, 1},
    };
    for (int i = 0; i < W4_TENSORS; i++) {
        bool swapped = f->by_column && i <= W4_ZEROS;
        shapes[i][0] = all[i][swapped];
        shapes[i][1] = all[i][!swapped];
    }
}

#define GPTQ(title, bias)                                                                          \
    {                                                                                              \
        .name = title, .tensors = {"qweight", "scales", "qzeros", "g_idx"}, .k_multiple = 8,       \
        .n_multiple = 8, .k_per_unit = 8, .always_zeros = true, .always_g_idx = true,              \
        .stored_zero_bias = bias, .code = gptq_code                                                \
    }

static const struct w4_format formats[] = {
    [PTXGEN_W4_GPTQ_V1] = GPTQ("gptq", 15),
    [PTXGEN_W4_GPTQ_V2] = GPTQ("gptq_v2", 0),
    [PTXGEN_W4_AWQ] = {.name = "awq",
                       .tensors = {"qweight", "scales", "qzeros"},
                       .k_multiple = 1,
                       .n_multiple = 8,
                       .k_per_unit = 1,
                       .interleaves = true,
                       .always_zeros = true,
                       .code = awq_code},
    [PTXGEN_W4_PACK_QUANTIZED] = {.name = "pack-quantized",
                                  .tensors = {"weight_packed", "weight_scale", "weight_zero_point",
                                              "weight_g_idx", "weight_shape"},
                                  .k_multiple = 1,
                                  .n_multiple = 1,
                                  .k_per_unit = 8,
                                  .by_column = true,
                                  .code = by_column_code},
    [PTXGEN_W4_MARLIN] = {.name = "marlin",
                          .tensors = {"B", "s", "zeros"},
                          .k_multiple = 16,
                          .n_multiple = 64,
                          .k_per_unit = 16,
                          .interleaves = true,
                          .permutes_columns = true,
                          .code = marlin_code},
};

const struct w4_format *w4_format_of(ptxgen_w4_format format)
{
    return (unsigned)format < sizeof formats / sizeof *formats ? &formats[format] : NULL;
}
