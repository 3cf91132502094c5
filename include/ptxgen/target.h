/* SPDX-License-Identifier: Apache-2.0 */
/**
 * What a kernel is planned for: the target that the PTX text declares, and the size of the chip.
 * A plan is a pure function of a spec and a target, so equal targets give equal text on every
 * machine.
 *
 *     ptxgen_target target;
 *     ptxgen_target_parse("sm_90", &target, &err);          // a typical chip of that name
 *     target = ptxgen_device_target(&facts);                // the device at hand (device.h)
 *
 * A target is a plain value: it has no lifetime, and any thread may use it.
 */
#ifndef PTXGEN_TARGET_H
#define PTXGEN_TARGET_H

#include <ptxgen/ptx.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ptxgen_target {
    ptx_target ptx;           /**< the text's target, and the highest PTX version allowed */
    uint32_t multiprocessors; /**< streaming multiprocessors of the chip: 1 to 65536 */
    uint32_t
        shared_per_cta; /**< shared memory that one CTA may use, opt-in: bytes, 48 KB to 16 MB */
} ptxgen_target;

/**
 * Fills the target for a PTX target name such as "sm_80" or "sm_90a" with the size of a common chip
 * of that architecture (108 multiprocessors for sm_80, 132 for sm_90) and no limit on the PTX
 * version. Errors: PTXGEN_ERROR_TARGET for a name that is no target.
 */
PTXGEN_API ptxgen_status ptxgen_target_parse(const char *name, ptxgen_target *target,
                                             ptxgen_error *err);

#ifdef __cplusplus
}
#endif
#endif
