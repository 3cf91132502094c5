/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts. The primary contexts of the devices, the list of live contexts and each thread's
 * current context are what libcuda's model keeps for a whole process, and are the only such state
 * in the emulator.
 */
#include "src/emulator/driver_state.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_DEVICES = 16, DEEPEST_STACK = 64 };

static pthread_mutex_t contexts_lock = PTHREAD_MUTEX_INITIALIZER;
static struct CUctx_st *live, *unused;
static struct {
    struct CUctx_st *context;
    uint32_t holders;
} primary[MOST_DEVICES];

static _Thread_local struct {
    struct emu_context_ref contexts[DEEPEST_STACK];
    uint32_t depth;
} stack;

double emu_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void emu_log(struct CUctx_st *context, const char *message)
{
    if (context->options.log)
        context->options.log(context->options.log_user, message);
}

/* ---- lives ---- */

struct emu_context_ref emu_ref_of(struct CUctx_st *context)
{
    return (struct emu_context_ref){context, atomic_load(&context->life)};
}

struct CUctx_st *emu_context_of(struct emu_context_ref ref)
{
    return ref.context && atomic_load(&ref.context->life) == ref.life ? ref.context : NULL;
}

/* Where the list's link to the context is, NULL when it is not in the list. Under contexts_lock. */
static struct CUctx_st **link_to(struct CUctx_st **list, const struct CUctx_st *context)
{
    while (*list && *list != context)
        list = &(*list)->next;
    return *list ? list : NULL;
}

bool emu_context_is_live(const struct CUctx_st *context)
{
    pthread_mutex_lock(&contexts_lock);
    bool found = context && link_to(&live, context);
    pthread_mutex_unlock(&contexts_lock);
    return found;
}

static struct CUctx_st *allocate_context(void)
{
    struct CUctx_st *context = calloc(1, sizeof *context);
    if (!context)
        return NULL;
    context->default_stream = calloc(1, sizeof *context->default_stream);
    if (!context->default_stream || !emu_memory_init(&context->memory)) {
        free(context->default_stream);
        free(context);
        return NULL;
    }
    pthread_mutex_init(&context->lock, NULL);
    pthread_mutex_init(&context->launching, NULL);
    return context;
}

/* Under contexts_lock. */
static struct CUctx_st *make_context(int ordinal)
{
    struct CUctx_st *context = unused;
    if (context)
        unused = context->next;
    else
        context = allocate_context();
    if (!context)
        return NULL;
    context->chip = emu_chip_of(ordinal);
    context->ordinal = ordinal;
    context->poison = PTXGEN_CUDA_SUCCESS;
    context->default_stream->home = emu_ref_of(context);
    emu_memory_clear(&context->memory, context->chip->memory_bytes);
    context->next = live;
    live = context;
    return context;
}

/* Waits for a launch that runs; calls of other threads fail from then on. False: it is not live. */
static bool destroy_context(struct CUctx_st *context)
{
    pthread_mutex_lock(&contexts_lock);
    struct CUctx_st **link = link_to(&live, context);
    if (link)
        *link = context->next;
    pthread_mutex_unlock(&contexts_lock);
    if (!link)
        return false;
    pthread_mutex_lock(&context->launching);
    pthread_mutex_lock(&context->lock);
    atomic_fetch_add(&context->life, 1);
    context->poison = PTXGEN_CUDA_ERROR_CONTEXT_IS_DESTROYED;
    context->options = (ptxgen_emulator_options){0};
    context->fault = (ptxgen_emulator_fault){0};
    context->last_steps = context->last_lane_steps = context->grids = context->orders = 0;
    context->last_seconds = 0;
    context->capturing = 0;
    emu_tally_free(&context->tally);
    emu_memory_clear(&context->memory, 0);
    pthread_mutex_unlock(&context->lock);
    pthread_mutex_unlock(&context->launching);
    pthread_mutex_lock(&contexts_lock);
    context->next = unused;
    unused = context;
    pthread_mutex_unlock(&contexts_lock);
    return true;
}

/* When the library is unloaded. */
__attribute__((destructor)) static void free_unused(void)
{
    while (unused) {
        struct CUctx_st *context = unused;
        unused = context->next;
        emu_memory_destroy(&context->memory);
        pthread_mutex_destroy(&context->lock);
        pthread_mutex_destroy(&context->launching);
        free(context->default_stream);
        free(context);
    }
}

/* ---- the current one ---- */

struct CUctx_st *emu_thread_context(void)
{
    return stack.depth ? emu_context_of(stack.contexts[stack.depth - 1]) : NULL;
}

ptxgen_cu_result emu_bound(struct CUctx_st **context)
{
    *context = emu_thread_context();
    if (*context)
        return PTXGEN_CUDA_SUCCESS;
    return stack.depth ? PTXGEN_CUDA_ERROR_CONTEXT_IS_DESTROYED : PTXGEN_CUDA_ERROR_INVALID_CONTEXT;
}

ptxgen_cu_result emu_current(struct CUctx_st **context)
{
    ptxgen_cu_result result = emu_bound(context);
    return result == PTXGEN_CUDA_SUCCESS ? (*context)->poison : result;
}

ptxgen_cu_result emu_current_unsafe(struct CUctx_st **context)
{
    ptxgen_cu_result result = emu_current(context);
    if (result == PTXGEN_CUDA_SUCCESS && (*context)->capturing)
        result = PTXGEN_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    return result;
}

ptxgen_cu_result emu_cu_ctx_push_current(ptxgen_cu_context context)
{
    if (!emu_context_is_live(context) || stack.depth == DEEPEST_STACK)
        return PTXGEN_CUDA_ERROR_INVALID_CONTEXT;
    stack.contexts[stack.depth++] = emu_ref_of(context);
    return PTXGEN_CUDA_SUCCESS;
}

