/* SPDX-License-Identifier: Apache-2.0 */
/** The tensors of a layer that a command did not use. */
#ifndef PTXGEN_CLI_UNUSED_TENSORS_H
#define PTXGEN_CLI_UNUSED_TENSORS_H

#include <ptxgen/files.h>

/**
 * Says on stderr which tensors named PREFIX.… are none of the `count` that were used, NULL ones
 * among them; without a prefix, which tensors without a dot in their names.
 */
void warn_of_unused_tensors(const ptxgen_files *store, const char *prefix,
                            const ptxgen_tensor *const *used, size_t count);

#endif
