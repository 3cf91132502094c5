/* SPDX-License-Identifier: Apache-2.0 */
/* The GGUF reader: what a well-formed file yields, and that each broken rule is named. */
#include "tests/status.h"

#include "bytes.h"
#include <ptxgen/gguf.h>

#include <stdio.h>

/* ---- writing files ---- */

static void put_string_n(struct bytes *b, const char *s, size_t length)
{
    put_u64(b, length);
    put(b, s, length);
}

static void put_string(struct bytes *b, const char *s)
{
    put_string_n(b, s, strlen(s));
}

static void put_header(struct bytes *b, uint32_t version, uint64_t tensors, uint64_t keys)
{
    put(b, "GGUF", 4);
    put_u32(b, version);
    put_u64(b, tensors);
    put_u64(b, keys);
}

static void put_key(struct bytes *b, const char *key, ptxgen_gguf_value_type type)
{
    put_string(b, key);
    put_u32(b, type);
}

static void put_key_u32(struct bytes *b, const char *key, uint32_t value)
{
    put_key(b, key, PTXGEN_GGUF_VALUE_UINT32);
    put_u32(b, value);
}

enum { F32 = 0, Q4_K = 12 };

/* dims as GGUF has them, innermost first */
static void put_tensor(struct bytes *b, const char *name, uint32_t rank, const uint64_t *dims,
                       uint32_t type, uint64_t offset)
{
    put_string(b, name);
    put_u32(b, rank);
    for (uint32_t i = 0; i < rank; i++)
        put_u64(b, dims[i]);
    put_u32(b, type);
    put_u64(b, offset);
}

static void pad(struct bytes *b, size_t alignment)
{
    put_zeros(b, (alignment - b->size % alignment) % alignment);
}

/* ---- reading them back ---- */

/* Parses, expects `status` and this sentence, and frees the bytes. */
static void expect_refusal(struct bytes *b, ptxgen_status status, const char *says)
{
    ptxgen_gguf *file;
    ptxgen_error err = {0};
    assert_refusal(ptxgen_gguf_parse(b->data, b->size, &file, &err), &err, status, says);
    assert_null(file);
    assert_int_equal(err.status, status);
    bytes_free(b);
}

static ptxgen_gguf *expect_file(const struct bytes *b)
{
    ptxgen_gguf *file;
    ptxgen_error err = {0};
    assert_ok(ptxgen_gguf_parse(b->data, b->size, &file, &err), &err);
    return file;
}

/* ---- claims ---- */

static void gguf_reads_versions_2_and_3(void **state)
{
    (void)state;
    for (uint32_t version = 2; version <= 3; version++) {
        struct bytes b = {0};
        put_header(&b, version, 0, 0);
        ptxgen_gguf *file = expect_file(&b);
        assert_int_equal(ptxgen_gguf_version(file), version);
        assert_int_equal(ptxgen_gguf_alignment(file), 32);
        assert_int_equal(ptxgen_gguf_tensors(file)->count, 0);
        assert_int_equal(ptxgen_gguf_key_count(file), 0);
        assert_null(ptxgen_gguf_find(file, "anything"));
        assert_null(ptxgen_tensor_list_find(ptxgen_gguf_tensors(file), "anything"));
        ptxgen_gguf_destroy(file);
        bytes_free(&b);
    }
}

