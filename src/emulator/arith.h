/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arithmetic as rows of a table: a mnemonic with the modifiers that select the row, the types it
 * takes, the function that computes it, and the classes of its operands. Most of PTX is such rows.
 */
#ifndef PTXGEN_EMULATOR_ARITH_H
#define PTXGEN_EMULATOR_ARITH_H

#include "src/emulator/decode.h"
#include "src/emulator/machine.h"

/* Modifiers that a row allows besides those that select it. */
enum emu_allowed {
    ALLOW_ROUND = 1, /* .rn .rz .rm .rp, into insn->mode */
    ALLOW_FTZ = 2,
    ALLOW_SAT = 4,
    ALLOW_NAN = 8,      /* into insn->op: OP_NAN */
    ALLOW_XORSIGN = 16, /* .xorsign.abs: OP_XORSIGN */
    ALLOW_RELU = 32,    /* OP_RELU */
    NEEDS_ROUND = 64
};

enum { OP_NAN = 1, OP_XORSIGN = 2, OP_RELU = 4, OP_SATFINITE = 128 };
enum emu_round { ROUND_RN, ROUND_RZ, ROUND_RM, ROUND_RP };

struct emu_row_def {
    char name[20];  /* "mul.hi"; "" ends the rows. Pointers would be relocated at load time, and
                       take twice the room. */
    char types[20]; /* "u32 s32" */
    emu_exec exec;
    /* Operands, destination first: t the type, w twice as wide, u .b32, 4 four bytes signed or
     * not, p predicate, h half as wide, | the optional b of max3 forms */
    char shape[6];
    uint8_t allowed;
    uint8_t class_id;
};

extern const struct emu_row_def emu_integer_rows[], emu_bits_rows[], emu_float_rows[],
    emu_half_rows[];

/* False when no row has the mnemonic. */
bool emu_decode_arith(struct emu_decoder *decoder, struct emu_insn *insn);

/* Rows are the same or disjoint, so lanes are independent. */
#if defined(__clang__)
#define EMU_INDEPENDENT
#else
#define EMU_INDEPENDENT _Pragma("GCC ivdep")
#endif

/* Functions of one, two and three operands, a lane at a time; x, y, z are the operands. */
#define EMU_ROW_OF(type, source) ((type *)(void *)emu_row(warp, source))
#define EMU_LANES(mask, body)                                                                      \
    if ((mask) == 0xffffffffu) {                                                                   \
        EMU_INDEPENDENT for (int l = 0; l < 32; l++)                                               \
        {                                                                                          \
            body                                                                                   \
        }                                                                                          \
    } else {                                                                                       \
        for (int l = 0; l < 32; l++)                                                               \
            if ((mask) >> l & 1) {                                                                 \
                body                                                                               \
            }                                                                                      \
    }
#define EMU_UNARY(name, D, A, expression)                                                          \
    static void name(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)            \
    {                                                                                              \
        D *d = EMU_ROW_OF(D, insn->d);                                                             \
        const A *a = EMU_ROW_OF(A, insn->s[0]);                                                    \
        EMU_LANES(mask, A x = a[l]; d[l] = (D)(expression);)                                       \
    }
#define EMU_BINARY(name, D, A, B, expression)                                                      \
    static void name(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)            \
    {                                                                                              \
        D *d = EMU_ROW_OF(D, insn->d);                                                             \
        const A *a = EMU_ROW_OF(A, insn->s[0]);                                                    \
        const B *b = EMU_ROW_OF(B, insn->s[1]);                                                    \
        EMU_LANES(mask, A x = a[l]; B y = b[l]; d[l] = (D)(expression);)                           \
    }
#define EMU_TERNARY(name, D, A, B, C, expression)                                                  \
    static void name(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)            \
    {                                                                                              \
        D *d = EMU_ROW_OF(D, insn->d);                                                             \
        const A *a = EMU_ROW_OF(A, insn->s[0]);                                                    \
        const B *b = EMU_ROW_OF(B, insn->s[1]);                                                    \
        const C *c = EMU_ROW_OF(C, insn->s[2]);                                                    \
        EMU_LANES(mask, A x = a[l]; B y = b[l]; C z = c[l]; d[l] = (D)(expression);)               \
    }

#endif
