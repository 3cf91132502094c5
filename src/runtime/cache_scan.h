/* SPDX-License-Identifier: Apache-2.0 */
/* The folder's files as a sorted list of entries and memos, and making room among them. */
#ifndef PTXGEN_RUNTIME_CACHE_SCAN_H
#define PTXGEN_RUNTIME_CACHE_SCAN_H

#include "src/runtime/cache_entry.h"

enum { PART_CUBIN = 1, PART_MANIFEST = 2, PART_MEMO = 4, PARTS_ENTRY = PART_CUBIN | PART_MANIFEST };

struct scanned {
    char key[DIGEST_HEX + 1];
    unsigned parts; /* PARTS_ENTRY and PART_MEMO are whole, all others strays */
    uint64_t bytes; /* of all */
    time_t used;
};

struct scan {
    struct scanned *entries; /* by key; strays too */
    size_t count, capacity;
    uint64_t bytes;
    uint64_t temporaries; /* removed by the scan */
};

/* With `remove_temporaries`, for who holds the lock: nobody is writing, so they are left over. */
ptxgen_status scan_make(int folder, bool remove_temporaries, struct scan *scan, ptxgen_error *err);
void scan_free(struct scan *scan);

/* Removes its files. */
void scanned_remove(int folder, const struct scanned *scanned);

/*
 * With the lock held: removes the strays, then what was not used for the longest time, until at
 * most `most` bytes are left. An entry of the future counts as the oldest: if it is in use, its
 * time is put right.
 */
void scan_shrink(int folder, struct scan *scan, uint64_t most, ptxgen_cache_removed *removed);

#endif
