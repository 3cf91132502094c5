/* SPDX-License-Identifier: Apache-2.0 */
/* What a launch of the w8a8 family takes and enqueues. */
#include <ptxgen/w8a8.h>

#include "src/kernels/w8a8/layout.h"
#include "src/runtime/family.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

FAMILY_CALLBACKS(w8a8)
FAMILY_EMIT(w8a8)
FAMILY_PRODUCT_DRIVER(w8a8_planner)

static void describe(const void *spec, char *text, size_t size)
{
    static const char *const scales[] = {"dynamic", "tensor", "token", "quantised"};
    const ptxgen_w8a8_spec *s = spec;
    snprintf(text, size,
             "k=%u n=%u w_stride=%u m=%u..%u codes=%s%d..%d%s x=%s y=%s scales=%s%s%s%s%s%s%s",
             s->k, s->n, s->w_stride, s->min_m, s->max_m,
             s->codes == PTXGEN_W8A8_E4M3 ? "e4m3 " : "", s->q_min, s->q_max,
             s->w_codes ? " w=e5m2" : "", family_element(s->x_type), family_element(s->y_type),
             s->scales < 4 ? scales[s->scales] : "?", s->group ? " groups" : "",
             s->asymmetric ? " asymmetric" : "", w8a8_gated(s) ? " swiglu" : "",
             family_activation(s->activation), s->bias ? " bias" : "",
             s->residual ? " residual" : "");
}

static ptxgen_status arrays(const void *plan, void *args, struct family_arrays *to,
                            ptxgen_error *err)
{
    enum { SUM = 4 /* bytes of a row's sum and of a zero point */ };
    const ptxgen_w8a8_plan *p = plan;
    const ptxgen_w8a8_spec *s = &p->spec;
    ptxgen_w8a8_args *a = args;
    bool given = s->scales != PTXGEN_W8A8_DYNAMIC, has_zeros = given && s->asymmetric;
    unsigned x = w8a8_x_bytes(s);
    unsigned y = (unsigned)ptxgen_element_size((ptxgen_element)s->y_type);
    unsigned work = w8a8_work_bytes(s);
    uint64_t n = w8a8_rows(s), w = s->k ? (n - 1) * w8a8_w_stride(s) + s->k : 0;
    uint64_t scales = s->scales == PTXGEN_W8A8_TENSOR ? 1 : a->m * w8a8_token_scales(s);
    uint64_t w_scales = w8a8_weight_scales(s);
    (void)err;
    *to = (struct family_arrays){9,
                                 {OPERAND_ROWS(a, x, true, INPUT, x, s->k, a->m),
                                  OPERAND_BYTES(a, w, true, INPUT, p->copy_bytes, w),
                                  OPERAND_BYTES(a, w_scale, true, INPUT, work, w_scales * work),
                                  OPERAND_BYTES(a, w_sum, s->asymmetric, INPUT, SUM, n * SUM),
                                  OPERAND_BYTES(a, bias, s->bias, INPUT, work, n * work),
                                  OPERAND_BYTES(a, x_scale, given, INPUT, work, scales * work),
                                  OPERAND_BYTES(a, x_zero, has_zeros, INPUT, SUM, scales * SUM),
                                  OPERAND_ROWS(a, residual, s->residual, IN_PLACE, y, s->n, a->m),
                                  OPERAND_ROWS(a, y, true, OUTPUT, y, s->n, a->m)}};
    return PTXGEN_OK;
}

/*
 * ---- entries: w8a8_quantise or w8a8_align_x, and w8a8_align, where variants need them, then the
 * variants ----
 */

static struct w8a8_entries entries_of(const ptxgen_w8a8_plan *plan)
{
    return w8a8_entries(plan, ~0u);
}

static unsigned product_index(const ptxgen_w8a8_plan *plan, const ptxgen_tile *v)
{
    const struct w8a8_entries e = entries_of(plan);
    return (unsigned)e.prepares + e.aligns + (unsigned)(v - plan->variants);
}

static int entry(const void *plan, uint64_t m)
{
    const ptxgen_tile *v = ptxgen_w8a8_choose(plan, m);
    return v ? (int)product_index(plan, v) : -1;
}

/*
 * Rows of W go to the workspace, where the product then reads them. All that follows waits for this
 * kernel's end, and this one for the end of what is before.
 */
