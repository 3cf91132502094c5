/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Q4_K weights: from global memory through a ring in shared memory, and from nibbles to A fragments.
 *
 * Each warp has a ring of its own, `stages` super-blocks of its 16 rows deep, filled by 16-byte
 * cp.async; no other warp touches it, so a warp barrier is all the synchronisation there is. A
 * row's 144 bytes take 160 in the ring, which spreads the rows over the banks.
 *
 * mma.m16n8k16 wants of each lane, for rows `group` and `group + 8`, four weights of one
 * sub-block. The order of K within a product is free as long as A and B agree, so each lane takes
 * 8 consecutive bytes of every 32: 8 weights of the low-nibble sub-block and 8 of the high one,
 * two products' worth of each.
 *
 * A nibble becomes a weight in two instructions for two: `and` leaves q in the low bits of each
 * half, which read as f16 is the subnormal q·2⁻²⁴ (16·q·2⁻²⁴ for a high nibble), and one
 * mul.f16x2 by the sub-block's scale gives sc·q·2⁻²⁴, at most 945·2⁻²⁴, exactly. The whole
 * super-block then accumulates in one f32 accumulator; d comes in once at its end. The mins are
 * eight more terms: Σ_j m_j · (sum of x over sub-block j), one mma.m16n8k8.
 */
#include "emit.h"

/* ---- the stream of weights ---- */

/* Where the tile's matrix starts and ends: rows past its last repeat the last. */
struct matrix {
    ptx_u64 base[2]; /* of the tile's first and second 8 rows */
    ptx_u32 first[2], last;
};

static struct matrix locate_matrix(struct kernel *q, ptx_u32 tile)
{
    ptx_kernel *k = q->k;
    const ptxgen_rmsnorm_q4k_spec *spec = q->spec;
    bool gated = spec->epilogue == PTXGEN_EPILOGUE_SWIGLU;
    struct matrix m = {.base = {q->weights[0], gated ? q->weights[1] : q->weights[0]}};
    m.last = ptx_mov_u32(k, U32(spec->n[0] - 1));
    uint32_t before = 0;
    ptx_u32 local = tile;
    for (uint32_t i = 1; i < tiled_matrices(spec); i++) {
        before += matrix_tiles(spec, i - 1);
        ptx_pred here = ptx_setp_ge_u32(k, tile, U32(before));
        ptx_u32 within = ptx_sub_u32(k, tile, U32(before));
        local = ptx_selp_u32(k, within, local, here);
        m.last = ptx_selp_u32(k, U32(spec->n[i] - 1), m.last, here);
        m.base[0] = m.base[1] = ptx_selp_u64(k, q->weights[i], m.base[0], here);
    }
    m.first[0] = ptx_mul_lo_u32(k, local, U32(matrix_tile_rows(spec)));
    m.first[1] = gated ? m.first[0] : ptx_add_u32(k, m.first[0], U32(8));
    return m;
}

/* A lane copies 16-byte pieces lane, lane + 32, … of the 16 × 9 that a super-block of a tile has. */
static void locate_pieces(struct kernel *q, struct stream *s)
{
    ptx_kernel *k = q->k;
    uint32_t row_bytes = super_blocks(q->spec) * SUPER_BLOCK_BYTES;
    struct matrix m = locate_matrix(q, s->tile);
    ptx_u32 skipped = ptx_mul_lo_u32(k, q->at.wk, U32(SUPER_BLOCK_BYTES));
    for (uint32_t i = 0; i < LANE_PIECES; i++) {
        ptx_u32 piece = ptx_add_u32(k, q->at.lane, U32(32 * i));
        ptx_u32 row = ptx_div_u32(k, piece, U32(ROW_PIECES));
        ptx_u32 column = ptx_rem_u32(k, piece, U32(ROW_PIECES));
        ptx_pred second = ptx_setp_ge_u32(k, row, U32(8));
        ptx_u32 in_half = ptx_and_b32(k, row, U32(7));
        ptx_u32 first = ptx_selp_u32(k, m.first[1], m.first[0], second);
        ptx_u64 base = ptx_selp_u64(k, m.base[1], m.base[0], second);
        ptx_u32 wanted = ptx_add_u32(k, first, in_half);
        ptx_u32 real = ptx_min_u32(k, wanted, m.last);
        ptx_u32 offset = ptx_mad_lo_u32(k, column, U32(16), skipped);
        ptx_u64 start = ptx_mad_wide_u32(k, real, U32(row_bytes), base);
        ptx_add_u64_to(k, s->piece[i], start, ptx_cvt_u64_u32(k, offset));
    }
}

