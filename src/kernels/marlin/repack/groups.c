/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entry marlin_repack_groups packs scales and zero points. A thread packs the eight columns g +
 * 8i of a packed group of a strip: 16 bytes of scales and a word of zero points. Scales and zero
 * points have a few per cent of the weights' bytes, so they are not staged in shared memory.
 */
#include "../formats/format_table.h"
#include "../spec.h"
#include "emit.h"

enum { COLUMNS = 8 };

struct groups {
    ptx_kernel *k;
    const ptxgen_marlin_repack_spec *spec;
    ptxgen_marlin_spec product;
    const struct w4_format *format;
    uint32_t source_groups;
    ptx_u64 addresses[REPACK_PARAMS];
    ptx_u32 strip, g, packed, group; /* `group` of the checkpoint that `packed` is part of */
    ptx_pred exists;                 /* the group is not past the end of K; unless `always` */
    bool always;                     /* no group is past the end of K */
    ptx_u64 refused; /* the thread's first refused scale as layout.h has it, or 0 */
};

/* ---- places in the checkpoint ---- */

/* The position of column n in Marlin's permutation, see format_table.c. */
static ptx_u32 marlin_position(const struct groups *q, ptx_u32 n)
{
    ptx_kernel *k = q->k;
    if (q->source_groups > 1) {
        ptx_u32 block = ptx_and_b32(k, n, U32(~63u));
        ptx_u32 eight = ptx_bfe_u32(k, n, U32(3), U32(3));
        ptx_u32 of_eight = ptx_and_b32(k, n, U32(7));
        return ptx_mad_lo_u32(k, of_eight, U32(8), ptx_or_b32(k, block, eight));
    }
    ptx_u32 kept = ptx_and_b32(k, n, U32(~31u | 1));
    ptx_u32 eight = ptx_bfe_u32(k, n, U32(3), U32(2));
    ptx_u32 pair = ptx_bfe_u32(k, n, U32(1), U32(2));
    ptx_u32 low = ptx_mad_lo_u32(k, eight, U32(2), kept);
    return ptx_mad_lo_u32(k, pair, U32(8), low);
}

static ptx_u32 position(const struct groups *q, ptx_u32 n)
{
    return q->format->permutes_columns ? marlin_position(q, n) : n;
}

/* The address of the element of this group and column `column` of `columns`, of `size` bytes. */
static ptx_u64 element_address(const struct groups *q, ptx_u64 base, ptx_u32 column,
                               uint64_t columns, uint32_t size)
{
    ptx_kernel *k = q->k;
    bool by_column = q->format->by_column;
    ptx_u64 outer = ptx_cvt_u64_u32(k, by_column ? column : q->group);
    ptx_u32 inner = by_column ? q->group : column;
    uint64_t pitch = (by_column ? q->source_groups : columns) * size;
    ptx_u64 line = ptx_mad_lo_u64(k, outer, U64(pitch), base);
    return ptx_mad_wide_u32(k, inner, U32(size), line);
}

/* ---- scales ---- */

static ptx_f32 widen(const struct groups *q, uint8_t type, ptx_u16 half)
{
    ptx_kernel *k = q->k;
    if (type == PTXGEN_F16)
        return ptx_cvt_f32_f16(k, ptx_u16_as_f16(half));
    ptx_u32 bits = ptx_cvt_u32_u16(k, half);
    return ptx_u32_as_f32(ptx_shl_b32(k, bits, U32(16)));
}

/* A scale as f32, as the checkpoint has it, and as 16 bits of the packed type. */
struct scale {
    ptx_f32 given;
    ptx_u16 stored;
};

static struct scale load_scale(const struct groups *q, ptx_u64 from)
{
    ptx_kernel *k = q->k;
    struct scale s;
    if (q->spec->scale_type == PTXGEN_F32)
        s.given = ptx_ld_global_nc_f32(k, from, 0);
    else {
        s.stored = ptx_ld_global_nc_u16(k, from, 0);
        s.given = widen(q, q->spec->scale_type, s.stored);
    }
    if (q->spec->scale_type != q->spec->type)
        s.stored = q->spec->type == PTXGEN_F16
                       ? ptx_f16_as_u16(ptx_cvt_f16_f32_m(k, PTX_RN, s.given))
                       : ptx_bf16_as_u16(ptx_cvt_bf16_f32(k, s.given));
    return s;
}

/*
 * Whether the scale is outside of the limits of scale_range.h; `z` is read only with zero points.
 */
static ptx_pred is_past_the_ends(const struct groups *q, ptx_u16 stored, ptx_u32 magnitude,
                                 ptx_u32 z)
{
    enum { F16_8188 = 0x6FFF, BELOW_BF16_2_25 = 0x4BFF, F32_65504 = 0x477FE000, NO_SIGN = 1 };
    ptx_kernel *k = q->k;
    if (q->spec->type == PTXGEN_BF16)
        return ptx_setp_gt_u32(k, magnitude, U32(BELOW_BF16_2_25));
    if (!q->spec->zeros)
        return ptx_setp_gt_u32(k, magnitude, U32(F16_8188));
    ptx_u32 other = ptx_sub_u32(k, U32(15), z);
    ptx_f32 most = ptx_cvt_f32_u32(k, ptx_max_u32(k, z, other));
    ptx_f32 scale = widen(q, PTXGEN_F16, stored);
    ptx_u32 weight = ptx_f32_as_u32(ptx_mul_f32(k, scale, most));
    return ptx_setp_gt_u32(k, ptx_and_b32(k, weight, U32(~0u >> NO_SIGN)), U32(F32_65504));
}

