/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ldmatrix, stmatrix, movmatrix (PTX ISA sections of these names). Every form is a rule that
 * says which byte of which row lands in which byte of which lane's registers.
 */
#include "tensor_core.h"

#include <string.h>

/** Rows and 32-bit registers of one matrix of each form, and how often it may occur. */
typedef struct matrix_form {
    uint8_t rows, registers, max_count;
    bool store, load, transpose_needed, transpose_allowed;
} matrix_form;

static const matrix_form FORMS[] = {
    [EMU_M8N8_B16] = {8, 1, 4, true, true, false, true},
    [EMU_M16N16_B8] = {16, 2, 2, false, true, true, true},
    [EMU_M16N16_B6X16_P32] = {16, 2, 2, false, true, true, true},
    [EMU_M16N16_B4X16_P64] = {16, 2, 2, false, true, true, true},
    [EMU_M8N16_B6X16_P32] = {8, 1, 4, false, true, false, false},
    [EMU_M8N16_B4X16_P64] = {8, 1, 4, false, true, false, false},
    [EMU_M16N8_B8] = {8, 1, 4, true, false, true, true},
};

ptxgen_status emu_matrix_check(const emu_matrix_op *op, ptxgen_error *err)
{
    const char *name = op->store ? "stmatrix" : "ldmatrix";
    const matrix_form *form = &FORMS[op->form];
    if (op->store ? !form->store : !form->load)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED, "%s has no such shape and type", name);
    if ((op->count != 1 && op->count != 2 && op->count != 4) || op->count > form->max_count)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "%s: .x%u matrices: this shape takes at most .x%u, a power of two", name,
                           op->count, form->max_count);
    if (form->transpose_needed && !op->transpose)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED, "%s: this shape needs .trans", name);
    if (op->transpose && !form->transpose_allowed)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED, "%s: this shape has no .trans", name);
    return PTXGEN_OK;
}

unsigned emu_matrix_registers(const emu_matrix_op *op)
{
    return (unsigned)FORMS[op->form].registers * op->count;
}

unsigned emu_matrix_rows(const emu_matrix_op *op)
{
    return (unsigned)FORMS[op->form].rows * op->count;
}

/** A byte of a matrix in memory. */
typedef struct matrix_byte {
    uint8_t row, column;
} matrix_byte;

/** The byte of a matrix that byte `byte` of register `reg` of `lane` holds. */
static matrix_byte matrix_byte_of(const emu_matrix_op *op, unsigned lane, unsigned reg,
                                  unsigned byte)
{
    const unsigned g = lane / 4, t = lane % 4;
    switch (op->form) {
    case EMU_M8N16_B6X16_P32:
    case EMU_M8N16_B4X16_P64: return (matrix_byte){(uint8_t)g, (uint8_t)(4 * t + byte)};
    case EMU_M16N8_B8: /* lane: rows g, g + 8 and columns 2t, 2t + 1 of the 16×8 matrix */
        return (matrix_byte){(uint8_t)(2 * t + byte % 2), (uint8_t)(g + byte / 2 * 8)};
    default: /* m16n16: columns 4t … 4t + 3 of rows g, g + 8 of the transposed matrix */
        return (matrix_byte){(uint8_t)(4 * t + 2 * reg + byte % 2), (uint8_t)(g + byte / 2 * 8)};
    }
}

/** Element `index` of a row of packed narrow elements, in the low bits of a byte. */
static uint8_t unpack_narrow(const emu_matrix_row *row, unsigned bits, unsigned index)
{
    unsigned at = index * bits;
    unsigned word = row->byte[at / 8] | (unsigned)row->byte[at / 8 + 1] << 8;
    return (uint8_t)(word >> at % 8 & ((1u << bits) - 1));
}

static uint8_t row_byte(emu_matrix_form form, const emu_matrix_row *row, unsigned column)
{
    switch (form) {
    case EMU_M16N16_B6X16_P32:
    case EMU_M8N16_B6X16_P32: return unpack_narrow(row, 6, column);
    case EMU_M16N16_B4X16_P64:
    case EMU_M8N16_B4X16_P64: return unpack_narrow(row, 4, column);
    default: return row->byte[column];
    }
}

