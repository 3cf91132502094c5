/* SPDX-License-Identifier: Apache-2.0 */
/**
 * What dispatch and the cache know of a kernel family: a const table of sizes and functions. They
 * have no other knowledge of any family, so a program may add its own.
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

/** The same in a plan: the variant that serves the range. */
typedef struct ptxgen_tuned_variant {
    uint32_t to_m, variant;
} ptxgen_tuned_variant;

/** The tiles that plans of a family choose from. */
typedef struct ptxgen_tiling {
    const char *const *names; /**< of a tile's numbers: letters, digits, '_'; NULL past the last */
    /** Fills tile number `index` of those that this plan may have; false past the last. Pure. */
    bool (*candidate)(const void *plan, size_t index, uint32_t tile[PTXGEN_TILE_NUMBERS]);
    /**
     * Gives a fresh plan `count` tiles, 1 to PTXGEN_TUNED_RANGES, by rising to_m; M above the last
     * is served as the plan sees fit. Refuses tiles that are no candidates, or not together; what
     * the plan is then is not said. Pure.
     */
    ptxgen_status (*use)(void *plan, const ptxgen_tuned_range *ranges, size_t count,
                         ptxgen_error *err);
} ptxgen_tiling;

/* ---- a family ---- */

typedef struct ptxgen_family {
    const char *name; /**< of letters, digits and '_': it becomes part of file names */
    /** Raised whenever plans or text of a spec change: code made by another version is not used. */
    uint32_t plan_version;
    size_t spec_bytes; /**< of the spec, compared whole: padding is zeroed by who fills it */
    size_t plan_bytes;
    /** Validates the spec and fills the plan; pure. */
    ptxgen_status (*make_plan)(const void *spec, const ptxgen_target *target, void *plan,
                               ptxgen_error *err);
    /**
     * Fills the module; pure. Entries are loaded in the order in which they are emitted. One with
     * more than 48 KB of shared memory has all of it as dynamic shared memory, and every launch
     * passes so much (ptxgen_launch_shape in kernel.h); as code may come from the disk without an
     * emission, the plan keeps that number, the sum that ptx_kernel_info gives.
     */
    ptxgen_status (*emit)(const void *plan, ptx_module *module, ptxgen_error *err);
    /** What launches will need beyond the REQUIRED driver calls; NULL: nothing. */
    ptxgen_status (*check_driver)(const ptxgen_driver *driver, const void *plan, ptxgen_error *err);
    /**
     * The spec for people, one ASCII line without a newline, cut to `size`; NULL: hexadecimal.
     * It is called in the C locale: the line is part of what the disk cache finds code by.
     */
    void (*describe)(const void *spec, char *text, size_t size);
    const ptxgen_tiling *tiling; /**< NULL: there is nothing to tune */
    /**
     * A hash of all sources that plan and text come from, up to 64 characters: while it stays, the
     * disk cache finds code without an emission. NULL: always emit, so that nothing hangs on it.
     */
    const char *revision;
} ptxgen_family;

#ifdef __cplusplus
}
#endif
#endif
