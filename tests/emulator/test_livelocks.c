/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that spin for ever, and their twins that only take long. The line at which the report
 * stands ends in "// here". pa holds 1024 words of 0; p1 is thread 0, p2 the first warp, %r4 the
 * CTA.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct livelock {
    const char *name;
    uint32_t ctas, threads, cluster, shared; /* 0: 1 CTA, 64 threads, no cluster, no bytes */
    const char *body, *says;
    ptxgen_emulator_check check; /* 0: PTXGEN_CHECK_LIVELOCK */
};

static const char head[] =
    ".version 8.6\n.target sm_90a\n.address_size 64\n.extern .shared .align 16 .b8 more[];\n"
    ".visible .entry k(.param .u64 pa)\n{\n"
    ".reg .pred %p<8>; .reg .b32 %r<40>; .reg .b64 %rd<20>;\n"
    ".shared .align 8 .b64 bar;\n.shared .align 4 .b8 word[4];\n"
    "ld.param.u64 %rd1, [pa];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, word;\nmov.u32 %r3, bar;\n"
    "mov.u32 %r4, %ctaid.x;\nsetp.eq.u32 %p1, %r1, 0;\nsetp.lt.u32 %p2, %r1, 32;\n"
    "mov.u32 %r30, 0;\n";

/* `steps` times through a loop of three instructions. */
#define TAKE_LONG(label, steps)                                                                    \
    label ": add.u32 %r30, %r30, 1;\nsetp.lt.u32 %p7, %r30, " steps ";\n@%p7 bra " label ";\n"
#define POLL(load) load "\nsetp.eq.u32 %p3, %r10, 0;\n@%p3 bra SPIN;\n"
/* One thread counts in memory alone: its registers are the same in each round. */
#define COUNT_IN(space, at)                                                                        \
    "st." space ".u32 [" at "], 0;\nmov.u32 %r10, 0;\nsetp.eq.u32 %p3, 0, 0;\n"                    \
    "SPIN: ld." space ".u32 %r10, [" at "];\nadd.u32 %r10, %r10, 1;\n"                             \
    "st." space ".u32 [" at "], %r10;\nsetp.lt.u32 %p3, %r10, 30000;\nmov.u32 %r10, 0;\n"          \
    "@%p3 bra SPIN;\n"
#define SHARE(load, mark)                                                                          \
    "st.shared.u32 [%r2], %r30;\nbar.sync 0;\n"                                                    \
    "SPIN: @%p1 " load mark "\n@%p1 st.shared.u32 [%r2], %r10;\nbar.sync 0;\n"                     \
    "ld.shared.u32 %r10, [%r2];\nbar.sync 0;\nsetp.eq.u32 %p3, %r10, 0;\n@%p3 bra SPIN;\n"

