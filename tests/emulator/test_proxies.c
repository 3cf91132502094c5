/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the generic proxy and the async proxy owe each other: planted faults, each with a twin that
 * is right. The faulty line ends in "// here", the line that its report names too in "// first".
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char head[] =
    ".version 8.6\n.target sm_90a\n.address_size 64\n"
    ".visible .entry k(.param .u64 pa, .param .u64 pb)\n{\n"
    ".reg .pred %p<8>; .reg .b32 %r<40>; .reg .b64 %rd<20>; .reg .f32 %f<8>;\n"
    ".shared .align 128 .b8 buf[4096];\n.shared .align 8 .b64 bar;\n"
    "ld.param.u64 %rd1, [pa]; ld.param.u64 %rd2, [pb];\n"
    "mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mov.u32 %r3, buf; add.u32 %r4, %r3, %r2;\n"
    "and.b32 %r5, %r1, 31; shr.u32 %r6, %r1, 5; mov.u32 %r7, bar; mov.u32 %r8, %ctaid.x;\n"
    "cvt.u64.u32 %rd3, %r2; add.u64 %rd3, %rd1, %rd3;\n"
    "setp.eq.u32 %p1, %r1, 0; setp.eq.u32 %p2, %r5, 0; setp.eq.u32 %p3, %r6, 0;\n"
    "setp.eq.u32 %p4, %r8, 0; mul.wide.u32 %rd4, %r8, 128; add.u64 %rd2, %rd2, %rd4;\n";

#define HERE " // here\n"
#define FIRST " // first\n"
#define FENCE "fence.proxy.async;\n"
#define BAR "bar.sync 0;\n"
#define FILL_AT(mark) "st.shared.u32 [%r4], %r1;" mark
#define FILL FILL_AT("\n")
#define STORE_OUT(mark)                                                                            \
    "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r3], 128;" mark                    \
    "@%p1 cp.async.bulk.commit_group;\n"
#define WAIT_READ "@%p1 cp.async.bulk.wait_group.read 0;\n"
#define OUT(mark) STORE_OUT(mark) WAIT_READ
#define INIT_ONLY "@%p1 mbarrier.init.shared.b64 [%r7], 1;" FIRST
#define ANNOUNCE "@%p1 fence.mbarrier_init.release.cluster;\n"
#define INIT INIT_ONLY ANNOUNCE BAR
#define LOAD_IN(mark)                                                                              \
    "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r7], 128;\n"                                   \
    "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd1], 128, "  \
    "[%r7];" mark
#define LANDED "{ WAIT: mbarrier.try_wait.parity.shared.b64 %p7, [%r7], 0;\n@!%p7 bra WAIT; }\n"
#define IN(mark) LOAD_IN(mark) LANDED
#define LATE                                                                                       \
    "mov.u32 %r10, 100;\n{ LATE: sub.u32 %r10, %r10, 1; nanosleep.u32 20;\n"                       \
    "setp.ne.u32 %p5, %r10, 0;\n@%p5 bra LATE; }\n"
#define CLUSTER_BAR "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"
#define PEER                                                                                       \
    "mov.u32 %r20, %cluster_ctarank; xor.b32 %r21, %r20, 1;\n"                                     \
    "mapa.shared::cluster.u32 %r22, %r4, %r21; mapa.shared::cluster.u32 %r23, %r7, %r21;\n"
#define WGMMA(mark)                                                                                \
    "shr.u32 %r20, %r3, 4; cvt.u64.u32 %rd6, %r20;\n"                                              \
    "mov.u64 %rd7, 0x0000002000080000; or.b64 %rd6, %rd6, %rd7;\n"                                 \
    "wgmma.fence.sync.aligned;\nsetp.ne.b32 %p4, 0, 0;\n"                                          \
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1,%f2,%f3,%f4}, %rd6, %rd6, %p4, 1, "    \
    "1, 0, 0;" mark "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n"
