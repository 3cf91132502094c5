/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Device facts: what plans need to know about a GPU, which is read once into a plain struct.
 *
 *     ptxgen_device_facts facts;
 *     if (ptxgen_device_read(&driver, 0, &facts, &err) == PTXGEN_OK)
 *         printf("%s: sm_%d, %d SMs, PTX up to %d\n", facts.name, facts.compute_capability,
 *                facts.sm_count, facts.max_ptx_version);
 *
 * Lifetime: the struct is a value that refers to nothing. Threads: any thread may call these
 * functions. They neither need nor make a context. Errors: a status and a sentence (status.h).
 */
#ifndef PTXGEN_DEVICE_H
#define PTXGEN_DEVICE_H

#include <ptxgen/driver.h>
#include <ptxgen/target.h>

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Facts of one device. Sizes are in bytes unless the name says otherwise. Where the driver is too
 * old to report reserved shared memory, clusters, tensor maps, memory pools or the UUID, the member
 * is 0 or false.
 */
typedef struct ptxgen_device_facts {
    int ordinal;
    char name[256];
    ptxgen_cu_uuid uuid;
    int pci_domain, pci_bus, pci_device;

    int driver_version;     /**< 1000 × major + 10 × minor of CUDA */
    int max_ptx_version;    /**< 10 × major + minor: 90 is PTX 9.0 */
    int compute_capability; /**< 10 × major + minor: 90 is sm_90 */

    int sm_count;
    int warp_size;
    int max_threads_per_block;
    int max_threads_per_sm;
    int max_warps_per_sm;
    int max_blocks_per_sm;
    int max_block[3];
    int max_grid[3];
    int registers_per_block; /**< 32-bit registers */
    int registers_per_sm;

    int shared_per_block;       /**< by default: 48 KB */
    int shared_per_block_optin; /**< after the kernel's limit has been raised */
    int shared_per_sm;
    int shared_reserved_per_block; /**< taken by the driver from each block's share of the SM */

    size_t memory_bytes;
    int l2_bytes;
    int clock_khz;
    int memory_clock_khz; /**< 0 where the driver does not report the clock */
    int memory_bus_bits;

    bool ecc;
    bool integrated; /**< memory is the host's */
    bool cooperative_launch;
    bool cluster_launch;
    bool tensor_maps;
    bool memory_pools;
} ptxgen_device_facts;

/**
 * Reads the facts of device `ordinal` (0 … driver->device_count − 1).
 *
 * Errors: PTXGEN_ERROR_INVALID_ARGUMENT for an ordinal out of range, PTXGEN_ERROR_DRIVER.
 */
PTXGEN_API ptxgen_status ptxgen_device_read(const ptxgen_driver *driver, int ordinal,
                                            ptxgen_device_facts *facts, ptxgen_error *err);

/**
 * Peak memory bandwidth in bytes a second: the memory's clock times its width, with two transfers a
 * clock; 0 where the driver does not report the clock.
 */
PTXGEN_API double ptxgen_device_peak_bandwidth(const ptxgen_device_facts *facts);

/**
 * The target to plan kernels for on this device: the base target of its architecture, as "sm_80",
 * or for compute capability 9.0 "sm_90a" if the driver takes PTX 8.0, since wgmma needs that
 * target; the PTX version of the driver as the limit; and the size of the device.
 */
PTXGEN_API ptxgen_target ptxgen_device_target(const ptxgen_device_facts *facts);

#ifdef __cplusplus
}
#endif
#endif
