/* SPDX-License-Identifier: Apache-2.0 */
/* ISA "Integer Arithmetic Instructions" and "Extended-Precision Integer Arithmetic". */
#include "src/emulator/arith.h"

/* ---- add, sub, mul, mad ---- */

#define SAME_3(op, expression)                                                                     \
    EMU_BINARY(op##_16, uint16_t, uint16_t, uint16_t, expression)                                  \
    EMU_BINARY(op##_32, uint32_t, uint32_t, uint32_t, expression)                                  \
    EMU_BINARY(op##_64, uint64_t, uint64_t, uint64_t, expression)

SAME_3(add, x + y)
SAME_3(sub, x - y)
EMU_BINARY(mul_lo_16, uint16_t, uint16_t, uint16_t, (uint32_t)x *y)
EMU_BINARY(mul_lo_32, uint32_t, uint32_t, uint32_t, x *y)
EMU_BINARY(mul_lo_64, uint64_t, uint64_t, uint64_t, x *y)

static inline int32_t clamp_s32(int64_t value)
{
    return value > INT32_MAX ? INT32_MAX : value < INT32_MIN ? INT32_MIN : (int32_t)value;
}

EMU_BINARY(add_sat_s32, int32_t, int32_t, int32_t, clamp_s32((int64_t)x + y))
EMU_BINARY(sub_sat_s32, int32_t, int32_t, int32_t, clamp_s32((int64_t)x - y))

#define LOW(x) ((x)&0xffffu)
#define HIGH(x) ((x) >> 16)
#define PAIR(low, high) (((uint32_t)(low)&0xffffu) | (uint32_t)(high) << 16)
EMU_BINARY(add_16x2, uint32_t, uint32_t, uint32_t, PAIR(LOW(x) + LOW(y), HIGH(x) + HIGH(y)))
EMU_BINARY(sub_16x2, uint32_t, uint32_t, uint32_t, PAIR(LOW(x) - LOW(y), HIGH(x) - HIGH(y)))

__extension__ typedef unsigned __int128 u128;
__extension__ typedef __int128 s128;

EMU_BINARY(mul_hi_u16, uint16_t, uint16_t, uint16_t, ((uint32_t)x * y) >> 16)
EMU_BINARY(mul_hi_s16, int16_t, int16_t, int16_t, ((int32_t)x * y) >> 16)
EMU_BINARY(mul_hi_u32, uint32_t, uint32_t, uint32_t, ((uint64_t)x * y) >> 32)
EMU_BINARY(mul_hi_s32, int32_t, int32_t, int32_t, ((int64_t)x * y) >> 32)
EMU_BINARY(mul_hi_u64, uint64_t, uint64_t, uint64_t, ((u128)x * y) >> 64)
EMU_BINARY(mul_hi_s64, int64_t, int64_t, int64_t, ((s128)x * y) >> 64)
EMU_BINARY(mul_wide_u16, uint32_t, uint16_t, uint16_t, (uint32_t)x *y)
EMU_BINARY(mul_wide_s16, int32_t, int16_t, int16_t, (int32_t)x *y)
EMU_BINARY(mul_wide_u32, uint64_t, uint32_t, uint32_t, (uint64_t)x *y)
EMU_BINARY(mul_wide_s32, int64_t, int32_t, int32_t, (int64_t)x *y)

EMU_TERNARY(mad_lo_16, uint16_t, uint16_t, uint16_t, uint16_t, (uint32_t)x *y + z)
EMU_TERNARY(mad_lo_32, uint32_t, uint32_t, uint32_t, uint32_t, x *y + z)
EMU_TERNARY(mad_lo_64, uint64_t, uint64_t, uint64_t, uint64_t, x *y + z)
EMU_TERNARY(mad_hi_u16, uint16_t, uint16_t, uint16_t, uint16_t, (((uint32_t)x * y) >> 16) + z)
EMU_TERNARY(mad_hi_s16, int16_t, int16_t, int16_t, int16_t, (((int32_t)x * y) >> 16) + z)
EMU_TERNARY(mad_hi_u32, uint32_t, uint32_t, uint32_t, uint32_t, (((uint64_t)x * y) >> 32) + z)
EMU_TERNARY(mad_hi_s32, uint32_t, int32_t, int32_t, uint32_t,
            (uint32_t)(((int64_t)x * y) >> 32) + z)
EMU_TERNARY(mad_hi_u64, uint64_t, uint64_t, uint64_t, uint64_t, (uint64_t)(((u128)x * y) >> 64) + z)
EMU_TERNARY(mad_hi_s64, uint64_t, int64_t, int64_t, uint64_t, (uint64_t)(((s128)x * y) >> 64) + z)
EMU_TERNARY(mad_hi_sat_s32, int32_t, int32_t, int32_t, int32_t,
            clamp_s32((((int64_t)x * y) >> 32) + z))
EMU_TERNARY(mad_wide_u16, uint32_t, uint16_t, uint16_t, uint32_t, (uint32_t)x *y + z)
EMU_TERNARY(mad_wide_s16, uint32_t, int16_t, int16_t, uint32_t, (uint32_t)((int32_t)x *y) + z)
EMU_TERNARY(mad_wide_u32, uint64_t, uint32_t, uint32_t, uint64_t, (uint64_t)x *y + z)
EMU_TERNARY(mad_wide_s32, uint64_t, int32_t, int32_t, uint64_t, (uint64_t)((int64_t)x *y) + z)

/* 24-bit products: bits 0–31 or 16–47 of the 48-bit product. */
#define U24(x) ((uint64_t)((x)&0xffffffu))
#define S24(x) ((int64_t)((int32_t)((uint32_t)(x) << 8) >> 8))
EMU_BINARY(mul24_lo_u32, uint32_t, uint32_t, uint32_t, U24(x) * U24(y))
EMU_BINARY(mul24_hi_u32, uint32_t, uint32_t, uint32_t, (U24(x) * U24(y)) >> 16)
EMU_BINARY(mul24_lo_s32, uint32_t, uint32_t, uint32_t, S24(x) * S24(y))
EMU_BINARY(mul24_hi_s32, uint32_t, uint32_t, uint32_t, (S24(x) * S24(y)) >> 16)
EMU_TERNARY(mad24_lo_u32, uint32_t, uint32_t, uint32_t, uint32_t, U24(x) * U24(y) + z)
EMU_TERNARY(mad24_hi_u32, uint32_t, uint32_t, uint32_t, uint32_t, ((U24(x) * U24(y)) >> 16) + z)
EMU_TERNARY(mad24_lo_s32, uint32_t, uint32_t, uint32_t, uint32_t, (uint64_t)(S24(x) * S24(y)) + z)
EMU_TERNARY(mad24_hi_s32, uint32_t, uint32_t, uint32_t, uint32_t,
            (uint64_t)((S24(x) * S24(y)) >> 16) + z)
EMU_TERNARY(mad24_hi_sat_s32, int32_t, uint32_t, uint32_t, int32_t,
            clamp_s32((int64_t)(int32_t)((S24(x) * S24(y)) >> 16) + z))

/* ---- div, rem, sad, min, max, abs, neg ---- */

/* "Division by zero yields an unspecified, machine-specific value": all ones, and x for rem. */
#define DIV_REM_U(suffix, T)                                                                       \
    EMU_BINARY(div_##suffix, T, T, T, y == 0 ? (T)-1 : (T)(x / y))                                 \
    EMU_BINARY(rem_##suffix, T, T, T, y == 0 ? x : (T)(x % y))
#define DIV_REM_S(suffix, T, UT)                                                                   \
    EMU_BINARY(div_##suffix, T, T, T, y == 0 ? -1 : y == -1 ? (T)((UT)0 - (UT)x) : (T)(x / y))     \
    EMU_BINARY(rem_##suffix, T, T, T, y == 0 ? x : y == -1 ? 0 : (T)(x % y))
DIV_REM_U(u16, uint16_t)
DIV_REM_U(u32, uint32_t)
DIV_REM_U(u64, uint64_t)
DIV_REM_S(s16, int16_t, uint16_t)
DIV_REM_S(s32, int32_t, uint32_t)
DIV_REM_S(s64, int64_t, uint64_t)

#define MINMAX_SAD(suffix, T, UT)                                                                  \
    EMU_BINARY(min_##suffix, T, T, T, x < y ? x : y)                                               \
    EMU_BINARY(max_##suffix, T, T, T, x > y ? x : y)                                               \
    EMU_TERNARY(sad_##suffix, UT, T, T, UT, (UT)(z + (x < y ? (UT)y - (UT)x : (UT)x - (UT)y)))

#define PER_TYPE(X)                                                                                \
    X(u16, uint16_t, uint16_t)                                                                     \
    X(s16, int16_t, uint16_t)                                                                      \
    X(u32, uint32_t, uint32_t)                                                                     \
    X(s32, int32_t, uint32_t)                                                                      \
    X(u64, uint64_t, uint64_t)                                                                     \
    X(s64, int64_t, uint64_t)

PER_TYPE(MINMAX_SAD)

#define S_LOW(x) ((int16_t)(x))
#define S_HIGH(x) ((int16_t)((x) >> 16))
#define LESSER(x, y) ((x) < (y) ? (x) : (y))
#define GREATER(x, y) ((x) > (y) ? (x) : (y))
EMU_BINARY(min_u16x2, uint32_t, uint32_t, uint32_t,
           PAIR(LESSER(LOW(x), LOW(y)), LESSER(HIGH(x), HIGH(y))))
EMU_BINARY(max_u16x2, uint32_t, uint32_t, uint32_t,
           PAIR(GREATER(LOW(x), LOW(y)), GREATER(HIGH(x), HIGH(y))))
#define RELU(x) (insn->op & OP_RELU && (x) < 0 ? 0 : (x))
EMU_BINARY(min_s16x2, uint32_t, uint32_t, uint32_t,
           PAIR(RELU(LESSER(S_LOW(x), S_LOW(y))), RELU(LESSER(S_HIGH(x), S_HIGH(y)))))
EMU_BINARY(max_s16x2, uint32_t, uint32_t, uint32_t,
           PAIR(RELU(GREATER(S_LOW(x), S_LOW(y))), RELU(GREATER(S_HIGH(x), S_HIGH(y)))))
EMU_BINARY(min_relu_s32, int32_t, int32_t, int32_t, LESSER(x, y) < 0 ? 0 : LESSER(x, y))
EMU_BINARY(max_relu_s32, int32_t, int32_t, int32_t, GREATER(x, y) < 0 ? 0 : GREATER(x, y))

EMU_UNARY(abs_s16, uint16_t, int16_t, x < 0 ? 0u - (uint16_t)x : (uint16_t)x)
EMU_UNARY(abs_s32, uint32_t, int32_t, x < 0 ? 0u - (uint32_t)x : (uint32_t)x)
EMU_UNARY(abs_s64, uint64_t, int64_t, x < 0 ? 0u - (uint64_t)x : (uint64_t)x)
EMU_UNARY(neg_s16, uint16_t, uint16_t, 0u - x)
EMU_UNARY(neg_s32, uint32_t, uint32_t, 0u - x)
EMU_UNARY(neg_s64, uint64_t, uint64_t, 0u - x)

/*
 * ---- extended precision: CC.CF is a bit a lane ----
 *
 * CC.CF is the carry out of the adder for every instruction. A subtraction is x + ~y + 1, so after
 * sub.cc and subc.cc CC.CF is 1 where nothing was borrowed, and subc adds CC.CF to x + ~y. The ISA
 * speaks of a borrow flag, which is the same where sub.cc meets only subc; ptxas keeps the carry,
 * and compilers let sub.cc meet addc.
 */

struct carried {
    uint64_t value;
    bool carry;
};

static struct carried add_carry(uint64_t x, uint64_t y, bool in, bool wide)
{
    u128 sum = (u128)x + y + in;
    return (struct carried){(uint64_t)sum, (uint64_t)(sum >> (wide ? 64 : 32)) & 1};
}

enum { CARRY_IN = 1, CARRY_OUT = 2, CARRY_SUB = 4, CARRY_MUL_LO = 8, CARRY_MUL_HI = 16 };

static void carry_op(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask, int what)
{
    bool wide = insn->d.bytes == 8, is_signed = emu_types[insn->type].kind == 'S';
    for (int l = 0; l < 32; l++) {
        if (!(mask >> l & 1))
            continue;
        uint64_t x = emu_lane_value(warp, insn->s[0], l), y = emu_lane_value(warp, insn->s[1], l);
        bool in = what & CARRY_IN ? warp->carry >> l & 1 : (what & CARRY_SUB) != 0;
        if (what & (CARRY_MUL_LO | CARRY_MUL_HI)) {
            s128 a = is_signed ? (s128)(wide ? (int64_t)x : (int32_t)x) : (s128)(u128)x;
            s128 b = is_signed ? (s128)(wide ? (int64_t)y : (int32_t)y) : (s128)(u128)y;
            u128 product = (u128)a * (u128)b;
            x = (uint64_t)(what & CARRY_MUL_HI ? product >> (wide ? 64 : 32) : product);
            x = wide ? x : (uint32_t)x;
            y = emu_lane_value(warp, insn->s[2], l);
        }
        if (what & CARRY_SUB)
            y = wide ? ~y : (uint32_t)~y;
        struct carried result = add_carry(x, y, in, wide);
        emu_set_lane(warp, insn->d, l, result.value);
        if (what & CARRY_OUT)
            warp->carry = (warp->carry & ~(1u << l)) | (uint32_t)result.carry << l;
    }
}

#define CARRY(name, what)                                                                          \
    static void name(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)            \
    {                                                                                              \
        carry_op(warp, insn, mask, what);                                                          \
    }
CARRY(add_cc, CARRY_OUT)
CARRY(addc, CARRY_IN)
CARRY(addc_cc, CARRY_IN | CARRY_OUT)
CARRY(sub_cc, CARRY_SUB | CARRY_OUT)
CARRY(subc, CARRY_SUB | CARRY_IN)
CARRY(subc_cc, CARRY_SUB | CARRY_IN | CARRY_OUT)
CARRY(mad_lo_cc, CARRY_MUL_LO | CARRY_OUT)
CARRY(mad_hi_cc, CARRY_MUL_HI | CARRY_OUT)
CARRY(madc_lo, CARRY_MUL_LO | CARRY_IN)
CARRY(madc_hi, CARRY_MUL_HI | CARRY_IN)
CARRY(madc_lo_cc, CARRY_MUL_LO | CARRY_IN | CARRY_OUT)
CARRY(madc_hi_cc, CARRY_MUL_HI | CARRY_IN | CARRY_OUT)

/* ---- the table ---- */

#define INT(name, types, exec, shape)                                                              \
    {                                                                                              \
        name, types, exec, shape, 0, CLASS_INTEGER                                                 \
    }
#define TYPED_2(mnemonic, op)                                                                      \
    INT(mnemonic, "u16", op##_u16, "ttt"), INT(mnemonic, "s16", op##_s16, "ttt"),                  \
        INT(mnemonic, "u32", op##_u32, "ttt"), INT(mnemonic, "s32", op##_s32, "ttt"),              \
        INT(mnemonic, "u64", op##_u64, "ttt"), INT(mnemonic, "s64", op##_s64, "ttt")

const struct emu_row_def emu_integer_rows[] = {
    INT("add", "u16 s16", add_16, "ttt"),
    INT("add", "u32 s32", add_32, "ttt"),
    INT("add", "u64 s64", add_64, "ttt"),
    INT("add", "u16x2 s16x2", add_16x2, "ttt"),
    INT("add.sat", "s32", add_sat_s32, "ttt"),
    INT("sub", "u16 s16", sub_16, "ttt"),
    INT("sub", "u32 s32", sub_32, "ttt"),
    INT("sub", "u64 s64", sub_64, "ttt"),
    INT("sub", "u16x2 s16x2", sub_16x2, "ttt"),
    INT("sub.sat", "s32", sub_sat_s32, "ttt"),
    INT("mul.lo", "u16 s16", mul_lo_16, "ttt"),
    INT("mul.lo", "u32 s32", mul_lo_32, "ttt"),
    INT("mul.lo", "u64 s64", mul_lo_64, "ttt"),
    TYPED_2("mul.hi", mul_hi),
    INT("mul.wide", "u16", mul_wide_u16, "wtt"),
    INT("mul.wide", "s16", mul_wide_s16, "wtt"),
    INT("mul.wide", "u32", mul_wide_u32, "wtt"),
    INT("mul.wide", "s32", mul_wide_s32, "wtt"),
    INT("mad.lo", "u16 s16", mad_lo_16, "tttt"),
    INT("mad.lo", "u32 s32", mad_lo_32, "tttt"),
    INT("mad.lo", "u64 s64", mad_lo_64, "tttt"),
    INT("mad.hi", "u16", mad_hi_u16, "tttt"),
    INT("mad.hi", "s16", mad_hi_s16, "tttt"),
    INT("mad.hi", "u32", mad_hi_u32, "tttt"),
    INT("mad.hi", "s32", mad_hi_s32, "tttt"),
    INT("mad.hi", "u64", mad_hi_u64, "tttt"),
    INT("mad.hi", "s64", mad_hi_s64, "tttt"),
    INT("mad.hi.sat", "s32", mad_hi_sat_s32, "tttt"),
    INT("mad.wide", "u16", mad_wide_u16, "wttw"),
    INT("mad.wide", "s16", mad_wide_s16, "wttw"),
    INT("mad.wide", "u32", mad_wide_u32, "wttw"),
    INT("mad.wide", "s32", mad_wide_s32, "wttw"),
    INT("mul24.lo", "u32", mul24_lo_u32, "ttt"),
    INT("mul24.hi", "u32", mul24_hi_u32, "ttt"),
    INT("mul24.lo", "s32", mul24_lo_s32, "ttt"),
    INT("mul24.hi", "s32", mul24_hi_s32, "ttt"),
    INT("mad24.lo", "u32", mad24_lo_u32, "tttt"),
    INT("mad24.hi", "u32", mad24_hi_u32, "tttt"),
    INT("mad24.lo", "s32", mad24_lo_s32, "tttt"),
    INT("mad24.hi", "s32", mad24_hi_s32, "tttt"),
    INT("mad24.hi.sat", "s32", mad24_hi_sat_s32, "tttt"),
    TYPED_2("div", div),
    TYPED_2("rem", rem),
    TYPED_2("min", min),
    TYPED_2("max", max),
    INT("min", "u16x2", min_u16x2, "ttt"),
    INT("max", "u16x2", max_u16x2, "ttt"),
    {"min", "s16x2", min_s16x2, "ttt", ALLOW_RELU, CLASS_INTEGER},
    {"max", "s16x2", max_s16x2, "ttt", ALLOW_RELU, CLASS_INTEGER},
    INT("min.relu", "s32", min_relu_s32, "ttt"),
    INT("max.relu", "s32", max_relu_s32, "ttt"),
    INT("sad", "u16", sad_u16, "tttt"),
    INT("sad", "s16", sad_s16, "tttt"),
    INT("sad", "u32", sad_u32, "tttt"),
    INT("sad", "s32", sad_s32, "tttt"),
    INT("sad", "u64", sad_u64, "tttt"),
    INT("sad", "s64", sad_s64, "tttt"),
    INT("abs", "s16", abs_s16, "tt"),
    INT("abs", "s32", abs_s32, "tt"),
    INT("abs", "s64", abs_s64, "tt"),
    INT("neg", "s16", neg_s16, "tt"),
    INT("neg", "s32", neg_s32, "tt"),
    INT("neg", "s64", neg_s64, "tt"),
    INT("add.cc", "u32 s32 u64 s64", add_cc, "ttt"),
    INT("addc", "u32 s32 u64 s64", addc, "ttt"),
    INT("addc.cc", "u32 s32 u64 s64", addc_cc, "ttt"),
    INT("sub.cc", "u32 s32 u64 s64", sub_cc, "ttt"),
    INT("subc", "u32 s32 u64 s64", subc, "ttt"),
    INT("subc.cc", "u32 s32 u64 s64", subc_cc, "ttt"),
    INT("mad.lo.cc", "u32 s32 u64 s64", mad_lo_cc, "tttt"),
    INT("mad.hi.cc", "u32 s32 u64 s64", mad_hi_cc, "tttt"),
    INT("madc.lo", "u32 s32 u64 s64", madc_lo, "tttt"),
    INT("madc.hi", "u32 s32 u64 s64", madc_hi, "tttt"),
    INT("madc.lo.cc", "u32 s32 u64 s64", madc_lo_cc, "tttt"),
    INT("madc.hi.cc", "u32 s32 u64 s64", madc_hi_cc, "tttt"),
    {.name = ""}};
