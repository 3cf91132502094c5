/* SPDX-License-Identifier: Apache-2.0 */
#include <ptxgen/dense.h>
#include <ptxgen/rmsnorm_q4k.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { K = 16384, OUTPUTS = 32 };

static float x[K], gamma_row[K], w[OUTPUTS][K];
static unsigned char q4k[OUTPUTS][K / 256 * 144];
static double y[OUTPUTS], bound[OUTPUTS];
static ptxgen_spread spread[OUTPUTS];
static int wrong;

static void must(ptxgen_status status, const ptxgen_error *err)
{
    if (status == PTXGEN_OK)
        return;
    fprintf(stderr, "%s\n", err->message);
    exit(1);
}

/* About normal: mean 0, variance 1. */
static double draw(void)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += drand48();
    return sum;
}

static void judge(const char *what, const double *values, int is_right)
{
    ptxgen_tally tally = {0};
    double worst = 0;
    for (int i = 0; i < OUTPUTS; i++) {
        double output = (float)values[i];
        worst = fmax(worst, fabs(output - y[i]) / bound[i]);
        ptxgen_tally_add(&tally, PTXGEN_F32, output, y[i], bound[i], &spread[i]);
    }
    double ratio = ptxgen_tally_ratio(&tally);
    printf("%s: %.3g of the bound, %.3g of the limit\n", what, worst, ratio);
    wrong += (ratio <= 1) != is_right;
}

static double tf32(double value)
{
    int exponent;
    double mantissa = frexp(value, &exponent);
    return ldexp(rint(ldexp(mantissa, 11)), exponent - 11);
}

static void dense(const ptxgen_target *target)
{
    const ptxgen_dense_spec spec = {.n = OUTPUTS, .k = K, .type = PTXGEN_F32};
    const ptxgen_dense_operands operands = {.m = 1, .x = x, .w = w};
    ptxgen_dense_plan plan;
    ptxgen_error err;
    double right[OUTPUTS] = {0}, one_product[OUTPUTS] = {0}, without_last[OUTPUTS];
    must(ptxgen_dense_make_plan(&spec, target, &plan, &err), &err);
    must(ptxgen_dense_reference_spread(&plan, &operands, y, bound, spread, &err), &err);
    for (int n = 0; n < OUTPUTS; n++) {
        for (int k = 0; k < K; k++) {
            right[n] += (double)x[k] * w[n][k];
            one_product[n] += tf32(x[k]) * tf32(w[n][k]);
        }
        without_last[n] = right[n] - (double)x[K - 1] * w[n][K - 1];
    }
    judge("dense, right", right, 1);
    judge("dense, one tf32 product for three", one_product, 0);
    judge("dense, without the last of K", without_last, 0);
}

static void rmsnorm(const ptxgen_target *target)
{
    const ptxgen_rmsnorm_q4k_spec spec = {
        .k = K, .n = {OUTPUTS}, .epsilon = 1e-6f, .x_type = PTXGEN_F32, .y_type = PTXGEN_F32};
    const ptxgen_rmsnorm_q4k_operands operands = {
        .x = x, .gamma = gamma_row, .w = {q4k}, .m = 1};
    ptxgen_rmsnorm_q4k_plan plan;
    ptxgen_error err;
    double off[OUTPUTS];
    for (int n = 0; n < OUTPUTS; n++)
        for (size_t i = 0; i < sizeof q4k[n]; i++) /* d = 2^-14, dmin = 2^-11 */
            q4k[n][i] = i % 144 < 4 ? (i % 144 == 1   ? 0x04
                                       : i % 144 == 3 ? 0x10
                                                      : 0)
                                    : (unsigned char)(drand48() * 256);
    must(ptxgen_rmsnorm_q4k_make_plan(&spec, target, &plan, &err), &err);
    must(ptxgen_rmsnorm_q4k_reference_spread(&plan, &operands, 0, 0, OUTPUTS, y, bound, spread,
                                             NULL, &err),
         &err);
    for (int n = 0; n < OUTPUTS; n++)
        off[n] = y[n] * (1 + 0x1p-16);
    judge("rmsnorm_q4k, right", y, 1);
    judge("rmsnorm_q4k, rms off by 2^-16", off, 0);
}

int main(void)
{
    ptxgen_target target;
    ptxgen_error err;
    must(ptxgen_target_parse("sm_90", &target, &err), &err);
    for (int k = 0; k < K; k++) {
        x[k] = (float)draw();
        gamma_row[k] = (float)(0.5 + drand48());
        for (int n = 0; n < OUTPUTS; n++)
            w[n][k] = (float)draw();
    }
    dense(&target);
    rmsnorm(&target);
    return wrong != 0;
}
