/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Q4_K weights: from global memory through a ring in shared memory, and from nibbles to A fragments.
 *
 * Each warp has a ring of its own, `stages` pairs of super-blocks of its 16 rows deep, filled by two
 * tensor copies of 8 rows (sm_90) or by 16-byte cp.async, two lanes a row. No other warp touches
 * it, so warp barriers are all the synchronisation there is. Pieces of 288 bytes a row are what an
 * H100 wants: a mere copy loop of 144-byte pieces reads at 2.59 TB/s there (16-byte loads to
 * registers 2.63), of 288-byte pieces at 2.70 by cp.async and 2.81 by bulk copies, of 2304-byte
 * pieces at 2.84. Bulk copies of a row each cost the warp a loop of 16 turns; a tensor copy does not.
 *
 * mma.m16n8k32 wants of each lane, for rows `group` and `group + 8`, eight bytes of one sub-block. The
 * order of K within a product is free as long as A and B agree, so each lane takes 8 consecutive
 * bytes of every 32: `and` makes four weights of the low-nibble sub-block from a register, shift
 * and `and` four of the high one. q times the activations' planes accumulates in exact integers,
 * and so does sc times that over the super-block (at most 8·63·32·15·128 < 2²⁵); d comes in at its
 * end, in f32. The mins are eight more terms: Σ_j m_j · (sum of x over sub-block j), one
 * mma.m16n8k8 in f16.
 *
 * f16 products were tried first. q as the subnormal q·2⁻²⁴ costs as little to make, but tensor cores
 * align products by exponents that subnormals do not normalise, and ten bits are lost; q·sc made
 * normal by a mul.f16x2 is exact, and costs three times the instructions of this.
 */
#include "emit.h"

/* ---- the stream of weights ---- */

static bool tensor(const struct kernel *q)
{
    return has_tensor_copies(&q->plan->target);
}

static ptx_u32 tile_first(struct kernel *q, const struct stream *s)
{
    return ptx_mad_lo_u32(q->k, s->tile, U32(tile_outputs(q->spec)), q->first_output);
}

/* cp.async: the lane's row of the tile; rows past the matrix's last repeat it. */
static void locate_row(struct kernel *q, struct stream *s)
{
    ptx_kernel *k = q->k;
    ptx_u32 row = ptx_shr_u32(k, q->at.lane, U32(1));
    ptx_u32 odd = ptx_and_b32(k, q->at.lane, U32(1));
    struct place at = locate(q, tile_first(q, s), q->weights, q->y_stride);
    ptx_u32 in_matrix = is_gated(q->spec) ? ptx_and_b32(k, row, U32(7)) : row;
    if (is_gated(q->spec))
        at.address = ptx_selp_u64(k, q->weights[1], q->weights[0], ptx_setp_ge_u32(k, row, U32(8)));
    ptx_u32 wanted = ptx_add_u32(k, at.row, in_matrix);
    ptx_u32 last = ptx_sub_u32(k, at.rows, U32(1));
    ptx_u32 real = ptx_min_u32(k, wanted, last);
    ptx_u32 row_bytes = U32(super_blocks(q->spec) * SUPER_BLOCK_BYTES);
    ptx_u64 start = ptx_mad_wide_u32(k, real, row_bytes, at.address);
    start = ptx_mad_wide_u32(k, odd, U32(16), start); /* two lanes take a row's pieces in turns */
    ptx_mad_wide_u32_to(k, s->source, s->pair, U32(PAIR_BYTES), start);
}

/* Tensor copies: the maps and first rows of the tile's halves; the copies fill in zeros past the end. */
static void locate_boxes(struct kernel *q, struct stream *s)
{
    ptx_kernel *k = q->k;
    struct place at = locate(q, tile_first(q, s), q->maps, q->y_stride);
    bool gated = is_gated(q->spec);
    for (int half = 0; half < 2; half++) {
        ptx_mov_u64_to(k, s->maps[half], half && gated ? q->maps[1] : at.address);
        ptx_mov_u32_to(k, s->rows[half], half && !gated ? ptx_add_u32(k, at.row, U32(BOX_ROWS)) : at.row);
    }
}

