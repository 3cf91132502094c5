/* SPDX-License-Identifier: Apache-2.0 */
#include "judge.h"

#include "operands.h"

#include <fnmatch.h>
#include <math.h>
#include <string.h>

/* ---- values ---- */

static double small_float(uint64_t bits, int exponent_bits, int fraction_bits)
{
    int top = (1 << exponent_bits) - 1, bias = top / 2;
    int exponent = (int)(bits >> fraction_bits) & top;
    double fraction = (double)(bits & ((1u << fraction_bits) - 1)), one = ldexp(1, fraction_bits),
           v;
    if (exponent == top)
        v = fraction != 0 ? NAN : INFINITY;
    else if (exponent == 0)
        v = ldexp(fraction, 1 - bias - fraction_bits);
    else
        v = ldexp(one + fraction, exponent - bias - fraction_bits);
    return bits >> (exponent_bits + fraction_bits) & 1 ? -v : v;
}

/* Half `half` of a packed operand, or all of another. */
static double value_of(uint8_t type, uint64_t bits, unsigned half)
{
    double d;
    bits >>= 16 * half;
    switch (type) {
    case PTX_F16:
    case PTX_F16X2: return small_float(bits & 0xffff, 5, 10);
    case PTX_BF16:
    case PTX_BF16X2: return small_float(bits & 0xffff, 8, 7);
    case PTX_F32: return small_float(bits & 0xffffffffu, 8, 23);
    case PTX_F64: memcpy(&d, &bits, sizeof d); return d;
    default: return 0; /* not a float, so not a NaN */
    }
}

/* ---- approximations ---- */

static double divide(double a, double b)
{
    return a / b;
}
static double rcp(double a, double b)
{
    (void)b;
    return 1 / a;
}
static double root(double a, double b)
{
    (void)b;
    return sqrt(a);
}
static double rsqrt(double a, double b)
{
    (void)b;
    return 1 / sqrt(a);
}
static double sine(double a, double b)
{
    (void)b;
    return sin(a);
}
static double cosine(double a, double b)
{
    (void)b;
    return cos(a);
}
static double binary_log(double a, double b)
{
    (void)b;
    return log2(a);
}
static double binary_exp(double a, double b)
{
    (void)b;
    return exp2(a);
}
static double tangent(double a, double b)
{
    (void)b;
    return tanh(a);
}

/* The bounds of the ISA: relative or absolute, for arguments up to a limit; beyond it there is
 * none. */
static const struct bound {
    const char *pattern;
    double (*exact)(double, double);
    double relative, absolute, limit;
    const char *rule;
} bounds[] = {
    {"div_approx_f32", divide, 0x1p-22, 0, 0x1p126, "2 ulp for |b| <= 2^126"},
    {"div_full_f32", divide, 0x1p-22, 0, INFINITY, "2 ulp"},
    {"rcp_approx_f32", rcp, 0x1p-23, 0, INFINITY, "1 ulp"},
    {"sqrt_approx_f32", root, 0x1p-23, 0, INFINITY, "relative 2^-23"},
    {"rsqrt_approx_f32", rsqrt, 0x1.12p-23, 0, INFINITY, "relative 2^-22.9"},
    {"sin_approx_f32", sine, 0, 0x1.6ap-21, 6.2831854820251465, "absolute 2^-20.5 in [-2pi, 2pi]"},
    {"cos_approx_f32", cosine, 0, 0x1.6ap-21, 6.2831854820251465,
     "absolute 2^-20.5 in [-2pi, 2pi]"},
    {"lg2_approx_f32", binary_log, 0x1p-22, 0x1p-22, INFINITY,
     "absolute 2^-22 in (0.5, 2), else relative 2^-22"},
    {"ex2_approx_f32", binary_exp, 0x1p-22, 0, INFINITY, "2 ulp"},
    {"ex2_approx_f16*", binary_exp, 0x1.12p-10, 0, INFINITY, "relative 2^-9.9"},
    {"ex2_approx_ftz_bf16*", binary_exp, 0x1p-7, 0, INFINITY, "relative 2^-7"},
    {"tanh_approx_f32", tangent, 0x1p-11, 0, INFINITY, "relative 2^-11"},
    {"tanh_approx_f16*", tangent, 0, 0x1.03p-11, INFINITY, "absolute 2^-10.987"},
    {"tanh_approx_bf16*", tangent, 0, 0x1p-8, INFINITY, "absolute 2^-8"},
    {"rcp_approx_ftz_f64", rcp, 0x1p-18, 0, INFINITY, "relative 2^-18 (the ISA states none)"},
    {"rsqrt_approx_ftz_f64", rsqrt, 0x1p-18, 0, INFINITY, "relative 2^-18 (the ISA states none)"},
    {"rsqrt_approx_f64", rsqrt, 0x1p-48, 0, INFINITY, "relative 2^-48 (the ISA states none)"},
};

static const struct bound *bound_of(const struct ptx_op *op)
{
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
        if (fnmatch(bounds[i].pattern, ptx_op_name(op).s, 0) == 0)
            return &bounds[i];
    return NULL;
}

static double smallest_normal(uint8_t type)
{
    return type == PTX_F64 ? 0x1p-1022 : type == PTX_F16 || type == PTX_F16X2 ? 0x1p-14 : 0x1p-126;
}

