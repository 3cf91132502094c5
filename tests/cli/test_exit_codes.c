/* SPDX-License-Identifier: Apache-2.0 */
/* Each status with its number, its name and its exit code, all stated here a second time. */
#include "tests/cli/command.h"
#include "tests/status.h"

#include "src/cli/bench_ceiling.h"
#include "src/cli/exit_code.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/*
 * The exit codes by their meaning in `ptxgen --help` and in docs/command.md: 2 for usage or a
 * problem that the family refuses, 3 without a device, 4 for a file, 5 for an internal failure, 6
 * when the driver or the kernel failed. 1, wrong numbers, is no status.
 */
#define STATUSES(V)                                                                                \
    V(PTXGEN_OK, 0, 0)                                                                             \
    V(PTXGEN_ERROR_INVALID_ARGUMENT, 1, 2)                                                         \
    V(PTXGEN_ERROR_OUT_OF_MEMORY, 2, 5)                                                            \
    V(PTXGEN_ERROR_UNSUPPORTED, 3, 2)                                                              \
    V(PTXGEN_ERROR_SYSTEM, 4, 5)                                                                   \
    V(PTXGEN_ERROR_TARGET, 100, 2)                                                                 \
    V(PTXGEN_ERROR_OPERAND, 101, 5)                                                                \
    V(PTXGEN_ERROR_ALIGNMENT, 102, 5)                                                              \
    V(PTXGEN_ERROR_LABEL, 103, 5)                                                                  \
    V(PTXGEN_ERROR_UNINITIALISED, 104, 5)                                                          \
    V(PTXGEN_ERROR_DIVERGENCE, 105, 5)                                                             \
    V(PTXGEN_ERROR_ASYNC, 106, 5)                                                                  \
    V(PTXGEN_ERROR_SHARED_MEMORY, 107, 2)                                                          \
    V(PTXGEN_ERROR_REGISTERS, 108, 5)                                                              \
    V(PTXGEN_ERROR_STRUCTURE, 109, 5)                                                              \
    V(PTXGEN_ERROR_NO_DRIVER, 200, 3)                                                              \
    V(PTXGEN_ERROR_DRIVER_TOO_OLD, 201, 3)                                                         \
    V(PTXGEN_ERROR_NO_DEVICE, 202, 3)                                                              \
    V(PTXGEN_ERROR_WRONG_DEVICE, 203, 3)                                                           \
    V(PTXGEN_ERROR_DRIVER, 204, 6)                                                                 \
    V(PTXGEN_ERROR_JIT, 205, 6)                                                                    \
    V(PTXGEN_ERROR_FILE, 300, 4)                                                                   \
    V(PTXGEN_ERROR_MALFORMED, 301, 4)                                                              \
    V(PTXGEN_ERROR_NOT_FOUND, 302, 4)                                                              \
    V(PTXGEN_ERROR_PTX_SYNTAX, 400, 6)                                                             \
    V(PTXGEN_ERROR_PTX_FAULT, 401, 6)

static const struct row {
    ptxgen_status status;
    int number, code;
    const char *name;
} rows[] = {
#define ROW(status, number, code) {status, number, code, #status},
    STATUSES(ROW)
#undef ROW
};
enum { ROWS = sizeof rows / sizeof *rows };

/* Does not compile while STATUSES lacks an enumerator, for the compiler wants a case of each. */
static bool has_a_row(ptxgen_status status)
{
    switch (status) {
#define CASE(status, number, code) case status:
        STATUSES(CASE)
#undef CASE
        return true;
    }
    return false;
}

static void each_status_has_its_number_name_and_exit_code(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        assert_int_equal((int)rows[i].status, rows[i].number);
        assert_string_equal(ptxgen_status_name(rows[i].status), rows[i].name);
        if ((int)exit_code_of(rows[i].status) != rows[i].code)
            fail_msg("%s exits with %d, not %d", rows[i].name, (int)exit_code_of(rows[i].status),
                     rows[i].code);
        assert_true(has_a_row(rows[i].status));
    }
}

static void a_number_that_is_no_status_is_unknown_and_internal(void **state)
{
    (void)state;
    for (int number = -2; number < 600; number++)
        if (!has_a_row((ptxgen_status)number)) {
            assert_string_equal(ptxgen_status_name((ptxgen_status)number), "PTXGEN_ERROR_UNKNOWN");
            assert_int_equal(exit_code_of((ptxgen_status)number), 5);
        }
}

