/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The asynchronous and tensor paths end to end: cp.async with ldmatrix and mma, tensor copies into
 * swizzled shared memory with wgmma, multicast and remote arrivals within a cluster, sparse mma,
 * reductions of bulk copies.
 */
#include "bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* f16 of a small integer. */
static uint16_t half_of(int value)
{
    uint16_t sign = value < 0 ? 0x8000 : 0;
    unsigned magnitude = (unsigned)abs(value), exponent = 0;
    if (!magnitude)
        return sign;
    while (magnitude >> (exponent + 1))
        exponent++;
    return (uint16_t)(sign | (exponent + 15) << 10 | ((magnitude << (10 - exponent)) & 0x3ff));
}

static int small(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (int)(*seed >> 28) - 8;
}

/* D[16,8] = A[16,16]·B[16,8]: A and B (as [8,16]) by cp.async, ldmatrix x4 and x2, one mma. */
static void mma_multiplies_tiles_that_cp_async_and_ldmatrix_brought(void **state)
{
    (void)state;
    struct bench bench;
    uint16_t a[16 * 16], b[8 * 16];
    int ai[16 * 16], bi[8 * 16];
    uint32_t seed = 3;
    float d[16 * 8];
    for (int i = 0; i < 256; i++)
        a[i] = half_of(ai[i] = small(&seed));
    for (int i = 0; i < 128; i++)
        b[i] = half_of(bi[i] = small(&seed));
    bench_open(&bench, "cpu:sm_80");
    bench_kernel(
        &bench, "sm_80", ".param .u64 pa, .param .u64 pb, .param .u64 pd",
        ".reg .pred %p<2>; .reg .b32 %r<40>; .reg .b64 %rd<10>; .reg .f32 %f<10>;\n"
        ".shared .align 16 .b8 ta[512];\n.shared .align 16 .b8 tb[256];\n"
        "ld.param.u64 %rd1, [pa]; ld.param.u64 %rd2, [pb]; ld.param.u64 %rd3, [pd];\n"
        "mov.u32 %r1, %tid.x; mov.u32 %r2, ta; mov.u32 %r3, tb;\n"
        "shl.b32 %r4, %r1, 4; cvt.u64.u32 %rd4, %r4; add.u64 %rd5, %rd1, %rd4;\n"
        "add.u32 %r5, %r2, %r4;\n"
        "cp.async.cg.shared.global [%r5], [%rd5], 16;\n"
        "setp.lt.u32 %p1, %r1, 16; add.u64 %rd6, %rd2, %rd4; add.u32 %r6, %r3, %r4;\n"
        "@%p1 cp.async.ca.shared.global [%r6], [%rd6], 16;\n"
        "cp.async.commit_group;\ncp.async.wait_group 0;\nbar.sync 0;\n"
        "and.b32 %r7, %r1, 15; shr.u32 %r8, %r1, 4; shl.b32 %r7, %r7, 5; shl.b32 %r8, %r8, 4;\n"
        "add.u32 %r9, %r2, %r7; add.u32 %r9, %r9, %r8;\n"
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10,%r11,%r12,%r13}, [%r9];\n"
        "and.b32 %r14, %r1, 7; shl.b32 %r14, %r14, 5; shr.u32 %r15, %r1, 3; and.b32 %r15, %r15, "
        "1;\n"
        "shl.b32 %r15, %r15, 4; add.u32 %r16, %r3, %r14; add.u32 %r16, %r16, %r15;\n"
        "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r17,%r18}, [%r16];\n"
        "mov.f32 %f1, 0f00000000;\n"
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f2,%f3,%f4,%f5}, "
        "{%r10,%r11,%r12,%r13}, {%r17,%r18}, {%f1,%f1,%f1,%f1};\n"
        "shr.u32 %r20, %r1, 2; and.b32 %r21, %r1, 3; shl.b32 %r22, %r20, 5; shl.b32 %r23, %r21, "
        "3;\n"
        "add.u32 %r24, %r22, %r23; cvt.u64.u32 %rd7, %r24; add.u64 %rd8, %rd3, %rd7;\n"
        "st.global.v2.f32 [%rd8], {%f2,%f3};\nst.global.v2.f32 [%rd8+256], {%f4,%f5};\nret;");
    ptxgen_cu_deviceptr pa = bench_buffer(&bench, a, sizeof a),
                        pb = bench_buffer(&bench, b, sizeof b);
    ptxgen_cu_deviceptr pd = bench_blank(&bench, sizeof d);
    bench_run(&bench, "k", 1, 32, (void *[]){&pa, &pb, &pd});
    bench_read(&bench, d, pd, sizeof d);
    for (int m = 0; m < 16; m++)
        for (int n = 0; n < 8; n++) {
            int sum = 0;
            for (int k = 0; k < 16; k++)
                sum += ai[m * 16 + k] * bi[n * 16 + k];
            assert_true(d[m * 8 + n] == (float)sum);
        }
    bench_close(&bench);
}

