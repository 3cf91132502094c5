/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Planted faults: kernels that are wrong in one way each, and their clean twins. The faulty line
 * ends in "// here"; the report must name that line. pa holds 4096 written bytes, pb 4096 bytes
 * that were never written.
 */
#include "plant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INIT_BAR(count)                                                                            \
    "@%p1 mbarrier.init.shared.b64 [%r7], " count                                                  \
    ";\n@%p1 fence.mbarrier_init.release.cluster;\nbar.sync 0;\n"
#define WAIT_BAR "WAIT: mbarrier.try_wait.parity.shared.b64 %p3, [%r7], 0;\n@!%p3 bra WAIT;\n"
#define BULK_IN_AT(mark)                                                                           \
    "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r7], 256;\n"                                   \
    "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd1], 256, "  \
    "[%r7];" mark "\n"
#define BULK_IN BULK_IN_AT("")
#define FILL "st.shared.u32 [%r4], %r1;\n"
#define REFILL "setp.eq.u32 %p3, %r6, 1;\n" FILL "bar.sync 0;\n"
#define COPY_IF(guard)                                                                             \
    "shl.b32 %r20, %r1, 4; add.u32 %r21, %r3, %r20; cvt.u64.u32 %rd6, %r20;\n"                     \
    "add.u64 %rd6, %rd1, %rd6;\n" guard                                                            \
    "cp.async.cg.shared.global [%r21], [%rd6], 16;\ncp.async.commit_group;\n"
#define COPY16 COPY_IF("")
#define ARRIVE_IF(arrive) "@!%p3 " arrive " [%r7];\n"
#define READ_OTHER(mark)                                                                           \
    "xor.b32 %r22, %r21, 512;\nsetp.eq.u32 %p3, %r6, 1;\n"                                         \
    "@%p3 ld.shared.u32 %r10, [%r22];" mark "\n"
#define WGMMA                                                                                      \
    "shr.u32 %r20, %r3, 4; cvt.u64.u32 %rd6, %r20;\n"                                              \
    "mov.u64 %rd7, 0x0000002000080000; or.b64 %rd6, %rd6, %rd7;\n"                                 \
    "wgmma.fence.sync.aligned;\nsetp.ne.b32 %p4, 0, 0;\n"                                          \
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1,%f2,%f3,%f4}, %rd6, %rd6, %p4, 1, "    \
    "1, 0, 0;\nwgmma.commit_group.sync.aligned;\n"
#define WGMMA_R                                                                                    \
    "shr.u32 %r20, %r3, 4; cvt.u64.u32 %rd6, %r20;\n"                                              \
    "mov.u64 %rd7, 0x0000002000080000; or.b64 %rd6, %rd6, %rd7;\n"                                 \
    "wgmma.fence.sync.aligned;\nsetp.ne.b32 %p4, 0, 0;\n"                                          \
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1,%f2,%f3,%f4}, "                        \
    "{%r12,%r12,%r12,%r12}, %rd6, %p4, 1, 1, 0;\nwgmma.commit_group.sync.aligned;\n"
#define FILL_ALL                                                                                   \
    "mov.u32 %r10, 0;\nshl.b32 %r11, %r1, 5; add.u32 %r11, %r3, %r11;\n"                           \
    "FILLING: st.shared.u32 [%r11], %r10; st.shared.u32 [%r11+4], 0;\n"                            \
    "st.shared.u32 [%r11+8], 0; st.shared.u32 [%r11+12], 0; st.shared.u32 [%r11+16], 0;\n"         \
    "st.shared.u32 [%r11+20], 0; st.shared.u32 [%r11+24], 0; st.shared.u32 [%r11+28], 0;\n"        \
    "fence.proxy.async;\nbar.sync 0;\n"

#define MEET "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"
/* A pair of CTAs: in %r20 an mbarrier for `arrivals` of the peer, by which it gives its buffer
 * back; %r23 to %r25 are that mbarrier, the buffer and the mbarrier for bytes of the peer. */
#define PAIR(arrivals)                                                                             \
    ".shared .align 8 .b64 free;\nmov.u32 %r20, free;\n"                                           \
    "mov.u32 %r21, %cluster_ctarank;\nxor.b32 %r22, %r21, 1;\n"                                    \
    "mapa.shared::cluster.u32 %r23, %r20, %r22;\nmapa.shared::cluster.u32 %r24, %r3, %r22;\n"      \
    "mapa.shared::cluster.u32 %r25, %r7, %r22;\nsetp.eq.u32 %p3, %r5, 0;\n" FILL                   \
    "fence.proxy.async;\n@%p1 mbarrier.init.shared.b64 [%r20], " arrivals                          \
    ";\n" INIT_BAR("1") "@%p1 fence.mbarrier_init.release.cluster;\n" MEET                         \
                        "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r7], 256;\n"
#define READ "ld.shared.u32 %r10, [%r4];\n"
#define FIRST_WRITES(mark)                                                                         \
    "setp.ne.u32 %p4, %r21, 0;\n@%p4 bra OVER;\nadd.u32 %r24, %r24, %r2;\n"                        \
    "st.shared::cluster.u32 [%r24], 99;" mark "\nOVER:\n"
