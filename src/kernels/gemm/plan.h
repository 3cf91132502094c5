/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the plan of every product comes to its tiles, and from M to a launch:
 *
 *     candidates ─▶ those that spec and target can have ─▶ as many stages as fit ─▶ the cheapest
 *     M ─▶ the variant that is the cheapest for it ─▶ its tiles ─▶ their division among CTAs
 *
 * A plan whose K or N is 0 is empty: it has no variants, and one entry (empty.h).
 *
 * A family describes itself in a const struct gemm_planner: what a tile needs, what it costs, and
 * how its launches are divided. Its plan begins with its spec and ends with its variants and what
 * goes with them. The functions here get a planner and a plan of that family.
 */
#ifndef PTXGEN_KERNELS_GEMM_PLAN_H
#define PTXGEN_KERNELS_GEMM_PLAN_H

#include "../plan.h"
#include "schedule.h"
#include "tile.h"

#include <ptxgen/guarantee.h>

#include <stddef.h>

enum { GEMM_ANY_M = INT32_MAX }; /* the most tokens of a launch */

/* What a launch of one tile along M works on. */
struct gemm_work {
    uint32_t tiles_n;  /* tiles along N */
    uint32_t stages;   /* of a CTA along K */
    uint32_t cluster;  /* CTAs of a cluster, which count as one */
    uint64_t partials; /* bytes of a CTA's partial sums, where tiles are divided (fixup.h) */
};

/*
 * A launch's CTAs, and its workspace: a flag of 4 bytes for each CTA that any variant may have;
 * then, where tiles are divided, the partial sums of each CTA, at offset `partials`; then, at
 * offset `copies`, the copies of operands that a family's launch makes first.
 */
struct gemm_launch {
    struct gemm_schedule tiles; /* division of tiles among CTAs, or among clusters */
    uint32_t grid;
    uint64_t partials, copies;
    uint64_t workspace_bytes; /* without copies: `copies`, or 0 where nothing is needed */
};

static inline uint64_t gemm_partials_offset(const ptxgen_target *target, uint32_t most_ctas)
{
    return ((uint64_t)target->multiprocessors * most_ctas * 4 + 255) / 256 * 256;
}

/* All functions are pure. `plan` is the family's. */
struct gemm_planner {
    const char *family;
    /* Offsets in the plan: of the spec's numbers of u32, and of other members. */
    size_t spec_bytes, plan_bytes, n, k, max_m, target, variant_count, variants;
    size_t min_m; /* 0: launches of any few tokens are served */
    uint32_t most_variants;
    bool (*is_plan)(const void *plan); /* made by make_plan, of any bytes */
    ptxgen_status (*check_spec)(const void *spec, ptxgen_error *err);
    /* Adds tiles to a plan with spec and target; a plan that has none is refused by the driver. */
    ptxgen_status (*choose_tiles)(void *plan, ptxgen_error *err);

    ptxgen_tile defaults;                  /* what a tile's member is where it is 0 */
    const char *unused[8];                 /* members that the family's tiles do not have */
    uint32_t most_kind;                    /* ptxgen_tile_kind */
    uint32_t least_stages;                 /* of any tile */
    uint32_t most_stages[PTXGEN_BULK + 1]; /* that the driver chooses, by kind */
    uint32_t least_pass_m; /* pass_m of a candidate is halved down to it until it fits; 0: never */
    /* Computes the members that follow from others, all but stages and sizes; may be NULL. */
    void (*derive)(ptxgen_tile *tile);
    /* Changes a candidate as the plan needs it, or returns false where the plan cannot have it. */
    bool (*adapt)(const void *plan, ptxgen_tile *tile);
    uint64_t (*shared_bytes)(const void *plan, const ptxgen_tile *tile);
    /* Picoseconds by a model of the chip; UINT64_MAX: the tile does not serve m tokens. */
    uint64_t (*candidate_cost)(const void *plan, const ptxgen_tile *tile, uint64_t m);
    uint64_t (*cost)(const void *plan, const ptxgen_tile *variant, uint64_t m);
    /* Refuses a tile of the caller's choice, and computes what the caller leaves open. */
    ptxgen_status (*check_tile)(const void *plan, ptxgen_tile *tile, ptxgen_error *err);

