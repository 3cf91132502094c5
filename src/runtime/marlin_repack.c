/* SPDX-License-Identifier: Apache-2.0 */
/* Loading and launching the marlin_repack family. */
#include "src/kernels/marlin/repack_layout.h"
#include "src/kernels/plan.h"
#include "src/runtime/array.h"
#include "src/runtime/loaded.h"

#include <stdio.h>

/* The public type is never defined: it is the name of a ptxgen_loaded of this family. */
static const ptxgen_loaded *loaded_of(const ptxgen_marlin_repack *q)
{
    return (const ptxgen_loaded *)q;
}

static ptxgen_status hand_over(ptxgen_status status, ptxgen_loaded *loaded,
                               ptxgen_marlin_repack **kernel)
{
    if (status == PTXGEN_OK)
        *kernel = (ptxgen_marlin_repack *)loaded;
    return status;
}

/* ---- the family's table ---- */

static ptxgen_status make_plan(const void *spec, const ptxgen_target *target, void *plan,
                               ptxgen_error *err)
{
    return ptxgen_marlin_repack_make_plan(spec, target, plan, err);
}

static ptxgen_status emit(const void *plan, ptx_module *module, ptxgen_error *err)
{
    return ptxgen_marlin_repack_emit(plan, module, err);
}

static const char *type_name(uint8_t type)
{
    static const char *const names[] = {"f32", "f16", "bf16"};
    return type < 3 ? names[type] : "?";
}

static void describe(const void *spec, char *text, size_t size)
{
    const ptxgen_marlin_repack_spec *s = spec;
    const char *format = ptxgen_w4_format_name((ptxgen_w4_format)s->format);
    snprintf(text, size, "from=%s k=%u n=%u group=%d scales=%s to=%s%s%s%s", format ? format : "?",
             s->k, s->n, (int)s->group_size, type_name(s->scale_type), type_name(s->type),
             s->zeros ? " zeros" : "", s->act_order ? " act_order" : "",
             s->epilogue == PTXGEN_EPILOGUE_SWIGLU ? " swiglu" : "");
}

const ptxgen_family *ptxgen_marlin_repack_family(void)
{
    static const ptxgen_family family = {.name = "marlin_repack",
                                         .plan_version = 3,
                                         .spec_bytes = sizeof(ptxgen_marlin_repack_spec),
                                         .plan_bytes = sizeof(ptxgen_marlin_repack_plan),
                                         .make_plan = make_plan,
                                         .emit = emit,
                                         .describe = describe};
    return &family;
}

/* ---- loading ---- */

ptxgen_status ptxgen_marlin_repack_load(const ptxgen_driver *driver,
                                        const ptxgen_marlin_repack_plan *plan,
                                        const ptxgen_module_options *options,
                                        ptxgen_marlin_repack **kernel, ptxgen_error *err)
{
    if (!driver || !marlin_repack_is_plan(plan) || !kernel)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "marlin_repack: driver, a plan that was made, and kernel must be given");
    ptxgen_loaded *loaded = NULL;
    ptxgen_status status = loaded_from_plan(driver, ptxgen_marlin_repack_family(), plan,
                                            &plan->target, options, &loaded, err);
    return hand_over(status, loaded, kernel);
}

ptxgen_status ptxgen_marlin_repack_dispatch(ptxgen_dispatcher *dispatcher,
                                            const ptxgen_marlin_repack_spec *spec,
                                            ptxgen_marlin_repack **kernel, ptxgen_error *err)
{
    ptxgen_loaded *loaded = NULL;
    ptxgen_status status =
        ptxgen_dispatch(dispatcher, ptxgen_marlin_repack_family(), spec, &loaded, err);
    return hand_over(status, loaded, kernel);
}

void ptxgen_marlin_repack_destroy(ptxgen_marlin_repack *q)
{
    ptxgen_release((ptxgen_loaded *)q);
}

/* ---- launching ---- */

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

