/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Activations: h = x (+ residual), and h·γ as B fragments in shared memory.
 *
 * v = h·γ becomes fixed point with one power of two for each super-block of a token. The largest
 * magnitude of the super-block lands in [2²⁹, 2³⁰). So v keeps 2⁻²⁴ of itself, as in f32, down to
 * 2⁻⁷ of the largest, and 2⁻³¹ of the largest below. The four balanced bytes of the integer are the
 * planes: four columns of B, so that one product serves two tokens.
 *
 * A warp prepares one super-block at a time. Each lane has 8 consecutive values, which are the 8
 * that one quad lane needs of a sub-block, see product.c.
 */
#include "activations.h"

static bool is_narrow(const struct rmsnorm_q4k_kernel *q)
{
    return q->spec->x_type != PTXGEN_F32;
}

static uint32_t element_bytes(const struct rmsnorm_q4k_kernel *q)
{
    return is_narrow(q) ? 2 : 4;
}

/* ---- loading: 8 consecutive values a lane ---- */

static int item_words(const struct rmsnorm_q4k_kernel *q)
{
    return is_narrow(q) ? LANE_VALUES / 2 : LANE_VALUES;
}

/* True where 16-byte loads are allowed: every base and row stride is a multiple of 16 bytes. */
static ptx_pred vectors_allowed(struct rmsnorm_q4k_kernel *q)
{
    ptx_kernel *k = q->k;
    ptx_u64 bits = ptx_or_b64(k, q->x, q->gamma);
    ptx_u32 strides = q->x_stride;
    if (q->spec->residual) {
        bits = ptx_or_b64(k, bits, q->residual);
        strides = ptx_or_b32(k, strides, q->residual_stride);
    }
    if (q->v->tile_m > 1)
        bits = ptx_or_b64(k, bits, ptx_mul_wide_u32(k, strides, U32(element_bytes(q))));
    ptx_u64 low = ptx_and_b64(k, bits, U64(15));
    return ptx_setp_eq_u64(k, low, U64(0));
}

static void load_vectors(struct rmsnorm_q4k_kernel *q, ptx_u64 from, ptx_u32 to[LANE_VALUES])
{
    for (int i = 0; i < item_words(q); i += 4)
        ptx_ld_global_v4_u32_to(q->k, &to[i], from, 4 * i);
}

static void load_scalars(struct rmsnorm_q4k_kernel *q, ptx_u64 from, ptx_u32 to[LANE_VALUES])
{
    ptx_kernel *k = q->k;
    for (int i = 0; i < item_words(q); i++) {
        ptx_u16 halves[2];
        if (!is_narrow(q)) {
            ptx_ld_global_u32_to(k, to[i], from, 4 * i);
            continue;
        }
        for (int j = 0; j < 2; j++)
            halves[j] = ptx_ld_global_u16(k, from, 4 * i + 2 * j);
        ptx_pack_u32_to(k, to[i], halves);
    }
}

/* Items are numbered by super-block, and within a super-block by token. */
struct spot {
    ptx_u32 in_chunk, super_block; /* numbers in the chunk and in the row */
    ptx_u32 token;
};

static struct spot item_spot(struct rmsnorm_q4k_kernel *q, ptx_u32 first, ptx_u32 number)
{
    ptx_kernel *k = q->k;
    struct spot s = {.token = U32(0)};
    ptx_u32 in_chunk = number;
    if (q->v->tile_m > 1) { /* a power of two */
        in_chunk = shifted(q, number, (unsigned)__builtin_ctz(q->v->tile_m));
        s.token = masked(q, number, q->v->tile_m - 1);
    }
    s.in_chunk = in_chunk;
    s.super_block = q->v->chunks > 1 ? ptx_add_u32(k, first, in_chunk) : in_chunk;
    return s;
}

/* The first column that the lane has. */
static ptx_u32 lane_column(struct rmsnorm_q4k_kernel *q, ptx_u32 super_block)
{
    ptx_u32 in_super_block = times(q, q->at.lane, LANE_VALUES);
    return times_plus(q, super_block, SUPER_BLOCK, in_super_block);
}

