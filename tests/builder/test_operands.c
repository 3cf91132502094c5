/* SPDX-License-Identifier: Apache-2.0 */
/* What the builder refuses while instructions are appended. */
#include "support.h"

/* ---- targets ---- */

static void emit_add_u16x2(ptx_kernel *k)
{
    ptx_u32 x = ptx_mov_u32(k, ptx_imm_u32(1));
    ptx_add_u16x2(k, x, x);
}

static void instruction_above_the_target_is_refused_with_need_and_target(void **state)
{
    (void)state;
    refuses(emit_add_u16x2, PTXGEN_ERROR_TARGET, "sm_90 with PTX 8.0", "sm_80", "add.u16x2",
            "test_operands.c");
    accepts_on(sm_90a, emit_add_u16x2);
}

static void emit_ordered_sparse_mma(ptx_kernel *k)
{
    ptx_u32 a[2], b[2], e = ptx_mov_u32(k, ptx_imm_u32(0xeeee));
    ptx_f32 c[4];
    for (int i = 0; i < 2; i++)
        a[i] = b[i] = e;
    for (int i = 0; i < 4; i++)
        c[i] = ptx_mov_f32(k, ptx_imm_f32(0));
    ptx_f32 d[4];
    ptx_mma_spo_m16n8k16_f32_f16(k, d, a, b, c, e, 0);
}

static void instruction_above_the_version_cap_is_refused_with_both_versions(void **state)
{
    (void)state;
    ptx_target capped = {.sm = 80, .max_ptx = 84};
    refuses_on(capped, emit_ordered_sparse_mma, PTXGEN_ERROR_TARGET, "PTX 8.5", "PTX 8.4");
    capped.max_ptx = 85;
    accepts_on(capped, emit_ordered_sparse_mma);
}

static void emit_cluster_scope(ptx_kernel *k)
{
    ptx_fence_m(k, PTX_CLUSTER);
}

static void modifier_above_the_target_is_refused_by_name(void **state)
{
    (void)state;
    refuses(emit_cluster_scope, PTXGEN_ERROR_TARGET, ".cluster", "sm_90", "sm_80");
    accepts_on(sm_90a, emit_cluster_scope);
}

static void emit_l2_prefetch(ptx_kernel *k)
{
    ptx_u64 p = ptx_param_u64(k, "p");
    ptx_ld_global_u32_m(k, PTX_L2_128B, p, 0);
}

static void version_of_the_text_is_the_lowest_that_its_features_need(void **state)
{
    (void)state;
    ptx_module *m = ptx_module_create(&sm_80, NULL);
    ptx_kernel *k = ptx_kernel_begin(m, "kernel");
    assert_int_equal(ptx_module_ptx_version(m), 70);
    emit_l2_prefetch(k);
    assert_int_equal(ptx_module_ptx_version(m), 74);
    ptx_kernel_end(k);
    ptx_module_destroy(m);
}

static void bad_target_is_the_modules_sticky_error(void **state)
{
    (void)state;
    ptx_target none = {.sm = 75};
    refuses_on(none, emit_l2_prefetch, PTXGEN_ERROR_TARGET, "sm_75");
    ptx_module *m = ptx_module_create(NULL, NULL);
    assert_int_equal(ptx_module_status(m, NULL), PTXGEN_ERROR_INVALID_ARGUMENT);
    ptx_module_destroy(m);
}

/* ---- modifiers ---- */

static void emit_wrong_modifier(ptx_kernel *k)
{
    ptx_u32 x = ptx_mov_u32(k, ptx_imm_u32(1));
    ptx_prmt_b32_m(k, PTX_FTZ, x, x, x);
}

static void modifier_that_the_instruction_lacks_is_refused_by_name(void **state)
{
    (void)state;
    refuses(emit_wrong_modifier, PTXGEN_ERROR_OPERAND, ".ftz", "prmt");
}

static void emit_two_roundings(ptx_kernel *k)
{
    ptx_f32 x = ptx_mov_f32(k, ptx_imm_f32(1));
    ptx_add_f32_m(k, PTX_RZ | PTX_RP, x, x);
    ptx_div_approx_f32_m(k, PTX_FTZ | PTX_LD_CA | PTX_LD_CV, x, x);
}

