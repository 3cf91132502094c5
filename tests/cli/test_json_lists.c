/* SPDX-License-Identifier: Apache-2.0 */
/* --json of the commands that list or check: the same facts as the lines for people. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "command.h"
#include "tests/dispatch/folder.h"

#include <cJSON.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[FOLDER_PATH];

static int setup(void **state)
{
    (void)state;
    folder_make(folder);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    folder_remove(folder);
    return 0;
}

static cJSON *parsed(struct outcome *o, int code)
{
    assert_exit(o, code);
    cJSON *json = cJSON_ParseWithOpts(o->out, NULL, 0);
    assert_non_null(json);
    outcome_free(o);
    return json;
}

static const cJSON *member(const cJSON *object, const char *name)
{
    const cJSON *found = cJSON_GetObjectItemCaseSensitive(object, name);
    if (!found)
        fail_msg("there is no %s", name);
    return found;
}

static const char *text_of(const cJSON *object, const char *name)
{
    const cJSON *found = member(object, name);
    assert_true(cJSON_IsString(found));
    return found->valuestring;
}

static double number_of(const cJSON *object, const char *name)
{
    const cJSON *found = member(object, name);
    assert_true(cJSON_IsNumber(found));
    return found->valuedouble;
}

static void families_and_instructions_are_listed(void **state)
{
    (void)state;
    static const char *const titles[] = {"families", "instructions"};
    for (int i = 0; i < 2; i++) {
        struct outcome lines = i ? run("list", "--instructions") : run("list");
        struct outcome o = i ? run("list", "--json", "--instructions") : run("list", "--json");
        cJSON *json = parsed(&o, 0);
        const cJSON *item;
        assert_true(cJSON_GetArraySize(member(json, titles[i])) > (i ? 300 : 5));
        cJSON_ArrayForEach(item, member(json, titles[i]))
        {
            assert_contains(lines.out, text_of(item, "name"));
            assert_contains(lines.out, text_of(item, "text"));
        }
        cJSON_Delete(json);
        outcome_free(&lines);
    }
}

static void devices_are_listed(void **state)
{
    (void)state;
    struct outcome lines = run("devices"), o = run("devices", "--json");
    cJSON *json = parsed(&o, 0);
    const cJSON *item, *hopper = NULL;
    cJSON_ArrayForEach(item, member(json, "devices"))
    {
        assert_contains(lines.out, text_of(item, "device"));
        assert_contains(lines.out, text_of(item, "name"));
        if (!strcmp(text_of(item, "device"), "cpu:sm_90"))
            hopper = item;
    }
    cJSON_ArrayForEach(item, member(json, "missing"))
        assert_contains(lines.out, text_of(item, "reason"));
    assert_non_null(hopper);
    assert_true(number_of(hopper, "compute_capability") == 90);
    assert_true(number_of(hopper, "multiprocessors") == 132);
    assert_true(number_of(hopper, "shared_bytes_per_cta") == 227 * 1024);
    assert_true(cJSON_IsTrue(member(hopper, "emulated")));
    cJSON_Delete(json);
    outcome_free(&lines);
}

#define INSPECTED                                                                                  \
    "inspect", "marlin", "--k", "512", "--n", "256", "--m", "1,64", "--chip", "H200", "--target",  \
        "sm_90a"

static void inspect_has_kernels_and_predictions(void **state)
{
    (void)state;
    char line[300];
    struct outcome lines = run(INSPECTED), o = run(INSPECTED, "--json");
    cJSON *json = parsed(&o, 0);
    const cJSON *item, *mix;
    assert_string_equal(text_of(json, "family"), "marlin");
    assert_string_equal(text_of(json, "target"), "sm_90a");
    assert_true(cJSON_GetArraySize(member(json, "kernels")) > 1);
    cJSON_ArrayForEach(item, member(json, "kernels"))
    {
        snprintf(line, sizeof line, "%s\n  %.0f instructions, %.0f threads a CTA\n",
                 text_of(item, "name"), number_of(item, "instructions"),
                 number_of(item, "threads"));
        assert_contains(lines.out, line);
        snprintf(line, sizeof line, "%.0f live at the peak\n  shared memory: %.0f bytes",
                 number_of(item, "registers_live_at_peak"), number_of(item, "shared_bytes"));
        assert_contains(lines.out, line);
        double counted = 0;
        cJSON_ArrayForEach(mix, member(item, "mix")) counted += mix->valuedouble;
        assert_true(counted == number_of(item, "instructions"));
    }
    assert_int_equal(cJSON_GetArraySize(member(json, "predictions")), 2);
    cJSON_ArrayForEach(item, member(json, "predictions"))
    {
        snprintf(line, sizeof line, "M=%.0f: %s, %.0f CTA", number_of(item, "m"),
                 text_of(item, "entry"), number_of(item, "ctas"));
        assert_contains(lines.out, line);
        snprintf(line, sizeof line, "floor: %.2f us at %.0f GB/s", number_of(item, "floor_us"),
                 number_of(item, "bytes_per_second") / 1e9);
        assert_contains(lines.out, line);
    }
    cJSON_Delete(json);
    outcome_free(&lines);
}

static void run_has_a_problem_for_each_m(void **state)
{
    (void)state;
    struct outcome o = run("run", "dense", "--k", "64", "--n", "40", "--m", "1,0,3", "--device",
                           "cpu:sm_80", "--json");
    static const double outputs[] = {40, 0, 120};
    cJSON *json = parsed(&o, 0);
    const cJSON *item;
    int i = 0;
    assert_string_equal(text_of(json, "family"), "dense");
    assert_int_equal(cJSON_GetArraySize(member(json, "problems")), 3);
    cJSON_ArrayForEach(item, member(json, "problems"))
    {
        assert_true(cJSON_IsTrue(member(item, "right")));
        assert_true(number_of(item, "outputs") == outputs[i++]);
        assert_true(number_of(item, "error_of_bound") <= 1);
    }
    cJSON_Delete(json);
    o = run("run", "dense", "--random-specs", "3", "--seed", "5", "--device", "cpu:sm_80",
            "--json");
    json = parsed(&o, 0);
    i = 0;
    cJSON_ArrayForEach(item, member(json, "problems"))
        assert_true(number_of(item, "seed") == 5 + i++);
    assert_int_equal(i, 3);
    cJSON_Delete(json);
    assert_refuses(2, "marlin: ", "run", "marlin", "--k", "100", "--n", "64", "--json", "--device",
                   "cpu");
}

static void the_cache_lists_its_entries(void **state)
{
    (void)state;
    char list[FOLDER_PATH + 16], cache[FOLDER_PATH + 16];
    snprintf(list, sizeof list, "%s/specs", folder);
    snprintf(cache, sizeof cache, "%s/cache", folder);
    file_write(list, "dense --k 64 --n 64\n", 20);
    struct outcome o = run("cache", "warm", list, "--folder", cache, "--device", "cpu:sm_80");
    assert_exit(&o, 0);
    outcome_free(&o);
    struct outcome lines = run("cache", "list", "--folder", cache);
    o = run("cache", "list", "--folder", cache, "--json");
    cJSON *json = parsed(&o, 0);
    const cJSON *item;
    int entries = 0;
    cJSON_ArrayForEach(item, member(json, "entries"))
    {
        char key[13];
        if (cJSON_IsTrue(member(item, "memo")))
            continue;
        entries++;
        snprintf(key, sizeof key, "%s", text_of(item, "key"));
        assert_contains(lines.out, key);
        assert_contains(lines.out, text_of(item, "spec"));
        assert_string_equal(text_of(item, "family"), "dense");
    }
    assert_int_equal(entries, 1);
    cJSON_Delete(json);
    outcome_free(&lines);
    assert_refuses(2, "clear prints no JSON; list does\n", "cache", "clear", "--json", "--folder",
                   cache);
}

static void a_pack_lists_its_kernels(void **state)
{
    (void)state;
    char list[FOLDER_PATH + 16], pack[FOLDER_PATH + 16];
    snprintf(list, sizeof list, "%s/specs", folder);
    snprintf(pack, sizeof pack, "%s/kernels.pack", folder);
    file_write(list, "dense --k 64 --n 64 # one\nquantise --k 256\n", 43);
    struct outcome o = run("pack", list, "-o", pack, "--target", "H200,RTX-4090");
    assert_exit(&o, 0);
    outcome_free(&o);
    struct outcome lines = run("pack", "--list", pack);
    assert_exit(&lines, 0);
    o = run("pack", "--list", pack, "--json");
    cJSON *json = parsed(&o, 0);
    const cJSON *item;
    int hopper = 0;
    assert_int_equal(cJSON_GetArraySize(member(json, "kernels")), 4);
    cJSON_ArrayForEach(item, member(json, "kernels"))
    {
        assert_contains(lines.out, text_of(item, "spec"));
        assert_contains(lines.out, text_of(item, "target"));
        assert_string_equal(text_of(item, "code"), "text");
        assert_true(strlen(text_of(item, "revision")) == 64);
        hopper +=
            !strcmp(text_of(item, "target"), "sm_90a, 132 multiprocessors, 232448 shared bytes");
    }
    assert_int_equal(hopper, 2);
    cJSON_Delete(json);
    outcome_free(&lines);
    assert_refuses(4, "is there already", "pack", list, "-o", pack);
    assert_refuses(2, "-o FILE must be given\n", "pack", list);
    assert_refuses(2, "a SPECFILE must be named, or with --list a pack\n", "pack");
    assert_refuses(2, "--list takes a pack alone\n", "pack", "--list", pack, "-o", list);
    assert_refuses(2, "--json goes with --list\n", "pack", list, "-o", pack, "--json");
    assert_refuses(2, "--target Voodoo2: ", "pack", list, "-o", pack, "--target", "H200,Voodoo2");
    char targets[34 * 6] = "sm_80";
    for (int i = 1; i < 33; i++)
        strcat(targets, ",sm_80");
    char says[300];
    snprintf(says, sizeof says, "--target %s: at most 32 targets\n", targets);
    assert_refuses(2, says, "pack", list, "-o", pack, "--target", targets);
    assert_refuses(4, "ptxgen: /nonexistent/list cannot be read: No such file or directory\n",
                   "pack", "/nonexistent/list", "-o", pack);
    assert_refuses(4, "begins with \"ptxgenPK\"", "pack", "--list", list);
    assert_refuses(4, "the assembler /nonexistent cannot be run: No such file", "pack", list, "-o",
                   pack, "--force", "--ptxas", "/nonexistent");
    assert_refuses(6, "specs:1: false refuses a text for sm_80: \n", "pack", list, "-o", pack,
                   "--force", "--ptxas", "false");
    assert_refuses(4, "the assembler's ", "pack", list, "-o", pack, "--force", "--ptxas", "true");
    setenv("TMPDIR", "/nonexistent", 1);
    assert_refuses(4, "no folder for the assembler in /nonexistent: No such file or directory\n",
                   "pack", list, "-o", pack, "--force", "--ptxas", "true");
    unsetenv("TMPDIR");
    file_write(list, "dense --k 64 --n 64\nmarlin --k 100 --n 64\n", 42);
    assert_refuses(2, "specs:2: marlin: ", "pack", list, "-o", pack, "--force");
    char line[400] = "dense --k 64 --n 64"; /* five words, then 58 more, or 59 */
    for (int i = 0; i < 29; i++)
        strcat(line, " --k 64");
    file_write(list, line, strlen(line));
    o = run("pack", list, "-o", pack, "--force");
    assert_exit(&o, 0);
    outcome_free(&o);
    strcat(line, " --bias # none");
    file_write(list, line, strlen(line));
    assert_refuses(2, "specs:1: 64 words, more than the 63 of a kernel\n", "pack", list, "-o", pack,
                   "--force");
}

