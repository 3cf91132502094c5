/* SPDX-License-Identifier: Apache-2.0 */
/**
 * f16 (IEEE binary16) and bf16 on the host: conversions rounded once, to nearest, ties to even.
 *
 * Values past the largest finite one round to infinity by the same rule; subnormals are kept. A
 * NaN stays a NaN of the same sign, made quiet, with the leading bits of its payload.
 */
#ifndef PTXGEN_KERNELS_HALF_H
#define PTXGEN_KERNELS_HALF_H

#include <ptxgen/types.h>

#include <stddef.h>
#include <stdint.h>

float ptxgen_f16_to_f32(uint16_t bits);
float ptxgen_bf16_to_f32(uint16_t bits);
uint16_t ptxgen_f64_to_f16(double value);
uint16_t ptxgen_f64_to_bf16(double value);

/** Converts `count` elements from index `first` on to doubles that are `step` apart. */
void ptxgen_elements_load(ptxgen_element type, const void *array, size_t first, size_t count,
                          double *values, size_t step);

/** The value of `type` that `value` rounds to. */
double ptxgen_element_round(ptxgen_element type, double value);
/** Half the spacing of `type` at |magnitude|, which is the largest error of a rounding there. */
double ptxgen_element_half_ulp(ptxgen_element type, double magnitude);

#endif
