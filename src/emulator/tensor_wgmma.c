/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wgmma.mma_async: each warp of the warpgroup owns 16 rows of A and D, whose fragments are those
 * of mma.m16n8k*, one after the other along N. B is gathered from shared memory once for each
 * eight columns and met by all four warps.
 */
#include "tensor_core.h"

#include <string.h>

#include "tensor_descriptor.h"
#include "tensor_dot.h"
#include "tensor_fragment.h"
#include "tensor_integer.h"
#include "tensor_sparse.h"

enum { ATOM = 16, COLUMNS = EMU_TILE_COLUMNS, WARPS = EMU_WARPGROUP_WARPS };

/* ---- what PTX has ---- */

static bool is_integer(emu_element type)
{
    return type == EMU_S8 || type == EMU_U8;
}

/* Of which N, the sums and the operands' scales follow the rules of integers. */
static bool is_whole(emu_element type)
{
    return is_integer(type) || type == EMU_B1;
}

static bool types_match(const emu_wgmma_op *op)
{
    if (op->a == EMU_B1)
        return op->b == EMU_B1 && op->d == EMU_S32 && !op->sparse;
    if (is_integer(op->a))
        return is_integer(op->b) && op->d == EMU_S32;
    if (emu_element_is_fp8(op->a))
        return emu_element_is_fp8(op->b) && (op->d == EMU_F32 || op->d == EMU_F16);
    if (op->a == EMU_F16)
        return op->b == EMU_F16 && (op->d == EMU_F32 || op->d == EMU_F16);
    return (op->a == EMU_BF16 || op->a == EMU_TF32) && op->b == op->a && op->d == EMU_F32;
}

/** K is what 32 bytes of a row hold, twice that when sparse. */
static unsigned expected_k(const emu_wgmma_op *op)
{
    return 256 / emu_element_bits(op->a) * (op->sparse ? 2 : 1);
}

static bool n_valid(const emu_wgmma_op *op)
{
    unsigned step = is_whole(op->a) && op->n > 32 ? 16 : 8;
    return op->n >= 8 && op->n <= 256 && op->n % step == 0;
}

ptxgen_status emu_wgmma_check(const emu_wgmma_op *op, ptxgen_error *err)
{
    if (!types_match(op))
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "wgmma does not exist with these element types");
    if (op->k != expected_k(op))
        return ptxgen_fail(
            err, PTXGEN_ERROR_UNSUPPORTED, "wgmma%s.m64n%uk%u: K must be %u for %u-bit elements",
            op->sparse ? ".sp" : "", op->n, op->k, expected_k(op), emu_element_bits(op->a));
    if (!n_valid(op))
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "wgmma: N is %u: it must be a multiple of 8 (integers above 32: of "
                           "16) up to 256",
                           op->n);
    bool half = op->a == EMU_F16 || op->a == EMU_BF16;
    if ((op->transpose_a || op->transpose_b) && !half)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "wgmma: only .f16 and .bf16 operands can be transposed");
    if (op->transpose_a && !op->a_shared)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "wgmma: A in registers cannot be transposed");
    if ((op->negate_a || op->negate_b) && is_whole(op->a))
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "wgmma: integer operands cannot be negated");
    if (op->satfinite && !is_integer(op->a))
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "wgmma: .satfinite needs integer elements");
    return PTXGEN_OK;
}

unsigned emu_wgmma_registers(const emu_wgmma_op *op, emu_operand operand)
{
    if (operand == EMU_OPERAND_A)
        return op->a_shared ? 0 : 4;
    if (operand == EMU_OPERAND_B)
        return 0;
    return op->d == EMU_F16 ? op->n / 4u : op->n / 2u;
}

/* ---- operands ---- */

typedef struct shared_operand {
    emu_matrix_descriptor descriptor;
    bool mn_major;
    unsigned bits; /* of an element */
    const emu_shared_reader *reader;
    emu_operand operand;
} shared_operand;

static ptxgen_status read_atom(const shared_operand *from, unsigned minor, unsigned major,
                               uint8_t out[ATOM], ptxgen_error *err)
{
    uint32_t address = emu_descriptor_atom(&from->descriptor, from->mn_major, minor, major);
    if (from->reader->read16(from->reader->user, from->operand, address, out))
        return PTXGEN_OK;
    return ptxgen_fail(err, PTXGEN_ERROR_PTX_FAULT,
                       "wgmma: the descriptor of %s leads to shared address 0x%X, which cannot "
                       "be read",
                       from->operand == EMU_OPERAND_A ? "A" : "B", address);
}