static const struct livelock livelocks[] = {
    {"branch_to_itself", 0, 0, 0, 0, "SPIN: bra SPIN; // here\n",
     "livelock: threads spin for ever: all that run repeat what they did, and nothing changes any "
     "more; CTA (0,0,0) warp 0 lanes 0xffffffff go round in lines 19 to 19 and at line 19 run; CTA "
     "(0,0,0) warp 1",
     0},
    {"registers_that_return_to_what_they_were", 0, 0, 0, 0,
     "SPIN: add.u32 %r30, %r30, 3; // here\nand.b32 %r30, %r30, 7;\nsetp.lt.u32 %p3, %r30, 8;\n"
     "@%p3 bra SPIN;\n",
     "go round in lines 19 to 22 and at line 19 run", 0},
    {"plain_load_of_a_flag_that_none_writes", 0, 0, 0, 0,
     "SPIN: " POLL("ld.global.u32 %r10, [%rd1+64]; // here"),
     "go round in lines 19 to 21 and at line 19 poll address 0x", 0},
    {"volatile_load_of_a_flag_that_none_writes", 0, 0, 0, 0,
     "SPIN: " POLL("ld.volatile.global.u32 %r10, [%rd1+64]; // here"),
     "go round in lines 19 to 21 and at line 19 poll address 0x", 0},
    {"acquiring_load_after_a_sleep_that_doubles_up_to_a_bound", 0, 0, 0, 0,
     "mov.u32 %r30, 8;\nSPIN: nanosleep.u32 %r30;\nshl.b32 %r30, %r30, 1;\n"
     "min.u32 %r30, %r30, 1024;\n" POLL("ld.acquire.gpu.global.u32 %r10, [%rd1+64]; // here"),
     "go round in lines 20 to 25 and at line 23 poll address 0x", 0},
    {"other_warps_wait_at_a_barrier", 0, 96, 0, 0,
     "@!%p2 bra MEET;\nSPIN: " POLL(
         "ld.volatile.global.u32 %r10, [%rd1]; // here") "MEET: bar.sync "
                                                         "0;\n",
     "warp 1 lanes 0xffffffff at line 23 wait at barrier 0, where 64 of 96 threads are", 0},
    {"mbarrier_phase_whose_bytes_never_come", 0, 0, 0, 0,
     "@%p1 mbarrier.init.shared.b64 [%r3], 1;\nbar.sync 0;\n"
     "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 48;\n"
     "SPIN: mbarrier.try_wait.parity.shared.b64 %p3, [%r3], 0; // here\n@!%p3 bra SPIN;\n",
     "go round in lines 22 to 23 and at line 22 poll address 0x0, an mbarrier to which 0 of 1 "
     "arrivals and 48 bytes are due",
     0},
    {"barriers_in_the_loop", 0, 0, 0, 0, SHARE("ld.volatile.global.u32 %r10, [%rd1];", " // here"),
     "go round in lines 22 to 28 and at line 22 poll address 0x", 0},
    {"barrier_reduction_in_the_loop", 0, 0, 0, 0,
     "SPIN: ld.volatile.global.u32 %r10, [%rd1]; // here\nsetp.ne.u32 %p3, %r10, 0;\n"
     "bar.red.or.pred %p4, 0, %p3;\n@!%p4 bra SPIN;\n",
     "go round in lines 19 to 22", 0},
    {"votes_and_shuffles_in_the_loop", 0, 0, 0, 0,
     "SPIN: ld.volatile.global.u32 %r10, [%rd1]; // here\nshfl.sync.idx.b32 %r11, %r10, 3, 31, "
     "-1;\n"
     "setp.ne.u32 %p3, %r11, 0;\nvote.sync.any.pred %p4, %p3, -1;\n@!%p4 bra SPIN;\n",
     "go round in lines 19 to 23", 0},
    {"two_loops_in_one_warp", 0, 32, 0, 0,
     "and.b32 %r11, %r1, 1;\nsetp.eq.u32 %p3, %r11, 0;\n@%p3 bra EVEN;\n"
     "SPIN: ld.volatile.global.u32 %r10, [%rd1]; // here\nsetp.eq.u32 %p3, %r10, 0;\n@%p3 bra "
     "SPIN;\n"
     "bra OUT;\nEVEN: ld.volatile.global.u32 %r10, [%rd1+8];\nadd.u32 %r12, %r10, 1;\n"
     "setp.eq.u32 %p3, %r10, 0;\n@%p3 bra EVEN;\nOUT:\n",
     "lanes 0x55555555 go round in lines 26 to 29 and at line 26 poll address 0x", 0},
    {"flag_that_another_cta_does_not_set", 2, 0, 0, 0,
     "setp.ne.u32 %p3, %r4, 0;\n@%p3 exit;\nSPIN: " POLL(
         "ld.acquire.gpu.global.u32 %r10, [%rd1]; // here"),
     "go round in lines 21 to 23", 0},
    {"flag_of_a_cta_that_never_fits_beside_those_that_wait", 400, 32, 0, 200000,
     "setp.ne.u32 %p3, %r4, 399;\n@%p3 bra SPIN;\nmov.u32 %r10, 1;\n"
     "st.release.gpu.global.u32 [%rd1], %r10;\nexit;\nSPIN: " POLL(
         "ld.acquire.gpu.global.u32 %r10, [%rd1]; // here"),
     "go round in lines 24 to 26", 0},
    {"word_of_the_peer_that_it_does_not_write", 2, 32, 2, 0,
     "st.shared.u32 [%r2], 0;\nbarrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"
     "mov.u32 %r11, %cluster_ctarank;\nxor.b32 %r11, %r11, 1;\n"
     "mapa.shared::cluster.u32 %r12, %r2, %r11;\n"
     "SPIN: " POLL("ld.volatile.shared::cluster.u32 %r10, [%r12]; // here"),
     "CTA (1,0,0) warp 0 lanes 0xffffffff go round in lines 25 to 27", 0},
    {"tries_that_are_counted", 0, 32, 0, 0,
     "SPIN: add.u32 %r30, %r30, 1;\n" POLL("ld.volatile.global.u32 %r10, [%rd1]; // here"),
     "deadlock: every thread waits, and nothing changes any more", PTXGEN_CHECK_DEADLOCK},
};

