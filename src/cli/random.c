/* SPDX-License-Identifier: Apache-2.0 */
#include "random.h"

#include <string.h>

struct random random_start(uint64_t seed)
{
    return (struct random){seed};
}

uint64_t random_bits(struct random *r)
{
    uint64_t z = r->state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

uint32_t random_below(struct random *r, uint32_t count)
{
    return (uint32_t)((random_bits(r) >> 32) * count >> 32);
}

double random_normal(struct random *r)
{
    int32_t sum = 0; /* of twelve 16-bit numbers: exact, so no rounding differs between machines */
    for (int i = 0; i < 3; i++) {
        uint64_t bits = random_bits(r);
        for (int j = 0; j < 4; j++)
            sum += (int32_t)(bits >> (16 * j) & 0xFFFF);
    }
    return (sum - 6 * 65535) / 65536.0;
}

void random_fill(struct random *r, void *bytes, size_t count)
{
    unsigned char *to = bytes;
    for (; count; count -= count < 8 ? count : 8, to += 8) {
        uint64_t bits = random_bits(r);
        memcpy(to, &bits, count < 8 ? count : 8);
    }
}
