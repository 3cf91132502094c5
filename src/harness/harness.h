/* SPDX-License-Identifier: Apache-2.0 */
/**
 * What is known of a family where its kernels are run, compared and timed: its operands, its
 * reference, its random problems, and its verbs. problem.h runs a launch and compares it, bench.h
 * times it; both go by this description and know no family.
 *
 * A family is described in one file here: a const `struct harness`, whose functions get the
 * family's own spec, plan and arguments as `const void *`. The spec is the first member of a plan.
 */
#ifndef PTXGEN_HARNESS_HARNESS_H
#define PTXGEN_HARNESS_HARNESS_H

#include "operand.h"

#include <ptxgen/accuracy.h>
#include <ptxgen/family.h>
#include <ptxgen/kernel.h>
#include <ptxgen/tile.h>
#include <ptxgen/tune.h>

struct problem;
struct kernel_args;

/** Names by ptxgen_element, then s8; names by ptxgen_activation. */
extern const char *const element_type_names[], *const activation_kind_names[];

/** A kernel that is asked for. */
struct kernel_request {
    const void *spec;            /**< the family's */
    const ptxgen_tile *tile;     /**< to be used instead of the plan's; NULL: none */
    const ptxgen_tuning *tuning; /**< what the plan goes by; NULL: nothing */
    bool prologue;               /**< a bench times only what launches before the product */
};

/** The one variant that a plan has left. */
struct chosen {
    const char *entry;
    const void *tile; /**< a ptxgen_tile, where the family has a tiling */
    uint32_t shared_bytes;
    bool overlaps; /**< launches can begin before the one ahead of them has ended */
};

/** What a general library would compute, [m, k] by [n, k], over all matrices of a launch. */
struct product {
    uint32_t k, n;
    ptxgen_element type; /**< bf16, or else f16 */
    bool tensor_f16;     /**< the kernel itself multiplies f16 or bf16 on tensor cores */
    bool e4m3;           /**< codes of 8 bits are e4m3, else s8 */
};

/** Outputs that are compared at once: at most BLOCK_OUTPUTS. */
enum { BLOCK_OUTPUTS = 4096 };
struct block {
    unsigned output; /**< the operand */
    uint64_t row, rows;
    uint32_t column, columns;
};

/** What a reference says of a block's outputs, row by row. */
struct block_reference {
    double value[BLOCK_OUTPUTS], bound[BLOCK_OUTPUTS];
    ptxgen_spread spread[BLOCK_OUTPUTS];
    bool exact; /**< no output has a spread */
};

/** A family's functions, as KERNEL_VERBS makes them. */
struct kernel_verbs {
    ptxgen_status (*use_tile)(void *plan, const ptxgen_tile *tile,
                              ptxgen_error *err); /**< or NULL */
    ptxgen_status (*ctas)(const void *plan, uint64_t m, uint32_t *ctas, ptxgen_error *err);
    void (*explain)(const void *plan, uint64_t m, char *text, size_t size); /**< for people */
    ptxgen_status (*load)(const ptxgen_driver *driver, const void *plan, void **kernel,
                          ptxgen_error *err);
    void (*destroy)(void *kernel);
    const ptxgen_kernel_attributes *(*attributes)(const void *kernel, uint64_t m);
    ptxgen_status (*workspace_bytes)(const void *kernel, const void *args, uint64_t *bytes,
                                     ptxgen_error *err);
    ptxgen_status (*launch)(const void *kernel, const void *args, ptxgen_cu_stream stream,
                            ptxgen_error *err);
};

struct harness {
    const ptxgen_family *(*family)(void);
    const struct kernel_verbs *verbs;

    /** Offsets of members of the arguments; those of the last three that are 0 are not there. */
    size_t m, workspace, workspace_bytes, overlap;
    /** Whether a plan's workspace may hold anything; else, or with NULL, it is zeroed before use.
     */
    bool (*poisons_workspace)(const void *plan);

