/* SPDX-License-Identifier: Apache-2.0 */
/* The safetensors reader: what a well-formed file yields, and that each broken rule is named. */
#include "tests/status.h"

#include "bytes.h"
#include <ptxgen/files.h>

#include <stdio.h>

static struct bytes file_of_n(const char *header, size_t length, size_t data_bytes)
{
    struct bytes b = {0};
    put_u64(&b, length);
    put(&b, header, length);
    for (size_t i = 0; i < data_bytes; i++)
        put_u8(&b, (uint8_t)i);
    return b;
}

static struct bytes file_of(const char *header, size_t data_bytes)
{
    return file_of_n(header, strlen(header), data_bytes);
}

static void expect_refusal_of(struct bytes b, ptxgen_status status, const char *says)
{
    ptxgen_safetensors *file;
    ptxgen_error err = {0};
    assert_refusal(ptxgen_safetensors_parse(b.data, b.size, &file, &err), &err, status, says);
    assert_null(file);
    assert_int_equal(err.status, status);
    bytes_free(&b);
}

static void expect_refusal(const char *header, size_t data_bytes, const char *says)
{
    expect_refusal_of(file_of(header, data_bytes), PTXGEN_ERROR_MALFORMED, says);
}

static ptxgen_safetensors *expect_file(const struct bytes *b)
{
    ptxgen_safetensors *file;
    ptxgen_error err = {0};
    assert_ok(ptxgen_safetensors_parse(b->data, b->size, &file, &err), &err);
    return file;
}

static void safetensors_reads_tensors_and_metadata(void **state)
{
    (void)state;
    struct bytes b = file_of(
        "{\"__metadata__\":{\"bits\":\"4\",\"format\":\"pt\"},"
        "\"second\":{\"dtype\":\"F16\",\"shape\":[2,3],\"data_offsets\":[4,16]},"
        "\"scalar \\u00e9\":{\"shape\":[],\"data_offsets\":[0,4],\"dtype\":\"I32\"},"
        "\"empty\":{\"dtype\":\"F64\",\"shape\":[3,0],\"data_offsets\":[16,16],\"more\":1}}  \n",
        16);
    ptxgen_safetensors *file = expect_file(&b);
    const ptxgen_tensor_list *tensors = ptxgen_safetensors_tensors(file);
    const unsigned char *data = b.data + b.size - 16;

    assert_int_equal(tensors->count, 3);
    assert_string_equal(tensors->items[0].name, "second");
    const ptxgen_tensor *t = ptxgen_tensor_list_find(tensors, "second");
    assert_int_equal(t->dtype, PTXGEN_DTYPE_F16);
    assert_int_equal(t->ndim, 2);
    assert_int_equal(t->shape[0], 2);
    assert_int_equal(t->shape[1], 3);
    assert_int_equal(t->bytes, 12);
    assert_ptr_equal(t->data, data + 4);
    t = ptxgen_tensor_list_find(tensors, "scalar \xC3\xA9");
    assert_int_equal(t->ndim, 0);
    assert_ptr_equal(t->data, data);
    assert_int_equal(ptxgen_tensor_list_find(tensors, "empty")->bytes, 0);
    assert_null(ptxgen_tensor_list_find(tensors, "__metadata__"));
    assert_string_equal(ptxgen_safetensors_metadata(file, "bits"), "4");
    assert_null(ptxgen_safetensors_metadata(file, "absent"));
    ptxgen_safetensors_destroy(file);
    bytes_free(&b);
}

static void safetensors_accepts_a_file_without_tensors(void **state)
{
    (void)state;
    struct bytes b = file_of("{}", 0);
    ptxgen_safetensors *file = expect_file(&b);
    assert_int_equal(ptxgen_safetensors_tensors(file)->count, 0);
    assert_null(ptxgen_safetensors_metadata(file, "bits"));
    ptxgen_safetensors_destroy(file);
    bytes_free(&b);
}

static void safetensors_sizes_every_dtype(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        unsigned bytes_of_4;
    } dtypes[] = {{"BOOL", 4},    {"U8", 4},      {"I8", 4},          {"F8_E4M3", 4},
                  {"F8_E5M2", 4}, {"F8_E8M0", 4}, {"F8_E4M3FNUZ", 4}, {"F8_E5M2FNUZ", 4},
                  {"F4", 2},      {"F6_E2M3", 3}, {"F6_E3M2", 3},     {"U16", 8},
                  {"I16", 8},     {"F16", 8},     {"BF16", 8},        {"U32", 16},
                  {"I32", 16},    {"F32", 16},    {"U64", 32},        {"I64", 32},
                  {"F64", 32},    {"C64", 32}};
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        char header[256];
        snprintf(header, sizeof header,
                 "{\"t\":{\"dtype\":\"%s\",\"shape\":[4],\"data_offsets\":[0,%u]}}", dtypes[i].name,
                 dtypes[i].bytes_of_4);
        struct bytes b = file_of(header, dtypes[i].bytes_of_4);
        ptxgen_safetensors *file = expect_file(&b);
        const ptxgen_tensor *t = ptxgen_tensor_list_find(ptxgen_safetensors_tensors(file), "t");
        assert_string_equal(ptxgen_dtype_find(t->dtype)->name, dtypes[i].name);
        ptxgen_safetensors_destroy(file);
        bytes_free(&b);
    }
}

