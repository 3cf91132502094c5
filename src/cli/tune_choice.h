/* SPDX-License-Identifier: Apache-2.0 */
/** Which of the tiles that were measured serve which M. */
#ifndef PTXGEN_CLI_TUNE_CHOICE_H
#define PTXGEN_CLI_TUNE_CHOICE_H

#include <ptxgen/family.h>

#include <stdbool.h>

enum { TUNE_MOST_MS = PTXGEN_TUNED_RANGES, TUNE_MOST_TILES = 64 };

struct tune_tile {
    uint32_t numbers[PTXGEN_TILE_NUMBERS];
    const char *entry;            /**< tiles of one entry exclude each other */
    double seconds[TUNE_MOST_MS]; /**< of each M; 0: not measured */
};

/** What was measured, and what is chosen of it. */
struct tune_table {
    uint32_t ms[TUNE_MOST_MS]; /**< rising */
    unsigned m_count;
    struct tune_tile tiles[TUNE_MOST_TILES];
    unsigned tile_count;
    unsigned own[TUNE_MOST_MS];    /**< the plan's own tile for each M, measured */
    unsigned chosen[TUNE_MOST_MS]; /**< likewise */
};

/**
 * Chooses at most one tile of each entry, so that the geometric mean of the times over all M is
 * near its least: entry by entry, until no change helps. Then tiles go without which no M is two
 * percent slower, since each is an entry to assemble. A tile that is not the plan's own has to be
 * one percent faster, which is what times differ by from run to run.
 */
void tune_choose(struct tune_table *table);

/**
 * The choice as ranges: an M between two that were measured is served as the larger. Returns how
 * many they are.
 */
unsigned tune_ranges(const struct tune_table *table, ptxgen_tuned_range ranges[TUNE_MOST_MS]);

#endif
