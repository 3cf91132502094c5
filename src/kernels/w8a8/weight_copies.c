/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of stages from global to shared memory by cp.async, in the layout of operand.h: first the
 * rows of w, then the codes of the tokens. Rows of w start at multiples of 16, 8 or 4 bytes, and
 * are copied in pieces of as many bytes, or in whole chunks of 16 bytes.
 */
#include "emit.h"

static bool is_in_chunks(const struct product *q)
{
    return !w8a8_copies_pieces(q->plan, q->v);
}

struct feature_block w8a8_find_block(struct product *q, ptx_u32 block)
{
    ptx_kernel *k = q->g.k;
    uint32_t n = w8a8_rows(q->spec), unit = w8a8_block_unit(q->spec, q->v);
    uint32_t units = n / unit + (n % unit != 0);
    uint32_t each = units / q->v->blocks_n, more = units % q->v->blocks_n;
    struct feature_block b;
    if (!more) {
        b.first = ptx_mul_lo_u32(k, block, U32(each * unit));
        b.count = ptx_mov_u32(k, U32(each * unit));
    } else {
        ptx_u32 extra = ptx_min_u32(k, block, U32(more));
        ptx_u32 first = ptx_mad_lo_u32(k, block, U32(each), extra);
        b.first = ptx_mul_lo_u32(k, first, U32(unit));
        ptx_pred has_more = ptx_setp_lt_u32(k, block, U32(more));
        b.count = ptx_selp_u32(k, U32((each + 1) * unit), U32(each * unit), has_more);
    }
    if (n % unit == 0)
        return b;
    ptx_u32 first = ptx_min_u32(k, b.first, U32(n)), left = ptx_sub_u32(k, U32(n), first);
    b.count = ptx_min_u32(k, b.count, left);
    return b;
}

void w8a8_begin_weights(struct product *q)
{
    struct gemm_operand *o = &q->w.operand;
    o->rows = q->v->tile_n;
    o->blocks = q->v->wk;
    o->threads = W8A8_THREADS;
    o->row_bytes = (q->spec->k + 15) / 16 * 16;
    o->as_a = true;
    gemm_operand_begin(q->g.k, &q->g.at, U64(w8a8_read_stride(q->plan, q->v)), o);
    if (!is_in_chunks(q))
        q->w.left = ptx_mov_s32(q->g.k, S32(0));
}

void w8a8_locate_weights(struct product *q, ptx_u32 block, ptx_u32 stage)
{
    ptx_kernel *k = q->g.k;
    struct feature_block b = w8a8_find_block(q, block);
    ptx_u32 end = ptx_add_u32(k, b.first, b.count);
    gemm_operand_locate(k, &q->w.operand, q->address[W8A8_W], b.first, end, stage);
    if (!is_in_chunks(q)) {
        ptx_u32 column = ptx_mad_lo_u32(k, stage, U32(w8a8_depth(q->v)), q->w.operand.column);
        ptx_s32 all = ptx_mov_s32(k, S32((int32_t)q->spec->k));
        ptx_sub_s32_to(k, q->w.left, all, ptx_u32_as_s32(column));
    }
}

/* ---- rows of w in pieces ---- */

static uint32_t passes(const struct gemm_operand *o)
{
    return (o->rows + o->pass_rows - 1) / o->pass_rows;
}

/* The number of passes after which the swizzle of the thread's row repeats. */
static uint32_t patterns(const struct gemm_operand *o)
{
    return o->pass_rows % 8 == 0 ? 1 : 8 / o->pass_rows;
}

/*
 * Copies a chunk of 16 bytes in pieces of 16, 8 or 4; bytes past K or past the last row become
 * zeros.
 */
static void copy_pieces(struct product *q, ptx_u32 to, ptx_u64 from, ptx_pred exists)
{
    ptx_kernel *k = q->g.k;
    int bytes = (int)q->plan->copy_bytes;
    for (int i = 0; i < GEMM_CHUNK_BYTES; i += bytes) {
        ptx_s32 from_here = ptx_sub_s32(k, q->w.left, S32(i));
        ptx_s32 cut = ptx_min_s32(k, from_here, S32(bytes));
        ptx_u32 size = ptx_s32_as_u32(ptx_max_s32(k, cut, S32(0)));
        ptx_u32 taken = ptx_selp_u32(k, size, U32(0), exists);
        ptx_cp_async_ca_zfill(k, to, i, from, i, bytes, taken);
    }
}

static void copy_rows(struct product *q, ptx_u32 to, ptx_u64 from, ptx_u32 row, ptx_s32 rows_left)
{
    ptx_kernel *k = q->g.k;
    ptx_pred exists = ptx_setp_gt_s32(k, rows_left, S32(0));
    ptx_if(k, ptx_setp_lt_u32(k, row, U32(q->v->tile_n)))
        copy_pieces(q, to, from, exists);
}

static void copy_unaligned(struct product *q, ptx_u32 slot)
{
    ptx_kernel *k = q->g.k;
    struct gemm_operand *o = &q->w.operand;
    uint32_t count = patterns(o), rows = count * o->pass_rows;
    ptx_u64 from = ptx_mov_u64(k, o->from);
    ptx_u32 to = ptx_mov_u32(k, slot), row = ptx_mov_u32(k, o->row);
    ptx_s32 left = ptx_mov_s32(k, ptx_u32_as_s32(o->rows_left));
    ptx_u32 pass = ptx_mov_u32(k, U32(0));
    ptx_for(k, pass, U32(passes(o)), U32(count)) {
        ptx_nounroll(k);
        for (uint32_t i = 0; i < count; i++) {
            uint32_t below = i * o->pass_rows;
            ptx_u64 line = ptx_add_u64(k, from, U64((uint64_t)below * w8a8_w_stride(q->spec)));
            ptx_s32 rows_left = ptx_sub_s32(k, left, S32((int32_t)below));
            ptx_u32 place = ptx_add_u32(k, to, o->to[i]), number = ptx_add_u32(k, row, U32(below));
            copy_rows(q, place, line, number, rows_left);
        }
        ptx_add_u32_to(k, to, to, U32(rows * GEMM_BLOCK_BYTES));
        ptx_add_u64_to(k, from, from, U64((uint64_t)rows * w8a8_w_stride(q->spec)));
        ptx_add_u32_to(k, row, row, U32(rows));
        ptx_sub_s32_to(k, left, left, S32((int32_t)rows));
    }
    ptx_add_u64_to(k, o->from, o->from, U64(w8a8_depth(q->v)));
    ptx_sub_s32_to(k, q->w.left, q->w.left, S32((int32_t)w8a8_depth(q->v)));
}

void w8a8_issue_weights(struct product *q, ptx_u32 slot)
{
    if (is_in_chunks(q))
        gemm_operand_issue(q->g.k, &q->w.operand, slot);
    else
        copy_unaligned(q, slot);
}
