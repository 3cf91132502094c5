/* SPDX-License-Identifier: Apache-2.0 */
#include "shape.h"

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

ptxgen_status sparse24_check_span(const char *what, const void *data, size_t bytes, size_t expected,
                                  ptxgen_error *err)
{
    if (bytes != expected)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "%s has %zu bytes; its shape takes exactly %zu", what, bytes, expected);
    if (!data && bytes > 0)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%s is NULL", what);
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
