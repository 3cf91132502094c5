/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "fault.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

const char *const fault_names[FAULT_COUNT] = {
#define NAME(kind, name, error, is_half) name,
    FAULT_KINDS(NAME)
#undef NAME
};
static const int fault_errors[FAULT_COUNT] = {
#define ERROR(kind, name, error, is_half) error,
    FAULT_KINDS(ERROR)
#undef ERROR
};

static enum fault_kind armed_kind;
static long armed_n;
static struct fault_log *_Atomic armed_log;
static atomic_long counts[FAULT_COUNT];
static _Thread_local bool is_inside; /* a call of our own, or of the C library for a wrapper */

/* Counts a call; true when it is the one to fail, with errno set. */
static bool fails(enum fault_kind kind)
{
    struct fault_log *log = armed_log;
    if (!log || is_inside)
        return false;
    long n = atomic_fetch_add(&counts[kind], 1) + 1;
    log->calls[kind] = n;
    if (kind != armed_kind || n != armed_n)
        return false;
    is_inside = true;
    log->depth = backtrace(log->stack, FAULT_STACK);
    log->has_failed = true;
    is_inside = false;
    errno = fault_errors[kind];
    return true;
}

/* ---- blocks that the program owns ---- */

enum { BLOCKS = 1 << 17 };
static struct block {
    void *address, *owner;
} blocks[BLOCKS];
static pthread_mutex_t blocks_lock = PTHREAD_MUTEX_INITIALIZER;
extern char __executable_start, etext;

static struct block *find_block(void *address)
{
    size_t i = ((uintptr_t)address >> 4) * 0x9e3779b1u % BLOCKS;
    while (blocks[i].address && blocks[i].address != address)
        i = (i + 1) % BLOCKS;
    return &blocks[i];
}

/* An owner of NULL stands for a block that is free again: its place stays in use. */
static void *keep_block(void *address, void *owner)
{
    bool is_ours = (char *)owner >= &__executable_start && (char *)owner < &etext;
    if (!address || !armed_log || is_inside || !is_ours)
        return address;
    pthread_mutex_lock(&blocks_lock);
    *find_block(address) = (struct block){address, owner};
    pthread_mutex_unlock(&blocks_lock);
    return address;
}

static void drop_block(void *address)
{
    if (!address || !armed_log || is_inside)
        return;
    pthread_mutex_lock(&blocks_lock);
    find_block(address)->owner = NULL;
    pthread_mutex_unlock(&blocks_lock);
}

size_t fault_blocks(void **owner)
{
    size_t count = 0;
    for (size_t i = 0; i < BLOCKS; i++)
        if (blocks[i].owner) {
            *owner = blocks[i].owner;
            count++;
        }
    return count;
}

void fault_arm(enum fault_kind kind, long n, struct fault_log *log)
{
    void *warm[2];
    backtrace(warm, 2); /* its first call allocates */
    memset(log, 0, sizeof *log);
    memset(blocks, 0, sizeof blocks);
    for (int i = 0; i < FAULT_COUNT; i++)
        counts[i] = 0;
    armed_kind = kind;
    armed_n = n;
    armed_log = log;
}

void fault_disarm(void)
{
    armed_log = NULL;
}

/* ---- the calls ---- */

#ifdef FAULT_WRAP
/* DEFINE(type, name, parameters) opens our function; real_NAME is the C library's. */
#define DEFINE(type, name, ...)                                                                    \
    type real_##name(__VA_ARGS__) __asm__("__real_" #name);                                        \
    type our_##name(__VA_ARGS__) __asm__("__wrap_" #name);                                         \
    type our_##name(__VA_ARGS__)
#define REAL(name) real_##name
#define MEMORY(name) real_##name
#else
#define DEFINE(type, name, ...)                                                                    \
    type real_##name(__VA_ARGS__);                                                                 \
    type our_##name(__VA_ARGS__) __asm__(#name);                                                   \
    __attribute__((visibility("default"))) type our_##name(__VA_ARGS__)
#define REAL(name) ((__typeof__(&our_##name))find(#name))
#define MEMORY(name) __libc_##name
extern void *__libc_malloc(size_t size), *__libc_calloc(size_t count, size_t size),
    *__libc_realloc(void *block, size_t size), *__libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void *block);

static void *find(const char *name)
{
    bool was = is_inside;
    is_inside = true;
    void *address = dlsym(RTLD_NEXT, name);
    is_inside = was;
    return address;
}
#endif

#define CALLER __builtin_return_address(0)

DEFINE(void *, malloc, size_t size)
{
    return fails(FAULT_MEMORY) ? NULL : keep_block(MEMORY(malloc)(size), CALLER);
}

DEFINE(void *, calloc, size_t count, size_t size)
{
    return fails(FAULT_MEMORY) ? NULL : keep_block(MEMORY(calloc)(count, size), CALLER);
}

DEFINE(void *, realloc, void *block, size_t size)
{
    if (fails(FAULT_MEMORY))
        return NULL;
    drop_block(block);
    return keep_block(MEMORY(realloc)(block, size), CALLER);
}

