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

/* Whether an access of `thread` in `epoch` happened before what the warp does now. */
static inline bool ordered(const struct emu_shared_access *access, uint32_t thread, uint32_t epoch)
{
    const struct emu_warp *warp = access->warp;
    uint32_t other = thread / 32;
    if (other == warp->index)
        return (int)(thread % 32) == access->lane || epoch < warp->clock.epoch[other] ||
               !(warp->cta->cluster->launch->checks & PTXGEN_CHECK_WARP_RACES);
    return epoch <= warp->clock.epoch[other];
}

/* A write against the readers of the word: all of them read in one epoch. Readers of other warps
 * come first, for a race between warps is the graver report. */
static void check_readers(const struct emu_shared_access *access, const struct emu_cell *cell,
                          uint32_t offset)
{
    uint32_t own = access->warp->index, reader = cell->read_thread;
    if (reader / 32 != own && !ordered(access, reader, cell->read_epoch))
        report(access, offset, reader, "write follows a read by");
    for (uint32_t left = cell->read_warps & ~(1u << own); left; left &= left - 1) {
        uint32_t other = (uint32_t)__builtin_ctz(left);
        if (cell->read_epoch > access->warp->clock.epoch[other])
            report(access, offset, other * 32, "write follows a read by the warp of");
    }
    if (!ordered(access, reader, cell->read_epoch))
        report(access, offset, reader, "write follows a read by");
}

static void track_write(const struct emu_shared_access *access, struct emu_cell *cell,
                        uint8_t bytes, uint32_t offset)
{
    uint16_t thread = (uint16_t)(access->warp->index * 32 + (uint32_t)access->lane);
    uint32_t epoch = access->warp->clock.epoch[access->warp->index];
    if ((cell->write_bytes & bytes) && !(cell->write_strong && access->strong) &&
        !ordered(access, cell->write_thread, cell->write_epoch))
        report(access, offset, cell->write_thread, "write follows a write by");
    if ((cell->read_bytes & bytes) && !(cell->read_strong && access->strong))
        check_readers(access, cell, offset);
    bool same = cell->write_thread == thread && cell->write_epoch == epoch;
    cell->write_bytes = same ? cell->write_bytes | bytes : bytes;
    cell->write_strong = access->strong && (!same || cell->write_strong);
    cell->write_thread = thread;
    cell->write_epoch = epoch;
}

static void track_read(const struct emu_shared_access *access, struct emu_cell *cell, uint8_t bytes,
                       uint32_t offset)
{
    uint32_t epoch = access->warp->clock.epoch[access->warp->index];
    if ((cell->write_bytes & bytes) && !(cell->write_strong && access->strong) &&
        !ordered(access, cell->write_thread, cell->write_epoch))
        report(access, offset, cell->write_thread, "read follows a write by");
    uint32_t own = 1u << access->warp->index;
    bool same = cell->read_epoch == epoch && cell->read_bytes;
    cell->read_warps = same ? cell->read_warps | own : own;
    cell->read_bytes = same ? cell->read_bytes | bytes : bytes;
    cell->read_strong = access->strong && (!same || cell->read_strong);
    cell->read_thread = (uint16_t)(access->warp->index * 32 + (uint32_t)access->lane);
    cell->read_epoch = epoch;
}

void emu_shared_track(const struct emu_shared_access *access, struct emu_cta *owner,
                      uint32_t offset)
{
    uint32_t end = offset + access->bytes;
    for (uint32_t word = offset / 4; word * 4 < end; word++) {
        uint32_t first = word * 4 < offset ? offset - word * 4 : 0;
        uint32_t last = end - word * 4 < 4 ? end - word * 4 : 4;
        uint8_t bytes = (uint8_t)((1u << last) - (1u << first));
        struct emu_cell *cell = &owner->cells[word];
        if (access->write)
            track_write(access, cell, bytes, word * 4 + first);
        else
            track_read(access, cell, bytes, word * 4 + first);
    }
}