static void a_failure_keeps_its_status_whichever(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        ptxgen_error err = {0};
        assert_int_equal(ptxgen_fail(&err, rows[i].status, "row %d", (int)i), rows[i].status);
        assert_int_equal(err.status, rows[i].status);
        assert_int_equal(ptxgen_fail(NULL, rows[i].status, "row"), rows[i].status);
    }
}

/* ---- the command ---- */

static void help_has_a_line_for_each_exit_code(void **state)
{
    static const char *const lines[] = {"\n  0  done",
                                        "\n  1  run computed wrong",
                                        "\n  2  usage",
                                        "\n  3  no driver, or no device",
                                        "\n  4  a file",
                                        "\n  5  internal",
                                        "\n  6  the driver, its assembler or a kernel"};
    struct outcome o = run("--help");
    (void)state;
    assert_exit(&o, 0);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        assert_contains(o.out, lines[i]);
    outcome_free(&o);
}

/* A folder whose libcuda.so.1 is this library, and how a command on its device 0 exits. */
static int code_with_driver(const char *library, const char *words)
{
    char folder[] = "/tmp/ptxgen-libcuda-XXXXXX", link[64], path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(link, sizeof link, "%s/libcuda.so.1", folder);
    snprintf(path, sizeof path, "LD_LIBRARY_PATH=%s", folder);
    if (library)
        assert_int_equal(symlink(library, link), 0);
    struct outcome o =
        run_program((const char *const[]){"env", path, PTXGEN_COMMAND, "run", "rmsnorm_q4k", "--k",
                                          "256", "--n", "8", "--device", "gpu:0", NULL});
    unlink(link);
    rmdir(folder);
    assert_contains(o.err, words);
    int code = o.code;
    outcome_free(&o);
    return code;
}

static void the_command_says_by_its_code_what_the_driver_lacks(void **state)
{
    (void)state;
    assert_int_equal(code_with_driver(NO_DRIVER_LIBRARY, "is not a CUDA driver library"), 3);
    assert_int_equal(code_with_driver(OLD_DRIVER_LIBRARY, "driver is too old"), 3);
    assert_int_equal(code_with_driver(INCOMPLETE_DRIVER_LIBRARY, "driver is too old"), 3);
    assert_int_equal(code_with_driver(WHOLE_DRIVER_LIBRARY, "unknown driver error (801"), 6);
}

/* The one optional call that the command alone needs. */
static void bench_names_the_graph_call_that_an_old_driver_lacks(void **state)
{
    struct device device;
    struct ceiling ceiling;
    ptxgen_error err = {0};
    (void)state;
    assert_ok(device_open("cpu:sm_80", &device, &err), &err);
    device.driver.graph_instantiate = NULL;
    assert_int_equal(bench_ceiling(&device, 1, &ceiling, &err), PTXGEN_ERROR_DRIVER_TOO_OLD);
    assert_int_equal(err.status, PTXGEN_ERROR_DRIVER_TOO_OLD);
    assert_says(&err, "no cuGraphInstantiateWithFlags, which came with CUDA 11.4");
    device_close(&device);
}

static void a_tile_that_no_cta_holds_is_a_matter_of_usage(void **state)
{
    static const char *const problems[][10] = {
        {"emit", "dense", "--n", "4096", "--k", "4096", "--target", "sm_80", "--tile",
         "warp_m=64,warp_n=64,wm=2,wn=4,stages=16"},
        {"emit", "sparse24", "--n", "4096", "--k", "4096", "--target", "sm_80", "--tile",
         "tile_m=128,wm=2,wn=4,stages=16"},
        {"emit", "marlin", "--k", "4096", "--n", "4096", "--target", "sm_80", "--tile",
         "tile_m=128,warp_n=64,wn=4,wk=1,stages=16,steps=4,ctas=1,pass_m=16"},
        {"emit", "w8a8", "--k", "4096", "--n", "4096", "--target", "sm_80", "--tile",
         "tile_m=64,tile_n=64,wn=4,wm=1,wk=2,stages=16"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) {
        const char *arguments[11] = {NULL};
        memcpy(arguments, problems[i], sizeof problems[i]);
        assert_refused(arguments, 2, "CTA");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_status_has_its_number_name_and_exit_code),
        cmocka_unit_test(a_number_that_is_no_status_is_unknown_and_internal),
        cmocka_unit_test(a_failure_keeps_its_status_whichever),
        cmocka_unit_test(help_has_a_line_for_each_exit_code),
        cmocka_unit_test(the_command_says_by_its_code_what_the_driver_lacks),
        cmocka_unit_test(bench_names_the_graph_call_that_an_old_driver_lacks),
        cmocka_unit_test(a_tile_that_no_cta_holds_is_a_matter_of_usage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
