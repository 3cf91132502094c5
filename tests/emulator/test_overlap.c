/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches that may begin before the kernel ahead of them in the stream ends (griddepcontrol, with
 * the launch attribute for it): what a thread touches before its wait must be nothing that the
 * kernel ahead writes, and it must write nothing that that one touches.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Kernels of 64 threads, each with its word %rd1 of pa and the word %rd2 of another warp. */
static const char start[] =
    ".visible .entry %s(.param .u64 pa)\n{\n"
    ".reg .pred %%p<4>; .reg .b32 %%r<8>; .reg .b64 %%rd<8>;\n"
    "ld.param.u64 %%rd3, [pa];\nmov.u32 %%r1, %%tid.x;\nmul.wide.u32 %%rd4, %%r1, 4;\n"
    "add.u64 %%rd1, %%rd3, %%rd4;\nxor.b64 %%rd4, %%rd4, 128;\nadd.u64 %%rd2, %%rd3, %%rd4;\n"
    "setp.lt.u32 %%p1, %%r1, 32;\n%sret;\n}\n";

#define LOAD "ld.global.u32 %r2, [%rd2];\n"
#define STORE "st.global.u32 [%rd1], %r1;\n"
#define MARKED(line) line " // here\n"
#define WAIT "griddepcontrol.wait;\n"
#define LAUNCH "griddepcontrol.launch_dependents;\n"
#define READS_WHAT_IS_WRITTEN                                                                      \
    "this read follows a write by the kernel ahead in the stream, which may still run: no "        \
    "griddepcontrol.wait is before it"
#define WRITES_OVER(before)                                                                        \
    "this write follows a " before " by the kernel ahead in the stream, which may still run: no "  \
    "griddepcontrol.wait is before it"

/* `first`, then `second`, then `last` if it is not NULL; the faulty line is of the one launched
 * last. */
struct planted {
    const char *name, *first, *second, *faulty, *clean, *says;
};

static const struct planted faults[] = {
    {"a_read_before_the_wait", STORE, NULL, MARKED("ld.global.u32 %r2, [%rd2];") WAIT, WAIT LOAD,
     READS_WHAT_IS_WRITTEN},
    {"a_read_without_a_wait", LAUNCH STORE, NULL, MARKED("ld.global.nc.u32 %r2, [%rd2];"),
     WAIT "ld.global.nc.u32 %r2, [%rd2];\n", READS_WHAT_IS_WRITTEN},
    {"a_copy_before_the_wait", STORE, NULL,
     ".shared .align 4 .b8 buf[4];\nmov.u32 %r3, buf;\nsetp.eq.u32 %p2, %r1, 0;\n" MARKED(
         "@%p2 cp.async.ca.shared.global [%r3], [%rd2], 4;") "cp.async.wait_all;\n" WAIT,
     ".shared .align 4 .b8 buf[4];\nmov.u32 %r3, buf;\nsetp.eq.u32 %p2, %r1, 0;\n" WAIT
     "@%p2 cp.async.ca.shared.global [%r3], [%rd2], 4;\ncp.async.wait_all;\n",
     READS_WHAT_IS_WRITTEN},
    {"a_write_over_what_is_read", LOAD, NULL, MARKED("st.global.u32 [%rd1], 9;") WAIT,
     WAIT "st.global.u32 [%rd1], 9;\n", WRITES_OVER("read")},
    {"a_write_over_what_is_written", STORE, NULL, MARKED("st.global.u32 [%rd1], 99;") WAIT,
     WAIT "st.global.u32 [%rd1], 99;\n", WRITES_OVER("write")},
    {"a_wait_of_the_other_warp", STORE, NULL,
     "@!%p1 bra REST;\n" WAIT "REST:\n@%p1 exit;\n" MARKED("ld.global.u32 %r2, [%rd2];"),
     "@!%p1 bra REST;\n" WAIT "REST: bar.sync 0;\n" LOAD, READS_WHAT_IS_WRITTEN},
    {"a_kernel_between_that_does_not_wait", STORE, LAUNCH, MARKED("ld.global.u32 %r2, [%rd2];"),
     WAIT LOAD, READS_WHAT_IS_WRITTEN},
    {"a_kernel_between_that_waits_too_late", STORE, LAUNCH WAIT,
     MARKED("ld.global.u32 %r2, [%rd2];"), WAIT LOAD, READS_WHAT_IS_WRITTEN},
};
enum { FAULTS = sizeof faults / sizeof *faults };

