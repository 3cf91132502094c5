/* SPDX-License-Identifier: Apache-2.0 */
/* Operand values: special values of each type, random bits, and floats of nearby exponents. */
#ifndef PTXGEN_TESTS_GPU_OPERANDS_H
#define PTXGEN_TESTS_GPU_OPERANDS_H

#include "form.h"

/*
 * The bits of operand `slot` of tuple `tuple`. The first tuples pair every special value with every
 * other. The lanes of a warp, tuples 32·w … 32·w + 31, have one temper, so that a matrix is as a
 * whole tame, wide or special.
 */
uint64_t operand_bits(struct source source, unsigned slot, uint32_t tuple);

unsigned operand_width(uint8_t type); /* in bits, a predicate's being 1 */

#endif
