/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every mma shape against the row and column formulas of the PTX ISA's "Matrix Fragments for
 * mma.*", written out for each shape as the ISA writes them, and a triple loop.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "slow_mma.h"
#include "tests/status.h"

typedef struct place {
    unsigned row, column;
} place;

typedef place (*place_of)(unsigned g, unsigned t, unsigned i);

/* ---- A ---- */

static place a_884_f64(unsigned g, unsigned t, unsigned i)
{
    return (place){g, t + 0 * i};
}

static place a_8816(unsigned g, unsigned t, unsigned i)
{
    return (place){g, t * 4 + i};
}

static place a_8832(unsigned g, unsigned t, unsigned i)
{
    return (place){g, t * 8 + i};
}

static place a_88128(unsigned g, unsigned t, unsigned i)
{
    return (place){g, t * 32 + i};
}

static place a_1684(unsigned g, unsigned t, unsigned i)
{
    return (place){i == 0 ? g : g + 8, t};
}

static place a_1688_half(unsigned g, unsigned t, unsigned i)
{
    return (place){i < 2 ? g : g + 8, t * 2 + (i & 1)};
}

static place a_1688_word(unsigned g, unsigned t, unsigned i)
{
    return (place){i == 0 || i == 2 ? g : g + 8, i < 2 ? t : t + 4};
}

static place a_16816_half(unsigned g, unsigned t, unsigned i)
{
    return (place){i < 2 || (4 <= i && i < 6) ? g : g + 8, t * 2 + (i & 1) + (i >= 4 ? 8 : 0)};
}

static place a_16816_f64(unsigned g, unsigned t, unsigned i)
{
    return (place){i % 2 == 0 ? g : g + 8, i % 2 == 0 ? i * 2 + t : i * 2 - 2 + t};
}

static place a_16816_byte(unsigned g, unsigned t, unsigned i)
{
    return (place){i < 4 ? g : g + 8, t * 4 + (i & 3)};
}

static place a_16832_nibble(unsigned g, unsigned t, unsigned i)
{
    return (place){i < 8 ? g : g + 8, t * 8 + (i & 7)};
}

static place a_16832_byte(unsigned g, unsigned t, unsigned i)
{
    return (place){i < 4 || (8 <= i && i < 12) ? g : g + 8, t * 4 + (i & 3) + (i >= 8 ? 16 : 0)};
}

static place a_16864(unsigned g, unsigned t, unsigned i)
{
    return (place){i < 8 || (16 <= i && i < 24) ? g : g + 8, t * 8 + (i & 7) + (i >= 16 ? 32 : 0)};
}

static place a_168128(unsigned g, unsigned t, unsigned i)
{
    return (place){i < 32 ? g : g + 8, t * 32 + (i & 31)};
}

static place a_168256(unsigned g, unsigned t, unsigned i)
{
    return (place){i < 32 || (64 <= i && i < 96) ? g : g + 8,
                   t * 32 + (i & 31) + (i >= 64 ? 128 : 0)};
}

/* ---- B: rows are K ---- */

static place b_word_4(unsigned g, unsigned t, unsigned i)
{
    return (place){i == 0 ? t : t + 4 * i, g};
}

static place b_half(unsigned g, unsigned t, unsigned i)
{
    return (place){t * 2 + (i & 1) + (i >= 2 ? 8 : 0), g};
}

static place b_byte(unsigned g, unsigned t, unsigned i)
{
    return (place){t * 4 + (i & 3) + (i >= 4 ? 16 : 0), g};
}

static place b_nibble(unsigned g, unsigned t, unsigned i)
{
    return (place){t * 8 + (i & 7) + (i >= 8 ? 32 : 0), g};
}

static place b_bit(unsigned g, unsigned t, unsigned i)
{
    return (place){t * 32 + (i & 31) + (i >= 32 ? 128 : 0), g};
}

/* ---- C and D ---- */

