/* SPDX-License-Identifier: Apache-2.0 */
/* Pruning, compressing and the forms by small examples, and round trips of random shapes. */
#include "tests/status.h"

#include "golden.h"
#include "src/kernels/half.h"
#include "src/kernels/sparse24/formats.h"
#include "tests/random.h"

#include <ptxgen/sparse24.h>

#include <math.h>

static const ptxgen_sparse24_type all_types[] = {PTXGEN_SPARSE24_F32, PTXGEN_SPARSE24_F16,
                                                 PTXGEN_SPARSE24_BF16, PTXGEN_SPARSE24_S8};

static uint32_t bits_of(ptxgen_sparse24_type type, double value)
{
    if (type == PTXGEN_SPARSE24_S8)
        return (uint8_t)(int8_t)value;
    uint32_t bits = 0;
    ptxgen_element_store((ptxgen_element)type, &bits, 0, value);
    return bits;
}

/* ---- prune ---- */

/* One row of eight: a group under test, and one of zeros. */
static void prunes_to(ptxgen_sparse24_type type, const double in[4], const double out[4])
{
    ptxgen_sparse24_shape shape = {type, 1, 8};
    size_t bytes = 8 * element_bytes(type);
    ptxgen_span dense = span_of(bytes), pruned = span_of(bytes);
    memset(dense.data, 0, bytes);
    for (size_t i = 0; i < 4; i++)
        sparse24_put_bits(type, dense.data, i, bits_of(type, in[i]));
    assert_int_equal(ptxgen_sparse24_prune(&shape, read_only(dense), pruned, NULL), PTXGEN_OK);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(sparse24_bits(type, pruned.data, i), bits_of(type, out[i]));
    assert_int_equal(ptxgen_sparse24_prune(&shape, read_only(dense), dense, NULL), PTXGEN_OK);
    assert_memory_equal(dense.data, pruned.data, bytes);
    free(dense.data);
    free(pruned.data);
}

static void prune_keeps_the_two_largest_magnitudes(void **state)
{
    (void)state;
    for (int t = 0; t < 4; t++) {
        prunes_to(all_types[t], (double[]){1, -4, 3, 2}, (double[]){0, -4, 3, 0});
        prunes_to(all_types[t], (double[]){-9, 1, 2, -10}, (double[]){-9, 0, 0, -10});
        prunes_to(all_types[t], (double[]){0, 0, 5, 0}, (double[]){0, 0, 5, 0});
        prunes_to(all_types[t], (double[]){127, -128, 126, -127}, (double[]){127, -128, 0, 0});
    }
}

static void prune_gives_ties_to_the_lower_column(void **state)
{
    (void)state;
    for (int t = 0; t < 4; t++) {
        prunes_to(all_types[t], (double[]){2, -2, 2, -2}, (double[]){2, -2, 0, 0});
        prunes_to(all_types[t], (double[]){1, 3, -1, 1}, (double[]){1, 3, 0, 0});
        prunes_to(all_types[t], (double[]){0, -3, 3, 3}, (double[]){0, -3, 3, 0});
    }
}

static void prune_keeps_nan_before_infinity(void **state)
{
    (void)state;
    for (int t = 0; t < 3; t++) {
        prunes_to(all_types[t], (double[]){INFINITY, NAN, -INFINITY, 1},
                  (double[]){INFINITY, NAN, 0, 0});
        prunes_to(all_types[t], (double[]){5, -INFINITY, NAN, INFINITY},
                  (double[]){0, -INFINITY, NAN, 0});
    }
    /* the payload is no magnitude: of three, the first two stay */
    uint16_t row[8] = {1, 0x7E00, 0xFE01, 0x7FFF};
    ptxgen_sparse24_shape shape = {PTXGEN_SPARSE24_F16, 1, 8};
    assert_int_equal(ptxgen_sparse24_prune(&shape, (ptxgen_const_span){row, sizeof row},
                                           (ptxgen_span){row, sizeof row}, NULL),
                     PTXGEN_OK);
    assert_memory_equal(row, ((uint16_t[8]){0, 0x7E00, 0xFE01, 0}), sizeof row);
}

