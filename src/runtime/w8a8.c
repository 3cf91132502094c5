/* SPDX-License-Identifier: Apache-2.0 */
/* Loading and launching the w8a8 family. */
#include <ptxgen/w8a8.h>

#include "src/kernels/w8a8/layout.h"
#include "src/runtime/align.h"
#include "src/runtime/array.h"
#include "src/runtime/loaded.h"
#include "src/runtime/rows.h"

#include <stdio.h>

/* The public type is never defined: it is the name of a ptxgen_loaded of this family. */
static const ptxgen_loaded *loaded_of(const ptxgen_w8a8 *q)
{
    return (const ptxgen_loaded *)q;
}

static const ptxgen_w8a8_plan *plan_of(const ptxgen_w8a8 *q)
{
    return ptxgen_loaded_plan(loaded_of(q));
}

static ptxgen_status hand_over(ptxgen_status status, ptxgen_loaded *loaded, ptxgen_w8a8 **kernel)
{
    if (status == PTXGEN_OK)
        *kernel = (ptxgen_w8a8 *)loaded;
    return status;
}

/* ---- the family's table ---- */

static ptxgen_status make_plan(const void *spec, const ptxgen_target *target, void *plan,
                               ptxgen_error *err)
{
    return ptxgen_w8a8_make_plan(spec, target, plan, err);
}

static ptxgen_status emit(const void *plan, ptx_module *module, ptxgen_error *err)
{
    return ptxgen_w8a8_emit(plan, ~0u, module, err);
}

/* wgmma's operands come through tensor maps. */
static ptxgen_status check_driver(const ptxgen_driver *driver, const void *plan, ptxgen_error *err)
{
    const ptxgen_w8a8_plan *p = plan;
    for (uint32_t i = 0; i < p->variant_count; i++)
        if (w8a8_is_wgmma(&p->variants[i]))
            return ptxgen_driver_require(driver, offsetof(ptxgen_driver, tensor_map_encode_tiled),
                                         err);
    return PTXGEN_OK;
}

static void describe(const void *spec, char *text, size_t size)
{
    static const char *const types[] = {"f32", "f16", "bf16", "f64"};
    static const char *const scales[] = {"dynamic", "tensor", "token"};
    const ptxgen_w8a8_spec *s = spec;
    snprintf(text, size, "k=%u n=%u w_stride=%u m=%u..%u codes=%d..%d x=%s y=%s scales=%s%s%s",
             s->k, s->n, s->w_stride, s->min_m, s->max_m, s->q_min, s->q_max,
             s->x_type < 4 ? types[s->x_type] : "?", s->y_type < 4 ? types[s->y_type] : "?",
             s->scales < 3 ? scales[s->scales] : "?", s->asymmetric ? " asymmetric" : "",
             s->bias ? " bias" : "");
}

const ptxgen_family *ptxgen_w8a8_family(void)
{
    static const ptxgen_family family = {.name = "w8a8",
                                         .plan_version = 14,
                                         .spec_bytes = sizeof(ptxgen_w8a8_spec),
                                         .plan_bytes = sizeof(ptxgen_w8a8_plan),
                                         .make_plan = make_plan,
                                         .emit = emit,
                                         .check_driver = check_driver,
                                         .describe = describe,
                                         .revision = library_revision};
    return &family;
}

/* ---- loading ---- */

ptxgen_status ptxgen_w8a8_load(const ptxgen_driver *driver, const ptxgen_w8a8_plan *plan,
                               const ptxgen_module_options *options, ptxgen_w8a8 **kernel,
                               ptxgen_error *err)
{
    if (!driver || !w8a8_is_plan(plan) || !kernel)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "w8a8: driver, a plan that was made, and kernel must be given");
    ptxgen_loaded *loaded = NULL;
    ptxgen_status status =
        loaded_from_plan(driver, ptxgen_w8a8_family(), plan, &plan->target, options, &loaded, err);
    return hand_over(status, loaded, kernel);
}

ptxgen_status ptxgen_w8a8_dispatch(ptxgen_dispatcher *dispatcher, const ptxgen_w8a8_spec *spec,
                                   ptxgen_w8a8 **kernel, ptxgen_error *err)
{
    ptxgen_loaded *loaded = NULL;
    ptxgen_status status = ptxgen_dispatch(dispatcher, ptxgen_w8a8_family(), spec, &loaded, err);
    return hand_over(status, loaded, kernel);
}

