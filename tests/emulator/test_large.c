/* SPDX-License-Identifier: Apache-2.0 */
/* Texts with very many of one thing, or very deep ones. */
#define _DEFAULT_SOURCE
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define HEADER ".version 8.0\n.target sm_80\n.address_size 64\n"

struct text {
    char *text;
    size_t length, room;
};

static void add(struct text *t, const char *format, ...) PTXGEN_PRINTF(2, 3);
static void add(struct text *t, const char *format, ...)
{
    va_list args;
    if (t->room - t->length < 256) {
        t->room = t->room * 2 + 4096;
        t->text = realloc(t->text, t->room);
        assert_non_null(t->text);
    }
    va_start(args, format);
    t->length += (size_t)vsnprintf(t->text + t->length, 256, format, args);
    va_end(args);
}

static void repeat(struct text *t, const char *part, int count)
{
    for (int i = 0; i < count; i++)
        add(t, "%s", part);
}

static long most_kilobytes(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

/* Each kernel names a shared variable and calls a function of its own. */
static void ten_thousand_kernels_in_one_text_take_little_memory(void **state)
{
    (void)state;
    enum { KERNELS = 10000 };
    struct text t = {0};
    struct bench bench;
    bench_open(&bench, "cpu:sm_80");
    add(&t, HEADER);
    for (int i = 0; i < KERNELS; i++)
        add(&t,
            ".shared .u32 s%d;\n.func f%d() { .reg .u64 %%a; mov.u64 %%a, s%d; ret; }\n"
            ".visible .entry k%d() { call f%d; ret; }\n",
            i, i, i, i, i);
    long before = most_kilobytes();
    bench_load(&bench, t.text);
    assert_in_range(most_kilobytes() - before, 0, 2000 << 10);
    for (int i = 0; i < KERNELS; i += 999) {
        char name[16];
        snprintf(name, sizeof name, "k%d", i);
        bench_run(&bench, name, 1, 32, NULL);
    }
    free(t.text);
    bench_close(&bench);
}

static void names_by_the_ten_thousand_are_found(void **state)
{
    (void)state;
    enum { NAMES = 10000 };
    struct text t = {0};
    struct bench bench;
    uint32_t sum, want = 0;
    ptxgen_cu_deviceptr out;
    bench_open(&bench, "cpu:sm_80");
    add(&t, HEADER);
    for (int i = 0; i < NAMES; i++)
        add(&t, ".const .u32 c%d = %d;\n", i, i * 7);
    add(&t, ".visible .entry k(.param .u64 px)\n{\n.reg .u64 %%rd; .reg .u32 %%s, %%v;\n"
            "ld.param.u64 %%rd, [px];\nmov.u32 %%s, 0;\n");
    for (int i = 0; i < NAMES; i++) {
        add(&t, "bra L%d;\nadd.u32 %%s, %%s, 1;\nL%d: .reg .u32 x%d;\n", i, i, i);
        add(&t, "ld.const.u32 x%d, [c%d];\nadd.u32 %%s, %%s, x%d;\n", i, i, i);
        want += (uint32_t)i * 7;
    }
    add(&t, "st.global.u32 [%%rd], %%s;\nret;\n}\n");
    bench_load(&bench, t.text);
    out = bench_blank(&bench, 4);
    bench_run(&bench, "k", 1, 1, (void *[]){&out});
    bench_read(&bench, &sum, out, 4);
    assert_int_equal(sum, want);
    free(t.text);
    bench_close(&bench);
}

/* The profile goes through the lines of the kernel, then through those of a function before it. */
static void the_profile_has_the_text_of_every_line(void **state)
{
    (void)state;
    enum { LINES = 10000 };
    struct text t = {0};
    struct bench bench;
    ptxgen_emulator_profile *profile;
    bench_open(&bench, "cpu:sm_80");
    add(&t, HEADER ".func f()\n{\n.reg .u32 %%r;\n");
    for (int i = 0; i < LINES; i++)
        add(&t, "  mov.u32 %%r, %d;\n", i);
    add(&t, "ret;\n}\n.visible .entry k()\n{\n.reg .u32 %%r;\n");
    for (int i = LINES; i < 2 * LINES; i++)
        add(&t, "  mov.u32 %%r, %d;\n", i);
    add(&t, "call f;\nret;\n}\n");
    bench_options(&bench, &(ptxgen_emulator_options){.profile = true});
    bench_load(&bench, t.text);
    bench_run(&bench, "k", 1, 32, NULL);
    assert_int_equal(ptxgen_emulator_profile_take(bench.context, &profile, NULL), PTXGEN_OK);
    int found[2 * LINES] = {0};
    for (size_t i = 0; i < ptxgen_emulator_profile_count(profile); i++) {
        ptxgen_emulator_line line = ptxgen_emulator_profile_line(profile, i);
        int value;
        if (sscanf(line.text, "mov.u32 %%r, %d;", &value) != 1)
            continue;
        assert_in_range(value, 0, 2 * LINES - 1);
        assert_int_equal(line.line, value + (value < LINES ? 7 : 12));
        found[value]++;
    }
    for (int i = 0; i < 2 * LINES; i++)
        assert_int_equal(found[i], 1);
    ptxgen_emulator_profile_free(profile);
    free(t.text);
    bench_close(&bench);
}

/* A text that nests is refused by its line, and overflows no stack. */
static void refuse_nested(const char *before, const char *open, const char *close,
                          const char *after, const char *message)
{
    struct text t = {0};
    struct bench bench;
    bench_open(&bench, "cpu:sm_80");
    add(&t, HEADER "%s", before);
    repeat(&t, open, 300000);
    add(&t, "1");
    repeat(&t, close, 300000);
    add(&t, "%s", after);
    assert_int_equal(bench_try_load(&bench, t.text), PTXGEN_CUDA_ERROR_INVALID_PTX);
    if (!strstr(bench.log, message))
        fail_msg("'%.300s' lacks '%s'", bench.log, message);
    free(t.text);
    bench_close(&bench);
}

static void deep_nesting_is_refused(void **state)
{
    (void)state;
#define MOV ".entry k() {\n.reg .u32 %r;\nmov.u32 %r, "
    refuse_nested(".entry k() ", "{", "}", "", "scopes nest deeper than 64");
    refuse_nested(MOV, "(", ")", ";\n}\n", "line 6, column");
    refuse_nested(MOV, "-", "", ";\n}\n", "line 6, column");
    refuse_nested(MOV, "!~", "", ";\n}\n", "line 6, column");
    refuse_nested(".entry k() {\n.reg .u32 %r;\nld.shared.u32 %r, ", "[", "]", ";\n}\n",
                  "line 6, column");
}

static void extents_beyond_all_memory_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {".global .b8 a[65536][65536][65536][65536];", "larger than 4 GiB"},
        {".global .b8 a[9223372036854775807];", "larger than 4 GiB"},
        {".shared .b8 a[18446744073709551615];", "larger than 4 GiB"},
        {".entry k() { .local .b8 z[4294967295]; ret; }", "more than 2 GiB"},
        {".entry k(.param .b8 p[4294967295]) { ret; }", "more than 2 GiB"},
        {".entry k() { .reg .b32 %r<4294967295>; ret; }", "4294967295 registers in one range"},
        {".entry k() .maxntid 65536, 65536, 65536 { ret; }", "extents whose product is above"},
    };
    struct bench bench;
    bench_open(&bench, "cpu:sm_80");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        snprintf(text, sizeof text, HEADER "%s\n", cases[i].text);
        assert_int_equal(bench_try_load(&bench, text), PTXGEN_CUDA_ERROR_INVALID_PTX);
        if (!strstr(bench.log, cases[i].message))
            fail_msg("'%s' lacks '%s'", bench.log, cases[i].message);
    }
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ten_thousand_kernels_in_one_text_take_little_memory),
        cmocka_unit_test(names_by_the_ten_thousand_are_found),
        cmocka_unit_test(the_profile_has_the_text_of_every_line),
        cmocka_unit_test(deep_nesting_is_refused),
        cmocka_unit_test(extents_beyond_all_memory_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