static ptx_u64 element_address(struct rmsnorm_q4k_kernel *q, ptx_u64 base, ptx_u32 stride,
                               ptx_u32 token, ptx_u32 column)
{
    ptx_kernel *k = q->k;
    if (q->v->tile_m == 1)
        return ptx_mad_wide_u32(k, column, U32(element_bytes(q)), base);
    ptx_u64 row = ptx_mul_wide_u32(k, token, stride);
    ptx_u64 element = ptx_add_u64(k, row, ptx_cvt_u64_u32(k, column));
    ptx_u64 bytes = ptx_mul_lo_u64(k, element, U64(element_bytes(q)));
    return ptx_add_u64(k, base, bytes);
}

struct rmsnorm_q4k_source rmsnorm_q4k_find_source(struct rmsnorm_q4k_kernel *q, ptx_u32 first,
                                                  ptx_u32 number)
{
    ptx_kernel *k = q->k;
    struct spot s = item_spot(q, first, number);
    ptx_u32 token = s.token;
    if (q->v->tile_m > 1) /* tokens past the last repeat the last */
        token = ptx_min_u32(k, token, ptx_sub_u32(k, q->m, U32(1)));
    ptx_u32 column = lane_column(q, s.super_block);
    struct rmsnorm_q4k_source from;
    from.gamma = ptx_mad_wide_u32(k, column, U32(4), q->gamma);
    from.x = from.residual = element_address(q, q->x, q->x_stride, token, column);
    if (q->spec->residual)
        from.residual = element_address(q, q->residual, q->residual_stride, token, column);
    return from;
}

void rmsnorm_q4k_load_item(struct rmsnorm_q4k_kernel *q, const struct rmsnorm_q4k_source *from,
                           struct rmsnorm_q4k_item *item)
{
    load_vectors(q, from->x, item->x);
    if (q->spec->residual)
        load_vectors(q, from->residual, item->residual);
    for (int i = 0; i < LANE_VALUES; i += 4)
        ptx_ld_global_nc_v4_f32_to(q->k, &item->gamma[i], from->gamma, 4 * i);
}

/* Loads an item one element at a time, where vectors are not allowed. */
static void load_by_element(struct rmsnorm_q4k_kernel *q, const struct rmsnorm_q4k_source *from,
                            struct rmsnorm_q4k_item *item)
{
    load_scalars(q, from->x, item->x);
    if (q->spec->residual)
        load_scalars(q, from->residual, item->residual);
    for (int i = 0; i < LANE_VALUES; i++)
        ptx_ld_global_nc_f32_to(q->k, item->gamma[i], from->gamma, 4 * i);
}

struct rmsnorm_q4k_item rmsnorm_q4k_new_item(struct rmsnorm_q4k_kernel *q)
{
    struct rmsnorm_q4k_item item;
    for (int i = 0; i < item_words(q); i++) {
        item.x[i] = ptx_mov_u32(q->k, U32(0));
        if (q->spec->residual)
            item.residual[i] = ptx_mov_u32(q->k, U32(0));
    }
    for (int i = 0; i < LANE_VALUES; i++)
        item.gamma[i] = ptx_mov_f32(q->k, F32(0));
    return item;
}

struct rmsnorm_q4k_item rmsnorm_q4k_no_item(void)
{
    struct rmsnorm_q4k_item item;
    for (int i = 0; i < LANE_VALUES; i++) {
        item.x[i] = item.residual[i] = ptx_new_u32();
        item.gamma[i] = ptx_new_f32();
    }
    return item;
}

static void move_item(struct rmsnorm_q4k_kernel *q, const struct rmsnorm_q4k_item *from,
                      struct rmsnorm_q4k_item *to)
{
    for (int i = 0; i < item_words(q); i++) {
        ptx_mov_u32_to(q->k, to->x[i], from->x[i]);
        if (q->spec->residual)
            ptx_mov_u32_to(q->k, to->residual[i], from->residual[i]);
    }
    for (int i = 0; i < LANE_VALUES; i++)
        ptx_mov_f32_to(q->k, to->gamma[i], from->gamma[i]);
}

/* The most items of a chunk that a warp takes. */
static int taken_items(const struct rmsnorm_q4k_kernel *q)
{
    uint32_t warps = q->v->wk * q->v->wn;
    return (int)((q->v->chunk * q->v->tile_m + warps - 1) / warps);
}

/*
 * Items that a warp loads at once. With one token they are as many as the registers hold. With more
 * tokens arithmetic takes most of the time, so two items are enough and make the kernel shorter.
 */
enum { MAX_BATCH = 4 };
static int batch_items(const struct rmsnorm_q4k_kernel *q)
{
    int words = item_words(q) * (q->spec->residual ? 2 : 1) + LANE_VALUES;
    int most = q->v->tile_m == 1 ? 48 / words : 2, taken = taken_items(q);
    return taken < most ? taken : most;
}

