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
 * A family says what stands at each of these places: its operands issue, its math clears,
 * multiplies and drains, its epilogue stores. What a tile of the plan needs of the loops is decided
 * by the plan and stands in the fields of struct gemm; nothing here asks the family what it is.
 */
#ifndef PTXGEN_KERNELS_GEMM_ENTRY_H
#define PTXGEN_KERNELS_GEMM_ENTRY_H

#include "pipeline.h"
#include "ring.h"
#include "walk.h"
#include "wgmma.h"

struct gemm;

/* A part of a tile: the stages [first, walk.stage_end) of it that the CTA multiplies. */
struct gemm_part {
    struct gemm_walk walk;
    ptx_u32 first;
};

/* What a family's product does at each place of the entry. NULL stands for nothing to do. */
struct gemm_ops {
    /* All threads: parameters, the thread's place in the CTA, shared memory, barriers. */
    void (*begin)(struct gemm *g);

    /* Consumers: registers, the epilogue's constants, the first operands. */
    void (*begin_consumer)(struct gemm *g);
    /* Accumulators are 0, operands those of the part's tile. */
    void (*clear)(struct gemm *g, const struct gemm_part *part);
    /* Accumulators += the products of stage part->walk.stage; the ring turns to the next stage. */
    void (*multiply)(struct gemm *g, const struct gemm_part *part);
    /* In place of the loop over a part's stages: one of the family's own. */
    void (*multiply_part)(struct gemm *g, struct gemm_part *part);
    /* All products have ended, no slot is held. */
    void (*drain)(struct gemm *g);
    /* Adds up partial sums of other CTAs, or leaves them this one's; else y is stored. */
    void (*epilogue)(struct gemm *g, struct gemm_part *part);
    /* Other CTAs have done with this one's shared memory. */
    void (*end_consumer)(struct gemm *g);

    /* The warps that are not consumers: issue all copies, by gemm_issue_parts. */
    void (*produce)(struct gemm *g);
    /* All threads again. */
    void (*end)(struct gemm *g);
};

enum { GEMM_MOST_LAG = 2 };

/* A product's kernel while it is emitted; the first member of each family's own struct. */
struct gemm {
    /* Decided by the plan, set by the family. */
    const struct gemm_ops *ops;
    const char *name;   /* of the entry */
    uint32_t consumers; /* threads that multiply; those of cp.async are all */
    uint32_t threads;   /* of a CTA, producers among them */
    uint32_t ctas;      /* of a multiprocessor, at least, for the register allocation */
    uint32_t cluster;   /* CTAs that walk through one share together, or 1 */
    struct gemm_registers registers; /* of a thread once roles are known; 0: as at launch */
    bool one_part;      /* every CTA has exactly one part of a tile: there is no loop over parts */
    bool whole_tiles;   /* tiles are never divided: a part begins at stage 0 */
    bool keeps_no_walk; /* no registers are kept for the walk while stages are multiplied */

    ptx_kernel *k;
    struct gemm_threads at;
    struct gemm_division division;
    ptx_u32 unit, rank; /* the CTA, or its cluster, and the CTA's place in that */
    ptx_u32 first, end; /* stages of the unit */
    ptx_u32 m, tiles_m; /* tokens, and tiles along them */

    /* Copies by cp.async. */
    struct gemm_pipeline pipeline;

    /* Copies in bulk: the ring, and where this consumer reads it. */
    struct gemm_ring ring;
    struct gemm_ring_place read;
    ptx_u32 to_read;             /* stages of the CTA after the present one */
    ptx_u32 held[GEMM_MOST_LAG]; /* the barriers of the stages before the present one */
    ptx_pred releases;           /* whether the thread releases slots */
};

void gemm_emit_entry(struct gemm *g, ptx_module *module);

/* The unit of the CTA, its place there, and the unit's share of all stages. */
void gemm_find_share(struct gemm *g);
/* A consumer of the ring stands at its first stage; how many stages the CTA has. */
ptx_u32 gemm_begin_reading(struct gemm *g);

/* Where a thread that issues copies stands. */
struct gemm_producer {
    struct gemm_walk walk;
    struct gemm_ring_place place;
    bool located; /* the walk stands at its first part already, stages of it may be issued */
    /* Turns to the next part of the walk. */
    void (*locate)(struct gemm *g, struct gemm_producer *p);
    /* Waits until the slot at the place is free, and issues the walk's stage into it. */
    void (*issue)(struct gemm *g, struct gemm_producer *p);
};
/* The producer's loop: all stages of the CTA that are left, part by part. */
void gemm_issue_parts(struct gemm *g, struct gemm_producer *p);

#endif
