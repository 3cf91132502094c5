/* SPDX-License-Identifier: Apache-2.0 */
/* Against the weights that PyTorch compressed: every array bit for bit, both ways, all types. */
#include "tests/status.h"

#include "golden.h"
#include "src/kernels/sparse24/formats.h"

typedef void claim(const struct golden_weight *w);

static void for_each_type(claim *check)
{
    ptxgen_files *store = golden_open();
    for (int i = 0; i < GOLDEN_WEIGHTS; i++) {
        struct golden_weight w = golden_weight(store, i);
        check(&w);
    }
    ptxgen_files_close(store);
}

/* ---- compress ---- */

static void check_compress(const struct golden_weight *w)
{
    ptxgen_error err;
    ptxgen_span values = span_of(w->values.bytes);
    ptxgen_span metadata = metadata_span(&w->shape, PTXGEN_SPARSE24_CUTLASS);
    assert_int_equal(metadata.bytes, w->cutlass.bytes);
    assert_ok(ptxgen_sparse24_compress(&w->shape, w->dense, values, PTXGEN_SPARSE24_CUTLASS,
                                       metadata, &err),
              &err);
    assert_memory_equal(values.data, w->values.data, values.bytes);
    assert_memory_equal(metadata.data, w->cutlass.data, metadata.bytes);
    free(values.data);
    free(metadata.data);
}

static void compress_gives_pytorchs_values_and_metadata_bit_for_bit(void **state)
{
    (void)state;
    for_each_type(check_compress);
}

/* ---- decompress ---- */

/*
 * PyTorch made `dense` by multiplying with a mask, so what it dropped is a zero of either sign.
 * Compression keeps no sign of what it drops: there we promise +0, everywhere else all bits.
 */
static void check_decompress(const struct golden_weight *w)
{
    ptxgen_error err;
    ptxgen_span dense = span_of(w->dense.bytes);
    assert_ok(ptxgen_sparse24_decompress(&w->shape, w->values, PTXGEN_SPARSE24_CUTLASS, w->cutlass,
                                         dense, &err),
              &err);
    const struct sparse24_metadata metadata = {w->shape, PTXGEN_SPARSE24_CUTLASS, w->cutlass.data};
    ptxgen_sparse24_type type = w->shape.type;
    for (size_t i = 0; i < w->shape.n * w->shape.k; i++) {
        size_t row = i / w->shape.k, group = i % w->shape.k / 4, column = i % 4;
        unsigned nibble;
        assert_ok(sparse24_load_group(&metadata, row, group, &nibble, &err), &err);
        bool kept = column == (nibble & 3) || column == nibble >> 2;
        uint32_t expected = sparse24_bits(type, w->dense.data, i);
        if (!kept)
            assert_int_equal(sparse24_magnitude(type, expected), 0);
        assert_int_equal(sparse24_bits(type, dense.data, i), kept ? expected : 0);
    }
    free(dense.data);
}

static void decompress_gives_pytorchs_dense_weight(void **state)
{
    (void)state;
    for_each_type(check_decompress);
}

/* ---- metadata ---- */

/* Positions of a group found in the dense and compressed weights alone, by PyTorch's rule. */
static unsigned byte_by_rule(const struct golden_weight *w, size_t group)
{
    unsigned nonzeros = 0;
    for (unsigned i = 0; i < 4; i++) {
        uint32_t bits = sparse24_bits(w->shape.type, w->dense.data, 4 * group + i);
        nonzeros |= (sparse24_magnitude(w->shape.type, bits) != 0) << i;
    }
    switch (nonzeros) {
    case 1: return 0 | 2 << 2;
    case 2: return 1 | 2 << 2;
    case 0:
    case 4:
    case 8: return 2 | 3 << 2;
    }
    unsigned first = 0, second = 3;
    while (!(nonzeros >> first & 1))
        first++;
    while (!(nonzeros >> second & 1))
        second--;
    return first | second << 2;
}

