/* SPDX-License-Identifier: Apache-2.0 */
/* What follows from a tile or a target alone, whatever the family. */
#ifndef PTXGEN_KERNELS_GEMM_TILE_H
#define PTXGEN_KERNELS_GEMM_TILE_H

#include <ptxgen/target.h>
#include <ptxgen/tile.h>

#include <stdbool.h>

enum { GEMM_WARPGROUP_WARPS = 4 };

static inline bool gemm_is_wgmma(const ptxgen_tile *v)
{
    return v->kind == PTXGEN_WGMMA;
}
/* Whether operands are copied in bulk, into a ring. */
static inline bool gemm_is_bulk(const ptxgen_tile *v)
{
    return v->kind != PTXGEN_MMA;
}
/* How the tile is multiplied, for people. */
static inline const char *gemm_name_kind(const ptxgen_tile *v)
{
    static const char *const names[] = {[PTXGEN_MMA] = "mma.sync",
                                        [PTXGEN_WGMMA] = "wgmma",
                                        [PTXGEN_BULK] = "mma.sync with copies in bulk"};
    return names[v->kind];
}
/* Names of entries, which end with their tokens, and the place of a tile's name among them. */
#define GEMM_NAMES(prefix)                                                                         \
    {                                                                                              \
        prefix "8", prefix "16", prefix "32", prefix "64", prefix "128", prefix "256"              \
    }
enum { GEMM_WIDTHS = 6 };
static inline uint32_t gemm_width(const ptxgen_tile *v)
{
    uint32_t i = 0;
    while (i + 1 < GEMM_WIDTHS && 8u << i < v->tile_m)
        i++;
    return i;
}
/* Threads of a CTA that multiply. */
static inline uint32_t gemm_tile_threads(const ptxgen_tile *v)
{
    return 32 * v->wm * v->wn * v->wk;
}
/* Threads of a CTA: those that multiply, and with wgmma a producer warpgroup. */
static inline uint32_t gemm_cta_threads(const ptxgen_tile *v)
{
    return gemm_tile_threads(v) + (gemm_is_wgmma(v) ? 32 * GEMM_WARPGROUP_WARPS : 0);
}
static inline bool gemm_has_wgmma(const ptxgen_target *target)
{
    return target->ptx.sm == 90 && target->ptx.suffix == 'a';
}
/* Whether entries may begin before the kernel ahead has ended; they wait by griddepcontrol.wait. */
static inline bool gemm_overlaps(const ptxgen_target *target)
{
    return target->ptx.sm >= 90;
}

#endif
