/* SPDX-License-Identifier: Apache-2.0 */
/* Loading and launching the marlin family. */
#include <ptxgen/marlin.h>

#include "src/kernels/marlin/layout.h"
#include "src/runtime/array.h"
#include "src/runtime/loaded.h"
#include "src/runtime/rows.h"

#include <stddef.h>
#include <stdio.h>

/* The public type is never defined: it is the name of a ptxgen_loaded of this family. */
static const ptxgen_loaded *loaded_of(const ptxgen_marlin *q)
{
    return (const ptxgen_loaded *)q;
}

static const ptxgen_marlin_plan *plan_of(const ptxgen_marlin *q)
{
    return ptxgen_loaded_plan(loaded_of(q));
}

static ptxgen_status hand_over(ptxgen_status status, ptxgen_loaded *loaded, ptxgen_marlin **kernel)
{
    if (status == PTXGEN_OK)
        *kernel = (ptxgen_marlin *)loaded;
    return status;
}

/* ---- the family's table ---- */

static ptxgen_status make_plan(const void *spec, const ptxgen_target *target, void *plan,
                               ptxgen_error *err)
{
    return ptxgen_marlin_make_plan(spec, target, plan, err);
}

static ptxgen_status emit(const void *plan, ptx_module *module, ptxgen_error *err)
{
    return ptxgen_marlin_emit(plan, ~0u, module, err);
}

/* What a thread sends for, activations among it, comes through a tensor map. */
static ptxgen_status check_driver(const ptxgen_driver *driver, const void *plan, ptxgen_error *err)
{
    const ptxgen_marlin_plan *p = plan;
    for (uint32_t i = 0; i < p->variant_count; i++)
        if (marlin_has_sender(&p->variants[i]))
            return ptxgen_driver_require(driver, offsetof(ptxgen_driver, tensor_map_encode_tiled),
                                         err);
    return PTXGEN_OK;
}

static void describe(const void *spec, char *text, size_t size)
{
    static const char *const types[] = {"f32", "f16", "bf16"};
    static const char *const activations[] = {"", " silu", " gelu", " gelu_tanh"};
    const ptxgen_marlin_spec *s = spec;
    snprintf(text, size, "k=%u n=%u group=%d %s max_m=%u%s%s%s%s%s%s", s->k, s->n,
             (int)s->group_size, s->type < 3 ? types[s->type] : "?", s->max_m,
             s->zeros ? " zeros" : "", s->act_order ? " act_order" : "",
             marlin_gated(s) ? " swiglu" : "",
             s->activation < 4 ? activations[s->activation] : " ?", s->bias ? " bias" : "",
             s->residual ? " residual" : "");
}

const ptxgen_family *ptxgen_marlin_family(void)
{
    static const ptxgen_family family = {.name = "marlin",
                                         .plan_version = 20,
                                         .spec_bytes = sizeof(ptxgen_marlin_spec),
                                         .plan_bytes = sizeof(ptxgen_marlin_plan),
                                         .make_plan = make_plan,
                                         .emit = emit,
                                         .check_driver = check_driver,
                                         .describe = describe,
                                         .tiling = &marlin_tiling,
                                         .revision = library_revision};
    return &family;
}

/* ---- loading ---- */

ptxgen_status ptxgen_marlin_load(const ptxgen_driver *driver, const ptxgen_marlin_plan *plan,
                                 const ptxgen_module_options *options, ptxgen_marlin **kernel,
                                 ptxgen_error *err)
{
    if (!driver || !marlin_is_plan(plan) || !kernel)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "marlin: driver, a plan that was made, and kernel must be given");
    ptxgen_loaded *loaded = NULL;
    ptxgen_status status = loaded_from_plan(driver, ptxgen_marlin_family(), plan, &plan->target,
                                            options, &loaded, err);
    return hand_over(status, loaded, kernel);
}

ptxgen_status ptxgen_marlin_dispatch(ptxgen_dispatcher *dispatcher, const ptxgen_marlin_spec *spec,
                                     ptxgen_marlin **kernel, ptxgen_error *err)
{
    ptxgen_loaded *loaded = NULL;
    ptxgen_status status = ptxgen_dispatch(dispatcher, ptxgen_marlin_family(), spec, &loaded, err);
    return hand_over(status, loaded, kernel);
}

void ptxgen_marlin_destroy(ptxgen_marlin *q)
{
    ptxgen_release((ptxgen_loaded *)q);
}

/* Entries are loaded as they were emitted: the plan's variants, then marlin_gather. */
static const ptxgen_kernel *entry_of(const ptxgen_marlin *q, const ptxgen_marlin_variant *v)
{
    return ptxgen_loaded_entry(loaded_of(q), (unsigned)(v - plan_of(q)->variants));
}

static const ptxgen_kernel *gather_of(const ptxgen_marlin *q)
{
    return ptxgen_loaded_entry(loaded_of(q), plan_of(q)->variant_count);
}

