/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes through the reader of a safetensors index; no file of it leads out of its folder. */
#include "fuzz.h"

#include "src/files/safetensors_index.h"

static void check_file(const char *name)
{
    if (!*name || strchr(name, '/') || !strcmp(name, ".") || !strcmp(name, "..") ||
        !utf8_is_valid(name, strlen(name)))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct safetensors_index *index;
    ptxgen_error err = {0};
    ptxgen_status status = safetensors_index_parse(data, size, &index, &err);
    fuzz_check_outcome(status, &err, index);
    if (status != PTXGEN_OK)
        return 0;
    if (!safetensors_index_file_count(index) ||
        safetensors_index_file_count(index) > safetensors_index_tensor_count(index))
        abort();
    for (size_t i = 0; i < safetensors_index_file_count(index); i++)
        check_file(safetensors_index_file(index, i));
    for (size_t i = 0; i < safetensors_index_tensor_count(index); i++)
        check_file(safetensors_index_find(index, safetensors_index_tensor(index, i)));
    safetensors_index_free(index);
    return 0;
}
