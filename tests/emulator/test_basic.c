/* SPDX-License-Identifier: Apache-2.0 */
/* The first things a kernel does: parameters, memory, control flow, barriers, shuffles. */
#include "bench.h"

#include <math.h>
#include <stdio.h>
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

/* As compilers write what they know of pointers. */
static void parameters_may_say_what_pointers_point_to(void **state)
{
    (void)state;
    static const char *const parameters[] = {
        ".param .u64 p",
        ".param .u64 .ptr p",
        ".param .u64 .ptr .align 16 p",
        ".param .u64 .ptr .global p",
        ".param .u64 .ptr .global .align 16 p",
        ".param .align 8 .u64 p",
        ".param .align 8 .b8 p[8]",
    };
    for (size_t i = 0; i < sizeof parameters / sizeof *parameters; i++) {
        struct bench bench;
        uint32_t got = 0;
        bench_open(&bench, "cpu:sm_80");
        bench_kernel(&bench, "sm_80", parameters[i],
                     ".reg .b64 %d; ld.param.u64 %d, [p]; st.global.u32 [%d], 17; ret;");
        ptxgen_cu_deviceptr to = bench_blank(&bench, 4);
        bench_run(&bench, "k", 1, 1, (void *[]){&to});
        bench_read(&bench, &got, to, 4);
        assert_int_equal(got, 17);
        bench_close(&bench);
    }
}

/* Whole warps and single lanes; distances that are 0 in their lower 32 bits. */
static void accesses_multiples_of_4_gib_away_are_out_of_bounds(void **state)
{
    (void)state;
    static const char *const accesses[] = {
        "ld.global.u8 %r1, [%d2];",
        "ld.global.u32 %r1, [%d2];",
        "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%d2];",
        "st.global.u16 [%d2], %h;",
        "st.global.u32 [%d2], 1;",
        "st.global.v2.u64 [%d2], {%d2, %d2};",
        "atom.global.add.u32 %r1, [%d2], 1;",
        "red.global.add.u32 [%d2], 1;",
        "cp.async.ca.shared.global [buf], [%d2], 16;",
    };
    static const long long distances[] = {1ll << 32, -(1ll << 32), 1ll << 40, 3ll << 33};
    static const unsigned lanes[] = {0xffffffff, 1, 0x80000000};
    for (size_t i = 0; i < sizeof accesses / sizeof *accesses; i++)
        for (size_t j = 0; j < sizeof distances / sizeof *distances * 3; j++) {
            char body[1024];
            snprintf(
                body, sizeof body,
                ".reg .b64 %%d<4>; .reg .b32 %%r<8>; .reg .b16 %%h; .reg .pred %%p;\n"
                ".shared .align 16 .b8 buf[16];\nld.param.u64 %%d1, [p]; mov.u32 %%r0, %%tid.x; "
                "mov.u16 %%h, 1; shl.b32 %%r5, 1, %%r0; and.b32 %%r5, %%r5, %u; "
                "setp.ne.u32 %%p, %%r5, 0; mov.u64 %%d2, %%d1;\n"
                "@%%p add.s64 %%d2, %%d1, %lld;\n%s\nret;",
                lanes[j % 3], distances[j / 3], accesses[i]);
            struct bench bench;
            bench_open(&bench, "cpu:sm_80");
            bench_options(&bench,
                          &(ptxgen_emulator_options){.disabled_checks = PTXGEN_CHECK_GLOBAL_RACES |
                                                                        PTXGEN_CHECK_WARP_RACES});
            bench_kernel(&bench, "sm_80", ".param .u64 p", body);
            ptxgen_cu_deviceptr p = bench_buffer(&bench, NULL, 4096);
            bench_launch(&bench, "k", 1, 32, (void *[]){&p});
            bench.driver.ctx_synchronize();
            ptxgen_emulator_fault fault = bench_fault(&bench);
            if (fault.check != PTXGEN_CHECK_BOUNDS)
                fail_msg("%s at %lld of lanes %x: check %d: %s", accesses[i], distances[j / 3],
                         lanes[j % 3], fault.check, fault.message);
            bench_close(&bench);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adds_vectors),
        cmocka_unit_test(reduces_through_shuffles_and_shared_memory),
        cmocka_unit_test(lanes_of_one_warp_pass_a_spin_lock),
        cmocka_unit_test(parameters_may_say_what_pointers_point_to),
        cmocka_unit_test(accesses_multiples_of_4_gib_away_are_out_of_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
