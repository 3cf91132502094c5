/* SPDX-License-Identifier: Apache-2.0 */
/* The marlin family in the command: options, plan, what a launch costs. */
#include "marlin.h"

#include "../options.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum {
    KEY_K = OPTION_FAMILY_KEYS,
    KEY_N,
    KEY_GROUP_SIZE,
    KEY_TYPE,
    KEY_ZEROS,
    KEY_ACT_ORDER,
    KEY_SWIGLU,
    KEY_ACTIVATION,
    KEY_BIAS,
    KEY_RESIDUAL,
    KEY_MAX_M,
    KEY_TILE,
    KEY_SAFETENSORS,
    KEY_LAYER,
    KEY_UP_LAYER,
    KEY_FORMAT,
    KEY_INPUT,
    KEY_EXPECT
};

static const char *const type_names[] = {"f16", "bf16", NULL}, *const activation_names[] = {
                                                                   "none", "silu", "gelu",
                                                                   "gelu-tanh", NULL};
static const ptxgen_element types[] = {PTXGEN_F16, PTXGEN_BF16};

/* ---- options ---- */

static const struct argp_option spec_options[] = {
    {.name = "k",
     .key = KEY_K,
     .arg = "K",
     .doc = "Input features, the depth of the sums: a multiple of 16"},
    {.name = "n",
     .key = KEY_N,
     .arg = "N",
     .doc = "Output features: a multiple of 8; with --swiglu of gate and of up each"},
    {.name = "group-size",
     .key = KEY_GROUP_SIZE,
     .arg = "G",
     .doc = "How many of K share a scale: a multiple of 16 that divides K, or -1 for all (128, or "
            "what the file says)"},
    {.name = "type",
     .key = KEY_TYPE,
     .arg = "TYPE",
     .doc = "Of x, y, scales, bias and residual: f16 (default, or the file's scales') or bf16"},
    {.name = "zeros", .key = KEY_ZEROS, .doc = "With zero points"},
    {.name = "act-order", .key = KEY_ACT_ORDER, .doc = "Groups take any of K (g_idx)"},
    {.name = "swiglu", .key = KEY_SWIGLU, .doc = "y = silu(gate) * up, over two matrices"},
    {.name = "activation",
     .key = KEY_ACTIVATION,
     .arg = "NAME",
     .doc = "Of the sums: none (default), silu, gelu, gelu-tanh"},
    {.name = "bias", .key = KEY_BIAS, .doc = "Add a bias"},
    {.name = "residual", .key = KEY_RESIDUAL, .doc = "Add a residual to y"},
    {.name = "max-m",
     .key = KEY_MAX_M,
     .arg = "M",
     .doc = "The most tokens that will be launched (any)"},
    {.name = "tile",
     .key = KEY_TILE,
     .arg = "NAME=VALUE,...",
     .doc = "Use this tile instead of the plan's, for tuning, as tile_m=16, warp_n=64, wn=4, wk=2, "
            "stages=4, steps=1, ctas=1, pass_m=16, kind=0, cluster=0; kind: 0 mma.sync, 1 "
            "wgmma, 2 mma.sync with copies in bulk"},
    {0},
};

/* "name=number" pairs; a member that is not named stays 0, for the plan to judge. */
static void read_tile(struct argp_state *state, const char *text, ptxgen_marlin_variant *tile)
{
    static char *const names[] = {"tile_m", "warp_n", "wn",   "wk",      "stages", "steps",
                                  "ctas",   "pass_m", "kind", "cluster", NULL};
    uint32_t *const members[] = {&tile->tile_m, &tile->warp_n, &tile->wn,   &tile->wk,
                                 &tile->stages, &tile->steps,  &tile->ctas, &tile->pass_m,
                                 &tile->kind,   &tile->cluster};
    parse_tile(state, text, names, members);
}

