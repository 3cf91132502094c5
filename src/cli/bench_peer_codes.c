/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_peer_codes.h"

#include "../harness/operand.h"
#include "bench_library.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- what we call of cuBLASLt, with its own numbers and structs ---- */

enum {
    OP_T = 1,
    R_32F = 0,
    R_8I = 3,
    R_32I = 10,
    R_16BF = 14,
    R_8F_E4M3 = 28,
    COMPUTE_32F = 68,
    COMPUTE_32I = 72,
    DESC_TRANSPOSE_A = 3,
    PREFER_WORKSPACE_BYTES = 1,
    SUCCESS = 0
};

struct algorithm {
    uint64_t data[8];
    size_t workspace_bytes;
    int state;
    float waves;
    int reserved[4];
};

struct api {
    int (*create)(void **handle);
    int (*destroy)(void *handle);
    int (*desc_create)(void **desc, int compute_type, int scale_type);
    int (*desc_destroy)(void *desc);
    int (*desc_set)(void *desc, int attribute, const void *value, size_t bytes);
    int (*layout_create)(void **layout, int type, uint64_t rows, uint64_t columns, int64_t pitch);
    int (*layout_destroy)(void *layout);
    int (*preference_create)(void **preference);
    int (*preference_destroy)(void *preference);
    int (*preference_set)(void *preference, int attribute, const void *value, size_t bytes);
    int (*propose)(void *handle, void *desc, void *a, void *b, void *c, void *d, void *preference,
                   int wanted, struct algorithm *algorithms, int *found);
    int (*matmul)(void *handle, void *desc, const void *alpha, const void *a, void *a_layout,
                  const void *b, void *b_layout, const void *beta, const void *c, void *c_layout,
                  void *d, void *d_layout, const void *algorithm, void *workspace,
                  size_t workspace_bytes, ptxgen_cu_stream stream);
};

struct codes_peer {
    struct device *device;
    struct bench_library library;
    void *handle;
    struct api api;
    ptxgen_cu_deviceptr workspace;
};

enum { WORKSPACE_BYTES = 32 << 20, MOST_ALGORITHMS = 8 };

static bool find_symbols(struct codes_peer *p, char *why, size_t size)
{
    struct api *a = &p->api;
    const struct bench_symbol symbols[] = {
        {"cublasLtCreate", &a->create},
        {"cublasLtDestroy", &a->destroy},
        {"cublasLtMatmulDescCreate", &a->desc_create},
        {"cublasLtMatmulDescDestroy", &a->desc_destroy},
        {"cublasLtMatmulDescSetAttribute", &a->desc_set},
        {"cublasLtMatrixLayoutCreate", &a->layout_create},
        {"cublasLtMatrixLayoutDestroy", &a->layout_destroy},
        {"cublasLtMatmulPreferenceCreate", &a->preference_create},
        {"cublasLtMatmulPreferenceDestroy", &a->preference_destroy},
        {"cublasLtMatmulPreferenceSetAttribute", &a->preference_set},
        {"cublasLtMatmulAlgoGetHeuristic", &a->propose},
        {"cublasLtMatmul", &a->matmul},
    };
    return bench_library_find(&p->library, symbols, sizeof symbols / sizeof *symbols, why, size);
}

static bool start(struct codes_peer *p, char *why, size_t size)
{
    if (!find_symbols(p, why, size))
        return false;
    int result = p->api.create(&p->handle);
    if (result != SUCCESS) {
        snprintf(why, size, "%s does not start (cuBLAS status %d)", p->library.name, result);
        return false;
    }
    if (p->device->driver.mem_alloc(&p->workspace, WORKSPACE_BYTES) == PTXGEN_CUDA_SUCCESS)
        return true;
    snprintf(why, size, "no device memory for a workspace of %d bytes", WORKSPACE_BYTES);
    return false;
}

