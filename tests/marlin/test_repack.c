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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(repacking_equals_packing_from_every_format),
        cmocka_unit_test(repacking_sorts_rows_of_an_act_order_checkpoint),
        cmocka_unit_test(repacking_act_order_needs_room_for_the_order),
        cmocka_unit_test(repacking_refuses_to_lose_zero_points),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
