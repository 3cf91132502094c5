/* SPDX-License-Identifier: Apache-2.0 */
/* The dense family in the command: options, plan, what a launch costs. */
#include "dense.h"

#include "../options.h"

#include <stddef.h>
#include <stdio.h>

enum {
    KEY_K = OPTION_FAMILY_KEYS,
    KEY_M,
    KEY_DTYPE,
    KEY_MAX_N,
    KEY_ACTIVATION,
    KEY_BIAS,
    KEY_RESIDUAL,
    KEY_TILE
};

static const char *const type_names[] = {"f32", "f16", "bf16", NULL};
static const char *const activation_names[] = {"none", "silu", "gelu", "gelu-tanh", "relu", NULL};

/* ---- options ---- */

static const struct argp_option spec_options[] = {
    {.name = "k", .key = KEY_K, .arg = "K", .doc = "Columns of X and W"},
    {.name = "m", .key = KEY_M, .arg = "M", .doc = "Rows of W: output features; --n are rows of X"},
    {.name = "dtype",
     .key = KEY_DTYPE,
     .arg = "TYPE",
     .doc = "Of all matrices: f16 (default), bf16 or f32"},
    {.name = "max-n", .key = KEY_MAX_N, .arg = "N", .doc = "The most rows of X launched (any)"},
    {.name = "activation",
     .key = KEY_ACTIVATION,
     .arg = "NAME",
     .doc = "Of the sums: none (default), silu, gelu, gelu-tanh, relu"},
    {.name = "bias", .key = KEY_BIAS, .doc = "Add a bias"},
    {.name = "residual", .key = KEY_RESIDUAL, .doc = "Add a residual to Y"},
    {.name = "tile",
     .key = KEY_TILE,
     .arg = "NAME=VALUE,...",
     .doc = "Use this tile instead of the plan's, for tuning, as warp_m=64, warp_n=64, wm=4, wn=2, "
            "wk=1, ctas=1, stages=0, pass_n=32, kind=0, cluster=1, split=1; stages=0: all that "
            "fit, kind=1: wgmma, 2: mma.sync from copies in bulk"},
    {0},
};

static void read_tile(struct argp_state *state, const char *text, ptxgen_dense_variant *tile)
{
    static char *const names[] = {"warp_m", "warp_n", "wm",   "wn",      "wk",    "ctas",
                                  "stages", "pass_n", "kind", "cluster", "split", NULL};
    uint32_t *const members[] = {&tile->warp_m, &tile->warp_n,  &tile->wm,     &tile->wn,
                                 &tile->wk,     &tile->ctas,    &tile->stages, &tile->pass_n,
                                 &tile->kind,   &tile->cluster, &tile->split};
    *tile = (ptxgen_dense_variant){.warp_m = 64, .wm = 1, .wn = 1, .wk = 1, .pass_n = 16};
    parse_tile(state, text, names, members);
}

static error_t parse_spec(int key, char *arg, struct argp_state *state)
{
    struct dense_options *o = state->input;
    ptxgen_dense_spec *s = &o->spec;
    switch (key) {
    case KEY_K: s->k = (uint32_t)parse_number(state, "--k", arg, 1, UINT32_MAX); return 0;
    case KEY_M: s->m = (uint32_t)parse_number(state, "--m", arg, 1, UINT32_MAX); return 0;
    case KEY_DTYPE: s->type = (uint8_t)parse_choice(state, "--dtype", arg, type_names); return 0;
    case KEY_MAX_N:
        s->max_n = (uint32_t)parse_number(state, "--max-n", arg, 1, UINT32_MAX);
        return 0;
    case KEY_ACTIVATION:
        s->activation = (uint8_t)parse_choice(state, "--activation", arg, activation_names);
        return 0;
    case KEY_BIAS: s->bias = 1; return 0;
    case KEY_RESIDUAL: s->residual = 1; return 0;
    case KEY_TILE: read_tile(state, arg, &o->tile); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static void set_defaults(void *options)
{
    ((struct dense_options *)options)->spec.type = PTXGEN_F16;
}

static void set_shape(void *options, uint32_t k, uint32_t m)
{
    ptxgen_dense_spec *s = &((struct dense_options *)options)->spec;
    s->k = k;
    s->m = m;
}

/* ---- the spec ---- */

ptxgen_status dense_make_plan(const struct dense_options *o, uint32_t n,
                              const ptxgen_target *target, ptxgen_dense_plan *plan,
                              ptxgen_error *err)
{
    const ptxgen_dense_spec *s = &o->spec;
    if (!s->k || !s->m)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "dense needs --m and --k");
    ptxgen_status status = ptxgen_dense_make_plan(s, target, plan, err);
    if (status == PTXGEN_OK && o->tile.warp_m)
        status = ptxgen_dense_use_tile(plan, &o->tile, err);
    if (status != PTXGEN_OK || !n)
        return status;
    const ptxgen_dense_variant *v = ptxgen_dense_choose(plan, n);
    if (!v)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "dense: N = %u is above the %u rows of --max-n", n, s->max_n);
    plan->variants[0] = *v;
    plan->variant_count = 1;
    return PTXGEN_OK;
}

void dense_name(const ptxgen_dense_spec *s, uint32_t n, char *text, size_t size)
{
    snprintf(text, size, "M=%u N=%u K=%u %s%s%s%s%s", s->m, n, s->k, type_names[s->type],
             s->activation ? " " : "", s->activation ? activation_names[s->activation] : "",
             s->bias ? " bias" : "", s->residual ? " residual" : "");
}

void dense_work(const ptxgen_dense_spec *s, uint32_t n, struct work *work)
{
    uint64_t elements = (uint64_t)n * s->k + (uint64_t)s->m * s->k +
                        (1 + s->residual) * (uint64_t)n * s->m + (uint64_t)s->bias * s->m;
    work->bytes = elements * ptxgen_element_size((ptxgen_element)s->type);
    work->flops = 2.0 * s->m * s->k * n;
}

/* ---- emit and describe ---- */

static ptxgen_status emit(const void *options, const ptxgen_target *target, uint32_t n,
                          ptx_module *module, ptxgen_error *err)
{
    ptxgen_dense_plan plan;
    ptxgen_status status = dense_make_plan(options, n, target, &plan, err);
    return status == PTXGEN_OK ? ptxgen_dense_emit(&plan, ~0u, module, err) : status;
}

static ptxgen_status describe(const void *options, const ptxgen_target *target, uint32_t n,
                              struct work *work, ptxgen_error *err)
{
    ptxgen_dense_plan plan;
    ptxgen_status status = dense_make_plan(options, n, target, &plan, err);
    if (status != PTXGEN_OK)
        return status;
    dense_work(&plan.spec, n, work);
    work->entry = ptxgen_dense_entry(&plan.variants[0]);
    return ptxgen_dense_ctas(&plan, n, &work->grid, err);
}

static const struct argp spec_argp = {.options = spec_options, .parser = parse_spec};

const struct family dense_family = {
    .name = "dense",
    .summary = "Matrix product with dense weights of f16, bf16 or f32 on tensor cores",
    .rows = "n",
    .options_size = sizeof(struct dense_options),
    .spec_offset = offsetof(struct dense_options, spec),
    .kernels = ptxgen_dense_family,
    .set_defaults = set_defaults,
    .spec_options = &spec_argp,
    .emit = emit,
    .describe = describe,
    .run = dense_run,
    .run_random = dense_run_random,
    .set_shape = set_shape,
    .bench = dense_bench,
};
