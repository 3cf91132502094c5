/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PTXGEN_KERNELS_MARLIN_FORMATS_GROUP_ORDER_H
#define PTXGEN_KERNELS_MARLIN_FORMATS_GROUP_ORDER_H

#include "checkpoint.h"

/*
 * Computes the stable order that sorts rows by group: order[i] is the row at place i. `g_idx` [k],
 * at any address, has been checked; NULL means plain order. Refuses groups that do not have
 * group_size rows.
 */
ptxgen_status w4_group_order(const ptxgen_w4_info *info, const void *g_idx, uint32_t *order,
                             ptxgen_error *err);

#endif
