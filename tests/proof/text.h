/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The probes as PTX text, one a line, in kernels of a few dozen. The text is made underneath the
 * validator, so that what the validator refuses can be put to an assembler too. It is written once;
 * each run of an assembler gets its own .version and .target and the lines of its choice.
 */
#ifndef PTXGEN_TESTS_PROOF_TEXT_H
#define PTXGEN_TESTS_PROOF_TEXT_H

#include "probe.h"

#include <stdio.h>

struct text_line {
    char *text;
    long probe;           /* −1: of no probe */
    long kernel;          /* −1: of no kernel */
    char *before, *after; /* what keeps code generation from dropping the probe; may be NULL */
};

struct text_kernel {
    size_t first_probe, end_probe;
};

struct proof_text {
    const struct probe_list *list;
    struct text_line *lines;
    size_t line_count;
    struct text_kernel *kernels;
    size_t kernel_count;
};

void proof_text_build(const struct probe_list *list, struct proof_text *text);

/* Writes the kernels that have a probe in `keep`, with those probes. Lines keep their numbers:
 * line i of the file is lines[i − 1]. `alive` adds the code that makes every result matter. */
void proof_text_write(const struct proof_text *text, int version, const char *target,
                      const uint8_t *keep, bool alive, FILE *out);

#endif
