/* SPDX-License-Identifier: Apache-2.0 */
#include "groups.h"

#include "schedule.h"

/* An entry of the table: the tiles before a group, and the group's first row, four bytes each. */
enum { ENTRY = 8 };

/*
 * Entries of the table: a power of two above the number of groups. The entries behind those of the
 * groups say what a group without rows would say; the first of them has the number of all tiles.
 */
static uint32_t entries(const struct gemm_groups *g)
{
    uint32_t power = 32;
    while (power <= g->count)
        power *= 2;
    return power;
}

/* ends[index], or `m` where that is less. */
static ptx_u32 load_end(ptx_kernel *k, const struct gemm_groups *g, ptx_u32 index, ptx_u32 m)
{
    ptx_u32 end = ptx_ld_global_u32(k, ptx_mad_wide_u32(k, index, U32(4), g->ends), 0);
    return ptx_min_u32(k, end, m);
}

/* Each lane's value added to those of the lanes before it. */
static ptx_u32 add_lanes_before(ptx_kernel *k, const struct gemm_threads *at, ptx_u32 value)
{
    for (uint32_t distance = 1; distance < 32; distance *= 2) {
        ptx_u32 before = ptx_shfl_sync_up_u32(k, value, U32(distance), U32(0), ALL_LANES);
        ptx_u32 sum = ptx_add_u32(k, value, before);
        value = ptx_selp_u32(k, sum, value, ptx_setp_ge_u32(k, at->lane, U32(distance)));
    }
    return value;
}

/* A warp writes the entries of 32 groups at a time, a lane that of group base + lane. */
static void fill_table(ptx_kernel *k, const struct gemm_threads *at, ptx_u32 m,
                       const struct gemm_groups *g)
{
    ptx_u32 total = ptx_mov_u32(k, U32(0)), base = ptx_mov_u32(k, U32(0));
    ptx_for(k, base, U32(entries(g)), U32(32)) {
        ptx_nounroll(k);
        ptx_u32 group = ptx_add_u32(k, base, at->lane);
        ptx_u32 previous = ptx_sub_u32(k, ptx_max_u32(k, group, U32(1)), U32(1));
        ptx_u32 ends = load_end(k, g, ptx_min_u32(k, group, U32(g->count - 1)), m);
        ptx_u32 begins = load_end(k, g, ptx_min_u32(k, previous, U32(g->count - 1)), m);
        ptx_u32 first = ptx_selp_u32(k, U32(0), begins, ptx_setp_eq_u32(k, group, U32(0)));
        ptx_u32 rows = ptx_sub_u32(k, ptx_max_u32(k, ends, first), first);
        ptx_u32 tiles_m = gemm_divide_up(k, rows, g->tile_m);
        ptx_u32 tiles = ptx_mul_lo_u32(k, tiles_m, U32(g->tiles_n));
        ptx_u32 sum = add_lanes_before(k, at, tiles);
        ptx_u32 before = ptx_add_u32(k, total, ptx_sub_u32(k, sum, tiles));
        const ptx_u32 entry[2] = {before, first};
        ptx_st_shared_v2_u32(k, ptx_mad_lo_u32(k, group, U32(ENTRY), g->table), 0, entry);
        ptx_u32 all = ptx_shfl_sync_idx_u32(k, sum, U32(31), U32(31), ALL_LANES);
        ptx_add_u32_to(k, total, total, all);
    }
}

void gemm_groups_begin(ptx_kernel *k, const struct gemm_threads *at, ptx_u32 m,
                       struct gemm_groups *g)
{
    ptx_section(k, "the table of groups");
    g->table = ptx_shared_address(k, ptx_shared_declare(k, "groups", entries(g) * ENTRY, ENTRY));
    ptx_if(k, ptx_setp_eq_u32(k, at->warp, U32(0)))
        fill_table(k, at, m, g);
    ptx_bar_sync(k, 0);
    g->tiles = ptx_ld_shared_u32(k, g->table, (int)(g->count * ENTRY));
}

/* Whether to deal whole tiles, as gemm_deals_whole has it. */
static ptx_pred deals_whole(ptx_kernel *k, ptx_u32 tiles, ptx_u32 units)
{
    ptx_u32 last = ptx_sub_u32(k, ptx_add_u32(k, tiles, units), U32(1));
    ptx_u32 rounds = ptx_div_u32(k, last, units);
    ptx_u64 places = ptx_mul_wide_u32(k, rounds, units);
    ptx_u64 needed = ptx_mul_lo_u64(k, places, U64(GEMM_WHOLE_TILES_PERCENT));
    return ptx_setp_ge_u64(k, ptx_mul_wide_u32(k, tiles, U32(100)), needed);
}

void gemm_groups_divide(ptx_kernel *k, const struct gemm_groups *g, ptx_u32 units, bool whole,
                        struct gemm_division *d)
{
    ptx_u32 granules = g->tiles;
    d->granule = U32(d->stages);
    if (!whole) {
        ptx_pred deals = deals_whole(k, g->tiles, units);
        ptx_u32 stages = ptx_mul_lo_u32(k, g->tiles, U32(d->stages));
        granules = ptx_selp_u32(k, g->tiles, stages, deals);
        d->granule = ptx_selp_u32(k, U32(d->stages), U32(1), deals);
    }
    d->share = ptx_div_u32(k, granules, units);
    d->extra = ptx_sub_u32(k, granules, ptx_mul_lo_u32(k, d->share, units));
}

/*
 * The last group with no more tiles before it than `tile`, by binary search: groups without rows
 * before another have as many tiles before them as that one.
 */
static ptx_u32 find_entry(ptx_kernel *k, const struct gemm_groups *g, ptx_u32 tile)
{
    ptx_u32 at = ptx_mov_u32(k, g->table);
    for (uint32_t step = entries(g) / 2; step > 0; step /= 2) {
        if (step > g->count - 1)
            continue;
        ptx_u32 before = ptx_ld_shared_u32(k, at, (int)(step * ENTRY));
        ptx_u32 on = ptx_add_u32(k, at, U32(step * ENTRY));
        ptx_selp_u32_to(k, at, on, at, ptx_setp_le_u32(k, before, tile));
    }
    return at;
}

struct gemm_place gemm_groups_locate(ptx_kernel *k, const struct gemm_groups *g, ptx_u32 tile,
                                     uint32_t band)
{
    ptx_u32 at = find_entry(k, g, tile), entry[2];
    ptx_ld_shared_v2_u32(k, entry, at, 0);
    ptx_u32 end = ptx_ld_shared_u32(k, at, ENTRY + 4);
    ptx_u32 tiles_m = gemm_divide_up(k, ptx_sub_u32(k, end, entry[1]), g->tile_m);
    ptx_u32 in_group = ptx_sub_u32(k, tile, entry[0]);
    struct gemm_place p = gemm_locate_in_band(k, in_group, tiles_m, g->tiles_n, band);
    p.group = gemm_divide(k, ptx_sub_u32(k, at, g->table), ENTRY);
    p.first = entry[1];
    p.end = end;
    return p;
}
