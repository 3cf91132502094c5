/* SPDX-License-Identifier: Apache-2.0 */
/* The rmsnorm_q4k family in the command: options, plan, what a launch costs. */
#include "rmsnorm_q4k.h"

#include "../options.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum {
    KEY_K = OPTION_FAMILY_KEYS,
    KEY_N,
    KEY_EPSILON,
    KEY_X_TYPE,
    KEY_Y_TYPE,
    KEY_RESIDUAL,
    KEY_RESIDUAL_OUT,
    KEY_BIAS,
    KEY_SWIGLU,
    KEY_MAX_M,
    KEY_GGUF,
    KEY_TENSOR,
    KEY_NORM,
    KEY_BIAS_TENSOR,
    KEY_INPUT,
    KEY_EXPECT
};

static const char *const element_names[] = {"f32", "f16", "bf16", NULL};

/* ---- options ---- */

static const struct argp_option spec_options[] = {
    {.name = "k", .key = KEY_K, .arg = "K", .doc = "Columns of W: a multiple of 256"},
    {.name = "n",
     .key = KEY_N,
     .arg = "N[,N[,N]]",
     .doc = "Rows of W; several matrices that share x go into one launch"},
    {.name = "epsilon",
     .key = KEY_EPSILON,
     .arg = "E",
     .doc = "Added to the mean square, at least 0 (1e-6, or what the file says)"},
    {.name = "x-type",
     .key = KEY_X_TYPE,
     .arg = "TYPE",
     .doc = "Activations: f32, f16 (default), bf16"},
    {.name = "y-type",
     .key = KEY_Y_TYPE,
     .arg = "TYPE",
     .doc = "Outputs: f32, f16 (default), bf16"},
    {.name = "residual", .key = KEY_RESIDUAL, .doc = "Add a residual to x first"},
    {.name = "residual-out", .key = KEY_RESIDUAL_OUT, .doc = "Write that sum out too"},
    {.name = "bias", .key = KEY_BIAS, .doc = "Add a bias to y"},
    {.name = "swiglu",
     .key = KEY_SWIGLU,
     .doc = "y = silu(gate) * up, over two matrices of equal N"},
    {.name = "max-m",
     .key = KEY_MAX_M,
     .arg = "M",
     .doc = "The most tokens that will be launched, 1 to 8 (8)"},
    {0},
};

