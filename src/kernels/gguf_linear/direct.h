/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches of more than 8 tokens whose weights never get to memory decoded: h is written as rows
 * of f16 or bf16, and one kernel multiplies. Packed rows are copied into shared memory as they are,
 * and the warps decode them into the registers that are operand A of wgmma (sm_90a):
 *
 * Words: a unit is 256 of K of each row of w; a slice is 16 of K, which one wgmma multiplies, and a
 * group is two slices, which are decoded while the products of the group before run; a block is 64
 * of K of h; a run is 4 neighbours along K of a slice; a row is a feature of y. A slot of the ring
 * of units has the unit of the 64 rows of one warpgroup, or of two; a slot of the ring of blocks
 * one to four blocks.
 *
 *     x, residual ─▶ [norms] ─▶ h, with the order of K in each unit of 256 changed
 *     w ── tensor copies, 256 of K of 64 rows ─────▶ ring of units ─ decode ─▶ A ─┐
 *     h ── tensor copies, 64 of K of tile_m rows ──▶ ring of blocks ─────────▶ B ─┴ wgmma ─▶ sums
 *
 * With 256 tokens the CTAs of a cluster of two, where N has room for two, have the same tokens,
 * which they multicast, and features of their own: a unit's h is 128 KB then, beside 7 to 17 KB of
 * each 64 rows, and all of that comes from the L2.
 *
 * In a slice of 16 of K a lane of wgmma has four weights of each of two rows. The order of K within
 * a unit is such that each lane gets neighbouring bytes of a row's codes, and few of its scales:
 * lane 4g + q has one quarter of the codes of rows g and g + 8 (of gate and up: of row g of each).
 *
 * Features of y lie as inflate.h has them: a matrix begins at a multiple of 256 rows, which tile_n
 * divides, and a tile of a gate is 8 rows of gate, 8 of up, and so on. Matrices of one launch have
 * one type, K is a multiple of 256, and rows have a multiple of 16 bytes, as tensor maps want them.
 * Other specs are multiplied as inflate.h says.
 *
 * A tensor copy begins at a multiple of 16 bytes of a row, where the unit may not: a row's unit
 * then begins up to 14 bytes into its row of a slot, which is the same for all rows. Where that is
 * no multiple of 4, each 16 values of K are rotated by as many, so that lanes load whole words:
 *
 *     past = 6      │......0123456789│ABCDEF..........│   a row of a slot, from multiples of 16 on
 *     h, registers  │ABCDEF0123456789│                    bytes from two chunks, by prmt
 */
#ifndef PTXGEN_GGUF_LINEAR_DIRECT_H
#define PTXGEN_GGUF_LINEAR_DIRECT_H

#include "inflate.h"

#include "../gguf/block.h"

enum {
    DIRECT_SLICES = 16, /* of a unit */
    DIRECT_BLOCK = 64,  /* values of K of a block of h: 128 bytes of a row */
    DIRECT_BLOCKS = UNIT / DIRECT_BLOCK,
    DIRECT_WARPGROUP_ROWS = 64, /* of w, of a warpgroup */
    DIRECT_RUN = 4,             /* neighbours along K that a lane has in a slice, of a row */
    DIRECT_MOST_SCALES = 4,     /* that a lane needs of a row's unit */
    DIRECT_ELEMENT = 2, /* bytes of an element of w's tensor maps, whose boxes have up to 256 */
};

struct direct_lane;

