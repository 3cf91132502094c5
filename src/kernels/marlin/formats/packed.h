/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PTXGEN_KERNELS_MARLIN_FORMATS_PACKED_H
#define PTXGEN_KERNELS_MARLIN_FORMATS_PACKED_H

#include <ptxgen/marlin.h>

/* Checks the spec, and that every array that the spec needs is there with its size. */
ptxgen_status marlin_check_packed(const ptxgen_marlin_spec *spec,
                                  const ptxgen_marlin_packed *packed, ptxgen_error *err);

#endif