static place c_any(unsigned g, unsigned t, unsigned i)
{
    return (place){i < 2 ? g : g + 8, t * 2 + (i & 1)};
}

typedef struct layout_case {
    emu_mma_op op;
    place_of a, b;
} layout_case;

#define FLOAT_OP(M, K, TYPE, ACC) .op = {MMA(M, K, ACC, TYPE, TYPE, ACC)}
#define INT_OP(M, K, TA, TB) .op = {MMA(M, K, EMU_S32, TA, TB, EMU_S32)}
#define FP8_OP(K, TA, TB, ACC) .op = {MMA(16, K, ACC, TA, TB, ACC)}

static const layout_case CASES[] = {
    {FLOAT_OP(8, 4, EMU_F64, EMU_F64), a_884_f64, b_word_4},
    {FLOAT_OP(16, 4, EMU_F64, EMU_F64), a_1684, b_word_4},
    {FLOAT_OP(16, 8, EMU_F64, EMU_F64), a_1688_word, b_word_4},
    {FLOAT_OP(16, 16, EMU_F64, EMU_F64), a_16816_f64, b_word_4},
    {FLOAT_OP(16, 4, EMU_TF32, EMU_F32), a_1684, b_word_4},
    {FLOAT_OP(16, 8, EMU_TF32, EMU_F32), a_1688_word, b_word_4},
    {FLOAT_OP(16, 8, EMU_F16, EMU_F32), a_1688_half, b_half},
    {FLOAT_OP(16, 8, EMU_F16, EMU_F16), a_1688_half, b_half},
    {FLOAT_OP(16, 8, EMU_BF16, EMU_F32), a_1688_half, b_half},
    {FLOAT_OP(16, 16, EMU_F16, EMU_F32), a_16816_half, b_half},
    {FLOAT_OP(16, 16, EMU_F16, EMU_F16), a_16816_half, b_half},
    {FLOAT_OP(16, 16, EMU_BF16, EMU_F32), a_16816_half, b_half},
    {FP8_OP(16, EMU_E4M3, EMU_E5M2, EMU_F32), a_16816_byte, b_byte},
    {FP8_OP(16, EMU_E5M2, EMU_E4M3, EMU_F16), a_16816_byte, b_byte},
    {FP8_OP(32, EMU_E4M3, EMU_E4M3, EMU_F32), a_16832_byte, b_byte},
    {FP8_OP(32, EMU_E5M2, EMU_E5M2, EMU_F16), a_16832_byte, b_byte},
    {INT_OP(8, 16, EMU_S8, EMU_U8), a_8816, b_byte},
    {INT_OP(16, 16, EMU_U8, EMU_S8), a_16816_byte, b_byte},
    {INT_OP(16, 32, EMU_S8, EMU_S8), a_16832_byte, b_byte},
    {INT_OP(16, 32, EMU_U8, EMU_U8), a_16832_byte, b_byte},
    {INT_OP(8, 32, EMU_S4, EMU_U4), a_8832, b_nibble},
    {INT_OP(16, 32, EMU_U4, EMU_S4), a_16832_nibble, b_nibble},
    {INT_OP(16, 64, EMU_S4, EMU_S4), a_16864, b_nibble},
    {INT_OP(8, 128, EMU_B1, EMU_B1), a_88128, b_bit},
    {INT_OP(16, 128, EMU_B1, EMU_B1), a_168128, b_bit},
    {INT_OP(16, 256, EMU_B1, EMU_B1), a_168256, b_bit},
};

static int product(const emu_mma_op *op, int a, int b)
{
    if (op->a != EMU_B1)
        return a * b;
    return op->bit_op == EMU_BIT_AND ? a & b : a ^ b;
}

/** Fills a fragment from a matrix of integers. */
static void pack(place_of where, emu_element type, unsigned registers, const int *matrix,
                 unsigned columns, emu_lanes *out)
{
    unsigned bits = emu_element_bits(type);
    memset(out, 0, registers * sizeof *out);
    for (unsigned lane = 0; lane < 32; lane++) {
        for (unsigned i = 0; i < registers * 32 / bits; i++) {
            place p = where(lane >> 2, lane % 4, i);
            put_element(out, bits, lane, i, element_bits(type, matrix[p.row * columns + p.column]));
        }
    }
}

