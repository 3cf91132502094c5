/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sentences that a fault may end with and that no other test provokes: programs that are wrong in
 * that way, their clean twins, and the part of the sentence that says it.
 */
#include "plant.h"

#include <stdlib.h>
#include <string.h>

#define MEET "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"
#define INIT_BAR(count) "@%p1 mbarrier.init.shared.b64 [%r7], " count ";\nbar.sync 0;\n"
#define WAIT_BAR "WAIT: mbarrier.try_wait.parity.shared.b64 %p3, [%r7], 0;\n@!%p3 bra WAIT;\n"
#define EXPECT_256 "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r7], 256;\n"
#define FENCE_256 "@%p1 fence.mbarrier_init.release.cluster;\n"
#define BULK(from, size, mark)                                                                     \
    "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [" from "], "   \
    "" size ", [%r7];" mark "\n"
#define MULTICAST(mask, mark)                                                                      \
    "mov.u16 %h1, " mask ";\nmov.u32 %r20, %cluster_ctarank;\nsetp.eq.u32 %p4, %r20, 0;\n"         \
    "and.pred %p4, %p4, %p1;\n"                                                                    \
    "@%p4 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "   \
    "[%r3], [%rd1], 256, [%r7], %h1;" mark "\n"
#define WGMMA_OF(first)                                                                            \
    "shr.u32 %r20, %r3, 4; cvt.u64.u32 %rd6, %r20;\n"                                              \
    "mov.u64 %rd7, 0x0000002000080000; or.b64 %rd6, %rd6, %rd7;\n" first                           \
    "wgmma.fence.sync.aligned;\nsetp.ne.b32 %p4, 0, 0;\n"                                          \
    "mov.b32 %r12, 0;\n"                                                                           \
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1,%f2,%f3,%f4}, "                        \
    "{%r12,%r12,%r12,%r12}, %rd6, %p4, 1, 1, 0;"
#define WGMMA_ENDS "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n"
#define FILL_ALL                                                                                   \
    "mov.u32 %r10, 0;\nshl.b32 %r11, %r1, 5; add.u32 %r11, %r3, %r11;\n"                           \
    "st.shared.v4.u32 [%r11], {%r10,%r10,%r10,%r10};\n"                                            \
    "st.shared.v4.u32 [%r11+16], {%r10,%r10,%r10,%r10};\nfence.proxy.async;\nbar.sync 0;\n"

struct rare {
    struct planted planted;
    const char *says;
};

