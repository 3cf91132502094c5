/* SPDX-License-Identifier: Apache-2.0 */
/* Names, labels, blocks, directives, memory sizes, and the sticky error. */
#include "support.h"

/* ---- labels ---- */

static void leave_unbound(ptx_kernel *k)
{
    ptx_bra(k, ptx_label_new(k, "nowhere"));
}
static void bind_twice(ptx_kernel *k)
{
    ptx_label l = ptx_label_new(k, "here");
    ptx_label_bind(k, l);
    ptx_label_bind(k, l);
}
static void name_with_newline(ptx_kernel *k)
{
    ptx_label_bind(k, ptx_label_new(k, "a\nret;"));
}
static void branch_backwards(ptx_kernel *k)
{
    ptx_label l = ptx_label_new(k, NULL);
    ptx_label_bind(k, l);
    ptx_guarded(k, cta_condition(k)) ptx_bra(k, l);
}

static void labels_are_bound_exactly_once(void **state)
{
    (void)state;
    refuses(leave_unbound, PTXGEN_ERROR_LABEL, "'nowhere'", "never bound");
    refuses(bind_twice, PTXGEN_ERROR_LABEL, "'here'", "bound twice", "test_structure.c");
    refuses(name_with_newline, PTXGEN_ERROR_LABEL, "identifier");
    accepts(branch_backwards);
}

/* ---- blocks ---- */

static void leave_if_by_break(ptx_kernel *k)
{
    ptx_if(k, cta_condition(k)) break;
}
static void leave_guard_by_break(ptx_kernel *k)
{
    ptx_guarded(k, cta_condition(k)) break;
}
static void if_in_guard(ptx_kernel *k)
{
    ptx_pred p = cta_condition(k);
    ptx_guarded(k, p) ptx_if(k, p) ptx_mov_u32(k, ptx_imm_u32(1));
}
static void for_in_guard(ptx_kernel *k)
{
    ptx_pred p = cta_condition(k);
    ptx_u32 i = ptx_mov_u32(k, ptx_imm_u32(0));
    ptx_guarded(k, p) ptx_for(k, i, ptx_imm_u32(4), ptx_imm_u32(1)) ptx_nanosleep_u32(k, i);
}
static void loop_in_guard(ptx_kernel *k)
{
    ptx_pred p = cta_condition(k);
    ptx_guarded(k, p) ptx_loop(k, b) ptx_nanosleep_u32(k, ptx_imm_u32(1));
}
static void guard_in_guard(ptx_kernel *k)
{
    ptx_pred p = cta_condition(k);
    ptx_guarded(k, p) ptx_guarded_not(k, p) ptx_mov_u32(k, ptx_imm_u32(1));
}
static void close_twice(ptx_kernel *k)
{
    ptx_block b = ptx_guard_begin(k, PTX_HERE, cta_condition(k), false);
    ptx_guard_end(&b);
    ptx_guard_end(&b);
}
static void break_after_the_end(ptx_kernel *k)
{
    ptx_pred p = cta_condition(k);
    ptx_block kept = {0};
    ptx_loop(k, b)
    {
        ptx_loop_break_if(&b, p, false);
        kept = b;
    }
    ptx_loop_break_if(&kept, p, false);
}
static void step_by_zero(ptx_kernel *k)
{
    ptx_u32 i = ptx_mov_u32(k, ptx_imm_u32(0));
    ptx_for(k, i, ptx_imm_u32(4), ptx_imm_u32(0)) ptx_nanosleep_u32(k, i);
}
static void count_with_a_constant(ptx_kernel *k)
{
    ptx_for(k, ptx_imm_u32(0), ptx_imm_u32(4), ptx_imm_u32(1)) ptx_nanosleep_u32(k, ptx_imm_u32(1));
}

static void blocks_left_open_are_reported(void **state)
{
    (void)state;
    refuses(leave_if_by_break, PTXGEN_ERROR_STRUCTURE, "1 structured blocks were left open");
    refuses(leave_guard_by_break, PTXGEN_ERROR_STRUCTURE, "left open");
}

