/* SPDX-License-Identifier: Apache-2.0 */
/* The way straight to Marlin's layout against the one through the neutral form. */
#include "tests/status.h"

#include "support.h"

struct progress {
    size_t calls, last, all;
    bool grows;
};

static void note_progress(void *user, size_t done, size_t all)
{
    struct progress *p = user;
    p->calls++;
    p->grows = p->calls == 1 || (p->grows && done > p->last);
    p->last = done;
    p->all = all;
}

static void expect_same_as_by_neutral_form(const ptxgen_w4_matrix *m, ptxgen_w4_format format,
                                           unsigned threads)
{
    ptxgen_error err;
    ptxgen_w4_checkpoint from = checkpoint_of(m, format);
    ptxgen_w4_info info;
    assert_ok(ptxgen_w4_describe(&from, &info, &err), &err);
    ptxgen_w4_checkpoint to = checkpoint_allocate(&info, PTXGEN_W4_MARLIN);
    uint32_t *order = allocate(m->k * sizeof *order),
             *expected_order = allocate(m->k * sizeof *order);
    struct progress progress = {0};
    ptxgen_w4_repack_options options = {threads, note_progress, &progress};
    assert_ok(ptxgen_w4_to_marlin(&from, &to, order, &options, &err), &err);

    ptxgen_w4_matrix sorted = {.codes = allocate(m->k * m->n)};
    assert_ok(ptxgen_w4_sort_rows(m, &sorted, expected_order, &err), &err);
    ptxgen_w4_checkpoint expected = checkpoint_of(&sorted, PTXGEN_W4_MARLIN);
    assert_same_tensor(&to.weights, &expected.weights);
    assert_same_tensor(&to.scales, &expected.scales);
    assert_same_tensor(&to.zeros, &expected.zeros);
    assert_memory_equal(order, expected_order, m->k * sizeof *order);
    assert_int_equal(progress.calls, (m->k + 127) / 128);
    assert_int_equal(progress.last, m->k);
    assert_int_equal(progress.all, m->k);
    assert_true(progress.grows);

    free(sorted.codes);
    free(order);
    free(expected_order);
    checkpoint_free(&from);
    checkpoint_free(&to);
    checkpoint_free(&expected);
}

static void repacking_equals_packing_from_every_format(void **state)
{
    (void)state;
    struct random r = {1};
    const struct {
        size_t k, n;
        ptrdiff_t group_size;
    } shapes[] = {{16, 64, 16}, {256, 128, 32}, {400, 192, 80}, {384, 64, -1}, {1040, 320, 208}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int zeros = 0; zeros < 2; zeros++)
            for (int f = 0; ptxgen_w4_format_name((ptxgen_w4_format)f); f++) {
                ptxgen_w4_matrix m = matrix_random(&r, shapes[s].k, shapes[s].n,
                                                   shapes[s].group_size, PTXGEN_BF16, zeros, false);
                expect_same_as_by_neutral_form(&m, (ptxgen_w4_format)f, 1 + s % 3);
                matrix_free(&m);
            }
}

static void repacking_sorts_rows_of_an_act_order_checkpoint(void **state)
{
    (void)state;
    struct random r = {2};
    const ptxgen_w4_format formats[] = {PTXGEN_W4_GPTQ_V1, PTXGEN_W4_GPTQ_V2,
                                        PTXGEN_W4_PACK_QUANTIZED};
    for (size_t f = 0; f < 3; f++)
        for (int zeros = 0; zeros < 2; zeros++) {
            ptxgen_w4_matrix m = matrix_random(&r, 512, 128, 64, PTXGEN_F16, zeros, true);
            expect_same_as_by_neutral_form(&m, formats[f], 2);
            matrix_free(&m);
        }
}

