/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that fail on purpose: the n-th allocation, or the n-th system call of a kind.
 *
 * fault.c stands between the program that it is linked into and the C library. Until it is armed
 * it only passes calls on. It is armed with a kind of fault and a number n: the n-th call of that
 * kind fails, all others go through. Whatever the kind, calls of all kinds are counted.
 *
 * In a plain build fault.c defines malloc, open and so on itself, so that what the C library and
 * cJSON call fails as well. A sanitizer wants these names, so there the linker renames the
 * program's own calls (--wrap), and only those can fail.
 */
#ifndef PTXGEN_TESTS_FAULTS_FAULT_H
#define PTXGEN_TESTS_FAULTS_FAULT_H

#include <stdbool.h>
#include <stddef.h>

/* Each kind: its name, the error of a failing call, whether it does half of its work instead. */
#define FAULT_KINDS(X)                                                                             \
    X(MEMORY, "memory", ENOMEM, false)                                                             \
    X(OPEN, "open", EMFILE, false)                                                                 \
    X(FOPEN, "fopen", EMFILE, false)                                                               \
    X(READ, "read", EIO, false)                                                                    \
    X(READ_SHORT, "read, short", 0, true)                                                          \
    X(READ_SIGNAL, "read, signal", EINTR, false)                                                   \
    X(WRITE, "write", ENOSPC, false)                                                               \
    X(WRITE_SHORT, "write, short", 0, true)                                                        \
    X(WRITE_SIGNAL, "write, signal", EINTR, false)                                                 \
    X(FREAD, "fread", EIO, false)                                                                  \
    X(FWRITE, "fwrite", ENOSPC, false)                                                             \
    X(FFLUSH, "fflush", ENOSPC, false)                                                             \
    X(FCLOSE, "fclose", EIO, false)                                                                \
    X(CLOSE, "close", EIO, false)                                                                  \
    X(FSYNC, "fsync", EIO, false)                                                                  \
    X(RENAME, "rename", EIO, false)                                                                \
    X(UNLINK, "unlink", EIO, false)                                                                \
    X(MKDIR, "mkdir", ENOSPC, false)                                                               \
    X(STAT, "stat", EIO, false)                                                                    \
    X(FLOCK, "flock", ENOLCK, false)                                                               \
    X(MODE, "mode and times", EPERM, false)                                                        \
    X(TRUNCATE, "ftruncate", ENOSPC, false)                                                        \
    X(MMAP, "mmap", ENOMEM, false)                                                                 \
    X(OPENDIR, "opendir", EMFILE, false)                                                           \
    X(READDIR, "readdir", EIO, false)                                                              \
    X(REALPATH, "realpath", EIO, false)                                                            \
    X(RANDOM, "getrandom", ENOSYS, false)                                                          \
    X(THREAD, "thread", EAGAIN, false)                                                             \
    X(LOCK, "lock", ENOMEM, false)                                                                 \
    X(SPAWN, "spawn", EAGAIN, false)                                                               \
    X(STDOUT, "standard output", ENOSPC, false)

enum fault_kind {
#define FAULT_KIND(kind, name, error, is_half) FAULT_##kind,
    FAULT_KINDS(FAULT_KIND)
#undef FAULT_KIND
        FAULT_COUNT
};

extern const char *const fault_names[FAULT_COUNT];

enum { FAULT_STACK = 24 };

/* What has been seen since the calls were armed. */
struct fault_log {
    long calls[FAULT_COUNT];
    bool has_failed;
    int depth; /* of the call that failed */
    void *stack[FAULT_STACK];
};

/* From now on the n-th call of the kind fails; 0: none. `log` is written as calls come. */
void fault_arm(enum fault_kind kind, long n, struct fault_log *log);
/* From now on nothing fails and nothing is counted. */
void fault_disarm(void);
/*
 * Blocks that the program itself (not a library) has allocated since fault_arm and not freed;
 * 0 under a sanitizer, which has a leak check of its own. `owner` receives where one came from.
 */
size_t fault_blocks(void **owner);

#endif
