/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of a checkpoint, with which every conversion begins. */
#ifndef PTXGEN_KERNELS_MARLIN_FORMATS_CHECKPOINT_H
#define PTXGEN_KERNELS_MARLIN_FORMATS_CHECKPOINT_H

#include "format_table.h"

static inline struct w4_dims w4_dims_of(const ptxgen_w4_info *info)
{
    return (struct w4_dims){info->k, info->n, info->groups};
}

static inline ptxgen_element w4_scale_type(const ptxgen_w4_tensor *scales)
{
    return (ptxgen_element)scales->dtype;
}

/* The group of row k in plain order. */
static inline size_t w4_plain_group(const ptxgen_w4_info *info, size_t k)
{
    return k / (size_t)info->group_size;
}

/* The groups of rows where these are not in plain order; else NULL, which means plain order. */
static inline const void *w4_row_groups(const ptxgen_w4_checkpoint *checkpoint,
                                        const ptxgen_w4_info *info)
{
    return info->act_order ? checkpoint->g_idx.data : NULL;
}

/* Whether g_idx was never set: it is −1 everywhere, as compressed-tensors initialises it. */
bool w4_groups_are_unset(ptxgen_w4_format format, const void *g_idx, size_t k);

/* The zero point of a group and column, which is 8 without zeros. */
unsigned w4_zero(const ptxgen_w4_checkpoint *checkpoint, const struct w4_dims *dims, size_t group,
                 size_t n);

/* Checks that `to` has every tensor that such a matrix needs, with its shape. */
ptxgen_status w4_check_output(const ptxgen_w4_checkpoint *to, const ptxgen_w4_info *info,
                              ptxgen_error *err);

/* Writes the zero points of each group and column, if `to` has zeros. */
struct w4_zero_source {
    unsigned (*zero)(const void *from, const struct w4_dims *dims, size_t group, size_t n);
    const void *from;
};
void w4_write_zeros(const ptxgen_w4_checkpoint *to, const struct w4_dims *dims,
                    const struct w4_zero_source *source);

#endif
