/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ISA "Floating Point Instructions" for f32 and f64. The common forms (to nearest, with or
 * without .ftz) are loops that vectorise; the other rounding modes set the host's mode around
 * the loop. Approximations are computed in double and rounded once, which is within the ISA's
 * bound for each.
 */
#include "src/emulator/arith.h"
#include "src/emulator/half.h"

#include <fenv.h>

static inline float flush(float x)
{
    uint32_t bits = emu_bits_of(x);
    return (bits & 0x7f800000u) == 0 ? emu_float_of(bits & 0x80000000u) : x;
}

static inline float saturate(float x)
{
    return x != x || x < 0 ? 0.0f : x > 1 ? 1.0f : x == 0 ? 0.0f : x;
}

static const int host_rounds[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};

typedef float (*op_f32)(float, float, float);
typedef double (*op_f64)(double, double, double);

/* Any mode, lane by lane; the operation is a call, so nothing is moved across the mode changes. */
static void slow_f32(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask, int count,
                     op_f32 op)
{
    int before = fegetround();
    float *d = EMU_ROW_OF(float, insn->d);
    const float *in[3] = {0};
    for (int i = 0; i < count; i++)
        in[i] = EMU_ROW_OF(float, insn->s[i]);
    fesetround(host_rounds[insn->mode]);
    for (int l = 0; l < 32; l++) {
        if (!(mask >> l & 1))
            continue;
        float v[3] = {0};
        for (int i = 0; i < count; i++)
            v[i] = insn->ftz ? flush(in[i][l]) : in[i][l];
        float result = emu_canonical(op(v[0], v[1], v[2]));
        if (insn->ftz)
            result = flush(result);
        d[l] = insn->sat ? saturate(result) : result;
    }
    fesetround(before);
}

static void slow_f64(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask, int count,
                     op_f64 op)
{
    int before = fegetround();
    double *d = EMU_ROW_OF(double, insn->d);
    const double *in[3] = {0};
    for (int i = 0; i < count; i++)
        in[i] = EMU_ROW_OF(double, insn->s[i]);
    fesetround(host_rounds[insn->mode]);
    for (int l = 0; l < 32; l++)
        if (mask >> l & 1)
            d[l] = op(in[0][l], count > 1 ? in[1][l] : 0, count > 2 ? in[2][l] : 0);
    fesetround(before);
}

#define OP_F32(name, expression)                                                                   \
    static float name##_op_f32(float x, float y, float z)                                          \
    {                                                                                              \
        (void)y;                                                                                   \
        (void)z;                                                                                   \
        return expression;                                                                         \
    }
#define OP_F64(name, expression)                                                                   \
    static double name##_op_f64(double x, double y, double z)                                      \
    {                                                                                              \
        (void)y;                                                                                   \
        (void)z;                                                                                   \
        return expression;                                                                         \
    }

