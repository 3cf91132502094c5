/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a card gave, kept as text in the repository, so that the emulator is compared with a card
 * where there is none. A file has a header, and for each form (or protocol) a line:
 *
 *     program differential
 *     card NVIDIA H200
 *     driver 13000
 *     generator 1
 *     operands 1024
 *     5b1c02de 8f3a… add_u32 [add.u32]
 *
 * that is a digest of its inputs, one of its results, and its name; "-" instead of the second where
 * results agree within a bound: they follow themselves, in lines that begin with a space, those
 * with a "!" that are beyond the bound.
 */
#ifndef PTXGEN_TESTS_GPU_TRUTH_H
#define PTXGEN_TESTS_GPU_TRUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
    TRUTH_GENERATOR = 1, /* raised when kernels change around a form, so that results do */
    TRUTH_OPERANDS = 1024,
    TRUTH_SENTENCE = 256
};

struct truth_line {
    const char *name, *words; /* words: NULL, or as they are in the file, between spaces */
    uint64_t results;
    uint32_t inputs;
    bool asked_for;
};

struct truth {
    char *text;
    const char *card;
    struct truth_line *lines; /* by name */
    size_t count;
    int driver; /* as cuDriverGetVersion has it */
    uint32_t operands;
};

/* A file that `program` recorded from a card; false with the reason. */
bool truth_read(struct truth *truth, const char *path, const char *program,
                char why[TRUTH_SENTENCE]);
void truth_free(struct truth *truth);

/* The line of a form; NULL when there is none. */
const struct truth_line *truth_find(struct truth *truth, const char *name);

/* Tells of lines that nobody asked for, and returns how many these are. */
size_t truth_report_unasked(const struct truth *truth, FILE *out);

/* "results are not those of the card …", or that the inputs are others; false when all is equal.
 * Results within a bound are the caller's to compare. */
bool truth_differs(const struct truth_line *line, uint64_t inputs, uint64_t results, char *why,
                   size_t size);

void truth_write_header(FILE *out, const char *program, const char *card, int driver,
                        uint32_t operands);
void truth_write(FILE *out, const char *name, uint64_t inputs, uint64_t results);
/* A form in a bound, whose words are to follow. */
void truth_write_bounded(FILE *out, const char *name, uint64_t inputs);
void truth_write_word(FILE *out, uint64_t word, bool beyond, bool last_of_line);

/* The digest of one more word, or text. */
uint64_t truth_fold(uint64_t digest, uint64_t word);
uint64_t truth_fold_text(uint64_t digest, const char *text);

#endif
