/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mma.sp: the dense product of the matrix that compressed elements and metadata describe, with
 * the lane maps of "Sparse matrix storage" written as a table.
 */
#include "tests/status.h"

#include "slow_mma.h"

#include <stdio.h>

/** How a shape stores A and its metadata. */
typedef struct sparse_case {
    emu_element a, b, acc;
    unsigned k;
    unsigned chunk;      /* dense elements that a nibble describes */
    unsigned selectors;  /* valid values: 0 … selectors - 1 */
    bool rows_in_halves; /* bits 0…15 row g, bits 16…31 row g + 8; else one row a lane */
} sparse_case;

static const sparse_case CASES[] = {
    {EMU_F16, EMU_F16, EMU_F32, 16, 4, 4, true},    {EMU_F16, EMU_F16, EMU_F16, 16, 4, 4, true},
    {EMU_F16, EMU_F16, EMU_F32, 32, 4, 2, true},    {EMU_BF16, EMU_BF16, EMU_F32, 16, 4, 4, true},
    {EMU_BF16, EMU_BF16, EMU_F32, 32, 4, 2, true},  {EMU_TF32, EMU_TF32, EMU_F32, 8, 2, 4, true},
    {EMU_TF32, EMU_TF32, EMU_F32, 16, 2, 2, true},  {EMU_S8, EMU_U8, EMU_S32, 32, 4, 2, false},
    {EMU_U8, EMU_S8, EMU_S32, 64, 4, 1, false},     {EMU_S4, EMU_U4, EMU_S32, 64, 8, 2, false},
    {EMU_U4, EMU_S4, EMU_S32, 128, 8, 1, false},    {EMU_E4M3, EMU_E5M2, EMU_F32, 64, 4, 1, false},
    {EMU_E5M2, EMU_E4M3, EMU_F16, 64, 4, 1, false},
};

static emu_mma_op op_of(const sparse_case *test)
{
    return (emu_mma_op){MMA(16, (uint16_t)test->k, test->acc, test->a, test->b, test->acc),
                        .sparse = true, .ordered_metadata = true};
}

/** Lane and lowest bit of the nibble of a chunk; as listed, not computed from the shape. */
static void metadata_place(const sparse_case *test, unsigned selector, unsigned row, unsigned chunk,
                           unsigned *lane, unsigned *bit)
{
    unsigned first_lane = row % 8 * 4;
    if (test->rows_in_halves && test->selectors == 4) {
        *lane = first_lane + selector;
        *bit = (row < 8 ? 0 : 16) + 4 * chunk;
    } else if (test->rows_in_halves) { /* selector 0: T0, T1; selector 1: T2, T3 */
        *lane = first_lane + (selector == 0 ? 0 : 2) + (chunk < 4 ? 0 : 1);
        *bit = (row < 8 ? 0 : 16) + 4 * (chunk & 3);
    } else if (test->selectors == 2) {
        *lane = first_lane + (selector == 0 ? 0 : 2) + (row < 8 ? 0 : 1);
        *bit = 4 * chunk;
    } else {
        *lane = first_lane + (row < 8 ? 0 : 1) + (chunk < 8 ? 0 : 2);
        *bit = 4 * (chunk & 7);
    }
}

typedef struct sparse_data {
    int dense[16][128];
    int compressed[16][64];
    int b[128][8];
    int c[16][8];
    emu_lanes metadata;
} sparse_data;

static unsigned random_nibble(const sparse_case *test, bool ascending)
{
    static const unsigned meaningful[] = {0x4, 0x8, 0x9, 0xC, 0xD, 0xE};
    static const unsigned descending[] = {0x1, 0x2, 0x6, 0x3, 0x7, 0xB};
    if (test->a == EMU_TF32)
        return random_int(0, 1) ? 0x4 : 0xE;
    return ascending ? meaningful[random_int(0, 5)] : descending[random_int(0, 5)];
}

