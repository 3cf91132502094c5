/* SPDX-License-Identifier: Apache-2.0 */
#include "output_file.h"

#include "temporary_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct output_file {
    char *path;                       /* as it was given */
    char *target;                     /* of a regular file: without symbolic links; else NULL */
    struct temporary_file *temporary; /* of a regular file */
    FILE *stream;
    bool replaces; /* a regular file that is there */
};

static ptxgen_status cannot(const char *path, int reason, ptxgen_error *err)
{
    ptxgen_status status = reason == ENOMEM ? PTXGEN_ERROR_OUT_OF_MEMORY : PTXGEN_ERROR_FILE;
    return ptxgen_fail(err, status, "%s cannot be written: %s", path, strerror(reason));
}

static ptxgen_status no_memory(const char *path, ptxgen_error *err)
{
    return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory to write %s", path);
}

/* ---- what a path means ---- */

/* A descriptor that a path names, or -1. */
static int named_descriptor(const char *path)
{
    static const char folder[] = "/dev/fd/";
    char *end;
    if (!strcmp(path, "-") || !strcmp(path, "/dev/stdout"))
        return STDOUT_FILENO;
    if (!strcmp(path, "/dev/stderr"))
        return STDERR_FILENO;
    if (strncmp(path, folder, sizeof folder - 1) != 0 || path[sizeof folder - 1] < '0' ||
        path[sizeof folder - 1] > '9')
        return -1;
    long number = strtol(path + sizeof folder - 1, &end, 10);
    return *end || number > INT_MAX ? -1 : (int)number;
}

bool output_file_is_stdout(const char *path)
{
    return named_descriptor(path) == STDOUT_FILENO;
}

/* The path with the text of a symbolic link in the place of its last component. */
static char *follow(const char *link, const char *text)
{
    const char *slash = strrchr(link, '/');
    size_t folder = *text == '/' || !slash ? 0 : (size_t)(slash - link) + 1;
    size_t size = folder + strlen(text) + 1;
    char *path = malloc(size);
    if (path)
        snprintf(path, size, "%.*s%s", (int)folder, link, text);
    return path;
}

/* The file that a path leads to, which need not be there, and its state: st_mode 0 if it is not. */
static ptxgen_status resolve(const char *path, char **target, struct stat *st, ptxgen_error *err)
{
    enum { MOST_LINKS = 40 };
    char *at = strdup(path);
    for (int links = 0; at && links < MOST_LINKS; links++) {
        char text[PATH_MAX];
        if (lstat(at, st) != 0) {
            int reason = errno;
            memset(st, 0, sizeof *st);
            if (reason == ENOENT) {
                *target = at;
                return PTXGEN_OK;
            }
            free(at);
            return cannot(path, reason, err);
        }
        if (!S_ISLNK(st->st_mode)) {
            *target = at;
            return PTXGEN_OK;
        }
        ssize_t length = readlink(at, text, sizeof text - 1);
        if (length < 0) {
            int reason = errno;
            free(at);
            return cannot(path, reason, err);
        }
        text[length] = '\0';
        char *next = follow(at, text);
        free(at);
        at = next;
    }
    if (!at)
        return no_memory(path, err);
    free(at);
    return cannot(path, ELOOP, err);
}

static ptxgen_status refuse_kind(const char *path, mode_t mode, ptxgen_error *err)
{
    const char *kind = S_ISDIR(mode)    ? "a folder"
                       : S_ISBLK(mode)  ? "a block device"
                       : S_ISSOCK(mode) ? "a socket"
                                        : "no regular file";
    return ptxgen_fail(err, PTXGEN_ERROR_FILE, "%s is %s, which is not written to", path, kind);
}

static bool is_stream(mode_t mode)
{
    return S_ISCHR(mode) || S_ISFIFO(mode);
}

/* Finds what is at the path; the target is the caller's, NULL for a pipe or a character device. */
static ptxgen_status examine(const char *path, bool force, char **target, struct stat *st,
                             ptxgen_error *err)
{
    *target = NULL;
    if (!*path)
        return ptxgen_fail(err, PTXGEN_ERROR_FILE, "the output file has no name");
    if (stat(path, st) == 0 && is_stream(st->st_mode))
        return PTXGEN_OK;
    ptxgen_status status = resolve(path, target, st, err);
    if (status != PTXGEN_OK)
        return status;
    if (st->st_mode && !S_ISREG(st->st_mode))
        status = refuse_kind(path, st->st_mode, err);
    else if (st->st_mode && !force)
        status =
            ptxgen_fail(err, PTXGEN_ERROR_FILE, "%s is there already; --force replaces it", path);
    if (status != PTXGEN_OK) {
        free(*target);
        *target = NULL;
    }
    return status;
}

/* Whether a file can be made there is found by making one. */
ptxgen_status output_file_check(const char *path, bool force, ptxgen_error *err)
{
    char *target;
    struct stat st;
    int fd;
    if (named_descriptor(path) >= 0)
        return PTXGEN_OK;
    ptxgen_status status = examine(path, force, &target, &st, err);
    if (target) {
        struct temporary_file *temporary = temporary_file_create(target, NULL, &fd);
        if (temporary)
            close(fd);
        else
            status = cannot(path, errno, err);
        temporary_file_remove(temporary);
    }
    free(target);
    return status;
}

