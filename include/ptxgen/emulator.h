/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The emulator: runs PTX text on the CPU, behind a driver table. With the emulator the runtime, the
 * command, the examples and the tests run unchanged on a machine with no GPU. The emulator reports
 * faults that hardware hides: uninitialised reads, races, accesses out of bounds, divergent
 * barriers, deadlocks.
 *
 *     ptxgen_driver driver;
 *     ptxgen_emulator_driver(&driver);              // fills the table; opens nothing
 *     int ordinal;
 *     ptxgen_emulator_ordinal("cpu:sm_80", &ordinal, &err);
 *     ptxgen_driver_start(&driver, &err);
 *     driver.device_primary_ctx_retain(&context, ordinal);
 *     driver.ctx_set_current(context);
 *     // load, launch and synchronise as on a GPU
 *     if (driver.ctx_synchronize() != PTXGEN_CUDA_SUCCESS) {
 *         ptxgen_emulator_fault fault;
 *         ptxgen_emulator_last_fault(context, &fault);
 *         fprintf(stderr, "%s\n", fault.message);   // kernel, line, CTA, thread, address, why
 *     }
 *
 * A library may be built without the emulator (-Demulator=disabled). It has these functions too, and
 * they refuse: ptxgen_driver_start on the table fails with PTXGEN_ERROR_DRIVER and the sentence "this
 * libptxgen was built without its emulator", ptxgen_emulator_ordinal finds no device, and every
 * context is one that is not emulated.
 *
 * Devices: each emulated chip is a device of its own, and ordinal 0 is sm_90. The facts of a device
 * (number of SMs, shared memory, limits) are those of a product of its architecture, and tensor
 * cores round as published models of its architecture do.
 *
 * Errors: as on a GPU, a fault of a kernel is the result of the launch or of the next
 * synchronisation, and makes the context unusable. Unlike a GPU's, the emulator's sentence names
 * the kernel, the line, the CTA and the thread. PTX that does not parse fails cuModuleLoadData,
 * with line and column in the JIT error log. If the host's memory runs out, a launch fails with
 * CUDA_ERROR_OUT_OF_MEMORY, its outputs are unspecified, and the context stays usable, since that
 * is no fault of the kernel.
 *
 * Execution: a launch runs to its end inside the call that enqueues it. CTAs run on several host
 * threads where that cannot change results. Kernels with atomics or other communication through
 * global memory run in one fixed order, so that equal inputs give equal bits (see the options).
 *
 * Threads: as with libcuda, any thread may call any entry, and each thread has its own current
 * context. The only state of the process is what libcuda has too: the contexts, and which of them
 * are primary. If one thread destroys a context that is current in another thread, the calls of
 * that thread fail with PTXGEN_CUDA_ERROR_CONTEXT_IS_DESTROYED; the context's modules and streams
 * must still be released.
 *
 * Handles: every call refuses NULL and contexts that have been destroyed. The calls of the table
 * fail then, and the functions below return PTXGEN_ERROR_INVALID_ARGUMENT, or zeroes if they return
 * no status. Other handles that are no longer valid must not be used.
 */
#ifndef PTXGEN_EMULATOR_H
#define PTXGEN_EMULATOR_H

#include <ptxgen/driver.h>
#include <ptxgen/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The faults that the emulator looks for. Each is a bit of
 * `ptxgen_emulator_options.disabled_checks`; those that cannot be disabled say so.
 */