static void gguf_reads_every_scalar_type(void **state)
{
    (void)state;
    struct bytes b = {0};
    uint32_t f32_bits = 0x358637BD; /* 1e-6f */
    uint64_t f64_bits = UINT64_C(0x3FF8000000000000);
    put_header(&b, 3, 0, 12);
    put_key(&b, "u8", PTXGEN_GGUF_VALUE_UINT8), put_int(&b, 0xFE, 1);
    put_key(&b, "i8", PTXGEN_GGUF_VALUE_INT8), put_int(&b, 0xFE, 1);
    put_key(&b, "u16", PTXGEN_GGUF_VALUE_UINT16), put_int(&b, 0xFFFE, 2);
    put_key(&b, "i16", PTXGEN_GGUF_VALUE_INT16), put_int(&b, 0xFFFE, 2);
    put_key(&b, "u32", PTXGEN_GGUF_VALUE_UINT32), put_u32(&b, 0xFFFFFFFE);
    put_key(&b, "i32", PTXGEN_GGUF_VALUE_INT32), put_u32(&b, 0xFFFFFFFE);
    put_key(&b, "u64", PTXGEN_GGUF_VALUE_UINT64), put_u64(&b, UINT64_MAX - 1);
    put_key(&b, "i64", PTXGEN_GGUF_VALUE_INT64), put_u64(&b, UINT64_MAX - 1);
    put_key(&b, "f32", PTXGEN_GGUF_VALUE_FLOAT32), put_u32(&b, f32_bits);
    put_key(&b, "f64", PTXGEN_GGUF_VALUE_FLOAT64), put_u64(&b, f64_bits);
    put_key(&b, "bool", PTXGEN_GGUF_VALUE_BOOL), put_u8(&b, 1);
    put_key(&b, "string", PTXGEN_GGUF_VALUE_STRING), put_string(&b, "a\xC3\xA9");

    ptxgen_gguf *file = expect_file(&b);
    assert_int_equal(ptxgen_gguf_find(file, "u8")->u, 0xFE);
    assert_int_equal(ptxgen_gguf_find(file, "u16")->u, 0xFFFE);
    assert_int_equal(ptxgen_gguf_find(file, "u32")->u, 0xFFFFFFFE);
    assert_true(ptxgen_gguf_find(file, "u64")->u == UINT64_MAX - 1);
    for (int i = 0; i < 4; i++) {
        static const char *const keys[] = {"i8", "i16", "i32", "i64"};
        int64_t value;
        assert_int_equal(ptxgen_gguf_get_i64(file, keys[i], &value, NULL), PTXGEN_OK);
        assert_int_equal(value, -2);
    }
    float f32;
    assert_int_equal(ptxgen_gguf_get_f32(file, "f32", &f32, NULL), PTXGEN_OK);
    assert_memory_equal(&f32, &f32_bits, 4);
    assert_true(ptxgen_gguf_find(file, "f64")->f64 == 1.5);
    bool boolean = false;
    assert_int_equal(ptxgen_gguf_get_bool(file, "bool", &boolean, NULL), PTXGEN_OK);
    assert_true(boolean);
    ptxgen_gguf_string string;
    assert_int_equal(ptxgen_gguf_get_string(file, "string", &string, NULL), PTXGEN_OK);
    assert_int_equal(string.length, 3);
    assert_memory_equal(string.bytes, "a\xC3\xA9", 3);
    assert_string_equal(ptxgen_gguf_key(file, 11), "string");
    assert_int_equal(ptxgen_gguf_value_at(file, 0)->type, PTXGEN_GGUF_VALUE_UINT8);
    ptxgen_gguf_destroy(file);
    bytes_free(&b);
}

static void gguf_getters_name_the_key_and_the_mismatch(void **state)
{
    (void)state;
    struct bytes b = {0};
    put_header(&b, 3, 0, 3);
    put_key(&b, "negative", PTXGEN_GGUF_VALUE_INT32), put_u32(&b, 0xFFFFFFFF);
    put_key(&b, "large", PTXGEN_GGUF_VALUE_UINT64), put_u64(&b, UINT64_C(1) << 63);
    put_key(&b, "text", PTXGEN_GGUF_VALUE_STRING), put_string(&b, "x");
    ptxgen_gguf *file = expect_file(&b);

    ptxgen_error err;
    uint32_t u32 = 7;
    uint64_t u64;
    int64_t i64;
    float f32;
    assert_int_equal(ptxgen_gguf_get_u32(file, "absent", &u32, &err), PTXGEN_ERROR_NOT_FOUND);
    assert_string_equal(err.message, "the file has no key \"absent\"");
    assert_int_equal(ptxgen_gguf_get_u32(file, "negative", &u32, &err), PTXGEN_ERROR_MALFORMED);
    assert_string_equal(err.message, "key \"negative\" is -1, below 0");
    assert_int_equal(ptxgen_gguf_get_u32(file, "large", &u32, &err), PTXGEN_ERROR_MALFORMED);
    assert_string_equal(err.message, "key \"large\" is 9223372036854775808, above 4294967295");
    assert_int_equal(u32, 7);
    assert_int_equal(ptxgen_gguf_get_u64(file, "large", &u64, &err), PTXGEN_OK);
    assert_true(u64 == UINT64_C(1) << 63);
    assert_int_equal(ptxgen_gguf_get_i64(file, "large", &i64, &err), PTXGEN_ERROR_MALFORMED);
    assert_int_equal(ptxgen_gguf_get_f32(file, "text", &f32, &err), PTXGEN_ERROR_MALFORMED);
    assert_string_equal(err.message, "key \"text\" is STRING; FLOAT32 was expected");
    assert_int_equal(ptxgen_gguf_get_u64(file, "text", &u64, &err), PTXGEN_ERROR_MALFORMED);
    assert_string_equal(err.message, "key \"text\" is STRING; an integer was expected");
    ptxgen_gguf_destroy(file);
    bytes_free(&b);
}

