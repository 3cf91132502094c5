/* SPDX-License-Identifier: Apache-2.0 */
/* What the plan, the emitter and the launch of marlin_repack share. */
#ifndef PTXGEN_KERNELS_MARLIN_REPACK_LAYOUT_H
#define PTXGEN_KERNELS_MARLIN_REPACK_LAYOUT_H

#include "../layout.h"

#include <ptxgen/marlin_repack.h>

/* The parameters of both entries, in order, all addresses. */
enum marlin_repack_param {
    REPACK_WEIGHTS,
    REPACK_SCALES,
    REPACK_ZEROS, /* of gate, or of all, … */
    REPACK_UP_WEIGHTS,
    REPACK_UP_SCALES,
    REPACK_UP_ZEROS, /* … and of up */
    REPACK_ORDER,
    REPACK_TO_CODES,
    REPACK_TO_SCALES,
    REPACK_TO_ZEROS,
    REPACK_REFUSED,
    REPACK_PARAMS
};

enum {
    REPACK_CODES,
    REPACK_GROUPS, /* the entries as they are emitted */
    REPACK_THREADS = 256,
    REPACK_PARTS = 4,       /* steps of strips that a CTA packs */
    REPACK_CTA_GROUPS = 32, /* of a strip, that a CTA packs: 8 threads each */
};

/*
 * How a format's weights come into shared memory: a CTA copies `lines` pieces of `line_bytes`, the
 * weights of `strips` × `steps` steps of strips, and leaves `gap` bytes after each, which spreads
 * what lanes read at once over the banks. Lines run along N (a line is 8, 1 or 16 rows of four
 * strips) or along K (a line is a column of a strip, four steps long).
 */
struct repack_shape {
    uint32_t lines, line_bytes, gap;
    bool along_k;
    uint32_t rows_per_line; /* along N */
};
const struct repack_shape *marlin_repack_shape(const ptxgen_marlin_repack_spec *spec);

/* The product's spec that has the same layout. */
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
 * A scale that is refused, as a number: its bits in f32 low, and high what grows the earlier it
 * stands, UINT32_MAX less its index among gate's [groups, n] and then up's. The greatest stays.
 * Where there are more than so many the index is that of none.
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

/* Strips and steps that a CTA packs, and how many CTAs that takes along N and K. */
struct repack_grid {
    uint32_t strips, steps;
    uint32_t along_n, along_k;
    uint32_t group_blocks; /* CTAs of marlin_repack_groups for a strip */
};
struct repack_grid marlin_repack_grid(const ptxgen_marlin_repack_spec *spec);

/*
 * Where rows of a layout along K are in any order a CTA packs a tile of 16 columns, which it has in
 * shared memory from end to end, if they fit: bytes from a column to the next, of all, and CTAs.
 */
struct repack_columns {
    bool used;
    uint32_t pitch, bytes, ctas;
};
struct repack_columns marlin_repack_columns(const ptxgen_marlin_repack_plan *plan);

/* Whether it is a plan that ptxgen_marlin_repack_make_plan filled. */
bool marlin_repack_is_plan(const ptxgen_marlin_repack_plan *plan);

#endif
