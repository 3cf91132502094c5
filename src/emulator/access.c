/* SPDX-License-Identifier: Apache-2.0 */
#include "src/emulator/access.h"
#include "src/emulator/global_race.h"
#include "src/emulator/layout.h"
#include "src/emulator/memory_order.h"
#include "src/emulator/profile.h"
#include "src/emulator/proxy.h"
#include "src/emulator/shared_buffer.h"
#include "src/emulator/shared_memory.h"

#include <string.h>

void emu_addresses(struct emu_warp *warp, struct emu_src base, int64_t offset,
                   uint64_t addresses[32])
{
    const uint8_t *row = emu_row(warp, base);
    if (base.bytes == 8) {
        const uint64_t *wide = (const uint64_t *)(const void *)row;
        for (int l = 0; l < 32; l++)
            addresses[l] = wide[l] + (uint64_t)offset;
    } else {
        const uint32_t *narrow = (const uint32_t *)(const void *)row;
        for (int l = 0; l < 32; l++)
            addresses[l] = narrow[l] + (uint32_t)offset;
    }
}

enum emu_space emu_window(enum emu_space space, uint64_t *address)
{
    if (space != SPACE_GENERIC)
        return space == SPACE_CONST ? SPACE_GLOBAL : space;
    static const enum emu_space spaces[] = {SPACE_GLOBAL, SPACE_SHARED_CLUSTER, SPACE_LOCAL,
                                            SPACE_PARAM};
    uint64_t window = *address >> EMU_WINDOW_SHIFT;
    if (window == 0 || window > 3)
        return SPACE_GLOBAL;
    *address &= ((uint64_t)1 << EMU_WINDOW_SHIFT) - 1;
    return spaces[window];
}

static _Noreturn void misaligned(struct emu_warp *warp, const struct emu_insn *insn, int lane,
                                 uint64_t address, uint32_t alignment)
{
    emu_fault_at(warp, insn, lane, PTXGEN_CHECK_ALIGNMENT, address,
                 "the address is not a multiple of %u", alignment);
}

/* Bytes [0, bytes) of a shadow that all hold `value`: the first, and each what the one before does.
 */
static inline bool all_bytes(const uint8_t *state, uint32_t bytes, uint8_t value)
{
    return !bytes || (state[0] == value && memcmp(state, state + 1, bytes - 1) == 0);
}

static inline bool all_written(const uint8_t *state, uint32_t bytes)
{
    uint64_t wide[2];
    uint32_t word;
    switch (bytes) {
    case 4: memcpy(&word, state, 4); return word == 0x01010101u;
    case 8: memcpy(wide, state, 8); return wide[0] == 0x0101010101010101u;
    case 16:
        memcpy(wide, state, 16);
        return (wide[0] & wide[1]) == 0x0101010101010101u && wide[0] == wide[1];
    default: return all_bytes(state, bytes, BYTE_WRITTEN);
    }
}

/* ---- global ---- */

static _Noreturn void outside_global(struct emu_warp *warp, const struct emu_insn *insn, int lane,
                                     uint64_t address, uint32_t bytes)
{
    const struct emu_memory *memory = warp->cta->cluster->launch->memory;
    const struct emu_allocation *at = emu_memory_find(memory, address);
    if (at && !at->data)
        emu_fault_at(warp, insn, lane, PTXGEN_CHECK_BOUNDS, address,
                     "use after free: the allocation of %llu bytes at 0x%llx has been freed",
                     (unsigned long long)at->size, (unsigned long long)at->address);
    if (at)
        emu_fault_at(warp, insn, lane, PTXGEN_CHECK_BOUNDS, address,
                     "%u bytes reach past the end of the allocation of %llu bytes at 0x%llx", bytes,
                     (unsigned long long)at->size, (unsigned long long)at->address);
    const struct emu_allocation *below = NULL;
    for (size_t i = 0; i < memory->count && memory->list[i]->address <= address; i++)
        below = memory->list[i];
    if (below)
        emu_fault_at(warp, insn, lane, PTXGEN_CHECK_BOUNDS, address,
                     "out of bounds: no allocation there; the nearest below, %llu bytes at 0x%llx, "
                     "ends %llu bytes before",
                     (unsigned long long)below->size, (unsigned long long)below->address,
                     (unsigned long long)(address - below->address - below->size));
    emu_fault_at(warp, insn, lane, PTXGEN_CHECK_BOUNDS, address,
                 "out of bounds: no allocation holds this address");
}

