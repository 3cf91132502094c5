/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints in several files: sharded safetensors by their index, GGUF in parts. */
#include "tests/status.h"

#include "bytes.h"
#include "src/files/part_name.h"
#include "src/files/safetensors_index.h"
#include <ptxgen/gguf.h>
#include "tests/dispatch/folder.h"

#include <stdio.h>
#include <unistd.h>

static char folder[FOLDER_PATH];

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

static const char *in_folder(const char *name)
{
    static char paths[4][FOLDER_PATH + 64];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void assert_contains(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" does not contain \"%s\"", text, part);
}

static void write_bytes(const char *name, struct bytes b)
{
    file_write(in_folder(name), b.data, b.size);
    bytes_free(&b);
}

static void write_text(const char *name, const char *text)
{
    file_write(in_folder(name), text, strlen(text));
}

/* A float of this value under this name. */
static void write_shard(const char *file, const char *tensor, float value)
{
    struct bytes b = {0};
    char header[256];
    snprintf(header, sizeof header,
             "{\"%s\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", tensor);
    put_u64(&b, strlen(header));
    put(&b, header, strlen(header));
    put(&b, &value, 4);
    write_bytes(file, b);
}

static void put_name(struct bytes *b, const char *name)
{
    put_u64(b, strlen(name));
    put(b, name, strlen(name));
}

static void write_gguf(const char *file, unsigned number, unsigned count, int total,
                       const char *tensor, float value)
{
    struct bytes b = {0};
    put(&b, "GGUF", 4);
    put_u32(&b, 3);
    put_u64(&b, 1);
    put_u64(&b, total >= 0 ? 3 : 2);
    put_name(&b, "split.no");
    put_u32(&b, PTXGEN_GGUF_VALUE_UINT16);
    put_int(&b, number, 2);
    put_name(&b, "split.count");
    put_u32(&b, PTXGEN_GGUF_VALUE_UINT16);
    put_int(&b, count, 2);
    if (total >= 0) {
        put_name(&b, "split.tensors.count");
        put_u32(&b, PTXGEN_GGUF_VALUE_INT32);
        put_u32(&b, (uint32_t)total);
    }
    put_name(&b, tensor);
    put_u32(&b, 1);
    put_u64(&b, 1);
    put_u32(&b, 0); /* F32 */
    put_u64(&b, 0);
    put_zeros(&b, (32 - b.size % 32) % 32);
    put(&b, &value, 4);
    write_bytes(file, b);
}

static void expect_tensor(const ptxgen_files *store, const char *name, float value)
{
    const ptxgen_tensor *t;
    ptxgen_error err = {0};
    float found;
    assert_ok(ptxgen_files_require(store, name, &t, &err), &err);
    memcpy(&found, t->data, sizeof found);
    assert_true(found == value);
}

/* The file has these two, whatever it is. */
static void expect_two(const char *path, const char *first, const char *second)
{
    ptxgen_files *store;
    ptxgen_error err = {0};
    assert_ok(ptxgen_files_open(path, &store, &err), &err);
    assert_int_equal(ptxgen_files_tensors(store)->count, 2);
    expect_tensor(store, first, 1);
    expect_tensor(store, second, 2);
    ptxgen_files_close(store);
}

static void expect_refusal(const char *path, ptxgen_status status, const char *names,
                           const char *rule)
{
    ptxgen_files *store;
    ptxgen_error err = {0};
    assert_int_equal(ptxgen_files_open(path, &store, &err), status);
    assert_null(store);
    assert_contains(err.message, names);
    assert_contains(err.message, rule);
}

/* The sentence is the file's path, and the reason behind it. */
static void expect_reason(const char *path, const char *reason)
{
    ptxgen_files *store;
    ptxgen_error err = {0};
    char wanted[PTXGEN_MESSAGE_SIZE];
    snprintf(wanted, sizeof wanted, "%.400s: %.400s", path, reason);
    assert_int_equal(ptxgen_files_open(path, &store, &err), PTXGEN_ERROR_MALFORMED);
    assert_string_equal(err.message, wanted);
}

