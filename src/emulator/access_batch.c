/* SPDX-License-Identifier: Apache-2.0 */
/* The common case of a warp's accesses: see emu_locate_plain. */
#include "src/emulator/access.h"
#include "src/emulator/global_race.h"
#include "src/emulator/host_vector.h"
#include "src/emulator/layout.h"
#include "src/emulator/shared_buffer.h"
#include "src/emulator/shared_memory.h"

#include <string.h>

/* Whether base ≤ address ≤ base + last for every lane, and all are multiples of a power of two.
 * A difference out of [0, last] shows in the top bit of itself or of its distance from `last`. */
EMU_INLINE bool all_inside(const uint64_t addresses[32], uint64_t base, uint64_t last,
                           uint32_t alignment)
{
    uint64_t outside = 0, bits = 0;
    for (int l = 0; l < 32; l++) {
        uint64_t difference = addresses[l] - base;
        outside |= difference | (last - difference);
        bits |= addresses[l];
    }
    return !(outside >> 63) && !(bits & (alignment - 1));
}

/* The lanes whose access of `bytes`, a power of two, is aligned and inside [base, base + size). */
EMU_INLINE uint32_t inside(uint32_t mask, const uint64_t addresses[32], uint64_t base,
                           uint64_t size, uint32_t bytes)
{
    if (size < bytes)
        return 0;
    uint64_t last = size - bytes;
    if (all_inside(addresses, base, last, bytes))
        return mask;
    uint32_t good = 0;
    for (int l = 0; l < 32; l++)
        good |= (uint32_t)((addresses[l] - base <= last) & !(addresses[l] & (bytes - 1))) << l;
    return good & mask;
}

/* The same, not inlined: the loop for a base of 0 is worth its own. */
__attribute__((noinline)) static uint32_t inside_from(uint32_t mask, const uint64_t addresses[32],
                                                      uint64_t base, uint64_t size, uint32_t bytes)
{
    return inside(mask, addresses, base, size, bytes);
}

enum { WRITTEN_WORD = BYTE_WRITTEN * 0x01010101 };

EMU_INLINE bool all_written(const uint8_t *state, uint32_t words)
{
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < words; i++) {
        uint32_t word;
        memcpy(&word, state + 4 * i, 4);
        wrong |= word ^ WRITTEN_WORD;
    }
    return wrong == 0;
}

/* No copy is under way into the bytes, or out of them. */
EMU_INLINE bool at_rest(const uint8_t *state, uint32_t words)
{
    uint32_t bits = 0;
    for (uint32_t i = 0; i < words; i++) {
        uint32_t word;
        memcpy(&word, state + 4 * i, 4);
        bits |= word & ~(uint32_t)WRITTEN_WORD;
    }
    return bits == 0;
}

/* ---- global ---- */

static const struct emu_allocation *allocation_at(struct emu_warp *warp, uint64_t address)
{
    const struct emu_allocation *last = warp->last_allocation;
    if (last && address - last->address < last->size)
        return last;
    const struct emu_allocation *found =
        emu_memory_find(warp->cta->cluster->launch->memory, address);
    if (!found || !found->data)
        return NULL;
    return warp->last_allocation = found;
}

/* Whether a weak access to whole words is ordered after all that went before; it is recorded. */
EMU_INLINE bool race_free(struct emu_warp *warp, int lane, struct emu_race_page *page,
                          uint32_t first, uint32_t words, uint64_t mark, bool writes, uint32_t line)
{
    for (uint32_t at = first; at < first + words; at++) {
        uint64_t last = emu_race_load(&page->writes[at]);
        if (last && ((mark & RACE_NONCOHERENT && last >> RACE_CLUSTER != RACE_AHEAD) ||
                     (!emu_race_settled(last, mark) && !emu_race_ordered(warp, lane, last))))
            return false;
        if (!writes) {
            emu_race_add_reader(page, at, mark);
            continue;
        }
        for (int i = 0; i < 2; i++) {
            uint64_t read = emu_race_load(&page->reads[i][at]);
            if (read && ((read & RACE_NONCOHERENT) ||
                         (!emu_race_settled(read, mark) && !emu_race_ordered(warp, lane, read))))
                return false;
        }
        emu_race_set_write(page, at, mark, line);
    }
    return true;
}

