/* SPDX-License-Identifier: Apache-2.0 */
/* devices, run and bench, on the emulator. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "command.h"
#include <ptxgen/files.h>
#include "tests/comma_locale.h"
#include "tests/share.h"

#include <cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GOLDEN GOLDEN_DIR "/q4k.gguf"
#define GOLDEN_TENSORS "--tensor", "blk.0.attn_q.weight", "--norm", "blk.0.attn_norm.weight"
#define GOLDEN_DATA "--input", "input", "--expect", "expected.output"

/* ---- devices ---- */

static void devices_lists_the_emulator(void **state)
{
    (void)state;
    struct outcome o = run("devices");
    assert_exit(&o, 0);
    assert_contains(o.out, "cpu:sm_90");
    assert_contains(o.out, "cpu:sm_80");
    outcome_free(&o);
}

static void unknown_devices_are_refused(void **state)
{
    (void)state;
    assert_refuses(3, "\"tpu\"", "run", "rmsnorm_q4k", "--k", "256", "--n", "8", "--device", "tpu");
    assert_refuses(3, "sm_70", "run", "rmsnorm_q4k", "--k", "256", "--n", "8", "--device",
                   "cpu:sm_70");
}

static bool has_gpu(void)
{
    struct outcome o = run("devices");
    bool none = strstr(o.out, "gpu: none");
    outcome_free(&o);
    return !none;
}

static void without_a_gpu_run_and_bench_say_what_was_not_done(void **state)
{
    (void)state;
    if (has_gpu()) {
        print_message("this machine has a GPU\n");
        skip();
    }
    assert_refuses(3, "rmsnorm_q4k was not run: ", "run", "rmsnorm_q4k", "--k", "256", "--n", "8",
                   "--device", "gpu");
    assert_refuses(3, "rmsnorm_q4k was not timed: ", "bench", "rmsnorm_q4k", "--k", "256", "--n",
                   "8");
    struct outcome o = run("run", "rmsnorm_q4k", "--k", "256", "--n", "8");
    assert_exit(&o, 0);
    assert_contains(o.err, "no GPU");
    assert_contains(o.err, "emulator");
    outcome_free(&o);
}

/* ---- profile ---- */

static const cJSON *named(const cJSON *array, const char *key, const char *name)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, array)
    {
        const char *value = cJSON_GetStringValue(cJSON_GetObjectItem(item, key));
        if (value && !strcmp(value, name))
            return item;
    }
    fail_msg("there is no %s %s", key, name);
    return NULL;
}

/* Weights come by cp.async on sm_80 and by bulk copies on sm_90: both count, each byte once. */
static void profile_counts_every_byte_of_the_weights(void **state)
{
    (void)state;
    const char *const devices[] = {"cpu:sm_80", "cpu:sm_90"};
    for (int i = 0; i < 2; i++) {
        struct outcome o = run("profile", "rmsnorm_q4k", "--k", "1024", "--n", "512", "--device",
                               devices[i], "--json");
        assert_exit(&o, 0);
        cJSON *json = cJSON_Parse(o.out);
        assert_true(cJSON_IsTrue(cJSON_GetObjectItem(json, "right")));
        const cJSON *kernel =
            named(cJSON_GetObjectItem(json, "kernels"), "kernel", "rmsnorm_q4k_m1");
        const cJSON *sections = cJSON_GetObjectItem(kernel, "sections");
        double bytes = 0;
        static const char *const copying[] = {
            "first copies of weights",
            "steps: issue copies of a pair of super-blocks, wait for another, multiply"};
        for (int c = 0; c < 2; c++)
            bytes += cJSON_GetNumberValue(
                cJSON_GetObjectItem(named(sections, "section", copying[c]), "global_bytes_needed"));
        assert_true(bytes == 512 * 1024 / 256 * 144);
        cJSON_Delete(json);
        outcome_free(&o);
    }
}

/* Also where there is a workspace, or a kernel ahead to wait for: run launches more of these. */
static void profile_counts_one_launch(void **state)
{
    (void)state;
    const char *const devices[] = {"cpu:sm_80", "cpu:sm_90"};
    for (int i = 0; i < 2; i++) {
        struct outcome o = run("profile", "marlin", "--k", "4096", "--n", "128", "--m", "16",
                               "--device", devices[i], "--json");
        assert_exit(&o, 0);
        cJSON *json = cJSON_Parse(o.out);
        const cJSON *kernels = cJSON_GetObjectItem(json, "kernels"), *section;
        double products = 0;
        assert_int_equal(cJSON_GetArraySize(kernels), 1);
        cJSON_ArrayForEach(section, cJSON_GetObjectItem(cJSON_GetArrayItem(kernels, 0), "sections"))
        {
            const cJSON *mix = cJSON_GetObjectItem(section, "mix");
            const cJSON *tensor = cJSON_GetObjectItem(mix, "tensor");
            products += tensor ? cJSON_GetNumberValue(tensor) : 0;
        }
        assert_true(products >= 4096 / 16 * 128 / 8); /* and ldmatrix */
        assert_true(products < 2 * 4096 / 16 * 128 / 8);
        cJSON_Delete(json);
        outcome_free(&o);
    }
}

