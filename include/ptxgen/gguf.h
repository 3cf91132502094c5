/* SPDX-License-Identifier: Apache-2.0 */
/**
 * GGUF, versions 2 and 3, little-endian: typed metadata, and tensors, read in place.
 *
 * A file is a list of keys with values and a list of tensors. A value is a scalar, a string or an
 * array; strings and arrays are views into the file, and arrays may nest. ptxgen_gguf_parse checks
 * the whole file before it returns: every count, string, array, type, shape and offset. Refused are
 * names that repeat, are empty, too long, not UTF-8 or hold a NUL; tensors that start off the
 * alignment, end past the file or overlap; rows that break a block. What it returns can be used
 * without further checks.
 *
 * The functions are in libptxgen-files; files.h says of it, of lifetime, threads and errors what
 * holds here too, and opens files by path, split ones as well: ptxgen_files_gguf gives the view of
 * what was opened. A file that was parsed is read-only, and threads may share it.
 *
 *     uint32_t layers;
 *     float epsilon;
 *     ptxgen_gguf_array tokens;
 *     ptxgen_gguf_value token;
 *     const ptxgen_gguf *file = ptxgen_files_gguf(files);
 *     if (ptxgen_gguf_get_u32(file, "llama.block_count", &layers, &err) != PTXGEN_OK)
 *         return report(&err);                       // "the file has no key …", "key … is FLOAT32 …"
 *     if (ptxgen_gguf_get_f32(file, "llama.attention.layer_norm_rms_epsilon", &epsilon, &err) !=
 *         PTXGEN_OK)
 *         return report(&err);
 *     if (ptxgen_gguf_get_array(file, "tokenizer.ggml.tokens", &tokens, &err) != PTXGEN_OK)
 *         return report(&err);
 *     while (ptxgen_gguf_array_next(&tokens, &token))
 *         add_token(token.string.bytes, token.string.length);
 */
#ifndef PTXGEN_GGUF_H
#define PTXGEN_GGUF_H

#include <ptxgen/files.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What a value is. The numbers are the format's. */
typedef enum ptxgen_gguf_value_type {
    PTXGEN_GGUF_VALUE_UINT8 = 0,
    PTXGEN_GGUF_VALUE_INT8 = 1,
    PTXGEN_GGUF_VALUE_UINT16 = 2,
    PTXGEN_GGUF_VALUE_INT16 = 3,
    PTXGEN_GGUF_VALUE_UINT32 = 4,
    PTXGEN_GGUF_VALUE_INT32 = 5,
    PTXGEN_GGUF_VALUE_FLOAT32 = 6,
    PTXGEN_GGUF_VALUE_BOOL = 7,
    PTXGEN_GGUF_VALUE_STRING = 8,
    PTXGEN_GGUF_VALUE_ARRAY = 9,
    PTXGEN_GGUF_VALUE_UINT64 = 10,
    PTXGEN_GGUF_VALUE_INT64 = 11,
    PTXGEN_GGUF_VALUE_FLOAT64 = 12
} ptxgen_gguf_value_type;

/** Not NUL-terminated; any bytes. */
typedef struct ptxgen_gguf_string {
    const char *bytes;
    size_t length;
} ptxgen_gguf_string;

/** What is left of an array: walked by ptxgen_gguf_array_next, on a copy to keep the whole. */
typedef struct ptxgen_gguf_array {
    ptxgen_gguf_value_type type; /**< of each element */
    uint64_t count;
    const unsigned char *data; /**< the first of `count` elements, packed, little-endian */
    size_t bytes;
} ptxgen_gguf_array;

typedef struct ptxgen_gguf_value {
    ptxgen_gguf_value_type type;
    union {
        uint64_t u; /**< UINT8 to UINT64, widened */
        int64_t i;  /**< INT8 to INT64, widened */
        float f32;  /**< FLOAT32, all bits kept */
        double f64; /**< FLOAT64 */
        bool boolean;
        ptxgen_gguf_string string;
        ptxgen_gguf_array array;
    };
} ptxgen_gguf_value;

/** "UINT32", or "unknown" for a number that the format does not have. */
PTXGEN_API const char *ptxgen_gguf_value_type_name(ptxgen_gguf_value_type type);

/**
 * Takes the first element off `rest`; false when none is left. Arrays of a file were checked when
 * it was parsed, so walking one cannot fail.
 */
PTXGEN_API bool ptxgen_gguf_array_next(ptxgen_gguf_array *rest, ptxgen_gguf_value *element);

/**
 * Reads the bytes of one GGUF file. The bytes are borrowed and must outlive *file, which is the
 * caller's, for ptxgen_gguf_destroy, and NULL after a failure.
 */
PTXGEN_API ptxgen_status ptxgen_gguf_parse(const void *bytes, size_t size, ptxgen_gguf **file,
                                           ptxgen_error *err);
/** Not for what ptxgen_files_gguf returns. */
PTXGEN_API void ptxgen_gguf_destroy(ptxgen_gguf *file);

PTXGEN_API uint32_t ptxgen_gguf_version(const ptxgen_gguf *file);
/** `general.alignment`, or 32 where the file does not say. */
PTXGEN_API uint32_t ptxgen_gguf_alignment(const ptxgen_gguf *file);
/** The tensors of this one file. */
PTXGEN_API const ptxgen_tensor_list *ptxgen_gguf_tensors(const ptxgen_gguf *file);

/** Metadata in file order: key `index` and its value, NULL past the last. */
PTXGEN_API size_t ptxgen_gguf_key_count(const ptxgen_gguf *file);
PTXGEN_API const char *ptxgen_gguf_key(const ptxgen_gguf *file, size_t index);
PTXGEN_API const ptxgen_gguf_value *ptxgen_gguf_value_at(const ptxgen_gguf *file, size_t index);
/** NULL when the file has no such key. */
PTXGEN_API const ptxgen_gguf_value *ptxgen_gguf_find(const ptxgen_gguf *file, const char *key);

/**
 * Typed look-ups. The integer ones take any integer type whose value fits; the others want their
 * own type. A missing key is PTXGEN_ERROR_NOT_FOUND, another type or a value that does not fit
 * PTXGEN_ERROR_MALFORMED, and *value stays as it was.
 */
PTXGEN_API ptxgen_status ptxgen_gguf_get_u32(const ptxgen_gguf *file, const char *key,
                                             uint32_t *value, ptxgen_error *err);
PTXGEN_API ptxgen_status ptxgen_gguf_get_u64(const ptxgen_gguf *file, const char *key,
                                             uint64_t *value, ptxgen_error *err);
PTXGEN_API ptxgen_status ptxgen_gguf_get_i64(const ptxgen_gguf *file, const char *key,
                                             int64_t *value, ptxgen_error *err);
PTXGEN_API ptxgen_status ptxgen_gguf_get_f32(const ptxgen_gguf *file, const char *key, float *value,
                                             ptxgen_error *err);
PTXGEN_API ptxgen_status ptxgen_gguf_get_bool(const ptxgen_gguf *file, const char *key, bool *value,
                                              ptxgen_error *err);
PTXGEN_API ptxgen_status ptxgen_gguf_get_string(const ptxgen_gguf *file, const char *key,
                                                ptxgen_gguf_string *value, ptxgen_error *err);
PTXGEN_API ptxgen_status ptxgen_gguf_get_array(const ptxgen_gguf *file, const char *key,
                                               ptxgen_gguf_array *value, ptxgen_error *err);

#ifdef __cplusplus
}
#endif
#endif