struct stream start_stream(struct kernel *q)
{
    ptx_kernel *k = q->k;
    struct stream s;
    s.tile = ptx_mad_lo_u32(k, q->at.wr, U32(q->v->grid), q->at.cta);
    s.super_block = ptx_mov_u32(k, q->at.wk);
    for (uint32_t i = 0; i < LANE_PIECES; i++) {
        s.piece[i] = ptx_mov_u64(k, U64(0));
        ptx_u32 piece = ptx_add_u32(k, q->at.lane, U32(32 * i));
        ptx_u32 row = ptx_div_u32(k, piece, U32(ROW_PIECES));
        ptx_u32 column = ptx_rem_u32(k, piece, U32(ROW_PIECES));
        ptx_u32 to = ptx_mul_lo_u32(k, row, U32(RING_ROW_BYTES));
        s.slot_offset[i] = ptx_mad_lo_u32(k, column, U32(16), to);
    }
    s.ring = ptx_mad_lo_u32(k, q->at.warp, U32(q->v->stages * STAGE_BYTES), q->sh.rings);
    s.ring_end = ptx_add_u32(k, s.ring, U32(q->v->stages * STAGE_BYTES));
    s.fill = ptx_mov_u32(k, s.ring);
    locate_pieces(q, &s);
    return s;
}

/* One super-block on; past the row's end, the next round's tile. */
static void advance(struct kernel *q, struct stream *s)
{
    ptx_kernel *k = q->k;
    ptx_add_u32_to(k, s->super_block, s->super_block, U32(q->v->wk));
    for (int i = 0; i < LANE_PIECES; i++)
        ptx_add_u64_to(k, s->piece[i], s->piece[i], U64(q->v->wk * SUPER_BLOCK_BYTES));
    uint32_t turn_end = turns(q->spec, q->v->wk) * q->v->wk;
    if (q->v->rounds > 1)
        ptx_if(k, ptx_setp_ge_u32(k, s->super_block, U32(turn_end))) {
            ptx_mov_u32_to(k, s->super_block, q->at.wk);
            ptx_add_u32_to(k, s->tile, s->tile, U32(q->v->grid * q->v->wr));
            locate_pieces(q, s);
        }
}

ptx_u32 next_slot(struct kernel *q, const struct stream *s, ptx_u32 slot)
{
    ptx_u32 next = ptx_add_u32(q->k, slot, U32(STAGE_BYTES));
    ptx_pred at_end = ptx_setp_eq_u32(q->k, next, s->ring_end);
    return ptx_selp_u32(q->k, s->ring, next, at_end);
}

void emit_load(struct kernel *q, struct stream *s)
{
    ptx_kernel *k = q->k;
    ptx_pred in_row = ptx_setp_lt_u32(k, s->super_block, U32(super_blocks(q->spec)));
    ptx_pred valid = ptx_setp_bool_lt_u32(k, s->tile, U32(q->plan->tiles), in_row);
    for (int i = 0; i < LANE_PIECES; i++) {
        ptx_u32 to = ptx_add_u32(k, s->fill, s->slot_offset[i]);
        if (i == LANE_PIECES - 1) /* 144 pieces are four and a half of the warp's */
            valid = ptx_setp_bool_lt_u32(k, q->at.lane, U32(16), valid);
        ptx_guarded(k, valid)
            ptx_cp_async_cg(k, to, 0, s->piece[i], 0, 16);
    }
    ptx_cp_async_commit_group(k);
    ptx_mov_u32_to(k, s->fill, next_slot(q, s, s->fill));
    advance(q, s);
}

/* ---- scales and mins ---- */

/* The 6-bit scales and mins of one row's eight sub-blocks, one a byte; .high holds 4 … 7. */
struct row_scales {
    ptx_u32 scale_low, scale_high, min_low, min_high;
    ptx_f32 d, dmin;
};

