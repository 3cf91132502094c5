/* SPDX-License-Identifier: Apache-2.0 */
/* tests/golden/q4k.gguf, written by ggml: a quantised matrix, what it decodes to, a product. */
#ifndef PTXGEN_TESTS_Q4K_GOLDEN_H
#define PTXGEN_TESTS_Q4K_GOLDEN_H

#include <ptxgen/gguf.h>
#include "tests/status.h"

#include <stdlib.h>
#include <string.h>

static inline ptxgen_files *golden_open(void)
{
    ptxgen_files *store;
    ptxgen_error err;
    assert_ok(ptxgen_files_open(GOLDEN_DIR "/q4k.gguf", &store, &err), &err);
    return store;
}

static inline const ptxgen_tensor *golden_tensor(ptxgen_files *store, const char *name)
{
    const ptxgen_tensor *tensor;
    ptxgen_error err;
    assert_ok(ptxgen_files_require(store, name, &tensor, &err), &err);
    return tensor;
}

/* A copy, aligned and owned by the caller. */
static inline float *golden_floats(ptxgen_files *store, const char *name)
{
    const ptxgen_tensor *tensor = golden_tensor(store, name);
    assert_int_equal(tensor->dtype, PTXGEN_DTYPE_F32);
    float *copy = malloc(tensor->bytes);
    assert_non_null(copy);
    memcpy(copy, tensor->data, tensor->bytes);
    return copy;
}

#endif
