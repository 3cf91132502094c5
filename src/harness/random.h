/* SPDX-License-Identifier: Apache-2.0 */
/** Pseudo-random numbers for test data: equal seeds give equal numbers on every machine. */
#ifndef PTXGEN_HARNESS_RANDOM_H
#define PTXGEN_HARNESS_RANDOM_H

#include <ptxgen/types.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct random {
    uint64_t state;
};

struct random random_start(uint64_t seed);
/** 64 uniform bits (SplitMix64: Steele, Lea, Flood 2014). */
uint64_t random_bits(struct random *r);
/** Uniform in [0, count), count > 0. */
uint32_t random_below(struct random *r, uint32_t count);
/** About normal, mean 0 and variance 1, within ±6: a sum of twelve uniform numbers. */
double random_normal(struct random *r);
void random_fill(struct random *r, void *bytes, size_t count);

/**
 * Rows of a launch, at most `most`: half of the time at an edge of tiles, else any below 4098, or
 * below 150 where `small`.
 */
uint32_t random_launch_rows(struct random *r, bool small, uint64_t most);
/**
 * K of a model's size, a multiple of `unit` from 4096 to 16384, for one problem in 16, which then
 * has at most RANDOM_DEEP_FEATURES output features; else 0.
 */
enum { RANDOM_DEEP_FEATURES = 64 };
uint32_t random_deep_k(struct random *r, uint32_t unit);
/**
 * N of a problem, at most `most`, in a third of all cases a multiple of 64; or, for one problem in
 * 16, a deep K, a multiple of `unit` or else of `least`, with few features.
 */
void random_features(struct random *r, uint32_t most, uint32_t unit, uint32_t least, uint32_t *k,
                     uint32_t *n);
/** For a quarter of all problems a limit that m tokens keep to, up to three above them; else 0. */
uint32_t random_max_m(struct random *r, uint32_t m);
/** Elements between rows, below 40: half of the time a multiple, of 8 or 16, up to 32. */
uint32_t random_gap(struct random *r, uint32_t multiple);

#endif
