/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Checkpoints on disk, GGUF and safetensors: named tensors, read in place.
 *
 * The functions of this header and of gguf.h are in libptxgen-files, a library of its own, which
 * needs the C library alone and not libptxgen: link with -lptxgen-files (pkg-config
 * ptxgen-files). Of status.h it brings the types alone; ptxgen_status_name is in libptxgen.
 *
 * A checkpoint in several files is opened as one. Any part of a GGUF file in parts stands for all
 * of them (split.count), and so do the index of a sharded safetensors checkpoint, a shard beside
 * its index (model.safetensors.index.json), and the folder. Each part is checked as a file of its
 * own; a missing one, a tensor that is in two, and an index that does not fit are refused by name.
 *
 * Files are not trusted. A file is checked as a whole when it is opened, but for the values of its
 * tensors: every count, length, string, type, shape and offset. What was opened can be used
 * without further checks: no name repeats, a tensor has the bytes that its shape and dtype take,
 * and all of them lie in the file.
 *
 * Lifetime. Files are mapped, not copied: a tensor's data is read from disk when it is first
 * touched, and it is valid, as names and all else that these functions return, until
 * ptxgen_files_close. A file that another process shortens meanwhile faults on access, as every
 * memory map does.
 *
 * Threads. What was opened is read-only and may be shared by threads; it must be closed by one.
 *
 * Errors name the file, the tensor or key, the value and the rule that it breaks.
 * PTXGEN_ERROR_FILE says that a file cannot be opened or mapped, PTXGEN_ERROR_MALFORMED that its
 * contents break the format's rules, PTXGEN_ERROR_UNSUPPORTED that a version or a dtype is not known,
 * PTXGEN_ERROR_NOT_FOUND that there is no tensor or key of that name, or no file in a folder.
 *
 *     ptxgen_files *files;
 *     const ptxgen_tensor *w;
 *     if (ptxgen_files_open("model.gguf", &files, &err) != PTXGEN_OK)
 *         return report(&err);
 *     if (ptxgen_files_require(files, "blk.0.attn_q.weight", &w, &err) != PTXGEN_OK)
 *         return report(&err);
 *     upload(w->data, w->bytes);
 *     ptxgen_files_close(files);
 */
#ifndef PTXGEN_FILES_H
#define PTXGEN_FILES_H

#include <ptxgen/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- tensors ---- */

/** What a tensor's elements are, in either format. The names are those that the formats use. */
typedef enum ptxgen_dtype {
    PTXGEN_DTYPE_F32 = 0,
    PTXGEN_DTYPE_F16 = 1,
    PTXGEN_DTYPE_BF16 = 2,
    PTXGEN_DTYPE_F64 = 3,
    PTXGEN_DTYPE_I8 = 4,
    PTXGEN_DTYPE_I16 = 5,
    PTXGEN_DTYPE_I32 = 6,
    PTXGEN_DTYPE_I64 = 7,

    /* safetensors alone */
    PTXGEN_DTYPE_U8 = 8,
    PTXGEN_DTYPE_U16 = 9,
    PTXGEN_DTYPE_U32 = 10,
    PTXGEN_DTYPE_U64 = 11,
    PTXGEN_DTYPE_BOOL = 12,
    PTXGEN_DTYPE_C64 = 13,
    PTXGEN_DTYPE_F8_E4M3 = 14,
    PTXGEN_DTYPE_F8_E5M2 = 15,
    PTXGEN_DTYPE_F8_E8M0 = 16,
    PTXGEN_DTYPE_F8_E4M3FNUZ = 17,
    PTXGEN_DTYPE_F8_E5M2FNUZ = 18,
    PTXGEN_DTYPE_F6_E2M3 = 19,
    PTXGEN_DTYPE_F6_E3M2 = 20,
    PTXGEN_DTYPE_F4 = 21,

    /* GGUF alone: blocks of weights, most of which gguf_types.h decodes */
    PTXGEN_DTYPE_Q4_0 = 22,
    PTXGEN_DTYPE_Q4_1 = 23,
    PTXGEN_DTYPE_Q5_0 = 24,
    PTXGEN_DTYPE_Q5_1 = 25,
    PTXGEN_DTYPE_Q8_0 = 26,
    PTXGEN_DTYPE_Q8_1 = 27,
    PTXGEN_DTYPE_Q2_K = 28,
    PTXGEN_DTYPE_Q3_K = 29,
    PTXGEN_DTYPE_Q4_K = 30,
    PTXGEN_DTYPE_Q5_K = 31,
    PTXGEN_DTYPE_Q6_K = 32,
    PTXGEN_DTYPE_Q8_K = 33,
    PTXGEN_DTYPE_IQ2_XXS = 34,
    PTXGEN_DTYPE_IQ2_XS = 35,
    PTXGEN_DTYPE_IQ3_XXS = 36,
    PTXGEN_DTYPE_IQ1_S = 37,
    PTXGEN_DTYPE_IQ4_NL = 38,
    PTXGEN_DTYPE_IQ3_S = 39,
    PTXGEN_DTYPE_IQ2_S = 40,
    PTXGEN_DTYPE_IQ4_XS = 41,
    PTXGEN_DTYPE_IQ1_M = 42,
    PTXGEN_DTYPE_TQ1_0 = 43,
    PTXGEN_DTYPE_TQ2_0 = 44,
    PTXGEN_DTYPE_MXFP4 = 45,
    PTXGEN_DTYPE_NVFP4 = 46,
    PTXGEN_DTYPE_Q1_0 = 47,
    PTXGEN_DTYPE_Q2_0 = 48
} ptxgen_dtype;