#define FILL_TILE                                                                                  \
    "shl.b32 %r11, %r1, 5; add.u32 %r11, %r3, %r11; mov.u32 %r10, 0;\n"                            \
    "st.shared.v4.u32 [%r11], {%r10,%r10,%r10,%r10};" FIRST                                        \
    "st.shared.v4.u32 [%r11+16], {%r10,%r10,%r10,%r10};\n"
#define COPY_IN                                                                                    \
    "shl.b32 %r11, %r1, 4; add.u32 %r11, %r3, %r11;\n"                                             \
    "cp.async.cg.shared.global [%r11], [%rd1], 16;" FIRST
#define COPIED "cp.async.wait_all;\n"
/* CTA 0 writes pa and raises a flag behind it; CTA 1 takes the flag. */
#define WRITES(fence)                                                                              \
    "add.u64 %rd4, %rd1, 2048;\n@!%p4 bra OTHER;\n"                                                \
    "st.global.u32 [%rd3], 7;" FIRST fence BAR                                                     \
    "@%p1 st.release.gpu.global.u32 [%rd4], 1;\nexit;\nOTHER:\n"
#define TAKES                                                                                      \
    "TAKE: ld.acquire.gpu.global.u32 %r10, [%rd4];\nsetp.ne.u32 %p5, %r10, 1;\n@%p5 bra TAKE;\n"

#define READS " read through the async proxy follows a write through the generic proxy, at line %u"
#define WRITES_OVER                                                                                \
    " write through the async proxy follows a write through the generic proxy, at line %u"
#define NO_FENCE(space) ", without a fence.proxy.async of " space " memory between them"
#define BY_FIRST " by thread (0,0,0)"
#define NOT_FENCED                                                                                 \
    "the async proxy will count bytes at an mbarrier that was initialised at line %u" BY_FIRST     \
    ", without a fence.mbarrier_init.release.cluster by that thread or a fence.proxy.async of "    \
    "shared memory since"

#define UNHEARD                                                                                    \
    "the mbarrier was initialised at line %u" BY_FIRST                                             \
    " of CTA 1 of the cluster without a fence.mbarrier_init.release.cluster or a release, and a "  \
    "barrier of the cluster, since"

struct planted {
    const char *name;
    ptxgen_emulator_check check;
    uint32_t threads, ctas, cluster; /* 0: 64 threads, 1 CTA, no cluster */
    const char *faulty, *clean, *says;
};
#define PROXY PTXGEN_CHECK_PROXIES

