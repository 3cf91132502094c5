/* SPDX-License-Identifier: Apache-2.0 */
#include "quantise.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARG(member) offsetof(ptxgen_quantise_args, member)

KERNEL_VERBS(quantise, NULL);

static bool is_norm(const ptxgen_quantise_spec *s)
{
    return s->producer == PTXGEN_QUANTISE_RMSNORM;
}

static void name(const void *spec, uint64_t m, char *text, size_t size)
{
    static const char *const producers[] = {"", " rmsnorm", " silu-mul"};
    const ptxgen_quantise_spec *s = spec;
    char codes[24] = "s8", norm[64] = "";
    if (s->codes == PTXGEN_W8A8_E4M3)
        snprintf(codes, sizeof codes, "e4m3");
    else if (s->q_max && (s->q_min != -127 || s->q_max != 127))
        snprintf(codes, sizeof codes, "%d..%d", s->q_min, s->q_max);
    if (is_norm(s))
        snprintf(norm, sizeof norm, " gamma=%s eps=%g%s", element_type_names[s->gamma_type],
                 (double)s->epsilon, s->residual ? " residual" : "");
    snprintf(text, size, "K=%u M=%llu x=%s codes=%s%s%s%s%s", s->k, (unsigned long long)m,
             element_type_names[s->x_type], codes, s->group ? " groups" : "",
             s->asymmetric ? " asymmetric" : "", producers[s->producer], norm);
}

/* No product: N is 0. */
static struct product product(const void *spec)
{
    const ptxgen_quantise_spec *s = spec;
    return (struct product){.k = s->k, .type = s->x_type == PTXGEN_BF16 ? PTXGEN_BF16 : PTXGEN_F16};
}

static bool keep(void *plan, uint64_t m, struct chosen *chosen)
{
    (void)plan;
    *chosen = (struct chosen){.entry = "quantise", .overlaps = true};
    return m <= INT32_MAX;
}

/* ---- operands ---- */

static unsigned operands(const void *plan, uint64_t m, struct operand *to)
{
    const ptxgen_quantise_spec *s = plan;
    const uint32_t groups = ptxgen_quantise_groups(s);
    const uint64_t columns = s->producer == PTXGEN_QUANTISE_SILU_MUL ? 2 * (uint64_t)s->k : s->k;
    const struct operand all[QUANTISE_OPERANDS] = {
        [QUANTISE_AT_X] =
            OPERAND_ROWS(x, X, true, m, columns, s->x_type, .deviation = 1, .outliers = true),
        [QUANTISE_AT_GAMMA] = OPERAND_ROW(gamma, INPUT, is_norm(s), s->k, s->gamma_type, .mean = 1,
                                          .deviation = 0.25),
        [QUANTISE_AT_RESIDUAL] = OPERAND_ROWS(residual, RESIDUAL, s->residual, m, s->k, s->x_type,
                                              .deviation = 1, .outliers = true),
        [QUANTISE_AT_RESIDUAL_OUT] =
            OPERAND_ROWS(residual_out, OUTPUT, s->residual, m, s->k, s->x_type),
        [QUANTISE_AT_CODES] = OPERAND_ROWS(codes, OUTPUT, true, m, s->k, ELEMENT_S8),
        [QUANTISE_AT_SCALES] = OPERAND_ROWS(scales, OUTPUT, true, m, groups, PTXGEN_F32),
        [QUANTISE_AT_ZEROS] = OPERAND_ROWS(zeros, OUTPUT, s->asymmetric, m, groups, ELEMENT_S32),
    };
    memcpy(to, all, sizeof all);
    for (int i = 0; i < QUANTISE_OPERANDS; i++)
        to[i].shift = typed_bytes(to[i].type);
    return QUANTISE_OPERANDS;
}

/* Down to where x, then its scale, is subnormal and then 0; up to where squares leave f32. */
static const double factors[] = {0,        0x1p-148, 0x1p-144, 0x1p-130,
                                 0x1p-126, 0x1p-70,  0x1p-20,  0x1p70};

/* ---- the reference ---- */

/* What is known of a row of an output: its values and bounds. */
struct outputs {
    int8_t *codes;
    uint8_t *code_bounds;
    float *scales;
    double *scale_bounds;
    int32_t *zeros, *zero_bounds;
    void *residual_out;
};

static bool allocate(const ptxgen_quantise_spec *s, struct outputs *o)
{
    const size_t k = s->k, groups = ptxgen_quantise_groups(s);
    *o = (struct outputs){.codes = calloc(k, 1),
                          .code_bounds = calloc(k, 1),
                          .scales = calloc(groups, sizeof(float)),
                          .scale_bounds = calloc(groups, sizeof(double)),
                          .zeros = calloc(groups, sizeof(int32_t)),
                          .zero_bounds = calloc(groups, sizeof(int32_t)),
                          .residual_out = calloc(k, sizeof(float))};
    return o->codes && o->code_bounds && o->scales && o->scale_bounds && o->zeros &&
           o->zero_bounds && o->residual_out;
}

