/* SPDX-License-Identifier: Apache-2.0 */
#include "exchange.h"

/* Row groups of a thread that remain after the exchange between teams. */
static uint32_t team_groups(const struct gemm_exchange *x)
{
    return x->row_groups / x->teams;
}

static uint32_t sent_bytes(const struct gemm_exchange *x)
{
    return x->threads * x->tiles * team_groups(x) / 2 * 16;
}

void gemm_exchange_begin(ptx_kernel *k, const struct gemm_threads *at, struct gemm_exchange *x)
{
    uint32_t bytes = gemm_exchange_bytes(x->threads, x->teams, x->tiles, x->row_groups);
    x->received = ptx_shared_address(k, ptx_shared_declare(k, "received", bytes, 16));
    x->of_teams = x->received;
    if (x->teams > 1)
        x->received = ptx_add_u32(k, x->received, U32(2 * sent_bytes(x)));
    ptx_if(k, ptx_setp_eq_u32(k, at->thread, U32(0))) {
        ptx_mbarrier_init(k, x->received, (int)sent_bytes(x), U32(1));
        ptx_fence_mbarrier_init_release_cluster(k);
    }
    ptx_barrier_cluster_arrive_relaxed(k);
}

/*
 * Thread 0 sets the expected bytes here, after the cluster barrier, and not next to
 * mbarrier.init: that is a uniform instruction in SASS, which compute-sanitizer's racecheck (CUDA
 * 13.0) attributes to another lane and reports as a race with expect_tx.
 */
void gemm_exchange_open(ptx_kernel *k, const struct gemm_threads *at, struct gemm_exchange *x)
{
    uint32_t bytes = sent_bytes(x);
    ptx_barrier_cluster_wait(k); /* the other CTA's mbarrier is set up */
    ptx_guarded(k, ptx_setp_eq_u32(k, at->thread, U32(0)))
        ptx_mbarrier_arrive_expect_tx(k, x->received, (int)bytes, U32(bytes));
    if (x->teams > 1) {
        ptx_u32 there = ptx_xor_b32(k, at->thread, U32(x->threads / 2));
        x->own_team = ptx_mad_lo_u32(k, at->thread, U32(16), x->of_teams);
        x->other_team = ptx_mad_lo_u32(k, there, U32(16), x->of_teams);
    }
    x->here = ptx_mad_lo_u32(k, at->thread, U32(16), x->received);
    ptx_u32 other = ptx_xor_b32(k, x->rank, U32(1));
    x->of_other = ptx_mapa_shared_cluster_u32(k, x->received, other);
    x->there = ptx_mapa_shared_cluster_u32(k, x->here, other);
    x->second = ptx_setp_eq_u32(k, other, U32(0));
    x->all.parity = U32(0);
    x->all.barrier = ptx_add_u32(k, x->received, U32(bytes));
}

/* Fragment i of the lower half of the rows, and the same fragment of the higher half. */
struct halves {
    ptx_u32 low[4], high[4];
    int offset; /* bytes from a thread's place in `received` to its fragment i */
};
static struct halves halves_of(const struct gemm_exchange *x, uint32_t half, uint32_t i,
                               gemm_sums_register *acc, const void *from)
{
    struct halves h = {.offset = (int)(i * x->threads * 16)};
    for (uint32_t r = 0; r < 4; r++) {
        h.low[r] = acc(from, i / half, i % half, r);
        h.high[r] = acc(from, i / half, i % half + half, r);
    }
    return h;
}

static uint32_t fragments(const struct gemm_exchange *x)
{
    return x->tiles * team_groups(x) / 2;
}

static void add(ptx_kernel *k, const struct gemm_exchange *x, const ptx_u32 own[4], int offset,
                ptx_u32 from)
{
    ptx_u32 more[4];
    ptx_ld_shared_v4_u32(k, more, from, offset);
    for (int r = 0; r < 4; r++)
        gemm_add_to(k, x->integer, own[r], more[r]);
}

/*
 * Each team writes its sums of the other team's half of the rows to of_teams, and adds the sums
 * that the other team wrote to its own half, in the accumulators of the lower half.
 */
static void divide_rows(ptx_kernel *k, const struct gemm_exchange *x, gemm_sums_register *acc,
                        const void *from)
{
    uint32_t half = x->row_groups / 2, each = x->tiles * half, pitch = x->threads * 16;
    ptx_if_else(k, ptx_setp_ne_u32(k, x->team, U32(0))) {
        for (uint32_t i = 0; i < each; i++) {
            struct halves h = halves_of(x, half, i, acc, from);
            ptx_st_shared_v4_u32(k, x->other_team, (int)(i * pitch), h.low);
            for (int r = 0; r < 4; r++)
                ptx_mov_u32_to(k, h.low[r], h.high[r]);
        }
    } else
        for (uint32_t i = 0; i < each; i++)
            ptx_st_shared_v4_u32(k, x->other_team, (int)(i * pitch),
                                 halves_of(x, half, i, acc, from).high);
    ptx_bar_sync_n(k, U32(x->barrier), U32(x->threads));
    for (uint32_t i = 0; i < each; i++)
        add(k, x, halves_of(x, half, i, acc, from).low, (int)(i * pitch), x->own_team);
}

void gemm_exchange_send(ptx_kernel *k, const struct gemm_exchange *x, gemm_sums_register *acc,
                        const void *from)
{
    if (x->teams > 1)
        divide_rows(k, x, acc, from);
    for (uint32_t i = 0; i < fragments(x); i++) {
        struct halves h = halves_of(x, team_groups(x) / 2, i, acc, from);
        ptx_u32 sent[4];
        for (int r = 0; r < 4; r++) {
            sent[r] = ptx_selp_u32(k, h.low[r], h.high[r], x->second);
            ptx_selp_u32_to(k, h.low[r], h.high[r], h.low[r], x->second);
        }
        ptx_st_async_shared_cluster_v4_u32(k, x->there, h.offset, sent, x->of_other,
                                           (int)sent_bytes(x));
    }
}

void gemm_exchange_receive(ptx_kernel *k, const struct gemm_exchange *x, gemm_sums_register *acc,
                           const void *from)
{
    gemm_ring_wait(k, &x->all);
    for (uint32_t i = 0; i < fragments(x); i++) {
        struct halves h = halves_of(x, team_groups(x) / 2, i, acc, from);
        add(k, x, h.low, h.offset, x->here);
    }
}
