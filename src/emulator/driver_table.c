/* SPDX-License-Identifier: Apache-2.0 */
/* The table itself, error names, and the calls that need no context. */
#include "src/emulator/driver_state.h"

#include <stdio.h>
#include <string.h>

void ptxgen_emulator_driver(ptxgen_driver *driver)
{
    if (!driver)
        return;
    memset(driver, 0, sizeof *driver);
#define PTXGEN_DRIVER_CALL(member, name, symbol, since, need, parameters)                          \
    driver->member = emu_cu_##member;
#include <ptxgen/driver_calls.def>
}

static const struct {
    ptxgen_cu_result result;
    const char *name;
} results[] = {
#define NAMED(name, value) {(ptxgen_cu_result)(value), #name},
    PTXGEN_CU_RESULTS(NAMED)
#undef NAMED
};

static const char *name_of(ptxgen_cu_result result)
{
    for (size_t i = 0; i < sizeof results / sizeof *results; i++)
        if (results[i].result == result)
            return results[i].name;
    return NULL;
}

ptxgen_cu_result emu_cu_get_error_name(ptxgen_cu_result error, const char **text)
{
    if (!text)
        return PTXGEN_CUDA_ERROR_INVALID_VALUE;
    *text = name_of(error);
    return *text ? PTXGEN_CUDA_SUCCESS : PTXGEN_CUDA_ERROR_INVALID_VALUE;
}

/* The text is the fault's sentence where the current context has one of that result. */
ptxgen_cu_result emu_cu_get_error_string(ptxgen_cu_result error, const char **text)
{
    struct CUctx_st *context = emu_thread_context();
    if (!text)
        return PTXGEN_CUDA_ERROR_INVALID_VALUE;
    *text = name_of(error);
    if (!*text)
        return PTXGEN_CUDA_ERROR_INVALID_VALUE;
    if (context && error != PTXGEN_CUDA_SUCCESS && context->poison == error)
        *text = context->fault.message;
    return PTXGEN_CUDA_SUCCESS;
}

ptxgen_cu_result emu_cu_init(unsigned int flags)
{
    return flags ? PTXGEN_CUDA_ERROR_INVALID_VALUE : PTXGEN_CUDA_SUCCESS;
}

ptxgen_cu_result emu_cu_driver_get_version(int *version)
{
    if (!version)
        return PTXGEN_CUDA_ERROR_INVALID_VALUE;
    *version = (int)emu_chips[0].driver_version;
    return PTXGEN_CUDA_SUCCESS;
}

typedef void (*any_function)(void);

static const struct {
    const char *name, *symbol;
    any_function function;
} entries[] = {
#define PTXGEN_DRIVER_CALL(member, name, symbol, since, need, parameters)                          \
    {#name, symbol, (any_function)emu_cu_##member},
#include <ptxgen/driver_calls.def>
};

ptxgen_cu_result emu_cu_get_proc_address(const char *symbol, void **function, int cuda_version,
                                         uint64_t flags, ptxgen_cu_proc_address_result *found)
{
    (void)cuda_version;
    (void)flags;
    if (!symbol || !function)
        return PTXGEN_CUDA_ERROR_INVALID_VALUE;
    *function = NULL;
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
        if (strcmp(symbol, entries[i].name) == 0 || strcmp(symbol, entries[i].symbol) == 0)
            memcpy(function, &entries[i].function, sizeof *function);
    if (found)
        *found = *function ? PTXGEN_CU_GET_PROC_ADDRESS_SUCCESS
                           : PTXGEN_CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return *function ? PTXGEN_CUDA_SUCCESS : PTXGEN_CUDA_ERROR_NOT_FOUND;
}

/* ---- devices ---- */

const struct emu_chip *emu_chip_of(ptxgen_cu_device device)
{
    return device >= 0 && (size_t)device < emu_chip_count ? &emu_chips[device] : NULL;
}

ptxgen_status ptxgen_emulator_ordinal(const char *name, int *ordinal, ptxgen_error *err)
{
    if (!name || !ordinal)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "the device's name, or the place for its ordinal, is NULL");
    const char *wanted = strncmp(name, "cpu:", 4) == 0 ? name + 4 : name;
    if (strcmp(name, "cpu") == 0)
        wanted = emu_chips[0].target;
    for (size_t i = 0; i < emu_chip_count; i++)
        if (strcmp(wanted, emu_chips[i].target) == 0) {
            *ordinal = (int)i;
            return PTXGEN_OK;
        }
    char all[200] = "";
    for (size_t i = 0; i < emu_chip_count; i++) {
        size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, " cpu:%s", emu_chips[i].target);
    }
    return ptxgen_fail(err, PTXGEN_ERROR_NO_DEVICE,
                       "no emulated device is called '%s'; there are: cpu%s", name, all);
}

