/* SPDX-License-Identifier: Apache-2.0 */
#include "w8a8.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARG(member) offsetof(ptxgen_w8a8_args, member)

TILE_VERB(w8a8)
KERNEL_VERBS(w8a8, verb_use_tile);

static const char *const scale_names[] = {"dynamic", "tensor", "token", "quantised"};

static void name(const void *spec, uint64_t m, char *text, size_t size)
{
    const ptxgen_w8a8_spec *s = spec;
    char codes[24] = "";
    if (s->codes == PTXGEN_W8A8_E4M3)
        snprintf(codes, sizeof codes, " codes=e4m3%s", s->w_codes ? " w=e5m2" : "");
    else if (s->q_max && (s->q_min != -127 || s->q_max != 127))
        snprintf(codes, sizeof codes, " codes=%d..%d", s->q_min, s->q_max);
    snprintf(text, size, "K=%u N=%u M=%llu x=%s y=%s %s%s%s%s%s%s%s%s%s", s->k, s->n,
             (unsigned long long)m, element_type_names[s->x_type], element_type_names[s->y_type],
             scale_names[s->scales], s->group ? " groups" : "", s->asymmetric ? " asymmetric" : "",
             codes, s->epilogue ? " swiglu" : "", s->activation ? " " : "",
             s->activation ? activation_kind_names[s->activation] : "", s->bias ? " bias" : "",
             s->residual ? " residual" : "");
}

/* Rows of w, those of gate and of up with SwiGLU. */
static uint32_t weight_rows(const ptxgen_w8a8_spec *s)
{
    return s->epilogue == PTXGEN_EPILOGUE_SWIGLU ? 2 * s->n : s->n;
}

/* Scales of a token, and of a row of w or of a block of its features. */
static uint32_t groups_of(const ptxgen_w8a8_spec *s)
{
    return s->group ? (s->k + s->group - 1) / s->group : 1;
}
static uint64_t scale_rows(const ptxgen_w8a8_spec *s)
{
    uint64_t blocks = s->group ? ((uint64_t)s->n + s->group - 1) / s->group : s->n;
    return s->epilogue == PTXGEN_EPILOGUE_SWIGLU ? 2 * blocks : blocks;
}

static struct product product(const void *spec)
{
    const ptxgen_w8a8_spec *s = spec;
    return (struct product){.k = s->k,
                            .n = weight_rows(s),
                            .type = s->x_type == PTXGEN_BF16 ? PTXGEN_BF16 : PTXGEN_F16,
                            .e4m3 = s->codes == PTXGEN_W8A8_E4M3};
}

KEEP_VARIANT(w8a8, ptxgen_tile, true)

/* ---- operands ---- */

static unsigned operands(const void *plan, uint64_t m, struct operand *to)
{
    const ptxgen_w8a8_spec *s = plan;
    uint32_t aligned = ((const ptxgen_w8a8_plan *)plan)->copy_bytes;
    ptxgen_element work = ptxgen_w8a8_work_type(s);
    uint64_t given = s->scales == PTXGEN_W8A8_TENSOR ? 1 : m, rows = weight_rows(s);
    bool codes = s->scales == PTXGEN_W8A8_QUANTISED;
    int x_code = s->codes == PTXGEN_W8A8_E4M3 ? ELEMENT_E4M3 : ELEMENT_S8;
    double scale = s->w_codes ? 0x1p-14 : 0.01; /* of w, whose e5m2 codes are 128 times as large */
    const struct operand all[W8A8_OPERANDS] = {
        [W8A8_AT_X] = OPERAND_ROWS(x, X, true, m, s->k, codes ? x_code : s->x_type,
                                   .deviation = codes ? 0 : 1, .outliers = true),
        [W8A8_AT_W] =
            OPERAND("w", OPERAND_WEIGHTS, true, rows, s->k, s->w_codes ? ELEMENT_E5M2 : x_code,
                    ARG_AND_SIZE(w), .pitch = s->w_stride),
        [W8A8_AT_W_SCALE] = OPERAND_ROW(w_scale, INPUT, true, scale_rows(s) * groups_of(s), work,
                                        .mean = scale, .deviation = 0.4 * scale, .positive = true),
        [W8A8_AT_W_SUM] = OPERAND_ROW(w_sum, INPUT, s->asymmetric, rows, ELEMENT_S32),
        [W8A8_AT_BIAS] = OPERAND_ROW(bias, INPUT, s->bias, rows, work, .deviation = 2),
        [W8A8_AT_X_SCALE] = OPERAND_ROW(x_scale, INPUT, s->scales, given * groups_of(s), work,
                                        .mean = 0.03, .deviation = 0.01, .positive = true),
        [W8A8_AT_X_ZERO] =
            OPERAND_ROW(x_zero, INPUT, s->scales && s->asymmetric, given, ELEMENT_S32),
        [W8A8_AT_RESIDUAL] =
            OPERAND_ROWS(residual, RESIDUAL, s->residual, m, s->n, s->y_type, .deviation = 2),
        [W8A8_AT_Y] = OPERAND_ROWS(y, OUTPUT, true, m, s->n, s->y_type),
    };
    memcpy(to, all, sizeof all);
    for (int i = 0; i < W8A8_OPERANDS; i++)
        to[i].shift = i == W8A8_AT_W ? aligned : typed_bytes(to[i].type);
    return W8A8_OPERANDS;
}

