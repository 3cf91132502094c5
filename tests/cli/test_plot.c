/* SPDX-License-Identifier: Apache-2.0 */
/* Plots and cliffs, out of made-up bench JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "command.h"
#include "src/cli/bench_rounds.h"
#include "src/cli/bench_series.h"
#include "tests/dispatch/folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- JSON of times ---- */

static cJSON *start(const char *device)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "family", "marlin");
    cJSON_AddStringToObject(cJSON_AddObjectToObject(json, "device"), "name", device);
    cJSON_AddStringToObject(json, "peer", "cuBLAS (libcublas.so.13)");
    cJSON_AddArrayToObject(json, "rows");
    return json;
}

static void add_time(cJSON *row, const char *name, double microseconds)
{
    cJSON_AddNumberToObject(cJSON_AddObjectToObject(row, name), "median_us", microseconds);
}

static void add_row(cJSON *json, unsigned n, unsigned m, double time)
{
    char shape[64];
    cJSON *row = cJSON_CreateObject();
    snprintf(shape, sizeof shape, "K=64 N=%u M=%u group=128 f16", n, m);
    cJSON_AddStringToObject(row, "shape", shape);
    cJSON_AddNumberToObject(row, "m", m);
    cJSON_AddNumberToObject(row, "floor_us", 0.5 * time);
    add_time(row, "time", time);
    add_time(row, "peer", 2 * time);
    cJSON_AddItemToArray(cJSON_GetObjectItem(json, "rows"), row);
}

static struct bench_series series_of(const double *times, unsigned count)
{
    struct bench_series s;
    size_t row = 0;
    cJSON *json = start("a device");
    for (unsigned i = count; i-- > 0;) /* in any order */
        add_row(json, 128, i + 1, times[i]);
    assert_int_equal(bench_series_read(json, &row, &s, NULL), PTXGEN_OK);
    assert_int_equal(row, count);
    assert_int_equal(s.count, count);
    cJSON_Delete(json);
    return s;
}

/* ---- cliffs ---- */

static void a_cliff_is_an_m_five_percent_slower_than_a_larger_one(void **state)
{
    (void)state;
    const double times[] = {10, 10.4, 10, 20, 22, 21.2, 20, 30, 31.4};
    struct bench_series s = series_of(times, 9);
    struct bench_cliff cliff;
    size_t at = 0;
    assert_true(bench_next_cliff(&s, &at, &cliff));
    assert_true(cliff.from_m == 5 && cliff.to_m == 6 && cliff.worst_m == 5 && cliff.than_m == 7);
    assert_true(cliff.by > 0.0999 && cliff.by < 0.1001);
    assert_false(bench_next_cliff(&s, &at, &cliff));
    bench_series_free(&s);
}

static void cliffs_apart_are_two_and_one_may_be_at_the_end(void **state)
{
    (void)state;
    const double times[] = {12, 10, 30, 40, 20};
    struct bench_series s = series_of(times, 5);
    struct bench_cliff cliff;
    size_t at = 0;
    assert_true(bench_next_cliff(&s, &at, &cliff));
    assert_true(cliff.from_m == 1 && cliff.to_m == 1 && cliff.than_m == 2);
    assert_true(bench_next_cliff(&s, &at, &cliff));
    assert_true(cliff.from_m == 3 && cliff.to_m == 4 && cliff.worst_m == 4 && cliff.than_m == 5);
    assert_false(bench_next_cliff(&s, &at, &cliff));
    bench_series_free(&s);
}

static void a_series_is_named_by_all_but_its_m(void **state)
{
    (void)state;
    struct bench_series s;
    size_t row = 0;
    cJSON *json = start("a \"device\"\n");
    add_row(json, 16, 1, 5);
    add_row(json, 16, 16, 5);
    add_row(json, 24, 1, 5);
    assert_int_equal(bench_series_read(json, &row, &s, NULL), PTXGEN_OK);
    assert_string_equal(s.name, "marlin K=64 N=16 group=128 f16 on a ?device??");
    assert_int_equal(row, 2);
    bench_series_free(&s);
    assert_int_equal(bench_series_read(json, &row, &s, NULL), PTXGEN_OK);
    assert_string_equal(s.name, "marlin K=64 N=24 group=128 f16 on a ?device??");
    bench_series_free(&s);
    assert_int_equal(bench_series_read(json, &row, &s, NULL), PTXGEN_ERROR_NOT_FOUND);
    cJSON_Delete(json);
}