static void gguf_walks_nested_arrays(void **state)
{
    (void)state;
    struct bytes b = {0};
    put_header(&b, 3, 0, 1);
    put_key(&b, "nested",
            PTXGEN_GGUF_VALUE_ARRAY); /* [["a", "bc"], [], [-1, 2]] with mixed element types */
    put_u32(&b, PTXGEN_GGUF_VALUE_ARRAY), put_u64(&b, 3);
    put_u32(&b, PTXGEN_GGUF_VALUE_STRING), put_u64(&b, 2), put_string(&b, "a"),
        put_string(&b, "bc");
    put_u32(&b, PTXGEN_GGUF_VALUE_UINT8), put_u64(&b, 0);
    put_u32(&b, PTXGEN_GGUF_VALUE_INT16), put_u64(&b, 2), put_int(&b, 0xFFFF, 2), put_int(&b, 2, 2);
    ptxgen_gguf *file = expect_file(&b);

    ptxgen_gguf_array outer;
    ptxgen_gguf_value inner, element;
    assert_int_equal(ptxgen_gguf_get_array(file, "nested", &outer, NULL), PTXGEN_OK);
    assert_int_equal(outer.count, 3);

    assert_true(ptxgen_gguf_array_next(&outer, &inner));
    assert_int_equal(inner.array.type, PTXGEN_GGUF_VALUE_STRING);
    assert_true(ptxgen_gguf_array_next(&inner.array, &element));
    assert_true(ptxgen_gguf_array_next(&inner.array, &element));
    assert_int_equal(element.string.length, 2);
    assert_memory_equal(element.string.bytes, "bc", 2);
    assert_false(ptxgen_gguf_array_next(&inner.array, &element));

    assert_true(ptxgen_gguf_array_next(&outer, &inner));
    assert_false(ptxgen_gguf_array_next(&inner.array, &element));

    assert_true(ptxgen_gguf_array_next(&outer, &inner));
    assert_true(ptxgen_gguf_array_next(&inner.array, &element));
    assert_int_equal(element.i, -1);
    assert_true(ptxgen_gguf_array_next(&inner.array, &element));
    assert_int_equal(element.i, 2);
    assert_false(ptxgen_gguf_array_next(&outer, &inner));
    ptxgen_gguf_destroy(file);
    bytes_free(&b);
}

static void gguf_gives_shapes_outermost_first(void **state)
{
    (void)state;
    struct bytes b = {0};
    put_header(&b, 3, 3, 0);
    put_tensor(&b, "w", 3, (uint64_t[]){256, 2, 3}, Q4_K, 0);
    put_tensor(&b, "empty", 1, (uint64_t[]){0}, F32, 864);
    put_tensor(&b, "scalar", 0, NULL, F32, 864);
    pad(&b, 32);
    size_t base = b.size;
    put_zeros(&b, 864 + 4);
    ptxgen_gguf *file = expect_file(&b);

    const ptxgen_tensor *w = ptxgen_tensor_list_find(ptxgen_gguf_tensors(file), "w");
    assert_int_equal(w->dtype, PTXGEN_DTYPE_Q4_K);
    assert_int_equal(w->ndim, 3);
    assert_int_equal(w->shape[0], 3);
    assert_int_equal(w->shape[1], 2);
    assert_int_equal(w->shape[2], 256);
    assert_int_equal(w->bytes, 6 * 144);
    assert_ptr_equal(w->data, b.data + base);
    assert_int_equal(ptxgen_tensor_list_find(ptxgen_gguf_tensors(file), "empty")->bytes, 0);
    assert_int_equal(ptxgen_tensor_list_find(ptxgen_gguf_tensors(file), "scalar")->bytes, 4);
    ptxgen_gguf_destroy(file);
    bytes_free(&b);
}

