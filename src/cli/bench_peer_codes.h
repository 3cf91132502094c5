/* SPDX-License-Identifier: Apache-2.0 */
/**
 * What a general library does with weights of 8 bits: cuBLASLt's product alone, without quantisation or scales, of
 * s8 by s8 in s32, or of e4m3 by e4m3 in bf16.
 */
#ifndef PTXGEN_CLI_BENCH_PEER_CODES_H
#define PTXGEN_CLI_BENCH_PEER_CODES_H

#include "../harness/bench_time.h"

struct codes_peer;

/**
 * Opens cuBLASLt from `path`, or by its usual names when NULL. NULL when there is none, with the
 * reason in `why`.
 */
struct codes_peer *codes_peer_open(struct device *device, const char *path, char *why, size_t size);
void codes_peer_close(struct codes_peer *peer);
/** The library's file name. */
const char *codes_peer_name(const struct codes_peer *peer);
/**
 * Times y[m, n] = x[m, k] · Wᵀ with W [n, k], over copies of W worth more than four times the L2:
 * the best of the algorithms that the library proposes, for y stored by rows and by columns.
 */
ptxgen_status codes_peer_time(struct codes_peer *peer, bool e4m3, uint32_t m, uint32_t k,
                              uint32_t n, unsigned launches, unsigned replays,
                              struct timing *timing, ptxgen_error *err);

#endif
