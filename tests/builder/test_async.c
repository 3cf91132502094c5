/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous copies read before a wait, and the pipelines that are in order. */
#include "support.h"

enum { STAGES = 4, STAGE_BYTES = 2048 };

struct ring {
    ptx_u64 source;
    ptx_u32 base, counter;
};

static struct ring make_ring(ptx_kernel *k)
{
    struct ring r;
    r.source = ptx_param_u64(k, "source");
    r.base = ptx_shared_address(k, ptx_shared_declare(k, "ring", STAGES * STAGE_BYTES, 128));
    r.counter = ptx_mov_u32(k, ptx_imm_u32(0));
    return r;
}
static void copy(ptx_kernel *k, const struct ring *r, int stage)
{
    ptx_cp_async_cg(k, r->base, stage * STAGE_BYTES, r->source, 0, 16);
}
static void read_stage(ptx_kernel *k, const struct ring *r, int stage)
{
    ptx_u32 a[4];
    ptx_u32 slot = ptx_add_u32(k, r->base, ptx_imm_u32((uint32_t)stage * STAGE_BYTES));
    ptx_ldmatrix_x4_b16(k, a, slot, 0);
}

static void read_at_once(ptx_kernel *k)
{
    struct ring r = make_ring(k);
    copy(k, &r, 0);
    ptx_cp_async_commit_group(k);
    ptx_bar_sync(k, 0);
    read_stage(k, &r, 0);
}
static void read_after_wait(ptx_kernel *k)
{
    struct ring r = make_ring(k);
    copy(k, &r, 0);
    ptx_cp_async_commit_group(k);
    ptx_cp_async_wait_group(k, 0);
    ptx_bar_sync(k, 0);
    read_stage(k, &r, 0);
}
static void wait_on_one_path(ptx_kernel *k)
{
    struct ring r = make_ring(k);
    copy(k, &r, 0);
    ptx_cp_async_commit_group(k);
    ptx_if(k, cta_condition(k)) ptx_cp_async_wait_all(k);
    read_stage(k, &r, 0);
}
static void read_another_buffer(ptx_kernel *k)
{
    struct ring r = make_ring(k);
    ptx_u32 other = ptx_shared_address(k, ptx_shared_declare(k, "other", 64, 16));
    copy(k, &r, 0);
    ptx_ld_shared_u32(k, other, 0);
}
static void read_in_the_next_turn(ptx_kernel *k)
{
    struct ring r = make_ring(k);
    ptx_for(k, r.counter, ptx_param_u32(k, "n"), ptx_imm_u32(1))
    {
        read_stage(k, &r, 0);
        copy(k, &r, 0);
        ptx_cp_async_commit_group(k);
    }
}

static void copy_read_without_any_wait_is_refused(void **state)
{
    (void)state;
    refuses(read_at_once, PTXGEN_ERROR_ASYNC, "has not waited", "ldmatrix", "test_async.c");
    refuses(wait_on_one_path, PTXGEN_ERROR_ASYNC, "has not waited");
    refuses(read_in_the_next_turn, PTXGEN_ERROR_ASYNC, "has not waited");
    accepts(read_after_wait);
    accepts(read_another_buffer);
}

/* ---- pipelines ---- */

static void prologue(ptx_kernel *k, const struct ring *r)
{
    for (int stage = 0; stage < STAGES - 1; stage++) {
        copy(k, r, stage);
        ptx_cp_async_commit_group(k);
    }
}
static void pipeline_that_waits_for(ptx_kernel *k, int pending)
{
    struct ring r = make_ring(k);
    prologue(k, &r);
    ptx_for(k, r.counter, ptx_param_u32(k, "n"), ptx_imm_u32(1))
    {
        ptx_cp_async_wait_group(k, pending);
        ptx_bar_sync(k, 0);
        copy(k, &r, STAGES - 1);
        ptx_cp_async_commit_group(k);
        read_stage(k, &r, 0);
    }
}
static void pipeline(ptx_kernel *k)
{
    pipeline_that_waits_for(k, STAGES - 2);
}
static void pipeline_that_waits_for_nothing(ptx_kernel *k)
{
    pipeline_that_waits_for(k, STAGES - 1);
}
static void software_pipeline(ptx_kernel *k)
{
    struct ring r = make_ring(k);
    prologue(k, &r);
    ptx_cp_async_wait_group(k, STAGES - 2);
    ptx_bar_sync(k, 0);
    read_stage(k, &r, 0);
    ptx_for(k, r.counter, ptx_param_u32(k, "n"), ptx_imm_u32(1))
    {
        copy(k, &r, STAGES - 1);
        ptx_cp_async_commit_group(k);
        read_stage(k, &r, 1);
        ptx_cp_async_wait_group(k, STAGES - 2);
        ptx_bar_sync(k, 0);
        read_stage(k, &r, 2);
    }
}
static void prologue_in_a_loop(ptx_kernel *k)
{
    struct ring r = make_ring(k);
    ptx_u32 s = ptx_mov_u32(k, ptx_imm_u32(0));
    ptx_for(k, s, ptx_imm_u32(STAGES - 1), ptx_imm_u32(1))
    {
        copy(k, &r, 0);
        ptx_cp_async_commit_group(k);
    }
    ptx_for(k, r.counter, ptx_param_u32(k, "n"), ptx_imm_u32(1))
    {
        ptx_cp_async_wait_group(k, STAGES - 2);
        copy(k, &r, STAGES - 1);
        ptx_cp_async_commit_group(k);
        read_stage(k, &r, 0);
    }
}
static void wait_before_commit(ptx_kernel *k)
{
    struct ring r = make_ring(k);
    copy(k, &r, 0);
    ptx_cp_async_wait_group(k, 0);
    read_stage(k, &r, 0);
}
static void conditional_copies(ptx_kernel *k)
{
    struct ring r = make_ring(k);
    ptx_if(k, cta_condition(k))
    {
        copy(k, &r, 0);
        ptx_cp_async_commit_group(k);
    }
    ptx_cp_async_wait_group(k, 0);
    read_stage(k, &r, 0);
}

