/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The norm and rotation of rope.h for a head that a warp has: D/64 pairs a lane, which are
 * neighbours. All lanes of the warp take part in every call.
 */
#ifndef GENERATE_HEAD_ROPE_H
#define GENERATE_HEAD_ROPE_H

#include "emit.h"

enum { MOST_PAIRS = 4 }; /* of a lane */

struct head_rope {
    ptx_kernel *k;
    uint32_t head_size;
    bool has_norm, interleaved;
    float epsilon;
    /* What head_rope_begin and head_rope_turn find. */
    uint32_t pairs;
    ptx_u32 pair, element; /* the lane's first */
    ptx_f32 cosine[MOST_PAIRS], sine[MOST_PAIRS];
};

/* The lane's part of a head, or of a gain. */
struct head {
    ptx_f32 value[MOST_PAIRS][2];
};

/* Finds which elements the lane has; the first members are filled. */
void head_rope_begin(struct head_rope *rope, ptx_u32 lane);
/* Finds the angles of a position, by the table of rope_turns. */
void head_rope_turn(struct head_rope *rope, ptx_u64 turns, ptx_u32 position);
/* The lane's first element of row `row`, where rows have a head each. */
ptx_u64 head_rope_address(const struct head_rope *rope, ptx_u64 base, ptx_u32 row, uint8_t type);
void head_rope_load(const struct head_rope *rope, uint8_t type, ptx_u64 at, struct head *to);
void head_rope_store(const struct head_rope *rope, uint8_t type, ptx_u64 at,
                     const struct head *head);
/* The same to shared memory, where `base` is the head's first element. */
void head_rope_share(const struct head_rope *rope, uint8_t type, ptx_u32 base,
                     const struct head *head);
/* The norm, where there is one, and the rotation. */
void head_rope_apply(const struct head_rope *rope, const struct head *gain, struct head *head);

#endif
