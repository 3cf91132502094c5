/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule.h"

/*
 * CTAs get whole tiles where at least this share of the CTAs' time is spent on tiles then. Else
 * tiles are divided, at the cost of a fix-up for each divided tile.
 */
enum { WHOLE_TILES_PERCENT = 94 };

bool gemm_deals_whole(uint64_t tiles, uint32_t ctas)
{
    uint64_t rounds = (tiles + ctas - 1) / ctas;
    return tiles * 100 >= rounds * ctas * WHOLE_TILES_PERCENT;
}

struct gemm_schedule gemm_make_schedule(uint64_t tiles, uint32_t stages, uint32_t most_ctas)
{
    return gemm_deal(tiles, stages, most_ctas, gemm_deals_whole(tiles, most_ctas));
}

struct gemm_schedule gemm_deal_early(uint64_t tiles, uint32_t stages, uint32_t early, uint32_t ctas)
{
    struct gemm_schedule s = gemm_deal(tiles, stages - early, ctas, false);
    s.granule = 0;
    return s;
}

struct gemm_schedule gemm_deal(uint64_t tiles, uint32_t stages, uint32_t most_ctas, bool whole)
{
    uint64_t granules = whole ? tiles : tiles * stages;
    struct gemm_schedule s = {.granule = whole ? stages : 1, .divides = !whole && stages > 1};
    s.grid = granules < most_ctas ? (uint32_t)granules : most_ctas;
    s.share = (uint32_t)(granules / s.grid);
    s.extra = (uint32_t)(granules % s.grid);
    return s;
}
