/* SPDX-License-Identifier: Apache-2.0 */
/* run, bench, emit and convert of 4-bit weights, on the emulator. */
#include "tests/status.h"

#include "command.h"
#include <ptxgen/files.h>

#include <cJSON.h>
#include <ptxgen/marlin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GROUPED GOLDEN_DIR "/marlin_g128.safetensors"
#define PER_CHANNEL GOLDEN_DIR "/marlin_channel.safetensors"
#define DATA "--input", "A", "--expect", "C", "--device", "cpu"
#define EXPECTED "the file's expected output: largest error"

static ptxgen_files *open_store(const char *path)
{
    ptxgen_files *store;
    ptxgen_error err;
    assert_ok(ptxgen_files_open(path, &store, &err), &err);
    return store;
}

static void assert_same_tensor(const char *path, const char *name, const char *other_path,
                               const char *other_name)
{
    ptxgen_files *stores[] = {open_store(path), open_store(other_path)};
    const ptxgen_tensor *a, *b;
    assert_int_equal(ptxgen_files_require(stores[0], name, &a, NULL), PTXGEN_OK);
    assert_int_equal(ptxgen_files_require(stores[1], other_name, &b, NULL), PTXGEN_OK);
    assert_int_equal(a->dtype, b->dtype);
    assert_int_equal(a->ndim, b->ndim);
    assert_int_equal(a->bytes, b->bytes);
    assert_memory_equal(a->shape, b->shape, a->ndim * sizeof *a->shape);
    assert_memory_equal(a->data, b->data, a->bytes);
    ptxgen_files_close(stores[0]);
    ptxgen_files_close(stores[1]);
}

/* ---- run ---- */

static void golden_files_run_from_both_of_their_formats(void **state)
{
    (void)state;
    static const char *const files[] = {GROUPED, PER_CHANNEL}, *const layers[] = {"gptq", "marlin"},
                             *const names[] = {"M=5 group=128 f16", "M=3 group=-1 f16"};
    for (int i = 0; i < 4; i++) {
        struct outcome o =
            run("run", "marlin", "--safetensors", files[i / 2], "--layer", layers[i % 2], DATA);
        assert_exit(&o, 0);
        assert_contains(o.out, names[i / 2]);
        assert_contains(o.out, EXPECTED);
        outcome_free(&o);
    }
}

static void packed_files_run_as_the_checkpoints_that_they_were_made_from(void **state)
{
    (void)state;
    static const char *const files[] = {GROUPED, PER_CHANNEL};
    for (int i = 0; i < 2; i++) {
        char path[40];
        fresh_path(path);
        struct outcome o = run("convert", files[i], path, "--layer", "gptq", "--to", "packed");
        assert_exit(&o, 0);
        outcome_free(&o);
        o = run("run", "marlin", "--safetensors", path, "--layer", "gptq", DATA);
        assert_exit(&o, 0);
        assert_contains(o.out, EXPECTED);
        outcome_free(&o);
        assert_refuses(2, "gptq is packed", "run", "marlin", "--safetensors", path, "--layer",
                       "gptq", "--type", "bf16", "--device", "cpu");
        unlink(path);
    }
}

static void the_format_can_be_overridden_and_a_wrong_one_is_found(void **state)
{
    (void)state;
    struct outcome o = run("run", "marlin", "--safetensors", GROUPED, "--layer", "gptq", "--format",
                           "gptq_v2", DATA); /* zero points of 7 instead of 8 */
    assert_exit(&o, 1);
    assert_contains(o.out, "zeros");
    assert_contains(o.out, "WRONG: expected[0, ");
    outcome_free(&o);
}

/* Tensors say 128; whoever says otherwise is refused. */
static void a_wrong_group_size_is_refused(void **state)
{
    (void)state;
    assert_refuses(4, "the group size is given as 64", "run", "marlin", "--safetensors", GROUPED,
                   "--layer", "gptq", "--group-size", "64", "--device", "cpu");
    assert_refuses(4, "the group size is given as -1", "run", "marlin", "--safetensors", GROUPED,
                   "--layer", "gptq", "--group-size", "-1", "--device", "cpu");
}

static void bf16_runs_the_golden_weights_but_not_their_expected_output(void **state)
{
    (void)state;
    struct outcome o = run("run", "marlin", "--safetensors", GROUPED, "--layer", "gptq", "--type",
                           "bf16", "--m", "1,17,40", "--device", "cpu:sm_80");
    assert_exit(&o, 0);
    assert_contains(o.out, "M=40 group=128 bf16");
    outcome_free(&o);
    o = run("run", "marlin", "--safetensors", GROUPED, "--layer", "gptq", "--input", "A", "--type",
            "bf16", "--device", "cpu:sm_80");
    assert_exit(&o, 0);
    assert_contains(o.out, "M=5 group=128 bf16");
    outcome_free(&o);
    assert_refuses(2, "that --type holds exactly", "run", "marlin", "--safetensors", GROUPED,
                   "--layer", "gptq", "--type", "bf16", DATA);
}

