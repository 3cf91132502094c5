/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A defect from the field, rebuilt with our builder: a fused RMSNorm keeps 1/rms in shared memory
 * where x[0] lies, so that element 0 is wrong and warps race on it. The emulator must see the race.
 */
#include "bench.h"

#include "ptxgen/instr.h"
#include "ptxgen/ptx.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 64 };

/* y[t] = x[t] / sqrt(Σ x²), one CTA of N threads. */
static void emit_norm(ptx_module *module, bool over_x0)
{
    ptx_kernel *k = ptx_kernel_begin(module, "norm");
    ptx_u64 x = ptx_param_u64(k, "x"), y = ptx_param_u64(k, "y");
    ptx_u32 xs = ptx_shared_address(k, ptx_shared_declare(k, "xs", N * 4, 16));
    ptx_u32 inv = ptx_shared_address(k, ptx_shared_declare(k, "inv", 4, 4));
    ptx_barrier all = ptx_barrier_new(k, 0);
    ptx_u32 tid = ptx_sreg_tid_x(k);
    ptx_u64 offset = ptx_mul_wide_u32(k, tid, ptx_imm_u32(4));
    ptx_u32 mine = ptx_mad_lo_u32(k, tid, ptx_imm_u32(4), xs);
    ptx_u64 from = ptx_add_u64(k, x, offset), to = ptx_add_u64(k, y, offset);
    ptx_st_shared_f32(k, mine, 0, ptx_ld_global_f32(k, from, 0));
    ptx_barrier_wait(k, all);
    ptx_f32 sum = ptx_mul_f32(k, ptx_imm_f32(0), ptx_imm_f32(0));
    for (int i = 0; i < N; i++) {
        ptx_f32 v = ptx_ld_shared_f32(k, xs, i * 4);
        sum = ptx_fma_f32(k, v, v, sum);
    }
    ptx_f32 scale = ptx_rsqrt_approx_f32(k, sum);
    ptx_u32 slot = over_x0 ? xs : inv;
    ptx_if(k, ptx_setp_eq_u32(k, tid, ptx_imm_u32(0))) {
        ptx_st_shared_f32(k, slot, 0, scale);
    }
    ptx_barrier_wait(k, all);
    ptx_f32 common = ptx_ld_shared_f32(k, slot, 0);
    ptx_st_global_f32(k, to, 0, ptx_mul_f32(k, ptx_ld_shared_f32(k, mine, 0), common));
    ptx_kernel_end(k);
}

static ptxgen_emulator_fault run_norm(bool over_x0, float out[N])
{
    struct bench bench;
    ptxgen_error err;
    const char *text;
    float x[N];
    for (int i = 0; i < N; i++)
        x[i] = (float)(i % 5) + 1;
    ptx_target target = {.sm = 80};
    ptx_module *module = ptx_module_create(&target, NULL);
    emit_norm(module, over_x0);
    if (ptx_module_text(module, 0, &text, NULL, &err) != PTXGEN_OK)
        fail_msg("%s", err.message);
    bench_open(&bench, "cpu:sm_80");
    bench_load(&bench, text);
    ptx_module_destroy(module);
    ptxgen_cu_deviceptr px = bench_buffer(&bench, x, sizeof x),
                        py = bench_buffer(&bench, NULL, sizeof x);
    bench_launch(&bench, "norm", 1, N, (void *[]){&px, &py});
    ptxgen_emulator_fault fault = bench_fault(&bench);
    ptxgen_emulator_clear_fault(bench.context);
    bench_read(&bench, out, py, sizeof x);
    bench_close(&bench);
    return fault;
}

static void inverse_rms_over_element_zero_is_reported_as_a_race(void **state)
{
    (void)state;
    float out[N];
    ptxgen_emulator_fault fault = run_norm(true, out);
    assert_int_equal(fault.check, PTXGEN_CHECK_RACES);
    assert_non_null(strstr(fault.message, "st.shared.f32"));
    assert_true(fault.has_address && fault.address == 0);
    assert_int_equal(fault.thread[0], 0);
}

static void inverse_rms_in_its_own_place_is_silent_and_right(void **state)
{
    (void)state;
    float out[N];
    double sum = 0;
    assert_int_equal(run_norm(false, out).check, PTXGEN_CHECK_NONE);
    for (int i = 0; i < N; i++)
        sum += (i % 5 + 1) * (i % 5 + 1);
    for (int i = 0; i < N; i++)
        assert_true(fabs(out[i] - (i % 5 + 1) / sqrt(sum)) < 1e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inverse_rms_over_element_zero_is_reported_as_a_race),
        cmocka_unit_test(inverse_rms_in_its_own_place_is_silent_and_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