static void locate_tile(struct kernel *q, struct stream *s)
{
    if (tensor(q))
        locate_boxes(q, s);
    else
        locate_row(q, s);
}

static void init_barriers(struct kernel *q, const struct stream *s)
{
    ptx_kernel *k = q->k;
    ptx_if(k, ptx_setp_eq_u32(k, q->at.lane, U32(0))) {
        for (uint32_t i = 0; i < q->v->stages; i++)
            ptx_mbarrier_init(k, s->barriers, (int)(8 * i), U32(1));
        ptx_fence_mbarrier_init_release_cluster(k);
    }
    ptx_bar_warp_sync(k, ALL_LANES);
}

struct stream start_stream(struct kernel *q)
{
    ptx_kernel *k = q->k;
    struct stream s;
    s.tile = ptx_mov_u32(k, q->at.wr);
    s.pair = ptx_mov_u32(k, q->at.wk);
    s.source = ptx_mov_u64(k, U64(0));
    for (int half = 0; half < 2; half++) {
        s.maps[half] = ptx_mov_u64(k, U64(0));
        s.rows[half] = ptx_mov_u32(k, U32(0));
    }
    s.fill.index = ptx_mov_u32(k, U32(0));
    s.fill.parity = ptx_mov_u32(k, U32(0));
    s.ring = ptx_mad_lo_u32(k, q->at.warp, U32(q->v->stages * STAGE_BYTES), q->sh.rings);
    s.barriers = s.ring;
    if (tensor(q)) {
        s.barriers = ptx_mad_lo_u32(k, q->at.warp, U32(q->v->stages * 8), q->sh.ring_barriers);
        init_barriers(q, &s);
    }
    locate_tile(q, &s);
    return s;
}

void advance_slot(struct kernel *q, struct slot *slot)
{
    ptx_kernel *k = q->k;
    ptx_add_u32_to(k, slot->index, slot->index, U32(1));
    ptx_pred wraps = ptx_setp_eq_u32(k, slot->index, U32(q->v->stages));
    ptx_selp_u32_to(k, slot->index, U32(0), slot->index, wraps);
    if (tensor(q)) {
        ptx_u32 other = ptx_xor_b32(k, slot->parity, U32(1));
        ptx_selp_u32_to(k, slot->parity, other, slot->parity, wraps);
    }
}

ptx_u32 slot_address(struct kernel *q, const struct stream *s, struct slot slot)
{
    return ptx_mad_lo_u32(q->k, slot.index, U32(STAGE_BYTES), s->ring);
}

/* One lane sends for both halves; they arrive whole, zeros included. */
static void copy_boxes(struct kernel *q, const struct stream *s, ptx_u32 stage)
{
    ptx_kernel *k = q->k;
    ptx_u32 barrier = ptx_mad_lo_u32(k, s->fill.index, U32(8), s->barriers);
    ptx_u32 column = ptx_mul_lo_u32(k, s->pair, U32(PAIR_BYTES / 4));
    ptx_guarded(k, ptx_setp_eq_u32(k, q->at.lane, U32(0))) {
        ptx_mbarrier_arrive_expect_tx(k, barrier, 0, U32(STAGE_BYTES));
        for (int half = 0; half < 2; half++) {
            ptx_s32 corner[2] = {ptx_u32_as_s32(column), ptx_u32_as_s32(s->rows[half])};
            ptx_cp_async_bulk_tensor_2d_g2s(k, stage, half * BOX_ROWS * PAIR_BYTES, s->maps[half], corner,
                                            barrier, 0);
        }
    }
}

