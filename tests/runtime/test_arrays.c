/* SPDX-License-Identifier: Apache-2.0 */
/* Which arrays of a launch may overlap: the rule by itself, against every byte of small arrays. */
#include "tests/launches.h"

#include "src/runtime/array.h"

/* Marks the array's bytes; true when one of them was marked. */
static bool mark(const struct launch_array *a, uint64_t pitch, unsigned char *memory)
{
    bool met = false;
    for (uint64_t row = 0; row < a->rows; row++)
        for (uint64_t i = 0; i < a->columns; i++) {
            unsigned char *byte = &memory[a->address + row * pitch + i];
            met = met || *byte;
            *byte = 1;
        }
    return met;
}

static bool is_refused(uint64_t at[2], uint64_t stride[2], const uint64_t columns[2],
                       const uint64_t rows[2])
{
    ptxgen_error err;
    struct launch_array arrays[] = {
        LAUNCH_ROWS("x", true, LAUNCH_INPUT, at[0], 0, 1, &stride[0], columns[0], rows[0]),
        LAUNCH_ROWS("y", true, LAUNCH_OUTPUT, at[1], 0, 1, &stride[1], columns[1], rows[1])};
    return launch_check_arrays("f", arrays, 2, &err) != PTXGEN_OK;
}

static bool bytes_meet(const uint64_t at[2], const uint64_t stride[2], const uint64_t columns[2],
                       const uint64_t rows[2])
{
    unsigned char memory[256] = {0};
    for (int i = 0; i < 2; i++) {
        const struct launch_array a = {.address = at[i], .columns = columns[i], .rows = rows[i]};
        if (mark(&a, stride[i], memory) && i)
            return true;
    }
    return false;
}

static void rows_of_one_stride_are_refused_exactly_when_a_byte_is_shared(void **state)
{
    enum { HOME = 60, MOST = 5, MOST_ROWS = 3 };
    (void)state;
    for (uint64_t stride = 1; stride <= MOST; stride++)
        for (uint64_t code = 0; code < MOST * MOST * MOST_ROWS * MOST_ROWS * 2 * HOME; code++) {
            uint64_t rest = code, columns[2], rows[2], at[2] = {HOME, 0};
            columns[0] = 1 + rest % MOST, rest /= MOST;
            columns[1] = 1 + rest % MOST, rest /= MOST;
            rows[0] = 1 + rest % MOST_ROWS, rest /= MOST_ROWS;
            rows[1] = 1 + rest % MOST_ROWS, rest /= MOST_ROWS;
            at[1] = 1 + rest;
            if ((columns[0] > stride && rows[0] > 1) || (columns[1] > stride && rows[1] > 1))
                continue;
            uint64_t strides[2] = {rows[0] > 1 ? stride : columns[0],
                                   rows[1] > 1 ? stride : columns[1]};
            bool expected = bytes_meet(at, strides, columns, rows);
            if (is_refused(at, strides, columns, rows) != expected)
                fail_msg("stride %d: x [%d,%d] at %d and y [%d,%d] at %d: expected %s", (int)stride,
                         (int)rows[0], (int)columns[0], (int)at[0], (int)rows[1], (int)columns[1],
                         (int)at[1], expected ? "a refusal" : "none");
        }
}

static void rows_of_two_strides_are_refused_where_their_ranges_meet(void **state)
{
    uint64_t at[2] = {10, 12}, stride[2] = {8, 4};
    const uint64_t columns[2] = {2, 2}, rows[2] = {2, 2};
    (void)state;
    assert_true(is_refused(at, stride, columns, rows)); /* though 10-11, 18-19; 12-13, 16-17 */
    at[1] = 20;
    assert_false(is_refused(at, stride, columns, rows));
    at[1] = 4;
    assert_false(is_refused(at, stride, columns, rows));
}

static void arrays_that_leave_the_address_space_are_refused(void **state)
{
    static const struct {
        uint64_t address, stride, rows;
        bool refused;
    } cases[] = {
        {0x1000, UINT64_C(1) << 62, 2, true},  /* the stride in bytes is 2^64 */
        {0x1000, UINT64_C(1) << 61, 2, false}, /* half of the space from row to row */
        {0x1000, UINT64_C(1) << 61, 3, true},  /* three of them wrap */
        {0x1000, UINT64_MAX, 2, true},
        {0x1000, UINT64_MAX, 1, false}, /* one row has no stride */
        {UINT64_MAX - 7, 4, 1, true},   /* 16 bytes from 8 bytes before the end */
        {0x1000, 4, UINT64_MAX, true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t stride = cases[i].stride;
        ptxgen_error err = {0};
        struct launch_array array = LAUNCH_ROWS("y", true, LAUNCH_OUTPUT, cases[i].address, 0, 4,
                                                &stride, 4, cases[i].rows);
        ptxgen_status status = launch_check_arrays("f", &array, 1, &err);
        if (!cases[i].refused)
            assert_ok(status, &err);
        else
            assert_refused(status, &err, "leaves the 64-bit address space");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_one_stride_are_refused_exactly_when_a_byte_is_shared),
        cmocka_unit_test(rows_of_two_strides_are_refused_where_their_ranges_meet),
        cmocka_unit_test(arrays_that_leave_the_address_space_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