/* Whatever the sections are: all are in the text, and the products are not at the start. */
static void profile_names_the_sections_of_the_annotated_text(void **state)
{
    (void)state;
    struct outcome o = run("profile", "marlin", "--k", "384", "--n", "128", "--m", "16", "--json");
    struct outcome text =
        run("emit", "marlin", "--k", "384", "--n", "128", "--annotate", "--target", "sm_90");
    assert_exit(&o, 0);
    assert_exit(&text, 0);
    cJSON *json = cJSON_Parse(o.out);
    const cJSON *kernel = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "kernels"), 0);
    const cJSON *sections = cJSON_GetObjectItem(kernel, "sections"), *section;
    double products = 0;
    assert_true(cJSON_GetArraySize(sections) > 2);
    cJSON_ArrayForEach(section, sections)
    {
        const char *name = cJSON_GetStringValue(cJSON_GetObjectItem(section, "section"));
        const cJSON *tensor = cJSON_GetObjectItem(cJSON_GetObjectItem(section, "mix"), "tensor");
        char line[256];
        snprintf(line, sizeof line, "// ---- %s ----\n", name);
        if (strcmp(name, "start") != 0)
            assert_contains(text.out, line);
        else
            assert_null(tensor);
        products += tensor ? cJSON_GetNumberValue(tensor) : 0;
    }
    assert_true(products >= 384 / 16 * 128 / 8);
    cJSON_Delete(json);
    outcome_free(&text);
    outcome_free(&o);
    o = run("profile", "marlin", "--k", "384", "--n", "128");
    assert_exit(&o, 0);
    assert_contains(o.out, "  start\n");
    assert_contains(o.out, " bytes moved for ");
    assert_contains(o.out, " more for bank conflicts");
    outcome_free(&o);
}

/* ---- run ---- */

static void golden_file_is_within_its_bound(void **state)
{
    (void)state;
    const char *const types[] = {"f32", "f16", "bf16"};
    for (int x = 0; x < 3; x++)
        for (int y = 0; y < 3; y++) {
            struct outcome o =
                run("run", "rmsnorm_q4k", "--gguf", GOLDEN, GOLDEN_TENSORS, GOLDEN_DATA, "--x-type",
                    types[x], "--y-type", types[y], "--device", "cpu");
            assert_exit(&o, 0);
            assert_contains(o.out, "K=1024 N=96 M=1");
            assert_contains(o.out, "eps=1e-06");
            assert_contains(o.out, "the file's expected output: largest error");
            outcome_free(&o);
        }
}

static void every_m_up_to_eight_is_within_its_bound(void **state)
{
    (void)state;
    struct outcome o = run("run", "rmsnorm_q4k", "--gguf", GOLDEN, GOLDEN_TENSORS, "--m",
                           "0,1,2,3,4,5,6,7,8", "--device", "cpu:sm_80");
    assert_exit(&o, 0);
    assert_contains(o.out, "M=8");
    outcome_free(&o);
}

/* A copy of the golden file in which one number of expected.output is wrong. */
static void write_wrong_copy(char *path)
{
    ptxgen_files *store;
    const ptxgen_tensor *expected;
    ptxgen_error err;
    FILE *in = fopen(GOLDEN, "rb");
    assert_non_null(in);
    fseek(in, 0, SEEK_END);
    size_t size = (size_t)ftell(in);
    rewind(in);
    unsigned char *bytes = malloc(size);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, size, in), size);
    fclose(in);
    assert_int_equal(ptxgen_files_open(GOLDEN, &store, &err), PTXGEN_OK);
    assert_int_equal(ptxgen_files_require(store, "expected.output", &expected, &err), PTXGEN_OK);
    unsigned char *number = memmem(bytes, size, expected->data, expected->bytes);
    assert_non_null(number);
    number[4 * 17 + 2] ^= 0x20; /* a quarter of number 17 */
    ptxgen_files_close(store);
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, size), (ssize_t)size);
    close(fd);
    free(bytes);
}

static void a_wrong_expected_output_is_found(void **state)
{
    (void)state;
    char path[] = "/tmp/ptxgen-test-XXXXXX";
    write_wrong_copy(path);
    struct outcome o =
        run("run", "rmsnorm_q4k", "--gguf", path, GOLDEN_TENSORS, GOLDEN_DATA, "--device", "cpu");
    unlink(path);
    assert_exit(&o, 1);
    assert_contains(o.out, "WRONG: expected[0, 17]");
    outcome_free(&o);
}

