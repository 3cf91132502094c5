/* SPDX-License-Identifier: Apache-2.0 */
/* Barriers and .aligned instructions under divergence, and values known to be uniform. */
#include "support.h"

static const char lanes[] = "lanes of a warp can differ";
static const char warps[] = "warps of the CTA can differ";

static void aligned(ptx_kernel *k)
{
    ptx_u32 a[1];
    ptx_ldmatrix_x1_b16(k, a, ptx_mov_u32(k, ptx_imm_u32(0)), 0);
}
static void barrier(ptx_kernel *k)
{
    ptx_bar_sync(k, 0);
}

/* ---- branches ---- */

static void barrier_under_lanes(ptx_kernel *k)
{
    ptx_if(k, lane_condition(k)) barrier(k);
}
static void barrier_under_warps(ptx_kernel *k)
{
    ptx_if(k, warp_condition(k)) barrier(k);
}
static void barrier_under_cta(ptx_kernel *k)
{
    ptx_if(k, cta_condition(k)) barrier(k);
}
static void barrier_in_else(ptx_kernel *k)
{
    ptx_if_else(k, lane_condition(k)) ptx_nanosleep_u32(k, ptx_imm_u32(1));
    else barrier(k);
}
static void guarded_barrier(ptx_kernel *k)
{
    ptx_guarded(k, lane_condition(k)) barrier(k);
}
static void barrier_behind_the_join(ptx_kernel *k)
{
    ptx_if_else(k, lane_condition(k)) ptx_nanosleep_u32(k, ptx_imm_u32(1));
    else ptx_nanosleep_u32(k, ptx_imm_u32(2));
    barrier(k);
    aligned(k);
}

static void deferred_checks_refuse_the_same_later(void **state)
{
    (void)state;
    ptx_module *m = ptx_module_create(&sm_80, NULL);
    ptx_module_defer_checks(m);
    ptx_kernel *k = ptx_kernel_begin(m, "k");
    ptx_kernel_reqntid(k, 128, 1, 1);
    barrier_under_lanes(k);
    ptx_kernel_end(k);
    const char *text;
    ptxgen_error err;
    assert_int_equal(ptx_module_text(m, 0, &text, NULL, NULL), PTXGEN_OK);
    assert_int_equal(ptx_module_check(m, &err), PTXGEN_ERROR_DIVERGENCE);
    assert_non_null(strstr(err.message, lanes));
    assert_int_equal(ptx_module_text(m, 0, &text, NULL, NULL), PTXGEN_ERROR_DIVERGENCE);
    ptx_module_destroy(m);
}

static void barrier_under_a_divergent_branch_is_refused(void **state)
{
    (void)state;
    refuses(barrier_under_lanes, PTXGEN_ERROR_DIVERGENCE, lanes, "bar.sync", "test_divergence.c");
    refuses(barrier_under_warps, PTXGEN_ERROR_DIVERGENCE, warps);
    refuses(barrier_in_else, PTXGEN_ERROR_DIVERGENCE, lanes);
    refuses(guarded_barrier, PTXGEN_ERROR_DIVERGENCE, lanes);
    accepts(barrier_under_cta);
    accepts(barrier_behind_the_join);
}

static void aligned_under_lanes(ptx_kernel *k)
{
    ptx_if(k, lane_condition(k)) aligned(k);
}
static void aligned_under_warps(ptx_kernel *k)
{
    ptx_if(k, warp_condition(k)) aligned(k);
}

static void aligned_instruction_is_refused_under_lanes_but_not_under_warps(void **state)
{
    (void)state;
    refuses(aligned_under_lanes, PTXGEN_ERROR_DIVERGENCE, lanes, "ldmatrix");
    accepts(aligned_under_warps);
}

static void specialised(ptx_kernel *k)
{
    ptx_barrier full = ptx_barrier_new(k, 64), all = ptx_barrier_new(k, 0);
    ptx_if_else(k, ptx_setp_lt_u32(k, ptx_sreg_tid_x(k), ptx_imm_u32(32))) ptx_barrier_signal(k, full);
    else ptx_if(k, ptx_setp_lt_u32(k, ptx_sreg_tid_x(k), ptx_imm_u32(64))) ptx_barrier_wait(k, full);
    ptx_barrier_wait(k, all);
}
static void counted_under_lanes(ptx_kernel *k)
{
    ptx_barrier full = ptx_barrier_new(k, 64);
    ptx_if(k, lane_condition(k)) ptx_barrier_wait(k, full);
}

