/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The norm and rotation of rope.h for a head that a warp holds in registers. Each lane holds D/64
 * neighbouring pairs of the head. All lanes of the warp take part in every call.
 */
#ifndef GENERATE_HEAD_ROPE_H
#define GENERATE_HEAD_ROPE_H

#include "emit.h"

enum { MOST_PAIRS = 4 }; /* of a lane */

struct head_rope {
    /* The caller sets these. */
    ptx_kernel *k;
    uint32_t head_size;
    bool has_norm, interleaved;
    float epsilon;
    /* head_rope_init sets these. */
    uint32_t pairs;                    /* of a lane */
    ptx_u32 first_pair, first_element; /* of the lane, in the head */
    /* head_rope_find_angles sets these. */
    ptx_f32 cosine[MOST_PAIRS], sine[MOST_PAIRS];
};

/* The lane's part of a head, or of the gain of the norm. */
struct head_part {
    ptx_f32 value[MOST_PAIRS][2];
};

/* Finds which pairs the lane has. The caller has set the members that are the caller's. */
void head_rope_init(struct head_rope *rope, ptx_u32 lane);
/*
 * Finds the angles of the lane's pairs at a position. `turns` is the table of rope_turns (rope.h)
 * in global memory: a u64 for each pair, the angle of one position in units of 2⁻⁶⁴ of a full turn.
 */
void head_rope_find_angles(struct head_rope *rope, ptx_u64 turns, ptx_u32 position);
/* The address of the lane's first element of row `row`, where each row is one head. */
ptx_u64 head_rope_address(const struct head_rope *rope, ptx_u64 base, ptx_u32 row, uint8_t type);
/* Load and store the lane's part of a head, whose first element of the lane is at `at`. */
void head_rope_load(const struct head_rope *rope, uint8_t type, ptx_u64 at, struct head_part *to);
void head_rope_store(const struct head_rope *rope, uint8_t type, ptx_u64 at,
                     const struct head_part *head);
/* Stores the lane's part of a head to shared memory, where the head's element 0 is at `base`. */
void head_rope_store_shared(const struct head_rope *rope, uint8_t type, ptx_u32 base,
                            const struct head_part *head);
/* Normalises the head, with `gain`, if has_norm is set, and rotates it. */
void head_rope_apply(const struct head_rope *rope, const struct head_part *gain,
                     struct head_part *head);

#endif
