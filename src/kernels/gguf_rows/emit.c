/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entry "gguf_rows": each warp decodes parts of rows, one after the other.
 *
 *     a part of w    … | 16 bytes | 16 bytes | …        as they lie, whatever the row's start
 *        v  ld.global: a lane has every 32nd chunk
 *     registers      of the next part, while this one is decoded
 *        v  st.shared, then all lanes wait for each other
 *     shared memory  the part's bytes, with the same address modulo 16
 *        v  a strip of 256 weights at a time: a lane decodes 8 of them (decode.c)
 *     y              8 elements: 16 or 32 bytes of a lane
 *
 * Chunks that reach out of w, of which there are at most two, are read piece by piece. A strip of
 * Q4_K has 144 bytes of w and 512 of an f16 y.
 */
#include "decode.h"

#include "../gemm/tile.h"

#include <math.h>

enum { MOST_ROUNDS = 3 };

struct emitter {
    ptx_kernel *k;
    const ptxgen_gguf_rows_plan *plan;
    const ptxgen_gguf_rows_spec *spec;
    const struct gguf_rows_decoder *use; /* of another family; or NULL */
    struct gguf_decoder decoder;
    uint32_t rounds;
    ptx_u64 ids, w, w_end, y, y_pitch, n, first_row;
    ptx_u32 all_parts, lane, slot;
    ptx_pred whole_stores; /* rows of y start at multiples of 16 bytes */
};

/* A part of a row, on its way from w to shared memory. */
struct part {
    ptx_u32 words[MOST_ROUNDS][4]; /* the lane's chunks */
    ptx_u32 first;                 /* where the part's first byte will be in shared memory */
    ptx_u32 exists;                /* 1: w has the row */
};

static uint32_t element_bytes(const struct emitter *e)
{
    return (uint32_t)ptxgen_element_size((ptxgen_element)e->spec->y_type);
}

/* ---- from w to registers ---- */

/* The row of w that row m of y is, which may be beyond its n rows. */
static ptx_u64 find_row(const struct emitter *e, ptx_u32 m)
{
    ptx_kernel *k = e->k;
    if (!e->spec->indexed)
        return ptx_add_u64(k, e->first_row, ptx_cvt_u64_u32(k, m));
    ptx_s32 id = ptx_ld_global_s32(k, ptx_mad_wide_u32(k, m, U32(4), e->ids), 0);
    return ptx_cvt_u64_s32(k, id); /* far beyond, if the id is negative */
}

/* A chunk of which not all bytes are in w, piece by piece as w is aligned. */
static void load_edge(const struct emitter *e, ptx_u64 at, ptx_u32 words[4])
{
    ptx_kernel *k = e->k;
    const uint32_t align = e->decoder.align;
    for (uint32_t i = 0; i < GGUF_ROWS_COPY; i += align) {
        ptx_u64 from = ptx_add_u64(k, at, U64(i));
        ptx_pred begun = ptx_setp_ge_u64(k, from, e->w);
        ptx_pred inside = ptx_setp_bool_lt_u64(k, from, e->w_end, begun);
        ptx_u32 piece = ptx_mov_u32(k, U32(0));
        ptx_guarded(k, inside) {
            if (align == 4)
                ptx_ld_global_nc_u32_to(k, piece, from, 0);
            else if (align == 2)
                ptx_cvt_u32_u16_to(k, piece, ptx_ld_global_nc_u16(k, from, 0));
            else
                ptx_ld_global_nc_u8_to(k, piece, from, 0);
        }
        ptx_u32 moved = ptx_shl_b32(k, piece, U32(i % 4 * 8));
        ptx_or_b32_to(k, words[i / 4], words[i / 4], moved);
    }
}

/* Loads the lane's chunks of `bytes` bytes that begin at `from`. */
static void load_chunks(const struct emitter *e, ptx_u64 from, ptx_u32 bytes, struct part *part)
{
    ptx_kernel *k = e->k;
    ptx_u64 end = ptx_add_u64(k, from, ptx_cvt_u64_u32(k, bytes));
    ptx_u64 aligned = ptx_and_b64(k, from, U64(~UINT64_C(15)));
    ptx_u64 mine = ptx_mad_wide_u32(k, e->lane, U32(GGUF_ROWS_COPY), aligned);
    for (uint32_t i = 0; i < e->rounds; i++) {
        ptx_u64 at = ptx_add_u64(k, mine, U64(i * GGUF_ROWS_ROUND));
        ptx_u64 behind = ptx_add_u64(k, at, U64(GGUF_ROWS_COPY));
        ptx_pred needed = ptx_setp_lt_u64(k, at, end);
        ptx_pred begun = ptx_setp_bool_ge_u64(k, at, e->w, needed);
        ptx_pred whole = ptx_setp_bool_le_u64(k, behind, e->w_end, begun);
        ptx_guarded(k, whole)
            ptx_ld_global_nc_v4_u32_to(k, part->words[i], at, 0);
        ptx_if(k, ptx_xor_pred(k, needed, whole)) {
            ptx_u32 words[4];
            gemm_new_registers(k, words, 4);
            load_edge(e, at, words);
            for (int word = 0; word < 4; word++)
                ptx_mov_u32_to(k, part->words[i][word], words[word]);
        }
    }
}

