/* SPDX-License-Identifier: Apache-2.0 */
/* Reproducible random numbers: splitmix64 (Steele, Lea, Flood 2014) and what is drawn from it. */
#ifndef PTXGEN_TESTS_RANDOM_H
#define PTXGEN_TESTS_RANDOM_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

struct random {
    uint64_t state;
};

static inline uint64_t random_bits(struct random *r)
{
    uint64_t z = r->state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

/* In (0, 1). */
static inline double random_uniform(struct random *r)
{
    return ((double)(random_bits(r) >> 12) + 0.5) * 0x1p-52;
}

static inline double random_normal(struct random *r)
{
    double radius = sqrt(-2 * log(random_uniform(r)));
    return radius * cos(6.283185307179586 * random_uniform(r));
}

/* Student's t with 3 degrees of freedom: heavy tails, finite variance. */
static inline double random_heavy(struct random *r)
{
    double squares = 0;
    for (int i = 0; i < 3; i++) {
        double z = random_normal(r);
        squares += z * z;
    }
    return random_normal(r) / sqrt(squares / 3);
}

static inline void random_fill(struct random *r, void *data, size_t size)
{
    for (size_t i = 0; i < size; i++)
        ((unsigned char *)data)[i] = (unsigned char)(random_bits(r) >> 32);
}

#endif
