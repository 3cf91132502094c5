/* SPDX-License-Identifier: Apache-2.0 */
/* Random matrices, and checkpoints with memory. */
#ifndef PTXGEN_TESTS_MARLIN_SUPPORT_H
#define PTXGEN_TESTS_MARLIN_SUPPORT_H

#include "tests/random.h"
#include "tests/status.h"

#include <ptxgen/marlin_formats.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void *allocate(size_t bytes)
{
    void *memory = malloc(bytes ? bytes : 1);
    assert_non_null(memory);
    return memory;
}

/* Arrays of the size that a matrix of this shape needs; zeros and g_idx on request. */
static inline ptxgen_w4_matrix matrix_allocate(size_t k, size_t n, ptrdiff_t group_size,
                                               ptxgen_element scale_type, bool zeros, bool g_idx)
{
    size_t groups = group_size == PTXGEN_W4_PER_CHANNEL ? 1 : k / (size_t)group_size;
    ptxgen_w4_matrix m = {.k = k, .n = n, .group_size = group_size, .scale_type = scale_type};
    m.codes = allocate(k * n);
    m.scales = allocate(groups * n * ptxgen_element_size(scale_type));
    m.zeros = zeros ? allocate(groups * n) : NULL;
    m.g_idx = g_idx ? allocate(k * sizeof *m.g_idx) : NULL;
    return m;
}

static inline void matrix_free(ptxgen_w4_matrix *m)
{
    free(m->codes);
    free(m->scales);
    free(m->zeros);
    free(m->g_idx);
}

static inline size_t matrix_groups(const ptxgen_w4_matrix *m)
{
    return m->group_size == PTXGEN_W4_PER_CHANNEL ? 1 : m->k / (size_t)m->group_size;
}

/* Random codes, scales, zero points (all of 0…15) and a shuffled g_idx of equal groups. */
static inline ptxgen_w4_matrix matrix_random(struct random *r, size_t k, size_t n,
                                             ptrdiff_t group_size, ptxgen_element scale_type,
                                             bool zeros, bool act_order)
{
    ptxgen_w4_matrix m = matrix_allocate(k, n, group_size, scale_type, zeros, act_order);
    size_t groups = matrix_groups(&m);
    for (size_t i = 0; i < k * n; i++)
        m.codes[i] = (uint8_t)(random_bits(r) >> 60);
    for (size_t i = 0; i < groups * n; i++) {
        ptxgen_element_store(scale_type, m.scales, i, 0.01 * random_normal(r));
        if (zeros)
            m.zeros[i] = (uint8_t)((random_bits(r) >> 60) + i) & 15;
    }
    for (size_t i = 0; act_order && i < k; i++)
        m.g_idx[i] = (int32_t)(i / (k / groups));
    for (size_t i = k; act_order && i > 1; i--) {
        size_t j = random_bits(r) % i;
        int32_t swapped = m.g_idx[i - 1];
        m.g_idx[i - 1] = m.g_idx[j];
        m.g_idx[j] = swapped;
    }
    return m;
}

static inline int32_t matrix_group(const ptxgen_w4_matrix *m, size_t k)
{
    return m->g_idx ? m->g_idx[k] : (int32_t)(k / (m->k / matrix_groups(m)));
}

/* Equal in meaning: a NULL array is what it stands for. */
static inline void assert_same_matrix(const ptxgen_w4_matrix *x, const ptxgen_w4_matrix *y)
{
    assert_int_equal(x->k, y->k);
    assert_int_equal(x->n, y->n);
    assert_int_equal(matrix_groups(x), matrix_groups(y));
    assert_int_equal(x->scale_type, y->scale_type);
    assert_memory_equal(x->codes, y->codes, x->k * x->n);
    size_t count = matrix_groups(x) * x->n;
    assert_memory_equal(x->scales, y->scales, count * ptxgen_element_size(x->scale_type));
    for (size_t i = 0; i < count; i++)
        assert_int_equal(x->zeros ? x->zeros[i] : 8, y->zeros ? y->zeros[i] : 8);
    for (size_t k = 0; k < x->k; k++)
        assert_int_equal(matrix_group(x, k), matrix_group(y, k));
}

/* Tensors start at an odd address, as they may in a file; what is unwritten is poison. */
static inline void tensor_allocate(ptxgen_w4_tensor *t)
{
    size_t bytes = ptxgen_w4_tensor_bytes(t);
    if (bytes == 0)
        return;
    unsigned char *memory = allocate(bytes + 1);
    memset(memory, 0xA5, bytes + 1);
    t->data = memory + 1;
}

static inline void tensor_free(ptxgen_w4_tensor *t)
{
    if (t->data)
        free((unsigned char *)t->data - 1);
    t->data = NULL;
}

static inline ptxgen_w4_checkpoint checkpoint_allocate(const ptxgen_w4_info *info,
                                                       ptxgen_w4_format format)
{
    ptxgen_error err;
    ptxgen_w4_checkpoint c;
    assert_ok(ptxgen_w4_layout(info, format, &c, &err), &err);
    tensor_allocate(&c.weights);
    tensor_allocate(&c.scales);
    tensor_allocate(&c.zeros);
    tensor_allocate(&c.g_idx);
    tensor_allocate(&c.shape);
    return c;
}

static inline ptxgen_w4_checkpoint checkpoint_of(const ptxgen_w4_matrix *m, ptxgen_w4_format format)
{
    ptxgen_error err;
    ptxgen_w4_info info;
    assert_ok(ptxgen_w4_describe_matrix(m, &info, &err), &err);
    ptxgen_w4_checkpoint c = checkpoint_allocate(&info, format);
    assert_ok(ptxgen_w4_pack(m, &c, &err), &err);
    return c;
}

static inline void checkpoint_free(ptxgen_w4_checkpoint *c)
{
    tensor_free(&c->weights);
    tensor_free(&c->scales);
    tensor_free(&c->zeros);
    tensor_free(&c->g_idx);
    tensor_free(&c->shape);
}

static inline void assert_same_tensor(const ptxgen_w4_tensor *x, const ptxgen_w4_tensor *y)
{
    assert_int_equal(x->data != NULL, y->data != NULL);
    assert_int_equal(ptxgen_w4_tensor_bytes(x), ptxgen_w4_tensor_bytes(y));
    if (x->data)
        assert_memory_equal(x->data, y->data, ptxgen_w4_tensor_bytes(x));
}

static inline uint32_t word_of(const ptxgen_w4_tensor *t, size_t index)
{
    uint32_t word;
    memcpy(&word, (const unsigned char *)t->data + index * sizeof word, sizeof word);
    return word;
}

static inline void set_word(const ptxgen_w4_tensor *t, size_t index, uint32_t word)
{
    memcpy((unsigned char *)t->data + index * sizeof word, &word, sizeof word);
}

#endif
