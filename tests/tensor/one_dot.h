/* SPDX-License-Identifier: Apache-2.0 */
/**
 * One output of mma.m16n8k* (row 0, column 0) as a function of one row of A, one column of B and
 * an addend. Lane 0 holds the first elements along K of a register, lane 1 the next, and so on.
 */
#ifndef PTXGEN_TESTS_TENSOR_ONE_DOT_H
#define PTXGEN_TESTS_TENSOR_ONE_DOT_H

#include "slow_mma.h"

enum { MAX_K = 32 };

/** A dot product: bit patterns of one row of A, one column of B, and the addend. */
typedef struct dot {
    uint32_t a[MAX_K], b[MAX_K], c;
} dot;

static inline emu_mma_op float_op(emu_element type, unsigned k, emu_element acc)
{
    return (emu_mma_op){MMA(16, (uint16_t)k, acc, type, type, acc)};
}

/** Where element k of row 0 (column 0 of B) lives: P a register, four lanes, then the next. */
static inline void place_k(emu_lanes *registers, unsigned stride, unsigned bits, unsigned k,
                           uint32_t value)
{
    unsigned pack = 32 / bits, lane = k / pack % 4, block = k / pack / 4;
    registers[block * stride].lane[lane] |= value << k % pack * bits;
}

static inline uint32_t run_dot(const emu_mma_op *op, emu_numerics numerics, const dot *in)
{
    emu_lanes a[4] = {{{0}}}, b[2] = {{{0}}}, c[4] = {{{0}}}, d[4];
    unsigned bits = emu_element_bits(op->a);
    assert_int_equal(emu_mma_check(op, NULL), PTXGEN_OK);
    for (unsigned k = 0; k < op->k; k++) {
        place_k(a, 2, bits, k, in->a[k]);
        place_k(b, 1, bits, k, in->b[k]);
    }
    c[0].lane[0] = in->c;
    emu_mma(op, numerics, d, a, b, c);
    return op->d == EMU_F16 ? d[0].lane[0] & 0xFFFF : d[0].lane[0];
}

static inline void set(dot *in, unsigned k, uint32_t a, uint32_t b)
{
    in->a[k] = a;
    in->b[k] = b;
}

#endif
