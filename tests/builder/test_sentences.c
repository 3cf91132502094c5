/* SPDX-License-Identifier: Apache-2.0 */
/* What the builder says of each thing that it refuses, word for word but for lines of this file. */
#include "support.h"

#include "src/ptxgen/internal.h"

#include <ctype.h>
#include <stdlib.h>

#define EMITS(name, ...)                                                                           \
    static void name(ptx_kernel *k)                                                                \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/* ---- things of another kernel, which has ended ---- */

static struct {
    ptx_kernel *kernel;
    ptx_u32 value;
    ptx_label label;
    ptx_param param;
    ptx_shared shared;
    ptx_local local;
} other;

static void make_other(ptx_module *m)
{
    ptx_kernel *k = other.kernel = ptx_kernel_begin(m, "other");
    other.value = ptx_mov_u32(k, ptx_imm_u32(1));
    other.label = ptx_label_new(k, "there");
    ptx_label_bind(k, other.label);
    other.param = ptx_param_declare(k, "p", 4, 4);
    other.shared = ptx_shared_declare(k, "s", 16, 16);
    other.local = ptx_local_declare(k, "l", 16, 16);
    ptx_kernel_end(k);
}

EMITS(strange_register, ptx_add_u32(k, other.value, ptx_imm_u32(1));)
EMITS(strange_label, ptx_bra(k, other.label);)
EMITS(strange_bound_label, ptx_label_bind(k, other.label);)
EMITS(strange_param, ptx_ld_param_u32(k, other.param, 0);)
EMITS(strange_param_address, ptx_param_address(k, other.param);)
EMITS(strange_shared, ptx_shared_address(k, other.shared);)
EMITS(strange_local, ptx_local_address(k, other.local);)
EMITS(strange_kind, ptx_u32 x = other.value; x.o.kind = 9; ptx_add_u32(k, x, x);)
EMITS(into_the_other, (void)k; ptx_add_u32(other.kernel, other.value, other.value);)

/* ---- operands ---- */

EMITS(unassigned, ptx_u32 x = {{0}}; ptx_add_u32(k, x, x);)
EMITS(label_as_value, ptx_u32 x = {ptx_label_new(k, "l").o}; ptx_add_u32(k, x, x);)
EMITS(param_as_value, ptx_u32 x = {ptx_param_declare(k, "p", 4, 4).o}; ptx_add_u32(k, x, x);)
EMITS(register_as_label, ptx_label l = {ptx_mov_u32(k, ptx_imm_u32(1)).o}; ptx_bra(k, l);)
EMITS(constant_written, ptx_mov_u32_to(k, ptx_imm_u32(3), ptx_imm_u32(1));)
EMITS(unwritten,
      ptx_u32 x = ptx_mov_u32(k, ptx_imm_u32(1)), y = ptx_mov_u32(k, x);
      ptx_label l = ptx_label_new(k, "l"); (void)y;
      ptx_u32 z = {ptx_register_new(k, PTX_U32)}; ptx_add_u32(k, x, z); ptx_label_bind(k, l);)
EMITS(wgmma_of_12,
      ptx_f32 d[6]; ptx_u64 desc = ptx_mov_u64(k, ptx_imm_u64(0)); for (int i = 0; i < 6; i++) d[i] =
          ptx_mov_f32(k, ptx_imm_f32(0));
      ptx_wgmma_k16_f32_f16(k, 12, d, desc, desc, cta_condition(k), 1, 1, 0, 0);)
EMITS(constant_map,
      ptx_u64 map = ptx_imm_u64(64); ptx_s32 at[1] = {ptx_imm_s32(0)};
      ptx_cp_async_bulk_tensor_1d_s2g(k, map, at, ptx_mov_u32(k, ptx_imm_u32(0)), 0);)
EMITS(label_as_coordinate,
      ptx_u64 map = ptx_param_u64(k, "map"); ptx_s32 at[1] = {{ptx_label_new(k, "l").o}};
      ptx_cp_async_bulk_tensor_1d_s2g(k, map, at, ptx_mov_u32(k, ptx_imm_u32(0)), 0);)

/* ---- constants and modifiers ---- */