static error_t parse_spec(int key, char *arg, struct argp_state *state)
{
    struct rmsnorm_q4k_options *o = state->input;
    ptxgen_rmsnorm_q4k_spec *s = &o->spec;
    switch (key) {
    case KEY_K: s->k = (uint32_t)parse_number(state, "--k", arg, 1, UINT32_MAX); return 0;
    case KEY_N:
        memset(s->n, 0, sizeof s->n);
        parse_numbers(state, "--n", arg, 1, UINT32_MAX, s->n, MATRICES);
        return 0;
    case KEY_EPSILON:
        s->epsilon = parse_epsilon(state, "--epsilon", arg);
        o->epsilon_given = true;
        return 0;
    case KEY_X_TYPE:
        s->x_type = (uint8_t)parse_choice(state, "--x-type", arg, element_names);
        return 0;
    case KEY_Y_TYPE:
        s->y_type = (uint8_t)parse_choice(state, "--y-type", arg, element_names);
        return 0;
    case KEY_RESIDUAL: s->residual = 1; return 0;
    case KEY_RESIDUAL_OUT: s->residual = s->residual_out = 1; return 0;
    case KEY_BIAS: s->bias = 1; return 0;
    case KEY_SWIGLU: s->epilogue = PTXGEN_EPILOGUE_SWIGLU; return 0;
    case KEY_MAX_M:
        s->max_m = (uint32_t)parse_number(state, "--max-m", arg, 1, UINT32_MAX);
        return 0;
    case ARGP_KEY_END:
        if (s->epilogue == PTXGEN_EPILOGUE_SWIGLU && s->n[0] && !s->n[1])
            s->n[1] = s->n[0];
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option data_options[] = {
    {.name = "gguf",
     .key = KEY_GGUF,
     .arg = "FILE",
     .doc = "Take weights from this GGUF file; of one in parts, any part or the folder"},
    {.name = "tensor", .key = KEY_TENSOR, .arg = "NAME[,NAME...]", .doc = "The Q4_K matrices"},
    {.name = "norm", .key = KEY_NORM, .arg = "NAME", .doc = "The norm's weight, gamma"},
    {.name = "bias-tensor",
     .key = KEY_BIAS_TENSOR,
     .arg = "NAME[,NAME...]",
     .doc = "The matrices' biases (implies --bias)"},
    {.name = "input", .key = KEY_INPUT, .arg = "NAME", .doc = "The activations; otherwise random"},
    {.name = "expect",
     .key = KEY_EXPECT,
     .arg = "NAME",
     .doc = "The output to compare with, besides the reference's"},
    {0},
};

static error_t parse_data(int key, char *arg, struct argp_state *state)
{
    struct rmsnorm_q4k_options *o = state->input;
    switch (key) {
    case KEY_GGUF: o->gguf = arg; return 0;
    case KEY_TENSOR: o->tensors = arg; return 0;
    case KEY_NORM: o->norm = arg; return 0;
    case KEY_BIAS_TENSOR:
        o->bias = arg;
        o->spec.bias = 1;
        return 0;
    case KEY_INPUT: o->input = arg; return 0;
    case KEY_EXPECT: o->expect = arg; return 0;
    case ARGP_KEY_END:
        if (o->gguf && (!o->tensors || !o->norm))
            argp_error(state, "--gguf needs --tensor and --norm");
        if (!o->gguf && (o->tensors || o->norm || o->bias || o->input || o->expect))
            argp_error(state, "--tensor, --norm, --bias-tensor, --input and --expect need --gguf");
        if (o->expect && !o->input)
            argp_error(state, "--expect needs --input");
        if (o->gguf && (o->spec.k || o->spec.n[0]))
            argp_error(state, "--k and --n come from the tensors of --gguf");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static void set_defaults(void *options)
{
    struct rmsnorm_q4k_options *o = options;
    o->spec.epsilon = 1e-6f;
    o->spec.x_type = o->spec.y_type = PTXGEN_F16;
}

static void set_shape(void *options, uint32_t k, uint32_t n)
{
    ptxgen_rmsnorm_q4k_spec *s = &((struct rmsnorm_q4k_options *)options)->spec;
    s->k = k;
    s->n[0] = n;
    s->n[1] = s->epilogue == PTXGEN_EPILOGUE_SWIGLU ? n : 0;
    s->n[2] = 0;
}

/* ---- the spec ---- */

unsigned rmsnorm_q4k_matrices(const ptxgen_rmsnorm_q4k_spec *spec)
{
    return spec->n[2] ? 3 : spec->n[1] ? 2 : 1;
}

unsigned rmsnorm_q4k_outputs(const ptxgen_rmsnorm_q4k_spec *spec)
{
    return spec->epilogue == PTXGEN_EPILOGUE_SWIGLU ? 1 : rmsnorm_q4k_matrices(spec);
}

ptxgen_status rmsnorm_q4k_make_plan(const ptxgen_rmsnorm_q4k_spec *spec, uint32_t m,
                                    const ptxgen_target *target, ptxgen_rmsnorm_q4k_plan *plan,
                                    ptxgen_error *err)
{
    uint32_t most = spec->max_m ? spec->max_m : PTXGEN_RMSNORM_Q4K_MAX_M;
    if (!spec->k || !spec->n[0])
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "rmsnorm_q4k needs --k and --n");
    if (m > most)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "rmsnorm_q4k: M = %u is above the %u tokens that one launch takes", m,
                           most);
    return ptxgen_rmsnorm_q4k_make_plan(spec, target, plan, err);
}

void rmsnorm_q4k_name(const ptxgen_rmsnorm_q4k_spec *s, uint32_t m, char *text, size_t size)
{
    char n[48];
    int used = snprintf(n, sizeof n, "%u", s->n[0]);
    for (unsigned i = 1; i < rmsnorm_q4k_matrices(s); i++)
        used += snprintf(n + used, sizeof n - (size_t)used, ",%u", s->n[i]);
    snprintf(text, size, "K=%u N=%s M=%u x=%s y=%s eps=%g%s%s%s%s", s->k, n, m,
             element_names[s->x_type], element_names[s->y_type], (double)s->epsilon,
             s->residual ? " residual" : "", s->residual_out ? " residual-out" : "",
             s->bias ? " bias" : "", s->epilogue == PTXGEN_EPILOGUE_SWIGLU ? " swiglu" : "");
}

/* ---- emit and describe ---- */

static ptxgen_status emit(const void *options, const ptxgen_target *target, uint32_t m,
                          ptx_module *module, ptxgen_error *err)
{
    const struct rmsnorm_q4k_options *o = options;
    ptxgen_rmsnorm_q4k_plan plan;
    ptxgen_status status = rmsnorm_q4k_make_plan(&o->spec, m, target, &plan, err);
    if (status != PTXGEN_OK)
        return status;
    uint32_t variants = m ? 1u << (ptxgen_rmsnorm_q4k_choose(&plan, m) - plan.variants) : ~0u;
    return ptxgen_rmsnorm_q4k_emit(&plan, variants, module, err);
}

void rmsnorm_q4k_work(const ptxgen_rmsnorm_q4k_spec *s, uint32_t m, struct work *work)
{
    uint64_t x_bytes = ptxgen_element_size((ptxgen_element)s->x_type);
    uint64_t y_bytes = ptxgen_element_size((ptxgen_element)s->y_type);
    uint64_t rows = (uint64_t)s->n[0] + s->n[1] + s->n[2];
    uint64_t outputs = s->epilogue == PTXGEN_EPILOGUE_SWIGLU ? s->n[0] : rows;
    uint64_t activations = 1u + s->residual + s->residual_out;
    work->bytes = rows * (s->k / PTXGEN_Q4K_BLOCK_WEIGHTS) * PTXGEN_Q4K_BLOCK_BYTES +
                  4 * (uint64_t)s->k + activations * m * s->k * x_bytes + m * outputs * y_bytes +
                  (s->bias ? 4 * rows : 0);
    work->flops = 2.0 * (double)rows * s->k * m + 4.0 * s->k * m;
}

static ptxgen_status describe(const void *options, const ptxgen_target *target, uint32_t m,
                              struct work *work, ptxgen_error *err)
{
    const struct rmsnorm_q4k_options *o = options;
    ptxgen_rmsnorm_q4k_plan plan;
    ptxgen_status status = rmsnorm_q4k_make_plan(&o->spec, m, target, &plan, err);
    if (status != PTXGEN_OK)
        return status;
    const ptxgen_rmsnorm_q4k_variant *v = ptxgen_rmsnorm_q4k_choose(&plan, m);
    rmsnorm_q4k_work(&o->spec, m, work);
    work->entry = ptxgen_rmsnorm_q4k_entry(v);
    work->grid = v->grid;
    return PTXGEN_OK;
}

static const struct argp spec_argp = {.options = spec_options, .parser = parse_spec};
static const struct argp data_argp = {.options = data_options, .parser = parse_data};

const struct family rmsnorm_q4k_family = {
    .name = "rmsnorm_q4k",
    .summary = "RMSNorm fused with a matrix-vector product over GGUF Q4_K weights, 1 to 8 tokens",
    .kernels = ptxgen_rmsnorm_q4k_family,
    .spec_offset = offsetof(struct rmsnorm_q4k_options, spec),
    .options_size = sizeof(struct rmsnorm_q4k_options),
    .set_defaults = set_defaults,
    .spec_options = &spec_argp,
    .data_options = &data_argp,
    .emit = emit,
    .describe = describe,
    .run = rmsnorm_q4k_run,
    .run_random = rmsnorm_q4k_run_random,
    .set_shape = set_shape,
    .bench = rmsnorm_q4k_bench,

};
