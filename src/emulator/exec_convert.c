/* SPDX-License-Identifier: Apache-2.0 */
/* ISA "cvt" and "cvt.pack". */
#include "src/emulator/arith.h"
#include "src/emulator/half.h"

#include <fenv.h>

enum { INTEGRAL_NONE, INTEGRAL_RNI, INTEGRAL_RZI, INTEGRAL_RMI, INTEGRAL_RPI };

static const struct emu_format format_f32 = {8, 23, true, 0x7fffffff, 0x7f7fffff};

static const struct emu_format *format_of(enum emu_type type)
{
    switch (type) {
    case T_f16:
    case T_f16x2: return &emu_format_f16;
    case T_bf16:
    case T_bf16x2: return &emu_format_bf16;
    case T_tf32: return &emu_format_tf32;
    case T_f32: return &format_f32;
    case T_e4m3x2: return &emu_format_e4m3;
    case T_e5m2x2: return &emu_format_e5m2;
    default: return NULL;
    }
}

/* ---- one element: a source in either domain ---- */

static bool is_signed(enum emu_type type)
{
    return emu_types[type].kind == 'S';
}

static uint64_t integer_in(uint64_t bits, enum emu_type type)
{
    uint32_t width = emu_types[type].bits;
    if (width >= 64)
        return bits;
    uint64_t keep = ((uint64_t)1 << width) - 1;
    bits &= keep;
    return is_signed(type) && (bits >> (width - 1)) ? bits | ~keep : bits;
}

static double real_in(uint64_t bits, enum emu_type type, bool ftz)
{
    if (type == T_f64)
        return emu_double_of(bits);
    if (type == T_f32) {
        bool subnormal = (bits & 0x7f800000u) == 0;
        return emu_float_of((uint32_t)(ftz && subnormal ? bits & 0x80000000u : bits));
    }
    return emu_from_small((uint32_t)bits & 0xffff, format_of(type));
}

/* An integer as a double, rounded to odd where it does not fit, so that rounding on is right. */
static double integer_to_real(uint64_t bits, enum emu_type type)
{
    bool negative = is_signed(type) && (int64_t)bits < 0;
    uint64_t magnitude = negative ? 0 - bits : bits;
    if (magnitude >> 53) {
        int excess = 11 - __builtin_clzll(magnitude);
        bool sticky = magnitude & (((uint64_t)1 << excess) - 1);
        magnitude = (magnitude >> excess | sticky) << excess;
    }
    return negative ? -(double)magnitude : (double)magnitude;
}

static double to_integral(double x, uint8_t mode)
{
    switch (mode) {
    case INTEGRAL_RNI: return nearbyint(x);
    case INTEGRAL_RZI: return trunc(x);
    case INTEGRAL_RMI: return floor(x);
    case INTEGRAL_RPI: return ceil(x);
    default: return x;
    }
}

/* Range of an integer type; unsigned 64-bit limits do not fit int64_t, hence both. */
static uint64_t largest(enum emu_type type)
{
    uint32_t width = emu_types[type].bits - is_signed(type);
    return width >= 64 ? UINT64_MAX : ((uint64_t)1 << width) - 1;
}

static int64_t smallest(enum emu_type type)
{
    return is_signed(type) ? -(int64_t)largest(type) - 1 : 0;
}

/* "Float-to-integer conversions clamp"; NaN gives 0, or 1 << (n-1) from f64 or to 64 bits. */
static uint64_t real_to_integer(double x, enum emu_type to, enum emu_type from)
{
    uint32_t width = emu_types[to].bits;
    if (x != x)
        return from == T_f64 || width == 64 ? integer_in((uint64_t)1 << (width - 1), to) : 0;
    if (x <= (double)smallest(to))
        return (uint64_t)smallest(to);
    if (x >= (double)largest(to))
        return largest(to);
    return x < 0 ? (uint64_t)(int64_t)x : (uint64_t)x;
}

static uint64_t clamp_integer(uint64_t bits, enum emu_type from, enum emu_type to)
{
    bool negative = is_signed(from) && (int64_t)bits < 0;
    if (negative)
        return (int64_t)bits < smallest(to) ? (uint64_t)smallest(to) : bits;
    return bits > largest(to) ? largest(to) : bits;
}

