/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asynchronous copies under way. Their bytes are read when they are issued and held back until the
 * latest moment that the ISA allows: the wait that makes them visible. Until then the
 * destination counts as pending, and touching it is a fault.
 */
#ifndef PTXGEN_EMULATOR_ASYNC_H
#define PTXGEN_EMULATOR_ASYNC_H

#include "src/emulator/machine.h"
#include "src/emulator/mbarrier.h"

enum emu_copy_kind {
    COPY_LANES,  /* cp.async: up to 16 bytes for each lane */
    COPY_ARRIVE, /* cp.async.mbarrier.arrive: an arrival behind the lanes' earlier copies */
    COPY_IN,     /* bulk, to shared memory, counted by an mbarrier */
    COPY_OUT     /* bulk, to global memory, in a bulk group */
};

struct emu_copy_lane {
    uint32_t offset, group; /* in shared memory; the lane's group that it belongs to */
    uint8_t data[16];
};

struct emu_run {
    uint64_t to;
    uint32_t at, bytes; /* in data */
};

struct emu_copy {
    struct emu_copy *next;
    enum emu_copy_kind kind;
    const struct emu_insn *insn;
    /* COPY_LANES and COPY_ARRIVE, in a warp's queue; offset is the mbarrier's for ARRIVE */
    uint32_t mask, bytes;
    struct emu_copy_lane *lanes; /* 32 */
    /* COPY_IN and COPY_OUT, in the cluster's queue */
    struct emu_warp *issuer;
    int lane;
    uint32_t epoch, group;
    uint32_t fenced[2];  /* proxy.h: of the issuer's epochs when it was issued */
    struct emu_cta *cta; /* whose shared memory */
    uint32_t offset;
    struct emu_cta *mbarrier_cta;
    uint32_t mbarrier;
    uint32_t transaction; /* bytes that the mbarrier counts */
    bool reduces;
    uint8_t *source;      /* state of the bytes in shared memory that are read; NULL: free again */
    uint8_t op, type;     /* enum emu_atomic, enum emu_type */
    struct emu_run *runs; /* COPY_OUT: where the data goes */
    uint32_t run_count;
    uint8_t *data;
};

void emu_copies_free(struct emu_copy **list);
/* A copy at the end of the list, with `bytes` of data and `runs` runs; NULL without memory. */
struct emu_copy *emu_copy_add(struct emu_copy **list, enum emu_copy_kind kind, size_t bytes,
                              size_t runs);

/* cp.async groups of lanes `mask` that are older than the newest `keep`; ~0 keeps no group and
 * waits for uncommitted copies too. */
void emu_land_lanes(struct emu_warp *warp, uint32_t mask, uint32_t keep);
enum { EMU_LAND_ALL = -1 };

/* Everything that would let the mbarrier go on. */
void emu_land_mbarrier(struct emu_cta *cta, struct emu_mbarrier *mbarrier);

/* Bulk groups of one lane older than the newest `keep`; `read`: only their sources matter. */
void emu_land_bulk(struct emu_warp *warp, int lane, uint32_t keep, bool read);

/* Bulk copies to global memory finish even if nobody waits. */
void emu_land_at_exit(struct emu_cluster *cluster);

/* The lanes of `mask` exit: nothing may go on reading their CTA's shared memory for them, or, when
 * they are the last, go on writing it. */
void emu_copies_at_exit(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask);

#endif
