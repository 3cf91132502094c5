/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of every command and of the library when an allocation or a system call fails.
 *
 *     faults [--most N] [--only PART-OF-A-JOB] [--kind NAME] [--n N] [--part I/N] [--stacks]
 *
 * Each job is done once without a fault. Then, for each kind of fault and each n up to the number
 * of such calls, it is done with the n-th of them failing, in a process and a folder of its own,
 * and must end in one of two ways: as if nothing had failed, or with the exit code and a sentence
 * of the fault, no memory leaked, and every file as it was before or as the job makes it. --most
 * tries at most N calls of a kind, evenly spread. The last lines are a table: a job a line, with
 * the calls that it makes, those tried, and the wrong outcomes, of which there may be none.
 *
 * --part makes one attempt in N, from number I = 0 … N − 1 on, so that N processes side by side
 * make all. PTXGEN_TEST_SHARE=N stands for --part 0/N.
 */
#define _GNU_SOURCE
#include "jobs.h"

#include "tests/dispatch/folder.h"
#include "tests/share.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    long most, n;
    long part, parts;
    const char *only, *kind;
    bool stacks;
} options;

struct tally {
    long calls, tried, wrong;
};

static void print_stack(const struct fault_log *log)
{
    char command[4096];
    extern char __executable_start;
    int length = snprintf(command, sizeof command, "addr2line -fpse /proc/%d/exe", (int)getpid());
    for (int i = 0; i < log->depth && length < 4000; i++) {
        long offset = (char *)log->stack[i] - &__executable_start;
        if (offset > 0 && offset < 1 << 26)
            length +=
                snprintf(command + length, sizeof command - (size_t)length, " %#lx", offset - 1);
    }
    snprintf(command + length, sizeof command - (size_t)length, " | sed 's/^/        /'");
    fflush(stdout);
    if (system(command) != 0)
        printf("        (no addr2line)\n");
}

static void print_wrong(const struct job *job, enum fault_kind kind, long n, const char *wrong,
                        const struct outcome *outcome)
{
    printf("WRONG: %s\n    %s %ld of those it makes: %s (code %d)\n", job->name, fault_names[kind],
           n, wrong, outcome->code);
    printf("    stderr: %.400s\n", *outcome->err ? outcome->err : "nothing");
    if (options.stacks)
        print_stack(&outcome->log);
}

static void try_kind(const struct job *job, const struct tree *before, const struct outcome *right,
                     enum fault_kind kind, struct tally *tally)
{
    if ((kind == FAULT_MEMORY && job->varies & VARIES_HELP) ||
        (kind == FAULT_STDOUT && job->is_library))
        return;
    long calls = kind == FAULT_STDOUT ? 1 : right->log.calls[kind];
    long tries = options.most && options.most < calls ? options.most : calls;
    tally->calls += calls;
    for (long i = 0; i < tries; i++) {
        long n = 1 + (2 * i + 1) * calls / (2 * tries);
        static long attempts;
        bool is_in_part = attempts++ % options.parts == options.part;
        if ((options.n && n != options.n) || !is_in_part)
            continue;
        struct outcome outcome = attempt(job, before, kind, n);
        const char *wrong = judge(job, before, right, kind, &outcome);
        tally->tried++;
        if (wrong) {
            tally->wrong++;
            print_wrong(job, kind, n, wrong, &outcome);
        }
        outcome_free(&outcome);
    }
}

struct line {
    const struct job *job;
    struct tally memory, system;
};

static struct line try_job(const struct job *job, const struct tree *before)
{
    struct line line = {.job = job};
    struct outcome right = attempt(job, before, FAULT_MEMORY, 0);
    if (right.code || (attempts_know_leaks && right.blocks)) {
        printf("WRONG: %s\n    without a fault code %d, %zu leaks: %s\n", job->name, right.code,
               right.blocks, right.err);
        line.memory.wrong++;
        outcome_free(&right);
        return line;
    }
    for (int kind = 0; kind < FAULT_COUNT; kind++)
        if (!options.kind || !strcmp(options.kind, fault_names[kind]))
            try_kind(job, before, &right, (enum fault_kind)kind,
                     kind == FAULT_MEMORY ? &line.memory : &line.system);
    outcome_free(&right);
    return line;
}

static long print_table(const struct line *lines, size_t count)
{
    struct tally sum = {0};
    printf("\n%-72s %18s %18s\n%-72s %6s %5s %5s %6s %5s %5s\n", "", "allocations", "system calls",
           "", "calls", "tried", "wrong", "calls", "tried", "wrong");
    for (size_t i = 0; i < count; i++) {
        const struct tally *memory = &lines[i].memory, *system = &lines[i].system;
        char name[256];
        size_t length = 0;
        for (const char *c = lines[i].job->name; *c && length + 1 < sizeof name; c++) {
            if (!strncmp(c, GOLDEN_DIR "/", strlen(GOLDEN_DIR "/")))
                c += strlen(GOLDEN_DIR "/");
            name[length++] = *c;
        }
        name[length] = '\0';
        printf("%-72.72s %6ld %5ld %5ld %6ld %5ld %5ld\n", name, memory->calls, memory->tried,
               memory->wrong, system->calls, system->tried, system->wrong);
        sum.calls += memory->calls + system->calls;
        sum.tried += memory->tried + system->tried;
        sum.wrong += memory->wrong + system->wrong;
    }
    printf("%zu jobs, %ld calls, %ld tried, %ld wrong outcomes\n", count, sum.calls, sum.tried,
           sum.wrong);
    return sum.wrong;
}

static void read_options(int argc, char **argv)
{
    static const struct option known[] = {{"most", 1, 0, 'm'},
                                          {"only", 1, 0, 'o'},
                                          {"kind", 1, 0, 'k'},
                                          {"n", 1, 0, 'n'},
                                          {"stacks", 0, 0, 's'},
                                          {"part", 1, 0, 'p'},
                                          {0}};
    options.parts = test_parts();
    for (int option; (option = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        switch (option) {
        case 'm': options.most = atol(optarg); break;
        case 'o': options.only = optarg; break;
        case 'k': options.kind = optarg; break;
        case 'n': options.n = atol(optarg); break;
        case 's': options.stacks = true; break;
        case 'p':
            if (sscanf(optarg, "%ld/%ld", &options.part, &options.parts) == 2 &&
                options.parts > 0 && options.part >= 0 && options.part < options.parts)
                break;
            exit(2);
        default: exit(2);
        }
    }
    optind = 0; /* the commands parse arguments too */
}

int main(int argc, char **argv)
{
    char cache[2 * FOLDER_PATH];
    size_t count = 0;
    struct line *lines = calloc(command_job_count + library_job_count, sizeof *lines);
    read_options(argc, argv);
    folder_make(attempts_folder);
    snprintf(cache, sizeof cache, "%s/work/cache", attempts_folder);
    setenv("PTXGEN_CACHE_DIR", cache, 1);
    unsetenv("PTXGEN_CACHE");
    struct tree before = prepare_files();
    for (size_t i = 0; lines && i < command_job_count + library_job_count; i++) {
        const struct job *job =
            i < command_job_count ? &command_jobs[i] : &library_jobs[i - command_job_count];
        if (!options.only || strstr(job->name, options.only))
            lines[count++] = try_job(job, &before);
    }
    long wrong = print_table(lines, count);
    tree_free(&before);
    folder_remove(attempts_folder);
    free(lines);
    return wrong != 0 || count == 0;
}
