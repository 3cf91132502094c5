/* SPDX-License-Identifier: Apache-2.0 */
#include "src/emulator/global_race.h"
#include "src/emulator/global_order.h"
#include "src/emulator/proxy.h"
#include "src/emulator/shared_memory.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- pages ---- */

/* Another worker may make the same page: the first one stays. */
struct emu_race_page *emu_race_page_make(struct emu_warp *warp,
                                         _Atomic(struct emu_race_page *) *home)
{
    struct emu_launch *launch = warp->cta->cluster->launch;
    struct emu_race_page *page = calloc(1, sizeof *page), *there = NULL;
    if (!page)
        emu_out_of_memory(warp);
    page->home = home;
    if (!atomic_compare_exchange_strong(home, &there, page)) {
        free(page);
        return there;
    }
    page->next = atomic_load(&launch->race_pages);
    while (!atomic_compare_exchange_weak(&launch->race_pages, &page->next, page))
        continue;
    return page;
}

void emu_race_free(struct emu_race_page **pages)
{
    while (*pages) {
        struct emu_race_page *next = (*pages)->next;
        atomic_store_explicit((*pages)->home, NULL, memory_order_relaxed);
        free(*pages);
        *pages = next;
    }
}

static void age(_Atomic uint64_t *marks, bool older)
{
    const uint64_t ahead = (uint64_t)RACE_AHEAD << RACE_CLUSTER | (uint64_t)1 << RACE_EPOCH;
    for (uint32_t at = 0; at < RACE_PAGE_WORDS; at++) {
        uint64_t mark = atomic_load_explicit(&marks[at], memory_order_relaxed);
        bool stays = mark && (older || mark >> RACE_CLUSTER != RACE_AHEAD);
        atomic_store_explicit(&marks[at], stays ? ahead | (mark & 15) : 0, memory_order_relaxed);
    }
}

void emu_race_age(struct emu_race_page *pages, bool older)
{
    for (; pages; pages = pages->next) {
        age(pages->writes, older);
        age(pages->reads[0], older);
        age(pages->reads[1], older);
    }
}

/* ---- order ---- */

static uint32_t thread_of(uint64_t mark)
{
    return mark >> RACE_LANE & 0x3fff;
}

static bool same_cluster(const struct emu_warp *warp, uint64_t mark)
{
    return mark >> RACE_CLUSTER == warp->cta->cluster->index;
}

static bool same_cta(const struct emu_warp *warp, uint64_t mark)
{
    return same_cluster(warp, mark) && thread_of(mark) / EMU_CTA_THREADS == warp->cta->rank;
}

bool emu_race_ordered(const struct emu_warp *warp, int lane, uint64_t mark)
{
    uint32_t epoch = mark >> RACE_EPOCH & RACE_MOST_EPOCH;
    if (epoch == RACE_MOST_EPOCH)
        return true;
    if (same_cluster(warp, mark))
        return emu_is_ordered(warp, lane, thread_of(mark), epoch);
    return warp->cta->cluster->learned && emu_order_knows(warp, (uint32_t)(mark >> RACE_CLUSTER),
                                                          thread_of(mark) / 32, epoch, false);
}

/* Whether a fence.proxy.async is between an ordered write of this launch and what `warp` does. */
static bool fenced(const struct emu_warp *warp, uint64_t mark)
{
    uint32_t epoch = mark >> RACE_EPOCH & RACE_MOST_EPOCH;
    if (epoch == RACE_MOST_EPOCH || mark >> RACE_CLUSTER == RACE_AHEAD)
        return true;
    if (same_cluster(warp, mark))
        return emu_proxy_fenced(warp, PROXY_GLOBAL, thread_of(mark), epoch);
    return emu_order_knows(warp, (uint32_t)(mark >> RACE_CLUSTER), thread_of(mark) / 32, epoch,
                           true);
}

static enum emu_sync_scope scope_of(uint64_t mark)
{
    return mark >> RACE_SCOPE & 7;
}

static bool reaches(enum emu_sync_scope scope, const struct emu_warp *warp, uint64_t other)
{
    return scope >= SCOPE_GPU || (scope == SCOPE_CLUSTER && same_cluster(warp, other)) ||
           (scope == SCOPE_CTA && same_cta(warp, other));
}

