/* SPDX-License-Identifier: Apache-2.0 */
/* Byte-level BPE: ids against those of PyPI's tokenizers (make_bpe.py), and text again. */
#include "examples/generate/tokenizer.h"
#include "tests/files/bytes.h"
#include "tests/status.h"

#include <ptxgen/files.h>

#include <stdlib.h>
#include <string.h>

struct bench {
    ptxgen_files *files;
    const ptxgen_gguf *gguf;
    struct tokenizer *tokenizer;
};

static struct bench open_bench(void)
{
    struct bench b = {0};
    ptxgen_error err;
    assert_ok(ptxgen_files_open(GOLDEN_DIR "/bpe.gguf", &b.files, &err), &err);
    b.gguf = ptxgen_files_gguf(b.files);
    assert_ok(tokenizer_open(b.gguf, &b.tokenizer, &err), &err);
    return b;
}

static void close_bench(struct bench *b)
{
    tokenizer_close(b->tokenizer);
    ptxgen_files_close(b->files);
}

static ptxgen_gguf_array array_of(const struct bench *b, const char *key)
{
    ptxgen_gguf_array array;
    ptxgen_error err;
    assert_ok(ptxgen_gguf_get_array(b->gguf, key, &array, &err), &err);
    return array;
}

static int64_t next_number(ptxgen_gguf_array *rest)
{
    ptxgen_gguf_value value;
    assert_true(ptxgen_gguf_array_next(rest, &value));
    return value.i;
}

/* The text of all ids, which the caller frees. */
static char *text_of(const struct tokenizer *t, const int32_t *ids, uint32_t count)
{
    enum { MOST = 256 };
    char *text = calloc((size_t)count + 1, MOST);
    assert_non_null(text);
    for (uint32_t i = 0; i < count; i++)
        tokenizer_text(t, ids[i], text + strlen(text), MOST);
    return text;
}

static bool has_control(const struct tokenizer *t, const int32_t *ids, uint32_t count)
{
    char text[256];
    for (uint32_t i = 0; i < count; i++) {
        tokenizer_text(t, ids[i], text, sizeof text);
        if (!*text)
            return true;
    }
    return false;
}

static void ids_are_those_of_another_implementation(void **state)
{
    (void)state;
    struct bench b = open_bench();
    ptxgen_gguf_array texts = array_of(&b, "case.texts"), counts = array_of(&b, "case.counts"),
                      right = array_of(&b, "case.ids");
    ptxgen_gguf_value value;
    unsigned cases = 0;
    for (; ptxgen_gguf_array_next(&texts, &value); cases++) {
        char *text = calloc(value.string.length + 1, 1);
        int32_t *ids;
        uint32_t count, due = (uint32_t)next_number(&counts);
        ptxgen_error err;
        assert_non_null(text);
        memcpy(text, value.string.bytes, value.string.length);
        assert_ok(tokenizer_ids(b.tokenizer, text, &ids, &count, &err), &err);
        const uint32_t first = strncmp(text, "<|begin_of_text|>", 17) != 0;
        if (count != due + first)
            fail_msg("\"%s\" is %u tokens; due are %u", text, count - first, due);
        for (uint32_t i = 0; i < due; i++) {
            int32_t id = (int32_t)next_number(&right);
            if (ids[first + i] != id)
                fail_msg("\"%s\": token %u is %d; due is %d", text, i, ids[first + i], id);
        }
        if (!has_control(b.tokenizer, ids + first, due)) {
            char *again = text_of(b.tokenizer, ids, count);
            assert_string_equal(again, text);
            free(again);
        }
        free(ids);
        free(text);
    }
    assert_int_equal(cases, 246);
    close_bench(&b);
}

/* The bytes come back, whatever they are; each is a character of its own between words. */
static void bytes_that_are_no_utf_8_are_kept(void **state)
{
    static const char *const texts[] = {
        "\x80",     "a\xFF!",   "\xC3",           "\xC3(",
        "\xE2\x82", "\xC0\xAF", "\xED\xA0\x80 x", "\xF4\x90\x80\x80\xF8",
    };
    (void)state;
    struct bench b = open_bench();
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        int32_t *ids;
        uint32_t count;
        ptxgen_error err;
        assert_ok(tokenizer_ids(b.tokenizer, texts[i], &ids, &count, &err), &err);
        char *again = text_of(b.tokenizer, ids, count);
        assert_string_equal(again, texts[i]);
        free(again);
        free(ids);
    }
    close_bench(&b);
}

