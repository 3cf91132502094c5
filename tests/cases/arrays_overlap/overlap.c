/* SPDX-License-Identifier: Apache-2.0 */
#include <ptxgen/dense.h>
#include <ptxgen/emulator.h>
#include <ptxgen/rmsnorm_q4k.h>

#include <stdio.h>
#include <string.h>

enum { K = 512, N = 512, M = 64 };

static int wrong;

static void expect(const char *what, ptxgen_status status, const ptxgen_error *err,
                   const char *words)
{
    if (words ? status == PTXGEN_ERROR_INVALID_ARGUMENT && strstr(err->message, words) : !status)
        return;
    printf("%s: status %d, %s\n", what, status, status ? err->message : "taken");
    wrong = 1;
}

static uint64_t zeroed(const ptxgen_driver *driver, size_t bytes)
{
    ptxgen_cu_deviceptr address = 0;
    driver->mem_alloc(&address, bytes);
    driver->memset_d8(address, 0, bytes);
    return address;
}

static void try_dense(const ptxgen_driver *driver, const ptxgen_target *target)
{
    const ptxgen_dense_spec spec = {.n = N, .k = K, .type = PTXGEN_F16, .residual = 1};
    ptxgen_dense_plan plan;
    ptxgen_dense *kernel;
    ptxgen_error err = {0};
    if (ptxgen_dense_make_plan(&spec, target, &plan, &err) ||
        ptxgen_dense_load(driver, &plan, NULL, &kernel, &err)) {
        expect("dense", err.status, &err, NULL);
        return;
    }
    ptxgen_dense_args args = {.m = M,
                              .x = zeroed(driver, 2 * K * M),
                              .w = zeroed(driver, 2 * K * N),
                              .residual = zeroed(driver, 2 * N * (M + 1)),
                              .y = zeroed(driver, 2 * N * M)};
    ptxgen_dense_workspace_bytes(kernel, &args, &args.workspace_bytes, &err);
    args.workspace = zeroed(driver, args.workspace_bytes + 16);
    ptxgen_dense_args a = args;
    a.y = a.x;
    expect("y over x", ptxgen_dense_launch(kernel, &a, NULL, &err), &err, "overlaps x");
    a.y = a.residual + 2 * N;
    expect("y a row into the residual", ptxgen_dense_launch(kernel, &a, NULL, &err), &err,
           "overlaps residual");
    a.y = args.y;
    a.y_stride = UINT64_C(1) << 63;
    expect("y_stride of 2^63", ptxgen_dense_launch(kernel, &a, NULL, &err), &err,
           "y, 64 rows with a row stride of 9223372036854775808");
    a.y_stride = 0;
    a.y = a.residual;
    expect("y in place", ptxgen_dense_launch(kernel, &a, NULL, &err), &err, NULL);
}

static void try_rmsnorm_q4k(const ptxgen_driver *driver, const ptxgen_target *target)
{
    const ptxgen_rmsnorm_q4k_spec spec = {
        .k = K, .n = {N}, .epsilon = 1e-6f, .x_type = PTXGEN_F16, .y_type = PTXGEN_F16};
    ptxgen_rmsnorm_q4k_plan plan;
    ptxgen_rmsnorm_q4k *kernel;
    ptxgen_error err = {0};
    if (ptxgen_rmsnorm_q4k_make_plan(&spec, target, &plan, &err) ||
        ptxgen_rmsnorm_q4k_load(driver, &plan, NULL, &kernel, &err)) {
        expect("rmsnorm_q4k", err.status, &err, NULL);
        return;
    }
    ptxgen_rmsnorm_q4k_args args = {.m = 1,
                                    .x = zeroed(driver, 2 * K),
                                    .gamma = zeroed(driver, 4 * K),
                                    .w = {zeroed(driver, N * K / 256 * 144)}};
    args.y[0] = args.x;
    expect("rmsnorm_q4k's y over x", ptxgen_rmsnorm_q4k_launch(kernel, &args, NULL, &err), &err,
           "overlaps x");
}

int main(void)
{
    ptxgen_driver driver;
    ptxgen_cu_context context;
    ptxgen_target target;
    ptxgen_error err = {0};
    ptxgen_emulator_driver(&driver);
    if (ptxgen_driver_start(&driver, &err) || driver.ctx_create(&context, 0, 0) ||
        ptxgen_target_parse("sm_80", &target, &err)) {
        puts("no emulator");
        return 1;
    }
    try_dense(&driver, &target);
    try_rmsnorm_q4k(&driver, &target);
    return wrong;
}
