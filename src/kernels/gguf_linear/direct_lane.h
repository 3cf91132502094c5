/* SPDX-License-Identifier: Apache-2.0 */
/* What a lane of wgmma has of the unit that it decodes (direct.h). */
#ifndef PTXGEN_GGUF_LINEAR_DIRECT_LANE_H
#define PTXGEN_GGUF_LINEAR_DIRECT_LANE_H

#include "../gemm/emit.h"
#include "direct.h"

enum {
    DIRECT_MOST_WORDS = 20,
    DIRECT_OWN = 3,
    DIRECT_AND_OR = 0xEA, /* lop3: (a & b) | c */
    DIRECT_NIBBLES = 0x0F0F0F0F,
    DIRECT_SIGNS = 0x80808080u,
};
/* What a code's number lacks, in the low byte and in bits 4 to 7 (direct_types.c). */
static const float direct_low_unit = 0x1p24f, direct_high_unit = 0x1p20f;

struct direct_lane {
    ptx_kernel *k;
    const struct direct_type *type;
    bool bf16;               /* weights become bf16, else f16 */
    uint32_t second;         /* bytes from the lane's first row to its second */
    ptx_u32 quad;            /* lane % 4 */
    ptx_u32 own[DIRECT_OWN]; /* of the type: offsets and shifts that follow from the quad lane */
    ptx_pred is_upper;       /* quad lanes 2 and 3 */
    ptx_u32 row, codes; /* shared addresses: the first row's unit, and the lane's codes of it */
    ptx_u32 shift; /* bits by which the unit begins behind a multiple of 4 bytes, where it may */
    ptx_u32 low_at[4], high_at[4]; /* addresses that a type computes for the unit */

    /* Of both rows of the present unit, as far as they have been loaded. */
    ptx_u32 words[2][DIRECT_MOST_WORDS], high[2][4];
    bool has_word[2][DIRECT_MOST_WORDS];
    ptx_u32 found[2][2]; /* of the four bytes that two slices share: as they are, or looked up */
    ptx_f32 scale[2][DIRECT_MOST_SCALES], offset[2][DIRECT_MOST_SCALES];
    ptx_u32 halves[2][DIRECT_MOST_SCALES]; /* scales of a type that is single, as pairs */
};

/* ---- for types ---- */

/* The types of blocks of 32; NULL for others. */
const struct direct_type *direct_short_type(uint32_t type);
/* Whether weights are made by one product in f16. */
bool direct_is_single(const struct direct_lane *l);
/* Four codes, a byte each, as a slice's pairs; and those of a word's low, or high, nibbles. */
void direct_byte_pairs(struct direct_lane *l, ptx_u32 bytes, ptx_u32 to[2]);
void direct_nibble_pairs(struct direct_lane *l, ptx_u32 word, bool high, ptx_u32 to[2]);
/* A word's low or high nibbles, in bytes. */
ptx_u32 direct_nibbles_of(struct direct_lane *l, ptx_u32 word, bool high);
/* The two f16 of a word as f32. */
void direct_widen(struct direct_lane *l, ptx_u32 pair, ptx_f32 to[2]);
/* A scale times `unit`, of codes whose bias is the type's. */
void direct_set_scale(struct direct_lane *l, int row, int i, ptx_f32 scale, float unit);
/* Numbers of IQ4's table plus 128 for a word's low nibbles, and for its high ones. */
void direct_look_up(struct direct_lane *l, ptx_u32 word, ptx_u32 to[2]);
/* A type's scale_of where each of the lane's two blocks has one. */
uint32_t direct_by_block(uint32_t slice);

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