uint32_t emu_race_read_unwritten(struct emu_race_page *page, uint32_t at, uint64_t words,
                                 uint64_t mark)
{
    uint32_t most = RACE_PAGE_WORDS - at, i = 0;
    most = words < most ? (uint32_t)words : most;
    for (; i < most && !emu_race_load(&page->writes[at + i]); i++)
        emu_race_add_reader(page, at + i, mark);
    return i;
}

/* The lanes of `good` that do not race; strong accesses are left to emu_locate. */
static uint32_t race_lanes(struct emu_warp *warp, const struct emu_allocation *in, uint32_t good,
                           const uint64_t addresses[32], uint32_t words, uint32_t flags)
{
    if (flags & ACCESS_STRONG)
        return 0;
    const uint64_t mark = emu_race_mark(warp, 0, flags);
    const struct emu_launch *launch = warp->cta->cluster->launch;
    const uint32_t line = launch->proxies ? launch->program->code[warp->current->pc].line : 0;
    struct emu_race_page *page = NULL;
    uint64_t at_page = 0;
    for (uint32_t left = good; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        uint64_t word = (addresses[lane] - in->address) / 4;
        if (!page || word / RACE_PAGE_WORDS != at_page)
            page = emu_race_page_at(warp, in, word);
        at_page = word / RACE_PAGE_WORDS;
        uint64_t mine = mark | (uint64_t)lane << RACE_LANE;
        uint32_t first = word % RACE_PAGE_WORDS;
        if (!(flags & ACCESS_WRITE ? race_free(warp, lane, page, first, words, mine, true, line)
                                   : race_free(warp, lane, page, first, words, mine, false, 0)))
            good &= ~(1u << lane);
    }
    return good;
}

EMU_INLINE uint32_t global_lanes(struct emu_warp *warp, uint32_t mask, const uint64_t addresses[32],
                                 uint32_t words, uint32_t flags, struct emu_place places[32])
{
    const struct emu_allocation *in = allocation_at(warp, addresses[__builtin_ctz(mask)]);
    if (!in || ((flags & ACCESS_WRITE) && in->read_only))
        return 0;
    bool check = warp->cta->cluster->launch->checks & PTXGEN_CHECK_GLOBAL_INIT;
    uint32_t good = inside(mask, addresses, in->address, in->size, words * 4);
    for (uint32_t left = good; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        uint64_t offset = addresses[lane] - in->address;
        uint8_t *state = in->written + offset;
        places[lane] = (struct emu_place){in->data + offset, state, NULL, 0};
        if ((flags & ACCESS_READ) && check && !all_written(state, words))
            good &= ~(1u << lane);
        else if (flags & ACCESS_WRITE)
            memset(state, BYTE_WRITTEN, words * 4);
    }
    return emu_race_checked(warp) ? race_lanes(warp, in, good, addresses, words, flags) : good;
}

/* ---- shared ---- */

/* What a warp's lanes have in common. */
struct batch {
    const struct emu_warp *warp;
    struct emu_cells cells;
    uint32_t epoch, who; /* the mark that lane 0 leaves */
    uint32_t own;        /* the warp's bit among readers */
    uint32_t known;      /* whatever happened up to this epoch is ordered, whoever did it */
    bool tracks;         /* races are looked for */
    bool check_written;
    bool lands;      /* the bytes of an asynchronous copy, for which a place was kept */
    uint8_t written; /* state of bytes that are written */
};

EMU_INLINE struct batch batch_of(const struct emu_warp *warp, uint32_t flags)
{
    const struct emu_cta *cta = warp->cta;
    struct batch batch = {.warp = warp,
                          .tracks = cta->cells,
                          .epoch = warp->clock[warp->number],
                          .own = 1u << warp->index,
                          .lands = flags & ACCESS_ASYNC,
                          .written = flags & ACCESS_PENDING ? BYTE_PENDING : BYTE_WRITTEN};
    const uint8_t kind = flags & ACCESS_READ                       ? SHARED_READ
                         : flags & (ACCESS_PENDING | ACCESS_ASYNC) ? SHARED_COPY
                                                                   : SHARED_WRITE;
    const struct emu_mark mark = {
        .thread = (uint16_t)(warp->number * 32), .bytes = 15, .kind = kind & 7};
    batch.who = mark.who;
    if (batch.tracks)
        batch.cells = *cta->cells;
    uint32_t checks = cta->cluster->launch->checks;
    batch.check_written = checks & (PTXGEN_CHECK_SHARED_INIT | PTXGEN_CHECK_ASYNC |
                                    PTXGEN_CHECK_SHARED_BUFFERS | PTXGEN_CHECK_BARRIERS);
    batch.known = warp->others < batch.epoch ? warp->others : batch.epoch - 1;
    return batch;
}

