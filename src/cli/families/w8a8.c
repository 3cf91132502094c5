/* SPDX-License-Identifier: Apache-2.0 */
/* The w8a8 family in the command: its options. */
#include "../options.h"
#include "files.h"

#include <ptxgen/w8a8.h>

static const char *const scale_names[] = {"dynamic", "tensor", "token", "quantised", NULL};

static const char *const tile[] = {"tile_m", "tile_n", "wm",      "wn",   "wk",
                                   "stages", "fused",  "cluster", "kind", NULL};

static void parse_types(struct argp_state *state, const char *text, struct family_options *o)
{
    ptxgen_w8a8_spec *s = option_spec(o);
    s->x_type = s->y_type = (uint8_t)parse_choice(state, "--dtype", text, element_type_names);
}

static void take_codes(struct argp_state *state, const char *text, struct family_options *o)
{
    ptxgen_w8a8_spec *s = option_spec(o);
    s->codes = parse_codes(state, text, &s->q_min, &s->q_max);
}

static const ptxgen_w8a8_spec defaults = {.x_type = PTXGEN_F16, .y_type = PTXGEN_F16};

#define AT(member) offsetof(ptxgen_w8a8_spec, member)
static const struct option_row spec_rows[] = {
    {"k", "K", "Input features", OPTION_NUMBER, AT(k), .rules = OPTION_IS_K | OPTION_OF_FILE},
    {"n", "N", "Output features; with --swiglu of gate and of up each, a multiple of 8",
     OPTION_NUMBER, AT(n), .rules = OPTION_IS_N | OPTION_OF_FILE},
    {"dtype", "TYPE", "Activations and outputs: f32, f16 (default), bf16, f64", OPTION_OTHER,
     .parse = parse_types},
    {"x-type", "TYPE", "Activations alone", OPTION_CHOICE, AT(x_type),
     .choices = element_type_names},
    {"y-type", "TYPE", "Outputs alone", OPTION_CHOICE, AT(y_type), .choices = element_type_names},
    {"scales", "KIND",
     "Of the activations: dynamic (default, a token from itself), tensor, token (given), quantised "
     "(x is codes, with a scale for each token)",
     OPTION_CHOICE, AT(scales), .choices = scale_names, .rules = OPTION_OF_FILE},
    {"asymmetric", NULL, "With zero points", OPTION_FLAG, .at = AT(asymmetric)},
    {"codes", "MIN,MAX|e4m3",
     "The range of s8 codes: magnitudes, as 128,127 (127,127); or weights and activations are e4m3",
     OPTION_OTHER, .parse = take_codes},
    {"e5m2", NULL, "With e4m3: weights are e5m2", OPTION_FLAG, AT(w_codes),
     .value = PTXGEN_W8A8_E5M2, .rules = OPTION_OF_FILE},
    {"groups", NULL,
     "With e4m3: a scale of x for each 128 of K of a token, of w for each 128 by 128", OPTION_FLAG,
     AT(group), .value = PTXGEN_W8A8_GROUP, .rules = OPTION_OF_FILE},
    {"swiglu", NULL, "y = silu(gate) * up: w has rows of gate and of up, eight of each in turn",
     OPTION_FLAG, AT(epilogue), .value = PTXGEN_EPILOGUE_SWIGLU},
    {"activation", "NAME", "Of the sums: none (default), silu, gelu, gelu-tanh, relu",
     OPTION_CHOICE, AT(activation), .choices = activation_kind_names},
    {"bias", NULL, "Add a bias", OPTION_FLAG, .at = AT(bias)},
    {"residual", NULL, "Add a residual to y", OPTION_FLAG, .at = AT(residual)},
    {"w-stride", "BYTES", "From one feature of w to the next (K)", OPTION_NUMBER,
     .at = AT(w_stride)},
    {"min-m", "M", "The fewest tokens launched", OPTION_NUMBER, AT(min_m), .rules = OPTION_LEAST_M},
    {"max-m", "M", "The most tokens launched", OPTION_NUMBER, AT(max_m), .rules = OPTION_MOST_M},
    {"tile", "NAME=VALUE,...",
     "Use this tile instead of the plan's, for tuning, as tile_m=16, tile_n=64, wm=1, wn=4, wk=2, "
     "stages=8, fused=0, cluster=1, kind=0; tile_n=0: an even share; kind=1: wgmma",
     OPTION_TILE, .tile = tile},
    {0},
};
#undef AT

static const struct option_row data_rows[] = {
    {"safetensors", "FILE",
     "Take the layer from this file, as compressed-tensors' int-quantized and float-quantized have "
     "it, whose codes are e4m3 (weights also e5m2), or DeepSeek's; of a sharded one, its index, "
     "folder or a shard",
     OPTION_NAME, .at = NAME_AT(file)},
    {"layer", "NAME",
     "Its tensors are NAME.weight, NAME.weight_scale or _scale_inv …; without it weight …",
     OPTION_NAME, .at = NAME_AT(layer)},
    OPTION_FILE_ROWS,
    {0},
};

const struct family w8a8_family = {
    .name = "w8a8",
    .summary = "Linear layer with 8-bit weights; activations are quantised on the way",
    .harness = &w8a8_harness,
    .spec_rows = spec_rows,
    .data_rows = data_rows,
    .file = &w8a8_file,
    .defaults = &defaults,
    .recognise = w8a8_recognise,
    .codes_peer = true,
};
