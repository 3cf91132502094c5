/* SPDX-License-Identifier: Apache-2.0 */
#include "gate.h"

#include "emit.h"

#include <stdio.h>
#include <string.h>

enum { THREADS = 256 };

struct gate_plan {
    struct gate_spec spec;
    ptxgen_target target;
};

/* v / (1 + e^−t), with t = v, or for gelu_tanh t = 2·√(2/π)·(v + 0.044715·v³). */
static ptx_f32 activate(ptx_kernel *k, bool is_gelu, ptx_f32 v)
{
    ptx_f32 t = v;
    if (is_gelu) {
        ptx_f32 square = ptx_mul_f32(k, v, v);
        ptx_f32 factor = ptx_fma_f32(k, square, F32(0.044715f * 1.5957691f), F32(1.5957691f));
        t = ptx_mul_f32(k, v, factor);
    }
    ptx_f32 power = ptx_ex2_approx_f32(k, ptx_mul_f32(k, t, F32(-1.44269504f)));
    return ptx_div_f32(k, v, ptx_add_f32(k, power, F32(1)));
}

static ptxgen_status emit(const void *plan, ptx_module *module, ptxgen_error *err)
{
    const struct gate_plan *p = plan;
    const uint8_t type = p->spec.type;
    const uint32_t bytes = EIGHT * (uint32_t)ptxgen_element_size((ptxgen_element)type);
    ptx_kernel *k = ptx_kernel_begin(module, "gate");
    ptx_kernel_reqntid(k, THREADS, 1, 1);
    ptx_u64 gate = ptx_param_u64(k, "gate"), up = ptx_param_u64(k, "up");
    ptx_u64 y = ptx_param_u64(k, "y");
    ptx_u32 eights = ptx_param_u32(k, "eights");
    emit_let_next_begin(k);
    emit_wait_for_previous(k);
    ptx_u32 tid = ptx_sreg_tid_x(k);
    ptx_u32 i = ptx_mad_lo_u32(k, ptx_sreg_ctaid_x(k), U32(THREADS), tid);
    ptx_if(k, ptx_setp_lt_u32(k, i, eights)) {
        struct eight words[2];
        ptx_f32 v[EIGHT], other[EIGHT];
        emit_load_eight(k, type, ptx_mad_wide_u32(k, i, U32(bytes), gate), &words[0]);
        emit_load_eight(k, type, ptx_mad_wide_u32(k, i, U32(bytes), up), &words[1]);
        emit_widen_eight(k, type, &words[0], v);
        emit_widen_eight(k, type, &words[1], other);
        for (int j = 0; j < EIGHT; j++)
            v[j] = ptx_mul_f32(k, activate(k, p->spec.is_gelu, v[j]), other[j]);
        emit_narrow_eight(k, type, v, &words[0]);
        emit_store_eight(k, type, ptx_mad_wide_u32(k, i, U32(bytes), y), &words[0]);
    }
    ptx_kernel_end(k);
    return ptx_module_status(module, err);
}

static ptxgen_status make_plan(const void *spec, const ptxgen_target *target, void *plan,
                               ptxgen_error *err)
{
    struct gate_plan *p = plan;
    (void)err;
    memset(p, 0, sizeof *p);
    memcpy(&p->spec, spec, sizeof p->spec);
    p->target = *target;
    return PTXGEN_OK;
}

static void describe(const void *spec, char *text, size_t size)
{
    const struct gate_spec *s = spec;
    snprintf(text, size, "type=%u gelu=%u", s->type, s->is_gelu);
}

const ptxgen_family *gate_family(void)
{
    static const ptxgen_family family = {.name = "generate_gate",
                                         .plan_version = 1,
                                         .spec_bytes = sizeof(struct gate_spec),
                                         .plan_bytes = sizeof(struct gate_plan),
                                         .make_plan = make_plan,
                                         .emit = emit,
                                         .describe = describe};
    return &family;
}

ptxgen_status gate_launch(const ptxgen_loaded *loaded, const struct gate_args *args,
                          ptxgen_cu_stream stream, ptxgen_error *err)
{
    const struct gate_plan *plan = ptxgen_loaded_plan(loaded);
    struct gate_args a = *args;
    uint32_t eights = (uint32_t)(a.count / EIGHT);
    void *parameters[] = {&a.gate, &a.up, &a.y, &eights};
    ptxgen_launch_shape shape =
        launch_shape(&plan->target, THREADS, ((uint64_t)eights + THREADS - 1) / THREADS, 1, 1);
    return ptxgen_launch(ptxgen_loaded_entry(loaded, 0), &shape, stream, parameters, err);
}
