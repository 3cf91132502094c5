/* SPDX-License-Identifier: Apache-2.0 */
#include "exchange.h"

#include "ring.h"

static uint32_t sent_bytes(const struct tile_exchange *x)
{
    return x->threads * x->tiles * x->row_groups / 2 * 16;
}

void tile_exchange_begin(ptx_kernel *k, const struct tile_threads *at, struct tile_exchange *x)
{
    uint32_t bytes = tile_exchange_bytes(x->threads, x->tiles, x->row_groups);
    x->received = ptx_shared_address(k, ptx_shared_declare(k, "received", bytes, 16));
    ptx_if(k, ptx_setp_eq_u32(k, at->thread, U32(0))) {
        ptx_mbarrier_init(k, x->received, (int)sent_bytes(x), U32(1));
        ptx_fence_mbarrier_init_release_cluster(k);
    }
    ptx_barrier_cluster_arrive_relaxed(k);
}

struct other {
    ptx_u32 received, place; /* … and the thread's place there */
    int barrier;
    ptx_pred second; /* whether this CTA finishes the second half */
};

/* Sends four sums of one half of the rows, and leaves the other's where the first half's were. */
static void send(ptx_kernel *k, const struct other *o, ptx_u32 low[4], const ptx_u32 high[4],
                 int offset)
{
    ptx_u32 sent[4];
    for (int r = 0; r < 4; r++) {
        sent[r] = ptx_selp_u32(k, low[r], high[r], o->second);
        ptx_selp_u32_to(k, low[r], high[r], low[r], o->second);
    }
    ptx_st_async_shared_cluster_v4_u32(k, o->place, offset, sent, o->received, o->barrier);
}

static void add(ptx_kernel *k, const struct tile_exchange *x, const ptx_u32 own[4], int offset,
                ptx_u32 from)
{
    ptx_u32 more[4];
    ptx_ld_shared_v4_u32(k, more, from, offset);
    for (int r = 0; r < 4; r++)
        if (x->integer)
            ptx_add_u32_to(k, own[r], own[r], more[r]);
        else
            ptx_add_f32_to(k, ptx_u32_as_f32(own[r]), ptx_u32_as_f32(own[r]),
                           ptx_u32_as_f32(more[r]));
}

/*
 * The first thread says how many bytes come behind the cluster's barrier, not behind its init of
 * the mbarrier, a uniform instruction in SASS: compute-sanitizer's racecheck (CUDA 13.0) takes that
 * for another lane's.
 */
void tile_exchange_sums(ptx_kernel *k, const struct tile_threads *at, const struct tile_exchange *x,
                        tile_sums_register *acc, const void *from)
{
    enum { SENDS, ADDS, TURNS };
    uint32_t half = x->row_groups / 2, bytes = sent_bytes(x);
    ptx_barrier_cluster_wait(k); /* the other's barrier is there */
    ptx_guarded(k, ptx_setp_eq_u32(k, at->thread, U32(0)))
        ptx_mbarrier_arrive_expect_tx(k, x->received, (int)bytes, U32(bytes));
    ptx_u32 here = ptx_mad_lo_u32(k, at->thread, U32(16), x->received);
    ptx_u32 rank = ptx_xor_b32(k, x->rank, U32(1));
    struct other o = {.received = ptx_mapa_shared_cluster_u32(k, x->received, rank),
                      .barrier = (int)bytes};
    o.place = ptx_mapa_shared_cluster_u32(k, here, rank);
    o.second = ptx_setp_eq_u32(k, rank, U32(0));
    struct tile_ring_place all = {.parity = U32(0)};
    all.barrier = ptx_add_u32(k, x->received, U32(bytes));
    for (int turn = SENDS; turn < TURNS; turn++) {
        if (turn == ADDS)
            tile_ring_wait(k, &all);
        for (uint32_t i = 0; i < x->tiles * half; i++) {
            ptx_u32 low[4], high[4];
            for (uint32_t r = 0; r < 4; r++) {
                low[r] = acc(from, i / half, i % half, r);
                high[r] = acc(from, i / half, i % half + half, r);
            }
            int offset = (int)(i * x->threads * 16);
            if (turn == SENDS)
                send(k, &o, low, high, offset);
            else
                add(k, x, low, offset, here);
        }
    }
}
