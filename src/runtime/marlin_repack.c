/* SPDX-License-Identifier: Apache-2.0 */
/* What a launch of the marlin_repack family takes and enqueues. */
#include "src/kernels/marlin/repack/layout.h"
#include "src/kernels/plan.h"
#include "src/runtime/family.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

FAMILY_CALLBACKS(marlin_repack)

static ptxgen_status emit(const void *plan, ptx_module *module, ptxgen_error *err)
{
    return ptxgen_marlin_repack_emit(plan, module, err);
}

static void describe(const void *spec, char *text, size_t size)
{
    const ptxgen_marlin_repack_spec *s = spec;
    const char *format = ptxgen_w4_format_name((ptxgen_w4_format)s->format);
    snprintf(text, size, "from=%s k=%u n=%u group=%d scales=%s to=%s%s%s%s", format ? format : "?",
             s->k, s->n, (int)s->group_size, family_element(s->scale_type), family_element(s->type),
             s->zeros ? " zeros" : "", s->act_order ? " act_order" : "",
             s->epilogue == PTXGEN_EPILOGUE_SWIGLU ? " swiglu" : "");
}

/* The tensors' shapes, and what is written. */
struct sizes {
    ptxgen_w4_checkpoint from;
    ptxgen_marlin_packed to;
};

static ptxgen_status find_sizes(const ptxgen_marlin_repack_spec *s, struct sizes *sizes,
                                ptxgen_error *err)
{
    const ptxgen_marlin_spec product = marlin_repack_product(s);
    bool has_groups = s->group_size != PTXGEN_W4_PER_CHANNEL;
    const ptxgen_w4_info info = {.k = s->k,
                                 .n = s->n,
                                 .group_size = has_groups ? s->group_size : (ptrdiff_t)s->k,
                                 .groups = has_groups ? s->k / (uint32_t)s->group_size : 1,
                                 .scale_type = (ptxgen_element)s->scale_type,
                                 .act_order = s->act_order,
                                 .symmetric = !s->zeros};
    ptxgen_status status = ptxgen_w4_layout(&info, (ptxgen_w4_format)s->format, &sizes->from, err);
    return status == PTXGEN_OK ? ptxgen_marlin_packed_layout(&product, &sizes->to, err) : status;
}

static ptxgen_status arrays(const void *plan, void *args, struct family_arrays *list,
                            ptxgen_error *err)
{
    enum { CHUNK = 16, WORD = 4, REFUSED = 8 };
    const ptxgen_marlin_repack_spec *s = &((const ptxgen_marlin_repack_plan *)plan)->spec;
    const ptxgen_marlin_repack_args *a = args;
    const bool gated = s->epilogue == PTXGEN_EPILOGUE_SWIGLU;
    const ptxgen_marlin_repack_tensors *w = &a->weights, *up = &a->up;
    const unsigned scale = (unsigned)ptxgen_element_size((ptxgen_element)s->scale_type);
    struct sizes sizes;
    ptxgen_status status = find_sizes(s, &sizes, err);
    if (status != PTXGEN_OK)
        return status;
    const uint64_t weights = ptxgen_w4_tensor_bytes(&sizes.from.weights);
    const uint64_t scales = ptxgen_w4_tensor_bytes(&sizes.from.scales);
    const uint64_t zeros = ptxgen_w4_tensor_bytes(&sizes.from.zeros);
    const bool has_zeros = s->zeros && w->zeros, has_up_zeros = gated && s->zeros && up->zeros;
    const ptxgen_marlin_packed *to = &sizes.to;
    *list = (struct family_arrays){
        11,
        {LAUNCH_BYTES("weights", true, LAUNCH_INPUT, w->weights, w->weights_bytes, CHUNK, weights),
         LAUNCH_BYTES("weights' scales", true, LAUNCH_INPUT, w->scales, w->scales_bytes, scale,
                      scales),
         LAUNCH_BYTES("weights' zeros", has_zeros, LAUNCH_INPUT, w->zeros, w->zeros_bytes, WORD,
                      zeros),
         LAUNCH_BYTES("up", gated, LAUNCH_INPUT, up->weights, up->weights_bytes, CHUNK, weights),
         LAUNCH_BYTES("up's scales", gated, LAUNCH_INPUT, up->scales, up->scales_bytes, scale,
                      scales),
         LAUNCH_BYTES("up's zeros", has_up_zeros, LAUNCH_INPUT, up->zeros, up->zeros_bytes, WORD,
                      zeros),
         OPERAND_BYTES(a, order, s->act_order, INPUT, CHUNK, to->order_bytes),
         OPERAND_BYTES(a, codes, true, OUTPUT, CHUNK, to->codes_bytes),
         OPERAND_BYTES(a, scales, true, OUTPUT, CHUNK, to->scales_bytes),
         OPERAND_BYTES(a, zeros, s->zeros, OUTPUT, CHUNK, to->zeros_bytes),
         OPERAND_BYTES(a, refused, a->refused != 0, OUTPUT, REFUSED, REFUSED)}};
    return PTXGEN_OK;
}

static void add(struct launch_list *to, unsigned index, uint64_t ctas, uint32_t dynamic_shared,
                const ptxgen_marlin_repack_args *a)
{
    to->entries[to->count++] =
        (struct launch_entry){.index = index,
                              .shape = launch_line(ctas, REPACK_THREADS, dynamic_shared, 1),
                              .params = REPACK_PARAMS,
                              .wide = REPACK_PARAMS,
                              .values = {[REPACK_WEIGHTS] = a->weights.weights,
                                         [REPACK_SCALES] = a->weights.scales,
                                         [REPACK_ZEROS] = a->weights.zeros,
                                         [REPACK_UP_WEIGHTS] = a->up.weights,
                                         [REPACK_UP_SCALES] = a->up.scales,
                                         [REPACK_UP_ZEROS] = a->up.zeros,
                                         [REPACK_ORDER] = a->order,
                                         [REPACK_TO_CODES] = a->codes,
                                         [REPACK_TO_SCALES] = a->scales,
                                         [REPACK_TO_ZEROS] = a->zeros,
                                         [REPACK_REFUSED] = a->refused}};
}

static ptxgen_status list(const void *plan, const void *args, struct launch_list *to,
                          ptxgen_error *err)
{
    const ptxgen_marlin_repack_plan *p = plan;
    const ptxgen_marlin_spec product = marlin_repack_product(&p->spec);
    const struct repack_grid grid = marlin_repack_grid(&p->spec);
    const struct repack_columns columns = marlin_repack_columns(p);
    uint64_t ctas = columns.used ? columns.ctas : (uint64_t)grid.along_n * grid.along_k;
    (void)err;
    add(to, REPACK_CODES, ctas, plan_dynamic_shared(columns.bytes), args);
    add(to, REPACK_GROUPS, (uint64_t)marlin_strips(&product) * grid.group_blocks, 0, args);
    return PTXGEN_OK;
}

static const struct family marlin_repack = {
    .table = {FAMILY_TABLE(marlin_repack), .plan_version = 4, .describe = describe},
    FAMILY_MEMBERS(marlin_repack),
    .args = {FAMILY_HAS_NONE, FAMILY_HAS_NONE, FAMILY_HAS_NONE},
};
FAMILY_FUNCTIONS(marlin_repack, marlin_repack)
