/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor_double.h"

#include <fenv.h>
#include <math.h>
#include <string.h>

enum { MAX_ROWS = 16, MAX_DEPTH = 16, COLUMNS = 8 };

static const uint64_t NAN_BITS = 0xFFF8000000000000u;

static double read_double(const emu_lanes *registers, unsigned element, unsigned lane)
{
    uint64_t bits =
        registers[2 * element].lane[lane] | (uint64_t)registers[2 * element + 1].lane[lane] << 32;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void write_double(emu_lanes *registers, unsigned element, unsigned lane, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (isnan(value))
        bits = NAN_BITS;
    registers[2 * element].lane[lane] = (uint32_t)bits;
    registers[2 * element + 1].lane[lane] = (uint32_t)(bits >> 32);
}

/** The volatile copies keep the operation between the two changes of the rounding mode. */
static double fma_rounded(double a, double b, double c)
{
    volatile double x = a, y = b, z = c;
    volatile double result = fma(x, y, z);
    return result;
}

static void multiply(const emu_mma_op *op, const double *a, const double *b, double *c)
{
    static const int mode[] = {[EMU_RN] = FE_TONEAREST,
                               [EMU_RZ] = FE_TOWARDZERO,
                               [EMU_RM] = FE_DOWNWARD,
                               [EMU_RP] = FE_UPWARD};
    int before = fegetround();
    fesetround(mode[op->rounding]);
    for (unsigned row = 0; row < op->m; row++) {
        for (unsigned column = 0; column < COLUMNS; column++) {
            double sum = c[row * COLUMNS + column];
            for (unsigned k = 0; k < op->k; k++)
                sum = fma_rounded(a[row * op->k + k], b[k * COLUMNS + column], sum);
            c[row * COLUMNS + column] = sum;
        }
    }
    fesetround(before);
}

void emu_double_mma(const emu_mma_op *op, emu_lanes *d, const emu_lanes *a, const emu_lanes *b,
                    const emu_lanes *c)
{
    double am[MAX_ROWS * MAX_DEPTH], bm[MAX_DEPTH * COLUMNS], cm[MAX_ROWS * COLUMNS];
    const unsigned row_groups = op->m / 8;
    for (unsigned lane = 0; lane < EMU_WARP_LANES; lane++) {
        unsigned g = lane / 4, t = lane % 4;
        for (unsigned e = 0; e < op->k / 4u * row_groups; e++) {
            unsigned row = g + 8 * (e % row_groups), column = e / row_groups * 4 + t;
            am[row * op->k + column] = read_double(a, e, lane);
        }
        for (unsigned e = 0; e < op->k / 4u; e++)
            bm[(e * 4 + t) * COLUMNS + g] = read_double(b, e, lane);
        for (unsigned e = 0; e < 2 * row_groups; e++)
            cm[(g + e / 2 * 8) * COLUMNS + 2 * t + e % 2] = read_double(c, e, lane);
    }
    multiply(op, am, bm, cm);
    for (unsigned lane = 0; lane < EMU_WARP_LANES; lane++) {
        for (unsigned e = 0; e < 2 * row_groups; e++)
            write_double(d, e, lane, cm[(lane / 4 + e / 2 * 8) * COLUMNS + lane % 4 * 2 + e % 2]);
    }
}
