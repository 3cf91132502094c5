/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in PTX text, read under a decimal comma. */
#include "bench.h"
#include "tests/comma_locale.h"

/* Values of IEEE 754, by the nearest double and its rounding to binary32. */
static const struct {
    const char *literal;
    uint32_t single;
    uint64_t pattern;
} literals[] = {
    {"0.15625", 0x3e200000, 0x3fc4000000000000},
    {"1.5e-3", 0x3ac49ba6, 0x3f589374bc6a7efa},
    {"2.5", 0x40200000, 0x4004000000000000},
    {"1e3", 0x447a0000, 0x408f400000000000},
    {"6.25E+2", 0x441c4000, 0x4083880000000000},
    {"0.1", 0x3dcccccd, 0x3fb999999999999a},
    {"4.9406564584124654e-324", 0, 1},
    {"2.2250738585072011e-308", 0, 0x000fffffffffffff},
    /* half way between 1 and its neighbour, and the least bit more */
    {"1.00000000000000011102230246251565404236316680908203125", 0x3f800000, 0x3ff0000000000000},
    {"1.000000000000000111022302462515654042363166809082031250000000000000000000000000000000001",
     0x3f800000, 0x3ff0000000000001},
};
enum { LITERALS = sizeof literals / sizeof *literals };

static void check_literals(struct bench *bench)
{
    char body[8192] = ".reg .b64 %out; .reg .f32 %f; .reg .f64 %d;\nld.param.u64 %out, [px];\n";
    struct {
        uint64_t pattern, single;
    } got[LITERALS];
    for (size_t i = 0; i < LITERALS; i++)
        snprintf(body + strlen(body), sizeof body - strlen(body),
                 "mov.f64 %%d, %s;\nst.global.f64 [%%out+%zu], %%d;\n"
                 "mov.f32 %%f, %s;\nst.global.f32 [%%out+%zu], %%f;\n",
                 literals[i].literal, 16 * i, literals[i].literal, 16 * i + 8);
    bench_kernel(bench, "sm_80", ".param .u64 px", body);
    ptxgen_cu_deviceptr out = bench_buffer(bench, NULL, sizeof got);
    bench_run(bench, "k", 1, 1, (void *[]){&out});
    bench_read(bench, got, out, sizeof got);
    for (size_t i = 0; i < LITERALS; i++)
        if (got[i].pattern != literals[i].pattern || got[i].single != literals[i].single)
            fail_msg("%s is %016llx and %08llx; should be %016llx and %08x", literals[i].literal,
                     (unsigned long long)got[i].pattern, (unsigned long long)got[i].single,
                     (unsigned long long)literals[i].pattern, literals[i].single);
}

static void decimal_literals_are_the_same_in_every_locale(void **state)
{
    (void)state;
    char folder[COMMA_LOCALE_FOLDER];
    struct bench bench;
    bench_open(&bench, "cpu:sm_80");
    check_literals(&bench);
    assert_true(comma_locale_make(folder));
    assert_true(comma_locale_enter());
    check_literals(&bench);
    assert_true(comma_locale_enter());
    assert_true(comma_locale_remove(folder));
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decimal_literals_are_the_same_in_every_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