static void epilogues_run_on_random_data(void **state)
{
    (void)state;
    static const char *const activations[] = {"silu", "gelu", "gelu-tanh"};
    for (int i = 0; i < 3; i++) {
        struct outcome o = run("run", "marlin", "--k", "192", "--n", "72", "--group-size", "32",
                               "--activation", activations[i], "--bias", "--residual", "--zeros",
                               "--m", "0,1,20", "--device", "cpu");
        assert_exit(&o, 0);
        assert_contains(o.out, activations[i]);
        outcome_free(&o);
    }
    struct outcome o = run("run", "marlin", "--k", "192", "--n", "72", "--group-size", "-1",
                           "--swiglu", "--bias", "--act-order", "--m", "9", "--device", "cpu");
    assert_exit(&o, 0);
    assert_contains(o.out, "act-order swiglu bias");
    outcome_free(&o);
}

static void a_layer_and_the_same_again_make_swiglu(void **state)
{
    (void)state;
    struct outcome o = run("run", "marlin", "--safetensors", GROUPED, "--layer", "gptq",
                           "--up-layer", "marlin", "--input", "A", "--device", "cpu");
    assert_exit(&o, 0);
    assert_contains(o.out, "swiglu");
    outcome_free(&o);
}

static void problems_and_options_are_refused_by_name(void **state)
{
    (void)state;
    assert_refuses(2, "marlin needs --k and --n", "run", "marlin", "--k", "64", "--device", "cpu");
    assert_refuses(2, "K = 24", "run", "marlin", "--k", "24", "--n", "64", "--group-size", "-1",
                   "--device", "cpu");
    assert_refuses(2, "N = 105", "run", "marlin", "--k", "128", "--n", "105", "--device", "cpu");
    assert_refuses(2, "M = 9 is above --max-m 8", "run", "marlin", "--k", "128", "--n",
                   "64", "--max-m", "8", "--m", "9", "--device", "cpu");
    assert_refuses(4, "no other.qweight", "run", "marlin", "--safetensors", GROUPED, "--layer",
                   "other", "--device", "cpu");
    assert_refuses(2, "--safetensors needs --layer", "run", "marlin", "--safetensors", GROUPED);
    assert_refuses(2, "expected numbers of tile_m", "bench", "marlin", "--tile", "tile=3");
    assert_refuses(2, "--tile wn=4: no tile_m in it", "bench", "marlin", "--tile", "wn=4");
    assert_refuses(2, "from 1 to 1024", "bench", "marlin", "--tile", "tile_m=0");
}

/* tune prints tiles by the names of the family's table, for people to give them to --tile. */
static void tuned_tiles_have_the_names_that_tile_takes(void **state)
{
    (void)state;
    for (const char *const *name = ptxgen_marlin_family()->tiling->names; *name; name++)
        assert_refuses(2, *name, "bench", "marlin", "--tile", "none=1");
}

/* ---- emit and bench ---- */

static void emit_writes_the_entry_that_serves_m(void **state)
{
    (void)state;
    static const struct {
        const char *m, *entry, *other;
    } cases[] = {{"8", "marlin_m8(", "marlin_m16("}, {"9", "marlin_m16(", "marlin_m8("}};
    for (int i = 0; i < 2; i++) {
        struct outcome o = run("emit", "marlin", "--k", "4096", "--n", "4096", "--m", cases[i].m);
        assert_exit(&o, 0);
        assert_contains(o.out, cases[i].entry);
        assert_null(strstr(o.out, cases[i].other));
        outcome_free(&o);
    }
    struct outcome o = run("emit", "marlin", "--k", "4096", "--n", "4096");
    assert_exit(&o, 0);
    assert_contains(o.out, "marlin_m8(");
    assert_contains(o.out, "marlin_m128(");
    outcome_free(&o);
}

static void bench_times_a_tile_of_the_users_choice(void **state)
{
    (void)state;
    struct outcome o =
        run("bench", "marlin", "--device", "cpu", "--shape", "256x64", "--m", "1,20", "--replays",
            "1", "--launches", "2", "--zeros", "--act-order", "--tile",
            "tile_m=16,warp_n=64,wn=1,wk=2,stages=3,steps=1,ctas=1,pass_m=16", "--json");
    assert_exit(&o, 0);
    cJSON *json = cJSON_Parse(o.out);
    assert_non_null(json);
    const cJSON *rows = cJSON_GetObjectItem(json, "rows");
    assert_int_equal(cJSON_GetArraySize(rows), 2);
    assert_int_equal(cJSON_GetObjectItem(cJSON_GetArrayItem(rows, 1), "m")->valueint, 20);
    assert_true(cJSON_GetObjectItem(cJSON_GetArrayItem(rows, 1), "shared_bytes")->valueint > 0);
    cJSON_Delete(json);
    outcome_free(&o);
}

