/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts against their definitions, round trips, and what is refused. */
#include "tests/status.h"

#include "support.h"

static void expect_round_trip(const ptxgen_w4_matrix *m, ptxgen_w4_format format)
{
    ptxgen_error err;
    ptxgen_w4_checkpoint c = checkpoint_of(m, format);
    ptxgen_w4_matrix back = matrix_allocate(m->k, m->n, m->group_size, m->scale_type, true, true);
    assert_ok(ptxgen_w4_unpack(&c, &back, &err), &err);
    assert_same_matrix(&back, m);
    ptxgen_w4_checkpoint again = checkpoint_of(&back, format);
    assert_same_tensor(&c.weights, &again.weights);
    assert_same_tensor(&c.scales, &again.scales);
    assert_same_tensor(&c.zeros, &again.zeros);
    checkpoint_free(&c);
    checkpoint_free(&again);
    matrix_free(&back);
}

static void every_format_round_trips(void **state)
{
    (void)state;
    struct random r = {1};
    const ptrdiff_t groups[] = {32, 64, 128, -1, 16, 1};
    for (int f = 0; ptxgen_w4_format_name((ptxgen_w4_format)f); f++)
        for (size_t g = 0; g < sizeof groups / sizeof *groups; g++)
            for (int zeros = 0; zeros < 2; zeros++) {
                bool can_order = f != PTXGEN_W4_AWQ && f != PTXGEN_W4_MARLIN;
                ptxgen_w4_matrix m = matrix_random(&r, 256, 192, groups[g], (ptxgen_element)(g % 3),
                                                   zeros, can_order && (g + (size_t)zeros) % 2);
                expect_round_trip(&m, (ptxgen_w4_format)f);
                matrix_free(&m);
            }
}

static void pack_quantized_round_trips_rows_and_columns_that_fill_no_word(void **state)
{
    (void)state;
    struct random r = {2};
    for (size_t k = 1; k < 20; k++) {
        ptxgen_w4_matrix m = matrix_random(&r, k, 21 - k, -1, PTXGEN_F32, true, false);
        expect_round_trip(&m, PTXGEN_W4_PACK_QUANTIZED);
        matrix_free(&m);
    }
}

/* A matrix of zeros but for one code and one zero point. */
static ptxgen_w4_checkpoint single(ptxgen_w4_format format, size_t k, size_t n, size_t group)
{
    ptxgen_w4_matrix m = matrix_allocate(32, 64, 16, PTXGEN_F16, true, false);
    memset(m.codes, 0, 32 * 64);
    memset(m.scales, 0, 2 * 64 * 2);
    memset(m.zeros, 0, 2 * 64);
    m.codes[k * 64 + n] = 13;
    m.zeros[group * 64 + n] = 5;
    ptxgen_element_store(PTXGEN_F16, m.scales, group * 64 + n, 1);
    ptxgen_w4_checkpoint c = checkpoint_of(&m, format);
    matrix_free(&m);
    return c;
}

static void expect_only_word(const ptxgen_w4_tensor *t, size_t index, uint32_t value,
                             uint32_t others)
{
    for (size_t i = 0; i < t->shape[0] * t->shape[1]; i++)
        assert_int_equal(word_of(t, i), i == index ? value : others);
}

static void gptq_packs_codes_along_k_and_zero_points_along_n(void **state)
{
    (void)state;
    ptxgen_w4_checkpoint c = single(PTXGEN_W4_GPTQ_V2, 19, 37, 1);
    expect_only_word(&c.weights, 2 * 64 + 37, 13u << 12, 0);
    expect_only_word(&c.zeros, 8 + 4, 5u << 20, 0);
    checkpoint_free(&c);
}

static void gptq_v1_stores_zero_points_less_one_and_0_as_15(void **state)
{
    (void)state;
    ptxgen_w4_checkpoint c = single(PTXGEN_W4_GPTQ_V1, 19, 37, 1);
    expect_only_word(&c.zeros, 8 + 4, 0xFF4FFFFF, 0xFFFFFFFF);
    checkpoint_free(&c);
}