/* Two lanes a row; at the end of an odd number of super-blocks only one is left to copy. */
static void copy_pieces(struct kernel *q, const struct stream *s, ptx_u32 stage)
{
    ptx_kernel *k = q->k;
    ptx_u32 row = ptx_shr_u32(k, q->at.lane, U32(1));
    ptx_u32 odd = ptx_and_b32(k, q->at.lane, U32(1));
    ptx_u32 piece = ptx_mul_lo_u32(k, odd, U32(16));
    ptx_u32 in_stage = ptx_mad_lo_u32(k, row, U32(PAIR_BYTES), piece);
    ptx_u32 to = ptx_add_u32(k, stage, in_stage);
    bool uneven = super_blocks(q->spec) % PAIR;
    ptx_pred whole = ptx_setp_ne_u32(k, s->pair, U32(uneven ? pairs(q->spec) - 1 : pairs(q->spec)));
    for (int i = 0; i < PAIR_BYTES / 32; i++) {
        if (!uneven || 32 * (i + 1) <= SUPER_BLOCK_BYTES) {
            ptx_cp_async_cg(k, to, 32 * i, s->source, 32 * i, 16);
            continue;
        }
        ptx_pred first_half = whole; /* the piece that straddles the middle: the even lane's counts */
        if (32 * i < SUPER_BLOCK_BYTES)
            first_half = ptx_or_pred(k, whole, ptx_setp_eq_u32(k, odd, U32(0)));
        ptx_guarded(k, first_half)
            ptx_cp_async_cg(k, to, 32 * i, s->source, 32 * i, 16);
    }
}

/* One pair on; past the row's end, the next round's tile. */
static void advance(struct kernel *q, struct stream *s)
{
    ptx_kernel *k = q->k;
    ptx_add_u32_to(k, s->pair, s->pair, U32(q->v->wk));
    if (!tensor(q))
        ptx_add_u64_to(k, s->source, s->source, U64(q->v->wk * PAIR_BYTES));
    if (q->v->rounds == 1)
        return;
    uint32_t end = turns(q->spec, q->v->wk) * q->v->wk;
    ptx_if(k, ptx_setp_ge_u32(k, s->pair, U32(end))) {
        ptx_mov_u32_to(k, s->pair, q->at.wk);
        ptx_add_u32_to(k, s->tile, s->tile, U32(q->v->wr));
        locate_tile(q, s);
    }
}

void emit_load(struct kernel *q, struct stream *s)
{
    ptx_kernel *k = q->k;
    ptx_u32 first = tile_first(q, s);
    ptx_pred in_row = ptx_setp_lt_u32(k, s->pair, U32(pairs(q->spec)));
    ptx_if(k, ptx_setp_bool_lt_u32(k, first, q->end_output, in_row)) {
        ptx_u32 stage = slot_address(q, s, s->fill);
        if (tensor(q))
            copy_boxes(q, s, stage);
        else
            copy_pieces(q, s, stage);
        advance_slot(q, &s->fill);
    }
    if (!tensor(q))
        ptx_cp_async_commit_group(k);
    advance(q, s);
}

void emit_turn_barrier(struct kernel *q)
{
    if (!tensor(q))
        ptx_cp_async_wait_group(q->k, (int)q->v->stages - 2);
    ptx_bar_warp_sync(q->k, ALL_LANES);
}

void emit_wait(struct kernel *q, const struct stream *s, struct slot slot)
{
    if (!tensor(q))
        return;
    ptx_kernel *k = q->k;
    ptx_u32 barrier = ptx_mad_lo_u32(k, slot.index, U32(8), s->barriers);
    ptx_loop(k, spin) {
        ptx_pred done = ptx_mbarrier_try_wait_parity(k, barrier, 0, slot.parity);
        ptx_loop_break_if(&spin, done, false);
    }
}

/* ---- scales and mins ---- */

