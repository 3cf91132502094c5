/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor_dot.h"

#include "host_vector.h"

#include <math.h>
#include <string.h>

enum {
    COLUMNS = EMU_TILE_COLUMNS,
    LEAST_EXPONENT = -126, /* of an addend */
    /* The vector path multiplies floats: it needs E ≥ FAST_LEAST, so that 2^(F - E) is a
     * float, and products that do not overflow. Other tiles take the scalar path. */
    FAST_LEAST = -100,
    FAST_MOST = 125,
    PARTIAL = 16 /* products below 4·2^25 that an int32_t can add up */
};

emu_numerics emu_numerics_of_sm(unsigned sm)
{
    if (sm >= 120)
        return EMU_NUMERICS_RTX_BLACKWELL;
    if (sm >= 100)
        return EMU_NUMERICS_BLACKWELL;
    if (sm >= 90)
        return EMU_NUMERICS_HOPPER;
    return sm == 89 ? EMU_NUMERICS_ADA : EMU_NUMERICS_AMPERE;
}

emu_dot_rule emu_dot_rule_of(emu_numerics numerics, emu_element a, emu_element d, bool wgmma)
{
    static const struct {
        uint8_t fraction_bits, step_bytes;
    } unit[] = {
        [EMU_NUMERICS_EXACT] = {0, 32},      [EMU_NUMERICS_AMPERE] = {24, 16},
        [EMU_NUMERICS_ADA] = {24, 16},       [EMU_NUMERICS_HOPPER] = {25, 32},
        [EMU_NUMERICS_BLACKWELL] = {25, 32}, [EMU_NUMERICS_RTX_BLACKWELL] = {25, 32},
    };
    emu_dot_rule rule = {
        .exact = numerics == EMU_NUMERICS_EXACT,
        .f16_result = d == EMU_F16,
        .fraction_bits = unit[numerics].fraction_bits,
        .kept_bits = 23,
        .step = (uint8_t)(unit[numerics].step_bytes * 8 / emu_element_bits(a)),
    };
    if (rule.exact)
        rule.step = EMU_DOT_MAX_TERMS;
    if (rule.exact || !emu_element_is_fp8(a))
        return rule;
    bool hopper_like = numerics == EMU_NUMERICS_HOPPER || numerics == EMU_NUMERICS_BLACKWELL;
    if (hopper_like && !wgmma) {
        rule.widened_pairs = true;
    } else if (numerics == EMU_NUMERICS_ADA || numerics == EMU_NUMERICS_HOPPER) {
        rule.fraction_bits = 13;
        rule.kept_bits = 13;
    }
    return rule;
}

/** Where the term at `position` of the widened order stands in K: pairs 0, 2, 4 … 1, 3, 5 …. */
static unsigned widened_source(unsigned position, unsigned terms)
{
    unsigned half = terms / 2;
    unsigned odd = position >= half;
    unsigned within = position - odd * half;
    return within / 2 * 4 + odd * 2 + within % 2;
}

/** fp8 to f16, which holds every fp8 value; fp8 subnormals become normal numbers. */
static void widen(emu_element type, const uint32_t *bits, unsigned count, uint32_t *f16)
{
    for (unsigned i = 0; i < count; i++) {
        float value;
        int16_t exponent;
        emu_decoded_range range = {false, EMU_ZERO_EXPONENT};
        emu_decode(type, &bits[i], 1, &value, &exponent, &range);
        f16[i] = emu_f16_round(value);
    }
}

static void load_widened_a(emu_element type, const uint32_t *bits, const uint8_t *depth,
                           emu_dot_a *out)
{
    enum { MAX = EMU_TILE_ROWS * EMU_DOT_MAX_TERMS };
    uint32_t f16[MAX], reordered[MAX];
    const unsigned terms = out->terms;
    widen(type, bits, EMU_TILE_ROWS * terms, f16);
    for (unsigned i = 0; i < EMU_TILE_ROWS * terms; i++) {
        unsigned source = i / terms * terms + widened_source(i % terms, terms);
        reordered[i] = f16[source];
        out->depth[i] = depth ? depth[source] : (uint8_t)(source % terms);
    }
    emu_decode(EMU_F16, reordered, EMU_TILE_ROWS * terms, out->value, out->exponent, &out->range);
}

