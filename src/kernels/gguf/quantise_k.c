/* SPDX-License-Identifier: Apache-2.0 */
/*
 * f32 to Q4_K, Q5_K and Q6_K, as ggml's quantize_row_*_ref do it: the same operations in f32, in
 * the same order, so that rows have the same bits.
 *
 * A group of weights is first taken by itself: from codes on a range of grids around the plain one,
 * the scale (and the minimum) that fits them best by weighted least squares, and of these the best.
 * Then scales and minima are rounded to multiples of the block's d and dmin, and codes are found
 * anew.
 */
#include "block.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 256 };
static const float least_extreme = 1e-15f; /* below, a group of Q6_K counts as zeros */

/* Rounded to nearest, ties to even, and clamped. */
static int nearest(float value, int least, int most)
{
    float rounded = rintf(value);
    return !(rounded > (float)least) ? least : rounded > (float)most ? most : (int)rounded;
}

/* ---- groups with a minimum: Q4_K and Q5_K ---- */

enum { GROUP = 32, GROUPS = BLOCK / GROUP, MOST_SCALE = 63 };

/* What the two types do not have in common. */
struct kind {
    int most;    /* code */
    float first; /* the first grid has so many steps more than codes, each next one 0.1 more */
    int grids;
};
static const struct kind four_bits = {15, -1, 21}, five_bits = {31, -0.5f, 16};

/* A group, and how much the error of each weight counts. */
struct group {
    const float *x;
    float w[GROUP];
    float least, largest;
    float sum_w, sum_x;
};

/* w ≈ scale·code + min, with min ≤ 0. */
struct fit {
    float scale, min;
};

static struct group weigh_group(const float *x)
{
    struct group g = {.x = x, .least = x[0], .largest = x[0]};
    float squares = 0;
    for (int i = 0; i < GROUP; i++)
        squares += x[i] * x[i];
    float rms = sqrtf(squares / GROUP);
    for (int i = 0; i < GROUP; i++) {
        g.w[i] = rms + fabsf(x[i]);
        g.least = x[i] < g.least ? x[i] : g.least;
        g.largest = x[i] > g.largest ? x[i] : g.largest;
        g.sum_w += g.w[i];
        g.sum_x += g.w[i] * x[i];
    }
    g.least = g.least > 0 ? 0 : g.least;
    return g;
}

/* Codes on a grid of so many steps from `min` to the largest weight. */
static void take_codes(const struct group *g, float steps, float min, int most, uint8_t *codes)
{
    float inverse = steps / (g->largest - min);
    for (int i = 0; i < GROUP; i++)
        codes[i] = (uint8_t)nearest(inverse * (g->x[i] - min), 0, most);
}

static float error_of(const struct group *g, struct fit fit, const uint8_t *codes)
{
    float error = 0;
    for (int i = 0; i < GROUP; i++) {
        float off = fit.scale * codes[i] + fit.min - g->x[i];
        error += g->w[i] * (off * off);
    }
    return error;
}

/* The fit by least squares; false where all codes are equal. */
static bool fit_codes(const struct group *g, const uint8_t *codes, struct fit *fit)
{
    float sum = 0, squares = 0, products = 0;
    for (int i = 0; i < GROUP; i++) {
        sum += g->w[i] * codes[i];
        squares += g->w[i] * codes[i] * codes[i];
        products += g->w[i] * codes[i] * g->x[i];
    }
    float determinant = g->sum_w * squares - sum * sum;
    if (!(determinant > 0))
        return false;
    fit->scale = (g->sum_w * products - g->sum_x * sum) / determinant;
    fit->min = (squares * g->sum_x - sum * products) / determinant;
    if (fit->min > 0) {
        fit->min = 0;
        fit->scale = products / squares;
    }
    return true;
}

