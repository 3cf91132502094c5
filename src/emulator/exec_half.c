/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ISA "Half Precision Floating Point Instructions": f16 and bf16, single and packed in pairs.
 * Every operation is computed so widely that one rounding to the format is the right one: f16
 * in f32, which holds sums and products, and through sums rounded to odd where they are fused;
 * bf16 in f64 through sums rounded to odd.
 */
#include "src/emulator/arith.h"
#include "src/emulator/half.h"
#include "src/emulator/host_vector.h"

#include <string.h>

/* Through f32 rounded to odd, which keeps what the last rounding needs. */
static inline uint16_t narrow_f16(double x)
{
    return emu_f32_to_f16(emu_double_to_float_odd(x));
}

static inline uint16_t narrow_bf16(double x)
{
    return emu_f32_to_bf16(emu_double_to_float_odd(x));
}

static inline uint16_t flush_f16(uint16_t x)
{
    return (x & 0x7c00) == 0 ? x & 0x8000 : x;
}

static inline float in_f16(uint16_t x)
{
    return emu_f16_to_f32(x);
}

static inline float in_bf16(uint16_t x)
{
    return emu_bf16_to_f32(x);
}

enum {
    MOST_HALVES = 64,
    ONE_f16 = 0x3c00,
    ONE_bf16 = 0x3f80,
    INFINITY_f16 = 0x7c00,
    INFINITY_bf16 = 0x7f80
};

static void flush_all(uint16_t out[MOST_HALVES], int count)
{
    for (int h = 0; h < count; h++)
        out[h] = flush_f16(out[h]);
}

/* .sat clamps to [0, 1] and turns NaN into +0; .relu clamps negatives to +0 and keeps NaN. */
static void clamp_all(const struct emu_insn *insn, uint16_t out[MOST_HALVES], int count,
                      uint16_t one, uint16_t infinity)
{
    for (int h = 0; h < count; h++) {
        bool nan = (out[h] & 0x7fff) > infinity, negative = out[h] & 0x8000;
        if (insn->sat)
            out[h] = nan || negative ? 0 : out[h] > one ? one : out[h];
        else if (!nan && negative)
            out[h] = 0;
    }
}

static void store_halves(struct emu_warp *warp, struct emu_src to, const uint16_t *out,
                         uint32_t mask, int per_lane)
{
    uint16_t *d = EMU_ROW_OF(uint16_t, to);
    if (mask == 0xffffffffu)
        memcpy(d, out, (size_t)per_lane * 64);
    else
        for (int h = 0; h < 32 * per_lane; h++)
            if (mask >> (h / per_lane) & 1)
                d[h] = out[h];
}

/* Loops over all halves, one or two a lane, that vectorise whatever the mask; then the masked ones
   are stored. */
#define HALF_BODY(count, format, compute)                                                          \
    {                                                                                              \
        const int per_lane = insn->d.bytes / 2, halves = 32 * per_lane;                            \
        uint16_t in[3][MOST_HALVES], out[MOST_HALVES];                                             \
        const bool ftz = insn->ftz;                                                                \
        (void)ftz;                                                                                 \
        for (int i = 0; i < count; i++) {                                                          \
            memcpy(in[i], emu_row(warp, insn->s[i]), (size_t)halves * 2);                          \
            if (insn->ftz)                                                                         \
                flush_all(in[i], halves);                                                          \
        }                                                                                          \
        for (int h = 0; h < halves; h++) {                                                         \
            float x = in_##format(in[0][h]), y = count > 1 ? in_##format(in[1][h]) : 0;            \
            float z = count > 2 ? in_##format(in[2][h]) : 0;                                       \
            (void)y;                                                                               \
            (void)z;                                                                               \
            out[h] = compute;                                                                      \
        }                                                                                          \
        if (insn->ftz)                                                                             \
            flush_all(out, halves);                                                                \
        if (insn->sat || (insn->op & OP_RELU))                                                     \
            clamp_all(insn, out, halves, ONE_##format, INFINITY_##format);                         \
        store_halves(warp, insn->d, out, mask, per_lane);                                          \
    }
#define HALF_LOOP(how, name, count, format, compute)                                               \
    how static void name##_##format(struct emu_warp *warp, const struct emu_insn *insn,            \
                                    uint32_t mask) HALF_BODY(count, format, compute)
/* Sums, and differences, whose second operand's sign is the other one. */
#define SUM_LOOP(format, compute)                                                                  \
    EMU_WIDE static void sum_##format(struct emu_warp *warp, const struct emu_insn *insn,          \
                                      uint32_t mask, uint16_t sign) HALF_BODY(2, format, compute)  \
    static void add_##format(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)    \
    {                                                                                              \
        sum_##format(warp, insn, mask, 0);                                                         \
    }                                                                                              \
    static void sub_##format(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)    \
    {                                                                                              \
        sum_##format(warp, insn, mask, 0x8000);                                                    \
    }
#define SCALAR

/* .ftz flushes what would be subnormal if its exponent had no bound (seen on an H100). */
static inline float tiny_to_zero(float x, bool ftz)
{
    return ftz && fabsf(x) < 0x1p-14f - 0x1p-26f ? copysignf(0, x) : x;
}

