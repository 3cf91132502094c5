/* SPDX-License-Identifier: Apache-2.0 */
/* The types and functions that activations.c and staging.c share. */
#ifndef PTXGEN_RMSNORM_Q4K_ACTIVATIONS_H
#define PTXGEN_RMSNORM_Q4K_ACTIVATIONS_H

#include "emit.h"

/* A super-block of one token in registers: 8 values a lane; a word has two 16-bit values. */
struct rmsnorm_q4k_item {
    ptx_u32 x[LANE_VALUES], residual[LANE_VALUES];
    ptx_f32 gamma[LANE_VALUES];
};

/* The global addresses of the lane's values of an item. */
struct rmsnorm_q4k_source {
    ptx_u64 x, residual, gamma;
};

/* The warp's items of a chunk: every `takers`-th from `number` on, one for each warp. */
struct rmsnorm_q4k_share {
    ptx_u32 first; /* super-block of the chunk */
    ptx_u32 number, end, last;
    uint32_t takers;
    ptx_pred vectors;
    struct rmsnorm_q4k_stream *stream; /* NULL, or the ring that is filled behind x, see emit.h */
    ptx_u32 issued;                    /* 1: the copies of the stream's slots have been issued */
};

/* ---- activations.c ---- */

struct rmsnorm_q4k_item rmsnorm_q4k_new_item(struct rmsnorm_q4k_kernel *q);
/* An item without registers; the first load into the item makes them. */
struct rmsnorm_q4k_item rmsnorm_q4k_no_item(void);
/* Items are numbered from super-block `first` on. */
struct rmsnorm_q4k_source rmsnorm_q4k_find_source(struct rmsnorm_q4k_kernel *q, ptx_u32 first,
                                                  ptx_u32 number);
/* Loads an item by vectors of 16 bytes. */
void rmsnorm_q4k_load_item(struct rmsnorm_q4k_kernel *q, const struct rmsnorm_q4k_source *from,
                           struct rmsnorm_q4k_item *item);
void rmsnorm_q4k_prepare_item(struct rmsnorm_q4k_kernel *q, ptx_u32 first, ptx_u32 number,
                              const struct rmsnorm_q4k_item *item);

/* ---- staging.c ---- */

/* Prepares the warp's items by way of shared memory, where the plan stages x there. */
void rmsnorm_q4k_take_staged(struct rmsnorm_q4k_kernel *q, struct rmsnorm_q4k_share *s);

#endif
