/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Tensor-core instructions as pure functions: no interpreter state, no globals, no allocation.
 *
 * A register operand is a row of `emu_lanes`, one per 32-bit register: `a[r].lane[l]` is what
 * lane `l` holds in the r-th register of the vector operand. An `uint32_t regs[n][32]` has the
 * same layout. A warpgroup operand is indexed `[warp * registers + r]`. A 64-bit register
 * counts as two rows, low word first. Destination and source rows may be the same memory.
 *
 * The interpreter fills an `emu_mma_op` or `emu_wgmma_op` from the qualifiers once, at decode
 * time, has it checked, and then calls the matching function on every execution:
 *
 *     emu_mma_op op = {.m = 16, .n = 8, .k = 16, .d = EMU_F32, .a = EMU_F16, .b = EMU_F16,
 *                      .c = EMU_F32};
 *     if (emu_mma_check(&op, err) != PTXGEN_OK) return err->status;
 *     emu_mma(&op, emu_numerics_of_sm(90), d, a, b, c);
 *
 * Faults that only run-time values can cause (invalid sparsity metadata, a bad matrix
 * descriptor, a shared read that the caller refuses) come back as PTXGEN_ERROR_PTX_FAULT with
 * a sentence, and the destination is then untouched.
 */
#ifndef PTXGEN_EMULATOR_TENSOR_CORE_H
#define PTXGEN_EMULATOR_TENSOR_CORE_H

#include <stdbool.h>
#include <stdint.h>

#include "ptxgen/status.h"

enum { EMU_WARP_LANES = 32, EMU_WARPGROUP_WARPS = 4 };

typedef struct emu_lanes {
    uint32_t lane[EMU_WARP_LANES];
} emu_lanes;

/** Element types of matrix operands, named as the PTX qualifiers are. */
typedef enum emu_element {
    EMU_F16,
    EMU_BF16,
    EMU_TF32,
    EMU_F32,
    EMU_F64,
    EMU_E4M3,
    EMU_E5M2,
    EMU_S8,
    EMU_U8,
    EMU_S4,
    EMU_U4,
    EMU_B1,
    EMU_S32,
    EMU_ELEMENT_COUNT
} emu_element;

/** Bits that one element occupies in a register or in shared memory (tf32: 32). */
unsigned emu_element_bits(emu_element type);

/**
 * How floating-point sums are formed. EXACT: the exact sum of all products and the addend,
 * rounded once to nearest even. The others follow the published models of the hardware:
 * products exact, every term aligned to the largest exponent and cut to F fraction bits, the
 * sum of these rounded toward zero to f32, or to nearest even to f16 (see tensor_dot.h).
 */
typedef enum emu_numerics {
    EMU_NUMERICS_EXACT,
    EMU_NUMERICS_AMPERE,       /**< sm_80, 86, 87, 88 and the older Turing */
    EMU_NUMERICS_ADA,          /**< sm_89 */
    EMU_NUMERICS_HOPPER,       /**< sm_90 */
    EMU_NUMERICS_BLACKWELL,    /**< sm_100 to sm_110 */
    EMU_NUMERICS_RTX_BLACKWELL /**< sm_120 and later */
} emu_numerics;

/** The hardware model of a compute capability written as in sm_XY: 80, 86, 89, 90, 100, 120. */
emu_numerics emu_numerics_of_sm(unsigned sm);

/* ---- mma.sync and mma.sp ---- */

typedef enum emu_mma_bit_op { EMU_BIT_XOR, EMU_BIT_AND } emu_mma_bit_op;

/** Rounding of f64 mma; every other type has none to choose. */
typedef enum emu_rounding { EMU_RN, EMU_RZ, EMU_RM, EMU_RP } emu_rounding;

/** One mma shape with its types. Zero-initialise; k is the dense K even when sparse. */
typedef struct emu_mma_op {
    uint16_t m, n, k;
    emu_element d, a, b, c;
    bool sparse;           /**< mma.sp and mma.sp::ordered_metadata */
    bool ordered_metadata; /**< the latter: index pairs must ascend, not just differ */
    bool satfinite;        /**< integer types only */
    emu_mma_bit_op bit_op; /**< b1 only */
    emu_rounding rounding; /**< f64 only */
    bool a_column, b_row;  /**< the layouts of m8n8k4 f16, else row.col as PTX demands */
} emu_mma_op;

typedef enum emu_operand { EMU_OPERAND_A, EMU_OPERAND_B, EMU_OPERAND_C, EMU_OPERAND_D } emu_operand;

/** Refuses, with a sentence, a shape and type combination that PTX does not have. */
ptxgen_status emu_mma_check(const emu_mma_op *op, ptxgen_error *err);

/** 32-bit registers of the operand in each thread (a 64-bit register counts twice). */
unsigned emu_mma_registers(const emu_mma_op *op, emu_operand operand);

/** D = A·B + C for a checked, dense op. */
void emu_mma(const emu_mma_op *op, emu_numerics numerics, emu_lanes *d, const emu_lanes *a,
             const emu_lanes *b, const emu_lanes *c);

/**
 * D = A·B + C for a checked, sparse op: `a` holds the compressed rows, `metadata` the register
 * e of all lanes, of which `selector` says which lanes count. A selector out of the shape's
 * range and index pairs that the ISA calls meaningless are faults.
 */
