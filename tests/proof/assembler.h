/* SPDX-License-Identifier: Apache-2.0 */
/* Finding assemblers and asking them for a verdict on every line. */
#ifndef PTXGEN_TESTS_PROOF_ASSEMBLER_H
#define PTXGEN_TESTS_PROOF_ASSEMBLER_H

#include "text.h"

struct assembler {
    char *path;
    int release; /* 130 for 13.0 */
    int newest;  /* the newest PTX version that it reads */
};

enum { MAX_ASSEMBLERS = 16 };

/* The assemblers named by the environment's PTXAS (separated by colons); without it those on PATH
 * and in /usr/local/cuda…/bin. Two of one release count once. */
size_t assemblers_find(struct assembler *out);

/* The chip ("90a", 16 bytes) to assemble a target's text for; false when it has none. */
bool assembler_arch(const struct assembler *a, const ptx_target *target, char *chip);

/* True when it takes an empty module of that target and version. */
bool assembler_knows(const struct assembler *a, const char *arch, const char *target, int version);

/*
 * Clears keep[p] for each probe that it refuses and then sets why[p] to a message (malloc'ed)
 * unless there is one. `arch` compute_… parses only, sm_… generates code too. False, after
 * printing what it said, when it failed for another reason.
 */
bool assembler_judge(const struct assembler *a, const char *arch, const struct proof_text *text,
                     int version, const char *target, uint8_t *keep, char **why);

#endif
