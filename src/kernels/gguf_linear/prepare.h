/* SPDX-License-Identifier: Apache-2.0 */
/* What prepare.c, which makes h, and records.c, which makes records of it, share. */
#ifndef PTXGEN_GGUF_LINEAR_PREPARE_H
#define PTXGEN_GGUF_LINEAR_PREPARE_H

#include "emit.h"

struct preparer {
    ptx_kernel *k;
    const ptxgen_gguf_linear_plan *plan;
    const ptxgen_gguf_linear_spec *spec;
    const ptxgen_gguf_linear_variant *v; /* NULL: rows of row_type are made, not records */
    ptxgen_element row_type;
    const struct direct_type *order; /* of a row's values (direct.h); NULL: their own */
    uint32_t warps, ctas;            /* of a CTA, of a token */
    ptx_u32 tid, lane, warp;
    ptx_u32 column, token; /* its place among tile_m, and the token that stands there */
    ptx_u32 first_unit;    /* the warp's */
    ptx_pred stores_g;     /* where g is stored: the place has a token of its own */
    ptx_u32 cta;           /* of a product that makes h, whose CTAs each store units of g */
    struct h_inputs in;
    ptx_u64 x, residual, residual_out; /* the token's rows */
    ptx_u64 records, counters;         /* in the workspace */
    bool is_shared;                    /* records are in shared memory: */
    ptx_u32 shared_records;
    ptx_pred x_vectors, residual_vectors, gamma_vectors;
    ptx_f32 post_inverse, inverse; /* 1 / rms of x and of g */
};

/* ---- records.c ---- */

/* Makes the record of a unit's h, of which each lane has 8 consecutive values. */
void gguf_linear_store_record(struct preparer *p, ptx_u32 unit, const ptx_f32 h[LANE_VALUES]);

#endif