static const struct rare rare[] = {
    {{"local_load_past_the_end", PTXGEN_CHECK_BOUNDS, 0, 0,
      "mov.u64 %rd6, frame;\nld.local.u32 %r10, [%rd6+64]; // here\n",
      "mov.u64 %rd6, frame;\nst.local.u32 [%rd6+60], %r1;\nld.local.u32 %r10, [%rd6+60];\n"},
     "out of bounds: the thread has 64 bytes of local memory"},
    {{"parameter_load_past_the_end", PTXGEN_CHECK_BOUNDS, 0, 0,
      "mov.u64 %rd6, pb;\nld.param.u64 %rd7, [%rd6+8]; // here\n",
      "mov.u64 %rd6, pa;\nld.param.u64 %rd7, [%rd6+8];\n"},
     "out of bounds: the kernel has 16 bytes of parameters"},
    {{"cp_async_that_reads_more_than_it_copies", PTXGEN_CHECK_OPERANDS, 0, 0,
      "mov.u32 %r10, 8;\ncp.async.ca.shared.global [%r4], [%rd4], 4, %r10; // here\n"
      "cp.async.wait_all;\n",
      "mov.u32 %r10, 2;\ncp.async.ca.shared.global [%r4], [%rd4], 4, %r10;\ncp.async.wait_all;\n"},
     "src-size 8 is above cp-size 4"},
    {{"asynchronous_store_with_an_mbarrier_of_another_cta", PTXGEN_CHECK_OPERANDS, 32, 2,
      INIT_BAR("1") FENCE_256 MEET "mov.u32 %r22, %cluster_ctarank;\nxor.b32 %r22, %r22, 1;\n"
                                   "mapa.shared::cluster.u32 %r20, %r4, %r22;\n"
                                   "@%p1 st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 "
                                   "[%r20], %r1, [%r7]; // here\n" MEET,
      INIT_BAR("1") FENCE_256
      "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r7], 4;\n" MEET
      "mov.u32 %r22, %cluster_ctarank;\nxor.b32 %r22, %r22, 1;\n"
      "mapa.shared::cluster.u32 %r20, %r4, %r22;\nmapa.shared::cluster.u32 %r21, %r7, %r22;\n"
      "@%p1 st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r20], %r1, "
      "[%r21];\n" WAIT_BAR MEET},
     "the mbarrier is in CTA 1 of the cluster, the destination in CTA 0"},
    {{"barrier_16", PTXGEN_CHECK_OPERANDS, 0, 0, "mov.u32 %r10, 16;\nbar.sync %r10; // here\n",
      "mov.u32 %r10, 15;\nbar.sync %r10;\n"},
     "barrier 16; a CTA has barriers 0 to 15"},
    {{"more_threads_at_a_barrier_than_it_is_for", PTXGEN_CHECK_BARRIERS, 96, 0,
      "and.pred %p3, %p2, %p2;\nsetp.eq.u32 %p4, %r6, 0;\n@!%p4 bra MEET;\n@!%p3 bra OUT;\n"
      "MEET: barrier.sync 1, 64; // here\nOUT:\n",
      "setp.eq.u32 %p4, %r6, 0;\n@%p4 bra OUT;\nbarrier.sync 1, 64;\nOUT:\n"},
     "80 threads have arrived at barrier 1, which is for 64"},
    {{"bulk_copy_of_24_bytes", PTXGEN_CHECK_OPERANDS, 0, 1,
      INIT_BAR("1") FENCE_256 EXPECT_256 "mov.u32 %r10, 24;\n" BULK("%rd1", "%r10", " // here"),
      INIT_BAR("1") FENCE_256 EXPECT_256 "mov.u32 %r10, 256;\n" BULK("%rd1", "%r10", "") WAIT_BAR},
     "a bulk copy of 24 bytes; the size is a multiple of 16"},
    {{"bulk_copy_from_an_odd_address", PTXGEN_CHECK_ALIGNMENT, 0, 1,
      INIT_BAR("1") FENCE_256 EXPECT_256 BULK("%rd1+8", "256", " // here"),
      INIT_BAR("1") FENCE_256 EXPECT_256 BULK("%rd1+16", "256", "") WAIT_BAR},
     "the addresses of a bulk copy are multiples of 16"},
    {{"multicast_to_a_cta_that_is_not_there", PTXGEN_CHECK_OPERANDS, 32, 2,
      INIT_BAR("1") FENCE_256 EXPECT_256 MEET MULTICAST("5", " // here") WAIT_BAR MEET,
      INIT_BAR("1") FENCE_256 EXPECT_256 MEET MULTICAST("3", "") WAIT_BAR MEET},
     "the CTA mask 0x5 names CTA 2 of a cluster of 2"},
    {{"uniform_branch_of_half_a_warp", PTXGEN_CHECK_DIVERGENCE, 0, 0,
      "@%p2 bra.uni OUT; // here\nOUT:\n", "setp.ge.u32 %p3, %r1, 0;\n@%p3 bra.uni OUT;\nOUT:\n"},
     "bra.uni is taken by lanes 0x0000ffff only, of 0xffffffff"},
    {{"mbarrier_at_an_odd_address", PTXGEN_CHECK_ALIGNMENT, 0, 0,
      INIT_BAR("64") "mbarrier.arrive.shared.b64 %rd6, [%r7+4]; // here\n",
      INIT_BAR("64") "mbarrier.arrive.shared.b64 %rd6, [%r7];\n"},
     "an mbarrier object lies at a multiple of 8"},
    {{"more_bytes_due_than_an_mbarrier_counts", PTXGEN_CHECK_OPERANDS, 0, 0,
      INIT_BAR("64") "@%p1 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r7], 1048575;\n"
                     "@%p1 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r7], 16; // here\n",
      INIT_BAR("64") "@%p1 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r7], 1048559;\n"
                     "@%p1 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r7], 16;\n"},
     "the mbarrier's transaction count becomes 1048591; its range is ±1048575"},
    {{"mbarrier_for_no_arrivals", PTXGEN_CHECK_OPERANDS, 0, 0,
      "mov.u32 %r10, 0;\n@%p1 mbarrier.init.shared.b64 [%r7], %r10; // here\n",
      "mov.u32 %r10, 1048575;\n@%p1 mbarrier.init.shared.b64 [%r7], %r10;\n"},
     "an mbarrier for 0 arrivals; the range is 1 to 1048575"},
    {{"mbarrier_in_global_memory", PTXGEN_CHECK_BOUNDS, 0, 0,
      "@%p1 mbarrier.init.b64 [%rd2], 1; // here\n",
      "cvt.u64.u32 %rd6, %r7;\ncvta.shared.u64 %rd6, %rd6;\n@%p1 mbarrier.init.b64 [%rd6], 1;\n"},
     "an mbarrier object lies in shared memory"},
    {{"parity_of_2", PTXGEN_CHECK_OPERANDS, 0, 0,
      INIT_BAR("1") "mov.u32 %r10, 2;\n"
                    "mbarrier.test_wait.parity.shared.b64 %p3, [%r7], %r10; // here\n",
      INIT_BAR("1") "mov.u32 %r10, 1;\nmbarrier.test_wait.parity.shared.b64 %p3, [%r7], %r10;\n"},
     "phase parity 2; it is 0 or 1"},
    {{"address_in_a_cta_that_is_not_there", PTXGEN_CHECK_OPERANDS, 32, 2,
      "mov.u32 %r10, 2;\nmapa.shared::cluster.u32 %r11, %r4, %r10; // here\n",
      "mov.u32 %r10, 1;\nmapa.shared::cluster.u32 %r11, %r4, %r10;\n"},
     "CTA rank 2 in a cluster of 2 CTAs"},
    {{"warpgroup_of_two_warps", PTXGEN_CHECK_OPERANDS, 64, 0,
      FILL_ALL WGMMA_OF("") " // here\n" WGMMA_ENDS, "mov.u32 %r10, 0;\n"},
     "a warpgroup is four warps; the CTA has 2"},
    {{"warpgroup_of_which_a_warp_has_gone", PTXGEN_CHECK_DEADLOCK, 128, 0,
      FILL_ALL WGMMA_OF("setp.eq.u32 %p5, %r6, 3;\n@%p5 exit;\n") " // here\n" WGMMA_ENDS,
      FILL_ALL WGMMA_OF("setp.eq.u32 %p5, %r6, 4;\n@%p5 exit;\n") "\n" WGMMA_ENDS},
     "deadlock: no thread of the CTA can go on; CTA (0,0,0) warp 0 lanes 0xffffffff at line 39 "
     "wait "
     "for the other warps of the warpgroup"},
    {{"warp_of_which_half_waits_for_the_other_half_at_a_barrier", PTXGEN_CHECK_BARRIERS, 0, 0,
      "@%p2 bra LOW;\nbarrier.sync 1; // here\nbra OUT;\nLOW: bar.warp.sync -1;\nOUT:\n",
      "@%p2 bra LOW;\nbarrier.sync 1;\nbra OUT;\nLOW: barrier.sync 1;\nOUT:\n"},
     " wait for other lanes of the warp"},
    {{"shuffle_of_lanes_whose_guard_is_false", PTXGEN_CHECK_DIVERGENCE, 0, 0,
      "@%p2 shfl.sync.idx.b32 %r10, %r1, 0, 31, -1; // here\n",
      "@%p2 shfl.sync.idx.b32 %r10, %r1, 0, 31, 0xffff;\n"},
     "membermask names lanes 0xffff0000, whose guard is false"},
};

