/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A linear layer y = x · Wᵀ with half of W's elements: prunes a dense f16 weight to the two largest
 * of each four, says what that alone costs, compresses it, runs the layer on the first GPU (or the
 * emulator) in both ways that sparse24 has, and compares with the pruned layer in double precision.
 */
#include <ptxgen/device.h>
#include <ptxgen/emulator.h>
#include <ptxgen/sparse24.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 96, M = 12, K = 512 }; /* output features, tokens, inputs */

static uint16_t x[M][K], dense[N][K], pruned[N][K], values[N][K / 2], y[M][N];
static uint8_t metadata[N][K / 4];

/* About normal: a sum of uniform numbers. */
static double draw(void)
{
    static uint32_t state = 1;
    double sum = 0;
    for (int i = 0; i < 6; i++) {
        state = state * 1664525u + 1013904223u;
        sum += (state >> 8) * 0x1p-24 - 0.5;
    }
    return sum;
}

static void make_layer(void)
{
    for (int n = 0; n < N; n++)
        for (int k = 0; k < K; k++)
            ptxgen_element_store(PTXGEN_F16, dense[n], k, 0.05 * draw());
    for (int m = 0; m < M; m++)
        for (int k = 0; k < K; k++)
            ptxgen_element_store(PTXGEN_F16, x[m], k, draw());
}

/* ---- errors ---- */

static double output(const uint16_t w[K], const uint16_t row[K])
{
    double sum = 0;
    for (int k = 0; k < K; k++)
        sum += ptxgen_element_load(PTXGEN_F16, w, k) * ptxgen_element_load(PTXGEN_F16, row, k);
    return sum;
}

/* What pruning takes away: of the weight, and of the layer's outputs, relative to their norms. */
static void report_pruning(void)
{
    double lost = 0, all = 0, lost_y = 0, all_y = 0;
    for (int n = 0; n < N; n++) {
        for (int k = 0; k < K; k++) {
            double w = ptxgen_element_load(PTXGEN_F16, dense[n], k);
            double kept = ptxgen_element_load(PTXGEN_F16, pruned[n], k);
            lost += (w - kept) * (w - kept);
            all += w * w;
        }
        for (int m = 0; m < M; m++) {
            double exact = output(dense[n], x[m]), after = output(pruned[n], x[m]);
            lost_y += (exact - after) * (exact - after);
            all_y += exact * exact;
        }
    }
    printf("pruning alone: %.1f %% of the weight's norm is lost, outputs are off by %.1f %%\n",
           100 * sqrt(lost / all), 100 * sqrt(lost_y / all_y));
}

/* The largest difference from the pruned layer, relative to the outputs' root mean square. */
static double error_of_y(void)
{
    double largest = 0, squares = 0;
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++) {
            double exact = output(pruned[n], x[m]);
            largest = fmax(largest, fabs(ptxgen_element_load(PTXGEN_F16, y[m], n) - exact));
            squares += exact * exact;
        }
    return largest / sqrt(squares / (M * N));
}

/* ---- the layer ---- */

static ptxgen_status prune_and_compress(ptxgen_error *err)
{
    const ptxgen_sparse24_shape shape = {PTXGEN_SPARSE24_F16, N, K};
    ptxgen_status status = ptxgen_sparse24_prune(&shape, (ptxgen_const_span){dense, sizeof dense},
                                                 (ptxgen_span){pruned, sizeof pruned}, err);
    if (status != PTXGEN_OK)
        return status;
    return ptxgen_sparse24_compress(&shape, (ptxgen_const_span){pruned, sizeof pruned},
                                    (ptxgen_span){values, sizeof values}, PTXGEN_SPARSE24_BYTES,
                                    (ptxgen_span){metadata, sizeof metadata}, err);
}

static ptxgen_cu_deviceptr to_device(const ptxgen_driver *cuda, const void *bytes, size_t size)
{
    ptxgen_cu_deviceptr to = 0;
    return cuda->mem_alloc(&to, size) || cuda->memcpy_htod(to, bytes, size) ? 0 : to;
}

static ptxgen_cu_deviceptr zeros(const ptxgen_driver *cuda, size_t size)
{
    ptxgen_cu_deviceptr to = 0;
    return !size || cuda->mem_alloc(&to, size) || cuda->memset_d8(to, 0, size) ? 0 : to;
}

/* The weight in the order in which the kernel reads it, on the device. */
static ptxgen_status pack(const ptxgen_driver *cuda, const ptxgen_sparse24_spec *spec, uint64_t *to,
                          ptxgen_error *err)
{
    size_t bytes;
    ptxgen_status status = ptxgen_sparse24_packed_bytes(spec, &bytes, err);
    if (status != PTXGEN_OK)
        return status;
    void *packed = malloc(bytes);
    status =
        ptxgen_sparse24_pack(spec, (ptxgen_const_span){values, sizeof values},
                             PTXGEN_SPARSE24_BYTES, (ptxgen_const_span){metadata, sizeof metadata},
                             (ptxgen_span){packed, packed ? bytes : 0}, err);
    if (status == PTXGEN_OK)
        *to = to_device(cuda, packed, bytes);
    free(packed);
    return status;
}

static ptxgen_status run_layer(const ptxgen_driver *cuda, const ptxgen_target *target,
                               const ptxgen_sparse24_spec *spec, ptxgen_error *err)
{
    ptxgen_sparse24_plan plan;
    ptxgen_sparse24 *kernel = NULL;
    ptxgen_sparse24_args args = {.m = M};
    ptxgen_status status = ptxgen_sparse24_make_plan(spec, target, &plan, err);
    if (status == PTXGEN_OK)
        status = pack(cuda, spec, &args.w, err);
    if (status == PTXGEN_OK)
        status = ptxgen_sparse24_load(cuda, &plan, NULL, &kernel, err);
    if (status != PTXGEN_OK)
        return status;
    args.x = to_device(cuda, x, sizeof x);
    args.y = to_device(cuda, y, sizeof y);
    status = ptxgen_sparse24_workspace_bytes(kernel, &args, &args.workspace_bytes, err);
    args.workspace = zeros(cuda, args.workspace_bytes); /* if it is null the launch will say so */
    if (status == PTXGEN_OK)
        status = ptxgen_sparse24_launch(kernel, &args, NULL, err);
    if (status == PTXGEN_OK && cuda->memcpy_dtoh(y, args.y, sizeof y))
        status = PTXGEN_ERROR_DRIVER;
    ptxgen_sparse24_destroy(kernel);
    return status;
}

int main(void)
{
    static const char *const tiers[] = {"inflated by the launch",
                                        "straight from compressed (mma.sp)"};
    ptxgen_sparse24_spec spec = {
        .n = N, .k = K, .max_m = M, .type = PTXGEN_SPARSE24_F16, .y_type = PTXGEN_F16};
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
    if (prune_and_compress(&err))
        return fprintf(stderr, "%s\n", err.message), 1;
    report_pruning();
    double worst = 0;
    for (spec.tier = 1; spec.tier <= 2; spec.tier++) {
        if (run_layer(&cuda, &target, &spec, &err))
            return fprintf(stderr, "%s\n", err.message), 1;
        double error = error_of_y();
        printf("tier %d, %s: the largest error is %.5f of the outputs' root mean square\n",
               spec.tier, tiers[spec.tier - 1], error);
        worst = fmax(worst, error);
    }
    return cuda.ctx_destroy(context) || !(worst < 0.005); /* and the memory with it */
}
