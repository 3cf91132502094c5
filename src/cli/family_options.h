/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The options of a family's kernels, as tables: what --help prints, what is parsed and where it
 * goes, and what must be there.
 */
#ifndef PTXGEN_CLI_FAMILY_OPTIONS_H
#define PTXGEN_CLI_FAMILY_OPTIONS_H

#include "../harness/harness.h"

#include <argp.h>

struct family;
struct family_options;

enum option_kind {
    OPTION_NUMBER, /**< a u32, from 1 on */
    OPTION_CHOICE, /**< a u8: the choice's index, and `value` more */
    OPTION_FLAG,   /**< a u8: `value`, or 1 where that is 0 */
    OPTION_TILE,   /**< of `tile` */
    OPTION_NAME,   /**< a string of the data */
    OPTION_OTHER,  /**< by `parse` */
};

enum {
    OPTION_IS_K = 1, /**< which a kernel needs, and --shape sets */
    OPTION_IS_N = 2, /**< likewise; families that multiply nothing have none */
    OPTION_OF_FILE = 4,  /**< comes from a file's tensors where there is one */
    OPTION_MOST_M = 8,   /**< the most tokens of a launch; 0: any */
    OPTION_LEAST_M = 16, /**< the fewest */
    OPTION_IN_FILE = 32, /**< of the data: a file needs it */
};

/** One option; a table of them ends with one without a name. */
struct option_row {
    const char *name, *arg, *doc;
    enum option_kind kind;
    size_t at; /**< in the spec, or in the names */
    uint32_t value;
    const char *const *choices; /**< NULL-terminated */
    const char *const *tile;    /**< the members of a tile that can be named; likewise */
    void (*parse)(struct argp_state *state, const char *text, struct family_options *o);
    unsigned rules;
};
#define OPTION_ROWS_MOST 24

/** Names of tensors and files; NULL where not given. Families use what they have options for. */
struct data_names {
    const char *file, *layer, *up_layer, *format, *tensors, *norm, *bias, *input, *expect;
};

/** Where a row of the data puts its name, and the rows of the data that all families have. */
#define NAME_AT(member) offsetof(struct data_names, member)
#define OPTION_FILE_ROWS                                                                           \
    {"input", "NAME", "The activations; otherwise random", OPTION_NAME, .at = NAME_AT(input)},     \
    {                                                                                              \
        "expect", "NAME", "The output to compare with, besides the reference's", OPTION_NAME,      \
            .at = NAME_AT(expect)                                                                  \
    }

/** All that the options of a family say. */
struct family_options {
    const struct family *family;
    const ptxgen_tuning *tuning;         /**< what plans go by; NULL: nothing */
    _Alignas(8) unsigned char spec[256]; /**< the family's, at its start */
    ptxgen_tile tile;
    bool tile_given;
    bool prologue;  /**< bench times only what launches before the product */
    uint32_t given; /**< a bit for each row of the spec's options */
    struct data_names names;
};

/** An argp made of a table. */
struct made_argp {
    struct argp_option options[OPTION_ROWS_MOST + 1];
    struct argp argp;
};
/** Of the spec, or of the data; its input is a struct family_options. NULL: the family has none. */
const struct argp *family_argp(const struct family *family, bool data, struct made_argp *made);

/** Zeroed but for the family and its defaults; for free(), NULL when out of memory. */
struct family_options *family_new_options(const struct family *family);
/** Whether that option of the spec was given. */
bool option_given(const struct family_options *o, const char *name);
/** The row of the spec's table that has the rule, or NULL. */
const struct option_row *option_with(const struct family *family, unsigned rule);
/** The family's spec. */
void *option_spec(struct family_options *o);
/** A u32 of the spec. */
uint32_t *option_number(const struct family_options *o, const struct option_row *row);

#endif