/* ---- compress ---- */

static void compress_keeps_zeros_where_non_zeros_are_fewer_than_two(void **state)
{
    (void)state;
    const uint8_t expected[16] = {0xE, 0x8, 0x9, 0x4, 0xE, 0x8, 0x9, 0,
                                  0xE, 0xC, 0xD, 0,   0xE, 0,   0,   0};
    for (int t = 0; t < 4; t++)
        for (unsigned nonzeros = 0; nonzeros < 16; nonzeros++) {
            ptxgen_sparse24_shape shape = {all_types[t], 1, 8};
            uint8_t dense[32] = {0}, values[16], metadata[2];
            for (size_t i = 0; i < 4; i++)
                if (nonzeros >> i & 1)
                    sparse24_put_bits(shape.type, dense, i, bits_of(shape.type, (double)i + 1));
            size_t bytes = 8 * element_bytes(shape.type);
            ptxgen_error err;
            ptxgen_status status = ptxgen_sparse24_compress(
                &shape, (ptxgen_const_span){dense, bytes}, (ptxgen_span){values, bytes / 2},
                PTXGEN_SPARSE24_BYTES, (ptxgen_span){metadata, 2}, &err);
            if (expected[nonzeros] == 0) {
                assert_int_equal(status, PTXGEN_ERROR_INVALID_ARGUMENT);
                assert_says(&err, nonzeros == 15 ? "4 non-zeros" : "3 non-zeros");
                continue;
            }
            assert_int_equal(status, PTXGEN_OK);
            assert_int_equal(metadata[0], expected[nonzeros]);
            assert_int_equal(metadata[1], 0xE);
        }
}

