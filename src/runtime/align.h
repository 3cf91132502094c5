/* SPDX-License-Identifier: Apache-2.0 */
/* Launching the entry of src/kernels/tile/align.h. */
#ifndef PTXGEN_RUNTIME_ALIGN_H
#define PTXGEN_RUNTIME_ALIGN_H

#include <ptxgen/kernel.h>

struct launch_rows {
    uint64_t rows, columns;
    uint32_t element; /* bytes */
};

/* Brings rows to multiples of 16 bytes at `out`, and turns the address and stride to them. */
ptxgen_status launch_align(const ptxgen_kernel *kernel, const struct launch_rows *shape,
                           uint64_t out, uint64_t *address, uint64_t *stride,
                           ptxgen_cu_stream stream, ptxgen_error *err);

#endif