    uint32_t most_ctas; /* of any variant, of a multiprocessor */
    struct gemm_work (*work)(const void *plan, const ptxgen_tile *tile);
    /* Whether so many tiles are whole, among so many CTAs or clusters. */
    bool (*is_whole)(const void *plan, const ptxgen_tile *tile, uint64_t tiles, uint32_t units);
    /* Stages that a CTA has less where it does not end a tile (gemm_deal_early); may be NULL. */
    uint32_t (*early_stages)(uint32_t stages, const ptxgen_tile *tile);
    bool has_cluster_per_tile; /* whatever the number of clusters that there is room for */
    /* Refuses a launch of so many tiles on so many CTAs or clusters; may be NULL. */
    ptxgen_status (*check_launch)(const ptxgen_tile *tile, uint64_t m, uint64_t tiles,
                                  uint32_t units, ptxgen_error *err);
    const char *(*entry)(const ptxgen_tile *variant);
    /* Fills what follows from plan and variant: all but the name, the bits and their range. */
    void (*guarantee)(const void *plan, const ptxgen_tile *variant, ptxgen_guarantee *guarantee);
    /* One sentence about a launch of m tokens. */
    void (*describe)(const void *plan, const ptxgen_tile *tile, uint64_t m, char *text,
                     size_t size);
};

