/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one call of a family's launch function enqueues: entries of its module in the order in which
 * they are launched, each with its grid and the values of its parameters. A family makes a list
 * from a plan and a launch's arguments alone, and launch_list_run executes the list of any family.
 * Lists are plain values of the calling thread's stack.
 */
#ifndef PTXGEN_RUNTIME_LAUNCH_LIST_H
#define PTXGEN_RUNTIME_LAUNCH_LIST_H

#include "src/runtime/loaded.h"

#include <ptxgen/kernel.h>
#include <ptxgen/types.h>

enum {
    LAUNCH_MOST_ENTRIES = 5,
    LAUNCH_MOST_PARAMS = 24,
    LAUNCH_MOST_MAPS = 5,
    LAUNCH_BOX_BYTES = 128 /* of a row, in a swizzled box */
};
/* Bytes between rows that a tensor map takes are below this. */
#define LAUNCH_MOST_MAP_PITCH (UINT64_C(1) << 40)

struct launch_entry {
    unsigned index; /* among the loaded entries, which have the order of emission */
    ptxgen_launch_shape shape;
    unsigned params, wide; /* so many parameters, of which the first `wide` have 64 bits, not 32 */
    uint64_t values[LAUNCH_MOST_PARAMS];
};

/* What a parameter of tensor maps holds. */
enum launch_maps {
    LAUNCH_MAP,          /* one map */
    LAUNCH_MAP_AND_LAST, /* a map, and that of src/kernels/gemm/boxes.h's last boxes */
    LAUNCH_MAP_AND_NONE  /* a map, and room for one that the entry does not read */
};

/* Rows of an operand as a tensor. Of no rows there is a map of zeros, which is not read. */
struct launch_map {
    enum launch_maps holds;
    const char *name; /* the operand's, for sentences */
    uint64_t address, columns, rows;
    uint64_t pitch; /* bytes from row to row */
    ptxgen_cu_tensor_map_data_type type;
    uint32_t box_columns, box_rows;
    bool swizzled; /* as wgmma's operands are, in rows of 128 bytes */
};

struct launch_list {
    unsigned count;
    struct launch_entry entries[LAUNCH_MOST_ENTRIES];
    /* Parameters of the last entry, behind its values; they hold LAUNCH_MOST_MAPS maps in all. */
    unsigned map_count;
    struct launch_map maps[LAUNCH_MOST_MAPS];
    uint64_t workspace_bytes; /* what all of it needs */
    /* A launch of several lists, one after the other: the number of this one, and how many. */
    uint32_t part, parts; /* 0 or 1: one list */
};

/* Of f16 and bf16, the types that tensor maps know by name. */
static inline ptxgen_cu_tensor_map_data_type launch_map_type(uint8_t element)
{
    return element == PTXGEN_BF16 ? PTXGEN_CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                                  : PTXGEN_CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
}

/* A grid along x of so many CTAs, in clusters where `cluster` is above 1. */
ptxgen_launch_shape launch_line(uint64_t ctas, uint32_t threads, uint32_t dynamic_shared_bytes,
                                uint32_t cluster);

/* The rows of an operand, as a product reads them. */
struct launch_rows {
    const char *name; /* the operand's, for sentences */
    uint64_t address, stride, rows, columns;
    uint32_t element; /* bytes */
};
/* Whether copies of 16 bytes take the rows as they lie, or with `mapped` a tensor map. */
bool launch_rows_are_aligned(const struct launch_rows *rows, bool mapped);
/*
 * Adds src/kernels/gemm/align.h's entry: the rows are brought to multiples of 16 bytes at `out`,
 * where they are from then on.
 */
void launch_list_align(struct launch_list *list, unsigned index, struct launch_rows *rows,
                       uint64_t out);
/* Adds a map of the rows, in swizzled boxes. */
void launch_list_map(struct launch_list *list, const struct launch_rows *rows,
                     ptxgen_cu_tensor_map_data_type type, uint32_t box_rows,
                     enum launch_maps holds);

/* Encodes the maps, then launches every entry on `stream`. */
ptxgen_status launch_list_run(const ptxgen_loaded *loaded, const struct launch_list *list,
                              ptxgen_cu_stream stream, ptxgen_error *err);

#endif
