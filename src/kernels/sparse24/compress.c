/* SPDX-License-Identifier: Apache-2.0 */
#include "metadata.h"

static size_t group_count(const ptxgen_sparse24_shape *shape)
{
    return shape->k / SPARSE24_GROUP;
}

static ptxgen_status check_arrays(const ptxgen_sparse24_shape *shape, const void *values,
                                  size_t values_bytes, ptxgen_sparse24_form form,
                                  const void *metadata, size_t metadata_bytes, ptxgen_error *err)
{
    size_t dense;
    ptxgen_status status;
    if ((status = ptxgen_sparse24_dense_bytes(shape, &dense, err)) != PTXGEN_OK ||
        (status = sparse24_check_span("values", values, values_bytes, dense / 2, err)) != PTXGEN_OK)
        return status;
    return sparse24_check_metadata_span(shape, form, metadata, metadata_bytes, err);
}

/*
 * The nibble by the non-zero elements of a group, element i in bit i; 0 where there are too many.
 */
static const unsigned char nibble_of_nonzeros[16] = {
    [0x0] = 0xE, [0x1] = 0x8, [0x2] = 0x9, [0x4] = 0xE, [0x8] = 0xE, /* fewer than two */
    [0x3] = 0x4, [0x5] = 0x8, [0x6] = 0x9, [0x9] = 0xC, [0xA] = 0xD, [0xC] = 0xE,
};

static unsigned nonzeros_of(ptxgen_sparse24_type type, const void *dense, size_t first)
{
    unsigned nonzeros = 0;
    for (unsigned i = 0; i < SPARSE24_GROUP; i++)
        if (sparse24_magnitude(type, sparse24_bits(type, dense, first + i)) != 0)
            nonzeros |= 1u << i;
    return nonzeros;
}

static ptxgen_status refuse_group(size_t row, size_t group, unsigned nonzeros, ptxgen_error *err)
{
    return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                       "row %zu, group %zu (columns %zu to %zu) has %d non-zeros; a 2:4 weight has "
                       "at most two of every four",
                       row, group, group * SPARSE24_GROUP, group * SPARSE24_GROUP + 3,
                       nonzeros == 0xF ? 4 : 3);
}

ptxgen_status ptxgen_sparse24_compress(const ptxgen_sparse24_shape *shape, ptxgen_const_span dense,
                                       ptxgen_span values, ptxgen_sparse24_form form,
                                       ptxgen_span metadata, ptxgen_error *err)
{
    ptxgen_status status;
    if ((status = check_arrays(shape, values.data, values.bytes, form, metadata.data,
                               metadata.bytes, err)) != PTXGEN_OK ||
        (status = sparse24_check_span("dense", dense.data, dense.bytes, 2 * values.bytes, err)) !=
            PTXGEN_OK)
        return status;
    for (size_t row = 0; row < shape->n; row++)
        for (size_t group = 0; group < group_count(shape); group++) {
            size_t first = row * shape->k + group * SPARSE24_GROUP;
            unsigned nonzeros = nonzeros_of(shape->type, dense.data, first);
            unsigned nibble = nibble_of_nonzeros[nonzeros];
            if (nibble == 0)
                return refuse_group(row, group, nonzeros, err);
            const unsigned kept[] = {sparse24_first(nibble), sparse24_second(nibble)};
            for (unsigned i = 0; i < SPARSE24_KEPT; i++)
                sparse24_put_bits(shape->type, values.data, first / 2 + i,
                                  sparse24_bits(shape->type, dense.data, first + kept[i]));
            sparse24_store_group(shape, form, metadata.data, row, group, nibble);
        }
    return PTXGEN_OK;
}

ptxgen_status ptxgen_sparse24_decompress(const ptxgen_sparse24_shape *shape,
                                         ptxgen_const_span values, ptxgen_sparse24_form form,
                                         ptxgen_const_span metadata, ptxgen_span dense,
                                         ptxgen_error *err)
{
    ptxgen_status status;
    if ((status = check_arrays(shape, values.data, values.bytes, form, metadata.data,
                               metadata.bytes, err)) != PTXGEN_OK ||
        (status = sparse24_check_span("dense", dense.data, dense.bytes, 2 * values.bytes, err)) !=
            PTXGEN_OK)
        return status;
    for (size_t row = 0; row < shape->n; row++)
        for (size_t group = 0; group < group_count(shape); group++) {
            size_t first = row * shape->k + group * SPARSE24_GROUP;
            unsigned nibble;
            status = sparse24_load_group(shape, form, metadata.data, row, group, &nibble, err);
            if (status != PTXGEN_OK)
                return status;
            uint32_t group_bits[SPARSE24_GROUP] = {0};
            group_bits[sparse24_first(nibble)] = sparse24_bits(shape->type, values.data, first / 2);
            group_bits[sparse24_second(nibble)] =
                sparse24_bits(shape->type, values.data, first / 2 + 1);
            for (unsigned i = 0; i < SPARSE24_GROUP; i++)
                sparse24_put_bits(shape->type, dense.data, first + i, group_bits[i]);
        }
    return PTXGEN_OK;
}

ptxgen_status ptxgen_sparse24_validate(const ptxgen_sparse24_shape *shape, ptxgen_const_span values,
                                       ptxgen_sparse24_form form, ptxgen_const_span metadata,
                                       ptxgen_error *err)
{
    ptxgen_status status =
        check_arrays(shape, values.data, values.bytes, form, metadata.data, metadata.bytes, err);
    if (status != PTXGEN_OK)
        return status;
    for (size_t row = 0; row < shape->n; row++)
        for (size_t group = 0; group < group_count(shape); group++) {
            unsigned nibble;
            status = sparse24_load_group(shape, form, metadata.data, row, group, &nibble, err);
            if (status != PTXGEN_OK)
                return status;
        }
    return PTXGEN_OK;
}