/*
 * Programs of the same kinds that end, after more steps than a worker waits before it looks. They
 * run with shuffled warps, whose short turns let it look often.
 */
static const struct livelock twins[] = {
    {"long_loop_in_registers", 0, 0, 0, 0, TAKE_LONG("LONG", "70000"), "", 0},
    {"long_loop_of_half_a_warp_in_registers_of_16_bits", 0, 16, 0, 0,
     ".reg .b16 %h1;\nmov.u16 %h1, 0;\nLONG: add.u16 %h1, %h1, 1;\n"
     "setp.lt.u16 %p7, %h1, 60000;\n@%p7 bra LONG;\n",
     "", 0},
    {"count_kept_in_shared_memory", 0, 1, 0, 0, COUNT_IN("shared", "%r2"), "", 0},
    {"count_kept_in_global_memory", 0, 1, 0, 0, COUNT_IN("global", "%rd1"), "", 0},
    {"count_kept_in_local_memory", 0, 1, 0, 0,
     ".local .align 4 .b8 frame[4];\n" COUNT_IN("local", "frame"), "", 0},
    {"count_kept_by_an_atomic", 0, 1, 0, 0,
     "st.shared.u32 [%r2], 0;\nmov.u32 %r10, 0;\nsetp.eq.u32 %p3, 0, 0;\n"
     "SPIN: atom.shared.add.u32 %r10, [%r2], 1;\nsetp.lt.u32 %p3, %r10, 40000;\n"
     "mov.u32 %r10, 0;\n@%p3 bra SPIN;\n",
     "", 0},
    {"flag_that_comes_late", 0, 0, 0, 0,
     "@%p2 bra SPIN;\n" TAKE_LONG("LONG", "70000") "st.volatile.global.u32 [%rd1], 1;\nbra OUT;\n"
                                                   "SPIN: " POLL(
                                                       "ld.volatile.global.u32 %r10, [%rd1];") "OU"
                                                                                               "T:"
                                                                                               "\n",
     "", 0},
    {"flag_that_another_cta_sets_late", 2, 32, 0, 0,
     "setp.eq.u32 %p3, %r4, 0;\n@%p3 bra SPIN;\n" TAKE_LONG(
         "LONG", "70000") "st.release.gpu.global.u32 [%rd1], 1;\nexit;\n"
                          "SPIN: " POLL("ld.acquire.gpu.global.u32 %r10, [%rd1];"),
     "", 0},
    {"same_word_stored_again_until_a_late_flag", 0, 0, 0, 0,
     "@%p2 bra SPIN;\n" TAKE_LONG("LONG", "70000") "st.volatile.global.u32 [%rd1], 1;\nbra OUT;\n"
                                                   "SPIN: st.shared.u32 [%r2], 5;\n" POLL(
                                                       "ld.volatile.global.u32 %r10, [%rd1];") "OU"
                                                                                               "T:"
                                                                                               "\n",
     "", 0},
    {"barriers_in_a_loop_that_counts", 0, 0, 0, 0,
     "SPIN: bar.sync 0;\nadd.u32 %r30, %r30, 1;\nsetp.lt.u32 %p3, %r30, 30000;\n@%p3 bra SPIN;\n",
     "", 0},
    {"barriers_until_thread_0_has_counted", 0, 0, 0, 0,
     "SPIN: @%p1 add.u32 %r30, %r30, 1;\nsetp.ge.u32 %p3, %r30, 30000;\n"
     "bar.red.or.pred %p4, 0, %p3;\n@!%p4 bra SPIN;\n",
     "", 0},
    {"timeout_by_the_clock", 0, 32, 0, 0,
     "mov.u64 %rd2, %clock64;\nSPIN: mov.u64 %rd3, %clock64;\nsub.u64 %rd3, %rd3, %rd2;\n"
     "setp.lt.u64 %p3, %rd3, 150000;\n@%p3 bra SPIN;\n",
     "", 0},
    {"many_volatile_words_added_up", 0, 32, 0, 0,
     "SPIN: and.b32 %r11, %r30, 1023;\nmul.wide.u32 %rd2, %r11, 4;\nadd.u64 %rd2, %rd2, %rd1;\n"
     "ld.volatile.global.u32 %r10, [%rd2];\nadd.u32 %r12, %r12, %r10;\nadd.u32 %r30, %r30, 1;\n"
     "setp.lt.u32 %p3, %r30, 350000;\n@%p3 bra SPIN;\n",
     "", 0},
    {"lane_that_comes_out_of_its_loop_late", 0, 32, 0, 0,
     "@%p1 bra LATE;\nSPIN: " POLL(
         "ld.volatile.shared.u32 %r10, [%r2];") "bra OUT;\nLATE:\n" TAKE_LONG("LONG",
                                                                              "70000") "st."
                                                                                       "volatile."
                                                                                       "shared."
                                                                                       "u32 "
                                                                                       "[%r2], "
                                                                                       "1;\nOUT:"
                                                                                       "\n",
     "", 0},
};