DEFINE(void, free, void *block)
{
    drop_block(block);
    MEMORY(free)(block);
}

#ifdef FAULT_WRAP
DEFINE(void *, aligned_alloc, size_t alignment, size_t size)
{
    return fails(FAULT_MEMORY) ? NULL : MEMORY(aligned_alloc)(alignment, size);
}

DEFINE(char *, strdup, const char *text)
{
    return fails(FAULT_MEMORY) ? NULL : MEMORY(strdup)(text);
}

DEFINE(char *, strndup, const char *text, size_t length)
{
    return fails(FAULT_MEMORY) ? NULL : MEMORY(strndup)(text, length);
}

DEFINE(FILE *, open_memstream, char **text, size_t *size)
{
    return fails(FAULT_MEMORY) ? NULL : MEMORY(open_memstream)(text, size);
}
#else
DEFINE(void *, aligned_alloc, size_t alignment, size_t size)
{
    return fails(FAULT_MEMORY) ? NULL : keep_block(__libc_memalign(alignment, size), CALLER);
}

DEFINE(int, posix_memalign, void **block, size_t alignment, size_t size)
{
    if (fails(FAULT_MEMORY))
        return ENOMEM;
    *block = keep_block(__libc_memalign(alignment, size), CALLER);
    return *block ? 0 : ENOMEM;
}
#endif

#define MODE_OF(flags, mode)                                                                       \
    do {                                                                                           \
        if ((flags) & (O_CREAT | O_TMPFILE)) {                                                     \
            va_list arguments;                                                                     \
            va_start(arguments, flags);                                                            \
            mode = va_arg(arguments, mode_t);                                                      \
            va_end(arguments);                                                                     \
        }                                                                                          \
    } while (0)

DEFINE(int, open64, const char *path, int flags, ...)
{
    mode_t mode = 0;
    MODE_OF(flags, mode);
    return fails(FAULT_OPEN) ? -1 : REAL(open64)(path, flags, mode);
}

DEFINE(int, openat64, int folder, const char *path, int flags, ...)
{
    mode_t mode = 0;
    MODE_OF(flags, mode);
    return fails(FAULT_OPEN) ? -1 : REAL(openat64)(folder, path, flags, mode);
}

DEFINE(int, mkstemp64, char *path)
{
    return fails(FAULT_OPEN) ? -1 : REAL(mkstemp64)(path);
}

DEFINE(FILE *, tmpfile64, void)
{
    return fails(FAULT_FOPEN) ? NULL : REAL(tmpfile64)();
}

DEFINE(FILE *, fopen64, const char *path, const char *mode)
{
    return fails(FAULT_FOPEN) ? NULL : REAL(fopen64)(path, mode);
}

/* Half of what was asked for, where that is something. */
static size_t half_of(size_t size)
{
    return size > 1 ? size / 2 : size;
}

DEFINE(ssize_t, read, int file, void *bytes, size_t size)
{
    if (fails(FAULT_READ) || fails(FAULT_READ_SIGNAL))
        return -1;
    return REAL(read)(file, bytes, fails(FAULT_READ_SHORT) ? half_of(size) : size);
}

DEFINE(ssize_t, pread64, int file, void *bytes, size_t size, off_t offset)
{
    if (fails(FAULT_READ) || fails(FAULT_READ_SIGNAL))
        return -1;
    return REAL(pread64)(file, bytes, fails(FAULT_READ_SHORT) ? half_of(size) : size, offset);
}

DEFINE(ssize_t, write, int file, const void *bytes, size_t size)
{
    if (fails(FAULT_WRITE) || fails(FAULT_WRITE_SIGNAL))
        return -1;
    return REAL(write)(file, bytes, fails(FAULT_WRITE_SHORT) ? half_of(size) : size);
}

DEFINE(size_t, fread, void *bytes, size_t size, size_t count, FILE *file)
{
    if (!fails(FAULT_FREAD))
        return REAL(fread)(bytes, size, count, file);
    file->_flags |= _IO_ERR_SEEN;
    return 0;
}

DEFINE(size_t, fwrite, const void *bytes, size_t size, size_t count, FILE *file)
{
    if (!fails(FAULT_FWRITE))
        return REAL(fwrite)(bytes, size, count, file);
    file->_flags |= _IO_ERR_SEEN;
    return 0;
}

DEFINE(int, fflush, FILE *file)
{
    return fails(FAULT_FFLUSH) ? EOF : REAL(fflush)(file);
}

/* The file is closed all the same, as it is when a disk fails then. */
DEFINE(int, fclose, FILE *file)
{
    if (!fails(FAULT_FCLOSE))
        return REAL(fclose)(file);
    REAL(fclose)(file);
    errno = fault_errors[FAULT_FCLOSE];
    return EOF;
}

DEFINE(int, close, int file)
{
    if (!fails(FAULT_CLOSE))
        return REAL(close)(file);
    REAL(close)(file);
    errno = fault_errors[FAULT_CLOSE];
    return -1;
}

