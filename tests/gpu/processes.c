/* SPDX-License-Identifier: Apache-2.0 */
#include "processes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 64, CONTEXT_LOST = 3 };

struct process {
    pid_t pid;
    size_t end;
    volatile size_t *at; /* in shared memory: the item that runs */
};

/* Of this process. */
static volatile size_t *own_at;
static unsigned own_seconds;

void *processes_memory(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        abort();
    return memory;
}

void processes_at(size_t item)
{
    *own_at = item;
    alarm(own_seconds);
}

static bool start(const struct processes *p, struct process *process, size_t first, size_t end)
{
    fflush(NULL);
    *process->at = first;
    process->end = end;
    process->pid = fork();
    if (process->pid == 0) {
        own_at = process->at;
        own_seconds = p->seconds;
        bool whole = p->run(p->context, first, end);
        fflush(NULL);
        _exit(whole ? 0 : CONTEXT_LOST);
    }
    return process->pid > 0;
}

/* Tells of the item that ended the process, and returns the one to go on with. */
static size_t next_item(const struct processes *p, const struct process *process, int status)
{
    char why[64];
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return process->end;
    if (WIFSIGNALED(status))
        snprintf(why, sizeof why, "the process ended by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(why, sizeof why, "the context was lost");
    p->lost(p->context, *process->at, why);
    return *process->at + 1;
}

static struct process *wait_for_one(struct process *all, unsigned count, int *status)
{
    pid_t pid = waitpid(-1, status, 0);
    for (unsigned i = 0; i < count; i++)
        if (all[i].pid > 0 && all[i].pid == pid)
            return &all[i];
    return NULL;
}

bool processes_run(const struct processes *p)
{
    struct process all[MOST] = {{0}};
    unsigned count = p->at_once < MOST ? p->at_once : MOST, running = 0;
    size_t *places = processes_memory(MOST * sizeof *places), given = 0;
    bool made = true;
    for (unsigned i = 0; i < count; i++)
        all[i].at = &places[i];
    for (unsigned i = 0; i < count && made && given < p->count; i++, running++) {
        size_t end = given + p->share < p->count ? given + p->share : p->count;
        made = start(p, &all[i], given, end);
        given = end;
    }
    while (made && running) {
        int status;
        struct process *process = wait_for_one(all, count, &status);
        if (!process)
            break;
        size_t first = next_item(p, process, status), end = process->end;
        if (first >= end) {
            first = given;
            end = given + p->share < p->count ? given + p->share : p->count;
            given = end;
        }
        process->pid = 0;
        if (first < end)
            made = start(p, process, first, end);
        else
            running--;
    }
    munmap(places, MOST * sizeof *places);
    return made && !running;
}