static void counted_barrier_is_in_order_in_warp_specialised_branches(void **state)
{
    (void)state;
    accepts(specialised);
    refuses(counted_under_lanes, PTXGEN_ERROR_DIVERGENCE, lanes);
}

/* ---- exits ---- */

static void barrier_after_if_ret(ptx_kernel *k)
{
    ptx_if(k, lane_condition(k)) ptx_ret(k);
    barrier(k);
}
static void barrier_after_guarded_ret(ptx_kernel *k)
{
    ptx_guarded(k, lane_condition(k)) ptx_ret(k);
    barrier(k);
}
static void barrier_after_guarded_exit_in_a_loop(ptx_kernel *k)
{
    ptx_u32 i = ptx_mov_u32(k, ptx_imm_u32(0));
    ptx_pred p = lane_condition(k);
    ptx_for(k, i, ptx_imm_u32(4), ptx_imm_u32(1)) ptx_guarded(k, p) ptx_exit(k);
    barrier(k);
}
static void aligned_after_warps_left(ptx_kernel *k)
{
    ptx_guarded(k, warp_condition(k)) ptx_ret(k);
    aligned(k);
}
static void barrier_after_warps_left(ptx_kernel *k)
{
    ptx_guarded(k, warp_condition(k)) ptx_ret(k);
    barrier(k);
}
static void barrier_after_the_cta_left(ptx_kernel *k)
{
    ptx_guarded(k, cta_condition(k)) ptx_ret(k);
    barrier(k);
}

static void barrier_after_a_divergent_exit_is_refused(void **state)
{
    (void)state;
    refuses(barrier_after_if_ret, PTXGEN_ERROR_DIVERGENCE, lanes, "bar.sync");
    refuses(barrier_after_guarded_ret, PTXGEN_ERROR_DIVERGENCE, lanes);
    refuses(barrier_after_guarded_exit_in_a_loop, PTXGEN_ERROR_DIVERGENCE, lanes);
    refuses(barrier_after_warps_left, PTXGEN_ERROR_DIVERGENCE, warps);
    accepts(aligned_after_warps_left);
    accepts(barrier_after_the_cta_left);
}

/* ---- loops ---- */

static void wait_loop(ptx_kernel *k)
{
    ptx_u32 bar = ptx_shared_address(k, ptx_shared_declare(k, "bar", 8, 8));
    ptx_loop(k, b)
        ptx_loop_break_if(&b, ptx_mbarrier_try_wait_parity(k, bar, 0, ptx_imm_u32(0)), false);
    barrier(k);
    aligned(k);
}
static void barrier_in_a_divergent_loop(ptx_kernel *k)
{
    ptx_u32 i = ptx_mov_u32(k, ptx_imm_u32(0));
    ptx_for(k, i, ptx_sreg_laneid(k), ptx_imm_u32(1)) barrier(k);
}
static void value_from_a_divergent_loop(ptx_kernel *k)
{
    ptx_u32 i = ptx_mov_u32(k, ptx_imm_u32(0)), x = ptx_mov_u32(k, ptx_imm_u32(0));
    ptx_for(k, i, ptx_sreg_laneid(k), ptx_imm_u32(1)) ptx_add_u32_to(k, x, x, ptx_imm_u32(1));
    ptx_if(k, ptx_setp_eq_u32(k, x, ptx_imm_u32(3))) barrier(k);
}
static void value_that_turns_divergent_in_a_later_turn(ptx_kernel *k)
{
    ptx_u32 x = ptx_mov_u32(k, ptx_imm_u32(0)), i = ptx_mov_u32(k, ptx_imm_u32(0));
    ptx_for(k, i, ptx_imm_u32(9), ptx_imm_u32(1))
    {
        ptx_if(k, ptx_setp_eq_u32(k, x, ptx_imm_u32(3))) barrier(k);
        ptx_mov_u32_to(k, x, ptx_sreg_laneid(k));
    }
}
static void barrier_before_a_divergent_break(ptx_kernel *k)
{
    ptx_pred p = lane_condition(k);
    ptx_loop(k, b)
    {
        barrier(k);
        ptx_loop_break_if(&b, p, false);
    }
}
static void value_written_before_a_divergent_break(ptx_kernel *k)
{
    ptx_u32 x = ptx_mov_u32(k, ptx_imm_u32(0)), n = ptx_mov_u32(k, ptx_imm_u32(0));
    ptx_loop(k, b)
    {
        ptx_add_u32_to(k, x, n, ptx_imm_u32(1));
        ptx_add_u32_to(k, n, x, ptx_imm_u32(1));
        ptx_loop_break_if(&b, ptx_setp_gt_u32(k, ptx_sreg_laneid(k), ptx_imm_u32(3)), false);
    }
    ptx_if(k, ptx_setp_eq_u32(k, x, ptx_imm_u32(3))) barrier(k);
}
static void barrier_in_a_uniform_loop(ptx_kernel *k)
{
    ptx_u32 i = ptx_mov_u32(k, ptx_imm_u32(0));
    ptx_for(k, i, ptx_param_u32(k, "n"), ptx_imm_u32(1)) barrier(k);
}

