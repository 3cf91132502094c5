/* SPDX-License-Identifier: Apache-2.0 */
#include "group_order.h"

#include <stdlib.h>

/* A counting sort whose counts must all be group_size, so group g starts at g·group_size. */
ptxgen_status w4_group_order(const ptxgen_w4_info *info, const void *g_idx, uint32_t *order,
                             ptxgen_error *err)
{
    size_t size = (size_t)info->group_size;
    size_t *filled = calloc(info->groups, sizeof *filled);
    if (!filled)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory to sort %zu groups",
                           info->groups);
    ptxgen_status status = PTXGEN_OK;
    for (size_t k = 0; k < info->k && status == PTXGEN_OK; k++) {
        size_t group = g_idx ? w4_load_word(g_idx, k) : w4_plain_group(info, k);
        if (filled[group] == size)
            status = ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                                 "g_idx gives group %zu more than its %zu rows (row %zu is one "
                                 "too many), so rows cannot be sorted into equal groups",
                                 group, size, k);
        else
            order[group * size + filled[group]++] = (uint32_t)k;
    }
    free(filled);
    return status;
}

ptxgen_status ptxgen_w4_sort_rows(const ptxgen_w4_matrix *m, ptxgen_w4_matrix *sorted,
                                  uint32_t *order, ptxgen_error *err)
{
    ptxgen_w4_info info;
    ptxgen_status status;
    if (!sorted || !order || !sorted->codes)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%s is NULL",
                           !sorted  ? "sorted"
                           : !order ? "order"
                                    : "sorted->codes");
    if ((status = ptxgen_w4_describe_matrix(m, &info, err)) != PTXGEN_OK)
        return status;
    if (sorted->codes == m->codes)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "the codes of sorted are those of matrix");
    if ((status = w4_group_order(&info, m->g_idx, order, err)) != PTXGEN_OK)
        return status;
    uint8_t *codes = sorted->codes;
    for (size_t i = 0; i < m->k; i++)
        memcpy(codes + i * m->n, m->codes + order[i] * m->n, m->n);
    *sorted = *m;
    sorted->codes = codes;
    sorted->g_idx = NULL;
    return PTXGEN_OK;
}