static void free_outputs(struct outputs *o)
{
    void *const all[] = {o->codes, o->code_bounds, o->scales,      o->scale_bounds,
                         o->zeros, o->zero_bounds, o->residual_out};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

/* Element i of output `output`, and by how much it may be off. */
static double value_of(const ptxgen_quantise_spec *s, const struct outputs *o, unsigned output,
                       uint32_t i, double *bound)
{
    enum { NO_STATEMENT = 255 };
    *bound = 0;
    switch (output) {
    case QUANTISE_AT_CODES:
        *bound = o->code_bounds[i] == NO_STATEMENT ? NAN : o->code_bounds[i];
        return o->codes[i];
    case QUANTISE_AT_SCALES: *bound = o->scale_bounds[i]; return o->scales[i];
    case QUANTISE_AT_ZEROS: *bound = o->zero_bounds[i]; return o->zeros[i];
    default: return typed_load(s->x_type, o->residual_out, i);
    }
}

static ptxgen_status reference(const struct problem *p, const struct block *b,
                               struct block_reference *r, ptxgen_error *err)
{
    const ptxgen_quantise_spec *s = p->plan;
    const ptxgen_quantise_operands operands = {
        .m = p->m,
        .x = problem_at(p, QUANTISE_AT_X, 0, 0),
        .gamma = problem_at(p, QUANTISE_AT_GAMMA, 0, 0),
        .residual = problem_at(p, QUANTISE_AT_RESIDUAL, 0, 0),
        .x_stride = p->strides[QUANTISE_AT_X],
        .residual_stride = p->strides[QUANTISE_AT_RESIDUAL],
    };
    struct outputs o;
    ptxgen_status status = PTXGEN_OK;
    if (!allocate(s, &o))
        status = ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for tokens' codes");
    const ptxgen_quantise_token token = {o.codes, o.code_bounds, o.scales,      o.scale_bounds,
                                         o.zeros, o.zero_bounds, o.residual_out};
    r->exact = true;
    for (uint64_t row = 0; status == PTXGEN_OK && row < b->rows; row++) {
        status = ptxgen_quantise_reference(s, &operands, b->row + row, &token, err);
        for (uint32_t i = 0; status == PTXGEN_OK && i < b->columns; i++) {
            size_t at = row * b->columns + i;
            r->value[at] = value_of(s, &o, b->output, b->column + i, &r->bound[at]);
        }
    }
    free_outputs(&o);
    return status;
}

/* ---- a random problem ---- */

static uint32_t draw(struct random *r, bool small, const ptxgen_target *target, void *spec)
{
    static const int16_t ranges[][2] = {{0, 0}, {-128, 127}, {-7, 7}, {-64, 127}, {0, 127}};
    static const uint32_t units[] = {128, 16, 8, 1};
    static const float epsilons[] = {0, 1e-12f, 1e-6f, 1e-5f, 0.25f};
    ptxgen_quantise_spec *s = spec;
    uint32_t unit = units[random_below(r, 4)], most = small ? 3000 : 20000;
    uint32_t deep = random_deep_k(r, unit);
    s->k = deep ? deep : unit * (1 + random_below(r, most / unit));
    s->x_type = (uint8_t)random_below(r, 3);
    s->group = random_below(r, 2) ? PTXGEN_QUANTISE_GROUP : 0;
    s->producer = (uint8_t)random_below(r, 3);
    if (is_norm(s)) {
        s->residual = (uint8_t)random_below(r, 2);
        s->gamma_type = (uint8_t)random_below(r, 3);
        s->epsilon = epsilons[random_below(r, sizeof epsilons / sizeof *epsilons)];
    }
    if (target->ptx.sm >= 89 && random_below(r, 3) == 0) {
        s->codes = PTXGEN_W8A8_E4M3;
    } else {
        const int16_t *range = ranges[random_below(r, sizeof ranges / sizeof *ranges)];
        s->q_min = range[0];
        s->q_max = range[1];
        s->asymmetric = (uint8_t)random_below(r, 2);
    }
    return random_launch_rows(r, small, (small ? 1u << 16 : 1u << 23) / s->k + 1);
}

const struct harness quantise_harness = {
    HARNESS_MEMBERS(quantise), .overlap = ARG(overlap_previous), HARNESS_FACTORS,
    .block_rows = 1,           .block_columns = BLOCK_OUTPUTS,
};
