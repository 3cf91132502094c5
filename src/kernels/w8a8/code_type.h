/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a type of codes has, and its arithmetic on the host. That of the kernels is declared in
 * emit.h; code_type.c has both, and all refusals.
 */
#ifndef PTXGEN_W8A8_CODE_TYPE_H
#define PTXGEN_W8A8_CODE_TYPE_H

#include <ptxgen/w8a8.h>

#include <math.h>
#include <stdbool.h>

struct w8a8_code_type {
    int32_t largest; /* the largest code; where a spec gives no range, the least is −largest */
    double least; /* where less than this has fewer bits of mantissa; 0: there is no such number */
    uint8_t rounding;    /* ptxgen_rounding of x */
    bool integer;        /* sums of products are s32 and exact, else f32 */
    bool has_nans;       /* a byte may be a NaN, which 0 · NaN does not hide */
    uint32_t sum_blocks; /* blocks of K of a stage of 64 tokens of wgmma with sums apart; 0: none */
};
/* What is known of a type; of an unknown one, which is refused, as of s8. */
const struct w8a8_code_type *w8a8_code_type(unsigned codes);
/* The type of the weights of a spec. */
static inline unsigned w8a8_weight_codes(const ptxgen_w8a8_spec *spec)
{
    return spec->w_codes ? spec->w_codes : spec->codes;
}
/* Refuses types that weights do not have. */
ptxgen_status w8a8_check_weight_codes(unsigned codes, ptxgen_error *err);

/* The spec with its range, which is the type's where the spec gives none. */
ptxgen_w8a8_spec w8a8_with_range(const ptxgen_w8a8_spec *spec);
/* Refuse what the type of a spec's codes does not allow, and targets that cannot multiply them. */
ptxgen_status w8a8_check_codes(const ptxgen_w8a8_spec *spec, ptxgen_error *err);
ptxgen_status w8a8_check_code_target(const ptxgen_w8a8_plan *plan, ptxgen_error *err);
/*
 * Whether mma.sync takes codes as f16: ptxas turns them into twice as many registers, and has those
 * of many products at once.
 */
bool w8a8_widens_codes(const ptxgen_w8a8_plan *plan);

/* ---- on the host, where every operation is rounded in the work type as in the kernels ---- */

static inline double w8a8_divide(ptxgen_element work, double a, double b)
{
    return work == PTXGEN_F64 ? a / b : (double)((float)a / (float)b);
}
/* The code of a finite x in the type's range or, where it has one, that of the spec. */
int8_t w8a8_code(unsigned codes, ptxgen_element work, double x, double scale, int32_t zero,
                 int q_min, int q_max);
/* The same of an element of a token, as the kernels compute it. */
int8_t w8a8_token_code(unsigned codes, ptxgen_element work, double x, double scale, int32_t zero,
                       int q_min, int q_max);
/* What a row's own scale and zero point depend on; with DYNAMIC they are these. */
struct w8a8_range {
    double low, high; /* the least and the largest of 0 and the row */
    bool finite;
};
ptxgen_w8a8_token w8a8_dynamic_token(const ptxgen_w8a8_spec *s, const struct w8a8_range *range);
/* The number that a code stands for. */
double w8a8_code_value(unsigned codes, uint8_t code);

#endif
