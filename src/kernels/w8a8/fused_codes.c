/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The codes of a fused CTA, which quantises all tokens for itself into rows that stay in shared
 * memory. Eight warps divide a row into segments: each warp finds the range of its segment of every
 * token, the warps exchange ranges, and each warp encodes its segment.
 *
 * x is loaded after the first 64 KB or so of weights, and before the other weights of the ring:
 * behind a whole ring of weights it would arrive late.
 */
#include "emit.h"

static void find_lane(struct product *q)
{
    ptx_kernel *k = q->g.k;
    uint32_t all = w8a8_steps(q->spec, q->v) * w8a8_depth(q->v);
    /* Rows past the last token are never written; the lane reads the last token's instead. */
    ptx_u32 row = ptx_and_b32(k, q->g.at.lane, U32(7));
    ptx_u32 last = ptx_sub_u32(k, q->g.m, U32(1));
    ptx_u32 token = ptx_min_u32(k, row, last), chunk = ptx_shr_u32(k, q->g.at.lane, U32(3));
    ptx_u32 lane = ptx_mad_lo_u32(k, token, U32(w8a8_resident_stride(q->spec, q->v)), q->resident);
    lane = ptx_mad_lo_u32(k, chunk, U32(GEMM_CHUNK_BYTES), lane);
    q->resident_lane = ptx_mad_lo_u32(k, q->along_k, U32(W8A8_BLOCK), lane);
    q->resident_end = ptx_add_u32(k, q->resident_lane, U32(all));
}

struct tokens {
    struct quantiser q;
    struct share share;
    uint32_t rounds; /* of a thread's share in a batch */
};

/* Where the ranges of the token's segments are, one for each warp. */
static ptx_u32 ranges_of(struct product *p, ptx_u32 token)
{
    return ptx_mad_lo_u32(p->g.k, token, U32(W8A8_WARPS * w8a8_range_bytes(p->spec)), p->ranges);
}

static void find_segment(struct product *p, struct tokens *t)
{
    ptx_kernel *k = p->g.k;
    uint32_t chunks = w8a8_steps(p->spec, p->v) * w8a8_depth(p->v) / CHUNK;
    uint32_t each = (chunks + W8A8_WARPS - 1) / W8A8_WARPS;
    ptx_u32 first = ptx_mul_lo_u32(k, p->g.at.warp, U32(each));
    ptx_u32 end = ptx_add_u32(k, first, U32(each));
    t->share = (struct share){.step = 32, .rounds = (each + 31) / 32};
    t->share.first = ptx_add_u32(k, first, p->g.at.lane);
    t->share.end = ptx_min_u32(k, end, U32(chunks));
    t->rounds = w8a8_batch_rounds(&t->q, t->share.rounds);
}

static void store_segment_range(struct product *p, struct tokens *t, ptx_u32 token,
                                struct range *range)
{
    ptx_kernel *k = p->g.k;
    w8a8_share_range(&t->q, range);
    ptx_u32 slot =
        ptx_mad_lo_u32(k, p->g.at.warp, U32(w8a8_range_bytes(p->spec)), ranges_of(p, token));
    ptx_if(k, ptx_setp_eq_u32(k, p->g.at.lane, U32(0)))
        w8a8_store_range(&t->q, slot, range);
}

static void find_range(struct product *p, struct tokens *t, ptx_u32 token)
{
    ptx_kernel *k = p->g.k;
    struct range range = w8a8_new_range(&t->q);
    struct batch batch;
    t->share.row = w8a8_row_of_token(&t->q, token);
    ptx_u32 first = ptx_mov_u32(k, t->share.first), round = ptx_mov_u32(k, U32(0));
    ptx_for(k, round, U32(t->share.rounds), U32(t->rounds)) {
        ptx_nounroll(k);
        w8a8_load_batch(&t->q, &t->share, first, t->rounds, &batch);
        w8a8_widen_range(&t->q, &batch, t->rounds, &range);
        ptx_add_u32_to(k, first, first, U32(32 * t->rounds));
    }
    store_segment_range(p, t, token, &range);
}

