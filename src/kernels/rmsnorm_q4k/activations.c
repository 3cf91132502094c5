/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Activations: h = x (+ residual), the sums of squares, and h·γ as B fragments in shared memory.
 *
 * f16 holds 11 bits, f32 24, so v = h·γ is split in two. Each super-block of a token is divided by
 * a power of two 2^e that brings its largest magnitude into [2¹⁴, 2¹⁵); then hi = f16(v·2⁻ᵉ) and
 * lo = f16((v·2⁻ᵉ − hi)·2¹¹) keep v to 2⁻²⁴ of itself, or to 2⁻⁵⁰ of the super-block's largest.
 * hi and lo are two columns of B, so one product serves four tokens.
 *
 * A warp takes one super-block: each lane 8 consecutive values, which are just the 8 that one quad
 * lane needs of a sub-block (see weights.c), in the order 0 2 1 3 4 6 5 7.
 */
#include "emit.h"

enum { LANE_VALUES = 8, GROUP_TOKENS = 4 };

static uint32_t element_bytes(uint8_t type)
{
    return type == PTXGEN_F32 ? 4 : 2;
}

/* ---- loading eight consecutive values ---- */

static void widen_pair(ptx_kernel *k, uint8_t type, ptx_u32 pair, ptx_f32 *to)
{
    if (type == PTXGEN_BF16) {
        ptx_u32 low = ptx_shl_b32(k, pair, U32(16));
        ptx_u32 high = ptx_and_b32(k, pair, U32(0xFFFF0000));
        ptx_mov_f32_to(k, to[0], ptx_u32_as_f32(low));
        ptx_mov_f32_to(k, to[1], ptx_u32_as_f32(high));
        return;
    }
    ptx_f16 halves[2];
    ptx_unpack_f16x2(k, halves, ptx_u32_as_f16x2(pair));
    ptx_cvt_f32_f16_to(k, to[0], halves[0]);
    ptx_cvt_f32_f16_to(k, to[1], halves[1]);
}

static void load_vector(ptx_kernel *k, uint8_t type, ptx_u64 from, ptx_f32 to[LANE_VALUES])
{
    if (type == PTXGEN_F32) {
        ptx_ld_global_v4_f32_to(k, &to[0], from, 0);
        ptx_ld_global_v4_f32_to(k, &to[4], from, 16);
        return;
    }
    ptx_u32 words[4];
    ptx_ld_global_v4_u32(k, words, from, 0);
    for (int i = 0; i < 4; i++)
        widen_pair(k, type, words[i], &to[2 * i]);
}

static void load_scalars(ptx_kernel *k, uint8_t type, ptx_u64 from, ptx_f32 to[LANE_VALUES])
{
    for (int i = 0; i < LANE_VALUES; i++) {
        if (type == PTXGEN_F32)
            ptx_ld_global_f32_to(k, to[i], from, 4 * i);
        else if (type == PTXGEN_F16)
            ptx_cvt_f32_f16_to(k, to[i], ptx_ld_global_f16(k, from, 2 * i));
        else
            ptx_cvt_f32_bf16_to(k, to[i], ptx_ld_global_bf16(k, from, 2 * i));
    }
}

static void new_values(ptx_kernel *k, ptx_f32 v[LANE_VALUES])
{
    for (int i = 0; i < LANE_VALUES; i++)
        v[i] = ptx_mov_f32(k, F32(0));
}

/* ---- the residual ---- */

/* h rounded to x's type, as the separate addition would have stored it. */
static ptx_f32 round_to(ptx_kernel *k, uint8_t type, ptx_f32 h)
{
    if (type == PTXGEN_F16)
        return ptx_cvt_f32_f16(k, ptx_cvt_f16_f32(k, h));
    if (type == PTXGEN_BF16)
        return ptx_cvt_f32_bf16(k, ptx_cvt_bf16_f32(k, h));
    return h;
}