static ptx_u32 one(ptx_kernel *k)
{
    return ptx_mov_u32(k, ptx_imm_u32(1));
}
EMITS(lut_255, ptx_u32 x = one(k); ptx_lop3_b32(k, x, x, x, 255);)
EMITS(lut_256, ptx_u32 x = one(k); ptx_lop3_b32(k, x, x, x, 256);)
EMITS(copy_of_16, ptx_u32 s = one(k); ptx_cp_async_ca(k, s, 0, ptx_param_u64(k, "p"), 0, 16);)
EMITS(copy_of_12, ptx_u32 s = one(k); ptx_cp_async_ca(k, s, 0, ptx_param_u64(k, "p"), 0, 12);)
EMITS(copy_of_32, ptx_u32 s = one(k); ptx_cp_async_ca(k, s, 0, ptx_param_u64(k, "p"), 0, 32);)
EMITS(registers_24, ptx_setmaxnreg_dec(k, 24);)
EMITS(registers_28, ptx_setmaxnreg_dec(k, 28);)
EMITS(two_alternatives, ptx_u64 p = ptx_param_u64(k, "p");
      ptx_ld_global_u32_m(k, PTX_LD_CS | PTX_LD_LU, p, 0);)
EMITS(wrong_modifier, ptx_u32 x = one(k); ptx_prmt_b32_m(k, PTX_FTZ, x, x, x);)
EMITS(two_policies, ptx_u64 p = ptx_param_u64(k, "p");
      ptx_ld_global_u32_m(k, PTX_LD_CA | PTX_L1_EVICT_FIRST, p, 0);)
EMITS(packed_add, ptx_u32 x = one(k); ptx_add_u16x2(k, x, x);)
EMITS(cluster_scope, ptx_fence_m(k, PTX_CLUSTER);)
EMITS(offset_of_4, ptx_ld_param_u32(k, ptx_param_declare(k, "p", 8, 8), 4);)
EMITS(offset_of_8, ptx_ld_param_u32(k, ptx_param_declare(k, "p", 8, 8), 8);)
EMITS(offset_below_0, ptx_ld_param_u32(k, ptx_param_declare(k, "p", 8, 8), -4);)

static void store_at(ptx_kernel *k, int offset)
{
    ptx_u32 a = ptx_shared_address(k, ptx_shared_declare(k, "first", 128, 16));
    ptx_st_shared_u32(k, a, offset, a);
}
EMITS(store_at_124, store_at(k, 124);)
EMITS(store_at_128, store_at(k, 128);)
EMITS(store_below_0, store_at(k, -4);)

/* ---- raw text ---- */

static void raw(ptx_kernel *k, const char *text, ptx_operand second)
{
    ptx_operand o[2] = {{.type = PTX_U32}, second};
    ptx_raw(k, text, 0, o, 2, 1);
}
EMITS(raw_good, raw(k, "mov.b32 %0, %1", one(k).o);)
EMITS(raw_names_more, raw(k, "mov.b32 %0, %2", one(k).o);)
EMITS(raw_names_register, raw(k, "mov.b32 %0, %r12345678", one(k).o);)
EMITS(raw_label, raw(k, "mov.b32 %0, %1", ptx_label_new(k, "l").o);)
EMITS(raw_unassigned, raw(k, "mov.b32 %0, %1", (ptx_operand){0});)
EMITS(raw_constant_result, ptx_operand o = ptx_imm_u32(1).o; ptx_raw(k, "mov.b32 %0, 1", 0, &o, 1, 1);)
EMITS(raw_no_text, ptx_raw(k, NULL, 0, NULL, 0, 0);)
EMITS(raw_more_results, ptx_operand o = {0}; ptx_raw(k, "x", 0, &o, 1, 2);)

/* ---- declarations ---- */