static void emit_overflowing_group(ptx_kernel *k)
{
    ptx_f32 x = ptx_mov_f32(k, ptx_imm_f32(1));
    ptx_cvt_u32_f32_m(k, PTX_RNI | PTX_RPI | PTX_RMI, x);
    ptx_u64 p = ptx_param_u64(k, "p");
    ptx_ld_global_u32_m(k, PTX_LD_CA | PTX_LD_CV, p, 0);
    ptx_ld_global_u32_m(k, PTX_LD_CS | PTX_LD_LU, p, 0);
}

static void two_alternatives_of_a_group_are_refused(void **state)
{
    (void)state;
    refuses(emit_two_roundings, PTXGEN_ERROR_OPERAND, "two alternatives", "rnd");
    refuses(emit_overflowing_group, PTXGEN_ERROR_OPERAND, "two alternatives");
}

/* ---- constants and addresses ---- */

static void emit_misaligned_vector(ptx_kernel *k)
{
    ptx_u32 v[4];
    ptx_ld_shared_v4_u32(k, v, ptx_mov_u32(k, ptx_imm_u32(0)), 8);
}

static void emit_misaligned_negative(ptx_kernel *k)
{
    ptx_ld_global_u32(k, ptx_param_u64(k, "p"), -2);
}

static void emit_aligned(ptx_kernel *k)
{
    ptx_u32 v[4];
    ptx_ld_shared_v4_u32(k, v, ptx_mov_u32(k, ptx_imm_u32(0)), -16);
    ptx_ld_global_u32(k, ptx_param_u64(k, "p"), -4);
}

static void misaligned_constant_offset_is_refused_with_offset_and_size(void **state)
{
    (void)state;
    refuses(emit_misaligned_vector, PTXGEN_ERROR_ALIGNMENT, "offset 8", "16 bytes", "ld.shared.v4.u32");
    refuses(emit_misaligned_negative, PTXGEN_ERROR_ALIGNMENT, "offset -2", "4 bytes");
    accepts(emit_aligned);
}

static void emit_transposed_constant(ptx_kernel *k)
{
    ptx_movmatrix_trans_b16(k, ptx_imm_u32(1));
}

static void emit_constant_destination(ptx_kernel *k)
{
    ptx_add_u32_to(k, ptx_imm_u32(3), ptx_imm_u32(1), ptx_imm_u32(2));
}

static void constant_where_only_a_register_is_allowed_is_refused(void **state)
{
    (void)state;
    refuses(emit_transposed_constant, PTXGEN_ERROR_OPERAND, "register only");
    refuses(emit_constant_destination, PTXGEN_ERROR_OPERAND, "register only");
}

static void emit_lut_256(ptx_kernel *k)
{
    ptx_u32 x = ptx_mov_u32(k, ptx_imm_u32(1));
    ptx_lop3_b32(k, x, x, x, 256);
}

static void emit_copy_of_12(ptx_kernel *k)
{
    ptx_u32 s = ptx_mov_u32(k, ptx_imm_u32(0));
    ptx_cp_async_ca(k, s, 0, ptx_param_u64(k, "p"), 0, 12);
}

static void emit_barrier_16(ptx_kernel *k)
{
    ptx_bar_sync(k, 16);
}

static void constant_out_of_range_is_refused_with_value_and_range(void **state)
{
    (void)state;
    refuses(emit_lut_256, PTXGEN_ERROR_OPERAND, "256", "0 … 255");
    refuses(emit_copy_of_12, PTXGEN_ERROR_OPERAND, "12", "4 … 16", "powers of two");
    refuses(emit_barrier_16, PTXGEN_ERROR_OPERAND, "16", "0 … 15");
}

/* ---- registers, labels, parameters, buffers of another kernel ---- */


struct strangers {
    ptx_u32 reg;
    ptx_pred pred;
    ptx_label label;
    ptx_param param;
    ptx_shared shared;
    ptx_local local;
};