static void awq_packs_along_n_in_the_order_0_2_4_6_1_3_5_7(void **state)
{
    (void)state;
    const unsigned order[8] = {0, 2, 4, 6, 1, 3, 5, 7};
    for (unsigned nibble = 0; nibble < 8; nibble++) {
        ptxgen_w4_checkpoint c = single(PTXGEN_W4_AWQ, 19, 32 + order[nibble], 1);
        expect_only_word(&c.weights, 19 * 8 + 4, 13u << 4 * nibble, 0);
        expect_only_word(&c.zeros, 8 + 4, 5u << 4 * nibble, 0);
        checkpoint_free(&c);
    }
}

static void pack_quantized_packs_codes_along_k_and_zero_points_along_n(void **state)
{
    (void)state;
    ptxgen_w4_checkpoint c = single(PTXGEN_W4_PACK_QUANTIZED, 19, 37, 1);
    expect_only_word(&c.weights, 37 * 4 + 2, 13u << 12, 0);
    expect_only_word(&c.zeros, 4 * 2 + 1, 5u << 20, 0);
    for (size_t i = 0; i < 128; i++)
        assert_true(ptxgen_element_load(PTXGEN_F16, c.scales.data, i) == (i == 37 * 2 + 1));
    int64_t shape[2];
    memcpy(shape, c.shape.data, sizeof shape);
    assert_int_equal(shape[0], 64);
    assert_int_equal(shape[1], 32);
    checkpoint_free(&c);
}

static void gptq_reads_every_zero_point_in_both_versions(void **state)
{
    (void)state;
    ptxgen_error err;
    struct random r = {5};
    ptxgen_w4_matrix m = matrix_random(&r, 16, 16, 16, PTXGEN_F16, true, false);
    for (int version = 0; version < 2; version++) {
        ptxgen_w4_checkpoint c = checkpoint_of(&m, version ? PTXGEN_W4_GPTQ_V2 : PTXGEN_W4_GPTQ_V1);
        set_word(&c.zeros, 0, 0x76543210);
        set_word(&c.zeros, 1, 0xFEDCBA98);
        assert_ok(ptxgen_w4_unpack(&c, &m, &err), &err);
        for (unsigned n = 0; n < 16; n++)
            assert_int_equal(m.zeros[n], version ? n : (n + 1) % 16);
        checkpoint_free(&c);
    }
    matrix_free(&m);
}

static void format_is_detected_from_metadata_unless_chosen(void **state)
{
    (void)state;
    ptxgen_w4_format f;
    ptxgen_error err;
    assert_ok(ptxgen_w4_detect_format(NULL, NULL, &f, &err), &err);
    assert_int_equal(f, PTXGEN_W4_GPTQ_V1);
    assert_ok(ptxgen_w4_detect_format("gptq", NULL, &f, &err), &err);
    assert_int_equal(f, PTXGEN_W4_GPTQ_V1);
    assert_ok(ptxgen_w4_detect_format("gptq_v2", NULL, &f, &err), &err);
    assert_int_equal(f, PTXGEN_W4_GPTQ_V2);
    assert_ok(ptxgen_w4_detect_format("gptq", "gptq_v2", &f, &err), &err);
    assert_int_equal(f, PTXGEN_W4_GPTQ_V2);
    assert_ok(ptxgen_w4_detect_format(NULL, "pack-quantized", &f, &err), &err);
    assert_int_equal(f, PTXGEN_W4_PACK_QUANTIZED);
    assert_int_equal(ptxgen_w4_detect_format("gptq_v3", NULL, &f, &err), PTXGEN_ERROR_UNSUPPORTED);
    assert_says(&err, "\"gptq_v3\"");
}

static void expect_refusal(const ptxgen_w4_checkpoint *c, const char *sentence)
{
    ptxgen_w4_info info;
    ptxgen_error err = {0};
    assert_int_not_equal(ptxgen_w4_describe(c, &info, &err), PTXGEN_OK);
    assert_says(&err, sentence);
}