#define GIVE_BACK "@%p3 mbarrier.arrive.shared::cluster.b64 _, [%r23];\n"
/* The second warp takes its time. */
#define LATE_WARP                                                                                  \
    "setp.eq.u32 %p4, %r6, 0;\nmov.u32 %r13, 200;\n@%p4 bra EARLY;\n"                              \
    "LATE: sub.u32 %r13, %r13, 1; nanosleep.u32 20; setp.ne.u32 %p4, %r13, 0;\n"                   \
    "@%p4 bra LATE;\nEARLY:\n"
/* Thread 0 fills the peer's buffer when it is free. */
#define SEND_TO_PEER(mark)                                                                         \
    "@!%p1 bra WAIT;\nFREE: mbarrier.try_wait.parity.shared.b64 %p4, [%r20], 0;\n@!%p4 bra "       \
    "FREE;\n"                                                                                      \
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r24], [%rd1], 256, "      \
    "[%r25];" mark "\n" WAIT_BAR MEET

static const struct planted faults[] = {
    {"register_never_written", PTXGEN_CHECK_REGISTERS, 0, 0, "add.u32 %r10, %r11, 1; // here\n",
     "mov.u32 %r11, 1;\nadd.u32 %r10, %r11, 1;\n"},
    {"register_written_on_one_path_only", PTXGEN_CHECK_REGISTERS, 0, 0,
     "@!%p2 bra JOIN;\nmov.u32 %r10, 5;\nJOIN: st.global.u32 [%rd5], %r10; // here\n",
     "mov.u32 %r10, 4;\n@!%p2 bra JOIN;\nmov.u32 %r10, 5;\nJOIN: st.global.u32 [%rd5], %r10;\n"},
    {"predicate_never_written", PTXGEN_CHECK_REGISTERS, 0, 0,
     "@%p7 st.global.u32 [%rd5], %r1; // here\n",
     "setp.ne.u32 %p7, %r1, 3;\n@%p7 st.global.u32 [%rd5], %r1;\n"},
    {"value_shuffled_from_a_lane_that_is_absent", PTXGEN_CHECK_REGISTERS, 48, 0,
     "shfl.sync.bfly.b32 %r10, %r1, 16, 31, -1;\nst.global.u32 [%rd5], %r10; // here\n",
     "shfl.sync.bfly.b32 %r10, %r1, 8, 31, -1;\nst.global.u32 [%rd5], %r10;\n"},
    {"value_shuffled_from_a_lane_that_has_exited", PTXGEN_CHECK_REGISTERS, 0, 0,
     "@!%p2 exit;\nshfl.sync.down.b32 %r10, %r1, 1, 31, -1;\nst.global.u32 [%rd5], %r10; // here\n",
     "shfl.sync.down.b32 %r10, %r1, 1, 31, -1;\n@!%p2 exit;\nst.global.u32 [%rd5], %r10;\n"},
    {"value_shuffled_from_a_lane_outside_the_membermask", PTXGEN_CHECK_REGISTERS, 0, 0,
     "@!%p2 bra OUT;\nshfl.sync.up.b32 %r10, %r1, 31, 0, 0xffff;\n"
     "shfl.sync.idx.b32 %r10, %r1, 20, 31, 0xffff;\nst.global.u32 [%rd5], %r10; // here\nOUT:\n",
     "@!%p2 bra OUT;\nshfl.sync.up.b32 %r10, %r1, 31, 0, 0xffff;\n"
     "st.global.u32 [%rd5], %r10;\nOUT:\n"},
    {"shared_memory_never_written", PTXGEN_CHECK_SHARED_INIT, 0, 0,
     "ld.shared.u32 %r10, [%r4]; // here\n", FILL "ld.shared.u32 %r10, [%r4];\n"},
    {"local_memory_never_written", PTXGEN_CHECK_SHARED_INIT, 0, 0,
     "ld.local.u32 %r10, [frame+8]; // here\n",
     "st.local.u32 [frame+8], %r1;\nld.local.u32 %r10, [frame+8];\n"},
    {"global_memory_never_written", PTXGEN_CHECK_GLOBAL_INIT, 0, 0,
     "ld.global.u32 %r10, [%rd5]; // here\n", "ld.global.u32 %r10, [%rd4];\n"},
    {"global_load_past_the_end", PTXGEN_CHECK_BOUNDS, 0, 0,
     "ld.global.u32 %r10, [%rd4+3844]; // here\n", "ld.global.u32 %r10, [%rd4+3840];\n"},
    {"global_store_to_a_wild_address", PTXGEN_CHECK_BOUNDS, 0, 0,
     "st.global.u32 [%rd3], %r1; // here\n", "st.global.u32 [%rd5], %r1;\n"},
    {"bulk_prefetch_past_the_end", PTXGEN_CHECK_BOUNDS, 0, 0,
     "@%p1 cp.async.bulk.prefetch.L2.global [%rd1+4080], 32; // here\n",
     "@%p1 cp.async.bulk.prefetch.L2.global [%rd1+4080], 16;\n"},
    {"shared_store_past_the_end", PTXGEN_CHECK_BOUNDS, 0, 0,
     "st.shared.u32 [%r4+8192], %r1; // here\n", "st.shared.u32 [%r4+2048], %r1;\n"},
    {"misaligned_vector_load", PTXGEN_CHECK_ALIGNMENT, 0, 0,
     "ld.global.v4.u32 {%r10,%r11,%r12,%r13}, [%rd4]; // here\n",
     "ld.global.v4.u32 {%r10,%r11,%r12,%r13}, [%rd1];\n"},
    {"read_of_another_warps_word_without_a_barrier", PTXGEN_CHECK_RACES, 0, 0,
     REFILL "@%p3 st.shared.u32 [%r4], %r2;\n@!%p3 ld.shared.u32 %r10, [%r8]; // here\n",
     REFILL "@%p3 st.shared.u32 [%r4], %r2;\nbar.sync 0;\n@!%p3 ld.shared.u32 %r10, [%r8];\n"},
    {"write_over_a_word_that_another_warp_has_read", PTXGEN_CHECK_RACES, 0, 0,
     REFILL "@%p3 ld.shared.u32 %r10, [%r8];\n@!%p3 st.shared.u32 [%r4], 99; // here\n",
     FILL "bar.sync 0;\nld.shared.u32 %r10, [%r8];\nbar.sync 0;\nst.shared.u32 [%r4], %r10;\n"},
    {"two_warps_write_one_word", PTXGEN_CHECK_RACES, 0, 0,
     "setp.eq.u32 %p3, %r5, 0;\n@%p3 st.shared.u32 [%r3], %r6; // here\n",
     "@%p1 st.shared.u32 [%r3], %r6;\n"},
    {"two_warps_write_one_value", PTXGEN_CHECK_EQUAL_STORES, 0, 0,
     "setp.eq.u32 %p3, %r5, 0;\n@%p3 st.shared.u32 [%r3], 5; // here\n",
     "setp.eq.u32 %p3, %r5, 0;\n@%p3 st.relaxed.cta.shared.u32 [%r3], 5;\n"},
    {"lanes_write_one_value_to_global_memory", PTXGEN_CHECK_EQUAL_STORES, 0, 0,
     "st.global.u32 [%rd2], 5; // here\n", "@%p1 st.global.u32 [%rd2], 5;\n"},
    {"store_behind_the_buffer_that_it_points_into", PTXGEN_CHECK_SHARED_BUFFERS, 0, 0,
     "@%p1 st.shared.u32 [%r3+4096], %r1; // here\n",
     "@%p1 st.shared.u32 [%r3+4092], %r1;\n@%p1 st.shared.u32 [bar], 1;\n"},
    {"store_into_an_mbarrier_object", PTXGEN_CHECK_BARRIERS, 0, 0,
     INIT_BAR("1") "@%p1 st.shared.u32 [%r7], 1; // here\n",
     INIT_BAR("1") "@%p1 mbarrier.inval.shared.b64 [%r7];\n@%p1 st.shared.u32 [%r7], 1;\n"},
    {"lanes_exchange_without_a_warp_barrier", PTXGEN_CHECK_WARP_RACES, 0, 0,
     FILL "ld.shared.u32 %r10, [%r9]; // here\n",
     FILL "bar.warp.sync -1;\nld.shared.u32 %r10, [%r9];\n"},
    {"named_barrier_that_does_not_cover_the_writer", PTXGEN_CHECK_RACES, 96, 0,
     "setp.eq.u32 %p3, %r6, 0;\nsetp.eq.u32 %p4, %r5, 0;\n"
     "@%p1 st.shared.u32 [%r3], %r1;\n@%p3 bra OUT;\n"
     "bar.sync 1, 64;\nld.shared.u32 %r10, [%r3]; // here\nOUT:\n",
     "setp.eq.u32 %p3, %r6, 2;\n@!%p3 bra READ;\nsetp.eq.u32 %p4, %r5, 0;\n"
     "@%p4 st.shared.u32 [%r3], %r1;\nbar.arrive 1, 96;\nbra OUT;\n"
     "READ: bar.sync 1, 96;\nld.shared.u32 %r10, [%r3];\nOUT:\n"},
    {"async_copy_read_before_its_wait", PTXGEN_CHECK_ASYNC, 0, 0,
     COPY16 "ld.shared.u32 %r10, [%r21]; // here\n",
     COPY16 "cp.async.wait_group 0;\nld.shared.u32 %r10, [%r21];\n"},
    {"async_wait_that_leaves_one_group_too_many", PTXGEN_CHECK_ASYNC, 0, 0,
     COPY16 "cp.async.wait_group 1;\nld.shared.u32 %r10, [%r21]; // here\n",
     COPY16 "cp.async.commit_group;\ncp.async.wait_group 1;\nld.shared.u32 %r10, [%r21];\n"},
    {"async_copy_of_another_thread_without_a_barrier", PTXGEN_CHECK_RACES, 0, 0,
     FILL_ALL REFILL COPY_IF("@!%p3 ") "cp.async.wait_all;\nxor.b32 %r22, %r21, 512;\n"
                                       "@%p3 ld.shared.u32 %r10, [%r22]; // here\n",
     FILL_ALL REFILL COPY_IF("@!%p3 ") "cp.async.wait_all;\nbar.sync 0;\nxor.b32 %r22, %r21, 512;\n"
                                       "@%p3 ld.shared.u32 %r10, [%r22];\n"},
    {"async_copy_of_another_thread_that_did_not_arrive_with_it", PTXGEN_CHECK_ASYNC, 0, 0,
     INIT_BAR("32") FILL_ALL REFILL COPY_IF("@!%p3 ") ARRIVE_IF("mbarrier.arrive.shared.b64 %rd8,")
         WAIT_BAR READ_OTHER(" // here"),
     INIT_BAR("32") FILL_ALL REFILL COPY_IF("@!%p3 ")
         ARRIVE_IF("cp.async.mbarrier.arrive.noinc.shared.b64") WAIT_BAR READ_OTHER("")},
    {"bulk_copy_read_before_its_mbarrier_completes", PTXGEN_CHECK_ASYNC, 0, 0,
     INIT_BAR("1") BULK_IN "bar.sync 0;\nld.shared.u32 %r10, [%r4]; // here\n",
     INIT_BAR("1") BULK_IN WAIT_BAR "ld.shared.u32 %r10, [%r4];\n"},
    {"source_of_a_bulk_store_overwritten_before_its_wait", PTXGEN_CHECK_ASYNC, 0, 0,
     FILL "fence.proxy.async;\nbar.sync 0;\n@!%p1 bra OUT;\n"
          "cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r3], 256;\n"
          "cp.async.bulk.commit_group;\nst.shared.u32 [%r3], 9; // here\n"
          "cp.async.bulk.wait_group 0;\nOUT:\n",
     FILL "fence.proxy.async;\nbar.sync 0;\n@!%p1 bra OUT;\n"
          "cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r3], 256;\n"
          "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;\n"
          "st.shared.u32 [%r3], 9;\ncp.async.bulk.wait_group 0;\nOUT:\n"},
    {"barrier_in_a_divergent_branch", PTXGEN_CHECK_DIVERGENCE, 32, 0,
     "@!%p2 bra ELSE;\nbar.sync 0; // here\nbra JOIN;\nELSE: bar.sync 1;\nJOIN:\n",
     "@!%p2 bra ELSE;\nmov.u32 %r10, 1;\nbra JOIN;\nELSE: mov.u32 %r10, 2;\nJOIN: bar.sync 0;\n"},
    {"barrier_after_a_divergent_exit", PTXGEN_CHECK_DIVERGENCE, 0, 0,
     "@%p2 exit;\nbar.sync 0; // here\n", "bar.sync 0;\n@%p2 exit;\n"},
    {"barrier_under_a_guard_that_differs", PTXGEN_CHECK_DIVERGENCE, 0, 0,
     "@%p2 bar.sync 0; // here\n", "setp.ne.u32 %p3, 0, 1;\n@%p3 bar.sync 0;\n"},
    {"barrier_for_more_threads_than_the_cta_has", PTXGEN_CHECK_BARRIERS, 0, 0,
     "bar.sync 1, 96; // here\n", "bar.sync 1, 64;\n"},
    {"barrier_with_two_thread_counts", PTXGEN_CHECK_BARRIERS, 96, 0,
     "setp.eq.u32 %p3, %r6, 0;\n@%p3 bra FIRST;\nbar.sync 1, 96; // here\nbra OUT;\n"
     "FIRST: bar.sync 1, 64;\nOUT:\n",
     "setp.eq.u32 %p3, %r6, 0;\n@%p3 bra FIRST;\nbar.sync 1, 96;\nbra OUT;\n"
     "FIRST: bar.sync 1, 96;\nOUT:\n"},
    {"barrier_arrived_at_and_waited_for_with_two_thread_counts", PTXGEN_CHECK_BARRIERS, 96, 0,
     "setp.eq.u32 %p3, %r6, 0;\n@%p3 bra FIRST;\nbar.sync 1, 64; // here\nbra OUT;\n"
     "FIRST: bar.arrive 1, 96;\nOUT:\n",
     "setp.eq.u32 %p3, %r6, 0;\n@%p3 bra FIRST;\nbar.sync 1, 96;\nbra OUT;\n"
     "FIRST: bar.arrive 1, 96;\nOUT:\n"},
    {"barrier_that_a_warp_never_reaches", PTXGEN_CHECK_BARRIERS, 0, 0,
     "setp.eq.u32 %p3, %r6, 1;\n@%p3 bra OUT;\nbar.sync 0; // here\nOUT:\n",
     "setp.eq.u32 %p3, %r6, 1;\nbar.sync 0;\n@%p3 bra OUT;\nOUT:\n"},
    {"warps_that_wait_at_different_barriers", PTXGEN_CHECK_BARRIERS, 0, 0,
     "setp.eq.u32 %p3, %r6, 1;\n@%p3 bra SECOND;\nbar.sync 1; // here\nbra OUT;\n"
     "SECOND: bar.sync 2;\nOUT:\n",
     "setp.eq.u32 %p3, %r6, 1;\n@%p3 bra SECOND;\nbar.sync 1;\nbra OUT;\n"
     "SECOND: bar.sync 1;\nOUT:\n"},
    {"barrier_of_the_cta_and_one_of_the_cluster", PTXGEN_CHECK_BARRIERS, 0, 2,
     "setp.eq.u32 %p3, %r6, 1;\n@%p3 bra SECOND;\nbar.sync 1; // here\nSECOND:\n" MEET,
     "bar.sync 1;\n" MEET},
    {"cluster_barrier_that_half_the_warps_do_not_reach", PTXGEN_CHECK_BARRIERS, 0, 2,
     "setp.eq.u32 %p3, %r6, 0;\n@%p3 bra FIRST;\nbar.sync 1; // here\n"
     "FIRST: barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n",
     "bar.sync 1;\n" MEET},
    {"shuffle_without_the_lanes_of_its_mask", PTXGEN_CHECK_DIVERGENCE, 32, 0,
     "@!%p2 bra OUT;\nshfl.sync.idx.b32 %r10, %r1, 0, 31, -1; // here\nbra DONE;\n"
     "OUT: bar.warp.sync -1;\nDONE:\n",
     "@!%p2 bra OUT;\nshfl.sync.idx.b32 %r10, %r1, 0, 31, 0xffff;\nOUT:\n"},
    {"vote_by_a_lane_outside_its_mask", PTXGEN_CHECK_DIVERGENCE, 32, 0,
     "vote.sync.ballot.b32 %r10, %p2, 0xffff; // here\n", "vote.sync.ballot.b32 %r10, %p2, -1;\n"},
    {"lock_that_is_never_freed", PTXGEN_CHECK_LIVELOCK, 0, 0,
     "SPIN: atom.global.cas.b32 %r10, [%rd1], 0, 1; // here\nsetp.ne.u32 %p3, %r10, 0;\n"
     "@%p3 bra SPIN;\n",
     "SPIN: atom.global.cas.b32 %r10, [%rd1], 0, 1;\nsetp.ne.u32 %p3, %r10, 0;\n"
     "@%p3 bra SPIN;\natom.global.exch.b32 %r10, [%rd1], 0;\n"},
    {"mbarrier_that_expects_one_arrival_too_many", PTXGEN_CHECK_LIVELOCK, 0, 0,
     INIT_BAR(
         "65") "mbarrier.arrive.shared.b64 %rd6, [%r7];\n"
               "WAIT: mbarrier.try_wait.shared.b64 %p3, [%r7], %rd6; // here\n@!%p3 bra WAIT;\n",
     INIT_BAR("64") "mbarrier.arrive.shared.b64 %rd6, [%r7];\n"
                    "WAIT: mbarrier.try_wait.shared.b64 %p3, [%r7], %rd6;\n@!%p3 bra WAIT;\n"},
    {"mbarrier_without_init", PTXGEN_CHECK_BARRIERS, 0, 0,
     "mbarrier.arrive.shared.b64 %rd6, [%r7]; // here\n",
     INIT_BAR("64") "mbarrier.arrive.shared.b64 %rd6, [%r7];\n"},
    {"mbarrier_with_more_arrivals_than_it_expects", PTXGEN_CHECK_BARRIERS, 0, 0,
     INIT_BAR("1000") "mbarrier.arrive.shared.b64 %rd6, [%r7], 600; // here\n",
     INIT_BAR("1000") "mbarrier.arrive.shared.b64 %rd6, [%r7], 2;\n"},
    {"branch_index_outside_its_list", PTXGEN_CHECK_OPERANDS, 0, 0,
     "LIST: .branchtargets A, B;\nbrx.idx %r6, LIST;\nA: bra OUT;\nB: add.u32 %r10, %r6, 1;\n"
     "brx.idx %r10, LIST; // here\nOUT:\n",
     "LIST: .branchtargets A, B;\nbrx.idx %r6, LIST;\nA: bra OUT;\nB: bra OUT;\nOUT:\n"},
    {"accumulator_read_before_wgmma_wait", PTXGEN_CHECK_REGISTERS, 128, 0,
     FILL_ALL WGMMA "add.f32 %f5, %f1, %f2; // here\nwgmma.wait_group.sync.aligned 0;\n",
     FILL_ALL WGMMA "wgmma.wait_group.sync.aligned 0;\nadd.f32 %f5, %f1, %f2;\n"},
    {"operand_changed_before_wgmma_wait", PTXGEN_CHECK_REGISTERS, 128, 0,
     FILL_ALL "mov.u32 %r12, 0x3C003C00;\n" WGMMA_R
              "mov.u32 %r12, %r1;\nwgmma.wait_group.sync.aligned 0; // here\n",
     FILL_ALL "mov.u32 %r12, 0x3C003C00;\n" WGMMA_R
              "wgmma.wait_group.sync.aligned 0;\nmov.u32 %r12, %r1;\n"},
    {"sparse_metadata_with_equal_indices", PTXGEN_CHECK_OPERANDS, 32, 0,
     "mov.b32 %r10, 0; mov.b32 %r11, 0x44440044; mov.f32 %f1, 0f00000000;\n"
     "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%f2,%f3,%f4,%f5}, "
     "{%r10,%r10,%r10,%r10}, {%r10,%r10,%r10,%r10}, {%f1,%f1,%f1,%f1}, %r11, 0; // here\n",
     "mov.b32 %r10, 0; mov.b32 %r11, 0x44444444; mov.f32 %f1, 0f00000000;\n"
     "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%f2,%f3,%f4,%f5}, "
     "{%r10,%r10,%r10,%r10}, {%r10,%r10,%r10,%r10}, {%f1,%f1,%f1,%f1}, %r11, 0;\n"},
    {"remote_shared_memory_of_a_cta_that_has_exited", PTXGEN_CHECK_BOUNDS, 32, 2,
     FILL "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"
          "mov.u32 %r10, %cluster_ctarank;\nsetp.eq.u32 %p3, %r10, 1;\n@%p3 exit;\n"
          "mov.u32 %r13, 200;\n"
          "LATE: sub.u32 %r13, %r13, 1; nanosleep.u32 20; setp.ne.u32 %p4, %r13, 0;\n"
          "@%p4 bra LATE;\nmapa.shared::cluster.u32 %r11, %r4, 1;\n"
          "ld.shared::cluster.u32 %r12, [%r11]; // here\n",
     FILL "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"
          "mapa.shared::cluster.u32 %r11, %r4, 1;\nld.shared::cluster.u32 %r12, [%r11];\n"
          "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"},
    {"cluster_barrier_waited_for_without_arriving", PTXGEN_CHECK_BARRIERS, 32, 2,
     "barrier.cluster.wait.aligned; // here\n",
     "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"},
    {"peers_word_overwritten_without_a_cluster_barrier", PTXGEN_CHECK_RACES, 32, 2,
     PAIR("1") READ FIRST_WRITES(" // here") MEET, PAIR("1") READ MEET FIRST_WRITES("") MEET},
    {"buffer_given_back_to_a_peer_before_it_is_read", PTXGEN_CHECK_RACES, 0, 2,
     PAIR("2") GIVE_BACK READ SEND_TO_PEER(" // here"), PAIR("2") READ GIVE_BACK SEND_TO_PEER("")},
    {"buffer_given_back_to_a_peer_by_half_the_warps", PTXGEN_CHECK_RACES, 0, 2,
     PAIR("1") READ LATE_WARP GIVE_BACK SEND_TO_PEER(" // here"),
     PAIR("2") READ LATE_WARP GIVE_BACK SEND_TO_PEER("")},
    {"buffer_given_back_to_a_peer_by_a_relaxed_arrival", PTXGEN_CHECK_RACES, 0, 2,
     PAIR("2") READ
     "@%p3 mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%r23];\n" SEND_TO_PEER(
         " // here"),
     PAIR("2") READ
     "@%p3 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r23];\n" SEND_TO_PEER("")},
    {"operand_in_shared_memory_copied_over_before_wgmma_wait", PTXGEN_CHECK_RACES, 128, 0,
     INIT_BAR("1")
         FILL_ALL WGMMA BULK_IN_AT(" // here") "wgmma.wait_group.sync.aligned 0;\n" WAIT_BAR,
     INIT_BAR("1") FILL_ALL WGMMA
     "wgmma.wait_group.sync.aligned 0;\nbar.sync 0;\n" BULK_IN WAIT_BAR},
    {"asynchronous_store_in_a_launch_without_clusters", PTXGEN_CHECK_OPERANDS, 0, 0,
     FILL INIT_BAR("1") "@!%p1 bra WAIT;\n"
                        "mbarrier.arrive.expect_tx.shared.b64 _, [%r7], 4;\n"
                        "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r4], %r1, "
                        "[%r7]; // here\n" WAIT_BAR,
     FILL INIT_BAR(
         "1") "@!%p1 bra WAIT;\n"
              "st.shared.u32 [%r4], %r1;\nmbarrier.arrive.shared.b64 _, [%r7];\n" WAIT_BAR},
    {"trap", PTXGEN_CHECK_TRAP, 0, 0, "trap; // here\n", "add.u32 %r10, %r1, 1;\n"},
};

