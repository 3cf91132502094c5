/* SPDX-License-Identifier: Apache-2.0 */
/* What the command says of each thing that it refuses, word for word; and pieces of it. */
#include "src/harness/buffer.h"
#include "src/cli/profile_tally.h"
#include "src/files/safetensors_index.h"
#include "src/cli/safetensors_writer.h"
#include "tests/checks.h"
#include "tests/dispatch/folder.h"
#include "tests/files/bytes.h"

#include "command.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define LAYERS GOLDEN_DIR "/marlin_g128.safetensors"
#define SPARSE GOLDEN_DIR "/sparse24_torch.safetensors"
#define GGUF GOLDEN_DIR "/q4k.gguf"
#define CPU "--device", "cpu"
#define TEN(x) x x x x x x x x x x
#define LONGEST TEN(TEN(TEN("x"))) TEN("x") "xxxxxx"

static char folder[FOLDER_PATH];

static const char *in_folder(const char *name)
{
    static char path[FOLDER_PATH + 40];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

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

/* ---- options and files ---- */

static void options_that_are_missing_or_beyond_a_limit_are_named(void **state)
{
    (void)state;
    assert_refuses(2, "ptxgen: dense needs --k and --n\n", "run", "dense", CPU);
    assert_refuses(2, "ptxgen: rmsnorm_q4k needs --k and --n\n", "run", "rmsnorm_q4k", CPU);
    assert_refuses(2, "ptxgen: sparse24 needs --k and --n\n", "run", "sparse24", CPU);
    assert_refuses(2, "ptxgen: w8a8 needs --k and --n\n", "run", "w8a8", CPU);
    assert_refuses(2, "ptxgen: quantise needs --k\n", "run", "quantise", CPU);
    assert_refuses(2,
                   "ptxgen run gguf_rows: --w-type q4: expected a type of GGUF files, as Q4_K, "
                   "Q6_K, Q8_0 or F16\n",
                   "run", "gguf_rows", "--k", "256", "--w-type", "q4", CPU);
    assert_refuses(2, "ptxgen: marlin needs --k and --n\n", "run", "marlin", CPU);
    assert_refuses(2, "ptxgen: dense: M = 3 is above --max-m 2\n", "run", "dense",
                   "--n", "64", "--k", "64", "--m", "3", "--max-m", "2", CPU);
    assert_refuses(2, "ptxgen: sparse24: M = 3 is above --max-m 2\n", "run",
                   "sparse24", "--n", "64", "--k", "64", "--m", "3", "--max-m", "2", CPU);
    assert_refuses(2, "ptxgen: rmsnorm_q4k: M = 9 is outside what the spec or the tile is for\n",
                   "run", "rmsnorm_q4k", "--k", "256", "--n", "64", "--m", "9", CPU);
    assert_refuses(2,
                   "ptxgen: w8a8: M = 3 is above --max-m 2\n", "run",
                   "w8a8", "--k", "64", "--n", "64", "--m", "3", "--max-m", "2", CPU);
    assert_refuses(2, "ptxgen: w8a8: M = 1 is below --min-m 2\n", "run", "w8a8", "--k", "64", "--n",
                   "64", "--m", "1", "--min-m", "2", CPU);
    assert_refuses(3,
                   "ptxgen: dense was not run: no device is named \"tpu\"; there are auto, gpu, "
                   "gpu:NUMBER, cpu, cpu:SM\n",
                   "run", "dense", "--n", "64", "--k", "64", "--device", "tpu");
    assert_refuses(2, "ptxgen: dense was not tuned: dense has no tiles to choose\n", "tune",
                   "dense", "--n", "64", "--k", "64", CPU);
}

static void options_with_another_value_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *says;
        const char *arguments[8];
    } rows[] = {
        {" cache: list, show, verify, prune, clear or warm must be named\n", {"cache", "foo"}},
        {" plot: BENCH.json and FILE.svg must be named\n", {"plot", "x.json"}},
        {"ptxgen: no command is named \"frobnicate\"\n", {"frobnicate"}},
        {" --chip foo: expected one of A100-80GB, ", {"inspect", "dense", "--chip", "foo"}},
        {" --type f32: expected one of f16, bf16\n", {"run", "marlin", "--type", "f32"}},
        {" --bandwidth 0: expected a positive number\n",
         {"inspect", "dense", "--bandwidth", "0"}},
        {" --n 0: expected a whole number from 1 to 4294967295\n", {"run", "dense", "--n", "0"}},
        {" --n 4294967296: expected a whole number from 1 to 4294967295\n",
         {"run", "dense", "--n", "4294967296"}},
        {" --epsilon -1: expected a number from 0 to 3.4e38\n",
         {"run", "rmsnorm_q4k", "--epsilon", "-1"}},
        {" --epsilon 3.5e38: expected a number from 0 to 3.4e38\n",
         {"run", "rmsnorm_q4k", "--epsilon", "3.5e38"}},
        {" --epsilon 1e-50: f32 would make it 0\n",
         {"run", "rmsnorm_q4k", "--epsilon", "1e-50"}},
        {" --w-type q9: q9 is not a type of GGUF\n", {"run", "gguf_linear", "--w-type", "q9"}},
        {" --w-type q4_0,q4_1,q5_0,q5_1: at most 3 types\n",
         {"run", "gguf_linear", "--w-type", "q4_0,q4_1,q5_0,q5_1"}},
        {" --shape 64x: expected KxN, such as 4096x14336, with commas between\n",
         {"bench", "marlin", "--shape", "64x"}},
        {" c: one input and one output are enough\n", {"convert", "a", "b", "c"}},
        {" --tile x: expected numbers of warp_m, warp_n, wm, wn, wk, ctas, stages, pass_m, kind, "
         "cluster, split\n",
         {"emit", "dense", "--tile", "x"}},
        {" --swiglu on a file needs --up-layer\n",
         {"run", "marlin", "--safetensors", LAYERS, "--layer", "gptq", "--swiglu"}},
        {" --tensor, --norm, --bias-tensor, --input and --expect need --gguf\n",
         {"run", "rmsnorm_q4k", "--tensor", "x"}},
        {" --layer, --input and --expect need --safetensors\n",
         {"run", "sparse24", "--layer", "x"}},
        {" --safetensors needs --layer\n", {"run", "sparse24", "--safetensors", "x"}},
        {" --codes 1: expected e4m3, or two magnitudes, as 128,127\n",
         {"run", "w8a8", "--codes", "1"}},
        {" --layer, --input and --expect need --safetensors\n",
         {"run", "w8a8", "--expect", "x"}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_refused(rows[i].arguments, 2, rows[i].says);
}

static void files_that_do_not_hold_what_is_asked_for_are_named(void **state)
{
    (void)state;
    const char *junk = in_folder("junk");
    char says[FOLDER_PATH + 200];
    file_write(junk, "junk of 16 bytes", 16);
    snprintf(says, sizeof says,
             "ptxgen: %s: neither GGUF (begins with \"GGUF\") nor safetensors (byte 8 is '{'): its "
             "16 bytes begin with \"junk of 1\"\n",
             junk);
    assert_refuses(4, says, "run", "marlin", "--safetensors", junk, "--layer", "x", CPU);
    assert_refuses(4, "ptxgen: /dev/null is not a regular file\n", "run", "marlin",
                   "--safetensors", "/dev/null", "--layer", "x", CPU);
    assert_refuses(4,
                   "ptxgen: the file has no none.qweight, none.weight_packed or none.B\n", "run",
                   "marlin", "--safetensors", LAYERS, "--layer", "none", CPU);
    assert_refuses(4,
                   "ptxgen: the file has no weight none (a weight PREFIX has PREFIX.sparse and "
                   "PREFIX.meta_cutlass, PREFIX.compressed and PREFIX.bitmask …)\n",
                   "run", "sparse24", "--safetensors", SPARSE, "--layer", "none", CPU);
    assert_refuses(2, "ptxgen: a layer's name of 1017 bytes, of which there may be 1016\n",
                   "run", "sparse24", "--safetensors", SPARSE, "--layer", LONGEST "x", CPU);
    assert_refuses(4, "ptxgen: the file has no weight xxx", "run", "sparse24", "--safetensors",
                   SPARSE, "--layer", LONGEST, CPU);
    assert_refuses(4, "ptxgen: " SPARSE " has no 4-bit layer\n", "convert", SPARSE,
                   in_folder("none"), "--to", "awq");
    assert_refuses(4, "ptxgen: the output file has no name\n", "convert", LAYERS, "", "--to",
                   "awq");
    assert_refuses(2, "ptxgen: --tensor: no name is given\n", "run", "rmsnorm_q4k", "--gguf", GGUF,
                   "--tensor", ",", "--norm", "blk.0.attn_norm.weight", CPU);
    assert_refuses(2, "ptxgen: --tensor a,b,c,d: at most 3 names\n", "run", "rmsnorm_q4k",
                   "--gguf", GGUF, "--tensor", "a,b,c,d", "--norm", "blk.0.attn_norm.weight", CPU);
    assert_refuses(2, "ptxgen: --expect goes with one matrix, without bias and residual\n", "run",
                   "rmsnorm_q4k", "--gguf", GGUF, "--tensor", "blk.0.attn_q.weight", "--norm",
                   "blk.0.attn_norm.weight", "--input", "input", "--expect", "expected.output",
                   "--residual", CPU);
    assert_refuses(2, "ptxgen: --bias-tensor names 2 tensors for 1 matrices\n", "run",
                   "rmsnorm_q4k", "--gguf", GGUF, "--tensor", "blk.0.attn_q.weight", "--norm",
                   "blk.0.attn_norm.weight", "--bias-tensor", "a,b", CPU);
}

/* A safetensors file whose data begin with these, and go on with zeros. */
static const char *file_with(const char *header, size_t data_bytes, const void *data, size_t given)
{
    const char *path = in_folder("made.safetensors");
    size_t length = strlen(header), size = 8 + length + data_bytes;
    unsigned char *bytes = calloc(1, size);
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(length >> 8 * i);
    memcpy(bytes + 8, header, length);
    memcpy(bytes + 8 + length, data, given);
    file_write(path, bytes, size);
    free(bytes);
    return path;
}

static const char *file_of(const char *header, size_t data_bytes)
{
    return file_with(header, data_bytes, "", 0);
}

static void tensors_of_another_type_than_a_layer_has_are_named(void **state)
{
    (void)state;
    const char *file = file_of(
        "{\"l.weight\":{\"dtype\":\"F16\",\"shape\":[4,4],\"data_offsets\":[0,32]}}", 32);
    assert_refuses(2, "ptxgen: l.weight is F16 [4, 4]; expected a matrix of I8, F8_E4M3 or F8_E5M2\n", "run", "w8a8",
                   "--safetensors", file, "--layer", "l", CPU);
    file = file_of("{\"l.weight\":{\"dtype\":\"I8\",\"shape\":[8,8],\"data_offsets\":[0,64]},"
                   "\"l.weight_scale\":{\"dtype\":\"F32\",\"shape\":[8],\"data_offsets\":[64,96]},"
                   "\"l.weight_zero_point\":{\"dtype\":\"BOOL\",\"shape\":[8],\"data_offsets\":"
                   "[96,104]}}",
                   104);
    assert_refuses(2,
                   "ptxgen: \"l.weight_zero_point\" is BOOL, a type in which zero points are not "
                   "read\n",
                   "run", "w8a8", "--safetensors", file, "--layer", "l", CPU);
    file = file_of("{\"l.qweight\":{\"dtype\":\"U8\",\"shape\":[1,8],\"data_offsets\":[0,8]},"
                   "\"l.scales\":{\"dtype\":\"F16\",\"shape\":[1,8],\"data_offsets\":[8,24]}}",
                   24);
    assert_refuses(2,
                   "ptxgen: l.qweight is U8 [1, 8]; expected I32, I8, F16, BF16 or F32 of one or "
                   "two dimensions\n",
                   "run", "marlin", "--safetensors", file, "--layer", "l", CPU);
    file = file_of("{\"w\":{\"dtype\":\"I32\",\"shape\":[8,8],\"data_offsets\":[0,256]}}", 256);
    assert_refuses(2, "ptxgen: w is I32 [8, 8]; expected a matrix of F32, F16, BF16 or I8\n", "run",
                   "sparse24", "--safetensors", file, "--layer", "w", CPU);
    file = file_of("{\"w\":{\"dtype\":\"I8\",\"shape\":[8,8],\"data_offsets\":[0,64]},"
                   "\"x\":{\"dtype\":\"F16\",\"shape\":[2,8],\"data_offsets\":[64,96]}}",
                   96);
    assert_refuses(2, "ptxgen: x is F16 [2, 8]; expected I8 [M, 8]\n", "run", "sparse24",
                   "--safetensors", file, "--layer", "w", "--input", "x", CPU);
    file = file_of("{\"l.weight\":{\"dtype\":\"F16\",\"shape\":[8,8],\"data_offsets\":[0,128]},"
                   "\"l.bias\":{\"dtype\":\"F16\",\"shape\":[8],\"data_offsets\":[128,144]},"
                   "\"l.weight.bias\":{\"dtype\":\"F16\",\"shape\":[8],\"data_offsets\":"
                   "[144,160]}}",
                   160);
    assert_refuses(2,
                   "ptxgen: the file has both l.bias and l.weight.bias; one of them is the "
                   "layer's\n",
                   "run", "sparse24", "--safetensors", file, "--layer", "l", CPU);
    char says[FOLDER_PATH + 140];
    file = file_of("{\"w\":{\"dtype\":\"F16\",\"shape\":[8,8],\"data_offsets\":[0,128]}}", 128);
    snprintf(says, sizeof says,
             "ptxgen: %s has no compressed 2:4 weight; --layer names a dense one\n", file);
    assert_refuses(4, says, "convert", "sparse24", file, "/nonexistent/x", "--to", "bytes");
    file = file_of(
        "{\"l.marlin_codes\":{\"dtype\":\"U8\",\"shape\":[16],\"data_offsets\":[0,16]}}", 16);
    assert_refuses(4,
                   "ptxgen: l.marlin_codes needs marlin_scales, and a marlin_shape of three I64\n",
                   "run", "marlin", "--safetensors", file, "--layer", "l", CPU);
    file = file_with(
        "{\"l.marlin_shape\":{\"dtype\":\"I64\",\"shape\":[3],\"data_offsets\":[0,24]},"
        "\"l.marlin_codes\":{\"dtype\":\"U8\",\"shape\":[16],\"data_offsets\":[24,40]},"
        "\"l.marlin_scales\":{\"dtype\":\"F16\",\"shape\":[64],\"data_offsets\":[40,168]}}",
        168, (const int64_t[]){64, 64, 64}, 24);
    assert_refuses(4, "ptxgen: l.marlin_codes is of 16 bytes, but its layer needs 2048\n", "run",
                   "marlin", "--safetensors", file, "--layer", "l", CPU);
    file = file_of("{\"l.qweight\":{\"dtype\":\"I32\",\"shape\":[8,64],\"data_offsets\":[0,2048]},"
                   "\"l.scales\":{\"dtype\":\"F16\",\"shape\":[2,64],\"data_offsets\":[2048,2304]},"
                   "\"l.g_idx\":{\"dtype\":\"I32\",\"shape\":[64],\"data_offsets\":[2304,2560]}}",
                   2560);
    assert_refuses(2, "ptxgen: l: a marlin file has no place for the order of rows (g_idx)\n",
                   "convert", file, "-", "--to", "marlin");
}

/* Two epsilons, matrices of 256 and 512 columns, weights of a tower's norm, and nine rows. */
static const char *gguf_of_two(void)
{
    static const char *const keys[] = {"a.attention.layer_norm_rms_epsilon",
                                       "b.attention.layer_norm_rms_epsilon"};
    static const struct {
        const char *name;
        uint32_t type;
        uint64_t columns, rows, offset;
    } tensors[] = {{"a", 12, 256, 1, 0},
                   {"b", 12, 512, 1, 160},
                   {"v.g", 0, 256, 0, 448},
                   {"x", 0, 256, 9, 1472}};
    const char *path = in_folder("two.gguf");
    struct bytes b = {0};
    put(&b, "GGUF", 4);
    put_u32(&b, 3);
    put_u64(&b, 4);
    put_u64(&b, 2);
    for (int i = 0; i < 2; i++) {
        put_u64(&b, strlen(keys[i]));
        put(&b, keys[i], strlen(keys[i]));
        put_u32(&b, 6);
        put_u32(&b, 0x3727c5ac);
    }
    for (int i = 0; i < 4; i++) {
        put_u64(&b, strlen(tensors[i].name));
        put(&b, tensors[i].name, strlen(tensors[i].name));
        put_u32(&b, tensors[i].rows ? 2 : 1);
        put_u64(&b, tensors[i].columns);
        if (tensors[i].rows)
            put_u64(&b, tensors[i].rows);
        put_u32(&b, tensors[i].type);
        put_u64(&b, tensors[i].offset);
    }
    put_zeros(&b, 32 - b.size % 32);
    put_zeros(&b, 1472 + 9 * 1024);
    file_write(path, b.data, b.size);
    bytes_free(&b);
    return path;
}

static void matrices_that_do_not_share_x_and_epsilons_of_which_none_is_meant_are_named(void **state)
{
    (void)state;
    const char *file = gguf_of_two();
    assert_refuses(2,
                   "ptxgen: b has 512 columns and a has 256; matrices of one launch share x\n",
                   "run", "rmsnorm_q4k", "--gguf", file, "--tensor", "a,b", "--norm", "v.g", CPU);
    assert_refuses(4,
                   "ptxgen: the file has 2 keys *.attention.layer_norm_rms_epsilon, and v.g is not "
                   "the text model's; say --epsilon\n",
                   "run", "rmsnorm_q4k", "--gguf", file, "--tensor", "a", "--norm", "v.g", CPU);
    assert_refuses(2,
                   "ptxgen: x has 9 rows, and a launch takes 8; --m says how many of the first to "
                   "take\n",
                   "run", "rmsnorm_q4k", "--gguf", file, "--tensor", "a", "--norm", "v.g",
                   "--epsilon", "1e-5", "--input", "x", CPU);
}

static void a_packed_layer_takes_no_option_of_its_checkpoint(void **state)
{
    (void)state;
    char packed[FOLDER_PATH + 40];
    snprintf(packed, sizeof packed, "%s", in_folder("packed.safetensors"));
    struct outcome o = run("convert", LAYERS, packed, "--to", "packed", "--layer", "gptq");
    assert_exit(&o, 0);
    outcome_free(&o);
    assert_refuses(2, "ptxgen: gptq is packed already\n", "convert", packed, in_folder("again"),
                   "--to", "packed");
    assert_refuses(2,
                   "ptxgen: gptq is packed: --up-layer, --format, --group-size and --type do not "
                   "go with it\n",
                   "run", "marlin", "--safetensors", packed, "--layer", "gptq", "--format", "awq",
                   CPU);
}

static void a_plot_is_of_rows_with_times(void **state)
{
    (void)state;
    static const struct {
        const char *json, *says;
    } rows[] = {
        {"{\"a\":1}", "ptxgen: the JSON has no array \"rows\"\n"},
        {"{\"rows\":7}", "ptxgen: the JSON has no array \"rows\"\n"},
        {"{\"rows\":[]}", "ptxgen: the JSON has no rows\n"},
        {"{\"rows\":[{}]}",
         "ptxgen: a row of the JSON has no \"m\" or no \"time\" of a positive \"median_us\"\n"},
    };
    char json[FOLDER_PATH + 40];
    snprintf(json, sizeof json, "%s", in_folder("x.json"));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        file_write(json, rows[i].json, strlen(rows[i].json));
        assert_refuses(4, rows[i].says, "plot", json, in_folder("x.svg"));
    }
}

