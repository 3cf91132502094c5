/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The disk cache: machine code that the driver's assembler has made, stored for later processes.
 *
 * A dispatcher (dispatch.h) opens a cache by itself. Open one yourself to choose its folder and its
 * size, or to look at its entries:
 *
 *     ptxgen_cache_options options = {.folder = "/var/cache/app/kernels"};
 *     ptxgen_cache *cache;
 *     if (ptxgen_cache_open(&options, &cache, &err) == PTXGEN_OK) {
 *         ptxgen_dispatch_options dispatch = {.cache = cache};
 *         use_dispatchers(&dispatch);
 *         ptxgen_cache_close(cache);
 *     }
 *
 * Where. The folder is the one in the options, or else the first of $PTXGEN_CACHE_DIR,
 * $XDG_CACHE_HOME/ptxgen and $HOME/.cache/ptxgen that is set. The folder is made with mode 0700
 * when something is first written to it. Because its contents are executed, a folder is refused if
 * it is a symbolic link, belongs to another user, or may be written to by others. PTXGEN_CACHE=off
 * switches every disk cache off. PTXGEN_CACHE_SIZE sets the default size limit: a number of bytes,
 * or a number with K, M or G. Programs that run with more rights than their user ignore these
 * variables.
 *
 * What. An entry consists of two files that are named by its key: KEY.cubin, the output of the
 * driver's linker, which cuobjdump and nvdisasm can read, and KEY.manifest, a few lines of text.
 * The key is the BLAKE2b-256 hash of the manifest's lines up to and including the line "ptx:".
 * These lines hold the schema, the family with its plan version and spec, the target, the device,
 * the driver, the assembler's options, and the hash of the whole PTX text. The lines after "ptx:"
 * hold the library that wrote the entry, and checksums of the cubin and of the manifest itself.
 *
 * Memos. To know the hash of the PTX text, the text must be emitted, which takes most of the time
 * of a lookup. So each entry has a third file, KEY.memo, that leads to the entry without an
 * emission. The key of a memo hashes all that the text depends on: the family's revision
 * (family.h), the lines of the manifest before "ptx:", and the tiles that tuning chose. The memo
 * holds these lines, the line "ptx:", and the names of the module's entries. Where there is no
 * usable memo, the text is emitted, and the memo is written.
 *
 * Trust. An entry is loaded only if every line is as expected and both checksums are right. A file
 * that is cut short or altered, that belongs to another driver or chip, or that is not a plain file
 * of this user counts as a miss and is replaced; the same holds for memos. Files are written under
 * a lock under a temporary name, synchronised and then renamed, so a process may be killed at any
 * time. A failure of the disk never fails a dispatch. Above the size limit, the entries that were
 * not used for the longest time are removed first.
 *
 * Threads and processes: any number of them may use one folder, and any number of threads one
 * ptxgen_cache, at the same time. Errors: a status and a sentence. Lifetime: close a cache after
 * the dispatchers that were given it have been destroyed.
 */
#ifndef PTXGEN_CACHE_H
#define PTXGEN_CACHE_H

#include <ptxgen/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ptxgen_cache ptxgen_cache;

/** Zeroed is the default; a NULL pointer to options means the same. */
typedef struct ptxgen_cache_options {
    const char *folder; /**< copied, not empty; NULL: see above */
    uint64_t max_bytes; /**< 0: $PTXGEN_CACHE_SIZE, or 256 MiB */
} ptxgen_cache_options;

/**
 * Finds the folder, which need not exist yet. Errors: PTXGEN_ERROR_FILE when the folder is refused
 * or nothing says where it should be, PTXGEN_ERROR_INVALID_ARGUMENT for an empty name or a
 * $PTXGEN_CACHE_SIZE that is no size.
 */
PTXGEN_API ptxgen_status ptxgen_cache_open(const ptxgen_cache_options *options,
                                           ptxgen_cache **cache, ptxgen_error *err);
PTXGEN_API void ptxgen_cache_close(ptxgen_cache *cache);

/** The folder and the size limit in use; the string is valid as long as the cache. */
PTXGEN_API const char *ptxgen_cache_folder(const ptxgen_cache *cache);
PTXGEN_API uint64_t ptxgen_cache_max_bytes(const ptxgen_cache *cache);

/** One entry or memo, as a visit shows it; the strings are valid during the call of `visit`. */
typedef struct ptxgen_cache_entry {
    const char *key;      /**< 64 hexadecimal digits */
    const char *manifest; /**< text of the manifest; "" when it cannot be read */
    uint64_t bytes;       /**< size of the files together */
    int64_t used;         /**< time of the last use, to the hour: seconds since 1970 */
    const char *damage;   /**< NULL, or a sentence that says why it would not be loaded */
    bool is_memo;         /**< `manifest` is the text of a memo */
} ptxgen_cache_entry;

/**
 * Reads and checks every entry and memo, in the order of the keys, and calls `visit` with each. A
 * value other than 0 from `visit` ends the visit and is stored in `*stopped`, which may be NULL. A
 * folder that does not exist has no entries. Errors: PTXGEN_ERROR_FILE, PTXGEN_ERROR_OUT_OF_MEMORY.
 */
PTXGEN_API ptxgen_status ptxgen_cache_visit(const ptxgen_cache *cache,
                                            int (*visit)(void *user,
                                                         const ptxgen_cache_entry *entry),
                                            void *user, int *stopped, ptxgen_error *err);

/** What a cleaning removed. */
typedef struct ptxgen_cache_removed {
    uint64_t entries; /**< complete entries */
    uint64_t bytes;   /**< of all removed files: entries, memos and strays */
    uint64_t strays;  /**< incomplete or damaged files, and temporary files of killed processes */
} ptxgen_cache_removed;

/**
 * Removes strays and damaged files, then the least recently used entries and memos until at most
 * `max_bytes` bytes remain. `removed` may be NULL. Errors: PTXGEN_ERROR_FILE; this is also returned
 * when another process holds the lock for a second, and when a file cannot be read. A file that
 * cannot be read does not count as damaged and stays, and the rest of the work is done.
 */
PTXGEN_API ptxgen_status ptxgen_cache_prune(const ptxgen_cache *cache, uint64_t max_bytes,
                                            ptxgen_cache_removed *removed, ptxgen_error *err);
/** Removes every entry, memo and stray, and leaves files of other names. */
PTXGEN_API ptxgen_status ptxgen_cache_clear(const ptxgen_cache *cache,
                                            ptxgen_cache_removed *removed, ptxgen_error *err);

#ifdef __cplusplus
}
#endif
#endif