    /** "K=4096 N=14336 M=1 f16 …" */
    void (*name)(const void *spec, uint64_t m, char *text, size_t size);
    struct product (*product)(const void *spec);
    /** Leaves the plan the one variant that serves m > 0 tokens, or returns false. */
    bool (*keep)(void *plan, uint64_t m, struct chosen *chosen);

    /** Lists the operands of a launch, and returns how many they are. */
    unsigned (*operands)(const void *plan, uint64_t m, struct operand operands[MOST_OPERANDS]);
    /** Fills what the operands' own random values do not; NULL: their `random` does. */
    ptxgen_status (*fill)(struct problem *p, struct random *r, ptxgen_error *err);
    /** Sets the numbers of a launch of m rows that are neither m nor an operand's; or NULL. */
    void (*numbers)(const void *plan, uint64_t m, struct kernel_args *args);
    /** Frees the problem's `own`, which is not NULL; or NULL. */
    void (*release)(struct problem *p);
    /** By these rows of the activations are multiplied to be no ordinary ones. */
    const double *factors;
    uint32_t factor_count;
    double huge; /**< rows of this magnitude and a twelfth of it more or less; 0: none */

    /** The workspace's words that every launch leaves 0; NULL: one a CTA. */
    ptxgen_status (*flags)(const struct problem *p, uint32_t *flags, ptxgen_error *err);

    ptxgen_status (*reference)(const struct problem *p, const struct block *block,
                               struct block_reference *reference, ptxgen_error *err);
    uint32_t block_rows, block_columns; /**< of a whole block */
    /** Widens what the reference allows to what a file's own output may differ by; or NULL. */
    ptxgen_status (*widen)(const struct problem *p, const struct block *block,
                           struct block_reference *reference, ptxgen_error *err);

    /**
     * Draws a spec that the target has, zeroed before, and returns the tokens of a launch; `small`
     * for the emulator.
     */
    uint32_t (*draw)(struct random *r, bool small, const ptxgen_target *target, void *spec);

    /** What a launch does before its product, alone, and the bytes that it moves; or NULL. */
    ptxgen_status (*launch_prologue)(const void *kernel, const void *args, ptxgen_cu_stream stream,
                                     ptxgen_error *err);
    uint64_t (*prologue_bytes)(const void *plan);
};

/**
 * The plan, with the tile of the request if there is one; for m > 0 cut down to the variant that
 * serves m tokens, which `chosen` receives unless it is NULL.
 */
ptxgen_status harness_plan(const struct harness *harness, const struct kernel_request *request,
                           uint64_t m, const ptxgen_target *target, void *plan,
                           struct chosen *chosen, ptxgen_error *err);
/** Such a plan in memory of its own, for free(). */
ptxgen_status harness_new_plan(const struct harness *harness, const struct kernel_request *request,
                               uint64_t m, const ptxgen_target *target, void **plan,
                               struct chosen *chosen, ptxgen_error *err);

/** What a launch has to move and compute, whatever the kernel. */
struct work {
    const char *entry; /**< of the module, that serves this M */
    uint64_t bytes;    /**< read and written once each */
    double flops;
    uint32_t grid;         /**< CTAs */
    char explanation[256]; /**< how it does it, for people; may be empty */
};
ptxgen_status harness_describe(const struct harness *harness, const struct kernel_request *request,
                               uint64_t m, const ptxgen_target *target, struct work *work,
                               ptxgen_error *err);
/** Bytes and operations of a launch by the plan. */
void harness_count(const struct harness *harness, const void *plan, uint64_t m, uint64_t *bytes,
                   double *flops);

/** Enough for the arguments of any family. */
struct kernel_args {
    uint64_t words[64];
};
void args_set(struct kernel_args *args, size_t offset, uint64_t value);
/** Sets m, and the numbers that go with it. */
void harness_set_m(const struct harness *harness, const void *plan, uint64_t m,
                   struct kernel_args *args);

extern const struct harness dense_harness, gguf_linear_harness, gguf_rows_harness, marlin_harness,
    quantise_harness, rmsnorm_q4k_harness, sparse24_harness, w8a8_harness;

