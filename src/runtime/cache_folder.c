/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* getrandom */
#include "src/runtime/cache_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- the folder ---- */

static ptxgen_status check_folder(const char *what, const char *path, int folder, ptxgen_error *err)
{
    struct stat status;
    if (fstat(folder, &status) != 0)
        return ptxgen_fail(err, PTXGEN_ERROR_FILE, "%s %s: %s", what, path, strerror(errno));
    if (status.st_uid != geteuid())
        return ptxgen_fail(err, PTXGEN_ERROR_FILE,
                           "%s %s belongs to user %lu, not to user %lu who would run its contents",
                           what, path, (unsigned long)status.st_uid, (unsigned long)geteuid());
    if (status.st_mode & (S_IWGRP | S_IWOTH))
        return ptxgen_fail(err, PTXGEN_ERROR_FILE,
                           "%s %s may be written by others (mode %03o), whose code would be run; "
                           "take that away with chmod go-w",
                           what, path, (unsigned)(status.st_mode & 0777));
    return PTXGEN_OK;
}

/* Makes what is missing of the path, up to `path` itself, for this user only. */
static void make_folders(const char *path)
{
    char partial[4096];
    size_t length = strlen(path);
    if (length >= sizeof partial)
        return;
    memcpy(partial, path, length + 1);
    for (char *slash = strchr(partial + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(partial, 0700);
        *slash = '/';
    }
    mkdir(partial, 0700);
}

ptxgen_status folder_open_trusted(const char *what, const char *path, int *folder,
                                  ptxgen_error *err)
{
    int opened = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (opened < 0 && errno == ENOENT)
        return ptxgen_fail(err, PTXGEN_ERROR_NOT_FOUND, "%s %s does not exist", what, path);
    if (opened < 0)
        return ptxgen_fail(err, PTXGEN_ERROR_FILE, "%s %s cannot be opened: %s", what, path,
                           errno == ELOOP || errno == ENOTDIR
                               ? "it is a symbolic link, or no folder at all"
                               : strerror(errno));
    ptxgen_status status = check_folder(what, path, opened, err);
    if (status == PTXGEN_OK)
        *folder = opened;
    else
        close(opened);
    return status;
}

ptxgen_status folder_open(const ptxgen_cache *cache, bool create, int *folder, ptxgen_error *err)
{
    if (create && access(cache->folder, F_OK) != 0 && errno == ENOENT)
        make_folders(cache->folder);
    return folder_open_trusted("the cache folder", cache->folder, folder, err);
}

static int take_lock(int folder)
{
    enum { PATIENCE_MS = 1000, PAUSE_MS = 1 };
    int lock =
        openat(folder, LOCK_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (lock < 0)
        return -1;
    for (int waited = 0; flock(lock, LOCK_EX | LOCK_NB) != 0; waited += PAUSE_MS) {
        if ((errno != EWOULDBLOCK && errno != EINTR) || waited >= PATIENCE_MS) {
            close(lock);
            return -1;
        }
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_MS * 1000000L}, NULL);
    }
    return lock;
}

ptxgen_status folder_lock(const ptxgen_cache *cache, int folder, int *lock, ptxgen_error *err)
{
    *lock = take_lock(folder);
    if (*lock >= 0)
        return PTXGEN_OK;
    return ptxgen_fail(
        err, PTXGEN_ERROR_FILE,
        "%s cannot be locked: it is not writable, or another process is writing to it",
        cache->folder);
}

ptxgen_status folder_open_locked(const ptxgen_cache *cache, int *folder, int *lock,
                                 ptxgen_error *err)
{
    ptxgen_status status = folder_open(cache, true, folder, err);
    if (status != PTXGEN_OK)
        return status;
    status = folder_lock(cache, *folder, lock, err);
    if (status != PTXGEN_OK)
        close(*folder);
    return status;
}

/* ---- reading ---- */

/* NULL when the opened file can be trusted to be this user's. */
static const char *distrust(const struct stat *status, size_t most)
{
    if (!S_ISREG(status->st_mode))
        return "it is not a plain file";
    if (status->st_uid != geteuid())
        return "it belongs to another user";
    if (status->st_mode & (S_IWGRP | S_IWOTH))
        return "others may write to it";
    return status->st_size < 0 || (uintmax_t)status->st_size > most ? "it is too long" : NULL;
}

static enum reading read_all(int file, char *bytes, size_t size, const char **why)
{
    for (size_t done = 0; done < size;) {
        ssize_t part = read(file, bytes + done, size - done);
        if (part < 0 && errno == EINTR)
            continue;
        if (part <= 0) {
            *why = part ? "it cannot be read" : "it cannot be read to its end";
            return part ? READING_FAILED : READING_DAMAGED;
        }
        done += (size_t)part;
    }
    return READING_WHOLE;
}

static enum reading read_file(int file, size_t most, struct contents *contents, const char **why)
{
    struct stat status;
    if (fstat(file, &status) != 0) {
        *why = "it cannot be looked at";
        return READING_FAILED;
    }
    *why = distrust(&status, most);
    if (*why)
        return READING_DAMAGED;
    contents->size = (size_t)status.st_size;
    contents->used = status.st_mtime;
    contents->bytes = malloc(contents->size + 1);
    if (!contents->bytes) {
        *why = "there is no memory for it";
        return READING_FAILED;
    }
    enum reading reading = read_all(file, contents->bytes, contents->size, why);
    if (reading == READING_WHOLE) {
        contents->bytes[contents->size] = '\0';
    } else {
        free(contents->bytes);
        contents->bytes = NULL;
    }
    return reading;
}

enum reading folder_read(int folder, const char *name, size_t most, struct contents *contents,
                         const char **why)
{
    int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) {
        *why = errno == ENOENT  ? NULL
               : errno == ELOOP ? "it is a symbolic link"
                                : "it cannot be opened";
        return errno == ENOENT ? READING_ABSENT : errno == ELOOP ? READING_DAMAGED : READING_FAILED;
    }
    enum reading reading = read_file(file, most, contents, why);
    close(file);
    return reading;
}

/* A time in the future is a clock that was put back. */
void folder_touch(int folder, const char *name, time_t used)
{
    enum { HOUR = 3600 };
    time_t now = time(NULL);
    if (used > now || now - used > HOUR)
        utimensat(folder, name, NULL, AT_SYMLINK_NOFOLLOW);
}

/* ---- writing ---- */

static bool write_all(int file, const char *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t part = write(file, bytes + done, size - done);
        if (part < 0 && errno == EINTR)
            continue;
        if (part <= 0)
            return false;
        done += (size_t)part;
    }
    return true;
}

bool folder_write(int folder, const char *name, const void *bytes, size_t size)
{
    uint64_t random;
    char temporary[sizeof TEMPORARY_PREFIX + TEMPORARY_DIGITS];
    if (getrandom(&random, sizeof random, 0) != sizeof random)
        return false;
    snprintf(temporary, sizeof temporary, TEMPORARY_PREFIX "%0*llx", TEMPORARY_DIGITS,
             (unsigned long long)random);
    int file =
        openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0)
        return false;
    bool written = write_all(file, bytes, size) && fsync(file) == 0;
    written = close(file) == 0 && written;
    written = written && renameat(folder, temporary, folder, name) == 0;
    if (!written)
        unlinkat(folder, temporary, 0);
    return written;
}
