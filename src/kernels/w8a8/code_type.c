/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What depends on the type of the codes: how a quotient becomes a code, the instructions that
 * multiply codes, and how their sums are added up and become numbers.
 */
#include "emit.h"

/* ---- codes ---- */

/* The clamped and rounded quotient; f32 is clamped first, f64 last, with the same result. */
ptx_u32 w8a8_code_of(const struct quantiser *q, const struct token *t, struct work quotient)
{
    ptx_kernel *k = q->k;
    const ptxgen_w8a8_spec *s = q->spec;
    bool wide = q->wide;
    bool within = w8a8_has_normal_scale(q) && !s->asymmetric && -s->q_min >= s->q_max;
    ptx_u32 halves[2];
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

void w8a8_mma(struct product *q, ptx_u32 acc[4], const ptx_u32 w[4], const ptx_u32 codes[2])
{
    ptx_s32 sums[4];
    for (int r = 0; r < 4; r++)
        sums[r] = ptx_u32_as_s32(acc[r]);
    ptx_mma_m16n8k32_s32_s8_s8_to(q->g.k, sums, w, codes, sums);
}

void w8a8_begin_wgmma_sums(struct product *q)
{
    (void)q; /* the first products overwrite the sums */
}

void w8a8_wgmma(struct product *q, uint32_t i, uint32_t columns, ptx_u64 a, ptx_u64 b,
                ptx_pred later)
{
    ptx_s32 sums[4 * MAX_TOKEN_TILES];
    for (uint32_t r = 0; r < columns / 2; r++)
        sums[r] = ptx_u32_as_s32(q->acc[0][r / 4][r % 4]);
    ptx_wgmma_k32_s32_s8_s8(q->g.k, (int)columns, sums, a, b, i ? q->always : later);
}

void w8a8_end_wgmma_stage(struct product *q)
{
    ptx_wgmma_wait_group(q->g.k, (int)q->lag);
}

/* ---- sums ---- */

ptx_u32 w8a8_add_sums(ptx_kernel *k, const ptxgen_w8a8_spec *s, ptx_u32 a, ptx_u32 b)
{
    (void)s;
    return ptx_s32_as_u32(ptx_add_s32(k, ptx_u32_as_s32(a), ptx_u32_as_s32(b)));
}

struct work w8a8_work_of_sum(ptx_kernel *k, bool wide, const ptxgen_w8a8_spec *s, ptx_u32 sum)
{
    (void)s;
    return work_of_s32(k, wide, ptx_u32_as_s32(sum));
}
