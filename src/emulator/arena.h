/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bump allocator: the parser and the decoder build their trees in one and free it whole.
 * Memory is zeroed. When the system has none left, control leaves through `escape` (when set).
 */
#ifndef PTXGEN_EMULATOR_ARENA_H
#define PTXGEN_EMULATOR_ARENA_H

#include <setjmp.h>
#include <stddef.h>

struct emu_chunk;

struct emu_arena {
    struct emu_chunk *head;
    size_t used, size;
    jmp_buf *escape; /* longjmp target with value 2 when memory runs out */
};

void *emu_alloc(struct emu_arena *arena, size_t count, size_t size);
char *emu_copy_text(struct emu_arena *arena, const char *text, size_t length);
void emu_arena_free(struct emu_arena *arena);

/* Doubles `*items` (of `size` bytes each) when `count` items fill `*capacity`. */
void emu_grow(struct emu_arena *arena, void *items, size_t count, size_t *capacity, size_t size);

#endif