ptxgen_status emu_mma_sp(const emu_mma_op *op, emu_numerics numerics, emu_lanes *d,
                         const emu_lanes *a, const emu_lanes *b, const emu_lanes *c,
                         const emu_lanes *metadata, uint32_t selector, ptxgen_error *err);

/**
 * The lanes whose metadata register `selector` makes the op read, as a mask; 0 when the
 * selector is out of range. For checks of uninitialised registers.
 */
uint32_t emu_mma_sp_metadata_lanes(const emu_mma_op *op, uint32_t selector);

/* ---- wgmma.mma_async ---- */

/** One wgmma shape. M is always 64; k is the dense K. D is also the addend. */
typedef struct emu_wgmma_op {
    uint16_t n, k;
    emu_element d, a, b;
    bool sparse;
    bool satfinite;
    bool a_shared;                 /**< A through a descriptor instead of registers */
    bool negate_a, negate_b;       /**< imm-scale-a / imm-scale-b of -1 */
    bool transpose_a, transpose_b; /**< imm-trans: MN-major in shared memory; f16, bf16 only */
} emu_wgmma_op;

/** A reader of 16 aligned bytes of shared memory for A or B; false refuses (and makes the op a
 * fault). */
typedef struct emu_shared_reader {
    bool (*read16)(void *user, emu_operand operand, uint32_t shared_address, uint8_t out[16]);
    void *user;
} emu_shared_reader;

/** What a 64-bit matrix descriptor says, in bytes. */
typedef struct emu_matrix_descriptor {
    uint32_t start;        /**< shared address, a multiple of 16 below 2^18 */
    uint32_t leading;      /**< leading dimension byte offset */
    uint32_t stride;       /**< stride dimension byte offset */
    uint8_t base_offset;   /**< 0..7 */
    uint8_t swizzle_bytes; /**< 0, 32, 64 or 128 */
} emu_matrix_descriptor;

uint64_t emu_matrix_descriptor_encode(const emu_matrix_descriptor *fields);
emu_matrix_descriptor emu_matrix_descriptor_decode(uint64_t bits);

ptxgen_status emu_wgmma_check(const emu_wgmma_op *op, ptxgen_error *err);

/** Registers of A (when in registers) or D in each thread; C is D. */
unsigned emu_wgmma_registers(const emu_wgmma_op *op, emu_operand operand);

/** The values of one execution of a wgmma. */
typedef struct emu_wgmma_args {
    emu_lanes *d;          /**< [4 warps][registers of D] */
    const emu_lanes *a;    /**< [4 warps][registers of A], unless a_shared */
    uint64_t a_descriptor; /**< when a_shared */
    uint64_t b_descriptor;
    bool scale_d;              /**< false: D = A·B */
    const emu_lanes *metadata; /**< [4 warps], sparse only */
    uint32_t selector;         /**< sparse only */
    emu_shared_reader shared;
} emu_wgmma_args;

ptxgen_status emu_wgmma(const emu_wgmma_op *op, emu_numerics numerics, const emu_wgmma_args *args,
                        ptxgen_error *err);

/* ---- ldmatrix, stmatrix, movmatrix ---- */

typedef enum emu_matrix_form {
    EMU_M8N8_B16,         /**< ldmatrix and stmatrix, .trans optional, x1 x2 x4 */
    EMU_M16N16_B8,        /**< ldmatrix, .trans mandatory, x1 x2 */
    EMU_M16N16_B6X16_P32, /**< ldmatrix .b8x16.b6x16_p32, .trans mandatory, x1 x2 */
    EMU_M16N16_B4X16_P64, /**< ldmatrix .b8x16.b4x16_p64, .trans mandatory, x1 x2 */
    EMU_M8N16_B6X16_P32,  /**< ldmatrix .b8x16.b6x16_p32, no .trans, x1 x2 x4 */
    EMU_M8N16_B4X16_P64,  /**< ldmatrix .b8x16.b4x16_p64, no .trans, x1 x2 x4 */
    EMU_M16N8_B8          /**< stmatrix, .trans mandatory, x1 x2 x4 */
} emu_matrix_form;

typedef struct emu_matrix_op {
    emu_matrix_form form;
    uint8_t count; /**< matrices: 1, 2 or 4 */
    bool transpose;
    bool store; /**< stmatrix */
} emu_matrix_op;

typedef struct emu_matrix_row {
    uint8_t byte[16];
} emu_matrix_row;

ptxgen_status emu_matrix_check(const emu_matrix_op *op, ptxgen_error *err);

/** 32-bit registers in each thread. */
unsigned emu_matrix_registers(const emu_matrix_op *op);

/** Row addresses used: those of lanes 0 … n-1, each the start of 16 bytes, 16-byte aligned. */
unsigned emu_matrix_rows(const emu_matrix_op *op);

/** `rows[i]` holds the 16 bytes at lane i's address. */
void emu_ldmatrix(const emu_matrix_op *op, emu_lanes *d, const emu_matrix_row *rows);

/** Fills the 16 bytes to write at each lane's address. */
void emu_stmatrix(const emu_matrix_op *op, emu_matrix_row *rows, const emu_lanes *s);

/** movmatrix.m8n8.trans.b16; `d` and `a` may be the same. */
void emu_movmatrix(emu_lanes *d, const emu_lanes *a);

#endif