/* ---- opening ---- */

/* A pipe opens once it has a reader, which may come a moment later than its writer. */
static int open_stream(const char *path)
{
    enum { TRIES = 50, MILLISECONDS = 20 };
    int fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    for (int i = 0; fd < 0 && errno == ENXIO && i < TRIES; i++) {
        poll(NULL, 0, MILLISECONDS);
        fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    }
    if (fd < 0)
        return -1;
    int flags = fcntl(fd, F_GETFL);
    if (flags >= 0)
        fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
    return fd;
}

/* Of a pipe or a device, or a descriptor that the process has. */
static ptxgen_status open_directly(struct output_file *out, ptxgen_error *err)
{
    int named = named_descriptor(out->path);
    if (named == STDOUT_FILENO) {
        out->stream = stdout;
        return PTXGEN_OK;
    }
    int fd = named >= 0 ? fcntl(named, F_DUPFD_CLOEXEC, 3) : open_stream(out->path);
    if (fd < 0 && errno == ENXIO)
        return ptxgen_fail(err, PTXGEN_ERROR_FILE, "%s cannot be written: nothing reads from it",
                           out->path);
    if (fd < 0)
        return cannot(out->path, errno, err);
    out->stream = fdopen(fd, "wb");
    if (!out->stream) {
        close(fd);
        return no_memory(out->path, err);
    }
    return PTXGEN_OK;
}

static ptxgen_status open_temporary(struct output_file *out, const struct stat *old,
                                    ptxgen_error *err)
{
    int fd;
    out->replaces = old->st_mode != 0;
    out->temporary = temporary_file_create(out->target, out->replaces ? old : NULL, &fd);
    if (!out->temporary)
        return cannot(out->path, errno, err);
    out->stream = fdopen(fd, "wb");
    if (!out->stream) {
        close(fd);
        return no_memory(out->path, err);
    }
    return PTXGEN_OK;
}

ptxgen_status output_file_open(const char *path, bool force, struct output_file **out,
                               ptxgen_error *err)
{
    struct stat st = {.st_mode = 0};
    struct output_file *o = calloc(1, sizeof *o);
    ptxgen_status status = PTXGEN_OK;
    *out = NULL;
    if (o)
        o->path = strdup(path);
    if (!o || !o->path) {
        free(o);
        return no_memory(path, err);
    }
    if (named_descriptor(path) < 0)
        status = examine(path, force, &o->target, &st, err);
    if (status == PTXGEN_OK)
        status = o->target ? open_temporary(o, &st, err) : open_directly(o, err);
    if (status == PTXGEN_OK)
        *out = o;
    else
        output_file_abandon(o);
    return status;
}

/* ---- writing ---- */

/* What is said here of the standard output is not to be said again at the end of the process. */
static ptxgen_status write_failed(const struct output_file *out, int reason, ptxgen_error *err)
{
    if (out->stream != stdout)
        return cannot(out->path, reason, err);
    if (!freopen("/dev/null", "w", stdout))
        reason = errno;
    return cannot("standard output", reason, err);
}

ptxgen_status output_file_write(struct output_file *out, const void *data, size_t bytes,
                                ptxgen_error *err)
{
    if (fwrite(data, 1, bytes, out->stream) == bytes)
        return PTXGEN_OK;
    return write_failed(out, errno, err);
}

int output_file_descriptor(const struct output_file *out)
{
    return fileno(out->stream);
}

/* ---- the end ---- */

static void release(struct output_file *out)
{
    if (out->stream && out->stream != stdout)
        fclose(out->stream);
    temporary_file_remove(out->temporary);
    free(out->target);
    free(out->path);
    free(out);
}

/* A file system without hard links has the rename, which another process may get before. */
static int publish(struct output_file *out)
{
    if (out->replaces)
        return temporary_file_rename(out->temporary, out->target);
    int failed = temporary_file_link(out->temporary, out->target);
    if (failed && errno != EEXIST)
        failed = temporary_file_rename(out->temporary, out->target);
    return failed;
}

static ptxgen_status close_stream(struct output_file *out, ptxgen_error *err)
{
    FILE *stream = out->stream;
    if (fflush(stream) != 0 || (out->temporary && fsync(fileno(stream)) != 0))
        return write_failed(out, errno, err);
    if (stream == stdout)
        return PTXGEN_OK;
    out->stream = NULL;
    return fclose(stream) ? cannot(out->path, errno, err) : PTXGEN_OK;
}

/* The contents are on the disk before the name is. */
static ptxgen_status finish(struct output_file *out, ptxgen_error *err)
{
    ptxgen_status status = close_stream(out, err);
    if (status != PTXGEN_OK || !out->temporary)
        return status;
    if (publish(out) != 0)
        return cannot(out->path, errno, err);
    if (temporary_file_sync_folder(out->target) != 0)
        return ptxgen_fail(err, PTXGEN_ERROR_FILE,
                           "%s is written, but its name may be lost when the machine fails: %s",
                           out->path, strerror(errno));
    return PTXGEN_OK;
}

ptxgen_status output_file_finish(struct output_file *out, ptxgen_error *err)
{
    ptxgen_status status = finish(out, err);
    release(out);
    return status;
}

void output_file_abandon(struct output_file *out)
{
    if (out)
        release(out);
}
