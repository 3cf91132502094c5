/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel of the example's own, the end of a decoding step: the token with the largest logit
 * becomes the next id of its sequence (of equal ones the first), and the position moves on. So a
 * graph of a step can be launched again without anything from the host.
 */
#ifndef GENERATE_GREEDY_H
#define GENERATE_GREEDY_H

#include <ptxgen/dispatch.h>

struct greedy_spec {
    uint32_t vocabulary; /* at least 4 */
};

/* Device addresses. */
struct greedy_args {
    uint64_t m;         /* sequences, below 65536 */
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
