/* SPDX-License-Identifier: Apache-2.0 */
/** An argp whose options are given once: the same again is fine, another value is refused. */
#ifndef PTXGEN_CLI_OPTION_ONCE_H
#define PTXGEN_CLI_OPTION_ONCE_H

#include <argp.h>
#include <stdbool.h>

/** Keys of options that may be given several times start here. */
enum { OPTION_REPEATED_KEYS = 5000 };

struct option_once {
    struct argp argp; /**< to be parsed, with this struct as its input */
    const struct argp *inner;
    void *input; /**< of the inner one */
    struct option_value {
        int key;
        const char *value; /**< NULL of a flag */
    } given[48];
    int count;
};

/** Fills it; `inner` has no children and must outlive it. */
void option_once_make(struct option_once *once, const struct argp *inner, void *input);
/** Whether the option of that name was given; false for a name that the argp does not have. */
bool option_once_given(const struct option_once *once, const char *name);

#endif
