/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels' divisions by a few operations (src/kernels/w8a8/quantise.c) are the divisions. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f32_quotients_near_ties_are_rounded_correctly),
        cmocka_unit_test(f64_quotients_near_ties_are_rounded_correctly),
        cmocka_unit_test(reciprocals_are_rounded_correctly),
        cmocka_unit_test(maxima_are_divided_by_steps_correctly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
