/* SPDX-License-Identifier: Apache-2.0 */
#include "array.h"

/* ---- one array ---- */

/* An array without elements is not accessed, and its address may be anything. */
static bool has_elements(const struct launch_array *a)
{
    return a->columns > 0 && (!a->stride || a->rows > 0);
}

/* False when the last of its bytes is not within the 64-bit address space. */
static bool measure(struct launch_array *a)
{
    bool has_rows = a->stride != NULL;
    uint64_t between = 0, end;
    a->row_bytes = has_rows ? a->columns * a->align : a->columns;
    a->pitch = a->row_bytes;
    a->rows = has_rows ? a->rows : 1;
    if (a->rows > 1 && (__builtin_mul_overflow(*a->stride, a->align, &a->pitch) ||
                        __builtin_mul_overflow(a->rows - 1, a->pitch, &between)))
        return false;
    return !__builtin_add_overflow(between, a->row_bytes, &a->extent) &&
           !__builtin_add_overflow(a->address, a->extent, &end);
}

static ptxgen_status refuse_end(const char *family, const struct launch_array *a, ptxgen_error *err)
{
    if (!a->stride)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "%s: %s, %llu bytes from 0x%llx on, leaves the 64-bit address space",
                           family, a->name, (unsigned long long)a->columns,
                           (unsigned long long)a->address);
    return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                       "%s: %s, %llu rows with a row stride of %llu elements of %u bytes from "
                       "0x%llx on, leaves the 64-bit address space",
                       family, a->name, (unsigned long long)a->rows, (unsigned long long)*a->stride,
                       a->align, (unsigned long long)a->address);
}

static ptxgen_status refuse_size(const char *family, const struct launch_array *a,
                                 ptxgen_error *err)
{
    if (!a->stride)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "%s: %s has %llu bytes, fewer than the %llu that the launch needs",
                           family, a->name, (unsigned long long)a->given,
                           (unsigned long long)a->extent);
    return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                       "%s: %s has %llu bytes, fewer than the %llu of %llu rows of %llu elements "
                       "of %u bytes with a row stride of %llu",
                       family, a->name, (unsigned long long)a->given, (unsigned long long)a->extent,
                       (unsigned long long)a->rows, (unsigned long long)a->columns, a->align,
                       (unsigned long long)*a->stride);
}

static ptxgen_status check(const char *family, struct launch_array *a, ptxgen_error *err)
{
    if (!a->address)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%s: %s is null", family, a->name);
    if (a->address % a->align)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "%s: %s at 0x%llx is not a multiple of %u bytes", family, a->name,
                           (unsigned long long)a->address, a->align);
    if (a->stride && !*a->stride)
        *a->stride = a->columns;
    if (a->stride && *a->stride < a->columns)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "%s: the row stride of %s, %llu, is below its %llu columns", family,
                           a->name, (unsigned long long)*a->stride, (unsigned long long)a->columns);
    if (!measure(a))
        return refuse_end(family, a, err);
    return a->given && a->given < a->extent ? refuse_size(family, a, err) : PTXGEN_OK;
}

/* ---- two arrays ---- */

/*
 * Exact for rows of one pitch, so that column slices of one buffer may be arrays of one launch;
 * rows of different pitches overlap where their whole extents do. The higher array begins `within`
 * bytes from the start of a row of the lower one: in that row, or behind it and before the next,
 * for the lower array ends with its last row. Rows are no longer than their pitch, so the two meet
 * there, or where the first row of the higher array reaches the next row, or nowhere.
 */
static bool overlap(const struct launch_array *a, const struct launch_array *b)
{
    const struct launch_array *low = a->address < b->address ? a : b, *high = low == a ? b : a;
    uint64_t distance = high->address - low->address;
    if (distance >= low->extent)
        return false;
    if (low->rows == 1 || (high->rows > 1 && high->pitch != low->pitch))
        return true;
    uint64_t within = distance % low->pitch;
    return within < low->row_bytes || low->pitch - within < high->row_bytes;
}

static bool is_same(const struct launch_array *a, const struct launch_array *b)
{
    return a->address == b->address && a->stride && b->stride && a->align == b->align &&
           a->columns == b->columns && a->rows == b->rows && a->pitch == b->pitch;
}

static bool may_meet(const struct launch_array *output, const struct launch_array *other)
{
    return !overlap(output, other) || (other->use == LAUNCH_IN_PLACE && is_same(output, other));
}

static ptxgen_status refuse(const char *family, const struct launch_array *output,
                            const struct launch_array *other, ptxgen_error *err)
{
    const char *why = other->use == LAUNCH_IN_PLACE
                          ? " and is not the same array: equal address and row stride"
                      : output->rows > 1 && other->rows > 1 && output->pitch != other->pitch
                          ? "; only rows of equal stride, in bytes, may lie beside each other"
                          : "";
    return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                       "%s: %s, which is written, from 0x%llx to 0x%llx, overlaps %s, from 0x%llx "
                       "to 0x%llx%s",
                       family, output->name, (unsigned long long)output->address,
                       (unsigned long long)(output->address + output->extent - 1), other->name,
                       (unsigned long long)other->address,
                       (unsigned long long)(other->address + other->extent - 1), why);
}

/* ---- all of them ---- */

/* An output against all but itself; of two outputs the later one looks. */
static ptxgen_status check_output(const char *family, const struct launch_array *arrays,
                                  size_t count, size_t output, ptxgen_error *err)
{
    for (size_t i = 0; i < count; i++) {
        bool looks = arrays[i].use != LAUNCH_OUTPUT || i < output;
        if (looks && arrays[i].used && has_elements(&arrays[i]) &&
            !may_meet(&arrays[output], &arrays[i]))
            return refuse(family, &arrays[output], &arrays[i], err);
    }
    return PTXGEN_OK;
}

ptxgen_status launch_check_arrays(const char *family, struct launch_array *arrays, size_t count,
                                  ptxgen_error *err)
{
    ptxgen_status status = PTXGEN_OK;
    for (size_t i = 0; status == PTXGEN_OK && i < count; i++)
        if (arrays[i].used && has_elements(&arrays[i]))
            status = check(family, &arrays[i], err);
    for (size_t i = 0; status == PTXGEN_OK && i < count; i++)
        if (arrays[i].used && has_elements(&arrays[i]) && arrays[i].use == LAUNCH_OUTPUT)
            status = check_output(family, arrays, count, i, err);
    return status;
}
