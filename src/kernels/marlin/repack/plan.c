/* SPDX-License-Identifier: Apache-2.0 */
#include "../../half.h"
#include "../../plan.h"
#include "../formats/checkpoint.h"
#include "../formats/group_order.h"
#include "../formats/scale_range.h"
#include "../spec.h"
#include "layout.h"

enum { MOST_N = 1 << 28 }; /* a line then has at most 2^31 bytes */

static const struct repack_shape shapes[] = {
    [PTXGEN_W4_GPTQ_V1] = {.lines = 8, .line_bytes = 1024, .rows_per_line = 8},
    [PTXGEN_W4_GPTQ_V2] = {.lines = 8, .line_bytes = 1024, .rows_per_line = 8},
    [PTXGEN_W4_AWQ] = {.lines = 64, .line_bytes = 128, .gap = 16, .rows_per_line = 1},
    [PTXGEN_W4_PACK_QUANTIZED] = {.lines = 64, .line_bytes = 128, .gap = 16, .along_k = true},
    [PTXGEN_W4_MARLIN] = {.lines = 4, .line_bytes = 2048, .rows_per_line = 16},
};

const struct repack_shape *marlin_repack_shape(const ptxgen_marlin_repack_spec *spec)
{
    return &shapes[spec->format];
}

static uint32_t divide_up(uint32_t x, uint32_t divisor)
{
    return x / divisor + (x % divisor != 0);
}

struct repack_grid marlin_repack_grid(const ptxgen_marlin_repack_spec *spec)
{
    const ptxgen_marlin_spec product = marlin_repack_product(spec);
    struct repack_grid grid = {.strips = REPACK_PARTS, .steps = 1};
    if (marlin_repack_shape(spec)->along_k)
        grid.strips = 1, grid.steps = REPACK_PARTS;
    grid.along_n = divide_up(marlin_strips(&product), grid.strips);
    grid.along_k = divide_up(marlin_steps(&product), grid.steps);
    grid.group_blocks = divide_up(marlin_groups(&product), REPACK_CTA_GROUPS);
    return grid;
}

/*
 * Columns are an odd number of chunks apart in shared memory, so that concurrent reads of lanes are
 * in different banks.
 */
struct repack_columns marlin_repack_columns(const ptxgen_marlin_repack_plan *plan)
{
    enum { CHUNK = 16 };
    const ptxgen_marlin_spec product = marlin_repack_product(&plan->spec);
    uint32_t chunks = divide_up(plan->spec.k / 2, CHUNK) | 1;
    struct repack_columns c = {.pitch = chunks * CHUNK};
    if (!plan->spec.act_order || !marlin_repack_shape(&plan->spec)->along_k ||
        chunks > plan_shared_limit(&plan->target, 1) / (CHUNK * MARLIN_TILE))
        return c;
    c.used = true;
    c.bytes = c.pitch * MARLIN_TILE;
    c.ctas = marlin_strips(&product) * (MARLIN_STRIP / MARLIN_TILE);
    return c;
}

static ptxgen_status check_format(const ptxgen_marlin_repack_spec *s, ptxgen_error *err)
{
    const struct w4_format *format = w4_format_of((ptxgen_w4_format)s->format);
    if (!format)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "marlin_repack: %u is not the number of a 4-bit format", s->format);
    if (s->n % format->n_multiple)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "marlin_repack: N = %u is not a multiple of %zu, which %s needs", s->n,
                           format->n_multiple, format->name);
    if (s->n > MOST_N)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED, "marlin_repack: N = %u is above %d", s->n,
                           MOST_N);
    if (s->act_order && !format->tensors[W4_G_IDX])
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "marlin_repack: act_order is 1, but %s has no g_idx", format->name);
    if (s->scale_type > PTXGEN_BF16)
        return ptxgen_fail(err, plan_refuses_enumerator(s->scale_type <= PTXGEN_F64),
                           "marlin_repack: the scales' type %u is none of PTXGEN_F32, PTXGEN_F16 "
                           "and PTXGEN_BF16",
                           s->scale_type);
    return s->reserved[0] || s->reserved[1]
               ? ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                             "marlin_repack: reserved is not 0; zero a spec before filling it in")
               : PTXGEN_OK;
}

