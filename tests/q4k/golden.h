/* SPDX-License-Identifier: Apache-2.0 */
/* tests/golden/q4k.gguf, written by ggml: a quantised matrix, what it decodes to, a product. */
#ifndef PTXGEN_TESTS_Q4K_GOLDEN_H
#define PTXGEN_TESTS_Q4K_GOLDEN_H

#include "src/cli/tensor_store.h"
#include "tests/status.h"

#include <stdlib.h>
#include <string.h>

static inline struct tensor_store *golden_open(void)
{
    struct tensor_store *store;
    ptxgen_error err;
    assert_ok(tensor_store_open(GOLDEN_DIR "/q4k.gguf", &store, &err), &err);
    return store;
}

static inline const struct named_tensor *golden_tensor(struct tensor_store *store, const char *name)
{
    const struct named_tensor *tensor;
    ptxgen_error err;
    assert_ok(tensor_store_require(store, name, &tensor, &err), &err);
    return tensor;
}

/* A copy, aligned and owned by the caller. */
static inline float *golden_floats(struct tensor_store *store, const char *name)
{
    const struct named_tensor *tensor = golden_tensor(store, name);
    assert_int_equal(tensor->dtype, TENSOR_F32);
    float *copy = malloc(tensor->bytes);
    assert_non_null(copy);
    memcpy(copy, tensor->data, tensor->bytes);
    return copy;
}

#endif
