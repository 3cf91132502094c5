/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of a tile's sums: Y = f(sums + bias) + residual, rounded to Y's type and stored, a
 * chunk of a row a thread. Rows of any length, at any multiple of an element.
 */
#ifndef PTXGEN_KERNELS_TILE_OUTPUT_H
#define PTXGEN_KERNELS_TILE_OUTPUT_H

#include "activation.h"
#include "chunk.h"
#include "part.h"

/* Where a chunk of Y stands. */
struct tile_output_place {
    struct tile_chunk chunk;
    ptx_u32 row, column;
};

struct tile_output {
    /* Set by the caller. */
    ptx_kernel *k;
    const struct tile_threads *at;
    const struct tile_division *division;
    ptxgen_element type; /* of Y, bias and residual */
    ptxgen_activation activation;
    bool has_bias, has_residual;
    uint32_t m; /* columns of Y */
    ptx_u32 n;  /* rows */
    ptx_u64 y, y_stride, bias, residual, residual_stride; /* addresses, strides in elements */
    ptx_u64 flags;             /* of the CTAs */
    struct tile_sums sums;     /* but for its width */
    struct tile_partials partials; /* begun; of no fragments: tiles are whole */
    ptx_u32 along, along_k; /* the warp's place among those of other columns, and along K */
    bool only;              /* tile of the CTA */
    bool has_stmatrix;      /* for warps that are alone */
    uint32_t most_width;    /* columns of a chunk */
    tile_sums_register *acc;
    /* Makes f32 of a chunk's s32 sums, in all its columns; NULL: they are f32. */
    void (*scale)(void *user, const struct tile_output_place *at, const ptx_u32 *sums, ptx_f32 *v);
    /* Sets the first row and column of a tile. */
    void (*locate)(void *user, ptx_u32 tile, struct tile_output *o);
    void *user;

    ptx_u32 first_row, first_column;
    struct tile_chunk chunk;
    bool rounds; /* sums in their registers: wgmma's, to which nothing more is done */
    struct tile_halves halves;
};

void tile_output_begin(struct tile_output *o);
/* Ends the part of a tile that `w` has just walked through, from stage `first` on. */
void tile_output_end(struct tile_output *o, const struct tile_walk *w, ptx_u32 first);

#endif