static void guards_hold_no_control_flow_and_do_not_nest(void **state)
{
    (void)state;
    refuses(if_in_guard, PTXGEN_ERROR_STRUCTURE, "inside ptx_guarded", "test_structure.c");
    refuses(for_in_guard, PTXGEN_ERROR_STRUCTURE, "inside ptx_guarded");
    refuses(loop_in_guard, PTXGEN_ERROR_STRUCTURE, "inside ptx_guarded");
    refuses(guard_in_guard, PTXGEN_ERROR_STRUCTURE, "ptx_guarded inside ptx_guarded");
}

static void misused_loops_and_blocks_are_refused(void **state)
{
    (void)state;
    refuses(close_twice, PTXGEN_ERROR_STRUCTURE, "closed twice");
    refuses(break_after_the_end, PTXGEN_ERROR_STRUCTURE, "which has ended");
    refuses(step_by_zero, PTXGEN_ERROR_OPERAND, "step 0");
    refuses(count_with_a_constant, PTXGEN_ERROR_OPERAND, "register only");
}

static void emit_well_formed(ptx_kernel *k)
{
    ptx_pred p = cta_condition(k);
    ptx_u64 out = ptx_param_u64(k, "out");
    ptx_label end = ptx_label_new(k, "end");
    ptx_u32 i = ptx_mov_u32(k, ptx_imm_u32(0)), x = ptx_mov_u32(k, ptx_imm_u32(0));
    ptx_for(k, i, ptx_imm_u32(16), ptx_imm_u32(2)) ptx_add_u32_to(k, x, x, i);
    ptx_if_else(k, p) ptx_add_u32_to(k, x, x, ptx_imm_u32(1));
    else ptx_add_u32_to(k, x, x, ptx_imm_u32(2));
    ptx_if_else(k, p) ptx_add_u32_to(k, x, x, ptx_imm_u32(3)); /* without its else */
    ptx_loop(k, outer)
    {
        ptx_loop(k, inner)
        {
            ptx_if(k, p) ptx_loop_break_if(&outer, p, true);
            ptx_loop_break_if(&inner, p, false);
        }
        ptx_loop_break_if(&outer, p, false);
    }
    ptx_unless(k, p) ptx_guarded_not(k, p) ptx_bra(k, end);
    ptx_st_global_u32(k, out, 0, x);
    ptx_label_bind(k, end);
}

static void blocks_nest_and_take_constants(void **state)
{
    (void)state;
    accepts(emit_well_formed);
}

/* ---- the end ---- */

static void check_use_after_end(build_function use)
{
    ptx_module *m = ptx_module_create(&sm_80, NULL);
    ptx_kernel *k = ptx_kernel_begin(m, "kernel");
    ptx_kernel_end(k);
    assert_int_equal(ptx_module_status(m, NULL), PTXGEN_OK);
    use(k);
    ptxgen_error err;
    assert_int_equal(ptx_module_status(m, &err), PTXGEN_ERROR_STRUCTURE);
    assert_says(&err, "after its end");
    ptx_module_destroy(m);
}

static void emit_one(ptx_kernel *k)
{
    ptx_mov_u32(k, ptx_imm_u32(1));
}
static void declare_shared(ptx_kernel *k)
{
    ptx_shared_declare(k, "s", 4, 4);
}
static void set_reqntid(ptx_kernel *k)
{
    ptx_kernel_reqntid(k, 32, 1, 1);
}
static void set_maxntid(ptx_kernel *k)
{
    ptx_kernel_maxntid(k, 32);
}
static void set_minnctapersm(ptx_kernel *k)
{
    ptx_kernel_minnctapersm(k, 1);
}
static void set_maxnreg(ptx_kernel *k)
{
    ptx_kernel_maxnreg(k, 64);
}
static void make_label(ptx_kernel *k)
{
    ptx_label_new(k, NULL);
}
static void take_barrier(ptx_kernel *k)
{
    ptx_barrier_new(k, 32);
}
static void add_comment(ptx_kernel *k)
{
    ptx_comment(k, "late");
}