static const struct planted faults[] = {
    {"stored_words_sent_by_a_bulk_copy", PROXY, 0, 0, 0, FILL_AT(FIRST) BAR OUT(HERE),
     FILL FENCE BAR OUT("\n"), "this" READS BY_FIRST NO_FENCE("shared")},
    {"a_fence_by_the_reader_before_the_barrier", PROXY, 0, 0, 0,
     FILL_AT(FIRST) "@%p1 " FENCE BAR OUT(HERE), FILL BAR "@%p1 " FENCE OUT("\n"),
     "this" READS " by thread (1,0,0)" NO_FENCE("shared")},
    {"a_fence_of_another_lane_of_the_warp", PROXY, 32, 0, 0,
     FILL_AT(FIRST) "@%p1 " FENCE "bar.warp.sync -1;\n" OUT(HERE),
     FILL FENCE "bar.warp.sync -1;\n" OUT("\n"),
     "this" READS " by thread (1,0,0)" NO_FENCE("shared")},
    {"a_fence_before_the_store", PROXY, 0, 0, 0, FENCE FILL_AT(FIRST) BAR OUT(HERE),
     FENCE FILL "fence.proxy.async.shared::cta;\n" BAR OUT("\n"),
     "this" READS BY_FIRST NO_FENCE("shared")},
    {"a_fence_of_global_memory_for_shared", PROXY, 0, 0, 0,
     FILL_AT(FIRST) "fence.proxy.async.global;\n" BAR OUT(HERE),
     FILL "fence.proxy.async.shared::cluster;\n" BAR OUT("\n"),
     "this" READS BY_FIRST NO_FENCE("shared")},
    {"a_fence_of_threads_for_one_of_proxies", PROXY, 0, 0, 0,
     FILL_AT(FIRST) "fence.acq_rel.cluster;\n" BAR OUT(HERE),
     FILL "fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;\n" BAR OUT("\n"),
     "this" READS BY_FIRST NO_FENCE("shared")},
    {"an_atomic_addition", PROXY, 0, 0, 0,
     FILL FENCE "red.shared.add.u32 [%r4], 1;" FIRST BAR OUT(HERE),
     FILL "red.shared.add.u32 [%r4], 1;\n" FENCE BAR OUT("\n"),
     "this" READS BY_FIRST NO_FENCE("shared")},
    {"a_matrix_stored", PROXY, 32, 0, 0,
     "shl.b32 %r11, %r1, 4; add.u32 %r11, %r3, %r11;\n"
     "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r11], {%r1};" FIRST
     "bar.warp.sync -1;\n" OUT(HERE),
     "shl.b32 %r11, %r1, 4; add.u32 %r11, %r3, %r11;\n"
     "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r11], {%r1};\n" FENCE
     "bar.warp.sync -1;\n" OUT("\n"),
     "this" READS BY_FIRST NO_FENCE("shared")},
    {"a_copy_by_cp_async_fenced_before_its_wait", PROXY, 0, 0, 0,
     COPY_IN FENCE COPIED BAR OUT(HERE), COPY_IN COPIED FENCE BAR OUT("\n"),
     "this" READS BY_FIRST NO_FENCE("shared")},
    {"stored_words_multiplied_by_wgmma", PROXY, 128, 0, 0, FILL_TILE BAR WGMMA(HERE),
     FILL_TILE FENCE BAR WGMMA("\n"), "this" READS BY_FIRST NO_FENCE("shared")},
    {"stored_words_overwritten_by_a_bulk_copy", PROXY, 0, 0, 0,
     "@%p1 mbarrier.init.shared.b64 [%r7], 1;\n" ANNOUNCE FILL_AT(FIRST) BAR IN(HERE),
     INIT FILL FENCE BAR IN("\n"), "this" WRITES_OVER BY_FIRST NO_FENCE("shared")},
    {"landed_words_changed_and_sent_on", PROXY, 0, 0, 0,
     "@%p1 mbarrier.init.shared.b64 [%r7], 1;\n" ANNOUNCE BAR IN("\n") FILL_AT(FIRST) BAR OUT(HERE),
     INIT IN("\n") "ld.shared.u32 %r10, [%r3];\n" BAR FILL FENCE BAR OUT("\n"),
     "this" READS BY_FIRST NO_FENCE("shared")},
    {"words_stored_by_a_peer", PROXY, 0, 2, 2,
     PEER "st.shared::cluster.u32 [%r22], %r1;" FIRST CLUSTER_BAR OUT(HERE) CLUSTER_BAR,
     PEER "st.shared::cluster.u32 [%r22], %r1;\n" FENCE CLUSTER_BAR OUT("\n") CLUSTER_BAR,
     "this" READS BY_FIRST " of CTA 1 of the cluster" NO_FENCE("shared")},
    {"global_words_stored_and_loaded", PROXY, 0, 0, 0,
     "@%p1 mbarrier.init.shared.b64 [%r7], 1;\n" ANNOUNCE
     "st.global.u32 [%rd3], 7;" FIRST BAR IN(HERE),
     INIT "st.global.u32 [%rd3], 7;\nfence.proxy.async.global;\n" BAR IN("\n"),
     "this" READS BY_FIRST NO_FENCE("global")},
    {"global_words_behind_a_fence_of_shared_memory", PROXY, 0, 0, 0,
     "@%p1 mbarrier.init.shared.b64 [%r7], 1;\n" ANNOUNCE "st.global.u32 [%rd3], 7;" FIRST
     "fence.proxy.async.shared::cta;\n" BAR IN(HERE),
     INIT "st.global.u32 [%rd3], 7;\n" BAR FENCE IN("\n"),
     "this" READS BY_FIRST NO_FENCE("global")},
    {"global_words_reduced_into", PROXY, 0, 0, 0,
     FILL "@%p1 st.global.u32 [%rd2], 0;" FIRST "fence.proxy.async.shared::cta;\n" BAR
          "@%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.max.u32 [%rd2], [%r3], 16;" HERE
          "@%p1 cp.async.bulk.commit_group;\n@%p1 cp.async.bulk.wait_group 0;\n",
     FILL "@%p1 st.global.v4.u32 [%rd2], {%r1,%r1,%r1,%r1};\n" FENCE BAR
          "@%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.max.u32 [%rd2], [%r3], 16;\n"
          "@%p1 cp.async.bulk.commit_group;\n@%p1 cp.async.bulk.wait_group 0;\n",
     "this" WRITES_OVER BY_FIRST NO_FENCE("global")},
    {"global_words_of_another_cta", PROXY, 0, 2, 0,
     "@%p1 mbarrier.init.shared.b64 [%r7], 1;\n" ANNOUNCE BAR WRITES("") TAKES IN(HERE),
     INIT WRITES("") TAKES FENCE IN("\n"), "this" READS BY_FIRST NO_FENCE("global")},
    {"global_words_fenced_before_they_are_acquired", PROXY, 0, 2, 0,
     "@%p1 mbarrier.init.shared.b64 [%r7], 1;\n" ANNOUNCE BAR WRITES("") FENCE TAKES IN(HERE),
     INIT WRITES(FENCE) TAKES IN("\n"), "this" READS BY_FIRST NO_FENCE("global")},
    {"an_mbarrier_that_is_not_fenced", PROXY, 0, 0, 0, INIT_ONLY BAR IN(HERE), INIT IN("\n"),
     NOT_FENCED},
    {"an_mbarrier_fenced_by_another_thread", PROXY, 0, 0, 0,
     INIT_ONLY "@!%p1 fence.mbarrier_init.release.cluster;\n" BAR IN(HERE),
     INIT_ONLY BAR FENCE IN("\n"), NOT_FENCED},
    {"an_mbarrier_of_which_a_peer_has_heard_nothing", PROXY, 0, 2, 2,
     PEER INIT_ONLY
     "barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;\n"
     "@%p1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r23];" HERE CLUSTER_BAR,
     PEER INIT_ONLY ANNOUNCE
     "barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;\n"
     "@%p1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r23];\n" CLUSTER_BAR,
     UNHEARD},
    {"an_mbarrier_fenced_behind_a_relaxed_arrival", PROXY, 0, 2, 2,
     PEER INIT_ONLY
     "barrier.cluster.arrive.relaxed.aligned;\n" ANNOUNCE "barrier.cluster.wait.aligned;\n"
     "@%p1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r23];" HERE CLUSTER_BAR,
     PEER INIT_ONLY
     "barrier.cluster.arrive.aligned;\n" ANNOUNCE "barrier.cluster.wait.aligned;\n"
     "@%p1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r23];\n" CLUSTER_BAR,
     UNHEARD},
    {"an_mbarrier_used_without_a_barrier", PROXY, 0, 2, 2,
     PEER INIT_ONLY ANNOUNCE "@%p3 bra OVER;\n" LATE
                             "@%p2 mbarrier.arrive.shared::cluster.b64 _, [%r23];" HERE
                             "OVER:\n" CLUSTER_BAR,
     PEER INIT_ONLY ANNOUNCE CLUSTER_BAR
     "@%p1 mbarrier.arrive.shared::cluster.b64 _, [%r23];\n" CLUSTER_BAR,
     UNHEARD},
    {"a_bulk_store_not_waited_for", PTXGEN_CHECK_ASYNC, 0, 0, 0,
     FILL FENCE BAR STORE_OUT(FIRST) "ret;" HERE, FILL FENCE BAR OUT("\n") "ret;\n",
     "the thread exits while its asynchronous copy out of shared memory, at line %u, may still "
     "read it: cp.async.bulk.wait_group.read is missing"},
    {"a_bulk_store_waited_for_but_not_committed", PTXGEN_CHECK_ASYNC, 0, 0, 0,
     FILL FENCE BAR
     "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r3], 128;" FIRST WAIT_READ
     "ret;" HERE,
     FILL FENCE BAR OUT("\n") "ret;\n",
     "the thread exits while its asynchronous copy out of shared memory, at line %u, may still "
     "read it: cp.async.bulk.wait_group.read is missing"},
    {"a_bulk_store_waited_for_by_another_thread", PTXGEN_CHECK_ASYNC, 0, 0, 0,
     FILL FENCE BAR STORE_OUT(FIRST) "@!%p1 cp.async.bulk.wait_group 0;\nret;" HERE,
     FILL FENCE BAR STORE_OUT("\n") "cp.async.bulk.wait_group 0;\nret;\n",
     "the thread exits while its asynchronous copy out of shared memory, at line %u, may still "
     "read it: cp.async.bulk.wait_group.read is missing"},
    {"a_bulk_load_that_nobody_waits_for", PTXGEN_CHECK_ASYNC, 0, 0, 0,
     "@%p1 mbarrier.init.shared.b64 [%r7], 1;\n" ANNOUNCE BAR LOAD_IN(FIRST) "ret;" HERE,
     INIT IN("\n") "ret;\n",
     "the CTA's last thread exits while an asynchronous copy into its shared memory, at line %u, "
     "is under way: nobody has waited for its mbarrier"},
    {"a_source_overwritten_before_its_reader_has_waited", PTXGEN_CHECK_RACES, 0, 0, 0,
     FILL FENCE BAR STORE_OUT("\n") BAR WAIT_READ "@%p3 bra OVER;\n" LATE
                                                  "st.shared.u32 [%r3], 9;" HERE "OVER:\n",
     FILL FENCE BAR STORE_OUT("\n") WAIT_READ BAR "@%p3 bra OVER;\nsetp.eq.u32 %p5, %r1, 32;\n"
                                                  "@%p5 st.shared.u32 [%r3], 9;\nOVER:\n",
     "race in shared memory: this write follows a read by thread (0,0,0) without a barrier "
     "between them"},
};
enum { FAULTS = sizeof faults / sizeof *faults };