static void a_gnuplot_that_fails_is_told(void **state)
{
    (void)state;
    static const char script[] = "#!/bin/sh\nexit 3\n";
    char *path = strdup(getenv("PATH")), gnuplot[FOLDER_PATH + 40];
    snprintf(gnuplot, sizeof gnuplot, "%s", in_folder("gnuplot"));
    file_write(gnuplot, script, sizeof script - 1);
    assert_int_equal(chmod(gnuplot, 0700), 0);
    setenv("PATH", folder, 1);
    struct outcome o = run("bench", "dense", "--n", "64", "--k", "64", CPU, "--plot",
                           in_folder("y.svg"));
    setenv("PATH", path, 1);
    free(path);
    assert_contains(o.err, "gnuplot failed (wait status 768)\n");
    outcome_free(&o);
}

/* ---- pieces ---- */

static void an_index_that_breaks_a_rule_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"", "safetensors index: 0 bytes; 1 to 100000000 are accepted"},
        {"[]", "safetensors index: it is not an object"},
        {"{}",
         "safetensors index: \"weight_map\" is missing; a sharded checkpoint's index has an "
         "object there"},
        {"{\"weight_map\":1}",
         "safetensors index: \"weight_map\" is not an object; a sharded checkpoint's index has "
         "an object there"},
        {"{\"weight_map\":{},\"weight_map\":{}}",
         "safetensors index: \"weight_map\" appears twice"},
        {"{\"weight_map\":{}}", "safetensors index: \"weight_map\" is empty"},
        {"{\"weight_map\":{\"a\":1}}",
         "safetensors index: the file of tensor \"a\" is not a string"},
        {"{\"weight_map\":{\"a\":\"../f\"}}",
         "safetensors index: tensor \"a\" is in \"../f\", which is not the name of a file "
         "beside the index"},
        {"{\"weight_map\":{\"a\":\"..\"}}",
         "safetensors index: tensor \"a\" is in \"..\", which is not the name of a file beside "
         "the index"},
        {"{\"weight_map\":{\"a\":\"\"}}",
         "safetensors index: tensor \"a\" is in \"\", which is not the name of a file beside "
         "the index"},
        {"{\"weight_map\":{\"a\":\"f\",\"a\":\"g\"}}",
         "safetensors index: tensor \"a\" appears twice"},
    };
    struct safetensors_index *index;
    ptxgen_error err = {.status = PTXGEN_OK};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_refusal(
            safetensors_index_parse(rows[i].text, strlen(rows[i].text), &index, &err), &err,
            PTXGEN_ERROR_MALFORMED, rows[i].says);
    static const char good[] = "{\"weight_map\":{\"a\":\"f\",\"b\":\"f\"}}";
    assert_ok(safetensors_index_parse(good, strlen(good), &index, &err), &err);
    safetensors_index_free(index);
}