struct codes_peer *codes_peer_open(struct device *device, const char *path, char *why, size_t size)
{
    static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so",
                                        NULL};
    struct codes_peer *p = calloc(1, sizeof *p);
    snprintf(why, size, "no memory");
    if (!p)
        return NULL;
    p->device = device;
    if (device->emulated)
        snprintf(why, size, "not on the emulator");
    else if (bench_library_open(&p->library, path, names, why, size) && start(p, why, size))
        return p;
    codes_peer_close(p);
    return NULL;
}

void codes_peer_close(struct codes_peer *p)
{
    if (!p)
        return;
    if (p->handle)
        p->api.destroy(p->handle);
    if (p->workspace)
        p->device->driver.mem_free(p->workspace);
    bench_library_close(&p->library);
    free(p);
}

const char *codes_peer_name(const struct codes_peer *p)
{
    return p->library.name;
}

/* ---- the product ---- */

/*
 * cuBLASLt's matrices are stored by columns, and it multiplies types of 8 bits only as aᵀ · b,
 * where K is contiguous in both: either of W and x in either place.
 */
struct product {
    struct codes_peer *peer;
    bool e4m3;
    uint32_t copies;
    uint64_t copy_bytes;
    bool x_first;     /* y by columns */
    uint64_t x, w, y; /* device addresses */
    struct bench_memory memory;
    void *desc, *a, *b, *c, *preference;
    struct algorithm algorithm;
};

static void *pointer(ptxgen_cu_deviceptr address)
{
    return (void *)(uintptr_t)address;
}

static ptxgen_status explain(int result, const char *what, ptxgen_error *err)
{
    if (result == SUCCESS)
        return PTXGEN_OK;
    return ptxgen_fail(err, PTXGEN_ERROR_DRIVER, "%s failed with cuBLAS status %d", what, result);
}

static ptxgen_status launch(void *state, uint32_t copy, ptxgen_error *err)
{
    const struct product *p = state;
    const struct codes_peer *peer = p->peer;
    const int32_t one = 1, zero = 0;
    const float one_f32 = 1, zero_f32 = 0;
    const void *alpha = p->e4m3 ? (const void *)&one_f32 : &one;
    const void *beta = p->e4m3 ? (const void *)&zero_f32 : &zero;
    void *w = pointer(p->w + copy * p->copy_bytes), *x = pointer(p->x), *y = pointer(p->y);
    return explain(peer->api.matmul(peer->handle, p->desc, alpha, p->x_first ? x : w, p->a,
                                    p->x_first ? w : x, p->b, beta, y, p->c, y, p->c,
                                    p->algorithm.data, pointer(peer->workspace), WORKSPACE_BYTES,
                                    peer->device->stream),
                   "cublasLtMatmul", err);
}

static void undescribe(struct product *p)
{
    const struct api *api = &p->peer->api;
    void *const layouts[] = {p->a, p->b, p->c};
    for (int i = 0; i < 3; i++)
        if (layouts[i])
            api->layout_destroy(layouts[i]);
    if (p->preference)
        api->preference_destroy(p->preference);
    if (p->desc)
        api->desc_destroy(p->desc);
    p->a = p->b = p->c = p->preference = p->desc = NULL;
}

static ptxgen_status describe(struct product *p, uint32_t m, uint32_t k, uint32_t n,
                              ptxgen_error *err)
{
    const struct api *api = &p->peer->api;
    const int transposed = OP_T;
    const uint64_t workspace = WORKSPACE_BYTES;
    uint32_t rows = p->x_first ? m : n, columns = p->x_first ? n : m;
    const int code = p->e4m3 ? R_8F_E4M3 : R_8I, output = p->e4m3 ? R_16BF : R_32I;
    int result =
        api->desc_create(&p->desc, p->e4m3 ? COMPUTE_32F : COMPUTE_32I, p->e4m3 ? R_32F : R_32I);
    if (result == SUCCESS)
        result = api->desc_set(p->desc, DESC_TRANSPOSE_A, &transposed, sizeof transposed);
    if (result == SUCCESS)
        result = api->layout_create(&p->a, code, k, rows, k);
    if (result == SUCCESS)
        result = api->layout_create(&p->b, code, k, columns, k);
    if (result == SUCCESS)
        result = api->layout_create(&p->c, output, rows, columns, rows);
    if (result == SUCCESS)
        result = api->preference_create(&p->preference);
    if (result == SUCCESS)
        result = api->preference_set(p->preference, PREFER_WORKSPACE_BYTES, &workspace,
                                     sizeof workspace);
    return explain(result, "describing the product", err);
}

