/* SPDX-License-Identifier: Apache-2.0 */
#include "epilogue.h"

/* Bytes of an element of y, as a power of two. */
static uint32_t log_element(const struct gemm_epilogue *o)
{
    return o->type == PTXGEN_F64 ? 3 : o->type == PTXGEN_F32 ? 2 : 1;
}

static uint32_t element(const struct gemm_epilogue *o)
{
    return 1u << log_element(o);
}

static ptx_u64 in_bytes(const struct gemm_epilogue *o, ptx_u64 elements)
{
    return ptx_shl_b64(o->g->k, elements, U32(log_element(o)));
}

/* The threads that end a part together. */
static uint32_t threads(const struct gemm_epilogue *o)
{
    return o->at->team ? o->at->team : o->partials.threads;
}

/* Columns of y in a tile. */
static uint32_t columns(const struct gemm_epilogue *o)
{
    return o->pairs ? o->sums.tile_n / 2 : o->sums.tile_n;
}

/* Rows of a pass, or of a warp's share of it. */
static uint32_t pass_rows(const struct gemm_epilogue *o)
{
    return o->rounds ? o->halves.pass_m : gemm_sums_warp_pass(&o->sums);
}

/* Whether each warp stages rows of its own alone. */
static bool has_own_rows(const struct gemm_epilogue *o)
{
    return o->sums.alone && gemm_sums_warp_rows(&o->sums) < o->sums.tile_m;
}

/* Rows of all passes, or of a warp's share of these. */
static uint32_t all_rows(const struct gemm_epilogue *o)
{
    const struct gemm_sums *s = &o->sums;
    return has_own_rows(o) || s->wm ? gemm_sums_warp_rows(s) : s->tile_m;
}

/* The threads that finish staged rows together, in each of `ctas`. */
static uint32_t finishers(const struct gemm_epilogue *o)
{
    return o->sums.alone ? 32 : threads(o);
}

static uint32_t ctas(const struct gemm_epilogue *o)
{
    return o->sums.ctas > 1 ? o->sums.ctas : 1;
}

/* Chunks of a staged row. */
static uint32_t chunks(const struct gemm_epilogue *o)
{
    return (o->sums.alone ? o->sums.warp_n : columns(o)) / o->chunk.width;
}

/* A new register with the chunk of a pass that the thread finishes first. */
static ptx_u32 first_chunk(const struct gemm_epilogue *o)
{
    ptx_u32 chunk = ptx_mov_u32(o->g->k, o->sums.alone ? o->at->lane : o->at->thread);
    if (ctas(o) > 1)
        ptx_mad_lo_u32_to(o->g->k, chunk, o->sums.rank, U32(finishers(o)), chunk);
    return chunk;
}

/* ---- what holds for all tiles ---- */

/* The bits of the addresses of all arrays, and of the bytes between their rows. */
static ptx_u64 places_of_arrays(const struct gemm_epilogue *o)
{
    ptx_kernel *k = o->g->k;
    ptx_u64 all = ptx_or_b64(k, o->y, in_bytes(o, o->y_stride));
    if (o->has_bias)
        all = ptx_or_b64(k, all, o->bias);
    if (o->has_bias && o->pairs)
        all = ptx_or_b64(k, all, o->up_bias);
    if (o->has_residual) {
        all = ptx_or_b64(k, all, o->residual);
        all = ptx_or_b64(k, all, in_bytes(o, o->residual_stride));
    }
    return all;
}

/* Whether all arrays, and all of their rows, are aligned for the vector accesses of a chunk. */
static ptx_pred find_aligned(const struct gemm_epilogue *o)
{
    ptx_kernel *k = o->g->k;
    uint32_t most = o->has_scale_places && element(o) < 4 ? 4 : element(o);
    uint32_t bytes = o->chunk.width * most < 16 ? o->chunk.width * most : 16;
    ptx_u64 all = places_of_arrays(o);
    if (o->has_scale_places)
        all = ptx_or_b64(k, all, o->scale_places);
    ptx_u64 low = ptx_and_b64(k, all, U64(bytes - 1));
    return ptx_setp_eq_u64(k, low, U64(0));
}

/*
 * Whether sums are rounded in their registers and staged by stmatrix: where they are complete
 * there, and nothing but a bias is to be added. Rows of 8 columns at least are stored.
 */