static void a_writer_takes_what_was_declared(void **state)
{
    (void)state;
    const ptxgen_tensor tensor = {
        .name = "t", .dtype = PTXGEN_DTYPE_I8, .ndim = 1, .shape = {4}, .bytes = 4};
    ptxgen_error err = {.status = PTXGEN_OK};
    for (int appended = 0; appended < 3; appended++) {
        struct safetensors_writer *w;
        assert_ok(safetensors_writer_open(in_folder("w.safetensors"), true, &w, &err), &err);
        assert_ok(safetensors_writer_declare(w, &tensor, &err), &err);
        if (appended == 0)
            assert_refusal(safetensors_writer_append(w, "abc", 3, &err), &err,
                           PTXGEN_ERROR_INVALID_ARGUMENT,
                           "tensor 1 of 1 is given 3 bytes, but 4 were declared");
        for (int i = 0; i < appended && i < 1; i++)
            assert_ok(safetensors_writer_append(w, "abcd", 4, &err), &err);
        if (appended == 2)
            assert_refusal(safetensors_writer_append(w, "abcd", 4, &err), &err,
                           PTXGEN_ERROR_INVALID_ARGUMENT,
                           "data are given for more than the 1 tensors that were declared");
        if (appended)
            assert_ok(safetensors_writer_finish(w, &err), &err);
        else
            assert_refusal(safetensors_writer_finish(w, &err), &err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "1 of 1 tensors have no data");
    }
}

