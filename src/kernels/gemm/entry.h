/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entry of a matrix product y = x·wᵀ, from its first instruction to its last. A CTA walks
 * through its share of the tiles (walk.h); stages of both operands come through shared memory:
 *
 *     cp.async   all warps   for each part of a tile:          clear the accumulators
 *                              for each stage s of the part:   issue stage s + S − 2, multiply s
 *                                                              epilogue
 *
 *     bulk       producer    for each part of a tile:          locate its operands
 *                              for each stage of the part:     wait until a slot is free, issue
 *                consumers   for each part of a tile:          clear the accumulators
 *                              for each stage of the part:     wait until it is full, multiply,
 *                                                              release the slot
 *                                                              drain, epilogue
 *
 * A family supplies the steps in the right column (struct gemm_ops): its operands locate and
 * issue, its math clears, multiplies and drains, its epilogue stores. The plan decides which loops
 * a kernel has, by the fields of struct gemm; the entry never asks which family it emits.
 */
#ifndef PTXGEN_KERNELS_GEMM_ENTRY_H
#define PTXGEN_KERNELS_GEMM_ENTRY_H

#include "groups.h"
#include "pipeline.h"
#include "ring.h"
#include "walk.h"
#include "wgmma.h"

struct gemm;
struct gemm_epilogue;

/* A part of a tile: the stages [first, walk.stage_end) of it that the CTA multiplies. */
struct gemm_part {
    struct gemm_walk walk;
    ptx_u32 first;
};

/* The steps of the entry that a family supplies. NULL is a step that emits nothing. */
struct gemm_ops {
    /* All threads read parameters, find their place, and set up shared memory and barriers. */
    void (*begin)(struct gemm *g);

    /* Consumers declare registers and load the epilogue's constants and the first operands. */
    void (*begin_consumer)(struct gemm *g);
    /* Clears the accumulators and addresses the operands of the part's tile. */
    void (*clear)(struct gemm *g, const struct gemm_part *part);
    /* Adds the products of stage part->walk.stage and advances the ring to the next stage. */
    void (*multiply)(struct gemm *g, const struct gemm_part *part);
    /* Multiplies all stages of a part, in place of `multiply`, where `loops_itself` is set. */
    void (*multiply_part)(struct gemm *g, struct gemm_part *part);
    /* Waits until all products have completed, and releases all slots. */
    void (*drain)(struct gemm *g);
    /* Stores y after the fix-up, or publishes the partial sums of the CTA for the fix-up. */
    void (*epilogue)(struct gemm *g, struct gemm_part *part);

    /* The warps that are not consumers issue all copies, through gemm_issue_parts. */
    void (*produce)(struct gemm *g);
    /* All threads end the kernel. */
    void (*end)(struct gemm *g);
};

enum { GEMM_MOST_LAG = 2 };

/* A kernel while it is emitted. Each family's own struct begins with a struct gemm. */
struct gemm {
    /* Decided by the plan, set by the family. */
    const struct gemm_ops *ops;
    const char *name;   /* of the entry */
    uint32_t consumers; /* threads that multiply; those of cp.async are all */
    uint32_t threads;   /* of a CTA, producers among them */
    uint32_t ctas;      /* of a multiprocessor, at least, for the register allocation */
    uint32_t cluster;   /* CTAs that walk through one share together, or 1 */
    struct gemm_registers registers; /* of a thread once roles are known; 0: as at launch */
    bool one_part;    /* every CTA has exactly one part of a tile: there is no loop over parts */
    bool whole_tiles; /* tiles are never divided: a part begins at stage 0 */
    bool parts_by_thread; /* roles part by the number of the thread, not of the warp */
    bool loops_itself;    /* the family has its own loop over a part's stages */
    bool keeps_no_walk;   /* no registers are kept for the walk while stages are multiplied */

    ptx_kernel *k;
    struct gemm_threads at;
    struct gemm_division division;
    struct gemm_groups groups; /* of rows with weights of their own; most families have none */
    ptx_u32 unit, rank;        /* the CTA, or its cluster, and the CTA's place in that */
    ptx_u32 first, end;        /* stages of the unit */
    ptx_u32 m, tiles_m;        /* tokens, and tiles along them */

    /* Kernels that copy by cp.async use the pipeline. */
    struct gemm_pipeline pipeline;

    /* Kernels that copy in bulk use the ring, which this consumer reads at `read`. */
    struct gemm_ring ring;
    struct gemm_ring_place read;
    ptx_u32 to_read;             /* stages of the CTA after the present one */
    ptx_u32 held[GEMM_MOST_LAG]; /* the barriers of the stages before the present one */
    ptx_pred releases;           /* whether the thread releases slots */

    struct gemm_epilogue *output; /* NULL until it has begun, or where the family has its own */
};

void gemm_emit_entry(struct gemm *g, ptx_module *module);

/*
 * Finds the unit of the CTA, the CTA's rank in the unit, and the unit's share of all stages. Where
 * there are groups, the CTA first computes the division, of which the family sets the stages alone.
 */
void gemm_find_share(struct gemm *g);
/*
 * The place, as a number for gemm_locate, of a tile that is number `turn` of the unit's tiles.
 * Whole tiles are dealt out round-robin, so that the tiles that are worked on at the same time are
 * neighbours and their operands stay in the L2; where tiles are divided, the place is `tile`.
 */
ptx_u32 gemm_deal_in_turn(struct gemm *g, ptx_u32 turn, ptx_u32 tile);
/* Sets a consumer to the first stage of the ring and returns how many stages the CTA has. */
ptx_u32 gemm_begin_reading(struct gemm *g);

/* `drain` of a family on wgmma that holds one slot. */
void gemm_drain_wgmma(struct gemm *g);

/* The position of a thread that issues copies: in the walk over parts, and in the ring. */
struct gemm_producer {
    struct gemm_walk walk;
    struct gemm_ring_place place;
    const struct gemm_ring *ring; /* that `place` is in; NULL: the entry's */
    bool located; /* the walk is at its first part, stages of which may be issued already */
    /* Moves the walk to its next part and addresses the operands of that part. */
    void (*locate)(struct gemm *g, struct gemm_producer *p);
    /* Waits until the slot at `place` is free, and issues the copies of the walk's stage. */
    void (*issue)(struct gemm *g, struct gemm_producer *p);
};
/* Issues the copies of all remaining stages of the CTA, part by part. */
void gemm_issue_parts(struct gemm *g, struct gemm_producer *p);

#endif
