/* SPDX-License-Identifier: Apache-2.0 */
/* How a launch divides tiles among CTAs, on the host; see stream_k.h. */
#ifndef PTXGEN_KERNELS_TILE_SCHEDULE_H
#define PTXGEN_KERNELS_TILE_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Tiles have `stages` stages along K each; a granule, a stage or a whole tile, is never divided.
 * CTA c has the granules from c·share + min(c, extra) on, `share` of them and one more where
 * c < extra.
 */
struct tile_schedule {
    uint32_t grid, share, extra, granule;
    bool divides; /* tiles: CTAs hand sums over */
};

/* Whether whole tiles for each of so many CTAs leave few of them idle. */
bool tile_deals_whole(uint64_t tiles, uint32_t ctas);
/* tiles > 0, tiles · stages below 2³². */
struct tile_schedule tile_make_schedule(uint64_t tiles, uint32_t stages, uint32_t most_ctas);
/*
 * Divided tiles, fewer than CTAs: a CTA whose stages are all within one tile ends `early` stages
 * sooner than those that have its last, which wait for its sums. Granules leave these out: a tile
 * has `stages` − `early` of them, and 0 for `granule` says so.
 */
struct tile_schedule tile_deal_early(uint64_t tiles, uint32_t stages, uint32_t early,
                                     uint32_t ctas);
/* … in whole tiles, or not, as the caller says. */
struct tile_schedule tile_deal(uint64_t tiles, uint32_t stages, uint32_t most_ctas, bool whole);

#endif
