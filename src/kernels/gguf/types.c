/* SPDX-License-Identifier: Apache-2.0 */
/* The table of types, and rows of them block by block. */
#include "block.h"

#include <ptxgen/types.h>

#include <float.h>
#include <math.h>

/* By rising number. */
static const struct gguf_format formats[] = {
    {{"F32", PTXGEN_GGUF_F32, 1, 4, true}, NULL, NULL},
    {{"F16", PTXGEN_GGUF_F16, 1, 2, true}, NULL, NULL},
    {{"Q4_0", PTXGEN_GGUF_Q4_0, 32, 18, true}, gguf_unpack_q4_0, gguf_quantise_q4_0},
    {{"Q4_1", PTXGEN_GGUF_Q4_1, 32, 20, true}, gguf_unpack_q4_1, gguf_quantise_q4_1},
    {{"Q5_0", PTXGEN_GGUF_Q5_0, 32, 22, true}, gguf_unpack_q5_0, gguf_quantise_q5_0},
    {{"Q5_1", PTXGEN_GGUF_Q5_1, 32, 24, true}, gguf_unpack_q5_1, gguf_quantise_q5_1},
    {{"Q8_0", PTXGEN_GGUF_Q8_0, 32, 34, true}, gguf_unpack_q8_0, gguf_quantise_q8_0},
    {{"Q2_K", PTXGEN_GGUF_Q2_K, 256, 84, false}, gguf_unpack_q2_k, NULL},
    {{"Q3_K", PTXGEN_GGUF_Q3_K, 256, 110, false}, gguf_unpack_q3_k, NULL},
    {{"Q4_K", PTXGEN_GGUF_Q4_K, 256, 144, true}, gguf_unpack_q4_k, gguf_quantise_q4_k},
    {{"Q5_K", PTXGEN_GGUF_Q5_K, 256, 176, true}, gguf_unpack_q5_k, gguf_quantise_q5_k},
    {{"Q6_K", PTXGEN_GGUF_Q6_K, 256, 210, true}, gguf_unpack_q6_k, gguf_quantise_q6_k},
    {{"IQ4_NL", PTXGEN_GGUF_IQ4_NL, 32, 18, false}, gguf_unpack_iq4_nl, NULL},
    {{"IQ4_XS", PTXGEN_GGUF_IQ4_XS, 256, 136, false}, gguf_unpack_iq4_xs, NULL},
    {{"BF16", PTXGEN_GGUF_BF16, 1, 2, true}, NULL, NULL},
    {{"MXFP4", PTXGEN_GGUF_MXFP4, 32, 17, true}, gguf_unpack_mxfp4, gguf_quantise_mxfp4},
};
enum { FORMATS = sizeof formats / sizeof *formats };

const struct gguf_format *gguf_format_of(uint32_t type)
{
    for (size_t i = 0; i < FORMATS; i++)
        if (formats[i].info.type == type)
            return &formats[i];
    return NULL;
}

const ptxgen_gguf_type_info *ptxgen_gguf_type_find(uint32_t type)
{
    const struct gguf_format *f = gguf_format_of(type);
    return f ? &f->info : NULL;
}

const ptxgen_gguf_type_info *ptxgen_gguf_type_at(size_t index)
{
    return index < FORMATS ? &formats[index].info : NULL;
}

/* ---- rows ---- */

ptxgen_status ptxgen_gguf_row_bytes(uint32_t type, size_t k, size_t *bytes, ptxgen_error *err)
{
    const ptxgen_gguf_type_info *t = ptxgen_gguf_type_find(type);
    size_t row;
    if (!bytes)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "gguf: bytes is NULL");
    if (!t)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "gguf: %u is the number of no type that this library decodes", type);
    if (k % t->block_weights != 0)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "K = %zu is not a multiple of %u: a row of %s is whole blocks", k,
                           t->block_weights, t->name);
    if (__builtin_mul_overflow(k / t->block_weights, t->block_bytes, &row))
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                           "K = %zu weights of %s are more bytes than memory has", k, t->name);
    *bytes = row;
    return PTXGEN_OK;
}

