/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The tile of a matrix product y = x·wᵀ: what one entry of a module computes at a time, and how a
 * CTA divides that among its warps. The variants of the plans of dense, marlin, sparse24 and w8a8
 * are tiles; a family's header says which members its tiles use and what they may be. The others
 * are 0, and a tile of the caller's choice in which they are not, or in which one is above 1024, is
 * refused.
 *
 *                     N: tile_n features
 *                   ┌─────────┬─────────┐
 *     M:            │ warp_m  │         │   A CTA has wm × wn × wk warps along M, N and K. Those
 *     tile_m tokens │ × warp_n│         │   along K multiply different K for the same outputs,
 *                   ├─────────┼─────────┤   and their sums are added.
 *                   │         │         │
 *                   └─────────┴─────────┘
 *
 * Tiles are plain values: zero them, fill them, copy and compare them with memcmp.
 */
#ifndef PTXGEN_TILE_H
#define PTXGEN_TILE_H

#include <ptxgen/status.h>

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How a tile is multiplied, and how its operands get into shared memory. */
typedef enum ptxgen_tile_kind {
    PTXGEN_MMA = 0,   /**< mma.sync or mma.sp, operands copied by cp.async: every target */
    PTXGEN_WGMMA = 1, /**< wgmma or wgmma.sp, operands copied in bulk: sm_90a. Four warps along M
                       *   or N are a warpgroup, and more warps of the CTA issue the copies. */
    PTXGEN_BULK = 2,  /**< mma.sync, operands copied in bulk: sm_90 or sm_90a */
} ptxgen_tile_kind;

typedef struct ptxgen_tile {
    uint32_t kind;           /**< ptxgen_tile_kind */
    uint32_t tile_m, tile_n; /**< tokens and features of a CTA's tile */
    uint32_t warp_m, warp_n; /**< tokens and features of a warp */
    uint32_t wm, wn, wk;     /**< warps along M, N and K */
    uint32_t stages;         /**< slots of the pipeline or ring of copies */
    uint32_t steps;          /**< steps of 64 along K of a warp in a stage */
    uint32_t ctas;           /**< CTAs of a multiprocessor */
    uint32_t pass_m;         /**< tokens whose sums the epilogue stages at once */
    uint32_t cluster;        /**< CTAs of a cluster; 1: none */
    uint32_t split;          /**< CTAs of a cluster that divide K, where `cluster` do not; 1 */
    uint32_t blocks_n;       /**< tiles along N */
    uint32_t fused;          /**< 1: activations are quantised by the CTA itself */
    uint32_t shared_bytes;   /**< shared memory of one CTA */
    uint32_t dynamic_shared_bytes; /**< shared_bytes if these are above 48 KB, else 0 */
} ptxgen_tile;

/** The member of this name, as "tile_m"; NULL where there is none. */
PTXGEN_API uint32_t *ptxgen_tile_member(ptxgen_tile *tile, const char *name);

#ifdef __cplusplus
}
#endif
#endif
