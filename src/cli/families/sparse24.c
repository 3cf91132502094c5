/* SPDX-License-Identifier: Apache-2.0 */
/* The sparse24 family in the command: options, plan, what a launch costs. */
#include "sparse24.h"

#include "../options.h"

#include <stddef.h>
#include <stdio.h>

enum {
    KEY_K = OPTION_FAMILY_KEYS,
    KEY_N,
    KEY_DTYPE,
    KEY_Y_TYPE,
    KEY_MAX_M,
    KEY_ACTIVATION,
    KEY_BIAS,
    KEY_RESIDUAL,
    KEY_TIER,
    KEY_INFLATE,
    KEY_TILE,
    KEY_SAFETENSORS,
    KEY_LAYER,
    KEY_INPUT,
    KEY_EXPECT
};

static const char *const type_names[] = {"f32", "f16", "bf16", "s8", NULL};
static const char *const activation_names[] = {"none", "silu", "gelu", "gelu-tanh", "relu", NULL};

/* ---- options ---- */

static const struct argp_option spec_options[] = {
    {.name = "k", .key = KEY_K, .arg = "K", .doc = "Columns of W: a multiple of 8"},
    {.name = "n",
     .key = KEY_N,
     .arg = "N",
     .doc = "Rows of W: output features, any; --m are rows of X"},
    {.name = "dtype",
     .key = KEY_DTYPE,
     .arg = "TYPE",
     .doc = "Of X and W: f16 (default), bf16, s8 or f32"},
    {.name = "y-type",
     .key = KEY_Y_TYPE,
     .arg = "TYPE",
     .doc = "Of Y, bias and residual with s8: f16 (default) or bf16"},
    {.name = "max-m",
     .key = KEY_MAX_M,
     .arg = "M",
     .doc = "The most tokens that will be launched (any)"},
    {.name = "activation",
     .key = KEY_ACTIVATION,
     .arg = "NAME",
     .doc = "Of the sums: none (default), silu, gelu, gelu-tanh, relu"},
    {.name = "bias", .key = KEY_BIAS, .doc = "Add a bias"},
    {.name = "residual", .key = KEY_RESIDUAL, .doc = "Add a residual to Y"},
    {.name = "tier",
     .key = KEY_TIER,
     .arg = "1|2",
     .doc =
         "1: inflate W, then a dense product; 2: sparse tensor cores (but for f32, which has 1)"},
    {.name = "inflate",
     .key = KEY_INFLATE,
     .doc = "Of bench, tier 1: time the inflating alone, against a copy's bytes"},
    {.name = "tile",
     .key = KEY_TILE,
     .arg = "NAME=VALUE,...",
     .doc = "Use this tile instead of the plan's, for tuning, as tile_m=16, wm=1, wn=4, wk=2, "
            "cluster=1, stages=4, pass_m=16, kind=0, warp_n=32; stages=0: all that fit, kind=1: "
            "wgmma"},
    {0},
};

static void read_tile(struct argp_state *state, const char *text, ptxgen_sparse24_variant *tile)
{
    static char *const names[] = {"tile_m", "wm",     "wn",   "wk",     "cluster",
                                  "stages", "pass_m", "kind", "warp_n", NULL};
    uint32_t *const members[] = {&tile->tile_m, &tile->wm,      &tile->wn,
                                 &tile->wk,     &tile->cluster, &tile->stages,
                                 &tile->pass_m, &tile->kind,    &tile->warp_n};
    *tile = (ptxgen_sparse24_variant){.wm = 1, .wn = 1, .wk = 1, .pass_m = 8};
    parse_tile(state, text, names, members);
}