/* The 6-bit scales and mins of one row's eight sub-blocks, one a byte; [1] holds 4 … 7. */
struct row_scales {
    ptx_u32 scale[2], min[2];
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
    ptx_f16 halves[2];
    ptx_unpack_f16x2(k, halves, ptx_u32_as_f16x2(header[0]));
    s.d = ptx_cvt_f32_f16(k, halves[0]);
    s.dmin = ptx_cvt_f32_f16(k, halves[1]);
    s.scale[0] = ptx_and_b32(k, header[1], U32(0x3F3F3F3F));
    s.min[0] = ptx_and_b32(k, header[2], U32(0x3F3F3F3F));
    s.scale[1] = join_high(k, header[3], header[1]);
    s.min[1] = join_high(k, ptx_shr_u32(k, header[3], U32(4)), header[2]);
    return s;
}

/* A of the mins' product: this lane's two of the row's eight, by way of 0x64 above m: 1024 + m. */
static ptx_u32 min_fragment(struct kernel *q, const struct row_scales *s)
{
    ptx_kernel *k = q->k;
    ptx_pred first_half = ptx_setp_lt_u32(k, q->at.quad, U32(2));
    ptx_u32 bytes = ptx_selp_u32(k, s->min[0], s->min[1], first_half);
    ptx_u32 second_pair = ptx_and_b32(k, q->at.quad, U32(1));
    ptx_u32 selector = ptx_mad_lo_u32(k, second_pair, U32(0x0202), U32(0x4140));
    ptx_u32 raised = ptx_prmt_b32(k, bytes, U32(0x64), selector);
    ptx_f16x2 minus = ptx_u32_as_f16x2(ptx_mov_u32(k, U32(0xE400E400)));
    return ptx_f16x2_as_u32(ptx_add_f16x2(k, ptx_u32_as_f16x2(raised), minus));
}

/* ---- the product ---- */

/* A lane's shared addresses for one super-block, and what its columns stand for. */
struct operands {
    ptx_u32 header, nibbles; /* weights: row `group`; quad lane's bytes */
    ptx_u32 b, b_min, scale; /* activations */
    ptx_pred is_high_column; /* of B: planes 2, 3 */
    ptx_f32 plane_weight;    /* of C: 1 or 2¹⁶ */
};

struct product {
    ptx_s32 p[MAX_N_TILES][4]; /* [n-tile][row × plane of the lane's two]: Σ sc·q·i */
};

/* Sub-block `index` of the four that `scale` holds: a row's 32 weights, 8 a lane in `a`. */
static void multiply_sub_block(struct kernel *q, const ptx_u32 a[4], ptx_u32 b[MAX_N_TILES][4],
                               const ptx_u32 scale[2], unsigned index, ptx_s32 zero, struct product *p)
{
    ptx_kernel *k = q->k;
    ptx_s32 sc[2], none[4] = {zero, zero, zero, zero};
    for (int r = 0; r < 2; r++)
        sc[r] = ptx_u32_as_s32(ptx_prmt_b32(k, scale[r], U32(0), U32(0x4440u + index)));
    for (int n = 0; n < n_tiles(q); n++) {
        ptx_s32 c[4];
        ptx_mma_m16n8k32_s32_u8_s8(k, c, a, &b[n][2 * (index & 1)], none);
        for (int i = 0; i < 4; i++)
            ptx_mad_lo_s32_to(k, p->p[n][i], sc[i / 2], c[i], p->p[n][i]);
    }
}

/* 64 weights of each row: sub-blocks `index` (low nibbles) and `index + 1` (high nibbles). */
static void multiply_pair(struct kernel *q, const struct operands *at, const ptx_u32 scale[2],
                          unsigned index, ptx_s32 zero, struct product *p)
{
    ptx_kernel *k = q->k;
    ptx_u32 bytes[2][2], low[4], high[4], b[MAX_N_TILES][4], mask = U32(0x0F0F0F0F);
    for (int r = 0; r < 2; r++)
        ptx_ld_shared_v2_u32(k, bytes[r], at->nibbles, BOX_ROWS * PAIR_BYTES * r + 16 * (int)index);
    for (int n = 0; n < n_tiles(q); n++)
        ptx_ld_shared_v4_u32(k, b[n], at->b, (int)(index / 2 * q->v->tokens * 256) + 512 * n);
    for (int i = 0; i < 4; i++) { /* rows group, group + 8; then their second words */
        ptx_u32 word = bytes[i & 1][i / 2];
        low[i] = ptx_and_b32(k, word, mask);
        ptx_u32 shifted = ptx_shr_u32(k, word, U32(4));
        high[i] = ptx_and_b32(k, shifted, mask);
    }
    multiply_sub_block(q, low, b, scale, index, zero, p);
    multiply_sub_block(q, high, b, scale, index + 1, zero, p);
}

