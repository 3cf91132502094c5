/* SPDX-License-Identifier: Apache-2.0 */
#include "gguf_linear.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARG(member) offsetof(ptxgen_gguf_linear_args, member)
enum { MATRICES = PTXGEN_GGUF_LINEAR_MATRICES };

KERNEL_VERBS(gguf_linear, NULL);

unsigned gguf_linear_matrices(const ptxgen_gguf_linear_spec *s)
{
    return s->n[2] ? 3 : s->n[1] ? 2 : 1;
}

static unsigned outputs_of(const ptxgen_gguf_linear_spec *s)
{
    return s->epilogue ? 1 : gguf_linear_matrices(s);
}

static void name(const void *spec, uint64_t m, char *text, size_t size)
{
    static const char *const epilogues[] = {"", " swiglu", " geglu"};
    static const char *const residuals[] = {"", " residual", " residual-after"};
    const ptxgen_gguf_linear_spec *s = spec;
    char w[96], norm[32] = "", compute[16] = "";
    int used = 0;
    for (unsigned i = 0; i < gguf_linear_matrices(s); i++) {
        const ptxgen_gguf_type_info *type = ptxgen_gguf_type_find(s->w_type[i]);
        used += snprintf(w + used, sizeof w - (size_t)used, "%s%u:%s", i ? "," : "", s->n[i],
                         type ? type->name : "?");
    }
    if (s->norm || s->residual == PTXGEN_GGUF_LINEAR_AFTER)
        snprintf(norm, sizeof norm, "%s eps=%g", s->norm ? " rmsnorm" : "", (double)s->epsilon);
    if (s->compute)
        snprintf(compute, sizeof compute, " compute=%s", element_type_names[s->compute]);
    snprintf(text, size, "K=%u N=%s M=%llu x=%s y=%s%s%s%s%s%s%s", s->k, w, (unsigned long long)m,
             element_type_names[s->x_type], element_type_names[s->y_type], compute, norm,
             residuals[s->residual], s->residual_out ? " residual-out" : "", s->bias ? " bias" : "",
             epilogues[s->epilogue]);
}

static struct product product(const void *spec)
{
    const ptxgen_gguf_linear_spec *s = spec;
    return (struct product){.k = s->k,
                            .n = s->n[0] + s->n[1] + s->n[2],
                            .type = s->x_type == PTXGEN_BF16 ? PTXGEN_BF16 : PTXGEN_F16};
}

/* The plan of one variant, or of one tile of more tokens. */
static bool keep(void *plan, uint64_t m, struct chosen *chosen)
{
    ptxgen_gguf_linear_plan *p = plan;
    const ptxgen_gguf_linear_variant *v = ptxgen_gguf_linear_choose(p, m);
    const ptxgen_tile *tile = ptxgen_gguf_linear_choose_inflated(p, m);
    const ptxgen_tile *direct = ptxgen_gguf_linear_choose_direct(p, m);
    if (direct) {
        *chosen = (struct chosen){ptxgen_gguf_linear_direct_entry(direct), NULL,
                                  direct->shared_bytes, false};
        p->direct[0] = *direct;
        p->direct_count = 1;
        p->variant_count = 0;
    } else if (tile) {
        *chosen = (struct chosen){ptxgen_gguf_linear_inflated_entry(tile), NULL, tile->shared_bytes,
                                  false};
        p->inflated.variants[0] = *tile;
        p->inflated.variant_count = 1;
        p->variant_count = 0;
    } else if (v) {
        *chosen = (struct chosen){ptxgen_gguf_linear_entry(v), p->variants, v->shared_bytes, true};
        p->variants[0] = *v;
        p->variant_count = 1;
        p->inflated = (ptxgen_dense_plan){.variant_count = 0};
        p->direct_count = 0;
    }
    return direct || tile || v;
}

static bool poisons_workspace(const void *plan)
{
    (void)plan;
    return true;
}

/* A launch leaves nothing in the workspace that the next one reads. */
static ptxgen_status flags(const struct problem *p, uint32_t *count, ptxgen_error *err)
{
    (void)p, (void)err;
    *count = 0;
    return PTXGEN_OK;
}

/* ---- operands ---- */

