/* SPDX-License-Identifier: Apache-2.0 */
/** A Q4_K super-block taken apart; the layout is drawn in <ptxgen/q4k.h>. */
#ifndef PTXGEN_KERNELS_RMSNORM_Q4K_Q4K_H
#define PTXGEN_KERNELS_RMSNORM_Q4K_Q4K_H

#include <ptxgen/q4k.h>

#include <stdint.h>

enum {
    Q4K_SUB_BLOCKS = 8,
    Q4K_SUB_WEIGHTS = 32,
    Q4K_MAX_CODE = 15,  /* of a weight */
    Q4K_MAX_SCALE = 63, /* of a sub-block's scale or minimum */
};

struct q4k_block {
    uint16_t d, dmin; /* f16 bits */
    uint8_t scale[Q4K_SUB_BLOCKS];
    uint8_t min[Q4K_SUB_BLOCKS];
    uint8_t code[PTXGEN_Q4K_BLOCK_WEIGHTS];
};

void q4k_unpack(const uint8_t bytes[PTXGEN_Q4K_BLOCK_BYTES], struct q4k_block *block);
void q4k_pack(const struct q4k_block *block, uint8_t bytes[PTXGEN_Q4K_BLOCK_BYTES]);

#endif