/* A type as these launches see it. */
struct direct_type {
    uint32_t type;
    /*
     * Bytes of a row of a slot: copies begin at the multiple of 16 at or before a unit, and end
     * behind it. An odd number of 16 bytes spreads 8 rows over all banks.
     */
    uint32_t pitch;
    /*
     * Where a run of four values of h goes. Quad lane q of wgmma holds columns 2q, 2q + 1, 2q + 8
     * and 2q + 9 of a slice. The run's first and third value, of rotated types its first and
     * second, go to columns c and c + 1, the others to c + 8 and c + 9, where c is the xor of
     * columns[b] over the set bits b of the run's number in its unit, after the rotation. Bits of c
     * from 16 up are the slice, bits 2 and 4 the quad lane. Where there is a rotation columns[1]
     * is twice columns[0], so that a run's place is a product.
     */
    uint8_t columns[6];
    uint32_t quad_bytes; /* from a quad lane's codes to the next one's */
    uint32_t bias;       /* by which codes are too large: a power of two, or 0 */
    /* Codes are numbers in f16, without bias or minimum; in f16 a scale is the product of two. */
    bool has_floats;
    /* Computes what of the lane's place the type needs; NULL: nothing. */
    void (*begin)(struct direct_lane *l);
    /*
     * Loads what `count` slices from `slice` on need of row 0 or 1 of the lane: the two of a group,
     * whose bytes types keep in one place.
     */
    void (*load)(struct direct_lane *l, int row, uint32_t slice, uint32_t count);
    /*
     * The codes of a slice as numbers: the run's first and third, second and fourth; of a rotated
     * run the first and second, third and fourth, as it may begin with the second half of another.
     */
    void (*codes)(struct direct_lane *l, int row, uint32_t slice, ptx_u32 to[2]);
    /* Which of the scales a slice has; and by how many bits its codes are too high (NULL: 0). */
    uint32_t (*scale_of)(uint32_t slice);
    uint32_t (*shift_of)(uint32_t slice);
};
/* NULL for a type that these launches do not multiply. */
const struct direct_type *gguf_linear_direct_type(uint32_t type);

/* What weight i of a block is as f16 where these launches compute in f16. */
double direct_f16_weight(const struct direct_type *type, const struct gguf_block *block, size_t i);

/* The type of all matrices where the spec is multiplied by these launches, else NULL. */
const struct direct_type *gguf_linear_direct(const ptxgen_gguf_linear_plan *plan);
/* Blocks of a slot of the ring of h, which has `steps` slots: few waits where a block is small. */
static inline uint32_t direct_slot_blocks(const ptxgen_tile *v)
{
    return v->tile_m <= 64 ? DIRECT_BLOCKS : v->tile_m <= 128 ? DIRECT_BLOCKS / 2 : 1;
}
static inline uint32_t direct_slot_bytes(const ptxgen_tile *v)
{
    return direct_slot_blocks(v) * v->tile_m * DENSE_BLOCK_BYTES;
}
/* A unit of the rows that a warpgroup decodes. */
static inline uint32_t direct_unit_bytes(const struct direct_type *type)
{
    return DIRECT_WARPGROUP_ROWS * type->pitch;
}
static inline uint32_t direct_warpgroups(const ptxgen_tile *v)
{
    return v->tile_n / DIRECT_WARPGROUP_ROWS;
}
/*
 * Warpgroups whose units share a slot of the ring of packed rows: two of a tile's two or four where
 * a unit has less than 12 KB, so that there are fewer barriers to wait at.
 */
static inline uint32_t direct_sharers(const struct direct_type *type)
{
    const uint32_t small = 12 << 10;
    return direct_unit_bytes(type) < small ? 2 : 1;
}
static inline uint32_t direct_slot_of_units(const struct direct_type *type)
{
    return direct_sharers(type) * direct_unit_bytes(type);
}
/* Whether units begin at other places than multiples of 16 bytes. */
static inline bool direct_shifts(const struct direct_type *type)
{
    return unit_bytes(type->type) % 16 != 0;
}
/* Bytes by which unit number `unit` of a row begins behind a multiple of 16: an even number. */
ptx_u32 direct_past(ptx_kernel *k, const struct direct_type *type, ptx_u32 unit);
/* Whether they begin at other places than multiples of 4 bytes, and values of K are rotated. */
static inline bool direct_rotates(const struct direct_type *type)
{
    return unit_bytes(type->type) % 4 != 0;
}
/* Flags of a launch's CTAs (fixup.h), at the beginning of its workspace. */
static inline uint32_t direct_flags(const ptxgen_gguf_linear_plan *plan)
{
    return (uint32_t)gemm_partials_offset(&plan->target, PTXGEN_DENSE_MOST_CTAS) / 4;
}

/* How the tiles of such launches are chosen; `direct` and what follows of the plan are its own. */
extern const struct gemm_planner gguf_linear_direct_planner;
/* Adds the tiles to the plan. */
void gguf_linear_plan_direct(ptxgen_gguf_linear_plan *plan);
/* Emits the entry that makes h, the one that aligns rows of w, then the tiles'. */
void gguf_linear_emit_direct(const ptxgen_gguf_linear_plan *plan, ptx_module *module);

#endif
