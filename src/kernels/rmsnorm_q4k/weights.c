/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Q4_K weights: from global memory through a ring in shared memory, and from nibbles to A fragments.
 *
 * Each warp has a ring of its own, `stages` pairs of super-blocks of its 16 rows deep, filled by one
 * bulk copy a row (sm_90) or by 16-byte cp.async, two lanes a row. No other warp touches it, so
 * warp barriers are all the synchronisation there is. Pieces of 288 bytes are what an H100 wants:
 * a copy loop of 144-byte pieces reads at 2.59 TB/s there (16-byte loads to registers 2.63), of
 * 288-byte pieces at 2.70 by cp.async and 2.81 by bulk copies, of 2304-byte pieces at 2.84.
 *
 * mma.m16n8k16 wants of each lane, for rows `group` and `group + 8`, four weights of one
 * sub-block. The order of K within a product is free as long as A and B agree, so each lane takes
 * 8 consecutive bytes of every 32: 8 weights of the low-nibble sub-block and 8 of the high one,
 * two products' worth of each.
 *
 * A nibble becomes a weight in two instructions for two: `and` leaves q in the low bits of each
 * half, which read as f16 is the subnormal q·2⁻²⁴ (16·q·2⁻²⁴ for a high nibble), and one
 * mul.f16x2 by the sub-block's scale gives sc·q·2⁻²⁴, at most 945·2⁻²⁴, exactly. The whole
 * super-block then accumulates in f32; d comes in once at its end. The mins are eight more terms:
 * Σ_j m_j · (sum of x over sub-block j), one mma.m16n8k8.
 */
#include "emit.h"

/* ---- the stream of weights ---- */

static bool bulk(const struct kernel *q)
{
    return has_bulk_copies(&q->plan->target);
}

/* The lane's row of the tile; rows past the CTA's last output repeat it. */
static void locate_row(struct kernel *q, struct stream *s)
{
    ptx_kernel *k = q->k;
    bool gated = is_gated(q->spec);
    ptx_u32 row_bytes = U32(super_blocks(q->spec) * SUPER_BLOCK_BYTES);
    ptx_u32 row = bulk(q) ? ptx_and_b32(k, q->at.lane, U32(15)) : ptx_shr_u32(k, q->at.lane, U32(1));
    ptx_u32 in_matrix = gated ? ptx_and_b32(k, row, U32(7)) : row;
    ptx_u32 tile_first = ptx_mad_lo_u32(k, s->tile, U32(tile_outputs(q->spec)), q->first_output);
    ptx_u32 wanted = ptx_add_u32(k, tile_first, in_matrix);
    ptx_u32 last = ptx_sub_u32(k, q->end_output, U32(1));
    ptx_u32 output = ptx_min_u32(k, wanted, last);
    struct place at = locate(q, output, q->weights, q->y_stride);
    if (gated)
        at.address = ptx_selp_u64(k, q->weights[1], q->weights[0], ptx_setp_ge_u32(k, row, U32(8)));
    ptx_u64 start = ptx_mad_wide_u32(k, at.row, row_bytes, at.address);
    if (!bulk(q)) { /* two lanes a row take its 16-byte pieces in turns */
        ptx_u32 odd = ptx_and_b32(k, q->at.lane, U32(1));
        start = ptx_mad_wide_u32(k, odd, U32(16), start);
    }
    ptx_mad_wide_u32_to(k, s->source, s->pair, U32(PAIR_BYTES), start);
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
    s.fill.index = ptx_mov_u32(k, U32(0));
    s.fill.parity = ptx_mov_u32(k, U32(0));
    s.ring = ptx_mad_lo_u32(k, q->at.warp, U32(q->v->stages * STAGE_BYTES), q->sh.rings);
    s.barriers = s.ring;
    if (bulk(q)) {
        s.barriers = ptx_mad_lo_u32(k, q->at.warp, U32(q->v->stages * 8), q->sh.ring_barriers);
        init_barriers(q, &s);
    }
    locate_row(q, &s);
    return s;
}

void advance_slot(struct kernel *q, struct slot *slot)
{
    ptx_kernel *k = q->k;
    ptx_add_u32_to(k, slot->index, slot->index, U32(1));
    ptx_pred wraps = ptx_setp_eq_u32(k, slot->index, U32(q->v->stages));
    ptx_selp_u32_to(k, slot->index, U32(0), slot->index, wraps);
    if (bulk(q)) {
        ptx_u32 other = ptx_xor_b32(k, slot->parity, U32(1));
        ptx_selp_u32_to(k, slot->parity, other, slot->parity, wraps);
    }
}

ptx_u32 slot_address(struct kernel *q, const struct stream *s, struct slot slot)
{
    return ptx_mad_lo_u32(q->k, slot.index, U32(STAGE_BYTES), s->ring);
}

