/* SPDX-License-Identifier: Apache-2.0 */
/* Converts between a checkpoint and the neutral form, nibble by nibble, by the table of formats. */
#include "checkpoint.h"

static ptxgen_status check_room(const ptxgen_w4_matrix *m, const ptxgen_w4_info *info,
                                ptxgen_error *err)
{
    if (!m->codes || !m->scales)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%s is NULL",
                           m->codes ? "scales" : "codes");
    if (!m->zeros && !info->symmetric)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "zeros is NULL, but not every zero point is 8");
    if (!m->g_idx && info->act_order)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "g_idx is NULL, but the rows are not in the order of their groups");
    return PTXGEN_OK;
}

static void copy_element(ptxgen_element type, void *to, size_t to_index, const void *from,
                         size_t from_index)
{
    size_t size = ptxgen_element_size(type);
    memcpy((unsigned char *)to + to_index * size, (const unsigned char *)from + from_index * size,
           size);
}

ptxgen_status ptxgen_w4_unpack(const ptxgen_w4_checkpoint *c, ptxgen_w4_matrix *m,
                               ptxgen_error *err)
{
    ptxgen_w4_info info;
    ptxgen_status status;
    if (!m)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "matrix is NULL");
    if ((status = ptxgen_w4_describe(c, &info, err)) != PTXGEN_OK ||
        (status = check_room(m, &info, err)) != PTXGEN_OK)
        return status;

    const struct w4_format *f = w4_format_of(c->format);
    struct w4_dims dims = w4_dims_of(&info);
    const void *groups = w4_row_groups(c, &info);
    m->k = info.k, m->n = info.n;
    m->group_size = info.group_size;
    m->scale_type = info.scale_type;
    for (size_t k = 0; k < info.k; k++)
        for (size_t n = 0; n < info.n; n++)
            m->codes[k * info.n + n] =
                (uint8_t)w4_load_nibble(c->weights.data, f->code(&dims, k, n));
    for (size_t g = 0; g < info.groups; g++)
        for (size_t n = 0; n < info.n; n++) {
            copy_element(info.scale_type, m->scales, g * info.n + n, c->scales.data,
                         w4_scale_index(f, &dims, g, n));
            if (m->zeros)
                m->zeros[g * info.n + n] = (uint8_t)w4_zero(c, &dims, g, n);
        }
    for (size_t k = 0; m->g_idx && k < info.k; k++)
        m->g_idx[k] = groups ? (int32_t)w4_load_word(groups, k) : (int32_t)w4_plain_group(&info, k);
    return PTXGEN_OK;
}

static unsigned matrix_zero(const void *from, const struct w4_dims *dims, size_t g, size_t n)
{
    const ptxgen_w4_matrix *m = from;
    return m->zeros ? m->zeros[g * dims->n + n] : PTXGEN_W4_SYMMETRIC_ZERO;
}

ptxgen_status ptxgen_w4_pack(const ptxgen_w4_matrix *m, const ptxgen_w4_checkpoint *c,
                             ptxgen_error *err)
{
    ptxgen_w4_info info;
    ptxgen_status status;
    if ((status = ptxgen_w4_describe_matrix(m, &info, err)) != PTXGEN_OK ||
        (status = w4_check_output(c, &info, err)) != PTXGEN_OK)
        return status;
    const struct w4_format *f = w4_format_of(c->format);
    if (info.act_order && !f->tensors[W4_G_IDX])
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "%s has no g_idx; sort the rows of a matrix with act-order first",
                           f->name);

    struct w4_dims dims = w4_dims_of(&info);
    memset(c->weights.data, 0, ptxgen_w4_tensor_bytes(&c->weights));
    for (size_t k = 0; k < info.k; k++)
        for (size_t n = 0; n < info.n; n++)
            w4_add_nibble(c->weights.data, f->code(&dims, k, n), m->codes[k * info.n + n]);
    for (size_t g = 0; g < info.groups; g++)
        for (size_t n = 0; n < info.n; n++)
            copy_element(info.scale_type, c->scales.data, w4_scale_index(f, &dims, g, n), m->scales,
                         g * info.n + n);
    w4_write_zeros(c, &dims, &(struct w4_zero_source){matrix_zero, m});
    for (size_t k = 0; c->g_idx.data && k < info.k; k++)
        w4_store_word(c->g_idx.data, k,
                      (uint32_t)(m->g_idx ? (size_t)m->g_idx[k] : w4_plain_group(&info, k)));
    if (c->shape.data) {
        int64_t shape[2] = {(int64_t)info.n, (int64_t)info.k};
        memcpy(c->shape.data, shape, sizeof shape);
    }
    return PTXGEN_OK;
}