static void a_wrong_epsilon_is_found(void **state)
{
    (void)state;
    struct outcome o = run("run", "rmsnorm_q4k", "--gguf", GOLDEN, GOLDEN_TENSORS, GOLDEN_DATA,
                           "--epsilon", "0.5", "--y-type", "f32", "--device", "cpu");
    assert_exit(&o, 1);
    assert_contains(o.out, "WRONG: expected[0, ");
    outcome_free(&o);
}

static void files_and_tensors_are_refused_by_name(void **state)
{
    (void)state;
    assert_refuses(4, "/nonexistent.gguf", "run", "rmsnorm_q4k", "--device", "cpu", "--gguf",
                   "/nonexistent.gguf", GOLDEN_TENSORS);
    assert_refuses(4, "blk.9", "run", "rmsnorm_q4k", "--device", "cpu", "--gguf", GOLDEN,
                   "--tensor", "blk.9", "--norm", "blk.0.attn_norm.weight");
    assert_refuses(2, "expected a matrix in Q4_K", "run", "rmsnorm_q4k", "--device", "cpu",
                   "--gguf", GOLDEN, "--tensor", "input", "--norm", "blk.0.attn_norm.weight");
    assert_refuses(2, "expected F32, F16 or BF16 with 1024 columns", "run", "rmsnorm_q4k",
                   "--device", "cpu", "--gguf", GOLDEN, "--tensor", "blk.0.attn_q.weight", "--norm",
                   "expected.output");
    assert_refuses(2, "needs --tensor and --norm", "run", "rmsnorm_q4k", "--gguf", GOLDEN);
    assert_refuses(2, "need --gguf", "run", "rmsnorm_q4k", "--k", "256", "--n", "8", "--input",
                   "input");
}

static void m_above_the_plans_tokens_is_refused(void **state)
{
    (void)state;
    assert_refuses(2, "M = 9 is outside what the spec or the tile is for", "run", "rmsnorm_q4k", "--k", "256", "--n", "8",
                   "--m", "9", "--device", "cpu");
    assert_refuses(2, "M = 2 is above --max-m 1", "run", "rmsnorm_q4k", "--k", "256", "--n", "8",
                   "--m", "2", "--max-m", "1", "--device", "cpu");
}

static void m_zero_is_done_at_once(void **state)
{
    (void)state;
    struct outcome o =
        run("run", "rmsnorm_q4k", "--k", "256", "--n", "8", "--m", "0", "--device", "cpu");
    assert_exit(&o, 0);
    assert_contains(o.out, "0 outputs");
    outcome_free(&o);
}

static void random_problems_are_within_their_bounds(void **state)
{
    (void)state;
    const char *const devices[] = {"cpu:sm_80", "cpu:sm_90", "cpu:sm_120"};
    for (int i = 0; i < 3; i++) {
        char count[16], told[32];
        snprintf(count, sizeof count, "%d", test_share(20));
        snprintf(told, sizeof told, "%s random problems", count);
        struct outcome o = run("run", "rmsnorm_q4k", "--random-specs", count, "--seed", "1000",
                               "--device", devices[i]);
        assert_exit(&o, 0);
        assert_contains(o.out, told);
        assert_contains(o.out, " 0 wrong");
        outcome_free(&o);
    }
}

static void equal_seeds_give_equal_problems(void **state)
{
    (void)state;
    struct outcome a =
        run("run", "rmsnorm_q4k", "--random-specs", "3", "--seed", "5", "--device", "cpu");
    struct outcome b =
        run("run", "rmsnorm_q4k", "--random-specs", "3", "--seed", "5", "--device", "cpu");
    struct outcome c =
        run("run", "rmsnorm_q4k", "--random-specs", "3", "--seed", "6", "--device", "cpu");
    assert_exit(&a, 0);
    assert_string_equal(a.out, b.out);
    assert_string_not_equal(a.out, c.out);
    outcome_free(&a);
    outcome_free(&b);
    outcome_free(&c);
}

/* ---- bench ---- */

static void bench_prints_json_with_a_row_for_each_shape_and_m(void **state)
{
    (void)state;
    struct outcome o = run("bench", "rmsnorm_q4k", "--device", "cpu", "--shape", "256x16,512x32",
                           "--m", "1,2", "--replays", "2", "--launches", "2", "--json");
    assert_exit(&o, 0);
    cJSON *json = cJSON_Parse(o.out);
    assert_non_null(json);
    assert_true(cJSON_GetObjectItem(cJSON_GetObjectItem(json, "read_ceiling"), "bytes_per_second")
                    ->valuedouble > 0);
    const cJSON *rows = cJSON_GetObjectItem(json, "rows");
    assert_int_equal(cJSON_GetArraySize(rows), 4);
    for (int i = 0; i < 4; i++) {
        const cJSON *row = cJSON_GetArrayItem(rows, i);
        assert_int_equal(cJSON_GetObjectItem(row, "k")->valueint, i < 2 ? 256 : 512);
        assert_int_equal(cJSON_GetObjectItem(row, "m")->valueint, 1 + i % 2);
        assert_true(
            cJSON_GetObjectItem(cJSON_GetObjectItem(row, "time"), "median_us")->valuedouble > 0);
        assert_int_equal(cJSON_GetObjectItem(cJSON_GetObjectItem(row, "time"), "replays")->valueint,
                         2);
    }
    cJSON_Delete(json);
    outcome_free(&o);
}

