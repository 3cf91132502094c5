/* SPDX-License-Identifier: Apache-2.0 */
/* Loading and launching the sparse24 family. */
#include <ptxgen/sparse24.h>

#include "src/kernels/sparse24/layout.h"
#include "src/kernels/tile/operand.h"
#include "src/runtime/align.h"
#include "src/runtime/array.h"
#include "src/runtime/dense.h"
#include "src/runtime/loaded.h"
#include "src/runtime/rows.h"
#include "src/runtime/sparse24_inflated.h"

#include <stddef.h>
#include <stdio.h>

/* The public type is never defined: it is the name of a ptxgen_loaded of this family. */
static const ptxgen_loaded *loaded_of(const ptxgen_sparse24 *q)
{
    return (const ptxgen_loaded *)q;
}

static const ptxgen_sparse24_plan *plan_of(const ptxgen_sparse24 *q)
{
    return ptxgen_loaded_plan(loaded_of(q));
}

static bool is_inflated(const ptxgen_sparse24 *q)
{
    return sparse24_tier(&plan_of(q)->spec) == 1;
}

static ptxgen_status hand_over(ptxgen_status status, ptxgen_loaded *loaded,
                               ptxgen_sparse24 **kernel)
{
    if (status == PTXGEN_OK)
        *kernel = (ptxgen_sparse24 *)loaded;
    return status;
}

/* ---- the family's table ---- */

static ptxgen_status make_plan(const void *spec, const ptxgen_target *target, void *plan,
                               ptxgen_error *err)
{
    return ptxgen_sparse24_make_plan(spec, target, plan, err);
}

static ptxgen_status emit(const void *plan, ptx_module *module, ptxgen_error *err)
{
    return ptxgen_sparse24_emit(plan, ~0u, module, err);
}

/* wgmma's X comes through a tensor map. */
static ptxgen_status check_driver(const ptxgen_driver *driver, const void *plan, ptxgen_error *err)
{
    const ptxgen_sparse24_plan *p = plan;
    for (uint32_t i = 0; i < p->variant_count; i++)
        if (sparse24_is_wgmma(&p->variants[i]))
            return ptxgen_driver_require(driver, offsetof(ptxgen_driver, tensor_map_encode_tiled),
                                         err);
    return dense_check_driver(driver, &p->dense, err);
}

static void describe(const void *spec, char *text, size_t size)
{
    static const char *const types[] = {"f32", "f16", "bf16", "s8"};
    static const char *const activations[] = {"", " silu", " gelu", " gelu_tanh", " relu"};
    const ptxgen_sparse24_spec *s = spec;
    snprintf(text, size, "m=%u k=%u %s to %s max_n=%u%s%s%s%s", s->m, s->k,
             s->type < 4 ? types[s->type] : "?", s->y_type < 3 ? types[s->y_type] : "?", s->max_n,
             s->activation < 5 ? activations[s->activation] : " ?", s->bias ? " bias" : "",
             s->residual ? " residual" : "", s->tier == 1 ? " inflated" : "");
}

const ptxgen_family *ptxgen_sparse24_family(void)
{
    static const ptxgen_family family = {.name = "sparse24",
                                         .plan_version = 9,
                                         .spec_bytes = sizeof(ptxgen_sparse24_spec),
                                         .plan_bytes = sizeof(ptxgen_sparse24_plan),
                                         .make_plan = make_plan,
                                         .emit = emit,
                                         .check_driver = check_driver,
                                         .describe = describe,
                                         .revision = library_revision};
    return &family;
}

/* ---- loading ---- */

ptxgen_status ptxgen_sparse24_load(const ptxgen_driver *driver, const ptxgen_sparse24_plan *plan,
                                   const ptxgen_module_options *options, ptxgen_sparse24 **kernel,
                                   ptxgen_error *err)
{
    if (!driver || !sparse24_is_plan(plan) || !kernel)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "sparse24: driver, a plan that was made, and kernel must be given");
    ptxgen_loaded *loaded = NULL;
    ptxgen_status status = loaded_from_plan(driver, ptxgen_sparse24_family(), plan, &plan->target,
                                            options, &loaded, err);
    return hand_over(status, loaded, kernel);
}