SUM_LOOP(f16, emu_f32_to_f16(x + in_f16(in[1][h] ^ sign)))
HALF_LOOP(EMU_WIDE, mul, 2, f16, emu_f32_to_f16(tiny_to_zero(x *y, ftz)))
HALF_LOOP(EMU_WIDE, fma, 3, f16, emu_f32_to_f16(tiny_to_zero(emu_add_odd_f32(x *y, z), ftz)))
HALF_LOOP(SCALAR, ex2, 1, f16, narrow_f16(exp2((double)x)))
HALF_LOOP(SCALAR, tanh, 1, f16, narrow_f16(tanh((double)x)))
SUM_LOOP(bf16, narrow_bf16(emu_add_odd(x, in_bf16(in[1][h] ^ sign))))
HALF_LOOP(EMU_WIDE, mul, 2, bf16, narrow_bf16((double)x *y))
HALF_LOOP(EMU_WIDE, fma, 3, bf16, narrow_bf16(emu_add_odd((double)x *y, z)))
HALF_LOOP(SCALAR, ex2, 1, bf16, narrow_bf16(exp2((double)x)))
HALF_LOOP(SCALAR, tanh, 1, bf16, narrow_bf16(tanh((double)x)))

/* ---- min, max, abs, neg: on the encodings ---- */

static inline int32_t order(uint16_t x)
{
    return x & 0x8000 ? -(int32_t)(x & 0x7fff) - 1 : x;
}

static inline uint16_t choose(uint16_t x, uint16_t y, const struct emu_insn *insn,
                              uint16_t infinity, bool least)
{
    uint16_t sign = (uint16_t)((x ^ y) & 0x8000);
    if (insn->op & OP_XORSIGN) {
        x &= 0x7fff;
        y &= 0x7fff;
    }
    bool nan_x = (x & 0x7fff) > infinity, nan_y = (y & 0x7fff) > infinity;
    if (nan_x || nan_y) {
        if ((nan_x && nan_y) || (insn->op & OP_NAN))
            return 0x7fff;
        x = nan_x ? y : x;
        y = x;
    }
    uint16_t chosen = (order(x) < order(y)) == least ? x : y;
    return insn->op & OP_XORSIGN ? chosen | sign : chosen;
}

#define BITS_LOOP(name, format, expression)                                                        \
    static void name##_##format(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask) \
    {                                                                                              \
        const int per_lane = insn->d.bytes / 2;                                                    \
        uint16_t *d = EMU_ROW_OF(uint16_t, insn->d);                                               \
        const uint16_t *a = EMU_ROW_OF(uint16_t, insn->s[0]);                                      \
        const uint16_t *b = insn->s[1].bytes ? EMU_ROW_OF(uint16_t, insn->s[1]) : a;               \
        for (int h = 0; h < 32 * per_lane; h++) {                                                  \
            if (!(mask >> (h / per_lane) & 1))                                                     \
                continue;                                                                          \
            uint16_t x = a[h], y = b[h];                                                           \
            (void)y;                                                                               \
            d[h] = (uint16_t)(expression);                                                         \
        }                                                                                          \
    }
#define FLUSHED(x) (insn->ftz ? flush_f16(x) : (x))

BITS_LOOP(min, f16, choose(FLUSHED(x), FLUSHED(y), insn, 0x7c00, true))
BITS_LOOP(max, f16, choose(FLUSHED(x), FLUSHED(y), insn, 0x7c00, false))
BITS_LOOP(min, bf16, choose(x, y, insn, 0x7f80, true))
BITS_LOOP(max, bf16, choose(x, y, insn, 0x7f80, false))
BITS_LOOP(abs, f16, FLUSHED(x) & 0x7fff)
BITS_LOOP(neg, f16, FLUSHED(x) ^ 0x8000)
BITS_LOOP(abs, bf16, x & 0x7fff)
BITS_LOOP(neg, bf16, x ^ 0x8000)

#define HALF(name, types, exec, shape, allowed)                                                    \
    {                                                                                              \
        name, types, exec, shape, allowed, CLASS_FLOAT                                             \
    }
#define PER_FORMAT(name, op, shape, f16_allowed, bf16_allowed)                                     \
    HALF(name, "f16", op##_f16, shape, f16_allowed),                                               \
        HALF(name, "f16x2", op##_f16, shape, f16_allowed),                                         \
        HALF(name, "bf16", op##_bf16, shape, bf16_allowed),                                        \
        HALF(name, "bf16x2", op##_bf16, shape, bf16_allowed)
#define HALF_ROUND(name, op, shape, extra)                                                         \
    PER_FORMAT(name, op, shape, ALLOW_FTZ | ALLOW_SAT | (extra), (extra)),                         \
        PER_FORMAT(name ".rn", op, shape, ALLOW_FTZ | ALLOW_SAT | (extra), (extra))
enum { CHOICE = ALLOW_NAN | ALLOW_XORSIGN };

const struct emu_row_def emu_half_rows[] = {
    HALF_ROUND("add", add, "ttt", 0),
    HALF_ROUND("sub", sub, "ttt", 0),
    HALF_ROUND("mul", mul, "ttt", 0),
    PER_FORMAT("fma.rn", fma, "tttt", ALLOW_FTZ | ALLOW_SAT | ALLOW_RELU, ALLOW_RELU),
    PER_FORMAT("ex2.approx", ex2, "tt", 0, 0),
    PER_FORMAT("ex2.approx.ftz", ex2, "tt", 0, 0),
    PER_FORMAT("tanh.approx", tanh, "tt", 0, 0),
    PER_FORMAT("min", min, "ttt", ALLOW_FTZ | CHOICE, CHOICE),
    PER_FORMAT("max", max, "ttt", ALLOW_FTZ | CHOICE, CHOICE),
    PER_FORMAT("abs", abs, "tt", ALLOW_FTZ, 0),
    PER_FORMAT("neg", neg, "tt", ALLOW_FTZ, 0),
    {.name = ""}};
