/* SPDX-License-Identifier: Apache-2.0 */
#include "align.h"

#include "operand.h"

enum { AROUND_BYTES = GEMM_CHUNK_BYTES + 4 };

/* The 16 bytes of a row that a thread copies at once; a row may end within its last 16 bytes. */
struct row {
    ptx_kernel *k;
    uint32_t element;
    ptx_u64 at;   /* address of the first of the 16 bytes in x */
    ptx_u32 left; /* elements of the row from `at` to its end */
};

static ptx_u32 load_element(const struct row *r, uint32_t i)
{
    int offset = (int)(i * r->element);
    if (r->element == 4)
        return ptx_ld_global_nc_u32(r->k, r->at, offset);
    if (r->element == 1)
        return ptx_ld_global_nc_u8(r->k, r->at, offset);
    return ptx_cvt_u32_u16(r->k, ptx_ld_global_nc_u16(r->k, r->at, offset));
}

/* Loads the 16 bytes element by element into words that are zero, up to the row's end. */
static void load_elements(const struct row *r, const ptx_u32 words[4])
{
    uint32_t each = 4 / r->element, bits = 8 * r->element;
    for (uint32_t i = 0; i < 4 * each; i++) {
        ptx_u32 word = words[i / each];
        ptx_if(r->k, ptx_setp_gt_u32(r->k, r->left, U32(i)))
            ptx_bfi_b32_to(r->k, word, load_element(r, i), word, U32(i % each * bits), U32(bits));
    }
}

/*
 * Loads five aligned words that contain the 16 bytes, and shifts them into place by prmt. All five
 * words must lie within the row.
 */
static void load_shifted(const struct row *r, const ptx_u32 words[4])
{
    ptx_kernel *k = r->k;
    ptx_u32 off = ptx_and_b32(k, ptx_cvt_u32_u64(k, r->at), U32(3));
    ptx_u64 from = ptx_sub_u64(k, r->at, ptx_cvt_u64_u32(k, off));
    ptx_u32 bytes = ptx_mad_lo_u32(k, off, U32(0x1111), U32(0x3210)), around[AROUND_BYTES / 4];
    for (int i = 0; i < AROUND_BYTES / 4; i++)
        around[i] = ptx_ld_global_nc_u32(k, from, 4 * i);
    for (int i = 0; i < 4; i++)
        ptx_mov_u32_to(k, words[i], ptx_prmt_b32(k, around[i], around[i + 1], bytes));
}

void gemm_emit_align(ptx_module *module, const char *name, uint32_t columns, uint32_t element)
{
    uint32_t out_bytes = (uint32_t)gemm_aligned_bytes(columns, element);
    ptx_kernel *k = ptx_kernel_begin(module, name);
    ptx_kernel_reqntid(k, GEMM_ALIGN_THREADS, 1, 1);
    ptx_u64 x = ptx_param_u64(k, "x"), out = ptx_param_u64(k, "out");
    ptx_u64 pitch = ptx_mul_lo_u64(k, ptx_param_u64(k, "x_stride"), U64(element));
    ptx_u64 row = ptx_cvt_u64_u32(k, ptx_sreg_ctaid_x(k));
    ptx_u64 from = ptx_mad_lo_u64(k, row, pitch, x);
    ptx_u64 to = ptx_mad_lo_u64(k, row, U64(out_bytes), out);
    ptx_u32 first = ptx_shl_b32(k, ptx_sreg_tid_x(k), U32(4));
    ptx_for(k, first, U32(out_bytes), U32(GEMM_CHUNK_BYTES * GEMM_ALIGN_THREADS)) {
        ptx_nounroll(k);
        ptx_u64 offset = ptx_cvt_u64_u32(k, first);
        struct row r = {.k = k, .element = element};
        r.at = ptx_add_u64(k, from, offset);
        r.left = ptx_sub_u32(k, U32(columns), gemm_divide(k, first, element));
        ptx_u32 words[4];
        for (uint32_t w = 0; w < 4; w++)
            words[w] = ptx_mov_u32(k, U32(0));
        ptx_pred behind = ptx_setp_ne_u32(k, first, U32(0));
        ptx_if_else(k, ptx_setp_bool_ge_u32(k, r.left, U32(AROUND_BYTES / element), behind))
            load_shifted(&r, words);
        else
            load_elements(&r, words);
        ptx_st_global_v4_u32(k, ptx_add_u64(k, to, offset), 0, words);
    }
    ptx_kernel_end(k);
}