static void a_pack_is_run_and_nothing_else(void **state)
{
    (void)state;
    char list[FOLDER_PATH + 16], pack[FOLDER_PATH + 16];
    snprintf(list, sizeof list, "%s/run.specs", folder);
    snprintf(pack, sizeof pack, "%s/run.pack", folder);
    file_write(list, "dense --k 64 --n 64\nquantise --k 256\n", 37);
    struct outcome o = run("pack", list, "-o", pack, "--target", "sm_80");
    assert_exit(&o, 0);
    outcome_free(&o);
    o = run("run", "dense", "--k", "64", "--n", "64", "--m", "3", "--device", "cpu:sm_80", "--pack",
            pack);
    assert_exit(&o, 0);
    assert_contains(o.out, "\n  of the pack: a text of ");
    outcome_free(&o);
    o = run("run", "quantise", "--k", "256", "--device", "cpu:sm_80", "--pack", pack, "--json");
    cJSON *json = parsed(&o, 0);
    assert_contains(text_of(cJSON_GetArrayItem(member(json, "problems"), 0), "of_pack"),
                    "a text of ");
    cJSON_Delete(json);
    assert_refuses(4, "ptxgen: the pack has no kernel of this spec that runs on PTX emulator, as ",
                   "run", "dense", "--k", "64", "--n", "72", "--device", "cpu:sm_80", "--pack",
                   pack);
    assert_refuses(4, "ptxgen: the pack has no kernel of this spec that runs on PTX emulator, as ",
                   "run", "dense", "--k", "64", "--n", "64", "--device", "cpu:sm_90", "--pack",
                   pack);
    assert_refuses(4, "ptxgen: dense was not run: the pack /nonexistent cannot be opened: ", "run",
                   "dense", "--k", "64", "--n", "64", "--device", "cpu", "--pack", "/nonexistent");
    assert_refuses(2, "no other option of one goes with it\n", "run", "dense", "--random-specs",
                   "1", "--pack", pack);
}

