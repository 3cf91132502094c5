/* SPDX-License-Identifier: Apache-2.0 */
/* Loading and launching the marlin_repack family. */
#include "src/kernels/marlin/repack_layout.h"
#include "src/kernels/plan.h"
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
                                         .plan_version = 2,
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
    if (!driver || !plan || !kernel)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "marlin_repack: driver, plan and kernel must be given");
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

struct array {
    const char *name;
    uint64_t address;
    unsigned align;
    bool used;
};

static ptxgen_status check_arrays(const ptxgen_marlin_repack_spec *s,
                                  const ptxgen_marlin_repack_args *a, ptxgen_error *err)
{
    const bool gated = s->epilogue == PTXGEN_EPILOGUE_SWIGLU;
    const unsigned scale = (unsigned)ptxgen_element_size((ptxgen_element)s->scale_type);
    const struct array arrays[] = {
        {"weights", a->weights.weights, 16, true},
        {"weights' scales", a->weights.scales, scale, true},
        {"weights' zeros", a->weights.zeros, 4, s->zeros && a->weights.zeros},
        {"up", a->up.weights, 16, gated},
        {"up's scales", a->up.scales, scale, gated},
        {"up's zeros", a->up.zeros, 4, gated && s->zeros && a->up.zeros},
        {"order", a->order, 16, s->act_order},
        {"codes", a->codes, 16, true},
        {"scales", a->scales, 16, true},
        {"zeros", a->zeros, 16, s->zeros},
    };
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        if (!arrays[i].used)
            continue;
        if (!arrays[i].address)
            return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "marlin_repack: %s is null",
                               arrays[i].name);
        if (arrays[i].address % arrays[i].align)
            return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                               "marlin_repack: %s at 0x%llx is not a multiple of %u bytes",
                               arrays[i].name, (unsigned long long)arrays[i].address,
                               arrays[i].align);
    }
    return PTXGEN_OK;
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
