/* SPDX-License-Identifier: Apache-2.0 */
/* What the files about activations hand to each other. */
#ifndef PTXGEN_RMSNORM_Q4K_ACTIVATIONS_H
#define PTXGEN_RMSNORM_Q4K_ACTIVATIONS_H

#include "emit.h"

/* One super-block of one token on its way: 8 values a lane, 16-bit ones two a word. */
struct rmsnorm_q4k_item {
    ptx_u32 x[LANE_VALUES], residual[LANE_VALUES];
    ptx_f32 gamma[LANE_VALUES];
};

/* Where an item's values of this lane are. */
struct rmsnorm_q4k_source {
    ptx_u64 x, residual, gamma;
};

/* The warp's items of a chunk: every `takers`-th from `number` on, one for each warp. */
struct rmsnorm_q4k_share {
    ptx_u32 first; /* super-block of the chunk */
    ptx_u32 number, end, last;
    uint32_t takers;
    ptx_pred vectors;
    struct rmsnorm_q4k_stream *stream; /* or NULL: see emit.h */
    ptx_u32 sent;                      /* 1: its slots have been sent for */
};

/* ---- activations.c ---- */

struct rmsnorm_q4k_item rmsnorm_q4k_new_item(struct rmsnorm_q4k_kernel *q);
/* Registers to come: the first load into it takes them. */
struct rmsnorm_q4k_item rmsnorm_q4k_no_item(void);
/* Items are numbered from super-block `first` on. */
struct rmsnorm_q4k_source rmsnorm_q4k_find_source(struct rmsnorm_q4k_kernel *q, ptx_u32 first,
                                                  ptx_u32 number);
/* By vectors. */
void rmsnorm_q4k_load_item(struct rmsnorm_q4k_kernel *q, const struct rmsnorm_q4k_source *from,
                           struct rmsnorm_q4k_item *item);
void rmsnorm_q4k_prepare_item(struct rmsnorm_q4k_kernel *q, ptx_u32 first, ptx_u32 number,
                              const struct rmsnorm_q4k_item *item);

/* ---- staging.c ---- */

/* Takes the warp's items by way of shared memory, as the plan says. */
void rmsnorm_q4k_take_staged(struct rmsnorm_q4k_kernel *q, struct rmsnorm_q4k_share *s);

#endif