ptxgen_cu_result emu_cu_device_get_count(int *count)
{
    if (!count)
        return PTXGEN_CUDA_ERROR_INVALID_VALUE;
    *count = (int)emu_chip_count;
    return PTXGEN_CUDA_SUCCESS;
}

ptxgen_cu_result emu_cu_device_get(ptxgen_cu_device *device, int ordinal)
{
    if (!device)
        return PTXGEN_CUDA_ERROR_INVALID_VALUE;
    if (!emu_chip_of(ordinal))
        return PTXGEN_CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return PTXGEN_CUDA_SUCCESS;
}

ptxgen_cu_result emu_cu_device_get_name(char *name, int size, ptxgen_cu_device device)
{
    const struct emu_chip *chip = emu_chip_of(device);
    if (!chip)
        return PTXGEN_CUDA_ERROR_INVALID_DEVICE;
    if (!name || size <= 0)
        return PTXGEN_CUDA_ERROR_INVALID_VALUE;
    snprintf(name, (size_t)size, "%s", chip->name);
    return PTXGEN_CUDA_SUCCESS;
}

ptxgen_cu_result emu_cu_device_total_mem(size_t *bytes, ptxgen_cu_device device)
{
    const struct emu_chip *chip = emu_chip_of(device);
    if (!chip)
        return PTXGEN_CUDA_ERROR_INVALID_DEVICE;
    if (!bytes)
        return PTXGEN_CUDA_ERROR_INVALID_VALUE;
    *bytes = (size_t)chip->memory_bytes;
    return PTXGEN_CUDA_SUCCESS;
}

ptxgen_cu_result emu_cu_device_get_uuid(ptxgen_cu_uuid *uuid, ptxgen_cu_device device)
{
    const struct emu_chip *chip = emu_chip_of(device);
    if (!chip)
        return PTXGEN_CUDA_ERROR_INVALID_DEVICE;
    if (!uuid)
        return PTXGEN_CUDA_ERROR_INVALID_VALUE;
    memset(uuid, 0, sizeof *uuid);
    snprintf(uuid->bytes, sizeof uuid->bytes, "emu:%s", chip->target);
    return PTXGEN_CUDA_SUCCESS;
}

ptxgen_cu_result emu_cu_device_get_attribute(int *value, ptxgen_cu_device_attribute attribute,
                                             ptxgen_cu_device device)
{
    const struct emu_chip *chip = emu_chip_of(device);
    if (!chip)
        return PTXGEN_CUDA_ERROR_INVALID_DEVICE;
    if (!value)
        return PTXGEN_CUDA_ERROR_INVALID_VALUE;
    const struct {
        ptxgen_cu_device_attribute attribute;
        uint32_t value;
    } facts[] = {
        {PTXGEN_CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
        {PTXGEN_CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
        {PTXGEN_CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
        {PTXGEN_CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
        {PTXGEN_CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 0x7fffffff},
        {PTXGEN_CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
        {PTXGEN_CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
        {PTXGEN_CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, EMU_SHARED_STATIC_LIMIT},
        {PTXGEN_CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 64 << 10},
        {PTXGEN_CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
        {PTXGEN_CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, EMU_REGISTERS_PER_SM},
        {PTXGEN_CU_DEVICE_ATTRIBUTE_CLOCK_RATE, chip->clock_khz},
        {PTXGEN_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, chip->multiprocessors},
        {PTXGEN_CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
        {PTXGEN_CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, chip->memory_clock_khz},
        {PTXGEN_CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, chip->bus_bits},
        {PTXGEN_CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, chip->l2_bytes},
        {PTXGEN_CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, chip->threads_per_sm},
        {PTXGEN_CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
        {PTXGEN_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, chip->sm / 10},
        {PTXGEN_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, chip->sm % 10},
        {PTXGEN_CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, chip->shared_per_sm},
        {PTXGEN_CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, EMU_REGISTERS_PER_SM},
        {PTXGEN_CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
        {PTXGEN_CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, chip->shared_per_cta},
        {PTXGEN_CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, chip->ctas_per_sm},
        {PTXGEN_CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, chip->l2_bytes / 2},
        {PTXGEN_CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, EMU_SHARED_RESERVED},
        {PTXGEN_CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, chip->sm >= 90},
        {PTXGEN_CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED, chip->sm >= 90}};
    *value = 0;
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        if (facts[i].attribute == attribute)
            *value = (int)facts[i].value;
    return PTXGEN_CUDA_SUCCESS;
}
