/* SPDX-License-Identifier: Apache-2.0 */
/* What a lane of wgmma has of the unit that it decodes (direct.h). */
#ifndef PTXGEN_GGUF_LINEAR_DIRECT_LANE_H
#define PTXGEN_GGUF_LINEAR_DIRECT_LANE_H

#include "../gemm/emit.h"
#include "direct.h"

enum { DIRECT_MOST_WORDS = 20, DIRECT_OWN = 3 };

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
    ptx_f32 scale[2][DIRECT_MOST_SCALES], offset[2][DIRECT_MOST_SCALES];
    ptx_u32 halves[2][DIRECT_MOST_SCALES]; /* scales of a type that is single, as pairs */
};

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
