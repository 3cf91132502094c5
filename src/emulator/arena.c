/* SPDX-License-Identifier: Apache-2.0 */
#include "src/emulator/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct emu_chunk {
    struct emu_chunk *next;
    _Alignas(64) char bytes[];
};

/* Chunks double from the least to the most, so that a small tree takes little. */
enum { LEAST_CHUNK = 1 << 10, MOST_CHUNK = 64 << 10, ALIGNMENT = 16 };

static void *out_of_memory(struct emu_arena *arena)
{
    if (arena->escape)
        longjmp(*arena->escape, 2);
    return NULL;
}

void *emu_alloc(struct emu_arena *arena, size_t count, size_t size)
{
    if (size != 0 && count > (SIZE_MAX / 2) / size)
        return out_of_memory(arena);
    size_t bytes = (count * size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (!arena->head || bytes > arena->size - arena->used) {
        size_t room = arena->size ? arena->size * 2 : LEAST_CHUNK;
        room = room > MOST_CHUNK ? MOST_CHUNK : room;
        room = bytes > room ? bytes : room;
        struct emu_chunk *chunk = malloc(sizeof *chunk + room);
        if (!chunk)
            return out_of_memory(arena);
        chunk->next = arena->head;
        arena->head = chunk;
        arena->size = room;
        arena->used = 0;
    }
    void *memory = arena->head->bytes + arena->used;
    arena->used += bytes;
    return memset(memory, 0, bytes);
}

char *emu_copy_text(struct emu_arena *arena, const char *text, size_t length)
{
    char *copy = emu_alloc(arena, length + 1, 1);
    if (copy)
        memcpy(copy, text, length);
    return copy;
}

void emu_grow(struct emu_arena *arena, void *items, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return;
    size_t wider = *capacity ? *capacity * 2 : 8;
    void *moved = emu_alloc(arena, wider, size);
    void *old;
    memcpy(&old, items, sizeof old);
    if (!moved)
        return;
    if (count)
        memcpy(moved, old, count * size);
    memcpy(items, &moved, sizeof moved);
    *capacity = wider;
}

void emu_arena_free(struct emu_arena *arena)
{
    while (arena->head) {
        struct emu_chunk *next = arena->head->next;
        free(arena->head);
        arena->head = next;
    }
    arena->used = arena->size = 0;
}
