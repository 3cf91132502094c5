/* SPDX-License-Identifier: Apache-2.0 */
/* What is the emulator's own: options of a context, its fault, its last launch, its profile. */
#include "src/emulator/driver_state.h"

#include <stdlib.h>

static ptxgen_status no_context(ptxgen_error *err)
{
    return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                       "the context is none of the emulator's, or is destroyed");
}

ptxgen_status ptxgen_emulator_set_options(ptxgen_cu_context context,
                                          const ptxgen_emulator_options *options, ptxgen_error *err)
{
    if (!options)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "the options are NULL");
    if (!emu_context_is_live(context))
        return no_context(err);
    if (options->workers > 1024)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%u workers; the limit is 1024",
                           options->workers);
    pthread_mutex_lock(&context->lock);
    context->options = *options;
    context->orders = 0;
    pthread_mutex_unlock(&context->lock);
    return PTXGEN_OK;
}

void ptxgen_emulator_last_fault(ptxgen_cu_context context, ptxgen_emulator_fault *fault)
{
    if (!fault)
        return;
    if (!emu_context_is_live(context)) {
        *fault = (ptxgen_emulator_fault){.check = PTXGEN_CHECK_NONE};
        return;
    }
    pthread_mutex_lock(&context->lock);
    *fault = context->fault;
    pthread_mutex_unlock(&context->lock);
}

void ptxgen_emulator_clear_fault(ptxgen_cu_context context)
{
    if (!emu_context_is_live(context))
        return;
    pthread_mutex_lock(&context->lock);
    context->fault = (ptxgen_emulator_fault){0};
    context->poison = PTXGEN_CUDA_SUCCESS;
    pthread_mutex_unlock(&context->lock);
}

void ptxgen_emulator_last_launch(ptxgen_cu_context context, uint64_t *warp_steps,
                                 uint64_t *lane_steps, double *seconds)
{
    uint64_t warps = 0, lanes = 0;
    double time = 0;
    if (emu_context_is_live(context)) {
        pthread_mutex_lock(&context->lock);
        warps = context->last_steps;
        lanes = context->last_lane_steps;
        time = context->last_seconds;
        pthread_mutex_unlock(&context->lock);
    }
    if (warp_steps)
        *warp_steps = warps;
    if (lane_steps)
        *lane_steps = lanes;
    if (seconds)
        *seconds = time;
}

struct ptxgen_emulator_profile {
    struct emu_tally tally;
};

ptxgen_status ptxgen_emulator_profile_take(ptxgen_cu_context context,
                                           ptxgen_emulator_profile **profile, ptxgen_error *err)
{
    if (!profile)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "the place for the profile is NULL");
    *profile = NULL;
    if (!emu_context_is_live(context))
        return no_context(err);
    *profile = calloc(1, sizeof **profile);
    if (!*profile)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for a profile");
    pthread_mutex_lock(&context->lock);
    (*profile)->tally = context->tally;
    context->tally = (struct emu_tally){0};
    pthread_mutex_unlock(&context->lock);
    return PTXGEN_OK;
}

size_t ptxgen_emulator_profile_count(const ptxgen_emulator_profile *profile)
{
    return profile ? profile->tally.count : 0;
}

ptxgen_emulator_line ptxgen_emulator_profile_line(const ptxgen_emulator_profile *profile,
                                                  size_t index)
{
    return index < ptxgen_emulator_profile_count(profile) ? profile->tally.lines[index]
                                                          : (ptxgen_emulator_line){0};
}

void ptxgen_emulator_profile_free(ptxgen_emulator_profile *profile)
{
    if (!profile)
        return;
    emu_tally_free(&profile->tally);
    free(profile);
}