/* Both strong, of scopes that include the other's thread, and of the same bytes. */
static bool morally_strong(const struct emu_warp *warp, uint64_t old, uint64_t mark)
{
    return ((old ^ mark) & 15) == 0 && reaches(scope_of(old), warp, old) &&
           reaches(scope_of(mark), warp, old);
}

/* ---- reports ---- */

static const char *missing_order(const struct emu_warp *warp, uint64_t old, uint64_t mark)
{
    if (scope_of(old) && scope_of(mark) && ((old ^ mark) & 15))
        return "; both are strong, but do not overlap completely";
    if (scope_of(old) && scope_of(mark))
        return "; both are strong, but the scope of one does not include the other's thread";
    if (same_cta(warp, old))
        return thread_of(old) / 32 == warp->number ? " without bar.warp.sync between them"
                                                   : " without a barrier between them";
    if (same_cluster(warp, old))
        return " without barrier.cluster, or a release and an acquire of .cluster scope or wider, "
               "between them";
    return " without a release and an acquire of .gpu scope or wider between them";
}

static void name_cta(const struct emu_launch *launch, uint64_t mark, uint32_t id[3])
{
    uint64_t index = mark >> RACE_CLUSTER;
    uint32_t rank = thread_of(mark) / EMU_CTA_THREADS;
    for (int i = 0; i < 3; i++) {
        id[i] = (uint32_t)(index % launch->clusters[i]) * launch->cluster[i] +
                rank % launch->cluster[i];
        index /= launch->clusters[i];
        rank /= launch->cluster[i];
    }
}

static enum ptxgen_emulator_check kind_of(const struct emu_race_access *access,
                                          enum ptxgen_emulator_check check)
{
    return emu_race_kind(access->warp, access->insn, access->lane, access->flags & ACCESS_STORE,
                         access->data, check);
}

/* By a thread that no griddepcontrol.wait has kept back. */
static void report_early(const struct emu_race_access *access, const char *kind)
{
    const enum ptxgen_emulator_check check = kind_of(access, PTXGEN_CHECK_OVERLAP);
    if (check != PTXGEN_CHECK_NONE)
        emu_fault_at(access->warp, access->insn, access->lane, check, access->address,
                     "this %s by the kernel ahead in the stream, which may still run: no "
                     "griddepcontrol.wait is before it%s",
                     kind, check == PTXGEN_CHECK_OVERLAP ? "" : EMU_EQUAL_STORE);
}

static void report(const struct emu_race_access *access, uint64_t old, const char *kind,
                   const char *why)
{
    const enum ptxgen_emulator_check check = kind_of(access, PTXGEN_CHECK_GLOBAL_RACES);
    if (check == PTXGEN_CHECK_NONE)
        return;
    const struct emu_launch *launch = access->warp->cta->cluster->launch;
    const uint32_t thread = thread_of(old) % EMU_CTA_THREADS, *block = launch->block;
    uint32_t cta[3];
    name_cta(launch, old, cta);
    emu_fault_at(access->warp, access->insn, access->lane, check, access->address,
                 "race in global memory: this %s by thread (%u,%u,%u) of CTA (%u,%u,%u)%s%s", kind,
                 thread % block[0], thread / block[0] % block[1], thread / block[0] / block[1],
                 cta[0], cta[1], cta[2], why,
                 check == PTXGEN_CHECK_GLOBAL_RACES ? "" : EMU_EQUAL_STORE);
}

/* ---- words ---- */

static bool changes(const struct emu_race_access *access)
{
    return !(access->flags & ACCESS_STORE) ||
           emu_store_changes(access->warp, access->insn, access->lane, access->data);
}

static void check(struct emu_race_access *access, uint64_t old, uint64_t mark, const char *kind)
{
    const struct emu_warp *warp = access->warp;
    if (!(old & mark & 15) || !((old ^ access->ordered) >> RACE_EPOCH) ||
        emu_race_settled(old, mark) || morally_strong(warp, old, mark))
        return;
    if (emu_race_ordered(warp, access->lane, old)) {
        access->ordered = old;
        return;
    }
    if (old >> RACE_CLUSTER == RACE_AHEAD)
        report_early(access, kind);
    else
        report(access, old, kind, missing_order(warp, old, mark));
}

