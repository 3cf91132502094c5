/* SPDX-License-Identifier: Apache-2.0 */
/* The sums of references against plain loops. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "src/kernels/dots.h"
#include "tests/random.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 19, MOST_K = 131 };

static void assert_same_bits(double x, double y)
{
    if (isnan(x) && isnan(y))
        return;
    assert_memory_equal(&x, &y, sizeof x);
}

static void expect_plain_sums(struct random *r, size_t k)
{
    double *rows = dots_allocate(ROWS, k), w[MOST_K];
    assert_non_null(rows);
    for (size_t i = 0; i < k; i++) {
        w[i] = random_heavy(r);
        for (int m = 0; m < ROWS; m++)
            dots_row(rows, m, k)[i * DOTS_ROWS] = random_heavy(r);
    }
    dots_row(rows, 3, k)[k / 2 * DOTS_ROWS] = INFINITY;
    dots_row(rows, 12, k)[k / 2 * DOTS_ROWS] = NAN;
    for (int m = 0; m < ROWS; m++) {
        struct dots dots;
        double sum = 0, magnitude = 0;
        for (size_t i = 0; i < k; i++) {
            sum += dots_row(rows, m, k)[i * DOTS_ROWS] * w[i];
            magnitude += fabs(dots_row(rows, m, k)[i * DOTS_ROWS] * w[i]);
        }
        dots_sum(dots_row(rows, m / DOTS_ROWS * DOTS_ROWS, k), w, k, &dots);
        assert_same_bits(dots.sums[m % DOTS_ROWS], sum);
        assert_same_bits(dots.magnitudes[m % DOTS_ROWS], magnitude);
    }
    free(rows);
}

static void every_row_has_the_bits_of_a_plain_loop(void **state)
{
    (void)state;
    struct random r = {1};
    for (size_t k = 1; k <= MOST_K; k += 13)
        expect_plain_sums(&r, k);
}

static void rows_that_no_memory_holds_are_refused(void **state)
{
    (void)state;
    assert_null(dots_allocate(UINT64_MAX, 1));
    assert_null(dots_allocate(UINT64_MAX / 16, 64));
    double *none = dots_allocate(0, 64);
    assert_non_null(none);
    free(none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_has_the_bits_of_a_plain_loop),
        cmocka_unit_test(rows_that_no_memory_holds_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
