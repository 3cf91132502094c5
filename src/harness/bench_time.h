/* SPDX-License-Identifier: Apache-2.0 */
/** Timing by device events around a CUDA graph of many launches. */
#ifndef PTXGEN_HARNESS_BENCH_TIME_H
#define PTXGEN_HARNESS_BENCH_TIME_H

#include "device.h"

#include <stddef.h>
#include <stdint.h>

/** Seconds of one launch: a replay's time divided by its launches. */
struct timing {
    double median, least, most;
    unsigned replays, launches;
};

/** Sorts the values. */
double bench_median(double *values, size_t count);

/** Enqueues one launch over copy number `copy` of its data. */
typedef ptxgen_status bench_launch(void *state, uint32_t copy, ptxgen_error *err);

/**
 * Captures `launches` calls of `launch`, copy after copy, into a graph; replays it three times
 * unmeasured, then `replays` times between two events each. Then the device rests for as long as
 * that took.
 */
ptxgen_status bench_time(struct device *device, bench_launch *launch, void *state, uint32_t copies,
                         unsigned launches, unsigned replays, struct timing *timing,
                         ptxgen_error *err);

/** Enqueues `times` launches between two events and waits for them; seconds of one. */
ptxgen_status time_launches(struct device *device, bench_launch *launch, void *state, int times,
                            double *seconds, ptxgen_error *err);

/** Copies that make the weights worth more than four times the device's L2, at least 2. */
uint32_t bench_copies(const struct device *device, uint64_t weight_bytes);

/** The device memory of a bench, freed all at once. */
struct bench_memory {
    struct device *device;
    ptxgen_cu_deviceptr items[16];
    int count;
};
/**
 * Random elements of a type of operand.h, such as a model has, since the clock under load depends
 * on them: floats are normal numbers of variance 1, codes of s8, e4m3 and e5m2 are those of normal
 * numbers quantised, and other types are random bits. `bytes` are whole elements.
 */
ptxgen_status bench_random_memory(struct bench_memory *memory, const char *what, int type,
                                  size_t bytes, uint64_t *address, ptxgen_error *err);
/** `bytes` of memory over which the piece at `host` is repeated; the last one may be cut off. */
ptxgen_status bench_copied_memory(struct bench_memory *memory, const char *what, const void *host,
                                  size_t piece, size_t bytes, uint64_t *address, ptxgen_error *err);
/** Zeros, which are there before any launch; none for 0 bytes. */
ptxgen_status bench_zeroed_memory(struct bench_memory *memory, const char *what, size_t bytes,
                                  uint64_t *address, ptxgen_error *err);
void bench_free(struct bench_memory *memory);

#endif
