/* SPDX-License-Identifier: Apache-2.0 */
/*
 * f32 to Q4_K. The quantiser minimises Σ v·(w − decoded)² with v = |w| + rms(sub-block), in double,
 * in three steps. Each step is a least-squares fit for codes that are held fixed:
 *
 *   1. Each sub-block alone: w ≈ scale·q − min. A range of grids around min/max spacing proposes
 *      codes; for each proposal the scale and the min ≥ 0 are found that fit the codes best.
 *   2. The super-block: d and dmin are the f16 numbers in whose 63 steps the largest scale and
 *      min fit; each sub-block takes the best pair of 6-bit numbers near its own scale and min.
 *   3. With all 6-bit numbers and codes held, d and dmin are fitted again, and step 2 repeats as
 *      long as the error falls.
 *
 * Step 1 is the weighted search of ggml's k-quants. Steps 2 and 3 recover most of what the 6-bit
 * rounding of scales loses.
 */
#include "q4k.h"

#include "../half.h"

#include <math.h>
#include <string.h>

enum { GRIDS = 21, PASSES = 3, REFITS = 4 };

static double clamp(double value, double low, double high)
{
    return value < low ? low : value > high ? high : value;
}

/* The nearest of the integers from 0 to `most`; halves are rounded up. */
static uint8_t to_code(double value, int most)
{
    return (uint8_t)clamp(value + 0.5, 0, most);
}

/* A sub-block's weights, and how much the error of each weight counts. */
struct sub_block {
    double w[Q4K_SUB_WEIGHTS];
    double v[Q4K_SUB_WEIGHTS];
};

/* The best grid of a sub-block by itself: w ≈ scale·q − min, with both at least 0. */
struct grid {
    double scale, min;
};

static void load_sub_block(const float *weights, struct sub_block *s)
{
    double squares = 0;
    for (int i = 0; i < Q4K_SUB_WEIGHTS; i++) {
        s->w[i] = weights[i];
        squares += s->w[i] * s->w[i];
    }
    double rms = sqrt(squares / Q4K_SUB_WEIGHTS);
    for (int i = 0; i < Q4K_SUB_WEIGHTS; i++)
        s->v[i] = rms + fabs(s->w[i]);
}

/* The nearest codes on the grid; returns their weighed error. */
static double assign_codes(const struct sub_block *s, struct grid grid, uint8_t *codes)
{
    double error = 0, per_step = grid.scale > 0 ? 1 / grid.scale : 0;
    for (int i = 0; i < Q4K_SUB_WEIGHTS; i++) {
        codes[i] = to_code((s->w[i] + grid.min) * per_step, Q4K_MAX_CODE);
        double off = grid.scale * codes[i] - grid.min - s->w[i];
        error += s->v[i] * off * off;
    }
    return error;
}

/*
 * Sums for the a, b ≥ 0 that minimise Σ v·(a·p − b·r − w)². Where the unconstrained optimum has one
 * of them negative, that one is 0 and the other is fitted alone; where p and r are linearly
 * dependent, b is 0.
 */
struct normal_equations {
    double pp, pr, rr, pw, rw;
};

static void add_term(struct normal_equations *n, double v, double p, double r, double w)
{
    n->pp += v * p * p;
    n->pr += v * p * r;
    n->rr += v * r * r;
    n->pw += v * p * w;
    n->rw += v * r * w;
}

static void solve(const struct normal_equations *n, double *a, double *b)
{
    double determinant = n->pp * n->rr - n->pr * n->pr;
    *b = determinant > 0 ? fmax(0, (n->pr * n->pw - n->pp * n->rw) / determinant) : 0;
    *a = n->pp > 0 ? (n->pw + n->pr * *b) / n->pp : 0;
    if (!(*a > 0)) {
        *a = 0;
        *b = n->rr > 0 ? fmax(0, -n->rw / n->rr) : 0;
    }
}

static struct grid fit_codes(const struct sub_block *s, const uint8_t *codes)
{
    struct normal_equations n = {0};
    struct grid fit;
    for (int i = 0; i < Q4K_SUB_WEIGHTS; i++)
        add_term(&n, s->v[i], codes[i], 1, s->w[i]);
    solve(&n, &fit.scale, &fit.min);
    return fit;
}

static struct grid fit_sub_block(const struct sub_block *s)
{
    double low = 0, high = s->w[0];
    for (int i = 0; i < Q4K_SUB_WEIGHTS; i++) {
        low = fmin(low, s->w[i]);
        high = fmax(high, s->w[i]);
    }
    struct grid best = {(high - low) / Q4K_MAX_CODE, -low};
    if (!(high > low))
        return best;

