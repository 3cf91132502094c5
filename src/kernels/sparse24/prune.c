/* SPDX-License-Identifier: Apache-2.0 */
#include "shape.h"

#include <stdbool.h>

/* Whether element i of a group is one of its two largest, ties to the lower index. */
static bool is_kept(const uint32_t magnitude[SPARSE24_GROUP], size_t i)
{
    unsigned ahead = 0;
    for (size_t j = 0; j < SPARSE24_GROUP; j++)
        ahead += magnitude[j] > magnitude[i] || (magnitude[j] == magnitude[i] && j < i);
    return ahead < SPARSE24_KEPT;
}

static void prune_group(ptxgen_sparse24_type type, const void *dense, void *pruned, size_t first)
{
    uint32_t bits[SPARSE24_GROUP], magnitude[SPARSE24_GROUP];
    for (size_t i = 0; i < SPARSE24_GROUP; i++) {
        bits[i] = sparse24_bits(type, dense, first + i);
        magnitude[i] = sparse24_magnitude(type, bits[i]);
    }
    for (size_t i = 0; i < SPARSE24_GROUP; i++)
        sparse24_put_bits(type, pruned, first + i, is_kept(magnitude, i) ? bits[i] : 0);
}

ptxgen_status ptxgen_sparse24_prune(const ptxgen_sparse24_shape *shape, ptxgen_const_span dense,
                                    ptxgen_span pruned, ptxgen_error *err)
{
    size_t bytes;
    ptxgen_status status;
    if ((status = ptxgen_sparse24_dense_bytes(shape, &bytes, err)) != PTXGEN_OK ||
        (status = sparse24_check_span("dense", dense.data, dense.bytes, bytes, err)) != PTXGEN_OK ||
        (status = sparse24_check_span("pruned", pruned.data, pruned.bytes, bytes, err)) !=
            PTXGEN_OK)
        return status;
    for (size_t i = 0; i < shape->n * shape->k; i += SPARSE24_GROUP)
        prune_group(shape->type, dense.data, pruned.data, i);
    return PTXGEN_OK;
}
