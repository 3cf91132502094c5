/* SPDX-License-Identifier: Apache-2.0 */
/* ptxgen cache, on the emulator and a folder of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "command.h"
#include "src/cli/family.h"

#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static char folder[] = "/tmp/ptxgen-cli-cache.XXXXXX", specs[64];

static int setup(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(specs, sizeof specs, "%s.specs", folder);
    FILE *file = fopen(specs, "w");
    fputs(
        "# two kernels\n\nrmsnorm_q4k --k 256 --n 16\n  marlin --k 128 --n 64 --max-m 8 # small\n",
        file);
    return fclose(file);
}

static int teardown(void **state)
{
    char lock[64];
    (void)state;
    snprintf(lock, sizeof lock, "%s/.lock", folder);
    unlink(lock);
    unlink(specs);
    return rmdir(folder);
}

static void every_family_can_be_warmed(void **state)
{
    const struct family *family;
    (void)state;
    for (size_t i = 0; (family = family_at(i)); i++) {
        const ptxgen_family *kernels = family->harness->family();
        assert_string_equal(kernels->name, family->name);
        assert_true(kernels->spec_bytes <= sizeof((struct family_options *)NULL)->spec);
    }
}

/* Warm, warm again, list, show, verify, damage, verify, prune, clear. */
static void an_entry_is_made_listed_found_damaged_and_removed(void **state)
{
    (void)state;
    struct outcome o = run("cache", "warm", specs, "--device", "cpu", "--folder", folder);
    assert_exit(&o, 0);
    assert_contains(o.out, "rmsnorm_q4k k=256 n=16,0,0");
    assert_contains(o.out, "assembled in");
    outcome_free(&o);
    o = run("cache", "warm", specs, "--device", "cpu", "--folder", folder, "--threads", "1");
    assert_exit(&o, 0);
    assert_contains(o.out, "[1/2] rmsnorm_q4k");
    assert_contains(o.out, "[2/2] marlin");
    assert_contains(o.out, "was there");
    outcome_free(&o);

    o = run("cache", "list", "--folder", folder);
    assert_exit(&o, 0);
    assert_contains(o.out, "sm_90a marlin k=128 n=64 group=");
    assert_contains(o.out, "2 entries and 2 memos in ");
    char key[13] = {0};
    memcpy(key, o.out, 12);
    outcome_free(&o);
    o = run("cache", "show", key, "--folder", folder);
    assert_exit(&o, 0);
    assert_contains(o.out, key);
    assert_contains(o.out, "\nlibrary: ptxgen ");
    outcome_free(&o);
    assert_refuses(4, "begins with zz", "cache", "show", "zz", "--folder", folder);

    o = run("cache", "verify", "--folder", folder);
    assert_exit(&o, 0);
    outcome_free(&o);
    char pattern[64];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/*.cubin", folder);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    assert_int_equal(truncate(found.gl_pathv[0], 100), 0);
    globfree(&found);
    snprintf(pattern, sizeof pattern, "%s/*.memo", folder);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 2);
    assert_int_equal(truncate(found.gl_pathv[0], 100), 0);
    globfree(&found);
    o = run("cache", "list", "--folder", folder);
    assert_contains(o.out, "  memo  DAMAGED: it is damaged\n");
    outcome_free(&o);
    o = run("cache", "verify", "--folder", folder);
    assert_exit(&o, 4);
    assert_contains(o.out, "its cubin is not as long as the manifest says");
    assert_contains(o.out, ".memo: it is damaged");
    outcome_free(&o);
    o = run("cache", "prune", "--folder", folder);
    assert_exit(&o, 0);
    assert_contains(o.out, "removed 0 entries and 2 strays");
    outcome_free(&o);
    o = run("cache", "clear", "--folder", folder);
    assert_exit(&o, 0);
    assert_contains(o.out, "removed 1 entry and 0 strays");
    outcome_free(&o);
}

/* Whatever the reason is, the exit status and the line say that nothing was kept. */
static void what_is_not_kept_is_said_with_its_line(void **state)
{
    char line[128];
    (void)state;
    snprintf(line, sizeof line, "ptxgen: %s:3: the kernel is not kept: ", specs);
    setenv("PTXGEN_CACHE", "off", 1);
    struct outcome o = run("cache", "warm", specs, "--device", "cpu", "--folder", folder);
    unsetenv("PTXGEN_CACHE");
    assert_exit(&o, 4);
    assert_contains(o.out, ", NOT KEPT\n");
    assert_contains(o.err, line);
    assert_contains(o.err, "PTXGEN_CACHE switches the disk cache off");
    outcome_free(&o);
    o = run("cache", "warm", specs, "--device", "cpu", "--folder", folder, "--max-bytes", "1");
    assert_exit(&o, 4);
    assert_contains(o.err, line);
    assert_contains(o.err, "is larger than the whole cache may be, 1");
    outcome_free(&o);
    char lock[64];
    snprintf(lock, sizeof lock, "%s/.lock", folder);
    int held = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(flock(held, LOCK_EX), 0);
    o = run("cache", "warm", specs, "--device", "cpu", "--folder", folder);
    close(held);
    assert_exit(&o, 4);
    assert_contains(o.err, line);
    assert_contains(o.err, "cannot be locked");
    outcome_free(&o);
}

static void a_folder_is_no_list_to_warm(void **state)
{
    (void)state;
    assert_refuses(4, "cannot be read: Is a directory", "cache", "warm", folder, "--device", "cpu",
                   "--folder", folder);
}

static void what_cannot_be_warmed_is_said_with_its_line(void **state)
{
    (void)state;
    FILE *file = fopen(specs, "w");
    fputs("rmsnorm_q4k --k 257 --n 16\n", file);
    fclose(file);
    struct outcome o = run("cache", "warm", specs, "--device", "cpu", "--folder", folder);
    assert_exit(&o, 2);
    assert_contains(o.out, "failed: rmsnorm_q4k: K = 257");
    outcome_free(&o);
    file = fopen(specs, "w");
    fputs("\nrmsnorm_q4k --what 257\n", file);
    fclose(file);
    assert_refuses(2, ".specs:2", "cache", "warm", specs, "--device", "cpu", "--folder", folder);
    assert_refuses(4, "cannot be read", "cache", "warm", "/nonexistent/specs", "--folder", folder);
    assert_refuses(2, "must be named", "cache");
    assert_refuses(2, "must be named", "cache", "polish");
    assert_refuses(2, "show needs a KEY", "cache", "show");
    assert_refuses(2, "list takes no argument", "cache", "list", "all");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_family_can_be_warmed),
        cmocka_unit_test(an_entry_is_made_listed_found_damaged_and_removed),
        cmocka_unit_test(what_is_not_kept_is_said_with_its_line),
        cmocka_unit_test(a_folder_is_no_list_to_warm),
        cmocka_unit_test(what_cannot_be_warmed_is_said_with_its_line),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
