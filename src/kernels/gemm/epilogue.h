/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The epilogue of a tile: y = f(sums + bias) + residual, rounded to y's type and stored. Threads
 * work on chunks of a row of y (chunk.h). Rows may have any length, and start at any multiple of an
 * element.
 *
 *     accumulators ─▶ staging in shared memory (sums.h, halves.h) ─▶ chunk: scale, + bias,
 *                     activation, + residual, round ─▶ y
 */
#ifndef PTXGEN_KERNELS_GEMM_EPILOGUE_H
#define PTXGEN_KERNELS_GEMM_EPILOGUE_H

#include "activation.h"
#include "chunk.h"
#include "tile_end.h"

/* A chunk of y, with its row and column in y. */
struct gemm_epilogue_place {
    struct gemm_chunk chunk;
    ptx_u32 row, column;
};

struct gemm_epilogue {
    /* Set by the caller. */
    ptx_kernel *k;
    const struct gemm_threads *at;
    const struct gemm_division *division;
    ptxgen_element type; /* of y, bias and residual */
    ptxgen_activation activation;
    bool has_bias, has_residual;
    ptx_u32 m;                                            /* tokens */
    uint32_t n;                                           /* features */
    ptx_u64 y, y_stride, bias, residual, residual_stride; /* addresses, strides in elements */
    ptx_u64 flags;                                        /* address of the CTAs' flags (fixup.h) */
    struct gemm_sums sums;         /* all that its caller sets, but for `width` */
    struct gemm_partials partials; /* begun; no fragments where tiles are never divided */
    ptx_u32 along, along_k;        /* index of the warp along the columns, and along K */
    bool only;                     /* the CTA never has a second tile */
    bool has_stmatrix;             /* the target has stmatrix; read only where warps are alone */
    uint32_t most_width;           /* columns of a chunk, at most */
    gemm_sums_register *acc;
    /* Converts a chunk's s32 sums to f32 and scales them; NULL where sums are f32. */
    void (*scale)(void *user, const struct gemm_epilogue_place *at, const ptx_u32 *sums,
                  ptx_f32 *v);
    /* Sets the first row and column of a tile. */
    void (*locate)(void *user, ptx_u32 tile, struct gemm_epilogue *o);
    void *user;

    ptx_u32 first_row, first_column;
    struct gemm_chunk chunk;
    bool rounds; /* sums are rounded in their registers (halves.h): there is nothing to add */
    struct gemm_halves halves;
};

void gemm_epilogue_begin(struct gemm_epilogue *o);
/* Ends the part of a tile that `w` has just walked through; `first` is the part's first stage. */
void gemm_epilogue_end(struct gemm_epilogue *o, const struct gemm_walk *w, ptx_u32 first);

#endif