void emu_dot_load_a(const emu_dot_rule *rule, emu_element type, const uint32_t *bits,
                    const uint8_t *depth, unsigned terms, emu_dot_a *out)
{
    out->terms = terms;
    out->dense = !depth && !rule->widened_pairs;
    out->range = (emu_decoded_range){false, EMU_ZERO_EXPONENT};
    if (rule->widened_pairs) {
        load_widened_a(type, bits, depth, out);
        return;
    }
    if (depth)
        memcpy(out->depth, depth, EMU_TILE_ROWS * terms);
    emu_decode(type, bits, EMU_TILE_ROWS * terms, out->value, out->exponent, &out->range);
}

void emu_dot_load_b(const emu_dot_rule *rule, emu_element type, const uint32_t *bits, unsigned rows,
                    emu_dot_b *out)
{
    uint32_t f16[EMU_DOT_MAX_DEPTH * COLUMNS];
    if (rule->widened_pairs) {
        widen(type, bits, rows * COLUMNS, f16);
        bits = f16;
        type = EMU_F16;
    }
    out->range = (emu_decoded_range){false, EMU_ZERO_EXPONENT};
    emu_decode(type, bits, rows * COLUMNS, out->value[0], out->exponent[0], &out->range);
}

/* ---- scalar path: one output, any values ---- */

/** NaN or ±∞ when a term is not finite, else 0. */
static float special_sum(const emu_dot_terms *terms)
{
    float sum = isfinite(terms->c) ? 0 : terms->c;
    for (unsigned i = 0; i < terms->count; i++) {
        if (!isfinite(terms->a[i]) || !isfinite(terms->b[i]))
            sum += terms->a[i] * terms->b[i];
    }
    return sum;
}

/* A sum that rounds to zero is +0 (seen on an H100 in mma and wgmma). */
static uint32_t round_f16(double value)
{
    uint32_t bits = emu_f16_round(value);
    return bits & 0x7fff ? bits : 0;
}

static uint32_t round_result(const emu_dot_rule *rule, double value)
{
    if (rule->f16_result)
        return round_f16(value);
    uint32_t bits = emu_f32_truncate(value, rule->kept_bits);
    return bits << 1 ? bits : 0;
}

static double truncated_sum(const emu_dot_terms *terms, int fraction_bits)
{
    int largest = 2 * EMU_ZERO_EXPONENT;
    if (terms->c != 0)
        largest = terms->c_exponent > LEAST_EXPONENT ? terms->c_exponent : LEAST_EXPONENT;
    for (unsigned i = 0; i < terms->count; i++)
        largest = terms->exponent[i] > largest ? terms->exponent[i] : largest;
    double sum = trunc(ldexp(terms->c, fraction_bits - largest));
    for (unsigned i = 0; i < terms->count; i++)
        sum += trunc(ldexp((double)terms->a[i] * terms->b[i], fraction_bits - largest));
    return sum == 0 ? 0 : ldexp(sum, largest - fraction_bits);
}

static uint32_t dot_terms(const emu_dot_rule *rule, const emu_dot_terms *terms)
{
    float special = special_sum(terms);
    if (special != 0)
        return rule->f16_result ? emu_f16_round(special) : emu_f32_truncate(special, 23);
    if (rule->exact)
        return emu_dot_exact(terms, rule->f16_result);
    return round_result(rule, truncated_sum(terms, rule->fraction_bits));
}

/** Terms first … first + count - 1 of every row. */
typedef struct dot_step {
    const emu_dot_rule *rule;
    const emu_dot_a *a;
    const emu_dot_b *b;
    unsigned first, count;
} dot_step;

EMU_INLINE unsigned row_start(const dot_step *step, unsigned row)
{
    return row * step->a->terms + step->first;
}

/** The row of B that term `i` of a step meets. */
EMU_INLINE unsigned depth_of(const dot_step *step, unsigned row, unsigned i)
{
    return step->a->dense ? step->first + i : step->a->depth[row_start(step, row) + i];
}