ptxgen_status ptxgen_sparse24_dispatch(ptxgen_dispatcher *dispatcher,
                                       const ptxgen_sparse24_spec *spec, ptxgen_sparse24 **kernel,
                                       ptxgen_error *err)
{
    ptxgen_loaded *loaded = NULL;
    ptxgen_status status =
        ptxgen_dispatch(dispatcher, ptxgen_sparse24_family(), spec, &loaded, err);
    return hand_over(status, loaded, kernel);
}

void ptxgen_sparse24_destroy(ptxgen_sparse24 *q)
{
    ptxgen_release((ptxgen_loaded *)q);
}

/* Entries are loaded as they were emitted: the plan's variants, then sparse24_align. */
static const ptxgen_kernel *entry_of(const ptxgen_sparse24 *q, const ptxgen_sparse24_variant *v)
{
    return ptxgen_loaded_entry(loaded_of(q), (unsigned)(v - plan_of(q)->variants));
}

static const ptxgen_kernel *align_of(const ptxgen_sparse24 *q)
{
    return ptxgen_loaded_entry(loaded_of(q), plan_of(q)->variant_count);
}

const ptxgen_kernel_attributes *ptxgen_sparse24_attributes(const ptxgen_sparse24 *q, uint64_t n)
{
    if (!q)
        return NULL;
    if (is_inflated(q))
        return sparse24_inflated_attributes(loaded_of(q), n);
    const ptxgen_sparse24_variant *v = ptxgen_sparse24_choose(plan_of(q), n);
    return v ? ptxgen_kernel_get_attributes(entry_of(q, v)) : NULL;
}

/* ---- checking arguments ---- */

enum { CHUNK = 16 };
static const uint64_t MOST_MAP_BYTES = UINT64_C(1) << 40; /* between rows, of a tensor map */

/* Checks all arrays, and gives strides of 0 their meaning. */
static ptxgen_status check_arrays(const ptxgen_sparse24_spec *s, ptxgen_sparse24_args *a,
                                  uint64_t workspace, ptxgen_error *err)
{
    enum { SCALE = sizeof(float) };
    bool scaled = sparse24_is_s8(s);
    unsigned y = (unsigned)ptxgen_element_size((ptxgen_element)s->y_type);
    size_t packed;
    ptxgen_status status = ptxgen_sparse24_packed_bytes(s, &packed, err);
    if (status != PTXGEN_OK)
        return status;
    struct launch_array arrays[] = {
        LAUNCH_ROWS("x", true, LAUNCH_INPUT, a->x, sparse24_element(s), &a->x_stride, s->k, a->n),
        LAUNCH_BYTES("packed", true, LAUNCH_INPUT, a->packed, CHUNK, packed),
        LAUNCH_BYTES("x_scale", scaled, LAUNCH_INPUT, a->x_scale, SCALE, SCALE * a->n),
        LAUNCH_BYTES("w_scale", scaled, LAUNCH_INPUT, a->w_scale, SCALE, SCALE * (uint64_t)s->m),
        LAUNCH_BYTES("bias", s->bias, LAUNCH_INPUT, a->bias, y, (uint64_t)s->m * y),
        LAUNCH_ROWS("residual", s->residual, LAUNCH_IN_PLACE, a->residual, y, &a->residual_stride,
                    s->m, a->n),
        LAUNCH_ROWS("y", true, LAUNCH_OUTPUT, a->y, y, &a->y_stride, s->m, a->n),
        LAUNCH_BYTES("workspace", workspace > 0, LAUNCH_OUTPUT, a->workspace, CHUNK, workspace),
    };
    return launch_check_arrays("sparse24", arrays, sizeof arrays / sizeof *arrays, err);
}

