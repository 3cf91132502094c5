/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The emulator's header in a library that is built without the emulator (-Demulator=disabled). The
 * symbols are those of any other build, so a program links with both; every call refuses.
 */
#include <ptxgen/emulator.h>

#include <string.h>

#define SENTENCE "this libptxgen was built without its emulator"

/* Most parameters of the calls that refuse are not looked at. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define PTXGEN_DRIVER_CALL(member, name, symbol, since, need, parameters)                          \
    static ptxgen_cu_result refuse_##member parameters                                             \
    {                                                                                              \
        return PTXGEN_CUDA_ERROR_NOT_SUPPORTED;                                                    \
    }
#include <ptxgen/driver_calls.def>

static ptxgen_cu_result name_refusal(ptxgen_cu_result error, const char **text)
{
    if (!text || error != PTXGEN_CUDA_ERROR_NOT_SUPPORTED)
        return PTXGEN_CUDA_ERROR_INVALID_VALUE;
    *text = "CUDA_ERROR_NOT_SUPPORTED";
    return PTXGEN_CUDA_SUCCESS;
}

static ptxgen_cu_result explain_refusal(ptxgen_cu_result error, const char **text)
{
    if (!text || error != PTXGEN_CUDA_ERROR_NOT_SUPPORTED)
        return PTXGEN_CUDA_ERROR_INVALID_VALUE;
    *text = SENTENCE;
    return PTXGEN_CUDA_SUCCESS;
}

/* A version that ptxgen_driver_start accepts, so that it comes to cuInit and its sentence. */
static ptxgen_cu_result tell_version(int *version)
{
    if (!version)
        return PTXGEN_CUDA_ERROR_INVALID_VALUE;
    *version = PTXGEN_DRIVER_MIN_VERSION;
    return PTXGEN_CUDA_SUCCESS;
}

void ptxgen_emulator_driver(ptxgen_driver *driver)
{
    if (!driver)
        return;
    memset(driver, 0, sizeof *driver);
#define PTXGEN_DRIVER_CALL(member, name, symbol, since, need, parameters)                          \
    driver->member = refuse_##member;
#include <ptxgen/driver_calls.def>
    driver->get_error_name = name_refusal;
    driver->get_error_string = explain_refusal;
    driver->driver_get_version = tell_version;
}

ptxgen_status ptxgen_emulator_ordinal(const char *name, int *ordinal, ptxgen_error *err)
{
    if (!name || !ordinal)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "the device's name, or the place for its ordinal, is NULL");
    return ptxgen_fail(err, PTXGEN_ERROR_NO_DEVICE, "there is no device '%s': " SENTENCE, name);
}

ptxgen_status ptxgen_emulator_set_options(ptxgen_cu_context context,
                                          const ptxgen_emulator_options *options, ptxgen_error *err)
{
    return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "no context is emulated: " SENTENCE);
}

void ptxgen_emulator_last_fault(ptxgen_cu_context context, ptxgen_emulator_fault *fault)
{
    if (fault)
        memset(fault, 0, sizeof *fault);
}

void ptxgen_emulator_clear_fault(ptxgen_cu_context context)
{
}

void ptxgen_emulator_last_launch(ptxgen_cu_context context, uint64_t *warp_steps,
                                 uint64_t *lane_steps, double *seconds)
{
    if (warp_steps)
        *warp_steps = 0;
    if (lane_steps)
        *lane_steps = 0;
    if (seconds)
        *seconds = 0;
}

ptxgen_status ptxgen_emulator_profile_take(ptxgen_cu_context context,
                                           ptxgen_emulator_profile **profile, ptxgen_error *err)
{
    if (profile)
        *profile = NULL;
    return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "no context is emulated: " SENTENCE);
}

size_t ptxgen_emulator_profile_count(const ptxgen_emulator_profile *profile)
{
    return 0;
}

ptxgen_emulator_line ptxgen_emulator_profile_line(const ptxgen_emulator_profile *profile,
                                                  size_t index)
{
    return (ptxgen_emulator_line){0};
}

void ptxgen_emulator_profile_free(ptxgen_emulator_profile *profile)
{
}
