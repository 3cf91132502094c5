/* SPDX-License-Identifier: Apache-2.0 */
#include "q4k.h"

#include "../half.h"

#include <string.h>

enum { SCALES = 4, CODES = 16 }; /* byte offsets in a super-block */

static uint16_t load_u16(const uint8_t *at)
{
    return (uint16_t)(at[0] | at[1] << 8);
}

static void store_u16(uint8_t *at, uint16_t value)
{
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
}

void q4k_unpack(const uint8_t bytes[PTXGEN_Q4K_BLOCK_BYTES], struct q4k_block *block)
{
    const uint8_t *s = bytes + SCALES;
    block->d = load_u16(bytes);
    block->dmin = load_u16(bytes + 2);
    for (int j = 0; j < 4; j++) {
        block->scale[j] = s[j] & 63;
        block->min[j] = s[j + 4] & 63;
        block->scale[j + 4] = (uint8_t)((s[j + 8] & 15) | s[j] >> 6 << 4);
        block->min[j + 4] = (uint8_t)(s[j + 8] >> 4 | s[j + 4] >> 6 << 4);
    }
    for (int pair = 0; pair < Q4K_SUB_BLOCKS / 2; pair++) {
        const uint8_t *packed = bytes + CODES + pair * Q4K_SUB_WEIGHTS;
        uint8_t *low = block->code + pair * 2 * Q4K_SUB_WEIGHTS;
        uint8_t *high = low + Q4K_SUB_WEIGHTS;
        for (int i = 0; i < Q4K_SUB_WEIGHTS; i++) {
            low[i] = packed[i] & 15;
            high[i] = packed[i] >> 4;
        }
    }
}

void q4k_pack(const struct q4k_block *block, uint8_t bytes[PTXGEN_Q4K_BLOCK_BYTES])
{
    uint8_t *s = bytes + SCALES;
    const uint8_t *scale = block->scale, *min = block->min;
    store_u16(bytes, block->d);
    store_u16(bytes + 2, block->dmin);
    for (int j = 0; j < 4; j++) {
        s[j] = (uint8_t)(scale[j] | scale[j + 4] >> 4 << 6);
        s[j + 4] = (uint8_t)(min[j] | min[j + 4] >> 4 << 6);
        s[j + 8] = (uint8_t)((scale[j + 4] & 15) | (min[j + 4] & 15) << 4);
    }
    for (int pair = 0; pair < Q4K_SUB_BLOCKS / 2; pair++) {
        uint8_t *packed = bytes + CODES + pair * Q4K_SUB_WEIGHTS;
        const uint8_t *low = block->code + pair * 2 * Q4K_SUB_WEIGHTS;
        const uint8_t *high = low + Q4K_SUB_WEIGHTS;
        for (int i = 0; i < Q4K_SUB_WEIGHTS; i++)
            packed[i] = (uint8_t)(low[i] | high[i] << 4);
    }
}

ptxgen_status ptxgen_q4k_row_bytes(size_t k, size_t *bytes, ptxgen_error *err)
{
    if (!bytes)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "q4k: bytes is NULL");
    if (k % PTXGEN_Q4K_BLOCK_WEIGHTS != 0)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "K = %zu is not a multiple of %d: a Q4_K row is whole super-blocks", k,
                           PTXGEN_Q4K_BLOCK_WEIGHTS);
    *bytes = k / PTXGEN_Q4K_BLOCK_WEIGHTS * PTXGEN_Q4K_BLOCK_BYTES; /* smaller than k */
    return PTXGEN_OK;
}

static void decode_block(const uint8_t *bytes, double weights[PTXGEN_Q4K_BLOCK_WEIGHTS])
{
    struct q4k_block block;
    q4k_unpack(bytes, &block);
    double d = ptxgen_f16_to_f32(block.d), dmin = ptxgen_f16_to_f32(block.dmin);
    for (int j = 0; j < Q4K_SUB_BLOCKS; j++) {
        double scale = d * block.scale[j], min = dmin * block.min[j];
        for (int i = j * Q4K_SUB_WEIGHTS; i < (j + 1) * Q4K_SUB_WEIGHTS; i++)
            weights[i] = scale * block.code[i] - min;
    }
}

ptxgen_status ptxgen_q4k_decode_row_f64(const void *row, size_t k, double *weights,
                                        ptxgen_error *err)
{
    size_t bytes;
    if (!row || !weights)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "q4k: row or weights is NULL");
    ptxgen_status status = ptxgen_q4k_row_bytes(k, &bytes, err);
    if (status != PTXGEN_OK)
        return status;
    const uint8_t *block = row;
    for (size_t i = 0; i < k; i += PTXGEN_Q4K_BLOCK_WEIGHTS, block += PTXGEN_Q4K_BLOCK_BYTES)
        decode_block(block, weights + i);
    return PTXGEN_OK;
}

ptxgen_status ptxgen_q4k_decode_row_f32(const void *row, size_t k, float *weights,
                                        ptxgen_error *err)
{
    size_t bytes;
    if (!row || !weights)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "q4k: row or weights is NULL");
    ptxgen_status status = ptxgen_q4k_row_bytes(k, &bytes, err);
    if (status != PTXGEN_OK)
        return status;
    const uint8_t *block = row;
    for (size_t i = 0; i < k; i += PTXGEN_Q4K_BLOCK_WEIGHTS, block += PTXGEN_Q4K_BLOCK_BYTES) {
        double exact[PTXGEN_Q4K_BLOCK_WEIGHTS];
        decode_block(block, exact);
        for (int j = 0; j < PTXGEN_Q4K_BLOCK_WEIGHTS; j++)
            weights[i + (size_t)j] = (float)exact[j];
    }
    return PTXGEN_OK;
}