/* A part of the sentence that says what each of them did wrong. */
static const struct {
    const char *name, *says;
} sentences[] = {
    {"register_never_written", "register %r11 is read, but was never written"},
    {"register_written_on_one_path_only", "register %r10 is read, but was never written"},
    {"predicate_never_written", "register %p7 is read, but was never written"},
    {"value_shuffled_from_a_lane_that_is_absent",
     "register %r10 is read, but the shfl of line 26 took it from lane 16, which does not exist"},
    {"value_shuffled_from_a_lane_that_has_exited",
     "but the shfl of line 27 took it from lane 16, which has exited"},
    {"value_shuffled_from_a_lane_outside_the_membermask",
     "but the shfl of line 28 took it from lane 20, which the membermask does not name"},
    {"shared_memory_never_written", "shared memory is read, but was never written"},
    {"local_memory_never_written", "local memory is read, but was never written"},
    {"global_memory_never_written", "global memory is read, but was never written"},
    {"global_load_past_the_end",
     "out of bounds: no allocation there; the nearest below, 4096 bytes at 0x"},
    {"global_store_to_a_wild_address", "out of bounds: no allocation holds this address"},
    {"bulk_prefetch_past_the_end",
     "32 bytes reach past the end of the allocation of 4096 bytes at 0x"},
    {"shared_store_past_the_end", "out of bounds: the CTA has 4104 bytes of shared memory"},
    {"misaligned_vector_load", "the address is not a multiple of 16"},
    {"read_of_another_warps_word_without_a_barrier",
     "this read follows a write by thread (32,0,0) without a barrier between them"},
    {"write_over_a_word_that_another_warp_has_read",
     "this write follows a read by thread (32,0,0) without a barrier"},
    {"two_warps_write_one_word", "this write follows a write by thread (0,0,0) without a barrier"},
    {"lanes_exchange_without_a_warp_barrier",
     "this read follows a write by thread (1,0,0) without a barrier"},
    {"named_barrier_that_does_not_cover_the_writer", "this read follows a write by thread (0,0,0)"},
    {"async_copy_of_another_thread_without_a_barrier",
     "this read follows a write by thread (0,0,0)"},
    {"async_copy_read_before_its_wait",
     "shared memory is read while an asynchronous copy into it is under way: its wait is missing"},
    {"async_wait_that_leaves_one_group_too_many",
     "shared memory is read while an asynchronous copy into it is under way"},
    {"async_copy_of_another_thread_that_did_not_arrive_with_it",
     "shared memory is read while an asynchronous copy into it is under way"},
    {"bulk_copy_read_before_its_mbarrier_completes",
     "shared memory is read while an asynchronous copy into it is under way"},
    {"source_of_a_bulk_store_overwritten_before_its_wait",
     "shared memory is written while an asynchronous copy out of it is under way: its wait is "
     "missing"},
    {"barrier_in_a_divergent_branch",
     "lanes 0x0000ffff wait here for lanes 0xffff0000, which wait elsewhere (line "},
    {"barrier_after_a_divergent_exit",
     "every thread of the warp must execute it, but lanes 0x0000ffff have exited"},
    {"barrier_under_a_guard_that_differs",
     "every thread of the warp must execute it, but its guard is false in lanes 0xffff0000"},
    {"barrier_for_more_threads_than_the_cta_has",
     "the barrier's thread count is 96; it is a multiple of 32 up to the CTA's 64"},
    {"barrier_with_two_thread_counts",
     "barrier 1 is used with 96 threads here, but threads wait at it with 64"},
    {"barrier_arrived_at_and_waited_for_with_two_thread_counts",
     "barrier 1 is used with 64 threads here, but threads wait at it with 96"},
    {"barrier_that_a_warp_never_reaches",
     "a barrier is missing: threads have exited without the one that others wait at; CTA (0,0,0) "
     "warp 0 lanes 0xffffffff at line 28 wait at barrier 0, where 32 of 64 threads are; 32 threads "
     "have exited"},
    {"warps_that_wait_at_different_barriers",
     "a barrier is missing: threads wait at different barriers, each for those at others"},
    {"barrier_of_the_cta_and_one_of_the_cluster",
     "a barrier is missing: threads wait elsewhere, not at the one of the others"},
    {"cluster_barrier_that_half_the_warps_do_not_reach",
     "threads wait elsewhere, not at the one of the others; CTA (0,0,0) warp 0 lanes 0xffffffff at "
     "line 30 wait at barrier.cluster"},
    {"shuffle_without_the_lanes_of_its_mask",
     "lanes 0x0000ffff wait here for lanes 0xffff0000, which wait elsewhere"},
    {"vote_by_a_lane_outside_its_mask",
     "lane 16 executes, but membermask 0x0000ffff does not name it"},
    {"lock_that_is_never_freed",
     "warp 0 lanes 0xfffffffe go round in lines 26 to 28 and at line 26 poll address 0x"},
    {"mbarrier_that_expects_one_arrival_too_many",
     "poll address 0x1000, an mbarrier to which 1 of 65 arrivals and 0 bytes are due"},
    {"mbarrier_without_init", "no mbarrier object is there: mbarrier.init is missing"},
    {"mbarrier_with_more_arrivals_than_it_expects",
     "600 arrivals at the mbarrier, where 400 are still due in this phase (of 1000)"},
    {"branch_index_outside_its_list", "index 2 in a list of 2 branch targets"},
    {"accumulator_read_before_wgmma_wait", "register %f1 is read, but was never written"},
    {"operand_changed_before_wgmma_wait",
     "register 0 of operand A of a wgmma was changed before this wait, while it was under way"},
    {"sparse_metadata_with_equal_indices",
     "of row 0, chunk 2 has no meaning: the indices must differ"},
    {"remote_shared_memory_of_a_cta_that_has_exited",
     "shared memory of CTA 1 of the cluster, which has exited"},
    {"cluster_barrier_waited_for_without_arriving",
     "barrier.cluster.wait without an arrive before it"},
    {"peers_word_overwritten_without_a_cluster_barrier",
     "this write follows a read by thread (0,0,0) of CTA 1 of the cluster without a barrier"},
    {"buffer_given_back_to_a_peer_before_it_is_read",
     "this write follows a read by thread (0,0,0) of CTA 1 of the cluster"},
    {"buffer_given_back_to_a_peer_by_half_the_warps",
     "this write follows a read by thread (32,0,0) of CTA 1 of the cluster"},
    {"buffer_given_back_to_a_peer_by_a_relaxed_arrival",
     "this write follows a read by thread (0,0,0) of CTA 1 of the cluster"},
    {"operand_in_shared_memory_copied_over_before_wgmma_wait",
     "this write follows a read by a wgmma that is not waited for, of thread (0,0,0)"},
    {"asynchronous_store_in_a_launch_without_clusters",
     "asynchronous operations on shared memory of the cluster need a launch in clusters"},
    {"two_warps_write_one_value",
     "this write follows a write by thread (0,0,0) without a barrier between them; it stores what "
     "is there, which does not make it ordered"},
    {"lanes_write_one_value_to_global_memory",
     "this write follows a write by thread (0,0,0) of CTA (0,0,0) without bar.warp.sync between "
     "them; it stores what is there, which does not make it ordered"},
    {"store_behind_the_buffer_that_it_points_into",
     "4 bytes at offset 4096 of shared memory are not all in the buffer 'buf', 4096 bytes from "
     "offset 0 on, from which the address comes"},
    {"store_into_an_mbarrier_object",
     "shared memory that holds an mbarrier object is written: mbarrier.inval is missing"},
    {"trap", "the kernel traps here"},

};

