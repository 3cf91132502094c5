/* SPDX-License-Identifier: Apache-2.0 */
#include "operand.h"

enum { CHUNKS = GEMM_BLOCK_BYTES / GEMM_CHUNK_BYTES };

/* ---- global to shared ---- */

static uint32_t passes(const struct gemm_operand *o)
{
    return (o->rows + o->pass_rows - 1) / o->pass_rows;
}

/* The number of passes after which the swizzle of the thread's row repeats. */
static uint32_t patterns(const struct gemm_operand *o)
{
    uint32_t power = o->pass_rows & -o->pass_rows; /* largest power of two that divides pass_rows */
    return power < 8 ? 8 / power : 1;
}

static ptx_u32 chunk_offset(ptx_kernel *k, const struct gemm_operand *o, ptx_u32 row, ptx_u32 block,
                            ptx_u32 chunk)
{
    ptx_u32 line = ptx_mad_lo_u32(k, block, U32(o->rows), row);
    ptx_u32 low = ptx_and_b32(k, row, U32(7));
    ptx_u32 swizzled = ptx_xor_b32(k, chunk, low);
    ptx_u32 bytes = ptx_shl_b32(k, swizzled, U32(4));
    return ptx_mad_lo_u32(k, line, U32(GEMM_BLOCK_BYTES), bytes);
}

/* In ldmatrix lane l gives the address of row l % 8 of matrix l / 8. */
static ptx_u32 fragment_offset(ptx_kernel *k, const struct gemm_operand *o, ptx_u32 lane)
{
    ptx_u32 matrix = ptx_shr_u32(k, lane, U32(3)), row = ptx_and_b32(k, lane, U32(7)),
            chunk = matrix;
    ptx_u32 line = row;
    if (!gemm_operand_pairs_steps(o)) {
        ptx_u32 low = ptx_and_b32(k, matrix, U32(1)), high = ptx_shr_u32(k, matrix, U32(1));
        chunk = o->as_a ? high : low;
        line = ptx_mad_lo_u32(k, o->as_a ? low : high, U32(8), row);
    }
    return chunk_offset(k, o, line, U32(0), chunk);
}

void gemm_operand_begin_reading(ptx_kernel *k, const struct gemm_threads *at,
                                struct gemm_operand *o)
{
    o->fragment = fragment_offset(k, o, at->lane);
}

void gemm_operand_divide_rows(ptx_kernel *k, ptx_u32 along, uint32_t warp_rows,
                              struct gemm_operand *o)
{
    if (o->rows != warp_rows)
        o->fragment = ptx_mad_lo_u32(k, along, U32(warp_rows * GEMM_BLOCK_BYTES), o->fragment);
}

void gemm_operand_begin(ptx_kernel *k, const struct gemm_threads *at, ptx_u64 pitch,
                        struct gemm_operand *o)
{
    uint32_t row_chunks = CHUNKS * o->blocks;
    o->pass_rows = o->threads / row_chunks;
    o->pitch = pitch;
    if (passes(o) > 1)
        o->pass_pitch = ptx_mul_lo_u64(k, pitch, U64(o->pass_rows));
    o->row = gemm_divide(k, at->thread, row_chunks);
    ptx_u32 in_row = gemm_remainder(k, at->thread, row_chunks);
    o->column = ptx_shl_b32(k, in_row, U32(4));
    ptx_u32 block = gemm_divide(k, in_row, CHUNKS), chunk = ptx_and_b32(k, in_row, U32(CHUNKS - 1));
    for (uint32_t i = 0; i < patterns(o); i++) {
        ptx_u32 row = i ? ptx_add_u32(k, o->row, U32(i * o->pass_rows)) : o->row;
        o->to[i] = chunk_offset(k, o, row, block, chunk);
    }
    gemm_operand_begin_reading(k, at, o);
    o->from = ptx_mov_u64(k, U64(0));
    o->rows_left = ptx_mov_u32(k, U32(0));
    if (gemm_operand_has_tail(o))
        o->offset = ptx_mov_u32(k, U32(0));
}

