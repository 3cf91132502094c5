/* SPDX-License-Identifier: Apache-2.0 */
/* The names and the checking of an entry's two files, and of a memo. */
#ifndef PTXGEN_RUNTIME_CACHE_ENTRY_H
#define PTXGEN_RUNTIME_CACHE_ENTRY_H

#include "src/runtime/cache_folder.h"
#include "src/runtime/cache_memo.h"
#include "src/runtime/manifest.h"

#define CUBIN_SUFFIX ".cubin"
#define MANIFEST_SUFFIX ".manifest"

struct entry_name {
    char text[DIGEST_HEX + sizeof MANIFEST_SUFFIX];
};
struct entry_name entry_name(const char *key, const char *suffix);

/*
 * Reads and checks an entry against itself: checksums, and the key against the manifest's head.
 * `manifest`, and `cubin` when the entry is whole, are the caller's to free; both are zeroed
 * where they could not be read. READING_ABSENT is of the manifest.
 */
enum reading entry_read(int folder, const char *key, struct contents *manifest,
                        struct contents *cubin, const char **why);

/*
 * The same of a memo against its key. `memo` is the caller's to free, and the answer's entries when
 * the memo is whole.
 */
enum reading memo_load(int folder, const char *key, struct contents *memo,
                       struct memo_answer *answer, const char **why);

#endif