static const char *sentence_of(const struct planted *planted)
{
    for (size_t i = 0; i < sizeof sentences / sizeof *sentences; i++)
        if (strcmp(sentences[i].name, planted->name) == 0)
            return sentences[i].says;
    return "(a sentence for it, which the table of them lacks)";
}

static void every_planted_fault_is_reported_at_its_line(void **state)
{
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        char *text = plant_text(faults[i].faulty);
        ptxgen_emulator_fault fault = plant_run(&faults[i], text, 0);
        if (fault.check != faults[i].check || fault.line != plant_line(text) ||
            strcmp(fault.kernel, "k") != 0 || !strstr(fault.message, "CTA (") ||
            !strstr(fault.message, sentence_of(&faults[i]))) {
            print_error("%s: check %d at line %u (want %d at %u, '%s'): %s\n", faults[i].name,
                        (int)fault.check, fault.line, (int)faults[i].check, plant_line(text),
                        sentence_of(&faults[i]), fault.message);
            wrong++;
        }
        free(text);
    }
    assert_int_equal(wrong, 0);
}

static void every_clean_twin_is_silent(void **state)
{
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        for (uint64_t seed = 0; seed < 4; seed++) {
            char *text = plant_text(faults[i].clean);
            ptxgen_emulator_fault fault = plant_run(&faults[i], text, seed);
            if (fault.check != PTXGEN_CHECK_NONE) {
                print_error("%s, seed %d: %s\n", faults[i].name, (int)seed, fault.message);
                wrong++;
            }
            free(text);
        }
    assert_int_equal(wrong, 0);
}

