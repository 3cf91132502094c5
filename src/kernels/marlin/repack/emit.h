/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the two entries of marlin_repack share. */
#ifndef PTXGEN_KERNELS_MARLIN_REPACK_EMIT_H
#define PTXGEN_KERNELS_MARLIN_REPACK_EMIT_H

#include "layout.h"

#include <ptxgen/ptx.h>

/* Declares the parameters, and reads those that are used. */
void marlin_repack_params(ptx_kernel *k, const bool used[REPACK_PARAMS],
                          ptx_u64 addresses[REPACK_PARAMS]);
/*
 * Emits the entry "marlin_repack_codes" that packs whole tiles of 16 columns (codes_by_column.c).
 */
void marlin_repack_emit_columns(const ptxgen_marlin_repack_plan *plan, ptx_module *module);

/* The rotation that moves nibble `row` of a word to place i; rotations count modulo 32. */
ptx_u32 marlin_repack_rotation(ptx_kernel *k, ptx_u32 row, unsigned i);
/* Sets nibble i of `word` to nibble i of `from` after its rotation. */
void marlin_repack_insert(ptx_kernel *k, ptx_u32 word, ptx_u32 from, ptx_u32 rotation, unsigned i);

/* The entry "marlin_repack_groups". */
void marlin_repack_emit_groups(const ptxgen_marlin_repack_plan *plan, ptx_module *module);

#endif
