/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches of more than 32 tokens that direct.h does not serve, or with weights in floats only of
 * more than 8 or 2. h is written
 * as rows of the compute type, or x is read as it is; then the weights are decoded into the
 * workspace, a slice at a time, and multiplied as dense multiplies. A slice bounds the workspace;
 * each costs two launches and a last wave of tiles, so it is as large as a matrix of most models.
 *
 * Rows of all slices, one after the other:
 *
 *     matrices that share x   matrix 0, up to a multiple of 256 rows, matrix 1, likewise, matrix 2
 *     a gate                  8 rows of gate, 8 of up, 8 of gate …
 *
 * so that no tile of the product has features of two matrices, and sums of gate and up are in one
 * tile. Rows between matrices, and those that the last slice has too many, are not decoded: their
 * sums are stored nowhere. A single matrix in floats of the compute type is one slice, which is not
 * copied where the matrix is aligned.
 */
#ifndef PTXGEN_GGUF_LINEAR_INFLATE_H
#define PTXGEN_GGUF_LINEAR_INFLATE_H

#include "layout.h"

#include "../dense/layout.h"

enum {
    INFLATE_ROWS = 256,           /* which tile_n of every tile divides */
    INFLATE_PAIRS = 8,            /* rows of gate before as many of up */
    INFLATE_SLICE_BYTES = 2 << 20 /* of a slice at most, for each multiprocessor */
};

struct gguf_linear_slices {
    uint32_t first[MATRICES]; /* rows before a matrix */
    uint32_t rows, count;     /* of each slice, and how many there are */
};
struct gguf_linear_slices gguf_linear_slices(const ptxgen_gguf_linear_plan *p);
/* Rows of all slices. */
uint32_t gguf_linear_all_rows(const ptxgen_gguf_linear_spec *s);

/* What h and the weights are rounded to. */
static inline ptxgen_element gguf_linear_compute_type(const ptxgen_gguf_linear_spec *s)
{
    return (ptxgen_element)(s->compute ? s->compute : s->x_type);
}
/* The product as dense has it, of so many rows of w. */
static inline ptxgen_dense_spec gguf_linear_dense_spec(const ptxgen_gguf_linear_spec *s,
                                                       uint32_t rows)
{
    return (ptxgen_dense_spec){
        .n = rows, .k = s->k, .max_m = s->max_m, .type = (uint8_t)gguf_linear_compute_type(s)};
}
/* Whether x is multiplied as it is, where its rows are aligned. */
static inline bool gguf_linear_takes_x(const ptxgen_gguf_linear_spec *s)
{
    return !s->norm && !s->residual && gguf_linear_compute_type(s) == s->x_type;
}
/* Whether the weights are multiplied as they are, where they are aligned: a single matrix. */
static inline bool gguf_linear_takes_w(const ptxgen_gguf_linear_spec *s)
{
    static const uint8_t types[] = {PTXGEN_GGUF_F32, PTXGEN_GGUF_F16, PTXGEN_GGUF_BF16};
    return !s->n[1] && s->w_type[0] == types[gguf_linear_compute_type(s)];
}
/*
 * The most tokens that variants multiply: in one pass where the plan has the tiles of direct.h.
 * Floats are read in one pass; dense is faster from 3 tokens on where it reads the weights where
 * they are, and 16 bits of each.
 */
static inline uint32_t passes_most_m(const ptxgen_gguf_linear_plan *p)
{
    const ptxgen_gguf_linear_spec *s = &p->spec;
    if (has_quantised(s))
        return p->direct_count ? PASS_TOKENS : PASS_TOKENS * MOST_PASSES;
    return gguf_linear_takes_w(s) && gguf_linear_compute_type(s) != PTXGEN_F32 ? 2 : PASS_TOKENS;
}
/* Whether the plan serves more tokens than those. */
static inline bool gguf_linear_serves_many(const ptxgen_gguf_linear_plan *p)
{
    return p->spec.n[0] && (!p->spec.max_m || p->spec.max_m > passes_most_m(p));
}
/* Matrices that have a decoder of their own, and the decoder of a matrix among those. */
static inline uint32_t gguf_linear_decoder_of(const ptxgen_gguf_linear_spec *s, uint32_t matrix)
{
    uint32_t decoder = 0;
    for (uint32_t i = 0; i < matrix && s->w_type[i] != s->w_type[matrix]; i++) {
        bool is_new = true;
        for (uint32_t j = 0; j < i; j++)
            is_new = is_new && s->w_type[j] != s->w_type[i];
        decoder += is_new;
    }
    return decoder;
}

/* Parameters of the product behind dense's of 64 bits. */
enum gguf_linear_inflate_param {
    INFLATE_FIRST, /* the slice's first feature of y: of a gate; or its first row of all */
    INFLATE_Y_1,
    INFLATE_Y_2,
    INFLATE_Y_STRIDE_1,
    INFLATE_Y_STRIDE_2,
    INFLATE_BIAS,
    INFLATE_PARAMS = INFLATE_BIAS + MATRICES
};

/* Adds the plan of the product. */
ptxgen_status gguf_linear_plan_inflated(ptxgen_gguf_linear_plan *plan, ptxgen_error *err);
/* Emits the product's variants, the entry that makes h, and the decoders, in this order. */
void gguf_linear_emit_inflated(const ptxgen_gguf_linear_plan *plan, ptx_module *module);

#endif
