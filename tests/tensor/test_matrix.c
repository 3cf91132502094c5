/* SPDX-License-Identifier: Apache-2.0 */
/* ldmatrix, stmatrix, movmatrix against the figures of the PTX ISA, element by element. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "slow_mma.h"

/** 32 rows of 16 bytes, every byte different from its neighbours. */
static void fill_rows(emu_matrix_row rows[32])
{
    for (unsigned i = 0; i < 32; i++) {
        for (unsigned j = 0; j < 16; j++)
            rows[i].byte[j] = (uint8_t)random_bits();
    }
}

static unsigned half_at(const emu_matrix_row *rows, unsigned row, unsigned column)
{
    return rows[row].byte[2 * column] | (unsigned)rows[row].byte[2 * column + 1] << 8;
}

static void ldmatrix_b16_gives_a_quad_of_lanes_a_row(void **state)
{
    (void)state;
    emu_matrix_row rows[32];
    emu_lanes d[4];
    fill_rows(rows);
    for (unsigned count = 1; count <= 4; count *= 2) {
        for (unsigned transpose = 0; transpose < 2; transpose++) {
            const emu_matrix_op op = {EMU_M8N8_B16, (uint8_t)count, transpose, false};
            assert_int_equal(emu_matrix_check(&op, NULL), PTXGEN_OK);
            assert_int_equal(emu_matrix_registers(&op), count);
            assert_int_equal(emu_matrix_rows(&op), 8 * count);
            emu_ldmatrix(&op, d, rows);
            for (unsigned m = 0; m < count; m++) {
                for (unsigned i = 0; i < 64; i++) {
                    unsigned row = i / 8, column = i % 8; /* of the fragment's matrix */
                    unsigned lane = row * 4 + column / 2;
                    unsigned got = d[m].lane[lane] >> (column & 1 ? 16 : 0) & 0xFFFF;
                    unsigned expected = transpose ? half_at(rows + 8 * m, column, row)
                                                  : half_at(rows + 8 * m, row, column);
                    assert_int_equal(got, expected);
                }
            }
        }
    }
}

static void stmatrix_b16_undoes_ldmatrix(void **state)
{
    (void)state;
    for (unsigned transpose = 0; transpose < 2; transpose++) {
        const emu_matrix_op load = {EMU_M8N8_B16, 4, transpose, false};
        const emu_matrix_op store = {EMU_M8N8_B16, 4, transpose, true};
        emu_matrix_row rows[32], back[32];
        emu_lanes d[4];
        fill_rows(rows);
        memset(back, 0, sizeof back);
        assert_int_equal(emu_matrix_check(&store, NULL), PTXGEN_OK);
        emu_ldmatrix(&load, d, rows);
        emu_stmatrix(&store, back, d);
        assert_memory_equal(rows, back, sizeof rows);
    }
}

static void movmatrix_transposes_a_fragment(void **state)
{
    (void)state;
    const emu_matrix_op plain = {EMU_M8N8_B16, 1, false, false};
    const emu_matrix_op transposed = {EMU_M8N8_B16, 1, true, false};
    emu_matrix_row rows[32];
    emu_lanes fragment, expected, d;
    fill_rows(rows);
    emu_ldmatrix(&plain, &fragment, rows);
    emu_ldmatrix(&transposed, &expected, rows);
    emu_movmatrix(&d, &fragment);
    assert_memory_equal(&d, &expected, sizeof d);
    emu_movmatrix(&fragment, &fragment);
    assert_memory_equal(&fragment, &expected, sizeof d);
}

/** Element of a row as a byte: itself, or 6 or 4 packed bits. */
static unsigned element_of(const emu_matrix_row *row, unsigned bits, unsigned index)
{
    unsigned value = 0;
    for (unsigned i = 0; i < bits; i++) {
        unsigned at = index * bits + i;
        value |= (unsigned)(row->byte[at / 8] >> at % 8 & 1) << i;
    }
    return value;
}

static void ldmatrix_m16n16_gives_four_columns_of_two_rows_of_the_transpose(void **state)
{
    (void)state;
    static const emu_matrix_form forms[] = {EMU_M16N16_B8, EMU_M16N16_B6X16_P32,
                                            EMU_M16N16_B4X16_P64};
    static const unsigned widths[] = {8, 6, 4};
    emu_matrix_row rows[32];
    emu_lanes d[4];
    fill_rows(rows);
    for (unsigned f = 0; f < 3; f++) {
        const emu_matrix_op op = {forms[f], 2, true, false};
        assert_int_equal(emu_matrix_check(&op, NULL), PTXGEN_OK);
        assert_int_equal(emu_matrix_registers(&op), 4);
        assert_int_equal(emu_matrix_rows(&op), 32);
        emu_ldmatrix(&op, d, rows);
        for (unsigned i = 0; i < 512; i++) {
            unsigned m = i / 256, n = i % 16, k = i / 16 % 16; /* row k, byte n in memory */
            unsigned lane = n % 8 * 4 + k / 4;
            unsigned reg = 2 * m + (k & 2 ? 1 : 0);
            unsigned byte = (k & 1) + (n >= 8 ? 2 : 0);
            assert_int_equal(d[reg].lane[lane] >> 8 * byte & 0xFF,
                             element_of(&rows[16 * m + k], widths[f], n));
        }
    }
}