static void encode_map(struct bench *bench, ptxgen_cu_tensor_map *map, ptxgen_cu_deviceptr data,
                       uint64_t columns, uint64_t rows, uint32_t box_columns, uint32_t box_rows)
{
    uint64_t dims[] = {columns, rows}, strides[] = {columns * 2};
    uint32_t box[] = {box_columns, box_rows}, ones[] = {1, 1};
    assert_int_equal(bench->driver.tensor_map_encode_tiled(
                         map, PTXGEN_CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, (void *)(uintptr_t)data,
                         dims, strides, box, ones, PTXGEN_CU_TENSOR_MAP_INTERLEAVE_NONE,
                         PTXGEN_CU_TENSOR_MAP_SWIZZLE_128B, PTXGEN_CU_TENSOR_MAP_L2_PROMOTION_NONE,
                         PTXGEN_CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
                     PTXGEN_CUDA_SUCCESS);
}

/* D[64,8] = A[64,64]·B[8,64]ᵀ: both tiles by TMA with the 128-byte swizzle, four wgmma k16 steps.
 */
static void wgmma_multiplies_swizzled_tiles_that_tensor_copies_brought(void **state)
{
    (void)state;
    struct bench bench;
    static uint16_t a[64 * 64], b[8 * 64];
    static int ai[64 * 64], bi[8 * 64];
    static float d[64 * 8];
    uint32_t seed = 5;
    for (int i = 0; i < 64 * 64; i++)
        a[i] = half_of(ai[i] = small(&seed));
    for (int i = 0; i < 8 * 64; i++)
        b[i] = half_of(bi[i] = small(&seed));
    bench_open(&bench, "cpu:sm_90");
    static const char body[] =
        ".version 8.0\n.target sm_90a\n.address_size 64\n"
        ".visible .entry k(.param .align 64 .b8 ma[128], .param .align 64 .b8 mb[128], .param .u64 "
        "pd)\n{\n"
        ".reg .pred %p<4>; .reg .b32 %r<40>; .reg .b64 %rd<20>; .reg .f32 %f<10>;\n"
        ".shared .align 1024 .b8 ta[8192];\n.shared .align 1024 .b8 tb[1024];\n"
        ".shared .align 8 .b64 full;\n"
        "mov.b64 %rd1, ma; cvta.param.u64 %rd1, %rd1; mov.b64 %rd2, mb; cvta.param.u64 %rd2, "
        "%rd2;\n"
        "ld.param.u64 %rd3, [pd];\nmov.u32 %r1, %tid.x; mov.u32 %r2, ta; mov.u32 %r3, tb;\n"
        "mov.u32 %r4, full; setp.eq.u32 %p1, %r1, 0;\n"
        "@%p1 mbarrier.init.shared.b64 [%r4], 1;\n@%p1 fence.mbarrier_init.release.cluster;\n"
        "bar.sync 0;\n@!%p1 bra WAIT;\n"
        "mbarrier.arrive.expect_tx.shared.b64 _, [%r4], 9216;\n"
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r2], "
        "[%rd1, {0, 0}], [%r4];\n"
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r3], "
        "[%rd2, {0, 0}], [%r4];\n"
        "WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [%r4], 0;\n@!%p2 bra WAIT;\n"
        /* descriptors: 128-byte swizzle, stride of 8 rows = 1024 bytes */
        "shr.u32 %r5, %r2, 4; cvt.u64.u32 %rd4, %r5; shr.u32 %r6, %r3, 4; cvt.u64.u32 %rd5, %r6;\n"
        "mov.u64 %rd6, 0x4000004000010000; or.b64 %rd4, %rd4, %rd6; or.b64 %rd5, %rd5, %rd6;\n"
        "setp.ne.b32 %p3, 0, 0;\nmov.u32 %r7, 0;\nwgmma.fence.sync.aligned;\n"
        "STEP: wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1,%f2,%f3,%f4}, %rd4, %rd5, "
        "%p3, 1, 1, 0, 0;\n"
        "setp.eq.b32 %p3, 0, 0; add.u64 %rd4, %rd4, 2; add.u64 %rd5, %rd5, 2;\n"
        "add.u32 %r7, %r7, 1; setp.lt.u32 %p2, %r7, 4;\n@%p2 bra STEP;\n"
        "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n"
        "shr.u32 %r8, %r1, 5; shl.b32 %r8, %r8, 4; and.b32 %r9, %r1, 31; shr.u32 %r10, %r9, 2;\n"
        "add.u32 %r8, %r8, %r10; and.b32 %r11, %r9, 3; shl.b32 %r8, %r8, 5; shl.b32 %r11, %r11, "
        "3;\n"
        "add.u32 %r8, %r8, %r11; cvt.u64.u32 %rd7, %r8; add.u64 %rd7, %rd7, %rd3;\n"
        "st.global.v2.f32 [%rd7], {%f1,%f2};\nst.global.v2.f32 [%rd7+256], {%f3,%f4};\nret;\n}\n";
    bench_load(&bench, body);
    ptxgen_cu_deviceptr pa = bench_buffer(&bench, a, sizeof a),
                        pb = bench_buffer(&bench, b, sizeof b);
    ptxgen_cu_deviceptr pd = bench_blank(&bench, sizeof d);
    ptxgen_cu_tensor_map ma, mb;
    encode_map(&bench, &ma, pa, 64, 64, 64, 64);
    encode_map(&bench, &mb, pb, 64, 8, 64, 8);
    bench_run(&bench, "k", 1, 128, (void *[]){&ma, &mb, &pd});
    bench_read(&bench, d, pd, sizeof d);
    for (int m = 0; m < 64; m++)
        for (int n = 0; n < 8; n++) {
            int sum = 0;
            for (int k = 0; k < 64; k++)
                sum += ai[m * 64 + k] * bi[n * 64 + k];
            if (d[m * 8 + n] != (float)sum)
                fail_msg("D[%d,%d] is %g, not %d", m, n, d[m * 8 + n], sum);
        }
    bench_close(&bench);
}

