/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/runtime/fake_driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fake_driver fake;

static char context_objects[FAKE_DEVICES], module_object, function_object, linker_object;

ptxgen_cu_context fake_context(int device)
{
    return (ptxgen_cu_context)(void *)&context_objects[device];
}

void fake_make_current(ptxgen_cu_context context)
{
    fake.stack[0] = context;
    fake.depth = context ? 1 : 0;
}

static ptxgen_cu_result enter(enum fake_call call)
{
    fake.calls[call]++;
    fake.total++;
    return fake.fail[call];
}

/* Notes the call and returns from the fake when the test wants it to fail. */
#define ENTER(member)                                                                              \
    do {                                                                                           \
        ptxgen_cu_result forced = enter(FAKE_##member);                                            \
        if (forced != PTXGEN_CUDA_SUCCESS)                                                         \
            return forced;                                                                         \
    } while (0)

/* Calls without a behaviour of their own only note that they happened. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define PTXGEN_DRIVER_CALL(member, name, symbol, since, need, parameters)                          \
    static ptxgen_cu_result plain_##member parameters                                              \
    {                                                                                              \
        return enter(FAKE_##member);                                                               \
    }
#include <ptxgen/driver_calls.def>
#pragma GCC diagnostic pop

static ptxgen_cu_result fake_get_error_name(ptxgen_cu_result error, const char **text)
{
#define NAME(name, value)                                                                          \
    if (error == PTXGEN_##name)                                                                    \
        *text = #name;
    PTXGEN_CU_RESULTS(NAME)
#undef NAME
    return PTXGEN_CUDA_SUCCESS;
}

static ptxgen_cu_result fake_get_error_string(ptxgen_cu_result error, const char **text)
{
    (void)error;
    *text = "as the test asked";
    return PTXGEN_CUDA_SUCCESS;
}

static ptxgen_cu_result fake_driver_get_version(int *version)
{
    ENTER(driver_get_version);
    *version = fake.version;
    return PTXGEN_CUDA_SUCCESS;
}

static ptxgen_cu_result fake_device_get_count(int *count)
{
    ENTER(device_get_count);
    *count = fake.device_count;
    return PTXGEN_CUDA_SUCCESS;
}

static ptxgen_cu_result fake_device_get(ptxgen_cu_device *device, int ordinal)
{
    ENTER(device_get);
    *device = ordinal;
    return PTXGEN_CUDA_SUCCESS;
}

static ptxgen_cu_result fake_device_get_name(char *name, int size, ptxgen_cu_device device)
{
    ENTER(device_get_name);
    snprintf(name, (size_t)size, "Fake GPU %d", device);
    return PTXGEN_CUDA_SUCCESS;
}

static ptxgen_cu_result fake_device_total_mem(size_t *bytes, ptxgen_cu_device device)
{
    ENTER(device_total_mem);
    *bytes = (size_t)80 << 30 >> device;
    return PTXGEN_CUDA_SUCCESS;
}

static ptxgen_cu_result fake_device_get_uuid(ptxgen_cu_uuid *uuid, ptxgen_cu_device device)
{
    ENTER(device_get_uuid);
    memset(uuid->bytes, 0x10 + device, sizeof uuid->bytes);
    return PTXGEN_CUDA_SUCCESS;
}

/* Most attributes answer 1000 plus their number, so that a test sees which one went where. */
static ptxgen_cu_result fake_device_get_attribute(int *value, ptxgen_cu_device_attribute attribute,
                                                  ptxgen_cu_device device)
{
    ENTER(device_get_attribute);
    if (attribute >= fake.unknown_from)
        return PTXGEN_CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
    case PTXGEN_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = device == 0 ? 9 : 8; break;
    case PTXGEN_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = 0; break;
    case PTXGEN_CU_DEVICE_ATTRIBUTE_WARP_SIZE: *value = 32; break;
    case PTXGEN_CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: *value = 2048; break;
    case PTXGEN_CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *value = 232448; break;
    default: *value = 1000 + (int)attribute;
    }
    return PTXGEN_CUDA_SUCCESS;
}

