/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An operand of mma in shared memory: rows of a row-major matrix, in blocks of 128 bytes along K.
 *
 *     [block][row][128 bytes], the 16-byte chunk c of row r standing at c ^ (r & 7)
 *
 * which lets cp.async write rows and ldmatrix read 8 rows of a chunk column, both without bank
 * conflicts. A stage of the pipeline holds `blocks` blocks; what the matrix does not have, rows or
 * columns, is filled with zeros.
 */
#ifndef PTXGEN_KERNELS_TILE_OPERAND_H
#define PTXGEN_KERNELS_TILE_OPERAND_H

#include "emit.h"

#include <stdbool.h>

enum { TILE_BLOCK_BYTES = 128, TILE_CHUNK_BYTES = 16, TILE_OPERAND_PATTERNS = 8 };

struct tile_operand {
    /* Set by the caller. The threads are a multiple of a stage's chunks in a row. */
    uint32_t rows, blocks, threads;
    uint32_t row_bytes; /* of the matrix, a multiple of 16 */
    bool deep;          /* a load brings fragments of two steps, not of twice as many rows */
    bool as_a; /* a load brings mma's A, of 16 rows: both fragments' low columns, then high */

    uint32_t pass_rows; /* rows that all threads copy at once */
    ptx_u32 row, column; /* the thread's first row, and its byte within a stage's columns */
    ptx_u32 to[TILE_OPERAND_PATTERNS]; /* where its chunk goes, for passes that differ by swizzle */
    ptx_u32 fragment; /* the lane's offset for ldmatrix */

    ptx_u64 pitch, pass_pitch; /* bytes between the matrix's rows, and between passes */
    ptx_u64 from;              /* the thread's chunk of the next stage */
    ptx_u32 rows_left;        /* signed: rows of the matrix from the thread's first one on */
    ptx_u32 offset;           /* the stage's first byte in a row, where K has a tail */
};

static inline uint32_t tile_operand_stage_bytes(uint32_t rows, uint32_t blocks)
{
    return rows * blocks * TILE_BLOCK_BYTES;
}

/* Whether a stage may pass the end of a row. */
static inline bool tile_operand_has_tail(const struct tile_operand *o)
{
    return o->row_bytes % (o->blocks * TILE_BLOCK_BYTES) != 0;
}

/* `pitch`: bytes between the matrix's rows. */
void tile_operand_begin(ptx_kernel *k, const struct tile_threads *at, ptx_u64 pitch,
                        struct tile_operand *o);
/* … by threads that only read what others have copied. */
void tile_operand_begin_reading(ptx_kernel *k, const struct tile_threads *at,
                                struct tile_operand *o);
/* Turns to the rows from `first_row` of the `rows` of the matrix at `base` on, and to a stage. */
void tile_operand_locate(ptx_kernel *k, struct tile_operand *o, ptx_u64 base, ptx_u32 first_row,
                         ptx_u32 rows, ptx_u32 stage);
/* Sends for the next stage, to the shared address `slot`, and moves on. */
void tile_operand_send(ptx_kernel *k, struct tile_operand *o, ptx_u32 slot);

/*
 * Fragments of 8 rows by 32 bytes along K, two registers each: what mma takes as B in a step of
 * m16n8k16 f16 or m16n8k32 s8. A load brings two: of rows 8·row8 and the next eight, or where the
 * operand is deep or has 8 rows only, of `step` and step + 1: what mma.sp takes in one of its
 * steps.
 */
static inline bool tile_operand_pairs_steps(const struct tile_operand *o)
{
    return o->rows == 8 || o->deep;
}
/* The lane's address within `block` (a register) of the stage at `slot`. */
ptx_u32 tile_operand_lane(ptx_kernel *k, const struct tile_operand *o, ptx_u32 slot, ptx_u32 block);
/* … and for a step of 32 bytes within the block. */
ptx_u32 tile_operand_step(ptx_kernel *k, const struct tile_operand *o, ptx_u32 lane, uint32_t step);
/* Loads into registers that exist. */
void tile_operand_load_to(ptx_kernel *k, ptx_u32 step_address, uint32_t row8, ptx_u32 fragments[4]);

#endif