static void special_tokens_begin_end_and_hide(void **state)
{
    (void)state;
    struct bench b = open_bench();
    int32_t *ids, *plain;
    uint32_t count, plain_count, begin, end;
    char text[32];
    ptxgen_error err;
    assert_ok(ptxgen_gguf_get_u32(b.gguf, "tokenizer.ggml.bos_token_id", &begin, &err), &err);
    assert_ok(ptxgen_gguf_get_u32(b.gguf, "tokenizer.ggml.eos_token_id", &end, &err), &err);
    assert_ok(tokenizer_ids(b.tokenizer, "<|begin_of_text|>hi<|eot_id|>", &ids, &count, &err),
              &err);
    assert_ok(tokenizer_ids(b.tokenizer, "hi", &plain, &plain_count, &err), &err);
    assert_int_equal(ids[0], begin);
    assert_int_equal(plain[0], begin);
    assert_int_equal(count, plain_count + 1);
    assert_memory_equal(ids, plain, plain_count * sizeof *ids);
    assert_int_equal(ids[count - 1], end);
    assert_true(tokenizer_ends(b.tokenizer, (int32_t)end));
    tokenizer_text(b.tokenizer, (int32_t)end, text, sizeof text);
    assert_string_equal(text, "");
    free(ids);
    assert_ok(tokenizer_ids(b.tokenizer, "<tool> call", &ids, &count, &err), &err);
    assert_int_equal(count, 2);
    tokenizer_text(b.tokenizer, ids[1], text, sizeof text);
    assert_string_equal(text, "<tool> call");
    tokenizer_text(b.tokenizer, ids[1], text, 6);
    assert_string_equal(text, "<tool");
    free(ids);
    free(plain);
    close_bench(&b);
}

/* ---- what is refused ---- */

static void put_string(struct bytes *b, const char *text)
{
    put_u64(b, strlen(text));
    put(b, text, strlen(text));
}

static void put_text(struct bytes *b, const char *key, const char *value)
{
    put_string(b, key);
    put_u32(b, PTXGEN_GGUF_VALUE_STRING);
    put_string(b, value);
}

/* A vocabulary of a and b, whose merges are strings or not there. */
static void assert_refuses(const char *pre, bool has_merges, const char *text,
                           ptxgen_status refusal, const char *sentence)
{
    struct bytes b = {0};
    ptxgen_gguf *file;
    struct tokenizer *t;
    ptxgen_error err;
    int32_t *ids;
    uint32_t count;
    put(&b, "GGUF", 4);
    put_u32(&b, 3);
    put_u64(&b, 0);
    put_u64(&b, has_merges ? 4 : 3);
    put_text(&b, "tokenizer.ggml.model", "gpt2");
    put_text(&b, "tokenizer.ggml.pre", pre);
    for (int merges = 0; merges < (has_merges ? 2 : 1); merges++) {
        put_string(&b, merges ? "tokenizer.ggml.merges" : "tokenizer.ggml.tokens");
        put_u32(&b, PTXGEN_GGUF_VALUE_ARRAY);
        put_u32(&b, PTXGEN_GGUF_VALUE_STRING);
        put_u64(&b, 2);
        put_string(&b, merges ? "a b" : "a");
        put_string(&b, merges ? "ab" : "b");
    }
    put_zeros(&b, (32 - b.size % 32) % 32);
    assert_ok(ptxgen_gguf_parse(b.data, b.size, &file, &err), &err);
    assert_ok(tokenizer_open(file, &t, &err), &err);
    if (refusal) {
        assert_refusal(tokenizer_ids(t, text, &ids, &count, &err), &err, refusal, sentence);
    } else {
        assert_ok(tokenizer_ids(t, text, &ids, &count, &err), &err);
        free(ids);
    }
    tokenizer_close(t);
    ptxgen_gguf_destroy(file);
    bytes_free(&b);
}

static void what_a_vocabulary_does_not_say_is_refused(void **state)
{
    (void)state;
    assert_refuses("llama-bpe", true, "abba", PTXGEN_OK, NULL);
    assert_refuses("llama-bpe", true, "abc", PTXGEN_ERROR_MALFORMED,
                   "the vocabulary has no token for the byte 0x63");
    assert_refuses("llama-bpe", false, "ab", PTXGEN_ERROR_MALFORMED,
                   "tokenizer.ggml.merges are no strings");
    assert_refuses("tekken", true, "ab", PTXGEN_ERROR_UNSUPPORTED,
                   "text is split into words as llama-bpe does, and tokenizer.ggml.pre is "
                   "\"tekken\": give ids");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_those_of_another_implementation),
        cmocka_unit_test(bytes_that_are_no_utf_8_are_kept),
        cmocka_unit_test(special_tokens_begin_end_and_hide),
        cmocka_unit_test(what_a_vocabulary_does_not_say_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