/* ---- rounds ---- */

static void several_rounds_give_medians_and_extremes(void **state)
{
    (void)state;
    static const double medians[] = {5, 9, 4};
    struct bench_rounds *r = bench_rounds_start(2, 3);
    struct bench_row row = {.peer = {.median = 1}}, other = {.plain = {.median = 7}};
    assert_non_null(r);
    for (int i = 0; i < 3; i++) {
        row.plain = (struct timing){medians[i], medians[i] - 1, medians[i] + 1, 20, 100};
        bench_rounds_add(&r[0], &row);
        bench_rounds_add(&r[1], &other);
    }
    bench_rounds_medians(&r[0], &row);
    bench_rounds_medians(&r[1], &other);
    assert_true(row.plain.median == 5 && row.plain.least == 3 && row.plain.most == 10);
    assert_true(row.plain.replays == 60 && row.plain.launches == 100);
    assert_true(row.overlapped.replays == 0 && row.peer.median == 1 && other.plain.median == 7);
    free(r);
}

/* ---- the command ---- */

static char folder[FOLDER_PATH], json_path[FOLDER_PATH + 16], svg_path[FOLDER_PATH + 16];

static int setup(void **state)
{
    (void)state;
    folder_make(folder);
    snprintf(json_path, sizeof json_path, "%s/bench.json", folder);
    snprintf(svg_path, sizeof svg_path, "%s/it's.svg", folder);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    folder_remove(folder);
    return 0;
}