/* One thread copies a box of 64 by 8 halves from column x, or to it. */
static ptxgen_emulator_fault fault_of_box(const char *copy, int32_t x)
{
    struct bench bench;
    static uint16_t a[64 * 8];
    char text[2048];
    bench_open(&bench, "cpu:sm_90");
    snprintf(text, sizeof text,
             ".version 8.0\n.target sm_90\n.address_size 64\n"
             ".visible .entry k(.param .align 64 .b8 map[128], .param .u32 x)\n{\n"
             ".reg .pred %%p<2>; .reg .b32 %%r<8>; .reg .b64 %%rd<4>;\n"
             ".shared .align 1024 .b8 box[1024];\n.shared .align 8 .b64 full;\n"
             "mov.b64 %%rd1, map; cvta.param.u64 %%rd1, %%rd1; ld.param.u32 %%r1, [x];\n"
             "mov.u32 %%r2, box; mov.u32 %%r4, full; mbarrier.init.shared.b64 [%%r4], 1;\n"
             "fence.mbarrier_init.release.cluster;\n"
             "mbarrier.arrive.expect_tx.shared.b64 _, [%%r4], 1024;\n%s\n"
             "WAIT: mbarrier.try_wait.parity.shared.b64 %%p1, [%%r4], 0;\n@!%%p1 bra WAIT;\n"
             "ret;\n}\n",
             copy);
    bench_load(&bench, text);
    ptxgen_cu_tensor_map map;
    encode_map(&bench, &map, bench_buffer(&bench, a, sizeof a), 64, 8, 64, 8);
    bench_launch(&bench, "k", 1, 1, (void *[]){&map, &x});
    ptxgen_emulator_fault fault = bench_fault(&bench);
    ptxgen_emulator_clear_fault(bench.context);
    bench_close(&bench);
    return fault;
}

