/* SPDX-License-Identifier: Apache-2.0 */
/** mma with f64 elements: for each output a chain of fused multiply-adds in ascending K. */
#ifndef PTXGEN_EMULATOR_TENSOR_DOUBLE_H
#define PTXGEN_EMULATOR_TENSOR_DOUBLE_H

#include "tensor_core.h"

/** m8n8k4 and m16n8k4/8/16; rows of 64-bit registers, low words first. */
void emu_double_mma(const emu_mma_op *op, emu_lanes *d, const emu_lanes *a, const emu_lanes *b,
                    const emu_lanes *c);

#endif
