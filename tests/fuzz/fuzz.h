/* SPDX-License-Identifier: Apache-2.0 */
/* What the file fuzzers share: the promises that every reader makes about what it accepts. */
#ifndef PTXGEN_TESTS_FUZZ_H
#define PTXGEN_TESTS_FUZZ_H

#include "src/files/printable.h"
#include "src/files/tensor_list.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads each byte, so that a sanitizer sees a range that leaves its block. */
static inline void fuzz_touch(const void *data, size_t size)
{
    volatile unsigned char sum = 0;
    for (size_t i = 0; i < size; i++)
        sum = (unsigned char)(sum + ((const unsigned char *)data)[i]);
}

/* Success comes with an object and no word, failure with a UTF-8 sentence and no object. */
static inline void fuzz_check_outcome(ptxgen_status status, const ptxgen_error *err,
                                      const void *object)
{
    if (status == PTXGEN_OK ? !object || err->message[0] : object || !err->message[0])
        abort();
    if (!utf8_is_valid(err->message, strlen(err->message)))
        abort();
}

static inline void fuzz_read_tensors(const ptxgen_tensor_list *tensors, const uint8_t *file,
                                     size_t size)
{
    for (size_t i = 0; i < tensors->count; i++) {
        const ptxgen_tensor *t = &tensors->items[i];
        const uint8_t *data = t->data;
        if (ptxgen_tensor_list_find(tensors, t->name) != t || t->ndim > PTXGEN_TENSOR_MAX_DIMS)
            abort();
        if (data < file || data > file + size || t->bytes > (size_t)(file + size - data))
            abort();
        fuzz_touch(t->data, t->bytes);
    }
}

#endif
