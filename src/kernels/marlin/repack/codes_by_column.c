/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entry marlin_repack_codes for layouts along K with act_order. The codes of consecutive rows
 * of K may be anywhere in a column, so a CTA copies 16 whole columns to shared memory, and picks
 * nibbles from there:
 *
 *     16 columns, K/2 bytes each ──16 bytes a thread──▶ shared memory ──words──▶ lanes ──▶ codes
 *
 * If each step of a strip read its words from memory, as in codes.c, each word would bring a
 * sector of 32 bytes for one nibble.
 */
#include "emit.h"

enum { WARPS = REPACK_THREADS / 32 };

static uint32_t largest_chunk(uint32_t bytes)
{
    return bytes % 16 == 0 ? 16 : 8;
}

/* The first of the CTA's columns, as a column of its source (gate or up). */
static ptx_u32 first_column(struct repack *q, ptx_u64 *source)
{
    ptx_kernel *k = q->k;
    *source = q->sources[0];
    if (!q->gated) {
        ptx_u32 tile = ptx_mad_lo_u32(k, q->strip, U32(TILES), q->tile);
        return ptx_mul_lo_u32(k, tile, U32(MARLIN_TILE));
    }
    ptx_pred up = ptx_setp_ge_u32(k, q->tile, U32(TILES / 2));
    *source = ptx_selp_u64(k, q->sources[1], q->sources[0], up);
    ptx_u32 of_source = ptx_and_b32(k, q->tile, U32(TILES / 2 - 1));
    ptx_u32 tile = ptx_mad_lo_u32(k, q->strip, U32(TILES / 2), of_source);
    return ptx_mul_lo_u32(k, tile, U32(MARLIN_TILE));
}

static void copy_columns(struct repack *q)
{
    ptx_kernel *k = q->k;
    ptx_u64 source;
    uint32_t bytes = q->spec->k / 2, chunk = largest_chunk(bytes), chunks = bytes / chunk;
    ptx_u32 first = first_column(q, &source), at = ptx_mov_u32(k, q->at.thread);
    ptx_section(k, "16 columns to shared memory");
    ptx_for(k, at, U32(MARLIN_TILE * chunks), U32(REPACK_THREADS)) {
        ptx_nounroll(k);
        ptx_u32 column = gemm_divide(k, at, chunks), index = gemm_remainder(k, at, chunks);
        ptx_u32 line = ptx_mad_lo_u32(k, column, U32(q->columns.pitch), q->staged);
        ptx_u32 to = ptx_mad_lo_u32(k, index, U32(chunk), line);
        ptx_u32 n = ptx_add_u32(k, first, column);
        ptx_u32 exists =
            ptx_selp_u32(k, U32(chunk), U32(0), ptx_setp_lt_u32(k, n, U32(q->spec->n)));
        ptx_u64 from = ptx_mad_wide_u32(k, n, U32(bytes), source);
        from = ptx_mad_wide_u32(k, index, U32(chunk), from);
        if (chunk == 16)
            ptx_cp_async_cg_zfill(k, to, 0, from, 0, 16, exists);
        else
            ptx_cp_async_ca_zfill(k, to, 0, from, 0, 8, exists);
    }
    ptx_cp_async_wait_all(k);
    ptx_bar_sync(k, 0);
}

/*
 * Packs the lane's word of the 16 rows from `first` on: nibble d is the code of row
 * 2q + (d / 4) + 8·(d / 2 % 2) and column g + 8·(d % 2).
 */
static ptx_u32 pack_word(struct repack *q, ptx_u32 lane, ptx_u32 first)
{
    ptx_kernel *k = q->k;
    ptx_u32 rows[2][2], out = ptx_mov_u32(k, U32(0));
    ptx_u32 own = ptx_mad_lo_u32(k, q->at.quad, U32(2), first);
    ptx_u64 order = ptx_mad_wide_u32(k, own, U32(4), q->order);
    for (uint32_t high = 0; high < 2; high++)
        ptx_ld_global_nc_v2_u32(k, rows[high], order, (int)(high * 8 * 4));
    for (uint32_t d = 0; d < 8; d++) {
        ptx_u32 row = rows[d >> 1 & 1][d >> 2];
        ptx_u32 at = ptx_mad_lo_u32(k, ptx_shr_u32(k, row, U32(3)), U32(WORD_BYTES), lane);
        ptx_u32 word = ptx_ld_shared_u32(k, at, (int)((d & 1) * 8 * q->columns.pitch));
        marlin_repack_insert(k, out, word, marlin_repack_rotation(k, row, d), d);
    }
    return out;
}

/* Packs step `step` of the tile, 16 bytes a lane; codes past the end of K are zeros. */
static void pack_step(struct repack *q, ptx_u32 lane, ptx_u32 step, ptx_u64 to)
{
    ptx_kernel *k = q->k;
    ptx_u32 words[4], first = ptx_mul_lo_u32(k, step, U32(MARLIN_STEP));
    for (uint32_t w = 0; w < 4; w++) {
        ptx_u32 row = w ? ptx_add_u32(k, first, U32(16 * w)) : first;
        if (q->spec->k % MARLIN_STEP == 0) {
            words[w] = pack_word(q, lane, row);
            continue;
        }
        words[w] = ptx_mov_u32(k, U32(0));
        ptx_if(k, ptx_setp_lt_u32(k, row, U32(q->spec->k)))
            ptx_mov_u32_to(k, words[w], pack_word(q, lane, row));
    }
    ptx_st_global_v4_u32(k, ptx_mad_wide_u32(k, step, U32(MARLIN_STEP_BYTES), to), 0, words);
}

static void pack(struct repack *q)
{
    ptx_kernel *k = q->k;
    const ptxgen_marlin_spec product = marlin_repack_product(q->spec);
    uint32_t steps = marlin_steps(&product);
    ptx_u32 lane = ptx_mad_lo_u32(k, q->at.group, U32(q->columns.pitch), q->staged);
    ptx_u64 strip = ptx_mul_wide_u32(k, q->strip, U32(steps));
    ptx_u64 at = ptx_mad_lo_u64(k, strip, U64(MARLIN_STEP_BYTES), q->codes);
    at = ptx_mad_wide_u32(k, q->tile, U32(MARLIN_TILE_BYTES), at);
    at = ptx_mad_wide_u32(k, q->at.lane, U32(16), at);
    ptx_u32 step = ptx_mov_u32(k, q->at.warp);
    ptx_section(k, "each nibble to its place");
    ptx_for(k, step, U32(steps), U32(WARPS)) {
        ptx_nounroll(k);
        pack_step(q, lane, step, at);
    }
}

void marlin_repack_emit_columns(struct repack *q, ptx_module *module)
{
    marlin_repack_begin(q, module, q->columns.bytes);
    q->strip = gemm_divide(q->k, q->at.cta, TILES);
    q->tile = ptx_and_b32(q->k, q->at.cta, U32(TILES - 1));
    copy_columns(q);
    pack(q);
    ptx_kernel_end(q->k);
}
