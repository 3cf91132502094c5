/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The product: from nibbles in a slot of the ring to A fragments, and times the activations.
 *
 * mma.m16n8k32 takes from each lane, for rows `group` and `group + 8`, eight bytes of one
 * sub-block. The order of K within a product is free as long as A and B agree, so each lane takes 8
 * consecutive bytes of every 32: one `and` makes four weights of the low-nibble sub-block from a
 * register, another `and` four weights of the high one, 16 times as large. q times the planes of
 * the activations accumulates in exact integers, and so does sc times that over the super-block.
 * All of it is 16 times as large: at most 16·8·63·32·15·128 < 2²⁹, and a multiple of 16, so that
 * f32 loses no more than of 2²⁵. d is applied at the super-block's end, in f32. The mins are eight
 * more terms, Σ_j m_j · (sum of x over sub-block j): one mma.m16n8k8 in f16.
 *
 * One token has four planes only. The other four columns serve a second sub-block, which halves
 * the products with sc: quad lanes 0 and 1 take 16 bytes each of one pair of sub-blocks, lanes 2
 * and 3 of the next pair. B is block diagonal: columns 0 to 3 are zero where K belongs to the
 * second pair, columns 4 to 7 where K belongs to the first. The lanes that hold these zeros read
 * them from shared memory.
 *
 *     K of quad lane    0   1   2   3
 *     columns 0 to 3    x₀  x₀  0   0      x₀, x₁: planes of the sub-blocks with the low nibbles of
 *     columns 4 to 7    0   0   x₁  x₁     the two pairs; then of those with the high nibbles
 *
 * Rows of 288 bytes start 8 banks after each other, and four lanes read 64 bytes of a row.
 * Neighbouring groups of lanes therefore take rows two apart: a group's row has the group's two
 * lowest bits swapped.
 */
#include "emit.h"

/* ---- scales and mins ---- */

/* The 6-bit scales and mins of a row's eight sub-blocks, one a byte; [1] holds 4 to 7. */
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

/*
 * A of the mins' product: the lane's two of the row's eight mins. The byte 0x64 above a min m makes
 * the f16 1024 + m.
 */
static ptx_u32 min_fragment(struct rmsnorm_q4k_kernel *q, const struct row_scales *s)
{
    ptx_kernel *k = q->k;
    ptx_u32 bytes = ptx_selp_u32(k, s->min[0], s->min[1], q->columns.low_mins);
    ptx_u32 raised = ptx_prmt_b32(k, bytes, U32(0x64), q->columns.min_bytes);
    ptx_f16x2 minus = ptx_u32_as_f16x2(ptx_mov_u32(k, U32(0xE400E400)));
    return ptx_f16x2_as_u32(ptx_add_f16x2(k, ptx_u32_as_f16x2(raised), minus));
}

/* ---- the product ---- */

void rmsnorm_q4k_find_columns(struct rmsnorm_q4k_kernel *q)
{
    ptx_kernel *k = q->k;
    struct rmsnorm_q4k_columns *c = &q->columns;
    bool one = q->v->tile_m == 1;
    ptx_u32 lane = q->at.lane, quad = q->at.quad;
    c->header = times(q, q->row, PAIR_BYTES);
    c->nibbles = times_plus(q, quad, one ? 16 : 8, c->header);
    /* B lies by lane. Of one token's 8 columns the upper 4 are the same as the lower 4. */
    ptx_u32 cell = one ? masked(q, lane, 15) : lane;
    c->b = times(q, cell, 16);
    /* The columns of planes 0 and 1 have hi and lo of the mins; those of 2 and 3 are zero. */
    c->has_min = is_zero(q, masked(q, lane, one ? 24 : 8));
    ptx_u32 min_cell = masked(q, lane, 7);
    if (!one)
        min_cell = times_plus(q, shifted(q, lane, 4), 8, min_cell);
    c->b_min = times(q, min_cell, 4);
    ptx_u32 odd = masked(q, lane, 1), upper = masked(q, lane, 2);
    c->scale = one ? U32(0) : times(q, upper, 2);
    c->weight = ptx_selp_f32(k, F32(0x1p12f), F32(0x1p-4f), q->lower);
    c->low_mins = is_zero(q, upper);
    c->min_bytes = times_plus(q, odd, 0x0202, U32(0x4140));
    if (!one)
        return;
    /* Columns 0 to 3, of lanes 0 to 15, have the K of the lower quad lanes. */
    ptx_u32 own = masked(q, shifted(q, lane, 3), 2);
    c->has_b = ptx_setp_eq_u32(k, own, upper);
    /* Upper quad lanes read zeros 32 bytes on, in banks that the lower ones' fragments leave. */
    ptx_u32 zeros = times_plus(q, upper, 16, q->sh.zeros);
    c->b = ptx_selp_u32(k, ptx_add_u32(k, c->b, q->sh.records), zeros, c->has_b);
    c->b_step = ptx_selp_u32(k, U32(record_bytes(1)), U32(0), c->has_b);
    for (unsigned i = 0; i < 2; i++)
        c->scale_bytes[i] = ptx_add_u32(k, upper, U32(0x4440 + i));
}

