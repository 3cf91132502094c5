/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cache's folder and its files: only folders and files that no other user can have written are
 * opened, and files appear whole or not at all. Everything is done relative to the opened folder.
 */
#ifndef PTXGEN_RUNTIME_CACHE_FOLDER_H
#define PTXGEN_RUNTIME_CACHE_FOLDER_H

#include <ptxgen/cache.h>

#include <stdbool.h>
#include <sys/types.h>

struct ptxgen_cache {
    uint64_t max_bytes;
    char folder[];
};

/*
 * A descriptor of the folder, to be closed. PTXGEN_ERROR_NOT_FOUND when there is none and `create`
 * is false, PTXGEN_ERROR_FILE when it is refused.
 */
ptxgen_status folder_open(const ptxgen_cache *cache, bool create, int *folder, ptxgen_error *err);
/* The same of any folder whose files get executed; `what` it is stands in sentences. */
ptxgen_status folder_open_trusted(const char *what, const char *path, int *folder,
                                  ptxgen_error *err);

/*
 * Takes the lock; closing the descriptor releases it. PTXGEN_ERROR_FILE when the lock is not free
 * within a second.
 */
ptxgen_status folder_lock(const ptxgen_cache *cache, int folder, int *lock, ptxgen_error *err);
/* Both, for writing: the folder is created when there is none. On failure neither is open. */
ptxgen_status folder_open_locked(const ptxgen_cache *cache, int *folder, int *lock,
                                 ptxgen_error *err);

/* A whole file in memory. */
struct contents {
    char *bytes; /* malloc'ed, with a NUL behind the last */
    size_t size;
    time_t used; /* when it was last written or touched */
};

/* What became of a file that was to be read. */
enum reading {
    READING_WHOLE,   /* it was read, and is as it should be */
    READING_ABSENT,  /* there is no file of that name */
    READING_DAMAGED, /* the file is not to be used, now or later */
    READING_FAILED   /* the system refused: the file may be in order */
};

/*
 * Reads a plain file of this user that others cannot write, of at most `most` bytes. *why is the
 * reason why it cannot, a clause; NULL where the file was read or there is none.
 */
enum reading folder_read(int folder, const char *name, size_t most, struct contents *contents,
                         const char **why);
/* Writes a new file under a unique name, synchronises it and gives it the name. */
bool folder_write(int folder, const char *name, const void *bytes, size_t size);
/* Marks a file as used now, at most once an hour. */
void folder_touch(int folder, const char *name, time_t used);

/* A name of folder_write's until the file is whole: the prefix, then so many hexadecimal digits. */
#define TEMPORARY_PREFIX ".tmp-"
enum { TEMPORARY_DIGITS = 16 };
#define LOCK_NAME ".lock"

#endif