typedef enum ptxgen_emulator_check {
    PTXGEN_CHECK_NONE = 0,
    /** A read of a register that was never written. */
    PTXGEN_CHECK_REGISTERS = 1 << 0,
    /** A read of shared or local memory that was never written. */
    PTXGEN_CHECK_SHARED_INIT = 1 << 1,
    /** A read of global memory that was never written. */
    PTXGEN_CHECK_GLOBAL_INIT = 1 << 2,
    /** An access out of bounds or after free. Cannot be disabled. */
    PTXGEN_CHECK_BOUNDS = 1 << 3,
    /** A misaligned access. Cannot be disabled. */
    PTXGEN_CHECK_ALIGNMENT = 1 << 4,
    /** Unordered accesses to shared memory by two warps of a cluster. */
    PTXGEN_CHECK_RACES = 1 << 5,
    /** Accesses to shared memory by two lanes of a warp without bar.warp.sync between them. */
    PTXGEN_CHECK_WARP_RACES = 1 << 6,
    /** An asynchronous copy that is read or overwritten early, or under way when its CTA exits. */
    PTXGEN_CHECK_ASYNC = 1 << 7,
    /** An .aligned or .sync instruction that is not executed by all lanes that it names. */
    PTXGEN_CHECK_DIVERGENCE = 1 << 8,
    /** Thread counts of a barrier that differ or cannot be reached; plain access to an mbarrier. */
    PTXGEN_CHECK_BARRIERS = 1 << 9,
    /** No thread can go on. Cannot be disabled. */
    PTXGEN_CHECK_DEADLOCK = 1 << 10,
    /** A run-time value that PTX forbids for an operand. Cannot be disabled. */
    PTXGEN_CHECK_OPERANDS = 1 << 11,
    /** A trap or brkpt instruction. */
    PTXGEN_CHECK_TRAP = 1 << 12,
    /** Unordered accesses to global memory by two threads. */
    PTXGEN_CHECK_GLOBAL_RACES = 1 << 13,
    /**
     * An access to global memory before griddepcontrol.wait that conflicts with an access of the
     * kernel ahead: both are to the same bytes, and one is a write. Needs GLOBAL_RACES.
     */
    PTXGEN_CHECK_OVERLAP = 1 << 14,
    /**
     * A bulk or tensor copy or wgmma that touches bytes which an ordinary store wrote, without a
     * fence.proxy.async between them; or use of an mbarrier whose init is not fenced. Needs RACES
     * for shared memory and GLOBAL_RACES for global memory.
     */
    PTXGEN_CHECK_PROXIES = 1 << 15,
    /**
     * A race of a store that does not change the memory's contents. RACES, WARP_RACES, GLOBAL_RACES
     * and OVERLAP leave such stores out.
     */
    PTXGEN_CHECK_EQUAL_STORES = 1 << 17,
    /**
     * An access to shared memory that leaves the .shared variable from which its address was
     * computed. All dynamic shared memory counts as one variable.
     */
    PTXGEN_CHECK_SHARED_BUFFERS = 1 << 18,
    /**
     * Threads that spin for ever. If disabled, threads that only poll count as a deadlock after a
     * while, and others run on.
     */
    PTXGEN_CHECK_LIVELOCK = 1 << 19
} ptxgen_emulator_check;

/** How tensor cores add and round. */
typedef enum ptxgen_emulator_numerics {
    PTXGEN_NUMERICS_OF_DEVICE = 0, /**< as the emulated chip does */
    PTXGEN_NUMERICS_EXACT = 1      /**< exact sums, rounded once */
} ptxgen_emulator_numerics;

/** Options of a context. Zeroed options are the defaults. */
typedef struct ptxgen_emulator_options {
    uint32_t disabled_checks; /**< bits of ptxgen_emulator_check */
    uint32_t workers;         /**< host threads; 0: one per processor */
    /**
     * Run CTAs on several host threads even if they communicate. Races in global memory are not
     * looked for in launches of such kernels.
     */
    bool spread_always;
    bool profile; /**< count instructions for ptxgen_emulator_profile_take */
    /**
     * If not 0, the order in which clusters begin, and in which clusters and warps run, is shuffled
     * to provoke races, in another way for each launch. The same seed and the same launches since
     * the options were set give the same order, except with spread_always.
     */
    uint64_t seed;
    uint64_t max_steps; /**< warp instructions after which a launch is stopped; 0: no limit */
    ptxgen_emulator_numerics numerics;
    void (*log)(void *user, const char *message); /**< receives faults and refusals; may be NULL */
    void *log_user;
} ptxgen_emulator_options;