static void nothing_may_change_after_the_end(void **state)
{
    (void)state;
    static const build_function uses[] = {emit_one,    declare_shared, set_reqntid,
                                          set_maxntid, set_minnctapersm, set_maxnreg,
                                          make_label,  take_barrier,   add_comment, ptx_kernel_end};
    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++)
        check_use_after_end(uses[i]);
}

static void text_of_an_unended_kernel_is_refused(void **state)
{
    (void)state;
    ptx_module *m = ptx_module_create(&sm_80, NULL);
    ptx_kernel_begin(m, "kernel");
    const char *text = NULL;
    ptxgen_error err;
    assert_int_equal(ptx_module_text(m, 0, &text, NULL, &err), PTXGEN_ERROR_STRUCTURE);
    assert_says(&err, "'kernel'");
    assert_says(&err, "never ended");
    assert_null(text);
    ptx_module_destroy(m);
}

static void kernel_returns_at_its_end_exactly_once(void **state)
{
    (void)state;
    for (int explicitly = 0; explicitly < 2; explicitly++) {
        ptx_module *m = ptx_module_create(&sm_80, NULL);
        ptx_kernel *k = ptx_kernel_begin(m, "kernel");
        if (explicitly)
            ptx_ret(k);
        ptx_comment(k, "the end");
        ptx_kernel_end(k);
        ptx_kernel_info info;
        assert_int_equal(ptx_module_kernel_info(m, 0, &info), PTXGEN_OK);
        assert_int_equal(info.instructions, 1);
        ptx_module_destroy(m);
    }
}

/* ---- names ---- */

static void check_kernel_name(const char *name, bool good)
{
    ptx_module *m = ptx_module_create(&sm_80, NULL);
    ptx_kernel_end(ptx_kernel_begin(m, name));
    ptxgen_error err;
    ptxgen_status status = ptx_module_status(m, &err);
    if (status != (good ? PTXGEN_OK : PTXGEN_ERROR_STRUCTURE))
        fail_msg("name '%s': %s", name ? name : "(null)", err.message);
    ptx_module_destroy(m);
}