static void safetensors_refuses_a_bad_header_length(void **state)
{
    (void)state;
    struct bytes b = {0};
    put_int(&b, 2, 7);
    expect_refusal_of(b, PTXGEN_ERROR_MALFORMED,
                      "not a safetensors file: 7 bytes, fewer than the 8 of the header's length");
    b = (struct bytes){0};
    put_u64(&b, 100000001);
    put(&b, "{}", 2);
    expect_refusal_of(b, PTXGEN_ERROR_MALFORMED,
                      "safetensors header: length 100000001; at most 100000000 bytes are allowed");
    b = (struct bytes){0};
    put_u64(&b, 3);
    put(&b, "{}", 2);
    expect_refusal_of(b, PTXGEN_ERROR_MALFORMED,
                      "safetensors header: length 3 ends past the file's 10 bytes");
    b = (struct bytes){0};
    put_u64(&b, UINT64_MAX);
    put(&b, "{}", 2);
    expect_refusal_of(b, PTXGEN_ERROR_MALFORMED,
                      "safetensors header: length 18446744073709551615; at most 100000000 bytes "
                      "are allowed");
}

static void safetensors_refuses_bad_json(void **state)
{
    (void)state;
    expect_refusal("", 0, "safetensors header: it must begin with '{'");
    expect_refusal(" {}", 0, "safetensors header: it must begin with '{'");
    expect_refusal("[]", 0, "safetensors header: it must begin with '{'");
    expect_refusal("{\"t\":", 0, "safetensors header: the JSON is malformed near byte 5");
    expect_refusal("{} x", 0,
                   "safetensors header: byte 3 follows the JSON object but is not white space");
    expect_refusal_of(file_of_n("{}\0", 3, 0), PTXGEN_ERROR_MALFORMED,
                      "safetensors header: byte 2 follows the JSON object but is not white space");
    expect_refusal("{\"\xFF\":1}", 0, "safetensors header: it is not UTF-8");
    expect_refusal("{\"a\nb\":1}", 0,
                   "safetensors header: a string holds the raw control character 0x0A at byte 3");
    expect_refusal("{\"a\\u0000b\":1}", 0,
                   "safetensors header: a string holds a NUL (\\u0000) at byte 3");
    expect_refusal("{\"\\ud800\":1}", 0, "safetensors header: the JSON is malformed near byte 2");
}

static void safetensors_refuses_what_is_almost_json(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        unsigned byte;
    } bad[] = {
        {"{\"a\":1,}", 7},
        {"{\"a\":[1,]}", 8},
        {"{,}", 1},
        {"{\"a\" 1}", 5},
        {"{\"a\":}", 5},
        {"{\"a\":01}", 6},
        {"{\"a\":1.}", 7},
        {"{\"a\":.5}", 5},
        {"{\"a\":+1}", 5},
        {"{\"a\":-}", 6},
        {"{\"a\":1e}", 7},
        {"{\"a\":nul}", 5},
        {"{\"a\":True}", 5},
        {"{\"a\":[1 2]}", 8},
        {"{\"a\":[1}", 7},
        {"{\"a\":{]}", 6},
        {"{a:1}", 1},
        {"{\"a\":\"\\x\"}", 6},
        {"{\"a\":\"b", 7},
        {"{\"a\":\"b\\", 7},
        {"{\"a\":\"\\u12\"}", 6},
        {"{\"a\":'b'}", 5},
        {"{\"a\":\"\\udc00\"}", 6},
        {"{\"a\":\"\\ud800\\u0041\"}", 6},
        {"{\"a\":1 /**/}", 7},
        {"{\"a\":NaN}", 5},
        {"{\"a\":[[[[}", 9},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char says[80];
        snprintf(says, sizeof says, "safetensors header: the JSON is malformed near byte %u",
                 bad[i].byte);
        expect_refusal(bad[i].json, 0, says);
    }
}

