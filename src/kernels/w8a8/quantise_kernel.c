/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entry "w8a8_quantise": each CTA quantises a token, and writes its codes and scale to the
 * workspace. Additional CTAs prefetch the lines of w with which the product begins into the L2.
 */
#include "emit.h"

struct quantise_kernel {
    struct quantiser q;
    uint32_t multiprocessors;
    ptx_u64 codes, scales, zeros, flags, w;
    ptx_u32 flag_count, m, lines, part_bits, part_bytes, line_bits, blocks, stages, stage_bytes;
    ptx_u32 tid, lane, warp, token;
    uint32_t threads;
};

/* The byte of a part of K that the product begins with, for features around `row`. */
static ptx_u32 first_of(struct quantise_kernel *e, ptx_u32 row)
{
    ptx_kernel *k = e->q.k;
    ptx_u32 block = gemm_divide(k, ptx_mul_lo_u32(k, row, e->blocks), w8a8_rows(e->q.spec));
    return ptx_mul_lo_u32(k, w8a8_first_stage(k, block, e->stages, e->multiprocessors),
                          e->stage_bytes);
}

/* The further CTAs: each thread prefetches one line of w at a time. */
static void prefetch_weights(struct quantise_kernel *e)
{
    ptx_kernel *k = e->q.k;
    ptx_u32 cta = ptx_sub_u32(k, e->token, e->m), ctas = ptx_sub_u32(k, ptx_sreg_nctaid_x(k), e->m);
    ptx_u32 line = ptx_mad_lo_u32(k, cta, U32(e->threads), e->tid);
    ptx_u32 step = ptx_mul_lo_u32(k, ctas, U32(e->threads));
    uint64_t bytes = (uint64_t)w8a8_rows(e->q.spec) * w8a8_w_stride(e->q.spec);
    ptx_u64 end = ptx_add_u64(k, e->w, U64(bytes - 1));
    ptx_for(k, line, e->lines, step) {
        ptx_nounroll(k);
        ptx_u32 before = ptx_shr_u32(k, line, e->line_bits);
        ptx_u32 in_part = ptx_bfe_u32(k, line, U32(0), e->line_bits);
        ptx_u32 row = ptx_shr_u32(k, before, e->part_bits);
        ptx_u32 part = ptx_bfe_u32(k, before, U32(0), e->part_bits);
        ptx_u64 at = ptx_mad_wide_u32(k, row, U32(w8a8_w_stride(e->q.spec)), e->w);
        at = ptx_mad_wide_u32(k, part, e->part_bytes, at);
        ptx_u32 offset = ptx_mad_lo_u32(k, in_part, U32(W8A8_LINE_BYTES), first_of(e, row));
        ptx_u32 past = ptx_sub_u32(k, offset, e->part_bytes);
        at = ptx_add_u64(k, at, ptx_cvt_u64_u32(k, ptx_min_u32(k, offset, past)));
        at = ptx_min_u64(k, at, end);
        ptx_prefetch_global_L2(k, at, 0);
    }
}

static void zero_flags(struct quantise_kernel *e)
{
    ptx_kernel *k = e->q.k;
    ptx_if(k, ptx_setp_eq_u32(k, e->token, U32(0))) {
        ptx_u32 i = ptx_mov_u32(k, e->tid);
        ptx_for(k, i, e->flag_count, U32(e->threads)) {
            ptx_u64 at = ptx_mad_wide_u32(k, i, U32(4), e->flags);
            ptx_st_global_u32(k, at, 0, U32(0));
        }
    }
}

static void store_token(struct quantise_kernel *e, const struct token *t)
{
    ptx_kernel *k = e->q.k;
    struct work scale = w8a8_written_scale(&e->q, t);
    ptx_if(k, ptx_setp_eq_u32(k, e->tid, U32(0))) {
        ptx_u64 at = ptx_mad_wide_u32(k, e->token, U32(w8a8_work_bytes(e->q.spec)), e->scales);
        if (e->q.wide)
            ptx_st_global_f64(k, at, 0, scale.d);
        else
            ptx_st_global_f32(k, at, 0, scale.f);
        if (e->q.spec->asymmetric) {
            ptx_u64 zero = ptx_mad_wide_u32(k, e->token, U32(4), e->zeros);
            ptx_st_global_s32(k, zero, 0, t->zero);
        }
    }
}

struct code_row {
    struct quantise_kernel *e;
    ptx_u64 row;
    ptx_u32 end;
};