static void add_kernel(char *text, const char *name, const char *body)
{
    sprintf(text + strlen(text), start, name, body);
}

static void open_with(struct bench *bench, const char *device, const char *first,
                      const char *second, const char *last)
{
    char *text = malloc(8192);
    bench_open(bench, device);
    sprintf(text, ".version 8.6\n.target sm_90\n.address_size 64\n");
    add_kernel(text, "last", last);
    add_kernel(text, "first", first);
    add_kernel(text, "second", second ? second : "");
    bench_load(bench, text);
    free(text);
}

static uint32_t marked_line(const char *body)
{
    const char *mark = strstr(body, "// here");
    uint32_t line = 14; /* the body's first */
    for (const char *at = body; mark && at < mark; at++)
        line += *at == '\n';
    return mark ? line : 0;
}

enum between { NOTHING, SYNCHRONISE, COPY, NOT_PROGRAMMATIC, RECORD };

static ptxgen_emulator_fault run(const struct planted *planted, const char *last,
                                 const ptxgen_emulator_options *options, enum between between)
{
    struct bench bench;
    uint32_t words[64] = {0};
    ptxgen_cu_event event;
    open_with(&bench, "cpu:sm_90", planted->first, planted->second, last);
    bench_options(&bench, options);
    ptxgen_cu_deviceptr pa = bench_buffer(&bench, words, sizeof words);
    void *arguments[] = {&pa};
    assert_int_equal(bench.driver.event_create(&event, 0), PTXGEN_CUDA_SUCCESS);
    assert_int_equal(bench_launch(&bench, "first", 1, 64, arguments), PTXGEN_CUDA_SUCCESS);
    bench.programmatic = true;
    if (planted->second)
        assert_int_equal(bench_launch(&bench, "second", 1, 64, arguments), PTXGEN_CUDA_SUCCESS);
    bench.programmatic = between != NOT_PROGRAMMATIC;
    if (between == SYNCHRONISE)
        assert_int_equal(bench.driver.ctx_synchronize(), PTXGEN_CUDA_SUCCESS);
    if (between == COPY)
        bench_read(&bench, words, pa, sizeof words);
    if (between == RECORD)
        assert_int_equal(bench.driver.event_record(event, NULL), PTXGEN_CUDA_SUCCESS);
    bench_launch(&bench, "last", 1, 64, arguments);
    ptxgen_emulator_fault fault = bench_fault(&bench);
    ptxgen_emulator_clear_fault(bench.context);
    bench.driver.event_destroy(event);
    bench_close(&bench);
    return fault;
}