static bool may_round(const struct gemm_epilogue *o)
{
    const struct gemm_sums *s = &o->sums;
    bool stages = (s->interleaved || (s->alone && o->has_stmatrix)) && s->tile_m >= 16;
    bool complete = s->wk == 1 && s->ctas <= 1 && !o->scale && !o->pairs;
    bool plain = !o->activation && !o->has_residual && (!o->has_bias || o->rounds_biased);
    return stages && complete && plain && o->type != PTXGEN_F32 && o->n % GEMM_HALVES_WIDTH == 0;
}

/* Staging that has room for a row of f32 sums has room for two rows of 16-bit results. */
static void begin_halves(struct gemm_epilogue *o)
{
    const struct gemm_sums *s = &o->sums;
    uint32_t rows = gemm_sums_warp_rows(s) % (2 * s->pass_m) ? s->pass_m : 2 * s->pass_m;
    struct gemm_threads at = *o->at;
    at.warp = o->along;
    ptx_u32 staging = s->staging;
    if (s->alone)
        staging = ptx_mad_lo_u32(o->g->k, o->at->warp, U32(rows * s->warp_n * 2), staging);
    o->halves = (struct gemm_halves){.columns = s->alone ? s->warp_n : s->tile_n,
                                     .tiles = s->warp_n / 16,
                                     .pass_m = rows,
                                     .bf16 = o->type == PTXGEN_BF16,
                                     .alone = s->alone,
                                     .staging = staging};
    gemm_halves_begin(o->g->k, &at, &o->halves);
}

/*
 * The partial sums of CTAs in the workspace, and their flags. With clusters, those of the first
 * CTAs of all clusters come first.
 */
static void begin_partials(struct gemm_epilogue *o)
{
    struct gemm *g = o->g;
    struct gemm_partials *p = &o->partials;
    p->integer = o->sums.integer;
    if (g->cluster > 1) {
        ptx_u32 units = gemm_divide(g->k, ptx_sreg_nctaid_x(g->k), g->cluster);
        ptx_u32 before = ptx_mul_lo_u32(g->k, g->rank, units);
        uint64_t bytes = gemm_partials_bytes(p->threads, p->fragments);
        ptx_u64 wide = ptx_cvt_u64_u32(g->k, before);
        o->flags = ptx_mad_wide_u32(g->k, before, U32(4), o->flags);
        o->first_partials = ptx_mad_lo_u64(g->k, wide, U64(bytes), o->first_partials);
    }
    gemm_partials_begin(g->k, &g->at, o->first_partials, p);
}

void gemm_epilogue_begin(struct gemm_epilogue *o)
{
    struct gemm_sums *s = &o->sums;
    o->g->output = o;
    if (o->partials.fragments)
        begin_partials(o);
    s->rank = o->g->rank;
    o->rounds = may_round(o);
    if (o->rounds)
        begin_halves(o);
    if (!o->rounds || s->alone)
        gemm_sums_begin(o->g->k, o->at, o->along, o->along_k, s);
    uint32_t width = gemm_chunk_width(s->pass_m * (s->alone ? s->warp_n : s->tile_n), finishers(o));
    s->width = o->most_width && o->most_width < width ? o->most_width : width;
    o->chunk = (struct gemm_chunk){.width = o->rounds ? GEMM_HALVES_WIDTH : s->width,
                                   .bf16 = o->type == PTXGEN_BF16,
                                   .f32 = o->type == PTXGEN_F32};
    o->chunk.ragged = o->has_any_tiles || o->n % o->chunk.width != 0;
    o->chunk.aligned = find_aligned(o);
    o->single = all_rows(o) == pass_rows(o) && s->pass_m * chunks(o) <= finishers(o) * ctas(o);
    if (o->load_ahead) {
        ptx_u32 in_row = ptx_and_b32(o->g->k, o->at->thread, U32(chunks(o) - 1));
        o->own_column = ptx_mul_lo_u32(o->g->k, in_row, U32(o->chunk.width));
    }
}

/* ---- one chunk ---- */

/* Finds how much of a chunk is in its row, and whether it may be accessed by vectors. */
static void find_end(const struct gemm_epilogue *o, struct gemm_epilogue_place *at)
{
    ptx_kernel *k = o->g->k;
    struct gemm_chunk *c = &at->chunk;
    c->left = ptx_sub_u32(k, o->end_column, at->column);
    if (o->load_ahead)
        c->left = ptx_s32_as_u32(ptx_max_s32(k, ptx_u32_as_s32(c->left), S32(0)));
    c->aligned = ptx_setp_bool_ge_u32(k, c->left, U32(c->width), o->chunk.aligned);
    if (o->has_any_tiles) {
        ptx_u32 low = ptx_and_b32(k, at->column, U32(c->width - 1));
        c->aligned = ptx_setp_bool_eq_u32(k, low, U32(0), c->aligned);
    }
}