static void every_rare_fault_is_named_and_its_twin_is_silent(void **state)
{
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < sizeof rare / sizeof *rare; i++) {
        const struct planted *planted = &rare[i].planted;
        char *text = plant_text(planted->faulty), *clean = plant_text(planted->clean);
        ptxgen_emulator_fault fault = plant_run(planted, text, 0);
        if (fault.check != planted->check || fault.line != plant_line(text) ||
            !strstr(fault.message, rare[i].says)) {
            print_error("%s: check %d at line %u (want %d at %u, '%s'): %s\n", planted->name,
                        (int)fault.check, fault.line, (int)planted->check, plant_line(text),
                        rare[i].says, fault.message);
            wrong++;
        }
        fault = plant_run(planted, clean, 0);
        if (fault.check) {
            print_error("the twin of %s: %s\n", planted->name, fault.message);
            wrong++;
        }
        free(text);
        free(clean);
    }
    assert_int_equal(wrong, 0);
}

/* Texts of a whole module, for what stands outside a kernel; the kernel's parameter is a buffer. */
static const struct module {
    const char *faulty, *clean, *says;
    ptxgen_emulator_check check;
} modules[] = {
    {".const .align 4 .u32 table[4] = {1, 2, 3, 4};\n.visible .entry k(.param .u64 pa)\n{\n"
     ".reg .b32 %r<2>; .reg .b64 %rd<2>;\nmov.u64 %rd1, table;\ncvta.const.u64 %rd1, %rd1;\n"
     "mov.u32 %r1, 1;\nst.u32 [%rd1], %r1; // here\nret;\n}\n",
     ".const .align 4 .u32 table[4] = {1, 2, 3, 4};\n.visible .entry k(.param .u64 pa)\n{\n"
     ".reg .b32 %r<2>; .reg .b64 %rd<2>;\nmov.u64 %rd1, table;\ncvta.const.u64 %rd1, %rd1;\n"
     "ld.u32 %r1, [%rd1];\nret;\n}\n",
     "a .const variable is written", PTXGEN_CHECK_BOUNDS},
    {".visible .entry k(.param .u64 pa)\n{\n.reg .b64 %rd<2>;\nmov.u64 %rd1, pa;\n"
     "cvta.param.u64 %rd1, %rd1;\nst.u64 [%rd1], %rd1; // here\nret;\n}\n",
     ".visible .entry k(.param .u64 pa)\n{\n.reg .b64 %rd<2>;\nmov.u64 %rd1, pa;\n"
     "cvta.param.u64 %rd1, %rd1;\nld.u64 %rd1, [%rd1];\nret;\n}\n",
     "a kernel parameter is written", PTXGEN_CHECK_BOUNDS},
    {".func f(.param .u32 n)\n{\n.reg .pred %p;\n.reg .b32 %r1;\nld.param.u32 %r1, [n];\n"
     "sub.u32 %r1, %r1, 1;\nsetp.eq.u32 %p, %r1, 0;\n@%p bra OUT;\n{\n.param .u32 a;\n"
     "st.param.u32 [a], %r1;\ncall f, (a); // here\n}\nOUT: ret;\n}\n"
     ".visible .entry k(.param .u64 pa)\n{\n.param .u32 a;\nst.param.u32 [a], 3;\n"
     "call f, (a);\nret;\n}\n",
     ".func f(.param .u32 n)\n{\n.reg .pred %p;\n.reg .b32 %r1;\nld.param.u32 %r1, [n];\n"
     "sub.u32 %r1, %r1, 1;\nsetp.eq.u32 %p, %r1, 0;\n@%p bra OUT;\n{\n.param .u32 a;\n"
     "st.param.u32 [a], %r1;\ncall f, (a);\n}\nOUT: ret;\n}\n"
     ".visible .entry k(.param .u64 pa)\n{\n.param .u32 a;\nst.param.u32 [a], 1;\n"
     "call f, (a);\nret;\n}\n",
     "the function is called while it runs: recursion is not emulated", PTXGEN_CHECK_OPERANDS},
};