const ptxgen_kernel_attributes *ptxgen_marlin_attributes(const ptxgen_marlin *q, uint64_t m)
{
    const ptxgen_marlin_variant *v = q ? ptxgen_marlin_choose(plan_of(q), m) : NULL;
    return v ? ptxgen_kernel_get_attributes(entry_of(q, v)) : NULL;
}

/* ---- checking arguments ---- */

enum { ELEMENT = 2, CHUNK = 16 };

/* Elements between rows that a tensor map takes: below 2^40 bytes. */
#define MOST_MAP_STRIDE (UINT64_C(1) << 39)

/* Checks all arrays, and gives strides of 0 their meaning. */
static ptxgen_status check_arrays(const ptxgen_marlin_spec *s, ptxgen_marlin_args *a,
                                  uint64_t workspace, ptxgen_error *err)
{
    bool has_up_bias = s->bias && marlin_gated(s);
    uint64_t bias = (uint64_t)s->n * ELEMENT;
    ptxgen_marlin_packed packed;
    ptxgen_status status = ptxgen_marlin_packed_layout(s, &packed, err);
    if (status != PTXGEN_OK)
        return status;
    struct launch_array arrays[] = {
        LAUNCH_ROWS("a", true, LAUNCH_INPUT, a->a, ELEMENT, &a->a_stride, s->k, a->m),
        LAUNCH_BYTES("codes", true, LAUNCH_INPUT, a->codes, CHUNK, packed.codes_bytes),
        LAUNCH_BYTES("scales", true, LAUNCH_INPUT, a->scales, CHUNK, packed.scales_bytes),
        LAUNCH_BYTES("zeros", s->zeros, LAUNCH_INPUT, a->zeros, CHUNK, packed.zeros_bytes),
        LAUNCH_BYTES("order", s->act_order, LAUNCH_INPUT, a->order, CHUNK, packed.order_bytes),
        LAUNCH_BYTES("bias", s->bias, LAUNCH_INPUT, a->bias, ELEMENT, bias),
        LAUNCH_BYTES("up_bias", has_up_bias, LAUNCH_INPUT, a->up_bias, ELEMENT, bias),
        LAUNCH_ROWS("residual", s->residual, LAUNCH_IN_PLACE, a->residual, ELEMENT,
                    &a->residual_stride, s->n, a->m),
        LAUNCH_ROWS("c", true, LAUNCH_OUTPUT, a->c, ELEMENT, &a->c_stride, s->n, a->m),
        LAUNCH_BYTES("workspace", workspace > 0, LAUNCH_OUTPUT, a->workspace, CHUNK, workspace),
    };
    return launch_check_arrays("marlin", arrays, sizeof arrays / sizeof *arrays, err);
}

/* ---- what a launch takes ---- */

/* A launch of a checked `args`, worked out. */
struct work {
    const ptxgen_marlin_variant *variant;
    struct marlin_schedule schedule;
    bool gather; /* activations are brought into order, or to 16-byte alignment, first */
    uint64_t workspace_bytes;
};

static ptxgen_status work_out(const ptxgen_marlin_plan *plan, const ptxgen_marlin_args *a,
                              struct work *w, ptxgen_error *err)
{
    w->variant = ptxgen_marlin_choose(plan, a->m);
    if (!w->variant)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "marlin: m = %llu is above the %u rows that the plan serves",
                           (unsigned long long)a->m, plan->spec.max_m);
    ptxgen_status status = marlin_schedule(plan, w->variant, a->m, &w->schedule, err);
    if (status != PTXGEN_OK)
        return status;
    bool far = marlin_has_sender(w->variant) && a->a_stride >= MOST_MAP_STRIDE;
    w->gather = plan->spec.act_order || a->a % CHUNK || a->a_stride % (CHUNK / ELEMENT) || far;
    w->workspace_bytes = w->schedule.workspace_bytes;
    if (w->gather)
        w->workspace_bytes = w->schedule.gathered + a->m * plan->spec.k * ELEMENT;
    return PTXGEN_OK;
}

ptxgen_status ptxgen_marlin_workspace_bytes(const ptxgen_marlin *q, const ptxgen_marlin_args *args,
                                            uint64_t *bytes, ptxgen_error *err)
{
    if (!q || !args || !bytes)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "marlin: kernel, args and bytes must be given");
    struct work w = {.workspace_bytes = 0};
    ptxgen_status status = args->m ? work_out(plan_of(q), args, &w, err) : PTXGEN_OK;
    if (status == PTXGEN_OK)
        *bytes = w.workspace_bytes;
    return status;
}

/* ---- launching ---- */

static bool may_overlap(const ptxgen_marlin *q, const ptxgen_marlin_args *a)
{
    return a->overlap_previous && marlin_overlaps(plan_of(q));
}