static void wait_loop_that_all_threads_leave_does_not_diverge_after_it(void **state)
{
    (void)state;
    accepts_on(sm_90a, wait_loop);
}

static void loop_of_lane_dependent_length_diverges_inside_and_in_its_results(void **state)
{
    (void)state;
    refuses(barrier_in_a_divergent_loop, PTXGEN_ERROR_DIVERGENCE, lanes);
    refuses(value_from_a_divergent_loop, PTXGEN_ERROR_DIVERGENCE, lanes);
    refuses(barrier_before_a_divergent_break, PTXGEN_ERROR_DIVERGENCE, lanes);
    refuses(value_written_before_a_divergent_break, PTXGEN_ERROR_DIVERGENCE, lanes);
    refuses(value_that_turns_divergent_in_a_later_turn, PTXGEN_ERROR_DIVERGENCE, lanes);
    accepts(barrier_in_a_uniform_loop);
}

static void loop_without_an_exit(ptx_kernel *k)
{
    ptx_if(k, lane_condition(k)) ptx_loop(k, b) barrier(k);
}

static void barrier_in_an_endless_loop_of_some_lanes_is_refused(void **state)
{
    (void)state;
    refuses(loop_without_an_exit, PTXGEN_ERROR_DIVERGENCE, lanes);
}

/* ---- what is uniform ---- */

enum level { CTA, WARP, LANE };
typedef ptx_u32 (*make_function)(ptx_kernel *k);
static make_function make;

static void branch_on_it_over_a_barrier(ptx_kernel *k)
{
    ptx_u32 x = make(k);
    ptx_if(k, ptx_setp_eq_u32(k, x, ptx_imm_u32(3))) barrier(k);
}
static void branch_on_it_over_ldmatrix(ptx_kernel *k)
{
    ptx_u32 x = make(k);
    ptx_if(k, ptx_setp_eq_u32(k, x, ptx_imm_u32(3))) aligned(k);
}

static void check_level(const char *name, make_function f, enum level level, ptx_target target)
{
    ptxgen_error err;
    make = f;
    ptxgen_status of_barrier = build_for(target, branch_on_it_over_a_barrier, &err);
    ptxgen_status of_ldmatrix = build_for(target, branch_on_it_over_ldmatrix, &err);
    enum level got = of_barrier == PTXGEN_OK ? CTA : of_ldmatrix == PTXGEN_OK ? WARP : LANE;
    if (got != level)
        fail_msg("%s has level %d, expected %d (%s)", name, got, level, err.message);
}

#define VALUE(name, expression) \
    static ptx_u32 name(ptx_kernel *k) { return expression; }
#define FULL ptx_imm_u32(0xffffffff)