static uint32_t dot_scalar(const dot_step *step, unsigned row, unsigned column, float c,
                           int c_exponent)
{
    emu_dot_terms terms = {.count = step->count, .c = c, .c_exponent = c_exponent};
    const unsigned start = row_start(step, row);
    for (unsigned i = 0; i < step->count; i++) {
        unsigned k = depth_of(step, row, i);
        terms.a[i] = step->a->value[start + i];
        terms.b[i] = step->b->value[k][column];
        terms.exponent[i] = step->a->exponent[start + i] + step->b->exponent[k][column];
    }
    return dot_terms(step->rule, &terms);
}

/* ---- vector path: the eight outputs of a row, finite values in float's range ---- */

/** Largest exponent of the products of each column; EMU_NO_EXPONENT or less when all are 0. */
EMU_INLINE void largest_products(const dot_step *step, unsigned row, unsigned count, bool dense,
                                 int16_t out[COLUMNS])
{
    const int16_t *ea = step->a->exponent + row_start(step, row);
    const uint8_t *depth = step->a->depth + row_start(step, row);
    const int16_t(*b)[COLUMNS] = step->b->exponent + (dense ? step->first : 0);
    emu_s16x8 largest = (emu_s16x8){0} + 2 * EMU_ZERO_EXPONENT;
    for (unsigned i = 0; i < count; i++) {
        emu_s16x8 eb;
        memcpy(&eb, b[dense ? i : depth[i]], sizeof eb);
        emu_max_s16x8(&largest, eb + ea[i]);
    }
    memcpy(out, &largest, sizeof largest);
}

/** Smallest exponent of the products that are not 0. */
static void smallest_products(const dot_step *step, unsigned row, int16_t out[COLUMNS])
{
    const int16_t *ea = step->a->exponent + row_start(step, row);
    int16_t smallest[COLUMNS];
    for (unsigned j = 0; j < COLUMNS; j++)
        smallest[j] = -EMU_ZERO_EXPONENT;
    for (unsigned i = 0; i < step->count; i++) {
        const int16_t *eb = step->b->exponent[depth_of(step, row, i)];
        for (unsigned j = 0; j < COLUMNS; j++) {
            int16_t e = (int16_t)(ea[i] + eb[j]);
            e = e < EMU_NO_EXPONENT ? -EMU_ZERO_EXPONENT : e;
            smallest[j] = e < smallest[j] ? e : smallest[j];
        }
    }
    memcpy(out, smallest, sizeof smallest);
}

