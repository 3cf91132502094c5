/* SPDX-License-Identifier: Apache-2.0 */
/* The command's own pieces: guarded buffers, the comparison, occupancy, random numbers. */
#include "tests/status.h"

#include "src/harness/buffer.h"
#include "src/harness/check.h"
#include "src/cli/chips.h"
#include "src/cli/exit_code.h"
#include "src/harness/random.h"
#include "src/cli/sections.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- buffers ---- */

/* The emulator, taken for a GPU, so that there are guard bands. */
static struct device open_device(void)
{
    struct device device;
    ptxgen_error err;
    assert_int_equal(device_open("cpu", &device, &err), PTXGEN_OK);
    device.emulated = false;
    return device;
}

static void buffer_notices_a_write_beside_it(void **state)
{
    (void)state;
    struct device device = open_device();
    struct buffer b;
    ptxgen_error err;
    assert_int_equal(buffer_create(&device, "y", 100, 6, &b, &err), PTXGEN_OK);
    assert_int_equal(b.address % 256, 6);
    const long long places[] = {-1, 100, 1100};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(buffer_upload(&b, &err), PTXGEN_OK);
        assert_int_equal(buffer_download(&b, &err), PTXGEN_OK);
        assert_int_equal(device.driver.memset_d8(b.address + (uint64_t)places[i], 7, 1),
                         PTXGEN_CUDA_SUCCESS);
        assert_int_equal(buffer_download(&b, &err), PTXGEN_ERROR_PTX_FAULT);
        char part[32];
        snprintf(part, sizeof part, "y: byte %lld", places[i]);
        assert_says(&err, part);
    }
    buffer_destroy(&b);
    device_close(&device);
}

static void buffer_notices_a_changed_input(void **state)
{
    (void)state;
    struct device device = open_device();
    struct buffer b;
    ptxgen_error err;
    assert_int_equal(buffer_create(&device, "x", 64, 0, &b, &err), PTXGEN_OK);
    memset(b.host, 3, 64);
    assert_int_equal(buffer_upload(&b, &err), PTXGEN_OK);
    assert_int_equal(buffer_verify(&b, &err), PTXGEN_OK);
    device.driver.memset_d8(b.address + 63, 4, 1);
    assert_int_equal(buffer_verify(&b, &err), PTXGEN_ERROR_PTX_FAULT);
    assert_says(&err, "byte 63 of 64");
    buffer_destroy(&b);
    device_close(&device);
}

/* ---- the comparison ---- */

static struct check compare(double output, double reference, double bound)
{
    struct check check = {0};
    const struct expected_output expected = {.value = reference, .bound = bound};
    check_output(&check, "y", 1, 2, PTXGEN_F32, output, &expected);
    return check;
}

static bool passes(double output, double reference, double bound)
{
    struct check check = compare(output, reference, bound);
    return check_passed(&check);
}

static void outputs_agree_within_the_bound_only(void **state)
{
    (void)state;
    assert_true(passes(1.5, 1, 0.5));
    assert_false(passes(1.5, 1, 0.25));
    assert_true(passes(1, 1, 0));
    assert_false(passes(1, 1 + 1e-12, 0));
    struct check check = compare(1.25, 1, 0.5);
    assert_true(check.worst == 0.5 && check.error == 0.25);
}

static void nan_and_infinity_agree_with_themselves_only(void **state)
{
    (void)state;
    assert_true(passes(NAN, NAN, 0));
    assert_false(passes(NAN, 1, INFINITY));
    assert_false(passes(1, NAN, 1));
    assert_true(passes(INFINITY, INFINITY, 0));
    assert_false(passes(-INFINITY, INFINITY, 0));
    assert_false(passes(65504, INFINITY, 0));
    assert_true(passes(INFINITY, 65519, INFINITY));
}

static void a_nan_bound_promises_nothing_and_is_counted(void **state)
{
    (void)state;
    struct check check = compare(5, 1, NAN);
    assert_true(check_passed(&check));
    assert_int_equal(check.unbounded, 1);
}

