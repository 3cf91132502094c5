/* SPDX-License-Identifier: Apache-2.0 */
#include "stream_k.h"

void tile_division_begin(ptx_kernel *k, uint32_t stages, struct tile_division *d)
{
    d->share = ptx_param_u32(k, "share");
    d->extra = ptx_param_u32(k, "extra");
    d->granule = ptx_param_u32(k, "granule");
    d->stages = stages;
}

ptx_u32 tile_first_stage(ptx_kernel *k, const struct tile_division *d, ptx_u32 cta)
{
    ptx_u32 more = ptx_min_u32(k, cta, d->extra);
    ptx_u32 granules = ptx_mad_lo_u32(k, cta, d->share, more);
    ptx_u32 even = ptx_mul_lo_u32(k, granules, d->granule);
    if (!d->early)
        return even;
    ptx_u32 tiles = tile_divide(k, granules, d->stages - d->early);
    ptx_u32 early = ptx_mad_lo_u32(k, tiles, U32(d->early), granules);
    return ptx_selp_u32(k, early, even, ptx_setp_eq_u32(k, d->granule, U32(0)));
}

/*
 * The CTA that ends a tile of which this CTA has stages. The search starts at this CTA: the owner
 * is this CTA or one soon after it.
 */
static ptx_u32 owner_of(ptx_kernel *k, const struct tile_division *d, ptx_u32 tile)
{
    ptx_u32 end = ptx_mul_lo_u32(k, ptx_add_u32(k, tile, U32(1)), U32(d->stages));
    ptx_u32 owner = ptx_mov_u32(k, ptx_sreg_ctaid_x(k));
    ptx_loop(k, up) {
        ptx_nounroll(k);
        ptx_u32 next = ptx_add_u32(k, owner, U32(1));
        ptx_u32 first = tile_first_stage(k, d, next);
        ptx_loop_break_if(&up, ptx_setp_ge_u32(k, first, end), false);
        ptx_mov_u32_to(k, owner, next);
    }
    return owner;
}

/*
 * Each CTA ends `each` tiles or one more. Tile i < `each` of CTA c has place i·CTAs + c; the places
 * of all additional tiles follow.
 */
ptx_u32 tile_deal_places(ptx_kernel *k, const struct tile_division *d, ptx_u32 tile)
{
    ptx_u32 ctas = ptx_sreg_nctaid_x(k), owner = owner_of(k, d, tile);
    ptx_u32 each = tile_divide(k, ptx_mul_lo_u32(k, d->share, d->granule), d->stages);
    ptx_u32 before = tile_divide(k, tile_first_stage(k, d, owner), d->stages);
    ptx_u32 turn = ptx_sub_u32(k, tile, before);
    ptx_u32 dealt = ptx_mad_lo_u32(k, turn, ctas, owner);
    ptx_u32 others = ptx_sub_u32(k, ctas, owner); /* each·CTAs + (before − each·owner) */
    ptx_u32 odd = ptx_mad_lo_u32(k, each, others, before);
    return ptx_selp_u32(k, dealt, odd, ptx_setp_lt_u32(k, turn, each));
}

struct tile_walk tile_walk_begin(ptx_kernel *k, ptx_u32 first, ptx_u32 end)
{
    struct tile_walk w = {.first = first};
    w.end = ptx_mov_u32(k, end);
    w.tile = ptx_mov_u32(k, U32(0));
    w.stage = ptx_mov_u32(k, U32(0));
    w.stage_end = ptx_mov_u32(k, U32(0));
    return w;
}

void tile_walk_next(ptx_kernel *k, const struct tile_division *d, struct tile_walk *w)
{
    ptx_u32 last = ptx_sub_u32(k, w->end, U32(1));
    ptx_mov_u32_to(k, w->tile, tile_divide(k, last, d->stages));
    ptx_u32 start = ptx_mul_lo_u32(k, w->tile, U32(d->stages));
    ptx_u32 from = ptx_max_u32(k, start, w->first);
    ptx_sub_u32_to(k, w->stage, from, start);
    ptx_sub_u32_to(k, w->stage_end, w->end, start);
    ptx_mov_u32_to(k, w->end, from);
}

