/* SPDX-License-Identifier: Apache-2.0 */
/* Packed weights with memory, and the layout once more, slowly, from its definition. */
#ifndef PTXGEN_TESTS_MARLIN_PACKING_H
#define PTXGEN_TESTS_MARLIN_PACKING_H

#include "support.h"

#include <ptxgen/marlin.h>

/* Arrays start 16 bytes off nothing in particular; what is unwritten is poison. */
static inline ptxgen_marlin_packed packed_allocate(const ptxgen_marlin_spec *spec)
{
    ptxgen_error err;
    ptxgen_marlin_packed p;
    assert_ok(ptxgen_marlin_packed_layout(spec, &p, &err), &err);
    p.codes = memset(allocate(p.codes_bytes), 0xA5, p.codes_bytes);
    p.scales = memset(allocate(p.scales_bytes), 0xA5, p.scales_bytes);
    p.zeros = p.zeros_bytes ? memset(allocate(p.zeros_bytes), 0xA5, p.zeros_bytes) : NULL;
    p.order = p.order_bytes ? memset(allocate(p.order_bytes), 0xA5, p.order_bytes) : NULL;
    return p;
}

static inline void packed_free(ptxgen_marlin_packed *p)
{
    free(p->codes);
    free(p->scales);
    free(p->zeros);
    free(p->order);
}

static inline void assert_same_packed(const ptxgen_marlin_packed *x, const ptxgen_marlin_packed *y)
{
    assert_memory_equal(x->codes, y->codes, x->codes_bytes);
    assert_memory_equal(x->scales, y->scales, x->scales_bytes);
    if (x->zeros_bytes)
        assert_memory_equal(x->zeros, y->zeros, x->zeros_bytes);
    if (x->order_bytes)
        assert_memory_equal(x->order, y->order, x->order_bytes);
}

/* A problem's matrices, up only with SwiGLU, and their checkpoints. */
struct weights {
    ptxgen_marlin_spec spec;
    ptxgen_w4_matrix matrices[2];
    ptxgen_w4_checkpoint checkpoints[2];
    unsigned count;
};

static inline struct weights make_weights(struct random *r, const ptxgen_marlin_spec *spec,
                                   ptxgen_w4_format format, ptxgen_element scale_type)
{
    struct weights w = {.spec = *spec, .count = spec->epilogue == PTXGEN_EPILOGUE_SWIGLU ? 2 : 1};
    for (unsigned i = 0; i < w.count; i++) {
        w.matrices[i] = matrix_random(r, spec->k, spec->n, spec->group_size, scale_type,
                                      spec->zeros, spec->act_order);
        if (i && spec->act_order)
            memcpy(w.matrices[1].g_idx, w.matrices[0].g_idx, spec->k * sizeof(int32_t));
        w.checkpoints[i] = checkpoint_of(&w.matrices[i], format);
    }
    return w;
}

static inline void free_weights(struct weights *w)
{
    for (unsigned i = 0; i < w->count; i++) {
        matrix_free(&w->matrices[i]);
        checkpoint_free(&w->checkpoints[i]);
    }
}

static inline const ptxgen_w4_checkpoint *up_of(const struct weights *w)
{
    return w->count == 2 ? &w->checkpoints[1] : NULL;
}

/* The formats that can hold this spec's weights. */
static inline bool format_holds(ptxgen_w4_format format, const ptxgen_marlin_spec *spec)
{
    if (format == PTXGEN_W4_MARLIN)
        return !spec->act_order && spec->n % 64 == 0;
    return format != PTXGEN_W4_AWQ || !spec->act_order;
}

/* Column `column` of a strip: which matrix it is of, and which column there. */
struct strip_column {
    const ptxgen_w4_matrix *matrix; /* NULL: padding */
    size_t n;
};

static inline struct strip_column strip_column(const ptxgen_w4_matrix matrices[2], size_t strip,
                                               size_t column)
{
    bool gated = matrices[1].codes;
    size_t width = gated ? 32 : 64;
    const ptxgen_w4_matrix *m = &matrices[column / width];
    size_t n = strip * width + column % width;
    return (struct strip_column){n < m->n ? m : NULL, n};
}

static inline uint32_t slow_code(const ptxgen_w4_matrix matrices[2], size_t strip, size_t column,
                                 size_t k)
{
    struct strip_column c = strip_column(matrices, strip, column);
    return c.matrix && k < c.matrix->k ? c.matrix->codes[k * c.matrix->n + c.n] : 0;
}

/* [strips][steps][4 tiles][32 lanes][4 words] */
static inline void slow_codes(const ptxgen_w4_matrix matrices[2], size_t strips, size_t steps,
                              uint32_t *out)
{
    for (size_t i = 0; i < strips * steps * 512; i++) {
        size_t word = i % 4, lane = i / 4 % 32, tile = i / 128 % 4;
        size_t step = i / 512 % steps, strip = i / 512 / steps, g = lane / 4, q = lane % 4;
        out[i] = 0;
        for (size_t reg = 0; reg < 4; reg++) {
            size_t column = tile * 16 + g + reg % 2 * 8;
            size_t k = step * 64 + word * 16 + 2 * q + reg / 2 * 8;
            out[i] |= slow_code(matrices, strip, column, k) << 4 * reg;
            out[i] |= slow_code(matrices, strip, column, k + 1) << 4 * (reg + 4);
        }
    }
}

/* The checkpoint's group that packed group `group` belongs to; SIZE_MAX past K. */
static inline size_t slow_group(const ptxgen_w4_matrix *m, size_t packed_groups, size_t group)
{
    size_t size = m->k / matrix_groups(m);
    size_t rows = packed_groups == 1 ? m->k : size % 64 == 0 ? size : size % 32 == 0 ? 32 : 16;
    return group * rows < m->k ? group * rows / size : SIZE_MAX;
}

/* [strips][groups][8 g][4 tiles][g, g + 8], and the zero points' words beside them */
static inline void slow_groups(const ptxgen_w4_matrix matrices[2], ptxgen_element type,
                               size_t strips, size_t groups, uint16_t *scales, uint32_t *zeros)
{
    for (size_t i = 0; i < strips * groups * 64; i++) {
        size_t half = i % 2, tile = i / 2 % 4, g = i / 8 % 8, group = i / 64 % groups;
        struct strip_column c = strip_column(matrices, i / 64 / groups, tile * 16 + g + half * 8);
        size_t from = slow_group(&matrices[0], groups, group);
        uint32_t zero = 0;
        scales[i] = 0;
        if (c.matrix && from != SIZE_MAX) {
            size_t at = from * c.matrix->n + c.n;
            ptxgen_element_store(type, scales, i,
                                 ptxgen_element_load(c.matrix->scale_type, c.matrix->scales, at));
            zero = c.matrix->zeros ? c.matrix->zeros[at] : 8;
        }
        if (!zeros)
            continue;
        uint32_t *word = &zeros[i / 8];
        *word = (tile || half ? *word : 0) | zero << 4 * (2 * tile + half);
    }
}

#endif
