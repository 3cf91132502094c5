/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor_core.h"

#include "tensor_dot.h"
#include "tensor_double.h"
#include "tensor_fragment.h"
#include "tensor_integer.h"
#include "tensor_mma_quad.h"
#include "tensor_sparse.h"

/* ---- what PTX has ---- */

enum {
    ACC_F16 = 1 << EMU_F16,
    ACC_F32 = 1 << EMU_F32,
    ACC_F64 = 1 << EMU_F64,
    ACC_S32 = 1 << EMU_S32,
    FP8 = 1 << EMU_E4M3 | 1 << EMU_E5M2,
    INT8 = 1 << EMU_S8 | 1 << EMU_U8,
    INT4 = 1 << EMU_S4 | 1 << EMU_U4,
    BIT = 1 << EMU_B1,
    F64 = 1 << EMU_F64
};

/** PTX ISA, syntax of mma and mma.sp: the element types of A and B, the accumulators. */
typedef struct mma_shape {
    uint16_t m, n, k;
    uint16_t elements, accumulators;
    bool mixed; /* A and B may differ within `elements` */
    bool sparse;
} mma_shape;

static const mma_shape SHAPES[] = {
    {8, 8, 4, 1 << EMU_F16, ACC_F16 | ACC_F32, false, false},
    {16, 8, 8, 1 << EMU_F16, ACC_F16 | ACC_F32, false, false},
    {16, 8, 16, 1 << EMU_F16, ACC_F16 | ACC_F32, false, false},
    {16, 8, 8, 1 << EMU_BF16, ACC_F32, false, false},
    {16, 8, 16, 1 << EMU_BF16, ACC_F32, false, false},
    {16, 8, 4, 1 << EMU_TF32, ACC_F32, false, false},
    {16, 8, 8, 1 << EMU_TF32, ACC_F32, false, false},
    {16, 8, 16, FP8, ACC_F16 | ACC_F32, true, false},
    {16, 8, 32, FP8, ACC_F16 | ACC_F32, true, false},
    {8, 8, 4, F64, ACC_F64, false, false},
    {16, 8, 4, F64, ACC_F64, false, false},
    {16, 8, 8, F64, ACC_F64, false, false},
    {16, 8, 16, F64, ACC_F64, false, false},
    {8, 8, 16, INT8, ACC_S32, true, false},
    {16, 8, 16, INT8, ACC_S32, true, false},
    {16, 8, 32, INT8, ACC_S32, true, false},
    {8, 8, 32, INT4, ACC_S32, true, false},
    {16, 8, 32, INT4, ACC_S32, true, false},
    {16, 8, 64, INT4, ACC_S32, true, false},
    {8, 8, 128, BIT, ACC_S32, false, false},
    {16, 8, 128, BIT, ACC_S32, false, false},
    {16, 8, 256, BIT, ACC_S32, false, false},
    {16, 8, 16, 1 << EMU_F16, ACC_F16 | ACC_F32, false, true},
    {16, 8, 32, 1 << EMU_F16, ACC_F16 | ACC_F32, false, true},
    {16, 8, 16, 1 << EMU_BF16, ACC_F32, false, true},
    {16, 8, 32, 1 << EMU_BF16, ACC_F32, false, true},
    {16, 8, 8, 1 << EMU_TF32, ACC_F32, false, true},
    {16, 8, 16, 1 << EMU_TF32, ACC_F32, false, true},
    {16, 8, 64, FP8, ACC_F16 | ACC_F32, true, true},
    {16, 8, 32, INT8, ACC_S32, true, true},
    {16, 8, 64, INT8, ACC_S32, true, true},
    {16, 8, 64, INT4, ACC_S32, true, true},
    {16, 8, 128, INT4, ACC_S32, true, true},
};

static bool is_quad(const emu_mma_op *op)
{
    return op->m == 8 && op->a == EMU_F16;
}

static bool shape_fits(const mma_shape *shape, const emu_mma_op *op)
{
    return shape->m == op->m && shape->n == op->n && shape->k == op->k &&
           shape->sparse == op->sparse && (shape->elements >> op->a & 1) &&
           (shape->elements >> op->b & 1) && (shape->mixed || op->a == op->b) &&
           (shape->accumulators >> op->d & 1) && (shape->accumulators >> op->c & 1);
}

ptxgen_status emu_mma_check(const emu_mma_op *op, ptxgen_error *err)
{
    bool found = false;
    for (unsigned i = 0; i < sizeof SHAPES / sizeof SHAPES[0] && !found; i++)
        found = shape_fits(&SHAPES[i], op);
    if (!found)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "mma%s.m%un%uk%u does not exist with these element types",
                           op->sparse ? ".sp" : "", op->m, op->n, op->k);
    if (op->d != op->c && !(is_quad(op) && op->c == EMU_F16))
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED, "mma.m%un%uk%u: .dtype must equal .ctype",
                           op->m, op->n, op->k);
    if (op->satfinite && (op->d != EMU_S32 || op->a == EMU_B1))
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "mma: .satfinite needs 8- or 4-bit integer elements");
    if (op->rounding != EMU_RN && op->a != EMU_F64)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "mma: only .f64 takes a rounding modifier");
    if ((op->a_column || op->b_row) && !is_quad(op))
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "mma.m%un%uk%u: the layouts must be .row.col", op->m, op->n, op->k);
    return PTXGEN_OK;
}

