/* SPDX-License-Identifier: Apache-2.0 */
/* Launches: their checks, as the driver makes them, and occupancy. */
#include "src/emulator/cluster.h"
#include "src/emulator/driver_state.h"
#include "src/emulator/global_order.h"
#include "src/emulator/global_race.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PARAM_END = 0, PARAM_POINTER = 1, PARAM_SIZE = 2 };

/* ---- occupancy ---- */

/* Registers that a thread needs: the largest number that are live at once is not known here,
 * so the declared ones count, up to what an assembler would spill to. */
uint32_t emu_register_count(const struct CUfunc_st *function)
{
    uint32_t words = function->program->file_bytes / 128, limit = 64;
    if (function->function->max_registers)
        limit = function->function->max_registers;
    return words < 16 ? 16 : words < limit ? words : limit;
}

uint32_t emu_occupancy(const struct CUfunc_st *function, uint32_t threads, size_t dynamic_bytes)
{
    const struct emu_chip *chip = function->module->chip;
    uint32_t warps = (threads + 31) / 32;
    uint32_t registers = (emu_register_count(function) + 7) / 8 * 8 * 32;
    uint64_t shared = function->program->shared_bytes + dynamic_bytes + EMU_SHARED_RESERVED;
    uint32_t by_threads = chip->threads_per_sm / (warps * 32);
    uint32_t by_registers = EMU_REGISTERS_PER_SM / registers / warps;
    uint64_t by_shared = chip->shared_per_sm / shared;
    uint32_t fit = chip->ctas_per_sm;
    fit = by_threads < fit ? by_threads : fit;
    fit = by_registers < fit ? by_registers : fit;
    return by_shared < fit ? (uint32_t)by_shared : fit;
}

ptxgen_cu_result emu_cu_occupancy_max_active_blocks_with_flags(int *blocks,
                                                               ptxgen_cu_function function,
                                                               int block_threads,
                                                               size_t shared_bytes,
                                                               unsigned int flags)
{
    (void)flags;
    if (!blocks || !function || block_threads < 1 || block_threads > 1024)
        return PTXGEN_CUDA_ERROR_INVALID_VALUE;
    *blocks = (int)emu_occupancy(function, (uint32_t)block_threads, shared_bytes);
    return PTXGEN_CUDA_SUCCESS;
}

ptxgen_cu_result emu_cu_occupancy_max_active_blocks(int *blocks, ptxgen_cu_function function,
                                                    int block_threads, size_t shared_bytes)
{
    return emu_cu_occupancy_max_active_blocks_with_flags(blocks, function, block_threads,
                                                         shared_bytes, 0);
}

/* ---- checks ---- */

static bool grid_fits(const struct emu_op *op)
{
    uint64_t threads = (uint64_t)op->block[0] * op->block[1] * op->block[2];
    for (int i = 0; i < 3; i++) {
        if (op->grid[i] == 0 || op->block[i] == 0 || op->grid[i] % op->cluster[i])
            return false;
        if (op->grid[i] > (i ? 65535u : 0x7fffffffu) || op->block[i] > (i == 2 ? 64u : 1024u))
            return false;
    }
    return threads <= 1024;
}

static bool bounds_fit(const struct emu_op *op)
{
    const struct emu_function *parsed = op->function->function;
    uint64_t threads = (uint64_t)op->block[0] * op->block[1] * op->block[2];
    uint64_t most =
        (uint64_t)parsed->max_threads[0] * parsed->max_threads[1] * parsed->max_threads[2];
    if (parsed->required_threads[0] &&
        memcmp(parsed->required_threads, op->block, sizeof op->block) != 0)
        return false;
    return !parsed->max_threads[0] || threads <= most;
}

