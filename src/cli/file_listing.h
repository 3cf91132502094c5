/* SPDX-License-Identifier: Apache-2.0 */
/** The tensors of a checkpoint, the layers that they make, and the family that would run each. */
#ifndef PTXGEN_CLI_FILE_LISTING_H
#define PTXGEN_CLI_FILE_LISTING_H

#include "family.h"

#include <ptxgen/files.h>

struct listed_tensor {
    const ptxgen_tensor *tensor;
    char *
        layer; /**< the layer that it is of, with which run finds it; NULL: of none that is known */
    bool is_weight;              /**< its layer's weights: what a family multiplies */
    const struct family *family; /**< that would run it; NULL: none, or no weight */
    uint32_t k, n;               /**< of the product, where a family would run it */
    char *note; /**< with a family: the options of run that name it, or ""; else why none would */
};

struct file_listing {
    size_t count; /**< in the file's order */
    struct listed_tensor *items;
};

/**
 * Judges every tensor: a family would run a layer whose tensors it accepts, and whose sizes and
 * types its plan accepts on the oldest GPU that the library knows. To be released whether or not it
 * succeeds; it borrows from `files`.
 */
ptxgen_status file_listing_make(const ptxgen_files *files, struct file_listing *listing,
                                ptxgen_error *err);
void file_listing_release(struct file_listing *listing);

#endif