static struct strangers make_some(ptx_kernel *k)
{
    struct strangers s;
    s.param = ptx_param_declare(k, "p", 4, 4);
    s.shared = ptx_shared_declare(k, "s", 16, 16);
    s.local = ptx_local_declare(k, "l", 16, 16);
    s.label = ptx_label_new(k, "here");
    ptx_label_bind(k, s.label);
    s.reg = ptx_ld_param_u32(k, s.param, 0);
    s.pred = ptx_setp_eq_u32(k, s.reg, ptx_imm_u32(0));
    return s;
}

typedef void (*use_function)(ptx_kernel *k, struct strangers s);

/* The second kernel has its own of everything, so that the numbers are valid there too. */
static void refuses_strangers(use_function use, ptxgen_status status, const char *word)
{
    ptx_module *m = ptx_module_create(&sm_80, NULL);
    ptx_kernel *first = ptx_kernel_begin(m, "first");
    struct strangers s = make_some(first);
    ptx_kernel_end(first);
    ptx_kernel *second = ptx_kernel_begin(m, "second");
    use(second, make_some(second));
    assert_int_equal(ptx_module_status(m, NULL), PTXGEN_OK);
    use(second, s);
    ptxgen_error err;
    if (ptx_module_status(m, &err) != status || !strstr(err.message, word) ||
        !strstr(err.message, "second"))
        fail_msg("got %s: %s", ptxgen_status_name(err.status), err.message);
    ptx_module_destroy(m);
}

static void use_register(ptx_kernel *k, struct strangers s)
{
    ptx_add_u32(k, s.reg, ptx_imm_u32(1));
}
static void use_as_guard(ptx_kernel *k, struct strangers s)
{
    ptx_guarded(k, s.pred) ptx_mov_u32(k, ptx_imm_u32(1));
}
static void use_as_condition(ptx_kernel *k, struct strangers s)
{
    ptx_if(k, s.pred) ptx_mov_u32(k, ptx_imm_u32(1));
}
static void branch_to(ptx_kernel *k, struct strangers s)
{
    ptx_bra(k, s.label);
}
static void use_param(ptx_kernel *k, struct strangers s)
{
    ptx_ld_param_u32(k, s.param, 0);
}
static void use_param_address(ptx_kernel *k, struct strangers s)
{
    ptx_param_address(k, s.param);
}
static void use_shared(ptx_kernel *k, struct strangers s)
{
    ptx_shared_address(k, s.shared);
}
static void use_local(ptx_kernel *k, struct strangers s)
{
    ptx_local_address(k, s.local);
}
static void use_in_raw(ptx_kernel *k, struct strangers s)
{
    ptx_operand o[2] = {{.type = PTX_U32}, s.reg.o};
    ptx_raw(k, "mov.b32 %0, %1", 0, o, 2, 1);
}

/* ---- bounds of declarations ---- */

static void store_at(ptx_kernel *k, size_t bytes, int offset)
{
    ptx_shared first = ptx_shared_declare(k, "first", bytes, 16);
    ptx_shared second = ptx_shared_declare(k, "second", bytes, 16);
    ptx_u32 a = ptx_shared_address(k, first), b = ptx_shared_address(k, second);
    ptx_st_shared_u32(k, b, 0, a);
    ptx_st_shared_u32(k, a, offset, b);
}
static void emit_behind_a_buffer(ptx_kernel *k)
{
    store_at(k, 128, 128);
}
static void emit_across_a_buffers_end(ptx_kernel *k)
{
    store_at(k, 126, 124);
}
static void emit_before_a_buffer(ptx_kernel *k)
{
    store_at(k, 128, -4);
}
static void emit_last_word(ptx_kernel *k)
{
    store_at(k, 128, 124);
}

static void emit_behind_a_matrix(ptx_kernel *k)
{
    ptx_u32 rows[1], a = ptx_shared_address(k, ptx_shared_declare(k, "rows", 128, 16));
    ptx_ldmatrix_x1_b16(k, rows, a, 128);
}

static void emit_behind_a_local_buffer(ptx_kernel *k)
{
    ptx_u64 a = ptx_local_address(k, ptx_local_declare(k, "own", 16, 16));
    ptx_u32 zero[4];
    for (int i = 0; i < 4; i++)
        zero[i] = ptx_imm_u32(0);
    ptx_st_local_v4_u32(k, a, 16, zero);
}