VALUE(tid, ptx_sreg_tid_x(k))
VALUE(tid_y, ptx_sreg_tid_y(k))
VALUE(ctaid, ptx_sreg_ctaid_x(k))
VALUE(warpid, ptx_sreg_warpid(k))
VALUE(param, ptx_param_u32(k, "n"))
VALUE(global_load, ptx_ld_global_u32(k, ptx_param_u64(k, "p"), 0))
VALUE(shared_load, ptx_ld_shared_u32(k, ptx_mov_u32(k, ptx_imm_u32(0)), 0))
VALUE(volatile_load, ptx_ld_volatile_global_u32(k, ptx_param_u64(k, "p"), 0))
VALUE(load_by_lane, ptx_ld_shared_u32(k, ptx_sreg_laneid(k), 0))
VALUE(clock_value, ptx_sreg_clock(k))
VALUE(shifted, ptx_shr_u32(k, tid(k), ptx_imm_u32(5)))
VALUE(shifted_more, ptx_shr_u32(k, tid(k), ptx_imm_u32(7)))
VALUE(shifted_less, ptx_shr_u32(k, tid(k), ptx_imm_u32(4)))
VALUE(divided, ptx_div_u32(k, tid(k), ptx_imm_u32(96)))
VALUE(divided_odd, ptx_div_u32(k, tid(k), ptx_imm_u32(48)))
VALUE(masked, ptx_and_b32(k, tid(k), ptx_imm_u32(~31u)))
VALUE(masked_low, ptx_and_b32(k, tid(k), ptx_imm_u32(31)))
VALUE(shifted_after_offset, ptx_shr_u32(k, ptx_sub_u32(k, tid(k), ptx_imm_u32(64)), ptx_imm_u32(5)))
VALUE(shifted_after_odd_offset, ptx_shr_u32(k, ptx_add_u32(k, tid(k), ptx_imm_u32(8)), ptx_imm_u32(5)))
VALUE(scaled_warp, ptx_mul_lo_u32(k, shifted(k), ptx_imm_u32(3)))
VALUE(compared, ptx_selp_u32(k, ptx_imm_u32(1), ptx_imm_u32(2), ptx_setp_ge_u32(k, tid(k), ptx_imm_u32(96))))
VALUE(compared_le, ptx_selp_u32(k, ptx_imm_u32(1), ptx_imm_u32(2), ptx_setp_le_u32(k, tid(k), ptx_imm_u32(95))))
VALUE(compared_odd, ptx_selp_u32(k, ptx_imm_u32(1), ptx_imm_u32(2), ptx_setp_ge_u32(k, tid(k), ptx_imm_u32(97))))
VALUE(broadcast, ptx_shfl_sync_idx_u32(k, tid(k), ptx_imm_u32(0), ptx_imm_u32(31), FULL))
VALUE(broadcast_from_warp_lane, ptx_shfl_sync_idx_u32(k, tid(k), shifted(k), ptx_imm_u32(31), FULL))
VALUE(broadcast_in_segments, ptx_shfl_sync_idx_u32(k, tid(k), ptx_imm_u32(0), ptx_imm_u32(0x181f), FULL))
VALUE(gathered, ptx_shfl_sync_idx_u32(k, tid(k), tid(k), ptx_imm_u32(31), FULL))
VALUE(butterfly, ptx_shfl_sync_bfly_u32(k, tid(k), ptx_imm_u32(1), ptx_imm_u32(31), FULL))
VALUE(ballot, ptx_vote_sync_ballot_b32(k, lane_condition(k), FULL))
VALUE(ballot_of_own_mask, ptx_vote_sync_ballot_b32(k, lane_condition(k), ptx_sreg_laneid(k)))
VALUE(reduced, ptx_redux_sync_add_u32(k, tid(k), FULL))
VALUE(matched_any, ptx_match_any_sync_b32(k, tid(k), FULL))
VALUE(popcount_of_barrier, ptx_bar_red_popc_u32(k, 0, lane_condition(k)))
VALUE(read_and_added, ptx_atom_global_add_u32(k, ptx_param_u64(k, "p"), 0, ptx_imm_u32(1)))

static ptx_u32 matched_all(ptx_kernel *k)
{
    ptx_pred p;
    return ptx_match_all_sync_b32(k, &p, tid(k), FULL);
}
static ptx_u32 elected(ptx_kernel *k)
{
    ptx_pred p;
    ptx_elect_sync(k, &p, FULL);
    return ptx_selp_u32(k, ptx_imm_u32(1), ptx_imm_u32(0), p);
}
static ptx_u32 raw(ptx_kernel *k)
{
    ptx_operand o[1] = {{.type = PTX_U32}};
    ptx_raw(k, "mov.u32 %0, %laneid", 0, o, 1, 1);
    return (ptx_u32){o[0]};
}
static ptx_u32 chosen_by_lane(ptx_kernel *k)
{
    ptx_u32 x = ptx_mov_u32(k, ptx_imm_u32(1));
    ptx_guarded(k, lane_condition(k)) ptx_mov_u32_to(k, x, ptx_imm_u32(2));
    return x;
}
static ptx_u32 loaded_by_some_lanes(ptx_kernel *k)
{
    ptx_u32 x = ptx_mov_u32(k, ptx_imm_u32(1));
    ptx_param n = ptx_param_declare(k, "n", 4, 4);
    ptx_guarded(k, lane_condition(k)) ptx_ld_param_u32_to(k, x, n, 0);
    return x;
}
static ptx_u32 written_under_warps(ptx_kernel *k)
{
    ptx_u32 x = ptx_mov_u32(k, ptx_imm_u32(1));
    ptx_if(k, warp_condition(k)) ptx_mov_u32_to(k, x, ptx_imm_u32(2));
    return x;
}
static ptx_u32 written_under_lanes(ptx_kernel *k)
{
    ptx_u32 x = ptx_mov_u32(k, ptx_imm_u32(1));
    ptx_if(k, lane_condition(k)) ptx_mov_u32_to(k, x, ptx_imm_u32(2));
    return x;
}
static ptx_u32 rewritten_tid(ptx_kernel *k)
{
    ptx_u32 x = ptx_sreg_tid_x(k);
    ptx_mul_lo_u32_to(k, x, x, ptx_imm_u32(3));
    return ptx_shr_u32(k, x, ptx_imm_u32(5));
}