/* The row of the CTA's token; of its chunks those before `end` exist. */
static struct code_row find_code_row(struct quantise_kernel *e, ptx_u32 end)
{
    ptx_u64 token = ptx_cvt_u64_u32(e->q.k, e->token);
    ptx_u64 row = ptx_mad_lo_u64(e->q.k, token, U64(w8a8_code_stride(e->q.spec)), e->codes);
    return (struct code_row){.e = e, .row = row, .end = end};
}

static void store_chunk(void *user, ptx_u32 index, const ptx_u32 codes[2])
{
    struct code_row *to = user;
    ptx_kernel *k = to->e->q.k;
    ptx_u64 at = ptx_mad_wide_u32(k, index, U32(CHUNK), to->row);
    ptx_guarded(k, ptx_setp_lt_u32(k, index, to->end))
        ptx_st_global_v2_u32(k, at, 0, codes);
}

static void store_codes(struct quantise_kernel *e, const struct token *t, const struct share *share,
                        const struct batch *batch, uint32_t rounds)
{
    struct code_row to = find_code_row(e, share->end);
    w8a8_encode_batch(&e->q, t, batch, rounds, store_chunk, &to);
}

static struct token find_cta_token(struct quantise_kernel *e, ptx_u32 slots, struct range *range)
{
    ptx_kernel *k = e->q.k;
    w8a8_share_range(&e->q, range);
    ptx_u32 slot = ptx_mad_lo_u32(k, e->warp, U32(w8a8_range_bytes(e->q.spec)), slots);
    ptx_if(k, ptx_setp_eq_u32(k, e->lane, U32(0)))
        w8a8_store_range(&e->q, slot, range);
    ptx_bar_sync(k, 0);
    *range = w8a8_load_ranges(&e->q, slots, e->lane, e->threads / 32);
    return w8a8_find_token(&e->q, range, e->token);
}

/*
 * Chunks that a thread has in registers at once. Where the loops over chunks are not unrolled
 * (quantise.c), and for long rows with zero points, it is one chunk, since more would spill.
 */
static uint32_t batch_rounds(const struct quantise_kernel *e, uint32_t rounds)
{
    return w8a8_is_long_asymmetric(e->q.spec) || e->q.wide ? 1 : w8a8_batch_rounds(&e->q, rounds);
}

static uint32_t count_chunks(const struct quantise_kernel *e)
{
    return (uint32_t)(w8a8_code_stride(e->q.spec) / CHUNK);
}

static struct share share_row(struct quantise_kernel *e)
{
    uint32_t chunks = count_chunks(e);
    return (struct share){.row = w8a8_row_of_token(&e->q, e->token),
                          .first = e->tid,
                          .end = U32(chunks),
                          .step = e->threads,
                          .rounds = (chunks + e->threads - 1) / e->threads};
}

static void store_group(void *user, const struct token *t, ptx_u32 group, ptx_pred is_first)
{
    const struct code_row *to = user;
    const struct quantise_kernel *e = to->e;
    ptx_kernel *k = e->q.k;
    struct work scale = w8a8_written_scale(&e->q, t);
    ptx_u32 groups = ptx_mov_u32(k, U32(w8a8_groups(e->q.spec)));
    ptx_if(k, is_first) {
        ptx_u64 place = ptx_mad_wide_u32(k, e->token, groups, ptx_cvt_u64_u32(k, group));
        ptx_u64 at = ptx_mad_lo_u64(k, place, U64(4), e->scales);
        ptx_st_global_f32(k, at, 0, scale.f);
    }
}

/* A row whose groups have scales of their own: one pass, in which all lanes of a warp stay. */
static void quantise_groups(struct quantise_kernel *e)
{
    ptx_kernel *k = e->q.k;
    const struct share share = share_row(e);
    uint32_t rounds = w8a8_batch_rounds(&e->q, share.rounds), chunks = count_chunks(e);
    struct code_row to = find_code_row(e, share.end);
    ptx_u32 base = ptx_mov_u32(k, U32(0));
    ptx_for(k, base, U32(chunks), U32(rounds * e->threads)) {
        ptx_nounroll(k);
        struct batch batch;
        ptx_u32 first = ptx_add_u32(k, base, e->tid);
        w8a8_load_batch(&e->q, &share, first, rounds, &batch);
        w8a8_quantise_groups(&e->q, &batch, rounds, chunks, store_group, store_chunk, &to);
    }
}

