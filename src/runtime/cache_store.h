/* SPDX-License-Identifier: Apache-2.0 */
/* The disk cache's entries and memos: their files, looking one up, publishing, and making room. */
#ifndef PTXGEN_RUNTIME_CACHE_STORE_H
#define PTXGEN_RUNTIME_CACHE_STORE_H

#include "src/runtime/cache_folder.h"
#include "src/runtime/cache_memo.h"

#define CUBIN_SUFFIX ".cubin"
#define MANIFEST_SUFFIX ".manifest"

struct entry_name {
    char text[DIGEST_HEX + sizeof MANIFEST_SUFFIX];
};
struct entry_name entry_name(const char *key, const char *suffix);

/* What the files of a key hold: an entry's, or those of a memo. */
struct record {
    bool is_memo;
    struct contents text; /* the manifest, or the memo */
    struct contents cubin;
    struct memo_answer answer;
};
/*
 * Reads a record, zeroed but for is_memo, and checks it against itself: checksums, and the key
 * against the text. READING_ABSENT is of the text. What could be read is then the record's, whole
 * or not, and freed by record_free.
 */
enum reading record_read(int folder, const char *key, struct record *record, const char **why);
void record_free(struct record *record);

/*
 * Returns true and the answer, whose entries the caller frees, if there is a valid memo. Otherwise
 * *why is NULL if there is no memo, or the end of the sentence "the memo is not used: …".
 */
bool cache_recall(const ptxgen_cache *cache, const struct keyed_text *question,
                  struct memo_answer *answer, const char **why);

/* The same of an entry: its cubin, which the caller frees. */
bool cache_load(const ptxgen_cache *cache, const struct keyed_text *head, ptxgen_cubin *cubin,
                const char **why);

/* What is to be written: an entry, a memo, or both. */
struct publication {
    const struct keyed_text *head;
    const ptxgen_cubin *cubin; /* NULL: no entry */
    const struct keyed_text *question;
    const char *memo; /* NULL: no memo */
};
/* Makes room, then writes the files. Errors: PTXGEN_ERROR_FILE, PTXGEN_ERROR_OUT_OF_MEMORY. */
ptxgen_status cache_publish(const ptxgen_cache *cache, const struct publication *publication,
                            ptxgen_error *err);

/*
 * With the lock held, when nobody writes: removes temporary files and strays, then what was not
 * used for the longest time, until at most `most` bytes are left.
 */
ptxgen_status cache_shrink(int folder, uint64_t most, ptxgen_error *err);

/* True when PTXGEN_CACHE says "off" or "0". */
bool cache_is_switched_off(void);

#endif
