/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reference of a plan's kernel: the problem in the terms of reference.h, with the bound's
 * figures read off the variant that serves this M.
 */
#include "layout.h"
#include "reference.h"

#include <stdlib.h>

/*
 * The number of additions for which a sparse m16n8k32 counts: two products of 8 kept terms, 8 + 3
 * each, if the hardware computes it in two steps; one of 16 terms counts less, 16 + 3.
 */
enum { MMA_DEPTH = 22 };

static const double activation_error = 0x1p-20; /* of gemm/activation.h, relative to |v| */

/*
 * The most additions that a term passes on its way into a sum: the mma steps of a warp along K,
 * then the warps along K, then the CTAs that share the tile, of which there is at most one for each
 * stage.
 */
static unsigned depth_of(const ptxgen_sparse24_spec *s, const ptxgen_tile *v)
{
    uint32_t stages = sparse24_stages_along_k(s, v);
    return MMA_DEPTH * stages * sparse24_mmas(s) + v->wk * v->cluster - 1 + stages - 1;
}

static ptxgen_status check(const ptxgen_sparse24_plan *plan, const ptxgen_sparse24_operands *o,
                           ptxgen_error *err)
{
    const ptxgen_sparse24_spec *s = &plan->spec;
    const struct {
        const char *name;
        const void *given;
        bool needed;
    } arrays[] = {{"bias", o->bias, s->bias},
                  {"residual", o->residual, s->residual && o->m},
                  {"x_scale", o->x_scale, sparse24_is_s8(s) && o->m},
                  {"w_scale", o->w_scale, sparse24_is_s8(s)}};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        if (arrays[i].needed && !arrays[i].given)
            return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "sparse24: %s is NULL",
                               arrays[i].name);
    if (sparse24_tier(s) == 2 && o->m && !ptxgen_sparse24_choose(plan, o->m))
        return gemm_refuse_m(&sparse24_planner, plan, o->m, err);
    return PTXGEN_OK;
}

static struct sparse24_problem problem_of(const ptxgen_sparse24_plan *plan,
                                          const ptxgen_sparse24_operands *o)
{
    const ptxgen_sparse24_spec *s = &plan->spec;
    bool scaled = sparse24_is_s8(s);
    bool smooth = s->activation > PTXGEN_ACTIVATION_NONE && s->activation < PTXGEN_ACTIVATION_RELU;
    return (struct sparse24_problem){
        .w = {(ptxgen_sparse24_type)s->type, s->n, s->k},
        .values = o->values,
        .form = o->form,
        .metadata = o->metadata,
        .m = o->m,
        .x = o->x,
        .x_stride = o->x_stride ? o->x_stride : s->k,
        .x_scale = scaled ? o->x_scale : NULL,
        .w_scale = scaled ? o->w_scale : NULL,
        .activation = (ptxgen_activation)s->activation,
        .y_type = (ptxgen_element)s->y_type,
        .residual = s->residual ? o->residual : NULL,
        .residual_stride = o->residual_stride ? o->residual_stride : s->n,
        .cut_sums = plan->target.ptx.sm >= 90 ? 1 : 2,
        .dot_depth = depth_of(s, ptxgen_sparse24_choose(plan, o->m ? o->m : 1)),
        .stepwise = scaled && !smooth,
        .activation_error = smooth ? activation_error : 0,
    };
}

/* Tier 1: the dense product with the decompressed weight. */
static ptxgen_status dense_reference(const ptxgen_sparse24_plan *plan,
                                     const ptxgen_sparse24_operands *o, double *y, double *bound,
                                     ptxgen_spread *spread, ptxgen_error *err)
{
    const ptxgen_sparse24_spec *s = &plan->spec;
    const ptxgen_sparse24_shape shape = {(ptxgen_sparse24_type)s->type, s->n, s->k};
    size_t bytes;
    ptxgen_status status = ptxgen_sparse24_dense_bytes(&shape, &bytes, err);
    void *w = status == PTXGEN_OK ? malloc(bytes) : NULL;
    if (status == PTXGEN_OK && !w)
        status = ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY,
                             "sparse24: no memory for a dense weight of %zu bytes", bytes);
    if (status == PTXGEN_OK)
        status = ptxgen_sparse24_decompress(&shape, o->values, o->form, o->metadata,
                                            (ptxgen_span){w, bytes}, err);
    const ptxgen_dense_operands dense = {.m = o->m,
                                         .x = o->x,
                                         .w = w,
                                         .bias = o->bias,
                                         .residual = o->residual,
                                         .x_stride = o->x_stride,
                                         .residual_stride = o->residual_stride};
    ptxgen_dense_plan part = plan->dense; /* a caller may ask for some features: see `spec` */
    part.spec.n = s->n;
    if (status == PTXGEN_OK)
        status = ptxgen_dense_reference_spread(&part, &dense, y, bound, spread, err);
    free(w);
    return status;
}

ptxgen_status ptxgen_sparse24_reference(const ptxgen_sparse24_plan *plan,
                                        const ptxgen_sparse24_operands *operands, double *y,
                                        double *bound, ptxgen_error *err)
{
    return ptxgen_sparse24_reference_spread(plan, operands, y, bound, NULL, err);
}

ptxgen_status ptxgen_sparse24_reference_spread(const ptxgen_sparse24_plan *plan,
                                               const ptxgen_sparse24_operands *operands, double *y,
                                               double *bound, ptxgen_spread *spread,
                                               ptxgen_error *err)
{
    if (!sparse24_is_plan(plan) || !operands || (operands->m && (!y || !bound)))
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "sparse24: a plan that was made, operands, y and bound must be given");
    ptxgen_status status = check(plan, operands, err);
    if (status != PTXGEN_OK)
        return status;
    if (sparse24_tier(&plan->spec) == 1)
        return dense_reference(plan, operands, y, bound, spread, err);
    struct sparse24_problem p = problem_of(plan, operands);
    float *bias = NULL;
    if (plan->spec.bias) {
        bias = malloc(plan->spec.n * sizeof *bias);
        if (!bias)
            return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "sparse24: no memory for %u biases",
                               plan->spec.n);
        for (size_t i = 0; i < plan->spec.n; i++)
            bias[i] = (float)ptxgen_element_load(p.y_type, operands->bias, i);
        p.bias = bias;
    }
    status = sparse24_reference(&p, y, bound, spread, err);
    free(bias);
    return status;
}
