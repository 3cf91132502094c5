/* SPDX-License-Identifier: Apache-2.0 */
/** The general peer: cuBLAS on f16 or bf16 weights, sums in f32, where its library opens. */
#ifndef PTXGEN_CLI_BENCH_PEER_H
#define PTXGEN_CLI_BENCH_PEER_H

#include "../harness/bench_time.h"

#include <ptxgen/types.h>

struct peer;

/**
 * Opens cuBLAS from `path`, or by its usual names when NULL. NULL when there is none, with the
 * reason in `why`.
 */
struct peer *peer_open(struct device *device, const char *path, char *why, size_t size);
void peer_close(struct peer *peer);
/** The library's file name. */
const char *peer_name(const struct peer *peer);
/**
 * Times y[m, n] = x[m, k] · W, all of `type`, bf16 or else f16: the better of W stored as [n, k]
 * and [k, n], over copies of W worth more than four times the L2.
 */
ptxgen_status peer_time(struct peer *peer, ptxgen_element type, uint32_t m, uint32_t k, uint32_t n,
                        unsigned launches, unsigned replays, struct timing *timing,
                        ptxgen_error *err);

#endif
