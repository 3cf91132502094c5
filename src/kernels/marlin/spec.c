/* SPDX-License-Identifier: Apache-2.0 */
#include "spec.h"

#include "../plan.h"

static ptxgen_status check_sizes(const ptxgen_marlin_spec *s, ptxgen_error *err)
{
    const struct {
        const char *name;
        uint32_t size, multiple;
    } sizes[] = {{"K", s->k, 16}, {"N", s->n, 8}};
    for (int i = 0; i < 2; i++) {
        if (sizes[i].size > INT32_MAX)
            return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED, "marlin: %s = %u is above %d",
                               sizes[i].name, sizes[i].size, INT32_MAX);
        if (sizes[i].size % sizes[i].multiple)
            return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                               "marlin: %s = %u is not a multiple of %u", sizes[i].name,
                               sizes[i].size, sizes[i].multiple);
    }
    return PTXGEN_OK;
}

static ptxgen_status check_group_size(const ptxgen_marlin_spec *s, ptxgen_error *err)
{
    if (s->group_size == PTXGEN_W4_PER_CHANNEL)
        return PTXGEN_OK;
    if (s->group_size <= 0 || s->group_size % 16)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "marlin: the group size %d is neither a multiple of 16 nor %d",
                           (int)s->group_size, PTXGEN_W4_PER_CHANNEL);
    if (s->k % (uint32_t)s->group_size)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "marlin: the group size %d does not divide K = %u", (int)s->group_size,
                           s->k);
    return PTXGEN_OK;
}

static ptxgen_status check_types(const ptxgen_marlin_spec *s, ptxgen_error *err)
{
    if (s->type != PTXGEN_F16 && s->type != PTXGEN_BF16)
        return ptxgen_fail(err, plan_refuses_enumerator(s->type <= PTXGEN_F64),
                           "marlin: the type %u is neither PTXGEN_F16 nor PTXGEN_BF16", s->type);
    if (s->epilogue > PTXGEN_EPILOGUE_SWIGLU)
        return ptxgen_fail(err, plan_refuses_enumerator(s->epilogue <= PTXGEN_EPILOGUE_GEGLU),
                           "marlin: %u is not an epilogue of this family", s->epilogue);
    if (s->activation > PTXGEN_ACTIVATION_GELU_TANH)
        return ptxgen_fail(err, plan_refuses_enumerator(s->activation <= PTXGEN_ACTIVATION_RELU),
                           "marlin: %u is not an activation of this family", s->activation);
    if (s->epilogue == PTXGEN_EPILOGUE_SWIGLU && s->activation != PTXGEN_ACTIVATION_NONE)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "marlin: SwiGLU has its own activation, but activation is %u",
                           s->activation);
    return PTXGEN_OK;
}

static ptxgen_status check_flags(const ptxgen_marlin_spec *s, ptxgen_error *err)
{
    const struct plan_flag flags[] = {{"zeros", s->zeros, 1},
                                      {"act_order", s->act_order, 1},
                                      {"bias", s->bias, 1},
                                      {"residual", s->residual, 1},
                                      {"reserved", s->reserved, 0}};
    return plan_check_flags("marlin", flags, sizeof flags / sizeof *flags, err);
}

ptxgen_status marlin_check_spec(const void *spec, ptxgen_error *err)
{
    ptxgen_status status;
    if (!spec)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "marlin: spec is NULL");
    if ((status = check_sizes(spec, err)) != PTXGEN_OK ||
        (status = check_group_size(spec, err)) != PTXGEN_OK ||
        (status = check_types(spec, err)) != PTXGEN_OK)
        return status;
    return check_flags(spec, err);
}