static void gguf_heeds_general_alignment(void **state)
{
    (void)state;
    struct bytes b = {0};
    put_header(&b, 3, 1, 1);
    put_key_u32(&b, "general.alignment", 256);
    put_tensor(&b, "t", 1, (uint64_t[]){4}, F32, 256);
    pad(&b, 256);
    size_t base = b.size;
    put_zeros(&b, 256 + 16);
    ptxgen_gguf *file = expect_file(&b);
    assert_int_equal(ptxgen_gguf_alignment(file), 256);
    assert_ptr_equal(ptxgen_tensor_list_find(ptxgen_gguf_tensors(file), "t")->data,
                     b.data + base + 256);
    ptxgen_gguf_destroy(file);
    bytes_free(&b);
}

static void gguf_refuses_what_is_not_gguf(void **state)
{
    (void)state;
    struct bytes b = {0};
    put(&b, "", 0);
    expect_refusal(&b, PTXGEN_ERROR_MALFORMED,
                   "GGUF header: needs 4 bytes at offset 0, where the file has 0 left");
    put(&b, "GG\x01\xFF", 4);
    expect_refusal(&b, PTXGEN_ERROR_MALFORMED,
                   "not a GGUF file: it begins with \"GG\\x01\\xFF\", not \"GGUF\"");
    put(&b, "GGU", 3);
    expect_refusal(&b, PTXGEN_ERROR_MALFORMED,
                   "GGUF header: needs 4 bytes at offset 0, where the file has 3 left");
    put_header(&b, 1, 0, 0);
    expect_refusal(&b, PTXGEN_ERROR_UNSUPPORTED,
                   "GGUF header: version 1; only versions 2 and 3 are read");
    put_header(&b, 4, 0, 0);
    expect_refusal(&b, PTXGEN_ERROR_UNSUPPORTED,
                   "GGUF header: version 4; only versions 2 and 3 are read");
    put_header(&b, 0x03000000, 0, 0);
    expect_refusal(&b, PTXGEN_ERROR_UNSUPPORTED,
                   "GGUF header: the file is big-endian; only little-endian is read");
}

static void gguf_refuses_absurd_counts(void **state)
{
    (void)state;
    struct bytes b = {0};
    put_header(&b, 3, UINT64_MAX, 0);
    expect_refusal(&b, PTXGEN_ERROR_MALFORMED,
                   "GGUF header: 18446744073709551615 tensors; at most 1048576 are accepted");
    put_header(&b, 3, 0, 1048577);
    expect_refusal(&b, PTXGEN_ERROR_MALFORMED,
                   "GGUF header: 1048577 keys; at most 1048576 are accepted");
    put_header(&b, 3, 1000, 0);
    put_zeros(&b, 100);
    expect_refusal(&b, PTXGEN_ERROR_MALFORMED,
                   "GGUF header: 1000 tensors cannot fit in the 100 bytes left");
}

static void gguf_refuses_bad_keys(void **state)
{
    (void)state;
    struct bytes b = {0};
    put_header(&b, 3, 0, 2);
    put_key_u32(&b, "same", 1), put_key_u32(&b, "same", 2);
    expect_refusal(&b, PTXGEN_ERROR_MALFORMED, "key \"same\" appears twice; keys must differ");

    put_header(&b, 3, 0, 1);
    put_key_u32(&b, "", 1), put_zeros(&b, 8);
    expect_refusal(&b, PTXGEN_ERROR_MALFORMED, "key 0: its name is empty");

    put_header(&b, 3, 0, 1);
    put_key_u32(&b, "bad\xC0\x80", 1);
    expect_refusal(&b, PTXGEN_ERROR_MALFORMED, "key 0: name \"bad\\xC0\\x80\" is not UTF-8");

    put_header(&b, 3, 0, 1);
    put_string_n(&b, "a\0b", 3), put_u32(&b, PTXGEN_GGUF_VALUE_UINT8), put_u8(&b, 0);
    expect_refusal(&b, PTXGEN_ERROR_MALFORMED, "key 0: name \"a\\x00b\" holds a NUL");

    put_header(&b, 3, 0, 1);
    static char long_key[65536];
    memset(long_key, 'k', sizeof long_key);
    put_string_n(&b, long_key, sizeof long_key), put_u32(&b, PTXGEN_GGUF_VALUE_UINT8),
        put_u8(&b, 0);
    char says[300];
    snprintf(says, sizeof says,
             "key 0: name \"%.122s...\" has 65536 bytes; at most 65535 are allowed", long_key);
    expect_refusal(&b, PTXGEN_ERROR_MALFORMED, says);

    put_header(&b, 3, 0, 1);
    put_u64(&b, UINT64_MAX), put_zeros(&b, 16);
    expect_refusal(&b, PTXGEN_ERROR_MALFORMED,
                   "key 0: needs 18446744073709551615 bytes at offset 32, where the file has 16 "
                   "left");
}