/* Records a scale that is refused; `n` is its column of gate or of up. */
static void check_scale(const struct groups *q, const struct scale *s, ptx_u32 z, bool up,
                        ptx_u32 n)
{
    ptx_kernel *k = q->k;
    bool narrows = q->spec->scale_type != q->spec->type && q->spec->scale_type != PTXGEN_F16;
    ptx_u32 magnitude = ptx_and_b32(k, ptx_cvt_u32_u16(k, s->stored), U32(0x7FFF));
    ptx_pred past = is_past_the_ends(q, s->stored, magnitude, z);
    ptx_u32 place = U32(0), given = ptx_f32_as_u32(s->given);
    if (marlin_repack_has_places(q->spec)) {
        uint32_t first = UINT32_MAX - (up ? q->source_groups * q->spec->n : 0);
        ptx_u32 index = ptx_mad_lo_u32(k, q->group, U32(q->spec->n), n);
        place = ptx_sub_u32(k, U32(first), index);
    }
    const ptx_u32 halves[2] = {given, place};
    ptx_u64 noted = ptx_pack_u64(k, halves), refused = ptx_selp_u64(k, noted, U64(0), past);
    ptx_max_u64_to(k, q->refused, q->refused, refused);
    if (!narrows)
        return;
    ptx_u32 digits = ptx_shl_b32(k, given, U32(1)); /* 0 for ±0 */
    ptx_pred is_zero = ptx_setp_eq_u32(k, magnitude, U32(0));
    ptx_u32 lost = ptx_selp_u32(k, digits, U32(0), is_zero);
    ptx_pred is_lost = ptx_setp_ne_u32(k, lost, U32(0));
    ptx_max_u64_to(k, q->refused, q->refused, ptx_selp_u64(k, noted, U64(0), is_lost));
}

/* ---- zero points ---- */

/* The zero point of column `n`, which is element `at` in the checkpoint's order. */
static ptx_u32 load_zero(const struct groups *q, ptx_u64 zeros, ptx_u32 at)
{
    ptx_kernel *k = q->k;
    ptx_u32 z = ptx_mov_u32(k, U32(PTXGEN_W4_SYMMETRIC_ZERO));
    ptx_if(k, ptx_setp_ne_u64(k, zeros, U64(0))) {
        ptx_u32 index = ptx_shr_u32(k, at, U32(3)), nibble = ptx_and_b32(k, at, U32(7));
        ptx_u64 from = element_address(q, zeros, index, q->spec->n / 8, 4);
        ptx_u32 word = ptx_ld_global_nc_u32(k, from, 0);
        if (q->format->interleaves) {
            ptx_u32 odd = ptx_and_b32(k, nibble, U32(1));
            ptx_u32 half = ptx_shr_u32(k, nibble, U32(1));
            nibble = ptx_mad_lo_u32(k, odd, U32(4), half);
        }
        ptx_u32 shift = ptx_shl_b32(k, nibble, U32(2));
        ptx_u32 stored = ptx_shr_u32(k, word, shift);
        ptx_and_b32_to(k, z, ptx_sub_u32(k, stored, U32(q->format->stored_zero_bias)), U32(15));
    }
    return z;
}

/* ---- a thread's columns ---- */

/* Loads the scale and the zero point of one column, or zeros where there is no such column. */
static void load_column(const struct groups *q, uint32_t c, ptx_u16 scale, ptx_u32 zeros)
{
    ptx_kernel *k = q->k;
    uint32_t width = marlin_strip_features(&q->product), column = c * 8;
    bool up = column >= width, ends = q->spec->n % width;
    ptx_u32 first = ptx_mad_lo_u32(k, q->strip, U32(width), q->g);
    ptx_u32 n = ptx_add_u32(k, first, U32(column % width));
    ptx_pred exists = q->exists;
    if (ends)
        exists = q->always ? ptx_setp_lt_u32(k, n, U32(q->spec->n))
                           : ptx_setp_bool_lt_u32(k, n, U32(q->spec->n), q->exists);
    ptx_block guard;
    bool guarded = ends || !q->always;
    if (guarded)
        guard = ptx_if_begin(k, PTX_HERE, exists, false);
    ptx_u32 at = position(q, n);
    uint32_t size = (uint32_t)ptxgen_element_size((ptxgen_element)q->spec->scale_type);
    ptx_u64 from = element_address(q, q->addresses[up ? REPACK_UP_SCALES : REPACK_SCALES], at,
                                   q->spec->n, size);
    struct scale loaded = load_scale(q, from);
    ptx_mov_u16_to(k, scale, loaded.stored);
    ptx_u32 z = U32(PTXGEN_W4_SYMMETRIC_ZERO);
    if (q->spec->zeros) {
        z = load_zero(q, q->addresses[up ? REPACK_UP_ZEROS : REPACK_ZEROS], at);
        ptx_mad_lo_u32_to(k, zeros, z, U32(1u << 4 * c), zeros);
    }
    check_scale(q, &loaded, z, up, n);
    if (guarded)
        ptx_if_end(&guard);
}

