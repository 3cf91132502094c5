/* SPDX-License-Identifier: Apache-2.0 */
#include "walk.h"

void gemm_division_begin(ptx_kernel *k, uint32_t stages, struct gemm_division *d)
{
    d->share = ptx_param_u32(k, "share");
    d->extra = ptx_param_u32(k, "extra");
    d->granule = ptx_param_u32(k, "granule");
    d->stages = stages;
}

ptx_u32 gemm_first_stage(ptx_kernel *k, const struct gemm_division *d, ptx_u32 cta)
{
    ptx_u32 more = ptx_min_u32(k, cta, d->extra);
    ptx_u32 granules = ptx_mad_lo_u32(k, cta, d->share, more);
    ptx_u32 even = ptx_mul_lo_u32(k, granules, d->granule);
    if (!d->early)
        return even;
    ptx_u32 tiles = gemm_divide(k, granules, d->stages - d->early);
    ptx_u32 early = ptx_mad_lo_u32(k, tiles, U32(d->early), granules);
    return ptx_selp_u32(k, early, even, ptx_setp_eq_u32(k, d->granule, U32(0)));
}

/*
 * The CTA that ends a tile of which this CTA has stages. The search starts at this CTA: the owner
 * is this CTA or one soon after it.
 */
static ptx_u32 owner_of(ptx_kernel *k, const struct gemm_division *d, ptx_u32 tile)
{
    ptx_u32 end = ptx_mul_lo_u32(k, ptx_add_u32(k, tile, U32(1)), U32(d->stages));
    ptx_u32 owner = ptx_mov_u32(k, ptx_sreg_ctaid_x(k));
    ptx_loop(k, up) {
        ptx_nounroll(k);
        ptx_u32 next = ptx_add_u32(k, owner, U32(1));
        ptx_u32 first = gemm_first_stage(k, d, next);
        ptx_loop_break_if(&up, ptx_setp_ge_u32(k, first, end), false);
        ptx_mov_u32_to(k, owner, next);
    }
    return owner;
}

/*
 * Each CTA ends `each` tiles or one more. Tile i < `each` of CTA c has place i·CTAs + c; the places
 * of all additional tiles follow.
 */
ptx_u32 gemm_deal_places(ptx_kernel *k, const struct gemm_division *d, ptx_u32 tile)
{
    ptx_u32 ctas = ptx_sreg_nctaid_x(k), owner = owner_of(k, d, tile);
    ptx_u32 each = gemm_divide(k, ptx_mul_lo_u32(k, d->share, d->granule), d->stages);
    ptx_u32 before = gemm_divide(k, gemm_first_stage(k, d, owner), d->stages);
    ptx_u32 index = ptx_sub_u32(k, tile, before);
    ptx_u32 dealt = ptx_mad_lo_u32(k, index, ctas, owner);
    ptx_u32 others = ptx_sub_u32(k, ctas, owner); /* each·CTAs + (before − each·owner) */
    ptx_u32 odd = ptx_mad_lo_u32(k, each, others, before);
    return ptx_selp_u32(k, dealt, odd, ptx_setp_lt_u32(k, index, each));
}

struct gemm_walk gemm_walk_begin(ptx_kernel *k, ptx_u32 first, ptx_u32 end)
{
    struct gemm_walk w = {.first = first};
    w.end = ptx_mov_u32(k, end);
    w.tile = ptx_mov_u32(k, U32(0));
    w.stage = ptx_mov_u32(k, U32(0));
    w.stage_end = ptx_mov_u32(k, U32(0));
    return w;
}

void gemm_walk_next(ptx_kernel *k, const struct gemm_division *d, struct gemm_walk *w)
{
    ptx_u32 last = ptx_sub_u32(k, w->end, U32(1));
    ptx_mov_u32_to(k, w->tile, gemm_divide(k, last, d->stages));
    ptx_u32 start = ptx_mul_lo_u32(k, w->tile, U32(d->stages));
    ptx_u32 from = ptx_max_u32(k, start, w->first);
    ptx_sub_u32_to(k, w->stage, from, start);
    ptx_sub_u32_to(k, w->stage_end, w->end, start);
    ptx_mov_u32_to(k, w->end, from);
}

struct gemm_place gemm_locate_in_band(ptx_kernel *k, ptx_u32 tile, ptx_u32 tiles_m,
                                      uint32_t tiles_n, uint32_t band)
{
    struct gemm_place p;
    ptx_u32 index = gemm_divide(k, tile, band * tiles_n);
    ptx_u32 before = ptx_mul_lo_u32(k, index, U32(band * tiles_n));
    ptx_u32 in_band = ptx_sub_u32(k, tile, before);
    if (band == 1)
        return (struct gemm_place){.m = index, .n = in_band};
    ptx_u32 first = ptx_mul_lo_u32(k, index, U32(band));
    ptx_u32 below = ptx_sub_u32(k, tiles_m, first);
    ptx_u32 height = ptx_min_u32(k, below, U32(band));
    p.n = ptx_div_u32(k, in_band, height);
    ptx_u32 down = ptx_sub_u32(k, in_band, ptx_mul_lo_u32(k, p.n, height));
    p.m = ptx_add_u32(k, first, down);
    return p;
}

struct gemm_place gemm_locate(ptx_kernel *k, ptx_u32 tile, ptx_u32 tiles_m, uint32_t tiles_n)
{
    return gemm_locate_in_band(k, tile, tiles_m, tiles_n, 16);
}
