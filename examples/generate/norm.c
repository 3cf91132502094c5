/* SPDX-License-Identifier: Apache-2.0 */
/* A CTA for each token, whose row its threads have in registers: elements tid, tid + THREADS, … */
#include "norm.h"

#include "emit.h"

#include <stdio.h>
#include <string.h>

enum { THREADS = 256, MOST_K = 16384, MOST_ELEMENTS = MOST_K / THREADS };

struct norm_plan {
    struct norm_spec spec;
    ptxgen_target target;
};

struct emitter {
    ptx_kernel *k;
    const struct norm_spec *spec;
    uint32_t count; /* elements of a thread */
    ptx_u32 tid, token;
    ptx_pred exists; /* of the last one, where the row does not fill all */
};

static uint32_t size_of(uint8_t type)
{
    return (uint32_t)ptxgen_element_size((ptxgen_element)type);
}

/* The last element of a thread may be past the row's end. */
static bool is_partial(const struct emitter *e, uint32_t i)
{
    return i + 1 == e->count && e->spec->k % THREADS;
}

static ptx_u64 row_address(const struct emitter *e, ptx_u64 base, uint8_t type)
{
    ptx_kernel *k = e->k;
    ptx_u64 pitch = ptx_imm_u64((uint64_t)e->spec->k * size_of(type));
    ptx_u64 row = ptx_mad_lo_u64(k, ptx_cvt_u64_u32(k, e->token), pitch, base);
    return ptx_mad_wide_u32(k, e->tid, U32(size_of(type)), row);
}

/* The thread's elements; 0 past the row's end. */
static void load_row(const struct emitter *e, ptx_u64 at, uint8_t type, ptx_f32 to[MOST_ELEMENTS])
{
    ptx_kernel *k = e->k;
    for (uint32_t i = 0; i < e->count; i++) {
        int offset = (int)(i * THREADS * size_of(type));
        if (is_partial(e, i)) {
            to[i] = ptx_mov_f32(k, F32(0));
            ptx_if(k, e->exists)
                ptx_mov_f32_to(k, to[i], emit_load(k, type, at, offset));
        } else {
            to[i] = emit_load(k, type, at, offset);
        }
    }
}

static void store_row(const struct emitter *e, ptx_u64 at, uint8_t type,
                      const ptx_f32 from[MOST_ELEMENTS])
{
    ptx_kernel *k = e->k;
    for (uint32_t i = 0; i < e->count; i++) {
        int offset = (int)(i * THREADS * size_of(type));
        if (is_partial(e, i)) {
            ptx_if(k, e->exists)
                emit_store(k, type, at, offset, from[i]);
        } else {
            emit_store(k, type, at, offset, from[i]);
        }
    }
}

/* What all threads multiply the row by: 1 / √(mean of squares + epsilon). */
static ptx_f32 find_factor(const struct emitter *e, const ptx_f32 row[MOST_ELEMENTS])
{
    ptx_kernel *k = e->k;
    ptx_u32 slots = ptx_shared_address(k, ptx_shared_declare(k, "sums of the warps", 32, 4));
    ptx_f32 squares = ptx_mul_f32(k, row[0], row[0]);
    for (uint32_t i = 1; i < e->count; i++)
        squares = ptx_fma_f32(k, row[i], row[i], squares);
    squares = emit_sum_lanes(k, squares, 32);
    ptx_u32 lane = ptx_and_b32(k, e->tid, U32(31)), warp = ptx_shr_u32(k, e->tid, U32(5));
    ptx_if(k, ptx_setp_eq_u32(k, lane, U32(0)))
        ptx_st_shared_f32(k, ptx_mad_lo_u32(k, warp, U32(4), slots), 0, squares);
    ptx_bar_sync(k, 0);
    ptx_u32 other = ptx_and_b32(k, lane, U32(THREADS / 32 - 1));
    ptx_f32 part = ptx_ld_shared_f32(k, ptx_mad_lo_u32(k, other, U32(4), slots), 0);
    return emit_norm_factor(k, emit_sum_lanes(k, part, THREADS / 32), e->spec->k, e->spec->epsilon);
}