static void store_scalars(ptx_kernel *k, uint8_t type, ptx_u64 to, const ptx_f32 h[LANE_VALUES])
{
    for (int i = 0; i < LANE_VALUES; i++) {
        if (type == PTXGEN_F32)
            ptx_st_global_f32(k, to, 4 * i, h[i]);
        else if (type == PTXGEN_F16)
            ptx_st_global_f16(k, to, 2 * i, ptx_cvt_f16_f32(k, h[i]));
        else
            ptx_st_global_bf16(k, to, 2 * i, ptx_cvt_bf16_f32(k, h[i]));
    }
}

/* ---- one super-block of one token ---- */

struct place {
    ptx_u32 super_block; /* in the row */
    ptx_u32 column;      /* of the lane's first value */
    ptx_u32 record;      /* in shared memory */
};

static ptx_u64 row_address(struct kernel *q, ptx_u64 base, ptx_u32 stride, ptx_u32 token, ptx_u32 column)
{
    ptx_kernel *k = q->k;
    ptx_u64 row = ptx_mul_wide_u32(k, token, stride);
    ptx_u64 element = ptx_add_u64(k, row, ptx_cvt_u64_u32(k, column));
    ptx_u64 bytes = ptx_mul_lo_u64(k, element, U64(element_bytes(q->spec->x_type)));
    return ptx_add_u64(k, base, bytes);
}

static void add_residual(struct kernel *q, const struct place *at, ptx_u32 token, bool stores,
                         ptx_pred exists, ptx_f32 h[LANE_VALUES], const ptx_f32 r[LANE_VALUES])
{
    ptx_kernel *k = q->k;
    for (int i = 0; i < LANE_VALUES; i++)
        h[i] = round_to(k, q->spec->x_type, ptx_add_f32(k, h[i], r[i]));
    if (!stores)
        return;
    /* Each CTA prepares all of x; super-block s is written by CTA s mod grid. */
    ptx_u32 owner = ptx_rem_u32(k, at->super_block, U32(q->v->grid));
    ptx_if(k, ptx_setp_bool_eq_u32(k, owner, q->at.cta, exists)) {
        ptx_u64 to = row_address(q, q->residual_out, q->residual_out_stride, token, at->column);
        store_scalars(k, q->spec->x_type, to, h);
    }
}

/* The warp's sums of squares: of h, and of h·2⁻⁶⁴ for rows whose squares overflow f32. */
static void emit_squares(struct kernel *q, const struct place *at, uint32_t token,
                         const ptx_f32 h[LANE_VALUES])
{
    ptx_kernel *k = q->k;
    ptx_f32 plain = ptx_mov_f32(k, F32(0)), small = ptx_mov_f32(k, F32(0));
    for (int i = 0; i < LANE_VALUES; i++) {
        ptx_f32 down = ptx_mul_f32(k, h[i], F32(0x1p-64f));
        plain = ptx_fma_f32(k, h[i], h[i], plain);
        small = ptx_fma_f32(k, down, down, small);
    }
    for (unsigned mask = 16; mask; mask /= 2) {
        plain = ptx_add_f32(k, plain, ptx_shfl_sync_bfly_f32(k, plain, U32(mask), U32(31), U32(0xFFFFFFFF)));
        small = ptx_add_f32(k, small, ptx_shfl_sync_bfly_f32(k, small, U32(mask), U32(31), U32(0xFFFFFFFF)));
    }
    uint32_t row = token * super_blocks(q->spec) * 8;
    ptx_u32 to = ptx_mad_lo_u32(k, at->super_block, U32(8), q->sh.squares);
    ptx_f32 both[2] = {plain, small};
    ptx_guarded(k, ptx_setp_eq_u32(k, q->at.lane, U32(0)))
        ptx_st_shared_v2_f32(k, to, (int)row, both);
}

struct split {
    ptx_f16x2 hi, lo;
};

