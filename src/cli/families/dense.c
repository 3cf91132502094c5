/* SPDX-License-Identifier: Apache-2.0 */
/* The dense family in the command: options, plan, what a launch costs. */
#include "dense.h"

#include "../options.h"

#include <stddef.h>
#include <stdio.h>

enum {
    KEY_K = OPTION_FAMILY_KEYS,
    KEY_N,
    KEY_DTYPE,
    KEY_MAX_M,
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
    {.name = "n", .key = KEY_N, .arg = "N", .doc = "Rows of W: output features; --m are rows of X"},
    {.name = "dtype",
     .key = KEY_DTYPE,
     .arg = "TYPE",
     .doc = "Of all matrices: f16 (default), bf16 or f32"},
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
    {.name = "tile",
     .key = KEY_TILE,
     .arg = "NAME=VALUE,...",
     .doc = "Use this tile instead of the plan's, for tuning, as warp_m=64, warp_n=64, wm=2, wn=4, "
            "wk=1, ctas=1, stages=0, pass_m=32, kind=0, cluster=1, split=1; stages=0: all that "
            "fit, kind=1: wgmma, 2: mma.sync from copies in bulk"},
    {0},
};

static void read_tile(struct argp_state *state, const char *text, ptxgen_dense_variant *tile)
{
    static char *const names[] = {"warp_m", "warp_n", "wm",   "wn",      "wk",    "ctas",
                                  "stages", "pass_m", "kind", "cluster", "split", NULL};
    uint32_t *const members[] = {&tile->warp_m, &tile->warp_n,  &tile->wm,     &tile->wn,
                                 &tile->wk,     &tile->ctas,    &tile->stages, &tile->pass_m,
                                 &tile->kind,   &tile->cluster, &tile->split};
    *tile = (ptxgen_dense_variant){.warp_n = 64, .wm = 1, .wn = 1, .wk = 1, .pass_m = 16};
    parse_tile(state, text, names, members);
}

static error_t parse_spec(int key, char *arg, struct argp_state *state)
{
    struct dense_options *o = state->input;
    ptxgen_dense_spec *s = &o->spec;
    switch (key) {
    case KEY_K: s->k = (uint32_t)parse_number(state, "--k", arg, 1, UINT32_MAX); return 0;
    case KEY_N: s->n = (uint32_t)parse_number(state, "--n", arg, 1, UINT32_MAX); return 0;
    case KEY_DTYPE: s->type = (uint8_t)parse_choice(state, "--dtype", arg, type_names); return 0;
    case KEY_MAX_M:
        s->max_m = (uint32_t)parse_number(state, "--max-m", arg, 1, UINT32_MAX);
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

static void set_shape(void *options, uint32_t k, uint32_t n)
{
    ptxgen_dense_spec *s = &((struct dense_options *)options)->spec;
    s->k = k;
    s->n = n;
}

/* ---- the spec ---- */

ptxgen_status dense_make_plan(const struct dense_options *o, uint32_t m,
                              const ptxgen_target *target, ptxgen_dense_plan *plan,
                              ptxgen_error *err)
{
    const ptxgen_dense_spec *s = &o->spec;
    if (!s->k || !s->n)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "dense needs --k and --n");
    ptxgen_status status = ptxgen_dense_make_plan(s, target, plan, err);
    if (status == PTXGEN_OK && o->tile.warp_m)
        status = ptxgen_dense_use_tile(plan, &o->tile, err);
    if (status != PTXGEN_OK || !m)
        return status;
    const ptxgen_dense_variant *v = ptxgen_dense_choose(plan, m);
    if (!v)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "dense: M = %u is above the %u tokens of --max-m", m, s->max_m);
    plan->variants[0] = *v;
    plan->variant_count = 1;
    return PTXGEN_OK;
}

void dense_name(const ptxgen_dense_spec *s, uint32_t m, char *text, size_t size)
{
    snprintf(text, size, "K=%u N=%u M=%u %s%s%s%s%s", s->k, s->n, m, type_names[s->type],
             s->activation ? " " : "", s->activation ? activation_names[s->activation] : "",
             s->bias ? " bias" : "", s->residual ? " residual" : "");
}

void dense_work(const ptxgen_dense_spec *s, uint32_t m, struct work *work)
{
    uint64_t elements = (uint64_t)m * s->k + (uint64_t)s->n * s->k +
                        (1 + s->residual) * (uint64_t)m * s->n + (uint64_t)s->bias * s->n;
    work->bytes = elements * ptxgen_element_size((ptxgen_element)s->type);
    work->flops = 2.0 * m * s->n * s->k;
}

/* ---- emit and describe ---- */

static ptxgen_status emit(const void *options, const ptxgen_target *target, uint32_t m,
                          ptx_module *module, ptxgen_error *err)
{
    ptxgen_dense_plan plan;
    ptxgen_status status = dense_make_plan(options, m, target, &plan, err);
    return status == PTXGEN_OK ? ptxgen_dense_emit(&plan, ~0u, module, err) : status;
}

static ptxgen_status describe(const void *options, const ptxgen_target *target, uint32_t m,
                              struct work *work, ptxgen_error *err)
{
    ptxgen_dense_plan plan;
    ptxgen_status status = dense_make_plan(options, m, target, &plan, err);
    if (status != PTXGEN_OK)
        return status;
    dense_work(&plan.spec, m, work);
    work->entry = ptxgen_dense_entry(&plan.variants[0]);
    return ptxgen_dense_ctas(&plan, m, &work->grid, err);
}

static const struct argp spec_argp = {.options = spec_options, .parser = parse_spec};

const struct family dense_family = {
    .name = "dense",
    .summary = "Matrix product with dense weights of f16, bf16 or f32 on tensor cores",
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
