/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A linear layer y = x · Wᵀ + b in 8 bits: quantises an f32 weight on the host, runs the layer on
 * the first GPU (or the emulator), and compares with the same layer computed in f32.
 */
#include <ptxgen/device.h>
#include <ptxgen/emulator.h>
#include <ptxgen/w8a8.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { M = 12, N = 96, K = 500, STRIDE = 512 }; /* rows of W padded to a multiple of 16 bytes */

static float x[M][K], w[N][K], bias[N], y[M][N], scales[N];
static int8_t codes[N][STRIDE];

/* About normal: a sum of uniform numbers. */
static float draw(void)
{
    static uint32_t state = 1;
    float sum = 0;
    for (int i = 0; i < 6; i++) {
        state = state * 1664525u + 1013904223u;
        sum += (float)(state >> 8) * 0x1p-24f - 0.5f;
    }
    return sum;
}

static void make_layer(void)
{
    for (int n = 0; n < N; n++) {
        bias[n] = draw();
        for (int k = 0; k < K; k++)
            w[n][k] = 0.05f * draw();
    }
    for (int m = 0; m < M; m++)
        for (int k = 0; k < K; k++)
            x[m][k] = m == 3 ? 0 : draw(); /* a row of zeros gives just the bias */
}

/* The largest difference from the layer in f32, relative to the outputs' root mean square. */
static double error_of_y(void)
{
    double largest = 0, squares = 0;
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++) {
            double exact = bias[n];
            for (int k = 0; k < K; k++)
                exact += (double)x[m][k] * w[n][k];
            largest = fmax(largest, fabs(y[m][n] - exact));
            squares += exact * exact;
        }
    return largest / sqrt(squares / (M * N));
}

static ptxgen_cu_deviceptr to_device(const ptxgen_driver *cuda, const void *bytes, size_t size)
{
    ptxgen_cu_deviceptr to = 0;
    return cuda->mem_alloc(&to, size) || cuda->memcpy_htod(to, bytes, size) ? 0 : to;
}

static ptxgen_status run_layer(const ptxgen_driver *cuda, const ptxgen_target *target,
                               ptxgen_error *err)
{
    const ptxgen_w8a8_weights weights = {.n = N, .k = K, .type = PTXGEN_F32, .w = w};
    const ptxgen_w8a8_spec spec = {.k = K,
                                   .n = N,
                                   .w_stride = STRIDE,
                                   .x_type = PTXGEN_F32,
                                   .y_type = PTXGEN_F32,
                                   .bias = 1,
                                   .max_m = M};
    ptxgen_w8a8_plan plan;
    ptxgen_w8a8 *kernel = NULL;
    char what[256];
    ptxgen_status status =
        ptxgen_w8a8_quantise(&weights, STRIDE, codes[0], PTXGEN_F32, scales, err);
    if (status == PTXGEN_OK)
        status = ptxgen_w8a8_make_plan(&spec, target, &plan, err);
    if (status == PTXGEN_OK)
        status = ptxgen_w8a8_load(cuda, &plan, NULL, &kernel, err);
    if (status != PTXGEN_OK)
        return status;
    ptxgen_w8a8_explain(&plan, M, what, sizeof what);
    printf("%s\n", what);
    ptxgen_w8a8_args args = {.x = to_device(cuda, x, sizeof x),
                             .w = to_device(cuda, codes, sizeof codes),
                             .w_scale = to_device(cuda, scales, sizeof scales),
                             .bias = to_device(cuda, bias, sizeof bias),
                             .y = to_device(cuda, y, sizeof y),
                             .m = M};
    status = ptxgen_w8a8_workspace_bytes(kernel, &args, &args.workspace_bytes, err);
    ptxgen_cu_deviceptr workspace = 0;
    if (args.workspace_bytes &&
        cuda->mem_alloc(&workspace, args.workspace_bytes) == PTXGEN_CUDA_SUCCESS)
        args.workspace = workspace; /* else it is null, as the launch will say */
    if (status == PTXGEN_OK)
        status = ptxgen_w8a8_launch(kernel, &args, NULL, err);
    if (status == PTXGEN_OK && cuda->memcpy_dtoh(y, args.y, sizeof y))
        status = PTXGEN_ERROR_DRIVER;
    ptxgen_w8a8_destroy(kernel);
    return status;
}

int main(void)
{
    ptxgen_driver cuda;
    ptxgen_device_facts gpu;
    ptxgen_cu_context context;
    ptxgen_error err = {.message = ""};
    if (ptxgen_driver_open(&cuda, NULL, &err))
        ptxgen_emulator_driver(&cuda);
    if (ptxgen_driver_start(&cuda, &err) || ptxgen_device_read(&cuda, 0, &gpu, &err) ||
        cuda.ctx_create(&context, 0, 0))
        return fprintf(stderr, "no device: %s\n", err.message), 1;
    ptxgen_target target = ptxgen_device_target(&gpu);
    make_layer();
    if (run_layer(&cuda, &target, &err))
        return fprintf(stderr, "%s\n", err.message), 1;
    double error = error_of_y();
    printf("largest error %.4f of the outputs' root mean square\n", error);
    return cuda.ctx_destroy(context) || !(error < 0.05); /* and the memory with it */
}