static inline bool inside(const struct emu_allocation *allocation, uint64_t address, uint32_t bytes)
{
    uint64_t offset = address - allocation->address;
    return offset < allocation->size && bytes <= allocation->size - offset;
}

static const struct emu_allocation *allocation_of(struct emu_warp *warp,
                                                  const struct emu_insn *insn, int lane,
                                                  uint64_t address, uint32_t bytes)
{
    const struct emu_allocation *allocation = warp->last_allocation;
    if (allocation && inside(allocation, address, bytes))
        return allocation;
    allocation = emu_memory_find(warp->cta->cluster->launch->memory, address);
    if (!allocation || !allocation->data || !inside(allocation, address, bytes))
        outside_global(warp, insn, lane, address, bytes);
    warp->last_allocation = allocation;
    return allocation;
}

static struct emu_place locate_global(struct emu_warp *warp, const struct emu_insn *insn, int lane,
                                      uint64_t address, uint32_t bytes, uint32_t flags)
{
    const struct emu_allocation *allocation = allocation_of(warp, insn, lane, address, bytes);
    uint64_t offset = address - allocation->address;
    struct emu_place place = {allocation->data + offset, allocation->written + offset, NULL, 0};
    if ((flags & ACCESS_READ) && !all_written(place.state, bytes) &&
        (warp->cta->cluster->launch->checks & PTXGEN_CHECK_GLOBAL_INIT))
        emu_fault_at(warp, insn, lane, PTXGEN_CHECK_GLOBAL_INIT, address,
                     "global memory is read, but was never written");
    if ((flags & ACCESS_WRITE) && allocation->read_only)
        emu_fault_at(warp, insn, lane, PTXGEN_CHECK_BOUNDS, address,
                     "a .const variable is written");
    if ((flags & (ACCESS_READ | ACCESS_WRITE)) && emu_race_checked(warp)) {
        struct emu_race_access access = {warp, insn, lane, address, bytes, flags, place.data, 0};
        emu_race_track(&access, allocation);
    }
    if (flags & ACCESS_WRITE)
        memset(place.state, BYTE_WRITTEN, bytes);
    return place;
}

uint32_t emu_ordering_flags(const struct emu_insn *insn)
{
    uint32_t flags = insn->noncoherent ? ACCESS_NONCOHERENT : 0;
    if (!insn->strong)
        return flags;
    if (insn->op == ORDER_ACQUIRE || insn->op == ORDER_BOTH)
        flags |= ACCESS_ACQUIRE;
    if (insn->op == ORDER_RELEASE || insn->op == ORDER_BOTH)
        flags |= ACCESS_RELEASE;
    return flags | ACCESS_STRONG | (uint32_t)insn->scope << ACCESS_SCOPE_SHIFT;
}

void emu_need_cluster(struct emu_warp *warp, const struct emu_insn *insn, int lane)
{
    if (!warp->cta->cluster->launch->explicit_cluster)
        emu_fault(
            warp, insn, lane, PTXGEN_CHECK_OPERANDS,
            "asynchronous operations on shared memory of the cluster need a launch in clusters "
            "(of one CTA where there are no others), or an H100 takes them for illegal");
}

/* ---- shared ---- */

struct emu_cta *emu_shared_owner(struct emu_warp *warp, const struct emu_insn *insn, int lane,
                                 uint64_t address, uint32_t *offset)
{
    struct emu_cta *cta = warp->cta;
    uint32_t rank = (uint32_t)(address >> EMU_RANK_SHIFT);
    *offset = (uint32_t)address & EMU_SHARED_OFFSET_MASK;
    if (rank == 0)
        return cta;
    if (address >> 32 || rank > cta->cluster->cta_count)
        emu_fault_at(warp, insn, lane, PTXGEN_CHECK_BOUNDS, address,
                     "out of bounds: the CTA has %u bytes of shared memory", cta->shared_bytes);
    return &cta->cluster->ctas[rank - 1];
}

static _Noreturn void under_way(struct emu_warp *warp, const struct emu_insn *insn, int lane,
                                uint64_t address, bool read, const char *what)
{
    emu_fault_at(
        warp, insn, lane, PTXGEN_CHECK_ASYNC, address,
        "shared memory is %s while an asynchronous %s it is under way: its wait is missing",
        read ? "read" : "written", what);
}

