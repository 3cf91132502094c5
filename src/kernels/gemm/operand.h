/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An operand of mma that cp.async copies into shared memory and ldmatrix loads into registers: rows
 * of a row-major matrix, in blocks of 128 bytes along K.
 *
 *     global [row][K] ── cp.async, 16 bytes a thread ─▶ [block][row][128 bytes] ── ldmatrix ─▶ mma
 *
 * The 16-byte chunk c of row r is at position c ^ (r & 7) of its 128 bytes, so that cp.async writes
 * rows, and ldmatrix reads 8 rows of a chunk column, without bank conflicts. A stage of the
 * pipeline holds `blocks` blocks. Rows and columns past the end of the matrix are filled with
 * zeros.
 */
#ifndef PTXGEN_KERNELS_GEMM_OPERAND_H
#define PTXGEN_KERNELS_GEMM_OPERAND_H

#include "emit.h"

#include <stdbool.h>

enum { GEMM_BLOCK_BYTES = 128, GEMM_CHUNK_BYTES = 16, GEMM_OPERAND_PATTERNS = 8 };

struct gemm_operand {
    /* Set by the caller. */
    uint32_t rows, blocks; /* of a stage */
    uint32_t threads;      /* that copy: a multiple of the chunks of a row in a stage */
    uint32_t row_bytes;    /* of the matrix: a multiple of 16 */
    bool deep; /* a load brings the fragments of two steps of 8 rows, not of one step of 16 rows */
    bool as_a; /* a load brings mma's A of 16 rows: low columns of both halves, then high columns */

    uint32_t pass_rows;  /* rows that all threads copy at once */
    ptx_u32 row, column; /* the first row that the thread copies, and its byte within a stage */
    ptx_u32 to[GEMM_OPERAND_PATTERNS]; /* the chunk's offset in a slot, for each swizzle pattern */
    ptx_u32 fragment;                  /* the offset in a slot that the lane gives to ldmatrix */

    ptx_u64 pitch, pass_pitch; /* bytes between rows of the matrix, and between passes */
    ptx_u64 from;              /* address of the thread's chunk of the next stage */
    ptx_u32 rows_left;         /* signed: rows from the thread's first row to the matrix's end */
    ptx_u32 offset; /* byte of the thread's chunk within a row; only where K has a tail */
};

static inline uint32_t gemm_operand_stage_bytes(uint32_t rows, uint32_t blocks)
{
    return rows * blocks * GEMM_BLOCK_BYTES;
}

/* Whether the last stage along K extends past the end of a row. */
static inline bool gemm_operand_has_tail(const struct gemm_operand *o)
{
    return o->row_bytes % (o->blocks * GEMM_BLOCK_BYTES) != 0;
}

/* Sets up the copies and the loads of a thread. `pitch`: bytes between rows of the matrix. */
void gemm_operand_begin(ptx_kernel *k, const struct gemm_threads *at, ptx_u64 pitch,
                        struct gemm_operand *o);
/* Sets up the loads alone, for threads that do not copy. */
void gemm_operand_begin_reading(ptx_kernel *k, const struct gemm_threads *at,
                                struct gemm_operand *o);
/*
 * Moves the loads of a warp, the one with number `along` along the rows, to its own `warp_rows`
 * rows of a stage.
 */
void gemm_operand_divide_rows(ptx_kernel *k, ptx_u32 along, uint32_t warp_rows,
                              struct gemm_operand *o);
/*
 * Makes `stage` of the tile that starts at row `first_row` the next one to be copied. The matrix
 * is at `base` and has `rows` rows.
 */
void gemm_operand_locate(ptx_kernel *k, struct gemm_operand *o, ptx_u64 base, ptx_u32 first_row,
                         ptx_u32 rows, ptx_u32 stage);
/* Issues the copies of the next stage to the shared address `slot`, and moves on by a stage. */
void gemm_operand_issue(ptx_kernel *k, struct gemm_operand *o, ptx_u32 slot);

/*
 * A fragment is 8 rows by 32 bytes along K in two registers, as m16n8k16 of f16 and m16n8k32 of s8
 * take for B in a step. A load brings two fragments. These are rows 8·row8 to 8·row8 + 15 of one
 * step; or, where the operand is deep or has only 8 rows, 8 rows of `step` and step + 1, which is
 * what mma.sp takes in one of its steps. The function says whether the second case holds.
 */
static inline bool gemm_operand_pairs_steps(const struct gemm_operand *o)
{
    return o->rows == 8 || o->deep;
}
/* The address that the lane gives to ldmatrix for step 0 of `block` of the stage at `slot`. */
ptx_u32 gemm_operand_lane(ptx_kernel *k, const struct gemm_operand *o, ptx_u32 slot, ptx_u32 block);
/* The address for step `step`, of 32 bytes along K, in the block whose step 0 has address `lane`.
 */
ptx_u32 gemm_operand_step(ptx_kernel *k, const struct gemm_operand *o, ptx_u32 lane, uint32_t step);
/* Loads two fragments into registers that exist. */
void gemm_operand_load_to(ptx_kernel *k, ptx_u32 step_address, uint32_t row8, ptx_u32 fragments[4]);

#endif
