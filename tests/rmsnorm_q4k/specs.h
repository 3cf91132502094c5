/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_RMSNORM_Q4K_SPECS_H
#define TESTS_RMSNORM_Q4K_SPECS_H

#include "tests/status.h"

#include <ptxgen/rmsnorm_q4k.h>

static inline ptxgen_rmsnorm_q4k_spec plain_spec(uint32_t k, uint32_t n)
{
    ptxgen_rmsnorm_q4k_spec spec;
    memset(&spec, 0, sizeof spec);
    spec.k = k;
    spec.n[0] = n;
    spec.epsilon = 1e-6f;
    spec.x_type = spec.y_type = PTXGEN_F16;
    return spec;
}

/* xorshift; problems that cover every option, small and large. */
static inline uint32_t draw(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (uint32_t)(*state >> 20);
}

static inline ptxgen_rmsnorm_q4k_spec random_spec(uint64_t *state)
{
    ptxgen_rmsnorm_q4k_spec spec = plain_spec(256 * (1 + draw(state) % 60), 1 + draw(state) % 40000);
    spec.x_type = (uint8_t)(draw(state) % 3);
    spec.y_type = (uint8_t)(draw(state) % 3);
    spec.max_m = draw(state) % 9;
    spec.bias = (uint8_t)(draw(state) % 2);
    spec.residual = (uint8_t)(draw(state) % 2);
    spec.residual_out = spec.residual && draw(state) % 2;
    if (draw(state) % 4 == 0) {
        spec.epilogue = PTXGEN_EPILOGUE_SWIGLU;
        spec.n[1] = spec.n[0];
    } else if (draw(state) % 3 == 0) {
        spec.n[1] = 1 + draw(state) % 5000;
        spec.n[2] = draw(state) % 2 ? 1 + draw(state) % 5000 : 0;
    }
    return spec;
}

static const char *const target_names[] = {"sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"};
enum { TARGETS = sizeof target_names / sizeof *target_names };

#endif