static void every_early_access_is_reported_at_its_line(void **state)
{
    int wrong = 0;
    (void)state;
    for (int i = 0; i < FAULTS; i++) {
        char wanted[400];
        ptxgen_emulator_fault fault =
            run(&faults[i], faults[i].faulty, &(ptxgen_emulator_options){0}, NOTHING);
        snprintf(wanted, sizeof wanted, ": %s", faults[i].says);
        const char *said = strstr(fault.message, wanted);
        if (fault.check == PTXGEN_CHECK_OVERLAP && fault.line == marked_line(faults[i].faulty) &&
            said && strlen(said) == strlen(wanted))
            continue;
        print_error("%s: line %u, not %u: %s\n", faults[i].name, fault.line,
                    marked_line(faults[i].faulty), fault.message);
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

static void every_waiting_twin_is_silent(void **state)
{
    int wrong = 0;
    (void)state;
    for (int i = 0; i < FAULTS; i++)
        for (uint64_t seed = 0; seed < 3; seed++) {
            ptxgen_emulator_fault fault =
                run(&faults[i], faults[i].clean, &(ptxgen_emulator_options){.seed = seed}, NOTHING);
            if (fault.check == PTXGEN_CHECK_NONE)
                continue;
            print_error("%s: %s\n", faults[i].name, fault.message);
            wrong++;
        }
    assert_int_equal(wrong, 0);
}

/* Also for a kernel between that waits before it lets others begin. */
static void what_has_ended_is_not_overlapped(void **state)
{
    (void)state;
    for (enum between between = SYNCHRONISE; between <= RECORD; between++)
        for (int i = 0; i < FAULTS; i++) {
            ptxgen_emulator_fault fault =
                run(&faults[i], faults[i].faulty, &(ptxgen_emulator_options){0}, between);
            if (fault.check != PTXGEN_CHECK_NONE)
                fail_msg("%s: %s", faults[i].name, fault.message);
        }
    const struct planted waits = {.first = STORE, .second = WAIT LAUNCH};
    ptxgen_emulator_fault fault = run(&waits, LOAD, &(ptxgen_emulator_options){0}, NOTHING);
    if (fault.check != PTXGEN_CHECK_NONE)
        fail_msg("%s", fault.message);
}

static void the_check_of_overlaps_can_be_disabled(void **state)
{
    (void)state;
    for (int i = 0; i < FAULTS; i++) {
        ptxgen_emulator_fault fault =
            run(&faults[i], faults[i].faulty,
                &(ptxgen_emulator_options){.disabled_checks = PTXGEN_CHECK_OVERLAP}, NOTHING);
        if (fault.check != PTXGEN_CHECK_NONE)
            fail_msg("%s: %s", faults[i].name, fault.message);
    }
}

static void an_early_store_of_what_is_there_is_reported_unless_that_is_allowed(void **state)
{
    static const struct planted equal = {.first = STORE,
                                         .faulty = MARKED("st.global.u32 [%rd1], %r1;") WAIT,
                                         .says = WRITES_OVER("write")};
    (void)state;
    ptxgen_emulator_fault fault = run(&equal, equal.faulty, &(ptxgen_emulator_options){0}, NOTHING);
    assert_int_equal(fault.check, PTXGEN_CHECK_EQUAL_STORES);
    assert_int_equal(fault.line, marked_line(equal.faulty));
    assert_non_null(strstr(fault.message, equal.says));
    assert_non_null(
        strstr(fault.message, "; it stores what is there, which does not make it ordered"));
    fault = run(&equal, equal.faulty,
                &(ptxgen_emulator_options){.disabled_checks = PTXGEN_CHECK_EQUAL_STORES}, NOTHING);
    assert_string_equal(fault.message, "");
}

/* The marks of a launch go with the memory that they are of. */
static void memory_freed_behind_a_launch_is_forgotten(void **state)
{
    struct bench bench;
    ptxgen_cu_deviceptr pa;
    (void)state;
    open_with(&bench, "cpu:sm_90", STORE, NULL, LOAD);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(bench.driver.mem_alloc(&pa, 256), PTXGEN_CUDA_SUCCESS);
        bench.programmatic = false;
        assert_int_equal(bench_launch(&bench, "first", 1, 64, (void *[]){&pa}),
                         PTXGEN_CUDA_SUCCESS);
        assert_int_equal(bench.driver.mem_free(pa), PTXGEN_CUDA_SUCCESS);
        assert_int_equal(bench.driver.mem_alloc(&pa, 256), PTXGEN_CUDA_SUCCESS);
        assert_int_equal(bench.driver.memset_d8(pa, 0, 256), PTXGEN_CUDA_SUCCESS);
        bench.programmatic = true;
        assert_int_equal(bench_launch(&bench, "last", 1, 64, (void *[]){&pa}), PTXGEN_CUDA_SUCCESS);
        assert_int_equal(bench.driver.mem_free(pa), PTXGEN_CUDA_SUCCESS);
    }
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_early_access_is_reported_at_its_line),
        cmocka_unit_test(every_waiting_twin_is_silent),
        cmocka_unit_test(what_has_ended_is_not_overlapped),
        cmocka_unit_test(the_check_of_overlaps_can_be_disabled),
        cmocka_unit_test(an_early_store_of_what_is_there_is_reported_unless_that_is_allowed),
        cmocka_unit_test(memory_freed_behind_a_launch_is_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