static uint32_t line_of(const char *text, const char *mark)
{
    const char *end = strstr(text, mark);
    uint32_t line = 1;
    for (const char *at = text; end && at < end; at++)
        line += *at == '\n';
    return end ? line : 0;
}

static char *whole(const char *body)
{
    size_t size = sizeof head + strlen(body) + 16;
    char *text = malloc(size);
    snprintf(text, size, "%s%sret;\n}\n", head, body);
    return text;
}

static ptxgen_emulator_fault run(const struct planted *planted, const char *text,
                                 const ptxgen_emulator_options *options)
{
    struct bench bench;
    uint32_t words[1024] = {0};
    bench_open(&bench, "cpu:sm_90");
    bench_options(&bench, options);
    bench.cluster = planted->cluster;
    bench_load(&bench, text);
    ptxgen_cu_deviceptr pa = bench_buffer(&bench, words, sizeof words);
    ptxgen_cu_deviceptr pb = bench_buffer(&bench, words, sizeof words);
    bench_launch(&bench, "k", planted->ctas ? planted->ctas : 1,
                 planted->threads ? planted->threads : 64, (void *[]){&pa, &pb});
    ptxgen_emulator_fault fault = bench_fault(&bench);
    ptxgen_emulator_clear_fault(bench.context);
    bench_close(&bench);
    return fault;
}

