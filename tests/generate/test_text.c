/* SPDX-License-Identifier: Apache-2.0 */
/* Text to ids and back by the vocabulary of a GGUF file, and sampling from logits. */
#include "examples/generate/sample.h"
#include "examples/generate/tokenizer.h"
#include "tests/files/bytes.h"
#include "tests/status.h"

#include <math.h>

enum { NORMAL = 1, CONTROL = 3, BYTE = 6 };

struct token {
    const char *text;
    float score;
    int32_t type;
};

static const struct token words[] = {
    {"<s>", 0, CONTROL},
    {"</s>", 0, CONTROL},
    {"\xE2\x96\x81", -9, NORMAL},
    {"h", -9, NORMAL},
    {"e", -9, NORMAL},
    {"l", -9, NORMAL},
    {"o", -9, NORMAL},
    {"he", -3, NORMAL},
    {"el", -2, NORMAL},
    {"ll", -4, NORMAL},
    {"lo", -5, NORMAL},
    {"ello", -1, NORMAL},
    {"\xE2\x96\x81h", -8, NORMAL},
    {"<0xC3>", 0, BYTE},
    {"<0xBC>", 0, BYTE},
    {"<0x0A>", 0, BYTE},
    {"\xE2\x96\x81\xE2\x96\x81", -6, NORMAL},
    {"\xC4\xA0h\xC4\x8A\xC4\xA3\xC3\xA9", -9, NORMAL}, /* of byte-level BPE */
    {"<0x-1>", 0, BYTE}, /* these three are no bytes */
    {"<0x+F>", 0, BYTE},
    {"<0xG0>", 0, BYTE},
};
enum { WORDS = sizeof words / sizeof *words };

static void put_string(struct bytes *b, const char *text)
{
    put_u64(b, strlen(text));
    put(b, text, strlen(text));
}

static void put_key(struct bytes *b, const char *key, ptxgen_gguf_value_type type)
{
    put_string(b, key);
    put_u32(b, type);
}

static void put_array(struct bytes *b, const char *key, ptxgen_gguf_value_type type)
{
    put_key(b, key, PTXGEN_GGUF_VALUE_ARRAY);
    put_u32(b, type);
    put_u64(b, WORDS);
}

/* A GGUF file with a vocabulary alone. */
static ptxgen_gguf *make_file(struct bytes *b, const char *model, bool adds_space)
{
    ptxgen_gguf *file;
    ptxgen_error err;
    put(b, "GGUF", 4);
    put_u32(b, 3);
    put_u64(b, 0);
    put_u64(b, 7);
    put_key(b, "tokenizer.ggml.model", PTXGEN_GGUF_VALUE_STRING);
    put_string(b, model);
    put_array(b, "tokenizer.ggml.tokens", PTXGEN_GGUF_VALUE_STRING);
    for (int i = 0; i < WORDS; i++)
        put_string(b, words[i].text);
    put_array(b, "tokenizer.ggml.scores", PTXGEN_GGUF_VALUE_FLOAT32);
    for (int i = 0; i < WORDS; i++)
        put(b, &words[i].score, 4);
    put_array(b, "tokenizer.ggml.token_type", PTXGEN_GGUF_VALUE_INT32);
    for (int i = 0; i < WORDS; i++)
        put_u32(b, (uint32_t)words[i].type);
    put_key(b, "tokenizer.ggml.add_space_prefix", PTXGEN_GGUF_VALUE_BOOL);
    put_u8(b, adds_space);
    put_key(b, "tokenizer.ggml.bos_token_id", PTXGEN_GGUF_VALUE_UINT32);
    put_u32(b, 0);
    put_key(b, "tokenizer.ggml.eos_token_id", PTXGEN_GGUF_VALUE_UINT32);
    put_u32(b, 1);
    put_zeros(b, (32 - b->size % 32) % 32);
    assert_ok(ptxgen_gguf_parse(b->data, b->size, &file, &err), &err);
    return file;
}

static void assert_ids(struct tokenizer *t, const char *text, const int32_t *right,
                       uint32_t right_count)
{
    int32_t *ids;
    uint32_t count;
    ptxgen_error err;
    assert_ok(tokenizer_ids(t, text, &ids, &count, &err), &err);
    assert_int_equal(count, right_count);
    assert_memory_equal(ids, right, count * sizeof *ids);
    free(ids);
}

/* el joins first, then ello, so that neither he nor ll does; ü is no token, but its bytes are. */
static void text_is_joined_by_scores(void **state)
{
    (void)state;
    struct bytes b = {0};
    struct tokenizer *t;
    ptxgen_error err;
    ptxgen_gguf *file = make_file(&b, "llama", true);
    assert_ok(tokenizer_open(file, &t, &err), &err);
    static const int32_t hello[] = {0, 12, 11}, two_spaces[] = {0, 16, 12},
                         bytes[] = {0, 2, 13, 14, 15};
    assert_ids(t, "hello", hello, 3);
    assert_ids(t, "  h", two_spaces, 3);
    assert_ids(t, "\xC3\xBC\n", bytes, 5);
    tokenizer_close(t);
    ptxgen_gguf_destroy(file);
    bytes_free(&b);
}