static void use_after_free_is_reported(void **state)
{
    (void)state;
    struct bench bench;
    ptxgen_cu_deviceptr freed;
    bench_open(&bench, "cpu");
    bench_kernel(&bench, "sm_80", ".param .u64 px",
                 ".reg .b32 %r1; .reg .b64 %rd1;\nld.param.u64 %rd1, [px];\n"
                 "ld.global.u32 %r1, [%rd1];\nret;");
    assert_int_equal(bench.driver.mem_alloc(&freed, 64), 0);
    assert_int_equal(bench.driver.mem_free(freed), 0);
    assert_int_equal(bench_launch(&bench, "k", 1, 1, (void *[]){&freed}),
                     PTXGEN_CUDA_ERROR_ILLEGAL_ADDRESS);
    ptxgen_emulator_fault fault = bench_fault(&bench);
    assert_int_equal(fault.check, PTXGEN_CHECK_BOUNDS);
    assert_int_equal(fault.line, 8);
    assert_true(fault.has_address && fault.address == freed);
    assert_non_null(strstr(fault.message, "use after free: the allocation of 64 bytes at 0x"));
    assert_non_null(strstr(fault.message, " has been freed"));
    bench_close(&bench);
}

static void a_fault_makes_the_context_unusable_until_cleared(void **state)
{
    (void)state;
    struct bench bench;
    size_t free_bytes, total;
    const char *text;
    bench_open(&bench, "cpu");
    bench_kernel(&bench, "sm_80", "", "trap;");
    assert_int_equal(bench_launch(&bench, "k", 1, 1, NULL), PTXGEN_CUDA_ERROR_ILLEGAL_INSTRUCTION);
    assert_int_equal(bench.driver.ctx_synchronize(), PTXGEN_CUDA_ERROR_ILLEGAL_INSTRUCTION);
    assert_int_equal(bench.driver.mem_get_info(&free_bytes, &total),
                     PTXGEN_CUDA_ERROR_ILLEGAL_INSTRUCTION);
    bench.driver.get_error_string(PTXGEN_CUDA_ERROR_ILLEGAL_INSTRUCTION, &text);
    assert_non_null(strstr(text, "kernel k, line 6"));
    ptxgen_emulator_clear_fault(bench.context);
    assert_int_equal(bench.driver.ctx_synchronize(), 0);
    bench_close(&bench);
}