DEFINE(int, fsync, int file)
{
    return fails(FAULT_FSYNC) ? -1 : REAL(fsync)(file);
}

DEFINE(int, rename, const char *from, const char *to)
{
    return fails(FAULT_RENAME) ? -1 : REAL(rename)(from, to);
}

DEFINE(int, renameat, int folder, const char *from, int other, const char *to)
{
    return fails(FAULT_RENAME) ? -1 : REAL(renameat)(folder, from, other, to);
}

DEFINE(int, linkat, int folder, const char *from, int other, const char *to, int flags)
{
    return fails(FAULT_RENAME) ? -1 : REAL(linkat)(folder, from, other, to, flags);
}

DEFINE(int, link, const char *from, const char *to)
{
    return fails(FAULT_RENAME) ? -1 : REAL(link)(from, to);
}

DEFINE(int, unlink, const char *path)
{
    return fails(FAULT_UNLINK) ? -1 : REAL(unlink)(path);
}

DEFINE(int, unlinkat, int folder, const char *path, int flags)
{
    return fails(FAULT_UNLINK) ? -1 : REAL(unlinkat)(folder, path, flags);
}

DEFINE(int, mkdir, const char *path, mode_t mode)
{
    return fails(FAULT_MKDIR) ? -1 : REAL(mkdir)(path, mode);
}

DEFINE(int, fstat64, int file, struct stat *status)
{
    return fails(FAULT_STAT) ? -1 : REAL(fstat64)(file, status);
}

DEFINE(int, stat64, const char *path, struct stat *status)
{
    return fails(FAULT_STAT) ? -1 : REAL(stat64)(path, status);
}

DEFINE(int, lstat64, const char *path, struct stat *status)
{
    return fails(FAULT_STAT) ? -1 : REAL(lstat64)(path, status);
}

DEFINE(int, fstatat64, int folder, const char *path, struct stat *status, int flags)
{
    return fails(FAULT_STAT) ? -1 : REAL(fstatat64)(folder, path, status, flags);
}

DEFINE(int, flock, int file, int operation)
{
    return fails(FAULT_FLOCK) ? -1 : REAL(flock)(file, operation);
}

DEFINE(int, fchmod, int file, mode_t mode)
{
    return fails(FAULT_MODE) ? -1 : REAL(fchmod)(file, mode);
}

DEFINE(int, utimensat, int folder, const char *path, const struct timespec times[2], int flags)
{
    return fails(FAULT_MODE) ? -1 : REAL(utimensat)(folder, path, times, flags);
}

DEFINE(int, futimens, int file, const struct timespec times[2])
{
    return fails(FAULT_MODE) ? -1 : REAL(futimens)(file, times);
}

DEFINE(int, ftruncate64, int file, off_t size)
{
    return fails(FAULT_TRUNCATE) ? -1 : REAL(ftruncate64)(file, size);
}

DEFINE(void *, mmap64, void *address, size_t size, int protection, int flags, int file,
       off_t offset)
{
    return fails(FAULT_MMAP) ? MAP_FAILED
                             : REAL(mmap64)(address, size, protection, flags, file, offset);
}

DEFINE(DIR *, opendir, const char *path)
{
    return fails(FAULT_OPENDIR) ? NULL : REAL(opendir)(path);
}

DEFINE(DIR *, fdopendir, int folder)
{
    return fails(FAULT_OPENDIR) ? NULL : REAL(fdopendir)(folder);
}

DEFINE(struct dirent *, readdir64, DIR *folder)
{
    return fails(FAULT_READDIR) ? NULL : REAL(readdir64)(folder);
}

DEFINE(char *, realpath, const char *path, char *resolved)
{
    return fails(FAULT_REALPATH) ? NULL : REAL(realpath)(path, resolved);
}

DEFINE(ssize_t, getrandom, void *bytes, size_t size, unsigned flags)
{
    return fails(FAULT_RANDOM) ? -1 : REAL(getrandom)(bytes, size, flags);
}

DEFINE(int, pthread_create, pthread_t *thread, const pthread_attr_t *attributes,
       void *(*body)(void *), void *argument)
{
    return fails(FAULT_THREAD) ? EAGAIN : REAL(pthread_create)(thread, attributes, body, argument);
}

DEFINE(int, pthread_mutex_init, pthread_mutex_t *lock, const pthread_mutexattr_t *attributes)
{
    return fails(FAULT_LOCK) ? ENOMEM : REAL(pthread_mutex_init)(lock, attributes);
}

DEFINE(int, pthread_cond_init, pthread_cond_t *condition, const pthread_condattr_t *attributes)
{
    return fails(FAULT_LOCK) ? ENOMEM : REAL(pthread_cond_init)(condition, attributes);
}

DEFINE(int, posix_spawnp, pid_t *process, const char *path,
       const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
       char *const argv[], char *const environment[])
{
    return fails(FAULT_SPAWN)
               ? EAGAIN
               : REAL(posix_spawnp)(process, path, actions, attributes, argv, environment);
}
