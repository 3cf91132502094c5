/* SPDX-License-Identifier: Apache-2.0 */
/**
 * mma.m8n8k4 with f16 elements: four products at once, each in lanes 4q…4q+3 and 16+4q…19+4q
 * (PTX ISA, "Matrix Fragments for mma.m8n8k4 with .f16 floating point type").
 */
#ifndef PTXGEN_EMULATOR_TENSOR_MMA_QUAD_H
#define PTXGEN_EMULATOR_TENSOR_MMA_QUAD_H

#include "tensor_core.h"

void emu_mma_quad(const emu_mma_op *op, emu_numerics numerics, emu_lanes *d, const emu_lanes *a,
                  const emu_lanes *b, const emu_lanes *c);

#endif
