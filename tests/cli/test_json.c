/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The figures of the two commands that print JSON, bench and profile: each by its name, in its
 * unit and place, and equal to what the lines for people say. A figure without a row in the tables
 * here fails, so that a new one gets its row.
 */
#include "tests/cli/command.h"
#include "tests/status.h"

#include "src/cli/bench_report.h"
#include "src/cli/profile_report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- what is printed ---- */

static int kept_stdout = -1;
static FILE *captured;

static void capture_begin(void)
{
    fflush(stdout);
    kept_stdout = dup(STDOUT_FILENO);
    captured = tmpfile();
    assert_non_null(captured);
    assert_true(dup2(fileno(captured), STDOUT_FILENO) >= 0);
}

/* The text since the beginning; the caller frees it. */
static char *capture_end(void)
{
    enum { MOST = 1 << 16 };
    char *text = calloc(MOST, 1);
    fflush(stdout);
    dup2(kept_stdout, STDOUT_FILENO);
    close(kept_stdout);
    rewind(captured);
    size_t length = fread(text, 1, MOST - 1, captured);
    assert_true(length < MOST - 1);
    fclose(captured);
    return text;
}

/* ---- figures ---- */

/* A number in the JSON by its path, as "rows.0.time.least_us"; a string or bool has NAN. */
struct figure {
    const char *path;
    double value;
};

static const struct figure *next_figure; /* of the table that is being compared */

static void compare(const cJSON *item, const char *path)
{
    char below[200];
    int index = 0;
    const cJSON *child;
    if (cJSON_IsArray(item) || cJSON_IsObject(item)) {
        cJSON_ArrayForEach(child, item)
        {
            if (cJSON_IsArray(item))
                snprintf(below, sizeof below, "%s.%d", path, index++);
            else
                snprintf(below, sizeof below, "%s%s%s", path, *path ? "." : "", child->string);
            compare(child, below);
        }
        return;
    }
    const struct figure *f = next_figure++;
    if (!f->path || strcmp(f->path, path) != 0)
        fail_msg("%s stands where %s should", path, f->path ? f->path : "nothing");
    if (!cJSON_IsNumber(item) ? !isnan(f->value)
                              : !(fabs(item->valuedouble - f->value) <= 1e-9 * fabs(f->value)))
        fail_msg("%s is %.12g, not %.12g", path, item->valuedouble, f->value);
}

/* Every figure of the text, in order, is the table's. */
static void assert_figures(const char *text, const struct figure *figures)
{
    cJSON *json = cJSON_Parse(text);
    assert_non_null(json);
    next_figure = figures;
    compare(json, "");
    if (next_figure->path)
        fail_msg("%s is missing", next_figure->path);
    cJSON_Delete(json);
}

/* ---- bench ---- */

static const struct timing ceiling_time = {10e-6, 9e-6, 12e-6, 7, 30};
static const struct timing tensor_time = {40e-6, 39e-6, 43e-6, 8, 31};
static const struct timing plain_time = {20e-6, 18e-6, 25e-6, 3, 40};
static const struct timing overlapped_time = {16e-6, 15e-6, 17.5e-6, 4, 41};
static const struct timing peer_time = {32e-6, 31e-6, 36e-6, 5, 42};

/* 2e12 bytes a second: 20 million bytes take 10 us, and 3e9 operations 6 us of 5e14 a second. */
static void report(bool as_json, bool multiplies, ptxgen_status *status)
{
    struct device device = {.emulated = false};
    struct bench_report r = {
        .family = "marlin", .ceiling = {2e12, 123456789, 2, ceiling_time}, .peer = "a library"};
    const struct tensor_ceiling tensor = {5e14, "a form", tensor_time};
    struct bench_row row = {.subject = {.k = 4096,
                                        .n = 1024,
                                        .m = 16,
                                        .shape = "K=4096 N=1024 M=16",
                                        .copies = 11,
                                        .weight_bytes = 2162688,
                                        .bytes = 20000000,
                                        .flops = 3e9,
                                        .tensor_f16 = multiplies,
                                        .plan_seconds = 21e-6,
                                        .emit_seconds = 345e-6,
                                        .jit_seconds = 67e-3,
                                        .text_bytes = 54321,
                                        .registers = 168,
                                        .local_bytes = 8,
                                        .shared_bytes = 98304,
                                        .grid = 264,
                                        .entry = multiplies ? "marlin_m16" : NULL},
                            .plain = plain_time};
    if (multiplies) {
        row.subject.flops = 9e9; /* 18 us */
        row.overlapped = overlapped_time;
        row.peer = peer_time;
    }
    snprintf(device.facts.name, sizeof device.facts.name, "A card");
    device.facts.compute_capability = 90;
    device.facts.sm_count = 132;
    device.facts.l2_bytes = 52428800;
    device.facts.driver_version = 12040;
    report_start(&r, &device, as_json);
    if (multiplies)
        report_tensor_ceiling(&r, &tensor);
    report_row(&r, &row);
    *status = report_print_end(&r, NULL);
    report_end(&r);
}