static void kernel_names_are_ascii_identifiers(void **state)
{
    (void)state;
    static const char *const good[] = {"a", "_a", "_1", "add", "marlin_m16_n256", "A9"};
    static const char *const bad[] = {"",    "_",     "9a",     "a b",     "a-b",  "a$b",
                                      "%r1", "a\nb", "caf\xe9", "WARP_SZ", "größe"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        check_kernel_name(good[i], true);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        check_kernel_name(bad[i], false);
    check_kernel_name(NULL, false);
    char longest[257];
    memset(longest, 'a', sizeof longest);
    longest[256] = 0;
    check_kernel_name(longest, false);
    longest[255] = 0;
    check_kernel_name(longest, true);
}

static void two_kernels_of_one_name_and_overlapping_kernels_are_refused(void **state)
{
    (void)state;
    ptxgen_error err;
    ptx_module *m = ptx_module_create(&sm_80, NULL);
    ptx_kernel_end(ptx_kernel_begin(m, "twin"));
    ptx_kernel_begin(m, "twin");
    assert_int_equal(ptx_module_status(m, &err), PTXGEN_ERROR_STRUCTURE);
    assert_says(&err, "'twin'");
    ptx_module_destroy(m);
    m = ptx_module_create(&sm_80, NULL);
    ptx_kernel_begin(m, "outer");
    ptx_kernel_begin(m, "inner");
    assert_int_equal(ptx_module_status(m, &err), PTXGEN_ERROR_STRUCTURE);
    assert_says(&err, "before kernel 'outer' was ended");
    ptx_module_destroy(m);
}

static void param_like_a_register(ptx_kernel *k)
{
    ptx_param_u32(k, "%r0");
}
static void param_twice(ptx_kernel *k)
{
    ptx_param_u32(k, "n");
    ptx_param_u64(k, "n");
}
static void params_like_the_builders_names(ptx_kernel *k)
{
    ptx_u32 x = ptx_param_u32(k, "r0");
    ptx_u32 y = ptx_param_u32(k, "L0_endif");
    ptx_u32 z = ptx_param_u32(k, "kernel_shared");
    ptx_u32 s = ptx_shared_address(k, ptx_shared_declare(k, "sums of a row × 4", 64, 4));
    ptx_if(k, ptx_setp_eq_u32(k, x, y)) ptx_st_shared_u32(k, s, 0, z);
}

static void parameter_names_are_unique_identifiers(void **state)
{
    (void)state;
    refuses(param_like_a_register, PTXGEN_ERROR_STRUCTURE, "%r0", "identifier");
    refuses(param_twice, PTXGEN_ERROR_STRUCTURE, "'n'", "twice");
    accepts(params_like_the_builders_names);
}

/* ---- directives ---- */

static void maxntid_too(ptx_kernel *k)
{
    ptx_kernel_maxntid(k, 128);
}
static void too_large_a_cta(ptx_kernel *k)
{
    ptx_kernel_reqntid(k, 1024, 2, 1);
}
static void no_ctas(ptx_kernel *k)
{
    ptx_kernel_minnctapersm(k, 0);
}
static void few_registers(ptx_kernel *k)
{
    ptx_kernel_maxnreg(k, 8);
}
static void a_cluster(ptx_kernel *k)
{
    ptx_kernel_reqnctapercluster(k, 2, 1, 1);
}
static void a_large_cluster(ptx_kernel *k)
{
    ptx_kernel_reqnctapercluster(k, 0x10000, 0x10000, 1);
}

static void directives_are_checked(void **state)
{
    (void)state;
    refuses(maxntid_too, PTXGEN_ERROR_STRUCTURE, ".maxntid", ".reqntid");
    refuses(too_large_a_cta, PTXGEN_ERROR_STRUCTURE, "1024 × 2 × 1");
    refuses(no_ctas, PTXGEN_ERROR_STRUCTURE, ".minnctapersm 0");
    refuses(few_registers, PTXGEN_ERROR_STRUCTURE, ".maxnreg 8");
    refuses(a_cluster, PTXGEN_ERROR_TARGET, "sm_90", "sm_80");
    accepts_on(sm_90a, a_cluster);
    refuses_on(sm_90a, a_large_cluster, PTXGEN_ERROR_STRUCTURE, "cluster");
}

static void minnctapersm_needs_a_cta_size(void **state)
{
    (void)state;
    for (int sized = 0; sized < 2; sized++) {
        ptx_module *m = ptx_module_create(&sm_80, NULL);
        ptx_kernel *k = ptx_kernel_begin(m, "kernel");
        ptx_kernel_minnctapersm(k, 2);
        if (sized)
            ptx_kernel_maxntid(k, 256);
        ptx_kernel_end(k);
        assert_int_equal(ptx_module_status(m, NULL), sized ? PTXGEN_OK : PTXGEN_ERROR_STRUCTURE);
        ptx_module_destroy(m);
    }
}

/* ---- memory ---- */

static size_t shared_size;
static void declare_size(ptx_kernel *k)
{
    ptx_shared_declare(k, "a", 16, 16);
    ptx_shared_declare(k, "b", shared_size - 16, 16);
}

static void shared_memory_over_the_targets_limit_is_refused_with_both_sizes(void **state)
{
    (void)state;
    static const struct { ptx_target target; size_t limit; } limits[] = {
        {{.sm = 80}, 163 * 1024}, {{.sm = 86}, 99 * 1024}, {{.sm = 90}, 227 * 1024},
        {{.sm = 120}, 99 * 1024}};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        char size[32], limit[32];
        shared_size = limits[i].limit;
        accepts_on(limits[i].target, declare_size);
        shared_size++;
        snprintf(size, sizeof size, "%zu bytes", shared_size);
        snprintf(limit, sizeof limit, "%zu that", limits[i].limit);
        refuses_on(limits[i].target, declare_size, PTXGEN_ERROR_SHARED_MEMORY, size, limit);
    }
}