static void align(const ptxgen_w8a8_plan *plan, uint64_t out, ptxgen_w8a8_args *a,
                  struct launch_list *to)
{
    const uint32_t element = w8a8_align_element(plan);
    struct launch_rows w = {"w",
                            a->w,
                            w8a8_w_stride(&plan->spec) / element,
                            w8a8_rows(&plan->spec),
                            w8a8_align_columns(plan),
                            element};
    launch_list_align(to, entries_of(plan).prepares, &w, out);
    a->w = w.address;
    a->overlap_previous = 0;
}

static void quantise(const ptxgen_w8a8_plan *plan, const ptxgen_w8a8_args *a,
                     const struct w8a8_schedule *s, struct launch_list *to)
{
    const struct w8a8_prefetch *p = &s->prefetch;
    /* The kernel before, where it still runs, needs the memory itself. */
    uint64_t ctas = a->m + (a->overlap_previous ? 0 : p->ctas);
    struct launch_entry *e = &to->entries[to->count++];
    *e = (struct launch_entry){.index = 0,
                               .shape = launch_line(ctas, w8a8_quantise_threads(&plan->spec), 0, 1),
                               .params = W8A8_Q_PARAMS,
                               .wide = W8A8_Q_X_STRIDE,
                               .values = {[W8A8_Q_X] = a->x,
                                          [W8A8_Q_X_SCALE] = a->x_scale,
                                          [W8A8_Q_X_ZERO] = a->x_zero,
                                          [W8A8_Q_CODES] = a->workspace + s->codes,
                                          [W8A8_Q_SCALES] = a->workspace + s->scales,
                                          [W8A8_Q_ZEROS] = a->workspace + s->zeros,
                                          [W8A8_Q_FLAGS] = a->workspace + s->flags,
                                          [W8A8_Q_W] = a->w,
                                          [W8A8_Q_X_STRIDE] = a->x_stride,
                                          [W8A8_Q_FLAG_COUNT] = s->grid,
                                          [W8A8_Q_M] = a->m,
                                          [W8A8_Q_LINES] = p->lines,
                                          [W8A8_Q_PART_BITS] = p->part_bits,
                                          [W8A8_Q_PART_BYTES] = p->part_bytes,
                                          [W8A8_Q_LINE_BITS] = p->line_bits,
                                          [W8A8_Q_BLOCKS] = p->blocks,
                                          [W8A8_Q_STAGES] = p->stages,
                                          [W8A8_Q_STAGE_BYTES] = p->stage_bytes}};
    e->shape.programmatic = a->overlap_previous && gemm_overlaps(&plan->target);
}

/* The codes that the product reads: those in the workspace, or the caller's or their copies. */
static struct launch_rows codes_of(const ptxgen_w8a8_plan *plan, const ptxgen_tile *v,
                                   ptxgen_w8a8_args *a, const struct w8a8_schedule *s,
                                   struct launch_list *to)
{
    const uint32_t stride = (uint32_t)w8a8_code_stride(&plan->spec);
    struct launch_rows made = {"the codes", a->workspace + s->codes, stride, a->m, stride, 1};
    struct launch_rows x = {"x", a->x, a->x_stride, a->m, plan->spec.k, 1};
    if (!w8a8_takes_codes(&plan->spec))
        return made;
    if (launch_rows_are_aligned(&x, gemm_is_wgmma(v)))
        return x;
    launch_list_align(to, 0, &x, a->workspace + s->copies);
    a->overlap_previous = 0;
    to->workspace_bytes = s->copies + a->m * x.stride;
    return x;
}

/* Weights and codes as tensors of bytes, in the boxes that a stage takes. */
static void map_operands(const ptxgen_w8a8_plan *plan, const ptxgen_tile *v,
                         const ptxgen_w8a8_args *a, const struct launch_rows *codes,
                         struct launch_list *to)
{
    const ptxgen_w8a8_spec *s = &plan->spec;
    const ptxgen_cu_tensor_map_data_type bytes = PTXGEN_CU_TENSOR_MAP_DATA_TYPE_UINT8;
    const uint32_t present =
        w8a8_copies_present_tokens(v) && a->m < v->tile_m ? (uint32_t)a->m : v->tile_m;
    const struct launch_rows w = {"w", a->w, w8a8_read_stride(plan, v), w8a8_rows(s), s->k, 1};
    launch_list_map(to, &w, bytes, w8a8_stage_features(s, v), LAUNCH_MAP);
    launch_list_map(to, codes, bytes, present, LAUNCH_MAP);
}