struct tile_place tile_locate_in_band(ptx_kernel *k, ptx_u32 tile, ptx_u32 tiles_m,
                                      uint32_t tiles_n, uint32_t band)
{
    struct tile_place p;
    ptx_u32 index = tile_divide(k, tile, band * tiles_n);
    ptx_u32 before = ptx_mul_lo_u32(k, index, U32(band * tiles_n));
    ptx_u32 in_band = ptx_sub_u32(k, tile, before);
    if (band == 1)
        return (struct tile_place){.m = index, .n = in_band};
    ptx_u32 first = ptx_mul_lo_u32(k, index, U32(band));
    ptx_u32 below = ptx_sub_u32(k, tiles_m, first);
    ptx_u32 height = ptx_min_u32(k, below, U32(band));
    p.n = ptx_div_u32(k, in_band, height);
    ptx_u32 down = ptx_sub_u32(k, in_band, ptx_mul_lo_u32(k, p.n, height));
    p.m = ptx_add_u32(k, first, down);
    return p;
}

struct tile_place tile_locate(ptx_kernel *k, ptx_u32 tile, ptx_u32 tiles_m, uint32_t tiles_n)
{
    return tile_locate_in_band(k, tile, tiles_m, tiles_n, 16);
}

/* ---- fix-up ---- */

static ptx_u64 flag_of(ptx_kernel *k, ptx_u64 flags, ptx_u32 cta)
{
    return ptx_mad_wide_u32(k, cta, U32(4), flags);
}

void tile_raise_flag(ptx_kernel *k, ptx_u64 flags, ptx_u32 cta)
{
    ptx_st_release_global_u32_m(k, PTX_GPU, flag_of(k, flags, cta), 0, U32(1));
}

void tile_take_flag(ptx_kernel *k, ptx_u64 flags, ptx_u32 cta)
{
    ptx_u64 flag = flag_of(k, flags, cta);
    ptx_loop(k, wait) {
        ptx_u32 set = ptx_ld_acquire_global_u32_m(k, PTX_GPU, flag, 0);
        ptx_loop_break_if(&wait, ptx_setp_ne_u32(k, set, U32(0)), false);
    }
    ptx_st_global_u32(k, flag, 0, U32(0));
}

/* The barrier orders the stores of all threads before the release of the flag by thread 0. */
void tile_hand_over(ptx_kernel *k, const struct tile_threads *at, ptx_u64 flags)
{
    tile_sync(k, at);
    ptx_if(k, ptx_setp_eq_u32(k, at->thread, U32(0)))
        tile_raise_flag(k, flags, at->cta);
}

void tile_wait_for(ptx_kernel *k, const struct tile_threads *at, ptx_u64 flags, ptx_u32 lowest,
                   uint32_t threads)
{
    ptx_u32 cta = ptx_add_u32(k, lowest, at->thread);
    ptx_for(k, cta, at->cta, U32(threads)) {
        ptx_nounroll(k);
        tile_take_flag(k, flags, cta);
    }
    tile_sync(k, at);
}

ptx_u32 tile_lowest_cta(ptx_kernel *k, const struct tile_division *d, const struct tile_threads *at,
                        ptx_u32 tile_stage)
{
    ptx_u32 lowest = ptx_mov_u32(k, at->cta);
    ptx_loop(k, down) {
        ptx_nounroll(k);
        ptx_u32 first = tile_first_stage(k, d, lowest);
        ptx_loop_break_if(&down, ptx_setp_le_u32(k, first, tile_stage), false);
        ptx_sub_u32_to(k, lowest, lowest, U32(1));
    }
    return lowest;
}

void tile_partials_begin(ptx_kernel *k, const struct tile_threads *at, ptx_u64 base,
                         struct tile_partials *p)
{
    ptx_u64 cta = ptx_cvt_u64_u32(k, at->cta);
    ptx_u64 part = ptx_mad_lo_u64(k, cta, U64(tile_partials_bytes(p->threads, p->fragments)), base);
    p->mine = ptx_mad_wide_u32(k, at->thread, U32(16), part);
}

void tile_partials_store(ptx_kernel *k, const struct tile_partials *p, tile_fragment_register *get,
                         const void *from)
{
    for (uint32_t i = 0; i < p->fragments; i++) {
        ptx_u32 registers[4];
        for (uint32_t r = 0; r < 4; r++)
            registers[r] = get(from, i, r);
        ptx_st_global_v4_u32(k, p->mine, (int)(i * p->threads * 16), registers);
    }
}

