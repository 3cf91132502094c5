/* SPDX-License-Identifier: Apache-2.0 */
/* Entries whose stages are copied in bulk, into a ring (tile/ring.h): by wgmma's and mma.sync's. */
#ifndef PTXGEN_KERNELS_DENSE_BULK_H
#define PTXGEN_KERNELS_DENSE_BULK_H

#include "emit.h"

#include "../tile/boxes.h"

struct dense_bulk {
    struct dense_product q; /* spec, plan and v set by the caller */
    struct tile_ring ring;
    struct tile_boxes boxes; /* of X */
    ptx_param w_map;
    ptx_u32 first, end; /* stages of the CTA */

    struct tile_ring_place read;
    ptx_u32 to_read; /* stages of the CTA after the present one */
    ptx_u32 held;    /* the barrier of the stage before the present one */
    ptx_pred releases;
};

/* All up to where threads part. */
void dense_bulk_begin(struct dense_bulk *b, ptx_module *module);
void dense_bulk_end(struct dense_bulk *b);
/* Of a stage, before those of W. */
uint32_t dense_bulk_x_bytes(const struct dense_bulk *b);

/* The copies' own walk through the CTA's stages. */
struct dense_sender {
    ptx_u64 w_map;
    ptx_u32 x_row, w_row; /* the first of the tile that the CTA sends for */
    struct tile_ring_place place;
    struct tile_walk walk;
};
void dense_sender_begin(struct dense_bulk *b, struct dense_sender *s);
/* Turns to the next part of the walk. */
void dense_sender_turn(struct dense_bulk *b, struct dense_sender *s);
/* Sends for the walk's stage, to the slot at the place, which has been claimed. */
void dense_sender_send(struct dense_bulk *b, const struct dense_sender *s);

/* Stands at the first stage; how many the CTA has. */
ptx_u32 dense_bulk_begin_reading(struct dense_bulk *b);

#endif
