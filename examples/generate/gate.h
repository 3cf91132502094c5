/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel of the example's own, for many tokens: y = f(gate) · up, element by element, f silu or
 * gelu_tanh. y may be gate or up itself.
 */
#ifndef GENERATE_GATE_H
#define GENERATE_GATE_H

#include <ptxgen/dispatch.h>
#include <ptxgen/types.h>

struct gate_spec {
    uint8_t type; /* ptxgen_element */
    uint8_t is_gelu;
    uint8_t reserved[2];
};

/* Device addresses, multiples of 16. */
struct gate_args {
    uint64_t count; /* elements, a multiple of 8, below 2³⁴ */
    uint64_t gate, up, y;
};

const ptxgen_family *gate_family(void);
ptxgen_status gate_launch(const ptxgen_loaded *loaded, const struct gate_args *args,
                          ptxgen_cu_stream stream, ptxgen_error *err);

#endif
