/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel of the example's own, the end of a decoding step: the token with the largest logit
 * becomes the next id of its sequence, and the position moves on by one. So a graph of a step can
 * be launched again without anything from the host.
 *
 * Of equal logits the first wins, and −0 equals 0. A NaN, of either sign, is above all numbers, and
 * of several the first wins.
 */
#ifndef GENERATE_GREEDY_H
#define GENERATE_GREEDY_H

#include <ptxgen/dispatch.h>

struct greedy_spec {
    uint32_t vocabulary; /* at least 1 */
};

/*
 * Device addresses. A launch overlaps the kernel ahead of it on the stream, and lets the kernel
 * behind it begin early. Attention reads positions before it waits, so that between this launch and
 * the next attention there must be one that does not overlap the kernel ahead (attention.h).
 */
struct greedy_args {
    uint64_t m;         /* sequences, 1 to 65535 */
    uint64_t logits;    /* f32 [m, vocabulary] */
    uint64_t ids;       /* s32 [m] */
    uint64_t positions; /* s32 [m] */
    uint64_t cells;     /* greedy_cells_bytes, zeroed once; every launch leaves zeros */
};

const ptxgen_family *greedy_family(void);
uint64_t greedy_cells_bytes(uint64_t m);
ptxgen_status greedy_launch(const ptxgen_loaded *loaded, const struct greedy_args *args,
                            ptxgen_cu_stream stream, ptxgen_error *err);

#endif