/* Completes the place of a chunk whose column is known, and whose row is counted in the pass. */
static void find_place(const struct gemm_epilogue *o, struct gemm_epilogue_place *at)
{
    ptx_kernel *k = o->g->k;
    ptx_u32 in_pass = ptx_add_u32(k, o->first_row, at->row);
    at->row = ptx_add_u32(k, in_pass, o->pass_row);
    at->wide_row = ptx_cvt_u64_u32(k, at->row);
    at->column_bytes = ptx_mul_wide_u32(k, at->column, U32(element(o)));
    if (at->chunk.ragged && !o->load_ahead)
        find_end(o, at);
}

static ptx_u64 find(const struct gemm_epilogue *o, ptx_u64 base, ptx_u64 stride,
                    const struct gemm_epilogue_place *at)
{
    ptx_kernel *k = o->g->k;
    ptx_u64 line = ptx_mad_lo_u64(k, at->wide_row, in_bytes(o, stride), base);
    return ptx_add_u64(k, line, at->column_bytes);
}

static void add_bias(const struct gemm_epilogue *o, const struct gemm_epilogue_place *at,
                     ptx_u64 bias, ptx_f32 v[GEMM_SUMS_WIDTH])
{
    ptx_kernel *k = o->g->k;
    if (o->has_bias)
        gemm_chunk_add(k, &at->chunk, ptx_add_u64(k, bias, at->column_bytes), v);
}

/* Finishes the sums `v` of a chunk and stores them; `up` are those of SwiGLU's second matrix. */
static void store_sums(const struct gemm_epilogue *o, const struct gemm_epilogue_place *at,
                       ptx_f32 v[GEMM_SUMS_WIDTH], ptx_f32 up[GEMM_SUMS_WIDTH])
{
    ptx_kernel *k = o->g->k;
    const ptxgen_activation gate = o->gate ? o->gate : PTXGEN_ACTIVATION_SILU;
    const ptxgen_activation activation = o->pairs ? gate : o->activation;
    add_bias(o, at, o->bias, v);
    if (o->pairs)
        add_bias(o, at, o->up_bias, up);
    for (uint32_t i = 0; i < o->sums.width && i < GEMM_SUMS_WIDTH; i++) {
        v[i] = gemm_activate(k, activation, v[i]);
        if (o->pairs)
            v[i] = ptx_mul_f32(k, v[i], up[i]);
    }
    if (o->has_residual)
        gemm_chunk_add(k, &at->chunk, find(o, o->residual, o->residual_stride, at), v);
    gemm_chunk_store(k, &at->chunk, find(o, o->y, o->y_stride, at), v);
}

/* Loads the sums of a chunk and, with SwiGLU, those of the same columns of the second matrix. */
static void load_sums(const struct gemm_epilogue *o, ptx_u32 row, ptx_u32 in_tile,
                      ptx_u32 sums[GEMM_SUMS_WIDTH], ptx_u32 up[GEMM_SUMS_WIDTH])
{
    ptx_kernel *k = o->g->k;
    if (!o->pairs) {
        gemm_sums_load(k, &o->sums, row, in_tile, sums);
        return;
    }
    ptx_u32 before = ptx_and_b32(k, in_tile, U32(~(o->pairs - 1)));
    ptx_u32 gate = ptx_add_u32(k, in_tile, before);
    gemm_sums_load(k, &o->sums, row, gate, sums);
    gemm_sums_load(k, &o->sums, row, ptx_add_u32(k, gate, U32(o->pairs)), up);
}

static void scale_sums(const struct gemm_epilogue *o, const struct gemm_epilogue_place *at,
                       const ptx_u32 sums[GEMM_SUMS_WIDTH], ptx_f32 v[GEMM_SUMS_WIDTH])
{
    for (uint32_t i = 0; i < o->sums.width && i < GEMM_SUMS_WIDTH && !o->scale; i++)
        v[i] = ptx_u32_as_f32(sums[i]);
    if (o->scale)
        o->scale(o->user, at, sums, v);
}

