/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The divisions of quantisation, in few operations. A code is round(x / s) of the correctly rounded
 * quotient. With the reciprocal of the token's scale s in two parts, r + r' = 1/s to the square of
 * the unit roundoff, a division of an element is four operations:
 *
 *     t = RN(x·r + RN(x·r'))        within one unit in the last place of x/s
 *     q = RN(t + r·RN(x − t·s))     which is RN(x/s) (Markstein's theorem: t faithful, r = RN(1/s))
 *
 * This holds where nothing underflows or overflows. So x and s are multiplied by a power of two
 * where s is extreme, and |x| is cut at 4096·s, whose code is the largest anyway. Adding 1.5·2²³
 * (f64: 1.5·2⁵²) then rounds to an integer, ties to even, in the low bits of the sum.
 *
 * r is an approximation with one Newton step in f32 and three in f64. The operand of the last step
 * is within a unit in the last place, so that the step rounds correctly unless the mantissa of s is
 * all ones; then the last bit of r is set to 1.
 *
 * The maxima of a row are divided by a constant in the same four operations. Where a maximum is
 * small, the division is in units of the least subnormal, and the remainder rounds the quotient to
 * an integer. The maxima of f16 values are never small and take three operations.
 */
#include "emit.h"

#include <math.h>

enum { REACH = 4096 };

bool w8a8_has_normal_scale(const struct quantiser *q)
{
    return q->spec->x_type == PTXGEN_F16 && !q->spec->scales;
}

static struct work quotient(const struct quantiser *q, struct work x, struct work minus_s,
                            struct work r, struct work rest)
{
    ptx_kernel *k = q->k;
    struct work near = work_fma(k, q->wide, x, r, work_mul(k, q->wide, x, rest));
    struct work miss = work_fma(k, q->wide, near, minus_s, x);
    return work_fma(k, q->wide, miss, r, near);
}

/* ---- maxima by a number of steps ---- */

static struct work divide_f16_by_steps(const struct quantiser *q, struct work x, int steps)
{
    ptx_kernel *k = q->k;
    struct work reciprocal = work_constant(false, 1.0f / (float)steps);
    struct work near = work_mul(k, false, x, reciprocal);
    struct work miss = work_fma(k, false, near, work_constant(false, -steps), x);
    return work_fma(k, false, miss, reciprocal, near);
}

/* RN(x / steps) of an x that is neither small nor infinite. */
static struct work divide_moderate(const struct quantiser *q, struct work x, int steps)
{
    double r = q->wide ? 1.0 / steps : (double)(1.0f / (float)steps);
    double rest = fma(-steps, r, 1) * r;
    return quotient(q, x, work_constant(q->wide, -steps), work_constant(q->wide, r),
                    work_constant(q->wide, rest));
}

/* Rounds x / steps to an integer once, given the quotient that is already rounded to f32 or f64. */
static void round_quotient(const struct quantiser *q, struct work x, int steps,
                           struct work quotient)
{
    ptx_kernel *k = q->k;
    bool wide = q->wide;
    struct work one = work_constant(q->wide, 1),
                whole = work_constant(wide, wide ? 0x1p52 : 0x1p23);
    struct work near = work_sub(k, wide, work_add(k, wide, quotient, whole), whole);
    struct work miss = work_fma(k, wide, near, work_constant(q->wide, -steps), x);
    struct work half = work_constant(q->wide, steps / 2.0),
                minus_half = work_constant(q->wide, -steps / 2.0);
    ptx_pred above = work_less(k, wide, half, miss), below = work_less(k, wide, miss, minus_half);
    near = work_select(k, wide, work_add(k, wide, near, one), near, above);
    near = work_select(k, wide, work_sub(k, wide, near, one), near, below);
    ptx_pred has_fraction = work_less(k, wide, quotient, whole);
    work_copy(k, wide, quotient, work_select(k, wide, near, quotient, has_fraction));
}

static void scale_twice(const struct quantiser *q, struct work x, double first, double second)
{
    struct work once = work_mul(q->k, q->wide, x, work_constant(q->wide, first));
    work_copy(q->k, q->wide, x, work_mul(q->k, q->wide, once, work_constant(q->wide, second)));
}

static struct work divide_any(const struct quantiser *q, struct work x, int steps)
{
    ptx_kernel *k = q->k;
    bool wide = q->wide;
    ptx_pred small = work_less(k, wide, x, work_constant(wide, wide ? 0x1p-900 : 0x1p-80));
    struct work scaled = work_new(k, wide, x);
    ptx_if(k, small)
        scale_twice(q, scaled, wide ? 0x1p537 : 0x1p75, wide ? 0x1p537 : 0x1p74);
    struct work quotient = work_new(k, wide, divide_moderate(q, scaled, steps));
    ptx_if(k, small) {
        round_quotient(q, scaled, steps, quotient);
        scale_twice(q, quotient, wide ? 0x1p-537 : 0x1p-75, wide ? 0x1p-537 : 0x1p-74);
    }
    return quotient;
}

void w8a8_divide_by_steps(const struct quantiser *q, int steps, struct work *x, int count)
{
    ptx_kernel *k = q->k;
    bool is_f16 = q->spec->x_type == PTXGEN_F16 && !q->wide;
    if (is_f16 || count == 1) {
        for (int i = 0; i < count; i++)
            x[i] = is_f16 ? divide_f16_by_steps(q, x[i], steps) : divide_any(q, x[i], steps);
        return;
    }
    for (int i = 0; i < count; i++)
        x[i] = work_new(k, q->wide, x[i]);
    ptx_u32 round = ptx_mov_u32(k, U32(0));
    ptx_for(k, round, U32((uint32_t)count),
            U32(1)) { /* the loop is not unrolled: the dividends rotate through registers */
        ptx_nounroll(k);
        struct work done = divide_any(q, x[0], steps);
        for (int i = 0; i + 1 < count; i++)
            work_copy(k, q->wide, x[i], x[i + 1]);
        work_copy(k, q->wide, x[count - 1], done);
    }
}

/* ---- elements by a scale ---- */

/* 1 for a number whose mantissa is all ones, else 0. */
static ptx_u64 last_bit_f64(ptx_kernel *k, ptx_f64 s)
{
    const uint64_t mantissa = 0xFFFFFFFFFFFFF;
    ptx_u64 bits = ptx_and_b64(k, ptx_f64_as_u64(s), U64(mantissa));
    return ptx_selp_u64(k, U64(1), U64(0), ptx_setp_eq_u64(k, bits, U64(mantissa)));
}
static ptx_u32 last_bit_f32(ptx_kernel *k, ptx_f32 s)
{
    const uint32_t mantissa = 0x7FFFFF;
    ptx_u32 bits = ptx_and_b32(k, ptx_f32_as_u32(s), U32(mantissa));
    return ptx_selp_u32(k, U32(1), U32(0), ptx_setp_eq_u32(k, bits, U32(mantissa)));
}

/* RN(1 / s) of a moderate s. */
static struct work invert(const struct quantiser *q, struct work s, struct work minus_s)
{
    ptx_kernel *k = q->k;
    struct work r = {0};
    if (q->wide)
        r.d = ptx_rcp_approx_ftz_f64(k, s.d);
    else
        r.f = ptx_rcp_approx_f32_m(k, PTX_FTZ, s.f);
    for (int i = 0; i < (q->wide ? 3 : 1); i++) {
        struct work miss = work_fma(k, q->wide, minus_s, r, work_constant(q->wide, 1));
        r = work_fma(k, q->wide, miss, r, r);
    }
    if (q->wide) {
        ptx_u64 last = last_bit_f64(k, s.d);
        r.d = ptx_u64_as_f64(ptx_or_b64(k, ptx_f64_as_u64(r.d), last));
    } else {
        ptx_u32 last = last_bit_f32(k, s.f);
        r.f = ptx_u32_as_f32(ptx_or_b32(k, ptx_f32_as_u32(r.f), last));
    }
    return r;
}

/* The power of two that brings s, and with it x, into the range of the division. */
static struct work find_adjust(const struct quantiser *q, struct work s)
{
    ptx_kernel *k = q->k;
    bool wide = q->wide;
    struct work one = work_constant(q->wide, 1);
    struct work least = work_constant(wide, wide ? 0x1p-500 : 0x1p-60);
    struct work most = work_constant(wide, wide ? 0x1p500 : 0x1p60);
    struct work up = work_constant(wide, wide ? 0x1p512 : 0x1p64);
    struct work down = work_constant(wide, wide ? 0x1p-512 : 0x1p-64);
    struct work raised = work_select(k, wide, up, one, work_less(k, wide, s, least));
    return work_select(k, wide, down, raised, work_less(k, wide, most, s));
}

void w8a8_prepare_division(const struct quantiser *q, struct token *t)
{
    ptx_kernel *k = q->k;
    bool wide = q->wide;
    struct work scaled = t->scale;
    if (!w8a8_has_normal_scale(q)) {
        t->adjust = find_adjust(q, t->scale);
        scaled = work_mul(k, wide, t->scale, t->adjust);
        t->limit = work_mul(k, wide, scaled, work_constant(q->wide, REACH));
    }
    t->minus_scaled = work_neg(k, wide, scaled);
    t->reciprocal = invert(q, scaled, t->minus_scaled);
    struct work miss = work_fma(k, wide, t->minus_scaled, t->reciprocal, work_constant(q->wide, 1));
    t->rest = work_mul(k, wide, miss, t->reciprocal);
}

struct work w8a8_divide_by_scale(const struct quantiser *q, const struct token *t, struct work x)
{
    return quotient(q, x, t->minus_scaled, t->reciprocal, t->rest);
}
