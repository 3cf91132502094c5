/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What depends on the type of the codes: what a spec may ask of it, how a quotient becomes a code,
 * the instructions that multiply codes, and how their sums become numbers.
 *
 *     s8      sums are s32, and exact
 *     e4m3    sums are f32. Tensor cores keep as little as 13 bits while they add (wgmma of
 *             sm_90, mma.sync of sm_89), so each block of 128 of K of wgmma, and each mma.sync,
 *             begins with sums of 0, which are then added to the tile's sums in f32.
 *
 * Weights of e5m2 are multiplied with codes of e4m3, of whose type the spec then is.
 */
#include "code_type.h"

#include "emit.h"

static const struct w8a8_code_type types[] = {
    [PTXGEN_W8A8_S8] = {.largest = 127, .rounding = PTXGEN_ROUNDING_S8, .integer = true},
    [PTXGEN_W8A8_E4M3] = {.largest = 448,
                          .least = 0x1p-6,
                          .rounding = PTXGEN_ROUNDING_E4M3,
                          .has_nans = true,
                          .sum_blocks = W8A8_MOST_BLOCKS},
    [PTXGEN_W8A8_E5M2] = {.largest = 57344, .least = 0x1p-14}};
enum { TYPES = sizeof types / sizeof *types };

const struct w8a8_code_type *w8a8_code_type(unsigned codes)
{
    return &types[codes < TYPES ? codes : PTXGEN_W8A8_S8];
}

static bool is_e4m3(const ptxgen_w8a8_spec *s)
{
    return s->codes == PTXGEN_W8A8_E4M3;
}

/* ---- refusals ---- */

static ptxgen_status check_e4m3(const ptxgen_w8a8_spec *s, ptxgen_error *err)
{
    enum { MOST_K = 1 << 17 };
    int largest = w8a8_code_type(s->codes)->largest;
    if (s->asymmetric)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "w8a8: asymmetric = 1, but e4m3 codes have no zero points");
    if (s->q_max != largest || s->q_min != -largest)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "w8a8: q_min = %d and q_max = %d, but e4m3 codes have no range: both "
                           "must be 0",
                           s->q_min, s->q_max);
    if (w8a8_is_wide(s))
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "w8a8: x_type = %u, y_type = %u; with e4m3 codes f64 (3) is not "
                           "supported",
                           s->x_type, s->y_type);
    if (s->k > MOST_K)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "w8a8: K = %u is above %d, the most for e4m3 codes", s->k, MOST_K);
    return PTXGEN_OK;
}

static ptxgen_status check_s8(const ptxgen_w8a8_spec *s, ptxgen_error *err)
{
    if (s->q_min < -128 || s->q_min > 0 || s->q_max <= 0 || s->q_max > 127)
        return ptxgen_fail(
            err, PTXGEN_ERROR_UNSUPPORTED,
            "w8a8: codes of %d ... %d; the rule is -128 <= q_min <= 0 < q_max <= 127", s->q_min,
            s->q_max);
    int reach = s->asymmetric ? s->q_max - s->q_min : -s->q_min > s->q_max ? -s->q_min : s->q_max;
    uint32_t most = (uint32_t)(INT32_MAX / (128 * reach));
    if (s->k > most)
        return ptxgen_fail(
            err, PTXGEN_ERROR_UNSUPPORTED,
            "w8a8: K = %u is above %u, from where sums of products of %scodes %d ... %d "
            "with weights down to -128 can leave 32 bits",
            s->k, most, s->asymmetric ? "asymmetric " : "", s->q_min, s->q_max);
    return PTXGEN_OK;
}

ptxgen_status w8a8_check_weight_codes(unsigned codes, ptxgen_error *err)
{
    if (codes < TYPES)
        return PTXGEN_OK;
    return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                       "w8a8: weights with codes = %u; s8, e4m3 and e5m2 are 0, 1 and 2", codes);
}