static ptxgen_emulator_fault run_module(const char *text)
{
    static const char head[] = ".version 8.6\n.target sm_90\n.address_size 64\n";
    struct bench bench;
    char *whole = malloc(sizeof head + strlen(text));
    strcat(strcpy(whole, head), text);
    bench_open(&bench, "cpu:sm_90");
    bench_load(&bench, whole);
    free(whole);
    ptxgen_cu_deviceptr pa = bench_buffer(&bench, NULL, 64);
    bench_launch(&bench, "k", 1, 32, (void *[]){&pa});
    ptxgen_emulator_fault fault = bench_fault(&bench);
    ptxgen_emulator_clear_fault(bench.context);
    bench_close(&bench);
    return fault;
}

static void faults_beside_a_kernel_are_named_and_their_twins_are_silent(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++) {
        ptxgen_emulator_fault fault = run_module(modules[i].faulty);
        if (fault.check != modules[i].check || fault.line != plant_line(modules[i].faulty) + 3 ||
            !strstr(fault.message, modules[i].says))
            fail_msg("check %d, not %d, '%s': %s", (int)fault.check, (int)modules[i].check,
                     modules[i].says, fault.message);
        assert_int_equal(run_module(modules[i].clean).check, PTXGEN_CHECK_NONE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rare_fault_is_named_and_its_twin_is_silent),
        cmocka_unit_test(faults_beside_a_kernel_are_named_and_their_twins_are_silent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
