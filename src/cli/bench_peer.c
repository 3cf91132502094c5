/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_peer.h"

#include "bench_library.h"

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

/* What is multiplied: y[m, n] = x[m, k] · W. */
struct product {
    int m, k, n, type;
    int rows; /* that x and y have room for */
    uint32_t copies;
    bool transposed;  /* W is [n, k] */
    uint64_t x, w, y; /* device addresses */
    struct bench_memory weights, with_rows;
};

struct peer {
    struct device *device;
    struct bench_library library;
    void *handle;
    struct api api;
    ptxgen_cu_deviceptr workspace;
    struct product product; /* the last, for the next with the same W */
};

enum { WORKSPACE_BYTES = 32 << 20 };

static bool find_symbols(struct peer *p, char *why, size_t size)
{
    const struct bench_symbol symbols[] = {
        {"cublasCreate_v2", &p->api.create},
        {"cublasDestroy_v2", &p->api.destroy},
        {"cublasSetStream_v2", &p->api.set_stream},
        {"cublasSetWorkspace_v2", &p->api.set_workspace},
        {"cublasGemmEx", &p->api.gemm_ex},
    };
    return bench_library_find(&p->library, symbols, sizeof symbols / sizeof *symbols, why, size);
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
    snprintf(why, size, "%s does not start (cuBLAS status %d)", p->library.name, result);
    return false;
}

struct peer *peer_open(struct device *device, const char *path, char *why, size_t size)
{
    static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so", NULL};
    struct peer *p = calloc(1, sizeof *p);
    snprintf(why, size, "no memory");
    if (!p)
        return NULL;
    p->device = p->product.weights.device = p->product.with_rows.device = device;
    if (device->emulated)
        snprintf(why, size, "not on the emulator");
    else if (bench_library_open(&p->library, path, names, why, size) && start(p, why, size))
        return p;
    peer_close(p);
    return NULL;
}

void peer_close(struct peer *p)
{
    if (!p)
        return;
    bench_free(&p->product.weights);
    bench_free(&p->product.with_rows);
    if (p->handle)
        p->api.destroy(p->handle);
    if (p->workspace)
        p->device->driver.mem_free(p->workspace);
    bench_library_close(&p->library);
    free(p);
}

const char *peer_name(const struct peer *p)
{
    return p->library.name;
}

/* ---- the product ---- */

static void *pointer(ptxgen_cu_deviceptr address)
{
    return (void *)(uintptr_t)address;
}

/* cuBLAS thinks by columns: it computes yᵀ[n, m] = W[n, k] · xᵀ[k, m]. */
static ptxgen_status launch(void *state, uint32_t copy, ptxgen_error *err)
{
    const struct peer *peer = state;
    const struct product *p = &peer->product;
    const float one = 1, zero = 0;
    ptxgen_cu_deviceptr w = p->w + 2 * (uint64_t)copy * (unsigned)p->k * (unsigned)p->n;
    int result =
        peer->api.gemm_ex(peer->handle, p->transposed ? OP_T : OP_N, OP_N, p->n, p->m, p->k, &one,
                          pointer(w), p->type, p->transposed ? p->k : p->n, pointer(p->x), p->type,
                          p->k, &zero, pointer(p->y), p->type, p->n, COMPUTE_32F, GEMM_DEFAULT);
    if (result == SUCCESS)
        return PTXGEN_OK;
    return ptxgen_fail(err, PTXGEN_ERROR_DRIVER, "cublasGemmEx failed with status %d", result);
}

static int element_of(const struct product *p)
{
    return p->type == R_16BF ? PTXGEN_BF16 : PTXGEN_F16;
}

static ptxgen_status allocate_weights(struct peer *peer, int k, int n, ptxgen_error *err)
{
    struct product *p = &peer->product;
    if (p->weights.count && p->k == k && p->n == n)
        return PTXGEN_OK;
    bench_free(&p->weights);
    p->rows = 0;
    p->k = k;
    p->n = n;
    p->copies = bench_copies(peer->device, 2 * (uint64_t)k * (uint64_t)n);
    return bench_random_memory(&p->weights, "the peer's W", element_of(p),
                               2 * p->copies * (size_t)k * (size_t)n, &p->w, err);
}

static ptxgen_status allocate_rows(struct peer *peer, int m, ptxgen_error *err)
{
    struct product *p = &peer->product;
    size_t rows = 1;
    p->m = m;
    if (m <= p->rows)
        return PTXGEN_OK;
    while (rows < (size_t)m)
        rows *= 2;
    bench_free(&p->with_rows);
    p->rows = 0;
    ptxgen_status status = bench_random_memory(&p->with_rows, "the peer's x", element_of(p),
                                               2 * rows * (size_t)p->k, &p->x, err);
    if (status == PTXGEN_OK)
        status = bench_random_memory(&p->with_rows, "the peer's y", element_of(p),
                                     2 * rows * (size_t)p->n, &p->y, err);
    if (status == PTXGEN_OK)
        p->rows = rows <= INT32_MAX ? (int)rows : m;
    return status;
}

static ptxgen_status time_layout(struct peer *peer, bool transposed, unsigned launches,
                                 unsigned replays, struct timing *timing, ptxgen_error *err)
{
    peer->product.transposed = transposed;
    return bench_time(peer->device, launch, peer, peer->product.copies, launches, replays, timing,
                      err);
}

ptxgen_status peer_time(struct peer *peer, ptxgen_element type, uint32_t m, uint32_t k, uint32_t n,
                        unsigned launches, unsigned replays, struct timing *timing,
                        ptxgen_error *err)
{
    struct timing other;
    peer->product.type = type == PTXGEN_BF16 ? R_16BF : R_16F;
    ptxgen_status status = allocate_weights(peer, (int)k, (int)n, err);
    if (status == PTXGEN_OK)
        status = allocate_rows(peer, (int)m, err);
    if (status == PTXGEN_OK)
        status = time_layout(peer, true, launches, replays, timing, err);
    if (status == PTXGEN_OK)
        status = time_layout(peer, false, launches, replays, &other, err);
    if (status == PTXGEN_OK && other.median < timing->median)
        *timing = other;
    return status;
}