static int compare(const struct planted *planted)
{
    char *text = whole(planted->faulty), says[400], wanted[420];
    const uint32_t line = line_of(text, "// here");
    const char *at = strstr(planted->says, "%u");
    size_t before = at ? (size_t)(at - planted->says) : strlen(planted->says);
    if (at)
        snprintf(says, sizeof says, "%.*s%u%s", (int)before, planted->says,
                 line_of(text, "// first"), at + 2);
    else
        snprintf(says, sizeof says, "%s", planted->says);
    snprintf(wanted, sizeof wanted, ": %s", says);
    ptxgen_emulator_fault fault = run(planted, text, &(ptxgen_emulator_options){.workers = 1});
    free(text);
    const char *said = strstr(fault.message, wanted);
    if (fault.check == planted->check && fault.line == line && said &&
        strlen(said) == strlen(wanted))
        return 0;
    print_error("%s: check %d, line %u, not %d, %u: %s\n", planted->name, (int)fault.check,
                fault.line, (int)planted->check, line, fault.message);
    return 1;
}

static void every_planted_fault_is_reported_at_its_line(void **state)
{
    int wrong = 0;
    (void)state;
    for (int i = 0; i < FAULTS; i++)
        wrong += compare(&faults[i]);
    assert_int_equal(wrong, 0);
}