    uint8_t codes[Q4K_SUB_WEIGHTS];
    double best_error = assign_codes(s, best, codes);
    for (int g = 0; g < GRIDS; g++) {
        double steps = Q4K_MAX_CODE - 1 + 0.1 * g; /* 14 to 16 over the range */
        assign_codes(s, (struct grid){(high - low) / steps, -low}, codes);
        for (int pass = 0; pass < PASSES; pass++) {
            struct grid fit = fit_codes(s, codes);
            double error = assign_codes(s, fit, codes);
            if (error < best_error) {
                best_error = error;
                best = fit;
            }
        }
    }
    return best;
}

/* The smallest f16 not below a value that f16 can hold. */
static uint16_t f16_at_least(double value)
{
    uint16_t bits = ptxgen_f64_to_f16(value);
    return ptxgen_f16_to_f32(bits) < value ? bits + 1 : bits;
}

static uint16_t f16_finite(double value)
{
    return ptxgen_f64_to_f16(fmin(value, 65504));
}

/* The best 6-bit scale and min that differ by at most 1 from the sub-block's own. */
static double choose_scales(const struct sub_block *s, struct grid own, struct q4k_block *block,
                            int j)
{
    double d = ptxgen_f16_to_f32(block->d), dmin = ptxgen_f16_to_f32(block->dmin);
    int scale = to_code(d > 0 ? own.scale / d : 0, Q4K_MAX_SCALE);
    int min = to_code(dmin > 0 ? own.min / dmin : 0, Q4K_MAX_SCALE);
    double best = INFINITY;
    for (int sc = scale - 1; sc <= scale + 1; sc++) {
        for (int m = min - 1; m <= min + 1; m++) {
            uint8_t codes[Q4K_SUB_WEIGHTS];
            if (sc < 0 || sc > Q4K_MAX_SCALE || m < 0 || m > Q4K_MAX_SCALE)
                continue;
            double error = assign_codes(s, (struct grid){d * sc, dmin * m}, codes);
            if (error >= best)
                continue;
            best = error;
            block->scale[j] = (uint8_t)sc;
            block->min[j] = (uint8_t)m;
            memcpy(block->code + j * Q4K_SUB_WEIGHTS, codes, sizeof codes);
        }
    }
    return best;
}

static void refit_block(const struct sub_block *subs, struct q4k_block *block)
{
    struct normal_equations n = {0};
    double d, dmin;
    for (int j = 0; j < Q4K_SUB_BLOCKS; j++)
        for (int i = 0; i < Q4K_SUB_WEIGHTS; i++)
            add_term(&n, subs[j].v[i], block->scale[j] * block->code[j * Q4K_SUB_WEIGHTS + i],
                     block->min[j], subs[j].w[i]);
    solve(&n, &d, &dmin);
    block->d = f16_finite(d);
    block->dmin = f16_finite(dmin);
}

static void quantise_block(const float *weights, uint8_t *bytes)
{
    struct sub_block subs[Q4K_SUB_BLOCKS];
    struct grid own[Q4K_SUB_BLOCKS];
    double max_scale = 0, max_min = 0;
    for (int j = 0; j < Q4K_SUB_BLOCKS; j++) {
        load_sub_block(weights + j * Q4K_SUB_WEIGHTS, &subs[j]);
        own[j] = fit_sub_block(&subs[j]);
        max_scale = fmax(max_scale, own[j].scale);
        max_min = fmax(max_min, own[j].min);
    }

    struct q4k_block trial, best;
    double best_error = INFINITY;
    trial.d = f16_at_least(fmin(max_scale / Q4K_MAX_SCALE, 65504));
    trial.dmin = f16_at_least(fmin(max_min / Q4K_MAX_SCALE, 65504));
    for (int round = 0; round <= REFITS; round++) {
        double error = 0;
        for (int j = 0; j < Q4K_SUB_BLOCKS; j++)
            error += choose_scales(&subs[j], own[j], &trial, j);
        if (error >= best_error)
            break;
        best_error = error;
        best = trial;
        refit_block(subs, &trial);
    }
    q4k_pack(&best, bytes);
}

ptxgen_status ptxgen_q4k_quantise_row(const float *weights, size_t k, void *row, ptxgen_error *err)
{
    size_t bytes;
    if (!weights || !row)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "q4k: weights or row is NULL");
    ptxgen_status status = ptxgen_q4k_row_bytes(k, &bytes, err);
    if (status != PTXGEN_OK)
        return status;
    for (size_t i = 0; i < k; i++)
        if (!(fabsf(weights[i]) <= PTXGEN_Q4K_MAX_WEIGHT))
            return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                               "weight %zu is %g; Q4_K takes finite weights up to %.0f", i,
                               (double)weights[i], (double)PTXGEN_Q4K_MAX_WEIGHT);
    uint8_t *block = row;
    for (size_t i = 0; i < k; i += PTXGEN_Q4K_BLOCK_WEIGHTS, block += PTXGEN_Q4K_BLOCK_BYTES)
        quantise_block(weights + i, block);
    return PTXGEN_OK;
}
