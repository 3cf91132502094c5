/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The epilogue of a tile: y = f(sums + bias) + residual, rounded to y's type and stored. Threads
 * work on chunks of a row of y (chunk.h). Rows may have any length, and start at any multiple of an
 * element.
 *
 *     accumulators ─▶ staging in shared memory (sums.h, halves.h) ─▶ chunk: scale, + bias,
 *                     activation, + residual, round ─▶ y
 */
#ifndef PTXGEN_KERNELS_TILE_OUTPUT_H
#define PTXGEN_KERNELS_TILE_OUTPUT_H

#include "activation.h"
#include "chunk.h"
#include "part.h"

/* A chunk of y, with its row and column in y. */
struct tile_output_place {
    struct tile_chunk chunk;
    ptx_u32 row, column;
};

struct tile_output {
    /* Set by the caller. */
    ptx_kernel *k;
    const struct tile_threads *at;
    const struct tile_division *division;
    ptxgen_element type; /* of y, bias and residual */
    ptxgen_activation activation;
    bool has_bias, has_residual;
    ptx_u32 m;                                            /* tokens */
    uint32_t n;                                           /* features */
    ptx_u64 y, y_stride, bias, residual, residual_stride; /* addresses, strides in elements */
    ptx_u64 flags;                 /* address of the CTAs' flags (stream_k.h) */
    struct tile_sums sums;         /* all that its caller sets, but for `width` */
    struct tile_partials partials; /* begun; no fragments where tiles are never divided */
    ptx_u32 along, along_k;        /* index of the warp along the columns, and along K */
    bool only;                     /* the CTA never has a second tile */
    bool has_stmatrix;             /* the target has stmatrix; read only where warps are alone */
    uint32_t most_width;           /* columns of a chunk, at most */
    tile_sums_register *acc;
    /* Converts a chunk's s32 sums to f32 and scales them; NULL where sums are f32. */
    void (*scale)(void *user, const struct tile_output_place *at, const ptx_u32 *sums, ptx_f32 *v);
    /* Sets the first row and column of a tile. */
    void (*locate)(void *user, ptx_u32 tile, struct tile_output *o);
    void *user;

    ptx_u32 first_row, first_column;
    struct tile_chunk chunk;
    bool rounds; /* sums are rounded in their registers (halves.h): there is nothing to add */
    struct tile_halves halves;
};

void tile_output_begin(struct tile_output *o);
/* Ends the part of a tile that `w` has just walked through; `first` is the part's first stage. */
void tile_output_end(struct tile_output *o, const struct tile_walk *w, ptx_u32 first);

#endif
