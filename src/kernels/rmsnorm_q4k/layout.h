/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes that the plan and the emitter of rmsnorm_q4k share. */
#ifndef PTXGEN_RMSNORM_Q4K_LAYOUT_H
#define PTXGEN_RMSNORM_Q4K_LAYOUT_H

#include <ptxgen/rmsnorm_q4k.h>

enum {
    SUPER_BLOCK = 256,       /* weights */
    SUPER_BLOCK_BYTES = 144, /* f16 d, f16 dmin, 12 bytes of scales, 128 of nibbles */
    TILE_ROWS = 16,
    ROW_PIECES = SUPER_BLOCK_BYTES / 16,
    LANE_PIECES = (TILE_ROWS * ROW_PIECES + 31) / 32, /* copies of a lane for a super-block */
    RING_ROW_BYTES = 160,    /* a row's 144 bytes, padded for the banks */
    STAGE_BYTES = TILE_ROWS * RING_ROW_BYTES
};

/*
 * One super-block of prepared activations in shared memory, for `tokens` tokens:
 *   B     8 sub-blocks × tokens × {hi, lo} × 4 lanes × 16 bytes: B fragments of mma.m16n8k16
 *   Bmin  tokens × {hi, lo} × 4 lanes × 4 bytes: the sub-blocks' sums, B of mma.m16n8k8
 *   scale tokens × f32: 2^e, the power of two by which the super-block's activations were divided
 */
static inline uint32_t record_bmin(uint32_t tokens)
{
    return tokens * 1024;
}
static inline uint32_t record_scale(uint32_t tokens)
{
    return record_bmin(tokens) + tokens * 32;
}
static inline uint32_t record_bytes(uint32_t tokens)
{
    return record_scale(tokens) + (tokens * 4 + 15) / 16 * 16;
}

static inline uint32_t super_blocks(const ptxgen_rmsnorm_q4k_spec *spec)
{
    return spec->k / SUPER_BLOCK;
}

/* Super-blocks that one warp works on for a tile, at most. */
static inline uint32_t turns(const ptxgen_rmsnorm_q4k_spec *spec, uint32_t wk)
{
    return (super_blocks(spec) + wk - 1) / wk;
}

/* Rows of one matrix that a tile covers: SwiGLU puts 8 rows of gate beside 8 of up. */
static inline uint32_t matrix_tile_rows(const ptxgen_rmsnorm_q4k_spec *spec)
{
    return spec->epilogue == PTXGEN_EPILOGUE_SWIGLU ? TILE_ROWS / 2 : TILE_ROWS;
}

/* Matrices that have tiles of their own: up rides along with gate. */
static inline uint32_t tiled_matrices(const ptxgen_rmsnorm_q4k_spec *spec)
{
    if (spec->epilogue == PTXGEN_EPILOGUE_SWIGLU)
        return 1;
    return spec->n[2] ? 3 : spec->n[1] ? 2 : 1;
}

static inline uint32_t matrix_tiles(const ptxgen_rmsnorm_q4k_spec *spec, uint32_t matrix)
{
    uint32_t rows = matrix_tile_rows(spec);
    return (uint32_t)(((uint64_t)spec->n[matrix] + rows - 1) / rows);
}

#endif