static double largest(uint8_t type)
{
    return type == PTX_F64                        ? 0x1.fffffffffffffp1023
           : type == PTX_F16 || type == PTX_F16X2 ? 65504
           : type == PTX_F32                      ? 0x1.fffffep127
                                                  : 0x1.fep127;
}

static bool flushes(const struct form *f)
{
    const struct ptx_modifier_group *ftz = ptx_find_group("ftz", 3);
    return (f->modifiers >> ftz->shift & ((1u << ftz->bits) - 1)) ||
           strstr(ptx_op_text(&ptx_ops[f->op]).s, ".ftz");
}

static bool is_within(const struct bound *b, uint8_t type, bool ftz, double exact, double x)
{
    double tiny = smallest_normal(type), size = fabs(exact);
    double error = fmax(b->relative * size, b->absolute);
    if (b->exact == binary_log && size > 1)
        error = b->relative * size;
    /* results between two subnormals, or about to overflow */
    error = fmax(error, tiny * (ftz ? 1 : b->relative ? b->relative : 0x1p-10) * 2);
    if (isinf(x))
        return size * (1 + b->relative) >= largest(type) && signbit(x) == signbit(exact);
    return fabs(x - exact) <= error || (size > largest(type) && size - largest(type) <= error);
}

static double argument(uint8_t type, bool ftz, uint64_t bits, unsigned half)
{
    if (type == PTX_F64 && ftz) /* rcp and rsqrt.approx.ftz.f64 take the upper word alone */
        bits &= 0xffffffff00000000u;
    double x = value_of(type, bits, half);
    return ftz && fabs(x) < smallest_normal(type) ? copysign(0, x) : x;
}

static enum verdict judge_approximation(const struct form *f, const struct bound *b, uint8_t type,
                                        const uint64_t *o, unsigned half, uint64_t x, uint64_t y)
{
    bool ftz = flushes(f), binary = b->exact == divide;
    double first = argument(type, ftz, o[0], half),
           second = binary ? argument(type, ftz, o[1], half) : 0;
    double exact = b->exact(first, second), vx = value_of(type, x, half),
           vy = value_of(type, y, half);
    if (fabs(binary ? second : first) > b->limit && !isinf(first) && !isinf(second))
        return UNSPECIFIED;
    if (isnan(exact) || isnan(vx) || isnan(vy))
        return DIFFERENT;
    if (isinf(exact) && type != PTX_F64 && !isinf(first) && first != 0 && second != 0)
        exact = copysign(0x1p1000, exact);
    return is_within(b, type, ftz, exact, vx) && is_within(b, type, ftz, exact, vy) ? WITHIN
                                                                                    : DIFFERENT;
}

/* ---- verdicts ---- */

static bool nan_is_open(const struct ptx_op *op, uint8_t type)
{
    return type == PTX_F64 || form_starts(op, "neg_") || form_starts(op, "abs_");
}

static uint64_t half_mask(unsigned half, unsigned width)
{
    return width >= 64 ? UINT64_MAX : ((UINT64_C(1) << width) - 1) << (16 * half);
}

static bool is_packed(uint8_t type)
{
    return type == PTX_F16X2 || type == PTX_BF16X2;
}

uint64_t judge_canonical(const struct form *f, uint8_t type, uint64_t bits)
{
    unsigned halves = is_packed(type) ? 2 : 1;
    for (unsigned half = 0; half < halves; half++)
        if (isnan(value_of(type, bits, half)) && nan_is_open(&ptx_ops[f->op], type))
            bits |= half_mask(half, halves == 2 ? 16 : operand_width(type));
    return bits;
}

static enum verdict judge_half(const struct form *f, uint8_t type, const uint64_t *operands,
                               unsigned half, unsigned width, uint64_t a, uint64_t b)
{
    const struct ptx_op *op = &ptx_ops[f->op];
    const struct bound *bound = bound_of(op);
    bool equal = ((a ^ b) & half_mask(half, width)) == 0;
    bool nans = isnan(value_of(type, a, half)) && isnan(value_of(type, b, half));
    if (bound && !nans) { /* equal bits may both be wrong */
        enum verdict v = judge_approximation(f, bound, type, operands, half, a, b);
        return equal && v != DIFFERENT ? EQUAL : v;
    }
    return equal ? EQUAL : nans && nan_is_open(op, type) ? OPEN_NAN : DIFFERENT;
}

enum verdict judge(const struct form *f, uint8_t type, const uint64_t *operands, uint64_t a,
                   uint64_t b)
{
    bool packed = is_packed(type);
    enum verdict low = judge_half(f, type, operands, 0, packed ? 16 : operand_width(type), a, b);
    enum verdict high = packed ? judge_half(f, type, operands, 1, 16, a, b) : EQUAL;
    return low > high ? low : high;
}

bool judge_is_bounded(const struct form *f)
{
    return bound_of(&ptx_ops[f->op]) != NULL;
}

const char *judge_rule(const struct form *f)
{
    const struct ptx_op *op = &ptx_ops[f->op];
    const struct bound *bound = bound_of(op);
    bool open = form_starts(op, "neg_") || form_starts(op, "abs_");
    for (unsigned i = 0; i < op->term_count; i++)
        open = open || ((ptx_op_term(op, i)->flags & PTX_TERM_WRITTEN) &&
                        ptx_op_term(op, i)->type == PTX_F64);
    return bound ? bound->rule : open ? "bits; a NaN's payload is open" : "bits";
}
