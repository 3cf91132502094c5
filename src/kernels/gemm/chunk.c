/* SPDX-License-Identifier: Apache-2.0 */
#include "chunk.h"

/* The bound shows the compiler that arrays of GEMM_SUMS_WIDTH elements suffice. */
static uint32_t width(const struct gemm_chunk *c)
{
    return c->width < GEMM_SUMS_WIDTH ? c->width : GEMM_SUMS_WIDTH;
}

uint32_t gemm_chunk_width(uint32_t sums, uint32_t threads)
{
    uint32_t width = 2;
    while (width < GEMM_SUMS_WIDTH && sums > width * threads)
        width *= 2;
    return width;
}

static void widen_pair(ptx_kernel *k, const struct gemm_chunk *c, ptx_u32 pair, ptx_f32 to[2])
{
    ptx_u16 halves[2];
    ptx_unpack_u32(k, halves, pair);
    for (int i = 0; i < 2; i++)
        if (c->bf16)
            ptx_cvt_f32_bf16_to(k, to[i], ptx_u16_as_bf16(halves[i]));
        else
            ptx_cvt_f32_f16_to(k, to[i], ptx_u16_as_f16(halves[i]));
}

/* ---- a chunk in words of 32 bits ---- */

enum { FULL = 4 /* words of the widest access */ };

static uint32_t count_words(const struct gemm_chunk *c)
{
    return c->f32 ? width(c) : width(c) / 2;
}

static void load_words(ptx_kernel *k, const struct gemm_chunk *c, ptx_u64 from, ptx_u32 *words)
{
    for (uint32_t i = 0; i < count_words(c); i += FULL) {
        int at = (int)(4 * i);
        if (count_words(c) >= FULL)
            ptx_ld_global_v4_u32_to(k, words + i, from, at);
        else if (count_words(c) == 2)
            ptx_ld_global_v2_u32_to(k, words, from, at);
        else
            ptx_ld_global_u32_to(k, words[0], from, at);
    }
}

void gemm_chunk_store_vectors(ptx_kernel *k, const struct gemm_chunk *c, ptx_u64 to, int offset,
                              const ptx_u32 words[])
{
    for (uint32_t i = 0; i < count_words(c); i += FULL) {
        int at = offset + (int)(4 * i);
        if (count_words(c) >= FULL)
            ptx_st_global_v4_u32(k, to, at, words + i);
        else if (count_words(c) == 2)
            ptx_st_global_v2_u32(k, to, at, words);
        else
            ptx_st_global_u32(k, to, at, words[0]);
    }
}

/* ---- a chunk element by element, up to the row's end ---- */

/* Element `i` of the chunk, or zero where the row ends before it. */
static ptx_u16 load_element(ptx_kernel *k, const struct gemm_chunk *c, ptx_u64 from, uint32_t i)
{
    if (!c->ragged)
        return ptx_ld_global_u16(k, from, (int)(2 * i));
    ptx_u16 element = ptx_mov_u16(k, ptx_imm_u16(0));
    ptx_guarded(k, ptx_setp_gt_u32(k, c->left, U32(i)))
        ptx_ld_global_u16_to(k, element, from, (int)(2 * i));
    return element;
}

static void store_element(ptx_kernel *k, const struct gemm_chunk *c, ptx_u64 to, uint32_t i,
                          ptx_u16 element)
{
    if (!c->ragged) {
        ptx_st_global_u16(k, to, (int)(2 * i), element);
        return;
    }
    ptx_guarded(k, ptx_setp_gt_u32(k, c->left, U32(i)))
        ptx_st_global_u16(k, to, (int)(2 * i), element);
}

static ptx_pred is_there(ptx_kernel *k, const struct gemm_chunk *c, uint32_t i)
{
    return ptx_setp_gt_u32(k, c->ragged ? c->left : U32(GEMM_SUMS_WIDTH), U32(i));
}

static void load_elements(ptx_kernel *k, const struct gemm_chunk *c, ptx_u64 from, ptx_u32 *words)
{
    for (uint32_t i = 0; i < count_words(c); i++) {
        ptx_u16 halves[2];
        if (c->f32) {
            ptx_guarded(k, is_there(k, c, i))
                ptx_ld_global_u32_to(k, words[i], from, (int)(4 * i));
            continue;
        }
        halves[0] = load_element(k, c, from, 2 * i);
        halves[1] = load_element(k, c, from, 2 * i + 1);
        ptx_pack_u32_to(k, words[i], halves);
    }
}

static void store_elements(ptx_kernel *k, const struct gemm_chunk *c, ptx_u64 to,
                           const ptx_u32 *words)
{
    for (uint32_t i = 0; i < count_words(c); i++) {
        ptx_u16 halves[2];
        if (c->f32) {
            ptx_guarded(k, is_there(k, c, i))
                ptx_st_global_u32(k, to, (int)(4 * i), words[i]);
            continue;
        }
        ptx_unpack_u32(k, halves, words[i]);
        store_element(k, c, to, 2 * i, halves[0]);
        store_element(k, c, to, 2 * i + 1, halves[1]);
    }
}

/* ---- chunks ---- */

void gemm_chunk_load(ptx_kernel *k, const struct gemm_chunk *c, ptx_u64 from,
                     ptx_f32 to[GEMM_SUMS_WIDTH])
{
    uint32_t columns = width(c);
    ptx_u32 words[GEMM_SUMS_WIDTH];
    for (uint32_t i = 0; i < count_words(c); i++)
        words[i] = ptx_mov_u32(k, U32(0));
    if (c->apart) {
        load_elements(k, c, from, words);
    } else {
        ptx_if_else(k, c->aligned)
            load_words(k, c, from, words);
        else
            load_elements(k, c, from, words);
    }
    for (uint32_t i = 0; i < columns; i++)
        to[i] = c->f32 ? ptx_u32_as_f32(words[i]) : ptx_mov_f32(k, F32(0));
    for (uint32_t i = 0; i < columns / 2 && !c->f32; i++)
        widen_pair(k, c, words[i], to + 2 * i);
}

void gemm_chunk_store_words(ptx_kernel *k, const struct gemm_chunk *c, ptx_u64 to,
                            const ptx_u32 words[])
{
    ptx_if_else(k, c->aligned)
        gemm_chunk_store_vectors(k, c, to, 0, words);
    else
        store_elements(k, c, to, words);
}

void gemm_chunk_round(ptx_kernel *k, const struct gemm_chunk *c, const ptx_f32 values[],
                      ptx_u32 words[])
{
    for (uint32_t i = 0; i < count_words(c); i++)
        words[i] = c->f32 ? ptx_f32_as_u32(values[i])
                          : gemm_narrow_pair(k, c->bf16, values[2 * i], values[2 * i + 1]);
}

void gemm_chunk_store(ptx_kernel *k, const struct gemm_chunk *c, ptx_u64 to,
                      const ptx_f32 values[GEMM_SUMS_WIDTH])
{
    ptx_u32 words[GEMM_SUMS_WIDTH];
    gemm_chunk_round(k, c, values, words);
    gemm_chunk_store_words(k, c, to, words);
}

void gemm_chunk_add(ptx_kernel *k, const struct gemm_chunk *c, ptx_u64 from,
                    ptx_f32 v[GEMM_SUMS_WIDTH])
{
    ptx_f32 more[GEMM_SUMS_WIDTH];
    gemm_chunk_load(k, c, from, more);
    for (uint32_t i = 0; i < width(c); i++)
        v[i] = ptx_add_f32(k, v[i], more[i]);
}
