/* SPDX-License-Identifier: Apache-2.0 */
/* What dense launches, for a family whose module begins with dense's entries. */
#ifndef PTXGEN_RUNTIME_DENSE_H
#define PTXGEN_RUNTIME_DENSE_H

#include "src/runtime/launch_list.h"

#include <ptxgen/dense.h>

/*
 * Adds to the list what is launched for at least one row, and what it needs of the workspace.
 * Strides of X and W are not 0.
 */
ptxgen_status dense_list(const ptxgen_dense_plan *plan, const ptxgen_dense_args *args,
                         struct launch_list *list, ptxgen_error *err);

#endif
