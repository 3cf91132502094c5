/* SPDX-License-Identifier: Apache-2.0 */
/* BLAKE2b without a key (RFC 7693): the hash of cache keys and checksums. */
#ifndef PTXGEN_RUNTIME_BLAKE2B_H
#define PTXGEN_RUNTIME_BLAKE2B_H

#include <stddef.h>
#include <stdint.h>

enum { BLAKE2B_BLOCK = 128, BLAKE2B_LONGEST = 64 };

struct blake2b {
    uint64_t state[8];
    uint64_t bytes; /* compressed so far; 2⁶⁴ are never reached */
    unsigned char block[BLAKE2B_BLOCK];
    size_t filled, digest_size;
};

void blake2b_begin(struct blake2b *hash, size_t digest_size); /* 1 … BLAKE2B_LONGEST bytes */
void blake2b_add(struct blake2b *hash, const void *bytes, size_t size);
void blake2b_end(struct blake2b *hash, unsigned char *digest);

/* A 256-bit digest in hexadecimal, as `b2sum -l 256` prints it. */
enum { DIGEST_HEX = 64 };
struct digest {
    char hex[DIGEST_HEX + 1];
};
struct digest digest_of(const void *bytes, size_t size);

#endif
