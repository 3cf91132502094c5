/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Modules and kernels: loads PTX text or a cubin, and launches its entries.
 *
 *     ptxgen_module *module;
 *     ptxgen_kernel *kernel;
 *     ptxgen_module_options options = {.context = context};
 *     ptxgen_module_load_ptx(&driver, text, &options, &module, &err);
 *     ptxgen_kernel_create(module, "axpy", 0, &kernel, &err);
 *
 *     uint32_t n = 1 << 20;
 *     void *arguments[] = {&x, &y, &n};
 *     ptxgen_launch_shape shape = {.grid = {n / 256, 1, 1}, .block = {256, 1, 1}};
 *     ptxgen_launch(kernel, &shape, stream, arguments, &err);
 *
 *     ptxgen_kernel_destroy(kernel);
 *     ptxgen_module_destroy(module);
 *
 * Prepare, then launch. Loading a module and creating a kernel may allocate, compile and wait; do
 * both before capturing a graph. A launch makes exactly one driver call, which neither allocates
 * nor waits, so a launch may be captured.
 *
 * Contexts. A module belongs to one CUDA context: the one in its options, or else the context that
 * is current in the thread that loads it. Every function here except `ptxgen_launch` makes that
 * context current while it runs, and restores the previous one. For `ptxgen_launch` the caller has
 * made the module's context current, as for any launch.
 *
 * Lifetime. Destroy kernels before their module, modules before their context, and contexts
 * before closing the driver table. Destroying NULL does nothing.
 *
 * Threads. Any number of threads may launch one kernel or read its attributes at the same time.
 * Only one thread at a time may create kernels from a module, or destroy an object.
 *
 * Arrays. The launches of all families take arrays as device addresses with shapes and row strides,
 * and have one rule for them. Arrays that a launch only reads may overlap. An array that it writes
 * (an output or a workspace) must not overlap any other array of the launch, with one exception:
 * where a family's header says so, an output may be the residual itself, at the same address and
 * with the same row stride. Column slices of one buffer do not overlap if their row strides are
 * equal in bytes. Arrays with different strides count as overlapping if their ranges, from the
 * first byte to the last, have a byte in common. The stride of an array of one row is ignored. No
 * array may reach past the end of the 64-bit address space. Beside each address `x` the arguments
 * have a member `x_bytes`, the size of the caller's buffer in bytes, where 0 leaves it unchecked; a
 * buffer that is smaller than its shape, stride and type need is refused. A launch that breaks
 * these rules is refused before anything runs, with PTXGEN_ERROR_INVALID_ARGUMENT and a sentence
 * that names the arrays.
 *
 * Overlap. With overlap_previous a launch may begin while the kernel ahead of it in the stream still
 * runs, and that kernel may have begun likewise. So what a launch reads before it waits, its weights
 * as a rule, may be written by no kernel since the last one that was launched without overlap.
 *
 * Sizes of 0. Where M or N is 0, a launch does nothing and reads no other argument. Where K is 0,
 * sums are 0: one kernel writes what bias, activation and residual make of that, and reads no
 * scales. An array without elements may be null. rmsnorm_q4k and quantise refuse a K of 0, for the
 * mean of no squares is undefined, as is the scale of no elements; gguf_rows does, as its rows have
 * no weight then, and its N of 0 makes rows of NaNs; rmsnorm_q4k with residual_out refuses an N of 0.
 *
 * Errors. A status and a sentence. Every function but `ptxgen_launch` may also return
 * PTXGEN_ERROR_INVALID_ARGUMENT for a NULL and PTXGEN_ERROR_OUT_OF_MEMORY. An asynchronous fault of
 * a kernel is reported by a later call, as in CUDA: PTXGEN_ERROR_DRIVER with
 * CUDA_ERROR_ILLEGAL_ADDRESS, for example.
 */
#ifndef PTXGEN_KERNEL_H
#define PTXGEN_KERNEL_H