static ptx_u32 join_high(ptx_kernel *k, ptx_u32 nibbles, ptx_u32 top)
{
    ptx_u32 low = ptx_and_b32(k, nibbles, U32(0x0F0F0F0F));
    ptx_u32 shifted = ptx_shr_u32(k, top, U32(2));
    ptx_u32 high = ptx_and_b32(k, shifted, U32(0x30303030));
    return ptx_or_b32(k, low, high);
}

static struct row_scales unpack_scales(ptx_kernel *k, const ptx_u32 header[4])
{
    struct row_scales s;
    ptx_f16 pair[2];
    ptx_unpack_f16x2(k, pair, ptx_u32_as_f16x2(header[0]));
    s.d = ptx_cvt_f32_f16(k, pair[0]);
    s.dmin = ptx_cvt_f32_f16(k, pair[1]);
    s.scale_low = ptx_and_b32(k, header[1], U32(0x3F3F3F3F));
    s.min_low = ptx_and_b32(k, header[2], U32(0x3F3F3F3F));
    s.scale_high = join_high(k, header[3], header[1]);
    s.min_high = join_high(k, ptx_shr_u32(k, header[3], U32(4)), header[2]);
    return s;
}

/* The sub-block's scale in both halves; for high nibbles, which stand 4 bits up, a 16th of it. */
static ptx_f16x2 scale_pair(struct kernel *q, const struct row_scales *s, int sub_block)
{
    ptx_kernel *k = q->k;
    ptx_u32 bytes = sub_block < 4 ? s->scale_low : s->scale_high;
    /* 0x64 above a byte b makes the f16 1024 + b. */
    ptx_u32 raised = ptx_prmt_b32(k, bytes, U32(0x64646464), U32(0x4040u + 0x0101u * (unsigned)(sub_block & 3)));
    bool high = sub_block & 1;
    ptx_f16x2 factor = ptx_u32_as_f16x2(ptx_mov_u32(k, U32(high ? 0x2C002C00 : 0x3C003C00)));
    ptx_f16x2 minus = ptx_u32_as_f16x2(ptx_mov_u32(k, U32(high ? 0xD400D400 : 0xE400E400)));
    return ptx_fma_f16x2(k, ptx_u32_as_f16x2(raised), factor, minus);
}

/* A of the mins' product: this lane's two of the row's eight, as subnormals m·2⁻²⁴. */
static ptx_u32 min_fragment(struct kernel *q, const struct row_scales *s)
{
    ptx_kernel *k = q->k;
    ptx_pred first_half = ptx_setp_lt_u32(k, q->at.quad, U32(2));
    ptx_u32 bytes = ptx_selp_u32(k, s->min_low, s->min_high, first_half);
    ptx_u32 second_pair = ptx_and_b32(k, q->at.quad, U32(1));
    ptx_u32 selector = ptx_mad_lo_u32(k, second_pair, U32(0x0202), U32(0x4140));
    return ptx_prmt_b32(k, bytes, U32(0), selector);
}

/* ---- the product ---- */

struct tile_product {
    ptx_f32 c[2][4]; /* by n-tile: rows group and group + 8, hi and lo column of the lane's token */
};

static void multiply_sub_block(struct kernel *q, const ptx_u32 nibbles[2][2],
                               const struct row_scales s[2], int sub_block, ptx_u32 record_lane,
                               struct tile_product *p)
{
    ptx_kernel *k = q->k;
    ptx_u32 b[2][4];
    ptx_f16x2 scale[2];
    for (int n = 0; n < n_tiles(q); n++)
        ptx_ld_shared_v4_u32(k, b[n], record_lane,
                             (int)(q->v->tokens * 128) * sub_block + 512 * n);
    for (int r = 0; r < 2; r++)
        scale[r] = scale_pair(q, &s[r], sub_block);
    ptx_u32 mask = U32(sub_block & 1 ? 0x00F000F0 : 0x000F000F);
    ptx_for_static(step, 2) {
        ptx_u32 a[4];
        for (int r = 0; r < 2; r++) {
            ptx_u32 bytes = nibbles[r][step];
            ptx_u32 even = ptx_and_b32(k, bytes, mask);
            ptx_u32 shifted = ptx_shr_u32(k, bytes, U32(8));
            ptx_u32 odd = ptx_and_b32(k, shifted, mask);
            a[r] = ptx_f16x2_as_u32(ptx_mul_f16x2(k, ptx_u32_as_f16x2(even), scale[r]));
            a[r + 2] = ptx_f16x2_as_u32(ptx_mul_f16x2(k, ptx_u32_as_f16x2(odd), scale[r]));
        }
        for (int n = 0; n < n_tiles(q); n++)
            ptx_mma_m16n8k16_f32_f16(k, p->c[n], a, &b[n][2 * step], p->c[n]);
    }
}

