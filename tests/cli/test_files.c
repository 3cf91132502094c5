/* SPDX-License-Identifier: Apache-2.0 */
/* What ptxgen files says of checkpoints, and the names that a wrong one was meant for. */
#include "tests/status.h"

#include "command.h"
#include "src/cli/safetensors_writer.h"
#include "src/files/tensor_list.h"
#include "tests/dispatch/folder.h"

#include <cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define Q4K GOLDEN_DIR "/q4k.gguf"
#define MARLIN GOLDEN_DIR "/marlin_g128.safetensors"
#define SPARSE GOLDEN_DIR "/sparse24_torch.safetensors"
#define W8A8 GOLDEN_DIR "/w8a8.safetensors"
#define CPU "--device", "cpu:sm_80"

/* ---- listings ---- */

static void assert_lists(const char *path, const char *lines)
{
    struct outcome o = run("files", path);
    assert_exit(&o, 0);
    assert_string_equal(o.err, "");
    const char *head_end = strchr(o.out, '\n');
    assert_non_null(head_end);
    assert_string_equal(head_end + 1, lines);
    outcome_free(&o);
}

static void a_gguf_file_is_listed_with_the_norm_of_a_matrix(void **state)
{
    (void)state;
    struct outcome o = run("files", Q4K);
    assert_contains(o.out, Q4K ": GGUF, 5 tensors, 457088 bytes\n");
    outcome_free(&o);
    assert_lists(Q4K, "blk.0.attn_q.weight     Q4_K    [96, 1024]       rmsnorm_q4k --tensor "
                      "blk.0.attn_q.weight --norm blk.0.attn_norm.weight\n"
                      "blk.0.attn_norm.weight  F32     [1024]           none: a vector\n"
                      "input                   F32     [1024]           none: a vector\n"
                      "expected.dequantized    F32     [96, 1024]       gguf_linear --tensor "
                      "expected.dequantized\n"
                      "expected.output         F32     [96]             none: a vector\n");
    o = run("files", GOLDEN_DIR "/gguf_types.gguf");
    assert_exit(&o, 0);
    assert_contains(o.out,
                    "Q6_K.weight      Q6_K    [3, 256]         gguf_linear --tensor Q6_K.weight\n");
    assert_contains(o.out,
                    "Q4_K.weight      Q4_K    [3, 256]         gguf_linear --tensor Q4_K.weight\n");
    assert_contains(
        o.out, "BF16.quantised   BF16    [12, 256]        gguf_linear --tensor BF16.quantised\n");
    outcome_free(&o);
}

static void layers_of_safetensors_are_listed_with_their_parts(void **state)
{
    (void)state;
    assert_lists(MARLIN,
                 "C             F32     [5, 512]         dense\n"
                 "gptq.g_idx    I32     [256]            part of layer gptq\n"
                 "gptq.qweight  I32     [32, 512]        marlin K=256 N=512 --layer gptq\n"
                 "gptq.qzeros   I32     [2, 64]          part of layer gptq\n"
                 "marlin.B      I32     [16, 1024]       marlin K=256 N=512 --layer marlin\n"
                 "A             F16     [5, 256]         dense\n"
                 "gptq.scales   F16     [2, 512]         part of layer gptq\n"
                 "marlin.s      F16     [2, 512]         part of layer marlin\n"
                 "scales        F16     [2, 512]         dense\n"
                 "codes         U8      [256, 512]       none: no family multiplies U8\n");
    struct outcome o = run("files", SPARSE);
    assert_exit(&o, 0);
    assert_contains(o.out, "s8.sparse          I8      [64, 64]         sparse24 K=128 N=64 "
                           "--layer s8\n");
    assert_contains(o.out, "s8.dense           I8      [64, 128]        part of layer s8\n");
    outcome_free(&o);
    o = run("files", W8A8);
    assert_exit(&o, 0);
    assert_contains(o.out, "weight        I8      [40, 96]         w8a8 K=96 N=40 --layer ''\n");
    outcome_free(&o);
}