static uint32_t atom_element(const uint8_t atom[ATOM], unsigned bits, unsigned index)
{
    switch (bits) {
    case 8: return atom[index];
    case 16: return atom[2 * index] | (uint32_t)atom[2 * index + 1] << 8;
    default:
        return atom[4 * index] | (uint32_t)atom[4 * index + 1] << 8 |
               (uint32_t)atom[4 * index + 2] << 16 | (uint32_t)atom[4 * index + 3] << 24;
    }
}

/**
 * Reads lines `first` … `first + lines - 1` along M/N (a multiple of 8), `depth` elements along
 * K each, to `out[line * line_step + k * k_step]`.
 */
static ptxgen_status read_lines(const shared_operand *from, unsigned first, unsigned lines,
                                unsigned depth, uint32_t *out, unsigned line_step, unsigned k_step,
                                ptxgen_error *err)
{
    const unsigned pack = ATOM * 8 / from->bits;
    const unsigned outer = from->mn_major ? depth : lines;
    const unsigned inner = (from->mn_major ? lines : depth) / pack;
    const unsigned outer_base = from->mn_major ? 0 : first;
    const unsigned inner_base = from->mn_major ? first / pack : 0;
    const unsigned outer_step = from->mn_major ? k_step : line_step;
    const unsigned inner_step = from->mn_major ? line_step : k_step;
    for (unsigned i = 0; i < outer; i++) {
        for (unsigned j = 0; j < inner; j++) {
            uint8_t atom[ATOM];
            ptxgen_status status = read_atom(from, outer_base + i, inner_base + j, atom, err);
            if (status != PTXGEN_OK)
                return status;
            for (unsigned e = 0; e < pack; e++)
                out[i * outer_step + (j * pack + e) * inner_step] =
                    atom_element(atom, from->bits, e);
        }
    }
    return PTXGEN_OK;
}

static void negate(emu_element type, uint32_t *bits, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        bits[i] ^= emu_element_sign_bit(type);
}

enum { BIT_WORDS = 256 / 32 }; /* of a row of b1, whose elements are read by 32 */

/** A as each warp sees it, decoded. */
typedef union wgmma_a {
    emu_dot_a floats;
    emu_integer_a integers;
    uint32_t bits[EMU_TILE_ROWS * BIT_WORDS];
} wgmma_a;

typedef union wgmma_b {
    emu_dot_b floats;
    emu_integer_b integers;
    uint32_t bits[BIT_WORDS * COLUMNS];
} wgmma_b;

static unsigned bits_read(emu_element type)
{
    return type == EMU_B1 ? 32 : emu_element_bits(type);
}

static ptxgen_status load_a(const emu_wgmma_op *op, const emu_dot_rule *rule,
                            const emu_wgmma_args *args, unsigned warp, wgmma_a *out,
                            ptxgen_error *err)
{
    uint32_t bits[EMU_TILE_ROWS * EMU_TILE_MAX_TERMS];
    uint8_t column[EMU_TILE_ROWS * EMU_TILE_MAX_TERMS];
    const uint8_t *depth = op->sparse ? column : NULL;
    const unsigned terms = op->a == EMU_B1 ? BIT_WORDS
                           : op->sparse    ? emu_sparse_terms(op->k)
                                           : op->k;
    ptxgen_status status = PTXGEN_OK;
    if (op->sparse)
        status = emu_sparse_columns(op->a, op->k, false, &args->metadata[warp], args->selector,
                                    column, err);
    if (status != PTXGEN_OK)
        return status;
    if (op->a_shared) {
        shared_operand from = {emu_matrix_descriptor_decode(args->a_descriptor), op->transpose_a,
                               bits_read(op->a), &args->shared, EMU_OPERAND_A};
        status = read_lines(&from, warp * EMU_TILE_ROWS, EMU_TILE_ROWS, terms, bits, terms, 1, err);
        if (status != PTXGEN_OK)
            return status;
    } else {
        emu_fragment_a(args->a + warp * 4, bits_read(op->a), EMU_TILE_ROWS, terms, bits);
    }
    if (op->negate_a)
        negate(op->a, bits, EMU_TILE_ROWS * terms);
    if (op->a == EMU_B1)
        memcpy(out->bits, bits, sizeof out->bits);
    else if (is_integer(op->a))
        emu_integer_load_a(op->a, bits, depth, EMU_TILE_ROWS, terms, &out->integers);
    else
        emu_dot_load_a(rule, op->a, bits, depth, terms, &out->floats);
    return PTXGEN_OK;
}