EMITS(param_name, ptx_param_declare(k, "1st", 4, 4);)
EMITS(param_twice, ptx_param_declare(k, "p", 4, 4); ptx_param_declare(k, "p", 8, 8);)
EMITS(params_4352, ptx_param_declare(k, "p", 4352, 4);)
EMITS(params_4353, ptx_param_declare(k, "p", 4353, 4);)
EMITS(params_32764, ptx_param_declare(k, "p", 32764, 4);)
EMITS(params_32765, ptx_param_declare(k, "p", 32765, 4);)
EMITS(shared_of_0, ptx_shared_declare(k, "s", 0, 4);)
EMITS(shared_of_most, ptx_shared_declare(k, "s", 166912, 1024);)
EMITS(shared_of_more, ptx_shared_declare(k, "s", 166913, 1024);)
EMITS(shared_at_2048, ptx_shared_declare(k, "s", 4, 2048);)
EMITS(shared_at_12, ptx_shared_declare(k, "s", 4, 12);)
EMITS(local_of_most, ptx_local_declare(k, "l", 524288, 4);)
EMITS(local_of_more, ptx_local_declare(k, "l", 524289, 4);)
EMITS(label_name, ptx_label_bind(k, ptx_label_new(k, "a b"));)
EMITS(label_unbound, ptx_bra(k, ptx_label_new(k, "nowhere"));)
EMITS(label_twice, ptx_label l = ptx_label_new(k, "l"); ptx_label_bind(k, l); ptx_label_bind(k, l);)
EMITS(barriers_16, for (int i = 0; i < 16; i++) ptx_barrier_new(k, 1024);)
EMITS(barriers_17, for (int i = 0; i < 17; i++) ptx_barrier_new(k, 1024);)
EMITS(barrier_of_1056, ptx_barrier_new(k, 1056);)
EMITS(barrier_of_48, ptx_barrier_new(k, 48);)
EMITS(signal_64, ptx_kernel_reqntid(k, 8, 4, 2); ptx_barrier_signal(k, ptx_barrier_new(k, 0));)
EMITS(signal_48, ptx_kernel_reqntid(k, 48, 1, 1); ptx_barrier_signal(k, ptx_barrier_new(k, 0));)
EMITS(signal_unknown, ptx_barrier_signal(k, ptx_barrier_new(k, 0));)

/* ---- directives ---- */

EMITS(reqntid_1024, ptx_kernel_reqntid(k, 16, 1, 64);)
EMITS(reqntid_1025, ptx_kernel_reqntid(k, 1025, 1, 1);)
EMITS(reqntid_0, ptx_kernel_reqntid(k, 32, 0, 1);)
EMITS(reqntid_65, ptx_kernel_reqntid(k, 1, 1, 65);)
EMITS(reqntid_1056, ptx_kernel_reqntid(k, 33, 32, 1);)
EMITS(maxntid_1024, ptx_kernel_maxntid(k, 1024);)
EMITS(maxntid_1025, ptx_kernel_maxntid(k, 1025);)
EMITS(maxntid_0, ptx_kernel_maxntid(k, 0);)
EMITS(ctas_32, ptx_kernel_maxntid(k, 32); ptx_kernel_minnctapersm(k, 32);)
EMITS(ctas_33, ptx_kernel_maxntid(k, 32); ptx_kernel_minnctapersm(k, 33);)
EMITS(ctas_0, ptx_kernel_maxntid(k, 32); ptx_kernel_minnctapersm(k, 0);)
EMITS(maxnreg_16, ptx_kernel_maxnreg(k, 16);)
EMITS(maxnreg_15, ptx_kernel_maxnreg(k, 15);)
EMITS(maxnreg_255, ptx_kernel_maxnreg(k, 255);)
EMITS(maxnreg_256, ptx_kernel_maxnreg(k, 256);)
EMITS(cluster_16, ptx_kernel_reqnctapercluster(k, 4, 2, 2);)
EMITS(cluster_17, ptx_kernel_reqnctapercluster(k, 17, 1, 1);)
EMITS(cluster_0, ptx_kernel_reqnctapercluster(k, 2, 1, 0);)
EMITS(maxntid_and_reqntid, ptx_kernel_maxntid(k, 32); ptx_kernel_reqntid(k, 32, 1, 1);)
EMITS(ctas_alone, ptx_kernel_minnctapersm(k, 2);)

/* ---- control flow ---- */

EMITS(if_in_guard, ptx_pred p = cta_condition(k); ptx_guarded(k, p) ptx_if(k, p) one(k);)
EMITS(step_0, ptx_u32 i = one(k);
      ptx_for(k, i, ptx_imm_u32(4), ptx_imm_u32(0)) ptx_nanosleep_u32(k, i);)
