/* SPDX-License-Identifier: Apache-2.0 */
#include "empty.h"

#include "epilogue.h"

/* The address of element `column` of a row. */
static ptx_u64 element_at(ptx_kernel *k, ptx_u64 row, ptx_u32 column, ptxgen_element type)
{
    return ptx_mad_wide_u32(k, column, U32((uint32_t)ptxgen_element_size(type)), row);
}

static ptx_u64 row_at(ptx_kernel *k, ptx_u64 base, ptx_u64 stride, ptx_u64 m, ptxgen_element type)
{
    ptx_u64 pitch = ptx_mul_lo_u64(k, stride, U64(ptxgen_element_size(type)));
    return ptx_mad_lo_u64(k, m, pitch, base);
}

static ptx_f32 load(ptx_kernel *k, ptx_u64 from, ptxgen_element type)
{
    switch (type) {
    case PTXGEN_F16: return ptx_cvt_f32_f16(k, ptx_ld_global_f16(k, from, 0));
    case PTXGEN_BF16: return ptx_cvt_f32_bf16(k, ptx_ld_global_bf16(k, from, 0));
    case PTXGEN_F64: return ptx_cvt_f32_f64(k, ptx_ld_global_f64(k, from, 0));
    default: return ptx_ld_global_f32(k, from, 0);
    }
}

static void store(ptx_kernel *k, ptx_u64 to, ptxgen_element type, ptx_f32 v)
{
    if (type == PTXGEN_F16)
        ptx_st_global_f16(k, to, 0, ptx_cvt_f16_f32(k, v));
    else if (type == PTXGEN_BF16)
        ptx_st_global_bf16(k, to, 0, ptx_cvt_bf16_f32(k, v));
    else
        ptx_st_global_f32(k, to, 0, v);
}

/* A bias that is added to a sum of 0, which makes 0 of −0. */
static ptx_f32 biased(ptx_kernel *k, const struct gemm_empty *what, ptx_u64 bias, ptx_u32 column)
{
    if (!what->bias)
        return ptx_mov_f32(k, F32(0));
    ptx_f32 value = load(k, element_at(k, bias, column, what->bias_type), what->bias_type);
    return ptx_add_f32(k, value, F32(0));
}

/* A y of f64 has no activation and no residual. */
static ptx_f64 biased_wide(ptx_kernel *k, const struct gemm_empty *what, ptx_u64 bias,
                           ptx_u32 column)
{
    if (!what->bias)
        return ptx_mov_f64(k, ptx_imm_f64(0));
    ptx_f64 value = ptx_ld_global_f64(k, element_at(k, bias, column, PTXGEN_F64), 0);
    return ptx_add_f64(k, value, ptx_imm_f64(0));
}

struct rows {
    ptx_u64 bias, up_bias, residual, y; /* the token's, of these arrays */
};

static void finish(ptx_kernel *k, const struct gemm_empty *what, const struct rows *r,
                   ptx_u32 column)
{
    ptx_u64 to = element_at(k, r->y, column, what->type);
    if (what->type == PTXGEN_F64) {
        ptx_st_global_f64(k, to, 0, biased_wide(k, what, r->bias, column));
        return;
    }
    ptx_u32 gate = column, up = column;
    if (what->bias_pairs) {
        ptx_u32 before = ptx_and_b32(k, column, U32(~(what->bias_pairs - 1)));
        gate = ptx_add_u32(k, column, before);
        up = ptx_add_u32(k, gate, U32(what->bias_pairs));
    }
    ptx_f32 v = biased(k, what, r->bias, gate);
    v = gemm_activate(k, what->pairs ? PTXGEN_ACTIVATION_SILU : what->activation, v);
    if (what->pairs)
        v = ptx_mul_f32(k, v, biased(k, what, what->bias_pairs ? r->bias : r->up_bias, up));
    if (what->residual) {
        ptx_u64 from = element_at(k, r->residual, column, what->type);
        v = ptx_add_f32(k, v, load(k, from, what->type));
    }
    store(k, to, what->type, v);
}

void gemm_emit_empty(ptx_module *module, const char *name, const struct gemm_empty *what)
{
    ptx_kernel *k = ptx_kernel_begin(module, name);
    ptx_kernel_reqntid(k, GEMM_EMPTY_THREADS, 1, 1);
    struct rows r;
    r.y = gemm_param_u64(k, "y", true);
    r.bias = gemm_param_u64(k, "bias", what->bias);
    r.up_bias = gemm_param_u64(k, "up_bias", what->bias && what->pairs && !what->bias_pairs);
    r.residual = gemm_param_u64(k, "residual", what->residual);
    ptx_u64 y_stride = gemm_param_u64(k, "y_stride", true);
    ptx_u64 residual_stride = gemm_param_u64(k, "residual_stride", what->residual);
    ptx_u64 m = ptx_cvt_u64_u32(k, ptx_sreg_ctaid_x(k));
    r.y = row_at(k, r.y, y_stride, m, what->type);
    if (what->residual)
        r.residual = row_at(k, r.residual, residual_stride, m, what->type);
    ptx_u32 column = ptx_mov_u32(k, ptx_sreg_tid_x(k));
    ptx_for(k, column, U32(what->n), U32(GEMM_EMPTY_THREADS)) {
        ptx_nounroll(k);
        finish(k, what, &r, column);
    }
    ptx_kernel_end(k);
}
