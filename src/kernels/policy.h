/* SPDX-License-Identifier: Apache-2.0 */
/* Policies of the L2, for copies with a cache hint. */
#ifndef PTXGEN_KERNELS_POLICY_H
#define PTXGEN_KERNELS_POLICY_H

#include <ptxgen/instr.h>

/*
 * As createpolicy.fractional.L2::evict_first makes it for all bytes. For weights, which are read
 * once: they make room before what every CTA reads, activations, which stay.
 */
#define EVICT_FIRST ptx_imm_u64(0x12F0000000000000)

#endif
