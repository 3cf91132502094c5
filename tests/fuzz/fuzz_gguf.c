/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes through the GGUF reader; of what is accepted, everything is read. */
#include "fuzz.h"

#include "src/cli/gguf.h"

#include <stdlib.h>

static void walk(struct gguf_value value)
{
    struct gguf_value element;
    switch (value.type) {
    case GGUF_STRING: fuzz_touch(value.string.bytes, value.string.length); break;
    case GGUF_ARRAY:
        while (gguf_array_next(&value.array, &element))
            walk(element);
        if (value.array.count != 0)
            abort();
        break;
    default: break;
    }
}

static void look_up(const struct gguf_file *file, const char *key)
{
    uint32_t u32;
    int64_t i64;
    float f32;
    ptxgen_error err;
    if (!gguf_find(file, key))
        abort();
    gguf_get_u32(file, key, &u32, &err);
    gguf_get_i64(file, key, &i64, &err);
    gguf_get_f32(file, key, &f32, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gguf_file *file;
    ptxgen_error err = {0};
    ptxgen_status status = gguf_parse(data, size, &file, &err);
    fuzz_check_outcome(status, &err, file);
    if (status != PTXGEN_OK)
        return 0;
    for (size_t i = 0; i < gguf_key_count(file); i++) {
        walk(*gguf_value_at(file, i));
        look_up(file, gguf_key(file, i));
    }
    fuzz_read_tensors(gguf_tensors(file), data, size);
    gguf_free(file);
    return 0;
}