static char *text_of(bool as_json, bool multiplies)
{
    ptxgen_status status;
    capture_begin();
    report(as_json, multiplies, &status);
    char *text = capture_end();
    assert_int_equal(status, PTXGEN_OK);
    return text;
}

#define TIME(path, median, least, most, replays, launches)                                         \
    {path ".median_us", median}, {path ".least_us", least}, {path ".most_us", most},               \
        {path ".replays", replays},                                                                \
    {                                                                                              \
        path ".launches", launches                                                                 \
    }
#define HEAD                                                                                       \
    {"family", NAN}, {"device.name", NAN}, {"device.compute_capability", 90},                      \
        {"device.multiprocessors", 132}, {"device.l2_bytes", 52428800},                            \
        {"device.driver_version", 12040}, {"device.emulated", NAN},                                \
        {"read_ceiling.bytes_per_second", 2e12}, {"read_ceiling.bytes", 123456789},                \
        {"read_ceiling.ctas_per_multiprocessor", 2}, TIME("read_ceiling.time", 10, 9, 12, 7, 30),  \
    {                                                                                              \
        "peer", NAN                                                                                \
    }
#define MACHINE_CODE                                                                               \
    {"rows.0.plan_us", 21}, {"rows.0.emit_us", 345}, {"rows.0.jit_ms", 67},                        \
        {"rows.0.text_bytes", 54321}, {"rows.0.grid", 264}, {"rows.0.registers", 168},             \
        {"rows.0.local_bytes", 8},                                                                 \
    {                                                                                              \
        "rows.0.shared_bytes", 98304                                                               \
    }

static void figures_of_bench_are_by_name_unit_and_place(void **state)
{
    static const struct figure memory[] = {HEAD,
                                           {"rows.0.shape", NAN},
                                           {"rows.0.k", 4096},
                                           {"rows.0.n", 1024},
                                           {"rows.0.m", 16},
                                           {"rows.0.bytes", 20000000},
                                           {"rows.0.flops", 3e9},
                                           {"rows.0.weight_bytes", 2162688},
                                           {"rows.0.weight_copies", 11},
                                           {"rows.0.floor_us", 10},
                                           {"rows.0.fraction_of_ceiling", 0.5},
                                           MACHINE_CODE,
                                           TIME("rows.0.time", 20, 18, 25, 3, 40),
                                           {NULL, 0}};
    static const struct figure products[] = {HEAD,
                                             {"rows.0.shape", NAN},
                                             {"rows.0.entry", NAN},
                                             {"rows.0.k", 4096},
                                             {"rows.0.n", 1024},
                                             {"rows.0.m", 16},
                                             {"rows.0.bytes", 20000000},
                                             {"rows.0.flops", 9e9},
                                             {"rows.0.weight_bytes", 2162688},
                                             {"rows.0.weight_copies", 11},
                                             {"rows.0.floor_us", 18},
                                             {"rows.0.fraction_of_ceiling", 0.5},
                                             MACHINE_CODE,
                                             TIME("rows.0.time", 20, 18, 25, 3, 40),
                                             TIME("rows.0.overlapped", 16, 15, 17.5, 4, 41),
                                             TIME("rows.0.peer", 32, 31, 36, 5, 42),
                                             {"tensor_ceiling.operations_per_second", 5e14},
                                             {"tensor_ceiling.form", NAN},
                                             TIME("tensor_ceiling.time", 40, 39, 43, 8, 31),
                                             {NULL, 0}};
    (void)state;
    char *text = text_of(true, false);
    assert_figures(text, memory);
    free(text);
    text = text_of(true, true);
    assert_figures(text, products);
    free(text);
}

