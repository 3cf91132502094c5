/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entry marlin_gather copies activations, in the order in which the weights have K, into rows
 * that start at multiples of 16 bytes. A CTA copies the row of a token, each thread eight elements
 * at a time.
 */
#include "emit.h"

static ptx_u32 gather_pair(ptx_kernel *k, ptx_u64 token, const ptx_u32 places[2])
{
    ptx_u16 halves[2];
    for (int i = 0; i < 2; i++) {
        ptx_u64 from = ptx_mad_wide_u32(k, places[i], U32(2), token);
        halves[i] = ptx_ld_global_nc_u16(k, from, 0);
    }
    return ptx_pack_u32(k, halves);
}

void marlin_emit_gather(const ptxgen_marlin_plan *plan, ptx_module *module)
{
    ptx_kernel *k = ptx_kernel_begin(module, "marlin_gather");
    ptx_kernel_reqntid(k, MARLIN_GATHER_THREADS, 1, 1);
    if (gemm_overlaps(&plan->target)) {
        ptx_griddepcontrol_launch_dependents(k);
        ptx_griddepcontrol_wait(k);
    }
    ptx_u64 x = ptx_param_u64(k, "x"), order = U64(0);
    if (plan->spec.act_order)
        order = ptx_param_u64(k, "order");
    else
        ptx_param_declare(k, "order", 8, 8);
    ptx_u64 out = ptx_param_u64(k, "out"), stride = ptx_param_u64(k, "x_stride");
    ptx_u64 token = ptx_cvt_u64_u32(k, ptx_sreg_ctaid_x(k)), pitch = ptx_shl_b64(k, stride, U32(1));
    ptx_u64 from = ptx_mad_lo_u64(k, token, pitch, x);
    ptx_u64 to = ptx_mad_lo_u64(k, token, U64((uint64_t)plan->spec.k * 2), out);
    ptx_u32 first = ptx_shl_b32(k, ptx_sreg_tid_x(k), U32(3));
    ptx_for(k, first, U32(plan->spec.k), U32(8 * MARLIN_GATHER_THREADS)) {
        ptx_nounroll(k);
        ptx_u32 places[8], pairs[4];
        if (plan->spec.act_order) {
            ptx_u64 at = ptx_mad_wide_u32(k, first, U32(4), order);
            ptx_ld_global_nc_v4_u32(k, places, at, 0);
            ptx_ld_global_nc_v4_u32(k, places + 4, at, 16);
        } else
            for (uint32_t i = 0; i < 8; i++)
                places[i] = i ? ptx_add_u32(k, first, U32(i)) : first;
        for (int i = 0; i < 4; i++)
            pairs[i] = gather_pair(k, from, places + 2 * i);
        ptx_u64 chunk = ptx_mad_wide_u32(k, first, U32(2), to);
        ptx_st_global_v4_u32(k, chunk, 0, pairs);
    }
    ptx_kernel_end(k);
}
