/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The probes as PTX text, one a line, in kernels of a few dozen. The text is made underneath the
 * validator, so that what the validator refuses can be put to an assembler too. It is made once;
 * each run of an assembler gets its own .version and .target and the lines of its choice, in files
 * of so many kernels: a syntax error ends the reading of one file, not of the next.
 */
#ifndef PTXGEN_TESTS_PROOF_TEXT_H
#define PTXGEN_TESTS_PROOF_TEXT_H

#include "probe.h"

struct text_line {
    char *text;
    long probe; /* −1: of no probe */
    size_t kernel;
    char *before, *after; /* what keeps code generation from dropping the probe; may be NULL */
};

/* A kernel, or some on end: ranges of probes and of proof_text's lines. */
struct text_part {
    size_t first_probe, end_probe, first_line, end_line;
};

struct proof_text {
    const struct probe_list *list;
    struct text_line *lines;
    size_t line_count;
    struct text_part *kernels;
    size_t kernel_count;
};

void proof_text_build(const struct probe_list *list, struct proof_text *text);

/* The kernels of a file when each but the last has `kernels` of them. */
struct text_part proof_text_file(const struct proof_text *text, size_t file, size_t kernels);

/* Writes those kernels of `part` that have a probe in `keep`, with those probes; false when there
 * are none. Every line has its place behind the header: line i of what is written, counted from 1,
 * is lines[first_line + i − 1 − TEXT_HEADER_LINES]. The header has an instruction, so that the
 * first probe is not the first of its file. `alive` adds the code that makes every result
 * matter. */
enum { TEXT_HEADER_LINES = 3 };
bool proof_text_write(const struct proof_text *text, const struct text_part *part, int version,
                      const char *target, const uint8_t *keep, bool alive, const char *path);

#endif
