/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sums of a cluster of two CTAs, which divide a tile's K: each sends the other its sums of the half
 * of the rows that the other finishes, from registers into the other's shared memory, and adds what it
 * is sent to its own half.
 *
 *     CTA 0    rows 0 … h − 1   own + sent ─▶ C          CTA 1    ── sent ─▶ CTA 0
 *              rows h … 2h − 1  ── sent ─▶ CTA 1                  own + sent ─▶ C
 *
 * An mbarrier counts the bytes that come, so that a thread waits for these alone. Sums that both stage,
 * with a barrier of the cluster before they are read, wait for all that the thread has in flight in the
 * device (MEMBAR.GPU), and for two ways between the CTAs instead of one: 4096 × 4096 with 64 rows took
 * 8.5 µs of an H200 so, and takes 7.7, with 32 rows 7.05 and 6.15.
 */
#include "hopper.h"

/* Fragments of four sums that a thread sends, and is sent: the first half of each strip's. */
static uint32_t sent(const struct gemm *q)
{
    return marlin_fragments(q->v) / 2;
}

/* Fragment i of a thread is 16 bytes at `i` times the threads of a CTA. */
static int place(const struct gemm *q, uint32_t i)
{
    return (int)(i * marlin_threads(q->v) * 16);
}

/* Behind what a CTA is sent stands the mbarrier that says so. */
static uint32_t sums_bytes(const ptxgen_marlin_variant *v)
{
    return marlin_threads(v) * marlin_fragments(v) / 2 * 16;
}

uint32_t marlin_exchange_bytes(const ptxgen_marlin_variant *v)
{
    enum { BARRIER = 16 };
    return marlin_exchanges(v) ? sums_bytes(v) + BARRIER : 0;
}

/* Of the init and the arrival racecheck warns as in tile/exchange.c. */
void marlin_emit_exchange_begin(struct hopper *h)
{
    ptx_kernel *k = h->q.k;
    uint32_t bytes = sums_bytes(h->q.v);
    ptx_shared received = ptx_shared_declare(k, "received", marlin_exchange_bytes(h->q.v), 16);
    h->received = ptx_shared_address(k, received);
    ptx_if(k, ptx_setp_eq_u32(k, h->q.at.thread, U32(0))) {
        ptx_mbarrier_init(k, h->received, (int)bytes, U32(1));
        ptx_fence_mbarrier_init_release_cluster(k);
        ptx_mbarrier_arrive_expect_tx(k, h->received, (int)bytes, U32(bytes));
    }
    ptx_barrier_cluster_arrive_relaxed(k);
}

/*
 * Sends fragment i of one half of the rows, and leaves that of the other where the first half's was:
 * CTA 1 keeps the second.
 */
static void send(struct hopper *h, uint32_t i, ptx_u32 to, ptx_u32 theirs, ptx_pred second)
{
    struct gemm *q = &h->q;
    uint32_t half = row_groups(q) / 2;
    ptx_f32 *low = q->acc[i / half][i % half], *high = q->acc[i / half][i % half + half];
    ptx_f32 sent[4];
    for (int r = 0; r < 4; r++) {
        sent[r] = ptx_selp_f32(q->k, low[r], high[r], second);
        low[r] = ptx_selp_f32(q->k, high[r], low[r], second);
    }
    ptx_st_async_shared_cluster_v4_f32(q->k, to, place(q, i), sent, theirs, (int)sums_bytes(q->v));
}

static void add(struct hopper *h, uint32_t i, ptx_u32 from)
{
    struct gemm *q = &h->q;
    uint32_t half = row_groups(q) / 2;
    ptx_f32 *own = q->acc[i / half][i % half], more[4];
    ptx_ld_shared_v4_f32(q->k, more, from, place(q, i));
    for (int r = 0; r < 4; r++)
        own[r] = ptx_add_f32(q->k, own[r], more[r]);
}

void marlin_emit_exchange(struct hopper *h)
{
    struct gemm *q = &h->q;
    ptx_kernel *k = q->k;
    ptx_section(k, "sums of half the rows to the other CTA");
    ptx_barrier_cluster_wait(k); /* its mbarrier is there */
    ptx_u32 other = ptx_xor_b32(k, q->sums.rank, U32(1));
    ptx_u32 theirs = ptx_mapa_shared_cluster_u32(k, h->received, other);
    ptx_pred second = ptx_setp_ne_u32(k, q->sums.rank, U32(0));
    const ptx_u32 starts[2] = {theirs, h->received};
    ptx_u32 at[2];
    for (int i = 0; i < 2; i++)
        at[i] = ptx_mad_lo_u32(k, q->at.thread, U32(16), starts[i]);
    for (uint32_t i = 0; i < sent(q); i++)
        send(h, i, at[0], theirs, second);
    const struct tile_ring_place all = {.barrier = ptx_add_u32(k, h->received, U32(sums_bytes(q->v))),
                                        .parity = U32(0)};
    tile_ring_wait(k, &all);
    for (uint32_t i = 0; i < sent(q); i++)
        add(h, i, at[1]);
}
