/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The driver table: libcuda's entry points as function pointers, found at run time.
 *
 * `ptxgen_driver_open` opens libcuda with dlopen, finds every call listed in
 * `ptxgen/driver_calls.def`, and starts the driver. All of ptxgen reaches a GPU through such a
 * table and through nothing else.
 *
 *     ptxgen_driver driver;
 *     ptxgen_error err;
 *     if (ptxgen_driver_open(&driver, NULL, &err) != PTXGEN_OK)
 *         return report(err.message);   // no libcuda, too old a driver, no device
 *     ptxgen_cu_deviceptr x;
 *     ptxgen_cu_result result = driver.mem_alloc(&x, 4096);
 *     if (result != PTXGEN_CUDA_SUCCESS)
 *         ptxgen_driver_fail(&driver, result, &err, "cuMemAlloc of %d bytes", 4096);
 *     ptxgen_driver_close(&driver);
 *
 * Lifetime: the struct is the caller's. Everything made from a table (modules, kernels) keeps a
 * pointer to it, so it must stay in place until they are destroyed.
 *
 * Threads: after opening, a table is only read; any number of threads may share it.
 *
 * Another implementation may fill the table instead: an emulator, a recorder, or a program that has
 * opened libcuda already. Such an implementation zeroes the struct, so that `library` is NULL, sets
 * every REQUIRED member and those OPTIONAL members that it has, and starts the table:
 *
 *     static ptxgen_cu_result mem_alloc(ptxgen_cu_deviceptr *address, size_t bytes) { … }
 *
 *     memset(driver, 0, sizeof *driver);
 *     driver->mem_alloc = mem_alloc;
 *     …
 *     return ptxgen_driver_start(driver, err);
 *
 * The calls take exactly the arguments of libcuda, so none of them receives a pointer to the
 * implementation's state. Like libcuda, an implementation finds its state by the handles that it
 * gave out, by the calling thread's current context (thread-local), and by device ordinals. The
 * answers to calls that need no context (version, count, names, attributes) can be constant. An
 * implementation must refuse a launch when the function's context is not the current one.
 */
#ifndef PTXGEN_DRIVER_H
#define PTXGEN_DRIVER_H

#include <ptxgen/driver_types.h>
#include <ptxgen/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The oldest driver that can run what ptxgen emits: CUDA 11.0, PTX 7.0, sm_80. */
#define PTXGEN_DRIVER_MIN_VERSION 11000

typedef struct ptxgen_driver {
    void *library;    /**< the dlopen handle; NULL if another implementation filled the table */
    int version;      /**< from cuDriverGetVersion: 1000 × major + 10 × minor; set by start */
    int device_count; /**< at least 1 after a start that succeeded */

#define PTXGEN_DRIVER_CALL(member, name, symbol, since, need, parameters)                          \
    ptxgen_cu_result(*member) parameters;
#include <ptxgen/driver_calls.def>
} ptxgen_driver;

/**
 * Opens the driver library `path` (NULL: "libcuda.so.1", found as the dynamic linker finds it),
 * fills the table and starts the driver. On failure the table is zeroed.
 *
 * Errors: PTXGEN_ERROR_NO_DRIVER when the file cannot be opened or is not a library,
 * PTXGEN_ERROR_DRIVER_TOO_OLD naming the missing entry point and both versions,
 * PTXGEN_ERROR_OUT_OF_MEMORY, and those of `ptxgen_driver_start`.
 */
PTXGEN_API ptxgen_status ptxgen_driver_open(ptxgen_driver *driver, const char *path,
                                            ptxgen_error *err);

/**
 * Checks that a filled table is complete, initialises the driver and sets `version` and
 * `device_count`. `ptxgen_driver_open` does this itself; call it on tables filled otherwise.
 *
 * Errors: PTXGEN_ERROR_INVALID_ARGUMENT for a REQUIRED member that is NULL,
 * PTXGEN_ERROR_DRIVER_TOO_OLD below PTXGEN_DRIVER_MIN_VERSION, PTXGEN_ERROR_NO_DEVICE,
 * PTXGEN_ERROR_DRIVER when cuInit fails for another reason.
 */
PTXGEN_API ptxgen_status ptxgen_driver_start(ptxgen_driver *driver, ptxgen_error *err);

/**
 * Drops the library and zeroes the table. The library's code stays mapped: the driver's own
 * threads and exit handlers may still run. NULL is allowed.
 */
PTXGEN_API void ptxgen_driver_close(ptxgen_driver *driver);

/**
 * Turns a failed result into a status and a sentence. The sentence begins with the formatted text,
 * which says what was being done, and ends with the driver's name and text for the result.
 */
PTXGEN_API ptxgen_status ptxgen_driver_fail(const ptxgen_driver *driver, ptxgen_cu_result result,
                                            ptxgen_error *err, const char *format, ...)
    PTXGEN_PRINTF(4, 5);

/**
 * Returns PTXGEN_OK if the table has the OPTIONAL call at `member_offset`, else
 * PTXGEN_ERROR_DRIVER_TOO_OLD with a sentence that names the call and the CUDA version that
 * introduced it:
 *
 *     ptxgen_driver_require(driver, offsetof(ptxgen_driver, tensor_map_encode_tiled), err);
 */
PTXGEN_API ptxgen_status ptxgen_driver_require(const ptxgen_driver *driver, size_t member_offset,
                                               ptxgen_error *err);

/**
 * The highest PTX ISA version that a driver assembles, as 10 × major + minor (78 is PTX 7.8), for a
 * driver version as cuDriverGetVersion reports it. For a driver that is newer than this library the
 * result is the highest version that the library knows, since a driver takes all older PTX. For a
 * driver older than CUDA 11.0 it is 0.
 */
PTXGEN_API int ptxgen_driver_max_ptx_version(int driver_version);

#ifdef __cplusplus
}
#endif
#endif
