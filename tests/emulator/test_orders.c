/* SPDX-License-Identifier: Apache-2.0 */
/* The orders that a seed gives clusters, and a barrier between CTAs in any of them. */
#include "bench.h"

enum { CTAS = 12, SEEDS = 8 };

/* Where the CTAs' first instructions come in a launch: tickets[CTA]. */
struct tickets {
    uint32_t of[CTAS];
};

static void open_tickets(struct bench *bench)
{
    bench_open(bench, "cpu:sm_90");
    bench_kernel(bench, "sm_90", ".param .u64 counter, .param .u64 out",
                 ".reg .b32 %r<4>; .reg .b64 %rd<4>;\n"
                 "ld.param.u64 %rd1, [counter];\nld.param.u64 %rd2, [out];\n"
                 "atom.global.add.u32 %r1, [%rd1], 1;\nmov.u32 %r2, %ctaid.x;\n"
                 "mad.wide.u32 %rd3, %r2, 4, %rd2;\nst.global.u32 [%rd3], %r1;\nret;\n");
}

static struct tickets draw_tickets(struct bench *bench, uint32_t ctas)
{
    struct tickets tickets = {{0}};
    uint32_t zero = 0;
    ptxgen_cu_deviceptr counter = bench_buffer(bench, &zero, sizeof zero),
                        out = bench_buffer(bench, &tickets, sizeof tickets);
    bench_run(bench, "k", ctas, 1, (void *[]){&counter, &out});
    bench_read(bench, &tickets, out, sizeof tickets);
    return tickets;
}

static void set_seed(struct bench *bench, uint64_t seed)
{
    bench_options(bench, &(ptxgen_emulator_options){.seed = seed});
}

static void assert_each_has_one(const struct tickets *tickets, uint32_t ctas)
{
    uint32_t had = 0;
    for (uint32_t i = 0; i < ctas; i++)
        had |= 1u << tickets->of[i];
    assert_int_equal(had, (1u << ctas) - 1);
}

static void without_a_seed_clusters_begin_in_order(void **state)
{
    struct bench bench;
    (void)state;
    open_tickets(&bench);
    struct tickets tickets = draw_tickets(&bench, CTAS);
    for (uint32_t i = 0; i < CTAS; i++)
        assert_int_equal(tickets.of[i], i);
    bench_close(&bench);
}

static void every_number_of_clusters_begins_once_and_any_may_be_first(void **state)
{
    (void)state;
    for (uint32_t ctas = 1; ctas <= CTAS; ctas++) {
        uint32_t first = 0;
        struct bench bench;
        for (uint64_t seed = 1; seed <= 8 * SEEDS; seed++) {
            open_tickets(&bench);
            set_seed(&bench, seed);
            struct tickets tickets = draw_tickets(&bench, ctas);
            assert_each_has_one(&tickets, ctas);
            for (uint32_t i = 0; i < ctas; i++)
                first |= (uint32_t)(tickets.of[i] == 0) << i;
            bench_close(&bench);
        }
        assert_int_equal(first, (1u << ctas) - 1);
    }
}

static void each_launch_and_each_seed_has_its_own_order(void **state)
{
    enum { LAUNCHES = 4 };
    struct tickets seen[SEEDS * LAUNCHES];
    (void)state;
    for (uint32_t seed = 0; seed < SEEDS; seed++) {
        struct bench bench;
        open_tickets(&bench);
        set_seed(&bench, 1 + seed);
        for (uint32_t i = seed * LAUNCHES; i < (seed + 1) * LAUNCHES; i++) {
            seen[i] = draw_tickets(&bench, CTAS);
            for (uint32_t j = 0; j < i; j++)
                assert_memory_not_equal(&seen[i], &seen[j], sizeof seen[i]);
        }
        bench_close(&bench);
    }
}

static void the_same_seed_gives_the_same_orders(void **state)
{
    struct tickets first[2];
    struct bench bench;
    (void)state;
    open_tickets(&bench);
    for (int again = 0; again < 3; again++) {
        set_seed(&bench, 5);
        for (int i = 0; i < 2; i++) {
            struct tickets tickets = draw_tickets(&bench, CTAS);
            if (!again)
                first[i] = tickets;
            assert_memory_equal(&tickets, &first[i], sizeof tickets);
        }
    }
    bench_close(&bench);
}

/*
 * The second warp of each CTA arrives and exits. What the first one of the second CTA stores late
 * must be there for the first CTA's behind the barrier.
 */
static void barrier_cluster_waits_for_others_than_who_has_arrived_and_exited(void **state)
{
    struct bench bench;
    uint32_t got = 0;
    (void)state;
    bench_open(&bench, "cpu:sm_90");
    bench_kernel(&bench, "sm_90", ".param .u64 out",
                 ".reg .b32 %r<8>; .reg .b64 %rd1; .reg .pred %p<4>;\n.shared .align 4 .b32 word;\n"
                 "ld.param.u64 %rd1, [out];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, %cluster_ctarank;\n"
                 "setp.ge.u32 %p1, %r1, 32;\n@%p1 bra LEAVE;\n"
                 "setp.eq.u32 %p2, %r2, 0;\n@%p2 bra MEET;\nmov.u32 %r3, 20000;\n"
                 "LATE: sub.u32 %r3, %r3, 1;\nsetp.ne.u32 %p3, %r3, 0;\n@%p3 bra LATE;\n"
                 "mov.u32 %r4, 7;\nsetp.eq.u32 %p3, %r1, 0;\n@%p3 st.shared.u32 [word], %r4;\n"
                 "MEET: barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"
                 "@!%p2 bra END;\nmov.u32 %r5, word;\nmapa.shared::cluster.u32 %r5, %r5, 1;\n"
                 "ld.shared::cluster.u32 %r6, [%r5];\n"
                 "setp.eq.u32 %p3, %r1, 0;\n@%p3 st.global.u32 [%rd1], %r6;\n"
                 "END: barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\nret;\n"
                 "LEAVE: barrier.cluster.arrive.aligned;\nret;\n");
    bench.cluster = 2;
    for (uint64_t seed = 0; seed < 4; seed++) {
        ptxgen_cu_deviceptr out = bench_blank(&bench, sizeof got);
        set_seed(&bench, seed);
        bench_run(&bench, "k", 2, 64, (void *[]){&out});
        bench_read(&bench, &got, out, sizeof got);
        assert_int_equal(got, 7);
    }
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_seed_clusters_begin_in_order),
        cmocka_unit_test(every_number_of_clusters_begins_once_and_any_may_be_first),
        cmocka_unit_test(each_launch_and_each_seed_has_its_own_order),
        cmocka_unit_test(the_same_seed_gives_the_same_orders),
        cmocka_unit_test(barrier_cluster_waits_for_others_than_who_has_arrived_and_exited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