/* An access by the async proxy that follows a write by the generic one. */
static void check_proxy(const struct emu_race_access *access, const struct emu_race_page *page,
                        uint32_t at, uint64_t last)
{
    uint32_t line = atomic_load_explicit(&page->generic[at], memory_order_relaxed);
    if (last && line && emu_race_ordered(access->warp, access->lane, last) &&
        !fenced(access->warp, last))
        emu_proxy_report(access->warp, access->insn, access->lane, access->address,
                         access->flags & ACCESS_WRITE, line, thread_of(last), PROXY_GLOBAL);
}

static void track_write(struct emu_race_access *access, struct emu_race_page *page, uint32_t at,
                        uint64_t mark)
{
    const bool proxies = access->warp->cta->cluster->launch->proxies;
    static const char coherent[] =
        " by ld.global.nc, which may read nothing that is written in the same launch";
    uint64_t last = emu_race_load(&page->writes[at]);
    check(access, last, mark, "write follows a write");
    for (int i = 0; i < 2; i++) {
        uint64_t read = emu_race_load(&page->reads[i][at]);
        if ((read & RACE_NONCOHERENT) && (read & mark & 15))
            report(access, read, "write follows a read", coherent);
        check(access, read, mark, "write follows a read");
    }
    if (!(access->flags & ACCESS_ASYNC_PROXY)) {
        emu_race_set_write(page, at, mark, proxies ? access->insn->line : 0);
        return;
    }
    if (proxies)
        check_proxy(access, page, at, last);
    emu_race_store(&page->writes[at], mark);
    atomic_store_explicit(&page->generic[at], 0, memory_order_relaxed);
}

static void track_read(struct emu_race_access *access, struct emu_race_page *page, uint32_t at,
                       uint64_t mark)
{
    uint64_t last = emu_race_load(&page->writes[at]);
    if ((mark & RACE_NONCOHERENT) && (last & mark & 15) && last >> RACE_CLUSTER != RACE_AHEAD)
        report(access, last, "read follows a write",
               ", and ld.global.nc may read nothing that is written in the same launch");
    check(access, last, mark, "read follows a write");
    if ((access->flags & ACCESS_ASYNC_PROXY) && access->warp->cta->cluster->launch->proxies)
        check_proxy(access, page, at, last);
    emu_race_add_reader(page, at, mark);
}

static void follow_order(const struct emu_race_access *access, uint64_t last, uint64_t mark)
{
    struct emu_strong_access strong = {.address = access->address,
                                       .flags = access->flags,
                                       .follows_strong = scope_of(last) != SCOPE_NONE,
                                       .follows_own = last && !((last ^ mark) >> RACE_LANE),
                                       .changes = changes(access)};
    emu_order_strong(access->warp, access->lane, &strong);
}

/* The word that begins at `at` bytes of the allocation, as far as the access has bytes of it. */
static void track_word(struct emu_race_access *access, struct emu_race_page *page, uint64_t at,
                       uint64_t begin, uint64_t end, uint64_t whole)
{
    uint32_t first = at < begin ? (uint32_t)(begin - at) : 0;
    uint32_t past = end - at < 4 ? (uint32_t)(end - at) : 4;
    uint64_t mark = (whole & ~(uint64_t)15) | ((1u << past) - (1u << first));
    if (access->flags & ACCESS_WRITE)
        track_write(access, page, at / 4 % RACE_PAGE_WORDS, mark);
    else
        track_read(access, page, at / 4 % RACE_PAGE_WORDS, mark);
}

void emu_race_track(struct emu_race_access *access, const struct emu_allocation *in)
{
    struct emu_warp *warp = access->warp;
    const uint64_t begin = access->address - in->address, end = begin + access->bytes;
    const uint64_t whole = emu_race_mark(warp, access->lane, access->flags);
    uint64_t word = begin / 4;
    uint64_t last =
        emu_race_load(&emu_race_page_at(warp, in, word)->writes[word % RACE_PAGE_WORDS]);
    while (word * 4 < end) {
        struct emu_race_page *page = emu_race_page_at(warp, in, word);
        bool many = !(access->flags & ACCESS_WRITE) && word * 4 >= begin && word * 4 + 16 <= end;
        uint32_t unwritten =
            many ? emu_race_read_unwritten(page, word % RACE_PAGE_WORDS, end / 4 - word, whole) : 0;
        if (!unwritten)
            track_word(access, page, word * 4, begin, end, whole);
        word += unwritten ? unwritten : 1;
    }
    if ((access->flags & ACCESS_STRONG) && warp->cta->cluster->launch->worker_count == 1)
        follow_order(access, last, whole);
}
