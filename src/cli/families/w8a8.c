/* SPDX-License-Identifier: Apache-2.0 */
/* The w8a8 family in the command: options, plan, what a launch costs. */
#include "w8a8.h"

#include "../options.h"

#include <stddef.h>
#include <stdio.h>

enum {
    KEY_K = OPTION_FAMILY_KEYS,
    KEY_N,
    KEY_DTYPE,
    KEY_X_TYPE,
    KEY_Y_TYPE,
    KEY_SCALES,
    KEY_ASYMMETRIC,
    KEY_CODES,
    KEY_BIAS,
    KEY_W_STRIDE,
    KEY_MIN_M,
    KEY_MAX_M,
    KEY_TILE,
    KEY_SAFETENSORS,
    KEY_LAYER,
    KEY_INPUT,
    KEY_EXPECT
};

static const char *const element_names[] = {"f32", "f16", "bf16", "f64", NULL},
                         *const scale_names[] = {"dynamic", "tensor", "token", NULL};

/* ---- options ---- */

static const struct argp_option spec_options[] = {
    {.name = "k", .key = KEY_K, .arg = "K", .doc = "Inputs of the layer: columns of W"},
    {.name = "n", .key = KEY_N, .arg = "N", .doc = "Its output features: rows of W"},
    {.name = "dtype",
     .key = KEY_DTYPE,
     .arg = "TYPE",
     .doc = "Activations and outputs: f32, f16 (default), bf16, f64"},
    {.name = "x-type", .key = KEY_X_TYPE, .arg = "TYPE", .doc = "Activations alone"},
    {.name = "y-type", .key = KEY_Y_TYPE, .arg = "TYPE", .doc = "Outputs alone"},
    {.name = "scales",
     .key = KEY_SCALES,
     .arg = "KIND",
     .doc = "Of the activations: dynamic (default, a token from itself), tensor, token (given)"},
    {.name = "asymmetric", .key = KEY_ASYMMETRIC, .doc = "With zero points"},
    {.name = "codes",
     .key = KEY_CODES,
     .arg = "MIN,MAX",
     .doc = "The range of codes: magnitudes, as 128,127 (127,127)"},
    {.name = "bias", .key = KEY_BIAS, .doc = "Add a bias"},
    {.name = "w-stride",
     .key = KEY_W_STRIDE,
     .arg = "BYTES",
     .doc = "From one row of W to the next (K)"},
    {.name = "min-m", .key = KEY_MIN_M, .arg = "M", .doc = "The fewest tokens launched"},
    {.name = "max-m", .key = KEY_MAX_M, .arg = "M", .doc = "The most tokens launched"},
    {.name = "tile",
     .key = KEY_TILE,
     .arg = "NAME=VALUE,...",
     .doc = "Use this tile instead of the plan's, for tuning, as tile_m=16, tile_n=64, wm=1, wn=4, "
            "wk=2, stages=8, fused=0, cluster=1, kind=0; tile_n=0: an even share; kind=1: wgmma"},
    {0},
};

static void read_tile(struct argp_state *state, const char *text, ptxgen_w8a8_variant *tile)
{
    static char *const names[] = {"tile_m", "tile_n", "wm",      "wn",   "wk",
                                  "stages", "fused",  "cluster", "kind", NULL};
    uint32_t *const members[] = {&tile->tile_m, &tile->tile_n,  &tile->wm,
                                 &tile->wn,     &tile->wk,      &tile->stages,
                                 &tile->fused,  &tile->cluster, &tile->kind};
    *tile = (ptxgen_w8a8_variant){.wm = 1, .wk = 1};
    parse_tile(state, text, names, members);
}

static void parse_codes(struct argp_state *state, const char *text, ptxgen_w8a8_spec *s)
{
    uint32_t range[2];
    if (parse_numbers(state, "--codes", text, 0, 128, range, 2) != 2)
        argp_error(state, "--codes %s: expected two magnitudes, as 128,127", text);
    s->q_min = (int16_t) - (int32_t)range[0];
    s->q_max = (int16_t)range[1];
}

static error_t parse_spec(int key, char *arg, struct argp_state *state)
{
    struct w8a8_options *o = state->input;
    ptxgen_w8a8_spec *s = &o->spec;
    switch (key) {
    case KEY_K: s->k = (uint32_t)parse_number(state, "--k", arg, 1, UINT32_MAX); return 0;
    case KEY_N: s->n = (uint32_t)parse_number(state, "--n", arg, 1, UINT32_MAX); return 0;
    case KEY_DTYPE:
        s->x_type = s->y_type = (uint8_t)parse_choice(state, "--dtype", arg, element_names);
        return 0;
    case KEY_X_TYPE:
        s->x_type = (uint8_t)parse_choice(state, "--x-type", arg, element_names);
        return 0;
    case KEY_Y_TYPE:
        s->y_type = (uint8_t)parse_choice(state, "--y-type", arg, element_names);
        return 0;
    case KEY_SCALES:
        s->scales = (uint8_t)parse_choice(state, "--scales", arg, scale_names);
        o->scales_given = true;
        return 0;
    case KEY_ASYMMETRIC: s->asymmetric = 1; return 0;
    case KEY_CODES: parse_codes(state, arg, s); return 0;
    case KEY_BIAS: s->bias = 1; return 0;
    case KEY_W_STRIDE:
        s->w_stride = (uint32_t)parse_number(state, "--w-stride", arg, 1, UINT32_MAX);
        return 0;
    case KEY_MIN_M:
        s->min_m = (uint32_t)parse_number(state, "--min-m", arg, 0, UINT32_MAX);
        return 0;
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
     .doc = "Take the layer from this file, as compressed-tensors' int-quantized has it; of a "
            "sharded one, its index, folder or a shard"},
    {.name = "layer",
     .key = KEY_LAYER,
     .arg = "NAME",
     .doc = "Its tensors are NAME.weight, NAME.weight_scale …; without it weight, weight_scale …"},
    {.name = "input", .key = KEY_INPUT, .arg = "NAME", .doc = "The activations; otherwise random"},
    {.name = "expect",
     .key = KEY_EXPECT,
     .arg = "NAME",
     .doc = "The output to compare with, besides the reference's"},
    {0},
};