/* Bytes of a row's pair: at the end of an odd number of super-blocks only one is left. */
static ptx_u32 pair_bytes(struct kernel *q, ptx_u32 pair)
{
    if (super_blocks(q->spec) % PAIR == 0)
        return U32(PAIR_BYTES);
    ptx_pred last = ptx_setp_eq_u32(q->k, pair, U32(pairs(q->spec) - 1));
    return ptx_selp_u32(q->k, U32(SUPER_BLOCK_BYTES), U32(PAIR_BYTES), last);
}

static void copy_bulk(struct kernel *q, const struct stream *s, ptx_u32 stage)
{
    ptx_kernel *k = q->k;
    ptx_u32 bytes = pair_bytes(q, s->pair);
    ptx_u32 barrier = ptx_mad_lo_u32(k, s->fill.index, U32(8), s->barriers);
    ptx_u32 to = ptx_mad_lo_u32(k, q->at.lane, U32(PAIR_BYTES), stage);
    ptx_u32 all = ptx_mul_lo_u32(k, bytes, U32(TILE_ROWS));
    ptx_guarded(k, ptx_setp_eq_u32(k, q->at.lane, U32(0)))
        ptx_mbarrier_arrive_expect_tx(k, barrier, 0, all);
    ptx_guarded(k, ptx_setp_lt_u32(k, q->at.lane, U32(TILE_ROWS)))
        ptx_cp_async_bulk_g2s(k, to, 0, s->source, 0, bytes, barrier, 0);
}

static void copy_pieces(struct kernel *q, const struct stream *s, ptx_u32 stage)
{
    ptx_kernel *k = q->k;
    ptx_u32 row = ptx_shr_u32(k, q->at.lane, U32(1));
    ptx_u32 odd = ptx_and_b32(k, q->at.lane, U32(1));
    ptx_u32 piece = ptx_mul_lo_u32(k, odd, U32(16));
    ptx_u32 in_stage = ptx_mad_lo_u32(k, row, U32(PAIR_BYTES), piece);
    ptx_u32 to = ptx_add_u32(k, stage, in_stage);
    ptx_u32 bytes = pair_bytes(q, s->pair);
    for (int i = 0; i < PAIR_BYTES / 32; i++) {
        if (bytes.o.kind == PTX_OPERAND_IMMEDIATE || 32 * (i + 1) <= SUPER_BLOCK_BYTES) {
            ptx_cp_async_cg(k, to, 32 * i, s->source, 32 * i, 16);
            continue;
        }
        ptx_u32 end = ptx_add_u32(k, piece, U32(32 * (unsigned)i + 16));
        ptx_guarded(k, ptx_setp_le_u32(k, end, bytes))
            ptx_cp_async_cg(k, to, 32 * i, s->source, 32 * i, 16);
    }
}

/* One pair on; past the row's end, the next round's tile. */
static void advance(struct kernel *q, struct stream *s)
{
    ptx_kernel *k = q->k;
    ptx_add_u32_to(k, s->pair, s->pair, U32(q->v->wk));
    ptx_add_u64_to(k, s->source, s->source, U64(q->v->wk * PAIR_BYTES));
    if (q->v->rounds == 1)
        return;
    uint32_t end = turns(q->spec, q->v->wk) * q->v->wk;
    ptx_if(k, ptx_setp_ge_u32(k, s->pair, U32(end))) {
        ptx_mov_u32_to(k, s->pair, q->at.wk);
        ptx_add_u32_to(k, s->tile, s->tile, U32(q->v->wr));
        locate_row(q, s);
    }
}

void emit_load(struct kernel *q, struct stream *s)
{
    ptx_kernel *k = q->k;
    ptx_u32 tile_first = ptx_mad_lo_u32(k, s->tile, U32(tile_outputs(q->spec)), q->first_output);
    ptx_pred in_row = ptx_setp_lt_u32(k, s->pair, U32(pairs(q->spec)));
    ptx_if(k, ptx_setp_bool_lt_u32(k, tile_first, q->end_output, in_row)) {
        ptx_u32 stage = slot_address(q, s, s->fill);
        if (bulk(q))
            copy_bulk(q, s, stage);
        else
            copy_pieces(q, s, stage);
        advance_slot(q, &s->fill);
    }
    if (!bulk(q))
        ptx_cp_async_commit_group(k);
    advance(q, s);
}

void emit_turn_barrier(struct kernel *q)
{
    if (!bulk(q))
        ptx_cp_async_wait_group(q->k, (int)q->v->stages - 2);
    ptx_bar_warp_sync(q->k, ALL_LANES);
}