/* The product may begin while its launch makes the codes (from sm_90 on). */
static void multiply(const ptxgen_w8a8_plan *plan, const ptxgen_tile *v, ptxgen_w8a8_args *a,
                     const struct w8a8_schedule *s, struct launch_list *to)
{
    const bool given = w8a8_takes_codes(&plan->spec), can_overlap = plan->target.ptx.sm >= 90;
    const struct launch_rows codes = codes_of(plan, v, a, s, to);
    if (gemm_is_wgmma(v))
        map_operands(plan, v, a, &codes, to);
    struct launch_entry *e = &to->entries[to->count++];
    *e = (struct launch_entry){
        .index = product_index(plan, v),
        .shape = launch_line(s->grid, w8a8_threads(v), v->dynamic_shared_bytes, v->cluster),
        .params = W8A8_PARAMS,
        .wide = W8A8_X_STRIDE,
        .values = {[W8A8_X] = a->x,
                   [W8A8_W] = a->w,
                   [W8A8_W_SCALE] = a->w_scale,
                   [W8A8_W_SUM] = a->w_sum,
                   [W8A8_BIAS] = a->bias,
                   [W8A8_X_SCALE] = a->x_scale,
                   [W8A8_X_ZERO] = a->x_zero,
                   [W8A8_Y] = a->y,
                   [W8A8_CODES] = codes.address,
                   [W8A8_TOKEN_SCALES] = given ? a->x_scale : a->workspace + s->scales,
                   [W8A8_TOKEN_ZEROS] = given ? a->x_zero : a->workspace + s->zeros,
                   [W8A8_FLAGS] = a->workspace + s->flags,
                   [W8A8_PARTIALS] = a->workspace + s->partials,
                   [W8A8_RESIDUAL] = a->residual,
                   [W8A8_X_STRIDE] = given ? codes.stride : a->x_stride,
                   [W8A8_Y_STRIDE] = a->y_stride,
                   [W8A8_RESIDUAL_STRIDE] = a->residual_stride,
                   [W8A8_M] = a->m,
                   [W8A8_SHARE] = s->tiles.share,
                   [W8A8_EXTRA] = s->tiles.extra,
                   [W8A8_GRANULE] = s->tiles.granule}};
    e->shape.programmatic = can_overlap && (a->overlap_previous || !(v->fused || given));
}

static ptxgen_status list(const void *plan, const void *args, struct launch_list *to,
                          ptxgen_error *err)
{
    const ptxgen_w8a8_plan *p = plan;
    ptxgen_w8a8_args a = *(const ptxgen_w8a8_args *)args;
    const ptxgen_tile *v = ptxgen_w8a8_choose(p, a.m);
    if (!v)
        return gemm_refuse_m(&w8a8_planner, p, a.m, err);
    struct w8a8_schedule schedule;
    ptxgen_status status = w8a8_schedule(p, v, a.m, &schedule, err);
    if (status != PTXGEN_OK)
        return status;
    to->workspace_bytes = schedule.workspace_bytes;
    if (w8a8_aligns(p, v))
        align(p, a.workspace + schedule.weights, &a, to);
    if (!v->fused && !w8a8_takes_codes(&p->spec))
        quantise(p, &a, &schedule, to);
    multiply(p, v, &a, &schedule, to);
    return PTXGEN_OK;
}

static const struct family w8a8 = {
    .table = {FAMILY_TABLE(w8a8), .plan_version = 27, .check_driver = check_driver,
              .describe = describe, .revision = library_revision},
    FAMILY_MEMBERS(w8a8),
    FAMILY_WORKSPACE_MEMBERS(w8a8),
    .workspace_align = 256,
    .has_narrow_strides = true,
    .entry = entry,
};
FAMILY_FUNCTIONS(w8a8, w8a8)
FAMILY_ATTRIBUTES(w8a8, w8a8)
FAMILY_WORKSPACE(w8a8, w8a8)
