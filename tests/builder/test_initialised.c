/* SPDX-License-Identifier: Apache-2.0 */
/* Registers read before they are written: what is refused, and the twins that are in order. */
#include "support.h"

static ptx_u32 unwritten(ptx_kernel *k)
{
    /* A register that exists and that nothing has written yet. */
    ptx_label skip = ptx_label_new(k, "skip");
    ptx_bra(k, skip);
    ptx_u32 x = ptx_mov_u32(k, ptx_imm_u32(1));
    ptx_label_bind(k, skip);
    return x;
}

static void use(ptx_kernel *k, ptx_u32 x)
{
    ptx_st_shared_u32(k, ptx_mov_u32(k, ptx_imm_u32(0)), 0, x);
}

/* ---- branches ---- */

static void if_without_else(ptx_kernel *k)
{
    ptx_u32 x = unwritten(k);
    ptx_if(k, cta_condition(k)) ptx_mov_u32_to(k, x, ptx_imm_u32(1));
    use(k, x);
}
static void if_with_else(ptx_kernel *k)
{
    ptx_u32 x = unwritten(k);
    ptx_if_else(k, cta_condition(k)) ptx_mov_u32_to(k, x, ptx_imm_u32(1));
    else ptx_mov_u32_to(k, x, ptx_imm_u32(2));
    use(k, x);
}
static void read_under_the_same_condition(ptx_kernel *k)
{
    ptx_u32 x = unwritten(k);
    ptx_pred p = cta_condition(k);
    ptx_if(k, p) ptx_mov_u32_to(k, x, ptx_imm_u32(1));
    ptx_bar_sync(k, 0);
    ptx_if(k, p) use(k, x);
    ptx_guarded(k, p) ptx_st_shared_u32(k, x, 0, x);
}
static void read_under_the_opposite_condition(ptx_kernel *k)
{
    ptx_u32 x = unwritten(k);
    ptx_pred p = cta_condition(k);
    ptx_if(k, p) ptx_mov_u32_to(k, x, ptx_imm_u32(1));
    ptx_unless(k, p) use(k, x);
}
static void read_after_the_condition_changed(ptx_kernel *k)
{
    ptx_u32 x = unwritten(k);
    ptx_pred p = cta_condition(k);
    ptx_if(k, p) ptx_mov_u32_to(k, x, ptx_imm_u32(1));
    ptx_setp_lt_u32_to(k, p, ptx_sreg_smid(k), ptx_imm_u32(3));
    ptx_if(k, p) use(k, x);
}

static void register_written_on_one_branch_only_is_refused(void **state)
{
    (void)state;
    refuses(if_without_else, PTXGEN_ERROR_UNINITIALISED, "never wrote", "st.shared.u32");
    accepts(if_with_else);
}

static void branches_on_one_predicate_are_correlated_until_it_changes(void **state)
{
    (void)state;
    accepts(read_under_the_same_condition);
    refuses(read_under_the_opposite_condition, PTXGEN_ERROR_UNINITIALISED, "never wrote");
    refuses(read_after_the_condition_changed, PTXGEN_ERROR_UNINITIALISED, "never wrote");
}

/* ---- loops ---- */

static void written_in_a_loop_that_may_not_turn(ptx_kernel *k)
{
    ptx_u32 x = unwritten(k), i = ptx_mov_u32(k, ptx_imm_u32(0));
    ptx_for(k, i, ptx_sreg_nctaid_x(k), ptx_imm_u32(1)) ptx_mov_u32_to(k, x, i);
    use(k, x);
}
static void written_in_a_loop_before_its_break(ptx_kernel *k)
{
    ptx_u32 x = unwritten(k);
    ptx_loop(k, b)
    {
        ptx_mov_u32_to(k, x, ptx_imm_u32(5));
        ptx_loop_break_if(&b, cta_condition(k), false);
    }
    use(k, x);
}
static void read_in_the_first_turn(ptx_kernel *k)
{
    ptx_u32 x = unwritten(k), i = ptx_mov_u32(k, ptx_imm_u32(0));
    ptx_for(k, i, ptx_imm_u32(4), ptx_imm_u32(1))
    {
        use(k, x);
        ptx_mov_u32_to(k, x, i);
    }
}
static void accumulated_from_nothing(ptx_kernel *k)
{
    ptx_u32 x = unwritten(k), i = ptx_mov_u32(k, ptx_imm_u32(0));
    ptx_for(k, i, ptx_imm_u32(4), ptx_imm_u32(1)) ptx_add_u32_to(k, x, x, i);
}