static ptxgen_cu_result fake_ctx_get_current(ptxgen_cu_context *context)
{
    ENTER(ctx_get_current);
    *context = fake.depth > 0 ? fake.stack[fake.depth - 1] : NULL;
    return PTXGEN_CUDA_SUCCESS;
}

static ptxgen_cu_result fake_ctx_push_current(ptxgen_cu_context context)
{
    ENTER(ctx_push_current);
    if (fake.depth == FAKE_STACK)
        abort();
    fake.stack[fake.depth++] = context;
    return PTXGEN_CUDA_SUCCESS;
}

static ptxgen_cu_result fake_ctx_pop_current(ptxgen_cu_context *context)
{
    ENTER(ctx_pop_current);
    if (fake.depth == 0)
        abort();
    *context = fake.stack[--fake.depth];
    return PTXGEN_CUDA_SUCCESS;
}

static ptxgen_cu_result fake_ctx_get_device(ptxgen_cu_device *device)
{
    ENTER(ctx_get_device);
    if (fake.depth == 0)
        return PTXGEN_CUDA_ERROR_INVALID_CONTEXT;
    *device = fake.stack[fake.depth - 1] == fake_context(0) ? 0 : 1;
    return PTXGEN_CUDA_SUCCESS;
}

static void *find_option(ptxgen_cu_jit_option wanted, unsigned int count,
                         const ptxgen_cu_jit_option *options, void **values)
{
    for (unsigned int i = 0; i < count; i++)
        if (options[i] == wanted)
            return values[i];
    return NULL;
}

/* Writes as the driver does: within the capacity given, and not always with a NUL. */
static void write_log(const char *log, ptxgen_cu_jit_option buffer, ptxgen_cu_jit_option size,
                      unsigned int count, const ptxgen_cu_jit_option *options, void **values)
{
    char *to = find_option(buffer, count, options, values);
    size_t capacity = (size_t)(uintptr_t)find_option(size, count, options, values);
    if (to && log)
        strncpy(to, log, capacity);
}

static ptxgen_cu_result assemble(ptxgen_cu_result result, unsigned int count,
                                 const ptxgen_cu_jit_option *options, void **values)
{
    fake.max_registers = -1;
    for (unsigned int i = 0; i < count; i++)
        if (options[i] == PTXGEN_CU_JIT_MAX_REGISTERS)
            fake.max_registers = (int)(uintptr_t)values[i];
    fake.line_info = find_option(PTXGEN_CU_JIT_GENERATE_LINE_INFO, count, options, values) != NULL;
    if (result == PTXGEN_CUDA_SUCCESS)
        write_log(fake.info_log, PTXGEN_CU_JIT_INFO_LOG_BUFFER,
                  PTXGEN_CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, count, options, values);
    else
        write_log(fake.error_log, PTXGEN_CU_JIT_ERROR_LOG_BUFFER,
                  PTXGEN_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, count, options, values);
    return result;
}

static ptxgen_cu_result fake_module_load_data_ex(ptxgen_cu_module *module, const void *image,
                                                 unsigned int option_count,
                                                 ptxgen_cu_jit_option *options,
                                                 void **option_values)
{
    (void)image;
    ptxgen_cu_result result =
        assemble(enter(FAKE_module_load_data_ex), option_count, options, option_values);
    if (result != PTXGEN_CUDA_SUCCESS)
        return result;
    *module = (ptxgen_cu_module)(void *)&module_object;
    fake.modules++;
    return PTXGEN_CUDA_SUCCESS;
}

static ptxgen_cu_result fake_module_unload(ptxgen_cu_module module)
{
    (void)module;
    ENTER(module_unload);
    fake.modules--;
    return PTXGEN_CUDA_SUCCESS;
}

static ptxgen_cu_result fake_module_get_function(ptxgen_cu_function *function,
                                                 ptxgen_cu_module module, const char *name)
{
    (void)module;
    (void)name;
    ENTER(module_get_function);
    *function = (ptxgen_cu_function)(void *)&function_object;
    return PTXGEN_CUDA_SUCCESS;
}

