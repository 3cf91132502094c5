/* SPDX-License-Identifier: Apache-2.0 */
/* ptxgen tune, on the emulator and a folder of its own; and how it chooses, on made-up times. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "command.h"
#include "src/harness/device.h"

#include <ptxgen/marlin.h>
#include "src/cli/tune_choice.h"
#include "tests/dispatch/folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- choosing ---- */

/* Two entries of two tiles each, at three M; the plan has the first tile of each entry. */
static struct tune_table table_of(const double seconds[4][3])
{
    static const char *const entries[] = {"small", "small", "large", "large"};
    struct tune_table t = {.ms = {1, 8, 64}, .m_count = 3, .tile_count = 4, .own = {0, 0, 2}};
    for (unsigned i = 0; i < 4; i++) {
        t.tiles[i].numbers[0] = i;
        t.tiles[i].entry = entries[i];
        memcpy(t.tiles[i].seconds, seconds[i], sizeof seconds[i]);
    }
    return t;
}

static void assert_chosen(const double seconds[4][3], unsigned a, unsigned b, unsigned c)
{
    struct tune_table t = table_of(seconds);
    tune_choose(&t);
    assert_int_equal(t.chosen[0], a);
    assert_int_equal(t.chosen[1], b);
    assert_int_equal(t.chosen[2], c);
}

static void the_fastest_tile_is_chosen_for_each_m(void **state)
{
    (void)state;
    assert_chosen((const double[4][3]){{4, 4, 9}, {3, 3, 9}, {5, 5, 5}, {6, 6, 4}}, 1, 1, 3);
    assert_chosen((const double[4][3]){{4, 4, 9}, {5, 5, 9}, {3, 3, 5}, {6, 6, 6}}, 2, 2, 2);
}

static void an_entry_has_one_tile_that_is_best_over_all_m(void **state)
{
    (void)state;
    /* tile 0 is best at M = 1, tile 1 by more at M = 8 */
    assert_chosen((const double[4][3]){{3, 8, 99}, {4, 4, 99}, {50, 50, 5}, {50, 50, 6}}, 1, 1, 2);
    assert_chosen((const double[4][3]){{2, 10, 99}, {5, 5, 99}, {50, 50, 5}, {50, 50, 6}}, 0, 0, 2);
}

static void what_is_not_a_percent_faster_leaves_the_plans_own(void **state)
{
    (void)state;
    assert_chosen((const double[4][3]){{4, 4, 9}, {3.97, 3.97, 9}, {5, 5, 5}, {6, 6, 6}}, 0, 0, 2);
    assert_chosen((const double[4][3]){{4, 4, 9}, {3.94, 3.94, 9}, {5, 5, 5}, {6, 6, 6}}, 1, 1, 2);
}

static void a_tile_is_not_chosen_where_it_was_not_measured(void **state)
{
    (void)state;
    assert_chosen((const double[4][3]){{4, 4, 9}, {1, 0, 0}, {5, 5, 5}, {6, 6, 6}}, 1, 2, 2);
}

static void a_tile_that_gains_less_than_two_percent_is_left_out(void **state)
{
    (void)state;
    assert_chosen((const double[4][3]){{4, 4, 4}, {9, 9, 9}, {9, 9, 3.98}, {9, 9, 9}}, 0, 0, 0);
    assert_chosen((const double[4][3]){{4, 4, 4}, {9, 9, 9}, {9, 9, 3.85}, {9, 9, 9}}, 0, 0, 2);
}

static void equal_neighbours_are_one_range(void **state)
{
    (void)state;
    struct tune_table t =
        table_of((const double[4][3]){{4, 4, 9}, {3, 3, 9}, {5, 5, 5}, {6, 6, 4}});
    ptxgen_tuned_range ranges[TUNE_MOST_MS];
    tune_choose(&t);
    assert_int_equal(tune_ranges(&t, ranges), 2);
    assert_int_equal(ranges[0].to_m, 8);
    assert_int_equal(ranges[0].tile[0], 1);
    assert_int_equal(ranges[1].to_m, 64);
    assert_int_equal(ranges[1].tile[0], 3);
}

/* ---- the command ---- */

static char folder[FOLDER_PATH];

static int setup(void **state)
{
    (void)state;
    folder_make(folder);
    unsetenv("PTXGEN_CACHE");
    return setenv("PTXGEN_CACHE_DIR", folder, 1);
}

static int teardown(void **state)
{
    (void)state;
    folder_remove(folder);
    return unsetenv("PTXGEN_CACHE_DIR");
}

#define TUNE "tune", "marlin", "--device", "cpu", "--k", "384", "--n", "128", "--replays", "1"
#define BENCH                                                                                      \
    "bench", "marlin", "--device", "cpu", "--k", "384", "--n", "128", "--replays", "1",            \
        "--launches", "1", "--m", "3"

static const char *file_name(void)
{
    static char path[FOLDER_PATH + 16];
    snprintf(path, sizeof path, "%s/tuning", folder);
    return path;
}

static void tune_keeps_what_it_prints(void **state)
{
    (void)state;
    struct outcome o = run(TUNE, "--m", "3");
    size_t size;
    assert_exit(&o, 0);
    assert_contains(o.out, "marlin k=384 n=128 group=128 f16 max_m=0 on PTX emulator, as H100");
    assert_contains(o.out, "  kept in ");
    const char *row = strstr(o.out, "\n       3  "), *tile = row ? strstr(row, "tile_m=") : NULL;
    assert_non_null(tile);
    char *kept = file_read(file_name(), &size), line[256];
    snprintf(line, sizeof line, "\nm 1-3: %.*s\n", (int)strcspn(tile, "\n"), tile);
    assert_contains(kept, line);
    free(kept);
    outcome_free(&o);
}

