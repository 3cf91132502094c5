/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PTXGEN_KERNELS_MARLIN_FORMATS_GROUP_ORDER_H
#define PTXGEN_KERNELS_MARLIN_FORMATS_GROUP_ORDER_H

#include "checkpoint.h"

/*
 * The stable order that brings rows of a group together: order[i] is the row that comes i-th.
 * `g_idx` [k], at any address, has been checked; NULL is plain order. Refuses groups of other than
 * group_size rows.
 */
ptxgen_status w4_group_order(const ptxgen_w4_info *info, const void *g_idx, uint32_t *order,
                             ptxgen_error *err);

#endif