static void gguf_refuses_bad_values(void **state)
{
    (void)state;
    struct bytes b = {0};
    put_header(&b, 3, 0, 1);
    put_key(&b, "k", (ptxgen_gguf_value_type)13), put_u64(&b, 0);
    expect_refusal(&b, PTXGEN_ERROR_MALFORMED,
                   "key \"k\": value type 13 is unknown; the last is 12");

    put_header(&b, 3, 0, 1);
    put_key(&b, "flag", PTXGEN_GGUF_VALUE_BOOL), put_u8(&b, 2);
    expect_refusal(&b, PTXGEN_ERROR_MALFORMED,
                   "key \"flag\": BOOL at offset 40 is 2; only 0 and 1 are valid");

    put_header(&b, 3, 0, 1);
    put_key(&b, "k", PTXGEN_GGUF_VALUE_ARRAY), put_u32(&b, 99), put_u64(&b, 0);
    expect_refusal(&b, PTXGEN_ERROR_MALFORMED,
                   "key \"k\": array element type 99 is unknown; the last is 12");

    put_header(&b, 3, 0, 1);
    put_key(&b, "k", PTXGEN_GGUF_VALUE_ARRAY), put_u32(&b, PTXGEN_GGUF_VALUE_UINT64),
        put_u64(&b, UINT64_C(1) << 61);
    expect_refusal(&b, PTXGEN_ERROR_MALFORMED,
                   "key \"k\": array of 2305843009213693952 UINT64 at offset 49, where the file "
                   "has 0 bytes left");

    put_header(&b, 3, 0, 1);
    put_key(&b, "k", PTXGEN_GGUF_VALUE_ARRAY), put_u32(&b, PTXGEN_GGUF_VALUE_BOOL), put_u64(&b, 2),
        put_int(&b, 0x0301, 2);
    expect_refusal(&b, PTXGEN_ERROR_MALFORMED,
                   "key \"k\": BOOL at offset 50 is 3; only 0 and 1 are valid");

    put_header(&b, 3, 0, 1);
    put_key(&b, "deep", PTXGEN_GGUF_VALUE_ARRAY);
    for (int i = 0; i < 40; i++)
        put_u32(&b, PTXGEN_GGUF_VALUE_ARRAY), put_u64(&b, 1);
    expect_refusal(&b, PTXGEN_ERROR_MALFORMED, "key \"deep\": arrays nest deeper than 16");
}

static void gguf_refuses_bad_alignment(void **state)
{
    (void)state;
    static const uint32_t bad[] = {0, 1, 4, 24, 48, UINT32_MAX};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct bytes b = {0};
        char says[100];
        snprintf(says, sizeof says,
                 "key \"general.alignment\" is %u; it must be a power of two, at least 8", bad[i]);
        put_header(&b, 3, 0, 1);
        put_key_u32(&b, "general.alignment", bad[i]);
        expect_refusal(&b, PTXGEN_ERROR_MALFORMED, says);
    }
    struct bytes b = {0};
    put_header(&b, 3, 0, 1);
    put_key(&b, "general.alignment", PTXGEN_GGUF_VALUE_UINT64), put_u64(&b, 32);
    expect_refusal(&b, PTXGEN_ERROR_MALFORMED,
                   "key \"general.alignment\" is UINT64; it must be UINT32");
}

/* One tensor whose description is given, over 64 bytes of data. */
static struct bytes one_tensor(const char *name, uint32_t rank, const uint64_t *dims, uint32_t type,
                               uint64_t offset)
{
    struct bytes b = {0};
    put_header(&b, 3, 1, 0);
    put_tensor(&b, name, rank, dims, type, offset);
    pad(&b, 32);
    put_zeros(&b, 64);
    return b;
}