/* ---- safetensors ---- */

#define FIRST "model-00001-of-00002.safetensors"
#define SECOND "model-00002-of-00002.safetensors"
#define INDEX "model.safetensors.index.json"

static void write_shards(void)
{
    write_shard(FIRST, "a", 1);
    write_shard(SECOND, "b", 2);
    write_text(INDEX, "{\"metadata\":{\"total_size\":8},\n"
                      " \"weight_map\":{\"b\":\"" SECOND "\",\"a\":\"" FIRST "\"}}\n");
}

static void shards_are_read_by_index_by_folder_and_by_any_of_them(void **state)
{
    (void)state;
    write_shards();
    expect_two(in_folder(INDEX), "a", "b");
    expect_two(folder, "a", "b");
    expect_two(in_folder(FIRST), "a", "b");
    expect_two(in_folder(SECOND), "a", "b");
}

static void a_missing_shard_is_named(void **state)
{
    (void)state;
    write_shards();
    unlink(in_folder(SECOND));
    expect_refusal(in_folder(INDEX), PTXGEN_ERROR_FILE, SECOND ": No such file", "(a part that ");
    expect_refusal(in_folder(FIRST), PTXGEN_ERROR_FILE, SECOND ": No such file", INDEX " names)");
}

static void a_shard_without_its_index_says_what_a_missing_tensor_may_be(void **state)
{
    (void)state;
    ptxgen_files *store;
    const ptxgen_tensor *t;
    ptxgen_error err = {0};
    write_shard(FIRST, "a", 1);
    assert_ok(ptxgen_files_open(in_folder(FIRST), &store, &err), &err);
    expect_tensor(store, "a", 1);
    assert_int_equal(ptxgen_files_require(store, "b", &t, &err), PTXGEN_ERROR_NOT_FOUND);
    assert_contains(err.message, "it is one part of several, which are read through ");
    assert_contains(err.message, INDEX ", and that is not there");
    ptxgen_files_close(store);
    expect_refusal(folder, PTXGEN_ERROR_NOT_FOUND, FIRST, "but no *.safetensors.index.json");
}

static void an_index_that_is_not_true_is_refused(void **state)
{
    (void)state;
    write_shards();
    write_text(INDEX, "{\"weight_map\":{\"a\":\"" FIRST "\",\"b\":\"" FIRST "\"}}");
    expect_refusal(in_folder(INDEX), PTXGEN_ERROR_MALFORMED, "tensor \"b\" is in " FIRST,
                   "has none of that name");
    expect_refusal(in_folder(SECOND), PTXGEN_ERROR_MALFORMED, "/" INDEX ": it is beside ",
                   "/" SECOND ", whose name says that it is a part, and does not name it");
    write_shard(SECOND, "a", 2);
    write_text(INDEX, "{\"weight_map\":{\"a\":\"" FIRST "\",\"c\":\"" SECOND "\"}}");
    expect_refusal(in_folder(INDEX), PTXGEN_ERROR_MALFORMED, "tensor \"c\"", "none of that name");
    write_gguf(SECOND, 0, 1, -1, "c", 2);
    expect_refusal(in_folder(INDEX), PTXGEN_ERROR_MALFORMED, INDEX,
                   ": it names " SECOND ", which is no safetensors file");
}

static void of_a_tensor_in_two_shards_the_index_says_which_is_meant(void **state)
{
    (void)state;
    struct bytes b = {0};
    static const char header[] = "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
                                 "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}";
    const float values[2] = {7, 2};
    write_shards();
    put_u64(&b, strlen(header));
    put(&b, header, strlen(header));
    put(&b, values, 8);
    write_bytes(SECOND, b);
    expect_two(in_folder(INDEX), "a", "b");
    write_text(INDEX, "{\"weight_map\":{\"b\":\"" SECOND "\",\"x\":\"" FIRST "\"}}");
    write_shard(FIRST, "a", 1);
    expect_refusal(in_folder(INDEX), PTXGEN_ERROR_MALFORMED, "tensor \"a\"", "appears twice");
}

