/* SPDX-License-Identifier: Apache-2.0 */
/** The comparison of a kernel's outputs with a reference that knows how far each may be off. */
#ifndef PTXGEN_HARNESS_CHECK_H
#define PTXGEN_HARNESS_CHECK_H

#include <ptxgen/accuracy.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct check {
    char problem[256];               /**< "K=4096 N=14336 M=1 x=f16 …" */
    uint64_t outputs;                /**< compared */
    uint64_t wrong;                  /**< beyond their bound */
    uint64_t unbounded;              /**< the reference promises nothing about these */
    double worst;                    /**< largest error over its bound */
    ptxgen_tally tally;              /**< of the outputs that have a spread */
    double error;                    /**< largest error */
    char where[PTXGEN_MESSAGE_SIZE]; /**< of the first wrong one, or what else is wrong */
    char note[256];                  /**< what else was compared, or empty */
    char source[64];                 /**< "a cubin of 4096 bytes", where it came from a pack */
    double microseconds;             /**< of a launch; 0 when it was not timed */
    bool once;                       /**< asked for: one launch, and no more of them */
};

/** What a reference says of one output; the spread is NULL where every output is exact. */
struct expected_output {
    double value, bound;
    const ptxgen_spread *spread;
};

/**
 * Compares one output of `type`. Agreement is: both NaN, equal, or within the bound; a NaN bound
 * promises nothing. `name` and the indices say where it stands.
 */
void check_output(struct check *check, const char *name, size_t row, size_t column,
                  ptxgen_element type, double output, const struct expected_output *expected);
/** Adds the counts of `part`; the sentence of the first wrong output stays. */
void check_add(struct check *check, const struct check *part);
/** Once all outputs were compared: their tally must be right too. */
void check_tally(struct check *check);
/** Notes something wrong that is not a number: a guard band, bits that differ. */
void check_fail(struct check *check, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Notes how a file's own expectation was met; its first wrong output is one of the check's. */
void check_note_expected(struct check *check, struct check *expected);

/** Nothing was found wrong, and the tally is right. */
bool check_passed(const struct check *check);

#endif
