/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the two entries of marlin_repack share. */
#ifndef PTXGEN_KERNELS_MARLIN_REPACK_EMIT_H
#define PTXGEN_KERNELS_MARLIN_REPACK_EMIT_H

#include "../../gemm/emit.h"
#include "layout.h"

enum { WORD_BYTES = 4, TILES = MARLIN_STRIP / MARLIN_TILE };

/* Declares the parameters, and reads those that are used. */
void marlin_repack_params(ptx_kernel *k, const bool used[REPACK_PARAMS],
                          ptx_u64 addresses[REPACK_PARAMS]);
/* The entry "marlin_repack_codes" while it is emitted. */
struct repack {
    ptx_kernel *k;
    const ptxgen_marlin_repack_spec *spec;
    const struct repack_shape *shape;
    struct repack_grid grid;
    struct repack_columns columns;
    uint32_t pitch;               /* bytes from line to line in shared memory */
    uint32_t lines, line_bytes;   /* of the whole source */
    uint32_t chunk_bytes, chunks; /* of a line of the CTA */
    bool gated;
    ptx_u64 sources[2], order, codes;
    ptx_u32 staged;             /* shared address */
    ptx_u32 region_n, region_k; /* the CTA's place */
    ptx_u32 strip, tile;        /* the same where the CTA has a tile of columns */
    struct gemm_threads at;
};
/* Begins it: reads the parameters in use, and declares the shared memory for what is copied. */
void marlin_repack_begin(struct repack *q, ptx_module *module, uint32_t shared_bytes);
/* The entry where it packs whole tiles of 16 columns (codes_by_column.c). */
void marlin_repack_emit_columns(struct repack *q, ptx_module *module);

/* The rotation that moves nibble `row` of a word to place i; rotations count modulo 32. */
ptx_u32 marlin_repack_rotation(ptx_kernel *k, ptx_u32 row, unsigned i);
/* Sets nibble i of `word` to nibble i of `from` after its rotation. */
void marlin_repack_insert(ptx_kernel *k, ptx_u32 word, ptx_u32 from, ptx_u32 rotation, unsigned i);

/* The entry "marlin_repack_groups". */
void marlin_repack_emit_groups(const ptxgen_marlin_repack_plan *plan, ptx_module *module);

#endif
