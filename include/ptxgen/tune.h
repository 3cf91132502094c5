/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Tuning: the tiles that were measured to be the fastest on a device, stored for later processes.
 *
 * A plan chooses its tiles by a model of the chip. `ptxgen tune` measures the tiles that a plan may
 * choose from, and stores for a spec which tile is the fastest for which M, in the file "tuning" of
 * the disk cache's folder (cache.h). A dispatcher reads that file when it is created, and its plans
 * use the stored tiles. A program without a dispatcher does the same by these calls:
 *
 *     ptxgen_tuning *tuning;
 *     ptxgen_tuning_load(cache, &facts, &tuning, &err);
 *     ptxgen_tuned_plan(tuning, ptxgen_marlin_family(), &spec, &target, &plan, NULL, &err);
 *     ptxgen_tuning_free(tuning);                         // plans do not refer to it
 *
 * The table of stored tiles is an argument: a plan is a pure function of spec, target and table.
 * With another table, sums may be added in another order.
 *
 * The file is text. For each spec it has lines that say what was measured where (family with plan
 * version, spec, target, device, CUDA version), then one line for each range of M. An entry is used
 * only if all of these are the same now, if its lines are byte for byte what this library writes,
 * and if the plan may choose from its tiles; otherwise the entry is ignored. A file that is
 * damaged, longer than 64 KiB, or writable by others is ignored as a whole. A new choice for a spec
 * replaces the old one, and when the file is full the oldest entries are removed. The file is
 * written under the cache's lock to a temporary file, which is then renamed.
 *
 * Lifetime: a table refers to nothing. Threads: a table is constant, and any number of threads may
 * use it. Errors: a status and a sentence.
 */
#ifndef PTXGEN_TUNE_H
#define PTXGEN_TUNE_H

#include <ptxgen/cache.h>
#include <ptxgen/device.h>
#include <ptxgen/family.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ptxgen_tuning ptxgen_tuning;

/**
 * Loads the entries for this device from the cache's folder. The table is empty if there are none,
 * or if `cache` is NULL. Errors: PTXGEN_ERROR_INVALID_ARGUMENT, PTXGEN_ERROR_OUT_OF_MEMORY.
 */
PTXGEN_API ptxgen_status ptxgen_tuning_load(const ptxgen_cache *cache,
                                            const ptxgen_device_facts *device,
                                            ptxgen_tuning **tuning, ptxgen_error *err);
/** Loads the entries from the text of such a file. Errors: also PTXGEN_ERROR_MALFORMED. */
PTXGEN_API ptxgen_status ptxgen_tuning_parse(const char *text, size_t length,
                                             const ptxgen_device_facts *device,
                                             ptxgen_tuning **tuning, ptxgen_error *err);
PTXGEN_API void ptxgen_tuning_free(ptxgen_tuning *tuning);

/**
 * Why the folder's file was ignored, as a clause without a full stop; NULL when it was not ignored.
 */
PTXGEN_API const char *ptxgen_tuning_complaint(const ptxgen_tuning *tuning);

/**
 * Fills `ranges` with the table's ranges for the spec, in the order of rising M, and returns their
 * number, which is 0 if there are none. Only ptxgen_tuned_plan finds out whether the plan can use
 * the ranges.
 */
PTXGEN_API size_t ptxgen_tuning_find(const ptxgen_tuning *tuning, const ptxgen_family *family,
                                     const void *spec, const ptxgen_target *target,
                                     ptxgen_tuned_range ranges[PTXGEN_TUNED_RANGES]);

/**
 * Makes the family's plan with the tiles that the table has for the spec; if it has none, or if
 * `tuning` is NULL, the plan chooses the tiles itself. `tuned`, unless NULL, receives whether the
 * table's tiles were used. Errors: those of the family's make_plan.
 */
PTXGEN_API ptxgen_status ptxgen_tuned_plan(const ptxgen_tuning *tuning, const ptxgen_family *family,
                                           const void *spec, const ptxgen_target *target,
                                           void *plan, bool *tuned, ptxgen_error *err);

/**
 * Stores `count` > 0 ranges, in the order of rising M, in the cache's folder. The ranges replace
 * those that are stored for the same spec, target and device. Tables that were loaded before do not
 * change. Errors: the family's refusal of a plan with these tiles, PTXGEN_ERROR_UNSUPPORTED for a
 * family without a choice of tiles, PTXGEN_ERROR_INVALID_ARGUMENT, PTXGEN_ERROR_FILE,
 * PTXGEN_ERROR_OUT_OF_MEMORY.
 */
PTXGEN_API ptxgen_status ptxgen_tuning_store(const ptxgen_cache *cache,
                                             const ptxgen_device_facts *device,
                                             const ptxgen_family *family, const void *spec,
                                             const ptxgen_target *target,
                                             const ptxgen_tuned_range *ranges, size_t count,
                                             ptxgen_error *err);

#ifdef __cplusplus
}
#endif
#endif