static void repacking_act_order_needs_room_for_the_order(void **state)
{
    (void)state;
    struct random r = {3};
    ptxgen_w4_matrix m = matrix_random(&r, 128, 64, 32, PTXGEN_F16, false, true);
    ptxgen_w4_checkpoint from = checkpoint_of(&m, PTXGEN_W4_GPTQ_V2);
    ptxgen_w4_info info;
    ptxgen_error err;
    assert_ok(ptxgen_w4_describe(&from, &info, &err), &err);
    ptxgen_w4_checkpoint to = checkpoint_allocate(&info, PTXGEN_W4_MARLIN);
    assert_int_equal(ptxgen_w4_to_marlin(&from, &to, NULL, NULL, &err),
                     PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_says(&err, "order is NULL");

    m.g_idx[0] = m.g_idx[0] ? 0 : 1; /* one group of 33 rows */
    for (size_t k = 0; k < m.k; k++)
        set_word(&from.g_idx, k, (uint32_t)m.g_idx[k]);
    uint32_t order[128];
    assert_int_equal(ptxgen_w4_to_marlin(&from, &to, order, NULL, &err), PTXGEN_ERROR_UNSUPPORTED);
    assert_says(&err, "more than its 32 rows");
    checkpoint_free(&from);
    checkpoint_free(&to);
    matrix_free(&m);
}

static void repacking_refuses_to_lose_zero_points(void **state)
{
    (void)state;
    struct random r = {4};
    ptxgen_w4_matrix m = matrix_random(&r, 32, 64, 32, PTXGEN_F16, true, false);
    ptxgen_w4_checkpoint from = checkpoint_of(&m, PTXGEN_W4_AWQ);
    ptxgen_w4_info info;
    ptxgen_error err;
    assert_ok(ptxgen_w4_describe(&from, &info, &err), &err);
    ptxgen_w4_checkpoint to = checkpoint_allocate(&info, PTXGEN_W4_MARLIN);
    tensor_free(&to.zeros);
    assert_int_equal(ptxgen_w4_to_marlin(&from, &to, NULL, NULL, &err),
                     PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_says(&err, "zeros is needed");
    checkpoint_free(&from);
    checkpoint_free(&to);
    matrix_free(&m);
}

/* Only the weights of a checkpoint, and what says the order of their rows. */
static ptxgen_w4_checkpoint codes_of(const ptxgen_w4_checkpoint *c, ptrdiff_t group_size)
{
    return (ptxgen_w4_checkpoint){.format = c->format,
                                  .group_size = group_size,
                                  .weights = c->weights,
                                  .g_idx = c->g_idx,
                                  .shape = c->shape};
}

static void expect_same_codes(const ptxgen_w4_matrix *m, ptxgen_w4_format format,
                              ptrdiff_t group_size)
{
    ptxgen_error err;
    ptxgen_w4_checkpoint whole = checkpoint_of(m, format), from = codes_of(&whole, group_size);
    ptxgen_w4_info info;
    assert_ok(ptxgen_w4_describe(&whole, &info, &err), &err);
    ptxgen_w4_checkpoint expected = checkpoint_allocate(&info, PTXGEN_W4_MARLIN),
                         to = checkpoint_allocate(&info, PTXGEN_W4_MARLIN),
                         codes = {.format = PTXGEN_W4_MARLIN, .weights = to.weights};
    uint32_t *order = allocate(m->k * sizeof *order),
             *expected_order = allocate(m->k * sizeof *order);
    assert_ok(ptxgen_w4_to_marlin(&whole, &expected, expected_order, NULL, &err), &err);
    assert_ok(ptxgen_w4_to_marlin(&from, &codes, order, NULL, &err), &err);
    assert_same_tensor(&codes.weights, &expected.weights);
    assert_memory_equal(order, expected_order, m->k * sizeof *order);
    free(order);
    free(expected_order);
    checkpoint_free(&whole);
    checkpoint_free(&expected);
    checkpoint_free(&to);
}

static void codes_are_repacked_without_scales(void **state)
{
    (void)state;
    struct random r = {5};
    for (int f = 0; ptxgen_w4_format_name((ptxgen_w4_format)f); f++)
        for (int stated = 0; stated < 2; stated++) {
            bool has_g_idx = f <= PTXGEN_W4_GPTQ_V2 && !stated; /* GPTQ always writes one */
            ptxgen_w4_matrix m = matrix_random(&r, 272, 128, 16, PTXGEN_F16, true, false);
            expect_same_codes(&m, (ptxgen_w4_format)f, stated || has_g_idx ? 16 : 0);
            matrix_free(&m);
        }
    for (int f = PTXGEN_W4_GPTQ_V1; f <= PTXGEN_W4_PACK_QUANTIZED; f++) {
        ptxgen_w4_matrix m = matrix_random(&r, 256, 64, 32, PTXGEN_BF16, false, true);
        if (f != PTXGEN_W4_AWQ)
            expect_same_codes(&m, (ptxgen_w4_format)f, 32);
        matrix_free(&m);
    }
}

/* As a loader has them that knows K and N only: qweight [K/8, N], and B [K/16, 2N]. */
static void bare_codes_of_gptq_have_one_group(void **state)
{
    enum { K = 32, N = 64 };
    uint32_t qweight[K / 8 * N], b[K / 16 * 2 * N], all = 0;
    ptxgen_w4_checkpoint from = {.weights = {qweight, PTXGEN_W4_I32, {K / 8, N}}},
                         to = {.format = PTXGEN_W4_MARLIN,
                               .weights = {b, PTXGEN_W4_I32, {K / 16, 2 * N}}};
    ptxgen_error err;
    (void)state;
    for (uint32_t i = 0; i < K / 8 * N; i++)
        qweight[i] = i * 2654435761u;
    assert_ok(ptxgen_w4_to_marlin(&from, &to, NULL, NULL, &err), &err);
    /* Word 4·lane + tile: lane 0 of tile 0 has rows 0, 1, 8, 9 of columns 0 and 8. */
    const struct {
        uint32_t row, column;
    } nibbles[] = {{0, 0}, {8, 0}, {0, 8}, {8, 8}, {1, 0}, {9, 0}, {1, 8}, {9, 8}};
    for (uint32_t i = 0; i < 8; i++)
        all |= (qweight[nibbles[i].row / 8 * N + nibbles[i].column] >> nibbles[i].row % 8 * 4 & 15)
               << 4 * i;
    assert_int_equal(b[0], all);
}

static void codes_alone_have_no_scales_on_either_side(void **state)
{
    (void)state;
    struct random r = {6};
    ptxgen_error err = {0};
    ptxgen_w4_matrix m = matrix_random(&r, 64, 64, 32, PTXGEN_F16, true, true);
    ptxgen_w4_checkpoint whole = checkpoint_of(&m, PTXGEN_W4_GPTQ_V2), from = codes_of(&whole, 32);
    ptxgen_w4_info info;
    uint32_t order[64];
    assert_ok(ptxgen_w4_describe(&whole, &info, &err), &err);
    ptxgen_w4_checkpoint to = checkpoint_allocate(&info, PTXGEN_W4_MARLIN), bad,
                         codes = {.format = PTXGEN_W4_MARLIN, .weights = to.weights};
#define REFUSED(change, status, sentence)                                                          \
    bad = codes;                                                                                   \
    change;                                                                                        \
    assert_refusal(ptxgen_w4_to_marlin(&from, &bad, order, NULL, &err), &err,                      \
                   PTXGEN_ERROR_##status, sentence);                                               \
    from = codes_of(&whole, 32)
    REFUSED(bad.scales = to.scales, INVALID_ARGUMENT,
            "s of the output is given, but scales is absent");
    REFUSED(bad.zeros = to.zeros, INVALID_ARGUMENT,
            "zeros of the output is given, but scales is absent");
    REFUSED(from.zeros = whole.zeros, INVALID_ARGUMENT, "qzeros is given, but scales is absent");
    REFUSED(from.group_size = 48, UNSUPPORTED, "the group size 48 does not divide K = 64");
    REFUSED(from.group_size = 128, UNSUPPORTED, "the group size 128 does not divide K = 64");
    REFUSED(bad.weights.shape[1] = 64, INVALID_ARGUMENT,
            "B of the output is int32 [4, 64], not int32 [4, 128]");
    REFUSED(bad.weights.data = NULL, INVALID_ARGUMENT, "B is needed, but its data is NULL");
    REFUSED(bad.format = PTXGEN_W4_AWQ, INVALID_ARGUMENT,
            "the output's format is 2, not PTXGEN_W4_MARLIN");
    REFUSED(from.weights.shape[1] = 72, UNSUPPORTED,
            "N = 72 is not a multiple of 64, as marlin needs");
#undef REFUSED
    assert_int_equal(ptxgen_w4_to_marlin(&from, &codes, NULL, NULL, &err),
                     PTXGEN_ERROR_INVALID_ARGUMENT);
    assert_says(&err, "order is NULL");
    from.group_size = 0;
    assert_int_equal(ptxgen_w4_to_marlin(&from, &codes, order, NULL, &err), PTXGEN_ERROR_MALFORMED);
    assert_says(&err, "but there are groups 0 to 0");
    checkpoint_free(&whole);
    checkpoint_free(&to);
    matrix_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(repacking_equals_packing_from_every_format),
        cmocka_unit_test(repacking_sorts_rows_of_an_act_order_checkpoint),
        cmocka_unit_test(repacking_act_order_needs_room_for_the_order),
        cmocka_unit_test(repacking_refuses_to_lose_zero_points),
        cmocka_unit_test(codes_are_repacked_without_scales),
        cmocka_unit_test(bare_codes_of_gptq_have_one_group),
        cmocka_unit_test(codes_alone_have_no_scales_on_either_side),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
