/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sparse24_align: rows of X brought to multiples of 16 bytes, and where K is not one padded with
 * zeros. A CTA a row, 16 bytes a thread at a time.
 */
#include "emit.h"

/* Elements of a word, from `from` on. */
static ptx_u32 load_word(ptx_kernel *k, const ptxgen_sparse24_spec *s, ptx_u64 from, uint32_t offset)
{
    if (!sparse24_is_s8(s)) {
        ptx_u16 halves[2];
        for (uint32_t i = 0; i < 2; i++)
            halves[i] = ptx_ld_global_nc_u16(k, from, (int)(offset + 2 * i));
        return ptx_pack_u32(k, halves);
    }
    ptx_u32 word = ptx_ld_global_nc_u8(k, from, (int)offset);
    for (uint32_t i = 1; i < 4; i++) {
        ptx_u32 byte = ptx_ld_global_nc_u8(k, from, (int)(offset + i));
        word = ptx_bfi_b32(k, byte, word, U32(8 * i), U32(8));
    }
    return word;
}

void sparse24_emit_align(const ptxgen_sparse24_plan *plan, ptx_module *module)
{
    enum { HALF = TILE_CHUNK_BYTES / 2 }; /* K is a multiple of 8: a row ends with one */
    const ptxgen_sparse24_spec *s = &plan->spec;
    uint32_t row_bytes = s->k * sparse24_element(s), out_bytes = (uint32_t)sparse24_x_bytes(s);
    ptx_kernel *k = ptx_kernel_begin(module, "sparse24_align");
    ptx_kernel_reqntid(k, SPARSE24_ALIGN_THREADS, 1, 1);
    ptx_u64 x = ptx_param_u64(k, "x"), out = ptx_param_u64(k, "out");
    ptx_u64 stride = ptx_param_u64(k, "x_stride");
    ptx_u64 pitch = sparse24_is_s8(s) ? stride : ptx_shl_b64(k, stride, U32(1));
    ptx_u64 row = ptx_cvt_u64_u32(k, ptx_sreg_ctaid_x(k));
    ptx_u64 from = ptx_mad_lo_u64(k, row, pitch, x);
    ptx_u64 to = ptx_mad_lo_u64(k, row, U64(out_bytes), out);
    ptx_u32 first = ptx_shl_b32(k, ptx_sreg_tid_x(k), U32(4));
    ptx_for(k, first, U32(out_bytes), U32(TILE_CHUNK_BYTES * SPARSE24_ALIGN_THREADS)) {
        ptx_nounroll(k);
        ptx_u64 offset = ptx_cvt_u64_u32(k, first), at = ptx_add_u64(k, from, offset);
        ptx_u32 words[4];
        for (uint32_t i = 0; i < 2; i++)
            words[i] = load_word(k, s, at, 4 * i);
        for (uint32_t i = 2; i < 4; i++)
            words[i] = ptx_mov_u32(k, U32(0));
        ptx_if(k, ptx_setp_lt_u32(k, first, U32(row_bytes - HALF)))
            for (uint32_t i = 2; i < 4; i++)
                ptx_mov_u32_to(k, words[i], load_word(k, s, at, 4 * i));
        ptx_st_global_v4_u32(k, ptx_add_u64(k, to, offset), 0, words);
    }
    ptx_kernel_end(k);
}
