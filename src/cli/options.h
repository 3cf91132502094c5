/* SPDX-License-Identifier: Apache-2.0 */
/** Option parsing that the commands share, on top of argp. */
#ifndef PTXGEN_CLI_OPTIONS_H
#define PTXGEN_CLI_OPTIONS_H

#include "family.h"

#include <ptxgen/marlin_formats.h>
#include <ptxgen/w8a8.h>

#include <argp.h>

/** argp_parse, which ends the program with a usage error; here also when memory runs out. */
void parse_arguments(const struct argp *argp, int argc, char **argv, unsigned flags, void *input);

/** Reads a whole number in [low, high], or ends the program with a usage error naming `option`. */
uint64_t parse_number(struct argp_state *state, const char *option, const char *text, uint64_t low,
                      uint64_t high);
/** Reads a number of bytes, "4096", "512K" or "1G": with K, M, G, T of 2^10, 2^20, 2^30, 2^40. */
uint64_t parse_bytes(struct argp_state *state, const char *option, const char *text);
/** Reads --group-size: a whole number, or -1, which is PTXGEN_W4_PER_CHANNEL. */
int32_t parse_group_size(struct argp_state *state, const char *text);
double parse_positive(struct argp_state *state, const char *option, const char *text);
/** A number at least 0 that f32 holds; only 0 becomes 0. */
float parse_epsilon(struct argp_state *state, const char *option, const char *text);
/**
 * Reads --codes, "e4m3", or "128,127", the ends of a range of s8: returns the ptxgen_w8a8_codes;
 * the ends of e4m3 are 0.
 */
uint8_t parse_codes(struct argp_state *state, const char *text, int16_t *least, int16_t *most);
/** Reads "1,2,4" or "1:512", or both mixed, into up to `capacity` numbers and returns how many. */
unsigned parse_numbers(struct argp_state *state, const char *option, const char *text, uint64_t low,
                       uint64_t high, uint32_t *numbers, unsigned capacity);
/** A weight matrix: K rows, N columns. */
struct shape {
    uint32_t k, n;
};
/** Reads "4096x14336,8192x8192" likewise. */
unsigned parse_shapes(struct argp_state *state, const char *text, struct shape *shapes,
                      unsigned capacity);
/** Ends the program with a usage error when --shape and K or the features were both given. */
void refuse_two_shapes(bool both_given);
/** The index of `text` in a NULL-terminated list, or a usage error that lists it. */
int parse_choice(struct argp_state *state, const char *option, const char *text,
                 const char *const *choices);
/** Notes `path` as the input or the output of a command that takes both; a third is too many. */
void take_file(struct argp_state *state, const char **input, const char **output, const char *path);
/**
 * Reads a tile, "wm=2,wn=1", whole numbers to 1024: names end with NULL, each has its member. The
 * first must be there and above 0.
 */
void parse_tile(struct argp_state *state, const char *text, char *const *names,
                uint32_t *const *members);
/** Option keys of the commands start here, those of families at OPTION_FAMILY_KEYS. */
enum { OPTION_COMMAND_KEYS = 1000, OPTION_SHARED_KEYS = 2000, OPTION_FAMILY_KEYS = 3000 };

/**
 * The key of a command's option --m, the tokens of a launch. Numbers from `low` on are read, up to
 * `capacity` of them.
 */
enum { OPTION_ROWS = 999 };
unsigned parse_rows(struct argp_state *state, const char *text, uint64_t low, uint32_t *rows,
                    unsigned capacity);

/** Reads "sm_90a", a product's name, or "native", which is the first GPU. */
ptxgen_target parse_target_name(struct argp_state *state, const char *text);
/** --target and --ptx-version; the argp's input is a ptxgen_target, which has a default. */
extern const struct argp target_argp;
ptxgen_target default_target(void);

/**
 * Parses "COMMAND FAMILY [option...]": finds the family named by the first argument, then parses
 * the rest by `command` (its input is `input`), `shared` (may be NULL; its input is
 * `shared_input`), the family's spec options and, with `with_data`, its data options. Returns
 * the family; its filled options, which the caller frees, go to *family_options.
 */
struct given_options {
    bool shape; /**< K or the output features */
    bool any;   /**< any of the kernel or the data */
};
struct family_arguments {
    const struct argp *command;
    void *input;
    const struct argp *shared;
    void *shared_input;
    bool with_data;
    struct given_options *given; /**< what was among the family's options; may be NULL */
};
const struct family *parse_family(int argc, char **argv, const struct family_arguments *arguments,
                                  struct family_options **family_options);

#endif
