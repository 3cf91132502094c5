/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel of a form: each thread loads its operands, executes the instruction once, and stores
 * the bits of its results. A thread has a line of 64 bytes of memory for instructions that take an
 * address; where that is a shared or local one, the line is copied there before and back after.
 *
 * An instruction that reads the condition code is executed twice, behind an addition and behind a
 * subtraction that leave the same carry there.
 *
 *     kernel(out, memory, source 0, source 1, …, 64 bytes)
 */
#ifndef PTXGEN_TESTS_GPU_PROGRAM_H
#define PTXGEN_TESTS_GPU_PROGRAM_H

#include "form.h"

struct plan {
    struct source sources[FORM_SOURCES]; /* an operand each, a 128-bit one two */
    uint8_t results[8];                  /* types */
    unsigned source_count, result_count;
    char space;
    struct source memory;
    bool carries_in;  /* from the condition code; the last source says what it holds */
    bool carries_out; /* into the condition code; two results say what addc and subc make of it */
};

void plan_make(const struct form *f, struct plan *plan);
void program_emit(ptx_module *m, const struct form *f, const char *name);

#endif
