/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_peer.h"

#include "bench_subject.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- what we call of cuBLAS, with its own numbers ---- */

enum {
    OP_N = 0,
    OP_T = 1,
    R_16F = 2,
    R_16BF = 14,
    COMPUTE_32F = 68,
    GEMM_DEFAULT = -1,
    SUCCESS = 0
};

struct api {
    int (*create)(void **handle);
    int (*destroy)(void *handle);
    int (*set_stream)(void *handle, ptxgen_cu_stream stream);
    int (*set_workspace)(void *handle, void *workspace, size_t bytes);
    int (*gemm_ex)(void *handle, int op_a, int op_b, int m, int n, int k, const void *alpha,
                   const void *a, int a_type, int lda, const void *b, int b_type, int ldb,
                   const void *beta, void *c, int c_type, int ldc, int compute_type, int algorithm);
};

struct peer {
    struct device *device;
    void *library, *handle;
    const char *name;
    struct api api;
    ptxgen_cu_deviceptr workspace;
};

enum { WORKSPACE_BYTES = 32 << 20 };

/* A function's address through an object's: ISO C has no cast between the two. */
static bool find_symbol(void *library, const char *symbol, void *function, char *why, size_t size)
{
    void **slot = function;
    *slot = dlsym(library, symbol);
    if (!*slot)
        snprintf(why, size, "the library has no %s", symbol);
    return *slot;
}

static bool find_symbols(struct peer *p, char *why, size_t size)
{
    return find_symbol(p->library, "cublasCreate_v2", &p->api.create, why, size) &&
           find_symbol(p->library, "cublasDestroy_v2", &p->api.destroy, why, size) &&
           find_symbol(p->library, "cublasSetStream_v2", &p->api.set_stream, why, size) &&
           find_symbol(p->library, "cublasSetWorkspace_v2", &p->api.set_workspace, why, size) &&
           find_symbol(p->library, "cublasGemmEx", &p->api.gemm_ex, why, size);
}

static bool open_library(struct peer *p, const char *path)
{
    const char *const names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so"};
    p->name = path;
    p->library = path ? dlopen(path, RTLD_NOW) : NULL;
    for (size_t i = 0; !path && !p->library && i < sizeof names / sizeof *names; i++) {
        p->name = names[i];
        p->library = dlopen(names[i], RTLD_NOW);
    }
    return p->library;
}

static bool start(struct peer *p, char *why, size_t size)
{
    if (!find_symbols(p, why, size))
        return false;
    int result = p->api.create(&p->handle);
    if (result == SUCCESS &&
        p->device->driver.mem_alloc(&p->workspace, WORKSPACE_BYTES) == PTXGEN_CUDA_SUCCESS) {
        result = p->api.set_stream(p->handle, p->device->stream);
        if (result == SUCCESS)
            result =
                p->api.set_workspace(p->handle, (void *)(uintptr_t)p->workspace, WORKSPACE_BYTES);
    }
    if (result == SUCCESS && p->workspace)
        return true;
    snprintf(why, size, "%s does not start (cuBLAS status %d)", p->name, result);
    return false;
}

struct peer *peer_open(struct device *device, const char *path, char *why, size_t size)
{
    struct peer *p = calloc(1, sizeof *p);
    snprintf(why, size, "no memory");
    if (!p)
        return NULL;
    p->device = device;
    if (device->emulated)
        snprintf(why, size, "not on the emulator");
    else if (!open_library(p, path))
        snprintf(why, size, "not found (%s)", dlerror());
    else if (start(p, why, size))
        return p;
    peer_close(p);
    return NULL;
}

void peer_close(struct peer *p)
{
    if (!p)
        return;
    if (p->handle)
        p->api.destroy(p->handle);
    if (p->workspace)
        p->device->driver.mem_free(p->workspace);
    if (p->library)
        dlclose(p->library);
    free(p);
}

const char *peer_name(const struct peer *p)
{
    return p->name;
}

/* ---- the product ---- */

struct product {
    struct peer *peer;
    int m, k, n, type;
    uint32_t copies;
    bool transposed; /* W is [n, k] */
    ptxgen_cu_deviceptr x, w, y;
};

static void *pointer(ptxgen_cu_deviceptr address)
{
    return (void *)(uintptr_t)address;
}

/* cuBLAS thinks by columns: it computes yᵀ[n, m] = W[n, k] · xᵀ[k, m]. */
static ptxgen_status launch(void *state, uint32_t copy, ptxgen_error *err)
{
    const struct product *p = state;
    const float one = 1, zero = 0;
    ptxgen_cu_deviceptr w = p->w + 2 * (uint64_t)copy * (unsigned)p->k * (unsigned)p->n;
    int result = p->peer->api.gemm_ex(
        p->peer->handle, p->transposed ? OP_T : OP_N, OP_N, p->n, p->m, p->k, &one, pointer(w),
        p->type, p->transposed ? p->k : p->n, pointer(p->x), p->type, p->k, &zero, pointer(p->y),
        p->type, p->n, COMPUTE_32F, GEMM_DEFAULT);
    if (result == SUCCESS)
        return PTXGEN_OK;
    return ptxgen_fail(err, PTXGEN_ERROR_DRIVER, "cublasGemmEx failed with status %d", result);
}

static ptxgen_status allocate(struct product *p, ptxgen_error *err)
{
    /* f16 or bf16 below 2 in magnitude: the exponent's top bit cleared */
    const uint64_t mask = 0xBFFFBFFFBFFFBFFF;
    struct device *d = p->peer->device;
    size_t m = (size_t)p->m, k = (size_t)p->k, n = (size_t)p->n;
    ptxgen_status status = bench_random_memory(d, "the peer's x", 2 * m * k, mask, &p->x, err);
    if (status == PTXGEN_OK)
        status = bench_random_memory(d, "the peer's W", 2 * p->copies * k * n, mask, &p->w, err);
    if (status == PTXGEN_OK)
        status = bench_random_memory(d, "the peer's y", 2 * m * n, mask, &p->y, err);
    return status;
}

static ptxgen_status time_layout(struct product *p, bool transposed, unsigned launches,
                                 unsigned replays, struct timing *timing, ptxgen_error *err)
{
    p->transposed = transposed;
    return bench_time(p->peer->device, launch, p, p->copies, launches, replays, timing, err);
}

ptxgen_status peer_time(struct peer *peer, ptxgen_element type, uint32_t m, uint32_t k, uint32_t n,
                        unsigned launches, unsigned replays, struct timing *timing,
                        ptxgen_error *err)
{
    struct product p = {.peer = peer,
                        .m = (int)m,
                        .k = (int)k,
                        .n = (int)n,
                        .type = type == PTXGEN_BF16 ? R_16BF : R_16F};
    p.copies = bench_copies(peer->device, 2 * (uint64_t)k * n);
    ptxgen_driver *driver = &peer->device->driver;
    struct timing other;
    ptxgen_status status = allocate(&p, err);
    if (status == PTXGEN_OK)
        status = time_layout(&p, true, launches, replays, timing, err);
    if (status == PTXGEN_OK)
        status = time_layout(&p, false, launches, replays, &other, err);
    if (status == PTXGEN_OK && other.median < timing->median)
        *timing = other;
    const ptxgen_cu_deviceptr all[] = {p.x, p.w, p.y};
    for (int i = 0; i < 3; i++)
        if (all[i])
            driver->mem_free(all[i]);
    return status;
}
