/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entry sparse24_repack packs values [N, K/2] and metadata, a byte for each group [N, K/4], as
 * ptxgen_sparse24_pack does on the host. A CTA packs a block of 32 features by 128 columns of K:
 *
 *     warp of a piece of values     4 words of a lane ── two values change places where their
 *                                   positions fall ─▶ 16 bytes
 *     last warp                     positions of the lane's groups, in rising order ─▶ 16 bytes
 *
 * A group with one position twice keeps nothing, so that the packed metadata is valid whatever the
 * bytes are; it is reported, as is a byte with other bits.
 */
#include "repack.h"

#include "../gemm/emit.h"

enum { WORD = 4, NIBBLES = 8 /* of a word of metadata */, REST = 0xF0 /* bits of a byte, all 0 */ };

struct repacking {
    ptx_kernel *k;
    const ptxgen_sparse24_spec *spec;
    struct gemm_threads at;
    ptx_u64 values, metadata;
    ptx_u32 row, step; /* the first feature of the CTA's block, and its number along K */
    ptx_u64 refused;   /* the thread's first byte that is refused as repack.h has it, or 0 */
};

static uint32_t groups_of(const struct repacking *q)
{
    return q->spec->k / SPARSE24_GROUP;
}

/* A group's positions; past the weight's ends 0 and 1. */
struct positions {
    ptx_u32 byte, first, second;
    ptx_pred fall, same;
};

static struct positions load_positions(const struct repacking *q, ptx_u32 row, ptx_u32 group)
{
    ptx_kernel *k = q->k;
    struct positions p = {.byte = ptx_mov_u32(k, U32(SPARSE24_FILLER))};
    ptx_pred in_n = ptx_setp_lt_u32(k, row, U32(q->spec->n));
    ptx_pred exists = ptx_setp_bool_lt_u32(k, group, U32(groups_of(q)), in_n);
    ptx_u64 line = ptx_mad_wide_u32(k, row, U32(groups_of(q)), q->metadata);
    ptx_u64 from = ptx_mad_wide_u32(k, group, U32(1), line);
    ptx_guarded(k, exists)
        ptx_ld_global_nc_u8_to(k, p.byte, from, 0);
    p.first = ptx_and_b32(k, p.byte, U32(3));
    p.second = ptx_bfe_u32(k, p.byte, U32(2), U32(2));
    p.fall = ptx_setp_gt_u32(k, p.first, p.second);
    p.same = ptx_setp_eq_u32(k, p.first, p.second);
    return p;
}

/* Four compressed bytes of a row from `byte` on, zeros past the weight's ends. */
static ptx_u32 load_word(const struct repacking *q, ptx_u32 row, ptx_u32 byte)
{
    ptx_kernel *k = q->k;
    uint32_t group_bytes = SPARSE24_KEPT * sparse24_element(q->spec);
    uint32_t row_bytes = groups_of(q) * group_bytes;
    ptx_u32 word = ptx_mov_u32(k, U32(0));
    ptx_pred in_n = ptx_setp_lt_u32(k, row, U32(q->spec->n));
    ptx_pred exists = ptx_setp_bool_lt_u32(k, byte, U32(row_bytes), in_n);
    ptx_u64 line = ptx_mad_wide_u32(k, row, U32(row_bytes), q->values);
    ptx_u64 from = ptx_mad_wide_u32(k, byte, U32(1), line);
    ptx_guarded(k, exists)
        ptx_ld_global_nc_u32_to(k, word, from, 0);
    ptx_u32 first = gemm_divide(k, byte, group_bytes), bytes = U32(0x3210);
    for (uint32_t i = 0; i < WORD / group_bytes; i++) {
        /* What changes the bytes that prmt takes to those in the other order, and to zeros. */
        uint32_t other = group_bytes == WORD ? 0x2222 : 0x11u << 8 * i;
        uint32_t zeros = group_bytes == WORD ? 0x4444 : 0x44u << 8 * i;
        ptx_u32 group = i ? ptx_add_u32(k, first, U32(i)) : first;
        struct positions p = load_positions(q, row, group);
        ptx_u32 falling = ptx_selp_u32(k, U32(other), U32(0), p.fall);
        ptx_u32 change = ptx_selp_u32(k, U32(zeros), falling, p.same);
        bytes = ptx_xor_b32(k, bytes, change);
    }
    return ptx_prmt_b32(k, word, U32(0), bytes);
}

