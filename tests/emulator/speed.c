/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast the emulator is, in lane instructions a second on one host thread, with all checks and
 * without those that may be switched off and take time: a loop of f32 and integer arithmetic, of
 * f16 pairs, of lop3, of shared-memory accesses with barriers, of words of shared memory, of
 * cp.async, of ldmatrix and mma, a vector sum from global memory, and a W4A16 product of 16×512×512
 * as a kernel would do it (nibbles to f16 by lop3, ldmatrix, mma). Run it by hand, with a part of a
 * name to measure only that; it is no test.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LAUNCHES = 7 };

static const char *wanted = ""; /* part of the names to measure */

static void measure(const char *name, const char *target, const char *body, uint32_t ctas,
                    uint32_t threads, bool relaxed)
{
    struct bench bench;
    uint64_t warps, lanes;
    double seconds;
    if (!strstr(name, wanted))
        return;
    bench_open(&bench, "cpu:sm_90");
    bench_options(&bench,
                  &(ptxgen_emulator_options){
                      .workers = 1,
                      .disabled_checks =
                          relaxed ? PTXGEN_CHECK_REGISTERS | PTXGEN_CHECK_SHARED_INIT |
                                        PTXGEN_CHECK_GLOBAL_INIT | PTXGEN_CHECK_RACES |
                                        PTXGEN_CHECK_GLOBAL_RACES | PTXGEN_CHECK_LIVELOCK |
                                        PTXGEN_CHECK_EQUAL_STORES | PTXGEN_CHECK_SHARED_BUFFERS |
                                        PTXGEN_CHECK_PROXIES | PTXGEN_CHECK_OVERLAP
                                  : 0});
    bench_kernel(&bench, target, ".param .u64 pa", body);
    ptxgen_cu_deviceptr a = bench_buffer(&bench, NULL, 1 << 22);
    double least = 1e9; /* of the processor's time: what else the machine does counts little */
    for (int i = 0; i < LAUNCHES; i++) {
        clock_t start = clock();
        bench_run(&bench, "k", ctas, threads, (void *[]){&a});
        double spent = (double)(clock() - start) / CLOCKS_PER_SEC;
        least = spent < least ? spent : least;
    }
    ptxgen_emulator_last_launch(bench.context, &warps, &lanes, &seconds);
    seconds = least;
    printf("%-28s %-8s %8.1f M lane instructions/s  %6.0f ns a warp instruction  %.3f s\n", name,
           relaxed ? "relaxed" : "checked", (double)lanes / seconds * 1e-6,
           seconds * 1e9 / (double)warps, seconds);
    bench_close(&bench);
}

#define REGS                                                                                       \
    ".reg .pred %p<4>; .reg .b32 %r<90>; .reg .b64 %rd<9>; .reg .f32 %f<40>;\n"                    \
    ".shared .align 128 .b8 buf[16384];\n"                                                         \
    "ld.param.u64 %rd1, [pa]; mov.u32 %r1, %tid.x; mov.u32 %r2, buf; mov.u32 %r9, 0;\n"            \
    "shl.b32 %r3, %r1, 4; add.u32 %r3, %r3, %r2; cvt.rn.f32.u32 %f1, %r1; mov.f32 %f2, %f1;\n"     \
    "mov.u32 %r4, %r1; mov.u32 %r5, 0x3c003c00; mov.u32 %r6, %r5; mov.f32 %f3, %f1;\n"             \
    "cvt.u64.u32 %rd2, %r3; add.u64 %rd2, %rd2, %rd1; mov.f32 %f4, %f1;\n"
#define LOOP(count, body)                                                                          \
    "LOOP:\n" body "add.u32 %r9, %r9, 1; setp.lt.u32 %p1, %r9, " count ";\n@%p1 bra LOOP;\n"

