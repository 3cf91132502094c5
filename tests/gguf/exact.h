/* SPDX-License-Identifier: Apache-2.0 */
/* Weights of a row in double, with no rounding. */
#ifndef PTXGEN_TESTS_GGUF_EXACT_H
#define PTXGEN_TESTS_GGUF_EXACT_H

#include "src/kernels/gguf/block.h"

static inline void decode_exactly(uint32_t type, const uint8_t *row, size_t k, double *weights)
{
    const struct gguf_format *f = gguf_format_of(type);
    for (size_t i = 0; i < k; i += f->info.block_weights, row += f->info.block_bytes) {
        struct gguf_block block;
        f->unpack(row, &block);
        for (size_t j = 0; j < f->info.block_weights; j++)
            weights[i + j] = (double)block.scale[j / block.group] * block.code[j] -
                             (double)block.min[j / block.group];
    }
}

#endif