static void a_folder_has_one_file_that_is_meant(void **state)
{
    (void)state;
    expect_refusal(folder, PTXGEN_ERROR_NOT_FOUND, folder, "without a safetensors or GGUF file");
    write_shards();
    write_text("other.safetensors.index.json", "{}");
    expect_refusal(folder, PTXGEN_ERROR_INVALID_ARGUMENT,
                   " has several files that could be meant, ", "\"" INDEX "\"");
    expect_refusal(folder, PTXGEN_ERROR_INVALID_ARGUMENT, "\"other.safetensors.index.json\"",
                   " among them; say which");
}

static void indexes_are_checked(void **state)
{
    (void)state;
    static const struct {
        const char *text, *names, *rule;
    } cases[] = {
        {"{\"weight_map\":{\"a\":\"../f\"}}", "tensor \"a\" is in \"../f\"", "beside the index"},
        {"{\"weight_map\":{\"a\":\"/f\"}}", "\"/f\"", "beside the index"},
        {"{\"weight_map\":{\"a\":\"d/f\"}}", "\"d/f\"", "beside the index"},
        {"{\"weight_map\":{\"a\":\"..\"}}", "\"..\"", "beside the index"},
        {"{\"weight_map\":{\"a\":\".\"}}", "\".\"", "beside the index"},
        {"{\"weight_map\":{\"a\":\"\"}}", "tensor \"a\"", "beside the index"},
        {"{\"weight_map\":{\"a\":\"f\\u0000\"}}", "NUL", "at byte"},
        {"{\"weight_map\":{\"a\":\"f\\u002Fg\"}}", "\"f/g\"", "beside the index"},
        {"{\"weight_map\":{\"a\":1}}", "tensor \"a\"", "not a string"},
        {"{\"weight_map\":{\"a\":\"f\",\"a\":\"g\"}}", "tensor \"a\"", "appears twice"},
        {"{\"weight_map\":{\"a\":\"f\"},\"weight_map\":{}}", "\"weight_map\"", "appears twice"},
        {"{\"weight_map\":{}}", "\"weight_map\"", "is empty"},
        {"{\"weight_map\":[\"f\"]}", "\"weight_map\"", "not an object"},
        {"{\"metadata\":{}}", "\"weight_map\"", "is missing"},
        {"{\"weight_map\":{\"a\":\"f\"}} x", "follows the JSON object", "white space"},
        {"{\"weight_map\":{\"a\":\"f\"}", "the JSON is malformed", "near byte"},
        {"{\"weight_map\":{\"a\":\"\xFF\"}}", "not UTF-8", ""},
        {"[1]", "not an object", ""},
        {"", "0 bytes", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct safetensors_index *index;
        ptxgen_error err = {0};
        struct bytes b = {0};
        put(&b, cases[i].text, strlen(cases[i].text));
        assert_int_equal(safetensors_index_parse(b.data, b.size, &index, &err),
                         PTXGEN_ERROR_MALFORMED);
        assert_null(index);
        assert_contains(err.message, cases[i].names);
        assert_contains(err.message, cases[i].rule);
        bytes_free(&b);
        if (*cases[i].text != '{') /* by which an index is known from other files */
            continue;
        write_text(INDEX, cases[i].text);
        expect_reason(in_folder(INDEX), err.message);
    }
}

/* ---- GGUF ---- */

#define PART_1 "m-00001-of-00002.gguf"
#define PART_2 "m-00002-of-00002.gguf"

static void write_parts(void)
{
    write_gguf(PART_1, 0, 2, 2, "a", 1);
    write_gguf(PART_2, 1, 2, 2, "b", 2);
}

static void gguf_parts_are_read_by_any_of_them_and_by_folder(void **state)
{
    (void)state;
    write_parts();
    expect_two(in_folder(PART_1), "a", "b");
    expect_two(in_folder(PART_2), "a", "b");
    expect_two(folder, "a", "b");
}

static void gguf_parts_that_do_not_fit_are_refused_by_name(void **state)
{
    (void)state;
    write_parts();
    unlink(in_folder(PART_2));
    expect_refusal(in_folder(PART_1), PTXGEN_ERROR_FILE, PART_2 ": No such file", PART_1);
    write_gguf(PART_2, 0, 2, 2, "b", 2);
    expect_refusal(in_folder(PART_1), PTXGEN_ERROR_MALFORMED, PART_2,
                   ": its name says part 2 of 2, and its keys part 1 of 2 (split.no + 1, "
                   "split.count)");
    write_gguf(PART_2, 1, 3, 2, "b", 2);
    expect_refusal(in_folder(PART_1), PTXGEN_ERROR_MALFORMED, PART_2,
                   ": its name says part 2 of 2, and its keys part 2 of 3 (split.no + 1, "
                   "split.count)");
    write_gguf(PART_2, 1, 2, 2, "a", 2);
    expect_refusal(in_folder(PART_1), PTXGEN_ERROR_MALFORMED, "\"a\"", "appears twice");
    write_gguf(PART_1, 0, 2, 3, "a", 1);
    write_gguf(PART_2, 1, 2, -1, "b", 2);
    expect_refusal(in_folder(PART_1), PTXGEN_ERROR_MALFORMED, PART_1,
                   ": split.tensors.count is 3, but the 2 parts have 2 tensors");
    write_shard(PART_2, "b", 2);
    expect_refusal(in_folder(PART_1), PTXGEN_ERROR_MALFORMED, PART_2,
                   ": no GGUF file, as its name says");
    write_gguf("renamed.gguf", 0, 2, 2, "a", 1);
    expect_refusal(in_folder("renamed.gguf"), PTXGEN_ERROR_UNSUPPORTED, "/renamed.gguf",
                   " is one of 2 parts (split.count), which are found by names that end in "
                   "-00001-of-00002.gguf and so on");
    write_gguf("whole.gguf", 0, 1, -1, "a", 1);
    ptxgen_files *store;
    assert_int_equal(ptxgen_files_open(in_folder("whole.gguf"), &store, NULL), PTXGEN_OK);
    ptxgen_files_close(store);
}

/* ---- names ---- */

static void names_of_parts_have_five_digits_twice(void **state)
{
    (void)state;
    static const char *const others[] = {
        "m.gguf",
        "-00001-of-00002.gguf",
        "m-0001-of-0002.gguf",
        "m-00000-of-00002.gguf",
        "m-00003-of-00002.gguf",
        "m-00001-of-00002.safetensors",
        "m-0000a-of-00002.gguf",
        "m-00001_of_00002.gguf",
    };
    struct part_name name;
    assert_true(part_name_read("d/m-00007-of-00012.gguf", ".gguf", &name));
    assert_int_equal(name.stem, 3);
    assert_int_equal(name.number, 7);
    assert_int_equal(name.count, 12);
    char *other = part_name_write("d/m-00007-of-00012.gguf", ".gguf", &name, 10);
    assert_string_equal(other, "d/m-00010-of-00012.gguf");
    free(other);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(part_name_read(others[i], ".gguf", &name));
}

#define with_folder(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_folder(shards_are_read_by_index_by_folder_and_by_any_of_them),
        with_folder(a_missing_shard_is_named),
        with_folder(a_shard_without_its_index_says_what_a_missing_tensor_may_be),
        with_folder(an_index_that_is_not_true_is_refused),
        with_folder(of_a_tensor_in_two_shards_the_index_says_which_is_meant),
        with_folder(a_folder_has_one_file_that_is_meant),
        with_folder(indexes_are_checked),
        with_folder(gguf_parts_are_read_by_any_of_them_and_by_folder),
        with_folder(gguf_parts_that_do_not_fit_are_refused_by_name),
        cmocka_unit_test(names_of_parts_have_five_digits_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