/* Writes the first refused scale to the caller's array, if there is one. */
static void report(const struct groups *q)
{
    ptx_kernel *k = q->k;
    ptx_u64 to = q->addresses[REPACK_REFUSED];
    ptx_u64 asked = ptx_selp_u64(k, q->refused, U64(0), ptx_setp_ne_u64(k, to, U64(0)));
    ptx_if(k, ptx_setp_ne_u64(k, asked, U64(0)))
        ptx_atom_global_max_u64(k, to, 0, asked);
}

static void pack_group(struct groups *q)
{
    ptx_kernel *k = q->k;
    ptx_u16 scales[COLUMNS];
    q->refused = ptx_mov_u64(k, U64(0));
    ptx_u32 zeros = ptx_mov_u32(k, U32(0)), words[TILES];
    for (uint32_t c = 0; c < COLUMNS; c++) {
        scales[c] = ptx_mov_u16(k, ptx_imm_u16(0));
        load_column(q, c, scales[c], zeros);
    }
    for (uint32_t t = 0; t < TILES; t++)
        words[t] = ptx_pack_u32(k, scales + 2 * t);
    ptx_u64 first = ptx_mul_wide_u32(k, q->strip, U32(marlin_groups(&q->product)));
    ptx_u64 index = ptx_add_u64(k, first, ptx_cvt_u64_u32(k, q->packed));
    ptx_u64 to = ptx_mad_lo_u64(k, index, U64(MARLIN_SCALES_BYTES), q->addresses[REPACK_TO_SCALES]);
    ptx_st_global_v4_u32(k, ptx_mad_wide_u32(k, q->g, U32(16), to), 0, words);
    if (q->spec->zeros) {
        to = ptx_mad_lo_u64(k, index, U64(MARLIN_ZEROS_BYTES), q->addresses[REPACK_TO_ZEROS]);
        ptx_st_global_u32(k, ptx_mad_wide_u32(k, q->g, U32(4), to), 0, zeros);
    }
    report(q);
}

/* ---- the entry ---- */

static void find_group(struct groups *q)
{
    ptx_kernel *k = q->k;
    uint32_t blocks = marlin_repack_grid(q->spec).group_blocks;
    uint32_t rows = marlin_scale_rows(&q->product), k_groups = rows ? q->spec->k / rows : 1;
    ptx_u32 thread = ptx_sreg_tid_x(k), cta = ptx_sreg_ctaid_x(k);
    q->strip = gemm_divide(k, cta, blocks);
    ptx_u32 block = blocks == 1 ? U32(0) : ptx_rem_u32(k, cta, U32(blocks));
    q->g = ptx_and_b32(k, thread, U32(7));
    ptx_u32 of_block = ptx_shr_u32(k, thread, U32(3));
    q->packed = ptx_mad_lo_u32(k, block, U32(REPACK_CTA_GROUPS), of_block);
    q->group = q->packed;
    if (rows)
        q->group = gemm_divide(k, q->packed, (uint32_t)marlin_group_rows(&q->product) / rows);
    q->always = k_groups == marlin_groups(&q->product);
    if (!q->always)
        q->exists = ptx_setp_lt_u32(k, q->packed, U32(k_groups));
}

void marlin_repack_emit_groups(const ptxgen_marlin_repack_plan *plan, ptx_module *module)
{
    struct groups *q =
        &(struct groups){.spec = &plan->spec,
                         .product = marlin_repack_product(&plan->spec),
                         .format = w4_format_of((ptxgen_w4_format)plan->spec.format)};
    q->source_groups = plan->spec.k / (uint32_t)marlin_group_rows(&q->product);
    ptx_kernel *k = q->k = ptx_kernel_begin(module, "marlin_repack_groups");
    ptx_kernel_reqntid(k, REPACK_THREADS, 1, 1);
    bool gated = marlin_gated(&q->product), zeros = plan->spec.zeros;
    const bool used[REPACK_PARAMS] = {
        [REPACK_SCALES] = true,     [REPACK_ZEROS] = zeros,
        [REPACK_UP_SCALES] = gated, [REPACK_UP_ZEROS] = gated && zeros,
        [REPACK_TO_SCALES] = true,  [REPACK_TO_ZEROS] = zeros,
        [REPACK_REFUSED] = true};
    marlin_repack_params(k, used, q->addresses);
    find_group(q);
    uint32_t groups = marlin_groups(&q->product);
    if (groups % REPACK_CTA_GROUPS == 0)
        pack_group(q);
    else
        ptx_if(k, ptx_setp_lt_u32(k, q->packed, U32(groups)))
            pack_group(q);
    ptx_kernel_end(k);
}