static void make_data(const sparse_case *test, unsigned selector, bool ascending, sparse_data *data)
{
    memset(data->dense, 0, sizeof data->dense);
    for (unsigned lane = 0; lane < 32; lane++) /* lanes that do not contribute hold nonsense */
        data->metadata.lane[lane] = 0;
    bool used[32] = {false};
    for (unsigned row = 0; row < 16; row++) {
        unsigned next = 0;
        for (unsigned chunk = 0; chunk < test->k / test->chunk; chunk++) {
            unsigned nibble = random_nibble(test, ascending), lane, bit;
            metadata_place(test, selector, row, chunk, &lane, &bit);
            data->metadata.lane[lane] |= nibble << bit;
            used[lane] = true;
            for (unsigned i = 0; i < 2; i++) {
                unsigned unit = i == 0 ? nibble & 3 : nibble >> 2;
                int *chunk_start = &data->dense[row][chunk * test->chunk];
                if (test->chunk == 2 && i == 1)
                    continue; /* one tf32, named by both its halves */
                unsigned at = test->chunk == 2 ? unit / 2 : unit * (test->chunk / 4);
                for (unsigned e = 0; e < (test->chunk == 8 ? 2u : 1u); e++) {
                    int value = random_element(test->a);
                    chunk_start[at + e] = value;
                    data->compressed[row][next++] = value;
                }
            }
        }
        assert_int_equal(next, test->k / 2);
    }
    for (unsigned lane = 0; lane < 32; lane++) {
        if (!used[lane])
            data->metadata.lane[lane] = random_bits();
    }
    for (unsigned i = 0; i < test->k * 8; i++)
        data->b[i / 8][i % 8] = random_element(test->b);
    for (unsigned i = 0; i < 128; i++)
        data->c[i / 8][i % 8] = random_int(-100, 100);
}

/** Runs of a register's elements along K: rows alternate every register, K every two. */
static void pack_operands(const sparse_case *test, const sparse_data *data, emu_lanes a[4],
                          emu_lanes b[4], emu_lanes c[4])
{
    unsigned bits = emu_element_bits(test->a), per = 32 / bits;
    memset(a, 0, 4 * sizeof *a);
    memset(b, 0, 4 * sizeof *b);
    memset(c, 0, 4 * sizeof *c);
    for (unsigned lane = 0; lane < 32; lane++) {
        unsigned g = lane >> 2, t = lane & 3;
        for (unsigned i = 0; i < test->k / 2 * 16 / 32; i++) {
            unsigned row = (i / per) & 1 ? g + 8 : g;
            unsigned column = i / (2 * per) * 4 * per + t * per + i % per;
            put_element(a, bits, lane, i, element_bits(test->a, data->compressed[row][column]));
        }
        for (unsigned i = 0; i < test->k * 8 / 32; i++)
            put_element(b, bits, lane, i,
                        element_bits(test->b, data->b[i / per * 4 * per + t * per + i % per][g]));
        for (unsigned i = 0; i < 4; i++)
            put_element(c, emu_element_bits(test->acc), lane, i,
                        accumulator_bits(test->acc, data->c[i < 2 ? g : g + 8][2 * t + (i & 1)]));
    }
}

static void check_product(const sparse_case *test, const sparse_data *data, const emu_lanes *d)
{
    for (unsigned lane = 0; lane < 32; lane++) {
        for (unsigned i = 0; i < 4; i++) {
            unsigned row = (lane >> 2) + (i < 2 ? 0 : 8), column = 2 * (lane & 3) + (i & 1);
            int sum = data->c[row][column];
            for (unsigned k = 0; k < test->k; k++)
                sum += data->dense[row][k] * data->b[k][column];
            assert_int_equal(get_element(d, emu_element_bits(test->acc), lane, i),
                             accumulator_bits(test->acc, sum));
        }
    }
}

static void every_sparse_shape_multiplies_the_matrix_it_describes(void **state)
{
    (void)state;
    static sparse_data data;
    for (unsigned i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        const sparse_case *test = &CASES[i];
        emu_mma_op op = op_of(test);
        assert_int_equal(emu_mma_check(&op, NULL), PTXGEN_OK);
        for (unsigned selector = 0; selector < test->selectors; selector++) {
            for (int n = EMU_NUMERICS_EXACT; n <= EMU_NUMERICS_RTX_BLACKWELL; n++) {
                emu_lanes a[4], b[4], c[4], d[4];
                make_data(test, selector, true, &data);
                pack_operands(test, &data, a, b, c);
                assert_int_equal(
                    emu_mma_sp(&op, (emu_numerics)n, d, a, b, c, &data.metadata, selector, NULL),
                    PTXGEN_OK);
                check_product(test, &data, d);
            }
        }
    }
}

static void unordered_metadata_may_name_positions_in_any_order(void **state)
{
    (void)state;
    static sparse_data data;
    emu_lanes a[4], b[4], c[4], d[4];
    emu_mma_op op = op_of(&CASES[2]);
    make_data(&CASES[2], 1, false, &data);
    pack_operands(&CASES[2], &data, a, b, c);
    op.ordered_metadata = false;
    assert_int_equal(emu_mma_sp(&op, EMU_NUMERICS_HOPPER, d, a, b, c, &data.metadata, 1, NULL),
                     PTXGEN_OK);
    check_product(&CASES[2], &data, d);
    op.ordered_metadata = true;
    assert_int_equal(emu_mma_sp(&op, EMU_NUMERICS_HOPPER, d, a, b, c, &data.metadata, 1, NULL),
                     PTXGEN_ERROR_PTX_FAULT);
}