#include <ptxgen/driver.h>

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ptxgen_module ptxgen_module;
typedef struct ptxgen_kernel ptxgen_kernel;

/** How to assemble and load. Zeroed options, and NULL for options, are the defaults. */
typedef struct ptxgen_module_options {
    ptxgen_cu_context context; /**< NULL: the calling thread's current context */
    int max_registers;         /**< a cap per thread; 0: none beyond the text's own directives */
    bool line_info;            /**< keep source lines for profilers */
    /**
     * If not NULL, receives the assembler's log: registers, spills and shared memory of each kernel
     * on success (for PTX only), or the errors on failure. The text is NUL-terminated and cut to
     * `log_size`, the buffer's size in bytes.
     */
    char *log;
    size_t log_size;
} ptxgen_module_options;

/**
 * Assembles PTX with the driver's own assembler for the context's device, and loads it.
 * `ptx` is NUL-terminated text. Its `.version` and `.target` are checked before the driver sees
 * it, because a load that fails may spoil the context on some drivers.
 *
 * Errors: PTXGEN_ERROR_DRIVER_TOO_OLD when `.version` is newer than the driver's,
 * PTXGEN_ERROR_WRONG_DEVICE when `.target` cannot run on the context's device or there is no
 * context, PTXGEN_ERROR_JIT with the assembler's first complaints, PTXGEN_ERROR_DRIVER.
 */
PTXGEN_API ptxgen_status ptxgen_module_load_ptx(const ptxgen_driver *driver, const char *ptx,
                                                const ptxgen_module_options *options,
                                                ptxgen_module **module, ptxgen_error *err);

/**
 * Loads a cubin of `size` bytes. The structure of the ELF file is checked first, because a
 * truncated cubin makes some drivers abort the process. The contents are not checked: a caller that
 * reads cubins from a disk has to keep a checksum.
 *
 * Errors: PTXGEN_ERROR_MALFORMED, PTXGEN_ERROR_WRONG_DEVICE when the cubin is for another
 * architecture or there is no context, PTXGEN_ERROR_DRIVER.
 */
PTXGEN_API ptxgen_status ptxgen_module_load_cubin(const ptxgen_driver *driver, const void *cubin,
                                                  size_t size, const ptxgen_module_options *options,
                                                  ptxgen_module **module, ptxgen_error *err);

PTXGEN_API void ptxgen_module_destroy(ptxgen_module *module);

/** Address and size of a `.global` or `.const` variable of the module. */
PTXGEN_API ptxgen_status ptxgen_module_global(const ptxgen_module *module, const char *name,
                                              ptxgen_cu_deviceptr *address, size_t *bytes,
                                              ptxgen_error *err);

/** Machine code in the caller's memory, for a disk cache or a disassembler. */
typedef struct ptxgen_cubin {
    void *bytes;
    size_t size;
} ptxgen_cubin;

/**
 * Assembles PTX into a cubin for the context's device without loading it. The same checks and
 * errors as `ptxgen_module_load_ptx`. Free the result with `ptxgen_cubin_free`.
 */
PTXGEN_API ptxgen_status ptxgen_assemble(const ptxgen_driver *driver, const char *ptx,
                                         const ptxgen_module_options *options, ptxgen_cubin *cubin,
                                         ptxgen_error *err);

/** Frees the bytes and zeroes the struct. */
PTXGEN_API void ptxgen_cubin_free(ptxgen_cubin *cubin);

/** Attributes of a loaded kernel, as the driver reports them. Sizes are in bytes. */
typedef struct ptxgen_kernel_attributes {
    int registers;           /**< 32-bit registers per thread */
    int local_bytes;         /**< per thread; more than 0 means spills or arrays */
    int static_shared_bytes; /**< per CTA */
    int const_bytes;
    int max_threads_per_block;    /**< as the registers and `.maxntid` allow */
    int max_dynamic_shared_bytes; /**< the most that a launch may use; set by kernel_create */
    int target;                   /**< the text's `.target`, as 90 for sm_90 */
    int binary_target;            /**< the architecture of the machine code, likewise */
} ptxgen_kernel_attributes;