static void a_disabled_check_is_silent(void **state)
{
    (void)state;
    static const ptxgen_emulator_check some[] = {
        PTXGEN_CHECK_REGISTERS,     PTXGEN_CHECK_SHARED_INIT, PTXGEN_CHECK_GLOBAL_INIT,
        PTXGEN_CHECK_RACES,         PTXGEN_CHECK_WARP_RACES,  PTXGEN_CHECK_EQUAL_STORES,
        PTXGEN_CHECK_SHARED_BUFFERS};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        for (size_t c = 0; c < sizeof some / sizeof *some; c++) {
            if (faults[i].check != some[c] || faults[i].threads)
                continue;
            struct bench bench;
            uint32_t words[1024] = {0};
            char *text = plant_text(faults[i].faulty);
            bench_open(&bench, "cpu:sm_90");
            bench_options(&bench, &(ptxgen_emulator_options){.disabled_checks = some[c]});
            bench.cluster = faults[i].cluster;
            bench_load(&bench, text);
            ptxgen_cu_deviceptr pa = bench_buffer(&bench, words, sizeof words);
            ptxgen_cu_deviceptr pb = bench_blank(&bench, sizeof words);
            bench_run(&bench, "k", bench.cluster ? bench.cluster : 1, 64, (void *[]){&pa, &pb});
            bench_close(&bench);
            free(text);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_planted_fault_is_reported_at_its_line),
        cmocka_unit_test(every_clean_twin_is_silent),
        cmocka_unit_test(use_after_free_is_reported),
        cmocka_unit_test(a_fault_makes_the_context_unusable_until_cleared),
        cmocka_unit_test(a_disabled_check_is_silent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