static ptxgen_cu_result check_launch(struct emu_op *op)
{
    const struct CUfunc_st *function = op->function;
    const struct emu_chip *chip = function->module->chip;
    const struct emu_function *parsed = function->function;
    uint32_t ctas = op->cluster[0] * op->cluster[1] * op->cluster[2];
    if (parsed->required_cluster[0]) {
        if (op->explicit_cluster &&
            memcmp(parsed->required_cluster, op->cluster, sizeof op->cluster) != 0)
            return PTXGEN_CUDA_ERROR_INVALID_VALUE;
        memcpy(op->cluster, parsed->required_cluster, sizeof op->cluster);
        op->explicit_cluster = true;
        ctas = op->cluster[0] * op->cluster[1] * op->cluster[2];
    }
    if (ctas == 0 || (op->explicit_cluster && chip->sm < 90) || ctas > EMU_MAX_CLUSTER ||
        (ctas > 8 && !function->allow_large_cluster))
        return PTXGEN_CUDA_ERROR_INVALID_VALUE;
    if (!grid_fits(op) || !bounds_fit(op))
        return PTXGEN_CUDA_ERROR_INVALID_VALUE;
    uint64_t shared = (uint64_t)op->dynamic_bytes + function->program->shared_bytes;
    bool opted_in = op->dynamic_bytes <= (uint32_t)function->max_dynamic_shared;
    if (shared > chip->shared_per_cta || (shared > EMU_SHARED_STATIC_LIMIT && !opted_in))
        return PTXGEN_CUDA_ERROR_INVALID_VALUE;
    uint32_t threads = op->block[0] * op->block[1] * op->block[2];
    return emu_occupancy(function, threads, op->dynamic_bytes)
               ? PTXGEN_CUDA_SUCCESS
               : PTXGEN_CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
}

/* ---- parameters ---- */

static bool parameters_given(const struct emu_program *program, void **parameters, void **extra)
{
    for (uint32_t i = 0; parameters && i < program->parameter_count; i++)
        if (!parameters[i])
            return false;
    for (size_t i = 0; !parameters && extra && (uintptr_t)extra[i] != PARAM_END; i += 2)
        if (!extra[i + 1])
            return false;
    return parameters || extra || !program->parameter_count;
}

static uint8_t *copy_parameters(const struct emu_program *program, void **parameters, void **extra)
{
    uint8_t *copy = calloc(1, program->parameter_bytes + 16u);
    if (!copy)
        return NULL;
    if (parameters) {
        for (uint32_t i = 0; i < program->parameter_count; i++)
            memcpy(copy + program->parameters[i].offset, parameters[i],
                   program->parameters[i].size);
        return copy;
    }
    const void *buffer = NULL;
    size_t size = 0;
    for (size_t i = 0; extra && (uintptr_t)extra[i] != PARAM_END; i += 2) {
        if ((uintptr_t)extra[i] == PARAM_POINTER)
            buffer = extra[i + 1];
        else if ((uintptr_t)extra[i] == PARAM_SIZE)
            size = *(size_t *)extra[i + 1];
        else
            break;
    }
    if (buffer)
        memcpy(copy, buffer, size < program->parameter_bytes ? size : program->parameter_bytes);
    return copy;
}

static ptxgen_cu_result launch(struct emu_op *op, ptxgen_cu_stream stream, void **parameters,
                               void **extra)
{
    struct CUctx_st *context;
    ptxgen_cu_result result = emu_current(&context);
    if (result != PTXGEN_CUDA_SUCCESS)
        return result;
    if (!op->function)
        return PTXGEN_CUDA_ERROR_INVALID_HANDLE;
    if (emu_context_of(op->function->module->home) != context)
        return PTXGEN_CUDA_ERROR_INVALID_CONTEXT;
    if (!parameters_given(op->function->program, parameters, extra))
        return PTXGEN_CUDA_ERROR_INVALID_VALUE;
    result = check_launch(op);
    if (result != PTXGEN_CUDA_SUCCESS)
        return result;
    op->kind = EMU_OP_KERNEL;
    op->parameters = copy_parameters(op->function->program, parameters, extra);
    if (!op->parameters)
        return PTXGEN_CUDA_ERROR_OUT_OF_MEMORY;
    return emu_enqueue(stream, op);
}

ptxgen_cu_result emu_cu_launch_kernel(ptxgen_cu_function function, unsigned int grid_x,
                                      unsigned int grid_y, unsigned int grid_z,
                                      unsigned int block_x, unsigned int block_y,
                                      unsigned int block_z, unsigned int shared_bytes,
                                      ptxgen_cu_stream stream, void **parameters, void **extra)
{
    struct emu_op op = {.function = function,
                        .grid = {grid_x, grid_y, grid_z},
                        .block = {block_x, block_y, block_z},
                        .cluster = {1, 1, 1},
                        .dynamic_bytes = shared_bytes};
    return launch(&op, stream, parameters, extra);
}