/* ---- convert ---- */

static void convert_to(const char *from, const char *to, const char *format)
{
    struct outcome o = run("convert", from, to, "--to", format, "--layer", "gptq");
    assert_exit(&o, 0);
    assert_contains(o.out, "1 layer as");
    outcome_free(&o);
}

static void converted_layers_run_and_convert_back_to_the_same_bits(void **state)
{
    (void)state;
    static const char *const files[] = {GROUPED, PER_CHANNEL}, *const formats[] = {"gptq",
                                                                                   "gptq_v2",
                                                                                   "awq",
                                                                                   "pack-quantized",
                                                                                   "marlin",
                                                                                   "packed"},
                             *const tensors[] = {"gptq.qweight", "gptq.scales", "gptq.qzeros",
                                                 "gptq.g_idx",   "A",           "codes"};
    for (int i = 0; i < 12; i++) {
        char there[40], back[40];
        fresh_path(there);
        fresh_path(back);
        convert_to(files[i / 6], there, formats[i % 6]);
        convert_to(there, back, "gptq");
        for (int t = 0; t < 6; t++)
            assert_same_tensor(back, tensors[t], files[i / 6], tensors[t]);
        if (!strcmp(formats[i % 6], "marlin")) {
            assert_same_tensor(there, "gptq.B", files[i / 6], "marlin.B");
            assert_same_tensor(there, "gptq.s", files[i / 6], "marlin.s");
        }
        if (strcmp(formats[i % 6], "packed")) {
            struct outcome o =
                run("run", "marlin", "--safetensors", there, "--layer", "gptq", DATA);
            assert_exit(&o, 0);
            assert_contains(o.out, EXPECTED);
            outcome_free(&o);
        }
        unlink(there);
        unlink(back);
    }
}

static void convert_takes_all_layers_unless_told_which(void **state)
{
    (void)state;
    char path[40];
    fresh_path(path);
    struct outcome o = run("convert", GROUPED, path, "--to", "awq");
    assert_exit(&o, 0);
    assert_contains(o.out, "2 layers as awq, 4 other tensors copied");
    assert_same_tensor(path, "gptq.qweight", path, "marlin.qweight");
    outcome_free(&o);
    unlink(path);
}

static void convert_refuses_by_name_and_leaves_no_file(void **state)
{
    (void)state;
    char path[40];
    fresh_path(path);
    assert_refuses(2, "an input, an output and --to are needed", "convert", GROUPED, path);
    assert_refuses(2, "expected one of gptq, gptq_v2, awq", "convert", GROUPED, path, "--to",
                   "ggml");
    assert_refuses(4, "none: the file has no none.qweight", "convert", GROUPED, path, "--to", "awq",
                   "--layer", "none");
    assert_refuses(4, "/nonexistent", "convert", "/nonexistent", path, "--to", "awq");
    assert_refuses(4, "a safetensors file is needed", "convert", GOLDEN_DIR "/q4k.gguf", path,
                   "--to", "awq");
    assert_refuses(4, "cannot be written", "convert", GROUPED, "/nonexistent/out", "--to", "awq");
    assert_int_not_equal(access(path, F_OK), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_files_run_from_both_of_their_formats),
        cmocka_unit_test(packed_files_run_as_the_checkpoints_that_they_were_made_from),
        cmocka_unit_test(the_format_can_be_overridden_and_a_wrong_one_is_found),
        cmocka_unit_test(a_wrong_group_size_is_refused),
        cmocka_unit_test(bf16_runs_the_golden_weights_but_not_their_expected_output),
        cmocka_unit_test(epilogues_run_on_random_data),
        cmocka_unit_test(a_layer_and_the_same_again_make_swiglu),
        cmocka_unit_test(problems_and_options_are_refused_by_name),
        cmocka_unit_test(tuned_tiles_have_the_names_that_tile_takes),
        cmocka_unit_test(emit_writes_the_entry_that_serves_m),
        cmocka_unit_test(bench_times_a_tile_of_the_users_choice),
        cmocka_unit_test(converted_layers_run_and_convert_back_to_the_same_bits),
        cmocka_unit_test(convert_takes_all_layers_unless_told_which),
        cmocka_unit_test(convert_refuses_by_name_and_leaves_no_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