/** The members of a family's harness that have the same names in all, in part where it has them. */
#define HARNESS_MEMBERS(f)                                                                         \
    .family = ptxgen_##f##_family, .verbs = &verbs, .m = ARG(m), .name = name, .product = product, \
    .keep = keep, .operands = operands, .reference = reference, .draw = draw
#define HARNESS_WORKSPACE .workspace = ARG(workspace), .workspace_bytes = ARG(workspace_bytes)
#define HARNESS_FACTORS .factors = factors, .factor_count = sizeof factors / sizeof *factors

/** Defines the verb of a family that takes tiles: to be handed to KERNEL_VERBS. */
#define TILE_VERB(f)                                                                               \
    static ptxgen_status verb_use_tile(void *plan, const ptxgen_tile *tile, ptxgen_error *err)     \
    {                                                                                              \
        return ptxgen_##f##_use_tile(plan, tile, err);                                             \
    }

/** Defines `keep` of a family whose plan has nothing but variants to choose from. */
#define KEEP_VARIANT(f, variant, can_overlap)                                                      \
    static bool keep(void *plan, uint64_t m, struct chosen *chosen)                                \
    {                                                                                              \
        ptxgen_##f##_plan *p = plan;                                                               \
        const variant *v = ptxgen_##f##_choose(p, m);                                              \
        if (!v)                                                                                    \
            return false;                                                                          \
        p->variants[0] = *v;                                                                       \
        p->variant_count = 1;                                                                      \
        *chosen =                                                                                  \
            (struct chosen){ptxgen_##f##_entry(v), p->variants, v->shared_bytes, can_overlap};     \
        return true;                                                                               \
    }

/** Defines `verbs` by the functions of a family, which have the same names in all of them. */
#define KERNEL_VERBS(f, tile_verb)                                                                 \
    static ptxgen_status verb_ctas(const void *plan, uint64_t m, uint32_t *ctas,                   \
                                   ptxgen_error *err)                                              \
    {                                                                                              \
        return ptxgen_##f##_ctas(plan, m, ctas, err);                                              \
    }                                                                                              \
    static void verb_explain(const void *plan, uint64_t m, char *text, size_t size)                \
    {                                                                                              \
        ptxgen_##f##_explain(plan, m, text, size);                                                 \
    }                                                                                              \
    static ptxgen_status verb_load(const ptxgen_driver *driver, const void *plan, void **kernel,   \
                                   ptxgen_error *err)                                              \
    {                                                                                              \
        ptxgen_##f *loaded = NULL;                                                                 \
        ptxgen_status status = ptxgen_##f##_load(driver, plan, NULL, &loaded, err);                \
        *kernel = loaded;                                                                          \
        return status;                                                                             \
    }                                                                                              \
    static void verb_destroy(void *kernel)                                                         \
    {                                                                                              \
        ptxgen_##f##_destroy(kernel);                                                              \
    }                                                                                              \
    static const ptxgen_kernel_attributes *verb_attributes(const void *kernel, uint64_t m)         \
    {                                                                                              \
        return ptxgen_##f##_attributes(kernel, m);                                                 \
    }                                                                                              \
    static ptxgen_status verb_workspace_bytes(const void *kernel, const void *args,                \
                                              uint64_t *bytes, ptxgen_error *err)                  \
    {                                                                                              \
        return ptxgen_##f##_workspace_bytes(kernel, args, bytes, err);                             \
    }                                                                                              \
    static ptxgen_status verb_launch(const void *kernel, const void *args,                         \
                                     ptxgen_cu_stream stream, ptxgen_error *err)                   \
    {                                                                                              \
        return ptxgen_##f##_launch(kernel, args, stream, err);                                     \
    }                                                                                              \
    static const struct kernel_verbs verbs = {                                                     \
        .use_tile = tile_verb,                                                                     \
        .ctas = verb_ctas,                                                                         \
        .explain = verb_explain,                                                                   \
        .load = verb_load,                                                                         \
        .destroy = verb_destroy,                                                                   \
        .attributes = verb_attributes,                                                             \
        .workspace_bytes = verb_workspace_bytes,                                                   \
        .launch = verb_launch,                                                                     \
    }

#endif