static uint32_t marked_line(const char *text)
{
    const char *mark = strstr(text, "// here");
    uint32_t line = 1;
    for (const char *at = text; at < mark; at++)
        line += *at == '\n';
    return mark ? line : 0;
}

static char *whole(const char *body)
{
    size_t size = sizeof head + strlen(body) + 200;
    char *text = malloc(size);
    snprintf(text, size, "%smov.u32 %%r12, 0;\n%s%sret;\n}\n", head,
             strstr(body, "shared.u32 %r10, [%r2];") ? "@%p1 st.shared.u32 [%r2], 0; bar.sync 0;\n"
                                                     : "",
             body);
    return text;
}

static ptxgen_emulator_fault run(const struct livelock *livelock, const char *text,
                                 const ptxgen_emulator_options *options)
{
    struct bench bench;
    uint32_t words[1024] = {0};
    bench_open(&bench, "cpu:sm_90");
    ptxgen_emulator_options without_races = *options;
    without_races.disabled_checks |=
        PTXGEN_CHECK_RACES | PTXGEN_CHECK_WARP_RACES | PTXGEN_CHECK_GLOBAL_RACES;
    bench_options(&bench, &without_races);
    bench.cluster = livelock->cluster;
    bench.dynamic_bytes = livelock->shared;
    bench_load(&bench, text);
    ptxgen_cu_deviceptr pa = bench_buffer(&bench, words, sizeof words);
    ptxgen_cu_result result =
        bench_launch(&bench, "k", livelock->ctas ? livelock->ctas : 1,
                     livelock->threads ? livelock->threads : 64, (void *[]){&pa});
    ptxgen_emulator_fault fault = bench_fault(&bench);
    assert_int_equal(result, fault.check ? PTXGEN_CUDA_ERROR_LAUNCH_TIMEOUT : PTXGEN_CUDA_SUCCESS);
    ptxgen_emulator_clear_fault(bench.context);
    bench_close(&bench);
    return fault;
}