static void lines_of_bench_say_the_same(void **state)
{
    (void)state;
    char *text = text_of(false, true);
    assert_string_equal(
        text,
        ("marlin on A card, driver for CUDA 12.4\n"
         "read ceiling: 2000.0 GB/s (123456789 bytes in 10.0 us, 9.0 to 12.0; 2 CTAs a "
         "multiprocessor)\n"
         "peer: a library\n"
         "tensor ceiling, f16: 500.0 TFLOP/s (a form; 40.0 us, 39.0 to 43.0)\n"
         "K=4096 N=1024 M=16  floor 18.00 us, 20000000 bytes; weights 11 times\n"
         "  ptxgen          20.00 us  (18.00 to 25.00)   50.0 % of the ceiling   450.0 TFLOP/s\n"
         "  overlapped      16.00 us  (15.00 to 17.50)   62.5 % of the ceiling   562.5 TFLOP/s\n"
         "  peer            32.00 us  (31.00 to 36.00)   281.2 TFLOP/s\n"
         "  plan 21 us, emission 345 us, JIT 67.0 ms of 54321 bytes; 264 CTAs, 168 registers, "
         "8 bytes spilled, 98304 shared; marlin_m16\n"));
    free(text);
}

/* ---- bench, as a process ---- */

static double number(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItem(object, name);
    if (!cJSON_IsNumber(item))
        fail_msg("there is no number %s", name);
    return item->valuedouble;
}

static void assert_time(const cJSON *object, const char *name, double replays)
{
    const cJSON *time = cJSON_GetObjectItem(object, name);
    double least = number(time, "least_us"), median = number(time, "median_us"),
           most = number(time, "most_us");
    if (!(0 < least && least <= median && median <= most))
        fail_msg("%s: %g, %g, %g", name, least, median, most);
    assert_true(number(time, "replays") == replays);
    assert_true(number(time, "launches") >= 1);
}

/* Of two figures that stand for one thing. */
static void assert_near(double value, double same)
{
    if (!(fabs(value - same) <= 1e-9 * fabs(same)))
        fail_msg("%.12g is not %.12g", value, same);
}

static void measured_figures_agree_with_each_other_in_every_family(void **state)
{
    static const char *const families[][2] = {{"rmsnorm_q4k", "256x16"},
                                              {"marlin", "128x64"},
                                              {"w8a8", "64x64"},
                                              {"dense", "64x64"},
                                              {"sparse24", "64x64"}};
    (void)state;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        struct outcome o = run("bench", families[i][0], "--shape", families[i][1], "--device",
                               "cpu:sm_80", "--replays", "3", "--launches", "2", "--json");
        assert_exit(&o, 0);
        cJSON *json = cJSON_Parse(o.out);
        const cJSON *ceiling = cJSON_GetObjectItem(json, "read_ceiling");
        const cJSON *row = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "rows"), 0);
        const cJSON *time = cJSON_GetObjectItem(row, "time");
        const cJSON *tensor = cJSON_GetObjectItem(json, "tensor_ceiling");
        double bandwidth = number(ceiling, "bytes_per_second");
        double median = number(time, "median_us"), memory = number(row, "bytes") / bandwidth * 1e6;
        assert_time(ceiling, "time", 3);
        assert_time(row, "time", 3);
        if (cJSON_GetObjectItem(row, "overlapped"))
            assert_time(row, "overlapped", 3);
        assert_near(number(ceiling, "bytes") /
                        number(cJSON_GetObjectItem(ceiling, "time"), "median_us") * 1e6,
                    bandwidth);
        assert_near(number(row, "fraction_of_ceiling"), memory / median);
        double operations =
            tensor ? number(row, "flops") / number(tensor, "operations_per_second") * 1e6 : 0;
        assert_near(number(row, "floor_us"), operations > memory ? operations : memory);
        assert_true(number(time, "launches") == 2);
        assert_true(number(row, "plan_us") > 0);
        assert_true(number(row, "emit_us") > 0);
        assert_true(number(row, "jit_ms") > 0);
        cJSON_Delete(json);
        outcome_free(&o);
    }
}

/* ---- profile ---- */

static void report_profile(bool as_json)
{
    struct profile_section sections[] = {
        {.kernel = "one",
         .name = "start",
         .warps = 1000,
         .lanes = 31200,
         .kinds = {{"integer", 600}, {"move", 399}, {"barrier", 1}},
         .kind_count = 3,
         .sectors = 50,
         .bytes_moved = 1600,
         .bytes_needed = 1500,
         .shared_accesses = 70,
         .conflicts = 9},
        {.kernel = "one", .name = "end", .warps = 0},
        {.kernel = "two",
         .name = "start",
         .warps = 8,
         .lanes = 100,
         .kinds = {{"tensor", 8}},
         .kind_count = 1}};
    const struct profile_tally tally = {sections, sizeof sections / sizeof *sections};
    struct check check = {.outputs = 1};
    snprintf(check.problem, sizeof check.problem, "K=1");
    const struct profile_report r = {"marlin", "A card", &check, &tally};
    if (as_json)
        assert_int_equal(profile_report_json(&r, NULL), PTXGEN_OK);
    else
        profile_report_lines(&r);
}

