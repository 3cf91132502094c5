/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels' division by four operations (src/kernels/w8a8/quantise.c) is the division. */
#include "support.h"
#include "tests/random.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f32_quotients_near_ties_are_rounded_correctly),
        cmocka_unit_test(f64_quotients_near_ties_are_rounded_correctly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