static void shared_memory_is_static_up_to_48_kb_and_dynamic_beyond(void **state)
{
    (void)state;
    for (size_t over = 0; over < 2; over++) {
        ptx_module *m = ptx_module_create(&sm_80, NULL);
        ptx_kernel *k = ptx_kernel_begin(m, "kernel");
        shared_size = 48 * 1024 + over;
        declare_size(k);
        ptx_kernel_end(k);
        const char *text;
        assert_int_equal(ptx_module_text(m, 0, &text, NULL, NULL), PTXGEN_OK);
        ptx_kernel_info info;
        assert_int_equal(ptx_module_kernel_info(m, 0, &info), PTXGEN_OK);
        assert_int_equal(info.static_shared_bytes, over ? 0 : shared_size);
        assert_int_equal(info.dynamic_shared_bytes, over ? shared_size : 0);
        assert_int_equal(!!strstr(text, ".extern .shared"), over);
        ptx_module_destroy(m);
    }
}

static void buffers_keep_their_order_and_alignment(void **state)
{
    (void)state;
    ptx_module *m = ptx_module_create(&sm_80, NULL);
    ptx_kernel *k = ptx_kernel_begin(m, "kernel");
    ptx_shared_address(k, ptx_shared_declare(k, "bytes", 3, 1));
    ptx_shared_address(k, ptx_shared_declare(k, "tile", 100, 128));
    ptx_local_address(k, ptx_local_declare(k, "first", 4, 4));
    ptx_local_address(k, ptx_local_declare(k, "second", 4, 64));
    ptx_kernel_end(k);
    const char *text;
    assert_int_equal(ptx_module_text(m, 0, &text, NULL, NULL), PTXGEN_OK);
    assert_non_null(strstr(text, ".shared .align 128 .b8 kernel$shared[228];"));
    assert_non_null(strstr(text, ", kernel$shared+128;"));
    assert_non_null(strstr(text, ".local .align 64 .b8 kernel$local[68];"));
    assert_non_null(strstr(text, ", kernel$local+64;"));
    ptx_module_destroy(m);
}

static void no_bytes(ptx_kernel *k)
{
    ptx_shared_declare(k, "empty", 0, 16);
}
static void odd_alignment(ptx_kernel *k)
{
    ptx_shared_declare(k, "odd", 16, 24);
}
static void huge(ptx_kernel *k)
{
    ptx_shared_declare(k, "huge", SIZE_MAX - 8, 16);
}
static void much_local(ptx_kernel *k)
{
    ptx_local_declare(k, "l", 512 * 1024 + 1, 16);
}
static void many_params(ptx_kernel *k)
{
    ptx_param_declare(k, "p", 32765, 1);
}

static void sizes_and_alignments_of_declarations_are_checked(void **state)
{
    (void)state;
    refuses(no_bytes, PTXGEN_ERROR_OPERAND, "'empty'", "0 bytes");
    refuses(odd_alignment, PTXGEN_ERROR_OPERAND, "'odd'", "alignment 24");
    refuses(huge, PTXGEN_ERROR_OPERAND, "'huge'");
    refuses(much_local, PTXGEN_ERROR_OPERAND, "local memory");
    refuses(many_params, PTXGEN_ERROR_OPERAND, "32765 bytes of parameters");
}

static unsigned buffers;
static void many_buffers(ptx_kernel *k)
{
    for (unsigned i = 0; i < buffers; i++)
        ptx_shared_declare(k, "b", 1, 1);
}

static void a_kernel_has_at_most_65535_buffers_of_a_space(void **state)
{
    (void)state;
    buffers = 65535;
    accepts(many_buffers);
    buffers++;
    refuses(many_buffers, PTXGEN_ERROR_STRUCTURE, "one declaration too many");
}

