/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts. The primary contexts of the devices and each thread's current context are what
 * libcuda's model keeps for a whole process, and are the only such state in the emulator.
 */
#include "src/emulator/driver_state.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_DEVICES = 16, DEEPEST_STACK = 64 };

static pthread_mutex_t primary_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    struct CUctx_st *context;
    uint32_t holders;
} primary[MOST_DEVICES];

static _Thread_local struct {
    struct CUctx_st *contexts[DEEPEST_STACK];
    uint32_t depth;
} stack;

double emu_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

struct CUctx_st *emu_thread_context(void)
{
    return stack.depth ? stack.contexts[stack.depth - 1] : NULL;
}

void emu_log(struct CUctx_st *context, const char *message)
{
    if (context->options.log)
        context->options.log(context->options.log_user, message);
}

ptxgen_cu_result emu_current(struct CUctx_st **context)
{
    *context = emu_thread_context();
    return *context ? (*context)->poison : PTXGEN_CUDA_ERROR_INVALID_CONTEXT;
}

ptxgen_cu_result emu_current_unsafe(struct CUctx_st **context)
{
    ptxgen_cu_result result = emu_current(context);
    if (result == PTXGEN_CUDA_SUCCESS && (*context)->capturing)
        result = PTXGEN_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    return result;
}

static struct CUctx_st *make_context(int ordinal)
{
    struct CUctx_st *context = calloc(1, sizeof *context);
    if (!context)
        return NULL;
    context->chip = emu_chip_of(ordinal);
    context->ordinal = ordinal;
    context->default_stream = calloc(1, sizeof *context->default_stream);
    if (!context->default_stream ||
        !emu_memory_init(&context->memory, context->chip->memory_bytes)) {
        free(context->default_stream);
        free(context);
        return NULL;
    }
    context->default_stream->context = context;
    pthread_mutex_init(&context->lock, NULL);
    pthread_mutex_init(&context->launching, NULL);
    return context;
}

static void destroy_context(struct CUctx_st *context)
{
    for (uint32_t i = 0; i < stack.depth; i++)
        if (stack.contexts[i] == context)
            stack.contexts[i] = NULL;
    emu_memory_destroy(&context->memory);
    emu_tally_free(&context->tally);
    pthread_mutex_destroy(&context->lock);
    pthread_mutex_destroy(&context->launching);
    free(context->default_stream);
    free(context);
}

ptxgen_cu_result emu_cu_device_primary_ctx_retain(ptxgen_cu_context *context,
                                                  ptxgen_cu_device device)
{
    if (!emu_chip_of(device) || device >= MOST_DEVICES)
        return PTXGEN_CUDA_ERROR_INVALID_DEVICE;
    pthread_mutex_lock(&primary_lock);
    if (!primary[device].context)
        primary[device].context = make_context(device);
    *context = primary[device].context;
    if (*context)
        primary[device].holders++;
    pthread_mutex_unlock(&primary_lock);
    return *context ? PTXGEN_CUDA_SUCCESS : PTXGEN_CUDA_ERROR_OUT_OF_MEMORY;
}

ptxgen_cu_result emu_cu_device_primary_ctx_release(ptxgen_cu_device device)
{
    struct CUctx_st *gone = NULL;
    if (!emu_chip_of(device) || device >= MOST_DEVICES)
        return PTXGEN_CUDA_ERROR_INVALID_DEVICE;
    pthread_mutex_lock(&primary_lock);
    bool held = primary[device].holders > 0;
    if (held && --primary[device].holders == 0) {
        gone = primary[device].context;
        primary[device].context = NULL;
    }
    pthread_mutex_unlock(&primary_lock);
    if (gone)
        destroy_context(gone);
    return held ? PTXGEN_CUDA_SUCCESS : PTXGEN_CUDA_ERROR_INVALID_CONTEXT;
}

ptxgen_cu_result emu_cu_device_primary_ctx_get_state(ptxgen_cu_device device, unsigned int *flags,
                                                     int *active)
{
    if (!emu_chip_of(device) || device >= MOST_DEVICES)
        return PTXGEN_CUDA_ERROR_INVALID_DEVICE;
    pthread_mutex_lock(&primary_lock);
    *active = primary[device].context != NULL;
    pthread_mutex_unlock(&primary_lock);
    *flags = 0;
    return PTXGEN_CUDA_SUCCESS;
}

