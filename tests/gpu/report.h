/* SPDX-License-Identifier: Apache-2.0 */
/* Counts by form, and the tables made of them. */
#ifndef PTXGEN_TESTS_GPU_REPORT_H
#define PTXGEN_TESTS_GPU_REPORT_H

#include "judge.h"

#include <stdio.h>

struct outcome {
    uint64_t operands, results, counts[DIFFERENT + 1];
    uint64_t inputs, digest; /* what is kept of the first side's results (truth.h) */
    bool ran, recorded;
    char why[256];     /* it could not be run */
    char example[768]; /* the first mismatch */
};

/* A line for each form, and for each instruction that is not compared the reason. */
void report_table(FILE *out, const struct form_list *list, const struct outcome *outcomes);
/* A line for each group, and one for each of the first mismatching instructions; how many forms
 * failed. */
size_t report_summary(FILE *out, const struct form_list *list, const struct outcome *outcomes);

#endif