/** m8n8.b16: a row is the registers of four lanes in a row, or, transposed, a column of them. */
static void load_halves(bool transpose, emu_lanes *d, const emu_matrix_row *rows)
{
    for (unsigned g = 0; !transpose && g < 8; g++)
        memcpy(&d->lane[4 * g], rows[g].byte, 16);
    for (unsigned lane = 0; transpose && lane < EMU_WARP_LANES; lane++) {
        uint16_t pair[2];
        memcpy(&pair[0], &rows[lane % 4 * 2].byte[lane / 4 * 2], 2);
        memcpy(&pair[1], &rows[lane % 4 * 2 + 1].byte[lane / 4 * 2], 2);
        d->lane[lane] = pair[0] | (uint32_t)pair[1] << 16;
    }
}

static void store_halves(bool transpose, emu_matrix_row *rows, const emu_lanes *s)
{
    for (unsigned g = 0; !transpose && g < 8; g++)
        memcpy(rows[g].byte, &s->lane[4 * g], 16);
    for (unsigned lane = 0; transpose && lane < EMU_WARP_LANES; lane++) {
        uint16_t pair[2] = {(uint16_t)s->lane[lane], (uint16_t)(s->lane[lane] >> 16)};
        memcpy(&rows[lane % 4 * 2].byte[lane / 4 * 2], &pair[0], 2);
        memcpy(&rows[lane % 4 * 2 + 1].byte[lane / 4 * 2], &pair[1], 2);
    }
}

void emu_ldmatrix(const emu_matrix_op *op, emu_lanes *d, const emu_matrix_row *rows)
{
    const matrix_form *form = &FORMS[op->form];
    for (unsigned r = 0; r < emu_matrix_registers(op); r++) {
        const emu_matrix_row *matrix = rows + r / form->registers * form->rows;
        if (op->form == EMU_M8N8_B16) {
            load_halves(op->transpose, &d[r], matrix);
            continue;
        }
        for (unsigned lane = 0; lane < EMU_WARP_LANES; lane++) {
            uint32_t word = 0;
            for (unsigned byte = 0; byte < 4; byte++) {
                matrix_byte at = matrix_byte_of(op, lane, r % form->registers, byte);
                word |= (uint32_t)row_byte(op->form, &matrix[at.row], at.column) << 8 * byte;
            }
            d[r].lane[lane] = word;
        }
    }
}

void emu_stmatrix(const emu_matrix_op *op, emu_matrix_row *rows, const emu_lanes *s)
{
    const matrix_form *form = &FORMS[op->form];
    for (unsigned r = 0; r < emu_matrix_registers(op); r++) {
        emu_matrix_row *matrix = rows + r / form->registers * form->rows;
        if (op->form == EMU_M8N8_B16) {
            store_halves(op->transpose, matrix, &s[r]);
            continue;
        }
        for (unsigned lane = 0; lane < EMU_WARP_LANES; lane++) {
            for (unsigned byte = 0; byte < 4; byte++) {
                matrix_byte at = matrix_byte_of(op, lane, r % form->registers, byte);
                matrix[at.row].byte[at.column] = (uint8_t)(s[r].lane[lane] >> 8 * byte);
            }
        }
    }
}

void emu_movmatrix(emu_lanes *d, const emu_lanes *a)
{
    const emu_lanes in = *a;
    for (unsigned lane = 0; lane < EMU_WARP_LANES; lane++) {
        const unsigned g = lane / 4, t = lane % 4;
        const unsigned low_half = g % 2 * 16; /* column g of rows 2t and 2t + 1 */
        uint32_t first = in.lane[8 * t + g / 2] >> low_half & 0xFFFF;
        uint32_t second = in.lane[8 * t + 4 + g / 2] >> low_half & 0xFFFF;
        d->lane[lane] = first | second << 16;
    }
}