/* (a, b), already divided by 2^e, as hi and lo pairs; a in the low half. */
static struct split split_pair(ptx_kernel *k, ptx_f32 a, ptx_f32 b)
{
    struct split s;
    ptx_f16 halves[2];
    ptx_f32 rest[2], value[2] = {a, b};
    s.hi = ptx_cvt_f16x2_f32(k, b, a);
    ptx_unpack_f16x2(k, halves, s.hi);
    for (int i = 0; i < 2; i++) {
        ptx_f32 less = ptx_sub_f32(k, value[i], ptx_cvt_f32_f16(k, halves[i]));
        rest[i] = ptx_mul_f32(k, less, F32(2048));
    }
    s.lo = ptx_cvt_f16x2_f32(k, rest[1], rest[0]);
    return s;
}

/* The exponent field of the super-block's largest magnitude, at least 30 so that 2^±e is normal. */
static ptx_u32 largest_exponent(ptx_kernel *k, const ptx_f32 v[LANE_VALUES])
{
    ptx_u32 most = ptx_f32_as_u32(ptx_abs_f32(k, v[0]));
    for (int i = 1; i < LANE_VALUES; i++)
        most = ptx_max_u32(k, most, ptx_f32_as_u32(ptx_abs_f32(k, v[i])));
    most = ptx_redux_sync_max_u32(k, most, U32(0xFFFFFFFF));
    ptx_u32 field = ptx_shr_u32(k, most, U32(23));
    return ptx_max_u32(k, field, U32(30));
}

static ptx_f32 power_of_two(ptx_kernel *k, ptx_u32 biased)
{
    return ptx_u32_as_f32(ptx_shl_b32(k, biased, U32(23)));
}

/* Sums over the sub-block's four lanes, times 2⁻⁶, as the hi and lo of the mins' B fragments. */
static void store_block_sum(struct kernel *q, const struct place *at, uint32_t token, ptx_f32 sum)
{
    ptx_kernel *k = q->k;
    for (unsigned mask = 2; mask; mask /= 2)
        sum = ptx_add_f32(k, sum, ptx_shfl_sync_bfly_f32(k, sum, U32(mask), U32(31), U32(0xFFFFFFFF)));
    sum = ptx_mul_f32(k, sum, F32(0x1p-6f));
    struct split s = split_pair(k, sum, sum);
    ptx_f16 hi[2], lo[2];
    ptx_unpack_f16x2(k, hi, s.hi);
    ptx_unpack_f16x2(k, lo, s.lo);
    /* Sub-block j = group is half j % 2 of quad lane j / 2. */
    ptx_u32 to = ptx_mad_lo_u32(k, q->at.group, U32(2), at->record);
    int offset = (int)(record_bmin(q->v->tokens) + token * 32);
    ptx_guarded(k, ptx_setp_eq_u32(k, q->at.quad, U32(0))) {
        ptx_st_shared_f16(k, to, offset, hi[0]);
        ptx_st_shared_f16(k, to, offset + 16, lo[0]);
    }
}

static void store_fragments(struct kernel *q, const struct place *at, uint32_t token,
                            const ptx_f32 h[LANE_VALUES], const ptx_f32 gamma[LANE_VALUES])
{
    static const uint8_t order[LANE_VALUES] = {0, 2, 1, 3, 4, 6, 5, 7};
    ptx_kernel *k = q->k;
    ptx_f32 v[LANE_VALUES];
    for (int i = 0; i < LANE_VALUES; i++)
        v[i] = ptx_mul_f32(k, h[i], gamma[i]);
    ptx_u32 field = largest_exponent(k, v);
    ptx_f32 down = power_of_two(k, ptx_sub_u32(k, U32(2 * 127 + 14), field));
    ptx_f32 up = power_of_two(k, ptx_sub_u32(k, field, U32(14)));
    ptx_f32 sum = ptx_mov_f32(k, F32(0));
    for (int i = 0; i < LANE_VALUES; i++) {
        v[i] = ptx_mul_f32(k, v[i], down);
        sum = i ? ptx_add_f32(k, sum, v[i]) : v[i];
    }
    ptx_u32 hi[4], lo[4];
    for (int i = 0; i < 4; i++) {
        struct split s = split_pair(k, v[order[2 * i]], v[order[2 * i + 1]]);
        hi[i] = ptx_f16x2_as_u32(s.hi);
        lo[i] = ptx_f16x2_as_u32(s.lo);
    }
    ptx_u32 to = ptx_mad_lo_u32(k, q->at.group, U32(q->v->tokens * 128), at->record);
    to = ptx_mad_lo_u32(k, q->at.quad, U32(16), to);
    ptx_st_shared_v4_u32(k, to, (int)(token * 128), hi);
    ptx_st_shared_v4_u32(k, to, (int)(token * 128 + 64), lo);
    store_block_sum(q, at, token, sum);
    ptx_guarded(k, ptx_setp_eq_u32(k, q->at.lane, U32(0)))
        ptx_st_shared_f32(k, at->record, (int)(record_scale(q->v->tokens) + token * 4), up);
}