/* Bytes that are not plainly written: whose fault is it, if any? */
static void check_state(struct emu_warp *warp, const struct emu_insn *insn, int lane,
                        uint64_t address, const uint8_t *state, uint32_t bytes, uint32_t flags)
{
    uint32_t checks = warp->cta->cluster->launch->checks;
    bool read = flags & ACCESS_READ, write = flags & ACCESS_WRITE;
    bool async = checks & PTXGEN_CHECK_ASYNC;
    for (uint32_t i = 0; i < bytes; i++) {
        if (state[i] == BYTE_PENDING && async)
            under_way(warp, insn, lane, address, read, "copy into");
        if (state[i] == BYTE_SOURCE && write && async)
            under_way(warp, insn, lane, address, false, "copy out of");
        if (state[i] >= BYTE_REDUCED && async && !(flags & ACCESS_REDUCTION))
            under_way(warp, insn, lane, address, read, "reduction into");
        if (state[i] == BYTE_OBJECT && (checks & PTXGEN_CHECK_BARRIERS))
            emu_fault_at(warp, insn, lane, PTXGEN_CHECK_BARRIERS, address,
                         "shared memory that holds an mbarrier object is %s: mbarrier.inval is "
                         "missing",
                         read ? "read" : "written");
        if (state[i] == BYTE_UNWRITTEN && read && (checks & PTXGEN_CHECK_SHARED_INIT))
            emu_fault_at(warp, insn, lane, PTXGEN_CHECK_SHARED_INIT, address,
                         "shared memory is read, but was never written");
    }
}

static enum emu_shared_kind kind_of(uint32_t flags)
{
    bool strong = flags & ACCESS_STRONG;
    if (!(flags & ACCESS_WRITE))
        return flags & ACCESS_LATE      ? SHARED_WGMMA_READ
               : flags & ACCESS_PENDING ? SHARED_BULK_READ
               : strong                 ? SHARED_STRONG_READ
                                        : SHARED_READ;
    if (flags & (ACCESS_PENDING | ACCESS_ASYNC))
        return SHARED_COPY;
    return flags & ACCESS_READ ? SHARED_ATOMIC : strong ? SHARED_STRONG_WRITE : SHARED_WRITE;
}

/* More reductions than a byte counts are as many as it does. */
static uint8_t count_up(uint8_t state)
{
    return state < UINT8_MAX ? state + 1 : state;
}

/* What the access leaves of the bytes' state. */
static void set_state(uint8_t *state, uint32_t bytes, uint32_t flags)
{
    bool pending = flags & ACCESS_PENDING;
    if (flags & ACCESS_REDUCTION)
        for (uint32_t i = 0; i < bytes; i++)
            state[i] = state[i] < BYTE_REDUCED ? BYTE_REDUCED + 1 : count_up(state[i]);
    else if (flags & ACCESS_WRITE)
        memset(state, pending ? BYTE_PENDING : BYTE_WRITTEN, bytes);
    else if (pending)
        memset(state, BYTE_SOURCE, bytes);
}

static struct emu_place locate_shared(struct emu_warp *warp, const struct emu_insn *insn, int lane,
                                      uint64_t address, uint32_t bytes, uint32_t flags)
{
    uint32_t offset;
    struct emu_cta *owner = emu_shared_owner(warp, insn, lane, address, &offset);
    if (offset > owner->shared_bytes || bytes > owner->shared_bytes - offset)
        emu_fault_at(warp, insn, lane, PTXGEN_CHECK_BOUNDS, address,
                     "out of bounds: the CTA has %u bytes of shared memory", owner->shared_bytes);
    if (owner != warp->cta && owner->live_threads == 0)
        emu_fault_at(warp, insn, lane, PTXGEN_CHECK_BOUNDS, address,
                     "shared memory of CTA %u of the cluster, which has exited", owner->rank);
    emu_buffer_check(warp, insn, lane, address, bytes, flags);
    struct emu_place place = {owner->shared + offset, owner->shared_state + offset, owner, offset};
    if (!(flags & ACCESS_ASYNC) && !all_written(place.state, bytes))
        check_state(warp, insn, lane, address, place.state, bytes, flags);
    if (owner->generic)
        emu_proxy_shared(warp, insn, lane, &place, bytes, flags);
    if (owner->cells) {
        struct emu_shared_access access = {.warp = warp,
                                           .insn = insn,
                                           .lane = lane,
                                           .bytes = bytes,
                                           .kind = kind_of(flags),
                                           .scope = flags >> ACCESS_SCOPE_SHIFT & 7,
                                           .store = flags & ACCESS_STORE,
                                           .data = place.data};
        emu_shared_track(&access, owner, offset);
    }
    set_state(place.state, bytes, flags);
    return place;
}

