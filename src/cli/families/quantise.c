/* SPDX-License-Identifier: Apache-2.0 */
/* The quantise family in the command: its options. */
#include "../options.h"

#include <ptxgen/quantise.h>

static const char *const type_names[] = {"f32", "f16", "bf16", NULL};
static const char *const producer_names[] = {"none", "rmsnorm", "silu-mul", NULL};

static void take_codes(struct argp_state *state, const char *text, struct family_options *o)
{
    ptxgen_quantise_spec *s = option_spec(o);
    s->codes = parse_codes(state, text, &s->q_min, &s->q_max);
}

static void take_epsilon(struct argp_state *state, const char *text, struct family_options *o)
{
    ((ptxgen_quantise_spec *)option_spec(o))->epsilon = parse_epsilon(state, "--epsilon", text);
}

static const ptxgen_quantise_spec defaults = {.x_type = PTXGEN_F16};

#define AT(member) offsetof(ptxgen_quantise_spec, member)
static const struct option_row spec_rows[] = {
    {"k", "K", "Elements of a token that are quantised", OPTION_NUMBER, AT(k),
     .rules = OPTION_IS_K},
    {"x-type", "TYPE", "Of x and the residual: f32, f16 (default), bf16", OPTION_CHOICE, AT(x_type),
     .choices = type_names},
    {"codes", "MIN,MAX|e4m3",
     "The range of s8 codes: magnitudes, as 128,127 (127,127); or codes are e4m3", OPTION_OTHER,
     .parse = take_codes},
    {"groups", NULL, "A scale for each 128 of K, instead of one for a token", OPTION_FLAG,
     AT(group), .value = PTXGEN_QUANTISE_GROUP},
    {"asymmetric", NULL, "With zero points", OPTION_FLAG, .at = AT(asymmetric)},
    {"producer", "NAME",
     "What makes the rows: none (default), rmsnorm, or silu-mul of x's gate and up", OPTION_CHOICE,
     AT(producer), .choices = producer_names},
    {"epsilon", "E", "Of rmsnorm, added to the mean square (1e-6)", OPTION_OTHER,
     .parse = take_epsilon},
    {"residual", NULL, "Of rmsnorm: add a residual first, and write the sum back", OPTION_FLAG,
     .at = AT(residual)},
    {"gamma-type", "TYPE", "Of rmsnorm's gamma: f32 (default), f16, bf16", OPTION_CHOICE,
     AT(gamma_type), .choices = type_names},
    {0},
};
#undef AT

static void finish(struct family_options *o)
{
    ptxgen_quantise_spec *s = option_spec(o);
    if (s->producer == PTXGEN_QUANTISE_RMSNORM && !option_given(o, "epsilon"))
        s->epsilon = 1e-6f;
}

const struct family quantise_family = {
    .name = "quantise",
    .summary = "Codes of 8 bits with scales, of x, an RMSNorm, or SiLU(gate) times up",
    .harness = &quantise_harness,
    .spec_rows = spec_rows,
    .finish = finish,
    .defaults = &defaults,
};