static void a_box_where_an_h100_takes_none_is_reported(void **state)
{
    (void)state;
    static const char load[] =
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r2], "
        "[%rd1, {%r1, 0}], [%r4];",
                      store[] = "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group "
                                "[%rd1, {%r1, 0}], [%r2];";
    assert_int_equal(fault_of_box(load, -8).check, PTXGEN_CHECK_NONE);
    assert_int_equal(fault_of_box(load, 16).check, PTXGEN_CHECK_NONE);
    ptxgen_emulator_fault fault = fault_of_box(load, 4);
    assert_int_equal(fault.check, PTXGEN_CHECK_ALIGNMENT);
    assert_int_equal(fault.line, 13);
    assert_non_null(strstr(fault.message, "starts 8 bytes into the innermost dimension"));
    fault = fault_of_box(store, -8);
    assert_int_equal(fault.check, PTXGEN_CHECK_OPERANDS);
    assert_int_equal(fault.line, 13);
    fault = fault_of_box("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::"
                         "complete_tx::bytes [%r2], [%rd1, {%r1, 0, 0}], [%r4];",
                         0);
    assert_int_equal(fault.check, PTXGEN_CHECK_OPERANDS);
    assert_non_null(strstr(fault.message, "the tensor map has 2 dimensions, the instruction 3"));
}

/* CTA 0 multicasts 64 words to both CTAs; each waits on its own mbarrier, adds its rank, and the
 * sums are added into global memory by a reducing bulk copy. */
static void a_cluster_shares_a_multicast_and_reduces_into_global_memory(void **state)
{
    (void)state;
    struct bench bench;
    uint32_t in[64], out[64];
    for (int i = 0; i < 64; i++)
        in[i] = (uint32_t)i * 3;
    bench_open(&bench, "cpu:sm_90");
    bench.cluster = 2;
    bench_kernel(
        &bench, "sm_90", ".param .u64 pi, .param .u64 po",
        ".reg .pred %p<4>; .reg .b16 %h<2>; .reg .b32 %r<20>; .reg .b64 %rd<10>;\n"
        ".shared .align 128 .b8 buf[256];\n.shared .align 8 .b64 full;\n"
        "ld.param.u64 %rd1, [pi]; ld.param.u64 %rd2, [po];\n"
        "mov.u32 %r1, %tid.x; mov.u32 %r2, buf; mov.u32 %r3, full; mov.u32 %r4, %cluster_ctarank;\n"
        "setp.eq.u32 %p1, %r1, 0;\n@%p1 mbarrier.init.shared.b64 [%r3], 1;\n"
        "@%p1 fence.mbarrier_init.release.cluster;\n"
        "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 256;\n"
        "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"
        "or.b32 %r5, %r1, %r4; setp.eq.u32 %p2, %r5, 0;\nmov.b16 %h1, 3;\n"
        "@%p2 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%r2], [%rd1], 256, [%r3], %h1;\n"
        "WAIT: mbarrier.try_wait.parity.shared.b64 %p3, [%r3], 0;\n@!%p3 bra WAIT;\n"
        "shl.b32 %r6, %r1, 2; add.u32 %r6, %r6, %r2; ld.shared.u32 %r7, [%r6];\n"
        "add.u32 %r7, %r7, %r4; st.shared.u32 [%r6], %r7;\nfence.proxy.async;\nbar.sync 0;\n"
        "@!%p1 bra OUT;\n"
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd2], [%r2], 256;\n"
        "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nOUT:\n"
        "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\nret;");
    ptxgen_cu_deviceptr pi = bench_buffer(&bench, in, sizeof in),
                        po = bench_buffer(&bench, NULL, sizeof out);
    bench_run(&bench, "k", 2, 64, (void *[]){&pi, &po});
    bench_read(&bench, out, po, sizeof out);
    for (int i = 0; i < 64; i++)
        assert_int_equal(out[i], 2 * in[i] + 1);
    bench_close(&bench);
}