/* Has M up to 8 served by a tile of 16 rows, which no plan does by itself. */
static void keep_an_unusual_choice(void)
{
    struct device device;
    ptxgen_cache *cache;
    ptxgen_marlin_plan plan;
    const ptxgen_marlin_spec spec = {.k = 384, .n = 128, .group_size = 128, .type = PTXGEN_F16};
    const ptxgen_family *marlin = ptxgen_marlin_family();
    ptxgen_tuned_range range = {.to_m = 8};
    assert_int_equal(device_open("cpu", &device, NULL), PTXGEN_OK);
    const ptxgen_target target = ptxgen_device_target(&device.facts);
    assert_int_equal(ptxgen_marlin_make_plan(&spec, &target, &plan, NULL), PTXGEN_OK);
    for (size_t i = 0; marlin->tiling->candidate(&plan, i, range.tile); i++)
        if (range.tile[0] == 16)
            break;
    assert_int_equal(ptxgen_cache_open(NULL, &cache, NULL), PTXGEN_OK);
    assert_int_equal(
        ptxgen_tuning_store(cache, &device.facts, marlin, &spec, &target, &range, 1, NULL),
        PTXGEN_OK);
    ptxgen_cache_close(cache);
    device_close(&device);
}

static void assert_bench(const char *option, const char *entry, const char *complaint)
{
    struct outcome o = run(BENCH, option);
    assert_exit(&o, 0);
    assert_contains(o.out, entry);
    assert_contains(o.err, complaint);
    outcome_free(&o);
}

static void bench_and_run_take_what_was_kept(void **state)
{
    (void)state;
    const char *const own = "; marlin_m8\n", *const kept = "; marlin_m16\n";
    assert_bench(NULL, own, "");
    keep_an_unusual_choice();
    assert_bench(NULL, kept, "");
    assert_bench("--no-tuning", own, "");
    struct outcome o =
        run("run", "marlin", "--device", "cpu", "--k", "384", "--n", "128", "--m", "1:4");
    assert_exit(&o, 0);
    outcome_free(&o);
    setenv("PTXGEN_CACHE", "off", 1);
    assert_bench(NULL, own, "");
    unsetenv("PTXGEN_CACHE");
    size_t size;
    char *text = file_read(file_name(), &size);
    text[size - 2] ^= 1; /* in the checksum */
    file_write(file_name(), text, size);
    free(text);
    assert_bench(NULL, own, "/tuning is not used: its checksum is wrong");
}

static void a_dry_run_keeps_nothing(void **state)
{
    (void)state;
    struct outcome o = run(TUNE, "--m", "2", "--dry-run");
    assert_exit(&o, 0);
    assert_contains(o.out, "on average");
    assert_int_not_equal(access(file_name(), F_OK), 0);
    outcome_free(&o);
}

static void what_cannot_be_tuned_is_refused(void **state)
{
    (void)state;
    assert_refuses(2, "w8a8 has no tiles to choose", "tune", "w8a8", "--device", "cpu", "--k",
                   "256", "--n", "64");
    assert_refuses(2, "marlin needs --k and --n", "tune", "marlin", "--device", "cpu");
    assert_refuses(2, "3 is there twice", TUNE, "--m", "3,1,3");
    assert_refuses(2, "at most 32 numbers", TUNE, "--m", "1:33");
    assert_refuses(2, "FIRST:LAST", TUNE, "--m", "8:1");
    assert_refuses(2, "FIRST:LAST", TUNE, "--m", "1:");
    assert_int_not_equal(access(file_name(), F_OK), 0);
}

#define HOMELESS                                                                                   \
    "env", "-u", "HOME", "-u", "XDG_CACHE_HOME", "-u", "PTXGEN_CACHE_DIR", PTXGEN_COMMAND

static void without_a_folder_tune_measures_nothing_and_others_do_without(void **state)
{
    (void)state;
    static const char sentence[] = "no cache folder is known";
    struct outcome o = run_program((const char *const[]){HOMELESS, TUNE, "--m", "3", NULL});
    assert_exit(&o, 4);
    assert_contains(o.err, "marlin was not tuned: ");
    assert_contains(o.err, sentence);
    assert_string_equal(o.out, "");
    outcome_free(&o);
    o = run_program((const char *const[]){HOMELESS, "cache", "list", NULL});
    assert_exit(&o, 4);
    assert_contains(o.err, sentence);
    outcome_free(&o);
    o = run_program((const char *const[]){HOMELESS, "run", "marlin", "--device", "cpu", "--k",
                                          "384", "--n", "128", NULL});
    assert_exit(&o, 0);
    outcome_free(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fastest_tile_is_chosen_for_each_m),
        cmocka_unit_test(an_entry_has_one_tile_that_is_best_over_all_m),
        cmocka_unit_test(what_is_not_a_percent_faster_leaves_the_plans_own),
        cmocka_unit_test(a_tile_is_not_chosen_where_it_was_not_measured),
        cmocka_unit_test(a_tile_that_gains_less_than_two_percent_is_left_out),
        cmocka_unit_test(equal_neighbours_are_one_range),
        cmocka_unit_test_setup_teardown(tune_keeps_what_it_prints, setup, teardown),
        cmocka_unit_test_setup_teardown(bench_and_run_take_what_was_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(a_dry_run_keeps_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(what_cannot_be_tuned_is_refused, setup, teardown),
        cmocka_unit_test(without_a_folder_tune_measures_nothing_and_others_do_without),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