/* K = 256, N = 64, groups of 32; refused before any data is read, but for g_idx. */
static void checkpoints_that_break_a_rule_are_refused_by_name(void **state)
{
    (void)state;
    struct random r = {6};
    ptxgen_w4_matrix m = matrix_random(&r, 256, 64, 32, PTXGEN_F16, true, true);
    ptxgen_w4_checkpoint good = checkpoint_of(&m, PTXGEN_W4_GPTQ_V1), c;
#define REFUSED(change, sentence)                                                                  \
    c = good;                                                                                      \
    change;                                                                                        \
    expect_refusal(&c, sentence)
    REFUSED(c.format = 9, "9 is not the number of a 4-bit format");
    REFUSED(c.weights.data = NULL, "qweight is absent");
    REFUSED(c.scales.data = NULL, "scales is absent");
    REFUSED(c.weights.dtype = PTXGEN_W4_F16, "qweight is of dtype float16");
    REFUSED(c.scales.dtype = PTXGEN_W4_I32, "scales is of dtype int32");
    REFUSED(c.scales.dtype = (ptxgen_w4_dtype)-1, "scales is of dtype unknown");
    REFUSED(c.scales.shape[0] = 0, "scales is [0, 64]");
    REFUSED(c.weights.shape[1] = 63, "qweight is [32, 63], but");
    REFUSED(c.weights.shape[0] = SIZE_MAX / 2, "K = ");
    REFUSED(c.weights.shape[0] = 0, "K = 0");
    REFUSED(c.scales.shape[1] = 60, "N = 60 is not a multiple of 8");
    REFUSED(c.scales.shape[0] = 7, "7 groups, which do not divide K = 256");
    REFUSED(c.group_size = 128, "the group size is given as 128, but scales has 8 groups");
    REFUSED(c.group_size = -1, "the group size is given as -1");
    REFUSED(c.zeros.shape[1] = 7, "qzeros is [8, 7], but");
    REFUSED(c.zeros.shape[0] = 9, "qzeros is [9, 8], but");
    REFUSED(c.g_idx.shape[0] = 255, "g_idx is [255, 1], but");
    REFUSED(c.format = PTXGEN_W4_AWQ, "awq has no g_idx");
    REFUSED(c.shape = c.g_idx, "gptq has no weight_shape");
    set_word(&good.g_idx, 17, 8);
    expect_refusal(&good, "g_idx[17] is 8, but there are groups 0 to 7");
    set_word(&good.g_idx, 17, (uint32_t)-1);
    expect_refusal(&good, "g_idx[17] is -1");
    checkpoint_free(&good);
    matrix_free(&m);
}

static void weight_shape_must_agree_with_weight_packed(void **state)
{
    (void)state;
    struct random r = {7};
    ptxgen_w4_matrix m = matrix_random(&r, 15, 9, -1, PTXGEN_F16, false, false);
    ptxgen_w4_checkpoint c = checkpoint_of(&m, PTXGEN_W4_PACK_QUANTIZED);
    const int64_t wrong[][2] = {{9, 17}, {9, 8}, {8, 15}, {-9, 15}, {9, -15}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        memcpy(c.shape.data, wrong[i], sizeof wrong[i]);
        expect_refusal(&c, "weight_shape is [");
    }
    c.shape.shape[0] = 1;
    expect_refusal(&c, "not a vector of 2");
    checkpoint_free(&c);
    matrix_free(&m);
}

static void expect_pack_refusal(const ptxgen_w4_matrix *m, ptxgen_w4_format format,
                                const char *sentence)
{
    ptxgen_w4_info info;
    ptxgen_w4_checkpoint c = {0};
    ptxgen_error err = {0};
    ptxgen_status status = ptxgen_w4_describe_matrix(m, &info, &err);
    if (status == PTXGEN_OK && (status = ptxgen_w4_layout(&info, format, &c, &err)) == PTXGEN_OK) {
        c = checkpoint_allocate(&info, format);
        status = ptxgen_w4_pack(m, &c, &err);
        checkpoint_free(&c);
    }
    assert_int_not_equal(status, PTXGEN_OK);
    assert_says(&err, sentence);
}

