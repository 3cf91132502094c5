/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor_mma_quad.h"

#include <string.h>

#include "tensor_dot.h"

enum { DEPTH = 4, COLUMNS = EMU_TILE_COLUMNS, QUADS = 4, QUAD_LANES = 8 };

/** Lane of a member of a quad pair: 0…3 in the low half of the warp, 4…7 in the high half. */
static unsigned quad_lane(unsigned quad, unsigned member)
{
    return member / 4 * 16 + quad * 4 + member % 4;
}

static uint32_t half_of(const emu_lanes *registers, unsigned element, unsigned lane)
{
    return registers[element / 2].lane[lane] >> (element % 2 * 16) & 0xFFFF;
}

/** Row and column of an accumulator element of a member. */
static uint32_t *accumulator(emu_tile *tile, emu_element type, unsigned member, unsigned element)
{
    if (type == EMU_F16)
        return &tile->at[member][element];
    unsigned row = (member & 1) + (element & 2) + (member & 4);
    return &tile->at[row][(element & 4) + (member & 2) + (element & 1)];
}

static void load_accumulators(const emu_mma_op *op, unsigned quad, const emu_lanes *c,
                              emu_tile *tile)
{
    for (unsigned member = 0; member < QUAD_LANES; member++) {
        unsigned lane = quad_lane(quad, member);
        for (unsigned e = 0; e < 8; e++) {
            uint32_t *at = accumulator(tile, op->c, member, e);
            *at = op->c == EMU_F16 ? half_of(c, e, lane) : c[e].lane[lane];
            if (op->c == EMU_F16 && op->d == EMU_F32)
                *at = emu_f32_bits(emu_f16_value(*at));
        }
    }
}

static void store_accumulators(const emu_mma_op *op, unsigned quad, emu_tile *tile, emu_lanes *d)
{
    for (unsigned member = 0; member < QUAD_LANES; member++) {
        unsigned lane = quad_lane(quad, member);
        for (unsigned e = 0; e < 8; e++) {
            uint32_t value = *accumulator(tile, op->d, member, e);
            if (op->d == EMU_F32)
                d[e].lane[lane] = value;
            else if (e % 2 == 0)
                d[e / 2].lane[lane] = value;
            else
                d[e / 2].lane[lane] |= value << 16;
        }
    }
}

static void multiply_quad(const emu_mma_op *op, const emu_dot_rule *rule, unsigned quad,
                          const emu_lanes *a, const emu_lanes *b, emu_tile *tile)
{
    uint32_t am[EMU_TILE_ROWS * DEPTH] = {0}, bm[DEPTH * COLUMNS];
    for (unsigned member = 0; member < QUAD_LANES; member++) {
        unsigned lane = quad_lane(quad, member);
        for (unsigned e = 0; e < 4; e++) {
            unsigned row = op->a_column ? e + (member & 4) : member;
            unsigned k = op->a_column ? member % 4 : e;
            am[row * DEPTH + k] = half_of(a, e, lane);
            unsigned column = op->b_row ? e + (member & 4) : member;
            k = op->b_row ? member % 4 : e;
            bm[k * COLUMNS + column] = half_of(b, e, lane);
        }
    }
    emu_dot_a left;
    emu_dot_b right;
    emu_dot_load_a(rule, EMU_F16, am, NULL, DEPTH, &left);
    emu_dot_load_b(rule, EMU_F16, bm, DEPTH, &right);
    emu_dot(rule, &left, &right, tile);
}

void emu_mma_quad(const emu_mma_op *op, emu_numerics numerics, emu_lanes *d, const emu_lanes *a,
                  const emu_lanes *b, const emu_lanes *c)
{
    const emu_dot_rule rule = emu_dot_rule_of(numerics, EMU_F16, op->d, false);
    emu_tile tile[QUADS];
    memset(tile, 0, sizeof tile);
    for (unsigned quad = 0; quad < QUADS; quad++) {
        load_accumulators(op, quad, c, &tile[quad]);
        multiply_quad(op, &rule, quad, a, b, &tile[quad]);
    }
    for (unsigned quad = 0; quad < QUADS; quad++)
        store_accumulators(op, quad, &tile[quad], d);
}
