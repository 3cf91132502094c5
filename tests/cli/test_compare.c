/* SPDX-License-Identifier: Apache-2.0 */
/* What compares a run with the reference finds one wrong output among thousands of right ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "src/cli/families/marlin.h"
#include "src/cli/families/sparse24.h"
#include "src/cli/families/w8a8.h"

#include <string.h>

enum { ROWS = 70, COLUMNS = 136, DEPTH = 256 };

#define assert_ok(call)                                                                            \
    do {                                                                                           \
        ptxgen_error err = {0};                                                                    \
        if ((call) != PTXGEN_OK)                                                                   \
            fail_msg("%s", err.message);                                                           \
    } while (0)

typedef ptxgen_status compare_problem(const void *problem, struct check *check, ptxgen_error *err);

static struct device open_device(void)
{
    struct device device;
    assert_ok(device_open("cpu:sm_90", &device, &err));
    return device;
}

static void expect(compare_problem *compare, const void *problem, uint64_t wrong)
{
    struct check check = {.outputs = 0};
    assert_ok(compare(problem, &check, &err));
    assert_int_equal(check.outputs, ROWS * COLUMNS);
    assert_int_equal(check.wrong, wrong);
}

/* Outputs of 16 bits, in rows without gaps, each one changed in its turn by what is xored to it. */
static void expect_each_change_found(compare_problem *compare, const void *problem,
                                     unsigned char *outputs, uint16_t change)
{
    static const size_t places[][2] = {{0, 0}, {7, 8}, {8, 63}, {63, 64}, {64, 127}, {69, 135}};
    expect(compare, problem, 0);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        unsigned char *at = outputs + 2 * (places[i][0] * COLUMNS + places[i][1]);
        uint16_t right, wrong;
        memcpy(&right, at, sizeof right);
        wrong = right ^ change;
        memcpy(at, &wrong, sizeof wrong);
        expect(compare, problem, 1);
        memcpy(at, &right, sizeof right);
    }
    expect(compare, problem, 0);
}

static ptxgen_status compare_marlin(const void *problem, struct check *check, ptxgen_error *err)
{
    return marlin_compare(problem, check, err);
}

static void marlin_finds_one_output_beyond_its_bound(void **state)
{
    (void)state;
    static const uint8_t types[] = {PTXGEN_F16, PTXGEN_BF16};
    struct device device = open_device();
    const struct marlin_layout packed = {.x_gap = 0};
    for (int i = 0; i < 4; i++) {
        const struct marlin_options options = {
            .spec = {.k = DEPTH,
                     .n = COLUMNS,
                     .group_size = 64,
                     .type = types[i % 2],
                     .zeros = 1,
                     .act_order = (uint8_t)(i / 2),
                     .epilogue = i / 2 ? PTXGEN_EPILOGUE_SWIGLU : PTXGEN_EPILOGUE_NONE}};
        struct marlin_problem p;
        struct marlin_weights weights;
        struct random r = random_start(1);
        struct check check = {.outputs = 0};
        assert_ok(marlin_random_weights(&options.spec, PTXGEN_W4_GPTQ_V1, &r, &weights, &err));
        assert_ok(marlin_allocate(&p, &options, ROWS, &packed, &weights, &device, &err));
        marlin_release_weights(&weights);
        marlin_fill(&p, &r);
        assert_ok(marlin_check(&p, &device, &check, &err));
        expect_each_change_found(compare_marlin, &p, p.y.host, 0x4000); /* 2 and more, or tiny */
        marlin_release(&p);
    }
    device_close(&device);
}

static ptxgen_status compare_w8a8(const void *problem, struct check *check, ptxgen_error *err)
{
    return w8a8_compare(problem, check, err);
}

static void w8a8_finds_one_bit(void **state)
{
    (void)state;
    struct device device = open_device();
    const struct w8a8_layout packed = {.x_gap = 0};
    for (uint8_t asymmetric = 0; asymmetric < 2; asymmetric++) {
        const struct w8a8_options options = {.spec = {.k = DEPTH,
                                                      .n = COLUMNS,
                                                      .x_type = PTXGEN_F16,
                                                      .y_type = PTXGEN_F16,
                                                      .asymmetric = asymmetric}};
        struct w8a8_problem p;
        struct random r = random_start(1);
        struct check check = {.outputs = 0};
        assert_ok(w8a8_allocate(&p, &options, ROWS, &packed, &device, &err));
        w8a8_fill(&p, &r);
        assert_ok(w8a8_check(&p, &device, &check, &err));
        expect_each_change_found(compare_w8a8, &p, p.y.host, 1);
        w8a8_release(&p);
    }
    device_close(&device);
}

static ptxgen_status compare_sparse24(const void *problem, struct check *check, ptxgen_error *err)
{
    return sparse24_compare(problem, check, err);
}

static void sparse24_finds_one_output_beyond_its_bound_in_either_tier(void **state)
{
    (void)state;
    struct device device = open_device();
    const struct sparse24_layout packed = {.x_gap = 0};
    for (uint8_t tier = 1; tier <= 2; tier++) {
        const struct sparse24_options options = {.spec = {.n = COLUMNS,
                                                          .k = DEPTH,
                                                          .type = PTXGEN_SPARSE24_F16,
                                                          .y_type = PTXGEN_F16,
                                                          .tier = tier}};
        struct sparse24_problem p;
        struct random r = random_start(1);
        struct check check = {.outputs = 0};
        assert_ok(sparse24_allocate(&p, &options, ROWS, &packed, &device, &err));
        assert_ok(sparse24_fill(&p, &r, &err));
        assert_ok(sparse24_check(&p, &device, &check, &err));
        expect_each_change_found(compare_sparse24, &p, p.y.host, 0x4000);
        sparse24_release(&p);
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
