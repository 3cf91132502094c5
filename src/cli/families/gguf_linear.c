/* SPDX-License-Identifier: Apache-2.0 */
/* The gguf_linear family in the command: its options. */
#include "../options.h"
#include "files.h"

#include <ptxgen/gguf_linear.h>

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { MATRICES = PTXGEN_GGUF_LINEAR_MATRICES };

static const char *const type_names[] = {"f32", "f16", "bf16", NULL};
static const char *const compute_names[] = {"x", "f16", "bf16", NULL};
static const char *const residual_names[] = {"none", "before", "after", NULL};

static void parse_n(struct argp_state *state, const char *text, struct family_options *o)
{
    ptxgen_gguf_linear_spec *s = option_spec(o);
    memset(s->n, 0, sizeof s->n);
    parse_numbers(state, "--n", text, 1, UINT32_MAX, s->n, MATRICES);
}

/* The type's number by its name in any case; −1: none. */
static int find_type(const char *name, size_t length)
{
    const ptxgen_gguf_type_info *type;
    for (size_t i = 0; (type = ptxgen_gguf_type_at(i)); i++)
        if (strlen(type->name) == length && !strncasecmp(type->name, name, length))
            return (int)type->type;
    return -1;
}

static void parse_types(struct argp_state *state, const char *text, struct family_options *o)
{
    ptxgen_gguf_linear_spec *s = option_spec(o);
    const char *at = text;
    unsigned count = 0;
    memset(s->w_type, 0, sizeof s->w_type);
    for (; count < MATRICES; count++) {
        size_t length = strcspn(at, ",");
        int type = find_type(at, length);
        if (type < 0)
            argp_error(state, "--w-type %s: %.*s is not a type of GGUF", text, (int)length, at);
        for (unsigned i = count; i < MATRICES; i++)
            s->w_type[i] = (uint8_t)type;
        at += length;
        if (!*at)
            return;
        at++;
    }
    argp_error(state, "--w-type %s: at most %d types", text, MATRICES);
}

static void take_epsilon(struct argp_state *state, const char *text, struct family_options *o)
{
    ((ptxgen_gguf_linear_spec *)option_spec(o))->epsilon = parse_epsilon(state, "--epsilon", text);
}

static const ptxgen_gguf_linear_spec defaults = {
    .epsilon = 1e-6f, .x_type = PTXGEN_F16, .y_type = PTXGEN_F16};

#define AT(member) offsetof(ptxgen_gguf_linear_spec, member)
static const struct option_row spec_rows[] = {
    {"k", "K", "Input features: a multiple of each type's block, 32 or 256, or of 8 for floats",
     OPTION_NUMBER, AT(k), .rules = OPTION_IS_K | OPTION_OF_FILE},
    {"n", "N[,N[,N]]", "Output features; several matrices that share x go into one launch",
     OPTION_OTHER, AT(n), .parse = parse_n, .rules = OPTION_IS_N | OPTION_OF_FILE},
    {"w-type", "TYPE[,TYPE[,TYPE]]", "GGUF types of the matrices (Q4_K); the last stands for more",
     OPTION_OTHER, AT(w_type), .parse = parse_types, .rules = OPTION_OF_FILE},
    {"rmsnorm", NULL, "RMSNorm with gamma before the product", OPTION_FLAG, .at = AT(norm)},
    {"epsilon", "E", "Added to the mean square, at least 0 (1e-6, or what the file says)",
     OPTION_OTHER, .parse = take_epsilon},
    {"x-type", "TYPE", "Activations: f32, f16 (default), bf16", OPTION_CHOICE, AT(x_type),
     .choices = type_names},
    {"y-type", "TYPE", "Outputs: f32, f16 (default), bf16", OPTION_CHOICE, AT(y_type),
     .choices = type_names},
    {"residual", "WHERE", "Add a residual to x first, before or after a norm of x", OPTION_CHOICE,
     AT(residual), .choices = residual_names},
    {"residual-out", NULL, "Write that sum out too", OPTION_FLAG, .at = AT(residual_out)},
    {"bias", NULL, "Add a bias to y", OPTION_FLAG, .at = AT(bias)},
    {"swiglu", NULL, "y = silu(gate) * up, over two matrices of equal N", OPTION_FLAG, AT(epilogue),
     .value = PTXGEN_EPILOGUE_SWIGLU},
    {"geglu", NULL, "y = gelu_tanh(gate) * up, likewise", OPTION_FLAG, AT(epilogue),
     .value = PTXGEN_EPILOGUE_GEGLU},
    {"compute", "TYPE",
     "What tensor cores multiply, for more than 8 or 32 tokens (of floats fewer): x (its type, "
     "default), f16, bf16",
     OPTION_CHOICE, AT(compute), .choices = compute_names},
    {"max-m", "M", "The most tokens that will be launched (any number)", OPTION_NUMBER, AT(max_m),
     .rules = OPTION_MOST_M},
    {0},
};
#undef AT

static const struct option_row data_rows[] = {
    {"gguf", "FILE", "Take weights from this GGUF file; of one in parts, any part or the folder",
     OPTION_NAME, .at = NAME_AT(file)},
    {"tensor", "NAME[,NAME...]", "The matrices", OPTION_NAME, NAME_AT(tensors),
     .rules = OPTION_IN_FILE},
    {"norm", "NAME", "The norm's weight, gamma (implies --rmsnorm)", OPTION_NAME,
     .at = NAME_AT(norm)},
    {"bias-tensor", "NAME[,NAME...]", "The matrices' biases (implies --bias)", OPTION_NAME,
     .at = NAME_AT(bias)},
    OPTION_FILE_ROWS,
    {0},
};

/* The second of a pair, and the types where none were named. */
static void finish(struct family_options *o)
{
    ptxgen_gguf_linear_spec *s = option_spec(o);
    if (s->epilogue && s->n[0] && !s->n[1])
        s->n[1] = s->n[0];
    for (unsigned i = 0; i < MATRICES && s->n[0]; i++)
        if (!s->n[i])
            s->w_type[i] = 0;
        else if (!option_given(o, "w-type") && !o->names.tensors)
            s->w_type[i] = PTXGEN_GGUF_Q4_K;
}

/* Gate and up have the features of the shape each. */
static void set_shape(struct family_options *o, uint32_t k, uint32_t n)
{
    ptxgen_gguf_linear_spec *s = option_spec(o);
    memset(s->n, 0, sizeof s->n);
    s->k = k;
    s->n[0] = n;
    finish(o);
}

static void check_data(struct argp_state *state, struct family_options *o)
{
    ptxgen_gguf_linear_spec *s = option_spec(o);
    (void)state;
    if (o->names.bias)
        s->bias = 1;
    if (o->names.norm)
        s->norm = PTXGEN_GGUF_LINEAR_RMSNORM;
}

const struct family gguf_linear_family = {
    .name = "gguf_linear",
    .summary = "Products with GGUF weights of any type, with norm, residual, gate",
    .harness = &gguf_linear_harness,
    .spec_rows = spec_rows,
    .data_rows = data_rows,
    .finish = finish,
    .check_data = check_data,
    .file = &gguf_linear_file,
    .defaults = &defaults,
    .recognise = gguf_linear_recognise,
    .set_shape = set_shape,
};
