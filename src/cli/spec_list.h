/* SPDX-License-Identifier: Apache-2.0 */
/** A file that lists kernels, one a line, in the words of ptxgen emit: "marlin --k 4096 --n 14336".
 */
#ifndef PTXGEN_CLI_SPEC_LIST_H
#define PTXGEN_CLI_SPEC_LIST_H

#include "family.h"

#include <ptxgen/dispatch.h>

struct spec_list {
    const char *path;
    ptxgen_warm_item *items;         /**< families and specs */
    struct family_options **options; /**< of each item, which hold its spec */
    int *lines;                      /**< of each item, in the file */
    size_t count, capacity;
};

/**
 * Reads the file; what follows a # is skipped. Options that are wrong end the program with a usage
 * error that has the line. Errors: PTXGEN_ERROR_INVALID_ARGUMENT for a line of more than 63 words,
 * PTXGEN_ERROR_FILE, PTXGEN_ERROR_OUT_OF_MEMORY; the list is then to be freed too.
 */
ptxgen_status spec_list_read(const char *path, struct spec_list *list, ptxgen_error *err);
void spec_list_free(struct spec_list *list);

#endif
