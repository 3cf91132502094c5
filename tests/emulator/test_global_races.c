/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order in global memory, by the ISA's chapter "Memory Consistency Model": which two accesses of
 * one word race, for every kind of access at every distance of the threads, and which patterns of
 * release and acquire order what is around them. The first part of a program runs to its end before
 * the second begins, so that what is reported depends on order alone.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* %rd1: a word of data; %rd2: a flag; both 0. %r1: thread; %r2: CTA; %p1: thread 0; %r9: buf. */
static const char head[] =
    ".version 8.6\n.target sm_90a\n.address_size 64\n"
    ".visible .entry k(.param .u64 pa, .param .u64 pb)\n{\n"
    ".reg .pred %p<8>; .reg .b32 %r<20>; .reg .b64 %rd<8>;\n"
    ".shared .align 128 .b8 buf[64];\n.shared .align 8 .b64 bar;\n"
    "ld.param.u64 %rd1, [pa];\nld.param.u64 %rd2, [pb];\n"
    "mov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\nmov.u32 %r8, bar;\nmov.u32 %r9, buf;\n"
    "setp.eq.u32 %p1, %r1, 0;\nshr.u32 %r3, %r1, 5;\nadd.u32 %r7, %r2, 1;\n";

static char *program(const char *const parts[], uint32_t count)
{
    size_t size = sizeof head + 64;
    for (uint32_t i = 0; i < count; i++)
        size += strlen(parts[i]);
    char *text = malloc(size);
    strcpy(text, head);
    for (uint32_t i = 0; i < count; i++)
        strcat(text, parts[i]);
    strcat(text, "ret;\n}\n");
    return text;
}

static uint32_t marked_line(const char *text)
{
    const char *mark = strstr(text, "// here");
    uint32_t line = 1;
    for (const char *at = text; mark && at < mark; at++)
        line += *at == '\n';
    return mark ? line : 0;
}

struct run {
    uint32_t threads, cluster, ctas, flag;
    ptxgen_emulator_options options;
};

static ptxgen_emulator_fault run_text(const struct run *run, const char *text)
{
    struct bench bench;
    uint32_t data[16] = {0}, flags[16] = {run->flag};
    bench_open(&bench, "cpu:sm_90");
    bench_options(&bench, &run->options);
    bench.cluster = run->cluster;
    bench_load(&bench, text);
    ptxgen_cu_deviceptr pa = bench_buffer(&bench, data, sizeof data);
    ptxgen_cu_deviceptr pb = bench_buffer(&bench, flags, sizeof flags);
    ptxgen_cu_result result =
        bench_launch(&bench, "k", run->ctas, run->threads, (void *[]){&pa, &pb});
    ptxgen_emulator_fault fault = bench_fault(&bench);
    assert_int_equal(result != PTXGEN_CUDA_SUCCESS, fault.check != PTXGEN_CHECK_NONE);
    ptxgen_emulator_clear_fault(bench.context);
    bench_close(&bench);
    return fault;
}

/* ---- two accesses ---- */

enum distance { IN_CTA = 1, IN_CLUSTER, IN_GRID };
static const char *const distances[] = {"", "two warps", "two CTAs of a cluster", "two clusters"};

struct kind {
    const char *name, *text;
    bool writes;
    int scope; /* of strong accesses, the farthest distance that it includes; 0: weak */
};

#define BULK_OUT(operation)                                                                        \
    "st.shared.v4.u32 [%r9], {%r7,%r7,%r7,%r7};\nfence.proxy.async;\n" operation                   \
    " [%rd1], [%r9], 16;\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n"
#define EACH_SCOPE(name, before, after, writes)                                                    \
    {name ".cta", before ".cta" after, writes, IN_CTA},                                            \
        {name ".cluster", before ".cluster" after, writes, IN_CLUSTER},                            \
        {name ".gpu", before ".gpu" after, writes, IN_GRID},                                       \
    {                                                                                              \
        name ".sys", before ".sys" after, writes, IN_GRID                                          \
    }