/* Of an address that was computed nothing is known. */
static void emit_computed_address(ptx_kernel *k)
{
    ptx_u32 a = ptx_shared_address(k, ptx_shared_declare(k, "s", 128, 16));
    ptx_st_shared_u32(k, ptx_sub_u32(k, a, ptx_imm_u32(4096)), 4096, a);
}

static void constant_offset_outside_its_buffer_is_refused_with_both(void **state)
{
    (void)state;
    refuses(emit_behind_a_buffer, PTXGEN_ERROR_OPERAND, "4 bytes at offset 128", "'first'", "128");
    refuses(emit_across_a_buffers_end, PTXGEN_ERROR_OPERAND, "offset 124", "its 126");
    refuses(emit_before_a_buffer, PTXGEN_ERROR_OPERAND, "offset -4");
    refuses(emit_behind_a_matrix, PTXGEN_ERROR_OPERAND, "16 bytes at offset 128", "ldmatrix");
    refuses(emit_behind_a_local_buffer, PTXGEN_ERROR_OPERAND, "16 bytes at offset 16", "'own'");
    accepts(emit_last_word);
    accepts(emit_computed_address);
}

static void emit_wide_read_of_a_parameter(ptx_kernel *k)
{
    ptx_u64 p = ptx_param_u64(k, "p");
    ptx_st_global_u64(k, p, 0, ptx_ld_param_u64(k, ptx_param_declare(k, "q", 4, 8), 0));
}
static void emit_read_behind_a_parameter(ptx_kernel *k)
{
    ptx_u64 p = ptx_param_u64(k, "p");
    ptx_st_global_u32(k, p, 0, ptx_ld_param_u32(k, ptx_param_declare(k, "q", 16, 4), 16));
}
static void emit_last_word_of_a_parameter(ptx_kernel *k)
{
    ptx_u64 p = ptx_param_u64(k, "p");
    ptx_st_global_u32(k, p, 0, ptx_ld_param_u32(k, ptx_param_declare(k, "q", 16, 4), 12));
}

static void read_outside_its_parameter_is_refused_with_both(void **state)
{
    (void)state;
    refuses(emit_wide_read_of_a_parameter, PTXGEN_ERROR_OPERAND, "8 bytes at offset 0", "'q'", "4");
    refuses(emit_read_behind_a_parameter, PTXGEN_ERROR_OPERAND, "4 bytes at offset 16", "its 16");
    accepts(emit_last_word_of_a_parameter);
}

static void registers_labels_and_buffers_of_another_kernel_are_refused(void **state)
{
    (void)state;
    refuses_strangers(use_register, PTXGEN_ERROR_OPERAND, "register of another kernel");
    refuses_strangers(use_as_guard, PTXGEN_ERROR_OPERAND, "predicate register of this kernel");
    refuses_strangers(use_as_condition, PTXGEN_ERROR_OPERAND, "predicate register of this kernel");
    refuses_strangers(branch_to, PTXGEN_ERROR_LABEL, "label of another kernel");
    refuses_strangers(use_param, PTXGEN_ERROR_OPERAND, "parameter of another kernel");
    refuses_strangers(use_param_address, PTXGEN_ERROR_OPERAND, "parameter of another kernel");
    refuses_strangers(use_shared, PTXGEN_ERROR_OPERAND, "buffer of another kernel");
    refuses_strangers(use_local, PTXGEN_ERROR_OPERAND, "buffer of another kernel");
    refuses_strangers(use_in_raw, PTXGEN_ERROR_OPERAND, "register of another kernel");
}

static void bind_of_another_kernel(ptx_kernel *k)
{
    ptx_module *m = ptx_module_create(&sm_80, NULL);
    ptx_kernel *other = ptx_kernel_begin(m, "other");
    ptx_kernel_end(other);
    other = ptx_kernel_begin(m, "another"); /* the second of its module, so a stranger */
    ptx_label theirs = ptx_label_new(other, "x");
    ptx_label_new(k, "x");
    ptx_label_bind(k, theirs);
    ptx_module_destroy(m);
}