static ptxgen_status check_spec(const ptxgen_marlin_repack_spec *spec, ptxgen_error *err)
{
    const ptxgen_marlin_spec product = marlin_repack_product(spec);
    ptxgen_status status = marlin_check_spec(&product, err);
    if (status == PTXGEN_OK && (!product.k || !product.n))
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "marlin_repack: K = %u and N = %u; there is nothing to pack", product.k,
                           product.n);
    return status == PTXGEN_OK ? check_format(spec, err) : status;
}

bool marlin_repack_is_plan(const void *of)
{
    const ptxgen_marlin_repack_plan *plan = of;
    return plan && check_spec(&plan->spec, NULL) == PTXGEN_OK;
}

ptxgen_status ptxgen_marlin_repack_make_plan(const ptxgen_marlin_repack_spec *spec,
                                             const ptxgen_target *target,
                                             ptxgen_marlin_repack_plan *plan, ptxgen_error *err)
{
    if (!spec || !target || !plan)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "marlin_repack: spec, target and plan must be given");
    ptxgen_status status = check_spec(spec, err);
    if (status == PTXGEN_OK)
        status = plan_check_target("marlin_repack", target, err);
    if (status == PTXGEN_OK)
        *plan = (ptxgen_marlin_repack_plan){.spec = *spec, .target = *target};
    return status;
}

ptxgen_status ptxgen_marlin_repack_verdict(const ptxgen_marlin_repack_spec *spec, uint64_t refused,
                                           ptxgen_error *err)
{
    if (!spec)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "marlin_repack: spec must be given");
    ptxgen_status status = check_spec(spec, err);
    if (status != PTXGEN_OK || !refused)
        return status;
    const ptxgen_marlin_spec product = marlin_repack_product(spec);
    uint32_t given_bits = (uint32_t)refused, index = UINT32_MAX - (uint32_t)(refused >> 32);
    uint64_t scales = marlin_repack_scales(spec),
             each = marlin_gated(&product) ? scales / 2 : scales;
    float given;
    memcpy(&given, &given_bits, sizeof given);
    if (!marlin_repack_has_places(spec))
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "marlin_repack: a scale, %g, is past the ends that marlin admits",
                           (double)given);
    struct marlin_scale s = {
        .matrix = index >= each            ? "up"
                  : marlin_gated(&product) ? "gate"
                                           : "weights",
        .group = index % each / spec->n,
        .feature = index % each % spec->n,
        .zero = spec->zeros ? MARLIN_UNKNOWN_ZERO : PTXGEN_W4_SYMMETRIC_ZERO,
        .given = (double)given,
        .stored = ptxgen_element_round((ptxgen_element)spec->type, (double)given),
    };
    if (index < scales)
        status = marlin_check_scale((ptxgen_element)spec->type, &s, err);
    if (status != PTXGEN_OK)
        return status;
    return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                       "marlin_repack: 0x%llx is not what a launch of this spec leaves in refused",
                       (unsigned long long)refused);
}

ptxgen_status ptxgen_marlin_row_order(const ptxgen_marlin_repack_spec *spec, const int32_t *g_idx,
                                      uint32_t *order, ptxgen_error *err)
{
    if (!spec || !g_idx || !order)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "marlin_repack: spec, g_idx and order must be given");
    ptxgen_status status = check_spec(spec, err);
    if (status != PTXGEN_OK)
        return status;
    const ptxgen_marlin_spec product = marlin_repack_product(spec);
    size_t rows = marlin_group_rows(&product);
    const ptxgen_w4_info info = {
        .k = spec->k, .n = spec->n, .groups = spec->k / rows, .group_size = (ptrdiff_t)rows};
    if (w4_groups_are_unset((ptxgen_w4_format)spec->format, g_idx, info.k))
        return w4_group_order(&info, NULL, order, err);
    for (size_t k = 0; k < info.k; k++)
        if (g_idx[k] < 0 || (size_t)g_idx[k] >= info.groups)
            return ptxgen_fail(err, PTXGEN_ERROR_MALFORMED,
                               "marlin_repack: g_idx[%zu] is %d, but there are %zu groups", k,
                               (int)g_idx[k], info.groups);
    return w4_group_order(&info, g_idx, order, err);
}
