/* SPDX-License-Identifier: Apache-2.0 */
#include "src/emulator/shared_memory.h"
#include "src/emulator/access.h"
#include "src/emulator/late_read.h"

#include <stdio.h>

void emu_clock_join(emu_clock into, const uint32_t *from, uint32_t epochs)
{
    for (uint32_t w = 0; w < epochs; w++)
        into[w] = from[w] > into[w] ? from[w] : into[w];
}

void emu_clock_release(struct emu_warp *warp, emu_clock to)
{
    emu_clock_join(to, warp->clock, warp->cta->cluster->epochs);
    warp->clock[warp->number]++;
}

void emu_clock_acquire(struct emu_warp *warp, const uint32_t *from)
{
    uint32_t *own = &warp->clock[warp->number], before = *own;
    emu_clock_join(warp->clock, from, warp->cta->cluster->epochs);
    if (from[warp->number] >= before) /* the warp's other lanes published in this epoch */
        *own = from[warp->number] + 1;
    emu_clock_look(warp);
}

void emu_clock_look(struct emu_warp *warp)
{
    const struct emu_cluster *cluster = warp->cta->cluster;
    const uint32_t count = warp->cta->warp_count;
    uint32_t least = UINT32_MAX;
    for (uint32_t c = 0; c < cluster->cta_count; c++)
        for (uint32_t w = c * EMU_MAX_WARPS; w < c * EMU_MAX_WARPS + count; w++)
            least = w != warp->number && warp->clock[w] < least ? warp->clock[w] : least;
    warp->others = least;
}

/* ---- verdicts ---- */

enum { FREE = VERDICT_FREE, ORDER = VERDICT_ORDER, STRONG = VERDICT_STRONG, WAIT = VERDICT_WAIT };

const uint8_t emu_shared_verdicts[SHARED_KINDS][SHARED_KINDS] = {
    /* second:             ld.strong ld     bulk   wgmma  atom    st.strong st    copy */
    [SHARED_STRONG_READ] = {FREE, FREE, FREE, FREE, STRONG, STRONG, ORDER, ORDER},
    [SHARED_READ] = {FREE, FREE, FREE, FREE, ORDER, ORDER, ORDER, ORDER},
    [SHARED_BULK_READ] = {FREE, FREE, FREE, FREE, WAIT, WAIT, WAIT, WAIT},
    [SHARED_WGMMA_READ] = {FREE, FREE, FREE, FREE, WAIT, WAIT, WAIT, WAIT},
    [SHARED_ATOMIC] = {STRONG, ORDER, ORDER, ORDER, STRONG, STRONG, ORDER, ORDER},
    [SHARED_STRONG_WRITE] = {STRONG, ORDER, ORDER, ORDER, STRONG, STRONG, ORDER, ORDER},
    [SHARED_WRITE] = {ORDER, ORDER, ORDER, ORDER, ORDER, ORDER, ORDER, ORDER},
    [SHARED_COPY] = {WAIT, WAIT, WAIT, WAIT, WAIT, WAIT, WAIT, WAIT}};

static bool writes(enum emu_shared_kind kind)
{
    return kind >= SHARED_ATOMIC;
}

/* ---- reports ---- */

static void report(const struct emu_shared_access *access, enum ptxgen_emulator_check check,
                   uint32_t offset, uint32_t other, const char *kind, const char *why)
{
    const struct emu_cta *cta = access->warp->cta;
    const uint32_t *block = cta->cluster->launch->block;
    const uint32_t thread = other % EMU_CTA_THREADS, rank = other / EMU_CTA_THREADS;
    char where[40] = "";
    const enum ptxgen_emulator_check meant =
        emu_race_kind(access->warp, access->insn, access->lane, access->store, access->data, check);
    if (meant == PTXGEN_CHECK_NONE)
        return;
    if (rank != cta->rank)
        snprintf(where, sizeof where, " of CTA %u of the cluster", rank);
    emu_fault_at(access->warp, access->insn, access->lane, meant, offset,
                 "race in shared memory: this %s thread (%u,%u,%u)%s%s%s", kind, thread % block[0],
                 thread / block[0] % block[1], thread / block[0] / block[1], where, why,
                 meant == check ? "" : EMU_EQUAL_STORE);
}

static const char no_barrier[] = " without a barrier between them";

static void report_thread(const struct emu_shared_access *access, uint32_t offset, uint32_t other,
                          const char *kind, const char *why)
{
    bool own = other / 32 == access->warp->number;
    report(access, own ? PTXGEN_CHECK_WARP_RACES : PTXGEN_CHECK_RACES, offset, other, kind, why);
}

/* What the words of one access have in common; the mark is the one that it leaves. */
struct tracker {
    const struct emu_shared_access *access;
    const struct emu_cells *cells;
    struct emu_mark mark;
    uint32_t offset; /* in shared memory, of the word's bytes that are meant */
};

static inline bool ordered(const struct tracker *t, const struct emu_mark *mark)
{
    return emu_is_ordered(t->access->warp, t->access->lane, mark->thread, mark->epoch);
}

static inline enum emu_verdict verdict(const struct tracker *t, const struct emu_mark *old)
{
    return (enum emu_verdict)emu_shared_verdicts[old->kind][t->mark.kind];
}

static bool reaches(const struct emu_mark *one, const struct emu_mark *other)
{
    return one->scope >=
           ((one->thread ^ other->thread) < EMU_CTA_THREADS ? SCOPE_CTA : SCOPE_CLUSTER);
}