/* The fastest of the algorithms proposed, each timed briefly; none where none is, or runs. */
static ptxgen_status choose_algorithm(struct product *p, double *least, ptxgen_error *err)
{
    enum { REPLAYS = 3 };
    struct codes_peer *peer = p->peer;
    struct algorithm found[MOST_ALGORITHMS], best = {.state = -1};
    int count = 0;
    *least = 0;
    if (peer->api.propose(peer->handle, p->desc, p->a, p->b, p->c, p->c, p->preference,
                          MOST_ALGORITHMS, found, &count) != SUCCESS)
        return PTXGEN_OK;
    for (int i = 0; i < count; i++) {
        struct timing timing;
        p->algorithm = found[i];
        if (bench_time(peer->device, launch, p, p->copies, 4 * p->copies, REPLAYS, &timing, err) !=
            PTXGEN_OK)
            continue;
        if (*least == 0 || timing.median < *least) {
            *least = timing.median;
            best = found[i];
        }
    }
    p->algorithm = best;
    return PTXGEN_OK;
}

static ptxgen_status time_layout(struct product *p, bool x_first, uint32_t m, uint32_t k,
                                 uint32_t n, unsigned launches, unsigned replays,
                                 struct timing *timing, ptxgen_error *err)
{
    double least = 0;
    p->x_first = x_first;
    ptxgen_status status = describe(p, m, k, n, err);
    if (status == PTXGEN_OK)
        status = choose_algorithm(p, &least, err);
    if (status == PTXGEN_OK && least > 0) {
        struct timing found;
        status = bench_time(p->peer->device, launch, p, p->copies, launches, replays, &found, err);
        if (status == PTXGEN_OK && (!timing->replays || found.median < timing->median))
            *timing = found;
    }
    undescribe(p);
    return status;
}

static ptxgen_status allocate(struct product *p, uint32_t m, uint32_t k, uint32_t n,
                              ptxgen_error *err)
{
    struct bench_memory *memory = &p->memory;
    const int code = p->e4m3 ? ELEMENT_E4M3 : ELEMENT_S8;
    p->copy_bytes = (uint64_t)n * k;
    p->copies = bench_copies(memory->device, p->copy_bytes);
    ptxgen_status status =
        bench_random_memory(memory, "the peer's x", code, (size_t)m * k, &p->x, err);
    if (status == PTXGEN_OK)
        status = bench_random_memory(memory, "the peer's W", code, p->copies * p->copy_bytes, &p->w,
                                     err);
    if (status == PTXGEN_OK)
        status = bench_random_memory(memory, "the peer's y", ELEMENT_BYTES, 4 * (size_t)m * n,
                                     &p->y, err);
    return status;
}

ptxgen_status codes_peer_time(struct codes_peer *peer, bool e4m3, uint32_t m, uint32_t k,
                              uint32_t n, unsigned launches, unsigned replays,
                              struct timing *timing, ptxgen_error *err)
{
    struct product p = {.peer = peer, .e4m3 = e4m3, .memory = {.device = peer->device}};
    *timing = (struct timing){0};
    ptxgen_status status = allocate(&p, m, k, n, err);
    for (int i = 0; status == PTXGEN_OK && i < 2; i++)
        status = time_layout(&p, i, m, k, n, launches, replays, timing, err);
    if (status == PTXGEN_OK && !timing->replays)
        status = ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                             "cuBLASLt proposes no algorithm that runs for %u x %u x %u", m, n, k);
    bench_free(&p.memory);
    return status;
}
