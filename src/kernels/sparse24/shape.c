/* SPDX-License-Identifier: Apache-2.0 */
#include "formats.h"

#include <string.h>

enum { K_MULTIPLE = 8 };

struct element {
    unsigned char bytes;
    uint32_t infinity; /* bits of a float type's; 0 for an integer */
};

static const struct element elements[] = {
    [PTXGEN_SPARSE24_F32] = {4, 0x7F800000},
    [PTXGEN_SPARSE24_F16] = {2, 0x7C00},
    [PTXGEN_SPARSE24_BF16] = {2, 0x7F80},
    [PTXGEN_SPARSE24_S8] = {1, 0},
};

size_t sparse24_element_bytes(ptxgen_sparse24_type type)
{
    return (size_t)type < sizeof elements / sizeof *elements ? elements[type].bytes : 0;
}

uint32_t sparse24_bits(ptxgen_sparse24_type type, const void *array, size_t index)
{
    const size_t bytes = elements[type].bytes;
    uint32_t bits = 0;
    memcpy(&bits, (const unsigned char *)array + index * bytes, bytes);
    return bits;
}

void sparse24_put_bits(ptxgen_sparse24_type type, void *array, size_t index, uint32_t bits)
{
    const size_t bytes = elements[type].bytes;
    memcpy((unsigned char *)array + index * bytes, &bits, bytes);
}

uint32_t sparse24_magnitude(ptxgen_sparse24_type type, uint32_t bits)
{
    const struct element *element = &elements[type];
    if (element->infinity == 0)
        return bits & 0x80 ? 0x100 - bits : bits;
    uint32_t sign = UINT32_C(1) << (8 * element->bytes - 1);
    uint32_t magnitude = bits & ~sign; /* an IEEE number's order is its bits' */
    return magnitude > element->infinity ? element->infinity + 1 : magnitude;
}

ptxgen_status sparse24_check_arrays(const struct sparse24_array *arrays, size_t count,
                                    ptxgen_error *err)
{
    for (const struct sparse24_array *a = arrays; a < arrays + count; a++) {
        if (a->bytes != a->expected)
            return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                               "%s has %zu bytes; its shape takes exactly %zu", a->name, a->bytes,
                               a->expected);
        if (!a->data && a->bytes > 0)
            return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%s is NULL", a->name);
    }
    return PTXGEN_OK;
}

ptxgen_status ptxgen_sparse24_dense_bytes(const ptxgen_sparse24_shape *shape, size_t *bytes,
                                          ptxgen_error *err)
{
    if (!shape || !bytes)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%s is NULL",
                           shape ? "bytes" : "shape");
    size_t size = sparse24_element_bytes(shape->type);
    if (size == 0)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "%d is no element type of a 2:4 weight", (int)shape->type);
    if (shape->k % K_MULTIPLE != 0)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "K = %zu is not a multiple of %d, as 2:4 metadata needs", shape->k,
                           K_MULTIPLE);
    if (shape->k > SIZE_MAX / size || (shape->k > 0 && shape->n > SIZE_MAX / (shape->k * size)))
        return ptxgen_fail(
            err, PTXGEN_ERROR_INVALID_ARGUMENT,
            "a weight of N = %zu features of K = %zu elements is too large for memory", shape->n,
            shape->k);
    *bytes = shape->n * shape->k * size;
    return PTXGEN_OK;
}

/* ---- pruning ---- */

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
    ptxgen_status status = ptxgen_sparse24_dense_bytes(shape, &bytes, err);
    if (status != PTXGEN_OK)
        return status;
    const struct sparse24_array arrays[] = {{"dense", dense.data, dense.bytes, bytes},
                                            {"pruned", pruned.data, pruned.bytes, bytes}};
    status = sparse24_check_arrays(arrays, 2, err);
    for (size_t i = 0; status == PTXGEN_OK && i < shape->n * shape->k; i += SPARSE24_GROUP)
        prune_group(shape->type, dense.data, pruned.data, i);
    return status;
}