/* Begins to load part `number` of all; there may be none of that number. */
static void load_part(const struct emitter *e, ptx_u32 number, struct part *part)
{
    ptx_kernel *k = e->k;
    const ptxgen_gguf_type_info *type = e->decoder.type;
    const uint64_t row_bytes = gguf_rows_row_bytes(e->spec);
    const uint32_t part_bytes = e->plan->part_weights / type->block_weights * type->block_bytes;
    ptx_mov_u32_to(k, part->exists, U32(0));
    ptx_if(k, ptx_setp_lt_u32(k, number, e->all_parts)) {
        ptx_u32 m = gemm_divide(k, number, e->plan->parts);
        ptx_u32 begin =
            ptx_mul_lo_u32(k, gemm_remainder(k, number, e->plan->parts), U32(part_bytes));
        ptx_u64 row = find_row(e, m);
        ptx_if(k, ptx_setp_lt_u64(k, row, e->n)) {
            ptx_u64 from = ptx_mad_lo_u64(k, row, U64(row_bytes), e->w);
            from = ptx_add_u64(k, from, ptx_cvt_u64_u32(k, begin));
            ptx_u32 left = ptx_sub_u32(k, U32((uint32_t)row_bytes), begin);
            ptx_u32 before = ptx_and_b32(k, ptx_cvt_u32_u64(k, from), U32(GGUF_ROWS_COPY - 1));
            ptx_add_u32_to(k, part->first, e->slot, before);
            ptx_mov_u32_to(k, part->exists, U32(1));
            load_chunks(e, from, ptx_min_u32(k, left, U32(part_bytes)), part);
        }
    }
}

/* ---- from shared memory to y ---- */

static void store_element(const struct emitter *e, ptx_u64 at, const ptx_u32 *words, uint32_t i)
{
    ptx_kernel *k = e->k;
    ptx_u16 halves[2];
    if (element_bytes(e) == 4) {
        ptx_st_global_u32(k, at, 4 * (int)i, words[i]);
        return;
    }
    ptx_unpack_u32(k, halves, words[i / 2]);
    ptx_st_global_u16(k, at, 2 * (int)i, halves[i % 2]);
}

/*
 * Stores the eight f32 of each lane so that two lanes write 32 bytes, a sector of the L2, at once:
 * first those of the even lane, then those of the odd one.
 */
static void store_sectors(const struct emitter *e, ptx_u64 at, const ptx_u32 *words)
{
    ptx_kernel *k = e->k;
    ptx_u32 parity = ptx_and_b32(k, e->lane, U32(1));
    ptx_pred odd = ptx_setp_ne_u32(k, parity, U32(0));
    ptx_u32 first[4], second[4];
    for (int i = 0; i < 4; i++) {
        ptx_u32 given = ptx_selp_u32(k, words[i], words[4 + i], odd);
        ptx_u32 other = ptx_shfl_sync_bfly_u32(k, given, U32(1), U32(31), ALL_LANES);
        first[i] = ptx_selp_u32(k, other, words[i], odd);
        second[i] = ptx_selp_u32(k, words[4 + i], other, odd);
    }
    ptx_u64 back = ptx_mul_wide_u32(k, parity, U32(16));
    ptx_u64 from = ptx_sub_u64(k, at, back);
    ptx_st_global_v4_u32(k, from, 0, first);
    ptx_st_global_v4_u32(k, from, 32, second);
}

/* Stores eight elements, of which the row has `left`: at least one. */
static void store_chunk(const struct emitter *e, ptx_u64 at, ptx_u32 left, const ptx_f32 *weights)
{
    ptx_kernel *k = e->k;
    const uint32_t count = GGUF_ROWS_CHUNK * element_bytes(e) / 4;
    ptx_u32 words[GGUF_ROWS_CHUNK];
    for (uint32_t i = 0; i < count; i++)
        words[i] = count == GGUF_ROWS_CHUNK ? ptx_f32_as_u32(weights[i])
                                            : gemm_narrow_pair(k, e->spec->y_type == PTXGEN_BF16,
                                                               weights[2 * i], weights[2 * i + 1]);
    ptx_pred whole = e->whole_stores;
    if (e->spec->k % GGUF_ROWS_CHUNK)
        whole = ptx_setp_bool_ge_u32(k, left, U32(GGUF_ROWS_CHUNK), whole);
    const bool has_all_lanes = e->spec->k % GGUF_ROWS_STRIP == 0;
    ptx_if_else(k, whole) {
        if (count > 4 && has_all_lanes)
            store_sectors(e, at, words);
        else
            for (uint32_t i = 0; i < count; i += 4)
                ptx_st_global_v4_u32(k, at, 4 * (int)i, words + i);
    } else {
        for (uint32_t i = 0; i < GGUF_ROWS_CHUNK; i++)
            ptx_if(k, ptx_setp_gt_u32(k, left, U32(i)))
                store_element(e, at, words, i);
    }
}