/* hi + lo · 2⁻¹¹, times `power`: what the two columns of a token stand for. */
static ptx_f32 join_columns(ptx_kernel *k, ptx_f32 hi, ptx_f32 lo, float power)
{
    ptx_f32 scaled = ptx_mul_f32(k, hi, F32(power));
    return ptx_fma_f32(k, lo, F32(power / 2048), scaled);
}

void emit_multiply(struct kernel *q, ptx_u32 slot, ptx_u32 record, struct sums *sums)
{
    ptx_kernel *k = q->k;
    uint32_t tokens = q->v->tokens;
    /* Columns past the last token repeat earlier ones, so that nothing need be zeroed. */
    ptx_u32 column = ptx_and_b32(k, q->at.group, U32(tokens >= 4 ? 7 : 2 * tokens - 1));
    ptx_u32 place = ptx_mad_lo_u32(k, column, U32(4), q->at.quad);
    ptx_u32 b_lane = ptx_mad_lo_u32(k, place, U32(16), record);
    ptx_u32 min_lane = ptx_mad_lo_u32(k, place, U32(4), record);
    ptx_u32 token = ptx_and_b32(k, q->at.quad, U32(tokens >= 4 ? 3 : tokens - 1));
    ptx_u32 scale_lane = ptx_mad_lo_u32(k, token, U32(4), record);
    ptx_u32 row_start = ptx_mad_lo_u32(k, q->at.group, U32(RING_ROW_BYTES), slot);
    ptx_u32 quad_start = ptx_mad_lo_u32(k, q->at.quad, U32(8), row_start);

    ptx_f32 zero = ptx_mov_f32(k, F32(0));
    struct tile_product product, mins;
    for (int n = 0; n < n_tiles(q); n++)
        for (int i = 0; i < 4; i++)
            product.c[n][i] = mins.c[n][i] = zero;

    struct row_scales scales[2];
    for (int r = 0; r < 2; r++) {
        ptx_u32 header[4];
        ptx_ld_shared_v4_u32(k, header, row_start, 8 * RING_ROW_BYTES * r);
        scales[r] = unpack_scales(k, header);
    }
    ptx_for_static(pair, 4) {
        ptx_u32 nibbles[2][2];
        for (int r = 0; r < 2; r++)
            ptx_ld_shared_v2_u32(k, nibbles[r], quad_start, 8 * RING_ROW_BYTES * r + 16 + 32 * pair);
        ptx_for_static(half, 2)
            multiply_sub_block(q, nibbles, scales, 2 * pair + half, b_lane, &product);
    }

    ptx_u32 a_min[2];
    for (int r = 0; r < 2; r++)
        a_min[r] = min_fragment(q, &scales[r]);
    for (int n = 0; n < n_tiles(q); n++) {
        ptx_u32 b_min = ptx_ld_shared_u32(k, min_lane, (int)record_bmin(tokens) + 128 * n);
        ptx_f32 power = ptx_ld_shared_f32(k, scale_lane, (int)record_scale(tokens) + 16 * n);
        ptx_mma_m16n8k8_f32_f16(k, mins.c[n], a_min, &b_min, mins.c[n]);
        for (int r = 0; r < 2; r++) {
            ptx_f32 main = join_columns(k, product.c[n][2 * r], product.c[n][2 * r + 1], 0x1p24f);
            ptx_f32 below = join_columns(k, mins.c[n][2 * r], mins.c[n][2 * r + 1], 0x1p30f);
            ptx_f32 d = ptx_mul_f32(k, scales[r].d, power);
            ptx_f32 dmin = ptx_mul_f32(k, scales[r].dmin, power);
            ptx_fma_f32_to(k, sums->acc[n][r], d, main, sums->acc[n][r]);
            ptx_f32 minus = ptx_neg_f32(k, dmin);
            ptx_fma_f32_to(k, sums->acc[n][r], minus, below, sums->acc[n][r]);
        }
    }
}