/* ---- a chunk ---- */

/* True where 16-byte loads are allowed: every base and row stride is a multiple of 16 bytes. */
static ptx_pred vectors_allowed(struct kernel *q)
{
    ptx_kernel *k = q->k;
    uint32_t bytes = element_bytes(q->spec->x_type);
    ptx_u64 bits = ptx_or_b64(k, q->x, q->gamma);
    ptx_u32 strides = q->x_stride;
    if (q->spec->residual) {
        bits = ptx_or_b64(k, bits, q->residual);
        strides = ptx_or_b32(k, strides, q->residual_stride);
    }
    if (q->v->tokens > 1)
        bits = ptx_or_b64(k, bits, ptx_mul_wide_u32(k, strides, U32(bytes)));
    ptx_u64 low = ptx_and_b64(k, bits, U64(15));
    return ptx_setp_eq_u64(k, low, U64(0));
}

static void emit_group(struct kernel *q, const struct place *at, uint32_t first_token, uint32_t count,
                       ptx_pred vectors)
{
    ptx_kernel *k = q->k;
    uint8_t type = q->spec->x_type;
    bool residual = q->spec->residual;
    ptx_f32 h[GROUP_TOKENS][LANE_VALUES], r[GROUP_TOKENS][LANE_VALUES], gamma[LANE_VALUES];
    ptx_u64 x_row[GROUP_TOKENS], r_row[GROUP_TOKENS];
    ptx_u32 token[GROUP_TOKENS];
    ptx_u32 last = ptx_sub_u32(k, q->m, U32(1));
    new_values(k, gamma);
    for (uint32_t i = 0; i < count; i++) {
        token[i] = ptx_min_u32(k, last, U32(first_token + i)); /* absent tokens repeat the last */
        x_row[i] = row_address(q, q->x, q->x_stride, token[i], at->column);
        new_values(k, h[i]);
        if (residual) {
            r_row[i] = row_address(q, q->residual, q->residual_stride, token[i], at->column);
            new_values(k, r[i]);
        }
    }
    ptx_u64 gamma_at = ptx_mad_wide_u32(k, at->column, U32(4), q->gamma);
    ptx_if_else(k, vectors) {
        load_vector(k, PTXGEN_F32, gamma_at, gamma);
        for (uint32_t i = 0; i < count; i++) {
            load_vector(k, type, x_row[i], h[i]);
            if (residual)
                load_vector(k, type, r_row[i], r[i]);
        }
    } else {
        load_scalars(k, PTXGEN_F32, gamma_at, gamma);
        for (uint32_t i = 0; i < count; i++) {
            load_scalars(k, type, x_row[i], h[i]);
            if (residual)
                load_scalars(k, type, r_row[i], r[i]);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        ptx_comment(k, "token %u", first_token + i);
        ptx_pred exists = ptx_setp_lt_u32(k, U32(first_token + i), q->m);
        if (residual)
            add_residual(q, at, token[i], q->spec->residual_out, exists, h[i], r[i]);
        emit_squares(q, at, first_token + i, h[i]);
        store_fragments(q, at, first_token + i, h[i], gamma);
    }
}

void emit_activations(struct kernel *q, ptx_u32 first)
{
    ptx_kernel *k = q->k;
    const ptxgen_rmsnorm_q4k_variant *v = q->v;
    uint32_t all = super_blocks(q->spec), tokens = v->tokens;
    uint32_t group = tokens < GROUP_TOKENS ? tokens : GROUP_TOKENS;
    ptx_section(k, "activations: h = x%s, sums of squares, h*gamma as B fragments",
                q->spec->residual ? " + residual" : "");
    ptx_pred vectors = vectors_allowed(q);
    ptx_u32 end = ptx_mov_u32(k, U32(all));
    if (v->chunks > 1)
        end = ptx_min_u32(k, end, ptx_add_u32(k, first, U32(v->chunk)));
    struct place at;
    at.super_block = ptx_add_u32(k, first, q->at.warp);
    ptx_for(k, at.super_block, end, U32(v->wk * v->wr)) {
        ptx_u32 lane_column = ptx_shl_b32(k, q->at.lane, U32(3));
        at.column = ptx_mad_lo_u32(k, at.super_block, U32(SUPER_BLOCK), lane_column);
        ptx_u32 in_chunk = ptx_sub_u32(k, at.super_block, first);
        at.record = ptx_mad_lo_u32(k, in_chunk, U32(record_bytes(tokens)), q->sh.records);
        for (uint32_t t = 0; t < tokens; t += group)
            emit_group(q, &at, t, group, vectors);
    }
}

/* ---- 1 / rms ---- */

/* Sums pairs (plain, small) of one token over all super-blocks: each group takes every eighth. */
static void sum_squares(struct kernel *q, ptx_u32 token, ptx_f32 sums[2])
{
    ptx_kernel *k = q->k;
    uint32_t all = super_blocks(q->spec);
    ptx_u32 row = ptx_mad_lo_u32(k, token, U32(all * 8), q->sh.squares);
    ptx_u32 at = ptx_mad_lo_u32(k, q->at.group, U32(8), row);
    sums[0] = ptx_mov_f32(k, F32(0));
    sums[1] = ptx_mov_f32(k, F32(0));
    for (uint32_t s = 0; s < all; s += 8) {
        ptx_f32 pair[2];
        for (int i = 0; i < 2; i++)
            pair[i] = ptx_mov_f32(k, F32(0));
        if (s + 8 <= all)
            ptx_ld_shared_v2_f32_to(k, pair, at, (int)s * 8);
        else
            ptx_guarded(k, ptx_setp_lt_u32(k, q->at.group, U32(all - s)))
                ptx_ld_shared_v2_f32_to(k, pair, at, (int)s * 8);
        for (int i = 0; i < 2; i++)
            sums[i] = ptx_add_f32(k, sums[i], pair[i]);
    }
    for (int i = 0; i < 2; i++)
        for (unsigned mask = 16; mask > 2; mask /= 2)
            sums[i] = ptx_add_f32(k, sums[i], ptx_shfl_sync_bfly_f32(k, sums[i], U32(mask), U32(31), U32(0xFFFFFFFF)));
}

ptx_f32 emit_inverse_rms(struct kernel *q, ptx_u32 token)
{
    ptx_kernel *k = q->k;
    ptx_f32 sums[2];
    sum_squares(q, token, sums);
    ptx_f32 mean = ptx_div_f32(k, sums[0], F32((float)q->spec->k));
    ptx_f32 mean_small = ptx_div_f32(k, sums[1], F32((float)q->spec->k));
    ptx_f32 plain = ptx_add_f32(k, mean, F32(q->spec->epsilon));
    /* Where the squares overflowed, ε is far below their last bit. */
    ptx_pred overflowed = ptx_setp_eq_f32(k, sums[0], F32(__builtin_inff()));
    ptx_f32 radicand = ptx_selp_f32(k, mean_small, plain, overflowed);
    ptx_f32 root = ptx_sqrt_f32(k, radicand);
    ptx_f32 inverse = ptx_rcp_f32(k, root);
    ptx_f32 down = ptx_mul_f32(k, inverse, F32(0x1p-64f));
    return ptx_selp_f32(k, down, inverse, overflowed);
}
