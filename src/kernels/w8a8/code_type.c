/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What depends on the type of the codes: how a quotient becomes a code, the instructions that
 * multiply codes, and how their sums become numbers.
 *
 *     s8      sums are s32, and exact
 *     e4m3    sums are f32. Tensor cores keep as little as 13 bits while they add (wgmma of
 *             sm_90, mma.sync of sm_89), so each block of 128 of K of wgmma, and each mma.sync,
 *             begins with sums of 0, which are then added to the tile's sums in f32.
 */
#include "emit.h"

/* ---- codes ---- */

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
    if (s->codes == PTXGEN_W8A8_E4M3)
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

static bool is_e4m3(const struct product *q)
{
    return q->spec->codes == PTXGEN_W8A8_E4M3;
}

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
    ptx_mma_m16n8k32_f32_e4m3_e4m3(q->g.k, sums, w, codes, zeros);
    add_to_sums(q, acc, sums, 4);
}

void w8a8_mma(struct product *q, ptx_u32 acc[4], const ptx_u32 w[4], const ptx_u32 codes[2])
{
    ptx_s32 sums[4];
    if (is_e4m3(q)) {
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
    if (!is_e4m3(q))
        return; /* the first products overwrite the sums */
    q->never = ptx_setp_ne_u32(k, q->g.m, q->g.m);
    for (uint32_t r = 0; r < count_wgmma_sums(q); r++) {
        ptx_mov_u32_to(k, q->acc[0][r / 4][r % 4], U32(0));
        for (uint32_t i = 0; i < q->v->wk; i++)
            q->block_sums[i][r] = ptx_mov_f32(k, F32(0));
    }
}

void w8a8_wgmma(struct product *q, uint32_t block, uint32_t step, uint32_t columns, ptx_u64 a,
                ptx_u64 b, ptx_pred later)
{
    ptx_s32 sums[4 * MAX_TOKEN_TILES];
    if (is_e4m3(q)) {
        ptx_wgmma_k32_f32_e4m3_e4m3(q->g.k, (int)columns, q->block_sums[block], a, b,
                                    step ? q->always : q->never, 1, 1);
        return;
    }
    for (uint32_t r = 0; r < columns / 2; r++)
        sums[r] = ptx_u32_as_s32(q->acc[0][r / 4][r % 4]);
    ptx_wgmma_k32_s32_s8_s8(q->g.k, (int)columns, sums, a, b, block || step ? q->always : later);
}

void w8a8_add_blocks(struct product *q)
{
    for (uint32_t i = 0; i < q->v->wk; i++)
        add_to_sums(q, q->acc[0][0], q->block_sums[i], count_wgmma_sums(q));
}

struct work w8a8_work_of_sum(ptx_kernel *k, bool wide, const ptxgen_w8a8_spec *s, ptx_u32 sum)
{
    if (!w8a8_sums_are_integers(s))
        return (struct work){.f = ptx_u32_as_f32(sum)};
    return work_of_s32(k, wide, ptx_u32_as_s32(sum));
}