static void the_first_wrong_output_is_named(void **state)
{
    (void)state;
    struct check total = {0}, first = compare(3, 1, 0.5), second = compare(9, 1, 0.5);
    check_add(&total, &first);
    check_add(&total, &second);
    assert_int_equal(total.wrong, 2);
    assert_int_equal(total.outputs, 2);
    assert_non_null(strstr(total.where, "y[1, 2] is 3"));
    assert_false(check_passed(&total));
}

/* `count` outputs that are off by so many deviations, to either side in turn. */
static struct check compare_spread(ptxgen_element type, int count, double deviations)
{
    const ptxgen_spread spread = {.below = 0x1p-10, .above = 0x1p-9, .deviation = 0x1p-14};
    const struct expected_output expected = {.value = 1, .bound = 1, .spread = &spread};
    struct check check = {0};
    for (int i = 0; i < count; i++) {
        double off = deviations * spread.deviation;
        double output = i % 2 ? 1 + spread.above + off : 1 - spread.below - off;
        check_output(&check, "y", 0, (size_t)i, type, output, &expected);
    }
    check_tally(&check);
    return check;
}

static bool spread_passes(ptxgen_element type, int count, double deviations)
{
    struct check check = compare_spread(type, count, deviations);
    return check_passed(&check);
}

static void many_outputs_may_be_off_by_two_deviations_and_one_by_six(void **state)
{
    (void)state;
    assert_true(spread_passes(PTXGEN_F32, 1, 5.9));
    assert_false(spread_passes(PTXGEN_F32, 1, 6.1));
    assert_true(spread_passes(PTXGEN_F32, 1000, 2));
    assert_false(spread_passes(PTXGEN_F32, 1000, 2.02));
    struct check check = compare_spread(PTXGEN_F32, 1000, 3);
    assert_true(check.worst < 0.01);
    assert_non_null(strstr(check.where, "all outputs together are 1.49 times"));
}

static void half_a_unit_of_a_16_bit_output_is_no_distance(void **state)
{
    (void)state;
    assert_true(spread_passes(PTXGEN_BF16, 1000, 0x1p-9 / 0x1p-14));
    assert_false(spread_passes(PTXGEN_BF16, 1000, 0x1p-7 / 0x1p-14));
    assert_true(spread_passes(PTXGEN_F16, 1000, 0x1p-12 / 0x1p-14));
    assert_false(spread_passes(PTXGEN_F16, 1000, 0x1p-10 / 0x1p-14));
}

static void outputs_without_a_spread_are_not_tallied_and_exact_ones_must_be_equal(void **state)
{
    (void)state;
    const ptxgen_spread none = {.deviation = NAN}, exact = {.deviation = 0};
    ptxgen_tally tally = {.outputs = 0};
    ptxgen_tally_add(&tally, PTXGEN_F32, 2, 1, 1, &none);
    ptxgen_tally_add(&tally, PTXGEN_F32, 2, 1, INFINITY, &exact);
    ptxgen_tally_add(&tally, PTXGEN_F32, 2, 1, NAN, &exact);
    ptxgen_tally_add(&tally, PTXGEN_F32, NAN, NAN, 0, &exact);
    ptxgen_tally_add(&tally, PTXGEN_F32, INFINITY, INFINITY, 0, &exact);
    ptxgen_tally_add(&tally, PTXGEN_F32, 1, 1, 0, &exact);
    assert_int_equal(tally.outputs, 0);
    assert_true(ptxgen_tally_ratio(&tally) == 0);
    ptxgen_tally_add(&tally, PTXGEN_F32, 1 + 0x1p-23, 1, 1, &exact);
    assert_true(isinf(ptxgen_tally_ratio(&tally)));
}

/* ---- occupancy ---- */

static void occupancy_is_the_least_of_four_limits(void **state)
{
    (void)state;
    const struct architecture *a = architecture_find(90);
    assert_non_null(a);
    assert_int_equal(architecture_occupancy(a, 1024, 32, 0), 2); /* 64 warps */
    assert_int_equal(architecture_occupancy(a, 32, 16, 0), 32);  /* 32 CTAs */
    assert_int_equal(architecture_occupancy(a, 256, 128, 0), 2); /* 65536 registers */
    assert_int_equal(architecture_occupancy(a, 256, 33, 0), 6);  /* 40 registers in fact */
    assert_int_equal(architecture_occupancy(a, 256, 32, 100 * 1024),
                     2); /* 228 KB, 1 KB each taken */
    assert_int_equal(architecture_occupancy(a, 256, 32, 227 * 1024), 1);
    assert_int_equal(architecture_occupancy(a, 256, 32, 228 * 1024), 0);
    assert_null(architecture_find(70));
}