static error_t parse_spec(int key, char *arg, struct argp_state *state)
{
    struct sparse24_options *o = state->input;
    ptxgen_sparse24_spec *s = &o->spec;
    switch (key) {
    case KEY_K: s->k = (uint32_t)parse_number(state, "--k", arg, 1, UINT32_MAX); return 0;
    case KEY_N: s->n = (uint32_t)parse_number(state, "--n", arg, 1, UINT32_MAX); return 0;
    case KEY_DTYPE:
        s->type = (uint8_t)parse_choice(state, "--dtype", arg, type_names);
        o->dtype_given = true;
        return 0;
    case KEY_Y_TYPE:
        s->y_type = (uint8_t)parse_choice(state, "--y-type", arg, type_names);
        o->y_type_given = true;
        return 0;
    case KEY_MAX_M:
        s->max_m = (uint32_t)parse_number(state, "--max-m", arg, 1, UINT32_MAX);
        return 0;
    case KEY_ACTIVATION:
        s->activation = (uint8_t)parse_choice(state, "--activation", arg, activation_names);
        return 0;
    case KEY_BIAS: s->bias = 1; return 0;
    case KEY_RESIDUAL: s->residual = 1; return 0;
    case KEY_TIER: s->tier = (uint8_t)parse_number(state, "--tier", arg, 1, 2); return 0;
    case KEY_INFLATE:
        o->inflate = true;
        s->tier = 1;
        return 0;
    case KEY_TILE: read_tile(state, arg, &o->tile); return 0;
    case ARGP_KEY_END:
        if (!s->y_type)
            s->y_type = s->type == PTXGEN_SPARSE24_S8 ? PTXGEN_F16 : s->type;
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option data_options[] = {
    {.name = "safetensors",
     .key = KEY_SAFETENSORS,
     .arg = "FILE",
     .doc = "Take the weight from this file (of a sharded one, its index, folder or a shard), "
            "compressed in any form, or dense and 2:4 sparse"},
    {.name = "layer",
     .key = KEY_LAYER,
     .arg = "PREFIX",
     .doc = "Its tensors: PREFIX.sparse with PREFIX.meta_cutlass (meta_bytes, meta_nibbles), "
            "PREFIX.compressed with PREFIX.bitmask, PREFIX.dense, or PREFIX itself, or the same "
            "of PREFIX.weight; PREFIX.bias and, of I8, PREFIX.weight_scale and "
            "PREFIX.input_scale where they are there"},
    {.name = "input", .key = KEY_INPUT, .arg = "NAME", .doc = "The activations; otherwise random"},
    {.name = "expect",
     .key = KEY_EXPECT,
     .arg = "NAME",
     .doc = "The output to compare with, besides the reference's"},
    {0},
};

static error_t parse_data(int key, char *arg, struct argp_state *state)
{
    struct sparse24_options *o = state->input;
    switch (key) {
    case KEY_SAFETENSORS: o->safetensors = arg; return 0;
    case KEY_LAYER: o->layer = arg; return 0;
    case KEY_INPUT: o->input = arg; return 0;
    case KEY_EXPECT: o->expect = arg; return 0;
    case ARGP_KEY_END:
        if (o->expect && !o->input)
            argp_error(state, "--expect needs --input");
        if (!o->safetensors != !o->layer || (o->input && !o->layer))
            argp_error(state, "--safetensors and --layer need each other, and --input needs both");
        if (o->safetensors && (o->spec.k || o->spec.n || o->dtype_given))
            argp_error(state, "--n, --k and --dtype come from the tensors of --safetensors");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static void set_defaults(void *options)
{
    ((struct sparse24_options *)options)->spec.type = PTXGEN_SPARSE24_F16;
}

static void set_shape(void *options, uint32_t k, uint32_t n)
{
    ptxgen_sparse24_spec *s = &((struct sparse24_options *)options)->spec;
    s->k = k;
    s->n = n;
}

/* ---- the spec ---- */

size_t sparse24_x_element(const ptxgen_sparse24_spec *s)
{
    return s->type == PTXGEN_SPARSE24_S8 ? 1 : ptxgen_element_size((ptxgen_element)s->type);
}

ptxgen_status sparse24_make_plan(const struct sparse24_options *o, uint32_t m,
                                 const ptxgen_target *target, ptxgen_sparse24_plan *plan,
                                 ptxgen_error *err)
{
    const ptxgen_sparse24_spec *s = &o->spec;
    if (!s->k || !s->n)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "sparse24 needs --k and --n");
    ptxgen_status status = ptxgen_sparse24_make_plan(s, target, plan, err);
    if (status == PTXGEN_OK && o->tile.tile_m)
        status = ptxgen_sparse24_use_tile(plan, &o->tile, err);
    if (status != PTXGEN_OK || !m)
        return status;
    const ptxgen_sparse24_variant *v = ptxgen_sparse24_choose(plan, m);
    const ptxgen_dense_variant *dense = ptxgen_dense_choose(&plan->dense, m);
    if (!v && !dense)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "sparse24: M = %u is above the %u tokens of --max-m", m, s->max_m);
    if (v)
        plan->variants[0] = *v;
    else
        plan->dense.variants[0] = *dense;
    plan->variant_count = v != NULL;
    plan->dense.variant_count = v == NULL;
    return PTXGEN_OK;
}

void sparse24_name(const ptxgen_sparse24_spec *s, uint32_t m, char *text, size_t size)
{
    snprintf(text, size, "K=%u N=%u M=%u %s%s%s%s%s%s%s%s", s->k, s->n, m, type_names[s->type],
             s->type == s->y_type ? "" : " y=", s->type == s->y_type ? "" : type_names[s->y_type],
             s->activation ? " " : "", s->activation ? activation_names[s->activation] : "",
             s->bias ? " bias" : "", s->residual ? " residual" : "",
             s->tier == 1 ? " inflated" : "");
}

ptxgen_status sparse24_work(const ptxgen_sparse24_spec *s, uint32_t m, struct work *work,
                            ptxgen_error *err)
{
    size_t packed;
    ptxgen_status status = ptxgen_sparse24_packed_bytes(s, &packed, err);
    if (status != PTXGEN_OK)
        return status;
    bool scaled = s->type == PTXGEN_SPARSE24_S8;
    size_t y = ptxgen_element_size((ptxgen_element)s->y_type);
    work->bytes = packed + sparse24_x_element(s) * (uint64_t)m * s->k +
                  y * ((1 + s->residual) * (uint64_t)m * s->n + (uint64_t)s->bias * s->n) +
                  (scaled ? 4 * ((uint64_t)m + s->n) : 0);
    work->flops = 2.0 * m * s->n * s->k;
    return PTXGEN_OK;
}

/* ---- emit and describe ---- */

static ptxgen_status emit(const void *options, const ptxgen_target *target, uint32_t m,
                          ptx_module *module, ptxgen_error *err)
{
    ptxgen_sparse24_plan plan;
    ptxgen_status status = sparse24_make_plan(options, m, target, &plan, err);
    return status == PTXGEN_OK ? ptxgen_sparse24_emit(&plan, ~0u, module, err) : status;
}

static ptxgen_status describe(const void *options, const ptxgen_target *target, uint32_t m,
                              struct work *work, ptxgen_error *err)
{
    ptxgen_sparse24_plan plan;
    ptxgen_status status = sparse24_make_plan(options, m, target, &plan, err);
    if (status == PTXGEN_OK)
        status = sparse24_work(&plan.spec, m, work, err);
    if (status != PTXGEN_OK)
        return status;
    work->entry = plan.variant_count ? ptxgen_sparse24_entry(&plan.variants[0])
                                     : ptxgen_dense_entry(&plan.dense.variants[0]);
    ptxgen_sparse24_explain(&plan, m, work->explanation, sizeof work->explanation);
    return ptxgen_sparse24_ctas(&plan, m, &work->grid, err);
}

static const struct argp spec_argp = {.options = spec_options, .parser = parse_spec};
static const struct argp data_argp = {.options = data_options, .parser = parse_data};

const struct family sparse24_family = {
    .name = "sparse24",
    .summary = "Matrix product with 2:4 sparse weights on sparse tensor cores",
    .options_size = sizeof(struct sparse24_options),
    .spec_offset = offsetof(struct sparse24_options, spec),
    .kernels = ptxgen_sparse24_family,
    .set_defaults = set_defaults,
    .spec_options = &spec_argp,
    .data_options = &data_argp,
    .emit = emit,
    .describe = describe,
    .run = sparse24_run,
    .run_random = sparse24_run_random,
    .set_shape = set_shape,
    .bench = sparse24_bench,
};