/* ---- what compressed-tensors writes ---- */

/* The same checkpoint with its zero points unpacked, as int8; the caller frees `values`. */
static ptxgen_w4_checkpoint with_int8_zeros(const ptxgen_w4_checkpoint *c,
                                            const ptxgen_w4_matrix *m, int8_t **values)
{
    size_t groups = matrix_groups(m);
    ptxgen_w4_checkpoint unpacked = *c;
    *values = allocate(m->n * groups);
    for (size_t n = 0; n < m->n; n++)
        for (size_t g = 0; g < groups; g++)
            (*values)[n * groups + g] = (int8_t)((m->zeros ? m->zeros[g * m->n + n] : 8) - 8);
    unpacked.zeros = (ptxgen_w4_tensor){*values, PTXGEN_W4_I8, {m->n, groups}};
    return unpacked;
}

static void expect_int8_zeros(bool symmetric, size_t k, size_t n, ptrdiff_t group_size)
{
    struct random r = {9};
    ptxgen_error err;
    ptxgen_w4_info info;
    ptxgen_w4_matrix m = matrix_random(&r, k, n, group_size, PTXGEN_F16, !symmetric, false);
    ptxgen_w4_matrix back = matrix_allocate(k, n, group_size, PTXGEN_F16, true, true);
    ptxgen_w4_checkpoint packed = checkpoint_of(&m, PTXGEN_W4_PACK_QUANTIZED);
    int8_t *values;
    ptxgen_w4_checkpoint c = with_int8_zeros(&packed, &m, &values);
    assert_ok(ptxgen_w4_describe(&c, &info, &err), &err);
    assert_int_equal(info.symmetric, symmetric);
    assert_ok(ptxgen_w4_unpack(&c, &back, &err), &err);
    assert_same_matrix(&back, &m);
    free(values);
    checkpoint_free(&packed);
    matrix_free(&m);
    matrix_free(&back);
}

static void pack_quantized_reads_zero_points_that_are_unpacked_int8(void **state)
{
    (void)state;
    for (int symmetric = 0; symmetric < 2; symmetric++) {
        expect_int8_zeros(symmetric, 256, 64, 64);
        expect_int8_zeros(symmetric, 24, 19, PTXGEN_W4_PER_CHANNEL);
    }
}

