/* SPDX-License-Identifier: Apache-2.0 */
#include <ptxgen/emulator.h>
#include <ptxgen/sparse24.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 16, K = 32, M = 2, ONE = 0x3C00, INFINITE = 0x7C00, SUM_OF_16 = 0x4C00 };

static ptxgen_driver driver;

static uint64_t on_device(const void *data, size_t bytes)
{
    ptxgen_cu_deviceptr address = 0;
    driver.mem_alloc(&address, bytes + 16);
    driver.memset_d8(address, 0, bytes + 16);
    if (data)
        driver.memcpy_htod(address, data, bytes);
    return address;
}

/* W keeps a group's first two elements in its even rows, its last two in the odd ones. All are 1.
 */
static int try_tier(uint8_t tier, const ptxgen_target *target)
{
    const ptxgen_sparse24_spec spec = {
        .n = N, .k = K, .type = PTXGEN_SPARSE24_F16, .y_type = PTXGEN_F16, .tier = tier};
    uint16_t values[N * K / 2], x[M * K], y[M * N];
    unsigned char metadata[N * K / 4];
    for (int i = 0; i < N * K / 2; i++)
        values[i] = ONE;
    for (int i = 0; i < N * K / 4; i++)
        metadata[i] = i / (K / 4) % 2 ? 2 | 3 << 2 : 0 | 1 << 2;
    for (int i = 0; i < M * K; i++)
        x[i] = ONE;
    x[K + 8] = INFINITE; /* row 1, the first element of a group */

    ptxgen_sparse24_plan plan;
    ptxgen_sparse24 *kernel;
    ptxgen_error err = {0};
    size_t bytes;
    if (ptxgen_sparse24_make_plan(&spec, target, &plan, &err) ||
        ptxgen_sparse24_packed_bytes(&spec, &bytes, &err) ||
        ptxgen_sparse24_load(&driver, &plan, NULL, &kernel, &err)) {
        puts(err.message);
        return 1;
    }
    void *packed = malloc(bytes);
    if (!packed ||
        ptxgen_sparse24_pack(&spec, (ptxgen_const_span){values, sizeof values},
                             PTXGEN_SPARSE24_BYTES, (ptxgen_const_span){metadata, sizeof metadata},
                             (ptxgen_span){packed, bytes}, &err))
        return 1;
    ptxgen_sparse24_args args = {.m = M,
                                 .x = on_device(x, sizeof x),
                                 .w = on_device(packed, bytes),
                                 .y = on_device(y, sizeof y)};
    ptxgen_sparse24_workspace_bytes(kernel, &args, &args.workspace_bytes, &err);
    args.workspace = on_device(NULL, args.workspace_bytes);
    if (ptxgen_sparse24_launch(kernel, &args, NULL, &err) ||
        driver.memcpy_dtoh(y, args.y, sizeof y)) {
        puts(err.message);
        return 1;
    }
    ptxgen_sparse24_destroy(kernel);
    free(packed);
    int wrong = 0;
    for (int n = 0; n < N; n++) {
        uint16_t of_infinity = y[N + n];
        int is_nan = (of_infinity & 0x7FFF) > INFINITE;
        int right = n % 2 == 0  ? of_infinity == INFINITE
                    : tier == 1 ? is_nan
                                : of_infinity == SUM_OF_16;
        if (y[n] != SUM_OF_16 || !right) {
            printf("tier %d, row %d of W: %04x and %04x\n", tier, n, y[n], of_infinity);
            wrong = 1;
        }
    }
    return wrong;
}

int main(void)
{
    ptxgen_cu_context context;
    ptxgen_target target;
    ptxgen_error err = {0};
    ptxgen_emulator_driver(&driver);
    if (ptxgen_driver_start(&driver, &err) || driver.ctx_create(&context, 0, 0) ||
        ptxgen_target_parse("sm_80", &target, &err)) {
        puts("no emulator");
        return 1;
    }
    return try_tier(1, &target) | try_tier(2, &target);
}
