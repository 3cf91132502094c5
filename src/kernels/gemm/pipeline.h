/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The multistage pipeline of cp.async for kernels in which all warps both copy and multiply. The
 * copies have a walk of their own over the CTA's stages (fixup.h), so they run ahead of the
 * products across the ends of tiles.
 *
 *     slots    │ s − 1: done │ s: multiplied │ s + 1 … s + stages − 2: copies under way │
 *
 * At the CTA barrier near the end of stage s, a warp may still read stage s, but none reads stage
 * s − 1. So the copies that are issued in stage s + 1 go to the slot of stage s − 1, and those of
 * `stages` − 2 stages are under way.
 */
#ifndef PTXGEN_KERNELS_GEMM_PIPELINE_H
#define PTXGEN_KERNELS_GEMM_PIPELINE_H

#include "walk.h"

struct gemm_pipeline {
    /* Set by the caller. */
    uint32_t stages, stage_bytes; /* slots, a multiple of 128 bytes each */
    uint32_t early; /* of the first stages: those issued before `filled` is called; 0: all */
    const struct gemm_division *division;
    /* Moves the operands to the part of a tile at which the walk of the copies is. */
    void (*locate)(void *user, const struct gemm_walk *walk);
    /* Issues the copies of the next stage to the shared address `slot`, and moves on by a stage. */
    void (*issue)(void *user, ptx_u32 slot);
    /* NULL, or called once after the copies of the first stages are issued, before a wait. */
    void (*filled)(void *user);
    void *user;

    struct gemm_walk copies;
    ptx_u32 to_issue;   /* stages whose copies are not issued yet */
    ptx_u32 to_read;    /* stages whose products have not begun */
    ptx_u32 begin, end; /* shared addresses of the first slot, and behind the last one */
    ptx_u32 fill, read; /* shared addresses of the slots to copy to, and to multiply from */
};

/*
 * Begins the pipeline over the stages [first, end) of the CTA: issues the copies of the first
 * stages, and waits for the first stage.
 */
void gemm_pipeline_begin(ptx_kernel *k, struct gemm_pipeline *p, ptx_u32 first, ptx_u32 end);
/* Issues the copies of the other first stages. Where `early` is not 0, `filled` calls this. */
void gemm_pipeline_fill(ptx_kernel *k, struct gemm_pipeline *p);
/*
 * Issues the copies of one more stage and commits them as a group; past the CTA's last stage the
 * group is empty. To be executed once a stage, before its products.
 */
void gemm_pipeline_issue(ptx_kernel *k, struct gemm_pipeline *p);
/* Moves `read` to the next stage, if there is one, and waits for that stage's copies. */
void gemm_pipeline_next(ptx_kernel *k, struct gemm_pipeline *p);

#endif