static void pack_c(const emu_mma_op *op, const int *c, emu_lanes *out)
{
    unsigned registers = emu_mma_registers(op, EMU_OPERAND_C), bits = emu_element_bits(op->c);
    memset(out, 0, registers * sizeof *out);
    for (unsigned lane = 0; lane < 32; lane++) {
        for (unsigned i = 0; i < registers * 32 / bits; i++) {
            place p = c_any(lane >> 2, lane % 4, i);
            put_element(out, bits, lane, i, accumulator_bits(op->c, c[p.row * 8 + p.column]));
        }
    }
}

static void check_case(const layout_case *test, emu_numerics numerics)
{
    const emu_mma_op *op = &test->op;
    static int a[16 * 256], b[256 * 8], c[16 * 8];
    emu_lanes ra[16], rb[16], rc[16], rd[16];
    ptxgen_error err;
    assert_int_equal(emu_mma_check(op, &err), PTXGEN_OK);
    for (unsigned i = 0; i < 16u * op->k; i++)
        a[i] = random_element(op->a);
    for (unsigned i = 0; i < 8u * op->k; i++)
        b[i] = random_element(op->b);
    for (unsigned i = 0; i < 128; i++)
        c[i] = random_int(-100, 100);
    pack(test->a, op->a, emu_mma_registers(op, EMU_OPERAND_A), a, op->k, ra);
    pack(test->b, op->b, emu_mma_registers(op, EMU_OPERAND_B), b, 8, rb);
    pack_c(op, c, rc);
    memset(rd, 0xAA, sizeof rd);
    emu_mma(op, numerics, rd, ra, rb, rc);

    unsigned bits = emu_element_bits(op->d), registers = emu_mma_registers(op, EMU_OPERAND_D);
    for (unsigned lane = 0; lane < 32; lane++) {
        for (unsigned i = 0; i < registers * 32 / bits; i++) {
            place p = c_any(lane >> 2, lane % 4, i);
            int sum = c[p.row * 8 + p.column];
            for (unsigned k = 0; k < op->k; k++)
                sum += product(op, a[p.row * op->k + k], b[k * 8 + p.column]);
            assert_int_equal(get_element(rd, bits, lane, i), accumulator_bits(op->d, sum));
        }
    }
    for (unsigned lane = 0; lane < 32; lane++)
        assert_int_equal(rd[registers].lane[lane], 0xAAAAAAAA);
}

static void every_dense_shape_multiplies_by_the_isa_figures(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        for (int n = EMU_NUMERICS_EXACT; n <= EMU_NUMERICS_RTX_BLACKWELL; n++)
            check_case(&CASES[i], (emu_numerics)n);
    }
}

static void bit_and_counts_common_bits(void **state)
{
    (void)state;
    layout_case test = {INT_OP(16, 256, EMU_B1, EMU_B1), a_168256, b_bit};
    test.op.bit_op = EMU_BIT_AND;
    check_case(&test, EMU_NUMERICS_EXACT);
}

static void destination_may_be_the_addend(void **state)
{
    (void)state;
    const emu_mma_op op = CASES[9].op;
    emu_lanes a[4], b[2], c[4], d[4];
    for (unsigned lane = 0; lane < 32; lane++) {
        for (unsigned r = 0; r < 4; r++) {
            a[r].lane[lane] = 0x3C003C00;
            b[r % 2].lane[lane] = 0x3C00;
            c[r].lane[lane] = (uint32_t)accumulator_bits(EMU_F32, (int)(lane + r));
        }
    }
    emu_mma(&op, EMU_NUMERICS_HOPPER, d, a, b, c);
    emu_mma(&op, EMU_NUMERICS_HOPPER, c, a, b, c);
    assert_memory_equal(c, d, sizeof c);
}

