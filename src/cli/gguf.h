/* SPDX-License-Identifier: Apache-2.0 */
/**
 * GGUF, versions 2 and 3, little-endian: typed metadata and tensors, read in place.
 *
 * gguf_parse checks the whole file before it returns: every count, string, array, type, shape and
 * offset. Refused are names that repeat, are empty, too long, not UTF-8 or hold a NUL; tensors
 * that start off the alignment, end past the file or overlap; rows that break a quantisation
 * block. What it returns can be used without further checks.
 *
 * The bytes are borrowed and must outlive the gguf_file. A parsed file is read-only: threads may
 * share it.
 *
 *     struct gguf_file *file;
 *     float eps;
 *     if (gguf_parse(map.data, map.size, &file, &err) != PTXGEN_OK)
 *         …
 *     if (gguf_get_f32(file, "llama.attention.layer_norm_rms_epsilon", &eps, &err) != PTXGEN_OK)
 *         …
 *     const struct named_tensor *w = tensor_list_find(gguf_tensors(file), "blk.0.attn_q.weight");
 */
#ifndef PTXGEN_CLI_GGUF_H
#define PTXGEN_CLI_GGUF_H

#include "gguf_value.h"
#include "tensor_view.h"

struct gguf_file;

ptxgen_status gguf_parse(const void *bytes, size_t size, struct gguf_file **file,
                         ptxgen_error *err);
void gguf_free(struct gguf_file *file);

uint32_t gguf_version(const struct gguf_file *file);
/** `general.alignment`, or 32 where the file does not say. */
uint32_t gguf_alignment(const struct gguf_file *file);
const struct tensor_list *gguf_tensors(const struct gguf_file *file);

/** Metadata in file order. */
size_t gguf_key_count(const struct gguf_file *file);
const char *gguf_key(const struct gguf_file *file, size_t index);
const struct gguf_value *gguf_value_at(const struct gguf_file *file, size_t index);
/** NULL when the file has no such key. */
const struct gguf_value *gguf_find(const struct gguf_file *file, const char *key);

/**
 * Typed look-ups. The integer ones take any integer type whose value fits; the others want their
 * own type. A missing key is PTXGEN_ERROR_NOT_FOUND, another type or a value that does not fit
 * PTXGEN_ERROR_MALFORMED.
 */
ptxgen_status gguf_get_u32(const struct gguf_file *file, const char *key, uint32_t *value,
                           ptxgen_error *err);
ptxgen_status gguf_get_u64(const struct gguf_file *file, const char *key, uint64_t *value,
                           ptxgen_error *err);
ptxgen_status gguf_get_i64(const struct gguf_file *file, const char *key, int64_t *value,
                           ptxgen_error *err);
ptxgen_status gguf_get_f32(const struct gguf_file *file, const char *key, float *value,
                           ptxgen_error *err);
ptxgen_status gguf_get_bool(const struct gguf_file *file, const char *key, bool *value,
                            ptxgen_error *err);
ptxgen_status gguf_get_string(const struct gguf_file *file, const char *key,
                              struct gguf_string *value, ptxgen_error *err);
ptxgen_status gguf_get_array(const struct gguf_file *file, const char *key,
                             struct gguf_array *value, ptxgen_error *err);

#endif
