/* SPDX-License-Identifier: Apache-2.0 */
/* What a launch of the gguf_linear family takes and enqueues. */
#include <ptxgen/gguf_linear.h>

#include "src/kernels/gguf_linear/layout.h"
#include "src/runtime/family.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const char *const w_names[] = {"w[0]", "w[1]", "w[2]"};
static const char *const bias_names[] = {"bias[0]", "bias[1]", "bias[2]"};
static const char *const y_names[] = {"y[0]", "y[1]", "y[2]"};

FAMILY_CALLBACKS(gguf_linear)
FAMILY_EMIT(gguf_linear)

static const char *type_name(uint8_t type)
{
    const ptxgen_gguf_type_info *info = ptxgen_gguf_type_find(type);
    return info ? info->name : "?";
}

static void describe(const void *spec, char *text, size_t size)
{
    static const char *const epilogues[] = {"", " swiglu", " geglu"};
    static const char *const residuals[] = {"", " residual", " residual_after"};
    const ptxgen_gguf_linear_spec *s = spec;
    snprintf(text, size, "k=%u n=%u,%u,%u w=%s,%s,%s x=%s y=%s epsilon=%.9g max_m=%u%s%s%s%s%s",
             s->k, s->n[0], s->n[1], s->n[2], type_name(s->w_type[0]), type_name(s->w_type[1]),
             type_name(s->w_type[2]), family_element(s->x_type), family_element(s->y_type),
             s->epsilon, s->max_m, s->norm ? " rmsnorm" : "",
             s->residual <= PTXGEN_GGUF_LINEAR_AFTER ? residuals[s->residual] : " ?",
             s->residual_out ? " residual_out" : "",
             s->epilogue <= PTXGEN_EPILOGUE_GEGLU ? epilogues[s->epilogue] : " ?",
             s->bias ? " bias" : "");
}

static ptxgen_status arrays(const void *plan, void *args, struct family_arrays *to,
                            ptxgen_error *err)
{
    enum { F32 = 4 };
    const ptxgen_gguf_linear_spec *s = &((const ptxgen_gguf_linear_plan *)plan)->spec;
    ptxgen_gguf_linear_args *a = args;
    const bool after = s->residual == PTXGEN_GGUF_LINEAR_AFTER;
    unsigned x = (unsigned)ptxgen_element_size((ptxgen_element)s->x_type);
    unsigned y = (unsigned)ptxgen_element_size((ptxgen_element)s->y_type);
    (void)err;
    *to = (struct family_arrays){
        5,
        {OPERAND_ROWS(a, x, true, INPUT, x, s->k, a->m),
         OPERAND_BYTES(a, gamma, s->norm, INPUT, F32, (uint64_t)s->k * F32),
         OPERAND_BYTES(a, post_gamma, after, INPUT, F32, (uint64_t)s->k * F32),
         OPERAND_ROWS(a, residual, s->residual, INPUT, x, s->k, a->m),
         OPERAND_ROWS(a, residual_out, s->residual_out, OUTPUT, x, s->k, a->m)}};
    for (uint32_t i = 0; i < matrix_count(s); i++) {
        uint64_t n = s->n[i], w = n * row_bytes(s, s->w_type[i]);
        const struct launch_array own[] = {
            LAUNCH_BYTES(w_names[i], true, LAUNCH_INPUT, a->w[i], a->w_bytes[i],
                         gguf_linear_facts(s->w_type[i])->align, w),
            LAUNCH_ROWS(y_names[i], i < output_count(s), LAUNCH_OUTPUT, a->y[i], a->y_bytes[i], y,
                        &a->y_stride[i], n, a->m),
            LAUNCH_BYTES(bias_names[i], s->bias, LAUNCH_INPUT, a->bias[i], a->bias_bytes[i], F32,
                         n * F32),
        };
        memcpy(&to->arrays[to->count], own, sizeof own);
        to->count += sizeof own / sizeof *own;
    }
    return PTXGEN_OK;
}

/* ---- entries ---- */

static unsigned entry_of(const ptxgen_gguf_linear_plan *p, const ptxgen_gguf_linear_variant *v,
                         enum gguf_linear_kind kind)
{
    return (unsigned)(v - p->variants) * entries_of_variant(&p->spec) + kind;
}

static int entry(const void *plan, uint64_t m)
{
    const ptxgen_gguf_linear_variant *v = ptxgen_gguf_linear_choose(plan, m);
    return v ? (int)entry_of(plan, v, KIND_PRODUCT) : -1;
}