void ptxgen_w8a8_destroy(ptxgen_w8a8 *q)
{
    ptxgen_release((ptxgen_loaded *)q);
}

/* Entries are w8a8_quantise and w8a8_align, where there are these, then the variants. */
static unsigned entries_before(const ptxgen_w8a8 *q)
{
    return loaded_of(q)->entry_count - plan_of(q)->variant_count;
}

static const ptxgen_kernel *align_of(const ptxgen_w8a8 *q)
{
    return loaded_of(q)->entries[entries_before(q) - 1];
}

static const ptxgen_kernel *product_of(const ptxgen_w8a8 *q, const ptxgen_w8a8_variant *v)
{
    const ptxgen_w8a8_plan *plan = plan_of(q);
    return loaded_of(q)->entries[entries_before(q) + (unsigned)(v - plan->variants)];
}

const ptxgen_kernel_attributes *ptxgen_w8a8_attributes(const ptxgen_w8a8 *q, uint64_t m)
{
    const ptxgen_w8a8_variant *v =
        q ? ptxgen_w8a8_choose(plan_of(q), m) : NULL;
    return v ? ptxgen_kernel_get_attributes(product_of(q, v)) : NULL;
}

/* ---- checking arguments ---- */

/* Checks all arrays, and gives strides of 0 their meaning. */
static ptxgen_status check_args(const ptxgen_w8a8_plan *plan, ptxgen_w8a8_args *a,
                                uint64_t workspace_bytes, ptxgen_error *err)
{
    enum { SUM = 4 /* bytes of a row's sum and of a zero point */ };
    const ptxgen_w8a8_spec *s = &plan->spec;
    bool given = s->scales != PTXGEN_W8A8_DYNAMIC;
    unsigned x = (unsigned)ptxgen_element_size((ptxgen_element)s->x_type);
    unsigned y = (unsigned)ptxgen_element_size((ptxgen_element)s->y_type);
    unsigned work = w8a8_work_bytes(s);
    uint64_t w_bytes = (uint64_t)s->n * w8a8_w_stride(s), n = s->n;
    uint64_t given_scales = s->scales == PTXGEN_W8A8_TENSOR ? 1 : a->m;
    bool has_zeros = given && s->asymmetric;
    struct launch_array arrays[] = {
        LAUNCH_ROWS("x", true, LAUNCH_INPUT, a->x, x, &a->x_stride, s->k, a->m),
        LAUNCH_BYTES("w", true, LAUNCH_INPUT, a->w, plan->copy_bytes, w_bytes),
        LAUNCH_BYTES("w_scale", true, LAUNCH_INPUT, a->w_scale, work, n * work),
        LAUNCH_BYTES("w_sum", s->asymmetric, LAUNCH_INPUT, a->w_sum, SUM, n * SUM),
        LAUNCH_BYTES("bias", s->bias, LAUNCH_INPUT, a->bias, work, n * work),
        LAUNCH_BYTES("x_scale", given, LAUNCH_INPUT, a->x_scale, work, given_scales * work),
        LAUNCH_BYTES("x_zero", has_zeros, LAUNCH_INPUT, a->x_zero, SUM, given_scales * SUM),
        LAUNCH_ROWS("y", true, LAUNCH_OUTPUT, a->y, y, &a->y_stride, s->n, a->m),
        LAUNCH_BYTES("workspace", workspace_bytes > 0, LAUNCH_OUTPUT, a->workspace, 256,
                     workspace_bytes),
    };
    enum { COUNT = sizeof arrays / sizeof *arrays };
    ptxgen_status status = launch_check_arrays("w8a8", arrays, COUNT, err);
    return status == PTXGEN_OK ? launch_check_narrow_strides("w8a8", arrays, COUNT, err) : status;
}

ptxgen_status ptxgen_w8a8_workspace_bytes(const ptxgen_w8a8 *q, const ptxgen_w8a8_args *args,
                                          uint64_t *bytes, ptxgen_error *err)
{
    if (!q || !args || !bytes)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "w8a8: kernel, args and bytes must be given");
    return w8a8_workspace_bytes(plan_of(q), args->m, bytes, err);
}

/* ---- launching ---- */

/*
 * Rows of W go to the workspace, where the product then reads them. All that follows waits for this
 * kernel's end, and this one for the end of what is before.
 */
