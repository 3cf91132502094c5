/* SPDX-License-Identifier: Apache-2.0 */
/* st.async and red.async between the CTAs of a cluster, and barrier reductions over some warps. */
#include "bench.h"

#include <stdio.h>
#include <string.h>

enum { THREADS = 64, CTAS = 2 };

/*
 * Both CTAs of a cluster: `issue` sends to the other one's buffer, whose mbarrier expects `bytes`;
 * after `wait`, every thread writes the word at its place to out. %r2 is the peer's place for the
 * thread, %r4 the peer's buffer, %r3 the peer's mbarrier.
 */
static void exchange(struct bench *bench, const char *issue, unsigned bytes, bool wait)
{
    char body[4096];
    snprintf(body, sizeof body,
             ".reg .pred %%p<3>; .reg .b32 %%r<20>; .reg .b64 %%d<8>;\n"
             ".shared .align 16 .b8 buf[1024];\n.shared .align 8 .b64 bar;\n"
             "ld.param.u64 %%d0, [out];\nmov.u32 %%r0, %%tid.x;\nmov.u32 %%r1, %%cluster_ctarank;\n"
             "xor.b32 %%r5, %%r1, 1;\nmov.u32 %%r6, buf;\nmov.u32 %%r7, bar;\n"
             "mad.lo.u32 %%r8, %%r0, 16, %%r6;\nmov.u32 %%r9, 7;\n"
             "st.shared.v4.u32 [%%r8], {%%r9, %%r9, %%r9, %%r9};\n"
             "setp.eq.u32 %%p0, %%r0, 0;\n"
             "@%%p0 mbarrier.init.shared.b64 [%%r7], 1;\n"
             "@%%p0 mbarrier.arrive.expect_tx.shared.b64 %%d1, [%%r7], %u;\n"
             "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"
             "mapa.shared::cluster.u32 %%r2, %%r8, %%r5;\n"
             "mapa.shared::cluster.u32 %%r3, %%r7, %%r5;\n"
             "mapa.shared::cluster.u32 %%r4, %%r6, %%r5;\n"
             "mad.lo.u32 %%r9, %%r1, 1000, %%r0;\n%s\n"
             "%sWAIT: mbarrier.try_wait.parity.shared.b64 %%p1, [%%r7], 0;\n%s@!%%p1 bra WAIT;\n"
             "ld.shared.u32 %%r10, [%%r8];\n"
             "mad.lo.u32 %%r11, %%r1, 64, %%r0;\nmul.wide.u32 %%d2, %%r11, 4;\n"
             "add.u64 %%d2, %%d2, %%d0;\nst.global.u32 [%%d2], %%r10;\n"
             "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\nret;",
             bytes, issue, wait ? "" : "//", wait ? "" : "//");
    bench_open(bench, "cpu:sm_90");
    bench->cluster = CTAS;
    bench_kernel(bench, "sm_90", ".param .u64 out", body);
}

static void run(struct bench *bench, uint32_t out[CTAS * THREADS])
{
    ptxgen_cu_deviceptr to = bench_buffer(bench, NULL, CTAS * THREADS * 4);
    bench_run(bench, "k", CTAS, THREADS, (void *[]){&to});
    bench_read(bench, out, to, CTAS * THREADS * 4);
    bench_close(bench);
}

#define TO_PEER ".shared::cluster.mbarrier::complete_tx::bytes"

static void st_async_delivers_to_the_other_cta(void **state)
{
    (void)state;
    static const struct {
        const char *issue;
        unsigned bytes;
    } forms[] = {
        {"st.async.weak" TO_PEER ".u32 [%r2], %r9, [%r3];", 4},
        {"st.async" TO_PEER ".v2.s32 [%r2], {%r9, %r0}, [%r3];", 8},
        {"st.async" TO_PEER ".v4.b32 [%r2], {%r9, %r0, %r0, %r0}, [%r3];", 16},
        {"cvt.u64.u32 %d3, %r9;\nst.async" TO_PEER ".u64 [%r2], %d3, [%r3];", 8},
    };
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
        struct bench bench;
        uint32_t out[CTAS * THREADS];
        exchange(&bench, forms[f].issue, forms[f].bytes * THREADS, true);
        run(&bench, out);
        for (uint32_t i = 0; i < CTAS * THREADS; i++)
            assert_int_equal(out[i], (1 - i / THREADS) * 1000 + i % THREADS);
    }
}

static void red_async_adds_up_every_threads_value(void **state)
{
    (void)state;
    static const struct {
        const char *issue;
        uint32_t want; /* at the first word, from 7, of CTA 0; its peer's values are 1000 … 1063 */
    } forms[] = {
        {"red.async.relaxed.cluster" TO_PEER ".add.u32 [%r4], %r9, [%r3];",
         7 + 64 * 1000 + 63 * 32},
        {"red.async.relaxed.cluster" TO_PEER ".max.s32 [%r4], %r9, [%r3];", 1063},
        {"red.async.relaxed.cluster" TO_PEER ".min.u32 [%r4], %r9, [%r3];", 7},
        {"red.async.relaxed.cluster" TO_PEER ".inc.u32 [%r4], %r9, [%r3];", 71},
        {"red.async.relaxed.cluster" TO_PEER ".and.b32 [%r4], %r9, [%r3];", 0},
        {"red.async.relaxed.cluster" TO_PEER ".or.b32 [%r4], %r9, [%r3];", 1023 | 1024},
    };
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
        struct bench bench;
        uint32_t out[CTAS * THREADS];
        exchange(&bench, forms[f].issue, 4 * THREADS, true);
        run(&bench, out);
        assert_int_equal(out[0], forms[f].want);
        for (uint32_t i = 1; i < THREADS; i++)
            assert_int_equal(out[i], 7);
    }
}