static ptx_u32 chunk_items(struct rmsnorm_q4k_kernel *q, ptx_u32 first)
{
    ptx_kernel *k = q->k;
    uint32_t all = super_blocks(q->spec);
    if (q->v->chunks == 1)
        return U32(all * q->v->tile_m);
    ptx_u32 left = ptx_sub_u32(k, U32(all), first);
    ptx_u32 count = ptx_min_u32(k, left, U32(q->v->chunk));
    return times(q, count, q->v->tile_m);
}

/* ---- h = x + residual ---- */

static void widen(struct rmsnorm_q4k_kernel *q, const ptx_u32 words[LANE_VALUES],
                  ptx_f32 to[LANE_VALUES])
{
    ptx_kernel *k = q->k;
    for (int i = 0; i < item_words(q); i++) {
        ptx_f16 halves[2];
        switch (q->spec->x_type) {
        case PTXGEN_F32: to[i] = ptx_u32_as_f32(words[i]); break;
        case PTXGEN_F16:
            ptx_unpack_f16x2(k, halves, ptx_u32_as_f16x2(words[i]));
            to[2 * i] = ptx_cvt_f32_f16(k, halves[0]);
            to[2 * i + 1] = ptx_cvt_f32_f16(k, halves[1]);
            break;
        default:
            to[2 * i] = ptx_u32_as_f32(ptx_shl_b32(k, words[i], U32(16)));
            to[2 * i + 1] = ptx_u32_as_f32(masked(q, words[i], 0xFFFF0000));
        }
    }
}

/* h rounded to x's type as a separate addition would store it; `stored` is the stored form. */
static ptx_f32 round_to_type(struct rmsnorm_q4k_kernel *q, ptx_f32 h, ptx_u16 *stored)
{
    ptx_kernel *k = q->k;
    if (q->spec->x_type == PTXGEN_F16) {
        ptx_f16 half = ptx_cvt_f16_f32(k, h);
        *stored = ptx_f16_as_u16(half);
        return ptx_cvt_f32_f16(k, half);
    }
    if (q->spec->x_type == PTXGEN_BF16) {
        ptx_bf16 half = ptx_cvt_bf16_f32(k, h);
        *stored = ptx_bf16_as_u16(half);
        ptx_u32 bits = ptx_cvt_u32_u16(k, *stored);
        return ptx_u32_as_f32(ptx_shl_b32(k, bits, U32(16)));
    }
    return h;
}

/* Every CTA prepares all of x; CTA s mod grid writes super-block s of the sum. */
static void store_sum(struct rmsnorm_q4k_kernel *q, const struct spot *at,
                      const ptx_f32 h[LANE_VALUES], const ptx_u16 stored[LANE_VALUES])
{
    ptx_kernel *k = q->k;
    ptx_u32 owner = ptx_rem_u32(k, at->super_block, U32(q->v->grid));
    ptx_pred mine = ptx_setp_eq_u32(k, owner, q->at.cta);
    if (q->v->tile_m > 1)
        mine = ptx_setp_bool_lt_u32(k, at->token, q->m, mine);
    ptx_if(k, mine) {
        ptx_u64 to = element_address(q, q->residual_out, q->residual_out_stride, at->token,
                                     lane_column(q, at->super_block));
        for (int i = 0; i < LANE_VALUES; i++) {
            if (is_narrow(q))
                ptx_st_global_u16(k, to, 2 * i, stored[i]);
            else
                ptx_st_global_f32(k, to, 4 * i, h[i]);
        }
    }
}

static void make_h(struct rmsnorm_q4k_kernel *q, const struct rmsnorm_q4k_item *item,
                   const struct spot *at, ptx_f32 h[LANE_VALUES])
{
    ptx_kernel *k = q->k;
    widen(q, item->x, h);
    if (!q->spec->residual)
        return;
    ptx_f32 r[LANE_VALUES];
    ptx_u16 stored[LANE_VALUES];
    widen(q, item->residual, r);
    for (int i = 0; i < LANE_VALUES; i++)
        h[i] = round_to_type(q, ptx_add_f32(k, h[i], r[i]), &stored[i]);
    if (q->spec->residual_out)
        store_sum(q, at, h, stored);
}

/* ---- one item into shared memory ---- */

