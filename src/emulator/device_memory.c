/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "src/emulator/device_memory.h"
#include "src/emulator/global_race.h"
#include "src/emulator/layout.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { GAP = 4096, BASE_ALIGNMENT = 512, FREED_KEPT = 4096 };

bool emu_memory_init(struct emu_memory *memory)
{
    memset(memory, 0, sizeof *memory);
    if (pthread_rwlock_init(&memory->lock, NULL) != 0)
        return false;
    for (int i = 0; i < EMU_ATOMIC_LOCKS; i++)
        pthread_mutex_init(&memory->atomics[i], NULL);
    return true;
}

/*
 * So many bytes come from mmap, which takes memory for the pages that are touched only: a
 * sanitizer's calloc takes it for the shadow of all.
 */
static const uint64_t LEAST_MAPPED = UINT64_C(1) << 28;

static uint8_t *zeroed_bytes(uint64_t bytes)
{
    if (bytes < LEAST_MAPPED)
        return calloc(1, bytes);
    void *mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return mapped == MAP_FAILED ? NULL : mapped;
}

static void free_bytes(uint8_t *from, uint64_t bytes)
{
    if (bytes < LEAST_MAPPED)
        free(from);
    else if (from)
        munmap(from, bytes);
}

static uint64_t backing_bytes(const struct emu_allocation *allocation)
{
    return allocation->size + 16;
}

static void release(struct emu_allocation *allocation)
{
    free_bytes(allocation->data, backing_bytes(allocation));
    free_bytes(allocation->written, backing_bytes(allocation));
    free(allocation->race_pages);
    allocation->data = allocation->written = NULL;
    allocation->race_pages = NULL;
}

void emu_memory_clear(struct emu_memory *memory, uint64_t limit)
{
    pthread_rwlock_wrlock(&memory->lock);
    emu_race_free(&memory->kept);
    for (size_t i = 0; i < memory->count; i++) {
        release(memory->list[i]);
        free(memory->list[i]);
    }
    free(memory->list);
    memory->list = NULL;
    memory->count = memory->capacity = memory->freed = 0;
    memory->in_use = 0;
    memory->next = EMU_GLOBAL_BASE;
    memory->limit = limit;
    pthread_rwlock_unlock(&memory->lock);
}

void emu_memory_destroy(struct emu_memory *memory)
{
    emu_memory_clear(memory, 0);
    for (int i = 0; i < EMU_ATOMIC_LOCKS; i++)
        pthread_mutex_destroy(&memory->atomics[i]);
    pthread_rwlock_destroy(&memory->lock);
}

/* Forgets the oldest freed allocations; accesses to them are then merely out of bounds. */
static void forget_freed(struct emu_memory *memory)
{
    size_t kept = 0;
    for (size_t i = 0; i < memory->count; i++) {
        if (!memory->list[i]->data && memory->freed > FREED_KEPT / 2) {
            free(memory->list[i]);
            memory->freed--;
        } else {
            memory->list[kept++] = memory->list[i];
        }
    }
    memory->count = kept;
}

static bool make_room(struct emu_memory *memory)
{
    if (memory->freed > FREED_KEPT)
        forget_freed(memory);
    if (memory->count < memory->capacity)
        return true;
    size_t wider = memory->capacity ? memory->capacity * 2 : 64;
    struct emu_allocation **list = realloc(memory->list, wider * sizeof *list);
    if (!list)
        return false;
    memory->list = list;
    memory->capacity = wider;
    return true;
}

uint64_t emu_memory_alloc(struct emu_memory *memory, uint64_t size, uint64_t alignment)
{
    uint64_t address = 0;
    struct emu_allocation *made = NULL;
    if (alignment < BASE_ALIGNMENT)
        alignment = BASE_ALIGNMENT;
    pthread_rwlock_wrlock(&memory->lock);
    if (size <= memory->limit - memory->in_use && make_room(memory))
        made = calloc(1, sizeof *made);
    if (made) {
        made->size = size;
        made->data = zeroed_bytes(backing_bytes(made));
        made->written = zeroed_bytes(backing_bytes(made));
        made->race_pages = calloc(size / EMU_RACE_PAGE_BYTES + 1, sizeof *made->race_pages);
        if (made->data && made->written && made->race_pages) {
            made->address = address = (memory->next + alignment - 1) / alignment * alignment;
            memory->next = address + size + GAP;
            memory->in_use += size;
            memory->list[memory->count++] = made;
        } else {
            release(made);
            free(made);
        }
    }
    pthread_rwlock_unlock(&memory->lock);
    return address;
}

struct emu_allocation *emu_memory_find(const struct emu_memory *memory, uint64_t address)
{
    size_t low = 0, high = memory->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct emu_allocation *allocation = memory->list[middle];
        if (address < allocation->address)
            high = middle;
        else if (address - allocation->address >= allocation->size)
            low = middle + 1;
        else
            return memory->list[middle];
    }
    return NULL;
}

void emu_memory_settle(struct emu_memory *memory)
{
    pthread_rwlock_wrlock(&memory->lock);
    emu_race_free(&memory->kept);
    pthread_rwlock_unlock(&memory->lock);
}

bool emu_memory_free(struct emu_memory *memory, uint64_t address)
{
    pthread_rwlock_wrlock(&memory->lock);
    struct emu_allocation *allocation = emu_memory_find(memory, address);
    bool found = allocation && allocation->data && allocation->address == address;
    if (found) {
        emu_race_free(&memory->kept);
        memory->in_use -= allocation->size;
        memory->freed++;
        release(allocation);
    }
    pthread_rwlock_unlock(&memory->lock);
    return found;
}

uint8_t *emu_memory_host(struct emu_memory *memory, uint64_t address, uint64_t size,
                         uint8_t **written)
{
    struct emu_allocation *allocation = emu_memory_find(memory, address);
    if (!allocation || !allocation->data || size > allocation->size ||
        address - allocation->address > allocation->size - size)
        return NULL;
    uint64_t offset = address - allocation->address;
    if (written)
        *written = allocation->written + offset;
    return allocation->data + offset;
}
