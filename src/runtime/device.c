/* SPDX-License-Identifier: Apache-2.0 */
#include <ptxgen/device.h>

#include "src/runtime/context.h"

#include <string.h>

struct fact {
    size_t offset; /* of an int, or of a bool where `is_flag`, in struct ptxgen_device_facts */
    ptxgen_cu_device_attribute attribute;
    const char *attribute_name;
    bool is_flag;
    bool since_later; /* unknown to the oldest driver that we accept: then 0 */
};

#define FACT(member, attribute, is_flag, since_later)                                              \
    {                                                                                              \
        offsetof(ptxgen_device_facts, member), PTXGEN_CU_DEVICE_ATTRIBUTE_##attribute,             \
            "CU_DEVICE_ATTRIBUTE_" #attribute, is_flag, since_later                                \
    }
#define NUMBER(member, attribute) FACT(member, attribute, false, false)
#define FLAG(member, attribute) FACT(member, attribute, true, false)

static const struct fact facts_table[] = {
    NUMBER(pci_domain, PCI_DOMAIN_ID),
    NUMBER(pci_bus, PCI_BUS_ID),
    NUMBER(pci_device, PCI_DEVICE_ID),
    NUMBER(sm_count, MULTIPROCESSOR_COUNT),
    NUMBER(warp_size, WARP_SIZE),
    NUMBER(max_threads_per_block, MAX_THREADS_PER_BLOCK),
    NUMBER(max_threads_per_sm, MAX_THREADS_PER_MULTIPROCESSOR),
    NUMBER(max_blocks_per_sm, MAX_BLOCKS_PER_MULTIPROCESSOR),
    NUMBER(max_block[0], MAX_BLOCK_DIM_X),
    NUMBER(max_block[1], MAX_BLOCK_DIM_Y),
    NUMBER(max_block[2], MAX_BLOCK_DIM_Z),
    NUMBER(max_grid[0], MAX_GRID_DIM_X),
    NUMBER(max_grid[1], MAX_GRID_DIM_Y),
    NUMBER(max_grid[2], MAX_GRID_DIM_Z),
    NUMBER(registers_per_block, MAX_REGISTERS_PER_BLOCK),
    NUMBER(registers_per_sm, MAX_REGISTERS_PER_MULTIPROCESSOR),
    NUMBER(shared_per_block, MAX_SHARED_MEMORY_PER_BLOCK),
    NUMBER(shared_per_block_optin, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
    NUMBER(shared_per_sm, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
    FACT(shared_reserved_per_block, RESERVED_SHARED_MEMORY_PER_BLOCK, false, true),
    NUMBER(l2_bytes, L2_CACHE_SIZE),
    NUMBER(clock_khz, CLOCK_RATE),
    NUMBER(memory_clock_khz, MEMORY_CLOCK_RATE),
    NUMBER(memory_bus_bits, GLOBAL_MEMORY_BUS_WIDTH),
    FLAG(ecc, ECC_ENABLED),
    FLAG(integrated, INTEGRATED),
    FLAG(cooperative_launch, COOPERATIVE_LAUNCH),
    FACT(cluster_launch, CLUSTER_LAUNCH, true, true),
    FACT(tensor_maps, TENSOR_MAP_ACCESS_SUPPORTED, true, true),
    FACT(memory_pools, MEMORY_POOLS_SUPPORTED, true, true),
};

static ptxgen_status read_fact(const ptxgen_driver *driver, ptxgen_cu_device device,
                               const struct fact *fact, ptxgen_device_facts *facts,
                               ptxgen_error *err)
{
    int value = 0;
    ptxgen_cu_result result = driver->device_get_attribute(&value, fact->attribute, device);
    if (result == PTXGEN_CUDA_ERROR_INVALID_VALUE && fact->since_later)
        value = 0;
    else if (result != PTXGEN_CUDA_SUCCESS)
        return ptxgen_driver_fail(driver, result, err, "cuDeviceGetAttribute of %s",
                                  fact->attribute_name);
    void *member = (char *)facts + fact->offset;
    if (fact->is_flag)
        *(bool *)member = value != 0;
    else
        *(int *)member = value;
    return PTXGEN_OK;
}

static ptxgen_status read_identity(const ptxgen_driver *driver, ptxgen_cu_device device,
                                   ptxgen_device_facts *facts, ptxgen_error *err)
{
    ptxgen_cu_result result = driver->device_get_name(facts->name, (int)sizeof facts->name, device);
    if (result != PTXGEN_CUDA_SUCCESS)
        return ptxgen_driver_fail(driver, result, err, "cuDeviceGetName");
    facts->name[sizeof facts->name - 1] = '\0';
    result = driver->device_total_mem(&facts->memory_bytes, device);
    if (result != PTXGEN_CUDA_SUCCESS)
        return ptxgen_driver_fail(driver, result, err, "cuDeviceTotalMem");
    if (!driver->device_get_uuid)
        return PTXGEN_OK;
    result = driver->device_get_uuid(&facts->uuid, device);
    if (result != PTXGEN_CUDA_SUCCESS)
        return ptxgen_driver_fail(driver, result, err, "cuDeviceGetUuid");
    return PTXGEN_OK;
}

ptxgen_status ptxgen_device_read(const ptxgen_driver *driver, int ordinal,
                                 ptxgen_device_facts *facts, ptxgen_error *err)
{
    if (!driver || !facts)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "ptxgen_device_read: driver or facts is NULL");
    memset(facts, 0, sizeof *facts);
    if (ordinal < 0 || ordinal >= driver->device_count)
        return ptxgen_fail(err, PTXGEN_ERROR_INVALID_ARGUMENT,
                           "there is no device %d: the driver shows %d, counted from 0", ordinal,
                           driver->device_count);
    ptxgen_cu_device device;
    ptxgen_cu_result result = driver->device_get(&device, ordinal);
    if (result != PTXGEN_CUDA_SUCCESS)
        return ptxgen_driver_fail(driver, result, err, "cuDeviceGet of device %d", ordinal);

    facts->ordinal = ordinal;
    facts->driver_version = driver->version;
    facts->max_ptx_version = ptxgen_driver_max_ptx_version(driver->version);
    ptxgen_status status = read_identity(driver, device, facts, err);
    if (status == PTXGEN_OK)
        status = device_compute_capability(driver, device, &facts->compute_capability, err);
    for (size_t i = 0; status == PTXGEN_OK && i < sizeof facts_table / sizeof *facts_table; i++)
        status = read_fact(driver, device, &facts_table[i], facts, err);
    if (status == PTXGEN_OK && facts->warp_size > 0)
        facts->max_warps_per_sm = facts->max_threads_per_sm / facts->warp_size;
    return status;
}

double ptxgen_device_peak_bandwidth(const ptxgen_device_facts *facts)
{
    if (!facts)
        return 0;
    return 2.0 * 1000.0 * facts->memory_clock_khz * (facts->memory_bus_bits / 8.0);
}

ptxgen_target ptxgen_device_target(const ptxgen_device_facts *facts)
{
    if (!facts)
        return (ptxgen_target){.multiprocessors = 0};
    ptx_target ptx = {.sm = facts->compute_capability, .max_ptx = facts->max_ptx_version};
    ptx_target exact = ptx;
    exact.suffix = 'a';
    if (ptx.sm == 90 && ptx_target_check(&exact, NULL) == PTXGEN_OK)
        ptx = exact; /* for wgmma; other chips' exact targets have nothing that we use */
    ptxgen_target target = {
        .ptx = ptx,
        .multiprocessors = (uint32_t)facts->sm_count,
        .shared_per_cta = (uint32_t)facts->shared_per_block_optin,
    };
    return target;
}
