/* SPDX-License-Identifier: Apache-2.0 */
/** The operands of marlin's launches, as problems number them, and their packed weights. */
#ifndef PTXGEN_HARNESS_MARLIN_H
#define PTXGEN_HARNESS_MARLIN_H

#include "problem.h"

#include <ptxgen/marlin.h>

enum {
    MARLIN_AT_X,
    MARLIN_AT_CODES,
    MARLIN_AT_SCALES,
    MARLIN_AT_ZEROS,
    MARLIN_AT_ORDER,
    MARLIN_AT_BIAS,
    MARLIN_AT_UP_BIAS,
    MARLIN_AT_RESIDUAL,
    MARLIN_AT_Y,
    MARLIN_OPERANDS
};

/** 2 with SwiGLU. */
unsigned marlin_matrices(const ptxgen_marlin_spec *spec);
/** The weights that a product of the spec has. */
ptxgen_w4_info marlin_info(const ptxgen_marlin_spec *spec);

/** Memory for weights in the neutral form; what was allocated is freed after an error too. */
ptxgen_status marlin_allocate_matrix(const ptxgen_w4_info *info, ptxgen_w4_matrix *matrix,
                                     ptxgen_error *err);
void marlin_free_matrix(ptxgen_w4_matrix *matrix);

/** A checkpoint's tensors in this order: weights, scales, zeros, g_idx, shape. */
enum { MARLIN_TENSORS = 5 };
void marlin_list_tensors(ptxgen_w4_checkpoint *checkpoint, ptxgen_w4_tensor *to[MARLIN_TENSORS]);
/** A checkpoint of the weights, or those of gate and up, with memory for their tensors. */
struct marlin_weights {
    ptxgen_w4_checkpoint checkpoints[2];
    unsigned count;
    void *memory[2][MARLIN_TENSORS]; /**< that the tensors own */
};

/** Random weights of the spec, in a format that holds them. */
ptxgen_status marlin_random_weights(const ptxgen_marlin_spec *spec, ptxgen_w4_format format,
                                    struct random *r, struct marlin_weights *weights,
                                    ptxgen_error *err);
void marlin_release_weights(struct marlin_weights *weights);

/** Packs the checkpoint of the weights, or those of gate and up, into the problem's buffers. */
ptxgen_status marlin_pack_weights(struct problem *p, const ptxgen_w4_checkpoint *weights,
                                  const ptxgen_w4_checkpoint *up, ptxgen_error *err);
/** Copies packed weights, whose arrays may start at any address, there. */
ptxgen_status marlin_copy_weights(struct problem *p, const ptxgen_marlin_packed *from,
                                  ptxgen_error *err);

/** The weights, or gate and up, for the reference: the problem's `own`. */
struct marlin_matrices {
    ptxgen_w4_matrix of[2];
};

#endif
