/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes that the plan, the emitter, the reference and the launch of quantise share. */
#ifndef PTXGEN_QUANTISE_LAYOUT_H
#define PTXGEN_QUANTISE_LAYOUT_H

#include <ptxgen/quantise.h>

#include <stdbool.h>

/* The parameters of the entry, in order: addresses, then numbers. */
enum quantise_param {
    QUANTISE_X,
    QUANTISE_GAMMA,
    QUANTISE_RESIDUAL,
    QUANTISE_RESIDUAL_OUT,
    QUANTISE_CODES,
    QUANTISE_SCALES,
    QUANTISE_ZEROS, /* the last one of 64 bits */
    QUANTISE_X_STRIDE,
    QUANTISE_RESIDUAL_STRIDE,
    QUANTISE_RESIDUAL_OUT_STRIDE,
    QUANTISE_CODES_STRIDE,
    QUANTISE_SCALES_STRIDE,
    QUANTISE_ZEROS_STRIDE, /* of 32 bits, like those before it */
    QUANTISE_PARAMS
};

/* A thread takes 8 elements of a row at once. */
enum { QUANTISE_CHUNK = 8, QUANTISE_MOST_M = INT32_MAX };

static inline bool quantise_is_norm(const ptxgen_quantise_spec *s)
{
    return s->producer == PTXGEN_QUANTISE_RMSNORM;
}
static inline bool quantise_is_gated(const ptxgen_quantise_spec *s)
{
    return s->producer == PTXGEN_QUANTISE_SILU_MUL;
}
/* Elements of a row of x. */
static inline uint32_t quantise_x_columns(const ptxgen_quantise_spec *s)
{
    return quantise_is_gated(s) ? 2 * s->k : s->k;
}
/* Elements that share a scale, but for the last group. */
static inline uint32_t quantise_group_size(const ptxgen_quantise_spec *s)
{
    return s->group ? PTXGEN_QUANTISE_GROUP : s->k;
}
/* The spec of the rows that are quantised, as w8a8 knows them, with its range. */
ptxgen_w8a8_spec quantise_row_spec(const ptxgen_quantise_spec *s);
/* Refuses a spec that no target can have. */
ptxgen_status quantise_check_spec(const ptxgen_quantise_spec *s, ptxgen_error *err);
/* Threads of a CTA: one for each chunk, up to 1024, in whole warps. */
uint32_t quantise_threads(const ptxgen_quantise_spec *s);

/* Whether ptxgen_quantise_make_plan has filled the plan. */
static inline bool quantise_is_plan(const void *plan)
{
    const ptxgen_quantise_plan *p = plan;
    return p && p->spec.k && p->threads && p->threads == quantise_threads(&p->spec);
}
/* The refusal of more tokens than a grid has CTAs. */
ptxgen_status quantise_refuse_m(uint64_t m, ptxgen_error *err);
void quantise_emit_entry(const ptxgen_quantise_plan *plan, ptx_module *module);

#endif