void gemm_operand_locate(ptx_kernel *k, struct gemm_operand *o, ptx_u64 base, ptx_u32 first_row,
                         ptx_u32 rows, ptx_u32 stage)
{
    uint32_t stage_bytes = o->blocks * GEMM_BLOCK_BYTES;
    ptx_u32 row = ptx_add_u32(k, first_row, o->row);
    ptx_u64 line = ptx_mad_lo_u64(k, ptx_cvt_u64_u32(k, row), o->pitch, base);
    ptx_u64 at = ptx_mad_wide_u32(k, stage, U32(stage_bytes), line);
    ptx_u64 column = ptx_cvt_u64_u32(k, o->column);
    ptx_add_u64_to(k, o->from, at, column);
    ptx_sub_u32_to(k, o->rows_left, rows, row);
    if (gemm_operand_has_tail(o))
        ptx_mad_lo_u32_to(k, o->offset, stage, U32(stage_bytes), o->column);
}

/* The size of the thread's chunk in a pass: 16 bytes, or 0 past the end of the matrix. */
static ptx_u32 chunk_bytes(ptx_kernel *k, const struct gemm_operand *o, uint32_t pass)
{
    ptx_s32 left = ptx_u32_as_s32(o->rows_left), before = S32((int)(pass * o->pass_rows));
    ptx_pred exists = ptx_setp_gt_s32(k, left, before);
    if (gemm_operand_has_tail(o))
        exists = ptx_setp_bool_lt_u32(k, o->offset, U32(o->row_bytes), exists);
    return ptx_selp_u32(k, U32(GEMM_CHUNK_BYTES), U32(0), exists);
}

/* Each thread copies a chunk of pass_rows rows; in a shorter last pass only some threads copy. */
static void send_pass(ptx_kernel *k, const struct gemm_operand *o, ptx_u32 slot, uint32_t pass,
                      ptx_u64 from)
{
    uint32_t pattern = pass % patterns(o), rows = o->rows - pass * o->pass_rows;
    int skipped = (int)((pass - pattern) * o->pass_rows * GEMM_BLOCK_BYTES);
    ptx_u32 size = chunk_bytes(k, o, pass), to = ptx_add_u32(k, slot, o->to[pattern]);
    if (rows >= o->pass_rows) {
        ptx_cp_async_cg_zfill(k, to, skipped, from, 0, GEMM_CHUNK_BYTES, size);
        return;
    }
    ptx_guarded(k, ptx_setp_lt_u32(k, o->row, U32(rows)))
        ptx_cp_async_cg_zfill(k, to, skipped, from, 0, GEMM_CHUNK_BYTES, size);
}

void gemm_operand_issue(ptx_kernel *k, struct gemm_operand *o, ptx_u32 slot)
{
    ptx_u64 from = o->from;
    for (uint32_t pass = 0; pass < passes(o); pass++) {
        if (pass)
            from = ptx_add_u64(k, from, o->pass_pitch);
        send_pass(k, o, slot, pass, from);
    }
    ptx_add_u64_to(k, o->from, o->from, U64(o->blocks * GEMM_BLOCK_BYTES));
    if (gemm_operand_has_tail(o))
        ptx_add_u32_to(k, o->offset, o->offset, U32(o->blocks * GEMM_BLOCK_BYTES));
}

/* ---- shared to registers ---- */

ptx_u32 gemm_operand_lane(ptx_kernel *k, const struct gemm_operand *o, ptx_u32 slot, ptx_u32 block)
{
    ptx_u32 lane = ptx_add_u32(k, slot, o->fragment);
    return o->blocks == 1 ? lane : ptx_mad_lo_u32(k, block, U32(o->rows * GEMM_BLOCK_BYTES), lane);
}

/* Slots and blocks start at multiples of 128 bytes, so xor moves a swizzled address to a step. */
ptx_u32 gemm_operand_step(ptx_kernel *k, const struct gemm_operand *o, ptx_u32 lane, uint32_t step)
{
    (void)o;
    return step ? ptx_xor_b32(k, lane, U32(step * 2 * GEMM_CHUNK_BYTES)) : lane;
}

void gemm_operand_load_to(ptx_kernel *k, ptx_u32 step_address, uint32_t row8, ptx_u32 fragments[4])
{
    ptx_ldmatrix_x4_b16_to(k, fragments, step_address, (int)(row8 * 8 * GEMM_BLOCK_BYTES));
}
