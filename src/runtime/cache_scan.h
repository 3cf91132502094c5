/* SPDX-License-Identifier: Apache-2.0 */
/* The folder's files as a sorted list of entries, and making room among them. */
#ifndef PTXGEN_RUNTIME_CACHE_SCAN_H
#define PTXGEN_RUNTIME_CACHE_SCAN_H

#include "src/runtime/cache_entry.h"

struct scanned {
    char key[DIGEST_HEX + 1];
    bool has_cubin, has_manifest;
    uint64_t bytes; /* of both */
    time_t used;
};

struct scan {
    struct scanned *entries; /* by key; halves of entries too */
    size_t count, capacity;
    uint64_t bytes;
    uint64_t temporaries; /* removed by the scan */
};

/* With `remove_temporaries`, for who holds the lock: nobody is writing, so they are left over. */
ptxgen_status scan_make(int folder, bool remove_temporaries, struct scan *scan, ptxgen_error *err);
void scan_free(struct scan *scan);

/* Removes both files. */
void entry_remove(int folder, const char *key);

/*
 * With the lock held: removes the halves, then what was not used for the longest time, until at
 * most `most` bytes are left. An entry of the future counts as the oldest: if it is in use, its
 * time is put right.
 */
void scan_shrink(int folder, struct scan *scan, uint64_t most, ptxgen_cache_removed *removed);

#endif