static uint64_t real_out(double x, const struct emu_insn *insn, enum emu_type to)
{
    if (insn->sat)
        x = x != x || x <= 0 ? 0.0 : x > 1 ? 1.0 : x;
    if ((insn->op & OP_RELU) && x <= 0)
        x = 0;
    if (to == T_f64)
        return emu_bits64_of(x);
    uint32_t bits =
        emu_to_small(x, format_of(to), (enum emu_small_round)insn->mode, insn->op & OP_SATFINITE);
    if (insn->ftz && to == T_f32 && (bits & 0x7f800000u) == 0)
        bits &= 0x80000000u;
    return to == T_tf32 ? bits << 13 : bits;
}

/* Rounds once, in a sum of exact halves: compilers' own conversion of an unsigned 0 may be −0. */
static uint64_t integer_to_f64(uint64_t bits, enum emu_type from, uint8_t mode)
{
    static const int host[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD, FE_TONEAREST};
    int before = fegetround();
    int64_t top = is_signed(from) ? (int64_t)bits >> 32 : (int64_t)(bits >> 32);
    volatile double high = (double)top * 0x1p32, low = (double)(int64_t)(bits & UINT32_MAX);
    fesetround(host[mode]);
    volatile double out = high + low;
    fesetround(before);
    return emu_bits64_of(out);
}

/*
 * What an H100 makes of NaNs here, where the ISA is silent: narrowing f64 keeps the sign and the
 * top of the payload, cvt.rna.tf32 drops 13 bits of it, cvt.f32.bf16 moves bits.
 */
static bool keeps_payload(uint64_t bits, const struct emu_insn *insn, uint64_t *nan)
{
    enum emu_type to = insn->type, from = insn->type2;
    if (from == T_f64 && (to == T_f32 || to == T_f16 || to == T_bf16)) {
        uint32_t mantissa = to == T_f32 ? 23 : to == T_f16 ? 10 : 7, width = to == T_f32 ? 32 : 16;
        uint64_t exponent = ((1u << (width - 1 - mantissa)) - 1) << mantissa;
        uint64_t payload = (bits & 0xfffffffffffffull) >> (52 - mantissa);
        *nan = (bits >> 63) << (width - 1) | exponent | 1ull << (mantissa - 1) | payload;
        return true;
    }
    if (from == T_f32 && to == T_tf32 && insn->mode == SMALL_RNA) {
        /*
         * an infinity where all of it goes; .satfinite steps down from infinity, so from NaNs too
         */
        *nan = (bits & 0xffffe000u) - (insn->op & OP_SATFINITE ? 0x2000u : 0);
        return true;
    }
    return false;
}

static uint64_t convert(uint64_t bits, const struct emu_insn *insn)
{
    enum emu_type to = insn->type, from = insn->type2;
    bool real_from = emu_types[from].kind == 'F', real_to = emu_types[to].kind == 'F';
    if (!real_from) {
        bits = integer_in(bits, from);
        if (to == T_f64)
            return real_out(emu_double_of(integer_to_f64(bits, from, insn->mode)), insn, to);
        if (real_to)
            return real_out(integer_to_real(bits, from), insn, to);
        return integer_in(insn->sat ? clamp_integer(bits, from, to) : bits, to);
    }
    /* To f16 a card keeps a subnormal f32 with .ftz too: an H200 rounds -0x1p-149 down to -0x1p-24. */
    bool flushed = insn->ftz && to != T_f16;
    double x = to_integral(real_in(bits, from, flushed), (uint8_t)insn->imm);
    uint64_t nan;
    if (x != x && !insn->sat && !(insn->op & OP_RELU) && keeps_payload(bits, insn, &nan))
        return nan;
    return real_to ? real_out(x, insn, to) : real_to_integer(x, to, from);
}

static void cvt(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    for (int l = 0; l < 32; l++)
        if (mask >> l & 1)
            emu_set_lane(warp, insn->d, l, convert(emu_lane_value(warp, insn->s[0], l), insn));
}

/* ---- packed destinations and sources: b is the low element ---- */

static void cvt_pack_real(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    enum emu_type to = insn->type;
    uint32_t width = emu_types[to].bits / 2;
    for (int l = 0; l < 32; l++) {
        if (!(mask >> l & 1))
            continue;
        uint64_t high =
            real_out(real_in(emu_lane_value(warp, insn->s[0], l), T_f32, false), insn, to);
        uint64_t low =
            real_out(real_in(emu_lane_value(warp, insn->s[1], l), T_f32, false), insn, to);
        emu_set_lane(warp, insn->d, l, high << width | low);
    }
}