/* The types, and where a block has f16 scales; blocks of MXFP4 begin with an exponent. */
static const struct block_scales {
    uint8_t type;
    int f16[2]; /* offsets; −1: none */
} block_scales[] = {
    {PTXGEN_GGUF_F32, {-1, -1}},   {PTXGEN_GGUF_F16, {0, -1}},    {PTXGEN_GGUF_Q4_0, {0, -1}},
    {PTXGEN_GGUF_Q4_1, {0, 2}},    {PTXGEN_GGUF_Q5_0, {0, -1}},   {PTXGEN_GGUF_Q5_1, {0, 2}},
    {PTXGEN_GGUF_Q8_0, {0, -1}},   {PTXGEN_GGUF_Q2_K, {80, 82}},  {PTXGEN_GGUF_Q3_K, {108, -1}},
    {PTXGEN_GGUF_Q4_K, {0, 2}},    {PTXGEN_GGUF_Q5_K, {0, 2}},    {PTXGEN_GGUF_Q6_K, {208, -1}},
    {PTXGEN_GGUF_IQ4_NL, {0, -1}}, {PTXGEN_GGUF_IQ4_XS, {0, -1}}, {PTXGEN_GGUF_BF16, {-1, -1}},
    {PTXGEN_GGUF_MXFP4, {-1, -1}},
};
enum { TYPES = sizeof block_scales / sizeof *block_scales };

int gguf_linear_type_at(size_t index)
{
    return index < TYPES ? block_scales[index].type : -1;
}

/* An f16 of either sign with a random fraction and an exponent from −13 to −10. */
static void random_f16(struct random *r, unsigned char *to)
{
    uint32_t bits = (uint32_t)random_bits(r);
    uint32_t half = (bits & 0x8000) | (2 + (bits >> 10 & 3)) << 10 | (bits & 0x3FF);
    to[0] = (unsigned char)half;
    to[1] = (unsigned char)(half >> 8);
}

/* The upper half of an f32, or a bf16, like random_f16. */
static void random_bf16(struct random *r, unsigned char *to)
{
    uint32_t bits = (uint32_t)random_bits(r);
    uint32_t upper = (bits & 0x8000) | (114 + (bits >> 7 & 3)) << 7 | (bits & 0x7F);
    to[0] = (unsigned char)upper;
    to[1] = (unsigned char)(upper >> 8);
}

/* Blocks of random bits but for their factors, and floats. */
static ptxgen_status random_weights(const struct operand *o, const void *plan, struct random *r,
                                    void *bytes, ptxgen_error *err)
{
    const ptxgen_gguf_linear_spec *s = plan;
    const uint8_t type = s->w_type[(o->address - ARG(w)) / 8];
    const size_t block_bytes = ptxgen_gguf_type_find(type)->block_bytes;
    const struct block_scales *scales = block_scales;
    unsigned char *block = bytes, *end = block + operand_net_bytes(o);
    (void)err;
    while (scales->type != type)
        scales++;
    for (; block < end; block += block_bytes) {
        random_fill(r, block, block_bytes);
        for (int i = 0; i < 2; i++)
            if (scales->f16[i] >= 0)
                random_f16(r, block + scales->f16[i]);
        if (type == PTXGEN_GGUF_F32 || type == PTXGEN_GGUF_BF16)
            random_bf16(r, block + (type == PTXGEN_GGUF_F32 ? 2 : 0));
        if (type == PTXGEN_GGUF_MXFP4)
            block[0] = (unsigned char)(118 + random_below(r, 8));
    }
    return PTXGEN_OK;
}

static size_t row_bytes(const ptxgen_gguf_linear_spec *s, uint8_t type)
{
    size_t bytes = 0;
    ptxgen_gguf_row_bytes(type, s->k, &bytes, NULL);
    return bytes;
}

/*
 * By how many bytes a matrix may be off: what a type's blocks are aligned to, or 16 where the rows
 * of all matrices are multiples of that.
 */
static size_t weight_shift(const ptxgen_gguf_linear_spec *s, unsigned matrix)
{
    size_t rows = 16, block = ptxgen_gguf_type_find(s->w_type[matrix])->block_bytes | 16;
    for (unsigned i = 0; i < MATRICES && s->n[i]; i++)
        rows |= row_bytes(s, s->w_type[i]);
    return rows % 16 ? block & -block : 16;
}