static int reported_otherwise(const struct livelock *livelock, uint64_t seed)
{
    ptxgen_emulator_check want = livelock->check ? livelock->check : PTXGEN_CHECK_LIVELOCK;
    char *text = whole(livelock->body);
    ptxgen_emulator_fault fault = run(livelock, text, &(ptxgen_emulator_options){.seed = seed});
    int wrong = fault.check != want || fault.line != marked_line(text) ||
                !strstr(fault.message, livelock->says);
    if (wrong)
        print_error("%s, seed %d: check %d at line %u, not %d at %u, '%s': %s\n", livelock->name,
                    (int)seed, (int)fault.check, fault.line, (int)want, marked_line(text),
                    livelock->says, fault.message);
    free(text);
    return wrong;
}

static void every_livelock_is_reported_with_its_lines_and_what_is_waited_for(void **state)
{
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < sizeof livelocks / sizeof *livelocks; i++)
        wrong += reported_otherwise(&livelocks[i], 0);
    assert_int_equal(wrong, 0);
}

static void shuffled_warps_are_seen_to_spin(void **state)
{
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < sizeof livelocks / sizeof *livelocks; i++)
        if (!livelocks[i].ctas && !livelocks[i].check)
            wrong += reported_otherwise(&livelocks[i], 3);
    assert_int_equal(wrong, 0);
}

static void what_only_takes_long_is_no_livelock(void **state)
{
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < sizeof twins / sizeof *twins; i++) {
        char *text = whole(twins[i].body);
        ptxgen_emulator_fault fault = run(&twins[i], text, &(ptxgen_emulator_options){.seed = 3});
        if (fault.check != PTXGEN_CHECK_NONE) {
            print_error("%s: %s\n", twins[i].name, fault.message);
            wrong++;
        }
        free(text);
    }
    assert_int_equal(wrong, 0);
}

static void a_livelock_stops_at_the_same_step_each_time(void **state)
{
    (void)state;
    ptxgen_emulator_fault first, again;
    for (size_t i = 0; i < sizeof livelocks / sizeof *livelocks; i += 3) {
        char *text = whole(livelocks[i].body);
        first = run(&livelocks[i], text, &(ptxgen_emulator_options){0});
        again = run(&livelocks[i], text, &(ptxgen_emulator_options){0});
        assert_string_equal(first.message, again.message);
        free(text);
    }
}

static void a_launch_past_its_steps_names_the_lines_it_is_in(void **state)
{
    (void)state;
    const struct livelock one = {"", 0, 0, 0, 0, TAKE_LONG("LONG", "4000000000"), "", 0};
    char *text = whole(one.body);
    ptxgen_emulator_fault fault = run(&one, text,
                                      &(ptxgen_emulator_options){
                                          .max_steps = 100000,
                                      });
    assert_int_equal(fault.check, PTXGEN_CHECK_DEADLOCK);
    assert_non_null(strstr(fault.message, "deadlock: the launch has passed options.max_steps; CTA "
                                          "(0,0,0) warp 0 lanes 0xffffffff go round in lines 19 to "
                                          "21 and at line 19 run"));
    free(text);
}

static void with_the_check_off_threads_that_only_poll_are_a_deadlock(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof livelocks / sizeof *livelocks; i++) {
        if (!strstr(livelocks[i].name, "volatile_load") && !strstr(livelocks[i].name, "mbarrier"))
            continue;
        char *text = whole(livelocks[i].body);
        ptxgen_emulator_fault fault =
            run(&livelocks[i], text,
                &(ptxgen_emulator_options){.disabled_checks = PTXGEN_CHECK_LIVELOCK});
        assert_int_equal(fault.check, PTXGEN_CHECK_DEADLOCK);
        assert_int_equal(fault.line, marked_line(text));
        assert_non_null(strstr(fault.message, "every thread waits, and nothing changes any more"));
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_livelock_is_reported_with_its_lines_and_what_is_waited_for),
        cmocka_unit_test(shuffled_warps_are_seen_to_spin),
        cmocka_unit_test(what_only_takes_long_is_no_livelock),
        cmocka_unit_test(a_livelock_stops_at_the_same_step_each_time),
        cmocka_unit_test(a_launch_past_its_steps_names_the_lines_it_is_in),
        cmocka_unit_test(with_the_check_off_threads_that_only_poll_are_a_deadlock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