typedef struct ptxgen_dtype_info {
    const char *name;        /**< as files have it: "BF16", "Q4_K" */
    int32_t ggml_type;       /**< ggml's number, as gguf_types.h takes it; −1 where ggml has none */
    bool in_safetensors;     /**< safetensors has the dtype */
    uint32_t block_elements; /**< neighbours along the innermost dimension that share a block */
    uint32_t block_bytes;
} ptxgen_dtype_info;

/**
 * The facts of a dtype; NULL for a number that names none, so all of them are met by counting up
 * from 0. They live as long as the program.
 */
PTXGEN_API const ptxgen_dtype_info *ptxgen_dtype_find(ptxgen_dtype dtype);

enum { PTXGEN_TENSOR_MAX_DIMS = 8 };

/**
 * A view: name and data belong to what was opened. Shapes are outermost first (row-major): a weight
 * of N rows of K elements is {N, K}, also in GGUF, which writes its dimensions the other way round.
 * Data is little-endian, packed, and aligned only as the file aligns it: copy it out before reading
 * it through a wider type.
 */
typedef struct ptxgen_tensor {
    const char *name; /**< UTF-8, NUL-terminated */
    ptxgen_dtype dtype;
    uint32_t ndim; /**< 0 for a scalar */
    uint64_t shape[PTXGEN_TENSOR_MAX_DIMS];
    const void *data;
    size_t bytes; /**< what shape and dtype take; 0 where a dimension is 0 */
} ptxgen_tensor;

/** Tensors in the order in which the file lists them. */
typedef struct ptxgen_tensor_list {
    size_t count;
    ptxgen_tensor *items;
    struct ptxgen_name *by_name; /**< the library's own, for ptxgen_tensor_list_find */
} ptxgen_tensor_list;

/** NULL when no tensor has that name. */
PTXGEN_API const ptxgen_tensor *ptxgen_tensor_list_find(const ptxgen_tensor_list *list,
                                                        const char *name);

/* ---- files by path ---- */

typedef struct ptxgen_files ptxgen_files;
typedef struct ptxgen_gguf ptxgen_gguf;
typedef struct ptxgen_safetensors ptxgen_safetensors;

typedef enum ptxgen_files_format {
    PTXGEN_FILES_GGUF = 0,
    PTXGEN_FILES_SAFETENSORS = 1
} ptxgen_files_format;

/**
 * Opens a file, with all files that it is a part of, or a folder; the format is told by the first
 * bytes. A folder's only *.safetensors.index.json is taken, else its only safetensors file, GGUF
 * file, or first part of a GGUF file; a folder with none or with several is refused. *files is the
 * caller's, for ptxgen_files_close, and NULL after a failure.
 */
PTXGEN_API ptxgen_status ptxgen_files_open(const char *path, ptxgen_files **files,
                                           ptxgen_error *err);
/** The same, and a file of the other format is PTXGEN_ERROR_MALFORMED. */
PTXGEN_API ptxgen_status ptxgen_files_open_as(ptxgen_files_format format, const char *path,
                                              ptxgen_files **files, ptxgen_error *err);
PTXGEN_API void ptxgen_files_close(ptxgen_files *files);

/** The tensors of all parts. */
PTXGEN_API const ptxgen_tensor_list *ptxgen_files_tensors(const ptxgen_files *files);
/**
 * PTXGEN_ERROR_NOT_FOUND, naming the tensor, the file and the nearest names that it has, when there
 * is none of that name.
 */
PTXGEN_API ptxgen_status ptxgen_files_require(const ptxgen_files *files, const char *name,
                                              const ptxgen_tensor **tensor, ptxgen_error *err);

/**
 * The format's own view, for metadata; NULL when the file is of the other format. Of several files
 * it is the first one's, which in GGUF has the keys of all. It belongs to `files`.
 */
PTXGEN_API const ptxgen_gguf *ptxgen_files_gguf(const ptxgen_files *files);
PTXGEN_API const ptxgen_safetensors *ptxgen_files_safetensors(const ptxgen_files *files);

/* ---- safetensors in memory ---- */

/**
 * Reads the bytes of one safetensors file: a JSON header that names tensors, then their data. The
 * header is at most 100 MB of UTF-8 JSON that starts with '{', and the tensors, in the order of
 * their offsets, fill the rest without gaps. The bytes are borrowed and must outlive *file, which
 * is the caller's, for ptxgen_safetensors_destroy, and NULL after a failure.
 */
PTXGEN_API ptxgen_status ptxgen_safetensors_parse(const void *bytes, size_t size,
                                                  ptxgen_safetensors **file, ptxgen_error *err);
/** Not for what ptxgen_files_safetensors returns. */
PTXGEN_API void ptxgen_safetensors_destroy(ptxgen_safetensors *file);
PTXGEN_API const ptxgen_tensor_list *ptxgen_safetensors_tensors(const ptxgen_safetensors *file);
/** The `__metadata__` string of that key, or NULL. */
PTXGEN_API const char *ptxgen_safetensors_metadata(const ptxgen_safetensors *file, const char *key);
/** Key `index` in alphabetical order, NULL past the last; its value goes to *value. */
PTXGEN_API const char *ptxgen_safetensors_metadata_at(const ptxgen_safetensors *file, size_t index,
                                                      const char **value);

#ifdef __cplusplus
}
#endif
#endif