static unsigned operands(const void *plan, uint64_t m, struct operand *to)
{
    static const char *const names[3][MATRICES] = {
        {"w[0]", "w[1]", "w[2]"}, {"bias[0]", "bias[1]", "bias[2]"}, {"y[0]", "y[1]", "y[2]"}};
    const ptxgen_gguf_linear_spec *s = plan;
    const bool after = s->residual == PTXGEN_GGUF_LINEAR_AFTER;
    const struct operand single[] = {
        [GGUF_LINEAR_AT_X] =
            OPERAND_ROWS(x, X, true, m, s->k, s->x_type, .deviation = 1, .outliers = true),
        [GGUF_LINEAR_AT_RESIDUAL] = OPERAND_ROWS(residual, INPUT, s->residual, m, s->k, s->x_type,
                                                 .deviation = 1, .outliers = true),
        [GGUF_LINEAR_AT_RESIDUAL_OUT] =
            OPERAND_ROWS(residual_out, OUTPUT, s->residual_out, m, s->k, s->x_type),
        [GGUF_LINEAR_AT_GAMMA] =
            OPERAND_ROW(gamma, INPUT, s->norm, s->k, PTXGEN_F32, .mean = 1, .deviation = 0.25),
        [GGUF_LINEAR_AT_POST_GAMMA] =
            OPERAND_ROW(post_gamma, INPUT, after, s->k, PTXGEN_F32, .mean = 1, .deviation = 0.25),
    };
    memcpy(to, single, sizeof single);
    for (unsigned i = 0; i < MATRICES; i++) {
        const uint32_t n = s->n[i];
        to[GGUF_LINEAR_AT_W + i] = (struct operand)OPERAND(
            names[0][i], OPERAND_WEIGHTS, n > 0, n, n ? row_bytes(s, s->w_type[i]) : 0,
            ELEMENT_BYTES, .address = ARG(w) + 8 * i, .bytes = ARG(w_bytes) + 8 * i,
            .random = random_weights);
        to[GGUF_LINEAR_AT_BIAS + i] = (struct operand)OPERAND(
            names[1][i], OPERAND_INPUT, n && s->bias, 1, n, PTXGEN_F32,
            .address = ARG(bias) + 8 * i, .bytes = ARG(bias_bytes) + 8 * i, .deviation = 2);
        to[GGUF_LINEAR_AT_Y + i] =
            (struct operand)OPERAND(names[2][i], OPERAND_OUTPUT, i < outputs_of(s), m, n, s->y_type,
                                    .address = ARG(y) + 8 * i, .bytes = ARG(y_bytes) + 8 * i,
                                    .stride = ARG(y_stride) + 8 * i);
    }
    for (unsigned i = 0; i < GGUF_LINEAR_OPERANDS; i++)
        to[i].shift = typed_bytes(to[i].type);
    for (unsigned i = 0; i < MATRICES; i++)
        to[GGUF_LINEAR_AT_W + i].shift = s->n[i] ? weight_shift(s, i) : 0;
    return GGUF_LINEAR_OPERANDS;
}

static void release(struct problem *p)
{
    free(p->own);
    p->own = NULL;
}

/* Up to where x·x leaves f32, which f16 does not reach; down to where it is subnormal. */
static const double factors[] = {0, 0x1p-110, 0x1p-70, 0x1p-20, 0x1p70};

/* ---- the reference ---- */

/* Of some of the tokens. */
static ptxgen_gguf_linear_operands operands_of(const struct problem *p, uint64_t row, uint64_t rows)
{
    ptxgen_gguf_linear_operands o = {.m = rows,
                                     .launch_m = p->m,
                                     .x = problem_at(p, GGUF_LINEAR_AT_X, row, 0),
                                     .residual = problem_at(p, GGUF_LINEAR_AT_RESIDUAL, row, 0),
                                     .gamma = problem_at(p, GGUF_LINEAR_AT_GAMMA, 0, 0),
                                     .post_gamma = problem_at(p, GGUF_LINEAR_AT_POST_GAMMA, 0, 0),
                                     .x_stride = p->strides[GGUF_LINEAR_AT_X],
                                     .residual_stride = p->strides[GGUF_LINEAR_AT_RESIDUAL]};
    for (unsigned i = 0; i < MATRICES; i++) {
        o.w[i] = problem_at(p, GGUF_LINEAR_AT_W + i, 0, 0);
        o.bias[i] = problem_at(p, GGUF_LINEAR_AT_BIAS + i, 0, 0);
    }
    return o;
}

