/* SPDX-License-Identifier: Apache-2.0 */
/* The marlin family in the command: its options. */
#include "../options.h"
#include "files.h"

#include <ptxgen/marlin.h>

static const char *const type_names[] = {"f16", "bf16", NULL};
static const char *const own_activations[] = {"none", "silu", "gelu", "gelu-tanh", NULL};

static const char *const tile[] = {"tile_m", "warp_n", "wn",   "wk",      "stages", "steps",
                                   "ctas",   "pass_m", "kind", "cluster", NULL};

static void parse_group(struct argp_state *state, const char *text, struct family_options *o)
{
    ((ptxgen_marlin_spec *)option_spec(o))->group_size = parse_group_size(state, text);
}

static const ptxgen_marlin_spec defaults = {.group_size = 128, .type = PTXGEN_F16};

#define AT(member) offsetof(ptxgen_marlin_spec, member)
static const struct option_row spec_rows[] = {
    {"k", "K", "Input features, the depth of the sums: a multiple of 16", OPTION_NUMBER, AT(k),
     .rules = OPTION_IS_K | OPTION_OF_FILE},
    {"n", "N", "Output features: a multiple of 8; with --swiglu of gate and of up each",
     OPTION_NUMBER, AT(n), .rules = OPTION_IS_N | OPTION_OF_FILE},
    {"group-size", "G",
     "How many of K share a scale: a multiple of 16 that divides K, or -1 for all (128, or what "
     "the file says)",
     OPTION_OTHER, .parse = parse_group},
    {"type", "TYPE",
     "Of x, y, scales, bias and residual: f16 (default, or the file's scales') or bf16",
     OPTION_CHOICE, AT(type), PTXGEN_F16, .choices = type_names},
    {"zeros", NULL, "With zero points", OPTION_FLAG, .at = AT(zeros)},
    {"act-order", NULL, "Groups take any of K (g_idx)", OPTION_FLAG, .at = AT(act_order)},
    {"swiglu", NULL, "y = silu(gate) * up, over two matrices", OPTION_FLAG, AT(epilogue),
     .value = PTXGEN_EPILOGUE_SWIGLU},
    {"activation", "NAME", "Of the sums: none (default), silu, gelu, gelu-tanh", OPTION_CHOICE,
     AT(activation), .choices = own_activations},
    {"bias", NULL, "Add a bias", OPTION_FLAG, .at = AT(bias)},
    {"residual", NULL, "Add a residual to y", OPTION_FLAG, .at = AT(residual)},
    {"max-m", "M", "The most tokens that will be launched (any)", OPTION_NUMBER, AT(max_m),
     .rules = OPTION_MOST_M},
    {"tile", "NAME=VALUE,...",
     "Use this tile instead of the plan's, for tuning, as tile_m=16, warp_n=64, wn=4, wk=2, "
     "stages=4, steps=1, ctas=1, pass_m=16, kind=0, cluster=1; kind: 0 mma.sync, 1 wgmma, 2 "
     "mma.sync with copies in bulk",
     OPTION_TILE, .tile = tile},
    {0},
};
#undef AT

static const struct option_row data_rows[] = {
    {"safetensors", "FILE",
     "Take weights from this safetensors file; of a sharded one, its index, folder or a shard",
     OPTION_NAME, .at = NAME_AT(file)},
    {"layer", "PREFIX",
     "Of the tensors' names: PREFIX.qweight, PREFIX.weight_packed or PREFIX.B, and so on",
     OPTION_NAME, NAME_AT(layer), .rules = OPTION_IN_FILE},
    {"up-layer", "PREFIX", "SwiGLU's other matrix", OPTION_NAME, .at = NAME_AT(up_layer)},
    {"format", "NAME",
     "gptq, gptq_v2, awq, pack-quantized or marlin, instead of what the file says", OPTION_NAME,
     .at = NAME_AT(format)},
    OPTION_FILE_ROWS,
    {0},
};

static void check_data(struct argp_state *state, struct family_options *o)
{
    ptxgen_marlin_spec *s = option_spec(o);
    if (o->names.up_layer)
        s->epilogue = PTXGEN_EPILOGUE_SWIGLU;
    else if (o->names.file && s->epilogue == PTXGEN_EPILOGUE_SWIGLU)
        argp_error(state, "--swiglu on a file needs --up-layer");
}

const struct family marlin_family = {
    .name = "marlin",
    .summary = "Matrix product with 4-bit weights and f16 or bf16 activations on tensor cores",
    .harness = &marlin_harness,
    .spec_rows = spec_rows,
    .data_rows = data_rows,
    .check_data = check_data,
    .file = &marlin_file,
    .defaults = &defaults,
    .recognise = marlin_recognise,
};