/* The addresses of one super-block's operands. */
struct operands {
    ptx_u32 header, nibbles, b, b_min, scale;
};

/*
 * Σ sc·q·i by low and high nibbles, n-tile, and row × plane of the lane's two. The sums of high
 * nibbles are 16 times as large.
 */
struct product {
    ptx_s32 p[2][MAX_N_TILES][4];
};

/* Adds scales · c to p. */
static void add_scaled(struct rmsnorm_q4k_kernel *q, ptx_s32 p[4], const ptx_s32 sc[2],
                       const ptx_s32 c[4])
{
    for (int i = 0; i < 4; i++)
        ptx_mad_lo_s32_to(q->k, p[i], sc[i / 2], c[i], p[i]);
}

static void scale_all(struct rmsnorm_q4k_kernel *q, ptx_s32 p[4], const ptx_s32 sc[2],
                      const ptx_s32 c[4])
{
    for (int i = 0; i < 4; i++)
        p[i] = ptx_mul_lo_s32(q->k, sc[i / 2], c[i]);
}

static ptx_u32 nibble_mask(bool high)
{
    return U32(high ? 0xF0F0F0F0 : 0x0F0F0F0F);
}

/*
 * Multiplies 64 weights of each row: sub-blocks `index`, in low nibbles, and `index + 1`, in high
 * nibbles.
 */
static void multiply_pair(struct rmsnorm_q4k_kernel *q, const struct operands *at,
                          const ptx_u32 scale[2], unsigned index, ptx_s32 zero, struct product *p)
{
    ptx_kernel *k = q->k;
    ptx_u32 bytes[2][2], b[MAX_N_TILES][4];
    ptx_s32 none[4] = {zero, zero, zero, zero};
    for (int r = 0; r < 2; r++)
        ptx_ld_shared_v2_u32(k, bytes[r], at->nibbles,
                             HALF_ROWS * PAIR_BYTES * r + 16 * (int)index);
    for (int n = 0; n < n_tiles(q); n++)
        ptx_ld_shared_v4_u32(k, b[n], at->b, (int)(index / 2 * q->v->tile_m * 256) + 512 * n);
    for (unsigned high = 0; high < 2; high++) {
        ptx_u32 a[4];
        ptx_s32 sc[2], c[4];
        for (int i = 0; i < 4; i++) /* rows group and group + 8, then the second words of both */
            a[i] = ptx_and_b32(k, bytes[i & 1][i / 2], nibble_mask(high));
        for (int r = 0; r < 2; r++)
            sc[r] = ptx_u32_as_s32(ptx_prmt_b32(k, scale[r], U32(0), U32(0x4440u + index + high)));
        for (int n = 0; n < n_tiles(q); n++) {
            ptx_mma_m16n8k32_s32_u8_s8(k, c, a, &b[n][2 * high], none);
            add_scaled(q, p->p[high][n], sc, c);
        }
    }
}

/*
 * With one token, multiplies 128 weights of each row: sub-blocks 0 to 3 or 4 to 7, whose scales are
 * in `scale`.
 */
static void multiply_two_pairs(struct rmsnorm_q4k_kernel *q, const struct operands *at,
                               const ptx_u32 scale[2], int half, ptx_s32 zero, struct product *p)
{
    ptx_kernel *k = q->k;
    ptx_u32 bytes[2][4], b[2][4];
    ptx_s32 none[4] = {zero, zero, zero, zero};
    for (int r = 0; r < 2; r++)
        ptx_ld_shared_v4_u32(k, bytes[r], at->nibbles, HALF_ROWS * PAIR_BYTES * r + 16 + 64 * half);
    for (int high = 0; high < 2; high++)
        ptx_ld_shared_v4_u32(k, b[high], at->b, 512 * half + 256 * high);
    for (int high = 0; high < 2; high++) {
        ptx_s32 sc[2], c[4];
        for (int step = 0; step < 2; step++) {
            ptx_u32 a[4];
            for (int i = 0; i < 4; i++)
                a[i] = ptx_and_b32(k, bytes[i & 1][2 * step + i / 2], nibble_mask(high));
            if (step)
                ptx_mma_m16n8k32_s32_u8_s8_to(k, c, a, &b[high][2], c);
            else
                ptx_mma_m16n8k32_s32_u8_s8(k, c, a, &b[high][0], none);
        }
        for (int r = 0; r < 2; r++)
            sc[r] = ptx_u32_as_s32(ptx_prmt_b32(k, scale[r], U32(0), q->columns.scale_bytes[high]));
        (half ? add_scaled : scale_all)(q, p->p[high][0], sc, c);
    }
}

