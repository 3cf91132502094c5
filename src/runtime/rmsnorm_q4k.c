/* SPDX-License-Identifier: Apache-2.0 */
/* What a launch of the rmsnorm_q4k family takes and enqueues. */
#include <ptxgen/rmsnorm_q4k.h>

#include "src/kernels/rmsnorm_q4k/layout.h"
#include "src/runtime/family.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { MATRICES = PTXGEN_RMSNORM_Q4K_MATRICES };

static const char *const w_names[] = {"w[0]", "w[1]", "w[2]"};
static const char *const bias_names[] = {"bias[0]", "bias[1]", "bias[2]"};
static const char *const y_names[] = {"y[0]", "y[1]", "y[2]"};

FAMILY_CALLBACKS(rmsnorm_q4k)
FAMILY_EMIT(rmsnorm_q4k)

static ptxgen_status check_driver(const ptxgen_driver *driver, const void *plan, ptxgen_error *err)
{
    const ptxgen_rmsnorm_q4k_plan *p = plan;
    return family_check_maps(driver, has_tensor_copies(&p->target), err);
}

static void describe(const void *spec, char *text, size_t size)
{
    const ptxgen_rmsnorm_q4k_spec *s = spec;
    snprintf(text, size, "k=%u n=%u,%u,%u x=%s y=%s epsilon=%.9g max_m=%u%s%s%s%s", s->k, s->n[0],
             s->n[1], s->n[2], family_element(s->x_type), family_element(s->y_type), s->epsilon,
             s->max_m, s->epilogue == PTXGEN_EPILOGUE_SWIGLU ? " swiglu" : "",
             s->bias ? " bias" : "", s->residual ? " residual" : "",
             s->residual_out ? " residual_out" : "");
}

static uint64_t row_bytes(const ptxgen_rmsnorm_q4k_spec *s)
{
    return (uint64_t)super_blocks(s) * SUPER_BLOCK_BYTES;
}

static ptxgen_status arrays(const void *plan, void *args, struct family_arrays *to,
                            ptxgen_error *err)
{
    enum { F32 = 4, CHUNK = 16 };
    const ptxgen_rmsnorm_q4k_spec *s = &((const ptxgen_rmsnorm_q4k_plan *)plan)->spec;
    ptxgen_rmsnorm_q4k_args *a = args;
    unsigned x = (unsigned)ptxgen_element_size((ptxgen_element)s->x_type);
    unsigned y = (unsigned)ptxgen_element_size((ptxgen_element)s->y_type);
    (void)err;
    *to = (struct family_arrays){
        4,
        {OPERAND_ROWS(a, x, true, INPUT, x, s->k, a->m),
         OPERAND_BYTES(a, gamma, true, INPUT, F32, (uint64_t)s->k * F32),
         OPERAND_ROWS(a, residual, s->residual, INPUT, x, s->k, a->m),
         OPERAND_ROWS(a, residual_out, s->residual_out, OUTPUT, x, s->k, a->m)}};
    for (int i = 0; i < MATRICES && s->n[i]; i++) {
        bool has_output = i == 0 || !is_gated(s);
        uint64_t n = s->n[i], w = n * row_bytes(s);
        const struct launch_array own[] = {
            LAUNCH_BYTES(w_names[i], true, LAUNCH_INPUT, a->w[i], a->w_bytes[i], CHUNK, w),
            LAUNCH_ROWS(y_names[i], has_output, LAUNCH_OUTPUT, a->y[i], a->y_bytes[i], y,
                        &a->y_stride[i], n, a->m),
            LAUNCH_BYTES(bias_names[i], s->bias, LAUNCH_INPUT, a->bias[i], a->bias_bytes[i], F32,
                         n * F32),
        };
        memcpy(&to->arrays[to->count], own, sizeof own);
        to->count += sizeof own / sizeof *own;
    }
    return PTXGEN_OK;
}

/* The weights as rows of 32-bit elements, in boxes by two super-blocks (see stream.c). */
static void map_weights(const ptxgen_rmsnorm_q4k_spec *s, const ptxgen_rmsnorm_q4k_args *a,
                        struct launch_list *to)
{
    for (int i = 0; i < MATRICES; i++)
        to->maps[to->map_count++] =
            (struct launch_map){.holds = LAUNCH_MAP,
                                .name = w_names[i],
                                .address = a->w[i],
                                .columns = row_bytes(s) / 4,
                                .rows = s->n[i],
                                .pitch = row_bytes(s),
                                .type = PTXGEN_CU_TENSOR_MAP_DATA_TYPE_UINT32,
                                .box_columns = PAIR_BYTES / 4,
                                .box_rows = is_gated(s) ? HALF_ROWS : TILE_ROWS};
}

static int entry(const void *plan, uint64_t m)
{
    const ptxgen_rmsnorm_q4k_plan *p = plan;
    const ptxgen_rmsnorm_q4k_variant *v = ptxgen_rmsnorm_q4k_choose(p, m);
    return v ? (int)(v - p->variants) : -1;
}

static ptxgen_status list(const void *plan, const void *args, struct launch_list *to,
                          ptxgen_error *err)
{
    enum { ADDRESSES = 4 + 3 * MATRICES, NUMBERS = 4 + MATRICES };
    const ptxgen_rmsnorm_q4k_plan *p = plan;
    const ptxgen_rmsnorm_q4k_args *a = args;
    const ptxgen_rmsnorm_q4k_variant *v = ptxgen_rmsnorm_q4k_choose(p, a->m);
    if (!v)
        return rmsnorm_q4k_refuse_m(p, a->m, err);
    if (has_tensor_copies(&p->target))
        map_weights(&p->spec, a, to);
    struct launch_entry *e = &to->entries[to->count++];
    *e = (struct launch_entry){
        .index = (unsigned)(v - p->variants),
        .shape = launch_line(v->grid, 32 * v->wk * v->wn, v->dynamic_shared_bytes, 1),
        .params = ADDRESSES + NUMBERS,
        .wide = ADDRESSES,
        .values = {a->x,
                   a->residual,
                   a->residual_out,
                   a->gamma,
                   a->w[0],
                   a->w[1],
                   a->w[2],
                   a->bias[0],
                   a->bias[1],
                   a->bias[2],
                   a->y[0],
                   a->y[1],
                   a->y[2],
                   a->x_stride,
                   a->residual_stride,
                   a->residual_out_stride,
                   a->y_stride[0],
                   a->y_stride[1],
                   a->y_stride[2],
                   a->m}};
    e->shape.programmatic = a->overlap_previous != 0;
    return PTXGEN_OK;
}

static const struct family rmsnorm_q4k = {
    .table = {FAMILY_TABLE(rmsnorm_q4k), .plan_version = 7, .check_driver = check_driver,
              .describe = describe, .revision = library_revision},
    FAMILY_MEMBERS(rmsnorm_q4k),
    .args = {offsetof(ptxgen_rmsnorm_q4k_args, m), FAMILY_HAS_NONE, FAMILY_HAS_NONE},
    .has_narrow_strides = true,
    .entry = entry,
};
FAMILY_FUNCTIONS(rmsnorm_q4k, rmsnorm_q4k)
FAMILY_ATTRIBUTES(rmsnorm_q4k, rmsnorm_q4k)
FAMILY_WORKSPACE(rmsnorm_q4k, rmsnorm_q4k)