unsigned emu_mma_registers(const emu_mma_op *op, emu_operand operand)
{
    unsigned copies = is_quad(op) ? 4 : 1;
    unsigned k = operand == EMU_OPERAND_A && op->sparse ? emu_sparse_terms(op->k) : op->k;
    unsigned bits;
    switch (operand) {
    case EMU_OPERAND_A: bits = op->m * k * emu_element_bits(op->a); break;
    case EMU_OPERAND_B: bits = op->n * k * emu_element_bits(op->b); break;
    case EMU_OPERAND_C: bits = op->m * op->n * emu_element_bits(op->c); break;
    default: bits = op->m * op->n * emu_element_bits(op->d); break;
    }
    return bits * copies / (32 * EMU_WARP_LANES);
}

/* ---- doing it ---- */

/** Elements of the operands in matrix order; of a sparse A the dense column of each element. */
typedef struct mma_operands {
    unsigned terms;
    uint32_t a[EMU_TILE_ROWS * EMU_TILE_MAX_TERMS];
    uint32_t b[EMU_TILE_MAX_DEPTH * EMU_TILE_COLUMNS];
    uint8_t column[EMU_TILE_ROWS * EMU_TILE_MAX_TERMS];
} mma_operands;

static void dot_float(const emu_mma_op *op, emu_numerics numerics, const mma_operands *in,
                      emu_tile *tile)
{
    const emu_dot_rule rule = emu_dot_rule_of(numerics, op->a, op->d, false);
    const uint8_t *depth = op->sparse ? in->column : NULL;
    emu_dot_a a;
    emu_dot_b b;
    emu_dot_load_a(&rule, op->a, in->a, depth, in->terms, &a);
    emu_dot_load_b(&rule, op->b, in->b, op->k, &b);
    emu_dot(&rule, &a, &b, tile);
}

static void dot_integer(const emu_mma_op *op, const mma_operands *in, emu_tile *tile)
{
    const uint8_t *depth = op->sparse ? in->column : NULL;
    emu_integer_a a;
    emu_integer_b b;
    emu_integer_load_a(op->a, in->a, depth, op->m, in->terms, &a);
    emu_integer_load_b(op->b, in->b, op->k, &b);
    emu_integer_dot(&a, &b, op->m, op->satfinite, tile);
}

/** `in->terms` is set, and `in->column` for a sparse op. */
static void mma_tile(const emu_mma_op *op, emu_numerics numerics, mma_operands *in, emu_lanes *d,
                     const emu_lanes *a, const emu_lanes *b, const emu_lanes *c)
{
    emu_tile tile;
    emu_fragment_c(c, emu_element_bits(op->c), op->m, &tile);
    emu_fragment_a(a, emu_element_bits(op->a), op->m, in->terms, in->a);
    emu_fragment_b(b, emu_element_bits(op->b), op->k, in->b);
    if (emu_element_is_float(op->a))
        dot_float(op, numerics, in, &tile);
    else
        dot_integer(op, in, &tile);
    emu_fragment_d(d, emu_element_bits(op->d), op->m, &tile);
}

static void mma_bits(const emu_mma_op *op, emu_lanes *d, const emu_lanes *a, const emu_lanes *b,
                     const emu_lanes *c)
{
    enum { WORD = 32, MAX_WORDS = 8 };
    uint32_t am[EMU_TILE_ROWS * MAX_WORDS], bm[MAX_WORDS * EMU_TILE_COLUMNS];
    const unsigned words = op->k / WORD;
    emu_tile tile;
    emu_fragment_c(c, 32, op->m, &tile);
    emu_fragment_a(a, WORD, op->m, words, am);
    emu_fragment_b(b, WORD, words, bm);
    emu_bit_dot(am, bm, words, op->m, op->bit_op, &tile);
    emu_fragment_d(d, 32, op->m, &tile);
}

void emu_mma(const emu_mma_op *op, emu_numerics numerics, emu_lanes *d, const emu_lanes *a,
             const emu_lanes *b, const emu_lanes *c)
{
    mma_operands in;
    if (op->a == EMU_F64) {
        emu_double_mma(op, d, a, b, c);
    } else if (op->a == EMU_B1) {
        mma_bits(op, d, a, b, c);
    } else if (is_quad(op)) {
        emu_mma_quad(op, numerics, d, a, b, c);
    } else {
        in.terms = op->k;
        mma_tile(op, numerics, &in, d, a, b, c);
    }
}

ptxgen_status emu_mma_sp(const emu_mma_op *op, emu_numerics numerics, emu_lanes *d,
                         const emu_lanes *a, const emu_lanes *b, const emu_lanes *c,
                         const emu_lanes *metadata, uint32_t selector, ptxgen_error *err)
{
    mma_operands in = {.terms = emu_sparse_terms(op->k)};
    ptxgen_status status =
        emu_sparse_columns(op->a, op->k, op->ordered_metadata, metadata, selector, in.column, err);
    if (status != PTXGEN_OK)
        return status;
    mma_tile(op, numerics, &in, d, a, b, c);
    return PTXGEN_OK;
}

uint32_t emu_mma_sp_metadata_lanes(const emu_mma_op *op, uint32_t selector)
{
    return emu_sparse_lanes(op->a, op->k, selector);
}