static ptxgen_status check_types(const ptxgen_w8a8_spec *s, ptxgen_error *err)
{
    if (s->codes > PTXGEN_W8A8_E4M3)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "w8a8: codes = %u; s8 and e4m3 are 0 and 1", s->codes);
    if (s->w_codes && s->w_codes != PTXGEN_W8A8_E5M2)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "w8a8: w_codes = %u is neither 0, the type of codes, nor e5m2 (2)",
                           s->w_codes);
    if (s->w_codes && !is_e4m3(s))
        return ptxgen_fail(
            err, PTXGEN_ERROR_UNSUPPORTED,
            "w8a8: w_codes = %u with codes = %u; weights of e5m2 need e4m3 codes (1)", s->w_codes,
            s->codes);
    return PTXGEN_OK;
}

ptxgen_w8a8_spec w8a8_with_range(const ptxgen_w8a8_spec *spec)
{
    ptxgen_w8a8_spec s = *spec;
    if (!s.q_min && !s.q_max) {
        s.q_max = (int16_t)w8a8_code_type(s.codes)->largest;
        s.q_min = (int16_t)-s.q_max;
    }
    return s;
}

ptxgen_status w8a8_check_codes(const ptxgen_w8a8_spec *spec, ptxgen_error *err)
{
    ptxgen_status status = check_types(spec, err);
    if (status != PTXGEN_OK)
        return status;
    const ptxgen_w8a8_spec filled = w8a8_with_range(spec);
    return is_e4m3(&filled) ? check_e4m3(&filled, err) : check_s8(&filled, err);
}

ptxgen_status w8a8_check_code_target(const ptxgen_w8a8_plan *p, ptxgen_error *err)
{
    const ptx_target *t = &p->target.ptx;
    bool has_e4m3 = t->sm >= 89 && (!t->max_ptx || t->max_ptx >= 84);
    if (is_e4m3(&p->spec) && !has_e4m3)
        return ptxgen_fail(err, PTXGEN_ERROR_TARGET,
                           "w8a8: products of e4m3 codes need sm_89 and PTX 8.4; the target is "
                           "sm_%u with PTX %u.%u (0.0: any)",
                           t->sm, t->max_ptx / 10, t->max_ptx % 10);
    return PTXGEN_OK;
}

bool w8a8_widens_codes(const ptxgen_w8a8_plan *p)
{
    return is_e4m3(&p->spec) && p->target.ptx.sm >= 90 && p->target.ptx.sm < 120;
}

/* ---- codes on the host ---- */

/* How numbers of a type are stored, besides the sign. */
struct layout {
    int mantissa, bias, least; /* bits; of the exponent; exponent of normal numbers */
    uint8_t largest, infinity; /* 0: there is none */
};

/* OCP 8-bit Floating Point Specification. */
static const struct layout *layout_of(unsigned codes)
{
    static const struct layout e4m3 = {.mantissa = 3, .bias = 7, .least = -6, .largest = 0x7E},
                               e5m2 = {.mantissa = 2,
                                       .bias = 15,
                                       .least = -14,
                                       .largest = 0x7B,
                                       .infinity = 0x7C};
    return codes == PTXGEN_W8A8_E5M2 ? &e5m2 : &e4m3;
}

/* The number nearest to x, ties to even, and the largest one in place of larger ones. */
static uint8_t float_code_of(unsigned codes, double x)
{
    const struct layout *t = layout_of(codes);
    double size = fmin(fabs(x), types[codes].largest);
    int exponent = size < ldexp(1, t->least) ? t->least : ilogb(size);
    int units = (int)rint(ldexp(size, t->mantissa - exponent)); /* less than normal: subnormal */
    int code = ((exponent + t->bias) << t->mantissa) + units - (1 << t->mantissa);
    return (uint8_t)((code < t->largest ? code : t->largest) | (signbit(x) ? 0x80 : 0));
}

