/* SPDX-License-Identifier: Apache-2.0 */
/* L2 cache policies, for copies with a cache hint. */
#ifndef PTXGEN_KERNELS_POLICY_H
#define PTXGEN_KERNELS_POLICY_H

#include <ptxgen/instr.h>

/*
 * The policy that createpolicy.fractional.L2::evict_first makes for all bytes. It is for weights,
 * which are read once, so that activations, which every CTA reads, stay in the L2.
 */
#define EVICT_FIRST ptx_imm_u64(0x12F0000000000000)

#endif