static void finish_sums(const struct gemm_epilogue *o, struct gemm_epilogue_place *at, ptx_u32 row,
                        ptx_u32 in_tile)
{
    ptx_u32 sums[GEMM_SUMS_WIDTH], up_sums[GEMM_SUMS_WIDTH];
    ptx_f32 v[GEMM_SUMS_WIDTH], up[GEMM_SUMS_WIDTH];
    load_sums(o, row, in_tile, sums, up_sums);
    find_place(o, at);
    if (o->finish) {
        o->finish(o->user, at, sums);
        return;
    }
    scale_sums(o, at, sums, v);
    at->up = true;
    if (o->pairs)
        scale_sums(o, at, up_sums, up);
    store_sums(o, at, v, up);
}

/* Stores a chunk of results that gemm_halves_stage has rounded. */
static void store_halves(const struct gemm_epilogue *o, struct gemm_epilogue_place *at, ptx_u32 row,
                         ptx_u32 in_tile)
{
    ptx_kernel *k = o->g->k;
    ptx_u32 words[GEMM_HALVES_WIDTH / 2];
    ptx_u32 own = o->sums.alone ? ptx_sub_u32(k, in_tile, o->sums.warp_column) : in_tile;
    gemm_halves_load(k, &o->halves, row, own, words);
    find_place(o, at);
    gemm_chunk_store_words(k, &o->chunk, find(o, o->y, o->y_stride, at), words);
}

/* The row of the tile, counted from the pass, of row `row` of the pass that warps stage. */
static ptx_u32 spread_row(const struct gemm_epilogue *o, ptx_u32 row)
{
    ptx_kernel *k = o->g->k;
    const struct gemm_sums *s = &o->sums;
    uint32_t share = gemm_sums_warp_pass(s);
    if (s->wm <= 1)
        return row;
    ptx_u32 along = gemm_divide(k, row, share), in_share = gemm_remainder(k, row, share);
    return ptx_mad_lo_u32(k, along, U32(gemm_sums_warp_rows(s)), in_share);
}

/* Finishes the chunk at row `row` of the pass and column `in_tile` of the tile. */
static void finish_chunk(const struct gemm_epilogue *o, ptx_u32 row, ptx_u32 in_tile)
{
    ptx_kernel *k = o->g->k;
    struct gemm_epilogue_place at = o->own;
    if (!o->load_ahead) {
        at.chunk = o->chunk;
        at.column = ptx_add_u32(k, o->first_column, in_tile);
    }
    at.row = spread_row(o, row);
    ptx_pred exists = ptx_setp_lt_u32(k, at.column, o->end_column);
    if (o->sums.wm > 1) {
        ptx_u32 in_tile_row = ptx_add_u32(k, at.row, o->pass_row);
        exists = ptx_setp_bool_lt_u32(k, in_tile_row, o->rows, exists);
    }
    ptx_if(k, exists) {
        if (o->rounds)
            store_halves(o, &at, row, in_tile);
        else
            finish_sums(o, &at, row, in_tile);
    }
}

/* ---- one pass over some of a tile's rows ---- */

static void stage(const struct gemm_epilogue *o, uint32_t pass)
{
    if (o->rounds)
        gemm_halves_stage(o->g->k, &o->halves, pass, o->acc, o->user);
    else
        gemm_sums_stage(o->g->k, &o->sums, pass, o->acc, o->user);
}

/* The registers of a pass are fixed in the text, so each pass has a branch of its own. */
static void stage_pass(const struct gemm_epilogue *o)
{
    ptx_kernel *k = o->g->k;
    const struct gemm_sums *s = &o->sums;
    uint32_t each = pass_rows(o), rows = gemm_sums_warp_rows(s);
    bool from_first = s->wm || rows == s->tile_m; /* the warp has a share of every pass */
    if (rows == each && (from_first || s->alone)) {
        stage(o, 0);
        return;
    }
    ptx_u32 row = from_first ? o->pass_row : ptx_sub_u32(k, o->pass_row, s->warp_row);
    for (uint32_t i = 0; i < rows / each; i++)
        ptx_if(k, ptx_setp_eq_u32(k, row, U32(i * each)))
            stage(o, i);
}

