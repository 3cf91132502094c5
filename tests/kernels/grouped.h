/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The smallest family with groups of rows (src/kernels/gemm/groups.h), for tests: in each group g,
 * y = x·w[g]ᵀ in f16, with cp.async and mma.sync (sm_80 and later). x [M, K] and y [M, N] are
 * sorted by group, w is [groups, N, K].
 */
#ifndef PTXGEN_TESTS_KERNELS_GROUPED_H
#define PTXGEN_TESTS_KERNELS_GROUPED_H

#include <ptxgen/ptx.h>

#include <stdbool.h>

enum {
    GROUPED_WARPS = 2, /* along N */
    GROUPED_THREADS = 32 * GROUPED_WARPS,
    GROUPED_TILE_M = 16,
    GROUPED_WARP_N = 16,
    GROUPED_TILE_N = GROUPED_WARPS * GROUPED_WARP_N,
    GROUPED_FLAGS = 1024, /* bytes at the start of the workspace: a flag of 4 bytes for each CTA */
};

struct grouped {
    uint32_t n, k; /* multiples of 8 */
    uint32_t groups;
    bool whole; /* tiles are never divided */
};

/* Tiles along N, and stages of each tile. */
uint32_t grouped_tiles_n(const struct grouped *s);
uint32_t grouped_stages(const struct grouped *s);
/* The workspace of so many CTAs: flags, which are 0 before and after a launch, and partial sums. */
size_t grouped_workspace_bytes(uint32_t ctas);
/* Emits the entry "grouped" with the parameters x, w, ends, y, workspace (u64) and m (u32). */
void grouped_emit(const struct grouped *s, ptx_module *module);

#endif