static void check_metadata(const struct golden_weight *w)
{
    ptxgen_error err;
    ptxgen_span bytes = metadata_span(&w->shape, PTXGEN_SPARSE24_BYTES);
    ptxgen_span back = metadata_span(&w->shape, PTXGEN_SPARSE24_CUTLASS);
    assert_ok(ptxgen_sparse24_convert(&w->shape, PTXGEN_SPARSE24_CUTLASS, w->cutlass,
                                      PTXGEN_SPARSE24_BYTES, bytes, &err),
              &err);
    for (size_t group = 0; group < bytes.bytes; group++)
        assert_int_equal(((uint8_t *)bytes.data)[group], byte_by_rule(w, group));
    assert_ok(ptxgen_sparse24_convert(&w->shape, PTXGEN_SPARSE24_BYTES, read_only(bytes),
                                      PTXGEN_SPARSE24_CUTLASS, back, &err),
              &err);
    assert_memory_equal(back.data, w->cutlass.data, back.bytes);
    free(bytes.data);
    free(back.data);
}

static void cutlass_metadata_converts_to_bytes_and_back_bit_for_bit(void **state)
{
    (void)state;
    for_each_type(check_metadata);
}

/* Every form that a type has, reached from every other, is the same array. */
static void check_all_forms(const struct golden_weight *w)
{
    ptxgen_error err;
    for (int from = 0; from <= PTXGEN_SPARSE24_CUTLASS; from++)
        for (int to = 0; to <= PTXGEN_SPARSE24_CUTLASS; to++) {
            ptxgen_span a = metadata_span(&w->shape, from), b = metadata_span(&w->shape, to);
            ptxgen_span direct = metadata_span(&w->shape, to);
            ptxgen_const_span cutlass = w->cutlass;
            assert_ok(
                ptxgen_sparse24_convert(&w->shape, PTXGEN_SPARSE24_CUTLASS, cutlass, from, a, &err),
                &err);
            assert_ok(ptxgen_sparse24_convert(&w->shape, from, read_only(a), to, b, &err), &err);
            assert_ok(ptxgen_sparse24_convert(&w->shape, PTXGEN_SPARSE24_CUTLASS, cutlass, to,
                                              direct, &err),
                      &err);
            assert_memory_equal(b.data, direct.data, b.bytes);
            free(a.data);
            free(b.data);
            free(direct.data);
        }
}

static void every_form_converts_to_every_other(void **state)
{
    (void)state;
    for_each_type(check_all_forms);
}

/* A bit is set where the dense weight has a non-zero, or a zero that the two slots hold. */
static void check_bitmask(const struct golden_weight *w)
{
    ptxgen_error err;
    ptxgen_span mask = metadata_span(&w->shape, PTXGEN_SPARSE24_BITMASK);
    assert_ok(ptxgen_sparse24_convert(&w->shape, PTXGEN_SPARSE24_CUTLASS, w->cutlass,
                                      PTXGEN_SPARSE24_BITMASK, mask, &err),
              &err);
    size_t value = 0;
    for (size_t i = 0; i < w->shape.n * w->shape.k; i++) {
        uint32_t dense = sparse24_bits(w->shape.type, w->dense.data, i);
        if (((uint8_t *)mask.data)[i / 8] >> i % 8 & 1)
            assert_int_equal(sparse24_bits(w->shape.type, w->values.data, value++), dense);
        else
            assert_int_equal(sparse24_magnitude(w->shape.type, dense), 0);
    }
    assert_int_equal(value, w->shape.n * w->shape.k / 2);
    free(mask.data);
}

static void the_bitmasks_set_bits_in_order_are_the_values(void **state)
{
    (void)state;
    for_each_type(check_bitmask);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compress_gives_pytorchs_values_and_metadata_bit_for_bit),
        cmocka_unit_test(decompress_gives_pytorchs_dense_weight),
        cmocka_unit_test(cutlass_metadata_converts_to_bytes_and_back_bit_for_bit),
        cmocka_unit_test(every_form_converts_to_every_other),
        cmocka_unit_test(the_bitmasks_set_bits_in_order_are_the_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