static void prepare(const ptxgen_gguf_linear_plan *p, const ptxgen_gguf_linear_variant *v,
                    const ptxgen_gguf_linear_args *a, const struct gguf_linear_space *space,
                    struct launch_list *to)
{
    const uint64_t ctas = (uint64_t)v->tile_m * gguf_linear_prepare_ctas(&p->spec);
    struct launch_entry *e = &to->entries[to->count++];
    *e = (struct launch_entry){.index = entry_of(p, v, KIND_PREPARE),
                               .shape =
                                   launch_line(ctas, gguf_linear_prepare_threads(&p->spec), 0, 1),
                               .params = PREPARE_PARAMS,
                               .wide = PREPARE_X_STRIDE,
                               .values = {[PREPARE_X] = a->x,
                                          [PREPARE_RESIDUAL] = a->residual,
                                          [PREPARE_RESIDUAL_OUT] = a->residual_out,
                                          [PREPARE_GAMMA] = a->gamma,
                                          [PREPARE_POST_GAMMA] = a->post_gamma,
                                          [PREPARE_RECORDS] = a->workspace,
                                          [PREPARE_COUNTERS] = a->workspace + space->counters,
                                          [PREPARE_X_STRIDE] = a->x_stride,
                                          [PREPARE_RESIDUAL_STRIDE] = a->residual_stride,
                                          [PREPARE_RESIDUAL_OUT_STRIDE] = a->residual_out_stride,
                                          [PREPARE_M] = a->m}};
    e->shape.programmatic = a->overlap_previous && gemm_overlaps(&p->target);
}

static void multiply(const ptxgen_gguf_linear_plan *p, const ptxgen_gguf_linear_variant *v,
                     const ptxgen_gguf_linear_args *a, const struct gguf_linear_space *space,
                     struct launch_list *to)
{
    struct launch_entry *e = &to->entries[to->count++];
    *e = (struct launch_entry){.index = entry_of(p, v, KIND_PRODUCT),
                               .shape = launch_line((uint64_t)v->parts * v->part_ctas,
                                                    32 * v->wk * v->wn, v->dynamic_shared_bytes, 1),
                               .params = PRODUCT_PARAMS,
                               .wide = PRODUCT_Y_STRIDE,
                               .values = {[PRODUCT_RECORDS] = a->workspace,
                                          [PRODUCT_COUNTERS] = a->workspace + space->counters,
                                          [PRODUCT_PARTIALS] = a->workspace + space->partials,
                                          [PRODUCT_M] = a->m}};
    for (uint32_t i = 0; i < MATRICES; i++) {
        const bool joined = is_joined(&p->spec) && i < 2;
        e->values[PRODUCT_W + i] = a->w[i];
        e->values[PRODUCT_BIAS + i] = a->bias[i];
        e->values[PRODUCT_Y + i] = joined ? a->workspace + space->joined[i] : a->y[i];
        e->values[PRODUCT_Y_STRIDE + i] = joined ? p->spec.n[i] : a->y_stride[i];
    }
    e->shape.programmatic = gemm_overlaps(&p->target);
}

static void join(const ptxgen_gguf_linear_plan *p, const ptxgen_gguf_linear_variant *v,
                 const ptxgen_gguf_linear_args *a, const struct gguf_linear_space *space,
                 struct launch_list *to)
{
    const uint64_t ctas = (p->spec.n[0] + JOIN_THREADS - 1) / JOIN_THREADS;
    to->entries[to->count++] =
        (struct launch_entry){.index = entry_of(p, v, KIND_JOIN),
                              .shape = launch_line(a->m * ctas, JOIN_THREADS, 0, 1),
                              .params = JOIN_PARAMS,
                              .wide = JOIN_Y_STRIDE,
                              .values = {[JOIN_GATE] = a->workspace + space->joined[0],
                                         [JOIN_UP] = a->workspace + space->joined[1],
                                         [JOIN_GATE_BIAS] = a->bias[0],
                                         [JOIN_UP_BIAS] = a->bias[1],
                                         [JOIN_Y] = a->y[0],
                                         [JOIN_Y_STRIDE] = a->y_stride[0]}};
}

static ptxgen_status list(const void *plan, const void *args, struct launch_list *to,
                          ptxgen_error *err)
{
    const ptxgen_gguf_linear_plan *p = plan;
    const ptxgen_gguf_linear_args *a = args;
    const ptxgen_gguf_linear_variant *v = ptxgen_gguf_linear_choose(p, a->m);
    if (!v)
        return gguf_linear_refuse_m(p, a->m, err);
    const struct gguf_linear_space space = gguf_linear_space(p, v);
    to->workspace_bytes = space.bytes;
    prepare(p, v, a, &space, to);
    multiply(p, v, a, &space, to);
    if (is_joined(&p->spec))
        join(p, v, a, &space, to);
    return PTXGEN_OK;
}

static const struct family gguf_linear = {
    .table = {FAMILY_TABLE(gguf_linear), .plan_version = 1, .describe = describe,
              .revision = library_revision},
    FAMILY_MEMBERS(gguf_linear),
    .args = {offsetof(ptxgen_gguf_linear_args, m), offsetof(ptxgen_gguf_linear_args, workspace),
             offsetof(ptxgen_gguf_linear_args, workspace_bytes)},
    .workspace_align = 16,
    .has_narrow_strides = true,
    .entry = entry,
};
FAMILY_FUNCTIONS(gguf_linear, gguf_linear)
FAMILY_ATTRIBUTES(gguf_linear, gguf_linear)
FAMILY_WORKSPACE(gguf_linear, gguf_linear)
