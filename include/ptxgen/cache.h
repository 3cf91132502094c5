/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The disk cache: machine code that the driver's assembler made, kept for the next process.
 *
 * Dispatchers (dispatch.h) use one by themselves; open one yourself to say where it is and how
 * large, or to look into it:
 *
 *     ptxgen_cache_options options = {.folder = "/var/cache/app/kernels"};
 *     ptxgen_cache *cache;
 *     if (ptxgen_cache_open(&options, &cache, &err) == PTXGEN_OK) {
 *         ptxgen_dispatch_options dispatch = {.cache = cache};
 *         …                                        // dispatchers, then
 *         ptxgen_cache_close(cache);
 *     }
 *
 * Where. The folder given, or else $PTXGEN_CACHE_DIR, $XDG_CACHE_HOME/ptxgen, $HOME/.cache/ptxgen.
 * It is made with mode 0700 when it is first written to. A folder that is a symbolic link, that
 * belongs to another user, or that others may write to is refused: its contents get executed.
 * PTXGEN_CACHE=off switches every disk cache off, PTXGEN_CACHE_SIZE sets the default size limit (a
 * number of bytes, or with K, M or G). Programs that run with more rights than their user ignore
 * these variables.
 *
 * What. An entry is two files named by its key: KEY.cubin, just as the driver's linker made it, for
 * cuobjdump and nvdisasm, and KEY.manifest, a few lines of text. The key is the BLAKE2b-256 hash of
 * the manifest's lines up to and including "ptx:", which hold the schema, the family with its plan
 * version and spec, target, device, driver, the assembler's options, and the hash of the whole PTX
 * text. The lines after it are what came out: the library that wrote it, and checksums of the cubin
 * and of the manifest itself.
 *
 * Memos. Hashing the text means emitting it, which takes longer than all else in finding code. So
 * each entry comes with KEY.memo, whose key hashes what the text depends on: the family's revision
 * (family.h), and the lines of the manifest before "ptx:" with the tiles that tuning chose, if it
 * did. These lines are in the memo, and answered by the line "ptx:" and the entries of the module.
 * A memo that is not there or not to be used costs an emission, and is written anew.
 *
 * Trust. An entry is loaded only when every line is the expected one and both checksums are right.
 * Anything else (cut short, flipped, of another driver or chip, not a plain file of this user)
 * is a miss, and is replaced; memos likewise. All are written under a lock to a new file,
 * synchronised and then renamed, so a process may be killed at any time. No trouble with the disk
 * fails a dispatch. Above the size limit what was not used for the longest time goes first.
 *
 * Threads, processes: any number may use one folder, and one ptxgen_cache, at once. Errors: a
 * status and a sentence. Lifetime: a cache outlives the dispatchers that were given it.
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

/** Both valid as long as the cache. */
PTXGEN_API const char *ptxgen_cache_folder(const ptxgen_cache *cache);
PTXGEN_API uint64_t ptxgen_cache_max_bytes(const ptxgen_cache *cache);

/** One entry or memo, as a visit shows it; the strings last for the call. */
typedef struct ptxgen_cache_entry {
    const char *key;      /**< 64 hexadecimal digits */
    const char *manifest; /**< its text; "" when it cannot be read */
    uint64_t bytes;       /**< of its files */
    int64_t used;         /**< when it was last used, to the hour: seconds since 1970 */
    const char *damage;   /**< NULL, or a sentence on why it would not be loaded */
    bool is_memo;         /**< `manifest` is the text of a memo */
} ptxgen_cache_entry;

/**
 * Reads and checks every entry and memo, in the order of the keys, and calls `visit` with each
 * until it returns other than 0, which is then returned in `*stopped` (may be NULL). A folder that
 * does not exist has no entries. Errors: PTXGEN_ERROR_FILE, PTXGEN_ERROR_OUT_OF_MEMORY.
 */
PTXGEN_API ptxgen_status ptxgen_cache_visit(const ptxgen_cache *cache,
                                            int (*visit)(void *user,
                                                         const ptxgen_cache_entry *entry),
                                            void *user, int *stopped, ptxgen_error *err);

/** What a cleaning removed. */
typedef struct ptxgen_cache_removed {
    uint64_t entries, bytes; /**< whole entries; of these, memos and all other files */
    uint64_t strays; /**< what is half there or damaged, temporary files of killed processes */
} ptxgen_cache_removed;

/**
 * Removes strays and what is damaged, then the least recently used entries and memos until no more
 * than `max_bytes` are left. `removed` may be NULL.
 * Errors: PTXGEN_ERROR_FILE, also when another process holds the lock for a second, and when an
 * entry or memo could not be read: that does not count as damaged and stays, the rest is done.
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
