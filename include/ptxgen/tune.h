/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Tuning: tiles that were measured to be the fastest on a device, kept for the plans of later
 * processes.
 *
 * A plan chooses its tiles by a model of the chip. `ptxgen tune` measures those that it might have
 * chosen, and stores for a spec which is best for which M, in the file "tuning" of the disk cache's
 * folder (cache.h). A dispatcher reads that file when it is created and plans by it; on your own:
 *
 *     ptxgen_tuning *tuning;
 *     ptxgen_tuning_load(cache, &facts, &tuning, &err);
 *     ptxgen_tuned_plan(tuning, ptxgen_marlin_family(), &spec, &target, &plan, NULL, &err);
 *     ptxgen_tuning_free(tuning);                         // plans do not refer to it
 *
 * The table is an argument: a plan is a pure function of spec, target and table, and with another
 * table sums may be in another order.
 *
 * The file is text: for each spec the lines that say what was measured where (family with its plan
 * version, spec, target, device, CUDA version), then one line for each range of M. An entry counts
 * only when all of these are what they are now, its lines are to the byte what this library
 * writes, and its tiles are among those that the plan may choose from. Anything else is as if it
 * were not there; a file that is damaged, longer than 64 KiB, or writable by others is ignored
 * whole. A new choice for a spec takes the place of the old one, and when the file is full the
 * oldest go. It is written under the cache's lock and renamed into place.
 *
 * Lifetime: a table refers to nothing. Threads: a table is constant; any number may use it.
 * Errors: a status and a sentence.
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
 * What the cache's folder has for this device: maybe nothing. `cache` NULL: nothing.
 * Errors: PTXGEN_ERROR_INVALID_ARGUMENT, PTXGEN_ERROR_OUT_OF_MEMORY.
 */
PTXGEN_API ptxgen_status ptxgen_tuning_load(const ptxgen_cache *cache,
                                            const ptxgen_device_facts *device,
                                            ptxgen_tuning **tuning, ptxgen_error *err);
/** The same from such a file's text. PTXGEN_ERROR_MALFORMED when it is damaged. */
PTXGEN_API ptxgen_status ptxgen_tuning_parse(const char *text, size_t length,
                                             const ptxgen_device_facts *device,
                                             ptxgen_tuning **tuning, ptxgen_error *err);
PTXGEN_API void ptxgen_tuning_free(ptxgen_tuning *tuning);

/** Why the folder's file was ignored, a clause without an end; NULL when it was not. */
PTXGEN_API const char *ptxgen_tuning_complaint(const ptxgen_tuning *tuning);

/**
 * Fills `ranges` with what the table has for the spec, by rising M, and returns how many they are:
 * 0 for nothing. Whether the plan can use them is seen by ptxgen_tuned_plan.
 */
PTXGEN_API size_t ptxgen_tuning_find(const ptxgen_tuning *tuning, const ptxgen_family *family,
                                     const void *spec, const ptxgen_target *target,
                                     ptxgen_tuned_range ranges[PTXGEN_TUNED_RANGES]);

/**
 * The family's plan with what the table has for the spec; without it, or with `tuning` NULL, the
 * family's own. `tuned`, unless NULL, receives which it is. Errors: those of the family's plan.
 */
PTXGEN_API ptxgen_status ptxgen_tuned_plan(const ptxgen_tuning *tuning, const ptxgen_family *family,
                                           const void *spec, const ptxgen_target *target,
                                           void *plan, bool *tuned, ptxgen_error *err);

/**
 * Keeps `count` > 0 ranges, by rising M, for the spec in the cache's folder, instead of what it has
 * for the same spec, target and device. Tables that were loaded before do not change.
 * Errors: the refusal of the family, which is asked for a plan with them;
 * PTXGEN_ERROR_UNSUPPORTED for a family that has nothing to choose, PTXGEN_ERROR_INVALID_ARGUMENT,
 * PTXGEN_ERROR_FILE, PTXGEN_ERROR_OUT_OF_MEMORY.
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
