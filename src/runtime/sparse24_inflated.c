/* SPDX-License-Identifier: Apache-2.0 */
#include "src/runtime/sparse24_inflated.h"

#include "src/kernels/sparse24/inflate.h"
#include "src/kernels/sparse24/layout.h"
#include "src/runtime/array.h"
#include "src/runtime/dense.h"
#include "src/runtime/loaded.h"

enum { CHUNK = 16 };

/* Entries are loaded as they were emitted: dense's, its dense_align, then sparse24_inflate. */
static ptxgen_status inflate(const ptxgen_loaded *loaded, uint64_t packed, uint64_t dense,
                             ptxgen_cu_stream stream, ptxgen_error *err)
{
    enum { CTA_CHUNKS = SPARSE24_INFLATE_THREADS * SPARSE24_INFLATE_CHUNKS };
    const ptxgen_sparse24_plan *plan = ptxgen_loaded_plan(loaded);
    const ptxgen_kernel *kernel = ptxgen_loaded_entry(loaded, plan->dense.variant_count + 1);
    void *arguments[SPARSE24_INFLATE_PARAMS] = {
        [SPARSE24_INFLATE_PACKED] = &packed, [SPARSE24_INFLATE_DENSE] = &dense};
    uint64_t ctas = (sparse24_inflate_chunks(&plan->spec) + CTA_CHUNKS - 1) / CTA_CHUNKS;
    const ptxgen_launch_shape shape = {.grid = {ctas, 1, 1},
                                       .block = {SPARSE24_INFLATE_THREADS, 1, 1}};
    return ptxgen_launch(kernel, &shape, stream, arguments, err);
}

ptxgen_status ptxgen_sparse24_inflate(const ptxgen_sparse24 *q, uint64_t packed, uint64_t dense,
                                      ptxgen_cu_stream stream, ptxgen_error *err)
{
    if (!q)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "sparse24: kernel must be given");
    const ptxgen_loaded *loaded = (const ptxgen_loaded *)q;
    const ptxgen_sparse24_plan *plan = ptxgen_loaded_plan(loaded);
    size_t packed_bytes;
    if (sparse24_tier(&plan->spec) != 1)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "sparse24: only kernels of tier 1 inflate");
    ptxgen_status status = ptxgen_sparse24_packed_bytes(&plan->spec, &packed_bytes, err);
    if (status != PTXGEN_OK)
        return status;
    struct launch_array arrays[] = {
        LAUNCH_BYTES("packed", true, LAUNCH_INPUT, packed, CHUNK, packed_bytes),
        LAUNCH_BYTES("dense", true, LAUNCH_OUTPUT, dense, CHUNK,
                     sparse24_dense_weight_bytes(&plan->spec)),
    };
    status = launch_check_arrays("sparse24", arrays, sizeof arrays / sizeof *arrays, err);
    return status == PTXGEN_OK ? inflate(loaded, packed, dense, stream, err) : status;
}

/* ---- the product: dense's workspace, then W ---- */

static ptxgen_dense_args dense_args(const ptxgen_sparse24_args *a)
{
    return (ptxgen_dense_args){.n = a->n,
                               .x = a->x,
                               .w = CHUNK, /* aligned, wherever it will be */
                               .bias = a->bias,
                               .residual = a->residual,
                               .y = a->y,
                               .x_stride = a->x_stride,
                               .residual_stride = a->residual_stride,
                               .y_stride = a->y_stride,
                               .workspace = a->workspace};
}

static ptxgen_status find_w(const ptxgen_sparse24_plan *plan, const ptxgen_dense_args *args,
                            uint64_t *offset, ptxgen_error *err)
{
    ptxgen_status status = dense_workspace_bytes(&plan->dense, args, offset, err);
    if (status == PTXGEN_OK)
        *offset = (*offset + CHUNK - 1) / CHUNK * CHUNK;
    return status;
}

ptxgen_status sparse24_inflated_workspace_bytes(const ptxgen_sparse24_plan *plan,
                                                const ptxgen_sparse24_args *args, uint64_t *bytes,
                                                ptxgen_error *err)
{
    const ptxgen_dense_args dense = dense_args(args);
    *bytes = 0;
    ptxgen_status status = args->n ? find_w(plan, &dense, bytes, err) : PTXGEN_OK;
    if (status == PTXGEN_OK && args->n)
        *bytes += sparse24_dense_weight_bytes(&plan->spec);
    return status;
}

const ptxgen_kernel_attributes *sparse24_inflated_attributes(const ptxgen_loaded *loaded,
                                                             uint64_t n)
{
    const ptxgen_sparse24_plan *plan = ptxgen_loaded_plan(loaded);
    const struct dense_entries entries = {&plan->dense, loaded};
    return dense_attributes(&entries, n);
}

ptxgen_status sparse24_inflated_launch(const ptxgen_loaded *loaded,
                                       const ptxgen_sparse24_args *args, ptxgen_cu_stream stream,
                                       ptxgen_error *err)
{
    const ptxgen_sparse24_plan *plan = ptxgen_loaded_plan(loaded);
    const struct dense_entries entries = {&plan->dense, loaded};
    ptxgen_dense_args dense = dense_args(args);
    uint64_t offset = 0;
    ptxgen_status status = find_w(plan, &dense, &offset, err);
    dense.w = args->workspace + offset;
    dense.workspace_bytes = offset;
    if (status == PTXGEN_OK)
        status = inflate(loaded, args->packed, dense.w, stream, err);
    return status == PTXGEN_OK ? dense_launch(&entries, &dense, stream, err) : status;
}
