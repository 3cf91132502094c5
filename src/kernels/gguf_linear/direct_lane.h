/* SPDX-License-Identifier: Apache-2.0 */
/* What a lane of wgmma has of the unit that it decodes (direct.h). */
#ifndef PTXGEN_GGUF_LINEAR_DIRECT_LANE_H
#define PTXGEN_GGUF_LINEAR_DIRECT_LANE_H

#include "../gemm/emit.h"
#include "direct.h"

enum {
    DIRECT_MOST_WORDS = 20,
    DIRECT_OWN = 3,
    DIRECT_BY_BIAS = 4, /* a number's product; 0 to 3 are for codes 0, 2, 4 and 6 bits too high */
    DIRECT_PRODUCTS,
    DIRECT_AND_OR = 0xEA, /* lop3: (a & b) | c */
    DIRECT_NIBBLES = 0x0F0F0F0F,
    DIRECT_SIGNS = 0x80808080u,
    DIRECT_RAISED = 0x7000, /* 2¹³ in f16, by which numbers of MXFP4 are raised for bf16 */
};
/* A byte as f16 is a subnormal number, which this times is the byte. */
static const float direct_byte_unit = 0x1p24f;

/*
 * A scale or a minimum of a row: in f16, in both halves of `pair`; or in f32, with the products by
 * powers of two that slices have needed.
 */
struct direct_number {
    ptx_u32 pair;
    ptx_f32 single, products[DIRECT_PRODUCTS];
    bool has_product[DIRECT_PRODUCTS];
};

struct direct_lane {
    ptx_kernel *k;
    const struct direct_type *type;
    bool bf16;               /* weights become bf16, else f16 */
    uint32_t row_step;       /* bytes from the lane's first row to its second */
    ptx_u32 quad;            /* lane % 4 */
    ptx_u32 own[DIRECT_OWN]; /* of the type: offsets and shifts that follow from the quad lane */
    ptx_pred is_upper;       /* quad lanes 2 and 3 */
    /* Shared addresses: the unit of the lane's first row, and the lane's codes in it. */
    ptx_u32 row, codes;
    ptx_u32 low_at[4]; /* addresses that a type computes for the unit */
    /*
     * Where units begin at other places than multiples of 4 bytes: the address at which the first
     * row's unit begins, the multiple of 4 before it, the bits between these, and the selectors of
     * prmt by which two words become one of rotated bytes.
     */
    ptx_u32 begin, words_at, shift, rotation[4];

    /* Of both rows of the present unit, as far as they have been loaded. */
    ptx_u32 words[2][DIRECT_MOST_WORDS], high[2][4];
    bool has_word[2][DIRECT_MOST_WORDS];
    ptx_u32 found[2][2]; /* of the four bytes that two slices share: as they are, or looked up */
    struct direct_number scale[2][DIRECT_MOST_SCALES], addend[2][DIRECT_MOST_SCALES];
};

/* ---- for types ---- */

/* The types of blocks of 32; NULL for others. */
const struct direct_type *direct_short_type(uint32_t type);
/* The bits of both halves that `mask` has, as numbers: plus 1024 in f16, subnormal for bf16. */
ptx_u32 direct_masked(struct direct_lane *l, ptx_u32 bits, uint32_t mask);
/* Four codes, a byte each, as a slice's pairs; and those of a word's low, or high, nibbles. */
void direct_byte_pairs(struct direct_lane *l, ptx_u32 bytes, ptx_u32 to[2]);
void direct_nibble_pairs(struct direct_lane *l, ptx_u32 word, bool high, ptx_u32 to[2]);
/* A word's low or high nibbles, in bytes. */
ptx_u32 direct_nibbles_of(struct direct_lane *l, ptx_u32 word, bool high);
/* The two f16 of a word as f32. */
void direct_widen(struct direct_lane *l, ptx_u32 pair, ptx_f32 to[2]);
/* Sets a scale of a row, or what is added to its products: a minimum, or its negative. */
void direct_set(struct direct_lane *l, struct direct_number *to, ptx_f32 value);
/* The same, where the value is one of the two f16 of a word. */
void direct_set_half(struct direct_lane *l, struct direct_number *to, ptx_u32 word, bool is_upper);
/* Numbers of IQ4's table plus 128 for a word's low nibbles, and for its high ones. */
void direct_look_up(struct direct_lane *l, ptx_u32 word, ptx_u32 to[2]);
/* A type's scale_of where each of the lane's two blocks has one. */
uint32_t direct_by_block(uint32_t slice);
/* A type's shift_of where high nibbles stay in their places, as codes of odd slices. */
uint32_t direct_nibble_shift(uint32_t slice);

/* ---- for the product ---- */

/* Computes what holds for all units. */
void direct_lane_begin(struct direct_lane *l);
/* Makes unit number `unit` of rows the present one; the lane's first row of the slot is at `row`.
 */
void direct_lane_enter(struct direct_lane *l, ptx_u32 row, ptx_u32 unit);
/* Loads what `count` slices from `slice` on need. */
void direct_lane_load(struct direct_lane *l, uint32_t slice, uint32_t count);
/* Decodes a slice into the four registers of operand A. */
void direct_lane_decode(struct direct_lane *l, uint32_t slice, const ptx_u32 a[4]);

#endif