/* More of them under way to one word than a byte counts. */
static void hundreds_of_reductions_meet_in_one_word(void **state)
{
    struct bench bench;
    uint32_t out[CTAS * THREADS];
    (void)state;
    exchange(&bench,
             "mov.u32 %r12, 5;\nmov.u32 %r13, 1;\n"
             "MORE: red.async.relaxed.cluster" TO_PEER ".add.u32 [%r4], %r13, [%r3];\n"
             "sub.u32 %r12, %r12, 1;\nsetp.ne.u32 %p2, %r12, 0;\n@%p2 bra MORE;\n",
             5 * THREADS * 4, true);
    run(&bench, out);
    for (int cta = 0; cta < CTAS; cta++)
        assert_int_equal(out[cta * THREADS], 7 + 5 * THREADS);
}

static void a_read_before_st_async_is_waited_for_is_found(void **state)
{
    (void)state;
    struct bench bench;
    exchange(&bench, "st.async" TO_PEER ".u32 [%r2], %r9, [%r3];\nbar.sync 0;", 4 * THREADS, false);
    ptxgen_cu_deviceptr to = bench_buffer(&bench, NULL, CTAS * THREADS * 4);
    bench_launch(&bench, "k", CTAS, THREADS, (void *[]){&to});
    bench.driver.ctx_synchronize();
    ptxgen_emulator_fault fault = bench_fault(&bench);
    assert_int_equal(fault.check, PTXGEN_CHECK_ASYNC);
    assert_non_null(strstr(fault.message, "ld.shared.u32 %r10"));
    bench_close(&bench);
}

static void an_mbarrier_of_another_cta_than_the_destination_is_found(void **state)
{
    (void)state;
    struct bench bench;
    exchange(&bench, "st.async" TO_PEER ".u32 [%r2], %r9, [%r7];", 4 * THREADS, true);
    ptxgen_cu_deviceptr to = bench_buffer(&bench, NULL, CTAS * THREADS * 4);
    bench_launch(&bench, "k", CTAS, THREADS, (void *[]){&to});
    bench.driver.ctx_synchronize();
    assert_int_equal(bench_fault(&bench).check, PTXGEN_CHECK_OPERANDS);
    bench_close(&bench);
}

/* Warps 0 and 1 reduce at barrier 1, warps 2 and 3 at barrier 2, with counts. */
static void counted_barrier_reductions_take_the_warps_that_are_named(void **state)
{
    (void)state;
    static const char *const prefixes[] = {"bar", "barrier.cta"};
    for (int p = 0; p < 2; p++) {
        struct bench bench;
        char body[2048];
        uint32_t out[128];
        snprintf(body, sizeof body,
                 ".reg .pred %%p<5>; .reg .b32 %%r<9>; .reg .b64 %%d<4>;\n"
                 "ld.param.u64 %%d0, [out]; mov.u32 %%r0, %%tid.x; shr.u32 %%r1, %%r0, 6;\n"
                 "add.u32 %%r2, %%r1, 1; mov.u32 %%r3, 64; setp.lt.u32 %%p0, %%r0, 20;\n"
                 "%s.red.popc.u32 %%r4, %%r2, %%r3, %%p0;\n"
                 "%s.red.or.pred %%p1, %%r2, %%r3, %%p0;\n"
                 "%s.red.and.pred %%p2, %%r2, %%r3, !%%p0;\n"
                 "selp.u32 %%r5, 100, 0, %%p1; selp.u32 %%r6, 1000, 0, %%p2;\n"
                 "add.u32 %%r4, %%r4, %%r5; add.u32 %%r4, %%r4, %%r6;\n"
                 "mul.wide.u32 %%d1, %%r0, 4; add.u64 %%d1, %%d1, %%d0;\n"
                 "st.global.u32 [%%d1], %%r4; ret;",
                 prefixes[p], prefixes[p], prefixes[p]);
        bench_open(&bench, "cpu:sm_90");
        bench_kernel(&bench, "sm_90", ".param .u64 out", body);
        ptxgen_cu_deviceptr to = bench_buffer(&bench, NULL, sizeof out);
        bench_run(&bench, "k", 1, 128, (void *[]){&to});
        bench_read(&bench, out, to, sizeof out);
        bench_close(&bench);
        for (uint32_t i = 0; i < 128; i++)
            assert_int_equal(out[i], i < 64 ? 20 + 100 : 1000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(st_async_delivers_to_the_other_cta),
        cmocka_unit_test(red_async_adds_up_every_threads_value),
        cmocka_unit_test(hundreds_of_reductions_meet_in_one_word),
        cmocka_unit_test(a_read_before_st_async_is_waited_for_is_found),
        cmocka_unit_test(an_mbarrier_of_another_cta_than_the_destination_is_found),
        cmocka_unit_test(counted_barrier_reductions_take_the_warps_that_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
