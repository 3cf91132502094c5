/* SPDX-License-Identifier: Apache-2.0 */
#include <ptxgen/emulator.h>
#include <ptxgen/gguf_types.h>
#include <ptxgen/rmsnorm_q4k.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { K = 4096, N = 16 };

static ptxgen_driver driver;
static ptxgen_target target;
static float x[K], gamma_[K], y[N];
static float weights[N][K];
static unsigned char rows[N * (K / 256) * 144];

static float draw(void)
{
    static uint32_t seed = 1;
    seed = seed * 1664525u + 1013904223u;
    return (float)(int32_t)seed * 0x1p-31f;
}

static uint64_t on_device(const void *data, size_t bytes)
{
    ptxgen_cu_deviceptr address = 0;
    driver.mem_alloc(&address, bytes);
    driver.memcpy_htod(address, data, bytes);
    return address;
}

static int run(float epsilon)
{
    const ptxgen_rmsnorm_q4k_spec spec = {
        .k = K, .n = {N}, .epsilon = epsilon, .x_type = PTXGEN_F32, .y_type = PTXGEN_F32};
    ptxgen_rmsnorm_q4k_plan plan;
    ptxgen_rmsnorm_q4k *kernel;
    ptxgen_error err = {0};
    if (ptxgen_rmsnorm_q4k_make_plan(&spec, &target, &plan, &err) ||
        ptxgen_rmsnorm_q4k_load(&driver, &plan, NULL, &kernel, &err)) {
        puts(err.message);
        return 1;
    }
    ptxgen_rmsnorm_q4k_args args = {.m = 1,
                                    .x = on_device(x, sizeof x),
                                    .gamma = on_device(gamma_, sizeof gamma_),
                                    .w = {on_device(rows, sizeof rows)},
                                    .y = {on_device(y, sizeof y)}};
    if (ptxgen_rmsnorm_q4k_launch(kernel, &args, NULL, &err) ||
        driver.memcpy_dtoh(y, args.y[0], sizeof y)) {
        puts(err.message);
        return 1;
    }
    ptxgen_rmsnorm_q4k_destroy(kernel);
    return 0;
}

/* The formula, or NaN where that is allowed. */
static int compare(const char *what, double scale, float epsilon, double absolute, int nan_allowed)
{
    double squares = 0;
    for (int i = 0; i < K; i++) {
        x[i] = (float)(draw() * scale);
        gamma_[i] = 1;
        squares += (double)x[i] * x[i];
    }
    if (run(epsilon))
        return 1;
    int wrong = 0;
    for (int n = 0; n < N; n++) {
        double wanted = 0, magnitude = 0, root = sqrt(squares / K + epsilon);
        for (int i = 0; i < K; i++) {
            wanted += (double)weights[n][i] * x[i] / root;
            magnitude += fabs((double)weights[n][i]) / root;
        }
        if (isnan(y[n]) ? !nan_allowed
                        : fabs(y[n] - wanted) > 1e-4 + 1e-5 * fabs(wanted) + absolute * magnitude) {
            printf("%s: y[%d] is %g, not %g\n", what, n, y[n], wanted);
            wrong = 1;
        }
    }
    return wrong;
}

int main(void)
{
    ptxgen_cu_context context;
    ptxgen_error err = {0};
    float row[K];
    ptxgen_emulator_driver(&driver);
    if (ptxgen_driver_start(&driver, &err) || driver.ctx_create(&context, 0, 0) ||
        ptxgen_target_parse("sm_80", &target, &err)) {
        puts("no emulator");
        return 1;
    }
    for (int n = 0; n < N; n++) {
        void *packed = rows + n * (K / 256) * 144;
        for (int i = 0; i < K; i++)
            row[i] = draw() * 0.05f;
        if (ptxgen_gguf_quantise_row(PTXGEN_GGUF_Q4_K, row, K, packed, K / 256 * 144, &err) ||
            ptxgen_gguf_decode_row(PTXGEN_GGUF_Q4_K, packed, K / 256 * 144, K, weights[n], &err))
            return 1;
    }
    int wrong = compare("x near 1e35", 1e35, 1e-6f, 0, 0);
    wrong |= compare("x near 1e36", 1e36, 1e-6f, 0, 0);
    wrong |= compare("x near 1e37", 1e37, 1e-6f, 0, 1);
    wrong |= compare("x near 1e38", 1e38, 1e-6f, 0, 1);
    wrong |= compare("x near 3e38", 3e38, 1e-6f, 0, 1);
    wrong |= compare("x near 1e-37", 1e-37, 1e-38f, 0x1p-126, 0);
    wrong |= compare("epsilon 0", 1, 0, 0, 0);
    for (int i = 0; i < K; i++)
        x[i] = 0;
    wrong |= run(0);
    for (int n = 0; n < N; n++)
        if (!isnan(y[n])) {
            printf("zeros without epsilon: y[%d] is %g\n", n, y[n]);
            wrong = 1;
        }
    return wrong;
}
