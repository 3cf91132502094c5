/* SPDX-License-Identifier: Apache-2.0 */
/* Opening files by path: the golden ones, and paths that cannot be read. */
#include "tests/status.h"

#include "src/files/nearest.h"
#include "src/files/printable.h"
#include <ptxgen/gguf.h>
#include "tests/dispatch/folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *golden(const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", GOLDEN_DIR, name);
    return path;
}

static ptxgen_files *expect_store(const char *path)
{
    ptxgen_files *store;
    ptxgen_error err = {0};
    assert_ok(ptxgen_files_open(path, &store, &err), &err);
    return store;
}

static void assert_contains(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" does not contain \"%s\"", text, part);
}

static void expect_refusal(const char *path, ptxgen_status status, const char *rule)
{
    ptxgen_files *store;
    ptxgen_error err = {0};
    assert_int_equal(ptxgen_files_open(path, &store, &err), status);
    assert_null(store);
    assert_contains(err.message, path);
    assert_contains(err.message, rule);
}

/* A new file of these bytes, which the caller unlinks. */
static void write_temporary(char path[64], const void *data, size_t size)
{
    strcpy(path, "/tmp/ptxgen-test-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, size), size);
    close(fd);
}

static void store_reads_the_golden_gguf(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        ptxgen_dtype dtype;
        unsigned ndim;
        uint64_t shape[2];
    } expected[] = {
        {"blk.0.attn_q.weight", PTXGEN_DTYPE_Q4_K, 2, {96, 1024}},
        {"blk.0.attn_norm.weight", PTXGEN_DTYPE_F32, 1, {1024, 0}},
        {"input", PTXGEN_DTYPE_F32, 1, {1024, 0}},
        {"expected.dequantized", PTXGEN_DTYPE_F32, 2, {96, 1024}},
        {"expected.output", PTXGEN_DTYPE_F32, 1, {96, 0}},
    };
    ptxgen_files *store = expect_store(golden("q4k.gguf"));
    const ptxgen_gguf *file = ptxgen_files_gguf(store);
    assert_non_null(file);
    assert_null(ptxgen_files_safetensors(store));
    assert_int_equal(ptxgen_files_tensors(store)->count, sizeof expected / sizeof *expected);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const ptxgen_tensor *t = &ptxgen_files_tensors(store)->items[i];
        assert_string_equal(t->name, expected[i].name);
        assert_int_equal(t->dtype, expected[i].dtype);
        assert_int_equal(t->ndim, expected[i].ndim);
        for (unsigned d = 0; d < t->ndim; d++)
            assert_int_equal(t->shape[d], expected[i].shape[d]);
    }

    ptxgen_gguf_string string;
    uint32_t u32;
    float f32;
    assert_int_equal(ptxgen_gguf_version(file), 3);
    assert_int_equal(ptxgen_gguf_alignment(file), 32);
    assert_int_equal(ptxgen_gguf_get_string(file, "general.architecture", &string, NULL),
                     PTXGEN_OK);
    assert_int_equal(string.length, 5);
    assert_memory_equal(string.bytes, "llama", 5);
    assert_int_equal(ptxgen_gguf_get_u32(file, "llama.embedding_length", &u32, NULL), PTXGEN_OK);
    assert_int_equal(u32, 1024);
    assert_int_equal(
        ptxgen_gguf_get_f32(file, "llama.attention.layer_norm_rms_epsilon", &f32, NULL), PTXGEN_OK);
    assert_true(f32 == 1e-6f);
    ptxgen_gguf_array tokens;
    assert_int_equal(ptxgen_gguf_get_array(file, "tokenizer.ggml.tokens", &tokens, NULL),
                     PTXGEN_OK);
    assert_int_equal(tokens.count, 3);
    ptxgen_files_close(store);
}

static void store_reads_the_golden_safetensors(void **state)
{
    (void)state;
    static const struct {
        const char *file, *tensor;
        size_t count;
        ptxgen_dtype dtype;
        uint64_t rows, columns;
        const char *group_size; /* in the metadata, or NULL */
    } expected[] = {
        {"marlin_g128.safetensors", "marlin.B", 10, PTXGEN_DTYPE_I32, 16, 1024, "128"},
        {"marlin_channel.safetensors", "gptq.scales", 10, PTXGEN_DTYPE_F16, 1, 256, "-1"},
        {"sparse24_torch.safetensors", "bf16.meta_cutlass", 9, PTXGEN_DTYPE_I16, 64, 8, NULL},
        {"w8a8.safetensors", "weight", 4, PTXGEN_DTYPE_I8, 40, 96, NULL},
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        ptxgen_files *store = expect_store(golden(expected[i].file));
        const ptxgen_safetensors *file = ptxgen_files_safetensors(store);
        const ptxgen_tensor *t;
        assert_non_null(file);
        assert_null(ptxgen_files_gguf(store));
        assert_int_equal(ptxgen_files_tensors(store)->count, expected[i].count);
        assert_int_equal(ptxgen_files_require(store, expected[i].tensor, &t, NULL), PTXGEN_OK);
        assert_int_equal(t->dtype, expected[i].dtype);
        assert_int_equal(t->ndim, 2);
        assert_int_equal(t->shape[0], expected[i].rows);
        assert_int_equal(t->shape[1], expected[i].columns);
        const char *group_size = ptxgen_safetensors_metadata(file, "group_size");
        if (expected[i].group_size)
            assert_string_equal(group_size, expected[i].group_size);
        else
            assert_null(group_size);
        ptxgen_files_close(store);
    }
}

