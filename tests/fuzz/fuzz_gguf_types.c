/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a row of any type, and as weights that are quantised: byte 0 is ggml's number of the
 * type, byte 1 says how many blocks or, with its top bit, units of 32 weights the row has.
 */
#include "fuzz.h"

#include <ptxgen/gguf_types.h>

/* In memory of exactly the given bytes, which a sanitizer guards. */
static void check_row(uint32_t type, size_t k, const uint8_t *data, size_t size)
{
    ptxgen_error err = {0};
    float *weights = malloc(k * sizeof *weights + 1);
    if (!weights)
        return;
    ptxgen_status status = ptxgen_gguf_decode_row(type, data, size, k, weights, &err);
    fuzz_check_outcome(status, &err, status == PTXGEN_OK ? weights : NULL);
    if (status == PTXGEN_OK)
        fuzz_touch(weights, k * sizeof *weights);
    free(weights);
}

/* The bytes as weights; what is taken decodes. */
static void check_weights(uint32_t type, size_t k, const uint8_t *data, size_t size)
{
    size_t bytes;
    ptxgen_error err = {0};
    if (k > size / sizeof(float) || ptxgen_gguf_row_bytes(type, k, &bytes, NULL) != PTXGEN_OK)
        return;
    float *weights = malloc(k * sizeof *weights + 1);
    uint8_t *row = malloc(bytes + 1);
    if (weights && row) {
        memcpy(weights, data, k * sizeof *weights);
        ptxgen_status status = ptxgen_gguf_quantise_row(type, weights, k, row, bytes, &err);
        fuzz_check_outcome(status, &err, status == PTXGEN_OK ? row : NULL);
        if (status == PTXGEN_OK)
            check_row(type, k, row, bytes);
    }
    free(weights);
    free(row);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    const ptxgen_gguf_type_info *t = ptxgen_gguf_type_find(data[0]);
    size_t unit = data[1] & 0x80 || !t ? 32 : t->block_weights, k = (data[1] & 0x7F) * unit;
    check_row(data[0], k, data + 2, size - 2);
    check_weights(data[0], k, data + 2, size - 2);
    return 0;
}
