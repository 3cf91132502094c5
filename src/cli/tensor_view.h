/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Named tensors as files hold them, whatever the file's format.
 *
 * A `named_tensor` is a view: name and data belong to the file that was read. Shapes are
 * outermost first (row-major): a weight of N rows of K elements is {N, K}, also when the format
 * writes its dimensions the other way round. Data is little-endian, packed, and aligned only as
 * the file aligns it: copy it out before reading it through a wider type.
 */
#ifndef PTXGEN_CLI_TENSOR_VIEW_H
#define PTXGEN_CLI_TENSOR_VIEW_H

#include "name_index.h"

#include <ptxgen/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * X(name, ggml type number or -1, is a safetensors dtype, elements a block, bytes a block).
 * The names are those that the formats use.
 */
#define TENSOR_DTYPES(X)                                                                           \
    X(F32, 0, true, 1, 4)                                                                          \
    X(F16, 1, true, 1, 2)                                                                          \
    X(BF16, 30, true, 1, 2)                                                                        \
    X(F64, 28, true, 1, 8)                                                                         \
    X(I8, 24, true, 1, 1)                                                                          \
    X(I16, 25, true, 1, 2)                                                                         \
    X(I32, 26, true, 1, 4)                                                                         \
    X(I64, 27, true, 1, 8)                                                                         \
    X(U8, -1, true, 1, 1)                                                                          \
    X(U16, -1, true, 1, 2)                                                                         \
    X(U32, -1, true, 1, 4)                                                                         \
    X(U64, -1, true, 1, 8)                                                                         \
    X(BOOL, -1, true, 1, 1)                                                                        \
    X(C64, -1, true, 1, 8)                                                                         \
    X(F8_E4M3, -1, true, 1, 1)                                                                     \
    X(F8_E5M2, -1, true, 1, 1)                                                                     \
    X(F8_E4M3FNUZ, -1, true, 1, 1)                                                                 \
    X(F8_E5M2FNUZ, -1, true, 1, 1)                                                                 \
    X(F8_E8M0, -1, true, 1, 1)                                                                     \
    X(F6_E2M3, -1, true, 4, 3)                                                                     \
    X(F6_E3M2, -1, true, 4, 3)                                                                     \
    X(F4, -1, true, 2, 1)                                                                          \
    X(Q4_0, 2, false, 32, 18)                                                                      \
    X(Q4_1, 3, false, 32, 20)                                                                      \
    X(Q5_0, 6, false, 32, 22)                                                                      \
    X(Q5_1, 7, false, 32, 24)                                                                      \
    X(Q8_0, 8, false, 32, 34)                                                                      \
    X(Q8_1, 9, false, 32, 36)                                                                      \
    X(Q2_K, 10, false, 256, 84)                                                                    \
    X(Q3_K, 11, false, 256, 110)                                                                   \
    X(Q4_K, 12, false, 256, 144)                                                                   \
    X(Q5_K, 13, false, 256, 176)                                                                   \
    X(Q6_K, 14, false, 256, 210)                                                                   \
    X(Q8_K, 15, false, 256, 292)                                                                   \
    X(IQ2_XXS, 16, false, 256, 66)                                                                 \
    X(IQ2_XS, 17, false, 256, 74)                                                                  \
    X(IQ3_XXS, 18, false, 256, 98)                                                                 \
    X(IQ1_S, 19, false, 256, 50)                                                                   \
    X(IQ4_NL, 20, false, 32, 18)                                                                   \
    X(IQ3_S, 21, false, 256, 110)                                                                  \
    X(IQ2_S, 22, false, 256, 82)                                                                   \
    X(IQ4_XS, 23, false, 256, 136)                                                                 \
    X(IQ1_M, 29, false, 256, 56)                                                                   \
    X(TQ1_0, 34, false, 256, 54)                                                                   \
    X(TQ2_0, 35, false, 256, 66)                                                                   \
    X(MXFP4, 39, false, 32, 17)                                                                    \
    X(NVFP4, 40, false, 64, 36)                                                                    \
    X(Q1_0, 41, false, 128, 18)                                                                    \
    X(Q2_0, 42, false, 64, 18)

enum tensor_dtype {
#define TENSOR_ENUMERATOR(name, ggml, safetensors, elements, bytes) TENSOR_##name,
    TENSOR_DTYPES(TENSOR_ENUMERATOR)
#undef TENSOR_ENUMERATOR
        TENSOR_DTYPE_COUNT
};

struct tensor_dtype_info {
    const char *name;
    int ggml_type; /**< -1 where ggml has none */
    bool in_safetensors;
    unsigned block_elements; /**< neighbours along the innermost dimension share a block */
    unsigned block_bytes;
};

/** A dtype's facts; never NULL for an enumerator of `tensor_dtype`. */
const struct tensor_dtype_info *tensor_dtype_info(enum tensor_dtype dtype);

enum { TENSOR_MAX_DIMS = 8 };

struct named_tensor {
    const char *name; /**< UTF-8, NUL-terminated */
    enum tensor_dtype dtype;
    unsigned ndim; /**< 0 for a scalar */
    uint64_t shape[TENSOR_MAX_DIMS];
    const void *data;
    size_t bytes;
};

/**
 * Sets `bytes` to what `shape` takes in its dtype. Refuses, naming the tensor, a product that
 * does not fit in memory's size and an element count that leaves a block incomplete.
 */
ptxgen_status named_tensor_measure(struct named_tensor *tensor, ptxgen_error *err);

/** "[96, 1024]" */
struct tensor_shape_text {
    char text[TENSOR_MAX_DIMS * 22 + 3];
};
struct tensor_shape_text tensor_shape_text(const struct named_tensor *tensor);

/** A file's tensors in the order the file lists them. */
struct tensor_list {
    size_t count;
    struct named_tensor *items;
    struct name_index_entry *by_name;
};

/** Room for `count` tensors, zeroed, to be released by tensor_list_free. */
ptxgen_status tensor_list_allocate(struct tensor_list *list, size_t count, ptxgen_error *err);
/** Builds `by_name` once every item has its name; refuses a name that appears twice. */
ptxgen_status tensor_list_index(struct tensor_list *list, ptxgen_error *err);
/** NULL when no tensor has that name. */
const struct named_tensor *tensor_list_find(const struct tensor_list *list, const char *name);
/** Releases the arrays, not the names. */
void tensor_list_free(struct tensor_list *list);

#endif
