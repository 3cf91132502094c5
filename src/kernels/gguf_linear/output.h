/* SPDX-License-Identifier: Apache-2.0 */
/* What the entries that multiply many tokens as dense does (inflate.h, direct.h) know beside it. */
#ifndef PTXGEN_GGUF_LINEAR_OUTPUT_H
#define PTXGEN_GGUF_LINEAR_OUTPUT_H

#include "inflate.h"

#include "../dense/emit.h"

/* The `user` of a dense_use. */
struct gguf_linear_output {
    const ptxgen_gguf_linear_spec *spec;
    struct gguf_linear_slices slices;
    ptx_u64 params[INFLATE_PARAMS];
    ptx_u64 bias[2]; /* of the tile's matrix; of gate and up */
};

/* A dense_use's functions: the parameters behind dense's, and the epilogue. */
void gguf_linear_declare_output(struct dense_product *q);
void gguf_linear_begin_output(struct dense_product *q, struct gemm_epilogue *o);

#endif