static void large_params(ptx_kernel *k)
{
    ptx_param_declare(k, "p", 5000, 1);
}

static void large_parameters_need_ptx_8_1(void **state)
{
    (void)state;
    ptx_target capped = {.sm = 80, .max_ptx = 80};
    refuses_on(capped, large_params, PTXGEN_ERROR_TARGET, "PTX 8.1", "PTX 8.0");
    accepts(large_params);
}

/* ---- barriers ---- */

static void seventeen_barriers(ptx_kernel *k)
{
    for (int i = 0; i < 17; i++)
        ptx_barrier_new(k, 32);
}
static void odd_count(ptx_kernel *k)
{
    ptx_barrier_new(k, 48);
}
static void signal_and_wait(ptx_kernel *k)
{
    ptx_barrier_signal(k, ptx_barrier_new(k, 0));
    ptx_barrier_wait(k, ptx_barrier_new(k, 64));
}
static void refuse_signal_of_unknown_count(void)
{
    ptx_module *m = ptx_module_create(&sm_80, NULL);
    ptx_kernel *unsized = ptx_kernel_begin(m, "unsized");
    ptx_barrier_signal(unsized, ptx_barrier_new(unsized, 0));
    ptxgen_error err;
    assert_int_equal(ptx_module_status(m, &err), PTXGEN_ERROR_OPERAND);
    assert_says(&err, ".reqntid");
    ptx_module_destroy(m);
}

static void barriers_are_counted_and_sized(void **state)
{
    (void)state;
    refuses(seventeen_barriers, PTXGEN_ERROR_OPERAND, "17th");
    refuses(odd_count, PTXGEN_ERROR_OPERAND, "48 threads");
    accepts(signal_and_wait);
    refuse_signal_of_unknown_count();
}

/* ---- what the text says beside instructions ---- */

static void pragma_and_signs_are_in_the_text(void **state)
{
    (void)state;
    ptx_module *m = ptx_module_create(&sm_80, NULL);
    ptx_kernel *k = ptx_kernel_begin(m, "kernel");
    ptx_nounroll(k);
    ptx_comment(k, "K × N ≤ 8 äöü 😀 end");
    ptx_kernel_end(k);
    const char *text;
    assert_int_equal(ptx_module_text(m, PTX_TEXT_ANNOTATE, &text, NULL, NULL), PTXGEN_OK);
    assert_non_null(strstr(text, "\t.pragma \"nounroll\";\n"));
    assert_non_null(strstr(text, "\t// K x N <= 8 ??? ? end\n"));
    assert_ptr_equal(ptx_kernel_module(k), m);
    assert_int_equal(ptx_module_target(m)->sm, 80);
    ptx_module_destroy(m);
}

static void a_cap_below_the_targets_first_version_is_refused_with_both(void **state)
{
    (void)state;
    ptxgen_error err;
    ptx_target target = {.sm = 90, .suffix = 'a', .max_ptx = 79};
    assert_int_equal(ptx_target_check(&target, &err), PTXGEN_ERROR_TARGET);
    assert_says(&err, "sm_90a needs PTX 8.0, but the cap is PTX 7.9");
    target.max_ptx = 80;
    assert_int_equal(ptx_target_check(&target, &err), PTXGEN_OK);
}

/* ---- the sticky error ---- */