static void safetensors_decodes_every_escape(void **state)
{
    (void)state;
    struct bytes b = file_of("{\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00E9\\u20ac\\uD83d\\uDE00\" : "
                             "{\"dtype\" : \"U8\", \"shape\" : [ 1 ],\t\"data_offsets\":[0,1],"
                             "\"more\":[-0.5e+3,true,false,null,{},[],{\"x\":[{}]}]}}",
                             1);
    ptxgen_safetensors *file = expect_file(&b);
    assert_string_equal(ptxgen_safetensors_tensors(file)->items[0].name,
                        "\"\\/\b\f\n\r\t\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
    ptxgen_safetensors_destroy(file);
    bytes_free(&b);
}

/* However deep containers nest, the stack does not. */
static void safetensors_reads_a_million_nested_arrays(void **state)
{
    (void)state;
    enum { DEPTH = 1000000 };
    static const char before[] = "{\"__metadata__\":{},\"t\":{\"dtype\":\"U8\",\"shape\":[1],"
                                 "\"data_offsets\":[0,1],\"more\":";
    struct bytes b = {0};
    char *nested = malloc(2 * DEPTH);
    assert_non_null(nested);
    memset(nested, '[', DEPTH);
    memset(nested + DEPTH, ']', DEPTH);
    put_u64(&b, sizeof before - 1 + 2 * DEPTH + 2);
    put(&b, before, sizeof before - 1);
    put(&b, nested, 2 * DEPTH);
    put(&b, "}}\1", 3);
    ptxgen_safetensors *file = expect_file(&b);
    assert_int_equal(ptxgen_safetensors_tensors(file)->count, 1);
    ptxgen_safetensors_destroy(file);
    free(nested);
    bytes_free(&b);
}

static void safetensors_reads_an_escaped_backslash_before_u0000(void **state)
{
    (void)state;
    struct bytes b =
        file_of("{\"a\\\\u0000\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1);
    ptxgen_safetensors *file = expect_file(&b);
    assert_non_null(ptxgen_tensor_list_find(ptxgen_safetensors_tensors(file), "a\\u0000"));
    ptxgen_safetensors_destroy(file);
    bytes_free(&b);
}

static void safetensors_refuses_duplicates(void **state)
{
    (void)state;
    expect_refusal("{\"t\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                   "\"t\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}", 2,
                   "tensor \"t\" appears twice; names must differ");
    expect_refusal("{\"t\":{\"dtype\":\"U8\",\"dtype\":\"I8\",\"shape\":[1],"
                   "\"data_offsets\":[0,1]}}", 1,
                   "tensor \"t\": \"dtype\" appears twice");
    expect_refusal("{\"__metadata__\":{},\"__metadata__\":{}}", 0,
                   "\"__metadata__\" appears twice");
    expect_refusal("{\"__metadata__\":{\"a\":\"1\",\"b\":\"\",\"a\":\"2\"}}", 0,
                   "__metadata__ key \"a\" appears twice");
}

static void safetensors_refuses_bad_metadata(void **state)
{
    (void)state;
    expect_refusal("{\"__metadata__\":[]}", 0, "\"__metadata__\" is not an object");
    expect_refusal("{\"__metadata__\":{\"bits\":4}}", 0,
                   "__metadata__ key \"bits\": its value is not a string");
}

static void safetensors_refuses_bad_tensor_entries(void **state)
{
    (void)state;
    expect_refusal("{\"t\":7}", 0, "tensor \"t\": its value is not an object");
    expect_refusal("{\"t\":{}}", 0, "tensor \"t\": \"dtype\" is missing");
    expect_refusal("{\"t\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", 1,
                   "tensor \"t\": \"shape\" is missing");
    expect_refusal("{\"t\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1,
                   "tensor \"t\": \"data_offsets\" is missing");
    expect_refusal("{\"t\":{\"dtype\":1,\"shape\":[1],\"data_offsets\":[0,1]}}", 1,
                   "tensor \"t\": \"dtype\" is not a string");
    expect_refusal("{\"t\":{\"dtype\":\"U8\",\"shape\":1,\"data_offsets\":[0,1]}}", 1,
                   "tensor \"t\": \"shape\" is not an array");
    expect_refusal_of(
        file_of("{\"t\":{\"dtype\":\"Q4_K\",\"shape\":[256],\"data_offsets\":[0,144]}}", 144),
        PTXGEN_ERROR_UNSUPPORTED, "tensor \"t\": dtype \"Q4_K\" is unknown");
    expect_refusal_of(file_of("{\"t\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,1],"
                              "\"data_offsets\":[0,1]}}",
                              1),
                      PTXGEN_ERROR_UNSUPPORTED,
                      "tensor \"t\": more than 8 dimensions");
    expect_refusal("{\"t\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,1]}}", 1,
                   "tensor \"t\": shape [3] has 3 elements, not a multiple of F4's block of 2");
}

static void safetensors_refuses_numbers_that_are_not_counts(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "-1", "1.5", "1.0", "1e0", "1e300", "9007199254740993", "null", "\"1\"", "18446744073709551616"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char header[256];
        snprintf(header, sizeof header,
                 "{\"t\":{\"dtype\":\"U8\",\"shape\":[2,%s],\"data_offsets\":[0,1]}}", bad[i]);
        expect_refusal(header, 1, "tensor \"t\": dimension 1 is not an integer from 0 to 2^53 - 1");
        snprintf(header, sizeof header,
                 "{\"t\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,%s]}}", bad[i]);
        expect_refusal(header, 1,
                       "tensor \"t\": \"data_offsets\" is not two integers from 0 to 2^53 - 1");
    }
    expect_refusal("{\"t\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0]}}", 1,
                   "tensor \"t\": \"data_offsets\" is not two integers from 0 to 2^53 - 1");
    expect_refusal("{\"t\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1,2]}}", 1,
                   "tensor \"t\": \"data_offsets\" is not two integers from 0 to 2^53 - 1");
}

static void safetensors_refuses_shapes_that_overflow(void **state)
{
    (void)state;
    expect_refusal("{\"t\":{\"dtype\":\"U8\",\"shape\":[4503599627370496,4096],"
                   "\"data_offsets\":[0,0]}}", 0,
                   "tensor \"t\": the element count of shape [4503599627370496, 4096] exceeds "
                   "64 bits");
    expect_refusal("{\"t\":{\"dtype\":\"F64\",\"shape\":[4503599627370496,1024],"
                   "\"data_offsets\":[0,0]}}", 0,
                   "tensor \"t\": shape [4503599627370496, 1024] of F64 takes more bytes than "
                   "can be addressed");
}

static void safetensors_refuses_spans_that_disagree(void **state)
{
    (void)state;
    expect_refusal("{\"t\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,12]}}", 12,
                   "tensor \"t\": data_offsets [0, 12] span 12 bytes, but shape [2, 2] of F32 "
                   "takes 16");
    expect_refusal("{\"t\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[4,3]}}", 4,
                   "tensor \"t\": data_offsets [4, 3] run backwards");
    expect_refusal("{\"t\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", 3,
                   "tensor \"t\": data_offsets end at 4, past the file's 3 bytes of data");
}

static void safetensors_refuses_holes_overlaps_and_leftovers(void **state)
{
    (void)state;
    expect_refusal("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                   "\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[2,3]}}", 3,
                   "tensor \"b\": data_offsets begin at 2, but the tensors before it end at 1: "
                   "a hole");
    expect_refusal("{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
                   "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}", 3,
                   "tensor \"b\": data_offsets begin at 1, but the tensors before it end at 2: "
                   "an overlap");
    expect_refusal("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 2,
                   "safetensors data: the tensors end at 1, but the file holds 2 bytes of data");
    expect_refusal("{}", 1,
                   "safetensors data: the tensors end at 0, but the file holds 1 bytes of data");
}