/* pack.c says which words are a lane's. */
static void pack_values(const struct repacking *q, ptx_u64 to)
{
    ptx_kernel *k = q->k;
    enum { MMA_BYTES = SPARSE24_MMA_BYTES / 2 };
    uint32_t step_bytes = SPARSE24_STEP / 2 * sparse24_element(q->spec);
    ptx_u32 tile = ptx_and_b32(k, q->at.warp, U32(SPARSE24_TILES - 1));
    ptx_u32 mma = gemm_divide(k, q->at.warp, SPARSE24_TILES);
    ptx_u32 tile_row = ptx_mad_lo_u32(k, tile, U32(SPARSE24_TILE), q->row);
    ptx_u32 row = ptx_add_u32(k, tile_row, q->at.group);
    ptx_u32 in_mma = ptx_mul_lo_u32(k, q->at.quad, U32(WORD));
    ptx_u32 in_step = ptx_mad_lo_u32(k, mma, U32(MMA_BYTES), in_mma);
    ptx_u32 byte = ptx_mad_lo_u32(k, q->step, U32(step_bytes), in_step), words[4];
    for (uint32_t r = 0; r < 4; r++) {
        ptx_u32 word_row = r % 2 ? ptx_add_u32(k, row, U32(8)) : row;
        ptx_u32 word_byte = r / 2 ? ptx_add_u32(k, byte, U32(MMA_BYTES / 2)) : byte;
        words[r] = load_word(q, word_row, word_byte);
    }
    ptx_st_global_v4_u32(k, to, 0, words);
}

/* Notes a byte that is refused, unless it comes after one that is noted already. */
static void check(const struct repacking *q, const struct positions *p, ptx_u32 row, ptx_u32 group)
{
    ptx_kernel *k = q->k;
    ptx_u32 rest = ptx_and_b32(k, p->byte, U32(REST));
    ptx_u32 same = ptx_selp_u32(k, U32(1), rest, p->same);
    ptx_u64 index = ptx_mad_wide_u32(k, row, U32(groups_of(q)), ptx_cvt_u64_u32(k, group));
    ptx_u64 left = ptx_sub_u64(k, U64(SPARSE24_REFUSED_INDEX), index);
    ptx_u64 high = ptx_shl_b64(k, left, U32(SPARSE24_REFUSED_BYTE));
    ptx_u64 noted = ptx_or_b64(k, high, ptx_cvt_u64_u32(k, p->byte));
    ptx_u64 refused = ptx_selp_u64(k, noted, U64(0), ptx_setp_ne_u32(k, same, U32(0)));
    ptx_max_u64_to(k, q->refused, q->refused, refused);
}