static void write_json(cJSON *json)
{
    char *text = cJSON_Print(json);
    FILE *file = fopen(json_path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
    cJSON_free(text);
    cJSON_Delete(json);
}

static void write_text(const char *text)
{
    FILE *file = fopen(json_path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void plot_draws_our_time_the_peers_and_the_floor(void **state)
{
    (void)state;
    size_t size;
    cJSON *json = start("NVIDIA X <1>");
    for (unsigned m = 1; m <= 512; m++)
        add_row(json, 4096, m, m == 100 ? 40 : 10 + m * 0.01);
    write_json(json);
    struct outcome o = run("plot", json_path, svg_path);
    assert_exit(&o, 0);
    assert_contains(o.out, "cliff: M=100; M=100 takes 263.3 % longer than M=101\n");
    outcome_free(&o);
    char *svg = file_read(svg_path, &size);
    assert_int_equal(strncmp(svg, "<?xml", 5), 0);
    assert_contains(svg, "</svg>");
    assert_contains(svg, "marlin K=64 N=4096 group=128 f16 on NVIDIA X &lt;1>");
    static const char *const texts[] = {
        "> 512<", ">ptxgen<", ">cuBLAS<", ">floor: ", ">rows of activations<", ">over 5 % slower"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_contains(svg, texts[i]);
    assert_null(strstr(svg, "overlapping")); /* which was not measured */
    free(svg);
}

static void one_point_and_wide_ranges_can_be_drawn(void **state)
{
    (void)state;
    cJSON *json = start("d");
    add_row(json, 64, 1, 10);
    write_json(json);
    struct outcome o = run("plot", json_path, svg_path);
    assert_exit(&o, 0);
    outcome_free(&o);
    json = start("d");
    add_row(json, 64, 1, 10);
    add_row(json, 64, 4096, 10000);
    write_json(json);
    o = run("plot", json_path, svg_path, "--force");
    assert_exit(&o, 0);
    assert_contains(o.out, "no cliffs");
    outcome_free(&o);
}

static void plot_refuses_what_is_not_one_shapes_json(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{\"rows\":{}}",
        "{\"rows\":[{\"m\":1}]}",
        "{\"rows\":[{\"m\":1,\"time\":{\"median_us\":-1}}]}",
        "{\"rows\":[{\"m\":1e999,\"time\":{\"median_us\":1}}]}",
        "{\"rows\":[3]}",
        "[]",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        write_text(texts[i]);
        assert_refuses(4, "JSON has no", "plot", json_path, svg_path);
    }
    write_text("{\"rows\":[]}");
    assert_refuses(4, "the JSON has no rows", "plot", json_path, svg_path);
    write_text("{");
    assert_refuses(4, "is not JSON", "plot", json_path, svg_path);
    cJSON *json = start("d");
    add_row(json, 64, 1, 10);
    add_row(json, 128, 1, 10);
    write_json(json);
    assert_refuses(2, "a plot has one shape", "plot", json_path, svg_path);
    assert_refuses(4, "No such file", "plot", "/nowhere/bench.json", svg_path);
    assert_refuses(2, "must be named", "plot", json_path);
}

#define BENCH "bench", "marlin", "--device", "cpu", "--replays", "1", "--launches", "1", "--plot"

static void bench_draws_too_and_says_early_that_it_cannot(void **state)
{
    (void)state;
    size_t size;
    struct outcome o = run(BENCH, svg_path, "--shape", "128x64", "--m", "1:3");
    assert_exit(&o, 0);
    assert_contains(o.out, "tensor ceiling, f16: ");
    outcome_free(&o);
    char *svg = file_read(svg_path, &size);
    assert_contains(svg, "marlin K=128 N=64 group=128 f16 on PTX emulator, as H100");
    free(svg);
    assert_refuses(2, "--plot draws one shape, and --shape has 2", BENCH, svg_path, "--shape",
                   "128x64,64x64");
    assert_refuses(4, "cannot be written", BENCH, "/nowhere/x.svg", "--shape", "128x64");
    char *path = strdup(getenv("PATH"));
    setenv("PATH", folder, 1);
    o = run(BENCH, svg_path, "--shape", "128x64", "--force");
    setenv("PATH", path, 1);
    free(path);
    assert_exit(&o, 4);
    assert_contains(o.err, "gnuplot, which draws plots, cannot be started");
    assert_string_equal(o.out, "");
    outcome_free(&o);
}

static unsigned count_of(const char *text, const char *what)
{
    unsigned count = 0;
    while ((text = strstr(text, what)) != NULL)
        count++, text++;
    return count;
}

static void bench_of_rounds_reports_each_m_once_by_rising_m(void **state)
{
    (void)state;
    for (const char *rounds = "23"; *rounds; rounds++) {
        const char count[2] = {*rounds};
        struct outcome o =
            run("bench", "marlin", "--device", "cpu", "--replays", "1", "--launches", "1",
                "--no-peer", "--shape", "128x64", "--m", "1:2", "--rounds", count);
        assert_exit(&o, 0);
        assert_int_equal(count_of(o.out, "N=64 M="), 2);
        assert_true(strstr(o.out, "N=64 M=1 ") < strstr(o.out, "N=64 M=2 "));
        outcome_free(&o);
    }
    assert_refuses(2, "--rounds 0", "bench", "marlin", "--device", "cpu", "--rounds", "0");
}

#define with_folder(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cliff_is_an_m_five_percent_slower_than_a_larger_one),
        cmocka_unit_test(cliffs_apart_are_two_and_one_may_be_at_the_end),
        cmocka_unit_test(a_series_is_named_by_all_but_its_m),
        cmocka_unit_test(several_rounds_give_medians_and_extremes),
        with_folder(plot_draws_our_time_the_peers_and_the_floor),
        with_folder(one_point_and_wide_ranges_can_be_drawn),
        with_folder(plot_refuses_what_is_not_one_shapes_json),
        with_folder(bench_draws_too_and_says_early_that_it_cannot),
        cmocka_unit_test(bench_of_rounds_reports_each_m_once_by_rising_m),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