/* Adds d·2^e·(products) − dmin·2^e·(mins) to the sums. */
static void accumulate(struct rmsnorm_q4k_kernel *q, const struct operands *at,
                       const struct row_scales scales[2], const struct product *p,
                       struct rmsnorm_q4k_sums *sums)
{
    ptx_kernel *k = q->k;
    uint32_t tokens = q->v->tile_m;
    ptx_u32 a_min[2];
    for (int r = 0; r < 2; r++)
        a_min[r] = min_fragment(q, &scales[r]);
    ptx_f32 zero = ptx_mov_f32(k, F32(0));
    for (int n = 0; n < n_tiles(q); n++) {
        ptx_f32 mins[4], none[4] = {zero, zero, zero, zero};
        ptx_u32 b_min = ptx_ld_shared_u32(k, at->b_min, (int)record_bmin(tokens) + 64 * n);
        b_min = ptx_selp_u32(k, b_min, U32(0), q->columns.has_min);
        ptx_f32 power = ptx_ld_shared_f32(k, at->scale, (int)record_scale(tokens) + 8 * n);
        ptx_mma_m16n8k8_f32_f16(k, mins, a_min, &b_min, none);
        ptx_f32 plane_power = ptx_mul_f32(k, power, q->columns.weight);
        for (int r = 0; r < 2; r++) {
            ptx_f32 planes[2];
            for (int i = 0; i < 2; i++) {
                const ptx_s32 low = p->p[0][n][2 * r + i], high = p->p[1][n][2 * r + i];
                planes[i] = ptx_cvt_f32_s32(k, ptx_mad_lo_s32(k, low, ptx_imm_s32(16), high));
            }
            ptx_f32 main = ptx_fma_f32(k, planes[1], F32(256), planes[0]);
            ptx_f32 hi = ptx_mul_f32(k, mins[2 * r], F32(-0x1p20f));
            ptx_f32 below = ptx_fma_f32(k, mins[2 * r + 1], F32(-0x1p9f), hi);
            ptx_f32 d = ptx_mul_f32(k, scales[r].d, plane_power);
            ptx_f32 dmin = ptx_mul_f32(k, scales[r].dmin, power);
            ptx_fma_f32_to(k, sums->acc[n][r], d, main, sums->acc[n][r]);
            ptx_fma_f32_to(k, sums->acc[n][r], dmin, below, sums->acc[n][r]);
        }
    }
}

/*
 * For sm_103 ptxas loads all operands of an unrolled super-block of eight tokens at once, which are
 * more than a thread has registers for. The int8 tensor cores of sm_103 are slow and bound that
 * kernel, so a loop over pairs costs nothing there.
 */
static bool is_rolled(const struct rmsnorm_q4k_kernel *q)
{
    return q->v->tile_m == 8 && q->plan->target.ptx.sm == 103;
}

/* Moves on to the scales of the next pass: the other four, or the two after the lowest two. */
static void next_scales(struct rmsnorm_q4k_kernel *q, const struct row_scales scales[2],
                        ptx_u32 pass, ptx_u32 scale[2])
{
    ptx_kernel *k = q->k;
    if (!is_rolled(q)) {
        for (int r = 0; r < 2; r++)
            ptx_mov_u32_to(k, scale[r], scales[r].scale[1]);
        return;
    }
    ptx_pred is_second = ptx_setp_eq_u32(k, pass, U32(1));
    for (int r = 0; r < 2; r++) {
        ptx_u32 upper = ptx_shr_u32(k, scale[r], U32(16));
        ptx_selp_u32_to(k, scale[r], scales[r].scale[1], upper, is_second);
    }
}

/*
 * Multiplies the four pairs of sub-blocks: two in each pass of a loop that ptxas unrolls, or one in
 * each pass of a loop that stays.
 */
static void multiply_pairs(struct rmsnorm_q4k_kernel *q, struct operands at,
                           const struct row_scales scales[2], ptx_s32 zero, struct product *p)
{
    ptx_kernel *k = q->k;
    unsigned pairs_taken = is_rolled(q) ? 1 : 2;
    ptx_u32 scale[2];
    for (int r = 0; r < 2; r++)
        scale[r] = ptx_mov_u32(k, scales[r].scale[0]);
    at.nibbles = ptx_add_u32(k, at.nibbles, U32(16));
    at.b = ptx_mov_u32(k, at.b);
    ptx_u32 pass = ptx_mov_u32(k, U32(0));
    ptx_for(k, pass, U32(4 / pairs_taken), U32(1)) {
        if (is_rolled(q))
            ptx_nounroll(k);
        for (unsigned i = 0; i < pairs_taken; i++)
            multiply_pair(q, &at, scale, 2 * i, zero, p);
        next_scales(q, scales, pass, scale);
        move_on(q, at.nibbles, 32 * pairs_taken);
        move_on(q, at.b, pairs_taken * q->v->tile_m * 256);
    }
}

