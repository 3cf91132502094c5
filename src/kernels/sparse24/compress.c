/* SPDX-License-Identifier: Apache-2.0 */
/* A weight as values and metadata, and back. */
#include "formats.h"

static ptxgen_const_span read_only(ptxgen_span s)
{
    return (ptxgen_const_span){s.data, s.bytes};
}

/* The arrays of a weight, of which a dense one is NULL where there is none. */
static ptxgen_status check(const ptxgen_sparse24_shape *shape, const ptxgen_const_span *dense,
                           ptxgen_const_span values, ptxgen_sparse24_form form,
                           ptxgen_const_span metadata, ptxgen_error *err)
{
    size_t bytes;
    struct sparse24_array of_metadata;
    ptxgen_status status = ptxgen_sparse24_dense_bytes(shape, &bytes, err);
    if (status == PTXGEN_OK)
        status = sparse24_describe_metadata(shape, form, metadata, &of_metadata, err);
    if (status != PTXGEN_OK)
        return status;
    const struct sparse24_array arrays[] = {
        {"values", values.data, values.bytes, bytes / 2},
        of_metadata,
        {"dense", dense ? dense->data : NULL, dense ? dense->bytes : 0, bytes}};
    return sparse24_check_arrays(arrays, dense ? 3 : 2, err);
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

static ptxgen_status compress_group(const ptxgen_sparse24_shape *shape, const void *dense,
                                    void *values, size_t row, size_t group, unsigned *nibble,
                                    ptxgen_error *err)
{
    size_t first = row * shape->k + group * SPARSE24_GROUP;
    unsigned nonzeros = nonzeros_of(shape->type, dense, first);
    *nibble = nibble_of_nonzeros[nonzeros];
    if (*nibble == 0)
        return refuse_group(row, group, nonzeros, err);
    const unsigned kept[] = {sparse24_first(*nibble), sparse24_second(*nibble)};
    for (unsigned i = 0; i < SPARSE24_KEPT; i++)
        sparse24_put_bits(shape->type, values, first / 2 + i,
                          sparse24_bits(shape->type, dense, first + kept[i]));
    return PTXGEN_OK;
}

ptxgen_status ptxgen_sparse24_compress(const ptxgen_sparse24_shape *shape, ptxgen_const_span dense,
                                       ptxgen_span values, ptxgen_sparse24_form form,
                                       ptxgen_span metadata, ptxgen_error *err)
{
    ptxgen_status status = check(shape, &dense, read_only(values), form, read_only(metadata), err);
    if (status != PTXGEN_OK)
        return status;
    const size_t groups = sparse24_groups(shape), rows = groups ? shape->n : 0;
    for (size_t row = 0; status == PTXGEN_OK && row < rows; row++)
        for (size_t group = 0; status == PTXGEN_OK && group < groups; group++) {
            unsigned nibble;
            status = compress_group(shape, dense.data, values.data, row, group, &nibble, err);
            if (status == PTXGEN_OK)
                sparse24_store_group(shape, form, metadata.data, row, group, nibble);
        }
    return status;
}

/* ---- what reads metadata ---- */

/* Where a weight's groups go: to a dense weight, or metadata of another form, or nowhere. */
struct target {
    const void *values;
    void *dense;
    ptxgen_sparse24_form form;
    void *metadata;
};

static void store_group(const ptxgen_sparse24_shape *shape, const struct target *to, size_t row,
                        size_t group, unsigned nibble)
{
    size_t first = row * shape->k + group * SPARSE24_GROUP;
    uint32_t bits[SPARSE24_GROUP] = {0};
    if (to->metadata)
        sparse24_store_group(shape, to->form, to->metadata, row, group, nibble);
    if (!to->dense)
        return;
    bits[sparse24_first(nibble)] = sparse24_bits(shape->type, to->values, first / 2);
    bits[sparse24_second(nibble)] = sparse24_bits(shape->type, to->values, first / 2 + 1);
    for (unsigned i = 0; i < SPARSE24_GROUP; i++)
        sparse24_put_bits(shape->type, to->dense, first + i, bits[i]);
}

static ptxgen_status refuse_mask(size_t row, size_t group, unsigned nibble, ptxgen_error *err)
{
    return ptxgen_fail(
        err, PTXGEN_ERROR_UNSUPPORTED,
        "row %zu, group %zu keeps positions %u and %u, in this order, which a bitmask "
        "does not say",
        row, group, sparse24_first(nibble), sparse24_second(nibble));
}

/* Reads the metadata of all groups, and refuses what is none. */
static ptxgen_status read_groups(const struct sparse24_metadata *m, const struct target *to,
                                 ptxgen_error *err)
{
    const size_t groups = sparse24_groups(&m->shape), rows = groups ? m->shape.n : 0;
    for (size_t row = 0; row < rows; row++)
        for (size_t group = 0; group < groups; group++) {
            unsigned nibble;
            ptxgen_status status = sparse24_load_group(m, row, group, &nibble, err);
            if (status != PTXGEN_OK)
                return status;
            if (to->metadata && to->form == PTXGEN_SPARSE24_BITMASK && sparse24_falls(nibble))
                return refuse_mask(row, group, nibble, err);
            store_group(&m->shape, to, row, group, nibble);
        }
    return PTXGEN_OK;
}

ptxgen_status ptxgen_sparse24_decompress(const ptxgen_sparse24_shape *shape,
                                         ptxgen_const_span values, ptxgen_sparse24_form form,
                                         ptxgen_const_span metadata, ptxgen_span dense,
                                         ptxgen_error *err)
{
    const ptxgen_const_span written = read_only(dense);
    ptxgen_status status = check(shape, &written, values, form, metadata, err);
    if (status != PTXGEN_OK)
        return status;
    return read_groups(&(struct sparse24_metadata){*shape, form, metadata.data},
                       &(struct target){.values = values.data, .dense = dense.data}, err);
}

ptxgen_status ptxgen_sparse24_validate(const ptxgen_sparse24_shape *shape, ptxgen_const_span values,
                                       ptxgen_sparse24_form form, ptxgen_const_span metadata,
                                       ptxgen_error *err)
{
    ptxgen_status status = check(shape, NULL, values, form, metadata, err);
    if (status != PTXGEN_OK)
        return status;
    return read_groups(&(struct sparse24_metadata){*shape, form, metadata.data},
                       &(struct target){.dense = NULL}, err);
}

ptxgen_status ptxgen_sparse24_convert(const ptxgen_sparse24_shape *shape, ptxgen_sparse24_form from,
                                      ptxgen_const_span source, ptxgen_sparse24_form to,
                                      ptxgen_span target, ptxgen_error *err)
{
    struct sparse24_array arrays[2];
    ptxgen_status status = sparse24_describe_metadata(shape, from, source, &arrays[0], err);
    if (status == PTXGEN_OK)
        status = sparse24_describe_metadata(shape, to, read_only(target), &arrays[1], err);
    if (status == PTXGEN_OK)
        status = sparse24_check_arrays(arrays, 2, err);
    if (status != PTXGEN_OK)
        return status;
    return read_groups(&(struct sparse24_metadata){*shape, from, source.data},
                       &(struct target){.form = to, .metadata = target.data}, err);
}
