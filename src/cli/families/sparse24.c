/* SPDX-License-Identifier: Apache-2.0 */
/* The sparse24 family in the command: its options. */
#include "../options.h"
#include "files.h"

#include <ptxgen/sparse24.h>

static const char *const type_names[] = {"f32", "f16", "bf16", "s8", NULL};

static const char *const tile[] = {"tile_m", "wm",     "wn",   "wk",     "cluster",
                                   "stages", "pass_m", "kind", "warp_n", NULL};

static void parse_tier(struct argp_state *state, const char *text, struct family_options *o)
{
    ((ptxgen_sparse24_spec *)option_spec(o))->tier =
        (uint8_t)parse_number(state, "--tier", text, 1, 2);
}

static void take_inflate(struct argp_state *state, const char *text, struct family_options *o)
{
    (void)state, (void)text;
    o->prologue = true;
    ((ptxgen_sparse24_spec *)option_spec(o))->tier = 1;
}

static const ptxgen_sparse24_spec defaults = {.type = PTXGEN_SPARSE24_F16};

static void take_repack(struct argp_state *state, const char *text, struct family_options *o)
{
    (void)state, (void)text;
    o->prologue = true;
    ((ptxgen_sparse24_spec *)option_spec(o))->plain = 1;
}

#define AT(member) offsetof(ptxgen_sparse24_spec, member)
static const struct option_row spec_rows[] = {
    {"k", "K", "Input features: a multiple of 8", OPTION_NUMBER, AT(k),
     .rules = OPTION_IS_K | OPTION_OF_FILE},
    {"n", "N", "Output features", OPTION_NUMBER, AT(n), .rules = OPTION_IS_N | OPTION_OF_FILE},
    {"dtype", "TYPE", "Of x and w: f16 (default), bf16, s8 or f32", OPTION_CHOICE, AT(type),
     .choices = type_names, .rules = OPTION_OF_FILE},
    {"y-type", "TYPE", "Of y, bias and residual with s8: f16 (default) or bf16", OPTION_CHOICE,
     AT(y_type), .choices = type_names},
    {"max-m", "M", "The most tokens that will be launched (any)", OPTION_NUMBER, AT(max_m),
     .rules = OPTION_MOST_M},
    {"activation", "NAME", "Of the sums: none (default), silu, gelu, gelu-tanh, relu",
     OPTION_CHOICE, AT(activation), .choices = activation_kind_names},
    {"bias", NULL, "Add a bias", OPTION_FLAG, .at = AT(bias)},
    {"residual", NULL, "Add a residual to y", OPTION_FLAG, .at = AT(residual)},
    {"tier", "1|2",
     "1: inflate w, then a dense product; 2: sparse tensor cores (but for f32, which has 1)",
     OPTION_OTHER, .parse = parse_tier},
    {"inflate", NULL, "Of bench, tier 1: time the inflating alone, against a copy's bytes",
     OPTION_OTHER, .parse = take_inflate},
    {"plain", NULL, "Launch with values and metadata as they are, in place of a packed w",
     OPTION_FLAG, .at = AT(plain)},
    {"repack", NULL, "Of bench, tier 2: time the packing on the device alone, against its bytes",
     OPTION_OTHER, .parse = take_repack},
    {"tile", "NAME=VALUE,...",
     "Use this tile instead of the plan's, for tuning, as tile_m=16, wm=1, wn=4, wk=2, cluster=1, "
     "stages=4, pass_m=16, kind=0, warp_n=32; stages=0: all that fit, kind=1: wgmma",
     OPTION_TILE, .tile = tile},
    {0},
};
#undef AT

static const struct option_row data_rows[] = {
    {"safetensors", "FILE",
     "Take the weight from this file (of a sharded one, its index, folder or a shard), compressed "
     "in any form, or dense and 2:4 sparse",
     OPTION_NAME, .at = NAME_AT(file)},
    {"layer", "PREFIX",
     "Its tensors: PREFIX.sparse with PREFIX.meta_cutlass (meta_bytes, meta_nibbles), "
     "PREFIX.compressed with PREFIX.bitmask, PREFIX.dense, or PREFIX itself, or the same of "
     "PREFIX.weight; PREFIX.bias and, of I8, PREFIX.weight_scale and PREFIX.input_scale where "
     "they are there",
     OPTION_NAME, NAME_AT(layer), .rules = OPTION_IN_FILE},
    OPTION_FILE_ROWS,
    {0},
};

static void finish(struct family_options *o)
{
    ptxgen_sparse24_spec *s = option_spec(o);
    if (!s->y_type)
        s->y_type = s->type == PTXGEN_SPARSE24_S8 ? PTXGEN_F16 : s->type;
}

const struct family sparse24_family = {
    .name = "sparse24",
    .summary = "Matrix product with 2:4 sparse weights on sparse tensor cores",
    .harness = &sparse24_harness,
    .spec_rows = spec_rows,
    .data_rows = data_rows,
    .finish = finish,
    .file = &sparse24_file,
    .defaults = &defaults,
    .recognise = sparse24_recognise,
};