/* The weights of the lane in the strip at `strip`, or NaNs where there is no row. */
static void make_weights(const struct emitter *e, ptx_u32 strip, bool exists, ptx_f32 *weights)
{
    ptx_kernel *k = e->k;
    const ptxgen_gguf_type_info *type = e->decoder.type;
    const uint32_t block = type->block_weights > 1 ? type->block_weights : GGUF_ROWS_CHUNK;
    const uint32_t chunks = block / GGUF_ROWS_CHUNK;
    const uint32_t bytes = block / type->block_weights * type->block_bytes;
    if (!exists) {
        ptx_f32 none = ptx_mov_f32(k, F32(NAN));
        for (uint32_t i = 0; i < GGUF_ROWS_CHUNK; i++)
            weights[i] = none;
        return;
    }
    ptx_u32 at = ptx_mad_lo_u32(k, gemm_divide(k, e->lane, chunks), U32(bytes), strip);
    gguf_decode_chunk(&e->decoder, at, gemm_remainder(k, e->lane, chunks), weights);
    for (uint32_t i = 0; i < GGUF_ROWS_CHUNK && e->spec->scale != 1; i++)
        weights[i] = ptx_mul_f32(k, weights[i], F32(e->spec->scale));
}

/* The row of y that has row m of the launch. */
static ptx_u32 find_y(const struct emitter *e, ptx_u32 m)
{
    if (!e->use || !e->use->pairs)
        return m;
    ptx_u32 eights = ptx_and_b32(e->k, m, U32(~7u));
    return ptx_add_u32(e->k, m, eights);
}

/* Writes a part, whose bytes are at `first` in shared memory where the row exists. */
static void write_part(const struct emitter *e, ptx_u32 number, ptx_u32 first, bool exists)
{
    ptx_kernel *k = e->k;
    const ptxgen_gguf_rows_spec *s = e->spec;
    ptx_u32 m = gemm_divide(k, number, e->plan->parts);
    ptx_u32 begin =
        ptx_mul_lo_u32(k, gemm_remainder(k, number, e->plan->parts), U32(e->plan->part_weights));
    ptx_u64 row = ptx_mad_lo_u64(k, ptx_cvt_u64_u32(k, find_y(e, m)), e->y_pitch, e->y);
    ptx_u32 end = ptx_min_u32(k, ptx_add_u32(k, begin, U32(e->plan->part_weights)), U32(s->k));
    ptx_u32 strip = ptx_mov_u32(k, first);
    ptx_for(k, begin, end, U32(GGUF_ROWS_STRIP)) {
        ptx_u32 mine = ptx_mad_lo_u32(k, e->lane, U32(GGUF_ROWS_CHUNK), begin);
        ptx_u64 at = ptx_mad_wide_u32(k, mine, U32(element_bytes(e)), row);
        ptx_u32 left = ptx_sub_u32(k, U32(s->k), mine);
        ptx_if(k, ptx_setp_lt_u32(k, mine, U32(s->k))) {
            ptx_f32 weights[GGUF_ROWS_CHUNK];
            make_weights(e, strip, exists, weights);
            store_chunk(e, at, left, weights);
        }
        ptx_add_u32_to(k, strip, strip, U32(gguf_rows_strip_bytes(e->decoder.type)));
    }
}

/* Moves the part to shared memory, begins with the next one, and decodes. */
static void decode_part(const struct emitter *e, ptx_u32 number, ptx_u32 next, struct part *part)
{
    ptx_kernel *k = e->k;
    ptx_u32 to = ptx_mad_lo_u32(k, e->lane, U32(GGUF_ROWS_COPY), e->slot);
    ptx_bar_warp_sync(k, ALL_LANES); /* the part before is decoded */
    for (uint32_t i = 0; i < e->rounds; i++)
        ptx_st_shared_v4_u32(k, to, (int)(i * GGUF_ROWS_ROUND), part->words[i]);
    ptx_bar_warp_sync(k, ALL_LANES);
    ptx_u32 first = ptx_mov_u32(k, part->first);
    ptx_pred exists = ptx_setp_ne_u32(k, part->exists, U32(0));
    load_part(e, next, part);
    ptx_if_else(k, exists) {
        write_part(e, number, first, true);
    } else {
        write_part(e, number, first, false);
    }
}

