/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stage's products, Cᵀ = W · qᵀ: 16 rows of W are the rows of mma's operand A, 8 tokens the
 * columns of its B. A warp takes the block of 128 bytes of K that is its own, in four steps of 32.
 */
#include "emit.h"

static ptx_u32 warp_address(struct product *q, const struct tile_operand *o, ptx_u32 slot,
                            ptx_u32 along, uint32_t rows)
{
    ptx_u32 lane = tile_operand_lane(q->k, o, slot, q->along_k);
    return ptx_mad_lo_u32(q->k, along, U32(rows * TILE_BLOCK_BYTES), lane);
}

struct fragments w8a8_find_fragments(struct product *q, ptx_u32 slot, ptx_u32 stage)
{
    ptx_kernel *k = q->k;
    struct fragments f;
    f.w = warp_address(q, &q->w.operand, slot, q->along_n, row_tiles(q) * W8A8_TILE_ROWS);
    if (q->v->fused)
        f.codes = ptx_mad_lo_u32(k, stage, U32(w8a8_depth(q->v)), q->resident_lane);
    else {
        ptx_u32 behind = ptx_add_u32(k, slot, U32(q->v->rows * w8a8_depth(q->v)));
        f.codes = warp_address(q, &q->codes, behind, q->along_m, token_tiles(q) * W8A8_TILE_TOKENS);
    }
    return f;
}

/* tile/operand.h's order of the four matrices is by row, A's by column of 16 bytes. */
static void load_rows(struct product *q, ptx_u32 step, uint32_t tile, ptx_u32 a[4])
{
    ptx_u32 loaded[4];
    tile_operand_load(q->k, step, 2 * tile, loaded);
    a[0] = loaded[0];
    a[1] = loaded[2];
    a[2] = loaded[1];
    a[3] = loaded[3];
}

static void multiply_tokens(struct product *q, const ptx_u32 a[][4], const ptx_u32 *b,
                            uint32_t tile)
{
    for (uint32_t t = 0; t < row_tiles(q); t++)
        ptx_mma_m16n8k32_s32_s8_s8_to(q->k, q->acc[t][tile], a[t], b, q->acc[t][tile]);
}

void w8a8_multiply_step(struct product *q, const struct fragments *f, uint32_t step)
{
    ptx_kernel *k = q->k;
    ptx_u32 a[MAX_ROW_TILES][4], b[4];
    ptx_u32 rows = tile_operand_step(k, &q->w.operand, f->w, step);
    for (uint32_t t = 0; t < row_tiles(q); t++)
        load_rows(q, rows, t, a[t]);
    if (q->v->fused) {
        ptx_ldmatrix_x2_b16(k, b, f->codes, (int)step * 32);
        multiply_tokens(q, a, b, 0);
        return;
    }
    ptx_u32 codes = tile_operand_step(k, &q->codes, f->codes, step);
    for (uint32_t j = 0; j < token_tiles(q); j += 2) {
        tile_operand_load(k, codes, j, b);
        multiply_tokens(q, a, b, j);
        multiply_tokens(q, a, b + 2, j + 1);
    }
}