static void binding_a_label_of_another_kernel_is_refused(void **state)
{
    (void)state;
    refuses(bind_of_another_kernel, PTXGEN_ERROR_LABEL, "not of this kernel");
}

static void emit_unassigned(ptx_kernel *k)
{
    ptx_u32 never = {{0}};
    ptx_add_u32(k, never, ptx_imm_u32(1));
}

static void emit_unassigned_guard(ptx_kernel *k)
{
    ptx_pred never = {{0}};
    ptx_guarded(k, never) ptx_mov_u32(k, ptx_imm_u32(1));
}

static void emit_unassigned_condition(ptx_kernel *k)
{
    ptx_pred never = {{0}};
    ptx_if(k, never) ptx_mov_u32(k, ptx_imm_u32(1));
}

static void operand_that_was_never_assigned_is_refused(void **state)
{
    (void)state;
    refuses(emit_unassigned, PTXGEN_ERROR_OPERAND, "never assigned", "test_operands.c");
    refuses(emit_unassigned_guard, PTXGEN_ERROR_OPERAND, "not a predicate", "test_operands.c");
    refuses(emit_unassigned_condition, PTXGEN_ERROR_OPERAND, "not a predicate", "test_operands.c");
}

/* ---- direct calls of ptx_emit ---- */

static void emit_too_few(ptx_kernel *k)
{
    ptx_operand o[1] = {ptx_new_operand(PTX_U32)};
    ptx_emit(k, PTX_OP_add_u32, 0, 0, o, 1, PTX_HERE);
}

static void emit_unknown(ptx_kernel *k)
{
    ptx_emit(k, PTX_OP_COUNT, 0, 0, NULL, 0, PTX_HERE);
}

static void emit_bad_shape(ptx_kernel *k)
{
    ptx_emit(k, PTX_OP_wgmma_k16_f32_f16, 0, 12, NULL, 0, PTX_HERE);
}

static void direct_emission_with_wrong_count_number_or_shape_is_refused(void **state)
{
    (void)state;
    refuses(emit_too_few, PTXGEN_ERROR_OPERAND, "takes 3 operands, not 1");
    refuses(emit_unknown, PTXGEN_ERROR_OPERAND, "no instruction number");
    refuses(emit_bad_shape, PTXGEN_ERROR_OPERAND, "n = 12");
}

/* ---- raw instructions ---- */

enum { MANY = 12 };

static void emit_raw_of_many(ptx_kernel *k)
{
    ptx_operand o[MANY] = {{.type = PTX_U32}};
    for (int i = 1; i < MANY; i++)
        o[i] = ptx_imm_u32((uint32_t)i * 100).o;
    ptx_raw(k, "add.u32 %0, %11, %10", 0, o, MANY, 1);
    ptx_st_global_u32(k, ptx_param_u64(k, "p"), 0, (ptx_u32){o[0]});
}

static void raw_instruction_takes_more_than_ten_operands(void **state)
{
    (void)state;
    ptx_module *m = ptx_module_create(&sm_80, NULL);
    ptx_kernel *k = ptx_kernel_begin(m, "kernel");
    emit_raw_of_many(k);
    ptx_kernel_end(k);
    const char *text;
    assert_int_equal(ptx_module_text(m, 0, &text, NULL, NULL), PTXGEN_OK);
    assert_non_null(strstr(text, "add.u32 %r0, 1100, 1000;"));
    ptx_module_destroy(m);
}

static void emit_raw_missing(ptx_kernel *k)
{
    ptx_operand o[1] = {{.type = PTX_U32}};
    ptx_raw(k, "mov.b32 %0, %12", 0, o, 1, 1);
}
static void emit_raw_register(ptx_kernel *k)
{
    ptx_operand o[1] = {{.type = PTX_U32}};
    ptx_raw(k, "mov.b32 %0, %r3", 0, o, 1, 1);
}
static void emit_raw_label(ptx_kernel *k)
{
    ptx_label l = ptx_label_new(k, NULL);
    ptx_label_bind(k, l);
    ptx_raw(k, "bra %0", 0, &l.o, 1, 0);
}
static void emit_raw_unassigned(ptx_kernel *k)
{
    ptx_operand o[2] = {{.type = PTX_U32}, {.type = PTX_U32}};
    ptx_raw(k, "mov.b32 %0, %1", 0, o, 2, 1);
}
static void emit_raw_nothing(ptx_kernel *k)
{
    ptx_raw(k, NULL, 0, NULL, 0, 0);
}
static void emit_raw_special(ptx_kernel *k)
{
    ptx_operand o[1] = {{.type = PTX_U32}};
    ptx_raw(k, "mov.u32 %0, %pm0", 0, o, 1, 1);
}

