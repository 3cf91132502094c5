/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packed weights, from a stage in shared memory to fragments of mma.
 *
 * Dequantisation puts a code into the low mantissa bits of a constant. As f16, 0x6400 | q is 1024 +
 * q and 0x6400 | q << 4 is 1024 + 16q, so one lop3 takes two codes; subtracting 1024 + z, or
 * multiplying by 1/16 and adding −(64 + z), gives q − z exactly (Kim et al., Who Says Elephants
 * Can't Run, 2022): 13 instructions for 8 weights with scales. The mantissa of bf16 has 7 bits, too
 * few for the higher code. But the low byte v of a word is by itself a bf16, v·2⁻¹³³ (subnormal or
 * not), and that number times 2¹⁰³, less z·2⁻³⁰, is (q − z)·2⁻³⁰ exactly; sums then have the unit
 * 2⁻³⁰. Where weights are scaled and z is 8, the factor is s·2¹⁰³ and the addend −s·2⁻²⁷, which
 * rounds once as well: 9 instructions for 8 weights. For that, scales of bf16 have to be below 2²⁵.
 *
 * Where sums are scaled, codes are only masked and the sums are corrected. As f16, a masked code is
 * a subnormal, q·2⁻²⁴ or q·2⁻²⁰, which tensor cores multiply exactly, though they cut products as
 * if these had the exponent of 1024·2⁻²⁴. As bf16, a masked code would be too small for products in
 * f32, so 128 + q is multiplied. The sum of a group then lacks −z, or −(128 + z), times the sum of
 * its activations, which one more mma for each load of activations computes: their fragments are
 * operand A, and ones are operand B. With a ring, one warp computes these sums for all others. The
 * errors of each way are in docs/notes/marlin.md.
 */
#include "emit.h"

enum {
    LOP3_AND_OR = 0xEA, /* (a & b) | c */
    CHUNK = GEMM_CHUNK_BYTES,
};

/* ---- sizes ---- */

uint32_t marlin_step_groups(const ptxgen_marlin_spec *s)
{
    uint32_t rows = marlin_scale_rows(s);
    return !rows ? 0 : rows < MARLIN_STEP ? MARLIN_STEP / rows : 1;
}

/* Where all steps of a stage are in one group, the stage has the scales of that group once. */
uint32_t marlin_stage_groups(const ptxgen_marlin_spec *s, uint32_t steps)
{
    uint32_t rows = marlin_scale_rows(s);
    if (rows < MARLIN_STEP)
        return marlin_step_groups(s) * steps;
    return rows / MARLIN_STEP % steps ? steps : 1;
}

uint32_t marlin_stages_along_k(const ptxgen_marlin_spec *s, const ptxgen_tile *v)
{
    uint32_t steps = v->wk * v->steps * v->cluster;
    return (marlin_steps(s) + steps - 1) / steps;
}

/* ---- the strip of a warp ---- */

/* The warp's first packed feature, in units of warp_n. */
static ptx_u32 columns_of(struct marlin_product *q, ptx_u32 tile_n)
{
    return ptx_mad_lo_u32(q->g.k, tile_n, U32(q->v->wn), q->along_n);
}

ptx_u32 marlin_emit_strip_of(struct marlin_product *q, ptx_u32 tile_n)
{
    return gemm_divide(q->g.k, columns_of(q, tile_n), MARLIN_STRIP / q->v->warp_n);
}

bool marlin_half_varies(const struct marlin_product *q)
{
    return has_half_strip(q) && q->v->wn % 2;
}

void marlin_emit_half(struct marlin_product *q, ptx_u32 tile_n, ptx_u32 half)
{
    if (marlin_half_varies(q))
        ptx_and_b32_to(q->g.k, half, columns_of(q, tile_n), U32(1));
}

/*
 * Where the warp's codes are in a stage: whole strips come first, beginning with strip `odd`, and
 * the half strip follows them.
 */
static void find_codes(struct marlin_product *q, ptx_u32 odd, ptx_u32 strip)
{
    ptx_kernel *k = q->g.k;
    struct weights *w = &q->w;
    enum { STEP = MARLIN_STEP_BYTES, HALF = STEP / 2 };
    ptx_u32 lone = ptx_selp_u32(k, U32(q->v->wn / 2), U32(0), ptx_setp_eq_u32(k, odd, U32(0)));
    ptx_pred is_lone = ptx_setp_eq_u32(k, strip, lone);
    ptx_u32 whole =
        ptx_mad_lo_u32(k, ptx_sub_u32(k, strip, odd), U32(w->codes_bytes), w->strips_codes);
    whole = ptx_mad_lo_u32(k, q->operands.half, U32(HALF), whole);
    ptx_selp_u32_to(k, w->codes_at, w->half_codes, whole, is_lone);
    ptx_selp_u32_to(k, w->codes_step, U32(HALF), U32(STEP), is_lone);
}

void marlin_emit_strip(struct marlin_product *q, ptx_u32 tile_n)
{
    ptx_kernel *k = q->g.k;
    struct weights *w = &q->w;
    if (!marlin_has_odd_halves(q->v))
        return;
    ptx_u32 odd = ptx_and_b32(k, ptx_mul_lo_u32(k, tile_n, U32(q->v->wn)), U32(1));
    ptx_u32 strip = ptx_shr_u32(k, ptx_add_u32(k, odd, q->along_n), U32(1));
    find_codes(q, odd, strip);
    if (w->scales_bytes) {
        ptx_u32 half = ptx_mad_lo_u32(k, q->operands.half, U32(CHUNK / 2), w->strips_scales);
        ptx_mad_lo_u32_to(k, w->scales_at, strip, U32(w->scales_bytes), half);
    }
    if (w->zeros_bytes)
        ptx_mad_lo_u32_to(k, w->zeros_at, strip, U32(w->zeros_bytes), w->strips_zeros);
}

/* ---- shared to registers ---- */

void marlin_emit_weights_load(struct marlin_product *q, ptx_u32 slot, uint32_t step,
                              ptx_u32 words[MAX_TILES][4])
{
    ptx_u32 at = ptx_add_u32(q->g.k, slot, q->w.codes_at);
    uint32_t past = step * q->w.step_bytes;
    if (step && marlin_has_odd_halves(q->v)) {
        at = ptx_mad_lo_u32(q->g.k, q->w.codes_step, U32(step), at);
        past = 0;
    }
    for (uint32_t t = 0; t < tiles(q); t++)
        ptx_ld_shared_v4_u32_to(q->g.k, words[t], at, (int)(past + t * MARLIN_TILE_BYTES));
}

/* Keeps the zero points of the warp's half of a strip, which are one half of the word. */
static void keep_zeros(struct marlin_product *q, ptx_u32 word, struct scales *s)
{
    if (has_half_strip(q)) {
        ptx_u32 shift = ptx_mul_lo_u32(q->g.k, q->operands.half, U32(16));
        ptx_shr_u32_to(q->g.k, s->zeros, word, shift);
    } else
        ptx_mov_u32_to(q->g.k, s->zeros, word);
}

void marlin_emit_scales_load(struct marlin_product *q, ptx_u32 slot, uint32_t group,
                             struct scales *s)
{
    ptx_kernel *k = q->g.k;
    ptx_u32 at = ptx_add_u32(k, slot, q->w.scales_at);
    if (has_half_strip(q)) {
        if (!q->reads_ring)
            at = ptx_mad_lo_u32(k, q->operands.half, U32(CHUNK / 2), at);
        ptx_ld_shared_v2_u32_to(k, s->packed, at, (int)(group * MARLIN_SCALES_BYTES));
    } else
        ptx_ld_shared_v4_u32_to(k, s->packed, at, (int)(group * MARLIN_SCALES_BYTES));
    if (!q->spec->zeros)
        return;
    ptx_u32 zeros_at = ptx_add_u32(k, slot, q->w.zeros_at);
    keep_zeros(q, ptx_ld_shared_u32(k, zeros_at, (int)(group * MARLIN_ZEROS_BYTES)), s);
}

void marlin_emit_column_scales_load(struct marlin_product *q, ptx_u32 tile_n, struct scales *s)
{
    ptx_kernel *k = q->g.k;
    ptx_u32 strip = marlin_emit_strip_of(q, tile_n);
    if (strips_have_tail(q)) /* past the last strip, load its scales again; they are not used */
        strip = ptx_min_u32(k, strip, U32(marlin_strips(q->spec) - 1));
    ptx_u64 at = ptx_mad_wide_u32(k, strip, U32(MARLIN_SCALES_BYTES), q->address[MARLIN_SCALES]);
    ptx_u64 row = ptx_mad_wide_u32(k, q->g.at.group, U32(CHUNK), at);
    if (has_half_strip(q)) {
        ptx_u64 half = ptx_mad_wide_u32(k, q->operands.half, U32(CHUNK / 2), row);
        ptx_ld_global_nc_v2_u32_to(k, s->packed, half, 0);
    } else
        ptx_ld_global_nc_v4_u32_to(k, s->packed, row, 0);
    if (!q->spec->zeros)
        return;
    ptx_u64 zeros = ptx_mad_wide_u32(k, strip, U32(MARLIN_ZEROS_BYTES), q->address[MARLIN_ZEROS]);
    ptx_u64 zeros_row = ptx_mad_wide_u32(k, q->g.at.group, U32(4), zeros);
    keep_zeros(q, ptx_ld_global_nc_u32(k, zeros_row, 0), s);
}

/* ---- dequantisation ---- */

static ptx_f32 widen(struct marlin_product *q, ptx_u16 half)
{
    return is_bf16(q) ? ptx_cvt_f32_bf16(q->g.k, ptx_u16_as_bf16(half))
                      : ptx_cvt_f32_f16(q->g.k, ptx_u16_as_f16(half));
}

void marlin_emit_scales_f32(struct marlin_product *q, const struct scales *s, uint32_t tile,
                            ptx_f32 scale[2])
{
    ptx_u16 halves[2];
    ptx_unpack_u32(q->g.k, halves, s->packed[tile]);
    scale[0] = widen(q, halves[0]);
    scale[1] = widen(q, halves[1]);
}

enum { ONE = 0x3C00 /* in f16 */ };

/*
 * The constants that turn a masked code into q − z: the code is put into the mantissa of `base`,
 * multiplied by `unit`, and `zero` is added. `zero` is for z = 0, and `step` is subtracted from it
 * for each unit of z. Element 0 is for registers 0 and 2 of an operand, element 1 for 1 and 3. In
 * bf16 the result is (q − z)·2⁻³⁰, and `zero` is for z = 8.
 */
static const struct constants {
    uint32_t base, unit[2], zero[2], step[2];
} constants[2] = {{0x6400, {ONE, 0x2C00 /* 1/16 */}, {0xE400, 0xD400}, {1, 16}},
                  {0, {0x7300 /* 2^103 */, 0x7100 /* 2^99 */}, {0xB200, 0xB200}, {0}}};

enum {
    TWICE = 0x00010001,
    /* Factors of a scale: for the factor of codes, and for the addend, −8·2⁻³⁰. */
    FOLDED_UNITS = 0x71007300,
    FOLDED_ZEROS = 0xB200B200,
    MINUS_UNIT = 0xF300F300, /* factor of a zero point, which is a subnormal, for the addend */
};

enum marlin_form marlin_find_form(const ptxgen_marlin_spec *s, const ptxgen_tile *v)
{
    if (marlin_corrects_sums(s, v))
        return MARLIN_MASKED;
    if (marlin_scales_sums(s, v))
        return MARLIN_UNSCALED;
    return s->type == PTXGEN_BF16 && !s->zeros ? MARLIN_FOLDED : MARLIN_SCALED;
}

void marlin_emit_dequantiser_begin(struct marlin_product *q)
{
    struct dequantiser *d = &q->operands.dequantiser;
    const struct constants *c = &constants[is_bf16(q)];
    bool folds = q->form == MARLIN_FOLDED;
    d->minus_zero = ptx_mov_u32(q->g.k, U32(0x80008000));
    for (uint32_t i = 0; i < 2 * tiles(q); i++) {
        uint32_t t = i / 2, h = i % 2, zero = c->zero[h] + PTXGEN_W4_SYMMETRIC_ZERO * c->step[h];
        d->unit[t][h] = !t || folds ? ptx_mov_u32(q->g.k, U32(c->unit[h] * TWICE)) : d->unit[0][h];
        d->zero[t][h] =
            !t || folds || q->spec->zeros ? ptx_mov_u32(q->g.k, U32(zero * TWICE)) : d->zero[0][h];
        if (q->form == MARLIN_SCALED)
            d->scale[t][h] = ptx_mov_u32(q->g.k, U32(0));
    }
}

/* to = a·b + c, in pairs of the type. */
static void fma_pair(struct marlin_product *q, ptx_u32 to, ptx_u32 a, ptx_u32 b, ptx_u32 c)
{
    if (is_bf16(q)) {
        ptx_bf16x2 x = ptx_u32_as_bf16x2(a), y = ptx_u32_as_bf16x2(b), z = ptx_u32_as_bf16x2(c);
        ptx_bf16x2 sum = ptx_u32_as_bf16x2(to);
        ptx_fma_bf16x2_to(q->g.k, sum, x, y, z);
    } else {
        ptx_f16x2 x = ptx_u32_as_f16x2(a), y = ptx_u32_as_f16x2(b), z = ptx_u32_as_f16x2(c);
        ptx_f16x2 sum = ptx_u32_as_f16x2(to);
        ptx_fma_f16x2_to(q->g.k, sum, x, y, z);
    }
}

/* to = a·b: bf16 has no multiplication before sm_90; −0 keeps the sign of zero. */
static void multiply_pair(struct marlin_product *q, ptx_u32 to, ptx_u32 a, ptx_u32 b)
{
    fma_pair(q, to, a, b, q->operands.dequantiser.minus_zero);
}

/*
 * Multiplies the halves of `packed` by those of the constant `times`, unless it is 0, and returns
 * each half as a pair of two equal halves. An instruction may take one half of a register twice, so
 * the pairs cost nothing.
 */
static void spread(struct marlin_product *q, ptx_u32 packed, uint32_t times, const ptx_u32 to[2])
{
    ptx_kernel *k = q->g.k;
    ptx_u16 halves[2];
    if (times) {
        ptx_u32 factor = ptx_mov_u32(k, U32(times));
        multiply_pair(q, factor, packed, factor);
        packed = factor;
    }
    ptx_unpack_u32(k, halves, packed);
    for (int i = 0; i < 2; i++) {
        const ptx_u16 both[2] = {halves[i], halves[i]};
        ptx_pack_u32_to(k, to[i], both);
    }
}

static void set_zero(struct marlin_product *q, const struct scales *s, uint32_t t, uint32_t h,
                     ptx_u32 to)
{
    ptx_kernel *k = q->g.k;
    const struct constants *c = &constants[0];
    ptx_u32 z = ptx_bfe_u32(k, s->zeros, U32(4 * (2 * t + h)), U32(4));
    if (is_bf16(q)) {
        ptx_u32 unit = ptx_mov_u32(k, U32(MINUS_UNIT));
        ptx_u32 twice = ptx_mul_lo_u32(k, z, U32(TWICE));
        multiply_pair(q, to, twice, unit);
    } else
        ptx_mad_lo_u32_to(k, to, z, U32(c->step[h] * TWICE), U32(c->zero[h] * TWICE));
}

void marlin_emit_dequantiser(struct marlin_product *q, const struct scales *s)
{
    struct dequantiser *d = &q->operands.dequantiser;
    if (q->form == MARLIN_MASKED)
        return;
    for (uint32_t t = 0; t < tiles(q); t++) {
        for (uint32_t h = 0; h < 2 && q->spec->zeros; h++)
            set_zero(q, s, t, h, d->zero[t][h]);
        if (q->form == MARLIN_FOLDED) {
            spread(q, s->packed[t], FOLDED_UNITS, d->unit[t]);
            spread(q, s->packed[t], FOLDED_ZEROS, d->zero[t]);
        } else if (q->form == MARLIN_SCALED)
            spread(q, s->packed[t], 0, d->scale[t]);
    }
}

/* ---- masking, where sums are corrected ---- */

enum { BF16_OFFSET = 128 };

uint32_t marlin_code_offset(const ptxgen_marlin_spec *s)
{
    return s->type == PTXGEN_BF16 ? BF16_OFFSET : 0;
}

float marlin_code_unit(const struct marlin_product *q, uint32_t half)
{
    if (q->form != MARLIN_MASKED)
        return is_bf16(q) ? 0x1p-30f : 1;
    return is_bf16(q) ? 1 : half ? 0x1p-20f : 0x1p-24f;
}

uint32_t marlin_zero_pair(const struct marlin_product *q, uint32_t half)
{
    uint32_t zero = is_bf16(q) ? 0xC308 /* −136 */ : half ? 0x8080 : 0x8008;
    return zero * TWICE;
}

ptx_f32 marlin_emit_correction(struct marlin_product *q, const struct scales *s, uint32_t tile,
                               uint32_t half)
{
    ptx_kernel *k = q->g.k;
    uint32_t offset = marlin_code_offset(q->spec);
    float unit = marlin_code_unit(q, half);
    if (!q->spec->zeros)
        return F32(-(float)(offset + PTXGEN_W4_SYMMETRIC_ZERO) * unit);
    ptx_u32 z = ptx_bfe_u32(k, s->zeros, U32(4 * (2 * tile + half)), U32(4));
    ptx_f32 zero = ptx_cvt_f32_u32(k, offset ? ptx_add_u32(k, z, U32(offset)) : z);
    return ptx_mul_f32(k, zero, F32(-unit));
}

/* Masks pair i of a word's codes, and puts it into the mantissa of a constant. */
static void mask_codes(struct marlin_product *q, uint32_t i, ptx_u32 word, ptx_u32 *moved,
                       ptx_u32 to)
{
    ptx_kernel *k = q->g.k;
    bool masked = q->form == MARLIN_MASKED, low = masked && is_bf16(q);
    uint32_t shift = low ? 4 * i : i == 2 ? 8 : 0;
    uint32_t base = !masked ? constants[is_bf16(q)].base : low ? 0x4300 : 0;
    if (shift)
        *moved = ptx_shr_u32(k, word, U32(shift));
    ptx_lop3_b32_to(k, to, *moved, U32(i % 2 && !low ? 0x00F000F0 : 0x000F000F), U32(base * TWICE),
                    LOP3_AND_OR);
}

void marlin_emit_dequantise(struct marlin_product *q, uint32_t tile, ptx_u32 word,
                            const ptx_u32 a[4])
{
    const struct dequantiser *d = &q->operands.dequantiser;
    ptx_u32 moved = word;
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t h = i % 2;
        mask_codes(q, i, word, &moved, a[i]);
        if (q->form == MARLIN_MASKED)
            continue;
        if (constants[is_bf16(q)].unit[h] == ONE) {
            ptx_f16x2 pair = ptx_u32_as_f16x2(a[i]), zero = ptx_u32_as_f16x2(d->zero[tile][h]);
            ptx_add_f16x2_to(q->g.k, pair, pair, zero);
        } else
            fma_pair(q, a[i], a[i], d->unit[tile][h], d->zero[tile][h]);
        if (q->form == MARLIN_SCALED)
            multiply_pair(q, a[i], a[i], d->scale[tile][h]);
    }
}
