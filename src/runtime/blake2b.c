/* SPDX-License-Identifier: Apache-2.0 */
#include "src/runtime/blake2b.h"

#include <string.h>

enum { ROUNDS = 12, DIGEST_BYTES = DIGEST_HEX / 2 };

static const uint64_t initial[8] = {0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b,
                                    0xa54ff53a5f1d36f1, 0x510e527fade682d1, 0x9b05688c2b3e6c1f,
                                    0x1f83d9abfb41bd6b, 0x5be0cd19137e2179};

static const uint8_t schedule[10][16] = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
                                         {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
                                         {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
                                         {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
                                         {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
                                         {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
                                         {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
                                         {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
                                         {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
                                         {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}};

static uint64_t rotate_right(uint64_t x, unsigned n)
{
    return x >> n | x << (64 - n);
}

/* So written, compilers see one load. */
static uint64_t load_word(const unsigned char *b)
{
    return (uint64_t)b[0] | (uint64_t)b[1] << 8 | (uint64_t)b[2] << 16 | (uint64_t)b[3] << 24 |
           (uint64_t)b[4] << 32 | (uint64_t)b[5] << 40 | (uint64_t)b[6] << 48 |
           (uint64_t)b[7] << 56;
}

/* The function G of the RFC's section 3.1. */
static inline void mix(uint64_t v[16], int a, int b, int c, int d, uint64_t x, uint64_t y)
{
    v[a] += v[b] + x;
    v[d] = rotate_right(v[d] ^ v[a], 32);
    v[c] += v[d];
    v[b] = rotate_right(v[b] ^ v[c], 24);
    v[a] += v[b] + y;
    v[d] = rotate_right(v[d] ^ v[a], 16);
    v[c] += v[d];
    v[b] = rotate_right(v[b] ^ v[c], 63);
}

static void compress(struct blake2b *hash, const unsigned char *block, uint64_t last)
{
    uint64_t v[16], m[16];
    for (int i = 0; i < 8; i++) {
        v[i] = hash->state[i];
        v[i + 8] = initial[i];
    }
    v[12] ^= hash->bytes;
    v[14] ^= last;
    for (int i = 0; i < 16; i++)
        m[i] = load_word(block + 8 * i);
#pragma GCC unroll 12 /* a constant schedule is half as fast again */
    for (int round = 0; round < ROUNDS; round++) {
        const uint8_t *s = schedule[round % 10];
        mix(v, 0, 4, 8, 12, m[s[0]], m[s[1]]); /* columns */
        mix(v, 1, 5, 9, 13, m[s[2]], m[s[3]]);
        mix(v, 2, 6, 10, 14, m[s[4]], m[s[5]]);
        mix(v, 3, 7, 11, 15, m[s[6]], m[s[7]]);
        mix(v, 0, 5, 10, 15, m[s[8]], m[s[9]]); /* diagonals */
        mix(v, 1, 6, 11, 12, m[s[10]], m[s[11]]);
        mix(v, 2, 7, 8, 13, m[s[12]], m[s[13]]);
        mix(v, 3, 4, 9, 14, m[s[14]], m[s[15]]);
    }
    for (int i = 0; i < 8; i++)
        hash->state[i] ^= v[i] ^ v[i + 8];
}

void blake2b_begin(struct blake2b *hash, size_t digest_size)
{
    memcpy(hash->state, initial, sizeof initial);
    hash->state[0] ^= 0x01010000 ^ digest_size;
    hash->bytes = 0;
    hash->filled = 0;
    hash->digest_size = digest_size;
}

/* A full block waits until more comes: the last one is compressed differently. */
void blake2b_add(struct blake2b *hash, const void *bytes, size_t size)
{
    const unsigned char *from = bytes;
    while (size > 0) {
        if (hash->filled == BLAKE2B_BLOCK) {
            hash->bytes += BLAKE2B_BLOCK;
            compress(hash, hash->block, 0);
            hash->filled = 0;
        }
        size_t part = BLAKE2B_BLOCK - hash->filled;
        if (part > size)
            part = size;
        memcpy(hash->block + hash->filled, from, part);
        hash->filled += part;
        from += part;
        size -= part;
    }
}

void blake2b_end(struct blake2b *hash, unsigned char *digest)
{
    memset(hash->block + hash->filled, 0, BLAKE2B_BLOCK - hash->filled);
    hash->bytes += hash->filled;
    compress(hash, hash->block, UINT64_MAX);
    for (size_t i = 0; i < hash->digest_size; i++)
        digest[i] = (unsigned char)(hash->state[i / 8] >> 8 * (i % 8));
}

struct digest digest_of(const void *bytes, size_t size)
{
    static const char hex[] = "0123456789abcdef";
    unsigned char binary[DIGEST_BYTES];
    struct blake2b hash;
    struct digest digest = {{0}};
    blake2b_begin(&hash, DIGEST_BYTES);
    blake2b_add(&hash, bytes, size);
    blake2b_end(&hash, binary);
    for (int i = 0; i < DIGEST_BYTES; i++) {
        digest.hex[2 * i] = hex[binary[i] >> 4];
        digest.hex[2 * i + 1] = hex[binary[i] & 15];
    }
    return digest;
}
