/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two RMSNorm + Q4_K products of a decoding step, got by dispatch and captured into a CUDA graph,
 * which is then replayed: no lock, allocation or compilation is left in the loop. Without a GPU it
 * runs on the emulator.
 */
#include <ptxgen/dispatch.h>
#include <ptxgen/emulator.h>
#include <ptxgen/rmsnorm_q4k.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { K = 512, LAYERS = 2, REPLAYS = 3 };
static const uint32_t rows[LAYERS] = {K, 64}; /* the second layer reads what the first wrote */

static void must(ptxgen_cu_result result, const char *what)
{
    if (result != PTXGEN_CUDA_SUCCESS) {
        fprintf(stderr, "%s failed: CUDA error %d\n", what, (int)result);
        exit(1);
    }
}

static void succeed(ptxgen_status status, const ptxgen_error *err)
{
    if (status != PTXGEN_OK) {
        fprintf(stderr, "%s: %s\n", ptxgen_status_name(status), err->message);
        exit(1);
    }
}

static ptxgen_cu_deviceptr to_device(const ptxgen_driver *cuda, const void *bytes, size_t size)
{
    ptxgen_cu_deviceptr to;
    must(cuda->mem_alloc(&to, size), "cuMemAlloc");
    must(cuda->memcpy_htod(to, bytes, size), "cuMemcpyHtoD");
    return to;
}

/* Q4_K rows with scale d = 1 / 64, sub-block scales 1, no minimum, nibbles 0 … 15. */
static ptxgen_cu_deviceptr make_weights(const ptxgen_driver *cuda, uint32_t n)
{
    enum { SUPER_BLOCK = 144 };
    size_t size = (size_t)n * (K / 256) * SUPER_BLOCK;
    unsigned char *bytes = calloc(1, size);
    for (size_t block = 0; block < size; block += SUPER_BLOCK) {
        const uint16_t d = 0x2400; /* f16 */
        memcpy(bytes + block, &d, sizeof d);
        memset(bytes + block + 4, 1, 4);  /* scales of the first four sub-blocks */
        memset(bytes + block + 12, 1, 4); /* and of the others */
        for (size_t i = 16; i < SUPER_BLOCK; i++)
            bytes[block + i] = (unsigned char)(block / SUPER_BLOCK * 7 + i * 13);
    }
    ptxgen_cu_deviceptr weights = to_device(cuda, bytes, size);
    free(bytes);
    return weights;
}

int main(void)
{
    static float x[K], gamma[K], y[K], first[K];
    ptxgen_driver cuda;
    ptxgen_cu_context context;
    ptxgen_dispatcher *dispatcher;
    ptxgen_error err = {0};
    if (ptxgen_driver_open(&cuda, NULL, &err) != PTXGEN_OK)
        ptxgen_emulator_driver(&cuda);
    succeed(ptxgen_driver_start(&cuda, &err), &err);
    must(cuda.ctx_create(&context, 0, 0), "cuCtxCreate");
    succeed(ptxgen_dispatcher_create(&cuda, NULL, &dispatcher, &err), &err);

    for (int i = 0; i < K; i++) {
        x[i] = (float)(i % 17) / 16 - 0.5f;
        gamma[i] = 1;
    }
    ptxgen_cu_deviceptr on_device[LAYERS + 1] = {to_device(&cuda, x, sizeof x)};
    ptxgen_cu_deviceptr gain = to_device(&cuda, gamma, sizeof gamma);
    ptxgen_rmsnorm_q4k *kernels[LAYERS];
    ptxgen_rmsnorm_q4k_args args[LAYERS] = {{0}};
    for (int i = 0; i < LAYERS; i++) { /* before the capture: this may compile */
        ptxgen_rmsnorm_q4k_spec spec = {.k = K, .n = {rows[i]}, .epsilon = 1e-6f, .max_m = 1};
        succeed(ptxgen_rmsnorm_q4k_dispatch(dispatcher, &spec, &kernels[i], &err), &err);
        on_device[i + 1] = to_device(&cuda, y, rows[i] * sizeof *y);
        args[i].x = on_device[i];
        args[i].gamma = gain;
        args[i].w[0] = make_weights(&cuda, rows[i]);
        args[i].y[0] = on_device[i + 1];
        args[i].m = 1;
    }

    ptxgen_cu_stream stream;
    ptxgen_cu_graph graph;
    ptxgen_cu_graph_exec exec;
    must(cuda.ctx_synchronize(),
         "cuCtxSynchronize"); /* the copies, for which the stream would not wait */
    must(cuda.stream_create(&stream, PTXGEN_CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    must(cuda.stream_begin_capture(stream, PTXGEN_CU_STREAM_CAPTURE_MODE_GLOBAL), "capturing");
    for (int i = 0; i < LAYERS; i++)
        succeed(ptxgen_rmsnorm_q4k_launch(kernels[i], &args[i], stream, &err), &err);
    must(cuda.stream_end_capture(stream, &graph), "cuStreamEndCapture");
    must(cuda.graph_instantiate(&exec, graph, 0), "cuGraphInstantiate");
    for (int i = 0; i < REPLAYS; i++) {
        must(cuda.graph_launch(exec, stream), "cuGraphLaunch");
        must(cuda.stream_synchronize(stream), "cuStreamSynchronize");
        must(cuda.memcpy_dtoh(y, on_device[LAYERS], rows[LAYERS - 1] * sizeof *y), "cuMemcpyDtoH");
        if (i == 0)
            memcpy(first, y, sizeof y);
        if (memcmp(first, y, rows[LAYERS - 1] * sizeof *y) != 0)
            return fputs("a replay gave other bits\n", stderr), 1;
    }
    printf("%d replays of %d launches, the same bits each; y[0] = %g\n", REPLAYS, LAYERS, y[0]);

    must(cuda.graph_exec_destroy(exec), "cuGraphExecDestroy");
    must(cuda.graph_destroy(graph), "cuGraphDestroy");
    must(cuda.stream_destroy(stream), "cuStreamDestroy");
    for (int i = 0; i < LAYERS; i++) /* the graph is gone: now the kernels may go */
        ptxgen_rmsnorm_q4k_destroy(kernels[i]);
    ptxgen_dispatcher_destroy(dispatcher);
    must(cuda.ctx_destroy(context), "cuCtxDestroy"); /* and the memory with it */
    return 0;
}