static void register_written_in_a_loop_that_may_not_turn_is_refused(void **state)
{
    (void)state;
    refuses(written_in_a_loop_that_may_not_turn, PTXGEN_ERROR_UNINITIALISED, "st.shared.u32");
    accepts(written_in_a_loop_before_its_break);
}

static void register_read_in_the_first_turn_before_its_write_is_refused(void **state)
{
    (void)state;
    refuses(read_in_the_first_turn, PTXGEN_ERROR_UNINITIALISED, "st.shared.u32");
    refuses(accumulated_from_nothing, PTXGEN_ERROR_UNINITIALISED, "add.u32");
}

/* ---- guards ---- */

static void guarded_write_then_read(ptx_kernel *k)
{
    ptx_u32 x;
    ptx_guarded(k, cta_condition(k)) x = ptx_mov_u32(k, ptx_imm_u32(1));
    use(k, x);
}
static void opposite_guards(ptx_kernel *k)
{
    ptx_u32 x;
    ptx_pred p = cta_condition(k);
    ptx_guarded(k, p) x = ptx_mov_u32(k, ptx_imm_u32(1));
    ptx_guarded_not(k, p) ptx_mov_u32_to(k, x, ptx_imm_u32(2));
    use(k, x);
}
static void opposite_guards_of_two_values(ptx_kernel *k)
{
    ptx_u32 x;
    ptx_pred p = cta_condition(k);
    ptx_guarded(k, p) x = ptx_mov_u32(k, ptx_imm_u32(1));
    ptx_setp_lt_u32_to(k, p, ptx_sreg_smid(k), ptx_imm_u32(3));
    ptx_guarded_not(k, p) ptx_mov_u32_to(k, x, ptx_imm_u32(2));
    use(k, x);
}
static void value_under_one_guard(ptx_kernel *k)
{
    ptx_pred p = cta_condition(k);
    ptx_guarded(k, p) use(k, ptx_mov_u32(k, ptx_imm_u32(1)));
}
static void value_under_one_guard_over_blocks(ptx_kernel *k)
{
    ptx_u32 x, i = ptx_mov_u32(k, ptx_imm_u32(0));
    ptx_pred p = cta_condition(k);
    ptx_guarded(k, p) x = ptx_mov_u32(k, ptx_imm_u32(1));
    ptx_for(k, i, ptx_imm_u32(4), ptx_imm_u32(1))
        ptx_guarded(k, p) ptx_add_u32_to(k, x, x, i);
    ptx_guarded(k, p) ptx_st_shared_u32(k, x, 0, x);
}
static void guard_changes_between(ptx_kernel *k)
{
    ptx_u32 x;
    ptx_pred p = cta_condition(k);
    ptx_guarded(k, p) x = ptx_mov_u32(k, ptx_imm_u32(1));
    ptx_setp_lt_u32_to(k, p, ptx_sreg_smid(k), ptx_imm_u32(3));
    ptx_guarded(k, p) ptx_st_shared_u32(k, x, 0, x);
}
static void guarded_read_before_guarded_write_in_a_loop(ptx_kernel *k)
{
    ptx_u32 x = unwritten(k), i = ptx_mov_u32(k, ptx_imm_u32(0));
    ptx_pred p = cta_condition(k);
    ptx_for(k, i, ptx_imm_u32(4), ptx_imm_u32(1)) ptx_guarded(k, p)
    {
        ptx_st_shared_u32(k, i, 0, x);
        ptx_mov_u32_to(k, x, i);
    }
}
static void unwritten_guard(ptx_kernel *k)
{
    ptx_label skip = ptx_label_new(k, "skip");
    ptx_bra(k, skip);
    ptx_pred p = cta_condition(k);
    ptx_label_bind(k, skip);
    ptx_guarded(k, p) ptx_mov_u32(k, ptx_imm_u32(1));
}
static void guarded_branch_after_guarded_write(ptx_kernel *k)
{
    ptx_u32 x;
    ptx_pred p = cta_condition(k);
    ptx_guarded(k, p) x = ptx_mov_u32(k, ptx_imm_u32(1));
    ptx_guarded_not(k, p) ptx_ret(k);
    use(k, x);
}