/** A fault of a kernel. */
typedef struct ptxgen_emulator_fault {
    ptxgen_emulator_check check; /**< NONE if there was no fault */
    char kernel[128];
    uint32_t line; /**< of the PTX text, from 1 */
    uint32_t cta[3], thread[3];
    bool has_address;
    uint64_t address;
    char message[PTXGEN_MESSAGE_SIZE]; /**< the whole sentence */
} ptxgen_emulator_fault;

/** Counts of one PTX line, summed over every launch since the last reset. */
typedef struct ptxgen_emulator_line {
    const char *kernel; /**< valid as long as the profile */
    const char *text;   /**< the instruction */
    const char *kind;   /**< for example "integer", "float", "global", "shared", "barrier" */
    uint32_t line;
    uint64_t warps;                      /**< warp instructions run */
    uint64_t lanes;                      /**< lane instructions: active lanes only */
    uint64_t sectors;      /**< 32-byte sectors of global memory that were accessed */
    uint64_t bytes_moved;  /**< sectors × 32 */
    uint64_t bytes_needed; /**< bytes that the lanes accessed */
    uint64_t shared_accesses;
    uint64_t conflicts; /**< additional passes to shared memory because of bank conflicts */
} ptxgen_emulator_line;

typedef struct ptxgen_emulator_profile ptxgen_emulator_profile;

/** Fills the table with the emulator's entry points. Nothing is opened or started. */
PTXGEN_API void ptxgen_emulator_driver(ptxgen_driver *driver);

/**
 * Finds the ordinal of a device by name: "cpu" (ordinal 0), "cpu:sm_80" or "sm_80", for example.
 * Errors: PTXGEN_ERROR_NO_DEVICE, with a sentence that names all devices;
 * PTXGEN_ERROR_INVALID_ARGUMENT for NULL.
 */
PTXGEN_API ptxgen_status ptxgen_emulator_ordinal(const char *name, int *ordinal, ptxgen_error *err);

/** Copies the options to a context of the emulator. */
PTXGEN_API ptxgen_status ptxgen_emulator_set_options(ptxgen_cu_context context,
                                                     const ptxgen_emulator_options *options,
                                                     ptxgen_error *err);

/** Stores the last fault of a context; `check` is NONE if there is no fault or no such context. */
PTXGEN_API void ptxgen_emulator_last_fault(ptxgen_cu_context context, ptxgen_emulator_fault *fault);

/** Makes a context usable again after a fault. The contents of its memory stay as they are. */
PTXGEN_API void ptxgen_emulator_clear_fault(ptxgen_cu_context context);

/**
 * Stores the warp and lane instructions of the last launch, and its time in seconds. Each pointer
 * may be NULL.
 */
PTXGEN_API void ptxgen_emulator_last_launch(ptxgen_cu_context context, uint64_t *warp_steps,
                                            uint64_t *lane_steps, double *seconds);

/**
 * Takes the counts since the last call, or since options.profile was set: one line for each
 * instruction, kernel by kernel in program order. The caller frees the profile.
 */
PTXGEN_API ptxgen_status ptxgen_emulator_profile_take(ptxgen_cu_context context,
                                                      ptxgen_emulator_profile **profile,
                                                      ptxgen_error *err);
PTXGEN_API size_t ptxgen_emulator_profile_count(const ptxgen_emulator_profile *profile);
PTXGEN_API ptxgen_emulator_line ptxgen_emulator_profile_line(const ptxgen_emulator_profile *profile,
                                                             size_t index);
PTXGEN_API void ptxgen_emulator_profile_free(ptxgen_emulator_profile *profile);

#ifdef __cplusplus
}
#endif
#endif
