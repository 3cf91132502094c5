/* SPDX-License-Identifier: Apache-2.0 */
/** A block of a GGUF type taken apart; the layouts stand in <ptxgen/gguf_types.h>. */
#ifndef PTXGEN_KERNELS_GGUF_BLOCK_H
#define PTXGEN_KERNELS_GGUF_BLOCK_H

#include <ptxgen/gguf_types.h>

enum { GGUF_MOST_WEIGHTS = 256, GGUF_MOST_GROUPS = 16 };

/** Weight i is scale[g]·code[i] − min[g] with g = i / group; the products are exact in f32. */
struct gguf_block {
    unsigned group; /**< weights that share a scale and a minimum */
    float scale[GGUF_MOST_GROUPS], min[GGUF_MOST_GROUPS];
    int8_t code[GGUF_MOST_WEIGHTS];
};

/** A type of blocks: how one is taken apart, and made of its weights. */
struct gguf_format {
    ptxgen_gguf_type_info info;
    void (*unpack)(const uint8_t *bytes, struct gguf_block *block); /**< NULL: plain floats */
    void (*quantise)(const float *weights, uint8_t *bytes);         /**< NULL: none */
};

/** NULL for a type that is not in the table. */
const struct gguf_format *gguf_format_of(uint32_t type);

/* ---- unpack.c ---- */

void gguf_unpack_q4_0(const uint8_t *bytes, struct gguf_block *block);
void gguf_unpack_q4_1(const uint8_t *bytes, struct gguf_block *block);
void gguf_unpack_q5_0(const uint8_t *bytes, struct gguf_block *block);
void gguf_unpack_q5_1(const uint8_t *bytes, struct gguf_block *block);
void gguf_unpack_q8_0(const uint8_t *bytes, struct gguf_block *block);
void gguf_unpack_q2_k(const uint8_t *bytes, struct gguf_block *block);
void gguf_unpack_q3_k(const uint8_t *bytes, struct gguf_block *block);
void gguf_unpack_q4_k(const uint8_t *bytes, struct gguf_block *block);
void gguf_unpack_q5_k(const uint8_t *bytes, struct gguf_block *block);
void gguf_unpack_q6_k(const uint8_t *bytes, struct gguf_block *block);
void gguf_unpack_iq4_nl(const uint8_t *bytes, struct gguf_block *block);
void gguf_unpack_iq4_xs(const uint8_t *bytes, struct gguf_block *block);
void gguf_unpack_mxfp4(const uint8_t *bytes, struct gguf_block *block);

/** The doubled numbers of e2m1, and those of IQ4_NL and IQ4_XS. */
extern const int8_t gguf_e2m1[16], gguf_iq4[16];
/** Half of e8m0: 2^(e − 128), which is subnormal for the least two. */
float gguf_half_power(uint8_t e);

/* ---- quantise.c ---- */

void gguf_store_f16(uint8_t *at, float value);
void gguf_quantise_q4_0(const float *weights, uint8_t *bytes);
void gguf_quantise_q4_1(const float *weights, uint8_t *bytes);
void gguf_quantise_q5_0(const float *weights, uint8_t *bytes);
void gguf_quantise_q5_1(const float *weights, uint8_t *bytes);
void gguf_quantise_q8_0(const float *weights, uint8_t *bytes);
void gguf_quantise_mxfp4(const float *weights, uint8_t *bytes);

/* ---- quantise_k.c ---- */

void gguf_quantise_q4_k(const float *weights, uint8_t *bytes);
void gguf_quantise_q5_k(const float *weights, uint8_t *bytes);
void gguf_quantise_q6_k(const float *weights, uint8_t *bytes);

#endif