static struct fit fit_group(const struct group *g, const struct kind *kind, uint8_t *codes)
{
    float most = (float)kind->most;
    struct fit best = {0, g->least};
    memset(codes, 0, GROUP);
    if (g->largest == g->least)
        return best;
    best.scale = 1 / (most / (g->largest - g->least));
    take_codes(g, most, g->least, kind->most, codes);
    float least_error = error_of(g, best, codes);
    for (int i = 0; i < kind->grids; i++) {
        uint8_t tried[GROUP];
        struct fit fit;
        take_codes(g, kind->first + 0.1f * (float)i + most, best.min, kind->most, tried);
        if (!fit_codes(g, tried, &fit))
            continue;
        float error = error_of(g, fit, tried);
        if (error < least_error) {
            least_error = error;
            best = fit;
            memcpy(codes, tried, GROUP);
        }
    }
    return best;
}

/* Six bits each of eight scales and eight minima, as gguf_types.h says. */
static void store_scales(const uint8_t *scale, const uint8_t *min, uint8_t *s)
{
    for (int j = 0; j < 4; j++) {
        s[j] = (uint8_t)(scale[j] | scale[j + 4] >> 4 << 6);
        s[j + 4] = (uint8_t)(min[j] | min[j + 4] >> 4 << 6);
        s[j + 8] = (uint8_t)((scale[j + 4] & 15) | (min[j + 4] & 15) << 4);
    }
}

/* d, dmin and the scales of a block, from its groups' fits. */
static void quantise_scales(const struct fit fits[GROUPS], uint8_t *bytes)
{
    float most_scale = 0, most_min = 0;
    uint8_t scale[GROUPS], min[GROUPS];
    for (int j = 0; j < GROUPS; j++) {
        most_scale = fits[j].scale > most_scale ? fits[j].scale : most_scale;
        most_min = -fits[j].min > most_min ? -fits[j].min : most_min;
    }
    float per_scale = most_scale > 0 ? MOST_SCALE / most_scale : 0;
    float per_min = most_min > 0 ? MOST_SCALE / most_min : 0;
    for (int j = 0; j < GROUPS; j++) {
        scale[j] = (uint8_t)nearest(per_scale * fits[j].scale, 0, MOST_SCALE);
        min[j] = (uint8_t)nearest(per_min * -fits[j].min, 0, MOST_SCALE);
    }
    gguf_store_f16(bytes, most_scale / MOST_SCALE);
    gguf_store_f16(bytes + 2, most_min / MOST_SCALE);
    store_scales(scale, min, bytes + 4);
}

/* Codes, and all of the block but its codes; `unpack` is the type's. */
static void quantise_block(const float *weights, const struct kind *kind,
                           void (*unpack)(const uint8_t *, struct gguf_block *), uint8_t *bytes,
                           uint8_t *codes)
{
    struct fit fits[GROUPS];
    struct gguf_block block;
    for (int j = 0; j < GROUPS; j++) {
        const struct group g = weigh_group(weights + GROUP * j);
        fits[j] = fit_group(&g, kind, codes + GROUP * j);
    }
    quantise_scales(fits, bytes);
    unpack(bytes, &block);
    for (int i = 0; i < BLOCK; i++) {
        float scale = block.scale[i / GROUP], min = block.min[i / GROUP];
        if (scale != 0)
            codes[i] = (uint8_t)nearest((weights[i] + min) / scale, 0, kind->most);
    }
}

static void store_nibbles(const uint8_t *codes, unsigned count, uint8_t *bytes)
{
    for (unsigned i = 0; i < count; i++)
        bytes[i] = (uint8_t)((codes[i] & 15) | (codes[count + i] & 15) << 4);
}

void gguf_quantise_q4_k(const float *weights, uint8_t *bytes)
{
    uint8_t codes[BLOCK];
    memset(bytes, 0, 144);
    quantise_block(weights, &four_bits, gguf_unpack_q4_k, bytes, codes);
    for (unsigned i = 0; i < 4; i++)
        store_nibbles(codes + 64 * i, 32, bytes + 16 + 32 * i);
}