/* ---- random numbers ---- */

void w8a8_sum_rows(struct problem *p)
{
    const ptxgen_w8a8_spec *s = p->plan;
    if (s->asymmetric)
        ptxgen_w8a8_row_sums(weight_rows(s), s->k, (const int8_t *)p->buffers[W8A8_AT_W].host,
                             s->w_stride, (int32_t *)(void *)p->buffers[W8A8_AT_W_SUM].host, NULL);
}

static int32_t random_code(struct random *r, const ptxgen_w8a8_spec *s)
{
    return s->q_min + (int32_t)random_below(r, (uint32_t)(s->q_max - s->q_min + 1));
}

/*
 * Turns those codes of a matrix that are NaN, or of e5m2 infinite, into numbers of the same sign
 * between 1 and 2; between its rows they stay. `first` is the magnitude of the first of them.
 */
static void clear_specials(const ptxgen_w8a8_spec *s, uint8_t first, unsigned char *rows,
                           uint64_t count, uint64_t stride)
{
    for (uint64_t row = 0; row < count && s->codes == PTXGEN_W8A8_E4M3; row++)
        for (uint32_t k = 0; k < s->k; k++) {
            uint8_t *code = rows + row * stride + k;
            if ((*code & 0x7F) >= first)
                *code = (uint8_t)(*code & ~0x40);
        }
}

enum { E4M3_NAN = 0x7F, E5M2_INFINITY = 0x7C /* and numbers above are NaN */ };

/* The caller's codes: those of s8 within the range; some tokens have a scale of NaN. */
static void fill_codes(struct problem *p, struct random *r)
{
    const ptxgen_w8a8_spec *s = p->plan;
    const struct buffer *x = &p->buffers[W8A8_AT_X], *scales = &p->buffers[W8A8_AT_X_SCALE];
    random_fill(r, x->host, x->bytes);
    for (uint64_t i = 0; i < x->bytes && s->codes == PTXGEN_W8A8_S8; i++)
        x->host[i] = (unsigned char)random_code(r, s);
    clear_specials(s, E4M3_NAN, x->host, p->m, p->strides[W8A8_AT_X]);
    if (p->m && random_below(r, 4) == 0)
        typed_store(PTXGEN_F32, scales->host,
                    random_below(r, (uint32_t)p->m) * (uint64_t)groups_of(s), NAN);
}

/*
 * Weights are all finite codes, but for an infinite one at times, and the bytes between rows all
 * codes. Of given scales, outputs of f64
 * are the sums themselves: scales are 1 and x is codes.
 */
static ptxgen_status fill(struct problem *p, struct random *r, ptxgen_error *err)
{
    const ptxgen_w8a8_spec *s = p->plan;
    const struct buffer *w = &p->buffers[W8A8_AT_W], *x_zero = &p->buffers[W8A8_AT_X_ZERO];
    (void)err;
    random_fill(r, w->host, w->bytes);
    if (random_below(r, 4) == 0)
        memset(w->host, 0x80, s->k); /* a row of −128, or of −0 */
    clear_specials(s, s->w_codes ? E5M2_INFINITY : E4M3_NAN, w->host, weight_rows(s), s->w_stride);
    if (s->w_codes && s->k && random_below(r, 4) == 0)
        w->host[random_below(r, weight_rows(s)) * (uint64_t)s->w_stride] = E5M2_INFINITY;
    if (s->scales == PTXGEN_W8A8_QUANTISED)
        fill_codes(p, r);
    w8a8_sum_rows(p);
    for (size_t i = 0; i < x_zero->bytes / sizeof(int32_t); i++)
        ((int32_t *)(void *)x_zero->host)[i] = random_code(r, s);
    if (!s->scales || s->y_type != PTXGEN_F64)
        return PTXGEN_OK;
    problem_fill_ones(p, W8A8_AT_W_SCALE);
    problem_fill_ones(p, W8A8_AT_X_SCALE);
    for (uint64_t row = 0; row < p->m; row++)
        for (uint32_t i = 0; i < s->k; i++)
            typed_store(s->x_type, p->buffers[W8A8_AT_X].host, row * p->strides[W8A8_AT_X] + i,
                        random_code(r, s));
    return PTXGEN_OK;
}