/* Four words side by side, as most accesses of a lane have them. */
typedef uint32_t words4 __attribute__((vector_size(16)));

EMU_INLINE words4 load4(const uint32_t *at)
{
    words4 value;
    memcpy(&value, at, sizeof value);
    return value;
}

EMU_INLINE void fill(uint32_t *at, uint32_t value, uint32_t words)
{
    if (words == 4) {
        words4 all = {value, value, value, value};
        memcpy(at, &all, sizeof all);
        return;
    }
    for (uint32_t i = 0; i < words; i++)
        at[i] = value;
}

EMU_INLINE bool any_above(const uint32_t *at, uint32_t most, uint32_t words)
{
    uint32_t above = 0;
    if (words == 4) {
        uint64_t halves[2];
        words4 all = {most, most, most, most};
        words4 masks = (words4)(load4(at) > all);
        memcpy(halves, &masks, sizeof masks);
        return halves[0] | halves[1];
    }
    for (uint32_t i = 0; i < words; i++)
        above |= at[i] > most;
    return above;
}

EMU_INLINE uint32_t any_bit(const uint32_t *at, uint32_t words)
{
    uint32_t bits = 0;
    for (uint32_t i = 0; i < words; i++)
        bits |= at[i];
    return bits;
}

EMU_INLINE bool marks_ordered(const struct batch *batch, int lane, const struct emu_marks *marks,
                              uint32_t first, uint32_t words)
{
    if (!any_above(marks->epoch + first, batch->known, words))
        return true;
    for (uint32_t i = first; i < first + words; i++)
        if (!emu_is_ordered(batch->warp, lane, emu_mark_at(marks, i).thread, marks->epoch[i]))
            return false;
    return true;
}

/* Reads by several warps that are not all known, and late ones, are left to emu_locate. The kinds
 * of late ones have a bit in common. */
EMU_INLINE bool readers_ordered(const struct batch *batch, int lane, uint32_t first, uint32_t words)
{
    const struct emu_mark late = {.kind = SHARED_BULK_READ & SHARED_WGMMA_READ};
    const struct emu_marks *reads = &batch->cells.reads;
    if (any_bit(reads->who + first, words) & late.who)
        return false;
    if (!any_above(reads->epoch + first, batch->known, words))
        return true;
    for (uint32_t i = first; i < first + words; i++) {
        uint32_t readers = batch->cells.readers[i];
        if (reads->epoch[i] > batch->known &&
            ((readers & (readers - 1)) ||
             !emu_is_ordered(batch->warp, lane, emu_mark_at(reads, i).thread, reads->epoch[i])))
            return false;
    }
    return true;
}

EMU_INLINE uint32_t who_is(const struct batch *batch, int lane)
{
    const struct emu_mark one = {.thread = 1};
    return batch->who + (uint32_t)lane * one.who;
}

EMU_INLINE void set_marks(const struct batch *batch, const struct emu_marks *marks, int lane,
                          uint32_t first, uint32_t words)
{
    fill(marks->epoch + first, batch->epoch, words);
    fill(marks->who + first, who_is(batch, lane), words);
}

/* The warp is one of the words' readers, beside those of its CTA in the same epoch. */
EMU_INLINE void add_reader(const struct batch *batch, uint32_t first, uint32_t words)
{
    const struct emu_mark rank = {.thread = (uint16_t) ~(EMU_CTA_THREADS - 1)};
    const uint32_t *epochs = batch->cells.reads.epoch + first;
    const uint32_t *whos = batch->cells.reads.who + first;
    uint32_t *readers = batch->cells.readers + first;
    if (words == 4) {
        words4 same = (words4)(load4(epochs) == batch->epoch) &
                      (words4)(((load4(whos) ^ batch->who) & rank.who) == 0);
        words4 all = (load4(readers) & same) | batch->own;
        memcpy(readers, &all, sizeof all);
        return;
    }
    for (uint32_t i = 0; i < words; i++) {
        bool same = (epochs[i] == batch->epoch) & !((whos[i] ^ batch->who) & rank.who);
        readers[i] = batch->own | (same ? readers[i] : 0);
    }
}

