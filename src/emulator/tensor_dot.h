/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Floating-point dot products of a 16×8 tile, exactly or as the hardware forms them.
 *
 * Hardware models (Fasi et al., PeerJ CS 330; arXiv 2511.10909 and 2512.07004). The terms, that
 * is the addend and at most `step` products, are summed in one go:
 *   - a product is exact, its exponent the sum of its factors' exponents, not normalised;
 *     subnormal factors carry the least exponent of their format, as a subnormal addend does;
 *   - E is the largest exponent of the non-zero terms, where an addend's is at least -126;
 *   - each term is cut toward zero to a multiple of 2^(E - F), F = `fraction_bits`;
 *   - the sum of these is exact; it becomes f32 by dropping low fraction bits (to 13 of them in
 *     the fp8 units of Ada and Hopper), or f16 by rounding to nearest even. Past the range: ∞.
 * More products than `step` are taken in ascending K, each result the addend of the next.
 * A NaN term, ∞·0, or infinities of both signs make NaN, 0x7FFFFFFF or 0x7FFF. A sum that is or
 * rounds to zero is +0. Exact mode: the exact sum of everything, rounded once to nearest even; a
 * sum of zero is +0 there too.
 *
 * Ampere: F 24, steps of 16 bytes of A (8 f16, 4 tf32). Ada: the same, and F 13 for fp8. Hopper,
 * Blackwell: F 25, steps of 32 bytes; wgmma fp8: F 13. Hopper and sm_100 have no fp8 mma.sync:
 * the assembler widens to f16 and issues two f16 operations from a zero addend, first the even,
 * then the odd pairs of K, and adds C in a separate rounded-to-nearest addition.
 *
 * The studies do not settle these, which are an H100's: sparse operations sum like dense ones over
 * the compressed K; a zero term does not align the others; a sum that rounds to zero is +0.
 */
#ifndef PTXGEN_EMULATOR_TENSOR_DOT_H
#define PTXGEN_EMULATOR_TENSOR_DOT_H

#include "tensor_format.h"
#include "tensor_fragment.h"

enum { EMU_DOT_MAX_TERMS = 32, EMU_DOT_MAX_DEPTH = 64 };

typedef struct emu_dot_rule {
    bool exact;
    bool f16_result;       /* accumulators are f16, else f32 */
    bool widened_pairs;    /* fp8 by way of two f16 operations */
    uint8_t fraction_bits; /* F */
    uint8_t kept_bits;     /* fraction bits that an f32 result keeps */
    uint8_t step;          /* products in one sum */
} emu_dot_rule;

/** The rule for elements of type `a` with accumulators of type `d`. */
emu_dot_rule emu_dot_rule_of(emu_numerics numerics, emu_element a, emu_element d, bool wgmma);

/** Rows of A, `[row * terms + term]`, in order of summation; the row of B that a term meets. */
typedef struct emu_dot_a {
    unsigned terms;
    bool dense; /* a term meets the row of B of its own number */
    emu_decoded_range range;
    float value[EMU_TILE_ROWS * EMU_DOT_MAX_TERMS];
    int16_t exponent[EMU_TILE_ROWS * EMU_DOT_MAX_TERMS];
    uint8_t depth[EMU_TILE_ROWS * EMU_DOT_MAX_TERMS];
} emu_dot_a;

/** Eight columns of B. */
typedef struct emu_dot_b {
    emu_decoded_range range;
    float value[EMU_DOT_MAX_DEPTH][EMU_TILE_COLUMNS];
    int16_t exponent[EMU_DOT_MAX_DEPTH][EMU_TILE_COLUMNS];
} emu_dot_b;

/** Decodes A; `bits` and `depth` are in order of K, and are reordered where the rule asks. A dense
 * A has no `depth`. */
void emu_dot_load_a(const emu_dot_rule *rule, emu_element type, const uint32_t *bits,
                    const uint8_t *depth, unsigned terms, emu_dot_a *out);

/** Decodes `bits[row * 8 + column]`. */
void emu_dot_load_b(const emu_dot_rule *rule, emu_element type, const uint32_t *bits, unsigned rows,
                    emu_dot_b *out);

/** tile = A·B + tile. */
void emu_dot(const emu_dot_rule *rule, const emu_dot_a *a, const emu_dot_b *b, emu_tile *tile);

/** One addend and its products, for the scalar paths. */
typedef struct emu_dot_terms {
    unsigned count; /* products */
    float a[EMU_DOT_MAX_TERMS], b[EMU_DOT_MAX_TERMS];
    int exponent[EMU_DOT_MAX_TERMS]; /* of the products */
    float c;
    int c_exponent;
} emu_dot_terms;

/** The exact sum of finite terms to nearest even, f16 or f32, whatever their exponents. */
uint32_t emu_dot_exact(const emu_dot_terms *terms, bool f16_result);

#endif
