/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes that the plan, the emitter and the launch of gguf_rows share. */
#ifndef PTXGEN_GGUF_ROWS_LAYOUT_H
#define PTXGEN_GGUF_ROWS_LAYOUT_H

#include <ptxgen/gguf_rows.h>

#include <stdbool.h>

/* The parameters of the entry, in order. */
enum gguf_rows_param {
    GGUF_ROWS_IDS,
    GGUF_ROWS_W,
    GGUF_ROWS_Y,
    GGUF_ROWS_Y_STRIDE,
    GGUF_ROWS_N,
    GGUF_ROWS_FIRST_ROW, /* the last one of 64 bits */
    GGUF_ROWS_ALL_PARTS, /* of all rows of the launch */
    GGUF_ROWS_PARAMS
};

enum {
    GGUF_ROWS_WARPS = 8, /* of a CTA */
    GGUF_ROWS_THREADS = 32 * GGUF_ROWS_WARPS,
    GGUF_ROWS_CTAS = 64,      /* for each multiprocessor at most; those that end make room */
    GGUF_ROWS_CHUNK = 8,      /* weights that a lane decodes at once */
    GGUF_ROWS_STRIP = 256,    /* those of a warp */
    GGUF_ROWS_COPY = 16,      /* bytes that a lane reads at once */
    GGUF_ROWS_ROUND = 32 * 16 /* those of a warp */
};

/* Bytes of a strip of 256 weights, which is whole blocks of any type. */
static inline uint32_t gguf_rows_strip_bytes(const ptxgen_gguf_type_info *type)
{
    return GGUF_ROWS_STRIP / type->block_weights * type->block_bytes;
}
/* What the start of a matrix is a multiple of: a power of two up to 4 that divides a block. */
static inline uint32_t gguf_rows_align(const ptxgen_gguf_type_info *type)
{
    uint32_t power = type->block_bytes & (~type->block_bytes + 1);
    return power < 4 ? power : 4;
}
/*
 * Reads of 512 bytes that a warp makes for a part: two, or three for F32, whose strips have 1024
 * bytes. Beside the strips there is room for what lies before a part in its first 16 bytes, and for
 * a word behind it.
 */
static inline uint32_t gguf_rows_rounds(const ptxgen_gguf_type_info *type)
{
    return gguf_rows_strip_bytes(type) <= GGUF_ROWS_ROUND ? 2 : 3;
}
/* Strips of a part: as many as the reads of a warp bring, but all parts of a row alike. */
uint32_t gguf_rows_part_strips(const ptxgen_gguf_rows_spec *s);
static inline uint32_t gguf_rows_strips(const ptxgen_gguf_rows_spec *s)
{
    return (s->k - 1) / GGUF_ROWS_STRIP + 1;
}
/* Bytes of a row of w. */
static inline uint64_t gguf_rows_row_bytes(const ptxgen_gguf_rows_spec *s)
{
    const ptxgen_gguf_type_info *type = ptxgen_gguf_type_find(s->w_type);
    return (uint64_t)s->k / type->block_weights * type->block_bytes;
}
/* The most rows of a launch. */
static inline uint32_t gguf_rows_most_m(const ptxgen_gguf_rows_plan *p)
{
    return INT32_MAX / p->parts;
}

/* Refuses a spec that no target can have. */
ptxgen_status gguf_rows_check_spec(const ptxgen_gguf_rows_spec *s, ptxgen_error *err);
/* Whether ptxgen_gguf_rows_make_plan has filled the plan. */
bool gguf_rows_is_plan(const void *plan);
/* The refusal of more rows than a launch has. */
ptxgen_status gguf_rows_refuse_m(const ptxgen_gguf_rows_plan *p, uint64_t m, ptxgen_error *err);

/*
 * An entry of another family that decodes rows for a product. It has the parameters of "gguf_rows"
 * with two more: `flags` is the last one of 64 bits, `flag_count` that of 32.
 */
struct gguf_rows_decoder {
    const char *name;
    bool pairs; /* eight rows, then room for as many of another matrix, and so on */
};
/* NULL: the family's own entry. */
void gguf_rows_emit_entry(const ptxgen_gguf_rows_plan *plan,
                          const struct gguf_rows_decoder *decoder, ptx_module *module);

#endif
