/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ISA "Logic and Shift Instructions" and the bit-field part of "Integer Arithmetic": popc, clz,
 * brev, bfind, fns, bfe, bfi, bmsk, szext, dp4a, dp2a.
 */
#include "src/emulator/arith.h"

/* ---- counting and finding ---- */

EMU_UNARY(popc_b32, uint32_t, uint32_t, __builtin_popcount(x))
EMU_UNARY(popc_b64, uint32_t, uint64_t, __builtin_popcountll(x))
EMU_UNARY(clz_b32, uint32_t, uint32_t, x ? __builtin_clz(x) : 32)
EMU_UNARY(clz_b64, uint32_t, uint64_t, x ? __builtin_clzll(x) : 64)

static inline uint64_t reverse(uint64_t x)
{
    x = (x >> 1 & 0x5555555555555555u) | (x & 0x5555555555555555u) << 1;
    x = (x >> 2 & 0x3333333333333333u) | (x & 0x3333333333333333u) << 2;
    x = (x >> 4 & 0x0f0f0f0f0f0f0f0fu) | (x & 0x0f0f0f0f0f0f0f0fu) << 4;
    return __builtin_bswap64(x);
}

EMU_UNARY(brev_b32, uint32_t, uint32_t, reverse(x) >> 32)
EMU_UNARY(brev_b64, uint64_t, uint64_t, reverse(x))

/* Position of the most significant bit that is not a sign bit, ~0 when there is none. */
static inline uint32_t find(uint64_t x, uint32_t bits, bool is_signed, bool shift)
{
    if (is_signed && (x >> (bits - 1) & 1))
        x = ~x;
    if (bits == 32)
        x = (uint32_t)x;
    if (!x)
        return 0xffffffffu;
    uint32_t position = 63 - (uint32_t)__builtin_clzll(x);
    return shift ? bits - 1 - position : position;
}

EMU_UNARY(bfind_u32, uint32_t, uint32_t, find(x, 32, false, false))
EMU_UNARY(bfind_s32, uint32_t, uint32_t, find(x, 32, true, false))
EMU_UNARY(bfind_u64, uint32_t, uint64_t, find(x, 64, false, false))
EMU_UNARY(bfind_s64, uint32_t, uint64_t, find(x, 64, true, false))
EMU_UNARY(bfind_shift_u32, uint32_t, uint32_t, find(x, 32, false, true))
EMU_UNARY(bfind_shift_s32, uint32_t, uint32_t, find(x, 32, true, true))
EMU_UNARY(bfind_shift_u64, uint32_t, uint64_t, find(x, 64, false, true))
EMU_UNARY(bfind_shift_s64, uint32_t, uint64_t, find(x, 64, true, true))

/* The n-th set bit of mask from base: upwards for n > 0, downwards for n < 0, base itself for 0. */
static uint32_t find_nth(uint32_t mask, uint32_t base, int32_t n)
{
    if (n == 0)
        return base < 32 && (mask >> base & 1) ? base : 0xffffffffu;
    int64_t left = n > 0 ? n : -(int64_t)n;
    int step = n > 0 ? 1 : -1;
    for (int64_t at = base; at >= 0 && at < 32; at += step)
        if ((mask >> at & 1) && --left == 0)
            return (uint32_t)at;
    return 0xffffffffu;
}

EMU_TERNARY(fns_b32, uint32_t, uint32_t, uint32_t, int32_t, find_nth(x, y, z))

/* ---- fields: position and length are the low 8 bits of b and c ---- */

static inline uint64_t extract(uint64_t x, uint32_t pos, uint32_t len, uint32_t bits,
                               bool is_signed)
{
    pos &= 0xff;
    len &= 0xff;
    uint32_t msb = bits - 1;
    uint32_t top = pos + len < 1 ? 0 : pos + len - 1;
    uint64_t sign = is_signed && len ? x >> (top < msb ? top : msb) & 1 : 0;
    uint64_t field = pos > msb ? 0 : x >> pos;
    uint32_t valid = pos > msb ? 0 : len < bits - pos ? len : bits - pos;
    uint64_t keep = valid >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << valid) - 1;
    return (field & keep) | (sign ? ~keep : 0);
}