/* Down to where x, then its scale, is subnormal and then 0; up to where f32 ends. */
static const double factors[] = {0,        0x1p-148, 0x1p-144, 0x1p-130,
                                 0x1p-126, 0x1p-70,  0x1p-20,  0x1p110};

/* ---- the reference ---- */

enum { TOKENS = 8, FEATURES = BLOCK_OUTPUTS / TOKENS };

/* One token of a block: its outputs in y's type, their sums of products, and its scale. */
struct token {
    double y[FEATURES]; /* room for any type */
    int32_t sums[FEATURES];
    double bounds[FEATURES];
    ptxgen_spread spreads[FEATURES];
    ptxgen_w8a8_token at;
};

static ptxgen_status compute(const struct problem *p, const struct block *b, uint64_t row,
                             struct token *token, ptxgen_error *err)
{
    const ptxgen_w8a8_spec *s = p->plan;
    const ptxgen_w8a8_operands operands = {
        .x = p->buffers[W8A8_AT_X].host,
        .w = problem_at(p, W8A8_AT_W, 0, 0),
        .w_scale = p->buffers[W8A8_AT_W_SCALE].host,
        .bias = p->buffers[W8A8_AT_BIAS].host,
        .x_scale = p->buffers[W8A8_AT_X_SCALE].host,
        .x_zero = problem_at(p, W8A8_AT_X_ZERO, 0, 0),
        .x_stride = p->strides[W8A8_AT_X],
        .residual = problem_at(p, W8A8_AT_RESIDUAL, 0, 0),
        .residual_stride = p->strides[W8A8_AT_RESIDUAL],
        .m = p->m,
    };
    const size_t scale_bytes = groups_of(s) * sizeof(float); /* which stand before the codes */
    float *scales = malloc(scale_bytes + s->k);
    if (!scales)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for tokens' codes");
    int8_t *codes = (int8_t *)scales + scale_bytes;
    token->at.scales = scales;
    ptxgen_status status = ptxgen_w8a8_reference_codes(s, &operands, row, codes, &token->at, err);
    if (status == PTXGEN_OK && !ptxgen_w8a8_is_exact(s))
        status =
            ptxgen_w8a8_reference_bound(p->plan, &operands, codes, &token->at, b->column,
                                        b->columns, token->y, token->bounds, token->spreads, err);
    else if (status == PTXGEN_OK)
        status = ptxgen_w8a8_reference(s, &operands, codes, &token->at, b->column, b->columns,
                                       token->y, token->sums, err);
    free(scales);
    return status;
}

/* Where the spec is exact every bit is the kernel's, but a NaN's. */
static ptxgen_status reference(const struct problem *p, const struct block *b,
                               struct block_reference *r, ptxgen_error *err)
{
    const ptxgen_w8a8_spec *s = p->plan;
    ptxgen_element type = (ptxgen_element)s->y_type;
    ptxgen_status status = PTXGEN_OK;
    struct token token;
    r->exact = ptxgen_w8a8_is_exact(s);
    for (uint64_t row = 0; status == PTXGEN_OK && row < b->rows; row++) {
        status = compute(p, b, b->row + row, &token, err);
        for (uint32_t i = 0; status == PTXGEN_OK && i < b->columns; i++) {
            size_t at = row * b->columns + i;
            r->value[at] = r->exact ? ptxgen_element_load(type, token.y, i) : token.y[i];
            r->bound[at] = r->exact ? 0 : token.bounds[i];
            if (!r->exact)
                r->spread[at] = token.spreads[i];
        }
    }
    return status;
}

/*
 * The file's output, of the same codes, in double precision or in the kernel's four roundings: the
 * sum of products as a float, two scales and the bias. What it is rounded to at last comes on top;
 * where the spec is not exact, it is within a kernel's bound, doubled for each of the two.
 */
static ptxgen_status widen(const struct problem *p, const struct block *b,
                           struct block_reference *r, ptxgen_error *err)
{
    const ptxgen_w8a8_spec *s = p->plan;
    ptxgen_element work = ptxgen_w8a8_work_type(s);
    ptxgen_status status = PTXGEN_OK;
    struct token token;
    for (uint64_t row = 0; status == PTXGEN_OK && row < b->rows; row++) {
        status = compute(p, b, b->row + row, &token, err);
        for (uint32_t i = 0; status == PTXGEN_OK && i < b->columns; i++) {
            size_t at = row * b->columns + i, n = b->column + i;
            double y = r->value[at], bias = 0;
            r->bound[at] = isfinite(y) ? 4 * r->bound[at] : 0;
            if (!isfinite(y) || !r->exact)
                continue;
            double scale = ptxgen_element_load(work, p->buffers[W8A8_AT_W_SCALE].host, n);
            double product = token.sums[i] * token.at.scale * scale;
            if (s->bias)
                bias = ptxgen_element_load(work, p->buffers[W8A8_AT_BIAS].host, n);
            r->bound[at] = 0x1p-21 * (fabs(product) + fabs(bias)) + fabs(y - (product + bias));
        }
    }
    return status;
}

