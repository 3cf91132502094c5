/* SPDX-License-Identifier: Apache-2.0 */
/* sparse24's tier 1 at a launch: inflate, then multiply. Arguments are checked. */
#ifndef PTXGEN_RUNTIME_SPARSE24_INFLATED_H
#define PTXGEN_RUNTIME_SPARSE24_INFLATED_H

#include <ptxgen/sparse24.h>

ptxgen_status sparse24_inflated_workspace_bytes(const ptxgen_sparse24_plan *plan,
                                                const ptxgen_sparse24_args *args, uint64_t *bytes,
                                                ptxgen_error *err);
const ptxgen_kernel_attributes *sparse24_inflated_attributes(const ptxgen_loaded *loaded,
                                                             uint64_t n);
ptxgen_status sparse24_inflated_launch(const ptxgen_loaded *loaded,
                                       const ptxgen_sparse24_args *args, ptxgen_cu_stream stream,
                                       ptxgen_error *err);

#endif
