/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the command asks of a driver whose streams are done only when they are waited for
 * (deferred_driver.c): the right results, the times of that driver's clock, nothing left behind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "command.h"
#include "src/cli/family.h"
#include "tests/dispatch/folder.h"
#include "tests/share.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ARGUMENTS = 24 };

/* A problem of each family, small, with an output of several CTAs, and what its launches take. */
static const struct problem {
    const char *family;
    const char *options[12];
    const char *time; /* NULL: of one kernel, a millisecond */
} problems[] = {
    {"marlin", {"--k", "256", "--n", "128", "--m", "3"}, NULL},
    {"rmsnorm_q4k", {"--k", "512", "--n", "48", "--m", "2"}, NULL},
    {"w8a8", {"--k", "256", "--n", "128", "--m", "3"}, NULL},
    {"sparse24", {"--k", "256", "--n", "128", "--m", "3"}, NULL},
    {"dense", {"--k", "256", "--n", "128", "--m", "3"}, NULL},
    {"gguf_linear",
     {"--k", "512", "--n", "48", "--w-type", "Q6_K", "--m", "3"},
     "  2000.0 us a launch"},
    {"gguf_rows", {"--k", "512", "--w-type", "Q6_K", "--m", "3"}, NULL},
    {"quantise",
     {"--k", "300", "--groups", "--producer", "rmsnorm", "--residual", "--m", "3"},
     NULL},
};
enum { PROBLEMS = sizeof problems / sizeof *problems };

static void every_family_has_its_problem(void **state)
{
    (void)state;
    size_t count = 0;
    while (family_at(count))
        count++;
    assert_int_equal(count, PROBLEMS);
    for (size_t i = 0; i < PROBLEMS; i++) {
        bool found = false;
        for (size_t f = 0; f < count; f++)
            found = found || !strcmp(family_at(f)->name, problems[i].family);
        assert_true(found);
    }
}

static struct outcome deferred(const char *command, const struct problem *p,
                               const char *const *more)
{
    const char *argv[MOST_ARGUMENTS] = {DEFERRED_COMMAND, command, p->family};
    int count = 3;
    for (int i = 0; p->options[i]; i++)
        argv[count++] = p->options[i];
    for (; *more; more++)
        argv[count++] = *more;
    struct outcome o = run_program(argv);
    if (o.code)
        fail_msg("%s %s: exit code %d; stderr: %s stdout: %.1000s", command, p->family, o.code,
                 o.err, o.out);
    assert_null(strstr(o.err, "deferred driver"));
    return o;
}
#define deferred(command, p, ...) deferred(command, p, (const char *const[]){__VA_ARGS__, NULL})

static void results_are_read_when_the_stream_is_done(void **state)
{
    (void)state;
    static const char *const devices[] = {"gpu:0", "gpu:1"}; /* as H100 and A100 */
    for (int i = 0; i < PROBLEMS * 2; i++) {
        if (!test_in_share(i))
            continue;
        struct outcome o = deferred("run", &problems[i / 2], "--device", devices[i % 2]);
        const char *time = problems[i / 2].time;
        assert_contains(o.out, time ? time : "  1000.0 us a launch");
        assert_null(strstr(o.out, "WRONG"));
        outcome_free(&o);
    }
}

static void random_problems_are_right(void **state)
{
    (void)state;
    for (int i = 0; i < PROBLEMS; i++) {
        const struct problem random = {.family = problems[i].family, .time = NULL};
        struct outcome o =
            deferred("run", &random, "--random-specs", "1", "--seed", "3", "--device", "cpu:sm_90");
        assert_contains(o.out, ", 0 wrong");
        outcome_free(&o);
    }
}

/* Whole milliseconds, the median, the least and the most. */
static void bench_gives_the_time_of_a_launch(void **state)
{
    (void)state;
    for (int i = 0; i < PROBLEMS; i++) {
        if (!test_in_share(i))
            continue;
        struct outcome o = deferred("bench", &problems[i], "--device", "cpu:sm_80", "--replays",
                                    "2", "--launches", "2", "--no-tuning");
        double median = 0, least = 0, most = 0;
        const char *line = strstr(o.out, "  ptxgen ");
        assert_non_null(line);
        assert_int_equal(sscanf(line, "  ptxgen %lf us  (%lf to %lf)", &median, &least, &most), 3);
        if (median < 1000 || fmod(median, 1000) != 0 || least != median || most != median)
            fail_msg("%s: %.100s", problems[i].family, line);
        outcome_free(&o);
    }
}

static void what_else_launches_leaves_nothing_behind(void **state)
{
    (void)state;
    char folder[FOLDER_PATH];
    folder_make(folder);
    setenv("PTXGEN_CACHE_DIR", folder, 1);
    for (int i = 0; i < PROBLEMS; i++) {
        if (!test_in_share(i))
            continue;
        struct outcome o = deferred("profile", &problems[i], "--device", "cpu:sm_80");
        assert_contains(o.out, "instructions");
        outcome_free(&o);
    }
    struct outcome o = deferred("tune", &problems[0], "--device", "cpu:sm_80", "--replays", "1");
    outcome_free(&o);
    o = deferred("run", &problems[0], "--device", "cpu:sm_80"); /* with the tuned tile */
    outcome_free(&o);
    o = run_program((const char *const[]){DEFERRED_COMMAND, "devices", NULL});
    assert_exit(&o, 0);
    outcome_free(&o);
    unsetenv("PTXGEN_CACHE_DIR");
    folder_remove(folder);
}

static void refuses(int code, const char *words, const char *command, const char *option,
                    const char *value)
{
    struct outcome o = run_program((const char *const[]){DEFERRED_COMMAND, command, "dense", "--n",
                                                         "16", "--k", "16", option, value, NULL});
    assert_exit(&o, code);
    assert_contains(o.err, words);
    assert_string_equal(o.out, "");
    outcome_free(&o);
}

static void what_a_card_does_not_do_is_refused_by_name(void **state)
{
    (void)state;
    refuses(3, "there is no gpu:99; the driver has ", "run", "--device", "gpu:99");
    refuses(2, "\"gpu:one\" names no device; after the colon stands a number", "run", "--device",
            "gpu:one");
    refuses(2, "\"gpu:-1\" names no device", "run", "--device", "gpu:-1");
    refuses(2, "\"gpu:\" names no device", "run", "--device", "gpu:");
    refuses(2, "--device gpu:0: only the emulator counts", "profile", "--device", "gpu:0");
    refuses(2, "--plot -: the times go to the standard output", "bench", "--plot", "-");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_family_has_its_problem),
        cmocka_unit_test(results_are_read_when_the_stream_is_done),
        cmocka_unit_test(random_problems_are_right),
        cmocka_unit_test(bench_gives_the_time_of_a_launch),
        cmocka_unit_test(what_else_launches_leaves_nothing_behind),
        cmocka_unit_test(what_a_card_does_not_do_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
