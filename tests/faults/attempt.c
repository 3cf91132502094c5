/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "attempt.h"

#include "src/cli/exit_code.h"
#include "tests/dispatch/folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS = 64, SECONDS = 60 };

char attempts_folder[FOLDER_PATH];

/* What an attempt's process tells the one that watches it. */
struct report {
    struct fault_log log;
    size_t blocks;
    void *owner;
};

#if defined(__SANITIZE_ADDRESS__)
#define HAS_LEAK_CHECK 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_LEAK_CHECK 1
#endif
#endif
#ifdef HAS_LEAK_CHECK
extern int __lsan_do_recoverable_leak_check(void);
const bool attempts_know_leaks = true;
#else
const bool attempts_know_leaks = false;
#endif

static void redirect(int file, const char *name)
{
    char path[2 * FOLDER_PATH];
    snprintf(path, sizeof path, "%s%s%s", *name == '/' ? "" : attempts_folder,
             *name == '/' ? "" : "/", name);
    int to = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (to < 0 || dup2(to, file) < 0)
        abort();
    close(to);
}

/* The word KEY stands for the key of a cache entry, the first that there is. */
static char *key_of_an_entry(const struct tree *files)
{
    for (size_t i = 0; i < files->count; i++) {
        const char *name = files->entries[i].name, *end = strstr(name, ".manifest");
        if (end)
            return strndup(strrchr(name, '/') + 1, (size_t)(end - strrchr(name, '/') - 1));
    }
    abort();
}

static void do_job(const struct job *job, const struct tree *before, enum fault_kind kind, long n,
                   struct report *report)
{
    char work[2 * FOLDER_PATH], *argv[WORDS + 1] = {0}, *words = strdup(job->name), *rest;
    int argc = 0;
    if (!job->is_library)
        argv[argc++] = "ptxgen";
    for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        argv[argc++] = strcmp(word, "KEY") ? word : key_of_an_entry(before);
    snprintf(work, sizeof work, "%s/work", attempts_folder);
    redirect(STDERR_FILENO, "err");
    redirect(STDOUT_FILENO, kind == FAULT_STDOUT && n ? "/dev/full" : "out");
    if (chdir(work) != 0)
        abort();
    alarm(SECONDS);
    fault_arm(kind, n, &report->log);
    int code = job->run(argc, argv);
    report->blocks = fault_blocks(&report->owner);
#ifdef HAS_LEAK_CHECK
    report->blocks = __lsan_do_recoverable_leak_check() != 0;
#endif
    exit(code);
}

struct outcome attempt(const struct job *job, const struct tree *before, enum fault_kind kind,
                       long n)
{
    struct outcome outcome = {0};
    char path[2 * FOLDER_PATH];
    int status;
    size_t size;
    struct report *report =
        mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    snprintf(path, sizeof path, "%s/work", attempts_folder);
    tree_write(path, before);
    fflush(NULL);
    pid_t process = fork();
    if (process == 0)
        do_job(job, before, kind, n, report);
    if (process < 0 || report == MAP_FAILED || waitpid(process, &status, 0) != process) {
        perror("an attempt cannot be made");
        abort();
    }
    outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    outcome.log = report->log;
    outcome.blocks = report->blocks;
    if (report->blocks && outcome.log.depth == 0)
        outcome.log.stack[outcome.log.depth++] = report->owner;
    munmap(report, sizeof *report);
    outcome.after = tree_read(path);
    snprintf(path, sizeof path, "%s/out", attempts_folder);
    outcome.out = file_read(path, &outcome.out_size);
    snprintf(path, sizeof path, "%s/err", attempts_folder);
    outcome.err = file_read(path, &size);
    return outcome;
}

void outcome_free(struct outcome *outcome)
{
    free(outcome->out);
    free(outcome->err);
    tree_free(&outcome->after);
}

/* ---- what is wrong ---- */

/* Each old file is whole, or is what the job makes of it; nothing else is there. */
static const char *judge_files(const struct job *job, const struct tree *before,
                               const struct tree *right, enum fault_kind kind,
                               const struct tree *after)
{
    bool by_name = job->varies & VARIES_FILES;
    for (size_t i = 0; i < before->count; i++) {
        const char *name = before->entries[i].name;
        if (!tree_find(after, name) && tree_find(right, name))
            return "a file is lost";
    }
    for (size_t i = 0; i < after->count; i++) {
        const struct entry *entry = &after->entries[i];
        const struct entry *old = tree_find(before, entry->name);
        const struct entry *new = tree_find(right, entry->name);
        if (entries_equal(entry, old, false) || entries_equal(entry, new, by_name))
            continue;
        if (old || new)
            return "a file is damaged";
        if (kind != FAULT_UNLINK)
            return "a file is left behind";
    }
    return NULL;
}

/* Words that blame a file, a kernel or the library for what is none of their fault. */
static const char *find_blame(const char *text, const char *right)
{
    static const char *const words[] = {"WRONG", "malformed", "damaged", "corrupt", "not JSON"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(text, words[i]) && !strstr(right, words[i]))
            return words[i];
    return NULL;
}

static bool is_code_for(const struct outcome *outcome, enum fault_kind kind)
{
    bool names_memory = strcasestr(outcome->err, "memory") || strcasestr(outcome->out, "memory");
    bool names_thread = strstr(outcome->err, "thread") != NULL; /* which takes memory */
    if (kind == FAULT_MEMORY) /* a file that memory is lacking for cannot be read or written */
        return (names_memory || names_thread) &&
               (outcome->code == EXIT_INTERNAL || outcome->code == EXIT_FILE);
    if (kind == FAULT_MMAP)
        return outcome->code == EXIT_FILE || (outcome->code == EXIT_INTERNAL && names_memory);
    if (kind == FAULT_LOCK || kind == FAULT_THREAD || kind == FAULT_RANDOM || kind == FAULT_SPAWN)
        return outcome->code == EXIT_INTERNAL || outcome->code == EXIT_FILE;
    return outcome->code == EXIT_FILE;
}

const char *judge(const struct job *job, const struct tree *before, const struct outcome *right,
                  enum fault_kind kind, const struct outcome *outcome)
{
    if (outcome->code == 128 + SIGALRM)
        return "it hangs";
    if (outcome->code >= 128)
        return "it crashes";
    if (outcome->blocks > (attempts_know_leaks ? 0 : right->blocks))
        return "memory is leaked";
    const char *files = judge_files(job, before, &right->after, kind, &outcome->after);
    if (files)
        return files;
    if (find_blame(outcome->err, right->err) || find_blame(outcome->out, right->out))
        return "something else is blamed";
    if (outcome->code != right->code) {
        if (!*outcome->err && !strcmp(outcome->out, right->out))
            return "it fails without a word";
        return is_code_for(outcome, kind) ? NULL : "the code or the sentence is not the fault's";
    }
    if (kind == FAULT_STDOUT)
        return right->out_size ? "it has printed nothing, and says that all is well" : NULL;
    bool same = outcome->out_size == right->out_size &&
                !memcmp(outcome->out, right->out, outcome->out_size);
    if (!same && !(job->varies & VARIES_TEXT && outcome->out_size))
        return "it says that all is well, and has printed something else";
    return NULL;
}