static void store_names_the_missing_tensor_and_the_file(void **state)
{
    (void)state;
    ptxgen_files *store = expect_store(golden("q4k.gguf"));
    const ptxgen_tensor *t;
    ptxgen_error err;
    assert_int_equal(ptxgen_files_require(store, "blk.1.attn_q.weight", &t, &err),
                     PTXGEN_ERROR_NOT_FOUND);
    assert_contains(err.message, "q4k.gguf");
    assert_contains(err.message, "\"blk.1.attn_q.weight\"");
    ptxgen_files_close(store);
}

static void store_refuses_paths_that_are_not_files(void **state)
{
    (void)state;
    expect_refusal("/nonexistent/model.gguf", PTXGEN_ERROR_FILE, "No such file");

    char path[64], folder[FOLDER_PATH];
    folder_make(folder);
    expect_refusal(folder, PTXGEN_ERROR_NOT_FOUND, "is a folder without");
    folder_remove(folder);
    write_temporary(path, "", 0);
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_refusal(path, PTXGEN_ERROR_FILE, "not a regular file");
    unlink(path);
}

static void store_refuses_files_of_neither_format(void **state)
{
    (void)state;
    char path[64];
    write_temporary(path, "", 0);
    expect_refusal(path, PTXGEN_ERROR_MALFORMED, "its 0 bytes");
    unlink(path);
    write_temporary(path,
                    "\x7f"
                    "ELF and more",
                    13);
    expect_refusal(path, PTXGEN_ERROR_MALFORMED, "begin with \"\\x7FELF and \"");
    unlink(path);
    write_temporary(path, "GGUF\x09\0\0\0", 8);
    expect_refusal(path, PTXGEN_ERROR_UNSUPPORTED, "version 9");
    unlink(path);
}

static void printable_escapes_and_cuts(void **state)
{
    (void)state;
    assert_string_equal(printable("plain \xC3\xA9", 8).text, "\"plain \xC3\xA9\"");
    assert_string_equal(printable("\"\\\n\x7F\x80", 5).text, "\"\\x22\\x5C\\x0A\\x7F\\x80\"");
    char name[500];
    memset(name, 'n', sizeof name);
    struct printable cut = printable(name, sizeof name);
    assert_true(strlen(cut.text) < PRINTABLE_SIZE);
    assert_string_equal(cut.text + strlen(cut.text) - 5, "n...\"");
    memset(name, 0xFF, sizeof name);
    cut = printable(name, sizeof name);
    assert_true(strlen(cut.text) < PRINTABLE_SIZE);
    assert_string_equal(cut.text + strlen(cut.text) - 8, "\\xFF...\"");
}

static const char *nearest_of(const char *wanted, const char *const *names)
{
    static struct nearest_text text;
    struct nearest nearest = {.wanted = wanted};
    for (; *names; names++)
        nearest_offer(&nearest, *names, strlen(*names));
    text = nearest_text(&nearest);
    return text.text;
}

static void nearest_names_are_those_with_the_fewest_edits(void **state)
{
    (void)state;
    char longer[NEAREST_LONGEST + 2];
    const char *const names[] = {"abcdef",
                                 "abcdxx",
                                 "abcxef",
                                 "abxxef",
                                 "zzzzzz",
                                 "abcdef",
                                 "x.abcde.long.name.of.many.parts",
                                 NULL};
    const char *const odd[] = {"", "q\n", longer, NULL};
    memset(longer, 'q', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    assert_string_equal(nearest_of("abcdef", names),
                        "; did you mean \"abcdef\", \"abcxef\" or \"abcdxx\"?");
    assert_string_equal(nearest_of("zzzz", names), "; did you mean \"zzzzzz\"?");
    assert_string_equal(nearest_of("long.name", names),
                        "; did you mean \"x.abcde.long.name.of.many.parts\"?");
    assert_string_equal(nearest_of("yyyyyy", names), "");
    assert_string_equal(nearest_of("", names), "");
    assert_string_equal(nearest_of("q", odd), "; did you mean \"q\\x0A\"?");
    assert_string_equal(nearest_of(longer, odd), "");
}

static void utf8_follows_the_unicode_table(void **state)
{
    (void)state;
    static const char *const good[] = {"",
                                       "\x7F",
                                       "\xC2\x80",
                                       "\xE0\xA0\x80",
                                       "\xED\x9F\xBF",
                                       "\xEF\xBF\xBF",
                                       "\xF0\x90\x80\x80",
                                       "\xF4\x8F\xBF\xBF"};
    static const char *const bad[] = {"\x80",
                                      "\xC1\xBF",
                                      "\xC2",
                                      "\xE0\x9F\xBF",
                                      "\xED\xA0\x80",
                                      "\xE1\x80",
                                      "\xE1\x80\x41",
                                      "\xF0\x8F\xBF\xBF",
                                      "\xF4\x90\x80\x80",
                                      "\xF5\x80\x80\x80",
                                      "\xF1\x80\x80\xC0"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(utf8_is_valid(good[i], strlen(good[i])));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(utf8_is_valid(bad[i], strlen(bad[i])));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(store_reads_the_golden_gguf),
        cmocka_unit_test(store_reads_the_golden_safetensors),
        cmocka_unit_test(store_names_the_missing_tensor_and_the_file),
        cmocka_unit_test(store_refuses_paths_that_are_not_files),
        cmocka_unit_test(store_refuses_files_of_neither_format),
        cmocka_unit_test(printable_escapes_and_cuts),
        cmocka_unit_test(nearest_names_are_those_with_the_fewest_edits),
        cmocka_unit_test(utf8_follows_the_unicode_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