/* Both strong, of scopes that include the other's thread, and of the same bytes. */
static inline bool morally_strong(const struct tracker *t, const struct emu_mark *old,
                                  uint8_t bytes)
{
    return verdict(t, old) == VERDICT_STRONG && (old->several || old->bytes == bytes) &&
           reaches(old, &t->mark) && reaches(&t->mark, old);
}

static const char *missing_order(const struct tracker *t, const struct emu_mark *old)
{
    if (verdict(t, old) != VERDICT_STRONG)
        return no_barrier;
    return reaches(old, &t->mark) && reaches(&t->mark, old)
               ? "; both are strong, but do not overlap completely"
               : "; both are strong, but the scope of one does not include the other's thread";
}

/* A write against the readers of the word: all of one CTA, all in one epoch. Readers of other warps
 * come first, for a race between warps is the graver report. */
static void check_readers(const struct tracker *t, const struct emu_mark *read, uint32_t readers)
{
    const struct emu_warp *warp = t->access->warp;
    const char *why = missing_order(t, read);
    uint32_t first = read->thread / EMU_CTA_THREADS * EMU_MAX_WARPS;
    if (read->thread / 32 != warp->number && !ordered(t, read))
        report_thread(t->access, t->offset, read->thread, "write follows a read by", why);
    for (uint32_t left = readers; left; left &= left - 1) {
        uint32_t other = first + (uint32_t)__builtin_ctz(left);
        if (other != warp->number && read->epoch > warp->clock[other])
            report_thread(t->access, t->offset, other * 32, "write follows a read by the warp of",
                          why);
    }
    if (!ordered(t, read))
        report_thread(t->access, t->offset, read->thread, "write follows a read by", why);
    if (read->kind == SHARED_WGMMA_READ && !emu_late_is_ordered(warp, read))
        report(t->access, PTXGEN_CHECK_RACES, t->offset, read->thread,
               "write follows a read by a wgmma that is not waited for, of", no_barrier);
}

static inline void check_writer(const struct tracker *t, const struct emu_mark *write,
                                uint8_t bytes, const char *kind)
{
    if ((write->bytes & bytes) && !morally_strong(t, write, bytes) && !ordered(t, write))
        report_thread(t->access, t->offset, write->thread, kind, missing_order(t, write));
}

/* `same`: the old mark is of this access's epoch, and adds up. */
static inline void set_mark(const struct tracker *t, const struct emu_marks *marks, uint32_t word,
                            uint8_t bytes, bool same)
{
    struct emu_mark fresh = t->mark;
    fresh.bytes = bytes;
    if (same) {
        struct emu_mark old = emu_mark_at(marks, word);
        fresh.several = old.several || old.bytes != bytes;
        fresh.bytes |= old.bytes;
        fresh.kind = old.kind > fresh.kind ? old.kind : fresh.kind;
        fresh.scope = old.scope < fresh.scope ? old.scope : fresh.scope;
    }
    marks->epoch[word] = fresh.epoch;
    marks->who[word] = fresh.who;
}

static inline void track_write(const struct tracker *t, uint32_t word, uint8_t bytes)
{
    struct emu_mark write = emu_mark_at(&t->cells->writes, word);
    struct emu_mark read = emu_mark_at(&t->cells->reads, word);
    check_writer(t, &write, bytes, "write follows a write by");
    if ((read.bytes & bytes) && !morally_strong(t, &read, bytes))
        check_readers(t, &read, t->cells->readers[word]);
    set_mark(t, &t->cells->writes, word, bytes,
             write.thread == t->mark.thread && write.epoch == t->mark.epoch);
}

static inline void track_read(const struct tracker *t, uint32_t word, uint8_t bytes)
{
    struct emu_mark read = emu_mark_at(&t->cells->reads, word);
    struct emu_mark write = emu_mark_at(&t->cells->writes, word);
    uint32_t own = 1u << t->mark.thread / 32 % EMU_MAX_WARPS, *readers = &t->cells->readers[word];
    check_writer(t, &write, bytes, "read follows a write by");
    bool same = read.epoch == t->mark.epoch && read.bytes &&
                (read.thread ^ t->mark.thread) < EMU_CTA_THREADS;
    *readers = same ? *readers | own : own;
    set_mark(t, &t->cells->reads, word, bytes, same);
}

void emu_shared_track(const struct emu_shared_access *access, struct emu_cta *owner,
                      uint32_t offset)
{
    const struct emu_warp *warp = access->warp;
    struct tracker t = {.access = access,
                        .cells = owner->cells,
                        .mark = {.epoch = warp->clock[warp->number],
                                 .thread = (uint16_t)(warp->number * 32 + (uint32_t)access->lane),
                                 .kind = access->kind,
                                 .scope = access->scope}};
    uint32_t end = offset + access->bytes;
    for (uint32_t word = offset / 4; word * 4 < end; word++) {
        uint32_t first = word * 4 < offset ? offset - word * 4 : 0;
        uint32_t last = end - word * 4 < 4 ? end - word * 4 : 4;
        uint8_t bytes = (uint8_t)((1u << last) - (1u << first));
        t.offset = word * 4 + first;
        if (writes(access->kind))
            track_write(&t, word, bytes);
        else
            track_read(&t, word, bytes);
    }
}