static void gguf_refuses_bad_tensor_descriptions(void **state)
{
    (void)state;
    const uint64_t four[] = {4, 1, 1, 1, 1};
    struct bytes b = one_tensor("t", 5, four, F32, 0);
    expect_refusal(&b, PTXGEN_ERROR_MALFORMED, "tensor \"t\": 5 dimensions; GGUF allows at most 4");
    b = one_tensor("t", 1, four, 4, 0);
    expect_refusal(&b, PTXGEN_ERROR_UNSUPPORTED, "tensor \"t\": ggml type 4 is unknown");
    b = one_tensor("t", 1, four, UINT32_MAX, 0);
    expect_refusal(&b, PTXGEN_ERROR_UNSUPPORTED, "tensor \"t\": ggml type 4294967295 is unknown");
    b = one_tensor("", 1, four, F32, 0);
    expect_refusal(&b, PTXGEN_ERROR_MALFORMED, "tensor 0: its name is empty");
    b = one_tensor("12345678901234567890123456789012345678901234567890123456789012345", 1, four,
                   F32, 0);
    expect_refusal(&b, PTXGEN_ERROR_MALFORMED,
                   "tensor 0: name "
                   "\"12345678901234567890123456789012345678901234567890123456789012345\" has "
                   "65 bytes; at most 64 are allowed");
    b = one_tensor("\xED\xA0\x80", 1, four, F32, 0);
    expect_refusal(&b, PTXGEN_ERROR_MALFORMED, "tensor 0: name \"\\xED\\xA0\\x80\" is not UTF-8");
    b = one_tensor("t", 1, four, F32, 16);
    expect_refusal(&b, PTXGEN_ERROR_MALFORMED,
                   "tensor \"t\": offset 16 is not a multiple of the alignment 32");
}

static void gguf_refuses_shapes_that_do_not_fit(void **state)
{
    (void)state;
    const uint64_t overflow[] = {UINT64_C(1) << 32, UINT64_C(1) << 32};
    struct bytes b = one_tensor("t", 2, overflow, F32, 0);
    expect_refusal(&b, PTXGEN_ERROR_MALFORMED,
                   "tensor \"t\": the element count of shape [4294967296, 4294967296] exceeds "
                   "64 bits");
    const uint64_t bytes_overflow[] = {UINT64_C(1) << 63};
    b = one_tensor("t", 1, bytes_overflow, F32, 0);
    expect_refusal(&b, PTXGEN_ERROR_MALFORMED,
                   "tensor \"t\": shape [9223372036854775808] of F32 takes more bytes than can "
                   "be addressed");
    /* 8 rows of 32: flat, the blocks would fit; but none may span rows */
    const uint64_t spanning[] = {32, 8};
    b = one_tensor("t", 2, spanning, Q4_K, 0);
    expect_refusal(&b, PTXGEN_ERROR_MALFORMED,
                   "tensor \"t\": rows of 32 elements are not a multiple of Q4_K's block of 256");
}

static void gguf_refuses_tensor_past_end_of_file(void **state)
{
    (void)state;
    const uint64_t sixteen[] = {16}, seventeen[] = {17}, one[] = {1};
    struct bytes b = one_tensor("t", 1, sixteen, F32, 0);
    ptxgen_gguf *file = expect_file(&b);
    ptxgen_gguf_destroy(file);
    bytes_free(&b);

    b = one_tensor("t", 1, seventeen, F32, 0);
    expect_refusal(&b, PTXGEN_ERROR_MALFORMED,
                   "tensor \"t\": offset 0 with 68 bytes ends past the 64 bytes of the data "
                   "section");
    b = one_tensor("t", 1, one, F32, 64);
    expect_refusal(&b, PTXGEN_ERROR_MALFORMED,
                   "tensor \"t\": offset 64 with 4 bytes ends past the 64 bytes of the data "
                   "section");
    b = one_tensor("t", 1, one, F32, UINT64_MAX - 31);
    expect_refusal(&b, PTXGEN_ERROR_MALFORMED,
                   "tensor \"t\": offset 18446744073709551584 with 4 bytes ends past the 64 "
                   "bytes of the data section");

    /* the file ends before the data section begins */
    put_header(&b, 3, 1, 0);
    put_tensor(&b, "t", 1, one, F32, 0);
    expect_refusal(&b, PTXGEN_ERROR_MALFORMED,
                   "tensor \"t\": offset 0 with 4 bytes ends past the 0 bytes of the data "
                   "section");
}

