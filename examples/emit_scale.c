/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The builder from end to end: a kernel that scales a vector in place, printed as annotated PTX.
 * Needs no GPU.
 *
 *     emit_scale [TARGET]        sm_80 unless told otherwise
 *     emit_scale sm_90 > scale.ptx && ptxas -arch=sm_90 scale.ptx
 */
#include <ptxgen/instr.h>
#include <ptxgen/ptx.h>

#include <stdio.h>

enum { THREADS = 256 };

/** x[i] ← x[i] · factor for i < n: one thread an element, CTAs of 256. */
static void build_scale(ptx_module *module)
{
    ptx_kernel *k = ptx_kernel_begin(module, "scale");
    ptx_kernel_reqntid(k, THREADS, 1, 1);
    ptx_u64 x = ptx_param_u64(k, "x");
    ptx_f32 factor = ptx_param_f32(k, "factor");
    ptx_u32 n = ptx_param_u32(k, "n");

    ptx_section(k, "which element");
    ptx_u32 cta = ptx_sreg_ctaid_x(k);
    ptx_u32 thread = ptx_sreg_tid_x(k);
    ptx_u32 i = ptx_mad_lo_u32(k, cta, ptx_imm_u32(THREADS), thread);

    ptx_section(k, "scale it");
    ptx_if(k, ptx_setp_lt_u32(k, i, n)) {
        ptx_u64 address = ptx_add_u64(k, x, ptx_mul_wide_u32(k, i, ptx_imm_u32(4)));
        ptx_f32 value = ptx_ld_global_f32(k, address, 0);
        ptx_st_global_f32(k, address, 0, ptx_mul_f32(k, value, factor));
    }
    ptx_kernel_end(k);
}

int main(int argc, char **argv)
{
    ptxgen_error err;
    ptx_target target;
    if (ptx_target_parse(argc > 1 ? argv[1] : "sm_80", &target, &err) != PTXGEN_OK) {
        fprintf(stderr, "emit_scale: %s\n", err.message);
        return 2;
    }
    ptx_module *module = ptx_module_create(&target, NULL);
    if (!module) {
        fprintf(stderr, "emit_scale: out of memory\n");
        return 1;
    }
    build_scale(module);

    /* The first error of all those calls, if any, surfaces here. */
    const char *text;
    ptxgen_status status = ptx_module_text(module, PTX_TEXT_ANNOTATE, &text, NULL, &err);
    if (status == PTXGEN_OK)
        fputs(text, stdout);
    else
        fprintf(stderr, "emit_scale: %s\n", err.message);
    ptx_module_destroy(module);
    return status == PTXGEN_OK ? 0 : 1;
}