static void register_counts_are_those_of_the_isa_tables(void **state)
{
    (void)state;
    static const struct {
        emu_mma_op op;
        unsigned a, b, c;
    } expected[] = {
        {{MMA(16, 16, EMU_F16, EMU_F16, EMU_F16, EMU_F16)}, 4, 2, 2},
        {{MMA(16, 4, EMU_F32, EMU_TF32, EMU_TF32, EMU_F32)}, 2, 1, 4},
        {{MMA(16, 16, EMU_F64, EMU_F64, EMU_F64, EMU_F64)}, 16, 8, 8},
        {{MMA(8, 4, EMU_F32, EMU_F16, EMU_F16, EMU_F16)}, 2, 2, 4},
        {{MMA(8, 32, EMU_S32, EMU_S4, EMU_S4, EMU_S32)}, 1, 1, 2},
        {{MMA(16, 32, EMU_F32, EMU_F16, EMU_F16, EMU_F32), .sparse = true}, 4, 4, 4},
        {{MMA(16, 8, EMU_F32, EMU_TF32, EMU_TF32, EMU_F32), .sparse = true}, 2, 2, 4},
        {{MMA(16, 128, EMU_S32, EMU_U4, EMU_U4, EMU_S32), .sparse = true}, 4, 4, 4},
    };
    for (unsigned i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        assert_int_equal(emu_mma_check(&expected[i].op, NULL), PTXGEN_OK);
        assert_int_equal(emu_mma_registers(&expected[i].op, EMU_OPERAND_A), expected[i].a);
        assert_int_equal(emu_mma_registers(&expected[i].op, EMU_OPERAND_B), expected[i].b);
        assert_int_equal(emu_mma_registers(&expected[i].op, EMU_OPERAND_C), expected[i].c);
    }
}

static void unknown_combinations_are_refused(void **state)
{
    (void)state;
    static const struct {
        emu_mma_op op;
        const char *says;
    } bad[] = {
        {{MMA(16, 32, EMU_F32, EMU_F16, EMU_F16, EMU_F32)},
         "mma.m16n8k32 does not exist with these element types"},
        {{MMA(16, 16, EMU_F32, EMU_F16, EMU_BF16, EMU_F32)},
         "mma.m16n8k16 does not exist with these element types"},
        {{MMA(16, 16, EMU_F32, EMU_F16, EMU_F16, EMU_F16)},
         "mma.m16n8k16: .dtype must equal .ctype"},
        {{MMA(16, 16, EMU_F16, EMU_BF16, EMU_BF16, EMU_F16)},
         "mma.m16n8k16 does not exist with these element types"},
        {{MMA(8, 4, EMU_F16, EMU_F16, EMU_F16, EMU_F32)}, "mma.m8n8k4: .dtype must equal .ctype"},
        {{MMA(16, 16, EMU_F32, EMU_F16, EMU_F16, EMU_F32), .satfinite = true},
         "mma: .satfinite needs 8- or 4-bit integer elements"},
        {{MMA(16, 16, EMU_F32, EMU_F16, EMU_F16, EMU_F32), .rounding = EMU_RZ},
         "mma: only .f64 takes a rounding modifier"},
        {{MMA(16, 16, EMU_F32, EMU_F16, EMU_F16, EMU_F32), .a_column = true},
         "mma.m16n8k16: the layouts must be .row.col"},
        {{MMA(16, 32, EMU_S32, EMU_S8, EMU_S4, EMU_S32)},
         "mma.m16n8k32 does not exist with these element types"},
        {{MMA(16, 64, EMU_F32, EMU_F16, EMU_F16, EMU_F32), .sparse = true},
         "mma.sp.m16n8k64 does not exist with these element types"},
    };
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ptxgen_error err;
        assert_int_equal(emu_mma_check(&bad[i].op, &err), PTXGEN_ERROR_UNSUPPORTED);
        assert_says(&err, bad[i].says);
    }
}

