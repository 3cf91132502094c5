/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `bench` multiplies is like a model's numbers: each finite, of either sign, and spread as
 * normal numbers are. The clock of a card under load depends on them.
 */
#include "tests/checks.h"

#include "src/harness/bench_time.h"
#include "src/harness/operand.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

enum { COUNT = 20000 };

/* Of 8 bits with so many of mantissa; NaN for codes that are no numbers. */
static double small_float(uint8_t code, int mantissa_bits)
{
    const int exponent = (code & 0x7F) >> mantissa_bits, ones = (1 << mantissa_bits) - 1;
    const int mantissa = code & ones, bias = mantissa_bits == 3 ? 7 : 15;
    if (mantissa_bits == 3 ? (code & 0x7F) == 0x7F : exponent == 31)
        return (double)NAN;
    const double value = exponent ? ldexp(ones + 1 + mantissa, exponent - bias - mantissa_bits)
                                  : ldexp(mantissa, 1 - bias - mantissa_bits);
    return code & 0x80 ? -value : value;
}

static double number(int type, const void *array, size_t i)
{
    const uint8_t *codes = array;
    switch (type) {
    case ELEMENT_E4M3: return small_float(codes[i], 3);
    case ELEMENT_E5M2: return small_float(codes[i], 2);
    default: return typed_load(type, array, i);
    }
}

static void operands_of_a_bench_are_normal_numbers(void **state)
{
    (void)state;
    static const struct {
        int type;
        double deviation, tolerance;
    } rows[] = {
        /* The largest of 4096 normal numbers, 3.6 deviations or so, becomes the largest code. */
        {PTXGEN_F16, 1, 0.05},
        {PTXGEN_BF16, 1, 0.05},
        {PTXGEN_F32, 1, 0.05},
        {PTXGEN_F64, 1, 0.05},
        {ELEMENT_S8, 127 / 3.6, 6},
        {ELEMENT_E4M3, 448 / 3.6, 20},
        {ELEMENT_E5M2, 57344 / 3.6, 2500},
    };
    struct device device;
    ptxgen_error err;
    assert_ok(device_open("cpu", &device, &err), &err);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const size_t bytes = COUNT * typed_bytes(rows[i].type);
        struct bench_memory memory = {.device = &device};
        uint64_t address;
        void *host = malloc(bytes);
        assert_non_null(host);
        assert_ok(bench_random_memory(&memory, "numbers", rows[i].type, bytes, &address, &err),
                  &err);
        assert_int_equal(device.driver.memcpy_dtoh(host, address, bytes), PTXGEN_CUDA_SUCCESS);
        double sum = 0, squares = 0;
        for (size_t at = 0; at < COUNT; at++) {
            const double value = number(rows[i].type, host, at);
            assert_true(isfinite(value));
            sum += value;
            squares += value * value;
        }
        assert_true(fabs(sum / COUNT) < 0.05 * rows[i].deviation);
        assert_true(fabs(sqrt(squares / COUNT) - rows[i].deviation) < rows[i].tolerance);
        bench_free(&memory);
        free(host);
    }
    device_close(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operands_of_a_bench_are_normal_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