ptxgen_cu_result emu_cu_ctx_push_current(ptxgen_cu_context context)
{
    if (!context || stack.depth == DEEPEST_STACK)
        return PTXGEN_CUDA_ERROR_INVALID_CONTEXT;
    stack.contexts[stack.depth++] = context;
    return PTXGEN_CUDA_SUCCESS;
}

ptxgen_cu_result emu_cu_ctx_pop_current(ptxgen_cu_context *context)
{
    if (stack.depth == 0)
        return PTXGEN_CUDA_ERROR_INVALID_CONTEXT;
    stack.depth--;
    if (context)
        *context = stack.contexts[stack.depth];
    return PTXGEN_CUDA_SUCCESS;
}

ptxgen_cu_result emu_cu_ctx_set_current(ptxgen_cu_context context)
{
    if (stack.depth)
        stack.depth--;
    if (context)
        stack.contexts[stack.depth++] = context;
    return PTXGEN_CUDA_SUCCESS;
}

ptxgen_cu_result emu_cu_ctx_get_current(ptxgen_cu_context *context)
{
    *context = emu_thread_context();
    return PTXGEN_CUDA_SUCCESS;
}

ptxgen_cu_result emu_cu_ctx_create(ptxgen_cu_context *context, unsigned int flags,
                                   ptxgen_cu_device device)
{
    (void)flags;
    if (!emu_chip_of(device))
        return PTXGEN_CUDA_ERROR_INVALID_DEVICE;
    *context = make_context(device);
    return *context ? emu_cu_ctx_push_current(*context) : PTXGEN_CUDA_ERROR_OUT_OF_MEMORY;
}

ptxgen_cu_result emu_cu_ctx_destroy(ptxgen_cu_context context)
{
    if (!context)
        return PTXGEN_CUDA_ERROR_INVALID_CONTEXT;
    if (emu_thread_context() == context)
        stack.depth--;
    destroy_context(context);
    return PTXGEN_CUDA_SUCCESS;
}

ptxgen_cu_result emu_cu_ctx_get_device(ptxgen_cu_device *device)
{
    struct CUctx_st *context = emu_thread_context();
    if (!context)
        return PTXGEN_CUDA_ERROR_INVALID_CONTEXT;
    *device = context->ordinal;
    return PTXGEN_CUDA_SUCCESS;
}

ptxgen_cu_result emu_cu_ctx_synchronize(void)
{
    struct CUctx_st *context;
    return emu_current_unsafe(&context);
}

/* ---- the emulator's own calls on contexts ---- */

ptxgen_status ptxgen_emulator_set_options(ptxgen_cu_context context,
                                          const ptxgen_emulator_options *options, ptxgen_error *err)
{
    if (!context || !options)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "the context or options are NULL");
    if (options->workers > 1024)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT, "%u workers; the limit is 1024",
                           options->workers);
    pthread_mutex_lock(&context->lock);
    context->options = *options;
    pthread_mutex_unlock(&context->lock);
    return PTXGEN_OK;
}

void ptxgen_emulator_last_fault(ptxgen_cu_context context, ptxgen_emulator_fault *fault)
{
    pthread_mutex_lock(&context->lock);
    *fault = context->fault;
    pthread_mutex_unlock(&context->lock);
}

void ptxgen_emulator_clear_fault(ptxgen_cu_context context)
{
    pthread_mutex_lock(&context->lock);
    context->fault = (ptxgen_emulator_fault){0};
    context->poison = PTXGEN_CUDA_SUCCESS;
    pthread_mutex_unlock(&context->lock);
}

void ptxgen_emulator_last_launch(ptxgen_cu_context context, uint64_t *warp_steps,
                                 uint64_t *lane_steps, double *seconds)
{
    pthread_mutex_lock(&context->lock);
    *warp_steps = context->last_steps;
    *lane_steps = context->last_lane_steps;
    *seconds = context->last_seconds;
    pthread_mutex_unlock(&context->lock);
}

struct ptxgen_emulator_profile {
    struct emu_tally tally;
};

ptxgen_status ptxgen_emulator_profile_take(ptxgen_cu_context context,
                                           ptxgen_emulator_profile **profile, ptxgen_error *err)
{
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
    return profile->tally.count;
}

ptxgen_emulator_line ptxgen_emulator_profile_line(const ptxgen_emulator_profile *profile,
                                                  size_t index)
{
    return index < profile->tally.count ? profile->tally.lines[index] : (ptxgen_emulator_line){0};
}

void ptxgen_emulator_profile_free(ptxgen_emulator_profile *profile)
{
    if (!profile)
        return;
    emu_tally_free(&profile->tally);
    free(profile);
}