static void a_selector_of_lanes_that_are_not_there_is_a_fault(void **state)
{
    (void)state;
    emu_lanes zero[4] = {{{0}}}, d[4], metadata;
    memset(d, 0, sizeof d);
    memset(&metadata, 0x44, sizeof metadata);
    for (unsigned i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        emu_mma_op op = op_of(&CASES[i]);
        ptxgen_error err;
        char says[100];
        unsigned count = CASES[i].selectors;
        snprintf(says, sizeof says,
                 "sparsity selector %u: with %u lanes of four supplying metadata it must be below "
                 "%u",
                 count, 4 / count, count);
        assert_int_equal(
            emu_mma_sp(&op, EMU_NUMERICS_EXACT, d, zero, zero, zero, &metadata, count, &err),
            PTXGEN_ERROR_PTX_FAULT);
        assert_says(&err, says);
    }
}

static void metadata_without_meaning_is_a_fault_and_leaves_the_destination(void **state)
{
    (void)state;
    emu_lanes zero[4] = {{{0}}}, d[4], before[4], metadata;
    memset(d, 0x5A, sizeof d);
    memcpy(before, d, sizeof d);
    for (unsigned i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        emu_mma_op op = op_of(&CASES[i]);
        for (unsigned nibble = 0; nibble < 16; nibble++) {
            bool meaningful =
                CASES[i].a == EMU_TF32 ? nibble == 4 || nibble == 14 : (nibble & 3) < nibble >> 2;
            for (unsigned lane = 0; lane < 32; lane++)
                metadata.lane[lane] = 0x44444444;
            unsigned lane, bit;
            metadata_place(&CASES[i], 0, 13, 2, &lane, &bit);
            metadata.lane[lane] ^= (nibble ^ 4) << bit;
            ptxgen_error err;
            emu_lanes out[4];
            memcpy(out, d, sizeof d);
            ptxgen_status status =
                emu_mma_sp(&op, EMU_NUMERICS_EXACT, out, zero, zero, zero, &metadata, 0, &err);
            assert_int_equal(status, meaningful ? PTXGEN_OK : PTXGEN_ERROR_PTX_FAULT);
            if (!meaningful) {
                assert_says(&err, "sparsity metadata 0x");
                assert_says(&err, " of row 13, chunk 2 has no meaning: ");
                assert_says(&err, CASES[i].a == EMU_TF32 ? ": tf32 takes 0x4 or 0xE"
                                                         : ": the indices must ascend");
                assert_memory_equal(out, before, sizeof out);
            }
        }
    }
}

static void selectors_out_of_range_are_faults(void **state)
{
    (void)state;
    emu_lanes zero[4] = {{{0}}}, d[4], metadata;
    for (unsigned lane = 0; lane < 32; lane++)
        metadata.lane[lane] = 0x44444444;
    for (unsigned i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        emu_mma_op op = op_of(&CASES[i]);
        for (unsigned selector = 0; selector < 6; selector++) {
            ptxgen_status status =
                emu_mma_sp(&op, EMU_NUMERICS_EXACT, d, zero, zero, zero, &metadata, selector, NULL);
            bool valid = selector < CASES[i].selectors;
            assert_int_equal(status, valid ? PTXGEN_OK : PTXGEN_ERROR_PTX_FAULT);
            assert_int_equal(emu_mma_sp_metadata_lanes(&op, selector) != 0, valid);
        }
    }
}

static void metadata_lanes_are_those_the_selector_names(void **state)
{
    (void)state;
    emu_mma_op k16 = op_of(&CASES[0]), k32 = op_of(&CASES[2]), s8 = op_of(&CASES[8]);
    assert_int_equal(emu_mma_sp_metadata_lanes(&k16, 0), 0x11111111);
    assert_int_equal(emu_mma_sp_metadata_lanes(&k16, 3), 0x88888888);
    assert_int_equal(emu_mma_sp_metadata_lanes(&k32, 0), 0x33333333);
    assert_int_equal(emu_mma_sp_metadata_lanes(&k32, 1), 0xCCCCCCCC);
    assert_int_equal(emu_mma_sp_metadata_lanes(&s8, 0), 0xFFFFFFFF);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_sparse_shape_multiplies_the_matrix_it_describes),
        cmocka_unit_test(unordered_metadata_may_name_positions_in_any_order),
        cmocka_unit_test(a_selector_of_lanes_that_are_not_there_is_a_fault),
        cmocka_unit_test(metadata_without_meaning_is_a_fault_and_leaves_the_destination),
        cmocka_unit_test(selectors_out_of_range_are_faults),
        cmocka_unit_test(metadata_lanes_are_those_the_selector_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