/* What was listed is what run takes, word for word. */
static void the_options_that_are_listed_run(void **state)
{
    (void)state;
    static const char *const runs[][12] = {
        {"run", "rmsnorm_q4k", "--gguf", Q4K, "--tensor", "blk.0.attn_q.weight", "--norm",
         "blk.0.attn_norm.weight", CPU},
        {"run", "marlin", "--safetensors", MARLIN, "--layer", "marlin", CPU},
        {"run", "sparse24", "--safetensors", SPARSE, "--layer", "s8", CPU},
        {"run", "w8a8", "--safetensors", W8A8, "--layer", "", CPU},
    };
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        struct outcome o = run_command(runs[i]);
        assert_exit(&o, 0);
        outcome_free(&o);
    }
}

/* ---- layers that no family runs ---- */

static void add(struct safetensors_writer *w, const char *name, ptxgen_dtype dtype, uint64_t rows,
                uint64_t columns)
{
    ptxgen_error err = {0};
    ptxgen_tensor t = {
        .name = name, .dtype = dtype, .ndim = columns ? 2 : 1, .shape = {rows, columns}};
    assert_ok(tensor_measure(&t, &err), &err);
    assert_ok(safetensors_writer_declare(w, &t, &err), &err);
}

static void fill(struct safetensors_writer *w, const void *data, size_t bytes)
{
    ptxgen_error err = {0};
    assert_ok(safetensors_writer_append(w, data, bytes, &err), &err);
}

static void why_a_family_would_not_run_a_layer_is_said(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], path[FOLDER_PATH + 40];
    static const unsigned char zeros[4096];
    const float scale = NAN;
    struct safetensors_writer *w;
    ptxgen_error err = {0};
    folder_make(folder);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    assert_ok(safetensors_writer_open(path, false, &w, &err), &err);
    add(w, "a.weight", PTXGEN_DTYPE_I8, 16, 64);
    add(w, "a.weight_scale", PTXGEN_DTYPE_F32, 1, 0);
    add(w, "b.qweight", PTXGEN_DTYPE_I32, 2, 8);
    add(w, "c\x1b[31m.weight", PTXGEN_DTYPE_F64, 2, 2);
    fill(w, zeros, 16 * 64);
    fill(w, &scale, sizeof scale);
    fill(w, zeros, 2 * 8 * 4);
    fill(w, zeros, 2 * 2 * 8);
    assert_ok(safetensors_writer_finish(w, &err), &err);
    const char *lines = "a.weight            I8      [16, 64]         none: w8a8: "
                        "\"a.weight_scale\" is nan (number 0); a scale is finite\n"
                        "a.weight_scale      F32     [1]              part of layer a\n"
                        "b.qweight           I32     [2, 8]           none: marlin: the file has "
                        "no b.scales\n"
                        "\"c\\x1B[31m.weight\"  F64     [2, 2]           none: no family "
                        "multiplies F64\n";
    assert_lists(path, lines);
    assert_lists(folder, lines);
    assert_refuses(4, "has no tensor \"aa.weight\"; did you mean \"a.weight\"", "run", "w8a8", CPU,
                   "--safetensors", path, "--layer", "aa");
    folder_remove(folder);
}

/* ---- JSON ---- */

static const char *string_at(const cJSON *object, const char *name)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(object, name));
    return text ? text : "absent";
}