static void cvt_repack(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    enum emu_type to = insn->type, from = insn->type2;
    uint32_t out = emu_types[to].bits / 2, in = emu_types[from].bits / 2;
    for (int l = 0; l < 32; l++) {
        if (!(mask >> l & 1))
            continue;
        uint64_t bits = emu_lane_value(warp, insn->s[0], l), result = 0;
        for (uint32_t half = 0; half < 2; half++) {
            uint32_t element = (uint32_t)(bits >> (half * in)) & ((1u << in) - 1);
            double x = emu_from_small(element, format_of(from));
            result |= real_out(x, insn, to) << (half * out);
        }
        emu_set_lane(warp, insn->d, l, result);
    }
}

/* ---- the common cases as loops that vectorise ---- */

EMU_UNARY(f32_of_f16, float, uint16_t, emu_canonical(emu_f16_to_f32(x)))
EMU_UNARY(f16_of_f32, uint16_t, float, emu_f32_to_f16(x))
EMU_UNARY(f32_of_bf16, uint32_t, uint16_t, (uint32_t)x << 16)
EMU_UNARY(bf16_of_f32, uint16_t, float, emu_f32_to_bf16(x))
EMU_UNARY(f32_of_s32, float, int32_t, x)
EMU_UNARY(f32_of_u32, float, uint32_t, x)
EMU_UNARY(u64_of_u32, uint64_t, uint32_t, x)
EMU_UNARY(s64_of_s32, int64_t, int32_t, x)
EMU_UNARY(u32_of_u64, uint32_t, uint64_t, x)
EMU_UNARY(u16_of_u32, uint16_t, uint32_t, x)
EMU_UNARY(u32_of_u16, uint32_t, uint16_t, x)
EMU_UNARY(s32_of_s16, int32_t, int16_t, x)
EMU_UNARY(u32_of_u8, uint32_t, uint16_t, x & 0xff)
EMU_UNARY(s32_of_s8, int32_t, uint32_t, (int8_t)x)

static const struct {
    enum emu_type to, from;
    uint8_t to_bytes, from_bytes;
    emu_exec exec;
} fast[] = {{T_f32, T_f16, 4, 2, f32_of_f16},   {T_f16, T_f32, 2, 4, f16_of_f32},
            {T_f32, T_bf16, 4, 2, f32_of_bf16}, {T_bf16, T_f32, 2, 4, bf16_of_f32},
            {T_f32, T_s32, 4, 4, f32_of_s32},   {T_f32, T_u32, 4, 4, f32_of_u32},
            {T_u64, T_u32, 8, 4, u64_of_u32},   {T_s64, T_s32, 8, 4, s64_of_s32},
            {T_u32, T_u64, 4, 8, u32_of_u64},   {T_u16, T_u32, 2, 4, u16_of_u32},
            {T_u32, T_u16, 4, 2, u32_of_u16},   {T_s32, T_s16, 4, 2, s32_of_s16},
            {T_u32, T_u8, 4, 2, u32_of_u8},     {T_s32, T_s8, 4, 4, s32_of_s8}};

static emu_exec fast_form(const struct emu_insn *insn)
{
    if (insn->mode || insn->ftz || insn->sat || insn->op || insn->imm)
        return cvt;
    for (size_t i = 0; i < sizeof fast / sizeof *fast; i++)
        if (fast[i].to == insn->type && fast[i].from == insn->type2 &&
            fast[i].to_bytes == insn->d.bytes && fast[i].from_bytes == insn->s[0].bytes)
            return fast[i].exec;
    return cvt;
}

/* ---- decoding ---- */

static void decode_rounding(struct emu_decoder *decoder, struct emu_insn *insn)
{
    static const char *const rounds[] = {"rn", "rz", "rm", "rp", "rna", NULL};
    static const char *const integral[] = {"rni", "rzi", "rmi", "rpi", NULL};
    int round = emu_mod_of(decoder, rounds);
    insn->mode = round < 0 ? SMALL_RN : (uint8_t)round;
    insn->imm = emu_mod_of(decoder, integral) + 1;
    insn->ftz = emu_mod(decoder, "ftz");
    insn->sat = emu_mod(decoder, "sat");
    if (emu_mod(decoder, "relu"))
        insn->op |= OP_RELU;
    if (emu_mod(decoder, "satfinite"))
        insn->op |= OP_SATFINITE;
}

static bool is_pair(enum emu_type type)
{
    return type == T_f16x2 || type == T_bf16x2 || type == T_e4m3x2 || type == T_e5m2x2;
}

