/* SPDX-License-Identifier: Apache-2.0 */
#include "tile_end.h"

/* The threads that end a part together. */
static uint32_t threads(const struct gemm_tile_end *p)
{
    return p->at->team ? p->at->team : p->partials->threads;
}

static uint32_t rows_of_pass(const struct gemm_tile_end *p)
{
    return p->halves ? p->halves->pass_m : p->sums->pass_m;
}

static uint32_t width(const struct gemm_tile_end *p)
{
    return p->halves ? GEMM_HALVES_WIDTH : p->sums->width;
}

/* The threads that end a part, or of a warp that is alone, finish the staged rows that exist. */
static void finish_pass(ptx_kernel *k, const struct gemm_tile_end *p)
{
    const struct gemm_sums *s = p->sums;
    uint32_t chunks = (s->alone ? s->warp_n : p->columns) / width(p);
    ptx_u32 pass_end = ptx_add_u32(k, p->pass_row, U32(rows_of_pass(p)));
    ptx_u32 end = ptx_min_u32(k, p->rows, pass_end), begin = ptx_min_u32(k, p->rows, p->pass_row);
    ptx_u32 rows = ptx_sub_u32(k, end, begin);
    ptx_u32 limit = ptx_mul_lo_u32(k, rows, U32(chunks));
    uint32_t finishers = s->alone ? 32 : threads(p), ctas = s->ctas ? s->ctas : 1;
    ptx_u32 chunk = ptx_mov_u32(k, s->alone ? p->at->lane : p->at->thread);
    if (ctas > 1)
        ptx_mad_lo_u32_to(k, chunk, s->rank, U32(finishers), chunk);
    ptx_for(k, chunk, limit, U32(finishers * ctas)) {
        ptx_nounroll(k);
        ptx_u32 row = gemm_divide(k, chunk, chunks), in_row = gemm_remainder(k, chunk, chunks);
        ptx_u32 column = ptx_mul_lo_u32(k, in_row, U32(width(p)));
        p->finish(p->user, p, row, s->alone ? ptx_add_u32(k, column, s->warp_column) : column);
    }
}

static void stage(ptx_kernel *k, const struct gemm_tile_end *p, uint32_t pass)
{
    if (p->halves)
        gemm_halves_stage(k, p->halves, pass, p->acc, p->acc_from);
    else
        gemm_sums_stage(k, p->sums, pass, p->acc, p->acc_from);
}

/* The registers of a pass are fixed in the text, so each pass has a branch of its own. */
static void stage_pass(ptx_kernel *k, const struct gemm_tile_end *p)
{
    const struct gemm_sums *s = p->sums;
    uint32_t pass_m = rows_of_pass(p), rows = gemm_sums_warp_rows(s);
    if ((s->alone ? rows : s->tile_m) == pass_m) {
        stage(k, p, 0);
        return;
    }
    ptx_u32 row = rows == s->tile_m ? p->pass_row : ptx_sub_u32(k, p->pass_row, s->warp_row);
    for (uint32_t i = 0; i < rows / pass_m; i++)
        ptx_if(k, ptx_setp_eq_u32(k, row, U32(i * pass_m)))
            stage(k, p, i);
}

/* A barrier of the threads that stage together: a cluster, a warp that is alone, or a team. */
static void synchronise(ptx_kernel *k, const struct gemm_tile_end *p)
{
    if (p->sums->ctas) {
        ptx_barrier_cluster_arrive(k);
        ptx_barrier_cluster_wait(k);
    } else if (p->sums->alone)
        ptx_bar_warp_sync(k, ALL_LANES);
    else
        gemm_sync(k, p->at);
}

/* Stages and finishes the rows of a tile whose sums are complete, pass by pass. */
static void finish_tile(ptx_kernel *k, struct gemm_tile_end *p, ptx_u32 tile)
{
    const struct gemm_sums *s = p->sums;
    bool own_rows = s->alone && gemm_sums_warp_rows(s) < s->tile_m;
    ptx_u32 end = own_rows ? ptx_add_u32(k, s->warp_row, U32(s->warp_m)) : U32(s->tile_m);
    p->locate(p->user, p, tile);
    if ((p->at->team || s->ctas) && !p->only)
        synchronise(k, p); /* all threads have read the staged rows of the tile before */
    p->pass_row = ptx_mov_u32(k, own_rows ? s->warp_row : U32(0));
    ptx_loop(k, passes) {
        ptx_nounroll(k);
        stage_pass(k, p);
        synchronise(k, p);
        finish_pass(k, p);
        ptx_add_u32_to(k, p->pass_row, p->pass_row, U32(rows_of_pass(p)));
        ptx_loop_break_if(&passes, ptx_setp_ge_u32(k, p->pass_row, end), false);
        synchronise(k, p); /* all threads have read the rows that the next pass overwrites */
    }
}

static ptx_u32 fragment(const void *from, uint32_t i, uint32_t r)
{
    const struct gemm_tile_end *p = from;
    uint32_t row_groups = gemm_sums_warp_rows(p->sums) / 8;
    return p->acc(p->acc_from, i / row_groups, i % row_groups, r);
}

/* The fix-up: adds the partial sums of the CTAs with earlier parts of the tile. */
static void add_others(ptx_kernel *k, const struct gemm_tile_end *p, ptx_u32 tile)
{
    ptx_u32 start = ptx_mul_lo_u32(k, tile, U32(p->division->stages));
    ptx_u32 lowest = gemm_fixup_lowest_cta(k, p->division, p->at, start);
    if (p->handover) {
        gemm_bulk_fixup_add(k, p->handover, p->in_cta, lowest, p->place, p->releases, fragment, p);
        return;
    }
    gemm_fixup_wait(k, p->at, p->flags, lowest, threads(p));
    gemm_partials_add(k, p->partials, p->at, lowest, fragment, p);
}

void gemm_end_part(ptx_kernel *k, struct gemm_tile_end *p, const struct gemm_walk *w, ptx_u32 first)
{
    if (p->sums->ctas || !p->partials) {
        finish_tile(k, p, w->tile);
        return;
    }
    ptx_if_else(k, ptx_setp_eq_u32(k, w->stage_end, U32(p->division->stages))) {
        ptx_if(k, ptx_setp_ne_u32(k, first, U32(0)))
            add_others(k, p, w->tile);
        finish_tile(k, p, w->tile);
    } else {
        gemm_partials_store(k, p->partials, fragment, p);
        if (p->handover)
            gemm_bulk_fixup_arrive(k, p->handover);
        else
            gemm_fixup_publish(k, p->at, p->flags);
    }
}
