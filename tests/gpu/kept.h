/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept of a form's results (truth.h): a digest, or where they are judged by a bound every
 * third of them. */
#ifndef PTXGEN_TESTS_GPU_KEPT_H
#define PTXGEN_TESTS_GPU_KEPT_H

#include "judge.h"
#include "program.h"
#include "report.h"
#include "truth.h"

/* Of the lines of results and of memory; bounded results are no part of it. */
uint64_t kept_digest(const struct form *f, const struct plan *plan, uint32_t operands,
                     const uint64_t *out, const uint64_t *memory);

/* The words that are kept of a form in a bound, so many of `operands`. */
size_t kept_words(uint32_t operands);
void kept_take(uint64_t *words, uint32_t operands, const uint64_t *out);
/* Returns how many are marked as beyond the bound. */
size_t kept_write(FILE *file, const struct form *f, uint32_t operands, const uint64_t *words);

/* Compares with the words of a line, and counts the verdicts. */
void kept_compare(const struct form *f, const struct plan *plan, uint32_t operands,
                  const char *words, const uint64_t *out, struct outcome *outcome);

#endif