/* ---- what a launch takes ---- */

/* A launch worked out; of tier 1, only what it needs of the workspace. */
struct work {
    const ptxgen_sparse24_variant *variant;
    struct sparse24_schedule schedule;
    bool align; /* rows of X are brought to multiples of 16 bytes first */
    uint64_t workspace_bytes;
};

static ptxgen_status work_out(const ptxgen_sparse24_plan *plan, const ptxgen_sparse24_args *a,
                              struct work *w, ptxgen_error *err)
{
    *w = (struct work){.variant = ptxgen_sparse24_choose(plan, a->n)};
    if (sparse24_tier(&plan->spec) == 1)
        return sparse24_inflated_workspace_bytes(plan, a, &w->workspace_bytes, err);
    if (!w->variant)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "sparse24: n = %llu is above the %u rows that the plan serves",
                           (unsigned long long)a->n, plan->spec.max_n);
    ptxgen_status status = sparse24_make_schedule(plan, w->variant, a->n, &w->schedule, err);
    if (status != PTXGEN_OK)
        return status;
    uint32_t element = sparse24_element(&plan->spec);
    w->align = a->x % CHUNK || a->x_stride % (CHUNK / element) || plan->spec.k % (CHUNK / element);
    if (sparse24_is_wgmma(w->variant) && a->x_stride >= MOST_MAP_BYTES / element)
        w->align = true;
    w->workspace_bytes = w->schedule.workspace_bytes;
    if (w->align)
        w->workspace_bytes = w->schedule.aligned + a->n * sparse24_x_bytes(&plan->spec);
    return PTXGEN_OK;
}

/* The stride that decides whether rows must be aligned has its meaning then. */
static ptxgen_sparse24_args with_stride(const ptxgen_sparse24_plan *plan,
                                        const ptxgen_sparse24_args *args)
{
    ptxgen_sparse24_args a = *args;
    a.x_stride = a.x_stride ? a.x_stride : plan->spec.k;
    return a;
}

ptxgen_status ptxgen_sparse24_workspace_bytes(const ptxgen_sparse24 *q,
                                              const ptxgen_sparse24_args *args, uint64_t *bytes,
                                              ptxgen_error *err)
{
    if (!q || !args || !bytes)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "sparse24: kernel, args and bytes must be given");
    struct work w;
    const ptxgen_sparse24_args a = with_stride(plan_of(q), args);
    *bytes = 0;
    ptxgen_status status = a.n ? work_out(plan_of(q), &a, &w, err) : PTXGEN_OK;
    if (status == PTXGEN_OK && a.n)
        *bytes = w.workspace_bytes;
    return status;
}

/* ---- launching ---- */

/* X goes to the workspace, where the product then reads it. */
static ptxgen_status align(const ptxgen_sparse24 *q, const struct work *w, ptxgen_sparse24_args *a,
                           ptxgen_cu_stream stream, ptxgen_error *err)
{
    const ptxgen_sparse24_spec *s = &plan_of(q)->spec;
    const struct launch_rows rows = {a->n, s->k, sparse24_element(s)};
    return launch_align(align_of(q), &rows, a->workspace + w->schedule.aligned, &a->x, &a->x_stride,
                        stream, err);
}

/* X's rows as a tensor, in the boxes that a stage takes. */
static ptxgen_status map_x(const ptxgen_sparse24 *q, const ptxgen_sparse24_variant *v,
                           const ptxgen_sparse24_args *a, ptxgen_cu_tensor_map maps[2],
                           ptxgen_error *err)
{
    static const ptxgen_cu_tensor_map_data_type types[] = {
        [PTXGEN_SPARSE24_F16] = PTXGEN_CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
        [PTXGEN_SPARSE24_BF16] = PTXGEN_CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
        [PTXGEN_SPARSE24_S8] = PTXGEN_CU_TENSOR_MAP_DATA_TYPE_UINT8,
    };
    const ptxgen_sparse24_spec *spec = &plan_of(q)->spec;
    const struct operand_rows rows = {.family = "sparse24",
                                      .name = "x",
                                      .address = a->x,
                                      .columns = spec->k,
                                      .rows = a->n,
                                      .stride = a->x_stride,
                                      .type = types[spec->type],
                                      .element = sparse24_element(spec),
                                      .box_rows = v->tile_n};
    return rows_map_boxes(loaded_of(q)->driver, &rows, maps, err);
}