static void gguf_refuses_overlapping_tensors(void **state)
{
    (void)state;
    struct bytes b = {0};
    put_header(&b, 3, 2, 0);
    put_tensor(&b, "second", 1, (uint64_t[]){8}, F32, 32);
    put_tensor(&b, "first", 1, (uint64_t[]){9}, F32, 0);
    pad(&b, 32);
    put_zeros(&b, 64);
    expect_refusal(&b, PTXGEN_ERROR_MALFORMED,
                   "tensors \"first\" and \"second\" overlap: the first has 36 bytes, the "
                   "second starts 32 after it");
}

static void gguf_refuses_duplicate_tensor_names(void **state)
{
    (void)state;
    struct bytes b = {0};
    put_header(&b, 3, 2, 0);
    put_tensor(&b, "t", 1, (uint64_t[]){8}, F32, 0);
    put_tensor(&b, "t", 1, (uint64_t[]){8}, F32, 32);
    pad(&b, 32);
    put_zeros(&b, 64);
    expect_refusal(&b, PTXGEN_ERROR_MALFORMED, "tensor \"t\" appears twice; names must differ");
}

static void gguf_refuses_every_truncation(void **state)
{
    (void)state;
    struct bytes whole = {0};
    put_header(&whole, 3, 2, 3);
    put_key_u32(&whole, "general.alignment", 32);
    put_key(&whole, "tokens", PTXGEN_GGUF_VALUE_ARRAY), put_u32(&whole, PTXGEN_GGUF_VALUE_STRING),
        put_u64(&whole, 2);
    put_string(&whole, "a"), put_string(&whole, "b");
    put_key(&whole, "flags", PTXGEN_GGUF_VALUE_ARRAY), put_u32(&whole, PTXGEN_GGUF_VALUE_BOOL),
        put_u64(&whole, 1);
    put_u8(&whole, 1);
    put_tensor(&whole, "a", 2, (uint64_t[]){256, 1}, Q4_K, 0);
    put_tensor(&whole, "b", 1, (uint64_t[]){8}, F32, 160);
    pad(&whole, 32);
    put_zeros(&whole, 160 + 32);

    for (size_t size = 0; size < whole.size; size++) {
        struct bytes cut = {0}; /* an exact copy, so that AddressSanitizer guards its end */
        put(&cut, whole.data, size);
        ptxgen_gguf *file;
        ptxgen_error err = {0};
        assert_int_equal(ptxgen_gguf_parse(cut.data, size, &file, &err), PTXGEN_ERROR_MALFORMED);
        assert_true(err.message[0] != '\0');
        bytes_free(&cut);
    }
    ptxgen_gguf *file = expect_file(&whole);
    ptxgen_gguf_destroy(file);
    bytes_free(&whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gguf_reads_versions_2_and_3),
        cmocka_unit_test(gguf_reads_every_scalar_type),
        cmocka_unit_test(gguf_getters_name_the_key_and_the_mismatch),
        cmocka_unit_test(gguf_walks_nested_arrays),
        cmocka_unit_test(gguf_gives_shapes_outermost_first),
        cmocka_unit_test(gguf_heeds_general_alignment),
        cmocka_unit_test(gguf_refuses_what_is_not_gguf),
        cmocka_unit_test(gguf_refuses_absurd_counts),
        cmocka_unit_test(gguf_refuses_bad_keys),
        cmocka_unit_test(gguf_refuses_bad_values),
        cmocka_unit_test(gguf_refuses_bad_alignment),
        cmocka_unit_test(gguf_refuses_bad_tensor_descriptions),
        cmocka_unit_test(gguf_refuses_shapes_that_do_not_fit),
        cmocka_unit_test(gguf_refuses_tensor_past_end_of_file),
        cmocka_unit_test(gguf_refuses_overlapping_tensors),
        cmocka_unit_test(gguf_refuses_duplicate_tensor_names),
        cmocka_unit_test(gguf_refuses_every_truncation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
