/* SPDX-License-Identifier: Apache-2.0 */
/* Loading and launching the dense family. */
#include "src/runtime/dense.h"

#include "src/kernels/dense/layout.h"
#include "src/runtime/align.h"
#include "src/runtime/array.h"
#include "src/runtime/loaded.h"
#include "src/runtime/rows.h"

#include <stddef.h>
#include <stdio.h>

/* The public type is never defined: it is the name of a ptxgen_loaded of this family. */
static const ptxgen_loaded *loaded_of(const ptxgen_dense *q)
{
    return (const ptxgen_loaded *)q;
}

static const ptxgen_dense_plan *plan_of(const ptxgen_dense *q)
{
    return ptxgen_loaded_plan(loaded_of(q));
}

static ptxgen_status hand_over(ptxgen_status status, ptxgen_loaded *loaded, ptxgen_dense **kernel)
{
    if (status == PTXGEN_OK)
        *kernel = (ptxgen_dense *)loaded;
    return status;
}

/* ---- the family's table ---- */

static ptxgen_status make_plan(const void *spec, const ptxgen_target *target, void *plan,
                               ptxgen_error *err)
{
    return ptxgen_dense_make_plan(spec, target, plan, err);
}

static ptxgen_status emit(const void *plan, ptx_module *module, ptxgen_error *err)
{
    return ptxgen_dense_emit(plan, ~0u, module, err);
}

/* Operands that are copied in bulk come through tensor maps. */
ptxgen_status dense_check_driver(const ptxgen_driver *driver, const ptxgen_dense_plan *plan,
                                 ptxgen_error *err)
{
    for (uint32_t i = 0; i < plan->variant_count; i++)
        if (dense_is_bulk(&plan->variants[i]))
            return ptxgen_driver_require(driver, offsetof(ptxgen_driver, tensor_map_encode_tiled),
                                         err);
    return PTXGEN_OK;
}

static ptxgen_status check_driver(const ptxgen_driver *driver, const void *plan, ptxgen_error *err)
{
    return dense_check_driver(driver, plan, err);
}

static void describe(const void *spec, char *text, size_t size)
{
    static const char *const types[] = {"f32", "f16", "bf16"};
    static const char *const activations[] = {"", " silu", " gelu", " gelu_tanh", " relu"};
    const ptxgen_dense_spec *s = spec;
    snprintf(text, size, "m=%u k=%u %s max_n=%u%s%s%s", s->m, s->k,
             s->type < 3 ? types[s->type] : "?", s->max_n,
             s->activation < 5 ? activations[s->activation] : " ?", s->bias ? " bias" : "",
             s->residual ? " residual" : "");
}

const ptxgen_family *ptxgen_dense_family(void)
{
    static const ptxgen_family family = {.name = "dense",
                                         .plan_version = 10,
                                         .spec_bytes = sizeof(ptxgen_dense_spec),
                                         .plan_bytes = sizeof(ptxgen_dense_plan),
                                         .make_plan = make_plan,
                                         .emit = emit,
                                         .check_driver = check_driver,
                                         .describe = describe,
                                         .revision = library_revision};
    return &family;
}

/* ---- loading ---- */

ptxgen_status ptxgen_dense_load(const ptxgen_driver *driver, const ptxgen_dense_plan *plan,
                                const ptxgen_module_options *options, ptxgen_dense **kernel,
                                ptxgen_error *err)
{
    if (!driver || !dense_is_plan(plan) || !kernel)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "dense: driver, a plan that was made, and kernel must be given");
    ptxgen_loaded *loaded = NULL;
    ptxgen_status status =
        loaded_from_plan(driver, ptxgen_dense_family(), plan, &plan->target, options, &loaded, err);
    return hand_over(status, loaded, kernel);
}

ptxgen_status ptxgen_dense_dispatch(ptxgen_dispatcher *dispatcher, const ptxgen_dense_spec *spec,
                                    ptxgen_dense **kernel, ptxgen_error *err)
{
    ptxgen_loaded *loaded = NULL;
    ptxgen_status status = ptxgen_dispatch(dispatcher, ptxgen_dense_family(), spec, &loaded, err);
    return hand_over(status, loaded, kernel);
}

void ptxgen_dense_destroy(ptxgen_dense *q)
{
    ptxgen_release((ptxgen_loaded *)q);
}

/* Entries are loaded as they were emitted: the plan's variants, then dense_align. */
static const ptxgen_kernel *entry_of(const struct dense_entries *q, const ptxgen_dense_variant *v)
{
    return ptxgen_loaded_entry(q->loaded, (unsigned)(v - q->plan->variants));
}

static struct dense_entries entries_of(const ptxgen_dense *q)
{
    return (struct dense_entries){plan_of(q), loaded_of(q)};
}

const ptxgen_kernel_attributes *dense_attributes(const struct dense_entries *q, uint64_t n)
{
    const ptxgen_dense_variant *v = ptxgen_dense_choose(q->plan, n);
    return v ? ptxgen_kernel_get_attributes(entry_of(q, v)) : NULL;
}