static void json_has_what_the_lines_have(void **state)
{
    (void)state;
    struct outcome o = run("files", MARLIN, "--json");
    assert_exit(&o, 0);
    cJSON *json = cJSON_Parse(o.out);
    const cJSON *tensors = cJSON_GetObjectItem(json, "tensors");
    assert_string_equal(string_at(json, "file"), MARLIN);
    assert_string_equal(string_at(json, "format"), "safetensors");
    assert_true(cJSON_GetObjectItem(json, "bytes")->valuedouble == 282624);
    assert_int_equal(cJSON_GetArraySize(tensors), 10);
    const cJSON *t = cJSON_GetArrayItem(tensors, 2);
    assert_string_equal(string_at(t, "name"), "gptq.qweight");
    assert_string_equal(string_at(t, "type"), "I32");
    assert_string_equal(string_at(t, "layer"), "gptq");
    assert_string_equal(string_at(t, "family"), "marlin");
    assert_string_equal(string_at(t, "options"), "--layer gptq");
    assert_string_equal(string_at(t, "reason"), "absent");
    const cJSON *shape = cJSON_GetObjectItem(t, "shape");
    assert_int_equal(cJSON_GetArraySize(shape), 2);
    assert_true(cJSON_GetArrayItem(shape, 0)->valuedouble == 32);
    assert_true(cJSON_GetArrayItem(shape, 1)->valuedouble == 512);
    assert_true(cJSON_GetObjectItem(t, "bytes")->valuedouble == 32 * 512 * 4);
    assert_true(cJSON_GetObjectItem(t, "k")->valuedouble == 256);
    assert_true(cJSON_GetObjectItem(t, "n")->valuedouble == 512);
    t = cJSON_GetArrayItem(tensors, 3);
    assert_string_equal(string_at(t, "layer"), "gptq");
    assert_string_equal(string_at(t, "family"), "none");
    assert_string_equal(string_at(t, "reason"), "part of layer gptq");
    assert_null(cJSON_GetObjectItem(t, "k"));
    t = cJSON_GetArrayItem(tensors, 0);
    assert_string_equal(string_at(t, "layer"), "absent");
    assert_string_equal(string_at(t, "family"), "dense");
    assert_string_equal(string_at(t, "options"), "absent");
    cJSON_Delete(json);
    outcome_free(&o);
}

/* ---- refusals ---- */

static void what_cannot_be_listed_is_refused(void **state)
{
    (void)state;
    assert_refuses(2, " files: a file or a folder must be named\n", "files");
    assert_refuses(2, "Too many arguments", "files", Q4K, W8A8);
    assert_refuses(4, "ptxgen: cannot open /nonexistent: No such file or directory\n", "files",
                   "/nonexistent");
    assert_refuses(2, "ptxgen: " GOLDEN_DIR " has several files that could be meant", "files",
                   GOLDEN_DIR);
}

static void a_wrong_name_is_answered_with_the_nearest(void **state)
{
    (void)state;
    assert_refuses(4,
                   "ptxgen: " Q4K " has no tensor \"blk.0.atn_q.weight\"; did you mean "
                   "\"blk.0.attn_q.weight\" or \"blk.0.attn_norm.weight\"?\n",
                   "run", "rmsnorm_q4k", CPU, "--gguf", Q4K, "--tensor", "blk.0.atn_q.weight",
                   "--norm", "blk.0.attn_norm.weight");
    assert_refuses(4,
                   "ptxgen: " Q4K " has no tensor \"attn_norm\"; did you mean "
                   "\"blk.0.attn_norm.weight\"?\n",
                   "run", "rmsnorm_q4k", CPU, "--gguf", Q4K, "--tensor", "blk.0.attn_q.weight",
                   "--norm", "attn_norm");
    assert_refuses(4,
                   "ptxgen: the file has no gtpq.qweight, gtpq.weight_packed or gtpq.B; did you "
                   "mean \"gptq\"?\n",
                   "run", "marlin", CPU, "--safetensors", MARLIN, "--layer", "gtpq");
    assert_refuses(4,
                   "PREFIX.compressed and PREFIX.bitmask …); did you mean \"f16\" or \"bf16\"?\n",
                   "run", "sparse24", CPU, "--safetensors", SPARSE, "--layer", "f17");
    assert_refuses(4, "gtpq.weight_packed or gtpq.B; did you mean \"gptq\"?\n", "convert", MARLIN,
                   "/nonexistent/new", "--to", "awq", "--layer", "gtpq");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gguf_file_is_listed_with_the_norm_of_a_matrix),
        cmocka_unit_test(layers_of_safetensors_are_listed_with_their_parts),
        cmocka_unit_test(the_options_that_are_listed_run),
        cmocka_unit_test(why_a_family_would_not_run_a_layer_is_said),
        cmocka_unit_test(json_has_what_the_lines_have),
        cmocka_unit_test(what_cannot_be_listed_is_refused),
        cmocka_unit_test(a_wrong_name_is_answered_with_the_nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
