/* SPDX-License-Identifier: Apache-2.0 */
/** The operands of sparse24's launches, as problems number them, and their weights. */
#ifndef PTXGEN_HARNESS_SPARSE24_H
#define PTXGEN_HARNESS_SPARSE24_H

#include "problem.h"

#include <ptxgen/sparse24.h>

enum {
    SPARSE24_AT_X,
    SPARSE24_AT_W, /**< packed, or where the spec is plain values and metadata */
    SPARSE24_AT_VALUES,
    SPARSE24_AT_METADATA,
    SPARSE24_AT_X_SCALE,
    SPARSE24_AT_W_SCALE,
    SPARSE24_AT_BIAS,
    SPARSE24_AT_RESIDUAL,
    SPARSE24_AT_Y,
    SPARSE24_OPERANDS
};

/** The weights before they are packed, metadata as bytes: a problem's `own`. */
struct sparse24_weights {
    ptxgen_span values, metadata;
};

/** Packs them into the problem's buffer, or copies them into its buffers. */
ptxgen_status sparse24_pack_weights(struct problem *p, ptxgen_error *err);

#endif
