/* SPDX-License-Identifier: Apache-2.0 */
/* Layout and sizes that the plan, the emitter and the launch of marlin_repack share. */
#ifndef PTXGEN_KERNELS_MARLIN_REPACK_LAYOUT_H
#define PTXGEN_KERNELS_MARLIN_REPACK_LAYOUT_H

#include "../layout.h"

#include <ptxgen/marlin_repack.h>

/* The parameters of both entries, in order, all addresses. */
enum marlin_repack_param {
    REPACK_WEIGHTS,
    REPACK_SCALES,
    REPACK_ZEROS, /* zero points of gate, or of the only matrix */
    REPACK_UP_WEIGHTS,
    REPACK_UP_SCALES,
    REPACK_UP_ZEROS, /* zero points of up */
    REPACK_ORDER,
    REPACK_TO_CODES,
    REPACK_TO_SCALES,
    REPACK_TO_ZEROS,
    REPACK_REFUSED,
    REPACK_PARAMS
};

enum {
    REPACK_CODES,
    REPACK_GROUPS, /* the entries, in the order of emission */
    REPACK_THREADS = 256,
    REPACK_PARTS = 4,       /* steps of strips that a CTA packs */
    REPACK_CTA_GROUPS = 32, /* groups of a strip that a CTA packs, with 8 threads for each */
};

/*
 * The copies of a format's weights into shared memory. A CTA copies `lines` pieces of `line_bytes`
 * bytes, which are `strips` × `steps` steps of strips, and leaves a gap of `gap` bytes after each
 * line, so that concurrent reads of lanes are in different banks. A line runs along N (8, 1 or 16
 * rows of K of four strips) or along K (a column of a strip, four steps long).
 */
struct repack_shape {
    uint32_t lines, line_bytes, gap;
    bool along_k;
    uint32_t rows_per_line; /* along N */
};
const struct repack_shape *marlin_repack_shape(const ptxgen_marlin_repack_spec *spec);

/* The spec of the product whose weights have the same layout. */
static inline ptxgen_marlin_spec marlin_repack_product(const ptxgen_marlin_repack_spec *s)
{
    return (ptxgen_marlin_spec){.k = s->k,
                                .n = s->n,
                                .group_size = s->group_size,
                                .type = s->type,
                                .zeros = s->zeros,
                                .act_order = s->act_order,
                                .epilogue = s->epilogue};
}

/*
 * A scale that is refused is reported as a number of 64 bits: the low half has the scale's bits in
 * f32, and the high half is UINT32_MAX less its index among gate's scales [groups, n] and then
 * up's. atomicMax keeps the largest number, which is that of the first scale. The function returns
 * the number of scales; if that exceeds UINT32_MAX, the index is not used.
 */
static inline uint64_t marlin_repack_scales(const ptxgen_marlin_repack_spec *s)
{
    const ptxgen_marlin_spec product = marlin_repack_product(s);
    uint64_t rows = s->group_size == PTXGEN_W4_PER_CHANNEL ? s->k : (uint32_t)s->group_size;
    return s->k / rows * s->n * (marlin_gated(&product) ? 2 : 1);
}
static inline bool marlin_repack_has_places(const ptxgen_marlin_repack_spec *s)
{
    return marlin_repack_scales(s) < UINT32_MAX;
}

/* Strips and steps that a CTA packs, and the number of CTAs along N and K. */
struct repack_grid {
    uint32_t strips, steps;
    uint32_t along_n, along_k;
    uint32_t group_blocks; /* CTAs of the entry marlin_repack_groups for a strip */
};
struct repack_grid marlin_repack_grid(const ptxgen_marlin_repack_spec *spec);

/*
 * The geometry of codes_by_column.c: a CTA packs a tile of 16 columns, all of which it holds in
 * shared memory. It is used for layouts along K with act_order, if the columns fit.
 */
struct repack_columns {
    bool used;
    uint32_t pitch, bytes, ctas;
};
struct repack_columns marlin_repack_columns(const ptxgen_marlin_repack_plan *plan);

/* Whether ptxgen_marlin_repack_make_plan has filled the plan. */
bool marlin_repack_is_plan(const void *plan);

#endif
