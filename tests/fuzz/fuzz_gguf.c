/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes through the GGUF reader; of what is accepted, everything is read. */
#include "fuzz.h"

#include <ptxgen/gguf.h>

#include <stdlib.h>

static void walk(ptxgen_gguf_value value)
{
    ptxgen_gguf_value element;
    switch (value.type) {
    case PTXGEN_GGUF_VALUE_STRING: fuzz_touch(value.string.bytes, value.string.length); break;
    case PTXGEN_GGUF_VALUE_ARRAY:
        while (ptxgen_gguf_array_next(&value.array, &element))
            walk(element);
        if (value.array.count != 0)
            abort();
        break;
    default: break;
    }
}

static void look_up(const ptxgen_gguf *file, const char *key)
{
    uint32_t u32;
    int64_t i64;
    float f32;
    ptxgen_error err;
    if (!ptxgen_gguf_find(file, key))
        abort();
    ptxgen_gguf_get_u32(file, key, &u32, &err);
    ptxgen_gguf_get_i64(file, key, &i64, &err);
    ptxgen_gguf_get_f32(file, key, &f32, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ptxgen_gguf *file;
    ptxgen_error err = {0};
    ptxgen_status status = ptxgen_gguf_parse(data, size, &file, &err);
    fuzz_check_outcome(status, &err, file);
    if (status != PTXGEN_OK)
        return 0;
    for (size_t i = 0; i < ptxgen_gguf_key_count(file); i++) {
        walk(*ptxgen_gguf_value_at(file, i));
        look_up(file, ptxgen_gguf_key(file, i));
    }
    fuzz_read_tensors(ptxgen_gguf_tensors(file), data, size);
    ptxgen_gguf_destroy(file);
    return 0;
}
