/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entry sparse24_inflate makes a compressed weight dense, bit for bit, at the speed of a copy.
 * 16 bytes of the dense weight come from 8 bytes of values and 1 to 2 bytes of metadata. A thread
 * inflates SPARSE24_INFLATE_CHUNKS chunks of 16 bytes, all of which it loads before it stores the
 * first. Rows are multiples of 16 bytes, so the weight is one array.
 *
 * A position has two bits, so the elements of a group stay in their group whatever the metadata
 * holds.
 */
#include "inflate.h"

#include "../gemm/emit.h"
#include "layout.h"

enum { GROUP_WORDS = 4 };

struct inflation {
    ptx_kernel *k;
    uint32_t element; /* 2 or 4 bytes */
    uint32_t groups;  /* of a chunk */
};

/*
 * Puts two 16-bit elements at their positions among four by a byte permutation, whose selector
 * takes zeros except for the bytes of the two elements.
 */
static void spread_halves(const struct inflation *q, ptx_u32 word, ptx_u32 nibble, ptx_u32 to[2])
{
    enum { ZERO = 0x44, FIRST = 0x10, SECOND = 0x32 };
    ptx_kernel *k = q->k;
    ptx_u32 first = ptx_and_b32(k, nibble, U32(3)), second = ptx_bfe_u32(k, nibble, U32(2), U32(2));
    ptx_u32 select = ptx_shl_b32(k, U32(ZERO ^ FIRST), ptx_shl_b32(k, first, U32(3)));
    ptx_u32 other = ptx_shl_b32(k, U32(ZERO ^ SECOND), ptx_shl_b32(k, second, U32(3)));
    select = ptx_xor_b32(k, ptx_xor_b32(k, select, other), U32(ZERO * 0x01010101u));
    to[0] = ptx_prmt_b32(k, word, U32(0), select);
    to[1] = ptx_prmt_b32(k, word, U32(0), ptx_shr_u32(k, select, U32(16)));
}

static void spread_words(const struct inflation *q, const ptx_u32 words[2], ptx_u32 nibble,
                         ptx_u32 to[4])
{
    ptx_kernel *k = q->k;
    ptx_u32 first = ptx_and_b32(k, nibble, U32(3)), second = ptx_bfe_u32(k, nibble, U32(2), U32(2));
    for (uint32_t i = 0; i < 4; i++) {
        ptx_u32 word = ptx_selp_u32(k, words[0], U32(0), ptx_setp_eq_u32(k, first, U32(i)));
        to[i] = ptx_selp_u32(k, words[1], word, ptx_setp_eq_u32(k, second, U32(i)));
    }
}

static void load_chunk(const struct inflation *q, ptx_u64 values, ptx_u64 metadata, uint32_t offset,
                       ptx_u32 chunk[3])
{
    ptx_ld_global_nc_v2_u32_to(q->k, chunk, values, (int)(offset * 8));
    if (q->groups == 1)
        ptx_ld_global_nc_u8_to(q->k, chunk[2], metadata, (int)offset);
    else
        ptx_cvt_u32_u16_to(q->k, chunk[2], ptx_ld_global_nc_u16(q->k, metadata, (int)(2 * offset)));
}

static void store_chunk(const struct inflation *q, ptx_u64 dense, uint32_t offset,
                        const ptx_u32 chunk[3])
{
    ptx_u32 words[GROUP_WORDS];
    if (q->groups == 1)
        spread_words(q, chunk, chunk[2], words);
    else
        for (uint32_t g = 0; g < q->groups; g++)
            spread_halves(q, chunk[g], g ? ptx_shr_u32(q->k, chunk[2], U32(8)) : chunk[2],
                          words + 2 * g);
    ptx_st_global_v4_u32(q->k, dense, (int)(offset * 16), words);
}

void sparse24_emit_inflate(const ptxgen_sparse24_plan *plan, ptx_module *module)
{
    const ptxgen_sparse24_spec *s = &plan->spec;
    struct inflation *q = &(struct inflation){.element = sparse24_element(s)};
    uint64_t chunks = sparse24_inflate_chunks(s);
    q->groups = 4 / q->element;
    ptx_kernel *k = q->k = ptx_kernel_begin(module, "sparse24_inflate");
    ptx_kernel_reqntid(k, SPARSE24_INFLATE_THREADS, 1, 1);
    ptx_u64 first_value = ptx_param_u64(k, "values");
    ptx_u64 first_byte = ptx_param_u64(k, "metadata");
    ptx_u64 dense = ptx_param_u64(k, "dense");
    ptx_u64 cta = ptx_cvt_u64_u32(k, ptx_sreg_ctaid_x(k)),
            tid = ptx_cvt_u64_u32(k, ptx_sreg_tid_x(k));
    ptx_u64 first =
        ptx_mad_lo_u64(k, cta, U64(SPARSE24_INFLATE_CHUNKS * SPARSE24_INFLATE_THREADS), tid);
    ptx_u64 values = ptx_mad_lo_u64(k, first, U64(8), first_value);
    ptx_u64 metadata = ptx_mad_lo_u64(k, first, U64(q->groups), first_byte);
    ptx_u64 to = ptx_mad_lo_u64(k, first, U64(16), dense);
    ptx_u32 loaded[SPARSE24_INFLATE_CHUNKS][3];
    ptx_pred there[SPARSE24_INFLATE_CHUNKS];
    for (uint32_t i = 0; i < SPARSE24_INFLATE_CHUNKS; i++) {
        uint32_t offset = i * SPARSE24_INFLATE_THREADS;
        for (int r = 0; r < 3; r++)
            loaded[i][r] = ptx_mov_u32(k, U32(0));
        there[i] = ptx_setp_lt_u64(k, ptx_add_u64(k, first, U64(offset)), U64(chunks));
        ptx_if(k, there[i])
            load_chunk(q, values, metadata, offset, loaded[i]);
    }
    for (uint32_t i = 0; i < SPARSE24_INFLATE_CHUNKS; i++)
        ptx_if(k, there[i])
            store_chunk(q, to, i * SPARSE24_INFLATE_THREADS, loaded[i]);
    ptx_kernel_end(k);
}
