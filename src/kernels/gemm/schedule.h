/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The division of a launch's tiles among CTAs, as the host computes it; the kernel's side of the
 * division is walk.h.
 *
 *     whole tiles       CTA 0 │ tile 0 │ tile 1 │  CTA 1 │ tile 2 │ tile 3 │  …
 *     divided tiles     CTA 0 │ tile 0 │ tile 1 ┊  CTA 1 ┊ tile 1 │ tile 2 ┊  …
 */
#ifndef PTXGEN_KERNELS_GEMM_SCHEDULE_H
#define PTXGEN_KERNELS_GEMM_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Each tile has `stages` stages along K. A granule is what is never divided: one stage, or a whole
 * tile. CTA c has `share` granules from number c·share + min(c, extra) on, and one more where
 * c < extra.
 */
struct gemm_schedule {
    uint32_t grid, share, extra; /* CTAs, granules of each, CTAs with one granule more */
    uint32_t granule;            /* stages of a granule; 0: see gemm_deal_early */
    bool divides;                /* tiles are divided, so CTAs exchange partial sums */
};

/*
 * CTAs get whole tiles where at least this share of the CTAs' time is spent on tiles then. Else
 * tiles are divided, at the cost of a fix-up for each divided tile.
 */
enum { GEMM_WHOLE_TILES_PERCENT = 94 };
/* Whether a schedule of whole tiles keeps nearly all of the CTAs busy to the end. */
bool gemm_deals_whole(uint64_t tiles, uint32_t ctas);
/*
 * A schedule for fewer tiles than CTAs. A CTA that has the last stage of a tile waits for the
 * partial sums of the others, so it gets `early` stages more than a CTA whose stages all lie before
 * a tile's end. For that a tile counts as `stages` − `early` granules, of which the last one stands
 * for `early` + 1 stages; `granule` is 0 in this schedule.
 */
struct gemm_schedule gemm_deal_early(uint64_t tiles, uint32_t stages, uint32_t early,
                                     uint32_t ctas);
/* A schedule of whole tiles, or of stages. tiles > 0 and tiles · stages < 2³². */
struct gemm_schedule gemm_deal(uint64_t tiles, uint32_t stages, uint32_t most_ctas, bool whole);

/*
 * The most tiles along M that `groups` groups of together `rows` rows can have, where tiles of
 * `tile_m` rows never cross the end of a group. The number itself, which depends on the rows of
 * each group, is known to the device alone, and with it the division (groups.h): of a schedule for
 * so many tiles only `grid` and `divides` count.
 */
uint64_t gemm_most_tiles_m(uint64_t rows, uint32_t groups, uint32_t tile_m);

#endif
