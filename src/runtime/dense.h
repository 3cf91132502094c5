/* SPDX-License-Identifier: Apache-2.0 */
/* dense's launches for a family whose module begins with dense's entries. */
#ifndef PTXGEN_RUNTIME_DENSE_H
#define PTXGEN_RUNTIME_DENSE_H

#include <ptxgen/dense.h>

struct dense_entries {
    const ptxgen_dense_plan *plan;
    const ptxgen_loaded *loaded; /* its first entries are the plan's, in order */
};

/* Whether the driver has what the plan's entries take. */
ptxgen_status dense_check_driver(const ptxgen_driver *driver, const ptxgen_dense_plan *plan,
                                 ptxgen_error *err);
const ptxgen_kernel_attributes *dense_attributes(const struct dense_entries *entries, uint64_t n);
ptxgen_status dense_workspace_bytes(const ptxgen_dense_plan *plan, const ptxgen_dense_args *args,
                                    uint64_t *bytes, ptxgen_error *err);
/* n > 0. */
ptxgen_status dense_launch(const struct dense_entries *entries, const ptxgen_dense_args *args,
                           ptxgen_cu_stream stream, ptxgen_error *err);

#endif
