/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The norm and rotation of rope.h for heads of which D/8 lanes have eight neighbouring elements
 * each, as attention has them. All lanes of a warp take part in every call.
 */
#ifndef GENERATE_LANE_ROPE_H
#define GENERATE_LANE_ROPE_H

#include "emit.h"

struct lane_rope {
    ptx_kernel *k;
    uint32_t head_size;
    bool has_norm, interleaved;
    float epsilon;
    ptx_u32 part; /* the lane's first element */
    ptx_f32 cosine[EIGHT], sine[EIGHT];
};

/* Finds the angles of a position; members above are filled. */
void lane_rope_begin(struct lane_rope *rope, ptx_u64 turns, ptx_u32 position);
/* The lane's elements of f32 at `base`, a head or a gain. */
void lane_rope_load(const struct lane_rope *rope, ptx_u64 base, ptx_f32 to[EIGHT]);
void lane_rope_apply(const struct lane_rope *rope, const ptx_f32 gain[EIGHT], ptx_f32 head[EIGHT]);

#endif