/* acc += d·2^e·(products) − dmin·2^e·(mins). */
static void accumulate(struct kernel *q, const struct operands *at, const struct row_scales scales[2],
                       const struct product *p, struct sums *sums)
{
    ptx_kernel *k = q->k;
    uint32_t tokens = q->v->tokens;
    ptx_u32 a_min[2];
    for (int r = 0; r < 2; r++)
        a_min[r] = min_fragment(q, &scales[r]);
    ptx_f32 zero = ptx_mov_f32(k, F32(0));
    for (int n = 0; n < n_tiles(q); n++) {
        ptx_f32 mins[4], none[4] = {zero, zero, zero, zero};
        ptx_u32 b_min = ptx_ld_shared_u32(k, at->b_min, (int)record_bmin(tokens) + 64 * n);
        b_min = ptx_selp_u32(k, U32(0), b_min, at->is_high_column);
        ptx_f32 power = ptx_ld_shared_f32(k, at->scale, (int)record_scale(tokens) + 8 * n);
        ptx_mma_m16n8k8_f32_f16(k, mins, a_min, &b_min, none);
        ptx_f32 plane_power = ptx_mul_f32(k, power, at->plane_weight);
        for (int r = 0; r < 2; r++) {
            ptx_f32 first = ptx_cvt_f32_s32(k, p->p[n][2 * r]), second = ptx_cvt_f32_s32(k, p->p[n][2 * r + 1]);
            ptx_f32 main = ptx_fma_f32(k, second, F32(256), first);
            ptx_f32 hi = ptx_mul_f32(k, mins[2 * r], F32(-0x1p20f));
            ptx_f32 below = ptx_fma_f32(k, mins[2 * r + 1], F32(-0x1p9f), hi);
            ptx_f32 d = ptx_mul_f32(k, scales[r].d, plane_power);
            ptx_f32 dmin = ptx_mul_f32(k, scales[r].dmin, power);
            ptx_fma_f32_to(k, sums->acc[n][r], d, main, sums->acc[n][r]);
            ptx_fma_f32_to(k, sums->acc[n][r], dmin, below, sums->acc[n][r]);
        }
    }
}

static struct operands lane_operands(struct kernel *q, ptx_u32 stage, ptx_u32 record)
{
    ptx_kernel *k = q->k;
    uint32_t tokens = q->v->tokens;
    struct operands at;
    /* Columns are four planes of two tokens; of one token only, they come twice. */
    ptx_u32 column = tokens >= BOX_TOKENS ? q->at.group : ptx_and_b32(k, q->at.group, U32(PLANES - 1));
    ptx_u32 cell = ptx_mad_lo_u32(k, column, U32(4), q->at.quad);
    at.b = ptx_mad_lo_u32(k, cell, U32(16), record);
    /* The mins' hi and lo stand in the columns of planes 0 and 1; those of 2 and 3 are zero. */
    ptx_u32 column_token = ptx_shr_u32(k, column, U32(2)), part = ptx_and_b32(k, column, U32(1));
    ptx_u32 row = ptx_mad_lo_u32(k, column_token, U32(2), part);
    ptx_u32 min_cell = ptx_mad_lo_u32(k, row, U32(4), q->at.quad);
    at.b_min = ptx_mad_lo_u32(k, min_cell, U32(4), record);
    ptx_u32 high_column = ptx_and_b32(k, q->at.group, U32(2));
    at.is_high_column = ptx_setp_ne_u32(k, high_column, U32(0));
    ptx_u32 lane_token = tokens >= BOX_TOKENS ? ptx_shr_u32(k, q->at.quad, U32(1)) : U32(0);
    at.scale = ptx_mad_lo_u32(k, lane_token, U32(4), record);
    ptx_u32 high_planes = ptx_and_b32(k, q->at.quad, U32(1));
    ptx_pred low_planes = ptx_setp_eq_u32(k, high_planes, U32(0));
    at.plane_weight = ptx_selp_f32(k, F32(1), F32(65536), low_planes);
    at.header = ptx_mad_lo_u32(k, q->at.group, U32(PAIR_BYTES), stage);
    at.nibbles = ptx_mad_lo_u32(k, q->at.quad, U32(8), at.header);
    return at;
}

