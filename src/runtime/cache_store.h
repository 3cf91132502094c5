/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of the disk cache: looking one up, and publishing one. */
#ifndef PTXGEN_RUNTIME_CACHE_STORE_H
#define PTXGEN_RUNTIME_CACHE_STORE_H

#include "src/runtime/manifest.h"

#include <ptxgen/cache.h>
#include <ptxgen/kernel.h>

/*
 * True with the cubin, which the caller frees, when there is a sound entry. Else *why, unless
 * it is just not there (NULL), ends the sentence "the entry is not used: …".
 */
bool cache_load(const ptxgen_cache *cache, const struct manifest_head *head, ptxgen_cubin *cubin,
                const char **why);

/* Makes room, then writes both files. Errors: PTXGEN_ERROR_FILE, PTXGEN_ERROR_OUT_OF_MEMORY. */
ptxgen_status cache_publish(const ptxgen_cache *cache, const struct manifest_head *head,
                            const ptxgen_cubin *cubin, ptxgen_error *err);

/* True when PTXGEN_CACHE says "off" or "0". */
bool cache_is_switched_off(void);

#endif
