/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums of activations, Σ x over the K of a group, by which sums of masked codes are corrected. One
 * mma for each load of activations computes them: their fragments are operand A, ones operand B.
 *
 *     each warp for itself     adds the activations that it multiplies, and exchanges sums between
 *                              lanes at the end of a group
 *     a warp for all others    reads each stage of the ring and stores in it Σ x of each group, or
 *                              for small groups the sums of products that Σ x makes of the zero
 *                              points; consumers wait at the stage's side barrier (ring.h)
 */
#include "bulk.h"

/* ---- own sums ---- */

static void begin_ones(struct marlin_product *q)
{
    ptx_kernel *k = q->g.k;
    struct totals *t = &q->operands.totals;
    t->ones = ptx_mov_u32(k, U32(is_bf16(q) ? 0x3F803F80 : 0x3C003C00));
    for (uint32_t e = 0; e < 2; e++) /* of group 2q + e */
        t->source[e] = ptx_mad_lo_u32(k, q->g.at.quad, U32(8), U32(4 * e));
}

static void new_totals(struct marlin_product *q)
{
    for (int i = 0; i < 2; i++)
        for (int r = 0; r < 4; r++)
            q->operands.totals.sums[i][r] = ptx_mov_f32(q->g.k, F32(0));
}

void marlin_emit_totals_begin(struct marlin_product *q)
{
    new_totals(q);
    if (q->mma.correction == MARLIN_BY_TOTALS)
        begin_ones(q);
}

void marlin_emit_totals_clear(struct marlin_product *q)
{
    for (int i = 0; i < 2; i++)
        for (int r = 0; r < 4; r++)
            ptx_mov_f32_to(q->g.k, q->operands.totals.sums[i][r], F32(0));
}

static void mma_k8(struct marlin_product *q, ptx_f32 acc[4], const ptx_u32 a[2], const ptx_u32 b[2])
{
    if (is_bf16(q))
        ptx_mma_m16n8k8_f32_bf16_to(q->g.k, acc, a, b, acc);
    else
        ptx_mma_m16n8k8_f32_f16_to(q->g.k, acc, a, b, acc);
}

void marlin_emit_totals_add(struct marlin_product *q, const ptx_u32 x[4])
{
    struct totals *t = &q->operands.totals;
    const ptx_u32 ones[2] = {t->ones, t->ones};
    if (!q->mma.parts_totals) {
        marlin_emit_mma(q, t->sums[0], x, ones);
        return;
    }
    for (uint32_t i = 0; i < 2; i++)
        mma_k8(q, t->sums[i], x + 2 * i, ones);
}

/* The sum of token g in fragment j of the loads that were added, up to mma step i. */
static ptx_f32 own_total(struct marlin_product *q, uint32_t i, uint32_t j)
{
    const struct totals *t = &q->operands.totals;
    uint32_t of = !q->mma.parts_totals ? 0 : q->mma.pairs ? i % 2 : j;
    return ptx_add_f32(q->g.k, t->sums[of][0], t->sums[of][2]);
}

void marlin_emit_totals_find(struct marlin_product *q, uint32_t i, ptx_f32 totals[2][2])
{
    ptx_kernel *k = q->g.k;
    const struct totals *t = &q->operands.totals;
    for (uint32_t j = 0; j < token_groups(q); j++) {
        if (q->mma.correction == MARLIN_BY_STORED_TOTALS) {
            totals[j][0] = t->sums[j][0];
            totals[j][1] = t->sums[j][1];
            continue;
        }
        ptx_f32 sum = own_total(q, i, j);
        for (uint32_t e = 0; e < 2; e++)
            totals[j][e] = ptx_u32_as_f32(
                ptx_shfl_sync_idx_u32(k, ptx_f32_as_u32(sum), t->source[e], U32(31), ALL_LANES));
    }
}

/* ---- sums that another warp has stored ---- */

/* The lane's address in the current stage; at its first group, the sums are waited for. */
static ptx_u32 find_stored(struct marlin_product *q, uint32_t group)
{
    const struct marlin_totals_place *u = &q->totals_place;
    if (group == 0)
        gemm_ring_side_wait(q->g.k, &q->g.ring, &u->present);
    return ptx_add_u32(q->g.k, u->present.slot, u->totals_at);
}

void marlin_emit_totals_load(struct marlin_product *q, uint32_t group, ptx_f32 totals[2][2])
{
    ptx_u32 at = find_stored(q, group), pair[2];
    for (uint32_t j = 0; j < token_groups(q); j++) {
        ptx_ld_shared_v2_u32(q->g.k, pair, at, (int)((group * q->v->tile_m + 8 * j) * 4));
        for (uint32_t e = 0; e < 2; e++)
            totals[j][e] = ptx_u32_as_f32(pair[e]);
    }
}

void marlin_emit_totals_add_stored(struct marlin_product *q)
{
    ptx_f32 totals[2][2];
    marlin_emit_totals_load(q, 0, totals);
    for (uint32_t j = 0; j < token_groups(q); j++)
        for (uint32_t e = 0; e < 2; e++) {
            ptx_f32 sum = q->operands.totals.sums[j][e];
            ptx_add_f32_to(q->g.k, sum, sum, totals[j][e]);
        }
}