EMU_TERNARY(bfe_u32, uint32_t, uint32_t, uint32_t, uint32_t, extract(x, y, z, 32, false))
EMU_TERNARY(bfe_s32, uint32_t, uint32_t, uint32_t, uint32_t, extract(x, y, z, 32, true))
EMU_TERNARY(bfe_u64, uint64_t, uint64_t, uint32_t, uint32_t, extract(x, y, z, 64, false))
EMU_TERNARY(bfe_s64, uint64_t, uint64_t, uint32_t, uint32_t, extract(x, y, z, 64, true))

static inline uint64_t insert(uint64_t a, uint64_t b, uint32_t pos, uint32_t len, uint32_t bits)
{
    pos &= 0xff;
    len &= 0xff;
    if (pos >= bits || len == 0)
        return b;
    if (len > bits - pos)
        len = bits - pos;
    uint64_t keep = (len >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << len) - 1) << pos;
    return (b & ~keep) | (a << pos & keep);
}

#define BFI(name, T)                                                                               \
    static void name(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)            \
    {                                                                                              \
        T *d = EMU_ROW_OF(T, insn->d);                                                             \
        const T *a = EMU_ROW_OF(T, insn->s[0]), *b = EMU_ROW_OF(T, insn->s[1]);                    \
        const uint32_t *pos = EMU_ROW_OF(uint32_t, insn->s[2]);                                    \
        const uint32_t *len = EMU_ROW_OF(uint32_t, insn->s[3]);                                    \
        EMU_LANES(mask, d[l] = (T)insert(a[l], b[l], pos[l], len[l], sizeof(T) * 8);)              \
    }
BFI(bfi_b32, uint32_t)
BFI(bfi_b64, uint64_t)

static inline uint32_t bit_mask(uint32_t pos, uint32_t len, bool wrap)
{
    if (wrap) {
        pos &= 31;
        len &= 31;
    }
    if (pos >= 32 || len == 0)
        return 0;
    uint32_t ones = len >= 32 ? 0xffffffffu : (1u << len) - 1;
    return ones << pos;
}

EMU_BINARY(bmsk_clamp, uint32_t, uint32_t, uint32_t, bit_mask(x, y, false))
EMU_BINARY(bmsk_wrap, uint32_t, uint32_t, uint32_t, bit_mask(x, y, true))

/* Sign- or zero-extends the low `len` bits. */
static inline uint32_t extend(uint32_t x, uint32_t len, bool wrap, bool is_signed)
{
    if (wrap)
        len &= 31;
    if (len >= 32)
        return x;
    uint32_t keep = (1u << len) - 1;
    bool sign = is_signed && len && (x >> (len - 1) & 1);
    return (x & keep) | (sign ? ~keep : 0);
}

EMU_BINARY(szext_clamp_u32, uint32_t, uint32_t, uint32_t, extend(x, y, false, false))
EMU_BINARY(szext_clamp_s32, uint32_t, uint32_t, uint32_t, extend(x, y, false, true))
EMU_BINARY(szext_wrap_u32, uint32_t, uint32_t, uint32_t, extend(x, y, true, false))
EMU_BINARY(szext_wrap_s32, uint32_t, uint32_t, uint32_t, extend(x, y, true, true))

/* ---- and, or, xor, not, cnot ---- */