void gguf_quantise_q5_k(const float *weights, uint8_t *bytes)
{
    uint8_t codes[BLOCK];
    memset(bytes, 0, 176);
    quantise_block(weights, &five_bits, gguf_unpack_q5_k, bytes, codes);
    for (unsigned i = 0; i < 4; i++)
        store_nibbles(codes + 64 * i, 32, bytes + 48 + 32 * i);
    for (unsigned i = 0; i < BLOCK; i++)
        bytes[16 + i % 32] = (uint8_t)(bytes[16 + i % 32] | codes[i] >> 4 << i / 32);
}

/* ---- groups around zero: Q6_K ---- */

enum { SMALL_GROUP = 16, HALF = 32 };

/* Sums for the scale that fits codes on the grid of `inverse` best. */
struct sums {
    float products, squares;
};

static struct sums sum_codes(const float *x, float inverse)
{
    struct sums s = {0, 0};
    for (int i = 0; i < SMALL_GROUP; i++) {
        float code = (float)nearest(inverse * x[i], -HALF, HALF - 1), w = x[i] * x[i];
        s.products += w * x[i] * code;
        s.squares += w * code * code;
    }
    return s;
}

static uint8_t signed_code(float value)
{
    return (uint8_t)(nearest(value, -HALF, HALF - 1) + HALF);
}

/* The best scale of a group, and its codes. */
static float fit_symmetric(const float *x, uint8_t *codes)
{
    float extreme = 0;
    for (int i = 0; i < SMALL_GROUP; i++)
        if (fabsf(x[i]) > fabsf(extreme))
            extreme = x[i];
    memset(codes, 0, SMALL_GROUP);
    if (fabsf(extreme) < least_extreme)
        return 0;
    float inverse = -HALF / extreme;
    struct sums s = sum_codes(x, inverse);
    float scale = s.squares != 0 ? s.products / s.squares : 0, best = scale * s.products;
    for (int i = -9; i <= 9; i++) {
        float tried = -((float)HALF + 0.1f * (float)i) / extreme;
        s = sum_codes(x, tried);
        if (i != 0 && s.squares > 0 && s.products * s.products > best * s.squares) {
            scale = s.products / s.squares;
            best = scale * s.products;
            inverse = tried;
        }
    }
    for (int i = 0; i < SMALL_GROUP; i++)
        codes[i] = signed_code(inverse * x[i]);
    return scale;
}

/* Codes, d and scales of a block; false where the block is zeros. */
static bool quantise_symmetric(const float *weights, uint8_t *bytes, uint8_t *codes)
{
    enum { SMALL_GROUPS = BLOCK / SMALL_GROUP };
    float scales[SMALL_GROUPS], extreme = 0;
    struct gguf_block block;
    for (int g = 0; g < SMALL_GROUPS; g++) {
        scales[g] = fit_symmetric(weights + SMALL_GROUP * g, codes + SMALL_GROUP * g);
        if (fabsf(scales[g]) > fabsf(extreme))
            extreme = scales[g];
    }
    if (fabsf(extreme) < least_extreme)
        return false;
    float inverse = -128 / extreme;
    gguf_store_f16(bytes + 208, 1 / inverse);
    for (int g = 0; g < SMALL_GROUPS; g++)
        bytes[192 + g] = (uint8_t)(int8_t)nearest(inverse * scales[g], -128, 127);
    gguf_unpack_q6_k(bytes, &block);
    for (int i = 0; i < BLOCK; i++)
        if (block.scale[i / SMALL_GROUP] != 0)
            codes[i] = signed_code(weights[i] / block.scale[i / SMALL_GROUP]);
    return true;
}

void gguf_quantise_q6_k(const float *weights, uint8_t *bytes)
{
    uint8_t codes[BLOCK];
    memset(bytes, 0, 210);
    if (!quantise_symmetric(weights, bytes, codes))
        return;
    for (unsigned half = 0; half < 2; half++) {
        const uint8_t *own = codes + 128 * half;
        store_nibbles(own, 64, bytes + 64 * half);
        for (unsigned i = 0; i < 128; i++) {
            uint8_t *high = &bytes[128 + 32 * half + i % 32];
            *high = (uint8_t)(*high | own[i] >> 4 << i / 32 * 2);
        }
    }
}
