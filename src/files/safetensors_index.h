/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The index of a checkpoint in several safetensors files, model.safetensors.index.json: a JSON
 * object whose "weight_map" says of each tensor which file beside the index holds it.
 *
 * safetensors_index_parse checks the whole text before it returns: the rules of json_text.h, at
 * most 100 MB, no tensor and no member "weight_map" twice, and files that are plain names, which
 * cannot lead out of the folder. The parsed index keeps nothing of the bytes.
 */
#ifndef PTXGEN_FILES_SAFETENSORS_INDEX_H
#define PTXGEN_FILES_SAFETENSORS_INDEX_H

#include <ptxgen/status.h>
#include <stddef.h>

struct safetensors_index;

ptxgen_status safetensors_index_parse(const void *bytes, size_t size,
                                      struct safetensors_index **index, ptxgen_error *err);
void safetensors_index_free(struct safetensors_index *index);

/** The files in alphabetical order, each once. */
size_t safetensors_index_file_count(const struct safetensors_index *index);
const char *safetensors_index_file(const struct safetensors_index *index, size_t number);

/** The tensors in alphabetical order. */
size_t safetensors_index_tensor_count(const struct safetensors_index *index);
const char *safetensors_index_tensor(const struct safetensors_index *index, size_t number);
/** The file of a tensor, NULL when the index does not name the tensor. */
const char *safetensors_index_find(const struct safetensors_index *index, const char *tensor);

#endif
