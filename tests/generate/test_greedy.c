/* SPDX-License-Identifier: Apache-2.0 */
/* The choice of the largest logit of examples/generate. */
#include "bed.h"

#include "examples/generate/greedy.h"

#include <math.h>
#include <string.h>

enum { SEQUENCES = 8 };

/* Rows of logits, and the ids that are due. Each CTA has 2,048 logits of a row. */
static void fill_logits(float *logits, uint32_t vocabulary, int32_t right[SEQUENCES])
{
    const uint32_t last = vocabulary - 1, tie = last > 2048 ? 2047 : 200;
    float *row[SEQUENCES];
    for (int i = 0; i < SEQUENCES; i++)
        row[i] = logits + (size_t)i * vocabulary;
    row[0][last] = 20;
    row[1][tie] = row[1][tie + 1] = row[1][last] = 20; /* of two CTAs, or of one */
    row[2][0] = row[2][last] = 7;
    row[6][last / 2] = nanf("");  /* above all numbers, */
    row[7][last / 2] = -nanf(""); /* with either sign, */
    row[7][last] = nanf("");      /* and equal to each other */
    for (uint32_t i = 0; i < vocabulary; i++) {
        row[3][i] = i < 2 ? -6.0f : -5.0f;
        row[4][i] = -INFINITY;
        row[5][i] = i < 3 ? -1.0f : i < 5 ? -0.0f : 0.0f; /* which equals -0 */
    }
    const int32_t due[SEQUENCES] = {(int32_t)last,     (int32_t)tie,     0, 2, 0, 3,
                                    (int32_t)last / 2, (int32_t)last / 2};
    memcpy(right, due, sizeof due);
}

/* Of equal logits the first; a later launch, of smaller logits, finds nothing of an earlier one. */
static void takes_the_first_largest(struct bed *bed, uint32_t vocabulary)
{
    struct random r = {vocabulary};
    struct array logits = array_random(bed, &r, PTXGEN_F32, SEQUENCES * (size_t)vocabulary, 1);
    float *values = logits.host;
    int32_t right[SEQUENCES], moved[SEQUENCES] = {0, 5, 9, 0, 1, 2, 3, 4}, ids[SEQUENCES];
    fill_logits(values, vocabulary, right);
    struct greedy_args args = {.m = SEQUENCES,
                               .logits = logits.device,
                               .ids = bed_alloc(bed, sizeof ids),
                               .positions = bed_upload(bed, moved, sizeof moved),
                               .cells = bed_alloc(bed, (size_t)greedy_cells_bytes(SEQUENCES))};
    assert_int_equal(bed->driver.memset_d8(args.cells, 0, greedy_cells_bytes(SEQUENCES)), 0);
    const struct greedy_spec spec = {vocabulary};
    ptxgen_loaded *loaded = bed_load(bed, greedy_family(), &spec);
    for (int launch = 1; launch <= 2; launch++) {
        ptxgen_error err;
        assert_int_equal(bed->driver.memcpy_htod(logits.device, values, 4 * logits.count), 0);
        assert_ok(greedy_launch(loaded, &args, NULL, &err), &err);
        bed_synchronise(bed);
        assert_int_equal(bed->driver.memcpy_dtoh(ids, args.ids, sizeof ids), 0);
        int32_t position[SEQUENCES];
        assert_int_equal(bed->driver.memcpy_dtoh(position, args.positions, sizeof position), 0);
        for (int i = 0; i < SEQUENCES; i++) {
            if (ids[i] != right[i])
                fail_msg("launch %d of %u logits, row %d: %d is chosen, not %d", launch, vocabulary,
                         i, ids[i], right[i]);
            assert_int_equal(position[i], moved[i] + launch);
        }
        for (int j = 0; j < 4; j++) { /* rows without -0 and NaN */
            float *row = values + (size_t)j * vocabulary;
            for (uint32_t i = 0; i < vocabulary; i++)
                row[i] -= 30;
            right[j] = 7 + j;
            row[right[j]] = -1;
        }
    }
    array_free(&logits);
}

static void greedy_takes_the_first_largest(void **state)
{
    (void)state;
    const uint32_t vocabularies[] = {320, 17001, 20000};
    struct bed bed;
    bed_open(&bed, "cpu:sm_90");
    for (int i = 0; i < 3; i++)
        takes_the_first_largest(&bed, vocabularies[i]);
    bed_close(&bed);
}

/* Vocabularies of less than the four logits that a thread loads at once. */
static void greedy_takes_of_few(void **state)
{
    (void)state;
    enum { MOST = 4 };
    struct bed bed;
    bed_open(&bed, "cpu:sm_90");
    for (uint32_t vocabulary = 1; vocabulary <= MOST; vocabulary++) {
        const float logits[MOST] = {-3, -2, -1, 0};
        const int32_t start = 6;
        struct greedy_args args = {.m = 1,
                                   .logits = bed_upload(&bed, logits, 4 * vocabulary),
                                   .ids = bed_alloc(&bed, 4),
                                   .positions = bed_upload(&bed, &start, 4),
                                   .cells = bed_alloc(&bed, (size_t)greedy_cells_bytes(1))};
        assert_int_equal(bed.driver.memset_d8(args.cells, 0, greedy_cells_bytes(1)), 0);
        const struct greedy_spec spec = {vocabulary};
        ptxgen_error err;
        int32_t id;
        assert_ok(greedy_launch(bed_load(&bed, greedy_family(), &spec), &args, NULL, &err), &err);
        bed_synchronise(&bed);
        assert_int_equal(bed.driver.memcpy_dtoh(&id, args.ids, 4), 0);
        assert_int_equal(id, vocabulary - 1);
    }
    bed_close(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(greedy_takes_the_first_largest),
        cmocka_unit_test(greedy_takes_of_few),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