/* The larger magnitude, or NaN if either is NaN; the result's sign has no meaning. */
static ptx_u32 larger_magnitude(struct rmsnorm_q4k_kernel *q, ptx_f32 a, ptx_f32 b)
{
    ptx_kernel *k = q->k;
    if (q->plan->target.ptx.sm >= 86)
        return ptx_f32_as_u32(ptx_max_f32_m(k, PTX_NAN | PTX_XORSIGN_ABS, a, b));
    ptx_u32 abs_a = ptx_f32_as_u32(ptx_abs_f32(k, a));
    return ptx_max_u32(k, abs_a, ptx_f32_as_u32(ptx_abs_f32(k, b)));
}

/* The exponent field of the largest magnitude, at least 30, so that 2^e and 2^−e are normal. */
static ptx_u32 largest_exponent(struct rmsnorm_q4k_kernel *q, const ptx_f32 v[LANE_VALUES])
{
    ptx_kernel *k = q->k;
    ptx_u32 most = ptx_f32_as_u32(v[0]);
    for (int i = 1; i < LANE_VALUES; i++)
        most = larger_magnitude(q, ptx_u32_as_f32(most), v[i]);
    ptx_u32 magnitude = masked(q, most, 0x7FFFFFFF);
    most = ptx_redux_sync_max_u32(k, magnitude, ALL_LANES);
    ptx_u32 field = shifted(q, most, 23);
    return ptx_max_u32(k, field, U32(30));
}

static ptx_f32 power_of_two(ptx_kernel *k, ptx_u32 biased)
{
    return ptx_u32_as_f32(ptx_shl_b32(k, biased, U32(23)));
}

/* Where the parts of an item go in shared memory. */
struct record {
    ptx_u32 base, of_token; /* the record, and the token's B fragments in it */
    ptx_u32 token;
};

/*
 * The sum of a sub-block over its four lanes, times 2⁻²⁰, becomes hi and lo·2¹¹, which are the B
 * fragments of the mins: the first quad lane stores hi, the second stores lo.
 */
static void store_block_sum(struct rmsnorm_q4k_kernel *q, const struct record *to, ptx_f32 sum)
{
    ptx_kernel *k = q->k;
    sum = ptx_mul_f32(k, rmsnorm_q4k_warp_sum(k, sum, 2, 1), F32(0x1p-20f));
    ptx_f32 rest = ptx_sub_f32(k, sum, ptx_cvt_f32_f16(k, ptx_cvt_f16_f32(k, sum)));
    ptx_f32 part = ptx_selp_f32(k, ptx_mul_f32(k, rest, F32(2048)), sum, q->lower);
    ptx_f16 half = ptx_cvt_f16_f32(k, part);
    /* Sub-block j = group is half j % 2 of quad lane j / 2. */
    ptx_u32 row = at_token(q, to->base, to->token, 32);
    ptx_u32 in_row = times_plus(q, q->at.quad, 16, times(q, q->at.group, 2));
    ptx_u32 cell = ptx_add_u32(k, row, in_row);
    ptx_guarded(k, ptx_setp_lt_u32(k, q->at.quad, U32(2)))
        ptx_st_shared_f16(k, cell, (int)record_bmin(q->v->tile_m), half);
}

/* Adds neighbours, then the sums of neighbours, and so on. */
static ptx_f32 add_values(ptx_kernel *k, const ptx_f32 v[LANE_VALUES])
{
    ptx_f32 t[LANE_VALUES];
    for (int i = 0; i < LANE_VALUES; i++)
        t[i] = v[i];
    for (int width = LANE_VALUES / 2; width; width /= 2)
        for (int i = 0; i < width; i++)
            t[i] = ptx_add_f32(k, t[2 * i], t[2 * i + 1]);
    return t[0];
}

/* The bytes of four integers, balanced to −128 … 127; a register has the four of one plane. */
static void split_planes(ptx_kernel *k, const ptx_f32 v[4], ptx_u32 planes[PLANES])
{
    ptx_u32 x[4], pair[2][2]; /* pair[p / 2][e / 2]: planes p, p + 1 of elements e, e + 1 */
    for (int i = 0; i < 4; i++) {
        ptx_u32 integer = ptx_s32_as_u32(ptx_cvt_s32_f32_m(k, PTX_RNI, v[i]));
        ptx_u32 carried = ptx_add_u32(k, integer, U32(0x00808080));
        x[i] = ptx_xor_b32(k, carried, U32(0x00808080));
    }
    for (int e = 0; e < 2; e++) {
        pair[0][e] = ptx_prmt_b32(k, x[2 * e], x[2 * e + 1], U32(0x5140));
        pair[1][e] = ptx_prmt_b32(k, x[2 * e], x[2 * e + 1], U32(0x7362));
    }
    for (int p = 0; p < 2; p++) {
        planes[2 * p] = ptx_prmt_b32(k, pair[p][0], pair[p][1], U32(0x5410));
        planes[2 * p + 1] = ptx_prmt_b32(k, pair[p][0], pair[p][1], U32(0x7632));
    }
}

