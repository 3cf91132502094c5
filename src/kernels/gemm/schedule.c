/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule.h"

bool gemm_deals_whole(uint64_t tiles, uint32_t ctas)
{
    uint64_t rounds = (tiles + ctas - 1) / ctas;
    return tiles * 100 >= rounds * ctas * GEMM_WHOLE_TILES_PERCENT;
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

/* A tile of one row in each group, and every further tile_m rows are another tile. */
uint64_t gemm_most_tiles_m(uint64_t rows, uint32_t groups, uint32_t tile_m)
{
    return rows <= groups ? rows : groups + (rows - groups) / tile_m;
}