static void multiply_super_block(struct kernel *q, struct operands at, struct sums *sums)
{
    ptx_kernel *k = q->k;
    struct row_scales scales[2];
    struct product product;
    ptx_s32 zero = ptx_mov_s32(k, ptx_imm_s32(0));
    for (int n = 0; n < n_tiles(q); n++)
        for (int i = 0; i < 4; i++)
            product.p[n][i] = ptx_mov_s32(k, zero);
    ptx_u32 scale[2];
    for (int r = 0; r < 2; r++) {
        ptx_u32 header[4];
        ptx_ld_shared_v4_u32(k, header, at.header, BOX_ROWS * PAIR_BYTES * r);
        scales[r] = unpack_scales(k, header);
        scale[r] = ptx_mov_u32(k, scales[r].scale[0]);
    }
    struct operands step = at;
    step.nibbles = ptx_add_u32(k, at.nibbles, U32(16));
    step.b = ptx_mov_u32(k, at.b);
    ptx_u32 part = ptx_mov_u32(k, U32(0));
    ptx_for(k, part, U32(2), U32(1)) { /* sub-blocks 0 … 3, then 4 … 7 */
        multiply_pair(q, &step, scale, 0, zero, &product);
        multiply_pair(q, &step, scale, 2, zero, &product);
        for (int r = 0; r < 2; r++)
            ptx_mov_u32_to(k, scale[r], scales[r].scale[1]);
        ptx_add_u32_to(k, step.nibbles, step.nibbles, U32(64));
        ptx_add_u32_to(k, step.b, step.b, U32(2 * q->v->tokens * 256));
    }
    accumulate(q, &at, scales, &product, sums);
}

void emit_multiply(struct kernel *q, ptx_u32 stage, ptx_u32 pair, ptx_u32 record, struct sums *sums)
{
    ptx_kernel *k = q->k;
    struct operands at = lane_operands(q, stage, record);
    ptx_u32 end = ptx_mov_u32(k, U32(PAIR));
    if (super_blocks(q->spec) % PAIR) {
        ptx_pred last = ptx_setp_eq_u32(k, pair, U32(pairs(q->spec) - 1));
        end = ptx_selp_u32(k, U32(1), U32(PAIR), last);
    }
    ptx_u32 super_block = ptx_mov_u32(k, U32(0));
    ptx_for(k, super_block, end, U32(1)) {
        ptx_nounroll(k); /* unrolled it is no faster, and takes the assembler half as long again */
        multiply_super_block(q, at, sums);
        ptx_u32 *const weights[] = {&at.header, &at.nibbles}, *const records[] = {&at.b, &at.b_min, &at.scale};
        for (int i = 0; i < 2; i++)
            ptx_add_u32_to(k, *weights[i], *weights[i], U32(SUPER_BLOCK_BYTES));
        for (int i = 0; i < 3; i++)
            ptx_add_u32_to(k, *records[i], *records[i], U32(record_bytes(q->v->tokens)));
    }
}