EMITS(break_from_if, ptx_pred p = cta_condition(k); ptx_block b = ptx_if_begin(k, PTX_HERE, p, false);
      ptx_loop_break_if(&b, p, false); ptx_if_end(&b);)
EMITS(break_late, ptx_pred p = cta_condition(k); ptx_block b = ptx_loop_begin(k, PTX_HERE);
      ptx_loop_break_if(&b, p, false); ptx_loop_end(&b); ptx_loop_break_if(&b, p, false);)
EMITS(shuffle_of_some, ptx_u32 x = one(k);
      ptx_if(k, lane_condition(k)) ptx_movmatrix_trans_b16(k, x);)

#define OPERAND PTXGEN_ERROR_OPERAND
#define STRUCTURE PTXGEN_ERROR_STRUCTURE
#define LABEL PTXGEN_ERROR_LABEL
#define TARGET PTXGEN_ERROR_TARGET
#define OK PTXGEN_OK, NULL

static const ptx_target sm_80_of_80 = {.sm = 80, .max_ptx = 80};
static const ptx_target sm_80_of_81 = {.sm = 80, .max_ptx = 81};

#define HERE "emitted at test_sentences.c:%u: "
/* Behind "kernel 'k': "; %u stands for a line. */
static const struct row {
    const ptx_target *target;
    build_function build;
    ptxgen_status status;
    const char *says;
} rows[] = {
    {&sm_80, strange_register, OPERAND,
     "instruction 0 (add.u32), " HERE "a register of another kernel was used"},
    {&sm_80, strange_label, LABEL,
     "instruction 0 (bra), " HERE "a label of another kernel was used"},
    {&sm_80, strange_bound_label, LABEL,
     "at test_sentences.c:%u a label that is not of this kernel was bound"},
    {&sm_80, strange_param, OPERAND,
     "instruction 0 (ld.param.u32), " HERE "a parameter of another kernel was used"},
    {&sm_80, strange_param_address, OPERAND,
     "the address of a parameter of another kernel was taken"},
    {&sm_80, strange_shared, OPERAND, "the address of a buffer of another kernel was taken"},
    {&sm_80, strange_local, OPERAND, "the address of a buffer of another kernel was taken"},
    {&sm_80, strange_kind, OPERAND,
     "instruction 0 (add.u32), " HERE "a value of another kernel was used"},
    {&sm_80, into_the_other, STRUCTURE, "emitted into after its end (test_sentences.c:%u)"},
    {&sm_80, unassigned, OPERAND,
     "instruction 0 (add.u32), " HERE "an operand that was never assigned is read"},
    {&sm_80, label_as_value, OPERAND,
     "instruction 0 (add.u32), " HERE "a label stands where PTX takes a value"},
    {&sm_80, param_as_value, OPERAND,
     "instruction 0 (add.u32), " HERE "a parameter stands where PTX takes a value"},
    {&sm_80, register_as_label, LABEL,
     "instruction 1 (bra), " HERE "it needs a label of this kernel"},
    {&sm_80, constant_written, OPERAND,
     "instruction 0 (mov.u32), " HERE "a constant stands where PTX takes a register only"},
    {&sm_80, unwritten, PTXGEN_ERROR_UNINITIALISED,
     "instruction 2 (add.u32), " HERE "it reads a register that some path from the kernel's "
     "entry never wrote"},
    {&sm_90a, wgmma_of_12, OPERAND,
     "wgmma_k16_f32_f16 at test_sentences.c:%u: n = 12 is not a shape that it has"},
    {&sm_90a, constant_map, OPERAND,
     "instruction 1 (cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group), " HERE "a "
     "tensor's map is not a register"},
    {&sm_90a, label_as_coordinate, OPERAND,
     "instruction 2 (cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group), " HERE "a "
     "tensor's coordinate is not a register or a constant"},
    {&sm_80, lut_255, OK},
    {&sm_80, lut_256, OPERAND,
     "instruction 1 (lop3.b32), " HERE "the constant 256 is outside 0 … 255"},
    {&sm_80, copy_of_16, OK},
    {&sm_80, copy_of_12, OPERAND,
     "instruction 2 (cp.async.ca.shared.global), " HERE "the constant 12 is outside 4 … 16, "
     "powers of two"},
    {&sm_80, copy_of_32, OPERAND,
     "instruction 2 (cp.async.ca.shared.global), " HERE "the constant 32 is outside 4 … 16, "
     "powers of two"},
    {&sm_90a, registers_24, OK},
    {&sm_90a, registers_28, OPERAND,
     "instruction 0 (setmaxnreg.dec.sync.aligned.u32), " HERE "the constant 28 is outside 24 … "
     "256 in its steps"},
    {&sm_80, two_alternatives, OPERAND,
     "instruction 1 (ld.global.u32), " HERE "two alternatives of the modifier group 'ldcop' were "
     "combined"},
    {&sm_80, wrong_modifier, OPERAND,
     "instruction 1 (prmt.b32), " HERE "it does not take the modifier .ftz"},
    {&sm_80, two_policies, OPERAND,
     "instruction 1 (ld.global.ca.L1::evict_first.u32), " HERE "a cache operator and an L1 "
     "eviction priority exclude each other"},
    {&sm_80, packed_add, TARGET,
     "instruction 1 (add.u16x2), " HERE "it needs sm_90 with PTX 8.0; the target is sm_80"},
    {&sm_90a, packed_add, OK},
    {&sm_80, cluster_scope, TARGET,
     "instruction 0 (fence.acq_rel.cluster), " HERE ".cluster needs sm_90; the target is sm_80"},
    {&sm_90a, cluster_scope, OK},
    {&sm_80, offset_of_4, OK},
    {&sm_80, offset_of_8, OPERAND,
     "instruction 0 (ld.param.u32), " HERE "4 bytes at offset 8 of the parameter 'p' are not all "
     "within its 8"},
    {&sm_80, offset_below_0, OPERAND,
     "instruction 0 (ld.param.u32), " HERE "4 bytes at offset -4 of the parameter 'p' are not "
     "all within its 8"},
    {&sm_80, store_at_124, OK},
    {&sm_80, store_at_128, OPERAND,
     "instruction 1 (st.shared.u32), " HERE "4 bytes at offset 128 of the buffer 'first' are not "
     "all within its 128"},
    {&sm_80, store_below_0, OPERAND,
     "instruction 1 (st.shared.u32), " HERE "4 bytes at offset -4 of the buffer 'first' are not "
     "all within its 128"},
    {&sm_80, raw_good, OK},
    {&sm_80, raw_names_more, OPERAND,
     "instruction 1 (raw), " HERE "the raw text names %2, but 2 operands were given"},
    {&sm_80, raw_names_register, OPERAND,
     "instruction 1 (raw), " HERE "the raw text names a register itself at '%r123456'; it must "
     "take it as an operand"},
    {&sm_80, raw_label, OPERAND,
     "instruction 0 (raw), " HERE "a raw instruction cannot branch: %1 is a label"},
    {&sm_80, raw_unassigned, OPERAND,
     "instruction 0 (raw), " HERE "the operand %1 was never assigned"},
    {&sm_80, raw_constant_result, OPERAND,
     "instruction 0 (raw), " HERE "the result %0 is not a register"},
    {&sm_80, raw_no_text, OPERAND,
     "raw instruction at test_sentences.c:%u: it needs a text, at most 256 operands, and no more "
     "results than operands"},
    {&sm_80, raw_more_results, OPERAND,
     "raw instruction at test_sentences.c:%u: it needs a text, at most 256 operands, and no more "
     "results than operands"},
    {&sm_80, param_name, STRUCTURE,
     "the parameter name '1st' is not an identifier of ASCII letters, digits and underscores"},
    {&sm_80, param_twice, STRUCTURE, "the parameter 'p' is declared twice"},
    {&sm_80_of_80, params_4352, OK},
    {&sm_80_of_80, params_4353, TARGET,
     "parameter space beyond 4352 bytes needs PTX 8.1, but the cap is PTX 8.0"},
    {&sm_80_of_81, params_4353, OK},
    {&sm_80, params_32764, OK},
    {&sm_80, params_32765, OPERAND, "32765 bytes of parameters exceed the 32764 of a kernel"},
    {&sm_80, shared_of_0, OPERAND,
     "'s' has 0 bytes at alignment 4; it needs 1 … 2^30 bytes and a power of two up to 1024"},
    {&sm_80, shared_of_most, OK},
    {&sm_80, shared_of_more, PTXGEN_ERROR_SHARED_MEMORY,
     "166913 bytes of shared memory exceed the 166912 that a CTA of sm_80 has"},
    {&sm_80, shared_at_2048, OPERAND,
     "'s' has 4 bytes at alignment 2048; it needs 1 … 2^30 bytes and a power of two up to 1024"},
    {&sm_80, shared_at_12, OPERAND,
     "'s' has 4 bytes at alignment 12; it needs 1 … 2^30 bytes and a power of two up to 1024"},
    {&sm_80, local_of_most, OK},
    {&sm_80, local_of_more, OPERAND, "524289 bytes of local memory exceed the 524288 of a thread"},
    {&sm_80, label_name, LABEL,
     "the label name 'a b' is not an identifier of ASCII letters, digits and underscores"},
    {&sm_80, label_unbound, LABEL, "label 0 'nowhere' is never bound"},
    {&sm_80, label_twice, LABEL, "label 0 'l' is bound twice, at test_sentences.c:%u"},
    {&sm_80, barriers_16, OK},
    {&sm_80, barriers_17, OPERAND, "a CTA has 16 barriers; a 17th was asked for"},
    {&sm_80, barrier_of_1056, OPERAND,
     "a barrier of 1056 threads; the count must be a multiple of 32 up to 1024"},
    {&sm_80, barrier_of_48, OPERAND,
     "a barrier of 48 threads; the count must be a multiple of 32 up to 1024"},
    {&sm_80, signal_64, OK},
    {&sm_80, signal_48, OPERAND,
     "signalling a barrier of the whole CTA needs .reqntid with a multiple of 32 threads; it has "
     "48"},
    {&sm_80, signal_unknown, OPERAND,
     "signalling a barrier of the whole CTA needs .reqntid with a multiple of 32 threads; it has "
     "0"},
    {&sm_80, reqntid_1024, OK},
    {&sm_80, reqntid_1025, STRUCTURE,
     "a CTA of 1025 × 1 × 1 threads is outside 1 … 1024 threads in all, 64 along z"},
    {&sm_80, reqntid_0, STRUCTURE,
     "a CTA of 32 × 0 × 1 threads is outside 1 … 1024 threads in all, 64 along z"},
    {&sm_80, reqntid_65, STRUCTURE,
     "a CTA of 1 × 1 × 65 threads is outside 1 … 1024 threads in all, 64 along z"},
    {&sm_80, reqntid_1056, STRUCTURE,
     "a CTA of 33 × 32 × 1 threads is outside 1 … 1024 threads in all, 64 along z"},
    {&sm_80, maxntid_1024, OK},
    {&sm_80, maxntid_1025, STRUCTURE, ".maxntid 1025 is outside 1 … 1024"},
    {&sm_80, maxntid_0, STRUCTURE, ".maxntid 0 is outside 1 … 1024"},
    {&sm_80, ctas_32, OK},
    {&sm_80, ctas_33, STRUCTURE, ".minnctapersm 33 is outside 1 … 32"},
    {&sm_80, ctas_0, STRUCTURE, ".minnctapersm 0 is outside 1 … 32"},
    {&sm_80, maxnreg_16, OK},
    {&sm_80, maxnreg_15, STRUCTURE, ".maxnreg 15 is outside 16 … 255"},
    {&sm_80, maxnreg_255, OK},
    {&sm_80, maxnreg_256, STRUCTURE, ".maxnreg 256 is outside 16 … 255"},
    {&sm_90a, cluster_16, OK},
    {&sm_80, cluster_16, TARGET, "clusters need sm_90, the target is sm_80"},
    {&sm_90a, cluster_17, STRUCTURE, "a cluster of 17 × 1 × 1 CTAs is outside 1 … 16"},
    {&sm_90a, cluster_0, STRUCTURE, "a cluster of 2 × 1 × 0 CTAs is outside 1 … 16"},
    {&sm_80, maxntid_and_reqntid, STRUCTURE, ".maxntid and .reqntid exclude each other"},
    {&sm_80, ctas_alone, STRUCTURE, ".minnctapersm needs .maxntid or .reqntid"},
    {&sm_80, if_in_guard, STRUCTURE,
     "structured control flow inside ptx_guarded, at test_sentences.c:%u"},
    {&sm_80, step_0, OPERAND, "the ptx_for at test_sentences.c:%u has step 0"},
    {&sm_80, break_from_if, STRUCTURE,
     "a break at test_sentences.c:%u from the block of line %u, which is no loop"},
    {&sm_80, break_late, STRUCTURE,
     "a break at test_sentences.c:%u from the loop of line %u, which has ended"},
    {&sm_80, shuffle_of_some, PTXGEN_ERROR_DIVERGENCE,
     "instruction 4 (movmatrix.sync.aligned.m8n8.trans.b16), " HERE "it must be executed by all "
     "lanes of the warp together, but stands behind a branch or exit on which lanes of a warp "
     "can differ"},
};