static ptxgen_status align(const ptxgen_w8a8 *q, ptxgen_w8a8_args *a, uint64_t out,
                           ptxgen_cu_stream stream, ptxgen_error *err)
{
    const ptxgen_w8a8_plan *plan = plan_of(q);
    uint32_t element = w8a8_align_element(plan);
    const struct launch_rows rows = {plan->spec.n, w8a8_align_columns(plan), element};
    uint64_t stride = w8a8_w_stride(&plan->spec) / element;
    a->overlap_previous = 0;
    return launch_align(align_of(q), &rows, out, &a->w, &stride, stream, err);
}

static ptxgen_status launch_quantise(const ptxgen_w8a8 *q, ptxgen_w8a8_args *a,
                                     struct w8a8_schedule *s, ptxgen_cu_stream stream,
                                     ptxgen_error *err)
{
    uint64_t codes = a->workspace + s->codes, scales = a->workspace + s->scales;
    uint64_t zeros = a->workspace + s->zeros, flags = a->workspace + s->flags;
    uint32_t m = (uint32_t)a->m, x_stride = (uint32_t)a->x_stride;
    void *arguments[W8A8_Q_PARAMS] = {[W8A8_Q_X] = &a->x,
                                      [W8A8_Q_X_SCALE] = &a->x_scale,
                                      [W8A8_Q_X_ZERO] = &a->x_zero,
                                      [W8A8_Q_CODES] = &codes,
                                      [W8A8_Q_SCALES] = &scales,
                                      [W8A8_Q_ZEROS] = &zeros,
                                      [W8A8_Q_FLAGS] = &flags,
                                      [W8A8_Q_W] = &a->w,
                                      [W8A8_Q_X_STRIDE] = &x_stride,
                                      [W8A8_Q_M] = &m,
                                      [W8A8_Q_FLAG_COUNT] = &s->grid,
                                      [W8A8_Q_LINES] = &s->prefetch.lines,
                                      [W8A8_Q_PART_BITS] = &s->prefetch.part_bits,
                                      [W8A8_Q_PART_BYTES] = &s->prefetch.part_bytes,
                                      [W8A8_Q_LINE_BITS] = &s->prefetch.line_bits,
                                      [W8A8_Q_BLOCKS] = &s->prefetch.blocks,
                                      [W8A8_Q_STAGES] = &s->prefetch.stages,
                                      [W8A8_Q_STAGE_BYTES] = &s->prefetch.stage_bytes};
    /* The kernel before, where it still runs, needs the memory itself. */
    uint64_t more = a->overlap_previous ? 0 : s->prefetch.ctas;
    ptxgen_launch_shape shape = {
        .grid = {a->m + more, 1, 1},
        .block = {w8a8_quantise_threads(&plan_of(q)->spec), 1, 1},
        .programmatic = a->overlap_previous != 0};
    return ptxgen_launch(loaded_of(q)->entries[0], &shape, stream, arguments, err);
}

/* Weights and codes as tensors of bytes, in the boxes that a stage takes. */
static ptxgen_status map_operands(const ptxgen_w8a8 *q, const ptxgen_w8a8_variant *v,
                                  const ptxgen_w8a8_args *a, uint64_t codes,
                                  ptxgen_cu_tensor_map maps[2], ptxgen_error *err)
{
    const ptxgen_w8a8_plan *plan = plan_of(q);
    const ptxgen_w8a8_spec *s = &plan->spec;
    const ptxgen_driver *driver = loaded_of(q)->driver;
    struct operand_rows rows = {.family = "w8a8",
                                .name = "w",
                                .address = a->w,
                                .columns = s->k,
                                .rows = s->n,
                                .stride = w8a8_read_stride(plan, v),
                                .type = PTXGEN_CU_TENSOR_MAP_DATA_TYPE_UINT8,
                                .element = 1,
                                .box_rows = w8a8_stage_features(s, v)};
    ptxgen_status status = rows_map(driver, &rows, &maps[0], err);
    if (status != PTXGEN_OK)
        return status;
    rows.name = "the codes";
    rows.address = codes;
    rows.columns = rows.stride = w8a8_code_stride(s);
    rows.rows = a->m;
    rows.box_rows = w8a8_copies_present_tokens(v) && a->m < v->tile_m ? (uint32_t)a->m : v->tile_m;
    return rows_map(driver, &rows, &maps[1], err);
}