EMU_INLINE double power_of_two(int exponent)
{
    uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/** Sums of the addend and the products, each cut to a multiple of 1 / scale, times scale. */
EMU_INLINE void scaled_sums(const dot_step *step, unsigned row, unsigned count, bool dense,
                            const float c[COLUMNS], const float scale[COLUMNS], double sum[COLUMNS])
{
    const float *a = step->a->value + row_start(step, row);
    const uint8_t *depth = step->a->depth + row_start(step, row);
    const float(*b)[COLUMNS] = step->b->value + (dense ? step->first : 0);
    emu_f32x8 factor;
    memcpy(&factor, scale, sizeof factor);
    for (unsigned j = 0; j < COLUMNS; j++)
        sum[j] = (double)(int32_t)(c[j] * scale[j]);
    for (unsigned i = 0; i < count; i += PARTIAL) {
        unsigned end = i + PARTIAL < count ? i + PARTIAL : count;
        emu_s32x8 partial = {0};
        for (unsigned k = i; k < end; k++) {
            emu_f32x8 line;
            memcpy(&line, b[dense ? k : depth[k]], sizeof line);
            partial += __builtin_convertvector(line * a[k] * factor, emu_s32x8);
        }
        for (unsigned j = 0; j < COLUMNS; j++)
            sum[j] += (double)partial[j];
    }
}

/** The f32 truncation of emu_f32_truncate without its subnormal case, eight at a time. */
EMU_INLINE void truncate_row(const double value[COLUMNS], unsigned kept_bits, uint32_t out[COLUMNS])
{
    const uint64_t mask = ~0ull << (52 - kept_bits);
    for (unsigned j = 0; j < COLUMNS; j++) {
        uint64_t bits;
        memcpy(&bits, &value[j], sizeof bits);
        bits &= mask;
        double cut;
        memcpy(&cut, &bits, sizeof cut);
        out[j] = emu_f32_bits((float)cut);
    }
}

/** `top`: the largest exponent of all terms. Outputs where it is below FAST_LEAST come out wrong.
 */
EMU_INLINE void model_row(const dot_step *step, unsigned row, unsigned count, bool dense,
                          const float c[COLUMNS], int16_t top[COLUMNS], uint32_t out[COLUMNS])
{
    const int fraction_bits = step->rule->fraction_bits;
    int16_t largest[COLUMNS];
    float scale[COLUMNS];
    double sum[COLUMNS];
    largest_products(step, row, count, dense, largest);
    for (unsigned j = 0; j < COLUMNS; j++)
        largest[j] = top[j] > largest[j] ? top[j] : largest[j];
    memcpy(top, largest, sizeof largest);
    for (unsigned j = 0; j < COLUMNS; j++)
        largest[j] = largest[j] > FAST_LEAST ? largest[j] : FAST_LEAST;
    for (unsigned j = 0; j < COLUMNS; j++)
        scale[j] = emu_f32_of_bits((uint32_t)(fraction_bits - largest[j] + 127) << 23);
    scaled_sums(step, row, count, dense, c, scale, sum);
    for (unsigned j = 0; j < COLUMNS; j++)
        sum[j] *= power_of_two(largest[j] - fraction_bits);
    if (step->rule->f16_result) {
        for (unsigned j = 0; j < COLUMNS; j++)
            out[j] = round_f16(sum[j]);
    } else {
        truncate_row(sum, step->rule->kept_bits, out);
    }
}

/** All rows; returns the smallest exponent that is the largest of an output with terms. `top`
 * holds the exponents of the addends, and then the largest of all terms. */
EMU_WIDE static int16_t model_rows(const dot_step *step, float c[EMU_TILE_ROWS][COLUMNS],
                                   int16_t top[EMU_TILE_ROWS][COLUMNS], emu_tile *tile)
{
    enum { OFTEN = 16 }; /* Hopper's f16 and bf16 */
    const unsigned count = step->count;
    if (step->a->dense && count == OFTEN) {
        for (unsigned row = 0; row < EMU_TILE_ROWS; row++)
            model_row(step, row, OFTEN, true, c[row], top[row], tile->at[row]);
    } else {
        for (unsigned row = 0; row < EMU_TILE_ROWS; row++)
            model_row(step, row, count, step->a->dense, c[row], top[row], tile->at[row]);
    }
    int16_t least = 0;
    for (unsigned row = 0; row < EMU_TILE_ROWS; row++)
        for (unsigned j = 0; j < COLUMNS; j++) {
            int16_t e = top[row][j] > EMU_NO_EXPONENT ? top[row][j] : 0;
            least = e < least ? e : least;
        }
    return least;
}

static void model_tile(const dot_step *step, float c[EMU_TILE_ROWS][COLUMNS],
                       int16_t c_exponent[EMU_TILE_ROWS][COLUMNS], emu_tile *tile)
{
    int16_t top[EMU_TILE_ROWS][COLUMNS];
    memcpy(top, c_exponent, sizeof top);
    if (model_rows(step, c, top, tile) >= FAST_LEAST)
        return;
    for (unsigned row = 0; row < EMU_TILE_ROWS; row++)
        for (unsigned j = 0; j < COLUMNS; j++)
            if (top[row][j] < FAST_LEAST)
                tile->at[row][j] = dot_scalar(step, row, j, c[row][j], c_exponent[row][j]);
}

/** Adds in double where no addition can round, and falls back where the terms spread too far. */
static void exact_row(const dot_step *step, unsigned row, const float c[COLUMNS],
                      const int16_t c_exponent[COLUMNS], uint32_t out[COLUMNS])
{
    enum { PRODUCT_FRACTION = 20, ADDEND_FRACTION = 23, CARRY = 8, DOUBLE_DIGITS = 53 };
    int16_t largest[COLUMNS], smallest[COLUMNS];
    double sum[COLUMNS];
    largest_products(step, row, step->count, step->a->dense, largest);
    smallest_products(step, row, smallest);
    for (unsigned j = 0; j < COLUMNS; j++)
        sum[j] = c[j];
    for (unsigned i = 0; i < step->count; i++) {
        double a = step->a->value[row_start(step, row) + i];
        const float *b = step->b->value[depth_of(step, row, i)];
        for (unsigned j = 0; j < COLUMNS; j++)
            sum[j] += a * b[j];
    }
    for (unsigned j = 0; j < COLUMNS; j++) {
        int top = c_exponent[j] > largest[j] ? c_exponent[j] : largest[j];
        int bottom = smallest[j] - PRODUCT_FRACTION;
        if (c_exponent[j] > EMU_NO_EXPONENT && c_exponent[j] - ADDEND_FRACTION < bottom)
            bottom = c_exponent[j] - ADDEND_FRACTION;
        if (top + CARRY - bottom > DOUBLE_DIGITS)
            out[j] = dot_scalar(step, row, j, c[j], c_exponent[j]);
        else if (step->rule->f16_result)
            out[j] = emu_f16_round(sum[j] + 0.0);
        else
            out[j] = emu_f32_bits((float)(sum[j] + 0.0));
    }
}

static void dot_tile_step(const dot_step *step, emu_tile *tile)
{
    float c[EMU_TILE_ROWS][COLUMNS];
    int16_t c_exponent[EMU_TILE_ROWS][COLUMNS];
    emu_decoded_range range = {false, EMU_ZERO_EXPONENT};
    emu_decode(step->rule->f16_result ? EMU_F16 : EMU_F32, tile->at[0], EMU_TILE_ROWS * COLUMNS,
               c[0], c_exponent[0], &range);
    bool scalar = range.special || step->a->range.special || step->b->range.special ||
                  step->a->range.max_exponent + step->b->range.max_exponent > FAST_MOST;
    if (!scalar && !step->rule->exact) {
        model_tile(step, c, c_exponent, tile);
        return;
    }
    for (unsigned row = 0; row < EMU_TILE_ROWS; row++) {
        if (scalar) {
            for (unsigned j = 0; j < COLUMNS; j++)
                tile->at[row][j] = dot_scalar(step, row, j, c[row][j], c_exponent[row][j]);
        } else {
            exact_row(step, row, c[row], c_exponent[row], tile->at[row]);
        }
    }
}

/** The separate addition that ends a widened fp8 operation: add.f32 or add.f16, nearest even. */
static void add_tile(bool f16, const emu_tile *addend, emu_tile *tile)
{
    for (unsigned i = 0; i < EMU_TILE_ROWS * COLUMNS; i++) {
        uint32_t x = addend->at[i / COLUMNS][i % COLUMNS];
        uint32_t *y = &tile->at[i / COLUMNS][i % COLUMNS];
        if (f16) {
            *y = emu_f16_round((double)emu_f16_value(x) + emu_f16_value(*y));
        } else {
            float sum = emu_f32_of_bits(x) + emu_f32_of_bits(*y);
            *y = isnan(sum) ? EMU_F32_NAN : emu_f32_bits(sum);
        }
    }
}

void emu_dot(const emu_dot_rule *rule, const emu_dot_a *a, const emu_dot_b *b, emu_tile *tile)
{
    emu_tile addend = *tile;
    if (rule->widened_pairs)
        memset(tile, 0, sizeof *tile);
    unsigned size = rule->widened_pairs ? a->terms / 2 : rule->step;
    for (unsigned first = 0; first < a->terms; first += size) {
        unsigned left = a->terms - first;
        dot_step step = {rule, a, b, first, left < size ? left : size};
        dot_tile_step(&step, tile);
    }
    if (rule->widened_pairs)
        add_tile(rule->f16_result, &addend, tile);
}