/* Lines of this file, behind its name or the word, become %u. */
static void without_lines(const char *from, char *to)
{
    static const char *const before[] = {"test_sentences.c:", "of line "};
    while (*from) {
        size_t length = 0;
        for (int i = 0; i < 2 && !length; i++)
            if (!strncmp(from, before[i], strlen(before[i])))
                length = strlen(before[i]);
        size_t kept = length ? length : 1;
        memcpy(to, from, kept);
        to += kept, from += kept;
        if (!length)
            continue;
        memcpy(to, "%u", 2), to += 2;
        while (isdigit((unsigned char)*from))
            from++;
    }
    *to = '\0';
}

static void each_refusal_has_its_sentence(void **state)
{
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ptx_module *m = ptx_module_create(rows[i].target, NULL);
        const char *text;
        char sentence[2 * sizeof((ptxgen_error *)0)->message] = "", due[sizeof sentence] = "";
        ptxgen_error err = {.status = PTXGEN_OK};
        make_other(m);
        ptx_kernel *k = ptx_kernel_begin(m, "k");
        rows[i].build(k);
        ptx_kernel_end(k);
        ptxgen_status status = ptx_module_text(m, 0, &text, NULL, &err);
        without_lines(err.message, sentence);
        if (rows[i].says)
            snprintf(due, sizeof due, "kernel '%s': %s",
                     rows[i].build == into_the_other ? "other" : "k", rows[i].says);
        if (status != rows[i].status || strcmp(sentence, due) != 0) {
            print_error("row %zu: %s, '%s'; due is %s, '%s'\n", i, ptxgen_status_name(status),
                        sentence, ptxgen_status_name(rows[i].status), due);
            wrong++;
        }
        ptx_module_destroy(m);
    }
    assert_int_equal(wrong, 0);
}