static void raw_text_and_operands_are_checked(void **state)
{
    (void)state;
    refuses(emit_raw_missing, PTXGEN_ERROR_OPERAND, "%12", "1 operands");
    refuses(emit_raw_register, PTXGEN_ERROR_OPERAND, "%r3");
    refuses(emit_raw_label, PTXGEN_ERROR_OPERAND, "cannot branch");
    refuses(emit_raw_unassigned, PTXGEN_ERROR_OPERAND, "never assigned");
    refuses(emit_raw_nothing, PTXGEN_ERROR_OPERAND, "needs a text");
    accepts(emit_raw_special);
}

/* ---- operands of another kind than the type says ---- */

static void add_of_another_width(ptx_kernel *k)
{
    ptx_u64 wide = ptx_mov_u64(k, ptx_imm_u64(1));
    ptx_add_u32(k, (ptx_u32){wide.o}, ptx_imm_u32(1));
}
static void add_of_no_such_register(ptx_kernel *k)
{
    ptx_u32 x = ptx_mov_u32(k, ptx_imm_u32(1));
    x.o.index = 1000;
    ptx_add_u32(k, x, ptx_imm_u32(1));
}
static void add_of_a_label(ptx_kernel *k)
{
    ptx_label l = ptx_label_new(k, NULL);
    ptx_label_bind(k, l);
    ptx_add_u32(k, (ptx_u32){l.o}, ptx_imm_u32(1));
}
static void add_of_a_parameter(ptx_kernel *k)
{
    ptx_param p = ptx_param_declare(k, "p", 4, 4);
    ptx_add_u32(k, (ptx_u32){p.o}, ptx_imm_u32(1));
}
static void load_at_a_constant(ptx_kernel *k)
{
    ptx_ld_global_u32(k, ptx_imm_u64(4096), 0);
}
static void load_of_no_parameter(ptx_kernel *k)
{
    ptx_u32 x = ptx_mov_u32(k, ptx_imm_u32(1));
    ptx_ld_param_u32(k, (ptx_param){x.o}, 0);
}
static void branch_to_a_register(ptx_kernel *k)
{
    ptx_u32 x = ptx_mov_u32(k, ptx_imm_u32(1));
    ptx_bra(k, (ptx_label){x.o});
}
static void copy_tensor(ptx_kernel *k, bool map_is_register, bool whole)
{
    ptx_u32 s = ptx_shared_address(k, ptx_shared_declare(k, "s", 1024, 128));
    ptx_u64 map = map_is_register ? ptx_mov_u64(k, ptx_imm_u64(0)) : ptx_imm_u64(4096);
    ptx_label l = ptx_label_new(k, NULL);
    ptx_label_bind(k, l);
    ptx_s32 at[2] = {ptx_imm_s32(0), ptx_imm_s32(0)};
    if (!whole)
        at[1].o = l.o;
    ptx_cp_async_bulk_tensor_2d_g2s(k, s, 0, map, at, s, 0);
}
static void tensor_at_a_constant(ptx_kernel *k)
{
    copy_tensor(k, false, true);
}
static void tensor_at_a_label(ptx_kernel *k)
{
    copy_tensor(k, true, false);
}
static void raw_result_that_is_a_constant(ptx_kernel *k)
{
    ptx_operand o[1] = {ptx_imm_u32(1).o};
    ptx_raw(k, "mov.u32 %0, 1", 0, o, 1, 1);
}