void emit_wait(struct kernel *q, const struct stream *s, struct slot slot)
{
    if (!bulk(q))
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

/* f16x2 constants: what turns 1024 + b into b, or into b/16 for nibbles that stand 4 bits up. */
struct scale_constants {
    ptx_f16x2 factor, minus;
};

static ptx_f16x2 constant_pair(ptx_kernel *k, uint32_t bits)
{
    return ptx_u32_as_f16x2(ptx_mov_u32(k, U32(bits)));
}

/* Byte `index` of the word as f16 in both halves, by way of 0x64 above it: 1024 + b. */
static ptx_f16x2 scale_pair(ptx_kernel *k, ptx_u32 word, unsigned index, struct scale_constants c)
{
    ptx_u32 raised = ptx_prmt_b32(k, word, U32(0x64646464), U32(0x4040u + 0x0101u * index));
    return ptx_fma_f16x2(k, ptx_u32_as_f16x2(raised), c.factor, c.minus);
}

/* A of the mins' product: this lane's two of the row's eight, as subnormals m·2⁻²⁴. */
static ptx_u32 min_fragment(struct kernel *q, const struct row_scales *s)
{
    ptx_kernel *k = q->k;
    ptx_pred first_half = ptx_setp_lt_u32(k, q->at.quad, U32(2));
    ptx_u32 bytes = ptx_selp_u32(k, s->min[0], s->min[1], first_half);
    ptx_u32 second_pair = ptx_and_b32(k, q->at.quad, U32(1));
    ptx_u32 selector = ptx_mad_lo_u32(k, second_pair, U32(0x0202), U32(0x4140));
    return ptx_prmt_b32(k, bytes, U32(0), selector);
}

/* ---- the product ---- */

/* A lane's shared addresses for one super-block. */
struct operands {
    ptx_u32 header, nibbles;  /* weights: row `group`; quad lane's bytes */
    ptx_u32 b, b_min, scale;  /* activations */
};

struct product {
    ptx_f32 c[2][2][4]; /* [low or high nibbles][n-tile][row × {hi, lo} column] */
};

/* 64 weights of each row, sub-blocks `index` and `index + 1` of the four that `scale` holds. */
static void multiply_sub_blocks(struct kernel *q, const struct operands *at, const ptx_u32 scale[2],
                                const struct scale_constants constants[2], unsigned index,
                                struct product *p)
{
    ptx_kernel *k = q->k;
    ptx_u32 bytes[2][2];
    for (int r = 0; r < 2; r++)
        ptx_ld_shared_v2_u32(k, bytes[r], at->nibbles, 8 * PAIR_BYTES * r + 16 * (int)index);
    for (unsigned half = 0; half < 2; half++) {
        ptx_u32 b[2][4], mask = U32(half ? 0x00F000F0 : 0x000F000F);
        ptx_f16x2 factor[2];
        for (int n = 0; n < n_tiles(q); n++)
            ptx_ld_shared_v4_u32(k, b[n], at->b, (int)((index + half) * q->v->tokens * 128) + 512 * n);
        for (int r = 0; r < 2; r++)
            factor[r] = scale_pair(k, scale[r], index + half, constants[half]);
        ptx_for_static(step, 2) {
            ptx_u32 a[4];
            for (int r = 0; r < 2; r++) {
                ptx_u32 even = ptx_and_b32(k, bytes[r][step], mask);
                ptx_u32 shifted = ptx_shr_u32(k, bytes[r][step], U32(8));
                ptx_u32 odd = ptx_and_b32(k, shifted, mask);
                a[r] = ptx_f16x2_as_u32(ptx_mul_f16x2(k, ptx_u32_as_f16x2(even), factor[r]));
                a[r + 2] = ptx_f16x2_as_u32(ptx_mul_f16x2(k, ptx_u32_as_f16x2(odd), factor[r]));
            }
            for (int n = 0; n < n_tiles(q); n++)
                ptx_mma_m16n8k16_f32_f16_to(k, p->c[half][n], a, &b[n][2 * step], p->c[half][n]);
        }
    }
}

static void clear_product(struct kernel *q, struct product *p)
{
    for (int half = 0; half < 2; half++)
        for (int n = 0; n < n_tiles(q); n++)
            for (int i = 0; i < 4; i++)
                p->c[half][n][i] = ptx_mov_f32(q->k, F32(0));
}

/* hi + lo · 2⁻¹¹, times `power`: what the two columns of a token stand for. */
static ptx_f32 join_columns(ptx_kernel *k, ptx_f32 hi, ptx_f32 lo, float power)
{
    ptx_f32 scaled = ptx_mul_f32(k, hi, F32(power));
    return ptx_fma_f32(k, lo, F32(power / 2048), scaled);
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
        ptx_f32 mins[4], none[4] = {zero, zero, zero, zero}, c[4];
        ptx_u32 b_min = ptx_ld_shared_u32(k, at->b_min, (int)record_bmin(tokens) + 128 * n);
        ptx_f32 power = ptx_ld_shared_f32(k, at->scale, (int)record_scale(tokens) + 16 * n);
        ptx_mma_m16n8k8_f32_f16(k, mins, a_min, &b_min, none);
        for (int i = 0; i < 4; i++)
            c[i] = ptx_add_f32(k, p->c[0][n][i], p->c[1][n][i]);
        for (int r = 0; r < 2; r++) {
            ptx_f32 main = join_columns(k, c[2 * r], c[2 * r + 1], 0x1p24f);
            ptx_f32 below = join_columns(k, mins[2 * r], mins[2 * r + 1], -0x1p30f);
            ptx_f32 d = ptx_mul_f32(k, scales[r].d, power);
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
    /* Columns past the last token repeat earlier ones, so that nothing need be zeroed. */
    ptx_u32 column = ptx_and_b32(k, q->at.group, U32(tokens >= 4 ? 7 : 2 * tokens - 1));
    ptx_u32 cell = ptx_mad_lo_u32(k, column, U32(4), q->at.quad);
    ptx_u32 token = ptx_and_b32(k, q->at.quad, U32(tokens >= 4 ? 3 : tokens - 1));
    at.b = ptx_mad_lo_u32(k, cell, U32(16), record);
    at.b_min = ptx_mad_lo_u32(k, cell, U32(4), record);
    at.scale = ptx_mad_lo_u32(k, token, U32(4), record);
    at.header = ptx_mad_lo_u32(k, q->at.group, U32(PAIR_BYTES), stage);
    at.nibbles = ptx_mad_lo_u32(k, q->at.quad, U32(8), at.header);
    return at;
}

static void multiply_super_block(struct kernel *q, struct operands at,
                                 const struct scale_constants constants[2], struct sums *sums)
{
    ptx_kernel *k = q->k;
    struct row_scales scales[2];
    struct product product;
    clear_product(q, &product);
    ptx_u32 scale[2];
    for (int r = 0; r < 2; r++) {
        ptx_u32 header[4];
        ptx_ld_shared_v4_u32(k, header, at.header, 8 * PAIR_BYTES * r);
        scales[r] = unpack_scales(k, header);
        scale[r] = ptx_mov_u32(k, scales[r].scale[0]);
    }
    struct operands step = at;
    step.nibbles = ptx_add_u32(k, at.nibbles, U32(16));
    step.b = ptx_mov_u32(k, at.b);
    ptx_u32 quarter = ptx_mov_u32(k, U32(0));
    ptx_for(k, quarter, U32(2), U32(1)) { /* sub-blocks 0 … 3, then 4 … 7 */
        multiply_sub_blocks(q, &step, scale, constants, 0, &product);
        multiply_sub_blocks(q, &step, scale, constants, 2, &product);
        for (int r = 0; r < 2; r++)
            ptx_mov_u32_to(k, scale[r], scales[r].scale[1]);
        ptx_add_u32_to(k, step.nibbles, step.nibbles, U32(64));
        ptx_add_u32_to(k, step.b, step.b, U32(4 * q->v->tokens * 128));
    }
    accumulate(q, &at, scales, &product, sums);
}

void emit_multiply(struct kernel *q, ptx_u32 stage, ptx_u32 pair, ptx_u32 record, struct sums *sums)
{
    ptx_kernel *k = q->k;
    struct scale_constants constants[2];
    constants[0].factor = constant_pair(k, 0x3C003C00); /* 1, −1024 */
    constants[0].minus = constant_pair(k, 0xE400E400);
    constants[1].factor = constant_pair(k, 0x2C002C00); /* 1/16, −64 */
    constants[1].minus = constant_pair(k, 0xD400D400);
    struct operands at = lane_operands(q, stage, record);
    ptx_u32 end = ptx_mov_u32(k, U32(PAIR));
    if (super_blocks(q->spec) % PAIR) {
        ptx_pred last = ptx_setp_eq_u32(k, pair, U32(pairs(q->spec) - 1));
        end = ptx_selp_u32(k, U32(1), U32(PAIR), last);
    }
    ptx_u32 super_block = ptx_mov_u32(k, U32(0));
    ptx_for(k, super_block, end, U32(1)) {
        multiply_super_block(q, at, constants, sums);
        ptx_u32 *const weights[] = {&at.header, &at.nibbles}, *const records[] = {&at.b, &at.b_min, &at.scale};
        for (int i = 0; i < 2; i++)
            ptx_add_u32_to(k, *weights[i], *weights[i], U32(SUPER_BLOCK_BYTES));
        for (int i = 0; i < 3; i++)
            ptx_add_u32_to(k, *records[i], *records[i], U32(record_bytes(q->v->tokens)));
    }
}