/* The chunks of a pass that may exist; where warps spread a pass over the tile, all of them. */
static ptx_u32 count_chunks(const struct gemm_epilogue *o)
{
    ptx_kernel *k = o->g->k;
    if (o->sums.wm > 1)
        return U32(o->sums.pass_m * chunks(o));
    ptx_u32 pass_end = ptx_add_u32(k, o->pass_row, U32(pass_rows(o)));
    ptx_u32 end = ptx_min_u32(k, o->rows, pass_end), begin = ptx_min_u32(k, o->rows, o->pass_row);
    ptx_u32 rows = ptx_sub_u32(k, end, begin);
    return ptx_mul_lo_u32(k, rows, U32(chunks(o)));
}

/* The threads that end a part, or of a warp that is alone, finish the staged rows that exist. */
static void finish_pass(const struct gemm_epilogue *o)
{
    ptx_kernel *k = o->g->k;
    const struct gemm_sums *s = &o->sums;
    ptx_u32 limit = count_chunks(o), chunk = first_chunk(o);
    ptx_for(k, chunk, limit, U32(finishers(o) * ctas(o))) {
        ptx_nounroll(k);
        ptx_u32 row = gemm_divide(k, chunk, chunks(o)), column = o->own_column;
        if (!o->load_ahead) {
            ptx_u32 in_row = gemm_remainder(k, chunk, chunks(o));
            column = ptx_mul_lo_u32(k, in_row, U32(o->chunk.width));
        }
        finish_chunk(o, row, s->alone ? ptx_add_u32(k, column, s->warp_column) : column);
    }
}

/* ---- one tile ---- */

/* A barrier of the threads that stage together: a cluster, a warp that is alone, or a team. */
static void synchronise(const struct gemm_epilogue *o)
{
    ptx_kernel *k = o->g->k;
    if (o->sums.ctas > 1) {
        ptx_barrier_cluster_arrive(k);
        ptx_barrier_cluster_wait(k);
    } else if (o->sums.alone)
        ptx_bar_warp_sync(k, ALL_LANES);
    else
        gemm_sync(k, o->at);
}

/* Adds the bias to the accumulators of the thread's column r of tile t. */
static void add_bias_to(const struct gemm_epilogue *o, uint32_t t, uint32_t r)
{
    ptx_kernel *k = o->g->k;
    const struct gemm_sums *s = &o->sums;
    ptx_u32 in_warp = ptx_mad_lo_u32(k, o->along, U32(16), o->at->group);
    ptx_u32 in_tile = ptx_add_u32(k, in_warp, U32(t * 64 + r * 8));
    ptx_u32 column = ptx_add_u32(k, o->first_column, in_tile);
    ptx_u16 half = ptx_mov_u16(k, ptx_imm_u16(0));
    ptx_u64 from = ptx_mad_wide_u32(k, column, U32(2), o->bias);
    ptx_guarded(k, ptx_setp_lt_u32(k, column, U32(o->n)))
        ptx_ld_global_u16_to(k, half, from, 0);
    ptx_f32 bias = o->chunk.bf16 ? ptx_cvt_f32_bf16(k, ptx_u16_as_bf16(half))
                                 : ptx_cvt_f32_f16(k, ptx_u16_as_f16(half));
    for (uint32_t j = 0; j < gemm_sums_warp_rows(s) / 8; j++)
        for (uint32_t i = 0; i < 2; i++) {
            ptx_f32 sum = ptx_u32_as_f32(o->acc(o->user, t, j, 2 * r + i));
            ptx_add_f32_to(k, sum, sum, bias);
        }
}

/*
 * Makes the accumulators complete that other CTAs have sent sums for: the tile's place is computed
 * while these are in flight.
 */
static void complete(const struct gemm_epilogue *o)
{
    if (o->exchange) {
        gemm_exchange_receive(o->g->k, o->exchange, o->acc, o->user);
        if (o->scale_accumulators)
            o->scale_accumulators(o->user);
    }
    for (uint32_t t = 0; t < o->sums.warp_n / 16 && o->rounds && o->has_bias; t++)
        for (uint32_t r = 0; r < 2; r++)
            add_bias_to(o, t, r);
}

/* Finds the thread's first chunk of the tile, and has the family load what it needs there. */
static void load_ahead(struct gemm_epilogue *o)
{
    ptx_kernel *k = o->g->k;
    ptx_u32 row = gemm_divide(k, first_chunk(o), chunks(o));
    o->own.chunk = o->chunk;
    o->own.column = ptx_add_u32(k, o->first_column, o->own_column);
    o->own.row = spread_row(o, row);
    o->pass_row = U32(0);
    find_end(o, &o->own);
    find_place(o, &o->own);
    o->load_ahead(o->user, &o->own);
}