static void levels_of_values_are_known(void **state)
{
    (void)state;
#define LEVEL(value, level) check_level(#value, value, level, sm_80)
    LEVEL(tid, LANE);
    LEVEL(tid_y, LANE);
    LEVEL(ctaid, CTA);
    LEVEL(warpid, WARP);
    LEVEL(param, CTA);
    LEVEL(global_load, CTA);
    LEVEL(shared_load, CTA);
    LEVEL(volatile_load, LANE);
    LEVEL(load_by_lane, LANE);
    LEVEL(clock_value, LANE);
    LEVEL(read_and_added, LANE);
    LEVEL(raw, LANE);
    LEVEL(chosen_by_lane, LANE);
    LEVEL(loaded_by_some_lanes, LANE);
    LEVEL(written_under_warps, WARP);
    LEVEL(written_under_lanes, LANE);
#undef LEVEL
}

static void warp_index_is_recognised_in_arithmetic_on_tid_x(void **state)
{
    (void)state;
#define LEVEL(value, level) check_level(#value, value, level, sm_80)
    LEVEL(shifted, WARP);
    LEVEL(shifted_more, WARP);
    LEVEL(shifted_less, LANE);
    LEVEL(divided, WARP);
    LEVEL(divided_odd, LANE);
    LEVEL(masked, WARP);
    LEVEL(masked_low, LANE);
    LEVEL(shifted_after_offset, WARP);
    LEVEL(shifted_after_odd_offset, LANE);
    LEVEL(scaled_warp, WARP);
    LEVEL(compared, WARP);
    LEVEL(compared_le, WARP);
    LEVEL(compared_odd, LANE);
    LEVEL(rewritten_tid, LANE);
#undef LEVEL
}

static void collectives_are_warp_uniform_where_all_lanes_get_one_result(void **state)
{
    (void)state;
#define LEVEL(value, level) check_level(#value, value, level, sm_90a)
    LEVEL(broadcast, WARP);
    LEVEL(broadcast_from_warp_lane, WARP);
    LEVEL(broadcast_in_segments, LANE);
    LEVEL(gathered, LANE);
    LEVEL(butterfly, LANE);
    LEVEL(ballot, WARP);
    LEVEL(ballot_of_own_mask, LANE);
    LEVEL(reduced, WARP);
    LEVEL(matched_any, LANE);
    LEVEL(matched_all, WARP);
    LEVEL(elected, LANE);
    LEVEL(popcount_of_barrier, CTA);
#undef LEVEL
}

static void warps_are_not_assumed_to_run_along_x_in_a_cta_of_more_dimensions(void **state)
{
    (void)state;
    ptx_module *m = ptx_module_create(&sm_80, NULL);
    ptx_kernel *k = ptx_kernel_begin(m, "kernel");
    ptx_kernel_reqntid(k, 16, 8, 1);
    ptx_if(k, warp_condition(k)) aligned(k);
    ptx_kernel_end(k);
    assert_int_equal(ptx_module_status(m, NULL), PTXGEN_ERROR_DIVERGENCE);
    ptx_module_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(deferred_checks_refuse_the_same_later),
        TEST(barrier_under_a_divergent_branch_is_refused),
        TEST(aligned_instruction_is_refused_under_lanes_but_not_under_warps),
        TEST(counted_barrier_is_in_order_in_warp_specialised_branches),
        TEST(barrier_after_a_divergent_exit_is_refused),
        TEST(wait_loop_that_all_threads_leave_does_not_diverge_after_it),
        TEST(loop_of_lane_dependent_length_diverges_inside_and_in_its_results),
        TEST(barrier_in_an_endless_loop_of_some_lanes_is_refused),
        TEST(levels_of_values_are_known),
        TEST(warp_index_is_recognised_in_arithmetic_on_tid_x),
        TEST(collectives_are_warp_uniform_where_all_lanes_get_one_result),
        TEST(warps_are_not_assumed_to_run_along_x_in_a_cta_of_more_dimensions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
