/* SPDX-License-Identifier: Apache-2.0 */
/** What the emulator counted, added up by kernel and section. */
#ifndef PTXGEN_CLI_PROFILE_TALLY_H
#define PTXGEN_CLI_PROFILE_TALLY_H

#include <ptxgen/emulator.h>

#include <stdbool.h>

enum { PROFILE_KINDS = 24 };

struct profile_kind {
    const char *name; /**< "integer", "tensor", … */
    uint64_t warps;
};

struct profile_section {
    const char *kernel;
    char name[128];
    uint64_t warps, lanes;
    struct profile_kind kinds[PROFILE_KINDS]; /**< those that occur; the most frequent first */
    unsigned kind_count;
    uint64_t sectors, bytes_moved, bytes_needed; /**< global memory */
    uint64_t shared_accesses, conflicts;
};

struct profile_tally {
    struct profile_section *sections; /**< in the order of the text, kernel by kernel */
    size_t count;
};

/**
 * Adds up the instructions that ran. `text` is the annotated text of the same kernels; names are
 * the profile's. PTXGEN_ERROR_STRUCTURE when the two differ.
 */
ptxgen_status profile_tally_make(const ptxgen_emulator_profile *profile, const char *text,
                                 struct profile_tally *tally, ptxgen_error *err);
void profile_tally_free(struct profile_tally *tally);

#endif
