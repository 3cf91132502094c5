/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Where a wgmma operand lies in shared memory (PTX ISA, "Shared Memory Matrix Layout" and
 * "Matrix Descriptor Format"), in atoms of 16 bytes.
 *
 * K-major: an atom is part of one row of A (column of B), index `major` along K. Without
 * swizzle eight rows of 16 bytes are a block, blocks are `leading` apart along K and `stride`
 * apart along M/N. With an S-byte swizzle rows are S bytes apart, `stride` every eight rows.
 * MN-major: an atom is part of one k, index `major` along M/N. Without swizzle eight k of 16
 * bytes are a block, blocks are `stride` apart along M/N and `leading` apart along K. With an
 * S-byte swizzle S bytes run along M/N, k rows are S bytes apart, blocks of eight k `stride`
 * apart, and the next S bytes along M/N `leading` apart.
 */
#ifndef PTXGEN_EMULATOR_TENSOR_DESCRIPTOR_H
#define PTXGEN_EMULATOR_TENSOR_DESCRIPTOR_H

#include "tensor_core.h"

/** Shared address of the atom `major` along the contiguous dimension in line `minor`. */
uint32_t emu_descriptor_atom(const emu_matrix_descriptor *descriptor, bool mn_major, unsigned minor,
                             unsigned major);

#endif
