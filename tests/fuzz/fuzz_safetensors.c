/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes through the safetensors reader; of what is accepted, everything is read. */
#include "fuzz.h"

#include "src/cli/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct safetensors_file *file;
    ptxgen_error err = {0};
    ptxgen_status status = safetensors_parse(data, size, &file, &err);
    fuzz_check_outcome(status, &err, file);
    if (status != PTXGEN_OK)
        return 0;
    const char *format = safetensors_metadata(file, "format");
    if (format)
        fuzz_touch(format, strlen(format));
    fuzz_read_tensors(safetensors_tensors(file), data, size);
    safetensors_free(file);
    return 0;
}