static void quantise_row(struct quantise_kernel *e, ptx_u32 slots)
{
    ptx_kernel *k = e->q.k;
    uint32_t chunks = count_chunks(e);
    struct share share = share_row(e);
    uint32_t rounds = batch_rounds(e, share.rounds), stride = rounds * e->threads;
    struct range range = w8a8_new_range(&e->q);
    struct batch batch;
    if (rounds == share.rounds) {
        w8a8_load_batch(&e->q, &share, share.first, rounds, &batch);
        w8a8_widen_range(&e->q, &batch, rounds, &range);
    } else {
        ptx_u32 first = ptx_mov_u32(k, e->tid);
        ptx_for(k, first, U32(chunks), U32(stride)) {
            ptx_nounroll(k);
            w8a8_load_batch(&e->q, &share, first, rounds, &batch);
            w8a8_widen_range(&e->q, &batch, rounds, &range);
        }
    }
    struct token token = find_cta_token(e, slots, &range);
    store_token(e, &token);
    if (rounds == share.rounds) {
        store_codes(e, &token, &share, &batch, rounds);
        return;
    }
    ptx_u32 first = ptx_mov_u32(k, e->tid);
    ptx_for(k, first, U32(chunks), U32(stride)) {
        ptx_nounroll(k);
        w8a8_load_batch(&e->q, &share, first, rounds, &batch);
        store_codes(e, &token, &share, &batch, rounds);
    }
}

static void quantise_token(struct quantise_kernel *e, bool dependent, ptx_u32 slots)
{
    if (dependent)
        ptx_griddepcontrol_wait(e->q.k);
    zero_flags(e);
    if (w8a8_has_groups(e->q.spec))
        quantise_groups(e);
    else
        quantise_row(e, slots);
}

static void load_params(struct quantise_kernel *e, ptx_kernel *k, const ptxgen_w8a8_spec *spec)
{
    bool given = spec->scales != PTXGEN_W8A8_DYNAMIC;
    ptx_u64 x = gemm_param_u64(k, "x", true), x_scale = gemm_param_u64(k, "x_scale", given);
    ptx_u64 x_zero = gemm_param_u64(k, "x_zero", given && spec->asymmetric);
    e->codes = gemm_param_u64(k, "codes", true);
    e->scales = gemm_param_u64(k, "scales", true);
    e->zeros = gemm_param_u64(k, "zeros", spec->asymmetric);
    e->flags = gemm_param_u64(k, "flags", true);
    e->w = ptx_param_u64(k, "w");
    ptx_u32 x_stride = ptx_param_u32(k, "x_stride");
    e->flag_count = ptx_param_u32(k, "flag_count");
    e->m = ptx_param_u32(k, "m");
    e->lines = ptx_param_u32(k, "lines");
    e->part_bits = ptx_param_u32(k, "part_bits");
    e->part_bytes = ptx_param_u32(k, "part_bytes");
    e->line_bits = ptx_param_u32(k, "line_bits");
    e->blocks = ptx_param_u32(k, "blocks");
    e->stages = ptx_param_u32(k, "stages");
    e->stage_bytes = ptx_param_u32(k, "stage_bytes");
    e->q = w8a8_start_quantiser(k, spec, x, x_stride, x_scale, x_zero);
}

void w8a8_emit_quantise(const ptxgen_w8a8_plan *plan, bool prefetches, ptx_module *module)
{
    const ptxgen_w8a8_spec *spec = &plan->spec;
    struct quantise_kernel e = {.multiprocessors = plan->target.multiprocessors,
                                .threads = w8a8_quantise_threads(spec)};
    ptx_kernel *k = ptx_kernel_begin(module, "w8a8_quantise");
    ptx_kernel_reqntid(k, e.threads, 1, 1);
    load_params(&e, k, spec);
    e.tid = ptx_sreg_tid_x(k);
    e.lane = ptx_and_b32(k, e.tid, U32(31));
    e.warp = ptx_shr_u32(k, e.tid, U32(5));
    e.token = ptx_sreg_ctaid_x(k);
    ptx_u32 slots = ptx_shared_address(
        k, ptx_shared_declare(k, "ranges of the warps", 32 * w8a8_range_bytes(spec), 8));
    bool dependent = gemm_overlaps(&plan->target);
    if (dependent)
        ptx_griddepcontrol_launch_dependents(k);
    if (dependent && prefetches) {
        ptx_if_else(k, ptx_setp_ge_u32(k, e.token, e.m))
            prefetch_weights(&e);
        else
            quantise_token(&e, dependent, slots);
    } else
        quantise_token(&e, dependent, slots);
    ptx_kernel_end(k);
}
