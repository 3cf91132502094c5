/* SPDX-License-Identifier: Apache-2.0 */
#include "boxes.h"

enum { ROW_BYTES = 128 };

void gemm_boxes_begin(ptx_kernel *k, struct gemm_boxes *b)
{
    b->map = ptx_mov_u64(k, b->maps);
    b->bytes = ptx_mov_u32(k, U32(b->stage_bytes));
}

/* Rows by which the boxes of a tile are lower than whole boxes, where the tile has `left` rows. */
static ptx_u32 spared(ptx_kernel *k, const struct gemm_boxes *b, ptx_u32 left)
{
    ptx_u32 present = ptx_min_u32(k, left, U32(b->rows));
    return ptx_sub_u32(k, U32(b->rows), present);
}

/* Clears one slot after the other; each thread writes 16 bytes at a time. */
static void clear_slots(ptx_kernel *k, const struct gemm_boxes *b, const struct gemm_threads *at,
                        uint32_t threads, const struct gemm_ring *ring, ptx_u32 rows)
{
    enum { CHUNK = 16 };
    const ptx_u32 zeros[4] = {U32(0), U32(0), U32(0), U32(0)};
    ptx_u32 kept = ptx_sub_u32(k, U32(b->rows), rows);
    ptx_u32 first = ptx_mad_lo_u32(k, kept, U32(ROW_BYTES), ring->slots);
    ptx_u32 own = ptx_mad_lo_u32(k, at->thread, U32(CHUNK), first);
    ptx_u32 bytes = ptx_mul_lo_u32(k, rows, U32(ROW_BYTES));
    ptx_u32 end = ptx_add_u32(k, first, bytes), slot = ptx_mov_u32(k, U32(0));
    ptx_for(k, slot, U32(ring->stages * ring->stage_bytes), U32(ring->stage_bytes)) {
        ptx_nounroll(k);
        ptx_u32 to = ptx_add_u32(k, own, slot), to_end = ptx_add_u32(k, end, slot);
        ptx_for(k, to, to_end, U32(threads * CHUNK)) {
            ptx_nounroll(k);
            for (uint32_t i = 0; i < b->blocks; i++)
                ptx_st_shared_v4_u32(k, to, (int)(i * b->rows * ROW_BYTES), zeros);
        }
    }
}

void gemm_boxes_clear(ptx_kernel *k, const struct gemm_boxes *b, const struct gemm_threads *at,
                      uint32_t threads, const struct gemm_ring *ring)
{
    ptx_u32 whole = gemm_divide(k, ptx_sub_u32(k, b->all, U32(1)), b->rows);
    ptx_u32 left = ptx_sub_u32(k, b->all, ptx_mul_lo_u32(k, whole, U32(b->rows)));
    ptx_u32 rows = spared(k, b, left);
    ptx_if(k, ptx_setp_ne_u32(k, rows, U32(0))) {
        clear_slots(k, b, at, threads, ring, rows);
        ptx_fence_proxy_async_shared_cta(k);
        ptx_bar_sync(k, 0);
    }
}

void gemm_boxes_locate(ptx_kernel *k, struct gemm_boxes *b, ptx_u32 first)
{
    ptx_u32 left = ptx_sub_u32(k, b->all, first);
    ptx_u32 bytes = ptx_mul_lo_u32(k, spared(k, b, left), U32(ROW_BYTES * b->blocks));
    ptx_sub_u32_to(k, b->bytes, U32(b->stage_bytes), bytes);
    ptx_pred last = ptx_setp_le_u32(k, left, U32(b->rows));
    ptx_u64 own = ptx_add_u64(k, b->maps, U64(GEMM_MAP_BYTES));
    ptx_selp_u64_to(k, b->map, own, b->maps, last);
}
