/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels' divisions by a few operations (src/kernels/w8a8/division.c) are the divisions. */
#include "support.h"
#include "tests/random.h"

#include <string.h>

static float quotient_f32(float x, float s)
{
    float r = 1 / s, miss = fmaf(-s, r, 1), rest = miss * r;
    float near = fmaf(x, r, x * rest), left = fmaf(-near, s, x);
    return fmaf(left, r, near);
}

static double quotient_f64(double x, double s)
{
    double r = 1 / s, miss = fma(-s, r, 1), rest = miss * r;
    double near = fma(x, r, x * rest), left = fma(-near, s, x);
    return fma(left, r, near);
}

/* A few units in the last place around ties, where a wrong last bit is a wrong code. */
static void f32_quotients_near_ties_are_rounded_correctly(void **state)
{
    (void)state;
    struct random r = {5};
    for (int i = 0; i < 1000000; i++) {
        float s = (float)(1 + random_uniform(&r));
        float tie = (float)(random_bits(&r) % 256) - 127.5f, x = tie * s;
        for (int j = random_bits(&r) % 4; j; j--)
            x = nextafterf(x, i % 2 ? INFINITY : -INFINITY);
        assert_true(quotient_f32(x, s) == x / s);
    }
}

static void f64_quotients_near_ties_are_rounded_correctly(void **state)
{
    (void)state;
    struct random r = {6};
    for (int i = 0; i < 1000000; i++) {
        double s = 1 + random_uniform(&r);
        double x = ((double)(random_bits(&r) % 256) - 127.5) * s;
        for (int j = random_bits(&r) % 4; j; j--)
            x = nextafter(x, i % 2 ? INFINITY : -INFINITY);
        assert_true(quotient_f64(x, s) == x / s);
    }
}

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static float inverse(float s, float near)
{
    enum { MANTISSA = 0x7FFFFF };
    uint32_t bits = bits_of(fmaf(fmaf(-s, near, 1), near, near));
    return from_bits(bits | ((bits_of(s) & MANTISSA) == MANTISSA));
}

/* Every mantissa, from approximations that are as far off as hardware's may be. */
static void reciprocals_are_rounded_correctly(void **state)
{
    (void)state;
    for (uint32_t mantissa = 0; mantissa < 1u << 23; mantissa++) {
        float s = from_bits(0x3F800000 | mantissa), wanted = 1 / s;
        double unit = (double)from_bits(bits_of(wanted) + 1) - (double)wanted;
        for (int i = -1; i <= 1; i++) {
            float near = from_bits(bits_of(wanted) + (uint32_t)i);
            if (fabs((double)near - 1 / (double)s) <= unit && inverse(s, near) != wanted)
                fail_msg("1 / %a from %a is not %a", (double)s, (double)near, (double)wanted);
        }
    }
}

static void maxima_are_divided_by_steps_correctly(void **state)
{
    (void)state;
    struct random r = {7};
    for (int steps = 1; steps <= 255; steps++)
        for (int i = 0; i < 4000; i++) {
            float x = from_bits(0x3F800000 | (uint32_t)(random_bits(&r) & 0x7FFFFF));
            float reciprocal = 1.0f / (float)steps, near = x * reciprocal;
            float quotient = fmaf(fmaf(near, (float)-steps, x), reciprocal, near);
            assert_true(quotient == x / (float)steps);
        }
}

/* Those of f32 and f64 are divided in units of the least subnormal where they are small. */
static float steps_f32(float x, int steps)
{
    float r = 1.0f / (float)steps, rest = fmaf((float)-steps, r, 1) * r;
    bool small = x < 0x1p-80f;
    float scaled = small ? x * 0x1p75f * 0x1p74f : x;
    float near = fmaf(scaled, r, scaled * rest), miss = fmaf(near, (float)-steps, scaled);
    float quotient = fmaf(miss, r, near);
    if (!small)
        return quotient;
    float whole = (quotient + 0x1p23f) - 0x1p23f, left = fmaf(whole, (float)-steps, scaled);
    whole = left > (float)steps / 2 ? whole + 1 : left < (float)-steps / 2 ? whole - 1 : whole;
    return (quotient < 0x1p23f ? whole : quotient) * 0x1p-75f * 0x1p-74f;
}

