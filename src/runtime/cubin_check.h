/* SPDX-License-Identifier: Apache-2.0 */
/* A cubin is a 64-bit ELF file. This finds those that are cut short or are something else. */
#ifndef PTXGEN_RUNTIME_CUBIN_CHECK_H
#define PTXGEN_RUNTIME_CUBIN_CHECK_H

#include <ptxgen/status.h>

#include <stddef.h>

/* PTXGEN_ERROR_MALFORMED unless every header, section and segment lies within `size` bytes. */
ptxgen_status cubin_check(const void *cubin, size_t size, ptxgen_error *err);

#endif
