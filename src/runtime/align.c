/* SPDX-License-Identifier: Apache-2.0 */
#include "src/runtime/align.h"

#include "src/kernels/tile/align.h"

ptxgen_status launch_align(const ptxgen_kernel *kernel, const struct launch_rows *shape,
                           uint64_t out, uint64_t *address, uint64_t *stride,
                           ptxgen_cu_stream stream, ptxgen_error *err)
{
    void *arguments[TILE_ALIGN_PARAMS] = {
        [TILE_ALIGN_X] = address, [TILE_ALIGN_OUT] = &out, [TILE_ALIGN_X_STRIDE] = stride};
    const ptxgen_launch_shape launch = {.grid = {shape->rows, 1, 1},
                                        .block = {TILE_ALIGN_THREADS, 1, 1}};
    ptxgen_status status = ptxgen_launch(kernel, &launch, stream, arguments, err);
    *address = out;
    *stride = tile_aligned_bytes(shape->columns, shape->element) / shape->element;
    return status;
}
