/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pipeline of copies into shared memory, ahead of the arithmetic and on through tiles' ends: a
 * walk of its own over a CTA's stages, and a ring of slots that a stage each is copied into.
 *
 * At the barrier near a stage's end warps may still read that stage, but none reads the one before;
 * so the next stage sends into the slot of the one before, and `stages` − 2 are under way.
 */
#ifndef PTXGEN_KERNELS_TILE_PIPELINE_H
#define PTXGEN_KERNELS_TILE_PIPELINE_H

#include "stream_k.h"

struct tile_pipeline {
    /* Set by the caller. */
    uint32_t stages, stage_bytes; /* slots, a multiple of 128 bytes each */
    uint32_t early; /* first stages that are sent for before `sent` is called; 0: all */
    const struct tile_division *division;
    /* Turns the copies to the part of a tile that the walk has come to. */
    void (*locate)(void *user, const struct tile_walk *walk);
    /* Sends for the next stage, to the shared address `slot`, and moves on. */
    void (*send)(void *user, ptx_u32 slot);
    /*
     * NULL, or what is to be done once the first stages are sent for, before they are waited for.
     */
    void (*sent)(void *user);
    void *user;

    struct tile_walk copies;
    ptx_u32 to_send, to_read; /* stages that are not sent for, and not begun, yet */
    ptx_u32 begin, end;       /* of the slots, shared addresses */
    ptx_u32 fill, read;
};

/* First stages are sent for, and the first has landed, for the stages [first, end) of the CTA. */
void tile_pipeline_begin(ptx_kernel *k, struct tile_pipeline *p, ptx_u32 first, ptx_u32 end);
/* Where some are early `sent` calls this, to send for the other first stages. */
void tile_pipeline_fill(ptx_kernel *k, struct tile_pipeline *p);
/*
 * Once a stage, before its products: sends for another, one group of copies, empty past the last.
 */
void tile_pipeline_send(ptx_kernel *k, struct tile_pipeline *p);
/* Waits for the next stage, and moves the read slot to it if there is one. */
void tile_pipeline_next(ptx_kernel *k, struct tile_pipeline *p);

#endif