/* ---- modules ---- */

static void assert_module_says(ptx_module *m, ptxgen_status status, const char *says)
{
    ptxgen_error err = {.status = PTXGEN_OK};
    assert_refusal(ptx_module_status(m, &err), &err, status, says);
    ptx_module_destroy(m);
}

static void modules_and_kernels_that_cannot_be_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *first, *second;
        bool ended;
        const char *says;
    } kernels[] = {
        {"a", "b", false, "kernel 'b': begun before kernel 'a' was ended"},
        {"a", "a", true, "kernel 'a': the module already has a kernel of this name"},
        {"a", "", true,
         "kernel 'unnamed': the kernel name '' is not an identifier of ASCII letters, digits and "
         "underscores"},
        {"a", NULL, true,
         "kernel 'unnamed': the kernel name '(null)' is not an identifier of ASCII letters, digits "
         "and underscores"},
    };
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        ptx_module *m = ptx_module_create(&sm_80, NULL);
        ptx_kernel *k = ptx_kernel_begin(m, kernels[i].first);
        if (kernels[i].ended)
            ptx_kernel_end(k);
        ptx_kernel_begin(m, kernels[i].second);
        assert_module_says(m, STRUCTURE, kernels[i].says);
    }
    ptx_module *m = ptx_module_create(&sm_80, NULL);
    m->kernel_count = UINT16_MAX - 2;
    ptx_kernel_end(ptx_kernel_begin(m, "last"));
    assert_ok(ptx_module_status(m, NULL), &m->error);
    ptx_kernel_begin(m, "beyond");
    assert_module_says(m, STRUCTURE, "kernel 'beyond': a module holds at most 65534 kernels");
    assert_module_says(ptx_module_create(NULL, NULL), PTXGEN_ERROR_INVALID_ARGUMENT,
                       "a module needs a target");
}

