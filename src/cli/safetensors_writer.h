/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Writes a safetensors file: tensors are declared first, all of them, then given in that order.
 *
 *     struct safetensors_writer *w;
 *     safetensors_writer_open("out.safetensors", false, &w, err);
 *     safetensors_writer_metadata(w, "format", "pt", err);
 *     safetensors_writer_declare(w, &tensor, err);      // name, dtype and shape count
 *     safetensors_writer_append(w, data, bytes, err);
 *     safetensors_writer_finish(w, err);                // the file appears under its name
 *
 * The file is an output file (output_file.h): it appears when it is finished, and a failure leaves
 * nothing behind.
 */
#ifndef PTXGEN_CLI_SAFETENSORS_WRITER_H
#define PTXGEN_CLI_SAFETENSORS_WRITER_H

#include <ptxgen/files.h>

struct safetensors_writer;

/** With `force` a file that is there is replaced. */
ptxgen_status safetensors_writer_open(const char *path, bool force,
                                      struct safetensors_writer **writer, ptxgen_error *err);
ptxgen_status safetensors_writer_metadata(struct safetensors_writer *writer, const char *key,
                                          const char *value, ptxgen_error *err);
/** Only name, dtype, ndim, shape and bytes are read. */
ptxgen_status safetensors_writer_declare(struct safetensors_writer *writer,
                                         const ptxgen_tensor *tensor, ptxgen_error *err);
/** The data of the next declared tensor, whole. */
ptxgen_status safetensors_writer_append(struct safetensors_writer *writer, const void *data,
                                        size_t bytes, ptxgen_error *err);
/** Closes the writer, whatever happens; PTXGEN_ERROR_INVALID_ARGUMENT when a tensor is missing. */
ptxgen_status safetensors_writer_finish(struct safetensors_writer *writer, ptxgen_error *err);
/** Removes what was written. NULL does nothing. */
void safetensors_writer_abandon(struct safetensors_writer *writer);

#endif
