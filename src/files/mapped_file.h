/* SPDX-License-Identifier: Apache-2.0 */
/**
 * A whole regular file in memory, read-only.
 *
 * The bytes stay valid until mapped_file_close. A file that another process shortens while it is
 * mapped faults on access, as every memory map does.
 */
#ifndef PTXGEN_FILES_MAPPED_FILE_H
#define PTXGEN_FILES_MAPPED_FILE_H

#include <ptxgen/status.h>
#include <stddef.h>

struct mapped_file {
    const unsigned char *data; /**< NULL for an empty file; else aligned to a page */
    size_t size;
};

/** Maps `path`; the sentence of a failure names the path and the operating system's reason. */
ptxgen_status mapped_file_open(const char *path, struct mapped_file *file, ptxgen_error *err);

/** Unmaps; harmless on a zeroed or already closed struct. */
void mapped_file_close(struct mapped_file *file);

#endif