int main(int argc, char **argv)
{
    wanted = argc > 1 ? argv[1] : wanted;
    for (int relaxed = 0; relaxed < 2; relaxed++) {
        measure("f32 and integer arithmetic", "sm_90",
                REGS LOOP("20000",
                          "fma.rn.f32 %f2, %f2, %f1, %f3;\nadd.f32 %f3, %f3, %f1;\n"
                          "mad.lo.u32 %r4, %r4, %r1, %r9;\nxor.b32 %r4, %r4, %r9;\n"
                          "lop3.b32 %r5, %r4, %r5, %r9, 0xea;\nshr.u32 %r6, %r4, 3;\n"
                          "mul.f32 %f4, %f2, %f1;\nprmt.b32 %r7, %r4, %r5, 0x6420;\n") "ret;",
                2, 128, relaxed);
        measure("f16x2 arithmetic", "sm_90",
                REGS LOOP("10000",
                          "fma.rn.f16x2 %r6, %r5, %r5, %r6;\nmul.rn.f16x2 %r7, %r5, %r6;\n"
                          "add.rn.f16x2 %r8, %r5, %r6;\nsub.rn.f16x2 %r6, %r8, %r5;\n") "ret;",
                2, 128, relaxed);
        measure("shared memory and barriers", "sm_90",
                REGS LOOP("4000",
                          "st.shared.v4.f32 [%r3], {%f1,%f2,%f3,%f4};\nbar.sync 0;\n"
                          "xor.b32 %r4, %r3, 512;\nld.shared.v4.f32 {%f5,%f6,%f7,%f8}, [%r4];\n"
                          "bar.sync 0;\n") "ret;",
                2, 128, relaxed);
        measure("words of shared memory", "sm_90",
                REGS "st.shared.v4.f32 [%r3], {%f1,%f2,%f3,%f4};\nbar.sync 0;\n"
                     "and.b32 %r10, %r1, 31; mad.lo.u32 %r10, %r10, 4, %r2; mov.u32 %r7, 0;\n" LOOP(
                         "8000", "ld.shared.u32 %r5, [%r10];\nadd.u32 %r7, %r7, %r5;\n"
                                 "ld.shared.u32 %r6, [%r10+128];\nxor.b32 %r7, %r7, %r6;\n"
                                 "ld.shared.v2.u32 {%r5,%r6}, [%r2];\nadd.u32 %r7, %r7, %r5;\n"
                                 "st.shared.u32 [%r3+8192], %r7;\n") "ret;",
                2, 128, relaxed);
        measure("cp.async", "sm_90",
                REGS LOOP("4000", "cp.async.cg.shared.global [%r3], [%rd2], 16;\n"
                                  "cp.async.commit_group;\n"
                                  "cp.async.cg.shared.global [%r3+4096], [%rd2+4096], 16;\n"
                                  "cp.async.commit_group;\n"
                                  "cp.async.wait_group 1;\nbar.sync 0;\n"
                                  "ld.shared.v4.f32 {%f5,%f6,%f7,%f8}, [%r3];\nbar.sync 0;\n"
                                  "cp.async.wait_group 0;\n") "ret;",
                2, 128, relaxed);
        measure("lop3", "sm_90",
                REGS LOOP("10000", "lop3.b32 %r4, %r4, %r5, %r1, 0x96;\n"
                                   "lop3.b32 %r5, %r4, 0x000f000f, 0x64006400, 0xea;\n"
                                   "lop3.b32 %r6, %r4, 0x00f000f0, 0x64006400, 0xea;\n"
                                   "shr.u32 %r4, %r4, 8;\n") "ret;",
                2, 128, relaxed);
        measure("ldmatrix", "sm_90",
                REGS "st.shared.v4.f32 [%r3], {%f1,%f2,%f3,%f4};\nbar.sync 0;\n" LOOP(
                    "4000", "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r40,%r41,%r42,%r43}, "
                            "[%r3];\n"
                            "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r44,%r45,%r46,%r47}, "
                            "[%r3];\n") "ret;",
                2, 128, relaxed);
        measure("mma f16, two to an ldmatrix", "sm_90",
                REGS "st.shared.v4.u32 [%r3], {%r5,%r5,%r5,%r5};\nbar.sync 0;\n"
                     "mov.f32 %f10, 0f00000000; mov.f32 %f11, %f10; mov.f32 %f12, %f10;\n"
                     "mov.f32 %f13, %f10;\n" LOOP(
                         "2000",
                         "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r40,%r41,%r42,%r43}, [%r3];\n"
                         "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                         "{%f10,%f11,%f12,%f13}, "
                         "{%r40,%r41,%r42,%r43}, {%r5,%r6}, {%f10,%f11,%f12,%f13};\n"
                         "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                         "{%f10,%f11,%f12,%f13}, "
                         "{%r40,%r41,%r42,%r43}, {%r6,%r5}, {%f10,%f11,%f12,%f13};\n") "ret;",
                2, 128, relaxed);
        measure("mma s8", "sm_90",
                REGS
                "mov.u32 %r40, %r1; mov.u32 %r41, %r1; mov.u32 %r42, %r1; mov.u32 %r43, %r1;\n"
                "mov.u32 %r10, 0; mov.u32 %r11, 0; mov.u32 %r12, 0; mov.u32 %r13, 0;\n" LOOP(
                    "4000", "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
                            "{%r10,%r11,%r12,%r13}, "
                            "{%r40,%r41,%r42,%r43}, {%r5,%r6}, {%r10,%r11,%r12,%r13};\n") "ret;",
                2, 128, relaxed);
        measure("global loads of 16 bytes", "sm_90",
                REGS LOOP("10000", "ld.global.nc.v4.f32 {%f5,%f6,%f7,%f8}, [%rd2];\n"
                                   "fma.rn.f32 %f2, %f5, %f6, %f7;\n") "ret;",
                2, 128, relaxed);
        measure(
            "W4A16 tile product, 16x512x512", "sm_90",
            REGS
            "mov.u32 %r20, 0; mov.f32 %f10, 0f00000000; mov.f32 %f11, %f10; mov.f32 %f12, %f10;\n"
            "mov.f32 %f13, %f10; st.shared.v4.u32 [%r3], {%r20,%r20,%r20,%r20};\nbar.sync "
            "0;\n" LOOP("32",
                        "ld.global.nc.v4.u32 {%r30,%r31,%r32,%r33}, [%rd2];\n"
                        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r40,%r41,%r42,%r43}, [%r3];\n"
                        "lop3.b32 %r50, %r30, 0x000f000f, 0x64006400, 0xea;\n"
                        "lop3.b32 %r51, %r30, 0x00f000f0, 0x64006400, 0xea;\n"
                        "sub.rn.f16x2 %r52, %r50, %r5;\nfma.rn.f16x2 %r53, %r51, %r5, %r6;\n"
                        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f10,%f11,%f12,%f13}, "
                        "{%r40,%r41,%r42,%r43}, {%r52,%r53}, {%f10,%f11,%f12,%f13};\n") "ret;",
            16, 128, relaxed);
    }
    return 0;
}