static ptxgen_cu_result no_memory(ptxgen_cu_deviceptr *address, size_t bytes)
{
    (void)address, (void)bytes;
    return PTXGEN_CUDA_ERROR_OUT_OF_MEMORY;
}

static void stray_writes_are_told_by_buffer_and_byte(void **state)
{
    (void)state;
    struct device device = open_device("cpu");
    struct buffer b;
    ptxgen_error err = {.status = PTXGEN_OK};
    assert_refusal(buffer_create(&device, "x", SIZE_MAX, 1, &b, &err), &err,
                   PTXGEN_ERROR_OUT_OF_MEMORY, "x: 18446744073709551615 bytes are too many");
    device.emulated = false; /* guard bands */
    assert_ok(buffer_create(&device, "y", 16, 0, &b, &err), &err);
    memset(b.host, 0, 16);
    assert_ok(buffer_upload(&b, &err), &err);
    assert_ok(buffer_verify(&b, &err), &err);
    device.driver.memset_d8(b.address + 5, 7, 1);
    assert_refusal(buffer_verify(&b, &err), &err, PTXGEN_ERROR_PTX_FAULT,
                   "the kernel changed its input y at byte 5 of 16");
    device.driver.memset_d8(b.address + 16, 7, 1);
    assert_refusal(buffer_download(&b, &err), &err, PTXGEN_ERROR_PTX_FAULT,
                   "the kernel wrote outside y: byte 16 of its 16 is now 0x07");
    assert_ok(buffer_upload(&b, &err), &err);
    device.driver.memset_d8(b.address - 1, 9, 1);
    assert_refusal(buffer_download(&b, &err), &err, PTXGEN_ERROR_PTX_FAULT,
                   "the kernel wrote outside y: byte -1 of its 16 is now 0x09");
    buffer_destroy(&b);
    device.emulated = true;
    device.driver.mem_alloc = no_memory;
    assert_refusal(buffer_create(&device, "z", 16, 0, &b, &err), &err, PTXGEN_ERROR_OUT_OF_MEMORY,
                   "allocating 16 bytes of device memory for z: CUDA_ERROR_OUT_OF_MEMORY (2, "
                   "CUDA_ERROR_OUT_OF_MEMORY)");
    buffer_destroy(&b);
    device_close(&device);
}