/* Refuses a row or weights that are NULL, and room for less than a row. */
static ptxgen_status check_row(uint32_t type, const void *row, size_t bytes, size_t k,
                               const float *weights, ptxgen_error *err)
{
    size_t needed;
    if (!row || !weights)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "gguf: row or weights is NULL");
    ptxgen_status status = ptxgen_gguf_row_bytes(type, k, &needed, err);
    if (status == PTXGEN_OK && bytes < needed)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "gguf: K = %zu weights of %s are %zu bytes, but there are %zu", k,
                           ptxgen_gguf_type_find(type)->name, needed, bytes);
    return status;
}

/* Of a type that is plain floats. */
static ptxgen_element element_of(uint32_t type)
{
    return type == PTXGEN_GGUF_F32   ? PTXGEN_F32
           : type == PTXGEN_GGUF_F16 ? PTXGEN_F16
                                     : PTXGEN_BF16;
}

static void decode_block(const struct gguf_format *f, const uint8_t *bytes, float *weights)
{
    struct gguf_block block;
    f->unpack(bytes, &block);
    for (unsigned i = 0; i < f->info.block_weights; i++) {
        unsigned g = i / block.group;
        weights[i] = block.scale[g] * (float)block.code[i] - block.min[g];
    }
}

ptxgen_status ptxgen_gguf_decode_row(uint32_t type, const void *row, size_t bytes, size_t k,
                                     float *weights, ptxgen_error *err)
{
    ptxgen_status status = check_row(type, row, bytes, k, weights, err);
    if (status != PTXGEN_OK)
        return status;
    const struct gguf_format *f = gguf_format_of(type);
    const uint8_t *block = row;
    if (!f->unpack)
        for (size_t i = 0; i < k; i++)
            weights[i] = (float)ptxgen_element_load(element_of(type), row, i);
    else
        for (size_t i = 0; i < k; i += f->info.block_weights, block += f->info.block_bytes)
            decode_block(f, block, weights + i);
    return PTXGEN_OK;
}

/* The largest number of the type, or of the f16 that holds a block's scale. */
static float most_of(uint32_t type)
{
    return type == PTXGEN_GGUF_F32 ? FLT_MAX : type == PTXGEN_GGUF_BF16 ? 0x1.FEp127f : 65504;
}

static ptxgen_status check_weights(uint32_t type, const float *weights, size_t k, ptxgen_error *err)
{
    float most = most_of(type);
    for (size_t i = 0; i < k; i++)
        if (!(fabsf(weights[i]) <= most))
            return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED,
                               "weight %zu is %g; %s takes finite weights up to %g", i,
                               (double)weights[i], ptxgen_gguf_type_find(type)->name, (double)most);
    return PTXGEN_OK;
}

ptxgen_status ptxgen_gguf_quantise_row(uint32_t type, const float *weights, size_t k, void *row,
                                       size_t bytes, ptxgen_error *err)
{
    ptxgen_status status = check_row(type, row, bytes, k, weights, err);
    if (status != PTXGEN_OK)
        return status;
    const struct gguf_format *f = gguf_format_of(type);
    if (!f->info.quantises)
        return ptxgen_fail(err, PTXGEN_ERROR_UNSUPPORTED, "gguf: there is no quantiser for %s",
                           f->info.name);
    status = check_weights(type, weights, k, err);
    uint8_t *block = row;
    if (!f->quantise)
        for (size_t i = 0; status == PTXGEN_OK && i < k; i++)
            ptxgen_element_store(element_of(type), row, i, (double)weights[i]);
    else
        for (size_t i = 0; status == PTXGEN_OK && i < k; i += f->info.block_weights) {
            f->quantise(weights + i, block);
            block += f->info.block_bytes;
        }
    return status;
}