EMU_INLINE bool read_words(const struct batch *batch, int lane, uint8_t *state, uint32_t first,
                           uint32_t words)
{
    if (batch->check_written && !all_written(state, words))
        return false;
    if (!batch->tracks)
        return true;
    if (!marks_ordered(batch, lane, &batch->cells.writes, first, words))
        return false;
    add_reader(batch, first, words);
    set_marks(batch, &batch->cells.reads, lane, first, words);
    return true;
}

/* What lands was in order when it was announced, and its place is kept since. */
EMU_INLINE bool write_words(const struct batch *batch, int lane, uint8_t *state, uint32_t first,
                            uint32_t words)
{
    if (!batch->lands && !at_rest(state, words))
        return false;
    if (batch->tracks) {
        if (!batch->lands && (!marks_ordered(batch, lane, &batch->cells.writes, first, words) ||
                              !readers_ordered(batch, lane, first, words)))
            return false;
        set_marks(batch, &batch->cells.writes, lane, first, words);
    }
    memset(state, batch->written, words * 4);
    return true;
}

EMU_INLINE uint32_t each_of_shared(struct batch batch, uint32_t good, const uint64_t addresses[32],
                                   uint32_t words, bool read, bool tracks,
                                   struct emu_place places[32])
{
    struct emu_cta *cta = batch.warp->cta;
    batch.tracks = tracks;
    for (uint32_t left = good; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        uint32_t offset = (uint32_t)addresses[lane];
        uint8_t *state = cta->shared_state + offset;
        bool fine = read ? read_words(&batch, lane, state, offset / 4, words)
                         : write_words(&batch, lane, state, offset / 4, words);
        places[lane] = (struct emu_place){cta->shared + offset, state, cta, offset};
        good &= ~((uint32_t)!fine << lane);
    }
    return good;
}

EMU_INLINE uint32_t shared_lanes(struct emu_warp *warp, uint32_t mask, const uint64_t addresses[32],
                                 uint32_t words, uint32_t flags, struct emu_place places[32])
{
    struct emu_cta *cta = warp->cta;
    const bool read = flags & ACCESS_READ;
    struct batch batch = batch_of(warp, flags);
    const struct emu_reach reach = emu_buffer_reach(cta->cluster->launch, words * 4, flags);
    uint32_t good = reach.at ? inside_from(mask, addresses, reach.at, reach.bytes, words * 4)
                             : inside(mask, addresses, 0, reach.bytes, words * 4);
    return batch.tracks ? each_of_shared(batch, good, addresses, words, read, true, places)
                        : each_of_shared(batch, good, addresses, words, read, false, places);
}

/* ---- sizes that are worth a loop of their own ---- */

EMU_INLINE uint32_t plain_lanes(struct emu_warp *warp, uint32_t mask, bool global,
                                const uint64_t addresses[32], uint32_t words, uint32_t flags,
                                struct emu_place places[32])
{
    return global ? global_lanes(warp, mask, addresses, words, flags, places)
                  : shared_lanes(warp, mask, addresses, words, flags, places);
}

static bool all_global(uint32_t mask, const uint64_t addresses[32])
{
    for (uint32_t left = mask; left; left &= left - 1)
        if (addresses[__builtin_ctz(left)] < EMU_GLOBAL_BASE)
            return false;
    return true;
}

uint32_t emu_locate_plain(struct emu_warp *warp, uint32_t mask, enum emu_space space,
                          const uint64_t addresses[32], uint32_t bytes, uint32_t flags,
                          struct emu_place places[32])
{
    bool global = space == SPACE_GLOBAL || space == SPACE_CONST ||
                  (space == SPACE_GENERIC && all_global(mask, addresses));
    bool both = (flags & ACCESS_READ) && (flags & ACCESS_WRITE);
    if (!mask || both || (!global && (space != SPACE_SHARED || (flags & ACCESS_STRONG))))
        return 0;
    switch (bytes) {
    case 4: return plain_lanes(warp, mask, global, addresses, 1, flags, places);
    case 8: return plain_lanes(warp, mask, global, addresses, 2, flags, places);
    case 16: return plain_lanes(warp, mask, global, addresses, 4, flags, places);
    default: return 0;
    }
}
