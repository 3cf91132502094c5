/* SPDX-License-Identifier: Apache-2.0 */
/**
 * What a kernel is planned for: the text's target and the chip's size. A plan is a pure function
 * of a spec and such a target, so equal targets give equal text on every machine.
 *
 *     ptxgen_target target;
 *     ptxgen_target_parse("sm_90", &target, &err);          // a typical chip of that name
 *     target = ptxgen_device_target(&facts);                // the device at hand (device.h)
 *
 * Plain values; no lifetime, any thread.
 */
#ifndef PTXGEN_TARGET_H
#define PTXGEN_TARGET_H

#include <ptxgen/ptx.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ptxgen_target {
    ptx_target ptx;               /**< what the text declares, and the PTX version cap */
    uint32_t multiprocessors;     /**< streaming multiprocessors to fill */
    uint32_t shared_per_cta;      /**< opt-in shared memory of one CTA, bytes */
} ptxgen_target;

/**
 * Fills the target for a PTX target name ("sm_80", "sm_90a" …) with the size of a common chip of
 * that architecture (sm_80: 108 multiprocessors, sm_90: 132, …) and no cap on the PTX version.
 * Errors: PTXGEN_ERROR_TARGET for a name that is none.
 */
PTXGEN_API ptxgen_status ptxgen_target_parse(const char *name, ptxgen_target *target,
                                             ptxgen_error *err);

#ifdef __cplusplus
}
#endif
#endif
