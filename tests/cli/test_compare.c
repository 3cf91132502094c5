/* SPDX-License-Identifier: Apache-2.0 */
/* What compares a run with the reference finds one wrong output among thousands of right ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "src/harness/problem.h"

#include <ptxgen/marlin.h>
#include <ptxgen/sparse24.h>
#include <ptxgen/w8a8.h>

#include <string.h>

enum { ROWS = 70, COLUMNS = 136, DEPTH = 256 };

#define assert_ok(call)                                                                            \
    do {                                                                                           \
        ptxgen_error err = {0};                                                                    \
        if ((call) != PTXGEN_OK)                                                                   \
            fail_msg("%s", err.message);                                                           \
    } while (0)

static struct device open_device(void)
{
    struct device device;
    assert_ok(device_open("cpu:sm_90", &device, &err));
    return device;
}

static void expect(const struct problem *p, uint64_t wrong)
{
    struct check check = {.outputs = 0};
    assert_ok(problem_compare(p, &check, &err));
    assert_int_equal(check.outputs, ROWS * COLUMNS);
    assert_int_equal(check.wrong, wrong);
}

/* Outputs of 16 bits, in rows without gaps, each one changed in its turn by what is xored to it. */
static void expect_each_change_found(const struct problem *p, uint16_t change)
{
    unsigned char *outputs = p->buffers[p->count - 1].host;
    static const size_t places[][2] = {{0, 0}, {7, 8}, {8, 63}, {63, 64}, {64, 127}, {69, 135}};
    expect(p, 0);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        unsigned char *at = outputs + 2 * (places[i][0] * COLUMNS + places[i][1]);
        uint16_t right, wrong;
        memcpy(&right, at, sizeof right);
        wrong = right ^ change;
        memcpy(at, &wrong, sizeof wrong);
        expect(p, 1);
        memcpy(at, &right, sizeof right);
    }
    expect(p, 0);
}

/* Of a problem with random data: a changed output is found, whichever it is. */
static void check_comparison(struct device *device, const struct harness *harness, const void *spec,
                             uint16_t change)
{
    const struct kernel_request request = {.spec = spec};
    struct problem p;
    struct random r = random_start(1);
    struct check check = {.outputs = 0};
    assert_ok(problem_allocate(&p, harness, &request, ROWS, NULL, device, &err));
    assert_ok(problem_fill(&p, &r, &err));
    assert_ok(problem_check(&p, device, &check, &err));
    expect_each_change_found(&p, change);
    problem_release(&p);
}

static void marlin_finds_one_output_beyond_its_bound(void **state)
{
    (void)state;
    static const uint8_t types[] = {PTXGEN_F16, PTXGEN_BF16};
    struct device device = open_device();
    for (int i = 0; i < 4; i++) {
        const ptxgen_marlin_spec spec = {.k = DEPTH,
                                         .n = COLUMNS,
                                         .group_size = 64,
                                         .type = types[i % 2],
                                         .zeros = 1,
                                         .act_order = (uint8_t)(i / 2),
                                         .epilogue =
                                             i / 2 ? PTXGEN_EPILOGUE_SWIGLU : PTXGEN_EPILOGUE_NONE};
        check_comparison(&device, &marlin_harness, &spec, 0x4000); /* 2 and more, or tiny */
    }
    device_close(&device);
}

static void w8a8_finds_one_bit(void **state)
{
    (void)state;
    struct device device = open_device();
    for (uint8_t asymmetric = 0; asymmetric < 2; asymmetric++) {
        const ptxgen_w8a8_spec spec = {.k = DEPTH,
                                       .n = COLUMNS,
                                       .x_type = PTXGEN_F16,
                                       .y_type = PTXGEN_F16,
                                       .asymmetric = asymmetric};
        check_comparison(&device, &w8a8_harness, &spec, 1);
    }
    device_close(&device);
}

static void sparse24_finds_one_output_beyond_its_bound_in_either_tier(void **state)
{
    (void)state;
    struct device device = open_device();
    for (uint8_t tier = 1; tier <= 2; tier++) {
        const ptxgen_sparse24_spec spec = {.n = COLUMNS,
                                           .k = DEPTH,
                                           .type = PTXGEN_SPARSE24_F16,
                                           .y_type = PTXGEN_F16,
                                           .tier = tier};
        check_comparison(&device, &sparse24_harness, &spec, 0x4000);
    }
    device_close(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(marlin_finds_one_output_beyond_its_bound),
        cmocka_unit_test(w8a8_finds_one_bit),
        cmocka_unit_test(sparse24_finds_one_output_beyond_its_bound_in_either_tier),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