static double float_value(unsigned codes, uint8_t code)
{
    const struct layout *t = layout_of(codes);
    int magnitude = code & 0x7F, one = 1 << t->mantissa, field = magnitude >> t->mantissa;
    double size = ldexp(field ? one + magnitude % one : magnitude,
                        (field ? field : 1) - t->bias - t->mantissa);
    if (magnitude > t->largest)
        size = magnitude == t->infinity ? INFINITY : NAN;
    return code & 0x80 ? -size : size;
}

/* The code of s8 is clamp(round(x / scale) + zero, q_min, q_max); the quotient may overflow. */
int8_t w8a8_code(unsigned codes, ptxgen_element work, double x, double scale, int32_t zero,
                 int q_min, int q_max)
{
    double quotient = w8a8_divide(work, x, scale), code = rint(quotient) + zero;
    if (codes != PTXGEN_W8A8_S8)
        return (int8_t)float_code_of(codes, quotient);
    return (int8_t)(code < q_min ? q_min : code > q_max ? q_max : code);
}

/*
 * The kernels' division (division.c) loses the sign of 0 in its last sum: where x is 0, or the
 * scale is so large that both are made smaller and nothing of x is left, the quotient is +0.
 */
int8_t w8a8_token_code(unsigned codes, ptxgen_element work, double x, double scale, int32_t zero,
                       int q_min, int q_max)
{
    bool divides_zero = (float)(x * (scale > 0x1p60 ? 0x1p-64 : 1)) == 0;
    return w8a8_code(codes, work, codes == PTXGEN_W8A8_E4M3 && divides_zero ? 0 : x, scale, zero,
                     q_min, q_max);
}

double w8a8_code_value(unsigned codes, uint8_t code)
{
    return codes != PTXGEN_W8A8_S8 ? float_value(codes, code) : (int8_t)code;
}

/* ---- codes in a kernel ---- */

/* The low byte of the pair; quotients above 448, the largest number, become 448. */
static ptx_u32 e4m3_code_of(ptx_kernel *k, ptx_f32 quotient)
{
    ptx_u16 pair = ptx_cvt_e4m3x2_f32(k, F32(0), quotient);
    return ptx_cvt_u32_u16(k, pair);
}

/* The clamped and rounded quotient; f32 is clamped first, f64 last, with the same result. */
ptx_u32 w8a8_code_of(const struct quantiser *q, const struct token *t, struct work quotient)
{
    ptx_kernel *k = q->k;
    const ptxgen_w8a8_spec *s = q->spec;
    bool wide = q->wide;
    bool within = w8a8_has_normal_scale(q) && !s->asymmetric && -s->q_min >= s->q_max;
    ptx_u32 halves[2];
    if (is_e4m3(s))
        return e4m3_code_of(k, quotient.f);
    if (!within && !wide) {
        quotient = work_min(k, false, quotient, t->high);
        quotient = work_max(k, false, quotient, t->low);
    }
    quotient = work_add(k, wide, quotient, work_constant(wide, wide ? 0x1.8p52 : 0x1.8p23));
    if (!wide)
        return ptx_f32_as_u32(quotient.f);
    ptx_unpack_f64(k, halves, quotient.d);
    if (within)
        return halves[0];
    ptx_s32 code = ptx_min_s32(k, ptx_u32_as_s32(halves[0]), t->most);
    return ptx_s32_as_u32(ptx_max_s32(k, code, t->least));
}

/* ---- products ---- */

/* Adds `count` sums to the accumulators. */
static void add_to_sums(struct product *q, ptx_u32 *acc, const ptx_f32 *sums, uint32_t count)
{
    for (uint32_t r = 0; r < count; r++) {
        ptx_f32 sum = ptx_u32_as_f32(acc[r]);
        ptx_add_f32_to(q->g.k, sum, sum, sums[r]);
    }
}