static void a_profile_is_of_the_text_that_ran(void **state)
{
    (void)state;
    static const char text[] = ".version 7.0\n.target sm_80\n.visible .entry k() {\nret;\n}\n";
    struct device device = open_device("cpu:sm_80");
    const ptxgen_emulator_options options = {.profile = true};
    ptxgen_emulator_profile *profile;
    ptxgen_cu_module module;
    ptxgen_cu_function function;
    struct profile_tally tally = {0};
    ptxgen_error err = {.status = PTXGEN_OK};
    assert_ok(ptxgen_emulator_set_options(device.context, &options, &err), &err);
    assert_int_equal(device.driver.module_load_data_ex(&module, text, 0, NULL, NULL), 0);
    assert_int_equal(device.driver.module_get_function(&function, module, "k"), 0);
    assert_int_equal(
        device.driver.launch_kernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), 0);
    assert_ok(ptxgen_emulator_profile_take(device.context, &profile, &err), &err);
    assert_refusal(profile_tally_make(profile, ".visible .entry other() {\n}\n", &tally, &err),
                   &err, PTXGEN_ERROR_STRUCTURE,
                   "k: the annotated text has no \"ret;\" where the kernel has it");
    profile_tally_free(&tally);
    ptxgen_emulator_profile_free(profile);
    device.driver.module_unload(module);
    device_close(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_that_are_missing_or_beyond_a_limit_are_named),
        cmocka_unit_test(options_with_another_value_are_named),
        cmocka_unit_test(files_that_do_not_hold_what_is_asked_for_are_named),
        cmocka_unit_test(tensors_of_another_type_than_a_layer_has_are_named),
        cmocka_unit_test(
            matrices_that_do_not_share_x_and_epsilons_of_which_none_is_meant_are_named),
        cmocka_unit_test(a_packed_layer_takes_no_option_of_its_checkpoint),
        cmocka_unit_test(a_plot_is_of_rows_with_times),
        cmocka_unit_test(a_gnuplot_that_fails_is_told),
        cmocka_unit_test(an_index_that_breaks_a_rule_is_refused),
        cmocka_unit_test(a_writer_takes_what_was_declared),
        cmocka_unit_test(a_profile_is_of_the_text_that_ran),
        cmocka_unit_test(stray_writes_are_told_by_buffer_and_byte),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