static void decode_pair(struct emu_decoder *decoder, struct emu_insn *insn)
{
    enum emu_type to = insn->type, from = insn->type2;
    insn->class_id = CLASS_CONVERT;
    insn->d = emu_write_nth(decoder, 0, to);
    if (from == T_f32) {
        emu_need_operands(decoder, 3, 3);
        insn->exec = cvt_pack_real;
        insn->s[0] = emu_read_nth(decoder, 1, T_f32);
        insn->s[1] = emu_read_nth(decoder, 2, T_f32);
        return;
    }
    if (!is_pair(from))
        emu_refuse(decoder, "no conversion from .%s to .%s", emu_types[from].name,
                   emu_types[to].name);
    emu_need_operands(decoder, 2, 2);
    insn->exec = cvt_repack;
    insn->s[0] = emu_read_nth(decoder, 1, from);
}

/* cvt.pack.sat.to.s32{.b32} d, a, b {, c}: b in the low part, then a, then c's low part on top. */
static void cvt_pack(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    enum emu_type to = insn->type;
    uint32_t width = emu_types[to].bits;
    uint64_t keep = ((uint64_t)1 << width) - 1;
    for (int l = 0; l < 32; l++) {
        if (!(mask >> l & 1))
            continue;
        uint64_t a = integer_in(emu_lane_value(warp, insn->s[0], l), T_s32);
        uint64_t b = integer_in(emu_lane_value(warp, insn->s[1], l), T_s32);
        uint64_t packed =
            (clamp_integer(a, T_s32, to) & keep) << width | (clamp_integer(b, T_s32, to) & keep);
        if (insn->has_value)
            packed |= emu_lane_value(warp, insn->s[2], l) << (2 * width);
        emu_set_lane(warp, insn->d, l, packed);
    }
}

static void decode_cvt_pack(struct emu_decoder *decoder, struct emu_insn *insn)
{
    if (!emu_mod(decoder, "sat"))
        emu_refuse(decoder, ".sat is missing");
    insn->type = (uint8_t)emu_need_type(decoder, "u16 s16 u8 s8 u4 s4 u2 s2");
    emu_need_type(decoder, "s32");
    insn->has_value = emu_mod(decoder, "b32");
    emu_need_operands(decoder, insn->has_value ? 4 : 3, insn->has_value ? 4 : 3);
    insn->exec = cvt_pack;
    for (uint32_t i = 0; i + 1 < emu_operand_count(decoder); i++)
        insn->s[i] = emu_read_nth(decoder, i + 1, T_s32);
    insn->d = emu_write_nth(decoder, 0, T_s32);
}

/* The types in whose conversions no register is wider than its type. */
static bool is_exact(enum emu_type type)
{
    return type == T_bf16 || type == T_tf32;
}

static void decode_cvt(struct emu_decoder *decoder, struct emu_insn *insn)
{
    if (emu_mod(decoder, "pack")) {
        decode_cvt_pack(decoder, insn);
        return;
    }
    decode_rounding(decoder, insn);
    insn->type = (uint8_t)emu_need_type(
        decoder, "u8 u16 u32 u64 s8 s16 s32 s64 f16 bf16 f32 f64 tf32 f16x2 bf16x2 e4m3x2 e5m2x2");
    insn->type2 = (uint8_t)emu_need_type(
        decoder, "u8 u16 u32 u64 s8 s16 s32 s64 f16 bf16 f32 f64 f16x2 bf16x2 e4m3x2 e5m2x2");
    if (is_pair(insn->type)) {
        decode_pair(decoder, insn);
        return;
    }
    emu_need_operands(decoder, 2, 2);
    if (is_pair(insn->type2))
        emu_refuse(decoder, "no conversion from .%s to .%s", emu_types[insn->type2].name,
                   emu_types[insn->type].name);
    const struct emu_arg *from = emu_operand_at(decoder, 1), *to = emu_operand_at(decoder, 0);
    bool exact = is_exact(insn->type) || is_exact(insn->type2);
    insn->s[0] =
        exact ? emu_read(decoder, from, insn->type2) : emu_read_wide(decoder, from, insn->type2);
    insn->d = exact ? emu_write(decoder, to, insn->type) : emu_write_wide(decoder, to, insn->type);
    insn->exec = fast_form(insn);
}

const struct emu_opcode emu_convert_opcodes[] = {{"cvt", decode_cvt, CLASS_CONVERT},
                                                 {NULL, NULL, CLASS_OTHER}};
