/* SPDX-License-Identifier: Apache-2.0 */
/* The version table, and the two directives read before a load. */
#include "tests/runtime/check.h"
#include "tests/runtime/fake_driver.h"

#include "src/runtime/ptx_header.h"
#include "src/runtime/ptx_version.h"

static ptxgen_error err;

static int reset(void **state)
{
    (void)state;
    fake_reset();
    return 0;
}

static void each_driver_takes_its_ptx(void **state)
{
    (void)state;
    static const int pairs[][2] = {
        {10020, 0},  {11000, 70}, {11040, 74}, {11080, 78}, {12000, 80}, {12040, 84}, {12050, 85},
        {12060, 85}, {12070, 86}, {12090, 88}, {13000, 90}, {13030, 93}, {14000, 93},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        assert_int_equal(ptxgen_driver_max_ptx_version(pairs[i][0]), pairs[i][1]);
}

static void each_ptx_has_a_first_driver(void **state)
{
    (void)state;
    assert_int_equal(ptx_release_with(85)->cuda, 12050);
    assert_int_equal(ptx_release_with(80)->branch, 525);
    assert_int_equal(ptx_release_with(40)->cuda, 11000);
    assert_null(ptx_release_with(94));
}

static void the_header_is_read_past_comments(void **state)
{
    (void)state;
    struct ptx_header header = ptx_header_read("// a kernel\n/* of\n ours */ .version 8.6 // now\n"
                                               "\t.target\tsm_120f, debug\n.address_size 64\n");
    assert_int_equal(header.version, 86);
    assert_int_equal(header.arch, 120);
    assert_int_equal(header.suffix, 'f');
    header = ptx_header_read(".version 7.0\n.target sm_80\n");
    assert_int_equal(header.version, 70);
    assert_int_equal(header.arch, 80);
    assert_int_equal(header.suffix, 0);
}

static void a_text_that_opens_otherwise_is_left_to_the_driver(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",         "//",        "/*",         "/* never closed",       ".versio",
        ".version", ".version ", ".version 9", ".version 8.0\n.target", "junk",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct ptx_header header = ptx_header_read(texts[i]);
        assert_int_equal(header.arch, 0);
        assert_int_equal(ptx_header_check(&header, &fake.table, 0, &err),
                         header.version == 90 ? PTXGEN_ERROR_DRIVER_TOO_OLD : PTXGEN_OK);
    }
}

static void long_numbers_do_not_overflow(void **state)
{
    (void)state;
    struct ptx_header header = ptx_header_read(".version 99999999999999999999.1\n.target sm_80");
    assert_int_equal(header.version, 99990);
}

static void newer_text_than_the_driver_names_the_driver_needed(void **state)
{
    (void)state;
    const struct ptx_header header = {90, 90, 0};
    assert_fails(
        ptx_header_check(&header, &fake.table, 0, &err), PTXGEN_ERROR_DRIVER_TOO_OLD, err,
        "the text is PTX 9.0, and the driver, for CUDA 12.4, takes PTX up to 8.4; it needs "
        "one for CUDA 13.0 (r580) or later");
    const struct ptx_header unheard_of = {99, 90, 0};
    assert_fails(ptx_header_check(&unheard_of, &fake.table, 0, &err), PTXGEN_ERROR_DRIVER_TOO_OLD,
                 err, "takes PTX up to 8.4");
}

static void a_driver_newer_than_the_table_judges_for_itself(void **state)
{
    (void)state;
    fake.table.version = 13050;
    const struct ptx_header header = {95, 90, 0};
    assert_int_equal(ptx_header_check(&header, &fake.table, 0, &err), PTXGEN_OK);
}

static void targets_reach_the_devices_that_the_isa_says(void **state)
{
    (void)state;
    /* device 0 is sm_90, device 1 is sm_80 */
    static const struct {
        struct ptx_header header;
        int device;
        const char *refusal;
    } cases[] = {
        {{70, 80, 0}, 0, NULL},
        {{70, 80, 0}, 1, NULL},
        {{78, 90, 0},
         1,
         "sm_90, which runs on compute capability 9.0 or later; device 1 (Fake GPU 1) has 8.0"},
        {{80, 90, 'a'}, 0, NULL},
        {{80, 80, 'a'},
         0,
         "sm_80a, which runs on compute capability 8.0 only; device 0 (Fake GPU 0) has 9.0"},
        {{84, 90, 'f'}, 0, NULL},
        {{84, 89, 'f'}, 0, "sm_89f"},
        {{84, 91, 'f'},
         0,
         "sm_91f, which runs on compute capability 9.1 and later ones of its family"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ptxgen_status status =
            ptx_header_check(&cases[i].header, &fake.table, cases[i].device, &err);
        assert_int_equal(status, cases[i].refusal ? PTXGEN_ERROR_WRONG_DEVICE : PTXGEN_OK);
        if (cases[i].refusal)
            assert_says(err, cases[i].refusal);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_driver_takes_its_ptx),
        cmocka_unit_test(each_ptx_has_a_first_driver),
        cmocka_unit_test(the_header_is_read_past_comments),
        cmocka_unit_test_setup(a_text_that_opens_otherwise_is_left_to_the_driver, reset),
        cmocka_unit_test(long_numbers_do_not_overflow),
        cmocka_unit_test_setup(newer_text_than_the_driver_names_the_driver_needed, reset),
        cmocka_unit_test_setup(a_driver_newer_than_the_table_judges_for_itself, reset),
        cmocka_unit_test_setup(targets_reach_the_devices_that_the_isa_says, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