static error_t parse_data(int key, char *arg, struct argp_state *state)
{
    struct w8a8_options *o = state->input;
    switch (key) {
    case KEY_SAFETENSORS: o->safetensors = arg; return 0;
    case KEY_LAYER: o->layer = arg; return 0;
    case KEY_INPUT: o->input = arg; return 0;
    case KEY_EXPECT: o->expect = arg; return 0;
    case ARGP_KEY_END:
        if (!o->safetensors && (o->layer || o->input || o->expect))
            argp_error(state, "--layer, --input and --expect need --safetensors");
        if (o->expect && !o->input)
            argp_error(state, "--expect needs --input");
        if (o->safetensors && (o->spec.k || o->spec.n || o->scales_given))
            argp_error(state, "--k, --n and --scales come from the tensors of --safetensors");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static void set_defaults(void *options)
{
    struct w8a8_options *o = options;
    o->spec.x_type = o->spec.y_type = PTXGEN_F16;
}

static void set_shape(void *options, uint32_t k, uint32_t n)
{
    ptxgen_w8a8_spec *s = &((struct w8a8_options *)options)->spec;
    s->k = k;
    s->n = n;
}

/* ---- the spec ---- */

ptxgen_status w8a8_make_plan(const struct w8a8_options *o, uint32_t m, const ptxgen_target *target,
                             ptxgen_w8a8_plan *plan, ptxgen_error *err)
{
    const ptxgen_w8a8_spec *s = &o->spec;
    if (!s->k || !s->n)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "w8a8 needs --k and --n");
    ptxgen_status status = ptxgen_w8a8_make_plan(s, target, plan, err);
    if (status == PTXGEN_OK && o->tile.tile_m)
        status = ptxgen_w8a8_use_tile(plan, &o->tile, err);
    if (status == PTXGEN_OK && m && !ptxgen_w8a8_choose(plan, m))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "w8a8: M = %u is outside --min-m, --max-m or --tile", m);
    return status;
}

void w8a8_name(const ptxgen_w8a8_spec *s, uint32_t m, char *text, size_t size)
{
    char codes[24] = "";
    if (s->q_max && (s->q_min != -127 || s->q_max != 127))
        snprintf(codes, sizeof codes, " codes=%d..%d", s->q_min, s->q_max);
    snprintf(text, size, "K=%u N=%u M=%u x=%s y=%s %s%s%s%s", s->k, s->n, m,
             element_names[s->x_type], element_names[s->y_type], scale_names[s->scales],
             s->asymmetric ? " asymmetric" : "", codes, s->bias ? " bias" : "");
}

/* ---- emit and describe ---- */

static ptxgen_status emit(const void *options, const ptxgen_target *target, uint32_t m,
                          ptx_module *module, ptxgen_error *err)
{
    ptxgen_w8a8_plan plan;
    ptxgen_status status = w8a8_make_plan(options, m, target, &plan, err);
    if (status != PTXGEN_OK)
        return status;
    uint32_t variants = m ? 1u << (ptxgen_w8a8_choose(&plan, m) - plan.variants) : ~0u;
    return ptxgen_w8a8_emit(&plan, variants, module, err);
}

void w8a8_work(const ptxgen_w8a8_spec *s, uint32_t m, struct work *work)
{
    uint64_t each = ptxgen_w8a8_work_type(s) == PTXGEN_F64 ? 8 : 4;
    uint64_t x = ptxgen_element_size((ptxgen_element)s->x_type);
    uint64_t y = ptxgen_element_size((ptxgen_element)s->y_type);
    work->bytes = (uint64_t)s->n * s->k + (1u + s->bias) * each * s->n +
                  (s->asymmetric ? 4 * (uint64_t)s->n : 0) + x * m * s->k + y * m * s->n;
    work->flops = 2.0 * s->n * s->k * m;
}

static ptxgen_status describe(const void *options, const ptxgen_target *target, uint32_t m,
                              struct work *work, ptxgen_error *err)
{
    const struct w8a8_options *o = options;
    ptxgen_w8a8_plan plan;
    ptxgen_status status = w8a8_make_plan(o, m, target, &plan, err);
    if (status != PTXGEN_OK)
        return status;
    w8a8_work(&o->spec, m, work);
    work->entry = ptxgen_w8a8_entry(ptxgen_w8a8_choose(&plan, m));
    ptxgen_w8a8_explain(&plan, m, work->explanation, sizeof work->explanation);
    return ptxgen_w8a8_ctas(&plan, m, &work->grid, err);
}

static const struct argp spec_argp = {.options = spec_options, .parser = parse_spec};
static const struct argp data_argp = {.options = data_options, .parser = parse_data};

const struct family w8a8_family = {
    .name = "w8a8",
    .summary = "Linear layer with 8-bit weights; activations are quantised on the way",
    .kernels = ptxgen_w8a8_family,
    .spec_offset = offsetof(struct w8a8_options, spec),
    .options_size = sizeof(struct w8a8_options),
    .set_defaults = set_defaults,
    .spec_options = &spec_argp,
    .data_options = &data_argp,
    .emit = emit,
    .describe = describe,
    .run = w8a8_run,
    .run_random = w8a8_run_random,
    .set_shape = set_shape,
    .int8_peer = true,
    .bench = w8a8_bench,
};