static void ldmatrix_m8n16_widens_narrow_elements(void **state)
{
    (void)state;
    static const emu_matrix_form forms[] = {EMU_M8N16_B6X16_P32, EMU_M8N16_B4X16_P64};
    static const unsigned widths[] = {6, 4};
    emu_matrix_row rows[32];
    emu_lanes d[4];
    fill_rows(rows);
    for (unsigned f = 0; f < 2; f++) {
        const emu_matrix_op op = {forms[f], 4, false, false};
        assert_int_equal(emu_matrix_check(&op, NULL), PTXGEN_OK);
        emu_ldmatrix(&op, d, rows);
        for (unsigned i = 0; i < 512; i++) {
            unsigned row = i / 16, column = i % 16;
            unsigned lane = row % 8 * 4 + column / 4;
            assert_int_equal(d[row / 8].lane[lane] >> column % 4 * 8 & 0xFF,
                             element_of(&rows[row], widths[f], column));
        }
    }
}

static void stmatrix_m16n8_stores_accumulator_fragments_column_by_column(void **state)
{
    (void)state;
    const emu_matrix_op op = {EMU_M16N8_B8, 4, true, true};
    emu_lanes s[4];
    emu_matrix_row rows[32];
    assert_int_equal(emu_matrix_check(&op, NULL), PTXGEN_OK);
    assert_int_equal(emu_matrix_rows(&op), 32);
    for (unsigned r = 0; r < 4; r++) {
        for (unsigned lane = 0; lane < 32; lane++)
            s[r].lane[lane] = random_bits();
    }
    memset(rows, 0, sizeof rows);
    emu_stmatrix(&op, rows, s);
    for (unsigned r = 0; r < 4; r++) {
        for (unsigned lane = 0; lane < 32; lane++) {
            for (unsigned e = 0; e < 4; e++) { /* as c0 … c3 of mma.m16n8 */
                unsigned row = lane / 4 + (e < 2 ? 0 : 8), column = lane % 4 * 2 + (e & 1);
                assert_int_equal(rows[8 * r + column].byte[row], s[r].lane[lane] >> 8 * e & 0xFF);
            }
        }
    }
}

static void impossible_forms_are_refused(void **state)
{
    (void)state;
    static const struct {
        emu_matrix_op op;
        const char *says;
    } bad[] = {
        {{EMU_M8N8_B16, 3, false, false},
         "ldmatrix: .x3 matrices: this shape takes at most .x4, a power of two"},
        {{EMU_M8N8_B16, 0, false, false},
         "ldmatrix: .x0 matrices: this shape takes at most .x4, a power of two"},
        {{EMU_M8N8_B16, 8, false, true},
         "stmatrix: .x8 matrices: this shape takes at most .x4, a power of two"},
        {{EMU_M16N16_B8, 4, true, false},
         "ldmatrix: .x4 matrices: this shape takes at most .x2, a power of two"},
        {{EMU_M16N16_B6X16_P32, 4, true, false},
         "ldmatrix: .x4 matrices: this shape takes at most .x2, a power of two"},
        {{EMU_M8N16_B6X16_P32, 8, false, false},
         "ldmatrix: .x8 matrices: this shape takes at most .x4, a power of two"},
        {{EMU_M16N16_B8, 1, false, false}, "ldmatrix: this shape needs .trans"},
        {{EMU_M16N8_B8, 1, false, true}, "stmatrix: this shape needs .trans"},
        {{EMU_M16N16_B8, 1, true, true}, "stmatrix has no such shape and type"},
        {{EMU_M16N8_B8, 1, true, false}, "ldmatrix has no such shape and type"},
        {{EMU_M8N16_B4X16_P64, 1, true, false}, "ldmatrix: this shape has no .trans"},
    };
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ptxgen_error err;
        assert_int_equal(emu_matrix_check(&bad[i].op, &err), PTXGEN_ERROR_UNSUPPORTED);
        assert_string_equal(err.message, bad[i].says);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ldmatrix_b16_gives_a_quad_of_lanes_a_row),
        cmocka_unit_test(stmatrix_b16_undoes_ldmatrix),
        cmocka_unit_test(movmatrix_transposes_a_fragment),
        cmocka_unit_test(ldmatrix_m16n16_gives_four_columns_of_two_rows_of_the_transpose),
        cmocka_unit_test(ldmatrix_m8n16_widens_narrow_elements),
        cmocka_unit_test(stmatrix_m16n8_stores_accumulator_fragments_column_by_column),
        cmocka_unit_test(impossible_forms_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
