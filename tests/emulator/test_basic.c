/* SPDX-License-Identifier: Apache-2.0 */
/* The first things a kernel does: parameters, memory, control flow, barriers, shuffles. */
#include "bench.h"

#include <math.h>
#include <string.h>

static void adds_vectors(void **state)
{
    (void)state;
    struct bench bench;
    enum { N = 1000 };
    float x[N], y[N], z[N];
    for (int i = 0; i < N; i++) {
        x[i] = (float)i * 0.5f;
        y[i] = 100.0f - (float)i;
    }
    bench_open(&bench, "cpu");
    bench_kernel(&bench, "sm_80", ".param .u64 px, .param .u64 py, .param .u64 pz, .param .u32 pn",
                 ".reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .f32 %f<4>;\n"
                 "ld.param.u64 %rd1, [px]; ld.param.u64 %rd2, [py]; ld.param.u64 %rd3, [pz];\n"
                 "ld.param.u32 %r1, [pn];\n"
                 "mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;\n"
                 "mad.lo.s32 %r5, %r2, %r3, %r4;\n"
                 "setp.ge.s32 %p1, %r5, %r1;\n"
                 "@%p1 bra DONE;\n"
                 "cvta.to.global.u64 %rd1, %rd1;\n"
                 "mul.wide.s32 %rd4, %r5, 4;\n"
                 "add.s64 %rd5, %rd1, %rd4; add.s64 %rd6, %rd2, %rd4; add.s64 %rd7, %rd3, %rd4;\n"
                 "ld.global.f32 %f1, [%rd5]; ld.global.nc.f32 %f2, [%rd6];\n"
                 "add.f32 %f3, %f1, %f2;\n"
                 "st.global.f32 [%rd7], %f3;\n"
                 "DONE: ret;");
    ptxgen_cu_deviceptr px = bench_buffer(&bench, x, sizeof x);
    ptxgen_cu_deviceptr py = bench_buffer(&bench, y, sizeof y);
    ptxgen_cu_deviceptr pz = bench_blank(&bench, sizeof z);
    uint32_t n = N;
    bench_run(&bench, "k", 8, 128, (void *[]){&px, &py, &pz, &n});
    bench_read(&bench, z, pz, sizeof z);
    for (int i = 0; i < N; i++)
        assert_true(z[i] == x[i] + y[i]);
    bench_close(&bench);
}

static void reduces_through_shuffles_and_shared_memory(void **state)
{
    (void)state;
    struct bench bench;
    float x[256], sum = 0, got;
    for (int i = 0; i < 256; i++)
        sum += x[i] = (float)(i % 7);
    bench_open(&bench, "cpu:sm_80");
    bench_kernel(&bench, "sm_80", ".param .u64 px, .param .u64 pz",
                 ".reg .pred %p<3>; .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .f32 %f<8>;\n"
                 ".shared .align 4 .b8 parts[32];\n"
                 "ld.param.u64 %rd1, [px]; ld.param.u64 %rd2, [pz];\n"
                 "mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4; add.s64 %rd3, %rd3, %rd1;\n"
                 "ld.global.f32 %f1, [%rd3];\n"
                 "mov.u32 %r2, 16;\n"
                 "LOOP:\n"
                 "shfl.sync.bfly.b32 %f2, %f1, %r2, 31, -1;\n"
                 "add.f32 %f1, %f1, %f2;\n"
                 "shr.u32 %r2, %r2, 1; setp.ne.u32 %p1, %r2, 0;\n"
                 "@%p1 bra LOOP;\n"
                 "and.b32 %r3, %r1, 31; shr.u32 %r4, %r1, 5; shl.b32 %r4, %r4, 2;\n"
                 "mov.u32 %r5, parts; add.u32 %r5, %r5, %r4;\n"
                 "setp.eq.u32 %p1, %r3, 0;\n"
                 "@%p1 st.shared.f32 [%r5], %f1;\n"
                 "bar.sync 0;\n"
                 "setp.ne.u32 %p2, %r1, 0; @%p2 bra DONE;\n"
                 "ld.shared.v4.f32 {%f1,%f2,%f3,%f4}, [parts];\n"
                 "add.f32 %f1, %f1, %f2; add.f32 %f1, %f1, %f3; add.f32 %f1, %f1, %f4;\n"
                 "ld.shared.v4.f32 {%f4,%f5,%f6,%f7}, [parts+16];\n"
                 "add.f32 %f1, %f1, %f4; add.f32 %f1, %f1, %f5; add.f32 %f1, %f1, %f6;\n"
                 "add.f32 %f1, %f1, %f7;\n"
                 "st.global.f32 [%rd2], %f1;\n"
                 "DONE: ret;");
    ptxgen_cu_deviceptr px = bench_buffer(&bench, x, sizeof x);
    ptxgen_cu_deviceptr pz = bench_blank(&bench, 4);
    bench_run(&bench, "k", 1, 256, (void *[]){&px, &pz});
    bench_read(&bench, &got, pz, 4);
    assert_true(got == sum);
    bench_close(&bench);
}

static void lanes_of_one_warp_pass_a_spin_lock(void **state)
{
    (void)state;
    struct bench bench;
    uint32_t got;
    bench_open(&bench, "cpu");
    bench_kernel(&bench, "sm_80", ".param .u64 plock, .param .u64 pz",
                 ".reg .pred %p<3>; .reg .b32 %r<8>; .reg .b64 %rd<8>;\n"
                 "ld.param.u64 %rd1, [plock]; ld.param.u64 %rd2, [pz];\n"
                 "SPIN: atom.global.acquire.gpu.cas.b32 %r1, [%rd1], 0, 1;\n"
                 "setp.ne.u32 %p1, %r1, 0; @%p1 bra SPIN;\n"
                 "ld.volatile.global.u32 %r2, [%rd2]; add.u32 %r2, %r2, 1;\n"
                 "st.volatile.global.u32 [%rd2], %r2;\n"
                 "membar.gl;\n"
                 "atom.global.exch.b32 %r3, [%rd1], 0;\n"
                 "ret;");
    ptxgen_cu_deviceptr lock = bench_buffer(&bench, NULL, 4), z = bench_buffer(&bench, NULL, 4);
    bench_run(&bench, "k", 6, 96, (void *[]){&lock, &z});
    bench_read(&bench, &got, z, 4);
    assert_int_equal(got, 6 * 96);
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adds_vectors),
        cmocka_unit_test(reduces_through_shuffles_and_shared_memory),
        cmocka_unit_test(lanes_of_one_warp_pass_a_spin_lock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
