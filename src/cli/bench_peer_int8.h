/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The general peer of 8-bit weights: cuBLASLt's product of s8 by s8 in s32, alone, without
 * quantisation or scales.
 */
#ifndef PTXGEN_CLI_BENCH_PEER_INT8_H
#define PTXGEN_CLI_BENCH_PEER_INT8_H

#include "../harness/bench_time.h"

struct int8_peer;

/**
 * Opens cuBLASLt from `path`, or by its usual names when NULL. NULL when there is none, with the
 * reason in `why`.
 */
struct int8_peer *int8_peer_open(struct device *device, const char *path, char *why, size_t size);
void int8_peer_close(struct int8_peer *peer);
/** The library's file name. */
const char *int8_peer_name(const struct int8_peer *peer);
/**
 * Times y[m, n] = x[m, k] · Wᵀ with W [n, k], over copies of W worth more than four times the L2:
 * the best of the algorithms that the library proposes, for y stored by rows and by columns.
 */
ptxgen_status int8_peer_time(struct int8_peer *peer, uint32_t m, uint32_t k, uint32_t n,
                             unsigned launches, unsigned replays, struct timing *timing,
                             ptxgen_error *err);

#endif