#define SECTION(path, warps, lanes, transactions, moved, needed, passes, conflicts)                \
    {path ".section", NAN}, {path ".warp_instructions", warps},                                    \
        {path ".lane_instructions", lanes}, {path ".global_transactions", transactions},           \
        {path ".global_bytes_moved", moved}, {path ".global_bytes_needed", needed},                \
        {path ".shared_passes", passes},                                                           \
    {                                                                                              \
        path ".bank_conflicts", conflicts                                                          \
    }

static void figures_of_profile_are_by_name_and_place_and_lines_say_the_same(void **state)
{
    static const struct figure figures[] = {
        {"family", NAN},
        {"problem", NAN},
        {"device", NAN},
        {"right", NAN},
        {"kernels.0.kernel", NAN},
        SECTION("kernels.0.sections.0", 1000, 31200, 50, 1600, 1500, 70, 9),
        {"kernels.0.sections.0.mix.integer", 600},
        {"kernels.0.sections.0.mix.move", 399},
        {"kernels.0.sections.0.mix.barrier", 1},
        SECTION("kernels.0.sections.1", 0, 0, 0, 0, 0, 0, 0),
        {"kernels.1.kernel", NAN},
        SECTION("kernels.1.sections.0", 8, 100, 0, 0, 0, 0, 0),
        {"kernels.1.sections.0.mix.tensor", 8},
        {NULL, 0}};
    (void)state;
    capture_begin();
    report_profile(true);
    char *text = capture_end();
    assert_figures(text, figures);
    free(text);
    capture_begin();
    report_profile(false);
    text = capture_end();
    assert_string_equal(
        text, ("marlin K=1 on A card\n"
               "one\n"
               "  start\n"
               "    1000 warp instructions, 31.2 lanes active on average\n"
               "    mix: integer 60.0 %, move 39.9 %, barrier 0.1 %\n"
               "    global memory: 50 transactions of 32 bytes, 1600 bytes moved for 1500 needed\n"
               "    shared memory: 70 passes, and 9 more for bank conflicts\n"
               "  end\n"
               "    0 warp instructions, 0.0 lanes active on average\n"
               "two\n"
               "  start\n"
               "    8 warp instructions, 12.5 lanes active on average\n"
               "    mix: tensor 100.0 %\n"));
    free(text);
}

static void counted_figures_agree_with_each_other_in_every_family(void **state)
{
    static const char *const problems[][8] = {
        {"profile", "rmsnorm_q4k", "--k", "256", "--n", "16"},
        {"profile", "marlin", "--k", "128", "--n", "64", "--m", "1"},
        {"profile", "w8a8", "--k", "64", "--n", "64", "--m", "1"},
        {"profile", "dense", "--k", "64", "--n", "64", "--m", "1"},
        {"profile", "sparse24", "--k", "64", "--n", "64", "--m", "1"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) {
        const char *arguments[12] = {NULL};
        size_t count = 0;
        for (; count < 8 && problems[i][count]; count++)
            arguments[count] = problems[i][count];
        arguments[count++] = "--device";
        arguments[count++] = "cpu:sm_80";
        arguments[count++] = "--json";
        struct outcome o = run_command(arguments);
        assert_exit(&o, 0);
        cJSON *json = cJSON_Parse(o.out);
        const cJSON *kernel, *section, *kind;
        double moved = 0;
        assert_true(cJSON_IsTrue(cJSON_GetObjectItem(json, "right")));
        cJSON_ArrayForEach(kernel, cJSON_GetObjectItem(json, "kernels"))
        {
            cJSON_ArrayForEach(section, cJSON_GetObjectItem(kernel, "sections"))
            {
                double warps = number(section, "warp_instructions"), sum = 0, most = INFINITY;
                cJSON_ArrayForEach(kind, cJSON_GetObjectItem(section, "mix"))
                {
                    assert_true(kind->valuedouble > 0 && kind->valuedouble <= most);
                    most = kind->valuedouble;
                    sum += most;
                }
                assert_true(sum == warps);
                assert_true(number(section, "lane_instructions") <= 32 * warps);
                assert_true(number(section, "global_bytes_moved") ==
                            32 * number(section, "global_transactions"));
                moved += number(section, "global_bytes_moved");
            }
        }
        assert_true(moved > 0);
        cJSON_Delete(json);
        outcome_free(&o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_of_bench_are_by_name_unit_and_place),
        cmocka_unit_test(lines_of_bench_say_the_same),
        cmocka_unit_test(measured_figures_agree_with_each_other_in_every_family),
        cmocka_unit_test(figures_of_profile_are_by_name_and_place_and_lines_say_the_same),
        cmocka_unit_test(counted_figures_agree_with_each_other_in_every_family),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