/* The product may begin while the codes are being made (from sm_90 on). */
static ptxgen_status launch_product(const ptxgen_w8a8 *q, const ptxgen_w8a8_variant *v,
                                    ptxgen_w8a8_args *a, struct w8a8_schedule *s,
                                    ptxgen_cu_stream stream, ptxgen_error *err)
{
    uint64_t codes = a->workspace + s->codes, scales = a->workspace + s->scales;
    uint64_t zeros = a->workspace + s->zeros, flags = a->workspace + s->flags;
    uint64_t partials = a->workspace + s->partials;
    uint32_t m = (uint32_t)a->m;
    uint32_t x_stride = (uint32_t)a->x_stride, y_stride = (uint32_t)a->y_stride;
    bool can_overlap = plan_of(q)->target.ptx.sm >= 90;
    ptxgen_cu_tensor_map maps[2] = {{{0}}};
    if (w8a8_is_wgmma(v)) {
        ptxgen_status status = map_operands(q, v, a, codes, maps, err);
        if (status != PTXGEN_OK)
            return status;
    }
    void *arguments[W8A8_WGMMA_PARAMS] = {[W8A8_X] = &a->x,
                                          [W8A8_W] = &a->w,
                                          [W8A8_W_SCALE] = &a->w_scale,
                                          [W8A8_W_SUM] = &a->w_sum,
                                          [W8A8_BIAS] = &a->bias,
                                          [W8A8_X_SCALE] = &a->x_scale,
                                          [W8A8_X_ZERO] = &a->x_zero,
                                          [W8A8_Y] = &a->y,
                                          [W8A8_CODES] = &codes,
                                          [W8A8_TOKEN_SCALES] = &scales,
                                          [W8A8_TOKEN_ZEROS] = &zeros,
                                          [W8A8_FLAGS] = &flags,
                                          [W8A8_PARTIALS] = &partials,
                                          [W8A8_X_STRIDE] = &x_stride,
                                          [W8A8_Y_STRIDE] = &y_stride,
                                          [W8A8_M] = &m,
                                          [W8A8_SHARE] = &s->tiles.share,
                                          [W8A8_EXTRA] = &s->tiles.extra,
                                          [W8A8_GRANULE] = &s->tiles.granule,
                                          [W8A8_W_MAP] = &maps[0], /* past those of other entries */
                                          [W8A8_CODES_MAP] = &maps[1]};
    ptxgen_launch_shape shape = {.grid = {s->grid, 1, 1},
                                 .block = {w8a8_threads(v), 1, 1},
                                 .dynamic_shared_bytes = v->dynamic_shared_bytes,
                                 .programmatic = v->fused ? a->overlap_previous != 0 : can_overlap};
    if (v->cluster > 1) {
        shape.cluster[0] = v->cluster;
        shape.cluster[1] = shape.cluster[2] = 1;
    }
    return ptxgen_launch(product_of(q, v), &shape, stream, arguments, err);
}

ptxgen_status ptxgen_w8a8_launch(const ptxgen_w8a8 *q, const ptxgen_w8a8_args *args,
                                 ptxgen_cu_stream stream, ptxgen_error *err)
{
    if (!q || !args)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "w8a8: kernel and args must be given");
    if (!args->m)
        return PTXGEN_OK;
    const ptxgen_w8a8_plan *plan = plan_of(q);
    const ptxgen_w8a8_variant *v = ptxgen_w8a8_choose(plan, args->m);
    struct w8a8_schedule schedule;
    if (!v)
        return w8a8_refuse_m(plan, args->m, err);
    ptxgen_w8a8_args a = *args;
    ptxgen_status status = w8a8_schedule(plan, v, a.m, &schedule, err);
    if (status == PTXGEN_OK)
        status = launch_check_workspace("w8a8", a.workspace_bytes, schedule.workspace_bytes, "m",
                                        a.m, err);
    if (status == PTXGEN_OK)
        status = check_args(plan, &a, schedule.workspace_bytes, err);
    if (status == PTXGEN_OK && w8a8_aligns(plan, v))
        status = align(q, &a, a.workspace + schedule.weights, stream, err);
    if (status == PTXGEN_OK && !v->fused)
        status = launch_quantise(q, &a, &schedule, stream, err);
    if (status == PTXGEN_OK)
        status = launch_product(q, v, &a, &schedule, stream, err);
    return status;
}