static void mma_e4m3(struct product *q, ptx_u32 acc[4], const ptx_u32 w[4], const ptx_u32 codes[2])
{
    const ptx_f32 zeros[4] = {F32(0), F32(0), F32(0), F32(0)};
    ptx_f32 sums[4];
    if (q->spec->w_codes)
        ptx_mma_m16n8k32_f32_e5m2_e4m3(q->g.k, sums, w, codes, zeros);
    else
        ptx_mma_m16n8k32_f32_e4m3_e4m3(q->g.k, sums, w, codes, zeros);
    add_to_sums(q, acc, sums, 4);
}

void w8a8_mma(struct product *q, ptx_u32 acc[4], const ptx_u32 w[4], const ptx_u32 codes[2])
{
    ptx_s32 sums[4];
    if (is_e4m3(q->spec)) {
        mma_e4m3(q, acc, w, codes);
        return;
    }
    for (int r = 0; r < 4; r++)
        sums[r] = ptx_u32_as_s32(acc[r]);
    ptx_mma_m16n8k32_s32_s8_s8_to(q->g.k, sums, w, codes, sums);
}

/* Sums of a thread in wgmma: a warp's 16 rows of A by the columns of B, over 32 lanes. */
static uint32_t count_wgmma_sums(const struct product *q)
{
    return (w8a8_tokens_are_m(q->v) ? w8a8_group_features(q->v) : w8a8_group_tokens(q->v)) / 2;
}

void w8a8_begin_wgmma_sums(struct product *q)
{
    ptx_kernel *k = q->g.k;
    if (!is_e4m3(q->spec))
        return; /* the first products overwrite the sums */
    q->never = ptx_setp_ne_u32(k, q->g.m, q->g.m);
    for (uint32_t r = 0; r < count_wgmma_sums(q); r++) {
        for (uint32_t strip = 0; strip < w8a8_strips(q->v); strip++)
            ptx_mov_u32_to(k, q->acc[strip][r / 4][r % 4], U32(0));
        for (uint32_t i = 0; i < q->v->wk; i++)
            q->block_sums[i][r] = ptx_mov_f32(k, F32(0));
    }
}

/* Operand A is the codes where tokens are wgmma's M, else w. */
static void wgmma_e4m3(struct product *q, ptx_f32 *sums, uint32_t columns, ptx_u64 a, ptx_u64 b,
                       ptx_pred adds)
{
    ptx_kernel *k = q->g.k;
    if (!q->spec->w_codes)
        ptx_wgmma_k32_f32_e4m3_e4m3(k, (int)columns, sums, a, b, adds, 1, 1);
    else if (w8a8_tokens_are_m(q->v))
        ptx_wgmma_k32_f32_e4m3_e5m2(k, (int)columns, sums, a, b, adds, 1, 1);
    else
        ptx_wgmma_k32_f32_e5m2_e4m3(k, (int)columns, sums, a, b, adds, 1, 1);
}

void w8a8_wgmma(struct product *q, uint32_t block, uint32_t step, uint32_t columns, ptx_u64 a,
                ptx_u64 b, ptx_pred later)
{
    ptx_s32 sums[4 * MAX_TOKEN_TILES];
    if (is_e4m3(q->spec)) {
        wgmma_e4m3(q, q->block_sums[block], columns, a, b, step ? q->always : q->never);
        return;
    }
    for (uint32_t r = 0; r < columns / 2; r++)
        sums[r] = ptx_u32_as_s32(q->acc[0][r / 4][r % 4]);
    ptx_wgmma_k32_s32_s8_s8(q->g.k, (int)columns, sums, a, b, block || step ? q->always : later);
}

void w8a8_add_blocks(struct product *q, uint32_t strip)
{
    for (uint32_t i = 0; i < q->v->wk; i++)
        add_to_sums(q, q->acc[strip][0], q->block_sums[i], count_wgmma_sums(q));
}

struct work w8a8_work_of_sum(ptx_kernel *k, bool wide, const ptxgen_w8a8_spec *s, ptx_u32 sum)
{
    if (is_e4m3(s))
        return (struct work){.f = ptx_u32_as_f32(sum)};
    return work_of_s32(k, wide, ptx_u32_as_s32(sum));
}