static void fail_then_go_on(ptx_kernel *k)
{
    ptx_ld_global_u32(k, ptx_param_u64(k, "p"), 3);
    ptx_kernel_fail(k, PTXGEN_ERROR_UNSUPPORTED, "a later error");
    ptx_u32 v[4], x = ptx_mov_u32(k, ptx_imm_u32(1));
    ptx_ld_shared_v4_u32(k, v, x, 0);
    ptx_if(k, ptx_setp_eq_u32(k, v[3], x)) ptx_st_shared_v4_u32(k, x, 0, v);
    ptx_for(k, x, v[0], v[1]) ptx_bar_sync(k, 99);
    ptx_loop(k, b) ptx_loop_break_if(&b, ptx_setp_eq_u32(k, v[2], x), true);
    ptx_guarded(k, ptx_setp_eq_u32(k, v[2], x)) ptx_trap(k);
    ptx_label l = ptx_label_new(k, "x");
    ptx_label_bind(k, l);
    ptx_label_bind(k, l);
    ptx_u32 s = ptx_shared_address(k, ptx_shared_declare(k, "s", 0, 3));
    ptx_local_address(k, ptx_local_declare(k, "l", 1, 1));
    ptx_param_address(k, ptx_param_declare(k, "q", 8, 8));
    ptx_operand o[1] = {s.o};
    ptx_raw(k, "prefetch.global.L2 [%0]", 0, o, 1, 0);
    ptx_section(k, "s %d", 1);
    ptx_comment(k, "c");
    ptx_barrier_wait(k, ptx_barrier_new(k, 1));
}

static void first_error_stays_and_later_emitters_are_harmless(void **state)
{
    (void)state;
    refuses(fail_then_go_on, PTXGEN_ERROR_ALIGNMENT, "offset 3", "'kernel'", "instruction 1",
            "ld.global.u32", "test_structure.c:");
}

static void a_callers_error_sticks_too(ptx_kernel *k)
{
    ptx_kernel_fail(k, PTXGEN_ERROR_UNSUPPORTED, "no tile for K = %d", 7);
    ptx_ld_global_u32(k, ptx_param_u64(k, "p"), 3);
}

static void error_of_an_emitter_built_on_the_builder_sticks(void **state)
{
    (void)state;
    refuses(a_callers_error_sticks_too, PTXGEN_ERROR_UNSUPPORTED, "no tile for K = 7");
}

static void helper_macros_report_the_callers_line(void **state)
{
    (void)state;
    ptx_module *m = ptx_module_create(&sm_80, NULL);
    ptx_kernel *k = ptx_kernel_begin(m, "kernel");
    ptx_u32 never = {{0}};
    int line = __LINE__ + 1;
    ptx_for(k, never, ptx_imm_u32(1), ptx_imm_u32(1)) break;
    ptxgen_error err;
    assert_int_equal(ptx_module_status(m, &err), PTXGEN_ERROR_OPERAND);
    char place[64];
    snprintf(place, sizeof place, "test_structure.c:%d", line);
    assert_says(&err, place);
    ptx_module_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(labels_are_bound_exactly_once),
        TEST(blocks_left_open_are_reported),
        TEST(guards_hold_no_control_flow_and_do_not_nest),
        TEST(misused_loops_and_blocks_are_refused),
        TEST(blocks_nest_and_take_constants),
        TEST(nothing_may_change_after_the_end),
        TEST(text_of_an_unended_kernel_is_refused),
        TEST(kernel_returns_at_its_end_exactly_once),
        TEST(kernel_names_are_ascii_identifiers),
        TEST(two_kernels_of_one_name_and_overlapping_kernels_are_refused),
        TEST(parameter_names_are_unique_identifiers),
        TEST(directives_are_checked),
        TEST(minnctapersm_needs_a_cta_size),
        TEST(shared_memory_over_the_targets_limit_is_refused_with_both_sizes),
        TEST(shared_memory_is_static_up_to_48_kb_and_dynamic_beyond),
        TEST(buffers_keep_their_order_and_alignment),
        TEST(sizes_and_alignments_of_declarations_are_checked),
        TEST(a_kernel_has_at_most_65535_buffers_of_a_space),
        TEST(large_parameters_need_ptx_8_1),
        TEST(barriers_are_counted_and_sized),
        TEST(pragma_and_signs_are_in_the_text),
        TEST(a_cap_below_the_targets_first_version_is_refused_with_both),
        TEST(first_error_stays_and_later_emitters_are_harmless),
        TEST(error_of_an_emitter_built_on_the_builder_sticks),
        TEST(helper_macros_report_the_callers_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