/* The assembler has begun to write its cubin when the command is ended. */
static void a_signal_leaves_no_folder_of_the_assembler(void **state)
{
    (void)state;
    char list[FOLDER_PATH + 16], pack[FOLDER_PATH + 16], script[FOLDER_PATH + 16],
        parent[FOLDER_PATH + 16];
    static const char assembler[] = "#!/bin/sh\n"
                                    "[ -s \"$2\" ] && echo part > \"$4\" && kill -TERM $PPID\n"
                                    "sleep 1\n";
    snprintf(list, sizeof list, "%s/specs", folder);
    snprintf(pack, sizeof pack, "%s/ended.pack", folder);
    snprintf(script, sizeof script, "%s/assembler", folder);
    snprintf(parent, sizeof parent, "%s/scratch", folder);
    file_write(list, "dense --k 64 --n 64\n", 20);
    file_write(script, assembler, sizeof assembler - 1);
    assert_int_equal(chmod(script, 0700), 0);
    assert_int_equal(mkdir(parent, 0700), 0);
    setenv("TMPDIR", parent, 1);
    struct outcome o = run("pack", list, "-o", pack, "--ptxas", script);
    unsetenv("TMPDIR");
    assert_exit(&o, 128 + SIGTERM);
    outcome_free(&o);
    assert_int_equal(folder_count(parent, ""), 0);
    assert_int_equal(rmdir(parent), 0);
}

