/* SPDX-License-Identifier: Apache-2.0 */
#include "activation.h"

#include <math.h>

static double silu(double v)
{
    return v / (1 + exp(-v));
}

static double gelu(double v)
{
    return 0.5 * v * erfc(-v * 0.70710678118654752440);
}

/* (1 + tanh z)/2 = 1/(1 + e^(−2z)), which does not cancel where z is very negative. */
static double gelu_tanh(double v)
{
    return v / (1 + exp(-2 * 0.79788456080286535588 * (v + 0.044715 * v * v * v)));
}

static double relu(double v)
{
    return v < 0 ? 0 : v;
}

const struct activation *activation_named(ptxgen_activation name)
{
    static const struct activation activations[] = {
        [PTXGEN_ACTIVATION_SILU] = {silu, 1.1, -1.27846454},
        [PTXGEN_ACTIVATION_GELU] = {gelu, 1.13, -0.75179152},
        [PTXGEN_ACTIVATION_GELU_TANH] = {gelu_tanh, 1.13, -0.75246142},
        [PTXGEN_ACTIVATION_RELU] = {relu, 1, 0},
    };
    return &activations[name];
}
