/* SPDX-License-Identifier: Apache-2.0 */
/**
 * safetensors: a JSON header that names tensors, then their data without gaps.
 *
 * safetensors_parse checks the whole header before it returns, by the format's own rules: the
 * header is at most 100 MB of UTF-8 JSON that starts with '{'; no name repeats; every size is
 * what shape and dtype give; the tensors, in the order of their offsets, fill the rest of the
 * file from its first byte to its last. What it returns can be used without further checks.
 *
 * The bytes are borrowed and must outlive the safetensors_file, which is read-only: threads may
 * share it.
 */
#ifndef PTXGEN_CLI_SAFETENSORS_H
#define PTXGEN_CLI_SAFETENSORS_H

#include "tensor_view.h"

struct safetensors_file;

ptxgen_status safetensors_parse(const void *bytes, size_t size, struct safetensors_file **file,
                                ptxgen_error *err);
void safetensors_free(struct safetensors_file *file);

const struct tensor_list *safetensors_tensors(const struct safetensors_file *file);
/** The `__metadata__` string of that key, or NULL. */
const char *safetensors_metadata(const struct safetensors_file *file, const char *key);
/** Key `index` in alphabetical order, NULL past the last; its value goes to *value. */
const char *safetensors_metadata_at(const struct safetensors_file *file, size_t index,
                                    const char **value);

#endif