const ptxgen_kernel_attributes *ptxgen_dense_attributes(const ptxgen_dense *q, uint64_t n)
{
    if (!q)
        return NULL;
    const struct dense_entries entries = entries_of(q);
    return dense_attributes(&entries, n);
}

/* ---- what a launch takes ---- */

enum { CHUNK = 16 };
static const uint64_t MOST_MAP_BYTES = UINT64_C(1) << 40; /* between rows, of a tensor map */

/* Checks all arrays, and gives strides of 0 their meaning. */
static ptxgen_status check_arrays(const ptxgen_dense_spec *s, ptxgen_dense_args *a,
                                  uint64_t workspace, ptxgen_error *err)
{
    uint32_t size = dense_element(s);
    uint64_t bias = (uint64_t)s->m * size;
    struct launch_array arrays[] = {
        LAUNCH_ROWS("x", true, LAUNCH_INPUT, a->x, size, &a->x_stride, s->k, a->n),
        LAUNCH_ROWS("w", true, LAUNCH_INPUT, a->w, size, &a->w_stride, s->k, s->m),
        LAUNCH_BYTES("bias", s->bias, LAUNCH_INPUT, a->bias, size, bias),
        LAUNCH_ROWS("residual", s->residual, LAUNCH_IN_PLACE, a->residual, size,
                    &a->residual_stride, s->m, a->n),
        LAUNCH_ROWS("y", true, LAUNCH_OUTPUT, a->y, size, &a->y_stride, s->m, a->n),
        LAUNCH_BYTES("workspace", workspace > 0, LAUNCH_OUTPUT, a->workspace, CHUNK, workspace),
    };
    return launch_check_arrays("dense", arrays, sizeof arrays / sizeof *arrays, err);
}

/* A launch of checked arguments, worked out. */
struct work {
    const ptxgen_dense_variant *variant;
    struct dense_schedule schedule;
    uint64_t align_x, align_w; /* offsets in the workspace that rows are aligned into, or 0 */
    uint64_t workspace_bytes;
};

static bool is_aligned(const ptxgen_dense_spec *s, const ptxgen_dense_variant *v, uint64_t address,
                       uint64_t stride)
{
    uint32_t element = dense_element(s);
    if (dense_is_bulk(v) && stride >= MOST_MAP_BYTES / element)
        return false;
    return address % CHUNK == 0 && stride * element % CHUNK == 0 && s->k * element % CHUNK == 0;
}

static ptxgen_status work_out(const ptxgen_dense_plan *plan, const ptxgen_dense_args *a,
                              struct work *w, ptxgen_error *err)
{
    const ptxgen_dense_spec *s = &plan->spec;
    *w = (struct work){.variant = ptxgen_dense_choose(plan, a->n)};
    if (!w->variant)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "dense: n = %llu is above the %u rows that the plan serves",
                           (unsigned long long)a->n, s->max_n);
    ptxgen_status status = dense_make_schedule(plan, w->variant, a->n, &w->schedule, err);
    if (status != PTXGEN_OK)
        return status;
    uint64_t end = w->schedule.aligned;
    w->workspace_bytes = w->schedule.workspace_bytes;
    if (!is_aligned(s, w->variant, a->x, a->x_stride)) {
        w->align_x = end;
        w->workspace_bytes = end += a->n * dense_row_bytes(s);
    }
    if (!is_aligned(s, w->variant, a->w, a->w_stride)) {
        w->align_w = end;
        w->workspace_bytes = end + (uint64_t)s->m * dense_row_bytes(s);
    }
    return PTXGEN_OK;
}

/* The strides that decide whether rows must be aligned have their meaning then. */
static ptxgen_dense_args with_strides(const ptxgen_dense_spec *s, const ptxgen_dense_args *args)
{
    ptxgen_dense_args a = *args;
    a.x_stride = a.x_stride ? a.x_stride : s->k;
    a.w_stride = a.w_stride ? a.w_stride : s->k;
    return a;
}

ptxgen_status dense_workspace_bytes(const ptxgen_dense_plan *plan, const ptxgen_dense_args *args,
                                    uint64_t *bytes, ptxgen_error *err)
{
    struct work w = {.workspace_bytes = 0};
    const ptxgen_dense_args a = with_strides(&plan->spec, args);
    ptxgen_status status = a.n ? work_out(plan, &a, &w, err) : PTXGEN_OK;
    if (status == PTXGEN_OK)
        *bytes = w.workspace_bytes;
    return status;
}

ptxgen_status ptxgen_dense_workspace_bytes(const ptxgen_dense *q, const ptxgen_dense_args *args,
                                           uint64_t *bytes, ptxgen_error *err)
{
    if (!q || !args || !bytes)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "dense: kernel, args and bytes must be given");
    return dense_workspace_bytes(plan_of(q), args, bytes, err);
}

/* ---- launching ---- */

/* `rows` rows go to the workspace, where the product then reads them. */
static ptxgen_status align(const struct dense_entries *q, uint64_t out, uint64_t rows,
                           uint64_t *address, uint64_t *stride, ptxgen_cu_stream stream,
                           ptxgen_error *err)
{
    const ptxgen_dense_spec *s = &q->plan->spec;
    const ptxgen_kernel *kernel = ptxgen_loaded_entry(q->loaded, q->plan->variant_count);
    const struct launch_rows shape = {rows, s->k, dense_element(s)};
    return launch_align(kernel, &shape, out, address, stride, stream, err);
}