/* The lane's word of 64 columns from group `first` of the weight on, and of 16 features. */
static ptx_u32 pack_word(const struct repacking *q, ptx_u32 first_row, ptx_u32 first)
{
    ptx_kernel *k = q->k;
    bool s8 = sparse24_is_s8(q->spec);
    ptx_u32 row = ptx_add_u32(k, first_row, q->at.group);
    ptx_u32 column = s8 ? gemm_divide(k, q->at.quad, 2) : q->at.quad;
    ptx_u32 own = ptx_mad_lo_u32(k, column, U32(s8 ? NIBBLES : NIBBLES / 2), first);
    if (s8)
        row = ptx_mad_lo_u32(k, ptx_and_b32(k, q->at.quad, U32(1)), U32(8), row);
    ptx_u32 word = U32(0);
    for (uint32_t n = 0; n < NIBBLES; n++) {
        uint32_t below = s8 ? 0 : n / (NIBBLES / 2) * 8;
        uint32_t on = s8 ? n : n % (NIBBLES / 2);
        ptx_u32 at_row = ptx_add_u32(k, row, U32(below)), at = ptx_add_u32(k, own, U32(on));
        struct positions p = load_positions(q, at_row, at);
        check(q, &p, at_row, at);
        ptx_u32 least = ptx_min_u32(k, p.first, p.second);
        ptx_u32 most = ptx_max_u32(k, p.first, p.second);
        ptx_u32 nibble = ptx_mad_lo_u32(k, most, U32(4), least);
        ptx_u32 valid = ptx_selp_u32(k, U32(SPARSE24_FILLER), nibble, p.same);
        word = ptx_mad_lo_u32(k, valid, U32(1u << 4 * n), word);
    }
    return word;
}

static void pack_metadata(struct repacking *q, ptx_u64 to)
{
    ptx_kernel *k = q->k;
    enum { WORD_GROUPS = SPARSE24_WORD_COLUMNS / SPARSE24_GROUP };
    ptx_u32 first = ptx_mul_lo_u32(k, q->step, U32(SPARSE24_WORDS * WORD_GROUPS));
    ptx_u32 j = ptx_mov_u32(k, U32(0));
    q->refused = ptx_mov_u64(k, U64(0));
    ptx_for(k, j, U32(SPARSE24_WORDS), U32(1)) {
        ptx_nounroll(k);
        ptx_u32 words[SPARSE24_TILES], group = ptx_mad_lo_u32(k, j, U32(WORD_GROUPS), first);
        for (uint32_t t = 0; t < SPARSE24_TILES; t++)
            words[t] = pack_word(q, ptx_add_u32(k, q->row, U32(t * SPARSE24_TILE)), group);
        ptx_st_global_v2_u32(
            k, ptx_mad_wide_u32(k, j, U32(sizeof words / sizeof *words * WORD), to), 0, words);
    }
}

/* Writes the first byte that is refused to the caller's word, if there is one. */
static void report(const struct repacking *q, ptx_u64 to)
{
    ptx_kernel *k = q->k;
    ptx_u64 asked = ptx_selp_u64(k, q->refused, U64(0), ptx_setp_ne_u64(k, to, U64(0)));
    ptx_if(k, ptx_setp_ne_u64(k, asked, U64(0)))
        ptx_atom_global_max_u64(k, to, 0, asked);
}

void sparse24_emit_repack(const ptxgen_sparse24_plan *plan, ptx_module *module)
{
    const ptxgen_sparse24_spec *s = &plan->spec;
    struct repacking *q = &(struct repacking){.spec = s};
    ptx_kernel *k = q->k = ptx_kernel_begin(module, "sparse24_repack");
    ptx_kernel_reqntid(k, sparse24_repack_threads(s), 1, 1);
    q->values = ptx_param_u64(k, "values");
    q->metadata = ptx_param_u64(k, "metadata");
    ptx_u64 packed = ptx_param_u64(k, "packed"), refused = ptx_param_u64(k, "refused");
    q->at = gemm_find_threads(k);
    ptx_u32 strip = gemm_divide(k, q->at.cta, sparse24_steps(s));
    q->step = gemm_remainder(k, q->at.cta, sparse24_steps(s));
    q->row = ptx_mul_lo_u32(k, strip, U32(SPARSE24_STRIP));
    ptx_u64 block = ptx_mad_wide_u32(k, q->at.cta, U32(sparse24_block_bytes(s)), packed);
    ptx_u64 to = ptx_mad_wide_u32(k, q->at.thread, U32(GEMM_CHUNK_BYTES), block);
    ptx_if_else(k, ptx_setp_lt_u32(k, q->at.warp, U32(sparse24_pieces(s))))
        pack_values(q, to);
    else {
        pack_metadata(q, to);
        report(q, refused);
    }
    ptx_kernel_end(k);
}