/* row · factor · gain */
static void scale_row(const struct emitter *e, ptx_f32 row[MOST_ELEMENTS], ptx_f32 factor,
                      ptx_u64 gain)
{
    ptx_kernel *k = e->k;
    ptx_f32 weights[MOST_ELEMENTS];
    load_row(e, ptx_mad_wide_u32(k, e->tid, U32(4), gain), PTXGEN_F32, weights);
    for (uint32_t i = 0; i < e->count; i++)
        row[i] = ptx_mul_f32(k, ptx_mul_f32(k, row[i], factor), weights[i]);
}

/* As the stream holds it. */
static ptx_f32 round_to_stream(const struct emitter *e, ptx_f32 value)
{
    return e->spec->stream_type == PTXGEN_BF16
               ? ptx_cvt_f32_bf16(e->k, ptx_cvt_bf16_f32(e->k, value))
               : value;
}

static ptxgen_status emit(const void *plan, ptx_module *module, ptxgen_error *err)
{
    const struct norm_plan *p = plan;
    const struct norm_spec *s = &p->spec;
    ptx_f32 row[MOST_ELEMENTS], more[MOST_ELEMENTS];
    ptx_kernel *k = ptx_kernel_begin(module, "norm");
    struct emitter e = {.k = k, .spec = s, .count = (s->k + THREADS - 1) / THREADS};
    ptx_kernel_reqntid(k, THREADS, 1, 1);
    ptx_u64 x = ptx_param_u64(k, "x"), stream = ptx_param_u64(k, "stream");
    ptx_u64 y = ptx_param_u64(k, "y"), gain = ptx_param_u64(k, "gain");
    ptx_u64 post_gain = ptx_param_u64(k, "post_gain");
    emit_let_next_begin(k);
    emit_wait_for_previous(k);
    e.tid = ptx_sreg_tid_x(k);
    e.token = ptx_sreg_ctaid_x(k);
    e.exists = ptx_setp_lt_u32(k, e.tid, U32(s->k - (e.count - 1) * THREADS));
    ptx_u64 at = row_address(&e, stream, s->stream_type);
    load_row(&e, at, s->stream_type, row);
    if (s->mode != NORM_ALONE) {
        load_row(&e, row_address(&e, x, s->type), s->type, more);
        if (s->mode == NORM_AFTER)
            scale_row(&e, more, find_factor(&e, more), post_gain);
        for (uint32_t i = 0; i < e.count; i++)
            row[i] = round_to_stream(&e, ptx_add_f32(k, row[i], more[i]));
        store_row(&e, at, s->stream_type, row);
    }
    scale_row(&e, row, find_factor(&e, row), gain);
    store_row(&e, row_address(&e, y, s->type), s->type, row);
    ptx_kernel_end(k);
    return ptx_module_status(module, err);
}

static ptxgen_status make_plan(const void *spec, const ptxgen_target *target, void *plan,
                               ptxgen_error *err)
{
    struct norm_plan *p = plan;
    memset(p, 0, sizeof *p);
    memcpy(&p->spec, spec, sizeof p->spec);
    p->target = *target;
    if (p->spec.k == 0 || p->spec.k > MOST_K)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "norm: rows of %u elements; 1 to %d are supported", p->spec.k, MOST_K);
    return PTXGEN_OK;
}

static void describe(const void *spec, char *text, size_t size)
{
    const struct norm_spec *s = spec;
    snprintf(text, size, "k=%u epsilon=%a mode=%u stream=%u type=%u", s->k, (double)s->epsilon,
             s->mode, s->stream_type, s->type);
}

const ptxgen_family *norm_family(void)
{
    static const ptxgen_family family = {.name = "generate_norm",
                                         .plan_version = 1,
                                         .spec_bytes = sizeof(struct norm_spec),
                                         .plan_bytes = sizeof(struct norm_plan),
                                         .make_plan = make_plan,
                                         .emit = emit,
                                         .describe = describe};
    return &family;
}

ptxgen_status norm_launch(const ptxgen_loaded *loaded, const struct norm_args *args,
                          ptxgen_cu_stream stream, ptxgen_error *err)
{
    const struct norm_plan *plan = ptxgen_loaded_plan(loaded);
    struct norm_args a = *args;
    void *parameters[] = {&a.x, &a.stream, &a.y, &a.gain, &a.post_gain};
    ptxgen_launch_shape shape = launch_shape(&plan->target, THREADS, a.m, 1, 1);
    return ptxgen_launch(ptxgen_loaded_entry(loaded, 0), &shape, stream, parameters, err);
}
