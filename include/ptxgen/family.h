/* SPDX-License-Identifier: Apache-2.0 */
/**
 * A kernel family as dispatch and the cache see it: a const table of sizes and functions. Dispatch
 * and the cache know nothing else of any family, so a program may add families of its own.
 *
 * ptxgen's families each have a function that returns their table, as
 * `ptxgen_rmsnorm_q4k_family()`. A family of your own, for dispatch.h:
 *
 *     struct scale_spec { uint32_t n; float factor; };            // zeroed, then filled: the key
 *     struct scale_plan { struct scale_spec spec; };
 *
 *     static ptxgen_status plan(const void *spec, const ptxgen_target *target, void *plan,
 *                               ptxgen_error *err) { … }
 *     static ptxgen_status emit(const void *plan, ptx_module *module, ptxgen_error *err) { … }
 *
 *     static const ptxgen_family scale = {.name = "scale", .plan_version = 1,
 *                                         .spec_bytes = sizeof(struct scale_spec),
 *                                         .plan_bytes = sizeof(struct scale_plan),
 *                                         .make_plan = plan, .emit = emit};
 *
 * Lifetime: the table and its name live as long as anything made from them. Threads: a family's
 * functions are called from any thread, several at once. Errors: a status and a sentence.
 */
#ifndef PTXGEN_FAMILY_H
#define PTXGEN_FAMILY_H

#include <ptxgen/driver.h>
#include <ptxgen/target.h>

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- what tuning may choose (tune.h) ---- */

enum { PTXGEN_TILE_NUMBERS = 12, PTXGEN_TUNED_RANGES = 32 };

/** The tile for M from above the range before it up to and including `to_m`. */
typedef struct ptxgen_tuned_range {
    uint32_t to_m;
    uint32_t tile[PTXGEN_TILE_NUMBERS]; /**< in the order of the tiling's names, then zeros */
} ptxgen_tuned_range;

/** A range of M in a plan, with the variant that serves it. */
typedef struct ptxgen_tuned_variant {
    uint32_t to_m, variant;
} ptxgen_tuned_variant;

/** The tiles that plans of a family choose from. */
typedef struct ptxgen_tiling {
    /** Names of a tile's numbers, of letters, digits and '_'; NULL follows the last name. */
    const char *const *names;
    /**
     * Fills candidate `index` of the tiles that the plan may use; false past the last one. Pure.
     */
    bool (*candidate)(const void *plan, size_t index, uint32_t tile[PTXGEN_TILE_NUMBERS]);
    /**
     * Gives a fresh plan `count` tiles, 1 to PTXGEN_TUNED_RANGES, in the order of rising to_m. The
     * plan chooses a tile itself for M above the last range. Refuses tiles that are no candidates,
     * and candidates that the plan cannot use together; a refused plan must not be used. Pure.
     */
    ptxgen_status (*use)(void *plan, const ptxgen_tuned_range *ranges, size_t count,
                         ptxgen_error *err);
} ptxgen_tiling;

/* ---- a family ---- */

typedef struct ptxgen_family {
    const char *name; /**< of letters, digits and '_': it becomes part of file names */
    /** Raised whenever plans or texts change: code that another version made is not used. */
    uint32_t plan_version;
    size_t spec_bytes; /**< size of the spec, all bytes of which are compared: zero its padding */
    size_t plan_bytes;
    /** Validates the spec and fills the plan; pure. */
    ptxgen_status (*make_plan)(const void *spec, const ptxgen_target *target, void *plan,
                               ptxgen_error *err);
    /**
     * Fills the module; pure. Entries are loaded in the order in which they are emitted. An entry
     * with more than 48 KB of shared memory has all of it as dynamic shared memory, and every
     * launch passes its size (ptxgen_launch_shape in kernel.h). The plan has to keep that size,
     * which ptx_kernel_info gives, because code may come from the disk without an emission.
     */
    ptxgen_status (*emit)(const void *plan, ptx_module *module, ptxgen_error *err);
    /** Refuses a driver that lacks an OPTIONAL call which launches need; NULL: they need none. */
    ptxgen_status (*check_driver)(const ptxgen_driver *driver, const void *plan, ptxgen_error *err);
    /**
     * Writes the spec for people to read, as one ASCII line without a newline, cut to `size`; NULL:
     * the spec is written as hexadecimal digits. The line is part of the disk cache's key, so the
     * function is called in the C locale.
     */
    void (*describe)(const void *spec, char *text, size_t size);
    const ptxgen_tiling *tiling; /**< NULL: there is nothing to tune */
    /**
     * A hash, of up to 64 characters, of all sources from which plan and text come. While the hash
     * stays the same, the disk cache finds code without an emission. NULL: the disk cache always
     * emits the text to find its code.
     */
    const char *revision;
} ptxgen_family;

#ifdef __cplusplus
}
#endif
#endif