/* Whether f32 holds the mean of the row's squares; with an ε of 0 it may be too small. */
static bool has_norm(const struct problem *p, size_t row)
{
    const ptxgen_gguf_linear_spec *s = p->plan;
    double squares = 0;
    for (size_t k = 0; k < s->k; k++) {
        double x = typed_load(s->x_type, problem_at(p, GGUF_LINEAR_AT_X, row, k), 0);
        squares += x * x;
    }
    return squares / s->k + (double)s->epsilon > 0x1p-120;
}

/* By how much a kernel's residual_out may be off: nothing, but for the errors of a norm before it.
 */
static double sum_bound(const struct problem *p, size_t row, size_t column, double value,
                        bool has_norm)
{
    const ptxgen_gguf_linear_spec *s = p->plan;
    if (s->residual != PTXGEN_GGUF_LINEAR_AFTER)
        return 0;
    if (!has_norm)
        return NAN;
    double residual = typed_load(s->x_type, problem_at(p, GGUF_LINEAR_AT_RESIDUAL, row, column), 0);
    double ulp = s->x_type == PTXGEN_F32 ? 0 : s->x_type == PTXGEN_F16 ? 0x1p-10 : 0x1p-7;
    return fabs(value) * ulp + (fabs(residual) + fabs(value)) * 0x1p-18 + 0x1p-23;
}

static ptxgen_status reference_sums(const struct problem *p, const struct block *b,
                                    struct block_reference *r, ptxgen_error *err)
{
    const ptxgen_gguf_linear_spec *s = p->plan;
    const ptxgen_gguf_linear_operands operands = operands_of(p, b->row, b->rows);
    void *sums = malloc((size_t)b->rows * s->k * typed_bytes(s->x_type));
    double unused;
    bool known = true; /* of the row */
    if (!sums)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for the reference's sums");
    ptxgen_status status =
        ptxgen_gguf_linear_reference(p->plan, &operands, 0, 0, 0, &unused, NULL, sums, err);
    r->exact = true;
    for (size_t i = 0; status == PTXGEN_OK && i < b->rows * b->columns; i++) {
        size_t row = i / b->columns, column = b->column + i % b->columns;
        known = i % b->columns ? known : has_norm(p, b->row + row);
        r->value[i] = typed_load(s->x_type, sums, row * s->k + column);
        r->bound[i] = sum_bound(p, b->row + row, column, r->value[i], known);
    }
    free(sums);
    return status;
}

static ptxgen_status reference(const struct problem *p, const struct block *b,
                               struct block_reference *r, ptxgen_error *err)
{
    const ptxgen_gguf_linear_operands operands = operands_of(p, b->row, b->rows);
    if (b->output == GGUF_LINEAR_AT_RESIDUAL_OUT)
        return reference_sums(p, b, r, err);
    return ptxgen_gguf_linear_reference_spread(p->plan, &operands, b->output - GGUF_LINEAR_AT_Y,
                                               b->column, b->columns, r->value, r->bound, r->spread,
                                               NULL, err);
}

/*
 * The file's expected output was computed from x as the file has it, which is the problem's `own`.
 * Where x was rounded on its way to the kernel, the reference's own two answers say how much that
 * matters.
 */
static ptxgen_status widen(const struct problem *p, const struct block *b,
                           struct block_reference *r, ptxgen_error *err)
{
    ptxgen_gguf_linear_plan plan = *(const ptxgen_gguf_linear_plan *)p->plan;
    ptxgen_gguf_linear_operands operands = operands_of(p, b->row, b->rows);
    double unrounded[BLOCK_OUTPUTS];
    plan.spec.x_type = PTXGEN_F32;
    operands.x = (const float *)p->own + b->row * plan.spec.k;
    operands.x_stride = 0;
    ptxgen_status status =
        ptxgen_gguf_linear_reference(&plan, &operands, b->output - GGUF_LINEAR_AT_Y, b->column,
                                     b->columns, unrounded, NULL, NULL, err);
    for (size_t i = 0; status == PTXGEN_OK && i < b->rows * b->columns; i++) {
        double apart = fabs(r->value[i] - unrounded[i]);
        r->bound[i] += apart;
        r->spread[i].below += apart;
        r->spread[i].above += apart;
    }
    return status;
}