/* ---- a random problem ---- */

/* Rows of W that start at multiples of 16, 8, 4 or 1 bytes, padded now and then. */
static void draw_shape(struct random *r, bool small, ptxgen_w8a8_spec *s)
{
    static const uint32_t units[] = {128, 16, 8, 4, 1};
    uint32_t most = small ? 600 : random_below(r, 3) ? 4096 : 30000;
    uint32_t unit = units[random_below(r, 5)];
    s->k = unit * (1 + random_below(r, most / unit));
    s->n = 1 + random_below(r, small ? 300 : most);
    if (random_below(r, 3) == 0)
        s->n = (s->n + 63) / 64 * 64;
    uint32_t deep = random_deep_k(r, unit);
    if (deep) {
        s->k = deep;
        s->n = 1 + random_below(r, RANDOM_DEEP_FEATURES);
    }
    if (random_below(r, 4) == 0)
        s->w_stride = s->k + random_below(r, 40);
    else if (random_below(r, 4) == 0)
        s->w_stride = ptxgen_w8a8_stride(s->k);
}

/* Of a size that the reference does in a second; often only the variants that serve m. */
static uint32_t draw(struct random *r, bool small, const ptxgen_target *target, void *spec)
{
    static const int16_t ranges[][2] = {{0, 0},  {-127, 127}, {-128, 127},
                                        {-7, 7}, {-64, 127},  {0, 127}};
    const int16_t *range = ranges[random_below(r, sizeof ranges / sizeof *ranges)];
    ptxgen_w8a8_spec *s = spec;
    s->q_min = range[0];
    s->q_max = range[1];
    draw_shape(r, small, s);
    s->x_type = (uint8_t)random_below(r, 4);
    s->y_type = (uint8_t)random_below(r, 4);
    s->scales = random_below(r, 2) ? PTXGEN_W8A8_DYNAMIC : (uint8_t)random_below(r, 4);
    s->asymmetric = (uint8_t)random_below(r, 2);
    s->bias = (uint8_t)random_below(r, 2);
    if (random_below(r, 2)) {
        s->residual = (uint8_t)random_below(r, 2);
        s->activation = (uint8_t)random_below(r, PTXGEN_ACTIVATION_RELU + 1);
        s->epilogue = s->activation == PTXGEN_ACTIVATION_NONE && random_below(r, 2);
        s->x_type = s->x_type == PTXGEN_F64 ? PTXGEN_F32 : s->x_type;
        s->y_type = s->y_type == PTXGEN_F64 ? PTXGEN_F32 : s->y_type;
    }
    if (s->epilogue)
        s->n = (s->n + 7) / 8 * 8;
    if (s->scales == PTXGEN_W8A8_QUANTISED && s->y_type == PTXGEN_F64)
        s->y_type = PTXGEN_BF16;
    if (target->ptx.sm >= 89 && random_below(r, 3) == 0) {
        s->codes = PTXGEN_W8A8_E4M3;
        s->q_min = s->q_max = s->asymmetric = 0;
        s->x_type = s->x_type == PTXGEN_F64 ? PTXGEN_F16 : s->x_type;
        s->y_type = s->y_type == PTXGEN_F64 ? PTXGEN_F16 : s->y_type;
        if (s->scales == PTXGEN_W8A8_DYNAMIC || s->scales == PTXGEN_W8A8_QUANTISED)
            s->group = random_below(r, 2) ? PTXGEN_W8A8_GROUP : 0;
        s->w_codes = random_below(r, 3) ? 0 : PTXGEN_W8A8_E5M2;
    }
    uint64_t products = (small ? 1u << 21 : 1u << 31) / ((uint64_t)s->k * weight_rows(s));
    uint32_t m = random_launch_rows(r, small, products);
    if (random_below(r, 2)) {
        s->max_m = m + 1 + random_below(r, 3);
        s->min_m = m - random_below(r, m + 1);
    }
    return m;
}

static bool poisons_workspace(const void *plan)
{
    return ((const ptxgen_w8a8_spec *)plan)->scales != PTXGEN_W8A8_QUANTISED;
}

const struct harness w8a8_harness = {
    HARNESS_MEMBERS(w8a8),
    HARNESS_WORKSPACE,
    .overlap = ARG(overlap_previous),
    .poisons_workspace = poisons_workspace,
    .fill = fill,
    HARNESS_FACTORS,
    .block_rows = TOKENS,
    .block_columns = FEATURES,
    .widen = widen,
};