static void assert_text(const struct tokenizer *t, int32_t id, const char *right)
{
    char text[16];
    tokenizer_text(t, id, text, sizeof text);
    assert_string_equal(text, right);
}

static void ids_are_text_again(void **state)
{
    (void)state;
    struct bytes b = {0};
    struct tokenizer *t;
    ptxgen_error err;
    ptxgen_gguf *file = make_file(&b, "llama", false);
    assert_ok(tokenizer_open(file, &t, &err), &err);
    assert_text(t, 12, " h");
    assert_text(t, 13, "\xC3");
    assert_text(t, 0, "");
    assert_text(t, WORDS, "");
    assert_text(t, -1, "");
    char cut[4];
    tokenizer_text(t, 11, cut, sizeof cut);
    assert_string_equal(cut, "ell");
    assert_true(tokenizer_ends(t, 1) && !tokenizer_ends(t, 2));
    tokenizer_close(t);
    ptxgen_gguf_destroy(file);
    bytes_free(&b);
}

/* A special token is that token, and what stands behind it begins as a text does. */
static void special_tokens_in_a_text_are_tokens(void **state)
{
    (void)state;
    struct bytes b = {0};
    struct tokenizer *t;
    ptxgen_error err;
    ptxgen_gguf *file = make_file(&b, "llama", true);
    assert_ok(tokenizer_open(file, &t, &err), &err);
    static const int32_t turns[] = {0, 12, 11, 1, 12}, begun[] = {0, 12}, none[] = {0, 1};
    assert_ids(t, "hello</s>h", turns, 5);
    assert_ids(t, "<s>h", begun, 2);
    assert_ids(t, "</s>", none, 2);
    tokenizer_close(t);
    ptxgen_gguf_destroy(file);
    bytes_free(&b);
}

/* Byte-level BPE writes a space as U+0120, the byte 0x0A as U+010A, 0x81 as U+0123, 0xE9 as itself.
 */
static void bpe_gives_text_and_takes_none_without_its_rules(void **state)
{
    (void)state;
    struct bytes b = {0};
    struct tokenizer *t;
    int32_t *ids;
    uint32_t count;
    ptxgen_error err;
    ptxgen_gguf *file = make_file(&b, "gpt2", false);
    assert_ok(tokenizer_open(file, &t, &err), &err);
    assert_text(t, 7, "he");
    assert_text(t, 17, " h\n\x81\xE9");
    assert_refusal(tokenizer_ids(t, "he", &ids, &count, &err), &err, PTXGEN_ERROR_UNSUPPORTED,
                   "text is split into words as llama-bpe does, and tokenizer.ggml.pre is \"\": "
                   "give ids");
    tokenizer_close(t);
    ptxgen_gguf_destroy(file);
    bytes_free(&b);
}

/* ---- sampling ---- */

/* Of probabilities 0.5, 0.3, 0.15 and 0.05 the first two make up 0.7, and a third of 0.8 is none.
 */
static void top_p_draws_from_the_likeliest_in_proportion(void **state)
{
    (void)state;
    enum { DRAWS = 4000 };
    const float logits[] = {logf(0.15f), logf(0.5f), -INFINITY, logf(0.05f), logf(0.3f)};
    struct candidate room[5];
    struct sampler s = {.temperature = 1, .top_p = 0.7f, .state = 1, .candidates = room};
    int drawn[5] = {0};
    for (int i = 0; i < DRAWS; i++)
        drawn[sample(&s, logits, 5)]++;
    assert_int_equal(drawn[0] + drawn[2] + drawn[3], 0);
    assert_true(fabs((double)drawn[1] / DRAWS - 0.625) < 0.03);
    s.top_p = 0;
    for (int i = 0; i < 20; i++)
        assert_int_equal(sample(&s, logits, 5), 1);
    s.top_p = 1;
    s.temperature = 100; /* all alike */
    memset(drawn, 0, sizeof drawn);
    for (int i = 0; i < DRAWS; i++)
        drawn[sample(&s, logits, 5)]++;
    assert_int_equal(drawn[2], 0);
    assert_true(fabs((double)drawn[3] / DRAWS - 0.25) < 0.03);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_joined_by_scores),
        cmocka_unit_test(ids_are_text_again),
        cmocka_unit_test(special_tokens_in_a_text_are_tokens),
        cmocka_unit_test(bpe_gives_text_and_takes_none_without_its_rules),
        cmocka_unit_test(top_p_draws_from_the_likeliest_in_proportion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