/* A vectorised form for round to nearest, and the slow one for the rest. */
#define FAST_BINARY_F32(name, expression)                                                          \
    OP_F32(name, expression)                                                                       \
    static void name##_f32(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)      \
    {                                                                                              \
        float *d = EMU_ROW_OF(float, insn->d);                                                     \
        const float *a = EMU_ROW_OF(float, insn->s[0]), *b = EMU_ROW_OF(float, insn->s[1]);        \
        if (insn->mode != ROUND_RN || insn->sat) {                                                 \
            slow_f32(warp, insn, mask, 2, name##_op_f32);                                          \
        } else if (insn->ftz) {                                                                    \
            EMU_LANES(mask, float x = flush(a[l]); float y = flush(b[l]);                          \
                      d[l] = flush(emu_canonical(expression));)                                    \
        } else {                                                                                   \
            EMU_LANES(mask, float x = a[l]; float y = b[l]; d[l] = emu_canonical(expression);)     \
        }                                                                                          \
    }
FAST_BINARY_F32(add, x + y)
FAST_BINARY_F32(sub, x - y)
FAST_BINARY_F32(mul, x *y)

#define BINARY_F64(name, expression)                                                               \
    OP_F64(name, expression)                                                                       \
    static void name##_f64(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)      \
    {                                                                                              \
        slow_f64(warp, insn, mask, 2, name##_op_f64);                                              \
    }
BINARY_F64(add, x + y)
BINARY_F64(sub, x - y)
BINARY_F64(mul, x *y)
BINARY_F64(div, x / y)

/* ---- fma ---- */

OP_F32(fma, fmaf(x, y, z))
OP_F64(fma, fma(x, y, z))

#if defined(__x86_64__)
#define HAS_FAST_FMA __builtin_cpu_supports("fma")
__attribute__((target("avx2,fma")))
#else
#define HAS_FAST_FMA 1
#endif
static void
fma_f32_nearest(float *d, const float *a, const float *b, const float *c, uint32_t mask)
{
    EMU_LANES(mask, d[l] = emu_canonical(__builtin_fmaf(a[l], b[l], c[l]));)
}

static void fma_f32(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    if (insn->mode == ROUND_RN && !insn->ftz && !insn->sat && HAS_FAST_FMA)
        fma_f32_nearest(EMU_ROW_OF(float, insn->d), EMU_ROW_OF(float, insn->s[0]),
                        EMU_ROW_OF(float, insn->s[1]), EMU_ROW_OF(float, insn->s[2]), mask);
    else
        slow_f32(warp, insn, mask, 3, fma_op_f32);
}

static void fma_f64(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)
{
    slow_f64(warp, insn, mask, 3, fma_op_f64);
}

/* Two f32 in one 64-bit register, low half first. */
#define PACKED_F32(name, count)                                                                    \
    static void name##_f32x2(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)    \
    {                                                                                              \
        int before = fegetround();                                                                 \
        fesetround(host_rounds[insn->mode]);                                                       \
        for (int l = 0; l < 64; l++) {                                                             \
            if (!(mask >> (l / 2) & 1))                                                            \
                continue;                                                                          \
            float v[3] = {0};                                                                      \
            for (int i = 0; i < count; i++) {                                                      \
                float x = EMU_ROW_OF(float, insn->s[i])[l];                                        \
                v[i] = insn->ftz ? flush(x) : x;                                                   \
            }                                                                                      \
            float result = emu_canonical(name##_op_f32(v[0], v[1], v[2]));                         \
            EMU_ROW_OF(float, insn->d)[l] = insn->ftz ? flush(result) : result;                    \
        }                                                                                          \
        fesetround(before);                                                                        \
    }
PACKED_F32(add, 2)
PACKED_F32(sub, 2)
PACKED_F32(mul, 2)
PACKED_F32(fma, 3)

/* ---- div, rcp, sqrt and their approximations ---- */

#define SLOW_F32(name, count, expression)                                                          \
    OP_F32(name, expression)                                                                       \
    static void name##_f32(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)      \
    {                                                                                              \
        slow_f32(warp, insn, mask, count, name##_op_f32);                                          \
    }
#define SLOW_F64(name, count, expression)                                                          \
    OP_F64(name, expression)                                                                       \
    static void name##_f64(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)      \
    {                                                                                              \
        slow_f64(warp, insn, mask, count, name##_op_f64);                                          \
    }

/* "For 2^126 < |b| < 2^128, div.approx delivers 0 (NaN when a is infinite)". */
static float divide_approx(float x, float y)
{
    float size = fabsf(y);
    if (size > 0x1p126f && size < INFINITY)
        return isinf(x) ? NAN : copysignf(0.0f, x) * copysignf(1.0f, y);
    return (float)((double)x / y);
}

SLOW_F32(div, 2, x / y)
SLOW_F32(div_approx, 2, divide_approx(x, y))
SLOW_F32(div_full, 2, (float)((double)x / y))
SLOW_F32(rcp, 1, 1.0f / x)
SLOW_F64(rcp, 1, 1.0 / x)
SLOW_F32(sqrt, 1, sqrtf(x))
SLOW_F64(sqrt, 1, sqrt(x))
SLOW_F32(rsqrt, 1, (float)(1.0 / sqrt((double)x)))
SLOW_F32(sin, 1, (float)sin((double)x))
SLOW_F32(cos, 1, (float)cos((double)x))
SLOW_F32(lg2, 1, (float)log2((double)x))
SLOW_F32(ex2, 1, (float)exp2((double)x))
SLOW_F32(tanh, 1, (float)tanh((double)x))

/* "rcp.approx.ftz.f64: the 32 least significant bits of the result are zero"; rsqrt alike. */
static double high_word(double x)
{
    uint64_t bits = emu_bits64_of(x) & 0xffffffff00000000u;
    bool subnormal = (bits & 0x7ff0000000000000u) == 0;
    return emu_double_of(subnormal ? bits & 0x8000000000000000u : bits);
}

SLOW_F64(rcp_approx, 1, high_word(1.0 / high_word(x)))
SLOW_F64(rsqrt_approx, 1, high_word(1.0 / sqrt(high_word(x))))
SLOW_F64(rsqrt, 1, 1.0 / sqrt(x))

/* ---- min, max, abs, neg, copysign, testp ---- */

/* "+0.0 > -0.0"; one NaN operand gives the other one, or with .NaN the canonical NaN. */
#define CHOOSE(name, T, bits_of, nan, less)                                                        \
    static inline T name(T x, T y, uint8_t op)                                                     \
    {                                                                                              \
        if (x != x || y != y) {                                                                    \
            T number = x != x ? y : x;                                                             \
            return (op & OP_NAN) || number != number ? nan : number;                               \
        }                                                                                          \
        bool x_first = x == y ? (bits_of(x) >> (sizeof(T) * 8 - 1)) != 0 : x < y;                  \
        T low = x_first ? x : y, high = x_first ? y : x;                                           \
        return less ? low : high;                                                                  \
    }
CHOOSE(min_of_f32, float, emu_bits_of, emu_float_of(EMU_NAN_F32), true)
CHOOSE(max_of_f32, float, emu_bits_of, emu_float_of(EMU_NAN_F32), false)
CHOOSE(min_of_f64, double, emu_bits64_of, NAN, true)
CHOOSE(max_of_f64, double, emu_bits64_of, NAN, false)

static inline float with_sign(float x, uint32_t sign)
{
    return emu_float_of((emu_bits_of(x) & 0x7fffffffu) | (sign & 0x80000000u));
}

/* .xorsign.abs: the chosen magnitude with the exclusive or of the signs. */
#define MINMAX_F32(name, chooser)                                                                  \
    static void name(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)            \
    {                                                                                              \
        float *d = EMU_ROW_OF(float, insn->d);                                                     \
        const float *a = EMU_ROW_OF(float, insn->s[0]), *b = EMU_ROW_OF(float, insn->s[1]);        \
        for (int l = 0; l < 32; l++) {                                                             \
            if (!(mask >> l & 1))                                                                  \
                continue;                                                                          \
            float x = insn->ftz ? flush(a[l]) : a[l], y = insn->ftz ? flush(b[l]) : b[l];          \
            uint32_t sign = emu_bits_of(x) ^ emu_bits_of(y);                                       \
            if (insn->op & OP_XORSIGN) {                                                           \
                float chosen = chooser(fabsf(x), fabsf(y), insn->op);                              \
                d[l] = chosen != chosen ? chosen : with_sign(chosen, sign);                        \
            } else {                                                                               \
                d[l] = chooser(x, y, insn->op);                                                    \
            }                                                                                      \
        }                                                                                          \
    }
MINMAX_F32(min_f32, min_of_f32)
MINMAX_F32(max_f32, max_of_f32)
EMU_BINARY(min_f64, double, double, double, min_of_f64(x, y, 0))
EMU_BINARY(max_f64, double, double, double, max_of_f64(x, y, 0))

#define SIGN_F32(name, expression)                                                                 \
    static void name(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)            \
    {                                                                                              \
        uint32_t *d = EMU_ROW_OF(uint32_t, insn->d);                                               \
        const uint32_t *a = EMU_ROW_OF(uint32_t, insn->s[0]);                                      \
        bool ftz = insn->ftz;                                                                      \
        EMU_LANES(mask, uint32_t x = ftz && !(a[l] & 0x7f800000u) ? a[l] & 0x80000000u : a[l];     \
                  d[l] = expression;)                                                              \
    }
SIGN_F32(abs_f32, x & 0x7fffffffu)
SIGN_F32(neg_f32, x ^ 0x80000000u)
EMU_UNARY(abs_f64, uint64_t, uint64_t, x & 0x7fffffffffffffffu)
EMU_UNARY(neg_f64, uint64_t, uint64_t, x ^ 0x8000000000000000u)
/* "Copies the sign of a into the value of b". */
EMU_BINARY(copysign_f32, uint32_t, uint32_t, uint32_t, (y & 0x7fffffffu) | (x & 0x80000000u))
EMU_BINARY(copysign_f64, uint64_t, uint64_t, uint64_t,
           (y & 0x7fffffffffffffffu) | (x & 0x8000000000000000u))

#define TESTP(name, T, expression)                                                                 \
    static void name(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask)            \
    {                                                                                              \
        const T *a = EMU_ROW_OF(T, insn->s[0]);                                                    \
        uint32_t result = 0;                                                                       \
        for (int l = 0; l < 32; l++) {                                                             \
            T x = a[l];                                                                            \
            result |= (uint32_t)(expression) << l;                                                 \
        }                                                                                          \
        emu_set_predicate(warp, insn->d, result, mask);                                            \
    }
#define TESTPS(suffix, T)                                                                          \
    TESTP(testp_finite_##suffix, T, isfinite(x) != 0)                                              \
    TESTP(testp_infinite_##suffix, T, isinf(x) != 0)                                               \
    TESTP(testp_number_##suffix, T, x == x)                                                        \
    TESTP(testp_notanumber_##suffix, T, x != x)                                                    \
    TESTP(testp_normal_##suffix, T, isnormal(x) || x == 0) /* "zero is normal" */                  \
    TESTP(testp_subnormal_##suffix, T, fpclassify(x) == FP_SUBNORMAL)
TESTPS(f32, float)
TESTPS(f64, double)

#define FLT(name, types, exec, shape, allowed)                                                     \
    {                                                                                              \
        name, types, exec, shape, allowed, CLASS_FLOAT                                             \
    }
#define TESTP_ROWS(kind)                                                                           \
    FLT("testp." #kind, "f32", testp_##kind##_f32, "pt", 0),                                       \
        FLT("testp." #kind, "f64", testp_##kind##_f64, "pt", 0)
enum { RFS = ALLOW_ROUND | ALLOW_FTZ | ALLOW_SAT, RF = ALLOW_ROUND | ALLOW_FTZ };

const struct emu_row_def emu_float_rows[] = {
    FLT("add", "f32", add_f32, "ttt", RFS),
    FLT("add", "f64", add_f64, "ttt", ALLOW_ROUND),
    FLT("add", "f32x2", add_f32x2, "ttt", RF),
    FLT("sub", "f32", sub_f32, "ttt", RFS),
    FLT("sub", "f64", sub_f64, "ttt", ALLOW_ROUND),
    FLT("sub", "f32x2", sub_f32x2, "ttt", RF),
    FLT("mul", "f32", mul_f32, "ttt", RFS),
    FLT("mul", "f64", mul_f64, "ttt", ALLOW_ROUND),
    FLT("mul", "f32x2", mul_f32x2, "ttt", RF),
    FLT("fma", "f32", fma_f32, "tttt", NEEDS_ROUND | RFS),
    FLT("fma", "f64", fma_f64, "tttt", NEEDS_ROUND),
    FLT("fma", "f32x2", fma_f32x2, "tttt", NEEDS_ROUND | RF),
    FLT("mad", "f32", fma_f32, "tttt", NEEDS_ROUND | RFS),
    FLT("mad", "f64", fma_f64, "tttt", NEEDS_ROUND),
    FLT("div", "f32", div_f32, "ttt", NEEDS_ROUND | RF),
    FLT("div.approx", "f32", div_approx_f32, "ttt", ALLOW_FTZ),
    FLT("div.full", "f32", div_full_f32, "ttt", ALLOW_FTZ),
    FLT("div", "f64", div_f64, "ttt", NEEDS_ROUND),
    FLT("rcp", "f32", rcp_f32, "tt", NEEDS_ROUND | RF),
    FLT("rcp.approx", "f32", rcp_f32, "tt", ALLOW_FTZ),
    FLT("rcp", "f64", rcp_f64, "tt", NEEDS_ROUND),
    FLT("rcp.approx.ftz", "f64", rcp_approx_f64, "tt", 0),
    FLT("sqrt", "f32", sqrt_f32, "tt", NEEDS_ROUND | RF),
    FLT("sqrt.approx", "f32", sqrt_f32, "tt", ALLOW_FTZ),
    FLT("sqrt", "f64", sqrt_f64, "tt", NEEDS_ROUND),
    FLT("rsqrt.approx", "f32", rsqrt_f32, "tt", ALLOW_FTZ),
    FLT("rsqrt.approx", "f64", rsqrt_f64, "tt", 0),
    FLT("rsqrt.approx.ftz", "f64", rsqrt_approx_f64, "tt", 0),
    FLT("sin.approx", "f32", sin_f32, "tt", ALLOW_FTZ),
    FLT("cos.approx", "f32", cos_f32, "tt", ALLOW_FTZ),
    FLT("lg2.approx", "f32", lg2_f32, "tt", ALLOW_FTZ),
    FLT("ex2.approx", "f32", ex2_f32, "tt", ALLOW_FTZ),
    FLT("tanh.approx", "f32", tanh_f32, "tt", 0),
    FLT("min", "f32", min_f32, "ttt", ALLOW_FTZ | ALLOW_NAN | ALLOW_XORSIGN),
    FLT("max", "f32", max_f32, "ttt", ALLOW_FTZ | ALLOW_NAN | ALLOW_XORSIGN),
    FLT("min", "f64", min_f64, "ttt", 0),
    FLT("max", "f64", max_f64, "ttt", 0),
    FLT("abs", "f32", abs_f32, "tt", ALLOW_FTZ),
    FLT("neg", "f32", neg_f32, "tt", ALLOW_FTZ),
    FLT("abs", "f64", abs_f64, "tt", 0),
    FLT("neg", "f64", neg_f64, "tt", 0),
    FLT("copysign", "f32", copysign_f32, "ttt", 0),
    FLT("copysign", "f64", copysign_f64, "ttt", 0),
    TESTP_ROWS(finite),
    TESTP_ROWS(infinite),
    TESTP_ROWS(number),
    TESTP_ROWS(notanumber),
    TESTP_ROWS(normal),
    TESTP_ROWS(subnormal),
    {.name = ""}};
