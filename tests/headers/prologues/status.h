/* SPDX-License-Identifier: Apache-2.0 */
#include <ptxgen/rmsnorm_q4k.h>
#include <stdio.h>

extern const ptxgen_rmsnorm_q4k_spec spec;
extern const ptxgen_target target;
extern ptxgen_rmsnorm_q4k_plan plan;
