/* SPDX-License-Identifier: Apache-2.0 */
/* A job that is done in a process and a folder of its own, with a call in it that fails. */
#ifndef PTXGEN_TESTS_FAULTS_ATTEMPT_H
#define PTXGEN_TESTS_FAULTS_ATTEMPT_H

#include "fault.h"
#include "tree.h"

/* What of a job differs from run to run although nothing fails. */
enum varies {
    VARIES_NOT = 0,
    VARIES_TEXT = 1,  /* what is printed: times */
    VARIES_FILES = 2, /* what is in the files written */
    VARIES_HELP = 4,  /* argp prints it, and glibc's aborts when memory runs out */
};

struct job {
    const char *name; /* of a command: its words, with a blank between two */
    /* Like main: what is returned is the exit code, what is printed the result. */
    int (*run)(int argc, char **argv);
    unsigned varies;
    bool is_library; /* is asked for leaks, and for the status PTXGEN_ERROR_OUT_OF_MEMORY */
};

/* What an attempt left. */
struct outcome {
    int code; /* of the exit; 128 + signal when it was killed */
    char *out, *err;
    size_t out_size;
    size_t blocks; /* that were not freed */
    struct fault_log log;
    struct tree after;
};

/* Where attempts take place: folder "work" in it, and files for what they print. */
extern char attempts_folder[];

/*
 * Whether a sanitizer says that something is leaked, which `blocks` then is 1 for. Without one all
 * blocks that are still there are counted, those too that the library keeps for later.
 */
extern const bool attempts_know_leaks;

/* Does the job with the n-th call of the kind failing (0: none), on the files of `before`. */
struct outcome attempt(const struct job *job, const struct tree *before, enum fault_kind kind,
                       long n);
void outcome_free(struct outcome *outcome);

/*
 * NULL when the outcome is one that the fault may have, else what is wrong with it. `right` is the
 * outcome without a fault.
 */
const char *judge(const struct job *job, const struct tree *before, const struct outcome *right,
                  enum fault_kind kind, const struct outcome *outcome);

#endif