static ptxgen_cu_result fake_module_get_global(ptxgen_cu_deviceptr *address, size_t *bytes,
                                               ptxgen_cu_module module, const char *name)
{
    (void)module;
    (void)name;
    ENTER(module_get_global);
    *address = 0x7000;
    *bytes = 64;
    return PTXGEN_CUDA_SUCCESS;
}

static ptxgen_cu_result fake_func_get_attribute(int *value, ptxgen_cu_function_attribute attribute,
                                                ptxgen_cu_function function)
{
    (void)function;
    ENTER(func_get_attribute);
    *value = fake.function_attributes[attribute];
    return PTXGEN_CUDA_SUCCESS;
}

static ptxgen_cu_result fake_func_set_attribute(ptxgen_cu_function function,
                                                ptxgen_cu_function_attribute attribute, int value)
{
    (void)function;
    ENTER(func_set_attribute);
    fake.function_attributes[attribute] = value;
    return PTXGEN_CUDA_SUCCESS;
}

static ptxgen_cu_result fake_launch_kernel(ptxgen_cu_function function, unsigned int grid_x,
                                           unsigned int grid_y, unsigned int grid_z,
                                           unsigned int block_x, unsigned int block_y,
                                           unsigned int block_z, unsigned int shared_bytes,
                                           ptxgen_cu_stream stream, void **parameters, void **extra)
{
    (void)function;
    (void)extra;
    ENTER(launch_kernel);
    memcpy(fake.grid, (unsigned int[]){grid_x, grid_y, grid_z}, sizeof fake.grid);
    memcpy(fake.block, (unsigned int[]){block_x, block_y, block_z}, sizeof fake.block);
    fake.shared_bytes = shared_bytes;
    fake.stream = stream;
    fake.parameters = parameters;
    return PTXGEN_CUDA_SUCCESS;
}

static void note_config(const ptxgen_cu_launch_config *config)
{
    memcpy(fake.grid, (unsigned int[]){config->grid_dim_x, config->grid_dim_y, config->grid_dim_z},
           sizeof fake.grid);
    memcpy(fake.block,
           (unsigned int[]){config->block_dim_x, config->block_dim_y, config->block_dim_z},
           sizeof fake.block);
    fake.shared_bytes = config->shared_mem_bytes;
    fake.stream = config->stream;
    fake.attribute_count = config->attribute_count;
    memcpy(fake.attributes, config->attributes,
           config->attribute_count * sizeof *config->attributes);
}

static ptxgen_cu_result fake_launch_kernel_ex(const ptxgen_cu_launch_config *config,
                                              ptxgen_cu_function function, void **parameters,
                                              void **extra)
{
    (void)function;
    (void)extra;
    ENTER(launch_kernel_ex);
    note_config(config);
    fake.parameters = parameters;
    return PTXGEN_CUDA_SUCCESS;
}

static ptxgen_cu_result fake_occupancy_max_active_blocks(int *blocks, ptxgen_cu_function function,
                                                         int block_threads, size_t shared_bytes)
{
    (void)function;
    ENTER(occupancy_max_active_blocks);
    *blocks = 2048 / block_threads - (int)(shared_bytes / 65536);
    return PTXGEN_CUDA_SUCCESS;
}

static ptxgen_cu_result fake_occupancy_max_active_clusters(int *clusters,
                                                           ptxgen_cu_function function,
                                                           const ptxgen_cu_launch_config *config)
{
    (void)function;
    ENTER(occupancy_max_active_clusters);
    note_config(config);
    *clusters = 33;
    return PTXGEN_CUDA_SUCCESS;
}

/* Like the driver, the linker keeps pointers to the options until it is destroyed. */
static struct {
    unsigned int count;
    ptxgen_cu_jit_option *options;
    void **values;
} linker_options;

static ptxgen_cu_result fake_link_create(unsigned int option_count, ptxgen_cu_jit_option *options,
                                         void **option_values, ptxgen_cu_link_state *state)
{
    ENTER(link_create);
    linker_options.count = option_count;
    linker_options.options = options;
    linker_options.values = option_values;
    *state = (ptxgen_cu_link_state)(void *)&linker_object;
    fake.linkers++;
    return PTXGEN_CUDA_SUCCESS;
}

