/* SPDX-License-Identifier: Apache-2.0 */
#include "temporary_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_FILES = 8 };

struct temporary_file {
    char *name; /* noted until it is removed or has got another */
};

/* ---- signals ---- */

/* The names that a signal removes; read by its handler. */
static char *volatile names[MOST_FILES];

static const int ending_signals[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGILL,  SIGABRT,   SIGFPE,
                                     SIGBUS,  SIGSEGV, SIGPIPE, SIGALRM, SIGTERM,   SIGUSR1,
                                     SIGUSR2, SIGXCPU, SIGXFSZ, SIGSYS,  SIGVTALRM, SIGPROF};
enum { ENDING_SIGNALS = sizeof ending_signals / sizeof *ending_signals };

/*
 * The handler is gone when it runs, so that the signal ends the process as it would have. A folder
 * is empty once all files are gone.
 */
static void remove_and_end(int number)
{
    for (int i = 0; i < MOST_FILES; i++)
        if (names[i])
            unlink(names[i]);
    for (int i = 0; i < MOST_FILES; i++)
        if (names[i])
            rmdir(names[i]);
    raise(number);
}

/* A signal that is ignored, or that another part of the process handles, is left alone. */
static void catch_signals(void)
{
    static bool caught;
    if (caught)
        return;
    caught = true;
    for (int i = 0; i < ENDING_SIGNALS; i++) {
        struct sigaction action;
        if (sigaction(ending_signals[i], NULL, &action) != 0 || (action.sa_flags & SA_SIGINFO) ||
            action.sa_handler != SIG_DFL)
            continue;
        action = (struct sigaction){.sa_handler = remove_and_end, .sa_flags = (int)SA_RESETHAND};
        sigemptyset(&action.sa_mask);
        sigaction(ending_signals[i], &action, NULL);
    }
}

/* ---- notes ---- */

/* Where the name is noted, or with NULL where one can be; -1 without such a place. */
static int slot_of(const char *name)
{
    for (int i = 0; i < MOST_FILES; i++)
        if (names[i] == name)
            return i;
    return -1;
}

static bool note(char *name)
{
    int slot = slot_of(NULL);
    if (slot >= 0)
        names[slot] = name;
    return slot >= 0;
}

static void forget(const char *name)
{
    int slot = name ? slot_of(name) : -1;
    if (slot >= 0)
        names[slot] = NULL;
}

/* ---- creating ---- */

/* "FOLDER/.ptxgen-XXXXXX", whatever the length of the target's own name. */
static char *name_beside(const char *target)
{
    static const char name[] = ".ptxgen-XXXXXX";
    const char *slash = strrchr(target, '/');
    size_t folder = slash ? (size_t)(slash - target) + 1 : 0;
    char *path = malloc(folder + sizeof name);
    if (path) {
        memcpy(path, target, folder);
        memcpy(path + folder, name, sizeof name);
    }
    return path;
}

/* The old file's owner, or at least its group; else nobody gets more than others had. */
static int take_permissions(int fd, const struct stat *old)
{
    if (!old) {
        mode_t mask = umask(0);
        umask(mask);
        return fchmod(fd, 0666 & ~mask);
    }
    mode_t mode = old->st_mode & 07777;
    struct stat now;
    if (fstat(fd, &now) != 0)
        return -1;
    if ((now.st_uid != old->st_uid || now.st_gid != old->st_gid) &&
        fchown(fd, old->st_uid, old->st_gid) != 0) {
        mode &= 0777;
        if (now.st_gid != old->st_gid && fchown(fd, (uid_t)-1, old->st_gid) != 0)
            mode &= ~(mode_t)070 | (mode & 07) << 3;
    }
    return fchmod(fd, mode);
}

/* No signal comes between a file and the note of its name. */
static int create(char *name)
{
    sigset_t all, before;
    catch_signals();
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int fd = slot_of(NULL) < 0 ? -1 : mkostemp(name, O_CLOEXEC);
    int reason = slot_of(NULL) < 0 ? EMFILE : errno;
    if (fd >= 0)
        note(name);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = reason;
    return fd;
}

struct temporary_file *temporary_file_create(const char *target, const struct stat *old, int *fd)
{
    struct temporary_file *t = calloc(1, sizeof *t);
    char *name = name_beside(target);
    if (!t || !name) {
        free(t);
        free(name);
        errno = ENOMEM;
        return NULL;
    }
    t->name = name;
    *fd = create(name);
    if (*fd >= 0 && take_permissions(*fd, old) == 0)
        return t;
    int reason = errno;
    if (*fd >= 0)
        close(*fd);
    temporary_file_remove(t);
    errno = reason;
    return NULL;
}

/* ---- the end ---- */

void temporary_file_remove(struct temporary_file *t)
{
    if (!t)
        return;
    if (slot_of(t->name) >= 0)
        unlink(t->name);
    forget(t->name);
    free(t->name);
    free(t);
}

int temporary_file_rename(struct temporary_file *t, const char *target)
{
    if (rename(t->name, target) != 0)
        return -1;
    forget(t->name);
    return 0;
}

int temporary_file_link(struct temporary_file *t, const char *target)
{
    if (link(t->name, target) != 0)
        return -1;
    unlink(t->name);
    forget(t->name);
    return 0;
}

/* A file system that cannot bring a folder to the disk says EINVAL. */
int temporary_file_sync_folder(const char *target)
{
    const char *slash = strrchr(target, '/');
    size_t length = slash ? (size_t)(slash - target) + 1 : 1;
    char *folder = strndup(slash ? target : ".", length);
    if (!folder)
        return -1;
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(folder);
    if (fd < 0)
        return errno == EACCES ? 0 : -1; /* a folder that may be written but not read */
    int failed = fsync(fd), reason = errno;
    close(fd);
    errno = reason;
    return failed && reason != EINVAL ? -1 : 0;
}

/* ---- folders ---- */

int temporary_folder_create(struct temporary_folder *folder,
                            void (*name)(struct temporary_folder *folder))
{
    sigset_t all, before;
    catch_signals();
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    bool made = mkdtemp(folder->path);
    int reason = errno;
    if (made) {
        name(folder);
        note(folder->path);
        for (int i = 0; i < TEMPORARY_FOLDER_FILES; i++)
            note(folder->files[i]);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = reason;
    return made ? 0 : -1;
}

void temporary_folder_remove(struct temporary_folder *folder)
{
    for (int i = 0; i < TEMPORARY_FOLDER_FILES; i++) {
        unlink(folder->files[i]);
        forget(folder->files[i]);
    }
    rmdir(folder->path);
    forget(folder->path);
}
