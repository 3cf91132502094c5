/* SPDX-License-Identifier: Apache-2.0 */
#include "src/emulator/index_map.h"

enum { FIRST_BUCKETS = 16 };

/* The bucket of the key, or the empty one where it belongs. The number of buckets is a power of 2,
 * and less than three quarters of them are full. */
static uint32_t bucket_of(const struct emu_index_map *map, uint32_t key)
{
    uint32_t hash = key * 0x9e3779b9u, at = (hash ^ hash >> 16) & (map->buckets - 1);
    while (map->keys[at] && map->keys[at] != key + 1)
        at = (at + 1) & (map->buckets - 1);
    return at;
}

bool emu_map_get(const struct emu_index_map *map, uint32_t key, uint32_t *value)
{
    if (!map->buckets)
        return false;
    uint32_t at = bucket_of(map, key);
    *value = map->values[at];
    return map->keys[at] != 0;
}

void emu_map_put(struct emu_arena *arena, struct emu_index_map *map, uint32_t key, uint32_t value)
{
    if (4 * (uint64_t)map->count >= 3 * (uint64_t)map->buckets) {
        struct emu_index_map wider = {.buckets = map->buckets ? 2 * map->buckets : FIRST_BUCKETS};
        wider.keys = emu_alloc(arena, wider.buckets, sizeof *wider.keys);
        wider.values = emu_alloc(arena, wider.buckets, sizeof *wider.values);
        for (uint32_t i = 0; i < map->buckets; i++)
            if (map->keys[i])
                emu_map_put(arena, &wider, map->keys[i] - 1, map->values[i]);
        *map = wider;
    }
    uint32_t at = bucket_of(map, key);
    map->keys[at] = key + 1;
    map->values[at] = value;
    map->count++;
}
