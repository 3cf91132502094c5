/* SPDX-License-Identifier: Apache-2.0 */
/* The headers and their macros from C++17; the text must be what C gives. */
#include <ptxgen/instr.h>

#include <cstring>

static void emit(ptx_kernel *k)
{
    ptx_kernel_reqntid(k, 64, 1, 1);
    ptx_u64 out = ptx_param_u64(k, "out");
    ptx_u32 n = ptx_param_u32(k, "n");
    ptx_u32 s = ptx_shared_address(k, ptx_shared_declare(k, "s", 64, 16));
    ptx_u32 i = ptx_mov_u32(k, ptx_imm_u32(0));
    ptx_u32 x = ptx_mov_u32(k, ptx_imm_u32(1));
    ptx_section(k, "loop of %d", 4);
    ptx_for(k, i, n, ptx_imm_u32(1)) ptx_add_u32_to(k, x, x, i);
    ptx_pred p = ptx_setp_lt_u32(k, x, ptx_imm_u32(9));
    ptx_if(k, p) ptx_st_shared_u32(k, s, 0, x);
    ptx_unless(k, p) ptx_st_shared_u32(k, s, 4, x);
    ptx_if_else(k, p) ptx_mov_u32_to(k, x, ptx_imm_u32(3));
    else ptx_mov_u32_to(k, x, ptx_imm_u32(4));
    ptx_loop(k, b) ptx_loop_break_if(&b, p, false);
    ptx_guarded(k, p) ptx_st_global_u32_m(k, PTX_ST_CG, out, 0, x);
    ptx_guarded_not(k, p) ptx_st_global_f32(k, out, 4, ptx_u32_as_f32(x));
    ptx_u32 v[4];
    ptx_for_static(j, 4) v[j] = x;
    ptx_st_global_v4_u32(k, out, 16, v);
    ptx_operand o[2] = {ptx_new_operand(PTX_U32), x.o};
    ptx_raw(k, "mov.b32 %0, %1", 0, o, 2, 1);
    ptx_barrier_wait(k, ptx_barrier_new(k, 0));
}

int main()
{
    ptx_target target = {};
    target.sm = 80;
    ptx_module *m = ptx_module_create(&target, nullptr);
    ptx_kernel *k = ptx_kernel_begin(m, "cpp");
    emit(k);
    ptx_kernel_end(k);
    ptxgen_error err;
    const char *text = nullptr;
    bool good = ptx_module_text(m, PTX_TEXT_ANNOTATE, &text, nullptr, &err) == PTXGEN_OK &&
                std::strstr(text, "loop of 4") != nullptr;
    ptx_module_destroy(m);
    return good ? 0 : 1;
}