static ptxgen_status multiply(const ptxgen_sparse24 *q, struct work *w, ptxgen_sparse24_args *a,
                              ptxgen_cu_stream stream, ptxgen_error *err)
{
    uint32_t n = (uint32_t)a->n;
    struct tile_schedule *s = &w->schedule.tiles;
    ptxgen_cu_tensor_map maps[2] = {{{0}}};
    if (sparse24_is_wgmma(w->variant)) {
        ptxgen_status status = map_x(q, w->variant, a, maps, err);
        if (status != PTXGEN_OK)
            return status;
    }
    void *arguments[SPARSE24_PARAMS + 1] = {
        [SPARSE24_X] = &a->x,
        [SPARSE24_PACKED] = &a->packed,
        [SPARSE24_X_SCALE] = &a->x_scale,
        [SPARSE24_W_SCALE] = &a->w_scale,
        [SPARSE24_BIAS] = &a->bias,
        [SPARSE24_RESIDUAL] = &a->residual,
        [SPARSE24_Y] = &a->y,
        [SPARSE24_WORKSPACE] = &a->workspace,
        [SPARSE24_X_STRIDE] = &a->x_stride,
        [SPARSE24_RESIDUAL_STRIDE] = &a->residual_stride,
        [SPARSE24_Y_STRIDE] = &a->y_stride,
        [SPARSE24_N] = &n,
        [SPARSE24_SHARE] = &s->share,
        [SPARSE24_EXTRA] = &s->extra,
        [SPARSE24_GRANULE] = &s->granule,
        [SPARSE24_X_MAPS] = maps, /* past the parameters of the other entries */
    };
    ptxgen_launch_shape shape = {.grid = {w->schedule.grid, 1, 1},
                                 .block = {sparse24_cta_threads(w->variant), 1, 1},
                                 .dynamic_shared_bytes = w->variant->dynamic_shared_bytes,
                                 .programmatic = a->overlap_previous && !w->align &&
                                                 sparse24_overlaps(plan_of(q))};
    if (w->variant->cluster > 1) {
        shape.cluster[0] = w->variant->cluster;
        shape.cluster[1] = shape.cluster[2] = 1;
    }
    return ptxgen_launch(entry_of(q, w->variant), &shape, stream, arguments, err);
}

ptxgen_status ptxgen_sparse24_launch(const ptxgen_sparse24 *q, const ptxgen_sparse24_args *args,
                                     ptxgen_cu_stream stream, ptxgen_error *err)
{
    if (!q || !args)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "sparse24: kernel and args must be given");
    if (!args->n)
        return PTXGEN_OK;
    ptxgen_sparse24_args a = with_stride(plan_of(q), args);
    struct work w;
    ptxgen_status status = work_out(plan_of(q), &a, &w, err);
    if (status == PTXGEN_OK)
        status =
            launch_check_workspace("sparse24", a.workspace_bytes, w.workspace_bytes, "n", a.n, err);
    if (status == PTXGEN_OK)
        status = check_arrays(&plan_of(q)->spec, &a, w.workspace_bytes, err);
    if (status == PTXGEN_OK && is_inflated(q))
        return sparse24_inflated_launch(loaded_of(q), &a, stream, err);
    if (status == PTXGEN_OK && w.align)
        status = align(q, &w, &a, stream, err);
    return status == PTXGEN_OK ? multiply(q, &w, &a, stream, err) : status;
}