/**
 * Makes a kernel of the entry `name`: fetches the entry, so that no launch has to load it lazily,
 * reads its attributes, and allows it `dynamic_shared_bytes` bytes of dynamic shared memory, more
 * than 48 KB where the device has more.
 *
 * Errors: PTXGEN_ERROR_NOT_FOUND when the module has no such entry, PTXGEN_ERROR_SHARED_MEMORY
 * when static and dynamic shared memory together pass the device's limit, PTXGEN_ERROR_DRIVER.
 */
PTXGEN_API ptxgen_status ptxgen_kernel_create(const ptxgen_module *module, const char *name,
                                              size_t dynamic_shared_bytes, ptxgen_kernel **kernel,
                                              ptxgen_error *err);

PTXGEN_API void ptxgen_kernel_destroy(ptxgen_kernel *kernel);

/** The kernel's attributes; the pointer is valid as long as the kernel. */
PTXGEN_API const ptxgen_kernel_attributes *
ptxgen_kernel_get_attributes(const ptxgen_kernel *kernel);

/** The driver's own handle, for calls that ptxgen does not wrap. */
PTXGEN_API ptxgen_cu_function ptxgen_kernel_get_function(const ptxgen_kernel *kernel);

/** How many CTAs of `block_threads` threads and `dynamic_shared_bytes` fit on one SM. */
PTXGEN_API ptxgen_status ptxgen_kernel_occupancy(const ptxgen_kernel *kernel, int block_threads,
                                                 size_t dynamic_shared_bytes, int *blocks_per_sm,
                                                 ptxgen_error *err);

/**
 * The shape of a launch. Members other than grid and block may be 0 for a plain launch. The grid
 * has 64 bits, so that a number of tiles that is too large is refused and not truncated.
 */
typedef struct ptxgen_launch_shape {
    uint64_t grid[3];      /**< CTAs in x, y, z; x below 2³¹, y and z below 65536 */
    unsigned int block[3]; /**< threads in x, y, z */
    size_t dynamic_shared_bytes;
    unsigned int cluster[3]; /**< CTAs per cluster, each dividing the grid; zeros: none */
    bool programmatic;       /**< may start before the kernel ahead has ended (griddepcontrol) */
    bool cooperative;        /**< all CTAs resident at once, for grid-wide barriers */
} ptxgen_launch_shape;

/** How many clusters of this shape the whole device can hold at once. */
PTXGEN_API ptxgen_status ptxgen_kernel_max_clusters(const ptxgen_kernel *kernel,
                                                    const ptxgen_launch_shape *shape, int *clusters,
                                                    ptxgen_error *err);

/**
 * Enqueues the kernel on `stream` of the module's context. `arguments` holds a pointer to each
 * kernel parameter, in order; the values are copied before the call returns. If the grid is 0 in
 * any direction, nothing is launched and the call returns PTXGEN_OK.
 *
 * Errors, all before anything runs: PTXGEN_ERROR_INVALID_ARGUMENT for a grid, block or cluster
 * beyond the limits, PTXGEN_ERROR_SHARED_MEMORY for more dynamic shared memory than the kernel
 * may use, PTXGEN_ERROR_DRIVER_TOO_OLD when the shape needs cuLaunchKernelEx and the driver has
 * none, PTXGEN_ERROR_WRONG_DEVICE when another context is current, PTXGEN_ERROR_DRIVER.
 */
PTXGEN_API ptxgen_status ptxgen_launch(const ptxgen_kernel *kernel,
                                       const ptxgen_launch_shape *shape, ptxgen_cu_stream stream,
                                       void *const *arguments, ptxgen_error *err);

#ifdef __cplusplus
}
#endif
#endif