static void multiply_super_block(struct rmsnorm_q4k_kernel *q, const struct operands *at,
                                 struct rmsnorm_q4k_sums *sums)
{
    ptx_kernel *k = q->k;
    struct row_scales scales[2];
    struct product product;
    ptx_s32 zero = ptx_mov_s32(k, ptx_imm_s32(0));
    for (int r = 0; r < 2; r++) {
        ptx_u32 header[4];
        ptx_ld_shared_v4_u32(k, header, at->header, HALF_ROWS * PAIR_BYTES * r);
        scales[r] = unpack_scales(k, header);
    }
    if (q->v->tile_m == 1) {
        for (int half = 0; half < 2; half++) {
            ptx_u32 scale[2] = {scales[0].scale[half], scales[1].scale[half]};
            multiply_two_pairs(q, at, scale, half, zero, &product);
        }
        accumulate(q, at, scales, &product, sums);
        return;
    }
    for (int high = 0; high < 2; high++)
        for (int n = 0; n < n_tiles(q); n++)
            for (int i = 0; i < 4; i++)
                product.p[high][n][i] = ptx_mov_s32(k, zero);
    multiply_pairs(q, *at, scales, zero, &product);
    accumulate(q, at, scales, &product, sums);
}

static struct operands operands_at(struct rmsnorm_q4k_kernel *q, ptx_u32 weights, ptx_u32 record)
{
    ptx_kernel *k = q->k;
    const struct rmsnorm_q4k_columns *c = &q->columns;
    struct operands o;
    o.header = ptx_add_u32(k, weights, c->header);
    o.nibbles = ptx_add_u32(k, weights, c->nibbles);
    o.b = ptx_add_u32(k, record, c->b);
    o.b_min = ptx_add_u32(k, record, c->b_min);
    o.scale = ptx_add_u32(k, record, c->scale);
    return o;
}

/*
 * With one token, a lane's addresses are computed for each super-block from the warp's, which stay
 * in uniform registers. With more tokens it is faster to move all five addresses on. With eight
 * tokens and cp.async, whose copies take an address of each lane too, no registers are left for
 * that.
 */
static bool makes_addresses_anew(const struct rmsnorm_q4k_kernel *q)
{
    return q->v->tile_m == 1 || (q->v->tile_m == 8 && !tensor(q));
}

void rmsnorm_q4k_multiply(struct rmsnorm_q4k_kernel *q, ptx_u32 stage, ptx_u32 pair, ptx_u32 number,
                          struct rmsnorm_q4k_sums *sums)
{
    ptx_kernel *k = q->k;
    uint32_t bytes = record_bytes(q->v->tile_m);
    ptx_u32 end = ptx_mov_u32(k, U32(PAIR));
    if (super_blocks(q->spec) % PAIR) {
        ptx_pred last = ptx_setp_eq_u32(k, pair, U32(pairs(q->spec) - 1));
        end = ptx_selp_u32(k, U32(1), U32(PAIR), last);
    }
    ptx_u32 weights = ptx_mov_u32(k, stage), record = ptx_mov_u32(k, number);
    struct operands at;
    if (!makes_addresses_anew(q))
        at = operands_at(q, stage, times_plus(q, number, bytes, q->sh.records));
    ptx_u32 super_block = ptx_mov_u32(k, U32(0));
    ptx_for(k, super_block, end, U32(1)) {
        ptx_nounroll(k); /* unrolled, the loop is no faster and takes the assembler longer */
        if (makes_addresses_anew(q)) {
            at = operands_at(q, weights, times_plus(q, record, bytes, q->sh.records));
            if (q->v->tile_m == 1)
                at.b = ptx_mad_lo_u32(k, record, q->columns.b_step, q->columns.b);
            multiply_super_block(q, &at, sums);
            move_on(q, weights, SUPER_BLOCK_BYTES);
            move_on(q, record, 1);
        } else {
            multiply_super_block(q, &at, sums);
            ptx_u32 moved[] = {at.header, at.nibbles, at.b, at.b_min, at.scale};
            for (int i = 0; i < 5; i++)
                move_on(q, moved[i], i < 2 ? SUPER_BLOCK_BYTES : bytes);
        }
    }
}
