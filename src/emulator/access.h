/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a warp's addresses to host memory, with every check on the way: state space, bounds,
 * alignment, initialisation, pending copies, races, and the profile's counts.
 */
#ifndef PTXGEN_EMULATOR_ACCESS_H
#define PTXGEN_EMULATOR_ACCESS_H

#include "src/emulator/machine.h"

enum emu_access_flags {
    ACCESS_READ = 1,
    ACCESS_WRITE = 2,
    ACCESS_STRONG = 4,   /* volatile, relaxed, acquire, release, atomic */
    ACCESS_ASYNC = 8,    /* the landing of an asynchronous copy */
    ACCESS_STORE = 16,   /* by st, whose registers tell whether it changes anything */
    ACCESS_PENDING = 32, /* announced: an asynchronous copy into or out of the place begins */
    ACCESS_LATE = 64,    /* a read that lasts until its wgmma is waited for */
    ACCESS_ACQUIRE = 128,
    ACCESS_RELEASE = 256,
    ACCESS_NONCOHERENT = 512,  /* a read by ld.global.nc */
    ACCESS_REDUCTION = 1024,   /* asynchronous reductions meet in one place */
    ACCESS_ASYNC_PROXY = 2048, /* by a bulk copy or wgmma (proxy.h) */
    ACCESS_SCOPE_SHIFT = 12,   /* the scope of a strong access, three bits from this one on */
    ACCESS_HOME_SHIFT = 16     /* shared_buffer.h: where the address points */
};

/* Where one lane's bytes are. */
struct emu_place {
    uint8_t *data;
    uint8_t *state;        /* a byte per byte; NULL for parameters */
    struct emu_cta *owner; /* of shared memory, else NULL */
    uint32_t offset;       /* in shared memory */
};

/* base + offset of every lane; 32-bit registers wrap. */
void emu_addresses(struct emu_warp *warp, struct emu_src base, int64_t offset,
                   uint64_t addresses[32]);

/* The state space that an address is in; generic ones are translated, others kept. */
enum emu_space emu_window(enum emu_space space, uint64_t *address);

/* One lane's access, all checks done; faults do not return. */
struct emu_place emu_locate(struct emu_warp *warp, const struct emu_insn *insn, int lane,
                            enum emu_space space, uint64_t address, uint32_t bytes,
                            uint32_t alignment, uint32_t flags);

/* All lanes of `mask`. A write marks its bytes as written. */
void emu_locate_lanes(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask,
                      enum emu_space space, const uint64_t addresses[32], uint32_t bytes,
                      uint32_t alignment, uint32_t flags, struct emu_place places[32]);

/* The same without counting it in the profile. */
void emu_locate_uncounted(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask,
                          enum emu_space space, const uint64_t addresses[32], uint32_t bytes,
                          uint32_t alignment, uint32_t flags, struct emu_place places[32]);

/*
 * The lanes of `mask` whose access is plain and plainly right, all together: whole words, inside
 * one allocation or the CTA's own shared memory, initialised, ordered after what went before.
 * Returns those lanes, for whom places are filled in and everything is recorded; the others are
 * for emu_locate, which says what is wrong with them, if anything.
 */
uint32_t emu_locate_plain(struct emu_warp *warp, uint32_t mask, enum emu_space space,
                          const uint64_t addresses[32], uint32_t bytes, uint32_t flags,
                          struct emu_place places[32]);

/* The flags of a ld, st, atom or red that say how it is ordered. */
uint32_t emu_ordering_flags(const struct emu_insn *insn);

/* Faults in a launch without clusters, where an H100 takes an asynchronous operation on shared
 * memory of the cluster for an illegal instruction. */
void emu_need_cluster(struct emu_warp *warp, const struct emu_insn *insn, int lane);

/* Whether st would change the bytes at `at` (exec_memory.c). */
bool emu_store_changes(struct emu_warp *warp, const struct emu_insn *insn, int lane,
                       const uint8_t *at);

/* Which check an access that races falls under: `check`, or that of equal stores for a store that
 * changes nothing; NONE when these are not looked for. */
enum ptxgen_emulator_check emu_race_kind(struct emu_warp *warp, const struct emu_insn *insn,
                                         int lane, bool store, const uint8_t *at,
                                         enum ptxgen_emulator_check check);

/* What a report of such a store adds. */
#define EMU_EQUAL_STORE "; it stores what is there, which does not make it ordered"

/* Shared memory of the CTA that a shared address names. */
struct emu_cta *emu_shared_owner(struct emu_warp *warp, const struct emu_insn *insn, int lane,
                                 uint64_t address, uint32_t *offset);

#endif
