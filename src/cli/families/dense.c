/* SPDX-License-Identifier: Apache-2.0 */
/* The dense family in the command: its options. */
#include "../family.h"

#include <ptxgen/dense.h>

static const char *const type_names[] = {"f32", "f16", "bf16", NULL};

static const char *const tile[] = {"warp_m", "warp_n", "wm",   "wn",      "wk",    "ctas",
                                   "stages", "pass_m", "kind", "cluster", "split", NULL};

static const ptxgen_dense_spec defaults = {.type = PTXGEN_F16};

#define AT(member) offsetof(ptxgen_dense_spec, member)
static const struct option_row spec_rows[] = {
    {"k", "K", "Input features", OPTION_NUMBER, AT(k), .rules = OPTION_IS_K},
    {"n", "N", "Output features", OPTION_NUMBER, AT(n), .rules = OPTION_IS_N},
    {"dtype", "TYPE", "Of all matrices: f16 (default), bf16 or f32", OPTION_CHOICE, AT(type),
     .choices = type_names},
    {"max-m", "M", "The most tokens that will be launched (any)", OPTION_NUMBER, AT(max_m),
     .rules = OPTION_MOST_M},
    {"activation", "NAME", "Of the sums: none (default), silu, gelu, gelu-tanh, relu",
     OPTION_CHOICE, AT(activation), .choices = activation_kind_names},
    {"bias", NULL, "Add a bias", OPTION_FLAG, .at = AT(bias)},
    {"residual", NULL, "Add a residual to y", OPTION_FLAG, .at = AT(residual)},
    {"tile", "NAME=VALUE,...",
     "Use this tile instead of the plan's, for tuning, as warp_m=64, warp_n=64, wm=2, wn=4, wk=1, "
     "ctas=1, stages=0, pass_m=32, kind=0, cluster=1, split=1; stages=0: all that fit, kind=1: "
     "wgmma, 2: mma.sync from copies in bulk",
     OPTION_TILE, .tile = tile},
    {0},
};
#undef AT

/* A matrix of floats: its names say nothing of what is done with it. */
static bool recognise(const ptxgen_files *files, const ptxgen_tensor *w, struct family_options *o,
                      struct recognised_names *names)
{
    static const ptxgen_dtype dtypes[] = {[PTXGEN_F32] = PTXGEN_DTYPE_F32,
                                          [PTXGEN_F16] = PTXGEN_DTYPE_F16,
                                          [PTXGEN_BF16] = PTXGEN_DTYPE_BF16};
    ptxgen_dense_spec *s = option_spec(o);
    (void)files, (void)names;
    if (w->ndim != 2 || w->shape[0] > INT32_MAX || w->shape[1] > INT32_MAX)
        return false;
    s->n = (uint32_t)w->shape[0];
    s->k = (uint32_t)w->shape[1];
    for (uint8_t type = PTXGEN_F32; type <= PTXGEN_BF16; type++)
        if (dtypes[type] == w->dtype) {
            s->type = type;
            return true;
        }
    return false;
}

const struct family dense_family = {
    .name = "dense",
    .summary = "Matrix product with dense weights of f16, bf16 or f32 on tensor cores",
    .harness = &dense_harness,
    .spec_rows = spec_rows,
    .defaults = &defaults,
    .recognise = recognise,
};