static void int8_zero_points_outside_4_bits_or_of_another_format_are_refused(void **state)
{
    (void)state;
    struct random r = {10};
    ptxgen_error err;
    ptxgen_w4_matrix m = matrix_random(&r, 128, 64, 64, PTXGEN_F16, true, false);
    ptxgen_w4_checkpoint packed = checkpoint_of(&m, PTXGEN_W4_PACK_QUANTIZED);
    int8_t *values;
    ptxgen_w4_checkpoint c = with_int8_zeros(&packed, &m, &values);
    values[2 * 17 + 1] = 8;
    expect_refusal(&c, "weight_zero_point[17, 1] is 8, not between -8 and 7");
    values[2 * 17 + 1] = -9;
    expect_refusal(&c, "weight_zero_point[17, 1] is -9, not between -8 and 7");
    values[2 * 17 + 1] = -8;
    assert_ok(ptxgen_w4_unpack(&c, &m, &err), &err);
    c.zeros.shape[0] = 8, c.zeros.shape[1] = 2;
    expect_refusal(&c, "weight_zero_point is [8, 2], but K = 128, N = 64 and 2 groups make it [64");
    c = packed, c.zeros.data = values, c.zeros.dtype = PTXGEN_W4_I8;
    assert_int_equal(ptxgen_w4_pack(&m, &c, &err), PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_says(&err, "weight_zero_point of the output is int8 [8, 2], not int32 [8, 2]");
    ptxgen_w4_checkpoint gptq = checkpoint_of(&m, PTXGEN_W4_GPTQ_V2);
    c = gptq, c.zeros = (ptxgen_w4_tensor){values, PTXGEN_W4_I8, {64, 2}};
    expect_refusal(&c, "qzeros is of dtype int8, not int32");
    free(values);
    checkpoint_free(&gptq);
    checkpoint_free(&packed);
    matrix_free(&m);
}

/* compressed-tensors creates weight_g_idx as -1 and leaves it so where there is no act-order. */
static void a_weight_g_idx_that_is_minus_one_everywhere_is_plain_order(void **state)
{
    (void)state;
    struct random r = {11};
    ptxgen_error err;
    ptxgen_w4_info info;
    uint32_t order[128];
    ptxgen_w4_matrix m = matrix_random(&r, 128, 64, 32, PTXGEN_F16, true, true);
    ptxgen_w4_matrix back = matrix_allocate(128, 64, 32, PTXGEN_F16, true, true);
    ptxgen_w4_checkpoint c = checkpoint_of(&m, PTXGEN_W4_PACK_QUANTIZED);
    for (size_t k = 0; k < 128; k++) {
        set_word(&c.g_idx, k, UINT32_MAX);
        m.g_idx[k] = (int32_t)(k / 32);
    }
    assert_ok(ptxgen_w4_describe(&c, &info, &err), &err);
    assert_false(info.act_order);
    assert_ok(ptxgen_w4_unpack(&c, &back, &err), &err);
    assert_same_matrix(&back, &m);
    ptxgen_w4_checkpoint marlin = checkpoint_allocate(&info, PTXGEN_W4_MARLIN);
    ptxgen_w4_checkpoint expected = checkpoint_of(&(ptxgen_w4_matrix){.k = m.k,
                                                                      .n = m.n,
                                                                      .group_size = m.group_size,
                                                                      .codes = m.codes,
                                                                      .scale_type = PTXGEN_F16,
                                                                      .scales = m.scales,
                                                                      .zeros = m.zeros},
                                                  PTXGEN_W4_MARLIN);
    assert_ok(ptxgen_w4_to_marlin(&c, &marlin, order, NULL, &err), &err);
    assert_same_tensor(&marlin.weights, &expected.weights);
    for (uint32_t k = 0; k < 128; k++)
        assert_int_equal(order[k], k);
    set_word(&c.g_idx, 77, 2);
    expect_refusal(&c, "weight_g_idx[0] is -1, but there are groups 0 to 3");
    checkpoint_free(&marlin);
    checkpoint_free(&expected);
    checkpoint_free(&c);
    matrix_free(&m);
    matrix_free(&back);
}

static void matrices_that_break_a_rule_are_refused_by_name(void **state)
{
    (void)state;
    struct random r = {8};
    ptxgen_w4_matrix good = matrix_random(&r, 96, 72, 32, PTXGEN_F16, true, true), m = good;
    expect_pack_refusal(&m, PTXGEN_W4_AWQ, "awq has no g_idx");
    expect_pack_refusal(&m, PTXGEN_W4_MARLIN, "N = 72 is not a multiple of 64, as marlin needs");
    m.n = 64;
    expect_pack_refusal(&m, PTXGEN_W4_MARLIN, "sort the rows");
    m = good, m.group_size = 36;
    expect_pack_refusal(&m, PTXGEN_W4_AWQ, "36 is neither -1 nor a divisor of K = 96");
    m = good, m.group_size = -2;
    expect_pack_refusal(&m, PTXGEN_W4_AWQ, "-2 is neither -1");
    m = good, m.group_size = 0;
    expect_pack_refusal(&m, PTXGEN_W4_AWQ, "0 is neither -1");
    m = good, m.k = 92, m.group_size = -1, m.g_idx = NULL;
    expect_pack_refusal(&m, PTXGEN_W4_GPTQ_V1, "K = 92 is not a multiple of 8, as gptq needs");
    m = good, m.codes[72 * 5 + 3] = 16;
    expect_pack_refusal(&m, PTXGEN_W4_GPTQ_V1, "codes[5, 3] is 16");
    m.codes[72 * 5 + 3] = 0, m.zeros[72 * 2 + 9] = 200;
    expect_pack_refusal(&m, PTXGEN_W4_GPTQ_V1, "zeros[2, 9] is 200");
    m.zeros[72 * 2 + 9] = 0, m.g_idx[95] = 3;
    expect_pack_refusal(&m, PTXGEN_W4_GPTQ_V1, "g_idx[95] is 3");
    matrix_free(&good);
}

static void unpacking_never_drops_zero_points_or_the_order(void **state)
{
    (void)state;
    struct random r = {9};
    ptxgen_w4_matrix m = matrix_random(&r, 64, 64, 32, PTXGEN_F16, true, true);
    ptxgen_w4_checkpoint c = checkpoint_of(&m, PTXGEN_W4_GPTQ_V1);
    ptxgen_w4_matrix out = m;
    ptxgen_error err;
    out.zeros = NULL;
    assert_int_equal(ptxgen_w4_unpack(&c, &out, &err), PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_says(&err, "zeros is NULL");
    out = m, out.g_idx = NULL;
    assert_int_equal(ptxgen_w4_unpack(&c, &out, &err), PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_says(&err, "g_idx is NULL");
    checkpoint_free(&c);
    matrix_free(&m);
}

static void packing_checks_the_shapes_it_writes_into(void **state)
{
    (void)state;
    struct random r = {10};
    ptxgen_w4_matrix m = matrix_random(&r, 64, 64, 32, PTXGEN_F16, true, false);
    ptxgen_w4_checkpoint c = checkpoint_of(&m, PTXGEN_W4_PACK_QUANTIZED), wrong;
    ptxgen_error err;
    wrong = c, wrong.weights.shape[0] = 63;
    assert_int_not_equal(ptxgen_w4_pack(&m, &wrong, &err), PTXGEN_OK);
    wrong = c, wrong.zeros.shape[1] = 1;
    assert_int_not_equal(ptxgen_w4_pack(&m, &wrong, &err), PTXGEN_OK);
    wrong = c, wrong.shape.shape[0] = 1;
    assert_int_not_equal(ptxgen_w4_pack(&m, &wrong, &err), PTXGEN_OK);
    wrong = c, wrong.scales.dtype = PTXGEN_W4_F32;
    assert_int_not_equal(ptxgen_w4_pack(&m, &wrong, &err), PTXGEN_OK);
    wrong = c, wrong.zeros.data = NULL;
    assert_int_not_equal(ptxgen_w4_pack(&m, &wrong, &err), PTXGEN_OK);
    checkpoint_free(&c);
    matrix_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_format_round_trips),
        cmocka_unit_test(pack_quantized_round_trips_rows_and_columns_that_fill_no_word),
        cmocka_unit_test(gptq_packs_codes_along_k_and_zero_points_along_n),
        cmocka_unit_test(gptq_v1_stores_zero_points_less_one_and_0_as_15),
        cmocka_unit_test(awq_packs_along_n_in_the_order_0_2_4_6_1_3_5_7),
        cmocka_unit_test(pack_quantized_packs_codes_along_k_and_zero_points_along_n),
        cmocka_unit_test(gptq_reads_every_zero_point_in_both_versions),
        cmocka_unit_test(format_is_detected_from_metadata_unless_chosen),
        cmocka_unit_test(checkpoints_that_break_a_rule_are_refused_by_name),
        cmocka_unit_test(weight_shape_must_agree_with_weight_packed),
        cmocka_unit_test(pack_quantized_reads_zero_points_that_are_unpacked_int8),
        cmocka_unit_test(int8_zero_points_outside_4_bits_or_of_another_format_are_refused),
        cmocka_unit_test(a_weight_g_idx_that_is_minus_one_everywhere_is_plain_order),
        cmocka_unit_test(matrices_that_break_a_rule_are_refused_by_name),
        cmocka_unit_test(unpacking_never_drops_zero_points_or_the_order),
        cmocka_unit_test(packing_checks_the_shapes_it_writes_into),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