static ptxgen_status check_arrays(const ptxgen_marlin_repack_spec *s,
                                  const ptxgen_marlin_repack_args *a, ptxgen_error *err)
{
    enum { CHUNK = 16, WORD = 4, REFUSED = 8 };
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
    struct launch_array arrays[] = {
        LAUNCH_BYTES("weights", true, LAUNCH_INPUT, w->weights, CHUNK, weights),
        LAUNCH_BYTES("weights' scales", true, LAUNCH_INPUT, w->scales, scale, scales),
        LAUNCH_BYTES("weights' zeros", has_zeros, LAUNCH_INPUT, w->zeros, WORD, zeros),
        LAUNCH_BYTES("up", gated, LAUNCH_INPUT, up->weights, CHUNK, weights),
        LAUNCH_BYTES("up's scales", gated, LAUNCH_INPUT, up->scales, scale, scales),
        LAUNCH_BYTES("up's zeros", has_up_zeros, LAUNCH_INPUT, up->zeros, WORD, zeros),
        LAUNCH_BYTES("order", s->act_order, LAUNCH_INPUT, a->order, CHUNK, to->order_bytes),
        LAUNCH_BYTES("codes", true, LAUNCH_OUTPUT, a->codes, CHUNK, to->codes_bytes),
        LAUNCH_BYTES("scales", true, LAUNCH_OUTPUT, a->scales, CHUNK, to->scales_bytes),
        LAUNCH_BYTES("zeros", s->zeros, LAUNCH_OUTPUT, a->zeros, CHUNK, to->zeros_bytes),
        LAUNCH_BYTES("refused", a->refused != 0, LAUNCH_OUTPUT, a->refused, REFUSED, REFUSED),
    };
    return launch_check_arrays("marlin_repack", arrays, sizeof arrays / sizeof *arrays, err);
}

static ptxgen_status launch(const ptxgen_marlin_repack *q, unsigned entry, uint64_t ctas,
                            uint32_t dynamic_shared, ptxgen_marlin_repack_args *a,
                            ptxgen_cu_stream stream, ptxgen_error *err)
{
    void *arguments[REPACK_PARAMS] = {
        [REPACK_WEIGHTS] = &a->weights.weights,
        [REPACK_SCALES] = &a->weights.scales,
        [REPACK_ZEROS] = &a->weights.zeros,
        [REPACK_UP_WEIGHTS] = &a->up.weights,
        [REPACK_UP_SCALES] = &a->up.scales,
        [REPACK_UP_ZEROS] = &a->up.zeros,
        [REPACK_ORDER] = &a->order,
        [REPACK_TO_CODES] = &a->codes,
        [REPACK_TO_SCALES] = &a->scales,
        [REPACK_TO_ZEROS] = &a->zeros,
        [REPACK_REFUSED] = &a->refused,
    };
    const ptxgen_launch_shape shape = {.grid = {ctas, 1, 1},
                                       .block = {REPACK_THREADS, 1, 1},
                                       .dynamic_shared_bytes = dynamic_shared};
    return ptxgen_launch(ptxgen_loaded_entry(loaded_of(q), entry), &shape, stream, arguments, err);
}

ptxgen_status ptxgen_marlin_repack_launch(const ptxgen_marlin_repack *q,
                                          const ptxgen_marlin_repack_args *args,
                                          ptxgen_cu_stream stream, ptxgen_error *err)
{
    if (!q || !args)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "marlin_repack: kernel and args must be given");
    const ptxgen_marlin_repack_plan *plan = ptxgen_loaded_plan(loaded_of(q));
    const ptxgen_marlin_spec product = marlin_repack_product(&plan->spec);
    const struct repack_grid grid = marlin_repack_grid(&plan->spec);
    ptxgen_marlin_repack_args a = *args;
    ptxgen_status status = check_arrays(&plan->spec, &a, err);
    const struct repack_columns columns = marlin_repack_columns(plan);
    uint64_t ctas = columns.used ? columns.ctas : (uint64_t)grid.along_n * grid.along_k;
    if (status == PTXGEN_OK)
        status = launch(q, REPACK_CODES, ctas, plan_dynamic_shared(columns.bytes), &a, stream, err);
    if (status == PTXGEN_OK)
        status = launch(q, REPACK_GROUPS, (uint64_t)marlin_strips(&product) * grid.group_blocks, 0,
                        &a, stream, err);
    return status;
}