/** Columns first … first + 7 of B. */
static ptxgen_status load_b(const emu_wgmma_op *op, const emu_dot_rule *rule,
                            const emu_wgmma_args *args, unsigned first, wgmma_b *out,
                            ptxgen_error *err)
{
    uint32_t bits[EMU_TILE_MAX_DEPTH * COLUMNS];
    shared_operand from = {emu_matrix_descriptor_decode(args->b_descriptor), op->transpose_b,
                           bits_read(op->b), &args->shared, EMU_OPERAND_B};
    const unsigned depth = op->b == EMU_B1 ? BIT_WORDS : op->k;
    ptxgen_status status = read_lines(&from, first, COLUMNS, depth, bits, 1, COLUMNS, err);
    if (status != PTXGEN_OK)
        return status;
    if (op->negate_b)
        negate(op->b, bits, op->k * COLUMNS);
    if (op->b == EMU_B1)
        memcpy(out->bits, bits, sizeof out->bits);
    else if (is_integer(op->b))
        emu_integer_load_b(op->b, bits, op->k, &out->integers);
    else
        emu_dot_load_b(rule, op->b, bits, op->k, &out->floats);
    return PTXGEN_OK;
}

/* ---- doing it ---- */

/** Multiplies into `d`, the accumulator registers of all warps. */
static ptxgen_status multiply(const emu_wgmma_op *op, emu_numerics numerics,
                              const emu_wgmma_args *args, emu_lanes *d, ptxgen_error *err)
{
    const emu_dot_rule rule = emu_dot_rule_of(numerics, op->a, op->d, true);
    const unsigned bits = emu_element_bits(op->d);
    const unsigned registers = emu_wgmma_registers(op, EMU_OPERAND_D);
    const unsigned in_block = bits * EMU_TILE_ROWS * COLUMNS / (32 * EMU_WARP_LANES);
    wgmma_a a[WARPS];
    for (unsigned warp = 0; warp < WARPS; warp++) {
        ptxgen_status status = load_a(op, &rule, args, warp, &a[warp], err);
        if (status != PTXGEN_OK)
            return status;
    }
    for (unsigned block = 0; block < op->n / COLUMNS; block++) {
        wgmma_b b;
        ptxgen_status status = load_b(op, &rule, args, block * COLUMNS, &b, err);
        if (status != PTXGEN_OK)
            return status;
        for (unsigned warp = 0; warp < WARPS; warp++) {
            emu_lanes *at = d + warp * registers + block * in_block;
            emu_tile tile;
            emu_fragment_c(at, bits, EMU_TILE_ROWS, &tile);
            if (op->a == EMU_B1)
                emu_bit_dot(a[warp].bits, b.bits, BIT_WORDS, EMU_TILE_ROWS, EMU_BIT_AND, &tile);
            else if (is_integer(op->a))
                emu_integer_dot(&a[warp].integers, &b.integers, EMU_TILE_ROWS, op->satfinite,
                                &tile);
            else
                emu_dot(&rule, &a[warp].floats, &b.floats, &tile);
            emu_fragment_d(at, bits, EMU_TILE_ROWS, &tile);
        }
    }
    return PTXGEN_OK;
}

ptxgen_status emu_wgmma(const emu_wgmma_op *op, emu_numerics numerics, const emu_wgmma_args *args,
                        ptxgen_error *err)
{
    emu_lanes d[WARPS * 128]; /* a fault must leave the registers as they were */
    const size_t size = sizeof(emu_lanes) * WARPS * emu_wgmma_registers(op, EMU_OPERAND_D);
    if (args->scale_d)
        memcpy(d, args->d, size);
    else
        memset(d, 0, size);
    ptxgen_status status = multiply(op, numerics, args, d, err);
    if (status == PTXGEN_OK)
        memcpy(args->d, d, size);
    return status;
}
