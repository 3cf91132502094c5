/* SPDX-License-Identifier: Apache-2.0 */
/** Element types, sizes and groups of a 2:4 weight, which the other files of the room share. */
#ifndef PTXGEN_KERNELS_SPARSE24_SHAPE_H
#define PTXGEN_KERNELS_SPARSE24_SHAPE_H

#include <ptxgen/sparse24_formats.h>

#include <stdint.h>

enum { SPARSE24_GROUP = 4 }; /* elements, of which SPARSE24_KEPT are stored */
enum { SPARSE24_KEPT = 2 };

/** Bytes of one element; 0 for a type that is none. */
size_t sparse24_element_bytes(ptxgen_sparse24_type type);

/** Element `index` as raw bits, from an array at any address. */
uint32_t sparse24_bits(ptxgen_sparse24_type type, const void *array, size_t index);
void sparse24_put_bits(ptxgen_sparse24_type type, void *array, size_t index, uint32_t bits);

/**
 * A number that orders magnitudes: 0 only for ±0, equal for x and −x, equal for all NaNs, which are
 * above infinity.
 */
uint32_t sparse24_magnitude(ptxgen_sparse24_type type, uint32_t bits);

/** Refuses an array that is not exactly `expected` bytes; `what` names it. */
ptxgen_status sparse24_check_span(const char *what, const void *data, size_t bytes, size_t expected,
                                  ptxgen_error *err);

#endif