static void the_doctor_tries_each_family(void **state)
{
    (void)state;
    struct outcome families = run("list"), o = run("doctor", "--device", "cpu:sm_80", "--json");
    cJSON *json = parsed(&o, 0);
    const cJSON *item;
    int kernels = 0, lines = 0;
    cJSON_ArrayForEach(item, member(json, "steps"))
    {
        assert_true(!strcmp(text_of(item, "finding"), "ok") ||
                    !strcmp(text_of(item, "finding"), "note"));
        kernels += !strcmp(text_of(item, "step"), "kernel");
    }
    for (const char *at = families.out; (at = strchr(at, '\n')); at++)
        lines++;
    assert_int_equal(kernels, lines);
    cJSON_Delete(json);
    outcome_free(&families);
    o = run("doctor", "--device", "cpu:sm_80");
    assert_exit(&o, 0);
    assert_contains(o.out, "ok      driver   CUDA ");
    outcome_free(&o);
    o = run("doctor", "--device", "tpu");
    assert_exit(&o, 3);
    assert_contains(o.out, "FAILED  driver   no device is named \"tpu\"");
    outcome_free(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(families_and_instructions_are_listed),
        cmocka_unit_test(devices_are_listed),
        cmocka_unit_test(inspect_has_kernels_and_predictions),
        cmocka_unit_test(run_has_a_problem_for_each_m),
        cmocka_unit_test(the_cache_lists_its_entries),
        cmocka_unit_test(a_pack_lists_its_kernels),
        cmocka_unit_test(a_pack_is_run_and_nothing_else),
        cmocka_unit_test(a_signal_leaves_no_folder_of_the_assembler),
        cmocka_unit_test(the_doctor_tries_each_family),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