static void add_to(ptx_kernel *k, const struct tile_partials *p, ptx_u32 sum, ptx_u32 more)
{
    ptx_f32 f32_sum = ptx_u32_as_f32(sum), f32_more = ptx_u32_as_f32(more);
    if (p->integer)
        ptx_add_u32_to(k, sum, sum, more);
    else
        ptx_add_f32_to(k, f32_sum, f32_sum, f32_more);
}

enum { MOST_PARTS = 4, MOST_LOADS = 24 };

/* CTAs whose partial sums are loaded at once: as many as MOST_LOADS loads in flight allow. */
static uint32_t parts_at_once(const struct tile_partials *p)
{
    uint32_t parts = MOST_LOADS / p->fragments;
    return parts < 1 ? 1 : parts < MOST_PARTS ? parts : MOST_PARTS;
}

/* Loads bypass the L1 (.cg), which is not coherent with the stores of other CTAs. */
static void load_parts(ptx_kernel *k, const struct tile_partials *p, ptx_u64 nearest, ptx_u32 left,
                       ptx_u32 to[MOST_LOADS][4])
{
    uint64_t bytes = tile_partials_bytes(p->threads, p->fragments);
    for (uint32_t c = 0; c < parts_at_once(p); c++) {
        ptx_u64 part = c ? ptx_sub_u64(k, nearest, U64(c * bytes)) : nearest;
        ptx_pred exists = ptx_setp_gt_u32(k, left, U32(c));
        for (uint32_t i = 0; i < p->fragments && c; i++)
            for (uint32_t r = 0; r < 4; r++)
                to[c * p->fragments + i][r] = ptx_mov_u32(k, U32(0));
        for (uint32_t i = 0; i < p->fragments; i++) {
            ptx_u32 *four = to[c * p->fragments + i];
            int offset = (int)(i * p->threads * 16);
            if (!c)
                ptx_ld_global_v4_u32_m(k, PTX_LD_CG, four, part, offset);
            else
                ptx_guarded(k, exists)
                    ptx_ld_global_v4_u32_m_to(k, PTX_LD_CG, four, part, offset);
        }
    }
}

/* Adds the nearest CTA's sums first. The loads left 0 for CTAs that do not exist. */
static void add_parts(ptx_kernel *k, const struct tile_partials *p, ptx_u32 parts[MOST_LOADS][4],
                      tile_fragment_register *get, const void *from)
{
    for (uint32_t c = 0; c < parts_at_once(p); c++)
        for (uint32_t i = 0; i < p->fragments; i++)
            for (uint32_t r = 0; r < 4; r++)
                add_to(k, p, get(from, i, r), parts[c * p->fragments + i][r]);
}

/* For many fragments: adds each fragment right after its load. */
static void add_part(ptx_kernel *k, const struct tile_partials *p, ptx_u64 part,
                     tile_fragment_register *get, const void *from)
{
    for (uint32_t i = 0; i < p->fragments; i++) {
        ptx_u32 more[4];
        ptx_ld_global_v4_u32_m(k, PTX_LD_CG, more, part, (int)(i * p->threads * 16));
        for (uint32_t r = 0; r < 4; r++)
            add_to(k, p, get(from, i, r), more[r]);
    }
}

void tile_partials_add(ptx_kernel *k, const struct tile_partials *p, const struct tile_threads *at,
                       ptx_u32 lowest, tile_fragment_register *get, const void *from)
{
    uint64_t bytes = tile_partials_bytes(p->threads, p->fragments);
    uint32_t at_once = parts_at_once(p);
    ptx_u64 nearest = ptx_sub_u64(k, p->mine, U64(bytes));
    ptx_u32 cta = ptx_mov_u32(k, lowest);
    ptx_for(k, cta, at->cta, U32(at_once)) {
        ptx_nounroll(k);
        ptx_u32 parts[MOST_LOADS][4], left = ptx_sub_u32(k, at->cta, cta);
        if (at_once == 1)
            add_part(k, p, nearest, get, from);
        else {
            load_parts(k, p, nearest, left, parts);
            add_parts(k, p, parts, get, from);
        }
        ptx_sub_u64_to(k, nearest, nearest, U64(at_once * bytes));
    }
}