/* Producer warp and consumer warps over a ring of two stages with full and empty mbarriers. */
static void producer_and_consumers_pass_stages_through_mbarriers(void **state)
{
    (void)state;
    struct bench bench;
    enum { STAGES = 7 };
    uint32_t in[STAGES * 64], out[64], want[64] = {0};
    for (int i = 0; i < STAGES * 64; i++)
        want[i % 64] += in[i] = (uint32_t)(i * i);
    static const char body[] =
        ".reg .pred %p<6>; .reg .b32 %r<30>; .reg .b64 %rd<10>;\n"
        ".shared .align 128 .b8 ring[512];\n.shared .align 8 .b8 bars[32];\n"
        "ld.param.u64 %rd1, [pi]; ld.param.u64 %rd2, [po];\n"
        "mov.u32 %r1, %tid.x; mov.u32 %r2, ring; mov.u32 %r3, bars; setp.eq.u32 %p1, %r1, 0;\n"
        "@%p1 mbarrier.init.shared.b64 [%r3], 1;\n@%p1 mbarrier.init.shared.b64 [%r3+8], 1;\n"
        "@%p1 mbarrier.init.shared.b64 [%r3+16], 64;\n@%p1 mbarrier.init.shared.b64 [%r3+24], 64;\n"
        "@%p1 fence.mbarrier_init.release.cluster;\n"
        "bar.sync 0;\nmov.u32 %r4, 0; mov.u32 %r5, 0; mov.u32 %r6, 0;\n"
        "setp.lt.u32 %p2, %r1, 32;\n@!%p2 bra CONSUME;\n@!%p1 bra OUT;\n"
        "PRODUCE: and.b32 %r7, %r4, 1; shr.u32 %r8, %r4, 1; and.b32 %r8, %r8, 1; xor.b32 %r8, %r8, "
        "1;\n"
        "shl.b32 %r9, %r7, 3; add.u32 %r9, %r9, %r3; shl.b32 %r10, %r7, 8; add.u32 %r10, %r10, "
        "%r2;\n"
        "FREE: mbarrier.try_wait.parity.shared.b64 %p3, [%r9+16], %r8;\n@!%p3 bra FREE;\n"
        "mbarrier.arrive.expect_tx.shared.b64 _, [%r9], 256;\n"
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r10], [%rd1], 256, "
        "[%r9];\n"
        "add.u64 %rd1, %rd1, 256; add.u32 %r4, %r4, 1; setp.lt.u32 %p4, %r4, 7;\n@%p4 bra "
        "PRODUCE;\n"
        "bra OUT;\n"
        "CONSUME: and.b32 %r7, %r4, 1; shr.u32 %r8, %r4, 1; and.b32 %r8, %r8, 1;\n"
        "shl.b32 %r9, %r7, 3; add.u32 %r9, %r9, %r3; shl.b32 %r10, %r7, 8; add.u32 %r10, %r10, "
        "%r2;\n"
        "FULL: mbarrier.try_wait.parity.shared.b64 %p3, [%r9], %r8;\n@!%p3 bra FULL;\n"
        "sub.u32 %r11, %r1, 32; shl.b32 %r12, %r11, 2; add.u32 %r13, %r10, %r12;\n"
        "ld.shared.u32 %r14, [%r13]; add.u32 %r6, %r6, %r14;\n"
        "mbarrier.arrive.shared.b64 _, [%r9+16];\n"
        "add.u32 %r4, %r4, 1; setp.lt.u32 %p4, %r4, 7;\n@%p4 bra CONSUME;\n"
        "cvt.u64.u32 %rd3, %r12; add.u64 %rd3, %rd3, %rd2; st.global.u32 [%rd3], %r6;\nOUT: ret;";
    for (uint64_t seed = 0; seed < 6; seed++) {
        bench_open(&bench, "cpu:sm_90");
        bench_options(&bench, &(ptxgen_emulator_options){.seed = seed});
        bench_kernel(&bench, "sm_90", ".param .u64 pi, .param .u64 po", body);
        ptxgen_cu_deviceptr pi = bench_buffer(&bench, in, sizeof in),
                            po = bench_blank(&bench, sizeof out);
        bench_run(&bench, "k", 1, 96, (void *[]){&pi, &po});
        bench_read(&bench, out, po, sizeof out);
        assert_memory_equal(out, want, sizeof out);
        bench_close(&bench);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mma_multiplies_tiles_that_cp_async_and_ldmatrix_brought),
        cmocka_unit_test(wgmma_multiplies_swizzled_tiles_that_tensor_copies_brought),
        cmocka_unit_test(a_box_where_an_h100_takes_none_is_reported),
        cmocka_unit_test(a_cluster_shares_a_multicast_and_reduces_into_global_memory),
        cmocka_unit_test(producer_and_consumers_pass_stages_through_mbarriers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
