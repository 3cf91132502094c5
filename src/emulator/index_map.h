/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash table from indices to indices, for the few of many functions and variables that one kernel
 * names. Its memory is an arena's. Zero-initialise.
 */
#ifndef PTXGEN_EMULATOR_INDEX_MAP_H
#define PTXGEN_EMULATOR_INDEX_MAP_H

#include "src/emulator/arena.h"

#include <stdbool.h>
#include <stdint.h>

struct emu_index_map {
    uint32_t *keys; /* plus 1; 0 where a bucket is empty */
    uint32_t *values;
    uint32_t count, buckets;
};

/* False when the key is not there. */
bool emu_map_get(const struct emu_index_map *map, uint32_t key, uint32_t *value);
/* The key is not there yet, and is no UINT32_MAX. */
void emu_map_put(struct emu_arena *arena, struct emu_index_map *map, uint32_t key, uint32_t value);

#endif