static ptxgen_cu_result fake_link_add_data(ptxgen_cu_link_state state,
                                           ptxgen_cu_jit_input_type type, void *data, size_t size,
                                           const char *name, unsigned int option_count,
                                           ptxgen_cu_jit_option *options, void **option_values)
{
    (void)state;
    (void)name;
    (void)option_count;
    (void)options;
    (void)option_values;
    ptxgen_cu_result result = assemble(enter(FAKE_link_add_data), linker_options.count,
                                       linker_options.options, linker_options.values);
    if (result != PTXGEN_CUDA_SUCCESS)
        return result;
    if (type != PTXGEN_CU_JIT_INPUT_PTX || size == 0 || ((const char *)data)[size - 1] != '\0')
        return PTXGEN_CUDA_ERROR_INVALID_PTX;
    fake.linked_bytes = size;
    return PTXGEN_CUDA_SUCCESS;
}

/* The linker's own memory, spoilt when the linker is destroyed. */
static char linker_output[16];

static ptxgen_cu_result fake_link_complete(ptxgen_cu_link_state state, void **cubin, size_t *size)
{
    (void)state;
    ENTER(link_complete);
    memcpy(linker_output, "machine code....", sizeof linker_output);
    *cubin = linker_output;
    *size = sizeof linker_output;
    return PTXGEN_CUDA_SUCCESS;
}

static ptxgen_cu_result fake_link_destroy(ptxgen_cu_link_state state)
{
    (void)state;
    ENTER(link_destroy);
    memset(linker_output, 'x', sizeof linker_output);
    fake.linkers--;
    return PTXGEN_CUDA_SUCCESS;
}

static void fill_table(ptxgen_driver *table)
{
    memset(table, 0, sizeof *table);
#define PTXGEN_DRIVER_CALL(member, name, symbol, since, need, parameters)                          \
    table->member = plain_##member;
#include <ptxgen/driver_calls.def>

    table->get_error_name = fake_get_error_name;
    table->get_error_string = fake_get_error_string;
    table->driver_get_version = fake_driver_get_version;
    table->device_get_count = fake_device_get_count;
    table->device_get = fake_device_get;
    table->device_get_name = fake_device_get_name;
    table->device_total_mem = fake_device_total_mem;
    table->device_get_uuid = fake_device_get_uuid;
    table->device_get_attribute = fake_device_get_attribute;
    table->ctx_get_current = fake_ctx_get_current;
    table->ctx_push_current = fake_ctx_push_current;
    table->ctx_pop_current = fake_ctx_pop_current;
    table->ctx_get_device = fake_ctx_get_device;
    table->module_load_data_ex = fake_module_load_data_ex;
    table->module_unload = fake_module_unload;
    table->module_get_function = fake_module_get_function;
    table->module_get_global = fake_module_get_global;
    table->func_get_attribute = fake_func_get_attribute;
    table->func_set_attribute = fake_func_set_attribute;
    table->launch_kernel = fake_launch_kernel;
    table->launch_kernel_ex = fake_launch_kernel_ex;
    table->occupancy_max_active_blocks = fake_occupancy_max_active_blocks;
    table->occupancy_max_active_clusters = fake_occupancy_max_active_clusters;
    table->link_create = fake_link_create;
    table->link_add_data = fake_link_add_data;
    table->link_complete = fake_link_complete;
    table->link_destroy = fake_link_destroy;
}

void fake_forget_calls(void)
{
    memset(fake.calls, 0, sizeof fake.calls);
    fake.total = 0;
}

void fake_reset(void)
{
    memset(&fake, 0, sizeof fake);
    fill_table(&fake.table);
    fake.version = 12040;
    fake.device_count = FAKE_DEVICES;
    fake.unknown_from = (ptxgen_cu_device_attribute)1000;
    fake.function_attributes[PTXGEN_CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = 1024;
    fake.function_attributes[PTXGEN_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] = 48 << 10;
    fake.function_attributes[PTXGEN_CU_FUNC_ATTRIBUTE_NUM_REGS] = 42;
    if (ptxgen_driver_start(&fake.table, NULL) != PTXGEN_OK)
        abort();
    fake_forget_calls();
}