static void safetensors_refuses_every_truncation(void **state)
{
    (void)state;
    struct bytes whole = file_of("{\"__metadata__\":{\"k\":\"v\"},"
                                 "\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}} ",
                                 4);
    for (size_t size = 0; size < whole.size; size++) {
        struct bytes cut = {0}; /* an exact copy, so that AddressSanitizer guards its end */
        put(&cut, whole.data, size);
        ptxgen_safetensors *file;
        assert_int_equal(ptxgen_safetensors_parse(cut.data, size, &file, NULL),
                         PTXGEN_ERROR_MALFORMED);
        bytes_free(&cut);
    }
    bytes_free(&whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(safetensors_reads_tensors_and_metadata),
        cmocka_unit_test(safetensors_accepts_a_file_without_tensors),
        cmocka_unit_test(safetensors_sizes_every_dtype),
        cmocka_unit_test(safetensors_refuses_a_bad_header_length),
        cmocka_unit_test(safetensors_refuses_bad_json),
        cmocka_unit_test(safetensors_refuses_what_is_almost_json),
        cmocka_unit_test(safetensors_decodes_every_escape),
        cmocka_unit_test(safetensors_reads_a_million_nested_arrays),
        cmocka_unit_test(safetensors_reads_an_escaped_backslash_before_u0000),
        cmocka_unit_test(safetensors_refuses_duplicates),
        cmocka_unit_test(safetensors_refuses_bad_metadata),
        cmocka_unit_test(safetensors_refuses_bad_tensor_entries),
        cmocka_unit_test(safetensors_refuses_numbers_that_are_not_counts),
        cmocka_unit_test(safetensors_refuses_shapes_that_overflow),
        cmocka_unit_test(safetensors_refuses_spans_that_disagree),
        cmocka_unit_test(safetensors_refuses_holes_overlaps_and_leftovers),
        cmocka_unit_test(safetensors_refuses_every_truncation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