/* Operands' rows as tensors, in the boxes that a CTA sends for. */
static ptxgen_status map_operands(const struct dense_entries *q, const ptxgen_dense_variant *v,
                                  const ptxgen_dense_args *a, ptxgen_cu_tensor_map x[2],
                                  ptxgen_cu_tensor_map *w, ptxgen_error *err)
{
    const ptxgen_driver *driver = q->loaded->driver;
    const ptxgen_dense_spec *s = &q->plan->spec;
    struct operand_rows rows = {.family = "dense",
                                .name = "x",
                                .address = a->x,
                                .columns = s->k,
                                .rows = a->n,
                                .stride = a->x_stride,
                                .type = s->type == PTXGEN_BF16
                                            ? PTXGEN_CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                                            : PTXGEN_CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
                                .element = dense_element(s),
                                .box_rows = dense_box_rows(v)};
    ptxgen_status status = v->cluster > 1 ? rows_map(driver, &rows, &x[0], err)
                                          : rows_map_boxes(driver, &rows, x, err);
    if (status != PTXGEN_OK)
        return status;
    rows.name = "w";
    rows.address = a->w;
    rows.rows = s->m;
    rows.stride = a->w_stride;
    rows.box_rows = dense_tile_m(v);
    return rows_map(driver, &rows, w, err);
}

static ptxgen_status multiply(const struct dense_entries *q, struct work *w, ptxgen_dense_args *a,
                              ptxgen_cu_stream stream, ptxgen_error *err)
{
    uint32_t n = (uint32_t)a->n;
    struct tile_schedule *s = &w->schedule.tiles;
    const ptxgen_dense_variant *v = w->variant;
    ptxgen_cu_tensor_map x_maps[2] = {{{0}}}, w_map = {{0}};
    if (dense_is_bulk(v)) {
        ptxgen_status status = map_operands(q, v, a, x_maps, &w_map, err);
        if (status != PTXGEN_OK)
            return status;
    }
    void *arguments[DENSE_MOST_PARAMS] = {
        [DENSE_X] = &a->x,
        [DENSE_W] = &a->w,
        [DENSE_BIAS] = &a->bias,
        [DENSE_RESIDUAL] = &a->residual,
        [DENSE_Y] = &a->y,
        [DENSE_WORKSPACE] = &a->workspace,
        [DENSE_X_STRIDE] = &a->x_stride,
        [DENSE_W_STRIDE] = &a->w_stride,
        [DENSE_RESIDUAL_STRIDE] = &a->residual_stride,
        [DENSE_Y_STRIDE] = &a->y_stride,
        [DENSE_N] = &n,
        [DENSE_SHARE] = &s->share,
        [DENSE_EXTRA] = &s->extra,
        [DENSE_GRANULE] = &s->granule,
        [DENSE_X_MAPS] = x_maps, /* past the parameters of the other entries */
        [DENSE_W_MAP] = &w_map,
    };
    ptxgen_launch_shape shape = {.grid = {w->schedule.grid, 1, 1},
                                 .block = {dense_cta_threads(v), 1, 1},
                                 .dynamic_shared_bytes = v->dynamic_shared_bytes};
    if (dense_cluster(v) > 1) {
        shape.cluster[0] = dense_cluster(v);
        shape.cluster[1] = shape.cluster[2] = 1;
    }
    return ptxgen_launch(entry_of(q, w->variant), &shape, stream, arguments, err);
}

ptxgen_status dense_launch(const struct dense_entries *q, const ptxgen_dense_args *args,
                           ptxgen_cu_stream stream, ptxgen_error *err)
{
    const ptxgen_dense_spec *s = &q->plan->spec;
    ptxgen_dense_args a = with_strides(s, args);
    struct work w;
    ptxgen_status status = work_out(q->plan, &a, &w, err);
    if (status == PTXGEN_OK)
        status =
            launch_check_workspace("dense", a.workspace_bytes, w.workspace_bytes, "n", a.n, err);
    if (status == PTXGEN_OK)
        status = check_arrays(s, &a, w.workspace_bytes, err);
    if (status == PTXGEN_OK && w.align_x)
        status = align(q, a.workspace + w.align_x, a.n, &a.x, &a.x_stride, stream, err);
    if (status == PTXGEN_OK && w.align_w)
        status = align(q, a.workspace + w.align_w, s->m, &a.w, &a.w_stride, stream, err);
    return status == PTXGEN_OK ? multiply(q, &w, &a, stream, err) : status;
}

ptxgen_status ptxgen_dense_launch(const ptxgen_dense *q, const ptxgen_dense_args *args,
                                  ptxgen_cu_stream stream, ptxgen_error *err)
{
    if (!q || !args)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "dense: kernel and args must be given");
    const struct dense_entries entries = entries_of(q);
    return args->n ? dense_launch(&entries, args, stream, err) : PTXGEN_OK;
}