static void operands_of_another_kind_than_their_type_are_refused(void **state)
{
    (void)state;
    refuses(add_of_another_width, PTXGEN_ERROR_OPERAND, "register of another width");
    refuses(add_of_no_such_register, PTXGEN_ERROR_OPERAND, "register of another kernel");
    refuses(add_of_a_label, PTXGEN_ERROR_OPERAND, "a label stands where PTX takes a value");
    refuses(add_of_a_parameter, PTXGEN_ERROR_OPERAND, "a parameter stands where PTX takes a value");
    refuses(load_at_a_constant, PTXGEN_ERROR_OPERAND, "an address needs a register as its base");
    refuses(load_of_no_parameter, PTXGEN_ERROR_OPERAND, "an address needs a parameter as its base");
    refuses(branch_to_a_register, PTXGEN_ERROR_LABEL, "it needs a label of this kernel");
    refuses_on(sm_90a, tensor_at_a_constant, PTXGEN_ERROR_OPERAND, "a tensor's map is not");
    refuses_on(sm_90a, tensor_at_a_label, PTXGEN_ERROR_OPERAND, "a tensor's coordinate is not");
    refuses(raw_result_that_is_a_constant, PTXGEN_ERROR_OPERAND, "the result %0 is not a register");
}

/* ---- pairs that exclude each other, and limits of one by the other ---- */

static uint64_t load_modifiers;
static void load_with_modifiers(ptx_kernel *k)
{
    ptx_ld_global_u32_m(k, load_modifiers, ptx_param_u64(k, "p"), 0);
}

static void a_cache_operator_and_an_eviction_priority_exclude_each_other(void **state)
{
    (void)state;
    static const uint64_t operators[] = {0, PTX_LD_CA, PTX_LD_CG, PTX_LD_CS};
    static const uint64_t priorities[] = {0, PTX_L1_EVICT_NORMAL, PTX_L1_EVICT_FIRST,
                                          PTX_L1_EVICT_LAST};
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            load_modifiers = operators[i] | priorities[j];
            if (i && j)
                refuses(load_with_modifiers, PTXGEN_ERROR_OPERAND, "exclude each other");
            else
                accepts(load_with_modifiers);
        }
}

static uint32_t copied;
static void copy_some(ptx_kernel *k)
{
    ptx_u32 s = ptx_shared_address(k, ptx_shared_declare(k, "s", 64, 16));
    ptx_cp_async_ca_zfill(k, s, 0, ptx_param_u64(k, "p"), 0, 8, ptx_imm_u32(copied));
    ptx_cp_async_wait_all(k);
}

static void no_more_bytes_are_copied_than_are_written(void **state)
{
    (void)state;
    for (copied = 0; copied <= 8; copied += 4)
        accepts(copy_some);
    for (copied = 9; copied <= 16; copied += 7)
        refuses(copy_some, PTXGEN_ERROR_OPERAND, "exceeds the 8 before it");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(instruction_above_the_target_is_refused_with_need_and_target),
        TEST(instruction_above_the_version_cap_is_refused_with_both_versions),
        TEST(modifier_above_the_target_is_refused_by_name),
        TEST(version_of_the_text_is_the_lowest_that_its_features_need),
        TEST(bad_target_is_the_modules_sticky_error),
        TEST(modifier_that_the_instruction_lacks_is_refused_by_name),
        TEST(two_alternatives_of_a_group_are_refused),
        TEST(misaligned_constant_offset_is_refused_with_offset_and_size),
        TEST(constant_where_only_a_register_is_allowed_is_refused),
        TEST(constant_out_of_range_is_refused_with_value_and_range),
        TEST(constant_offset_outside_its_buffer_is_refused_with_both),
        TEST(read_outside_its_parameter_is_refused_with_both),
        TEST(registers_labels_and_buffers_of_another_kernel_are_refused),
        TEST(binding_a_label_of_another_kernel_is_refused),
        TEST(operand_that_was_never_assigned_is_refused),
        TEST(direct_emission_with_wrong_count_number_or_shape_is_refused),
        TEST(raw_instruction_takes_more_than_ten_operands),
        TEST(raw_text_and_operands_are_checked),
        TEST(operands_of_another_kind_than_their_type_are_refused),
        TEST(a_cache_operator_and_an_eviction_priority_exclude_each_other),
        TEST(no_more_bytes_are_copied_than_are_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
