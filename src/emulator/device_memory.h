/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Global memory: allocations at addresses that are never used twice, with a gap after each, so
 * that a stray access or a use after free is always seen. Every byte has a shadow byte that says
 * whether it was ever written. Launches hold the lock for reading, alloc and free for writing.
 */
#ifndef PTXGEN_EMULATOR_DEVICE_MEMORY_H
#define PTXGEN_EMULATOR_DEVICE_MEMORY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct emu_race_page; /* global_race.h */

struct emu_allocation {
    uint64_t address, size;
    uint8_t *data, *written;                     /* NULL once freed */
    bool read_only;                              /* .const variables */
    _Atomic(struct emu_race_page *) *race_pages; /* marks of the launch under way, or NULL */
};

enum { EMU_ATOMIC_LOCKS = 64, EMU_RACE_PAGE_BYTES = 4096 };

struct emu_memory {
    pthread_rwlock_t lock;
    pthread_mutex_t atomics[EMU_ATOMIC_LOCKS];
    struct emu_allocation **list; /* by address */
    size_t count, capacity, freed;
    uint64_t next, in_use, limit;
    /* Marks of kernels that may still run, as a kernel behind them sees it: of the last one, and of
     * those ahead of it where it let others begin early. Under `lock` for writing, or a launch's. */
    struct emu_race_page *kept;
    const void *kept_stream;
    bool kept_older;
};

/* Without room for any byte; emu_memory_clear makes room. */
bool emu_memory_init(struct emu_memory *memory);
/* Frees everything and begins anew, with room for `limit` bytes. */
void emu_memory_clear(struct emu_memory *memory, uint64_t limit);
void emu_memory_destroy(struct emu_memory *memory);
/* 0 when there is no memory left. */
uint64_t emu_memory_alloc(struct emu_memory *memory, uint64_t size, uint64_t alignment);
bool emu_memory_free(struct emu_memory *memory, uint64_t address);
/* What was launched so far has ended: no later kernel overlaps it. */
void emu_memory_settle(struct emu_memory *memory);
/* The allocation, live or freed, that holds `address`; NULL when none does. */
struct emu_allocation *emu_memory_find(const struct emu_memory *memory, uint64_t address);
/* Where a host copy of `size` bytes may read or write, NULL when any byte is out of bounds. */
uint8_t *emu_memory_host(struct emu_memory *memory, uint64_t address, uint64_t size,
                         uint8_t **written);

#endif