ptxgen_cu_result emu_cu_ctx_pop_current(ptxgen_cu_context *context)
{
    if (stack.depth == 0)
        return PTXGEN_CUDA_ERROR_INVALID_CONTEXT;
    if (context)
        *context = emu_thread_context();
    stack.depth--;
    return PTXGEN_CUDA_SUCCESS;
}

ptxgen_cu_result emu_cu_ctx_set_current(ptxgen_cu_context context)
{
    if (context && !emu_context_is_live(context))
        return PTXGEN_CUDA_ERROR_INVALID_CONTEXT;
    if (stack.depth)
        stack.depth--;
    if (context)
        stack.contexts[stack.depth++] = emu_ref_of(context);
    return PTXGEN_CUDA_SUCCESS;
}

ptxgen_cu_result emu_cu_ctx_get_current(ptxgen_cu_context *context)
{
    if (!context)
        return PTXGEN_CUDA_ERROR_INVALID_VALUE;
    *context = emu_thread_context();
    return PTXGEN_CUDA_SUCCESS;
}

ptxgen_cu_result emu_cu_ctx_get_device(ptxgen_cu_device *device)
{
    struct CUctx_st *context;
    ptxgen_cu_result result = emu_bound(&context);
    if (result != PTXGEN_CUDA_SUCCESS)
        return result;
    if (!device)
        return PTXGEN_CUDA_ERROR_INVALID_VALUE;
    *device = context->ordinal;
    return PTXGEN_CUDA_SUCCESS;
}

ptxgen_cu_result emu_cu_ctx_synchronize(void)
{
    struct CUctx_st *context;
    ptxgen_cu_result result = emu_current_unsafe(&context);
    if (result == PTXGEN_CUDA_SUCCESS)
        emu_memory_settle(&context->memory);
    return result;
}

/* ---- making and destroying ---- */

ptxgen_cu_result emu_cu_device_primary_ctx_retain(ptxgen_cu_context *context,
                                                  ptxgen_cu_device device)
{
    if (!context)
        return PTXGEN_CUDA_ERROR_INVALID_VALUE;
    if (!emu_chip_of(device) || device >= MOST_DEVICES)
        return PTXGEN_CUDA_ERROR_INVALID_DEVICE;
    pthread_mutex_lock(&contexts_lock);
    if (!primary[device].context)
        primary[device].context = make_context(device);
    *context = primary[device].context;
    if (*context)
        primary[device].holders++;
    pthread_mutex_unlock(&contexts_lock);
    return *context ? PTXGEN_CUDA_SUCCESS : PTXGEN_CUDA_ERROR_OUT_OF_MEMORY;
}

ptxgen_cu_result emu_cu_device_primary_ctx_release(ptxgen_cu_device device)
{
    struct CUctx_st *gone = NULL;
    if (!emu_chip_of(device) || device >= MOST_DEVICES)
        return PTXGEN_CUDA_ERROR_INVALID_DEVICE;
    pthread_mutex_lock(&contexts_lock);
    bool held = primary[device].holders > 0;
    if (held && --primary[device].holders == 0) {
        gone = primary[device].context;
        primary[device].context = NULL;
    }
    pthread_mutex_unlock(&contexts_lock);
    if (gone)
        destroy_context(gone);
    return held ? PTXGEN_CUDA_SUCCESS : PTXGEN_CUDA_ERROR_INVALID_CONTEXT;
}

ptxgen_cu_result emu_cu_device_primary_ctx_get_state(ptxgen_cu_device device, unsigned int *flags,
                                                     int *active)
{
    if (!flags || !active)
        return PTXGEN_CUDA_ERROR_INVALID_VALUE;
    if (!emu_chip_of(device) || device >= MOST_DEVICES)
        return PTXGEN_CUDA_ERROR_INVALID_DEVICE;
    pthread_mutex_lock(&contexts_lock);
    *active = primary[device].context != NULL;
    pthread_mutex_unlock(&contexts_lock);
    *flags = 0;
    return PTXGEN_CUDA_SUCCESS;
}

ptxgen_cu_result emu_cu_ctx_create(ptxgen_cu_context *context, unsigned int flags,
                                   ptxgen_cu_device device)
{
    (void)flags;
    if (!context)
        return PTXGEN_CUDA_ERROR_INVALID_VALUE;
    if (!emu_chip_of(device))
        return PTXGEN_CUDA_ERROR_INVALID_DEVICE;
    pthread_mutex_lock(&contexts_lock);
    *context = make_context(device);
    pthread_mutex_unlock(&contexts_lock);
    if (!*context)
        return PTXGEN_CUDA_ERROR_OUT_OF_MEMORY;
    ptxgen_cu_result result = emu_cu_ctx_push_current(*context);
    if (result != PTXGEN_CUDA_SUCCESS)
        destroy_context(*context);
    return result;
}

static bool is_primary(const struct CUctx_st *context)
{
    bool found = false;
    pthread_mutex_lock(&contexts_lock);
    for (int i = 0; i < MOST_DEVICES; i++)
        found |= primary[i].context == context;
    pthread_mutex_unlock(&contexts_lock);
    return found;
}

ptxgen_cu_result emu_cu_ctx_destroy(ptxgen_cu_context context)
{
    if (!context || is_primary(context))
        return PTXGEN_CUDA_ERROR_INVALID_CONTEXT;
    bool current = emu_thread_context() == context;
    if (!destroy_context(context))
        return PTXGEN_CUDA_ERROR_INVALID_CONTEXT;
    if (current)
        stack.depth--;
    return PTXGEN_CUDA_SUCCESS;
}