static int launches_of_a_bench(const char *name, const char *count)
{
    struct outcome o = run("bench", "rmsnorm_q4k", "--device", "cpu", "--shape", "4096x64",
                           "--replays", "1", "--json", name, count);
    assert_exit(&o, 0);
    cJSON *json = cJSON_Parse(o.out);
    const cJSON *row = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "rows"), 0);
    int launches = cJSON_GetObjectItem(cJSON_GetObjectItem(row, "time"), "launches")->valueint;
    cJSON_Delete(json);
    outcome_free(&o);
    return launches;
}

/* ---- locales ---- */

static void numbers_have_a_decimal_point_in_every_locale(void **state)
{
    (void)state;
    static const char *const commands[][11] = {
        {"run", "rmsnorm_q4k", "--k", "512", "--n", "64", "--epsilon", "1.5e-5"},
        {"run", "rmsnorm_q4k", "--k", "512", "--n", "64", "--epsilon", "-1.5"},
        {"profile", "rmsnorm_q4k", "--k", "256", "--n", "16", "--device", "cpu:sm_80"},
        {"inspect", "w8a8", "--k", "512", "--n", "64", "--target", "sm_80", "--m", "1"},
    };
    char folder[COMMA_LOCALE_FOLDER];
    assert_true(comma_locale_make(folder));
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        unsetenv("LC_ALL");
        struct outcome plain = run_command(commands[i]);
        setenv("LC_ALL", "comma", 1);
        struct outcome comma = run_command(commands[i]);
        assert_int_equal(comma.code, plain.code);
        assert_string_equal(comma.out, plain.out);
        assert_string_equal(comma.err, plain.err);
        assert_non_null(strchr(*plain.out ? plain.out : plain.err, '.'));
        outcome_free(&plain);
        outcome_free(&comma);
    }
    assert_true(comma_locale_enter()); /* which is what those commands could have entered */
    unsetenv("LC_ALL");
    assert_true(comma_locale_remove(folder));
}

/* Of the emulator's one takes milliseconds, and 30 are enough. */
static void bench_times_fewer_launches_that_take_long(void **state)
{
    (void)state;
    int few = launches_of_a_bench("--m", "1");
    assert_in_range(few, 4, 100);
    assert_int_equal(launches_of_a_bench("--launches", "102"), 102);
}

static void bench_prints_lines(void **state)
{
    (void)state;
    struct outcome o = run("bench", "rmsnorm_q4k", "--device", "cpu", "--k", "256", "--n", "16,8",
                           "--residual-out", "--bias", "--replays", "1", "--launches", "1");
    assert_exit(&o, 0);
    assert_contains(o.out, "read ceiling:");
    assert_contains(o.out, "peer: not on the emulator");
    assert_contains(o.out, "of the ceiling");
    outcome_free(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_lists_the_emulator),
        cmocka_unit_test(unknown_devices_are_refused),
        cmocka_unit_test(without_a_gpu_run_and_bench_say_what_was_not_done),
        cmocka_unit_test(profile_counts_every_byte_of_the_weights),
        cmocka_unit_test(profile_counts_one_launch),
        cmocka_unit_test(profile_names_the_sections_of_the_annotated_text),
        cmocka_unit_test(golden_file_is_within_its_bound),
        cmocka_unit_test(every_m_up_to_eight_is_within_its_bound),
        cmocka_unit_test(a_wrong_expected_output_is_found),
        cmocka_unit_test(a_wrong_epsilon_is_found),
        cmocka_unit_test(files_and_tensors_are_refused_by_name),
        cmocka_unit_test(m_above_the_plans_tokens_is_refused),
        cmocka_unit_test(m_zero_is_done_at_once),
        cmocka_unit_test(random_problems_are_within_their_bounds),
        cmocka_unit_test(equal_seeds_give_equal_problems),
        cmocka_unit_test(bench_prints_json_with_a_row_for_each_shape_and_m),
        cmocka_unit_test(bench_prints_lines),
        cmocka_unit_test(numbers_have_a_decimal_point_in_every_locale),
        cmocka_unit_test(bench_times_fewer_launches_that_take_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