void marlin_emit_first_sums_load(struct marlin_product *q, uint32_t group,
                                 ptx_f32 first[MAX_TOKEN_GROUPS][4])
{
    ptx_u32 at = find_stored(q, group), four[4];
    for (uint32_t j = 0; j < token_groups(q); j++) {
        int offset = (int)((group * token_groups(q) + j) * 64);
        ptx_ld_shared_v4_u32(q->g.k, four, at, offset);
        for (uint32_t r = 0; r < 4; r++)
            first[j][r] = ptx_u32_as_f32(four[r]);
    }
}

/* ---- the warp that stores them ---- */

/*
 * Sums up token g of each fragment over group `group` of the warps at `along_k`, in the stage at
 * `slot`.
 */
static void sum_group(struct marlin_product *q, ptx_u32 slot, uint32_t along_k, uint32_t group,
                      ptx_f32 totals[2])
{
    ptx_kernel *k = q->g.k;
    uint32_t mmas = q->mma.steps / marlin_corrected_groups(q->spec, q->v), first = group * mmas;
    bool pairs = q->mma.pairs;
    if (mmas > 1 || !pairs || first % 2 == 0)
        new_totals(q);
    for (uint32_t i = first; i < first + mmas; i++) {
        if (pairs && i % 2)
            continue;
        ptx_u32 block = U32(along_k * q->v->steps + i / STEP_MMAS), x[4];
        ptx_u32 lane = gemm_operand_lane(k, &q->x, slot, ptx_mov_u32(k, block));
        gemm_new_registers(k, x, 4);
        gemm_operand_load_to(k, gemm_operand_step(k, &q->x, lane, i % STEP_MMAS), 0, x);
        marlin_emit_totals_add(q, x);
    }
    for (uint32_t j = 0; j < token_groups(q); j++)
        totals[j] = own_total(q, first, j);
}

/*
 * Stores the sums of activations of a group, for the warps at `along_k`. The sum of token g of each
 * fragment is in all lanes of group g.
 */
static void store_group_totals(struct marlin_bulk *b, ptx_u32 slot, uint32_t along_k,
                               uint32_t group, const ptx_f32 totals[2])
{
    struct marlin_product *q = &b->q;
    ptx_kernel *k = q->g.k;
    uint32_t index = along_k * marlin_corrected_groups(q->spec, q->v) + group;
    uint32_t each = marlin_total_bytes(q->spec, q->v);
    bool starts = marlin_stores_first_sums(q->spec, q->v);
    ptx_u32 row = ptx_mad_lo_u32(k, q->g.at.group, U32(4), slot);
    if (starts) /* 8 bytes more past each two rows */
        row = ptx_mad_lo_u32(k, ptx_shr_u32(k, q->g.at.group, U32(1)), U32(8), row);
    ptx_pred first = ptx_setp_eq_u32(k, q->g.at.quad, U32(0));
    for (uint32_t j = 0; j < token_groups(q); j++)
        for (uint32_t half = 0; half < (starts ? 2 : 1); half++) {
            uint32_t to = b->stage.totals + index * each + j * (each / token_groups(q)) + half * 8;
            ptx_f32 stored = totals[j];
            if (starts)
                stored = ptx_mul_f32(k, stored, marlin_emit_correction(q, NULL, 0, half));
            ptx_guarded(k, first)
                ptx_st_shared_f32(k, row, (int)to, stored);
        }
}

/* The stores come after the loads of all groups, since a load would wait for an earlier store. */
static void store_stage_totals(struct marlin_bulk *b, ptx_u32 slot, uint32_t along_k)
{
    enum { MOST = 16 };
    uint32_t groups = marlin_corrected_groups(b->q.spec, b->q.v);
    ptx_f32 totals[MOST][2];
    for (uint32_t i = 0; i < groups && i < MOST; i++)
        sum_group(&b->q, slot, along_k, i, totals[i]);
    for (uint32_t i = 0; i < groups && i < MOST; i++)
        store_group_totals(b, slot, along_k, i, totals[i]);
}

void marlin_sum_x(struct marlin_bulk *b)
{
    struct marlin_product *q = &b->q;
    ptx_kernel *k = q->g.k;
    ptx_section(k, "sum up activations");
    q->x = (struct gemm_operand){.rows = q->v->tile_m, .blocks = marlin_stage_steps(q->v)};
    gemm_operand_begin_reading(k, &q->g.at, &q->x);
    begin_ones(q);
    struct gemm_ring_place place = gemm_ring_first(k, &b->q.g.ring, false);
    ptx_u32 stage = ptx_mov_u32(k, b->q.g.first);
    ptx_for(k, stage, b->q.g.end, U32(1)) {
        ptx_nounroll(k);
        gemm_ring_wait(k, &place);
        for (uint32_t along_k = 0; along_k < q->v->wk; along_k++)
            store_stage_totals(b, place.slot, along_k);
        gemm_ring_side_arrive(k, &b->q.g.ring, &place);
        gemm_ring_advance(k, &b->q.g.ring, &place, NULL);
    }
}