static int is_silent(const struct planted *planted, const char *body,
                     const ptxgen_emulator_options *options)
{
    char *text = whole(body);
    ptxgen_emulator_fault fault = run(planted, text, options);
    free(text);
    if (fault.check != PTXGEN_CHECK_NONE)
        print_error("%s, seed %d: %s\n", planted->name, (int)options->seed, fault.message);
    return fault.check != PTXGEN_CHECK_NONE;
}

static void every_right_twin_is_silent(void **state)
{
    int wrong = 0;
    (void)state;
    for (int i = 0; i < FAULTS; i++)
        for (uint64_t seed = 0; seed < 3; seed++)
            wrong += is_silent(&faults[i], faults[i].clean,
                               &(ptxgen_emulator_options){.workers = 1, .seed = seed});
    assert_int_equal(wrong, 0);
}

/* Without races to look for there are no marks of memory that proxies could be told from. */
static void the_check_can_be_switched_off(void **state)
{
    int wrong = 0;
    (void)state;
    for (int i = 0; i < FAULTS; i++) {
        if (faults[i].check == PTXGEN_CHECK_RACES)
            continue;
        wrong +=
            is_silent(&faults[i], faults[i].faulty,
                      &(ptxgen_emulator_options){.workers = 1, .disabled_checks = faults[i].check});
        if (strstr(faults[i].name, "mbarrier") || faults[i].check != PROXY)
            continue;
        wrong += is_silent(
            &faults[i], faults[i].faulty,
            &(ptxgen_emulator_options){
                .workers = 1, .disabled_checks = PTXGEN_CHECK_RACES | PTXGEN_CHECK_GLOBAL_RACES});
    }
    assert_int_equal(wrong, 0);
}

/* What another thread reads by plain loads may be overwritten by the async proxy as soon as an
 * arrival at an mbarrier, and a wait for it, put the one before the other. */
static void a_stage_that_was_read_is_refilled_behind_an_mbarrier_alone(void **state)
{
    static const char ring[] =
        ".shared .align 8 .b64 free;\nmov.u32 %r20, free;\n"
        "@%p1 mbarrier.init.shared.b64 [%r20], 64;\n" INIT IN(
            "\n") "ld.shared.u32 %r10, [%r3];\nmbarrier.arrive.shared.b64 _, [%r20];\n"
                  "{ WAIT: mbarrier.try_wait.parity.shared.b64 %p7, [%r20], 0;\n@!%p7 bra WAIT; "
                  "}\n" LOAD_IN("\n") "{ WAIT: mbarrier.try_wait.parity.shared.b64 %p7, [%r7], "
                                      "1;\n@!%p7 bra WAIT; }\n"
                                      "ld.shared.u32 %r10, [%r3];\n";
    const struct planted planted = {.name = "ring"};
    (void)state;
    for (uint64_t seed = 0; seed < 4; seed++)
        assert_int_equal(
            is_silent(&planted, ring, &(ptxgen_emulator_options){.workers = 1, .seed = seed}), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_planted_fault_is_reported_at_its_line),
        cmocka_unit_test(every_right_twin_is_silent),
        cmocka_unit_test(the_check_can_be_switched_off),
        cmocka_unit_test(a_stage_that_was_read_is_refilled_behind_an_mbarrier_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
