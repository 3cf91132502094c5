/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arrays among a launch's arguments, and their checks before anything runs: that each array has
 * an address, is aligned and lies within the address space, and that no array which is written
 * overlaps another one. kernel.h states the rule for users.
 */
#ifndef PTXGEN_RUNTIME_ARRAY_H
#define PTXGEN_RUNTIME_ARRAY_H

#include <ptxgen/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum launch_use {
    LAUNCH_INPUT,    /* only read: inputs may overlap each other */
    LAUNCH_IN_PLACE, /* an input that an output may be: each element is read by who overwrites it */
    LAUNCH_OUTPUT    /* written, as outputs and workspaces are */
};

struct launch_array {
    const char *name;
    bool used;
    enum launch_use use;
    uint64_t address;
    uint64_t given; /* bytes that the caller has there; 0: it does not say */
    unsigned align;
    uint64_t
        *stride; /* of rows, in elements of `align` bytes; 0 is made `columns`; NULL: no rows */
    uint64_t columns; /* of a row; of an array without rows, its bytes */
    uint64_t rows;    /* at least 1 where there are rows */

    /* Worked out by launch_check_arrays, in bytes. */
    uint64_t row_bytes, pitch, extent;
};

/* Initialisers of an array that is a run of bytes, and of one that has rows. */
#define LAUNCH_BYTES(name_, used_, use_, address_, given_, align_, bytes_)                         \
    {                                                                                              \
        .name = (name_), .used = (used_), .use = (use_), .address = (address_), .given = (given_), \
        .align = (align_), .columns = (bytes_)                                                     \
    }
#define LAUNCH_ROWS(name_, used_, use_, address_, given_, align_, stride_, columns_, rows_)        \
    {                                                                                              \
        .name = (name_), .used = (used_), .use = (use_), .address = (address_), .given = (given_), \
        .align = (align_), .stride = (stride_), .columns = (columns_), .rows = (rows_)             \
    }
/* The same of the members `m`, m_bytes and m_stride of the arguments at `a`. */
#define OPERAND_BYTES(a, m, used_, use_, align_, bytes_)                                           \
    LAUNCH_BYTES(#m, used_, LAUNCH_##use_, (a)->m, (a)->m##_bytes, align_, bytes_)
#define OPERAND_ROWS(a, m, used_, use_, align_, columns_, rows_)                                   \
    LAUNCH_ROWS(#m, used_, LAUNCH_##use_, (a)->m, (a)->m##_bytes, align_, &(a)->m##_stride,        \
                columns_, rows_)

/*
 * Refuses, with the family's name, the first used array that is null, misaligned, whose rows
 * overlap, whose end leaves the address space or that is longer than what the caller has; then the
 * first used output that overlaps another used array. Takes a time that depends on `count` only.
 */
ptxgen_status launch_check_arrays(const char *family, struct launch_array *arrays, size_t count,
                                  ptxgen_error *err);

#endif