void gemm_epilogue_locate(struct gemm_epilogue *o, ptx_u32 tile)
{
    o->end_row = o->g->m;
    o->end_column = U32(o->n);
    o->locate(o->user, tile, o);
    o->rows = ptx_sub_u32(o->g->k, o->end_row, o->first_row);
    if (o->load_ahead)
        load_ahead(o);
}

/* Stages and finishes the rows of a pass. */
static void run_pass(struct gemm_epilogue *o)
{
    stage_pass(o);
    synchronise(o);
    finish_pass(o);
}

/* Stages and finishes the rows of a tile, or of a warp that is alone, pass by pass. */
static void run_passes(struct gemm_epilogue *o)
{
    ptx_kernel *k = o->g->k;
    const struct gemm_sums *s = &o->sums;
    o->pass_row = has_own_rows(o) ? s->warp_row : U32(0);
    if (all_rows(o) == pass_rows(o)) {
        run_pass(o);
        return;
    }
    ptx_u32 rows = U32(all_rows(o)),
            end = has_own_rows(o) ? ptx_add_u32(k, s->warp_row, rows) : rows;
    o->pass_row = ptx_mov_u32(k, o->pass_row);
    ptx_loop(k, passes) {
        ptx_nounroll(k);
        run_pass(o);
        ptx_add_u32_to(k, o->pass_row, o->pass_row, U32(pass_rows(o)));
        ptx_loop_break_if(&passes, ptx_setp_ge_u32(k, o->pass_row, end), false);
        synchronise(o); /* all threads have read the rows that the next pass overwrites */
    }
}

/* Finishes a tile whose sums are complete in this CTA, or among those that exchange them. */
static void finish_tile(struct gemm_epilogue *o, ptx_u32 tile)
{
    if (!o->locates_early)
        gemm_epilogue_locate(o, tile);
    complete(o);
    if ((o->at->team || o->sums.ctas > 1) && !o->only)
        synchronise(o); /* all threads have read the staged rows of the tile before */
    run_passes(o);
}

/* ---- one part of a tile (stream-K) ---- */

static ptx_u32 fragment(const void *from, uint32_t i, uint32_t r)
{
    const struct gemm_epilogue *o = from;
    uint32_t row_groups = gemm_sums_warp_rows(&o->sums) / 8;
    return o->acc(o->user, i / row_groups, i % row_groups, r);
}

/* The fix-up: adds the partial sums of the CTAs with earlier parts of the tile. */
static void fix_up(struct gemm_epilogue *o, ptx_u32 tile)
{
    struct gemm *g = o->g;
    ptx_u32 start = ptx_mul_lo_u32(g->k, tile, U32(g->division.stages));
    ptx_u32 lowest = gemm_fixup_lowest_cta(g->k, &g->division, o->at, start);
    if (o->bulk_fixup) {
        gemm_bulk_fixup_add(g->k, o->bulk_fixup, &g->at, lowest, &g->read, g->releases, fragment,
                            o);
        return;
    }
    gemm_fixup_wait(g->k, o->at, o->flags, lowest, threads(o));
    gemm_partials_add(g->k, &o->partials, o->at, lowest, fragment, o);
}

void gemm_epilogue(struct gemm *g, struct gemm_part *part)
{
    ptx_kernel *k = g->k;
    struct gemm_epilogue *o = g->output;
    const struct gemm_walk *w = &part->walk;
    if (o->scale_accumulators && !o->exchange)
        o->scale_accumulators(o->user);
    if (o->sums.ctas > 1 || !o->partials.fragments) {
        finish_tile(o, w->tile);
        return;
    }
    ptx_if_else(k, ptx_setp_eq_u32(k, w->stage_end, U32(g->division.stages))) {
        ptx_if(k, ptx_setp_ne_u32(k, part->first, U32(0)))
            fix_up(o, w->tile);
        finish_tile(o, w->tile);
    } else {
        gemm_partials_store(k, &o->partials, fragment, o);
        if (o->bulk_fixup)
            gemm_bulk_fixup_arrive(k, o->bulk_fixup);
        else
            gemm_fixup_publish(k, o->at, o->flags);
    }
}

void gemm_epilogue_leave(struct gemm *g)
{
    if (!g->output || g->output->sums.ctas <= 1)
        return;
    ptx_barrier_cluster_arrive_relaxed(g->k);
    ptx_barrier_cluster_wait(g->k);
}