static void targets_that_are_none_are_named(void **state)
{
    (void)state;
    static const struct {
        ptx_target target;
        const char *says;
    } targets[] = {
        {{.sm = 80, .suffix = 'a'}, "sm_80 has no 'a' variant"},
        {{.sm = 90, .suffix = 'f'}, "sm_90 has no 'f' variant"},
        {{.sm = 90, .suffix = 'a', .max_ptx = 79}, "sm_90a needs PTX 8.0, but the cap is PTX 7.9"},
        {{.sm = 120, .max_ptx = 86}, "sm_120 needs PTX 8.7, but the cap is PTX 8.6"},
        {{.sm = 75},
         "sm_75 is not a target that ptxgen knows: it knows sm_80, 86, 87, 88, 89, 90, 100, 101, "
         "103, 110, 120, 121"},
    };
    ptxgen_error err = {.status = PTXGEN_OK};
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        ptx_target above = targets[i].target;
        assert_refusal(ptx_target_check(&targets[i].target, &err), &err, TARGET, targets[i].says);
        above.max_ptx++;
        if (targets[i].target.max_ptx)
            assert_ok(ptx_target_check(&above, &err), &err);
    }
}

static void a_list_of_declarations_ends(void **state)
{
    (void)state;
    ptx_module *m = ptx_module_create(&sm_80, NULL);
    ptx_kernel *k = ptx_kernel_begin(m, "k");
    char name[8];
    for (int i = 0; i < 65535; i++) {
        snprintf(name, sizeof name, "s%d", i);
        ptx_shared_declare(k, name, 1, 1);
    }
    assert_ok(ptx_module_status(m, NULL), &m->error);
    ptx_shared_declare(k, "more", 1, 1);
    assert_module_says(m, STRUCTURE, "kernel 'k': 'more' is one declaration too many");
}

