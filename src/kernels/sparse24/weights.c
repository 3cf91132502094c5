/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packed weights, from global memory to fragments of mma.sp. A lane copies the 16 bytes of each
 * piece that the same lane of some warp multiplies later, so no swizzle is needed.
 *
 * Tiles may extend past the end of N, and stages past the end of K. There, a block that exists is
 * read again, so that metadata is valid everywhere. Past K its values become zeros (x is zero there
 * as well, but zero times a weight that is not finite is not zero); past N no sum is stored.
 */
#include "emit.h"

static bool steps_have_tail(const struct sparse24_product *q)
{
    return sparse24_steps(q->spec) % q->v->wk != 0;
}

static bool strips_have_tail(const struct sparse24_product *q)
{
    return sparse24_strips(q->spec) % sparse24_tile_strips(q->v) != 0;
}

void sparse24_weights_begin(struct sparse24_product *q)
{
    ptx_kernel *k = q->g.k;
    ptx_u32 lane = ptx_mul_lo_u32(k, q->g.at.lane, U32(GEMM_CHUNK_BYTES));
    ptx_u32 first = ptx_add_u32(k, lane, U32(sparse24_stage_x_bytes(q->spec, q->v)));
    ptx_u32 block = U32(sparse24_block_bytes(q->spec));
    q->w.to = q->w.at = ptx_mad_lo_u32(k, q->g.at.warp, block, first);
    if (q->v->wm > 1)
        q->w.at = ptx_mad_lo_u32(k, ptx_sub_u32(k, q->g.at.warp, q->along_m), block, first);
    q->w.strip = ptx_mov_u64(k, U64(0));
    q->w.step = ptx_mov_u32(k, U32(0));
}

void sparse24_weights_locate(struct sparse24_product *q, ptx_u32 tile_n, ptx_u32 stage)
{
    ptx_kernel *k = q->g.k;
    const ptxgen_sparse24_spec *s = q->spec;
    ptx_u32 strip = ptx_mad_lo_u32(k, tile_n, U32(q->v->wn), q->along_n);
    if (q->v->wm > 1)
        strip = ptx_mad_lo_u32(k, strip, U32(q->v->wm), q->along_m);
    if (strips_have_tail(q))
        strip = ptx_min_u32(k, strip, U32(sparse24_strips(s) - 1));
    ptx_u64 lane =
        ptx_mad_wide_u32(k, q->g.at.lane, U32(GEMM_CHUNK_BYTES), q->address[SPARSE24_W]);
    uint64_t strip_bytes = (uint64_t)sparse24_steps(s) * sparse24_block_bytes(s);
    ptx_mad_lo_u64_to(k, q->w.strip, ptx_cvt_u64_u32(k, strip), U64(strip_bytes), lane);
    ptx_mad_lo_u32_to(k, q->w.step, stage, U32(q->v->wk), q->along_k);
}

void sparse24_weights_issue(struct sparse24_product *q, ptx_u32 slot)
{
    ptx_kernel *k = q->g.k;
    struct sparse24_weights *w = &q->w;
    uint32_t pieces = sparse24_pieces(q->spec), steps = sparse24_steps(q->spec);
    bool tail = steps_have_tail(q);
    ptx_u32 size = U32(GEMM_CHUNK_BYTES), step = w->step;
    if (tail) {
        ptx_pred exists = ptx_setp_lt_u32(k, w->step, U32(steps));
        size = ptx_selp_u32(k, U32(GEMM_CHUNK_BYTES), U32(0), exists);
        step = ptx_min_u32(k, w->step, U32(steps - 1));
    }
    ptx_u64 from = ptx_mad_wide_u32(k, step, U32(sparse24_block_bytes(q->spec)), w->strip);
    ptx_u32 to = ptx_add_u32(k, slot, w->to);
    for (uint32_t i = 0; i <= pieces; i++) {
        int offset = (int)(i * SPARSE24_PIECE);
        if (tail && i < pieces)
            ptx_cp_async_cg_zfill(k, to, offset, from, offset, GEMM_CHUNK_BYTES, size);
        else
            ptx_cp_async_cg(k, to, offset, from, offset, GEMM_CHUNK_BYTES);
    }
    ptx_add_u32_to(k, w->step, w->step, U32(q->v->wk));
}

void sparse24_weights_prefetch(struct sparse24_product *q, ptx_u32 stage, ptx_u32 stage_end)
{
    ptx_kernel *k = q->g.k;
    uint32_t bytes = sparse24_block_bytes(q->spec);
    ptx_u32 below = ptx_add_u32(k, stage, U32(q->v->stages - 2)), step = ptx_mov_u32(k, q->w.step);
    ptx_u32 end = ptx_min_u32(k, below, stage_end), at = ptx_mov_u32(k, stage);
    ptx_if(k, ptx_setp_eq_u32(k, q->g.at.lane, U32(0)))
        ptx_for(k, at, end, U32(1)) {
            ptx_nounroll(k);
            ptx_if(k, ptx_setp_lt_u32(k, step, U32(sparse24_steps(q->spec))))
                ptx_cp_async_bulk_prefetch_L2(
                    k, ptx_mad_wide_u32(k, step, U32(bytes), q->w.strip), 0, U32(bytes));
            ptx_add_u32_to(k, step, step, U32(q->v->wk));
        }
}

void sparse24_weights_load(struct sparse24_product *q, ptx_u32 slot, uint32_t i, uint32_t t,
                           ptx_u32 a[4])
{
    ptx_u32 at = ptx_add_u32(q->g.k, slot, q->w.at);
    uint32_t piece = i * SPARSE24_TILES + t % SPARSE24_TILES;
    uint32_t offset = t / SPARSE24_TILES * sparse24_block_bytes(q->spec) + piece * SPARSE24_PIECE;
    ptx_ld_shared_v4_u32_to(q->g.k, a, at, (int)offset);
}

void sparse24_metadata_load(struct sparse24_product *q, ptx_u32 slot, uint32_t j,
                            ptx_u32 words[SPARSE24_WARP_TILES])
{
    ptx_u32 at = ptx_add_u32(q->g.k, slot, q->w.at);
    uint32_t offset = sparse24_pieces(q->spec) * SPARSE24_PIECE + j * SPARSE24_TILES * 4;
    for (uint32_t strip = 0; strip < q->v->wm; strip++)
        ptx_ld_shared_v2_u32_to(q->g.k, words + strip * SPARSE24_TILES, at,
                                (int)(strip * sparse24_block_bytes(q->spec) + offset));
}
