/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs numbered items in processes of their own, several at a time: a kernel that a GPU traps
 * takes its process's context along, and whatever else the process was to run.
 */
#ifndef PTXGEN_TESTS_GPU_PROCESSES_H
#define PTXGEN_TESTS_GPU_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>

struct processes {
    size_t count;     /* items in all */
    size_t share;     /* items that one process is given */
    unsigned at_once; /* processes */
    unsigned seconds; /* that one item may take */
    void *context;
    /* In the process: runs the items of [first, end), and calls processes_at before each; false
     * when no more can be run here. */
    bool (*run)(void *context, size_t first, size_t end);
    /* In the caller: the process ended at this item, which may have run. */
    void (*lost)(void *context, size_t item, const char *why);
};

/* Memory that the processes share, zeroed; aborts without it. */
void *processes_memory(size_t bytes);

/* All items are run or lost when it returns; false when a process could not be made. */
bool processes_run(const struct processes *p);

void processes_at(size_t item);

#endif
