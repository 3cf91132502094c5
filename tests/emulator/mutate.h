/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts that somebody might have written instead of a legal one: one thing changed, by a stated
 * rule. Some are legal too.
 */
#ifndef EMULATOR_MUTATE_H
#define EMULATOR_MUTATE_H

#include "tests/random.h"

#include <stddef.h>

struct mutant {
    char *text;       /* to be freed */
    char target[16];  /* its .target, without "sm_" */
    char version[8];  /* its .version */
    char line[400];   /* the line that was changed, as it is now */
    const char *rule; /* by which */
};

/* How many rules there are. */
extern const size_t mutation_count;

/*
 * Applies rule `rule` to the text: to its header, its declarations, or to line `line`, counted from
 * 0, which holds one instruction. text is NULL where the rule finds nothing to change.
 */
struct mutant mutate(struct random *random, const char *text, size_t line, size_t rule);

#endif