static void guarded_write_does_not_initialise(void **state)
{
    (void)state;
    refuses(guarded_write_then_read, PTXGEN_ERROR_UNINITIALISED, "never wrote");
    refuses(unwritten_guard, PTXGEN_ERROR_UNINITIALISED, "never wrote", "mov.u32");
}

static void writes_under_opposite_guards_initialise(void **state)
{
    (void)state;
    accepts(opposite_guards);
    refuses(opposite_guards_of_two_values, PTXGEN_ERROR_UNINITIALISED, "never wrote");
    accepts(guarded_branch_after_guarded_write);
}

static void value_that_lives_under_one_guard_is_in_order_until_the_guard_changes(void **state)
{
    (void)state;
    accepts(value_under_one_guard);
    accepts(value_under_one_guard_over_blocks);
    refuses(guard_changes_between, PTXGEN_ERROR_UNINITIALISED, "never wrote");
    refuses(guarded_read_before_guarded_write_in_a_loop, PTXGEN_ERROR_UNINITIALISED, "never wrote");
}

/* ---- wgmma's accumulators ---- */

static void wgmma(ptx_kernel *k, ptx_f32 acc[4], ptx_pred scale)
{
    ptx_u64 a = ptx_mov_u64(k, ptx_imm_u64(0)), b = ptx_mov_u64(k, ptx_imm_u64(0));
    ptx_wgmma_fence(k);
    ptx_wgmma_k16_f32_f16(k, 8, acc, a, b, scale, 1, 1, 0, 0);
    ptx_wgmma_commit_group(k);
    ptx_wgmma_wait_group(k, 0);
}
static void wgmma_starts_from_nothing(ptx_kernel *k)
{
    ptx_f32 acc[4] = {{{0}}};
    ptx_u32 i = ptx_mov_u32(k, ptx_imm_u32(0));
    ptx_loop(k, b)
    {
        wgmma(k, acc, ptx_setp_ne_u32(k, i, ptx_imm_u32(0)));
        ptx_add_u32_to(k, i, i, ptx_imm_u32(1));
        ptx_loop_break_if(&b, ptx_setp_eq_u32(k, i, ptx_imm_u32(8)), false);
    }
    ptx_st_global_f32(k, ptx_param_u64(k, "p"), 0, acc[3]);
}
static void accumulator_of_wgmma_read_before_it(ptx_kernel *k)
{
    ptx_f32 acc[4] = {{{0}}};
    ptx_label skip = ptx_label_new(k, "skip");
    ptx_pred p = cta_condition(k);
    ptx_guarded(k, p) ptx_bra(k, skip);
    wgmma(k, acc, p);
    ptx_label_bind(k, skip);
    ptx_st_global_f32(k, ptx_param_u64(k, "p"), 0, acc[3]);
}

static void accumulator_of_wgmma_may_start_undefined_but_not_be_read_so(void **state)
{
    (void)state;
    accepts_on(sm_90a, wgmma_starts_from_nothing);
    refuses_on(sm_90a, accumulator_of_wgmma_read_before_it, PTXGEN_ERROR_UNINITIALISED,
               "st.global.f32");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(register_written_on_one_branch_only_is_refused),
        TEST(branches_on_one_predicate_are_correlated_until_it_changes),
        TEST(register_written_in_a_loop_that_may_not_turn_is_refused),
        TEST(register_read_in_the_first_turn_before_its_write_is_refused),
        TEST(guarded_write_does_not_initialise),
        TEST(writes_under_opposite_guards_initialise),
        TEST(value_that_lives_under_one_guard_is_in_order_until_the_guard_changes),
        TEST(accumulator_of_wgmma_may_start_undefined_but_not_be_read_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