static void store_planes(struct rmsnorm_q4k_kernel *q, const struct record *to,
                         const ptx_f32 v[LANE_VALUES])
{
    ptx_kernel *k = q->k;
    ptx_u32 words[2][PLANES];
    for (int half = 0; half < 2; half++)
        split_planes(k, &v[4 * half], words[half]);
    ptx_u32 odd = masked(q, q->at.group, 1), cell;
    if (q->v->tile_m == 1) { /* sub-block group = 4·half + 2·(second pair) + (high nibbles) */
        ptx_u32 half = shifted(q, q->at.group, 2);
        ptx_u32 second = masked(q, q->at.group, 2);
        cell = times_plus(q, half, 512, to->of_token);
        cell = times_plus(q, odd, 256, cell);
        cell = times_plus(q, second, 16, cell);
        cell = times_plus(q, q->at.quad, 8, cell);
    } else {
        ptx_u32 pair = shifted(q, q->at.group, 1);
        cell = times_plus(q, pair, q->v->tile_m * 256, to->of_token);
        cell = times_plus(q, q->at.quad, 16, cell);
        cell = times_plus(q, odd, 8, cell);
    }
    for (int p = 0; p < PLANES; p++) {
        ptx_u32 both[2] = {words[0][p], words[1][p]};
        ptx_st_shared_v2_u32(k, cell, 64 * p, both);
    }
}

static void store_fragments(struct rmsnorm_q4k_kernel *q, const struct record *to,
                            const ptx_f32 h[LANE_VALUES], const ptx_f32 gamma[LANE_VALUES])
{
    ptx_kernel *k = q->k;
    ptx_f32 v[LANE_VALUES];
    for (int i = 0; i < LANE_VALUES; i++)
        v[i] = ptx_mul_f32(k, h[i], gamma[i]);
    ptx_u32 field = largest_exponent(q, v);
    ptx_f32 down = power_of_two(k, ptx_sub_u32(k, U32(127 + 156), field));
    ptx_f32 up = power_of_two(k, ptx_sub_u32(k, field, U32(156 - 127)));
    ptx_pred finite = ptx_setp_lt_u32(k, field, U32(255));
    up = ptx_selp_f32(k, up, F32(__builtin_nanf("")), finite);
    for (int i = 0; i < LANE_VALUES; i++)
        v[i] = ptx_mul_f32(k, v[i], down);
    store_block_sum(q, to, add_values(k, v));
    store_planes(q, to, v);
    ptx_u32 scale = at_token(q, to->base, to->token, 4);
    ptx_guarded(k, is_zero(q, q->at.lane))
        ptx_st_shared_f32(k, scale, (int)record_scale(q->v->tile_m), up);
}

void rmsnorm_q4k_prepare_item(struct rmsnorm_q4k_kernel *q, ptx_u32 first, ptx_u32 number,
                              const struct rmsnorm_q4k_item *item)
{
    struct spot at = item_spot(q, first, number);
    struct record to = {.token = at.token};
    to.base = times_plus(q, at.in_chunk, record_bytes(q->v->tile_m), q->sh.records);
    to.of_token = at_token(q, to.base, at.token, 256);
    ptx_f32 h[LANE_VALUES];
    make_h(q, item, &at, h);
    rmsnorm_q4k_store_squares(q, at.token, at.super_block, h);
    store_fragments(q, &to, h, item->gamma);
}

static struct rmsnorm_q4k_share find_share(struct rmsnorm_q4k_kernel *q, ptx_u32 first,
                                           struct rmsnorm_q4k_stream *stream)
{
    ptx_kernel *k = q->k;
    struct rmsnorm_q4k_share s = {.first = first, .takers = q->v->wk * q->v->wn, .stream = stream};
    s.number = ptx_mov_u32(k, q->at.warp);
    s.end = chunk_items(q, first);
    s.last = q->v->chunks == 1 ? U32(super_blocks(q->spec) * q->v->tile_m - 1)
                               : ptx_sub_u32(k, s.end, U32(1));
    s.vectors = vectors_allowed(q);
    s.issued = stream && taken_items(q) > 1 ? ptx_mov_u32(k, U32(0)) : U32(0);
    return s;
}