static error_t parse_spec(int key, char *arg, struct argp_state *state)
{
    struct marlin_options *o = state->input;
    ptxgen_marlin_spec *s = &o->spec;
    switch (key) {
    case KEY_K: s->k = (uint32_t)parse_number(state, "--k", arg, 1, UINT32_MAX); return 0;
    case KEY_N: s->n = (uint32_t)parse_number(state, "--n", arg, 1, UINT32_MAX); return 0;
    case KEY_GROUP_SIZE:
        s->group_size = parse_group_size(state, arg);
        o->group_size_given = true;
        return 0;
    case KEY_TYPE:
        s->type = (uint8_t)types[parse_choice(state, "--type", arg, type_names)];
        o->type_given = true;
        return 0;
    case KEY_ZEROS: s->zeros = 1; return 0;
    case KEY_ACT_ORDER: s->act_order = 1; return 0;
    case KEY_SWIGLU: s->epilogue = PTXGEN_EPILOGUE_SWIGLU; return 0;
    case KEY_ACTIVATION:
        s->activation = (uint8_t)parse_choice(state, "--activation", arg, activation_names);
        return 0;
    case KEY_BIAS: s->bias = 1; return 0;
    case KEY_RESIDUAL: s->residual = 1; return 0;
    case KEY_MAX_M:
        s->max_m = (uint32_t)parse_number(state, "--max-m", arg, 1, UINT32_MAX);
        return 0;
    case KEY_TILE: read_tile(state, arg, &o->tile); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option data_options[] = {
    {.name = "safetensors",
     .key = KEY_SAFETENSORS,
     .arg = "FILE",
     .doc =
         "Take weights from this safetensors file; of a sharded one, its index, folder or a shard"},
    {.name = "layer",
     .key = KEY_LAYER,
     .arg = "PREFIX",
     .doc = "Of the tensors' names: PREFIX.qweight, PREFIX.weight_packed or PREFIX.B, and so on"},
    {.name = "up-layer", .key = KEY_UP_LAYER, .arg = "PREFIX", .doc = "SwiGLU's other matrix"},
    {.name = "format",
     .key = KEY_FORMAT,
     .arg = "NAME",
     .doc = "gptq, gptq_v2, awq, pack-quantized or marlin, instead of what the file says"},
    {.name = "input", .key = KEY_INPUT, .arg = "NAME", .doc = "The activations; otherwise random"},
    {.name = "expect",
     .key = KEY_EXPECT,
     .arg = "NAME",
     .doc = "The output to compare with, besides the reference's"},
    {0},
};

static void check_data(struct argp_state *state, struct marlin_options *o)
{
    if (o->safetensors && !o->layer)
        argp_error(state, "--safetensors needs --layer");
    if (!o->safetensors && (o->layer || o->up_layer || o->format || o->input || o->expect))
        argp_error(state, "--layer, --up-layer, --format, --input and --expect need --safetensors");
    if (o->expect && !o->input)
        argp_error(state, "--expect needs --input");
    if (o->safetensors && (o->spec.k || o->spec.n))
        argp_error(state, "--k and --n come from the tensors of --safetensors");
    if (o->up_layer)
        o->spec.epilogue = PTXGEN_EPILOGUE_SWIGLU;
    else if (o->safetensors && o->spec.epilogue == PTXGEN_EPILOGUE_SWIGLU)
        argp_error(state, "--swiglu on a file needs --up-layer");
}

static error_t parse_data(int key, char *arg, struct argp_state *state)
{
    struct marlin_options *o = state->input;
    switch (key) {
    case KEY_SAFETENSORS: o->safetensors = arg; return 0;
    case KEY_LAYER: o->layer = arg; return 0;
    case KEY_UP_LAYER: o->up_layer = arg; return 0;
    case KEY_FORMAT: o->format = arg; return 0;
    case KEY_INPUT: o->input = arg; return 0;
    case KEY_EXPECT: o->expect = arg; return 0;
    case ARGP_KEY_END: check_data(state, o); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static void set_defaults(void *options)
{
    struct marlin_options *o = options;
    o->spec.group_size = 128;
    o->spec.type = PTXGEN_F16;
}

static void set_shape(void *options, uint32_t k, uint32_t n)
{
    ptxgen_marlin_spec *s = &((struct marlin_options *)options)->spec;
    s->k = k;
    s->n = n;
}

/* ---- the spec ---- */

unsigned marlin_matrices(const ptxgen_marlin_spec *spec)
{
    return spec->epilogue == PTXGEN_EPILOGUE_SWIGLU ? 2 : 1;
}

ptxgen_status marlin_make_plan(const struct marlin_options *o, uint32_t m,
                               const ptxgen_target *target, ptxgen_marlin_plan *plan,
                               ptxgen_error *err)
{
    const ptxgen_marlin_spec *s = &o->spec;
    if (!s->k || !s->n)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "marlin needs --k and --n");
    if (s->max_m && m > s->max_m)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "marlin: M = %u is above the %u tokens of --max-m", m, s->max_m);
    ptxgen_status status =
        ptxgen_tuned_plan(o->tuning, ptxgen_marlin_family(), s, target, plan, NULL, err);
    if (status == PTXGEN_OK && o->tile.tile_m)
        status = ptxgen_marlin_use_tile(plan, &o->tile, err);
    return status;
}

void marlin_keep_variant(ptxgen_marlin_plan *plan, uint32_t m)
{
    const ptxgen_marlin_variant variant = *ptxgen_marlin_choose(plan, m);
    memset(plan->variants, 0, sizeof plan->variants);
    plan->variants[0] = variant;
    plan->variant_count = 1;
    plan->tuned_count = 0;
}

void marlin_name(const ptxgen_marlin_spec *s, uint32_t m, char *text, size_t size)
{
    snprintf(text, size, "K=%u N=%u M=%u group=%d %s%s%s%s%s%s%s%s", s->k, s->n, m,
             (int)s->group_size, s->type == PTXGEN_BF16 ? "bf16" : "f16", s->zeros ? " zeros" : "",
             s->act_order ? " act-order" : "",
             s->epilogue == PTXGEN_EPILOGUE_SWIGLU ? " swiglu" : "", s->activation ? " " : "",
             s->activation ? activation_names[s->activation] : "", s->bias ? " bias" : "",
             s->residual ? " residual" : "");
}

/* ---- emit and describe ---- */

static ptxgen_status emit(const void *options, const ptxgen_target *target, uint32_t m,
                          ptx_module *module, ptxgen_error *err)
{
    ptxgen_marlin_plan plan;
    ptxgen_status status = marlin_make_plan(options, m, target, &plan, err);
    if (status != PTXGEN_OK)
        return status;
    uint32_t variants = m ? 1u << (ptxgen_marlin_choose(&plan, m) - plan.variants) : ~0u;
    return ptxgen_marlin_emit(&plan, variants, module, err);
}

void marlin_work(const ptxgen_marlin_spec *s, uint32_t m, struct work *work)
{
    uint64_t groups = s->group_size == PTXGEN_W4_PER_CHANNEL ? 1 : s->k / (uint32_t)s->group_size;
    uint64_t columns = (uint64_t)marlin_matrices(s) * s->n;
    work->bytes = columns * s->k / 2 + columns * groups * 2 +
                  (s->zeros ? columns * groups / 2 : 0) + (s->bias ? 2 * columns : 0) +
                  2 * (uint64_t)m * s->k + (1u + s->residual) * 2 * (uint64_t)m * s->n +
                  (s->act_order ? 4 * (uint64_t)s->k : 0);
    work->flops = 2.0 * (double)columns * s->k * m;
}

static ptxgen_status describe(const void *options, const ptxgen_target *target, uint32_t m,
                              struct work *work, ptxgen_error *err)
{
    const struct marlin_options *o = options;
    ptxgen_marlin_plan plan;
    ptxgen_status status = marlin_make_plan(o, m, target, &plan, err);
    if (status != PTXGEN_OK)
        return status;
    marlin_work(&o->spec, m, work);
    work->entry = ptxgen_marlin_entry(ptxgen_marlin_choose(&plan, m));
    ptxgen_marlin_explain(&plan, m, work->explanation, sizeof work->explanation);
    return ptxgen_marlin_ctas(&plan, m, &work->grid, err);
}

static const struct argp spec_argp = {.options = spec_options, .parser = parse_spec};
static const struct argp data_argp = {.options = data_options, .parser = parse_data};

const struct family marlin_family = {
    .name = "marlin",
    .summary = "Matrix product with 4-bit weights and f16 or bf16 activations on tensor cores",
    .kernels = ptxgen_marlin_family,
    .spec_offset = offsetof(struct marlin_options, spec),
    .tuning_offset = offsetof(struct marlin_options, tuning),
    .options_size = sizeof(struct marlin_options),
    .set_defaults = set_defaults,
    .spec_options = &spec_argp,
    .data_options = &data_argp,
    .emit = emit,
    .describe = describe,
    .run = marlin_run,
    .run_random = marlin_run_random,
    .set_shape = set_shape,
    .bench = marlin_bench,
};