/* ---- the entry ---- */

/* The product's flags are 0 before it begins; the first CTA sees to that. */
static void clear_flags(const struct emitter *e, ptx_u64 flags, ptx_u32 count)
{
    ptx_kernel *k = e->k;
    ptx_pred first = ptx_setp_eq_u32(k, ptx_sreg_ctaid_x(k), U32(0));
    ptx_if(k, first) {
        ptx_u32 i = ptx_mov_u32(k, ptx_sreg_tid_x(k));
        ptx_for(k, i, count, U32(GGUF_ROWS_THREADS)) {
            ptx_nounroll(k);
            ptx_st_global_u32(k, ptx_mad_wide_u32(k, i, U32(4), flags), 0, U32(0));
        }
    }
}

static void load_params(struct emitter *e)
{
    ptx_kernel *k = e->k;
    const uint64_t row_bytes = gguf_rows_row_bytes(e->spec);
    ptx_u64 wide[GGUF_ROWS_ALL_PARTS];
    const struct gemm_param params[GGUF_ROWS_ALL_PARTS] = {
        [GGUF_ROWS_IDS] = {"ids", e->spec->indexed},
        [GGUF_ROWS_W] = {"w", true},
        [GGUF_ROWS_Y] = {"y", true},
        [GGUF_ROWS_Y_STRIDE] = {"y_stride", true},
        [GGUF_ROWS_N] = {"n", true},
        [GGUF_ROWS_FIRST_ROW] = {"first_row", !e->spec->indexed},
    };
    gemm_params_u64(k, params, GGUF_ROWS_ALL_PARTS, wide);
    ptx_u64 flags = e->use ? ptx_param_u64(k, "flags") : U64(0);
    e->all_parts = ptx_param_u32(k, "all_parts");
    if (e->use)
        clear_flags(e, flags, ptx_param_u32(k, "flag_count"));
    e->ids = wide[GGUF_ROWS_IDS];
    e->w = wide[GGUF_ROWS_W];
    e->y = wide[GGUF_ROWS_Y];
    e->n = wide[GGUF_ROWS_N];
    e->first_row = wide[GGUF_ROWS_FIRST_ROW];
    e->w_end = ptx_mad_lo_u64(k, e->n, U64(row_bytes), e->w);
    e->y_pitch = ptx_mul_lo_u64(k, wide[GGUF_ROWS_Y_STRIDE], U64(element_bytes(e)));
    ptx_u64 low = ptx_and_b64(k, ptx_or_b64(k, e->y, e->y_pitch), U64(15));
    e->whole_stores = ptx_setp_eq_u64(k, low, U64(0));
}

void gguf_rows_emit_entry(const ptxgen_gguf_rows_plan *plan,
                          const struct gguf_rows_decoder *decoder, ptx_module *module)
{
    const ptxgen_gguf_type_info *type = ptxgen_gguf_type_find(plan->spec.w_type);
    struct emitter e = {
        .plan = plan, .spec = &plan->spec, .use = decoder, .rounds = gguf_rows_rounds(type)};
    const uint32_t slot_bytes = e.rounds * GGUF_ROWS_ROUND;
    struct part part;
    ptx_kernel *k = e.k = ptx_kernel_begin(module, decoder ? decoder->name : "gguf_rows");
    e.decoder = (struct gguf_decoder){k, type, gguf_rows_align(type)};
    ptx_kernel_reqntid(k, GGUF_ROWS_THREADS, 1, 1);
    if (gemm_overlaps(&plan->target)) {
        ptx_griddepcontrol_launch_dependents(k);
        ptx_griddepcontrol_wait(k);
    }
    load_params(&e);
    const struct gemm_threads at = gemm_find_threads(k);
    e.lane = at.lane;
    ptx_u32 slots = ptx_shared_address(
        k, ptx_shared_declare(k, "parts of the warps", GGUF_ROWS_WARPS * slot_bytes, 16));
    e.slot = ptx_mad_lo_u32(k, at.warp, U32(slot_bytes), slots);
    for (uint32_t i = 0; i < e.rounds; i++)
        gemm_new_registers(k, part.words[i], 4);
    part.first = ptx_mov_u32(k, e.slot);
    part.exists = ptx_mov_u32(k, U32(0));
    ptx_u32 number = ptx_mad_lo_u32(k, at.cta, U32(GGUF_ROWS_WARPS), at.warp);
    ptx_u32 step = ptx_mul_lo_u32(k, ptx_sreg_nctaid_x(k), U32(GGUF_ROWS_WARPS));
    load_part(&e, number, &part);
    ptx_for(k, number, e.all_parts, step) {
        ptx_nounroll(k);
        decode_part(&e, number, ptx_add_u32(k, number, step), &part);
    }
    ptx_kernel_end(k);
}