/* Issues the copies of the stream's slots behind the loads of the first items. */
static void issue_weights(struct rmsnorm_q4k_kernel *q, const struct rmsnorm_q4k_share *s)
{
    ptx_kernel *k = q->k;
    if (s->stream && taken_items(q) == 1)
        rmsnorm_q4k_issue_other_loads(q, s->stream);
    else if (s->stream)
        ptx_if(k, is_zero(q, s->issued)) {
            rmsnorm_q4k_issue_other_loads(q, s->stream);
            ptx_mov_u32_to(k, s->issued, U32(1));
        }
}

/* The source of the item `ahead` items on; past the end it is the last item's. */
static struct rmsnorm_q4k_source share_source(struct rmsnorm_q4k_kernel *q,
                                              const struct rmsnorm_q4k_share *s, uint32_t ahead)
{
    ptx_kernel *k = q->k;
    ptx_u32 number = ahead ? ptx_add_u32(k, s->number, U32(ahead * s->takers)) : s->number;
    return rmsnorm_q4k_find_source(q, s->first, ptx_min_u32(k, number, s->last));
}

static void load_batch(struct rmsnorm_q4k_kernel *q, const struct rmsnorm_q4k_share *s, int batch,
                       struct rmsnorm_q4k_item items[])
{
    struct rmsnorm_q4k_source from = share_source(q, s, 0);
    ptx_if_else(q->k, s->vectors)
        for (int i = 0; i < batch; i++) {
            struct rmsnorm_q4k_source its = i ? share_source(q, s, (uint32_t)i) : from;
            rmsnorm_q4k_load_item(q, &its, &items[i]);
        }
    else
        load_by_element(q, &from, &items[0]);
    issue_weights(q, s);
}

/* Prepares the warp's item, where no warp has more than one. */
static void take_one(struct rmsnorm_q4k_kernel *q, const struct rmsnorm_q4k_share *s)
{
    struct rmsnorm_q4k_item item = rmsnorm_q4k_no_item();
    load_batch(q, s, 1, &item);
    ptx_if(q->k, ptx_setp_lt_u32(q->k, s->number, s->end))
        rmsnorm_q4k_prepare_item(q, s->first, s->number, &item);
}

/*
 * Loads a batch of items at once, and then prepares one after the other. Where x does not allow
 * vectors, a batch is one item.
 */
static void take_batches(struct rmsnorm_q4k_kernel *q, const struct rmsnorm_q4k_share *s, int batch)
{
    ptx_kernel *k = q->k;
    struct rmsnorm_q4k_item items[MAX_BATCH] = {rmsnorm_q4k_no_item()};
    for (int i = 1; i < batch; i++)
        items[i] = rmsnorm_q4k_new_item(q);
    ptx_loop(k, batches) {
        ptx_u32 left = ptx_selp_u32(k, U32((unsigned)batch), U32(1), s->vectors);
        load_batch(q, s, batch, items);
        ptx_loop(k, item) {
            ptx_loop_break_if(&item, ptx_setp_ge_u32(k, s->number, s->end), false);
            rmsnorm_q4k_prepare_item(q, s->first, s->number, &items[0]);
            move_on(q, s->number, s->takers);
            ptx_sub_u32_to(k, left, left, U32(1));
            ptx_loop_break_if(&item, is_zero(q, left), false);
            for (int i = 1; i < batch; i++)
                move_item(q, &items[i], &items[i - 1]);
        }
        ptx_loop_break_if(&batches, ptx_setp_ge_u32(k, s->number, s->end), false);
    }
}

void rmsnorm_q4k_prepare_activations(struct rmsnorm_q4k_kernel *q, ptx_u32 first,
                                     struct rmsnorm_q4k_stream *stream)
{
    ptx_section(q->k, "activations: h = x%s, sums of squares, h*gamma as B fragments",
                q->spec->residual ? " + residual" : "");
    struct rmsnorm_q4k_share s = find_share(q, first, stream);
    if (rmsnorm_q4k_staged_bytes(q->plan, q->v))
        rmsnorm_q4k_take_staged(q, &s);
    else if (batch_items(q) == 1)
        take_one(q, &s);
    else
        take_batches(q, &s, batch_items(q));
}
