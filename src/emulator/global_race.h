/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Races in global memory: two accesses to a word, one of them a write, that causality order does
 * not relate and that are not morally strong (ISA "Memory Consistency Model"). Each word of 4 bytes
 * that a launch touches has marks of its last write and of two reads: those of the warp that read
 * it first, and the last one by any other. What was before the launch is ordered before all of it.
 *
 * Causality order alone decides, whoever acquired and with whatever cache operator: a plain load
 * behind a bar.sync behind another thread's acquire reads what was released, although it may hit
 * the L1. Only ld.global.nc is outside of that order: it may read nothing that its launch writes.
 */
#ifndef PTXGEN_EMULATOR_GLOBAL_RACE_H
#define PTXGEN_EMULATOR_GLOBAL_RACE_H

#include "src/emulator/access.h"

enum { RACE_PAGE_WORDS = EMU_RACE_PAGE_BYTES / 4 };

struct emu_race_page {
    struct emu_race_page *next;
    _Atomic(struct emu_race_page *) *home;
    _Atomic uint64_t writes[RACE_PAGE_WORDS], reads[2][RACE_PAGE_WORDS];
    _Atomic uint32_t generic[RACE_PAGE_WORDS]; /* the line of a last write by the generic proxy, in
                                                  launches whose proxies are looked at, else 0 */
};

/*
 * A mark, 0: none. From the lowest bit on: bytes of the word (4), non-coherent (1), scope (3),
 * epoch (18), lane (5), warp in the cluster (9), cluster (24). An epoch that does not fit counts as
 * ordered. RACE_AHEAD is the cluster of all kernels ahead in the stream that this launch may
 * overlap.
 */
enum {
    RACE_NONCOHERENT = 16,
    RACE_SCOPE = 5,
    RACE_EPOCH = 8,
    RACE_MOST_EPOCH = (1 << 18) - 1,
    RACE_LANE = 26,
    RACE_WARP = 31,
    RACE_CLUSTER = 40
};
enum { RACE_AHEAD = (1 << 24) - 1, RACE_MOST_CLUSTERS = RACE_AHEAD };

struct emu_race_access {
    struct emu_warp *warp;
    const struct emu_insn *insn;
    int lane;
    uint64_t address;
    uint32_t bytes, flags; /* enum emu_access_flags */
    const uint8_t *data;   /* where the access begins */
    uint64_t ordered;      /* a mark that is known to be ordered before it */
};

/* Faults on an access that races with an earlier one, and records it. */
void emu_race_track(struct emu_race_access *access, const struct emu_allocation *in);

/* Reads whole words from `at` on, as many as nobody has written in this launch, of at most `words`:
 * most of what tensor copies read. Returns how many (access_batch.c). */
uint32_t emu_race_read_unwritten(struct emu_race_page *page, uint32_t at, uint64_t words,
                                 uint64_t mark);

struct emu_race_page *emu_race_page_make(struct emu_warp *warp,
                                         _Atomic(struct emu_race_page *) *home);
/* Frees marks, and what holds them holds none. */
void emu_race_free(struct emu_race_page **pages);
/* Makes marks of a launch, and those of kernels ahead of it if `older`, into marks of kernels
 * ahead. */
void emu_race_age(struct emu_race_page *pages, bool older);
/* Whether what the mark tells of is ordered before what the lane does now. */
bool emu_race_ordered(const struct emu_warp *warp, int lane, uint64_t mark);

static inline bool emu_race_checked(const struct emu_warp *warp)
{
    return warp->cta->cluster->launch->checks & PTXGEN_CHECK_GLOBAL_RACES;
}

/* The mark of a lane's access to all bytes of a word. */
static inline uint64_t emu_race_mark(const struct emu_warp *warp, int lane, uint32_t flags)
{
    uint64_t epoch = warp->clock[warp->number];
    epoch = epoch < RACE_MOST_EPOCH ? epoch : RACE_MOST_EPOCH;
    return warp->cta->cluster->index << RACE_CLUSTER | (uint64_t)warp->number << RACE_WARP |
           (uint64_t)lane << RACE_LANE | epoch << RACE_EPOCH |
           (uint64_t)(flags >> ACCESS_SCOPE_SHIFT & 7) << RACE_SCOPE |
           (flags & ACCESS_NONCOHERENT ? RACE_NONCOHERENT : 0) | 15;
}

static inline uint64_t emu_race_load(_Atomic uint64_t *at)
{
    return atomic_load_explicit(at, memory_order_acquire);
}

static inline void emu_race_store(_Atomic uint64_t *at, uint64_t mark)
{
    atomic_store_explicit(at, mark, memory_order_release);
}

/* A word's last write: its mark, and the line if it is by the generic proxy. */
static inline void emu_race_set_write(struct emu_race_page *page, uint32_t at, uint64_t mark,
                                      uint32_t line)
{
    emu_race_store(&page->writes[at], mark);
    if (line)
        atomic_store_explicit(&page->generic[at], line, memory_order_relaxed);
}

/* No access, one by the same thread, or by the same warp in an earlier epoch. */
static inline bool emu_race_settled(uint64_t old, uint64_t mark)
{
    return !old || !((old ^ mark) >> RACE_LANE) ||
           (!((old ^ mark) >> RACE_WARP) &&
            (old >> RACE_EPOCH & RACE_MOST_EPOCH) < (mark >> RACE_EPOCH & RACE_MOST_EPOCH));
}

static inline struct emu_race_page *emu_race_page_at(struct emu_warp *warp,
                                                     const struct emu_allocation *in, uint64_t word)
{
    _Atomic(struct emu_race_page *) *home = &in->race_pages[word / RACE_PAGE_WORDS];
    struct emu_race_page *page = atomic_load_explicit(home, memory_order_acquire);
    return page ? page : emu_race_page_make(warp, home);
}

static inline void emu_race_add_reader(struct emu_race_page *page, uint32_t at, uint64_t mark)
{
    uint64_t first = emu_race_load(&page->reads[0][at]);
    if (!first || !((first ^ mark) >> RACE_WARP))
        emu_race_store(&page->reads[0][at], mark | (first & RACE_NONCOHERENT));
    else
        emu_race_store(&page->reads[1][at],
                       mark | (emu_race_load(&page->reads[1][at]) & RACE_NONCOHERENT));
}

#endif
