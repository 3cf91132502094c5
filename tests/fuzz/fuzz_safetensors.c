/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes through the safetensors reader; of what is accepted, everything is read. */
#include "fuzz.h"

#include <ptxgen/files.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ptxgen_safetensors *file;
    ptxgen_error err = {0};
    ptxgen_status status = ptxgen_safetensors_parse(data, size, &file, &err);
    fuzz_check_outcome(status, &err, file);
    if (status != PTXGEN_OK)
        return 0;
    const char *format = ptxgen_safetensors_metadata(file, "format");
    if (format)
        fuzz_touch(format, strlen(format));
    fuzz_read_tensors(ptxgen_safetensors_tensors(file), data, size);
    ptxgen_safetensors_destroy(file);
    return 0;
}