static double steps_f64(double x, int steps)
{
    double r = 1.0 / steps, rest = fma(-steps, r, 1) * r;
    bool small = x < 0x1p-900;
    double scaled = small ? x * 0x1p537 * 0x1p537 : x;
    double near = fma(scaled, r, scaled * rest), miss = fma(near, -steps, scaled);
    double quotient = fma(miss, r, near);
    if (!small)
        return quotient;
    double whole = (quotient + 0x1p52) - 0x1p52, left = fma(whole, -steps, scaled);
    whole = left > steps / 2.0 ? whole + 1 : left < -steps / 2.0 ? whole - 1 : whole;
    return (quotient < 0x1p52 ? whole : quotient) * 0x1p-537 * 0x1p-537;
}

static double f64_from_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void maxima_of_any_size_are_divided_by_steps_correctly(void **state)
{
    (void)state;
    struct random r = {8};
    for (int steps = 1; steps <= 255; steps++)
        for (int i = 0; i < 4000; i++) {
            uint32_t exponent = (uint32_t)(random_bits(&r) % (i % 2 ? 255 : 60));
            float x = from_bits(exponent << 23 | (uint32_t)(random_bits(&r) & 0x7FFFFF));
            uint64_t wide = random_bits(&r) % (i % 2 ? 2047 : 80);
            uint64_t mantissa = random_bits(&r) >> 12;
            double y = f64_from_bits(wide << 52 | mantissa);
            assert_true(steps_f32(x, steps) == x / (float)steps);
            assert_true(steps_f64(y, steps) == y / steps);
        }
}

/* Halves between subnormals, which an even quotient takes or leaves. */
static void subnormal_ties_are_divided_by_steps_correctly(void **state)
{
    (void)state;
    for (int steps = 1; steps <= 255; steps++)
        for (uint32_t i = 1; i < 4000; i++) {
            float x = from_bits(i * (uint32_t)steps / 2);
            double y = f64_from_bits((uint64_t)i * (uint64_t)steps / 2);
            assert_true(steps_f32(x, steps) == x / (float)steps);
            assert_true(steps_f64(y, steps) == y / steps);
        }
}

static double inverse_f64(double s, double near)
{
    const uint64_t mantissa = 0xFFFFFFFFFFFFF;
    uint64_t bits, of_s;
    for (int i = 0; i < 3; i++)
        near = fma(fma(-s, near, 1), near, near);
    memcpy(&bits, &near, sizeof bits);
    memcpy(&of_s, &s, sizeof of_s);
    return f64_from_bits(bits | ((of_s & mantissa) == mantissa));
}

/* From approximations as coarse as hardware's: about 20 bits. Mantissas of few zeros are hard. */
static void f64_reciprocals_are_rounded_correctly(void **state)
{
    (void)state;
    struct random r = {9};
    for (int i = 0; i < 1000000; i++) {
        uint64_t mantissa = random_bits(&r) >> 12;
        if (i < 1000)
            mantissa = 0xFFFFFFFFFFFFF - (uint64_t)i;
        else if (i < 2000)
            mantissa = (uint64_t)i - 1000;
        double s = f64_from_bits(0x3FF0000000000000 | mantissa);
        double off = (2 * random_uniform(&r) - 1) * 0x1p-20;
        assert_true(inverse_f64(s, (1 + off) / s) == 1 / s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f32_quotients_near_ties_are_rounded_correctly),
        cmocka_unit_test(f64_quotients_near_ties_are_rounded_correctly),
        cmocka_unit_test(reciprocals_are_rounded_correctly),
        cmocka_unit_test(maxima_are_divided_by_steps_correctly),
        cmocka_unit_test(maxima_of_any_size_are_divided_by_steps_correctly),
        cmocka_unit_test(subnormal_ties_are_divided_by_steps_correctly),
        cmocka_unit_test(f64_reciprocals_are_rounded_correctly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