/* The offsets of a planner, by the names that every family's spec and plan have. */
#define GEMM_PLANNER_MEMBERS(F)                                                                    \
    .family = #F, .entry = ptxgen_##F##_entry, .spec_bytes = sizeof(ptxgen_##F##_spec),                                         \
    .plan_bytes = sizeof(ptxgen_##F##_plan), .n = offsetof(ptxgen_##F##_plan, spec.n),             \
    .k = offsetof(ptxgen_##F##_plan, spec.k), .max_m = offsetof(ptxgen_##F##_plan, spec.max_m),    \
    .target = offsetof(ptxgen_##F##_plan, target),                                                 \
    .variant_count = offsetof(ptxgen_##F##_plan, variant_count),                                   \
    .variants = offsetof(ptxgen_##F##_plan, variants),                                             \
    .most_variants = sizeof(((ptxgen_##F##_plan *)NULL)->variants) / sizeof(ptxgen_tile)

/* ---- tiles ---- */

/* Computes a tile's shared memory; false where no CTA holds that. */
bool gemm_fits(const struct gemm_planner *p, const void *plan, ptxgen_tile *tile);
/*
 * Gives the tile as many stages as fit, `most` at most (0: as many as the planner says); false
 * where too few fit.
 */
bool gemm_fill_stages(const struct gemm_planner *p, const void *plan, uint32_t most,
                      ptxgen_tile *tile);
/* Makes a tile of a candidate, whose stages are a limit where they are not 0. */
bool gemm_adapt(const struct gemm_planner *p, const void *plan, const ptxgen_tile *candidate,
                ptxgen_tile *tile);

/* Those of a table of candidates whose tiles have `least` to `most` tokens. */
struct gemm_choice {
    const ptxgen_tile *among;
    size_t count;
    uint32_t least, most;
};
#define GEMM_AMONG(table, least, most)                                                             \
    (&(const struct gemm_choice){table, sizeof(table) / sizeof *(table), least, most})
/* Adds a tile to the plan unless the plan has it. */
void gemm_add(const struct gemm_planner *p, void *plan, const ptxgen_tile *tile);
/* The tile that is the cheapest for m tokens, of equally cheap ones the first; false: none is. */
bool gemm_cheapest(const struct gemm_planner *p, const void *plan, const struct gemm_choice *choice,
                   uint64_t m, ptxgen_tile *tile);
/* Adds that tile to the plan, or returns false. */
bool gemm_add_cheapest(const struct gemm_planner *p, void *plan, const struct gemm_choice *choice,
                       uint64_t m);

/* Refuses more than 16 warps. */
ptxgen_status gemm_check_warps(const char *family, const ptxgen_tile *tile, ptxgen_error *err);

/* ---- launches ---- */

bool gemm_is_empty(const struct gemm_planner *p, const void *plan);
/* Whether launches of any m tokens do nothing: N is 0. */
bool gemm_is_nothing(const struct gemm_planner *p, const void *plan);

/* How many variants a plan has, and the tokens that it serves. */
struct gemm_served {
    uint32_t variants, least, most;
};
struct gemm_served gemm_served(const struct gemm_planner *p, const void *plan);
/* The refusal of a number of tokens that the plan does not serve. */
ptxgen_status gemm_refuse_m(const struct gemm_planner *p, const void *plan, uint64_t m,
                            ptxgen_error *err);
/* The division of m tokens among CTAs. */
ptxgen_status gemm_make_launch(const struct gemm_planner *p, const void *plan,
                               const ptxgen_tile *tile, uint64_t m, struct gemm_launch *launch,
                               ptxgen_error *err);

/* The variant that serves m tokens, and its launch. */
ptxgen_status gemm_find_launch(const struct gemm_planner *p, const void *plan, uint64_t m,
                               const ptxgen_tile **tile, struct gemm_launch *launch,
                               ptxgen_error *err);

/* One sentence about a tile: its sizes, its warps, how it is multiplied, and what else there is. */
void gemm_describe_tile(const ptxgen_tile *tile, const char *kind, const char *more, char *text,
                        size_t size);

/* ---- what public functions are made of ---- */

ptxgen_status gemm_make_plan(const struct gemm_planner *p, const void *spec,
                             const ptxgen_target *target, void *plan, ptxgen_error *err);
ptxgen_status gemm_use_tile(const struct gemm_planner *p, void *plan, const ptxgen_tile *tile,
                            ptxgen_error *err);
const ptxgen_tile *gemm_choose(const struct gemm_planner *p, const void *plan, uint64_t m);
ptxgen_status gemm_ctas(const struct gemm_planner *p, const void *plan, uint64_t m, uint32_t *ctas,
                        ptxgen_error *err);
/* guarantee.c; of a plan without products, whose K or N is 0: sums are exact, as there are none. */
ptxgen_guarantee gemm_guarantee_of_nothing(const char *family, uint32_t from_m, uint32_t to_m);
ptxgen_status gemm_guarantee(const struct gemm_planner *p, const void *plan, uint64_t m,
                             ptxgen_guarantee *guarantee, ptxgen_error *err);
void gemm_explain(const struct gemm_planner *p, const void *plan, uint64_t m, char *text,
                  size_t size);

/* The public functions of a family with this planner. */
#define GEMM_PLANS(F, planner)                                                                     \
    ptxgen_status ptxgen_##F##_make_plan(const ptxgen_##F##_spec *spec,                            \
                                         const ptxgen_target *target, ptxgen_##F##_plan *plan,     \
                                         ptxgen_error *err)                                        \
    {                                                                                              \
        return gemm_make_plan(&(planner), spec, target, plan, err);                                \
    }                                                                                              \
    ptxgen_status ptxgen_##F##_use_tile(ptxgen_##F##_plan *plan, const ptxgen_tile *tile,          \
                                        ptxgen_error *err)                                         \
    {                                                                                              \
        return gemm_use_tile(&(planner), plan, tile, err);                                         \
    }                                                                                              \
    const ptxgen_tile *ptxgen_##F##_choose(const ptxgen_##F##_plan *plan, uint64_t m)              \
    {                                                                                              \
        return gemm_choose(&(planner), plan, m);                                                   \
    }
#define GEMM_LAUNCHES(F, planner)                                                                  \
    ptxgen_status ptxgen_##F##_ctas(const ptxgen_##F##_plan *plan, uint64_t m, uint32_t *ctas,     \
                                    ptxgen_error *err)                                             \
    {                                                                                              \
        return gemm_ctas(&(planner), plan, m, ctas, err);                                          \
    }                                                                                              \
    ptxgen_status ptxgen_##F##_guarantee(const ptxgen_##F##_plan *plan, uint64_t m,                \
                                         ptxgen_guarantee *guarantee, ptxgen_error *err)           \
    {                                                                                              \
        return gemm_guarantee(&(planner), plan, m, guarantee, err);                                \
    }                                                                                              \
    void ptxgen_##F##_explain(const ptxgen_##F##_plan *plan, uint64_t m, char *text, size_t size)  \
    {                                                                                              \
        gemm_explain(&(planner), plan, m, text, size);                                             \
    }

#endif
