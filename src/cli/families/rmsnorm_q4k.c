/* SPDX-License-Identifier: Apache-2.0 */
/* The rmsnorm_q4k family in the command: its options. */
#include "../options.h"
#include "files.h"

#include <ptxgen/rmsnorm_q4k.h>

#include <string.h>

static const char *const type_names[] = {"f32", "f16", "bf16", NULL};

static void parse_n(struct argp_state *state, const char *text, struct family_options *o)
{
    ptxgen_rmsnorm_q4k_spec *s = option_spec(o);
    memset(s->n, 0, sizeof s->n);
    parse_numbers(state, "--n", text, 1, UINT32_MAX, s->n, PTXGEN_RMSNORM_Q4K_MATRICES);
}

static void take_epsilon(struct argp_state *state, const char *text, struct family_options *o)
{
    ((ptxgen_rmsnorm_q4k_spec *)option_spec(o))->epsilon = parse_epsilon(state, "--epsilon", text);
}

static void take_residual_out(struct argp_state *state, const char *text, struct family_options *o)
{
    ptxgen_rmsnorm_q4k_spec *s = option_spec(o);
    (void)state, (void)text;
    s->residual = s->residual_out = 1;
}

static const ptxgen_rmsnorm_q4k_spec defaults = {
    .epsilon = 1e-6f, .x_type = PTXGEN_F16, .y_type = PTXGEN_F16};

#define AT(member) offsetof(ptxgen_rmsnorm_q4k_spec, member)
static const struct option_row spec_rows[] = {
    {"k", "K", "Input features: a multiple of 256", OPTION_NUMBER, AT(k),
     .rules = OPTION_IS_K | OPTION_OF_FILE},
    {"n", "N[,N[,N]]", "Output features; several matrices that share x go into one launch",
     OPTION_OTHER, AT(n), .parse = parse_n, .rules = OPTION_IS_N | OPTION_OF_FILE},
    {"epsilon", "E", "Added to the mean square, at least 0 (1e-6, or what the file says)",
     OPTION_OTHER, .parse = take_epsilon},
    {"x-type", "TYPE", "Activations: f32, f16 (default), bf16", OPTION_CHOICE, AT(x_type),
     .choices = type_names},
    {"y-type", "TYPE", "Outputs: f32, f16 (default), bf16", OPTION_CHOICE, AT(y_type),
     .choices = type_names},
    {"residual", NULL, "Add a residual to x first", OPTION_FLAG, .at = AT(residual)},
    {"residual-out", NULL, "Write that sum out too", OPTION_OTHER, .parse = take_residual_out},
    {"bias", NULL, "Add a bias to y", OPTION_FLAG, .at = AT(bias)},
    {"swiglu", NULL, "y = silu(gate) * up, over two matrices of equal N", OPTION_FLAG, AT(epilogue),
     .value = PTXGEN_EPILOGUE_SWIGLU},
    {"max-m", "M", "The most tokens that will be launched, 1 to 8 (8)", OPTION_NUMBER, AT(max_m),
     .rules = OPTION_MOST_M},
    {0},
};
#undef AT

static const struct option_row data_rows[] = {
    {"gguf", "FILE", "Take weights from this GGUF file; of one in parts, any part or the folder",
     OPTION_NAME, .at = NAME_AT(file)},
    {"tensor", "NAME[,NAME...]", "The Q4_K matrices", OPTION_NAME, NAME_AT(tensors),
     .rules = OPTION_IN_FILE},
    {"norm", "NAME", "The norm's weight, gamma", OPTION_NAME, NAME_AT(norm),
     .rules = OPTION_IN_FILE},
    {"bias-tensor", "NAME[,NAME...]", "The matrices' biases (implies --bias)", OPTION_NAME,
     .at = NAME_AT(bias)},
    OPTION_FILE_ROWS,
    {0},
};

static void finish(struct family_options *o)
{
    ptxgen_rmsnorm_q4k_spec *s = option_spec(o);
    if (s->epilogue == PTXGEN_EPILOGUE_SWIGLU && s->n[0] && !s->n[1])
        s->n[1] = s->n[0];
}

/* Gate and up have the features of the shape each. */
static void set_shape(struct family_options *o, uint32_t k, uint32_t n)
{
    ptxgen_rmsnorm_q4k_spec *s = option_spec(o);
    memset(s->n, 0, sizeof s->n);
    s->k = k;
    s->n[0] = n;
    finish(o);
}

static void check_data(struct argp_state *state, struct family_options *o)
{
    (void)state;
    if (o->names.bias)
        ((ptxgen_rmsnorm_q4k_spec *)option_spec(o))->bias = 1;
}

const struct family rmsnorm_q4k_family = {
    .name = "rmsnorm_q4k",
    .summary = "RMSNorm fused with a matrix-vector product over GGUF Q4_K weights, 1 to 8 tokens",
    .harness = &rmsnorm_q4k_harness,
    .spec_rows = spec_rows,
    .data_rows = data_rows,
    .finish = finish,
    .check_data = check_data,
    .file = &rmsnorm_q4k_file,
    .defaults = &defaults,
    .recognise = rmsnorm_q4k_recognise,
    .set_shape = set_shape,
};