/* ---- m8n8k4 f16 ---- */

static place quad_a(bool column_major, unsigned lane, unsigned i)
{
    unsigned high = lane < 16 ? 0 : 4;
    return column_major ? (place){i % 4 + high, lane % 4} : (place){lane % 4 + high, i};
}

static place quad_b(bool row_major, unsigned lane, unsigned i)
{
    unsigned high = lane < 16 ? 0 : 4;
    return row_major ? (place){lane % 4, i + high} : (place){i, lane % 4 + high};
}

static place quad_c(emu_element type, unsigned lane, unsigned i)
{
    unsigned high = lane < 16 ? 0 : 4;
    if (type == EMU_F16)
        return (place){lane % 4 + high, i};
    return (place){(lane & 1) + (i & 2) + high, (i & 4) + (lane & 2) + (i & 1)};
}

static void check_quad(const emu_mma_op *op)
{
    int a[4][8][4], b[4][4][8], c[4][8][8];
    emu_lanes ra[2] = {{{0}}}, rb[2] = {{{0}}}, rc[8] = {{{0}}}, rd[8];
    assert_int_equal(emu_mma_check(op, NULL), PTXGEN_OK);
    for (unsigned q = 0; q < 4; q++) {
        for (unsigned i = 0; i < 32; i++) {
            a[q][i / 4][i % 4] = random_int(-2, 2);
            b[q][i / 8][i % 8] = random_int(-2, 2);
        }
        for (unsigned i = 0; i < 64; i++)
            c[q][i / 8][i % 8] = random_int(-50, 50);
    }
    unsigned c_bits = emu_element_bits(op->c), d_bits = emu_element_bits(op->d);
    for (unsigned lane = 0; lane < 32; lane++) {
        unsigned q = lane % 16 / 4;
        for (unsigned i = 0; i < 4; i++) {
            place p = quad_a(op->a_column, lane, i);
            put_element(ra, 16, lane, i, element_bits(EMU_F16, a[q][p.row][p.column]));
            p = quad_b(op->b_row, lane, i);
            put_element(rb, 16, lane, i, element_bits(EMU_F16, b[q][p.row][p.column]));
        }
        for (unsigned i = 0; i < 8; i++) {
            place p = quad_c(op->c, lane, i);
            put_element(rc, c_bits, lane, i, accumulator_bits(op->c, c[q][p.row][p.column]));
        }
    }
    emu_mma(op, EMU_NUMERICS_AMPERE, rd, ra, rb, rc);
    for (unsigned lane = 0; lane < 32; lane++) {
        unsigned q = lane % 16 / 4;
        for (unsigned i = 0; i < 8; i++) {
            place p = quad_c(op->d, lane, i);
            int sum = c[q][p.row][p.column];
            for (unsigned k = 0; k < 4; k++)
                sum += a[q][p.row][k] * b[q][k][p.column];
            assert_int_equal(get_element(rd, d_bits, lane, i), accumulator_bits(op->d, sum));
        }
    }
}

static void m8n8k4_does_four_products_in_quad_pairs(void **state)
{
    (void)state;
    static const emu_element pairs[][2] = {
        {EMU_F32, EMU_F32}, {EMU_F32, EMU_F16}, {EMU_F16, EMU_F16}};
    for (unsigned i = 0; i < 12; i++) {
        emu_mma_op op = {MMA(8, 4, pairs[i / 4][0], EMU_F16, EMU_F16, pairs[i / 4][1])};
        op.a_column = i & 1;
        op.b_row = i & 2;
        check_quad(&op);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_dense_shape_multiplies_by_the_isa_figures),
        cmocka_unit_test(bit_and_counts_common_bits),
        cmocka_unit_test(destination_may_be_the_addend),
        cmocka_unit_test(register_counts_are_those_of_the_isa_tables),
        cmocka_unit_test(unknown_combinations_are_refused),
        cmocka_unit_test(m8n8k4_does_four_products_in_quad_pairs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