#define LOGIC(op, expression)                                                                      \
    EMU_BINARY(op##_b16, uint16_t, uint16_t, uint16_t, expression)                                 \
    EMU_BINARY(op##_b32, uint32_t, uint32_t, uint32_t, expression)                                 \
    EMU_BINARY(op##_b64, uint64_t, uint64_t, uint64_t, expression)                                 \
    static void op##_pred(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)       \
    {                                                                                              \
        uint32_t x = emu_predicate(warp, insn->s[0]), y = emu_predicate(warp, insn->s[1]);         \
        emu_set_predicate(warp, insn->d, expression, mask);                                        \
    }
LOGIC(and, x &y)
LOGIC(or, x | y)
LOGIC(xor, x ^ y)

EMU_UNARY(not_b16, uint16_t, uint16_t, ~x)
EMU_UNARY(not_b32, uint32_t, uint32_t, ~x)
EMU_UNARY(not_b64, uint64_t, uint64_t, ~x)
EMU_UNARY(cnot_b16, uint16_t, uint16_t, x == 0)
EMU_UNARY(cnot_b32, uint32_t, uint32_t, x == 0)
EMU_UNARY(cnot_b64, uint64_t, uint64_t, x == 0)

static void not_pred(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    emu_set_predicate(warp, insn->d, ~emu_predicate(warp, insn->s[0]), mask);
}

/* ---- shifts: amounts beyond the width are clamped to it ---- */

#define SHIFT(suffix, T, bits)                                                                     \
    EMU_BINARY(shl_b##suffix, T, T, uint32_t, y >= bits ? (T)0 : (T)(x << y))                      \
    EMU_BINARY(shr_u##suffix, T, T, uint32_t, y >= bits ? (T)0 : (T)(x >> y))
SHIFT(16, uint16_t, 16)
SHIFT(32, uint32_t, 32)
SHIFT(64, uint64_t, 64)
EMU_BINARY(shr_s16, int16_t, int16_t, uint32_t, x >> (y > 15 ? 15 : y))
EMU_BINARY(shr_s32, int32_t, int32_t, uint32_t, x >> (y > 31 ? 31 : y))
EMU_BINARY(shr_s64, int64_t, int64_t, uint32_t, x >> (y > 63 ? 63 : y))

/* shf: {b:a} shifted, high word for .l, low word for .r. */
#define FUNNEL(a, b) ((uint64_t)(b) << 32 | (a))
#define CLAMP32(c) ((c) > 32 ? 32 : (c))
EMU_TERNARY(shf_l_wrap, uint32_t, uint32_t, uint32_t, uint32_t, FUNNEL(x, y) << (z & 31) >> 32)
EMU_TERNARY(shf_r_wrap, uint32_t, uint32_t, uint32_t, uint32_t, FUNNEL(x, y) >> (z & 31))
EMU_TERNARY(shf_l_clamp, uint32_t, uint32_t, uint32_t, uint32_t, FUNNEL(x, y) << CLAMP32(z) >> 32)
EMU_TERNARY(shf_r_clamp, uint32_t, uint32_t, uint32_t, uint32_t, FUNNEL(x, y) >> CLAMP32(z))

/* ---- dot products of bytes and halves; the second type is b's ---- */

static inline int64_t byte_of(uint32_t x, int i, bool is_signed)
{
    uint8_t byte = (uint8_t)(x >> (8 * i));
    return is_signed ? (int8_t)byte : byte;
}

static inline uint32_t dot4(uint32_t a, uint32_t b, uint32_t c, bool sa, bool sb)
{
    int64_t sum = 0;
    for (int i = 0; i < 4; i++)
        sum += byte_of(a, i, sa) * byte_of(b, i, sb);
    return c + (uint32_t)sum;
}

/* Seldom used, so that a call a lane is better than twice eight loops. */
static __attribute__((noinline)) uint32_t dot2(uint32_t a, uint32_t b, uint32_t c, bool sa,
                                               bool sb, int high)
{
    int64_t a0 = sa ? (int16_t)a : (uint16_t)a, a1 = sa ? (int16_t)(a >> 16) : (uint16_t)(a >> 16);
    int64_t sum = a0 * byte_of(b, 2 * high, sb) + a1 * byte_of(b, 2 * high + 1, sb);
    return c + (uint32_t)sum;
}

#define DOTS(sa, sb, ta, tb)                                                                       \
    EMU_TERNARY(dp4a_##ta##tb, uint32_t, uint32_t, uint32_t, uint32_t, dot4(x, y, z, sa, sb))      \
    EMU_TERNARY(dp2a_lo_##ta##tb, uint32_t, uint32_t, uint32_t, uint32_t,                          \
                dot2(x, y, z, sa, sb, 0))                                                          \
    EMU_TERNARY(dp2a_hi_##ta##tb, uint32_t, uint32_t, uint32_t, uint32_t, dot2(x, y, z, sa, sb, 1))
DOTS(false, false, u, u)
DOTS(true, true, s, s)
DOTS(false, true, u, s)
DOTS(true, false, s, u)

#define BITS(name, types, exec, shape)                                                             \
    {                                                                                              \
        name, types, exec, shape, 0, CLASS_INTEGER                                                 \
    }
#define DOT_ROWS(a, b)                                                                             \
    BITS("dp4a." #a "32." #b "32", #b "32", dp4a_##a##b, "uuuu"),                                  \
        BITS("dp2a.lo." #a "32." #b "32", #b "32", dp2a_lo_##a##b, "uuuu"),                        \
        BITS("dp2a.hi." #a "32." #b "32", #b "32", dp2a_hi_##a##b, "uuuu")

const struct emu_row_def emu_bits_rows[] = {BITS("popc", "b32", popc_b32, "ut"),
                                            BITS("popc", "b64", popc_b64, "ut"),
                                            BITS("clz", "b32", clz_b32, "ut"),
                                            BITS("clz", "b64", clz_b64, "ut"),
                                            BITS("brev", "b32", brev_b32, "tt"),
                                            BITS("brev", "b64", brev_b64, "tt"),
                                            BITS("bfind", "u32", bfind_u32, "ut"),
                                            BITS("bfind", "s32", bfind_s32, "ut"),
                                            BITS("bfind", "u64", bfind_u64, "ut"),
                                            BITS("bfind", "s64", bfind_s64, "ut"),
                                            BITS("bfind.shiftamt", "u32", bfind_shift_u32, "ut"),
                                            BITS("bfind.shiftamt", "s32", bfind_shift_s32, "ut"),
                                            BITS("bfind.shiftamt", "u64", bfind_shift_u64, "ut"),
                                            BITS("bfind.shiftamt", "s64", bfind_shift_s64, "ut"),
                                            BITS("fns", "b32", fns_b32, "tttt"),
                                            BITS("bfe", "u32", bfe_u32, "ttuu"),
                                            BITS("bfe", "s32", bfe_s32, "ttuu"),
                                            BITS("bfe", "u64", bfe_u64, "ttuu"),
                                            BITS("bfe", "s64", bfe_s64, "ttuu"),
                                            BITS("bfi", "b32", bfi_b32, "tttuu"),
                                            BITS("bfi", "b64", bfi_b64, "tttuu"),
                                            BITS("bmsk.clamp", "b32", bmsk_clamp, "ttt"),
                                            BITS("bmsk.wrap", "b32", bmsk_wrap, "ttt"),
                                            BITS("szext.clamp", "u32", szext_clamp_u32, "ttu"),
                                            BITS("szext.clamp", "s32", szext_clamp_s32, "ttu"),
                                            BITS("szext.wrap", "u32", szext_wrap_u32, "ttu"),
                                            BITS("szext.wrap", "s32", szext_wrap_s32, "ttu"),
                                            BITS("and", "pred", and_pred, "ttt"),
                                            BITS("and", "b16", and_b16, "ttt"),
                                            BITS("and", "b32", and_b32, "ttt"),
                                            BITS("and", "b64", and_b64, "ttt"),
                                            BITS("or", "pred", or_pred, "ttt"),
                                            BITS("or", "b16", or_b16, "ttt"),
                                            BITS("or", "b32", or_b32, "ttt"),
                                            BITS("or", "b64", or_b64, "ttt"),
                                            BITS("xor", "pred", xor_pred, "ttt"),
                                            BITS("xor", "b16", xor_b16, "ttt"),
                                            BITS("xor", "b32", xor_b32, "ttt"),
                                            BITS("xor", "b64", xor_b64, "ttt"),
                                            BITS("not", "pred", not_pred, "tt"),
                                            BITS("not", "b16", not_b16, "tt"),
                                            BITS("not", "b32", not_b32, "tt"),
                                            BITS("not", "b64", not_b64, "tt"),
                                            BITS("cnot", "b16", cnot_b16, "tt"),
                                            BITS("cnot", "b32", cnot_b32, "tt"),
                                            BITS("cnot", "b64", cnot_b64, "tt"),
                                            BITS("shl", "b16", shl_b16, "ttu"),
                                            BITS("shl", "b32", shl_b32, "ttu"),
                                            BITS("shl", "b64", shl_b64, "ttu"),
                                            BITS("shr", "b16 u16", shr_u16, "ttu"),
                                            BITS("shr", "b32 u32", shr_u32, "ttu"),
                                            BITS("shr", "b64 u64", shr_u64, "ttu"),
                                            BITS("shr", "s16", shr_s16, "ttu"),
                                            BITS("shr", "s32", shr_s32, "ttu"),
                                            BITS("shr", "s64", shr_s64, "ttu"),
                                            BITS("shf.l.wrap", "b32", shf_l_wrap, "tttu"),
                                            BITS("shf.r.wrap", "b32", shf_r_wrap, "tttu"),
                                            BITS("shf.l.clamp", "b32", shf_l_clamp, "tttu"),
                                            BITS("shf.r.clamp", "b32", shf_r_clamp, "tttu"),
                                            DOT_ROWS(u, u),
                                            DOT_ROWS(s, s),
                                            DOT_ROWS(u, s),
                                            DOT_ROWS(s, u),
                                            {.name = ""}};
