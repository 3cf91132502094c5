/* SPDX-License-Identifier: Apache-2.0 */
#include "src/emulator/global_race.h"
#include "src/emulator/global_order.h"
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
    return warp->cta->cluster->learned &&
           emu_order_knows(warp, (uint32_t)(mark >> RACE_CLUSTER), thread_of(mark) / 32, epoch);
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

/* By a thread that no griddepcontrol.wait has kept back. */
static _Noreturn void report_early(const struct emu_race_access *access, const char *kind)
{
    emu_fault_at(access->warp, access->insn, access->lane, PTXGEN_CHECK_OVERLAP, access->address,
                 "this %s by the kernel ahead in the stream, which may still run: no "
                 "griddepcontrol.wait is before it",
                 kind);
}

static _Noreturn void report(const struct emu_race_access *access, uint64_t old, const char *kind,
                             const char *why)
{
    const struct emu_launch *launch = access->warp->cta->cluster->launch;
    const uint32_t thread = thread_of(old) % EMU_CTA_THREADS, *block = launch->block;
    uint32_t cta[3];
    name_cta(launch, old, cta);
    emu_fault_at(access->warp, access->insn, access->lane, PTXGEN_CHECK_GLOBAL_RACES,
                 access->address,
                 "race in global memory: this %s by thread (%u,%u,%u) of CTA (%u,%u,%u)%s", kind,
                 thread % block[0], thread / block[0] % block[1], thread / block[0] / block[1],
                 cta[0], cta[1], cta[2], why);
}

/* ---- words ---- */

/* A store that only confirms what is there is no race. */
static bool changes(const struct emu_race_access *access)
{
    return !(access->flags & ACCESS_STORE) ||
           emu_store_changes(access->warp, access->insn, access->lane, access->data);
}

static void check(const struct emu_race_access *access, uint64_t old, uint64_t mark,
                  const char *kind)
{
    const struct emu_warp *warp = access->warp;
    if (!(old & mark & 15) || emu_race_settled(old, mark) || morally_strong(warp, old, mark) ||
        emu_race_ordered(warp, access->lane, old) || !changes(access))
        return;
    if (old >> RACE_CLUSTER == RACE_AHEAD)
        report_early(access, kind);
    report(access, old, kind, missing_order(warp, old, mark));
}

static void track_write(const struct emu_race_access *access, struct emu_race_page *page,
                        uint32_t at, uint64_t mark)
{
    static const char coherent[] =
        " by ld.global.nc, which may read nothing that is written in the same launch";
    uint64_t last = emu_race_load(&page->writes[at]);
    check(access, last, mark, "write follows a write");
    for (int i = 0; i < 2; i++) {
        uint64_t read = emu_race_load(&page->reads[i][at]);
        if ((read & RACE_NONCOHERENT) && (read & mark & 15) && changes(access))
            report(access, read, "write follows a read", coherent);
        check(access, read, mark, "write follows a read");
    }
    emu_race_store(&page->writes[at], mark);
}

static void track_read(const struct emu_race_access *access, struct emu_race_page *page,
                       uint32_t at, uint64_t mark)
{
    uint64_t last = emu_race_load(&page->writes[at]);
    if ((mark & RACE_NONCOHERENT) && (last & mark & 15) && last >> RACE_CLUSTER != RACE_AHEAD)
        report(access, last, "read follows a write",
               ", and ld.global.nc may read nothing that is written in the same launch");
    check(access, last, mark, "read follows a write");
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

void emu_race_track(const struct emu_race_access *access, const struct emu_allocation *in)
{
    struct emu_warp *warp = access->warp;
    const uint64_t offset = access->address - in->address, end = offset + access->bytes;
    const uint64_t whole = emu_race_mark(warp, access->lane, access->flags);
    uint64_t last = 0;
    for (uint64_t word = offset / 4; word * 4 < end; word++) {
        struct emu_race_page *page = emu_race_page_at(warp, in, word);
        uint32_t at = word % RACE_PAGE_WORDS;
        uint32_t first = word * 4 < offset ? (uint32_t)(offset - word * 4) : 0;
        uint32_t past = end - word * 4 < 4 ? (uint32_t)(end - word * 4) : 4;
        uint64_t mark = (whole & ~(uint64_t)15) | ((1u << past) - (1u << first));
        if (word == offset / 4)
            last = emu_race_load(&page->writes[at]);
        if (access->flags & ACCESS_WRITE)
            track_write(access, page, at, mark);
        else
            track_read(access, page, at, mark);
    }
    if ((access->flags & ACCESS_STRONG) && warp->cta->cluster->launch->worker_count == 1)
        follow_order(access, last, whole);
}