static void store_token(struct product *p, const struct tokens *t, ptx_u32 token,
                        const struct token *found)
{
    ptx_kernel *k = p->g.k;
    struct work scale = w8a8_written_scale(&t->q, found);
    ptx_if(k, ptx_setp_eq_u32(k, p->g.at.thread, U32(0))) {
        ptx_u32 at = ptx_mad_lo_u32(k, token, U32(w8a8_work_bytes(p->spec)), p->token_scales);
        if (p->wide)
            ptx_st_shared_f64(k, at, 0, scale.d);
        else
            ptx_st_shared_f32(k, at, 0, scale.f);
        if (p->spec->asymmetric)
            ptx_st_shared_s32(k, ptx_mad_lo_u32(k, token, U32(4), p->token_zeros), 0, found->zero);
    }
}

static struct token find_token(struct product *p, struct tokens *t, ptx_u32 token)
{
    struct range range = w8a8_load_ranges(&t->q, ranges_of(p, token), p->g.at.lane, W8A8_WARPS);
    struct token found = w8a8_find_token(&t->q, &range, token);
    store_token(p, t, token, &found);
    return found;
}

struct resident_row {
    ptx_kernel *k;
    ptx_u32 row, end;
};

static void store_chunk(void *user, ptx_u32 index, const ptx_u32 codes[2])
{
    struct resident_row *to = user;
    ptx_u32 at = ptx_mad_lo_u32(to->k, index, U32(CHUNK), to->row);
    ptx_guarded(to->k, ptx_setp_lt_u32(to->k, index, to->end))
        ptx_st_shared_v2_u32(to->k, at, 0, codes);
}

static void encode_batch(struct product *p, struct tokens *t, const struct token *found,
                         const struct batch *batch, ptx_u32 to)
{
    struct resident_row row = {.k = p->g.k, .row = to, .end = t->share.end};
    w8a8_encode_batch(&t->q, found, batch, t->rounds, store_chunk, &row);
}

static void encode_segment(struct product *p, struct tokens *t, ptx_u32 token)
{
    ptx_kernel *k = p->g.k;
    struct token found = find_token(p, t, token);
    struct batch batch;
    t->share.row = w8a8_row_of_token(&t->q, token);
    ptx_u32 to = ptx_mad_lo_u32(k, token, U32(w8a8_resident_stride(p->spec, p->v)), p->resident);
    ptx_u32 first = ptx_mov_u32(k, t->share.first), round = ptx_mov_u32(k, U32(0));
    ptx_for(k, round, U32(t->share.rounds), U32(t->rounds)) {
        ptx_nounroll(k);
        w8a8_load_batch(&t->q, &t->share, first, t->rounds, &batch);
        encode_batch(p, t, &found, &batch, to);
        ptx_add_u32_to(k, first, first, U32(32 * t->rounds));
    }
}

/* Issues the copies of the other first stages, after the loads of x. */
static void issue_more(struct product *p)
{
    if (p->g.pipeline.early)
        gemm_pipeline_fill(p->g.k, &p->g.pipeline);
}

/* The only token, where a batch holds a whole segment: x stays in registers. */
static void quantise_one(struct product *p, struct tokens *t)
{
    struct range range = w8a8_new_range(&t->q);
    struct batch batch;
    t->share.row = w8a8_row_of_token(&t->q, U32(0));
    w8a8_load_batch(&t->q, &t->share, t->share.first, t->rounds, &batch);
    issue_more(p);
    w8a8_widen_range(&t->q, &batch, t->rounds, &range);
    store_segment_range(p, t, U32(0), &range);
    ptx_bar_sync(p->g.k, 0);
    struct token found = find_token(p, t, U32(0));
    encode_batch(p, t, &found, &batch, p->resident);
    ptx_bar_sync(p->g.k, 0);
}

void w8a8_emit_resident(struct product *p)
{
    ptx_kernel *k = p->g.k;
    struct tokens t;
    ptx_section(k, "codes of all tokens");
    find_lane(p);
    t.q = w8a8_start_quantiser(k, p->spec, p->address[W8A8_X], p->x_stride,
                               p->address[W8A8_X_SCALE], p->address[W8A8_X_ZERO]);
    find_segment(p, &t);
    if (p->v->tile_m == 1 && t.rounds == t.share.rounds) {
        quantise_one(p, &t);
        return;
    }
    ptx_u32 token = ptx_mov_u32(k, U32(0));
    ptx_for(k, token, p->g.m, U32(1)) {
        ptx_nounroll(k);
        find_range(p, &t, token);
    }
    issue_more(p);
    ptx_bar_sync(k, 0);
    token = ptx_mov_u32(k, U32(0));
    ptx_for(k, token, p->g.m, U32(1)) {
        ptx_nounroll(k);
        encode_segment(p, &t, token);
    }
    ptx_bar_sync(k, 0);
}
