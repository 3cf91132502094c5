/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decoding and quantising against ggml's own results, bit for bit: tests/golden/gguf_types.gguf,
 * which make_golden.py makes, and q4k.gguf.
 */
#include <ptxgen/gguf.h>
#include "tests/status.h"

#include <ptxgen/gguf_types.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static ptxgen_files *open_golden(const char *path)
{
    ptxgen_files *store;
    ptxgen_error err;
    assert_ok(ptxgen_files_open(path, &store, &err), &err);
    return store;
}

static const ptxgen_tensor *tensor_of(ptxgen_files *store, const char *name)
{
    const ptxgen_tensor *tensor;
    ptxgen_error err;
    assert_ok(ptxgen_files_require(store, name, &tensor, &err), &err);
    return tensor;
}

/* A copy of the rows in memory of exactly their size, where a sanitizer guards their end. */
static void *copy_of(const void *data, size_t bytes)
{
    void *copy = malloc(bytes);
    assert_non_null(copy);
    return memcpy(copy, data, bytes);
}

static void check_decoding(ptxgen_files *store, const char *weights, const char *decoded)
{
    const ptxgen_tensor *w = tensor_of(store, weights), *wanted = tensor_of(store, decoded);
    uint32_t type = (uint32_t)ptxgen_dtype_find(w->dtype)->ggml_type;
    size_t rows = w->shape[0], k = w->shape[1], bytes;
    ptxgen_error err;
    assert_ok(ptxgen_gguf_row_bytes(type, k, &bytes, &err), &err);
    assert_int_equal(w->bytes, rows * bytes);
    float *values = malloc(k * sizeof *values);
    for (size_t n = 0; n < rows; n++) {
        uint8_t *row = copy_of((const uint8_t *)w->data + n * bytes, bytes);
        assert_ok(ptxgen_gguf_decode_row(type, row, bytes, k, values, &err), &err);
        const float *own = (const float *)wanted->data + n * k;
        for (size_t i = 0; i < k; i++)
            if (memcmp(&values[i], &own[i], sizeof *own) != 0)
                fail_msg("%s: weight %zu of row %zu is %g; ggml has %g", weights, i, n,
                         (double)values[i], (double)own[i]);
        free(row);
    }
    free(values);
}

static void every_type_of_blocks_decodes_to_ggmls_floats(void **state)
{
    (void)state;
    ptxgen_files *store = open_golden(GOLDEN_DIR "/gguf_types.gguf");
    unsigned types = 0;
    const ptxgen_gguf_type_info *t;
    for (size_t i = 0; (t = ptxgen_gguf_type_at(i)) != NULL; i++) {
        char weights[32], decoded[32];
        if (t->block_weights == 1)
            continue;
        snprintf(weights, sizeof weights, "%s.weight", t->name);
        snprintf(decoded, sizeof decoded, "%s.decoded", t->name);
        check_decoding(store, weights, decoded);
        types++;
    }
    assert_int_equal(types, 13);
    ptxgen_files_close(store);
}

static void a_matrix_that_ggml_quantised_decodes_to_ggmls_floats(void **state)
{
    (void)state;
    ptxgen_files *store = open_golden(GOLDEN_DIR "/q4k.gguf");
    check_decoding(store, "blk.0.attn_q.weight", "expected.dequantized");
    ptxgen_files_close(store);
}

/* Behind each row there is a byte that must stay. */
static void check_quantising(const ptxgen_gguf_type_info *t, const float *source, size_t k,
                             const ptxgen_tensor *wanted)
{
    enum { MARK = 0x5A };
    size_t bytes, rows = wanted->shape[0];
    ptxgen_error err;
    assert_ok(ptxgen_gguf_row_bytes(t->type, k, &bytes, &err), &err);
    assert_int_equal(wanted->bytes, rows * bytes);
    uint8_t *row = malloc(bytes + 2);
    for (size_t n = 0; n < rows; n++) {
        uint8_t *odd = row + n % 2; /* rows may start at any address */
        const uint8_t *own = (const uint8_t *)wanted->data + n * bytes;
        odd[bytes] = MARK;
        assert_ok(ptxgen_gguf_quantise_row(t->type, source + n * k, k, odd, bytes, &err), &err);
        for (size_t i = 0; i < bytes; i++)
            if (odd[i] != own[i])
                fail_msg("%s: byte %zu of row %zu is 0x%02x; ggml has 0x%02x", t->name, i, n,
                         odd[i], own[i]);
        assert_int_equal(odd[bytes], MARK);
    }
    free(row);
}

static void every_quantiser_gives_ggmls_bytes(void **state)
{
    (void)state;
    ptxgen_files *store = open_golden(GOLDEN_DIR "/gguf_types.gguf");
    const ptxgen_tensor *source = tensor_of(store, "source");
    float *weights = copy_of(source->data, source->bytes);
    unsigned types = 0;
    const ptxgen_gguf_type_info *t;
    for (size_t i = 0; (t = ptxgen_gguf_type_at(i)) != NULL; i++) {
        char name[32];
        if (!t->quantises || t->type == PTXGEN_GGUF_F32)
            continue;
        snprintf(name, sizeof name, "%s.quantised", t->name);
        check_quantising(t, weights, source->shape[1], tensor_of(store, name));
        types++;
    }
    assert_int_equal(types, 11);
    free(weights);
    ptxgen_files_close(store);
}

/* The table of files.h has the same types, and more that are not decoded. */
static void numbers_and_sizes_are_those_of_the_readers_of_files(void **state)
{
    (void)state;
    unsigned found = 0;
    const ptxgen_dtype_info *own;
    for (int i = 0; (own = ptxgen_dtype_find((ptxgen_dtype)i)) != NULL; i++) {
        const ptxgen_gguf_type_info *t =
            own->ggml_type < 0 ? NULL : ptxgen_gguf_type_find((uint32_t)own->ggml_type);
        if (!t)
            continue;
        found++;
        assert_string_equal(t->name, own->name);
        assert_int_equal(t->block_weights, own->block_elements);
        assert_int_equal(t->block_bytes, own->block_bytes);
    }
    assert_int_equal(found, 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_of_blocks_decodes_to_ggmls_floats),
        cmocka_unit_test(a_matrix_that_ggml_quantised_decodes_to_ggmls_floats),
        cmocka_unit_test(every_quantiser_gives_ggmls_bytes),
        cmocka_unit_test(numbers_and_sizes_are_those_of_the_readers_of_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