/* Activations go to the workspace, where the product then reads them. */
static ptxgen_status gather(const ptxgen_marlin *q, const struct work *w, ptxgen_marlin_args *a,
                            ptxgen_cu_stream stream, ptxgen_error *err)
{
    uint64_t out = a->workspace + w->schedule.gathered;
    void *arguments[MARLIN_GATHER_PARAMS] = {[MARLIN_GATHER_A] = &a->a,
                                             [MARLIN_GATHER_ORDER] = &a->order,
                                             [MARLIN_GATHER_OUT] = &out,
                                             [MARLIN_GATHER_A_STRIDE] = &a->a_stride};
    const ptxgen_launch_shape shape = {.grid = {a->m, 1, 1},
                                       .block = {MARLIN_GATHER_THREADS, 1, 1},
                                       .programmatic = may_overlap(q, a)};
    ptxgen_status status = ptxgen_launch(gather_of(q), &shape, stream, arguments, err);
    a->a = out;
    a->a_stride = plan_of(q)->spec.k;
    return status;
}

/* A's rows as a tensor, in the boxes that a stage takes. */
static ptxgen_status map_activations(const ptxgen_marlin *q, const ptxgen_marlin_variant *v,
                                     const ptxgen_marlin_args *a, ptxgen_cu_tensor_map maps[2],
                                     ptxgen_error *err)
{
    const ptxgen_marlin_spec *spec = &plan_of(q)->spec;
    const struct operand_rows rows = {.family = "marlin",
                                      .name = "a",
                                      .address = a->a,
                                      .columns = spec->k,
                                      .rows = a->m,
                                      .stride = a->a_stride,
                                      .type = spec->type == PTXGEN_BF16
                                                  ? PTXGEN_CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                                                  : PTXGEN_CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
                                      .element = ELEMENT,
                                      .box_rows = v->tile_m};
    return rows_map_boxes(loaded_of(q)->driver, &rows, maps, err);
}

static ptxgen_status multiply(const ptxgen_marlin *q, struct work *w, ptxgen_marlin_args *a,
                              ptxgen_cu_stream stream, ptxgen_error *err)
{
    uint32_t m = (uint32_t)a->m;
    struct tile_schedule *s = &w->schedule.tiles;
    ptxgen_cu_tensor_map maps[2] = {{{0}}};
    if (marlin_has_sender(w->variant)) {
        ptxgen_status status = map_activations(q, w->variant, a, maps, err);
        if (status != PTXGEN_OK)
            return status;
    }
    void *arguments[MARLIN_PARAMS + 1] = {
        [MARLIN_A] = &a->a,
        [MARLIN_CODES] = &a->codes,
        [MARLIN_SCALES] = &a->scales,
        [MARLIN_ZEROS] = &a->zeros,
        [MARLIN_BIAS] = &a->bias,
        [MARLIN_UP_BIAS] = &a->up_bias,
        [MARLIN_RESIDUAL] = &a->residual,
        [MARLIN_C] = &a->c,
        [MARLIN_WORKSPACE] = &a->workspace,
        [MARLIN_A_STRIDE] = &a->a_stride,
        [MARLIN_RESIDUAL_STRIDE] = &a->residual_stride,
        [MARLIN_C_STRIDE] = &a->c_stride,
        [MARLIN_M] = &m,
        [MARLIN_SHARE] = &s->share,
        [MARLIN_EXTRA] = &s->extra,
        [MARLIN_GRANULE] = &s->granule,
        [MARLIN_A_MAPS] = maps, /* past the parameters of the other entries */
    };
    ptxgen_launch_shape shape = {.grid = {s->grid * marlin_cluster(w->variant), 1, 1},
                                 .block = {marlin_cta_threads(w->variant), 1, 1},
                                 .dynamic_shared_bytes = w->variant->dynamic_shared_bytes,
                                 .programmatic =
                                     w->gather ? marlin_overlaps(plan_of(q)) : may_overlap(q, a)};
    if (w->variant->cluster) {
        shape.cluster[0] = w->variant->cluster;
        shape.cluster[1] = shape.cluster[2] = 1;
    }
    return ptxgen_launch(entry_of(q, w->variant), &shape, stream, arguments, err);
}

ptxgen_status ptxgen_marlin_launch(const ptxgen_marlin *q, const ptxgen_marlin_args *args,
                                   ptxgen_cu_stream stream, ptxgen_error *err)
{
    if (!q || !args)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "marlin: kernel and args must be given");
    if (!args->m)
        return PTXGEN_OK;
    ptxgen_marlin_args a = *args;
    struct work w;
    ptxgen_status status = work_out(plan_of(q), &a, &w, err);
    if (status == PTXGEN_OK)
        status =
            launch_check_workspace("marlin", a.workspace_bytes, w.workspace_bytes, "m", a.m, err);
    if (status == PTXGEN_OK)
        status = check_arrays(&plan_of(q)->spec, &a, w.workspace_bytes, err);
    if (status == PTXGEN_OK && w.gather)
        status = gather(q, &w, &a, stream, err);
    return status == PTXGEN_OK ? multiply(q, &w, &a, stream, err) : status;
}