/* Gives only so much at once. */
static void *resize_up_to(void *most, void *block, size_t old_size, size_t new_size)
{
    (void)old_size;
    if (!new_size)
        free(block);
    return new_size && new_size <= *(size_t *)most ? realloc(block, new_size) : NULL;
}

static void memory_that_is_not_there_is_counted(void **state)
{
    (void)state;
    enum { LABELS = 4096 / sizeof(struct ptx_label_state) * sizeof(struct ptx_label_state) };
    char says[80];
    snprintf(says, sizeof says, "no memory for %d bytes of the module", LABELS);
    for (int missing = 0; missing < 2; missing++) {
        size_t most = 1 << 16;
        const ptx_allocator allocator = {resize_up_to, &most};
        ptx_module *m = ptx_module_create(&sm_80, &allocator);
        ptx_kernel *k = ptx_kernel_begin(m, "k");
        most = LABELS - (size_t)missing;
        ptx_label_new(k, NULL);
        assert_module_says(m, missing ? PTXGEN_ERROR_OUT_OF_MEMORY : PTXGEN_OK,
                           missing ? says : "");
    }
}

static void lists_have_a_longest(void **state)
{
    (void)state;
    for (int more = 0; more < 2; more++) {
        size_t most = 1 << 16, capacity = 0;
        const ptx_allocator allocator = {resize_up_to, &most};
        ptx_module *m = ptx_module_create(&sm_80, &allocator);
        char *list = NULL;
        assert_false(ptx_grow(m, &list, &capacity, PTX_MAX_ELEMENTS + (size_t)more, 1));
        assert_module_says(m, PTXGEN_ERROR_OUT_OF_MEMORY,
                           more ? "a module's list of 536870913 elements is too long"
                                : "no memory for 536870912 bytes of the module");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_refusal_has_its_sentence),
        TEST(modules_and_kernels_that_cannot_be_are_named),
        TEST(targets_that_are_none_are_named),
        TEST(a_list_of_declarations_ends),
        TEST(memory_that_is_not_there_is_counted),
        TEST(lists_have_a_longest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