static struct emu_op op_of_config(const ptxgen_cu_launch_config *config,
                                  ptxgen_cu_function function)
{
    struct emu_op op = {.function = function,
                        .grid = {config->grid_dim_x, config->grid_dim_y, config->grid_dim_z},
                        .block = {config->block_dim_x, config->block_dim_y, config->block_dim_z},
                        .cluster = {1, 1, 1},
                        .dynamic_bytes = config->shared_mem_bytes};
    for (unsigned int i = 0; i < config->attribute_count; i++) {
        const ptxgen_cu_launch_attribute *attribute = &config->attributes[i];
        if (attribute->id == PTXGEN_CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
            op.programmatic = attribute->value.programmatic_stream_serialization_allowed;
        if (attribute->id != PTXGEN_CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            continue;
        op.cluster[0] = attribute->value.cluster_dim.x;
        op.cluster[1] = attribute->value.cluster_dim.y;
        op.cluster[2] = attribute->value.cluster_dim.z;
        op.explicit_cluster = true;
    }
    return op;
}

ptxgen_cu_result emu_cu_launch_kernel_ex(const ptxgen_cu_launch_config *config,
                                         ptxgen_cu_function function, void **parameters,
                                         void **extra)
{
    if (!config || (config->attribute_count && !config->attributes))
        return PTXGEN_CUDA_ERROR_INVALID_VALUE;
    struct emu_op op = op_of_config(config, function);
    for (int i = 0; i < 3; i++)
        if (op.cluster[i] == 0)
            return PTXGEN_CUDA_ERROR_INVALID_VALUE;
    return launch(&op, config->stream, parameters, extra);
}

ptxgen_cu_result emu_cu_occupancy_max_active_clusters(int *clusters, ptxgen_cu_function function,
                                                      const ptxgen_cu_launch_config *config)
{
    if (!clusters || !function || !config)
        return PTXGEN_CUDA_ERROR_INVALID_VALUE;
    struct emu_op op = op_of_config(config, function);
    uint32_t ctas = op.cluster[0] * op.cluster[1] * op.cluster[2];
    uint32_t threads = op.block[0] * op.block[1] * op.block[2];
    if (ctas == 0 || threads == 0 || threads > 1024)
        return PTXGEN_CUDA_ERROR_INVALID_VALUE;
    uint32_t per_sm = emu_occupancy(function, threads, op.dynamic_bytes);
    *clusters = (int)(per_sm * function->module->chip->multiprocessors / ctas);
    return PTXGEN_CUDA_SUCCESS;
}

/* ---- running ---- */

static uint32_t processors(void)
{
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count < 1 ? 1 : (uint32_t)count;
}

static void choose_workers(struct emu_launch *launch, const struct CUctx_st *context,
                           const struct emu_op *op)
{
    static const uint64_t host_limit = (uint64_t)2 << 30;
    uint32_t workers = context->options.workers ? context->options.workers : processors();
    if (op->function->program->communicates && !context->options.spread_always)
        workers = 1;
    if (workers > launch->cluster_count)
        workers = (uint32_t)launch->cluster_count;
    uint64_t resident = (uint64_t)emu_occupancy(op->function, launch->threads, op->dynamic_bytes) *
                        context->chip->multiprocessors / launch->cluster_ctas / workers;
    uint64_t by_memory = host_limit / (emu_cta_bytes(launch) * launch->cluster_ctas) / workers;
    resident = resident < by_memory ? resident : by_memory;
    launch->resident = resident ? (uint32_t)resident : 1;
    launch->worker_count = workers;
    if (launch->cluster_count > RACE_MOST_CLUSTERS ||
        (op->function->program->communicates && workers > 1))
        launch->checks &= ~(uint32_t)PTXGEN_CHECK_GLOBAL_RACES;
}

static ptxgen_cu_result result_of(ptxgen_emulator_check check)
{
    switch (check) {
    case PTXGEN_CHECK_BOUNDS: return PTXGEN_CUDA_ERROR_ILLEGAL_ADDRESS;
    case PTXGEN_CHECK_ALIGNMENT: return PTXGEN_CUDA_ERROR_MISALIGNED_ADDRESS;
    case PTXGEN_CHECK_LIVELOCK:
    case PTXGEN_CHECK_DEADLOCK: return PTXGEN_CUDA_ERROR_LAUNCH_TIMEOUT;
    case PTXGEN_CHECK_TRAP: return PTXGEN_CUDA_ERROR_ILLEGAL_INSTRUCTION;
    default: return PTXGEN_CUDA_ERROR_LAUNCH_FAILED;
    }
}

static ptxgen_cu_result finish(struct CUctx_st *context, struct emu_launch *launch,
                               ptxgen_status status, double seconds)
{
    ptxgen_cu_result result = PTXGEN_CUDA_SUCCESS;
    pthread_mutex_lock(&context->lock);
    context->last_steps = launch->steps;
    context->last_lane_steps = launch->lane_steps;
    context->last_seconds = seconds;
    if (launch->options->profile && launch->workers && status != PTXGEN_ERROR_OUT_OF_MEMORY &&
        !emu_tally_add(&context->tally, launch) && status == PTXGEN_OK)
        status = PTXGEN_ERROR_OUT_OF_MEMORY;
    if (status == PTXGEN_ERROR_PTX_FAULT) {
        context->fault = launch->fault;
        context->poison = result = result_of(launch->fault.check);
    } else if (status != PTXGEN_OK) {
        result = PTXGEN_CUDA_ERROR_OUT_OF_MEMORY;
    }
    pthread_mutex_unlock(&context->lock);
    if (status == PTXGEN_ERROR_PTX_FAULT)
        emu_log(context, launch->fault.message);
    for (uint32_t i = 0; launch->workers && i < launch->worker_count; i++)
        free(launch->workers[i].counters);
    free(launch->workers);
    return result;
}

/* The marks of kernels ahead that the launch may overlap are where it begins. */
static void follow(struct emu_launch *launch, struct emu_memory *memory, const void *stream,
                   bool programmatic)
{
    launch->follows = programmatic && memory->kept && memory->kept_stream == stream &&
                      (launch->checks & PTXGEN_CHECK_GLOBAL_RACES) &&
                      (launch->checks & PTXGEN_CHECK_OVERLAP);
    if (!launch->follows)
        emu_race_free(&memory->kept);
    emu_race_age(memory->kept, memory->kept_older);
    launch->race_pages = memory->kept;
    memory->kept = NULL;
}

/* Marks are kept for a launch behind this one, which chips before compute capability 9.0 hold back
 * to the end. */
static void leave(struct emu_launch *launch, struct emu_memory *memory, const void *stream)
{
    struct emu_race_page *pages = launch->race_pages;
    if (launch->chip->sm < 90 || launch->faulted || !(launch->checks & PTXGEN_CHECK_OVERLAP))
        emu_race_free(&pages);
    memory->kept = pages;
    memory->kept_older = launch->leaves_early;
    memory->kept_stream = stream;
}

ptxgen_cu_result emu_run_kernel(struct CUctx_st *context, const struct CUstream_st *stream,
                                const struct emu_op *op)
{
    struct emu_launch launch = {.program = op->function->program,
                                .chip = context->chip,
                                .memory = &context->memory,
                                .cluster_ctas = op->cluster[0] * op->cluster[1] * op->cluster[2],
                                .threads = op->block[0] * op->block[1] * op->block[2],
                                .dynamic_bytes = op->dynamic_bytes,
                                .explicit_cluster = op->explicit_cluster,
                                .parameters = op->parameters,
                                .cluster_count = 1};
    ptxgen_emulator_options options;
    ptxgen_error err;
    pthread_mutex_lock(&context->launching);
    pthread_mutex_lock(&context->lock);
    options = context->options;
    launch.grid_number = context->grids++;
    launch.order_seed = options.seed * 0x9e3779b97f4a7c15u + context->orders++;
    pthread_mutex_unlock(&context->lock);
    launch.options = &options;
    launch.checks = ~options.disabled_checks;
    launch.proxies = (launch.checks & PTXGEN_CHECK_PROXIES) && launch.program->uses_proxies;
    launch.warps = (launch.threads + 31) / 32;
    uint32_t alignment = launch.program->shared_alignment;
    uint32_t fixed = (launch.program->shared_bytes + alignment - 1) / alignment * alignment;
    launch.shared_bytes =
        op->dynamic_bytes ? fixed + op->dynamic_bytes : launch.program->shared_bytes;
    for (int i = 0; i < 3; i++) {
        launch.grid[i] = op->grid[i];
        launch.block[i] = op->block[i];
        launch.cluster[i] = op->cluster[i];
        launch.clusters[i] = op->grid[i] / op->cluster[i];
        launch.cluster_count *= launch.clusters[i];
    }
    choose_workers(&launch, context, op);
    pthread_mutex_init(&launch.lock, NULL);
    pthread_rwlock_rdlock(&context->memory.lock);
    follow(&launch, &context->memory, stream, op->programmatic);
    double start = emu_now();
    ptxgen_status status = emu_launch_run(&launch, &err);
    emu_order_free(&launch.order);
    leave(&launch, &context->memory, stream);
    double seconds = emu_now() - start;
    pthread_rwlock_unlock(&context->memory.lock);
    pthread_mutex_destroy(&launch.lock);
    ptxgen_cu_result result = finish(context, &launch, status, seconds);
    pthread_mutex_unlock(&context->launching);
    return result;
}