/* ---- local and parameters ---- */

static struct emu_place locate_local(struct emu_warp *warp, const struct emu_insn *insn, int lane,
                                     uint64_t address, uint32_t bytes, uint32_t flags)
{
    const struct emu_launch *launch = warp->cta->cluster->launch;
    uint32_t size = launch->program->local_bytes;
    if (address > size || bytes > size - address)
        emu_fault_at(warp, insn, lane, PTXGEN_CHECK_BOUNDS, address,
                     "out of bounds: the thread has %u bytes of local memory", size);
    size_t at = (size_t)lane * size + (size_t)address;
    struct emu_place place = {warp->local + at, warp->local_state + at, NULL, 0};
    if ((flags & ACCESS_READ) && !all_written(place.state, bytes) &&
        (launch->checks & PTXGEN_CHECK_SHARED_INIT))
        emu_fault_at(warp, insn, lane, PTXGEN_CHECK_SHARED_INIT, address,
                     "local memory is read, but was never written");
    if (flags & ACCESS_WRITE)
        memset(place.state, BYTE_WRITTEN, bytes);
    return place;
}

static struct emu_place locate_param(struct emu_warp *warp, const struct emu_insn *insn, int lane,
                                     uint64_t address, uint32_t bytes, uint32_t flags)
{
    const struct emu_launch *launch = warp->cta->cluster->launch;
    uint32_t size = launch->program->parameter_bytes;
    if (address > size || bytes > size - address)
        emu_fault_at(warp, insn, lane, PTXGEN_CHECK_BOUNDS, address,
                     "out of bounds: the kernel has %u bytes of parameters", size);
    if (flags & ACCESS_WRITE)
        emu_fault_at(warp, insn, lane, PTXGEN_CHECK_BOUNDS, address,
                     "a kernel parameter is written");
    union {
        const uint8_t *constant;
        uint8_t *plain;
    } data = {launch->parameters + address};
    return (struct emu_place){data.plain, NULL, NULL, 0};
}

struct emu_place emu_locate(struct emu_warp *warp, const struct emu_insn *insn, int lane,
                            enum emu_space space, uint64_t address, uint32_t bytes,
                            uint32_t alignment, uint32_t flags)
{
    space = emu_window(space, &address);
    if (address & (alignment - 1))
        misaligned(warp, insn, lane, address, alignment);
    switch (space) {
    case SPACE_GLOBAL: return locate_global(warp, insn, lane, address, bytes, flags);
    case SPACE_SHARED:
    case SPACE_SHARED_CLUSTER: return locate_shared(warp, insn, lane, address, bytes, flags);
    case SPACE_LOCAL: return locate_local(warp, insn, lane, address, bytes, flags);
    default: return locate_param(warp, insn, lane, address, bytes, flags);
    }
}

void emu_locate_uncounted(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask,
                          enum emu_space space, const uint64_t addresses[32], uint32_t bytes,
                          uint32_t alignment, uint32_t flags, struct emu_place places[32])
{
    uint32_t plain = emu_locate_plain(warp, mask, space, addresses, bytes, flags, places);
    if ((flags & ACCESS_WRITE) && space == SPACE_SHARED && warp->cta->generic)
        emu_proxy_note(insn, plain, places, bytes);
    for (uint32_t left = mask & ~plain; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        places[lane] =
            emu_locate(warp, insn, lane, space, addresses[lane], bytes, alignment, flags);
    }
}

void emu_locate_lanes(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask,
                      enum emu_space space, const uint64_t addresses[32], uint32_t bytes,
                      uint32_t alignment, uint32_t flags, struct emu_place places[32])
{
    if (warp->worker->counters)
        emu_count_access(warp, insn, mask, space, addresses, bytes);
    emu_locate_uncounted(warp, insn, mask, space, addresses, bytes, alignment, flags, places);
}