/* ---- a random problem ---- */

static uint32_t draw_n(struct random *r, bool small, bool deep)
{
    uint32_t most = random_below(r, 4) || small ? 200 : 6000;
    return 1 + random_below(r, deep ? RANDOM_DEEP_FEATURES : most);
}

/* Half of the time all matrices have one type. */
static void draw_matrices(struct random *r, bool small, bool deep, ptxgen_gguf_linear_spec *s)
{
    const uint32_t shape = random_below(r, 5), count = shape < 2 ? 2 : shape - 1;
    const bool same = random_below(r, 2);
    for (uint32_t i = 0; i < count; i++) {
        s->n[i] = shape < 2 && i ? s->n[0] : draw_n(r, small, deep);
        s->w_type[i] =
            same && i ? s->w_type[0] : (uint8_t)gguf_linear_type_at(random_below(r, TYPES));
    }
    if (shape < 2)
        s->epilogue = (uint8_t)(shape + PTXGEN_EPILOGUE_SWIGLU);
}

static uint32_t draw_k(struct random *r, bool small, const ptxgen_gguf_linear_spec *s)
{
    uint32_t unit = 8, most = random_below(r, 4) || small ? 2048 : 16384;
    for (unsigned i = 0; i < MATRICES && s->n[i]; i++)
        if (ptxgen_gguf_type_find(s->w_type[i])->block_weights > unit)
            unit = ptxgen_gguf_type_find(s->w_type[i])->block_weights;
    return unit * (1 + random_below(r, most / unit));
}

/* More than 8 tokens, few for large products. */
static uint32_t draw_many(struct random *r, bool small, ptxgen_gguf_linear_spec *s)
{
    const uint64_t features = (uint64_t)s->n[0] + s->n[1] + s->n[2];
    const uint64_t most = (small ? UINT64_C(1) << 22 : UINT64_C(1) << 30) / (s->k * features);
    s->compute = (uint8_t)random_below(r, 3);
    uint32_t m = PTXGEN_GGUF_LINEAR_MAX_M + 1 + random_launch_rows(r, small, most + 1);
    s->max_m = random_max_m(r, m);
    return m;
}

static uint32_t draw(struct random *r, bool small, const ptxgen_target *target, void *spec)
{
    (void)target;
    static const float epsilons[] = {0, 1e-12f, 1e-6f, 1e-5f, 1e-3f, 0.25f};
    ptxgen_gguf_linear_spec *s = spec;
    uint32_t deep = random_deep_k(r, 256);
    draw_matrices(r, small, deep, s);
    s->k = deep ? deep : draw_k(r, small, s);
    s->x_type = (uint8_t)random_below(r, 3);
    s->y_type = (uint8_t)random_below(r, 3);
    s->norm = (uint8_t)random_below(r, 2);
    s->residual = (uint8_t)random_below(r, 3);
    s->residual_out = s->residual && random_below(r, 2);
    s->bias = (uint8_t)random_below(r, 2);
    if (s->norm || s->residual == PTXGEN_GGUF_LINEAR_AFTER)
        s->epsilon = epsilons[random_below(r, sizeof epsilons / sizeof *epsilons)];
    if (random_below(r, 4) == 0)
        return draw_many(r, small, s);
    s->max_m = random_below(r, 9);
    return random_below(r, (s->max_m ? s->max_m : PTXGEN_GGUF_LINEAR_MAX_M) + 1);
}

const struct harness gguf_linear_harness = {
    HARNESS_MEMBERS(gguf_linear),
    HARNESS_WORKSPACE,
    .overlap = ARG(overlap_previous),
    .poisons_workspace = poisons_workspace,
    .flags = flags,
    .release = release,
    HARNESS_FACTORS,
    .block_rows = PTXGEN_GGUF_LINEAR_MAX_M,
    .block_columns = 64,
    .widen = widen,
};
