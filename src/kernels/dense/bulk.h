/* SPDX-License-Identifier: Apache-2.0 */
/* State of the entries that copy stages in bulk into a ring (ring.h), with wgmma and mma.sync. */
#ifndef PTXGEN_KERNELS_DENSE_BULK_H
#define PTXGEN_KERNELS_DENSE_BULK_H

#include "emit.h"

#include "../gemm/boxes.h"

struct dense_bulk {
    struct dense_product q; /* the caller sets spec, plan and v */
    struct gemm_ring ring;
    struct gemm_boxes boxes; /* of x */
    ptx_param w_map;
    ptx_u32 first, end; /* stages of the CTA */

    struct gemm_ring_place read;
    ptx_u32 to_read; /* stages of the CTA after the current one */
    ptx_u32 held;    /* full barrier of the slot that is to be released next */
    ptx_pred releases;
};

/* Emits the beginning of an entry, which all threads execute alike, and its end. */
void dense_bulk_begin(struct dense_bulk *b, ptx_module *module);
void dense_bulk_end(struct dense_bulk *b);
/* Bytes of x in a stage, which come before those of w. */
uint32_t dense_bulk_x_bytes(const struct dense_bulk *b);

/* The producer's walk through the CTA's stages. */
struct dense_sender {
    ptx_u64 w_map;
    ptx_u32 x_row, w_row; /* the first token and feature of the tile that the CTA copies */
    struct gemm_ring_place place;
    struct gemm_walk walk;
};
void dense_sender_begin(struct dense_bulk *b, struct dense_sender *s);
/* Moves the producer to the next part of the walk. */
void dense_sender_turn(struct dense_bulk *b, struct dense_sender *s);
/* Issues the copies of the walk's stage to the current slot, which has been claimed. */
void dense_sender_send(struct dense_bulk *b, const struct dense_sender *s);

/* Begins a consumer at the first stage; returns the number of the CTA's stages. */
ptx_u32 dense_bulk_begin_reading(struct dense_bulk *b);

#endif
