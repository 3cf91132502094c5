/* SPDX-License-Identifier: Apache-2.0 */
/* The disk cache's entries and memos: looking one up, and publishing. */
#ifndef PTXGEN_RUNTIME_CACHE_STORE_H
#define PTXGEN_RUNTIME_CACHE_STORE_H

#include "src/runtime/cache_memo.h"
#include "src/runtime/manifest.h"

#include <ptxgen/cache.h>
#include <ptxgen/kernel.h>

/*
 * Returns true and the answer, whose entries the caller frees, if there is a valid memo. Otherwise
 * *why is NULL if there is no memo, or the end of the sentence "the memo is not used: …".
 */
bool cache_recall(const ptxgen_cache *cache, const struct memo_question *question,
                  struct memo_answer *answer, const char **why);

/* The same of an entry: its cubin, which the caller frees. */
bool cache_load(const ptxgen_cache *cache, const struct manifest_head *head, ptxgen_cubin *cubin,
                const char **why);

/* What is to be written: an entry, a memo, or both. */
struct publication {
    const struct manifest_head *head;
    const ptxgen_cubin *cubin; /* NULL: no entry */
    const struct memo_question *question;
    const char *memo; /* NULL: no memo */
};
/* Makes room, then writes the files. Errors: PTXGEN_ERROR_FILE, PTXGEN_ERROR_OUT_OF_MEMORY. */
ptxgen_status cache_publish(const ptxgen_cache *cache, const struct publication *publication,
                            ptxgen_error *err);

/* True when PTXGEN_CACHE says "off" or "0". */
bool cache_is_switched_off(void);

#endif
