/* SPDX-License-Identifier: Apache-2.0 */
/* Little-endian bytes, appended one field after another, for tests that write files by hand. */
#ifndef PTXGEN_TESTS_BYTES_H
#define PTXGEN_TESTS_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Zero it to begin. The block is exactly `size` bytes, so that sanitizers see every overrun. */
struct bytes {
    unsigned char *data;
    size_t size;
};

static inline void put(struct bytes *b, const void *data, size_t size)
{
    if (size == 0 && b->data)
        return;
    b->data = realloc(b->data, b->size + size);
    if (!b->data)
        abort();
    memcpy(b->data + b->size, data, size);
    b->size += size;
}

static inline void put_int(struct bytes *b, uint64_t value, unsigned size)
{
    for (unsigned i = 0; i < size; i++) {
        unsigned char byte = (unsigned char)(value >> (8 * i));
        put(b, &byte, 1);
    }
}

static inline void put_u8(struct bytes *b, uint8_t value)
{
    put_int(b, value, 1);
}

static inline void put_u32(struct bytes *b, uint32_t value)
{
    put_int(b, value, 4);
}

static inline void put_u64(struct bytes *b, uint64_t value)
{
    put_int(b, value, 8);
}

static inline void put_zeros(struct bytes *b, size_t count)
{
    for (size_t i = 0; i < count; i++)
        put_u8(b, 0);
}

static inline void bytes_free(struct bytes *b)
{
    free(b->data);
    *b = (struct bytes){0};
}

#endif