/* ---- the rest ---- */

static void every_status_has_an_exit_code(void **state)
{
    (void)state;
    assert_int_equal(exit_code_of(PTXGEN_OK), EXIT_OK);
    assert_int_equal(exit_code_of(PTXGEN_ERROR_UNSUPPORTED), EXIT_USAGE);
    assert_int_equal(exit_code_of(PTXGEN_ERROR_NO_DRIVER), EXIT_NO_DEVICE);
    assert_int_equal(exit_code_of(PTXGEN_ERROR_MALFORMED), EXIT_FILE);
    assert_int_equal(exit_code_of(PTXGEN_ERROR_JIT), EXIT_DEVICE_FAILED);
    assert_int_equal(exit_code_of(PTXGEN_ERROR_DIVERGENCE), EXIT_INTERNAL);
}

static void sections_are_found_by_their_comment_lines(void **state)
{
    (void)state;
    static const char text[] = ".visible .entry kernel_b()\n{\n\tadd.u32 %r1, %r1, 1;\n}\n"
                               ".visible .entry kernel(\n)\n{\n"
                               "\tmov.u32 %r0, 1;\n"
                               "\t// ---- first: load ----\n"
                               "\t// an ordinary comment ----\n"
                               "\tadd.u32 %r1, %r1, 1; // why\n"
                               "\t// ---- second ----\r\n"
                               "\tadd.u32 %r1, %r1, 1;\n"
                               "}\n"
                               "\tsub.u32 %r1, %r1, 1;\n";
    struct section_reader reader;
    assert_false(section_reader_start(&reader, text, "kern"));
    assert_true(section_reader_start(&reader, text, "kernel"));
    assert_true(section_reader_seek(&reader, "mov.u32 %r0, 1;"));
    assert_string_equal(reader.name, "start");
    assert_true(section_reader_seek(&reader, "add.u32 %r1, %r1, 1;"));
    assert_string_equal(reader.name, "first: load");
    assert_true(section_reader_seek(&reader, "add.u32 %r1, %r1, 1;"));
    assert_string_equal(reader.name, "second");
    assert_false(section_reader_seek(&reader, "sub.u32 %r1, %r1, 1;"));
}

static void random_numbers_have_mean_zero_and_variance_one(void **state)
{
    (void)state;
    enum { COUNT = 100000 };
    struct random r = random_start(3);
    double sum = 0, squares = 0;
    for (int i = 0; i < COUNT; i++) {
        double x = random_normal(&r);
        assert_true(fabs(x) <= 6);
        sum += x;
        squares += x * x;
    }
    assert_true(fabs(sum / COUNT) < 0.02);
    assert_true(fabs(squares / COUNT - 1) < 0.02);
    for (int i = 0; i < 1000; i++)
        assert_true(random_below(&r, 7) < 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buffer_notices_a_write_beside_it),
        cmocka_unit_test(buffer_notices_a_changed_input),
        cmocka_unit_test(outputs_agree_within_the_bound_only),
        cmocka_unit_test(nan_and_infinity_agree_with_themselves_only),
        cmocka_unit_test(a_nan_bound_promises_nothing_and_is_counted),
        cmocka_unit_test(the_first_wrong_output_is_named),
        cmocka_unit_test(many_outputs_may_be_off_by_two_deviations_and_one_by_six),
        cmocka_unit_test(half_a_unit_of_a_16_bit_output_is_no_distance),
        cmocka_unit_test(outputs_without_a_spread_are_not_tallied_and_exact_ones_must_be_equal),
        cmocka_unit_test(occupancy_is_the_least_of_four_limits),
        cmocka_unit_test(every_status_has_an_exit_code),
        cmocka_unit_test(sections_are_found_by_their_comment_lines),
        cmocka_unit_test(random_numbers_have_mean_zero_and_variance_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