static const struct kind kinds[] = {
    {"ld", "ld.global.u32 %r4, [%rd1];\n", false, 0},
    {"ld.cg", "ld.global.cg.u32 %r4, [%rd1];\n", false, 0},
    {"st", "st.global.u32 [%rd1], %r7;\n", true, 0},
    {"generic ld", "ld.u32 %r4, [%rd1];\n", false, 0},
    {"generic st", "st.u32 [%rd1], %r7;\n", true, 0},
    {"ld.volatile", "ld.volatile.global.u32 %r4, [%rd1];\n", false, IN_GRID},
    {"st.volatile", "st.volatile.global.u32 [%rd1], %r7;\n", true, IN_GRID},
    EACH_SCOPE("ld.relaxed", "ld.relaxed", ".global.u32 %r4, [%rd1];\n", false),
    EACH_SCOPE("st.relaxed", "st.relaxed", ".global.u32 [%rd1], %r7;\n", true),
    EACH_SCOPE("atom", "atom.relaxed", ".global.add.u32 %r4, [%rd1], %r7;\n", true),
    {"ld.acquire.gpu", "ld.acquire.gpu.global.u32 %r4, [%rd1];\n", false, IN_GRID},
    {"st.release.gpu", "st.release.gpu.global.u32 [%rd1], %r7;\n", true, IN_GRID},
    {"atom", "atom.global.add.u32 %r4, [%rd1], %r7;\n", true, IN_GRID},
    {"red", "red.global.add.u32 [%rd1], %r7;\n", true, IN_GRID},
    {"cp.async", "cp.async.ca.shared.global [%r9], [%rd1], 4;\ncp.async.wait_all;\n", false, 0},
    {"bulk load",
     "mbarrier.init.shared.b64 [%r8], 1;\nfence.proxy.async;\n"
     "mbarrier.arrive.expect_tx.shared.b64 _, [%r8], 16;\n"
     "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r9], [%rd1], 16, [%r8];\n"
     "{ WAIT: mbarrier.try_wait.parity.shared.b64 %p3, [%r8], 0;\n@!%p3 bra WAIT; }\n"
     "mbarrier.inval.shared.b64 [%r8];\n",
     false, 0},
    {"bulk store", BULK_OUT("cp.async.bulk.global.shared::cta.bulk_group"), true, 0},
    {"bulk reduction", BULK_OUT("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32"), true,
     IN_GRID},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static const char *const how_missing[] = {
    "", " without a barrier between them",
    (" without barrier.cluster, or a release and an acquire of .cluster scope or wider, between "
     "them"),
    " without a release and an acquire of .gpu scope or wider between them"};

static bool same_shared(const struct kind *a, const struct kind *b)
{
    return strstr(a->text, "[%r9]") && strstr(b->text, "[%r9]");
}

static int compare(const struct kind *first, const struct kind *second, enum distance distance)
{
    static const char *const roles[] = {"",
                                        ("setp.eq.u32 %p2, %r3, 0;\nand.b32 %r4, %r1, 31;\n"
                                         "setp.ne.u32 %p3, %r4, 0;\n@%p3 exit;\n"),
                                        "setp.eq.u32 %p2, %r2, 0;\n", "setp.eq.u32 %p2, %r2, 0;\n"};
    const char *const parts[] = {roles[distance], "add.u32 %r7, %r7, %r3;\n@!%p2 bra SECOND;\n",
                                 first->text, "exit;\nSECOND:\n", second->text};
    const struct run run = {.threads = distance == IN_CTA ? 64 : 1,
                            .cluster = distance == IN_CLUSTER ? 2 : 1,
                            .ctas = distance == IN_CTA ? 1 : 2,
                            .options = {.workers = 1}};
    bool strong = first->scope && second->scope;
    bool race = (first->writes || second->writes) &&
                !(strong && first->scope >= (int)distance && second->scope >= (int)distance);
    char wanted[400] = "";
    if (race)
        snprintf(wanted, sizeof wanted,
                 "race in global memory: this %s follows a %s by thread (0,0,0) of CTA (0,0,0)%s",
                 second->writes ? "write" : "read", first->writes ? "write" : "read",
                 strong ? "; both are strong, but the scope of one does not include the other's "
                          "thread"
                        : how_missing[distance]);
    char *text = program(parts, sizeof parts / sizeof *parts);
    ptxgen_emulator_fault fault = run_text(&run, text);
    free(text);
    const char *said = strstr(fault.message, "race in global memory");
    if (fault.check == (race ? PTXGEN_CHECK_GLOBAL_RACES : PTXGEN_CHECK_NONE) &&
        strcmp(said ? said : "", wanted) == 0)
        return 0;
    print_error("%s, then %s, by %s: want '%s', got '%s'\n", first->name, second->name,
                distances[distance], wanted, fault.message);
    return 1;
}

static void every_two_kinds_of_access_have_their_verdict(void **state)
{
    int wrong = 0;
    for (int distance = IN_CTA; distance <= IN_GRID; distance++)
        for (uint32_t a = 0; a < KINDS; a++)
            for (uint32_t b = 0; b < KINDS; b++)
                if (distance != IN_CTA || !same_shared(&kinds[a], &kinds[b]))
                    wrong += compare(&kinds[a], &kinds[b], (enum distance)distance);
    assert_int_equal(wrong, 0);
    (void)state;
}

/* ---- patterns of release and acquire ---- */

struct pattern {
    const char *name, *faulty, *clean, *says; /* the end of the message */
    uint32_t threads, cluster, ctas, flag;    /* 0: 1, 1, 2, 0 */
};

#define FIRST "setp.eq.u32 %p2, %r2, 0;\n@!%p2 bra SECOND;\n"
#define THEN "exit;\nSECOND:\n"
#define STORE "st.global.u32 [%rd1], 7;\n"
#define LOAD "ld.global.u32 %r4, [%rd1]; // here\n"
#define WAIT(load) "WAIT: " load " %r5, [%rd2];\nsetp.eq.u32 %p3, %r5, 0;\n@%p3 bra WAIT;\n"
#define RAISE(store) store " [%rd2], 1;\n"
#define RELEASE RAISE("st.release.gpu.global.u32")
#define ACQUIRE WAIT("ld.acquire.gpu.global.u32")
#define FENCE(scope) "fence.acq_rel." scope ";\n"
#define CLUSTER_MEETS "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"
#define TAKE(atom) "TAKE: " atom "setp.eq.u32 %p3, %r4, 0;\n@%p3 bra TAKE;\n"
#define PASS(signal, wait) FIRST STORE signal THEN wait LOAD
#define BULK                                                                                       \
    "st.shared.v4.u32 [%r9], {%r7,%r7,%r7,%r7};\nfence.proxy.async;\n"                             \
    "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r9], "                                  \
    "16;\ncp.async.bulk.commit_group;\n"
#define AT_GRID                                                                                    \
    "read follows a write by thread (0,0,0) of CTA (0,0,0) without a release and an "              \
    "acquire of .gpu scope or wider between them"
#define OF_WARP(sentence) "read follows a write by thread (32,0,0) of CTA (0,0,0) " sentence

static const struct pattern patterns[] = {
    {"a_flag_raised_by_a_relaxed_store", PASS(RAISE("st.relaxed.gpu.global.u32"), ACQUIRE),
     PASS(RELEASE, ACQUIRE), AT_GRID, 0, 0, 0, 0},
    {"a_flag_taken_by_a_relaxed_load", PASS(RELEASE, WAIT("ld.relaxed.gpu.global.u32")),
     PASS(RELEASE, WAIT("ld.relaxed.gpu.global.u32") FENCE("gpu")), AT_GRID, 0, 0, 0, 0},
    {"no_fence_before_the_flag", PASS(RAISE("st.volatile.global.u32"), ACQUIRE),
     PASS("membar.gl;\n" RAISE("st.volatile.global.u32"), ACQUIRE), AT_GRID, 0, 0, 0, 0},
    {"a_fence_before_the_data",
     FIRST FENCE("gpu") STORE RAISE("st.relaxed.gpu.global.u32") THEN ACQUIRE LOAD,
     PASS(FENCE("gpu") RAISE("st.relaxed.gpu.global.u32"), ACQUIRE), AT_GRID, 0, 0, 0, 0},
    {"a_fence_before_the_wait", PASS(RELEASE, FENCE("gpu") WAIT("ld.relaxed.gpu.global.u32")),
     PASS(RELEASE, WAIT("ld.volatile.global.u32") "membar.sys;\n"), AT_GRID, 0, 0, 0, 0},
    {"a_fence_of_the_cta", PASS(FENCE("cta") RAISE("st.relaxed.gpu.global.u32"), ACQUIRE),
     PASS(FENCE("sys") RAISE("st.relaxed.gpu.global.u32"), ACQUIRE), AT_GRID, 0, 0, 0, 0},
    {"a_fence_between_proxies",
     PASS("fence.proxy.async;\n" RAISE("st.relaxed.gpu.global.u32"), ACQUIRE),
     PASS("fence.sc.gpu;\n" RAISE("st.relaxed.gpu.global.u32"), ACQUIRE), AT_GRID, 0, 0, 0, 0},
    {"an_acquire_of_the_cta",
     PASS("atom.release.gpu.global.add.u32 %r4, [%rd2], 1;\n",
          TAKE("atom.acquire.cta.global.add.u32 %r4, [%rd2], 0; // here\n")),
     PASS("atom.release.gpu.global.add.u32 %r4, [%rd2], 1;\n",
          TAKE("atom.acquire.gpu.global.add.u32 %r4, [%rd2], 0;\n")),
     "write follows a write by thread (0,0,0) of CTA (0,0,0); both are strong, but the scope of "
     "one does not include the other's thread",
     0, 0, 0, 0},
    {"a_counter_without_semantics",
     PASS("atom.global.add.u32 %r4, [%rd2], 1;\n", TAKE("atom.global.add.u32 %r4, [%rd2], 0;\n")),
     PASS("membar.gl;\natom.global.add.u32 %r4, [%rd2], 1;\n",
          TAKE("atom.global.add.u32 %r4, [%rd2], 0;\n") "membar.gl;\n"),
     AT_GRID, 0, 0, 0, 0},
    {"a_reduction_does_not_acquire", PASS(RELEASE, "red.relaxed.gpu.global.add.u32 [%rd2], 1;\n"),
     PASS(RELEASE, TAKE("atom.acq_rel.gpu.global.add.u32 %r4, [%rd2], 0;\n")), AT_GRID, 0, 0, 0, 0},
    {"a_release_hidden_by_a_later_store_of_another",
     "setp.eq.u32 %p2, %r2, 0;\n@!%p2 bra SECOND;\n" STORE RELEASE
     "exit;\nSECOND:\nsetp.eq.u32 %p3, %r2, 1;\n@!%p3 bra THIRD;\n" ACQUIRE
     "st.relaxed.gpu.global.u32 [%rd2], 2;\nexit;\nTHIRD:\n"
     "LAST: ld.acquire.gpu.global.u32 %r5, [%rd2];\nsetp.ne.u32 %p3, %r5, 2;\n@%p3 bra "
     "LAST;\n" LOAD,
     "setp.eq.u32 %p2, %r2, 0;\n@!%p2 bra SECOND;\n" STORE RELEASE
     "exit;\nSECOND:\nsetp.eq.u32 %p3, %r2, 1;\n@!%p3 bra THIRD;\n" ACQUIRE
     "atom.relaxed.gpu.global.add.u32 %r4, [%rd2], 1;\nexit;\nTHIRD:\n"
     "LAST: ld.acquire.gpu.global.u32 %r5, [%rd2];\nsetp.ne.u32 %p3, %r5, 2;\n@%p3 bra "
     "LAST;\n" LOAD,
     AT_GRID, 0, 0, 3, 0},
    {"order_through_a_third_cta",
     "setp.eq.u32 %p2, %r2, 0;\n@!%p2 bra SECOND;\n" STORE RELEASE
     "exit;\nSECOND:\nsetp.eq.u32 %p3, %r2, 1;\n@!%p3 bra THIRD;\n" WAIT(
         "ld.relaxed.gpu.global.u32") "st.release.gpu.global.u32 [%rd2+4], 1;\nexit;\nTHIRD:\n"
                                      "LAST: ld.acquire.gpu.global.u32 %r5, [%rd2+4];\nsetp.ne.u32 "
                                      "%p3, %r5, 1;\n@%p3 bra LAST;\n" LOAD,
     "setp.eq.u32 %p2, %r2, 0;\n@!%p2 bra SECOND;\n" STORE RELEASE
     "exit;\nSECOND:\nsetp.eq.u32 %p3, %r2, 1;\n@!%p3 bra THIRD;\n" ACQUIRE
     "st.release.gpu.global.u32 [%rd2+4], 1;\nexit;\nTHIRD:\n"
     "LAST: ld.acquire.gpu.global.u32 %r5, [%rd2+4];\nsetp.ne.u32 %p3, %r5, 1;\n@%p3 bra "
     "LAST;\n" LOAD,
     AT_GRID, 0, 0, 3, 0},
    {"no_barrier_before_another_threads_release",
     FIRST "setp.eq.u32 %p4, %r1, 32;\n@%p4 " STORE "@%p1 " RELEASE THEN ACQUIRE LOAD,
     FIRST "setp.eq.u32 %p4, %r1, 32;\n@%p4 " STORE "bar.sync 0;\n@%p1 " RELEASE THEN ACQUIRE LOAD,
     OF_WARP("without a release and an acquire of .gpu scope or wider between them"), 64, 0, 0, 0},
    {"no_barrier_after_another_threads_acquire",
     FIRST "@%p1 " STORE "@%p1 " RELEASE THEN "setp.eq.u32 %p4, %r3, 0;\n@%p4 bra WAIT;\n" LOAD
           "exit;\n" ACQUIRE,
     FIRST "bar.sync 0;\n@%p1 " STORE "@%p1 " RELEASE THEN
           "setp.eq.u32 %p4, %r3, 0;\n@!%p4 bra MET;\n" ACQUIRE "MET: bar.sync 0;\n" LOAD,
     AT_GRID, 64, 0, 0, 0},
    {"a_flag_that_is_up_already", PASS(RELEASE, ACQUIRE),
     FIRST STORE "st.release.gpu.global.u32 [%rd2], 2;\n" THEN
                 "WAIT: ld.acquire.gpu.global.u32 %r5, [%rd2];\nsetp.ne.u32 %p3, %r5, 2;\n@%p3 bra "
                 "WAIT;\n" LOAD,
     AT_GRID, 0, 0, 0, 1},
    {"a_plain_flag",
     PASS(RAISE("st.global.u32"), "ld.acquire.gpu.global.u32 %r5, [%rd2]; // here\n"),
     PASS(RELEASE, ACQUIRE), AT_GRID, 0, 0, 0, 0},
    {"data_written_through_a_bulk_copy_that_is_not_waited_for",
     FIRST BULK "cp.async.bulk.wait_group.read 0;\n" RELEASE THEN ACQUIRE LOAD,
     FIRST BULK "cp.async.bulk.wait_group 0;\n" RELEASE THEN ACQUIRE LOAD, AT_GRID, 0, 0, 0, 0},
    {"two_ctas_of_a_cluster_without_its_barrier", FIRST "@%p1 " STORE THEN LOAD,
     "setp.eq.u32 %p2, %r2, 0;\nand.pred %p3, %p1, %p2;\n@%p3 " STORE CLUSTER_MEETS "@!%p2 " LOAD,
     "read follows a write by thread (0,0,0) of CTA (0,0,0) without barrier.cluster, or a release "
     "and an acquire of .cluster scope or wider, between them",
     32, 2, 0, 0},
    {"two_warps_without_a_barrier", "setp.eq.u32 %p4, %r1, 32;\n@%p1 " STORE "@%p4 " LOAD,
     "setp.eq.u32 %p4, %r1, 32;\n@%p1 " STORE "bar.sync 0;\n@%p4 " LOAD,
     "read follows a write by thread (0,0,0) of CTA (0,0,0) without a barrier between them", 64, 0,
     1, 0},
    {"two_lanes_without_a_warp_barrier", "setp.eq.u32 %p4, %r1, 5;\n@%p1 " STORE "@%p4 " LOAD,
     "setp.eq.u32 %p4, %r1, 5;\n@%p1 " STORE "bar.warp.sync -1;\n@%p4 " LOAD,
     "read follows a write by thread (0,0,0) of CTA (0,0,0) without bar.warp.sync between them", 32,
     0, 1, 0},
    {"two_ctas_store_different_values", "st.global.u32 [%rd1], %r2; // here\n",
     "st.relaxed.gpu.global.u32 [%rd1], %r2;\n",
     "write follows a write by thread (0,0,0) of CTA (0,0,0) without a release and an acquire of "
     ".gpu scope or wider between them",
     0, 0, 0, 0},
    {"lanes_store_different_values", "st.global.u32 [%rd1], %r1; // here\n",
     "@%p1 st.global.u32 [%rd1], 5;\n",
     "write follows a write by thread (0,0,0) of CTA (0,0,0) without bar.warp.sync between them",
     32, 0, 1, 0},
    {"bytes_of_one_word",
     FIRST "st.global.u16 [%rd1], 5;\n" THEN "ld.global.u32 %r4, [%rd1]; // here\n",
     FIRST "st.global.u16 [%rd1], 5;\n" THEN "st.global.u16 [%rd1+2], 6;\n",
     "read follows a write by thread (0,0,0) of CTA (0,0,0) without a release and an acquire of "
     ".gpu scope or wider between them",
     0, 0, 0, 0},
    {"strong_accesses_of_other_bytes",
     FIRST "st.relaxed.gpu.global.u32 [%rd1], 5;\n" THEN
           "ld.relaxed.gpu.global.u16 %r4, [%rd1]; // here\n",
     FIRST "st.relaxed.gpu.global.u32 [%rd1], 5;\n" THEN "ld.relaxed.gpu.global.u32 %r4, [%rd1];\n",
     "read follows a write by thread (0,0,0) of CTA (0,0,0); both are strong, but do not overlap "
     "completely",
     0, 0, 0, 0},
    {"a_word_read_before_it_is_overwritten",
     FIRST "ld.global.u32 %r4, [%rd1];\n" THEN "st.global.u32 [%rd1], 7; // here\n",
     FIRST "ld.global.u32 %r4, [%rd1];\n" RELEASE THEN ACQUIRE "st.global.u32 [%rd1], 7;\n",
     "write follows a read by thread (0,0,0) of CTA (0,0,0) without a release and an acquire of "
     ".gpu scope or wider between them",
     0, 0, 0, 0},
    {"a_word_written_after_a_non_coherent_read",
     "ld.global.nc.u32 %r4, [%rd1];\nst.global.u32 [%rd1], 7; // here\n",
     "ld.global.u32 %r4, [%rd1];\nst.global.u32 [%rd1], 7;\n",
     "write follows a read by thread (0,0,0) of CTA (0,0,0) by ld.global.nc, which may read "
     "nothing "
     "that is written in the same launch",
     0, 0, 1, 0},
    {"a_non_coherent_read_of_what_the_launch_writes",
     STORE "bar.sync 0;\nld.global.nc.u32 %r4, [%rd1]; // here\n",
     STORE "bar.sync 0;\nld.global.u32 %r4, [%rd1];\n",
     "read follows a write by thread (0,0,0) of CTA (0,0,0), and ld.global.nc may read nothing "
     "that "
     "is written in the same launch",
     0, 0, 1, 0},
};
enum { PATTERNS = sizeof patterns / sizeof *patterns };

static ptxgen_emulator_fault run_pattern(const struct pattern *pattern, const char *body,
                                         const ptxgen_emulator_options *options, uint32_t *line)
{
    const struct run run = {.threads = pattern->threads ? pattern->threads : 1,
                            .cluster = pattern->cluster ? pattern->cluster : 1,
                            .ctas = pattern->ctas ? pattern->ctas : 2,
                            .flag = pattern->flag,
                            .options = *options};
    char *text = program(&body, 1);
    ptxgen_emulator_fault fault = run_text(&run, text);
    *line = marked_line(text);
    free(text);
    return fault;
}

static void every_missing_order_is_reported_at_its_line(void **state)
{
    int wrong = 0;
    (void)state;
    for (uint32_t i = 0; i < PATTERNS; i++) {
        uint32_t line;
        char wanted[400];
        ptxgen_emulator_fault fault = run_pattern(&patterns[i], patterns[i].faulty,
                                                  &(ptxgen_emulator_options){.workers = 1}, &line);
        snprintf(wanted, sizeof wanted, ": race in global memory: this %s", patterns[i].says);
        const char *said = strstr(fault.message, wanted);
        if (fault.check == PTXGEN_CHECK_GLOBAL_RACES && fault.line == line && said &&
            strlen(said) == strlen(wanted))
            continue;
        print_error("%s: want '%s' at line %u, got '%s'\n", patterns[i].name, wanted, line,
                    fault.message);
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

static void every_ordered_twin_is_silent(void **state)
{
    int wrong = 0;
    (void)state;
    for (uint32_t i = 0; i < PATTERNS; i++)
        for (uint64_t seed = 0; seed < 4; seed++) {
            uint32_t line;
            ptxgen_emulator_fault fault =
                run_pattern(&patterns[i], patterns[i].clean,
                            &(ptxgen_emulator_options){.workers = 1, .seed = seed}, &line);
            if (fault.check == PTXGEN_CHECK_NONE)
                continue;
            print_error("%s, seed %d: %s\n", patterns[i].name, (int)seed, fault.message);
            wrong++;
        }
    assert_int_equal(wrong, 0);
}

static void the_check_can_be_disabled(void **state)
{
    const ptxgen_emulator_options options = {
        .workers = 1, .disabled_checks = PTXGEN_CHECK_GLOBAL_RACES | PTXGEN_CHECK_WARP_RACES};
    (void)state;
    for (uint32_t i = 0; i < PATTERNS; i++) {
        uint32_t line;
        ptxgen_emulator_fault fault =
            run_pattern(&patterns[i], patterns[i].faulty, &options, &line);
        if (fault.check != PTXGEN_CHECK_NONE)
            fail_msg("%s: %s", patterns[i].name, fault.message);
    }
}

/* ---- stores that change nothing ---- */

static const struct pattern equal[] = {
    {"two_ctas_store_one_value", "st.global.u32 [%rd1], 5; // here\n", "",
     "write follows a write by thread (0,0,0) of CTA (0,0,0) without a release and an acquire of "
     ".gpu scope or wider between them",
     0, 0, 0, 0},
    {"lanes_store_one_value", "st.global.v2.u32 [%rd1], {%r8,%r8}; // here\n", "",
     "write follows a write by thread (0,0,0) of CTA (0,0,0) without bar.warp.sync between them",
     32, 0, 1, 0},
    {"generic_stores_of_one_byte", "st.u8 [%rd1], 5; // here\n", "",
     "write follows a write by thread (0,0,0) of CTA (0,0,0) without a release and an acquire of "
     ".gpu scope or wider between them",
     0, 0, 0, 0},
    {"a_store_of_what_was_read",
     FIRST "ld.global.u32 %r4, [%rd1];\n" THEN "st.global.u32 [%rd1], 0; // here\n", "",
     "write follows a read by thread (0,0,0) of CTA (0,0,0) without a release and an acquire of "
     ".gpu scope or wider between them",
     0, 0, 0, 0},
    {"a_store_of_what_was_read_without_coherence",
     "ld.global.nc.u32 %r4, [%rd1];\nst.global.u32 [%rd1], 0; // here\n", "",
     "write follows a read by thread (0,0,0) of CTA (0,0,0) by ld.global.nc, which may read "
     "nothing that is written in the same launch",
     0, 0, 1, 0},
};

static void stores_of_one_value_race_unless_that_is_allowed(void **state)
{
    const ptxgen_emulator_options allow = {.workers = 1,
                                           .disabled_checks = PTXGEN_CHECK_EQUAL_STORES};
    int wrong = 0;
    (void)state;
    for (size_t i = 0; i < sizeof equal / sizeof *equal; i++) {
        uint32_t line;
        char wanted[400];
        ptxgen_emulator_fault allowed = run_pattern(&equal[i], equal[i].faulty, &allow, &line);
        ptxgen_emulator_fault fault = run_pattern(&equal[i], equal[i].faulty,
                                                  &(ptxgen_emulator_options){.workers = 1}, &line);
        snprintf(wanted, sizeof wanted,
                 ": race in global memory: this %s; it stores what is there, which does not make "
                 "it ordered",
                 equal[i].says);
        if (fault.check == PTXGEN_CHECK_EQUAL_STORES && fault.line == line &&
            allowed.check == PTXGEN_CHECK_NONE && strstr(fault.message, wanted))
            continue;
        print_error("%s: want '%s' at line %u, got '%s', '%s'\n", equal[i].name, wanted, line,
                    fault.message, allowed.message);
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

/* What one launch wrote is ordered before the next. */
static void launches_of_a_stream_are_ordered(void **state)
{
    struct bench bench;
    uint32_t data[16] = {0};
    (void)state;
    bench_open(&bench, "cpu:sm_90");
    bench_options(&bench, &(ptxgen_emulator_options){.workers = 1});
    bench_kernel(&bench, "sm_80", ".param .u64 pa",
                 ".reg .b32 %r<4>; .reg .b64 %rd<4>;\nld.param.u64 %rd1, [pa];\n"
                 "mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2;\n"
                 "ld.global.u32 %r2, [%rd1]; add.u32 %r2, %r2, 1; st.global.u32 [%rd1], %r2; ret;");
    ptxgen_cu_deviceptr pa = bench_buffer(&bench, data, sizeof data);
    for (int i = 0; i < 3; i++)
        bench_run(&bench, "k", 1, 16, (void *[]){&pa});
    bench_read(&bench, data, pa, sizeof data);
    for (int i = 0; i < 16; i++)
        assert_int_equal(data[i], 3);
    bench_close(&bench);
}

/* Each CTA adds to what all before it have left, as a chain of locks does. */
static void a_long_chain_of_releases_is_followed(void **state)
{
    static const char *const chain =
        "WAIT: ld.acquire.gpu.global.u32 %r5, [%rd2];\nsetp.ne.u32 %p3, %r5, %r2;\n"
        "@%p3 bra WAIT;\nld.global.u32 %r4, [%rd1];\nadd.u32 %r4, %r4, 1;\n"
        "st.global.u32 [%rd1], %r4;\nadd.u32 %r5, %r5, 1;\n"
        "st.release.gpu.global.u32 [%rd2], %r5;\n";
    (void)state;
    for (uint64_t seed = 0; seed < 2; seed++) {
        char *text = program(&chain, 1);
        ptxgen_emulator_fault fault = run_text(
            &(struct run){.threads = 1, .ctas = 300, .options = {.workers = 1, .seed = seed}},
            text);
        free(text);
        if (fault.check != PTXGEN_CHECK_NONE)
            fail_msg("%s", fault.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_two_kinds_of_access_have_their_verdict),
        cmocka_unit_test(every_missing_order_is_reported_at_its_line),
        cmocka_unit_test(every_ordered_twin_is_silent),
        cmocka_unit_test(the_check_can_be_disabled),
        cmocka_unit_test(stores_of_one_value_race_unless_that_is_allowed),
        cmocka_unit_test(launches_of_a_stream_are_ordered),
        cmocka_unit_test(a_long_chain_of_releases_is_followed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
