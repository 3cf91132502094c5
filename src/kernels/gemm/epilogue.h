/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The epilogue of every family: what a CTA does when it has multiplied its part of a tile.
 *
 *     a part without the tile's last stage     accumulators ─▶ workspace, publish flag (fixup.h)
 *     a part with the last stage
 *       fix-up          accumulators += those of the CTAs with earlier parts
 *       for each pass   accumulators ─▶ staging in shared memory (sums.h), perhaps rounded
 *                       barrier
 *         for each chunk of a row of y:
 *                       sums of the warps along K and of the CTAs of a cluster, SwiGLU's pairs,
 *                       scale, + bias, activation, + residual, round ─▶ y (chunk.h)
 *                       barrier
 *
 * y = f(scale·sums + bias) + residual, or with SwiGLU silu(gate + bias)·(up + up_bias) + residual.
 * Rows of y may have any length, and start at any multiple of an element. A family supplies where
 * its tiles are, its accumulators, and the arithmetic of its scales.
 */
#ifndef PTXGEN_KERNELS_GEMM_EPILOGUE_H
#define PTXGEN_KERNELS_GEMM_EPILOGUE_H

#include "chunk.h"
#include "entry.h"
#include "exchange.h"
#include "fixup.h"

#include <ptxgen/types.h>

/* A chunk of y, with its row and column in y. */
struct gemm_epilogue_place {
    struct gemm_chunk chunk;
    ptx_u32 row, column;
    ptx_u64 wide_row, column_bytes; /* the row, and the bytes from a row's start to the chunk */
    bool up;                        /* SwiGLU: the sums of the chunk are those of up */
};

struct gemm_epilogue {
    /* Set by the caller. */
    struct gemm *g;
    const struct gemm_threads *at; /* of the team that ends a part together */

    /* y, and what is added to it. Strides are in elements. */
    ptxgen_element type; /* of y, bias and residual */
    uint32_t n;          /* features */
    ptx_u64 y, y_stride, bias, up_bias, residual, residual_stride;
    bool has_bias, has_residual;
    ptxgen_activation activation;
    uint32_t pairs; /* SwiGLU: `pairs` columns of gate stand before as many of up; 0: no SwiGLU */
    ptxgen_activation gate; /* of pairs, in place of SwiGLU's SiLU; 0: that */

    /* The accumulators, and how they are staged. */
    gemm_sums_register *acc;
    struct gemm_sums sums;  /* all that its caller sets, but for `width` and `rank` */
    ptx_u32 along, along_k; /* index of the warp along the columns, and along K */
    bool only;              /* the CTA never has a second tile, so nothing else is staged */
    bool has_stmatrix;      /* the target has stmatrix; read only where warps are alone */
    bool rounds_biased;     /* a bias may be added to accumulators that are then rounded */
    uint32_t most_width;    /* columns of a chunk, at most; 0: any number */
    bool has_any_tiles;     /* tiles begin at any column, and end where `locate` says */

    /* Sums of other CTAs. */
    struct gemm_partials partials; /* threads and fragments; none where tiles are never divided */
    ptx_u64 first_partials;        /* address of those of CTA 0 */
    ptx_u64 flags;                 /* address of the CTAs' publish flags (fixup.h) */
    const struct gemm_bulk_fixup *bulk_fixup; /* NULL: the fix-up does not go through a ring */
    const struct gemm_exchange *exchange;     /* sent already, to be received; or NULL */

    /* What only the family knows. */
    void *user; /* for the functions, and for `acc` */
    /*
     * Sets the first row and column of a tile in y. Its ends, end_row and end_column, are those of
     * y where `locate` does not set them, too; the first row is end_row at most.
     */
    void (*locate)(void *user, ptx_u32 tile, struct gemm_epilogue *o);
    bool locates_early; /* the caller calls gemm_epilogue_locate when the part of a tile begins */
    /*
     * With locates_early: loads what the thread's columns need, the same in all chunks of a tile,
     * and where the thread has one chunk alone (`single`) what its row needs; or NULL. The chunk
     * may be past the tile's ends, and then has no elements left.
     */
    void (*load_ahead)(void *user, const struct gemm_epilogue_place *at);
    /* Scales the accumulators of a part once they hold what `exchange` brings; or NULL. */
    void (*scale_accumulators)(void *user);
    /* Converts a chunk's sums to f32 and scales them; NULL where sums are f32. */
    void (*scale)(void *user, const struct gemm_epilogue_place *at, const ptx_u32 *sums,
                  ptx_f32 *v);
    /* The bits of addresses of arrays with 32 bits for each column, which `scale` reads. */
    ptx_u64 scale_places;
    bool has_scale_places;
    /* Finishes and stores a chunk in place of `scale` and of all that follows it; or NULL. */
    void (*finish)(void *user, const struct gemm_epilogue_place *at, const ptx_u32 *sums);

    ptx_u32 first_row, end_row, first_column, end_column; /* of the tile in y */
    ptx_u32 rows;                                         /* of y, from the tile's first on */
    ptx_u32 pass_row; /* first row of the pass in the tile; with sums.wm, of a warp's rows */
    struct gemm_chunk chunk;
    bool single;                    /* a thread has one chunk of a tile, or none */
    ptx_u32 own_column;             /* with load_ahead: the thread's first column in a tile, */
    struct gemm_epilogue_place own; /* and its first chunk of the present tile */
    bool rounds;                    /* accumulators are rounded before they are staged (sums.h) */
    struct gemm_halves halves;
};

void gemm_epilogue_begin(struct gemm_epilogue *o);
/* With `locates_early`: finds the place of the tile whose part begins. */
void gemm_epilogue_locate(struct gemm_epilogue *o, ptx_u32 tile);
/*
 * Ends a part of a tile. The CTAs of a cluster that have sums of the same tile (sums.ctas) have all
 * of the tile's sums between them, and read each other's shared memory.
 */
void gemm_epilogue(struct gemm *g, struct gemm_part *part);
/*
 * Applies an activation to an f32; the result differs from the exact one by less than 2⁻²⁰·|v|.
 */
ptx_f32 gemm_activate(ptx_kernel *k, ptxgen_activation activation, ptx_f32 v);
/* After the last tile: waits until no other CTA reads the sums of this CTA. */
void gemm_epilogue_leave(struct gemm *g);

#endif