static void compress_names_the_group_that_is_too_full(void **state)
{
    (void)state;
    int8_t dense[3][16] = {{1, 2}};
    dense[2][9] = dense[2][10] = dense[2][11] = -1;
    int8_t values[24];
    uint8_t metadata[12];
    ptxgen_sparse24_shape shape = {PTXGEN_SPARSE24_S8, 3, 16};
    ptxgen_error err;
    assert_int_equal(ptxgen_sparse24_compress(&shape, (ptxgen_const_span){dense, sizeof dense},
                                              (ptxgen_span){values, sizeof values},
                                              PTXGEN_SPARSE24_BYTES,
                                              (ptxgen_span){metadata, sizeof metadata}, &err),
                     PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_says(&err, "row 2, group 2 (columns 8 to 11) has 3 non-zeros");
}

static void compress_takes_negative_zero_for_zero_and_nan_for_none(void **state)
{
    (void)state;
    uint16_t dense[8] = {0x8000, 0x8000, 0x7E00, 0x8000, 0x8000, 0, 0, 0x3C00}, values[4];
    uint8_t metadata[2];
    ptxgen_sparse24_shape shape = {PTXGEN_SPARSE24_F16, 1, 8};
    assert_int_equal(ptxgen_sparse24_compress(&shape, (ptxgen_const_span){dense, sizeof dense},
                                              (ptxgen_span){values, sizeof values},
                                              PTXGEN_SPARSE24_BYTES,
                                              (ptxgen_span){metadata, sizeof metadata}, NULL),
                     PTXGEN_OK);
    assert_memory_equal(values, ((uint16_t[4]){0x7E00, 0x8000, 0, 0x3C00}), sizeof values);
}

/* ---- forms ---- */

static void the_forms_are_laid_out_as_documented(void **state)
{
    (void)state;
    /* two rows of 16 columns: groups (0,1) (0,2) (1,2) (0,3) | (1,3) (2,3) (0,1) (2,3) */
    const uint8_t bytes[8] = {0x4, 0x8, 0x9, 0xC, 0xD, 0xE, 0x4, 0xE};
    const uint8_t nibbles[4] = {0x84, 0xC9, 0xED, 0xE4};
    const uint8_t bitmask[4] = {0x53, 0x96, 0xCA, 0xC3};
    ptxgen_sparse24_shape shape = {PTXGEN_SPARSE24_F32, 2, 16};
    uint8_t out[4];
    assert_int_equal(ptxgen_sparse24_convert(&shape, PTXGEN_SPARSE24_BYTES,
                                             (ptxgen_const_span){bytes, 8}, PTXGEN_SPARSE24_NIBBLES,
                                             (ptxgen_span){out, 4}, NULL),
                     PTXGEN_OK);
    assert_memory_equal(out, nibbles, 4);
    assert_int_equal(ptxgen_sparse24_convert(&shape, PTXGEN_SPARSE24_NIBBLES,
                                             (ptxgen_const_span){nibbles, 4},
                                             PTXGEN_SPARSE24_BITMASK, (ptxgen_span){out, 4}, NULL),
                     PTXGEN_OK);
    assert_memory_equal(out, bitmask, 4);
}

/* Row 0 of eight columns, whose second group is `value`. */
static void refuses_group(ptxgen_sparse24_form form, uint8_t value, const char *words)
{
    ptxgen_sparse24_shape shape = {PTXGEN_SPARSE24_S8, 1, 8};
    const uint8_t good = form == PTXGEN_SPARSE24_BITMASK ? 0x3 : 0x4;
    const uint8_t bytes[2] = {good, value}, packed = (uint8_t)(good | value << 4);
    ptxgen_const_span metadata = {&packed, 1};
    if (form == PTXGEN_SPARSE24_BYTES)
        metadata = (ptxgen_const_span){bytes, 2};
    ptxgen_error err;
    assert_int_equal(
        ptxgen_sparse24_validate(&shape, (ptxgen_const_span){"\1\2\3\4", 4}, form, metadata, &err),
        PTXGEN_ERROR_MALFORMED);
    assert_says(&err, words);
}

static void validate_names_row_group_value_and_rule(void **state)
{
    (void)state;
    refuses_group(PTXGEN_SPARSE24_BYTES, 0x5,
                  "row 0, group 1 of byte metadata is 0x5, twice the position 1; a group keeps two "
                  "different elements");
    refuses_group(PTXGEN_SPARSE24_BYTES, 0x1E, "is 0x1E; bits 4 to 7 must be zero");
    refuses_group(PTXGEN_SPARSE24_NIBBLES, 0xA,
                  "group 1 of nibble metadata is 0xA, twice the position 2");
    refuses_group(PTXGEN_SPARSE24_BITMASK, 0x7,
                  "group 1 of the bitmask is 0x7; a group keeps exactly two of its four elements");
    refuses_group(PTXGEN_SPARSE24_BITMASK, 0x8, "is 0x8");
}

/* ---- random weights ---- */

static ptxgen_span random_weight(struct random *r, const ptxgen_sparse24_shape *shape)
{
    size_t count = shape->n * shape->k;
    ptxgen_span dense = span_of(count * element_bytes(shape->type));
    for (size_t i = 0; i < count; i++) {
        double value = random_bits(r) % 3 == 0 ? 0 : 40 * random_normal(r);
        value = value > 127 ? 127 : value < -128 ? -128 : value;
        sparse24_put_bits(shape->type, dense.data, i, bits_of(shape->type, value));
    }
    return dense;
}

static void round_trip(struct random *r, const ptxgen_sparse24_shape *shape)
{
    ptxgen_span dense = random_weight(r, shape), back = span_of(dense.bytes);
    assert_int_equal(ptxgen_sparse24_prune(shape, read_only(dense), dense, NULL), PTXGEN_OK);
    for (int form = 0; form <= PTXGEN_SPARSE24_CUTLASS; form++) {
        size_t bytes;
        if (ptxgen_sparse24_metadata_bytes(shape, form, &bytes, NULL) != PTXGEN_OK) {
            assert_int_equal(form, PTXGEN_SPARSE24_CUTLASS);
            continue;
        }
        ptxgen_span values = span_of(dense.bytes / 2), metadata = span_of(bytes);
        ptxgen_error err;
        assert_ok(ptxgen_sparse24_compress(shape, read_only(dense), values, form, metadata, &err),
                  &err);
        assert_ok(
            ptxgen_sparse24_validate(shape, read_only(values), form, read_only(metadata), &err),
            &err);
        assert_ok(ptxgen_sparse24_decompress(shape, read_only(values), form, read_only(metadata),
                                             back, &err),
                  &err);
        assert_memory_equal(back.data, dense.data, dense.bytes);
        free(values.data);
        free(metadata.data);
    }
    free(dense.data);
    free(back.data);
}

static void pruned_weights_of_any_shape_come_back_from_every_form(void **state)
{
    (void)state;
    struct random r = {42};
    for (int i = 0; i < 300; i++) {
        ptxgen_sparse24_shape shape = {all_types[i % 4], random_bits(&r) % 70,
                                       random_bits(&r) % 20 * 8};
        if (i % 3 == 0) { /* CUTLASS's too */
            shape.n = 32 * (random_bits(&r) % 4);
            shape.k = 64 * (random_bits(&r) % 4);
        }
        round_trip(&r, &shape);
    }
}

/* ---- positions in either order ---- */

/* Swaps the values and the positions of about half of the groups. */
static void let_groups_fall(struct random *r, const ptxgen_sparse24_shape *shape,
                            ptxgen_span values, ptxgen_span metadata)
{
    uint8_t *bytes = metadata.data;
    for (size_t group = 0; group < metadata.bytes; group++) {
        if (random_bits(r) % 2)
            continue;
        uint32_t first = sparse24_bits(shape->type, values.data, 2 * group);
        uint32_t second = sparse24_bits(shape->type, values.data, 2 * group + 1);
        sparse24_put_bits(shape->type, values.data, 2 * group, second);
        sparse24_put_bits(shape->type, values.data, 2 * group + 1, first);
        bytes[group] = (uint8_t)(bytes[group] >> 2 | (bytes[group] & 3) << 2);
    }
}

static ptxgen_span pack_as_bytes(const ptxgen_sparse24_shape *shape, ptxgen_span values,
                                 ptxgen_span metadata)
{
    const ptxgen_sparse24_spec spec = {
        .n = (uint32_t)shape->n,
        .k = (uint32_t)shape->k,
        .type = (uint8_t)shape->type,
        .y_type =
            (uint8_t)(shape->type == PTXGEN_SPARSE24_S8 ? PTXGEN_F16 : (ptxgen_element)shape->type),
        .tier = 2};
    size_t bytes;
    ptxgen_error err;
    assert_ok(ptxgen_sparse24_packed_bytes(&spec, &bytes, &err), &err);
    ptxgen_span packed = span_of(bytes);
    assert_ok(ptxgen_sparse24_pack(&spec, read_only(values), PTXGEN_SPARSE24_BYTES,
                                   read_only(metadata), packed, &err),
              &err);
    return packed;
}

static void positions_in_either_order_are_the_same_weight(void **state)
{
    (void)state;
    struct random r = {77};
    for (int type = PTXGEN_SPARSE24_F16; type <= PTXGEN_SPARSE24_S8; type++) {
        const ptxgen_sparse24_shape shape = {(ptxgen_sparse24_type)type, 37, 200};
        ptxgen_span dense = random_weight(&r, &shape), back = span_of(dense.bytes);
        ptxgen_span values = span_of(dense.bytes / 2), metadata = metadata_span(&shape, 0);
        ptxgen_span nibbles = metadata_span(&shape, PTXGEN_SPARSE24_NIBBLES);
        ptxgen_span again = metadata_span(&shape, 0);
        ptxgen_error err;
        assert_ok(ptxgen_sparse24_prune(&shape, read_only(dense), dense, &err), &err);
        assert_ok(ptxgen_sparse24_compress(&shape, read_only(dense), values, 0, metadata, &err),
                  &err);
        ptxgen_span expected = pack_as_bytes(&shape, values, metadata);
        let_groups_fall(&r, &shape, values, metadata);
        assert_ok(ptxgen_sparse24_validate(&shape, read_only(values), 0, read_only(metadata), &err),
                  &err);
        assert_ok(ptxgen_sparse24_decompress(&shape, read_only(values), 0, read_only(metadata),
                                             back, &err),
                  &err);
        assert_memory_equal(back.data, dense.data, dense.bytes);
        ptxgen_span packed = pack_as_bytes(&shape, values, metadata);
        assert_memory_equal(packed.data, expected.data, expected.bytes);
        assert_ok(ptxgen_sparse24_convert(&shape, 0, read_only(metadata), PTXGEN_SPARSE24_NIBBLES,
                                          nibbles, &err),
                  &err);
        assert_ok(ptxgen_sparse24_convert(&shape, PTXGEN_SPARSE24_NIBBLES, read_only(nibbles), 0,
                                          again, &err),
                  &err);
        assert_memory_equal(again.data, metadata.data, metadata.bytes);
        ptxgen_span each[] = {dense, back, values, metadata, nibbles, again, expected, packed};
        for (size_t i = 0; i < sizeof each / sizeof *each; i++)
            free(each[i].data);
    }
}

static void a_bitmask_of_positions_that_fall_is_refused(void **state)
{
    (void)state;
    const ptxgen_sparse24_shape shape = {PTXGEN_SPARSE24_F16, 1, 8};
    const uint8_t metadata[2] = {0x4, 0x3 | 1 << 2};
    uint8_t mask;
    ptxgen_error err;
    assert_refusal(ptxgen_sparse24_convert(&shape, PTXGEN_SPARSE24_BYTES,
                                           (ptxgen_const_span){metadata, 2},
                                           PTXGEN_SPARSE24_BITMASK, (ptxgen_span){&mask, 1}, &err),
                   &err, PTXGEN_ERROR_UNSUPPORTED,
                   "row 0, group 1 keeps positions 3 and 1, in this order, which a bitmask does "
                   "not say");
}

/* As a file may have it that names a tensor [2^40, 0]. */
static void rows_without_elements_take_no_time(void **state)
{
    (void)state;
    const ptxgen_sparse24_shape shape = {PTXGEN_SPARSE24_F16, (size_t)1 << 40, 0};
    const ptxgen_const_span in = {NULL, 0};
    const ptxgen_span out = {NULL, 0};
    assert_int_equal(ptxgen_sparse24_validate(&shape, in, PTXGEN_SPARSE24_BYTES, in, NULL),
                     PTXGEN_OK);
    assert_int_equal(ptxgen_sparse24_compress(&shape, in, out, PTXGEN_SPARSE24_BYTES, out, NULL),
                     PTXGEN_OK);
    assert_int_equal(ptxgen_sparse24_decompress(&shape, in, PTXGEN_SPARSE24_BYTES, in, out, NULL),
                     PTXGEN_OK);
    assert_int_equal(ptxgen_sparse24_convert(&shape, PTXGEN_SPARSE24_BYTES, in,
                                             PTXGEN_SPARSE24_NIBBLES, out, NULL),
                     PTXGEN_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prune_keeps_the_two_largest_magnitudes),
        cmocka_unit_test(prune_gives_ties_to_the_lower_column),
        cmocka_unit_test(prune_keeps_nan_before_infinity),
        cmocka_unit_test(compress_keeps_zeros_where_non_zeros_are_fewer_than_two),
        cmocka_unit_test(compress_names_the_group_that_is_too_full),
        cmocka_unit_test(compress_takes_negative_zero_for_zero_and_nan_for_none),
        cmocka_unit_test(the_forms_are_laid_out_as_documented),
        cmocka_unit_test(validate_names_row_group_value_and_rule),
        cmocka_unit_test(pruned_weights_of_any_shape_come_back_from_every_form),
        cmocka_unit_test(positions_in_either_order_are_the_same_weight),
        cmocka_unit_test(a_bitmask_of_positions_that_fall_is_refused),
        cmocka_unit_test(rows_without_elements_take_no_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
