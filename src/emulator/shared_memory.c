/* SPDX-License-Identifier: Apache-2.0 */
#include "src/emulator/shared_memory.h"
#include "src/emulator/access.h"

void emu_clock_join(struct emu_clock *into, const struct emu_clock *from, uint32_t own)
{
    for (uint32_t w = 0; w < EMU_MAX_WARPS; w++)
        if (w != own && from->epoch[w] > into->epoch[w])
            into->epoch[w] = from->epoch[w];
}

void emu_clock_release(struct emu_warp *warp, struct emu_clock *to)
{
    emu_clock_join(to, &warp->clock, EMU_MAX_WARPS);
    warp->clock.epoch[warp->index]++;
}

void emu_clock_acquire(struct emu_warp *warp, const struct emu_clock *from)
{
    uint32_t *own = &warp->clock.epoch[warp->index];
    emu_clock_join(&warp->clock, from, warp->index);
    if (from->epoch[warp->index] >= *own) /* the warp's other lanes published in this epoch */
        *own = from->epoch[warp->index] + 1;
}

/* A store that only confirms what is there is no race. */
static void report(const struct emu_shared_access *access, uint32_t offset, uint32_t other,
                   const char *kind)
{
    const uint32_t *block = access->warp->cta->cluster->launch->block;
    if (access->store && !emu_store_changes(access->warp, access->insn, access->lane, access->data))
        return;
    emu_fault_at(access->warp, access->insn, access->lane,
                 other / 32 == access->warp->index ? PTXGEN_CHECK_WARP_RACES : PTXGEN_CHECK_RACES,
                 offset,
                 "race in shared memory: this %s thread (%u,%u,%u) without a barrier between them",
                 kind, other % block[0], other / block[0] % block[1], other / block[0] / block[1]);
}

static inline bool ordered(const struct emu_shared_access *access, const struct emu_mark *mark)
{
    return emu_is_ordered(access->warp, access->lane, mark->thread, mark->epoch);
}

/* A write against the readers of the word: all of them read in one epoch. Readers of other warps
 * come first, for a race between warps is the graver report. */
static void check_readers(const struct emu_shared_access *access, const struct emu_mark *read,
                          uint32_t readers, uint32_t offset)
{
    uint32_t own = access->warp->index;
    if (read->thread / 32 != own && !ordered(access, read))
        report(access, offset, read->thread, "write follows a read by");
    for (uint32_t left = readers & ~(1u << own); left; left &= left - 1) {
        uint32_t other = (uint32_t)__builtin_ctz(left);
        if (read->epoch > access->warp->clock.epoch[other])
            report(access, offset, other * 32, "write follows a read by the warp of");
    }
    if (!ordered(access, read))
        report(access, offset, read->thread, "write follows a read by");
}

static void check_writer(const struct emu_shared_access *access, const struct emu_mark *write,
                         uint8_t bytes, uint32_t offset, const char *kind)
{
    if ((write->bytes & bytes) && !(write->strong && access->strong) && !ordered(access, write))
        report(access, offset, write->thread, kind);
}

/* `same`: the mark is of this access's epoch, and adds up. */
static void set_mark(const struct emu_shared_access *access, struct emu_mark *mark, uint8_t bytes,
                     bool same)
{
    mark->bytes = same ? mark->bytes | bytes : bytes;
    mark->strong = access->strong && (!same || mark->strong);
    mark->thread = (uint16_t)(access->warp->index * 32 + (uint32_t)access->lane);
    mark->epoch = access->warp->clock.epoch[access->warp->index];
}

static void track_write(const struct emu_shared_access *access, const struct emu_cells *cells,
                        uint32_t word, uint8_t bytes, uint32_t offset)
{
    struct emu_mark *write = &cells->writes[word];
    const struct emu_mark *read = &cells->reads[word];
    check_writer(access, write, bytes, offset, "write follows a write by");
    if ((read->bytes & bytes) && !(read->strong && access->strong))
        check_readers(access, read, cells->readers[word], offset);
    uint32_t thread = access->warp->index * 32 + (uint32_t)access->lane;
    set_mark(access, write, bytes,
             write->thread == thread &&
                 write->epoch == access->warp->clock.epoch[access->warp->index]);
}

static void track_read(const struct emu_shared_access *access, const struct emu_cells *cells,
                       uint32_t word, uint8_t bytes, uint32_t offset)
{
    struct emu_mark *read = &cells->reads[word];
    check_writer(access, &cells->writes[word], bytes, offset, "read follows a write by");
    uint32_t own = 1u << access->warp->index;
    bool same = read->epoch == access->warp->clock.epoch[access->warp->index] && read->bytes;
    cells->readers[word] = same ? cells->readers[word] | own : own;
    set_mark(access, read, bytes, same);
}

void emu_shared_track(const struct emu_shared_access *access, struct emu_cta *owner,
                      uint32_t offset)
{
    uint32_t end = offset + access->bytes;
    for (uint32_t word = offset / 4; word * 4 < end; word++) {
        uint32_t first = word * 4 < offset ? offset - word * 4 : 0;
        uint32_t last = end - word * 4 < 4 ? end - word * 4 : 4;
        uint8_t bytes = (uint8_t)((1u << last) - (1u << first));
        if (access->write)
            track_write(access, owner->cells, word, bytes, word * 4 + first);
        else
            track_read(access, owner->cells, word, bytes, word * 4 + first);
    }
}