static void pipelines_with_prologue_and_wait_in_the_loop_are_in_order(void **state)
{
    (void)state;
    accepts(pipeline);
    accepts(software_pipeline);
    accepts(prologue_in_a_loop);
    accepts(conditional_copies);
}

static void wait_for_no_more_groups_than_were_committed_waits_for_nothing(void **state)
{
    (void)state;
    refuses(pipeline_that_waits_for_nothing, PTXGEN_ERROR_ASYNC, "has not waited");
    refuses(wait_before_commit, PTXGEN_ERROR_ASYNC, "has not waited");
}

/* ---- copies that signal an mbarrier ---- */

static void bulk_read_at_once(ptx_kernel *k)
{
    struct ring r = make_ring(k);
    ptx_u32 bar = ptx_shared_address(k, ptx_shared_declare(k, "bar", 8, 8));
    ptx_cp_async_bulk_g2s(k, r.base, 0, r.source, 0, ptx_imm_u32(128), bar, 0);
    ptx_ld_shared_u32(k, r.base, 0);
}
static void producer_and_consumers(ptx_kernel *k)
{
    struct ring r = make_ring(k);
    ptx_u32 bar = ptx_shared_address(k, ptx_shared_declare(k, "bar", 8, 8));
    ptx_pred producer = warp_condition(k);
    ptx_if_else(k, producer)
        ptx_cp_async_bulk_g2s(k, r.base, 0, r.source, 0, ptx_imm_u32(128), bar, 0);
    else
    {
        ptx_loop(k, b)
            ptx_loop_break_if(&b, ptx_mbarrier_try_wait_parity(k, bar, 0, ptx_imm_u32(0)), false);
        ptx_ld_shared_u32(k, r.base, 0);
    }
    ptx_bar_sync(k, 0);
    ptx_ld_shared_u32(k, r.base, 64); /* all of the CTA, in the epilogue */
}
static void copies_that_arrive_at_a_barrier(ptx_kernel *k)
{
    struct ring r = make_ring(k);
    ptx_u32 bar = ptx_shared_address(k, ptx_shared_declare(k, "bar", 8, 8));
    ptx_if_else(k, warp_condition(k))
    {
        copy(k, &r, 0);
        ptx_cp_async_mbarrier_arrive_noinc(k, bar, 0);
    }
    else ptx_loop(k, b)
            ptx_loop_break_if(&b, ptx_mbarrier_test_wait_parity(k, bar, 0, ptx_imm_u32(0)), false);
    ptx_bar_sync(k, 0);
    read_stage(k, &r, 0);
}

static void bulk_copy_read_without_any_wait_is_refused(void **state)
{
    (void)state;
    refuses_on(sm_90a, bulk_read_at_once, PTXGEN_ERROR_ASYNC, "has not waited");
}

static void another_thread_may_wait_for_a_copy_that_signals(void **state)
{
    (void)state;
    accepts_on(sm_90a, producer_and_consumers);
    accepts(copies_that_arrive_at_a_barrier);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(copy_read_without_any_wait_is_refused),
        TEST(pipelines_with_prologue_and_wait_in_the_loop_are_in_order),
        TEST(wait_for_no_more_groups_than_were_committed_waits_for_nothing),
        TEST(bulk_copy_read_without_any_wait_is_refused),
        TEST(another_thread_may_wait_for_a_copy_that_signals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
