/* SPDX-License-Identifier: Apache-2.0 */
#include <ptxgen/device.h>
#include <ptxgen/emulator.h>
#include <ptxgen/rmsnorm_q4k.h>
#include <stdio.h>

static float x[4096], gain[4096], y[512];
static unsigned char weights[512][4096 / 256 * 144]; /* rows of Q4_K, as in a GGUF file */

static ptxgen_cu_deviceptr to_device(const ptxgen_driver *cuda, const void *bytes, size_t size)
{
    ptxgen_cu_deviceptr to = 0;
    return cuda->mem_alloc(&to, size) || cuda->memcpy_htod(to, bytes, size) ? 0 : to;
}

int main(void)
{
    ptxgen_driver cuda;
    ptxgen_device_facts gpu;
    ptxgen_cu_context context;
    ptxgen_rmsnorm_q4k_plan plan;
    ptxgen_rmsnorm_q4k *kernel;
    ptxgen_error err = {0};
    if (ptxgen_driver_open(&cuda, NULL, &err))
        ptxgen_emulator_driver(&cuda); /* no GPU: a CPU that runs PTX, slowly */
    if (ptxgen_driver_start(&cuda, &err) || ptxgen_device_read(&cuda, 0, &gpu, &err) ||
        cuda.ctx_create(&context, 0, 0))
        return fprintf(stderr, "no device: %s\n", err.message), 1;
    ptxgen_target target = ptxgen_device_target(&gpu);
    ptxgen_rmsnorm_q4k_spec spec = {.k = 4096, .n = {512}, .epsilon = 1e-6f}; /* x and y f32 */
    ptxgen_rmsnorm_q4k_args args = {.m = 1, .x = to_device(&cuda, x, sizeof x)};
    args.gamma = to_device(&cuda, gain, sizeof gain);
    args.w[0] = to_device(&cuda, weights, sizeof weights);
    args.y[0] = to_device(&cuda, y, sizeof y);
    if (ptxgen_rmsnorm_q4k_make_plan(&spec, &target, &plan, &err) ||
        ptxgen_rmsnorm_q4k_load(&cuda, &plan, NULL, &kernel, &err) ||
        ptxgen_rmsnorm_q4k_launch(kernel, &args, NULL, &err) ||
        cuda.memcpy_dtoh(y, args.y[0], sizeof y))
        return fprintf(stderr, "%s\n", err.message), 1;
    ptxgen_rmsnorm_q4k_destroy(kernel);
    return cuda.ctx_destroy(context) ? 1 : 0; /* and the memory with it */
}
