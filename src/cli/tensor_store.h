/* SPDX-License-Identifier: Apache-2.0 */
/**
 * A file of tensors, GGUF or safetensors: the format is told by the first bytes.
 *
 * A checkpoint in several files is one store. Any part of a GGUF file in parts stands for all of
 * them (split.count), and so do the index of a sharded safetensors checkpoint, a shard beside its
 * index (model.safetensors.index.json), and the folder. Each part is checked as a file of its own;
 * a missing one, a tensor that is in two, and an index that does not fit are refused by name.
 *
 * Tensors, their names and their data stay valid until tensor_store_close.
 *
 *     struct tensor_store *store;
 *     const struct named_tensor *w;
 *     if (tensor_store_open("model.gguf", &store, &err) != PTXGEN_OK)
 *         …
 *     if (tensor_store_require(store, "blk.0.attn_q.weight", &w, &err) != PTXGEN_OK)
 *         …
 *     tensor_store_close(store);
 */
#ifndef PTXGEN_CLI_TENSOR_STORE_H
#define PTXGEN_CLI_TENSOR_STORE_H

#include "gguf.h"
#include "safetensors.h"
#include "tensor_view.h"

struct tensor_store;

/** Failures name the path as well. */
ptxgen_status tensor_store_open(const char *path, struct tensor_store **store, ptxgen_error *err);
enum tensor_format { TENSOR_GGUF, TENSOR_SAFETENSORS };
/** The same, and a file of the other format is PTXGEN_ERROR_MALFORMED. */
ptxgen_status tensor_store_open_as(enum tensor_format format, const char *path,
                                   struct tensor_store **store, ptxgen_error *err);
void tensor_store_close(struct tensor_store *store);

const struct tensor_list *tensor_store_tensors(const struct tensor_store *store);
/** PTXGEN_ERROR_NOT_FOUND, naming tensor and file, when there is none of that name. */
ptxgen_status tensor_store_require(const struct tensor_store *store, const char *name,
                                   const struct named_tensor **tensor, ptxgen_error *err);

/**
 * The format's own view, for metadata; NULL when the file is of the other format. Of several files
 * it is the first one's, which in GGUF has the keys of all.
 */
const struct gguf_file *tensor_store_gguf(const struct tensor_store *store);
const struct safetensors_file *tensor_store_safetensors(const struct tensor_store *store);

#endif
