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

uint32_t random_launch_rows(struct random *r, bool small, uint64_t most)
{
    static const uint32_t edges[] = {0,  1,  7,  8,   9,   16,  17,   32,
                                     33, 64, 65, 128, 129, 256, 1025, 4097};
    uint32_t rows = random_below(r, 2) ? edges[random_below(r, sizeof edges / sizeof *edges)]
                                       : random_below(r, small ? 150 : 4098);
    return rows <= most ? rows : (uint32_t)most;
}

uint32_t random_deep_k(struct random *r, uint32_t unit)
{
    enum { LEAST = 4096, MOST = 16384 };
    uint32_t first = (LEAST + unit - 1) / unit, last = MOST / unit;
    if (random_below(r, 16))
        return 0;
    return unit * (random_below(r, 4) ? first + random_below(r, last - first + 1) : last);
}

void random_features(struct random *r, uint32_t most, uint32_t unit, uint32_t least, uint32_t *k,
                     uint32_t *n)
{
    *n = 1 + random_below(r, most);
    if (random_below(r, 3) == 0)
        *n = (*n + 63) / 64 * 64;
    uint32_t deep = random_deep_k(r, random_below(r, 2) ? unit : least);
    if (deep) {
        *k = deep;
        *n = 1 + random_below(r, RANDOM_DEEP_FEATURES);
    }
}

uint32_t random_max_m(struct random *r, uint32_t m)
{
    return random_below(r, 4) == 0 ? m + 1 + random_below(r, 3) : 0;
}

uint32_t random_gap(struct random *r, uint32_t multiple)
{
    return random_below(r, 2) ? multiple * random_below(r, 32 / multiple + 1) : random_below(r, 40);
}
