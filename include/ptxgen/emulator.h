/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The emulator: a CPU that runs PTX text, offered as a driver table. With it the runtime, the
 * command, the examples and the tests run unchanged on a machine with no GPU, and see what
 * hardware hides: uninitialised reads, races, stray accesses, divergent barriers, deadlocks.
 *
 *     ptxgen_driver driver;
 *     ptxgen_emulator_driver(&driver);              // fills the table; opens nothing
 *     int ordinal;
 *     ptxgen_emulator_ordinal("cpu:sm_80", &ordinal, &err);
 *     ptxgen_driver_start(&driver, &err);
 *     driver.device_primary_ctx_retain(&context, ordinal);
 *     driver.ctx_set_current(context);
 *     …                                             // load, launch, synchronise as on a GPU
 *     if (driver.ctx_synchronize() != PTXGEN_CUDA_SUCCESS) {
 *         ptxgen_emulator_fault fault;
 *         ptxgen_emulator_last_fault(context, &fault);
 *         fprintf(stderr, "%s\n", fault.message);   // kernel, line, CTA, thread, address, why
 *     }
 *
 * Devices: each emulated chip is a device of its own; ordinal 0 is sm_90. Their facts (number of
 * SMs, shared memory, limits) are those of a product of that architecture, and tensor cores round
 * as published models of that architecture do.
 *
 * Errors: like a GPU's, a fault of a kernel surfaces as the result of the launch or of the next
 * synchronisation and makes the context unusable; unlike a GPU's, the sentence is exact.
 * PTX that does not parse fails cuModuleLoadData, with line and column in the JIT error log. When
 * the host's memory runs out, a launch fails with CUDA_ERROR_OUT_OF_MEMORY, its outputs are
 * unspecified, and the context stays usable: the kernel did nothing wrong.
 *
 * Execution: a launch runs to its end inside the call that enqueues it. CTAs are spread over host
 * threads where that cannot change results; kernels with atomics or other communication through
 * global memory run in one fixed order, so that equal inputs give equal bits (see options).
 *
 * Threads: as with libcuda, any thread may call any entry; the current context is a thread's own.
 * The only process-wide state is that of libcuda's model: the contexts, and which are primary.
 * A context that one thread destroys stays current in others, whose calls then fail with
 * PTXGEN_CUDA_ERROR_CONTEXT_IS_DESTROYED; its modules and streams are still to be released.
 *
 * Handles: NULL, and contexts that are destroyed, are refused by every call: those of the table
 * fail, and the functions below return PTXGEN_ERROR_INVALID_ARGUMENT, or zeroes where they return
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

/** What the emulator looks for; each is a bit of `ptxgen_emulator_options.disabled_checks`. */
typedef enum ptxgen_emulator_check {
    PTXGEN_CHECK_NONE = 0,
    PTXGEN_CHECK_REGISTERS = 1 << 0,     /**< read of a register that was never written */
    PTXGEN_CHECK_SHARED_INIT = 1 << 1,   /**< read of shared or local memory never written */
    PTXGEN_CHECK_GLOBAL_INIT = 1 << 2,   /**< read of global memory never written */
    PTXGEN_CHECK_BOUNDS = 1 << 3,        /**< out of bounds, use after free; cannot be disabled */
    PTXGEN_CHECK_ALIGNMENT = 1 << 4,     /**< misaligned access; cannot be disabled */
    PTXGEN_CHECK_RACES = 1 << 5,         /**< unordered shared accesses of two warps of a cluster */
    PTXGEN_CHECK_WARP_RACES = 1 << 6,    /**< the same within a warp, without bar.warp.sync */
    PTXGEN_CHECK_ASYNC = 1 << 7,         /**< asynchronous copy read or overwritten too early, or
                                              under way when its CTA exits */
    PTXGEN_CHECK_DIVERGENCE = 1 << 8,    /**< .aligned or .sync without the lanes it names */
    PTXGEN_CHECK_BARRIERS = 1 << 9,      /**< thread counts that differ or cannot be reached,
                                              and mbarrier objects touched as plain memory */
    PTXGEN_CHECK_DEADLOCK = 1 << 10,     /**< no thread can go on; cannot be disabled */
    PTXGEN_CHECK_OPERANDS = 1 << 11,     /**< run-time values that PTX forbids; not disabled */
    PTXGEN_CHECK_TRAP = 1 << 12,         /**< trap or brkpt was executed */
    PTXGEN_CHECK_GLOBAL_RACES = 1 << 13, /**< unordered accesses of two threads to global memory */
    PTXGEN_CHECK_OVERLAP = 1 << 14,      /**< before griddepcontrol.wait, of what the kernel ahead
                                              uses: a read or write where one of the two writes;
                                              only together with GLOBAL_RACES */
    PTXGEN_CHECK_PROXIES = 1 << 15,      /**< bulk and tensor copies and wgmma that touch what st or
                                              the like wrote without a fence.proxy.async between, or
                                              an mbarrier whose init is not fenced; of shared memory
                                              only together with RACES, of global memory with
                                              GLOBAL_RACES */
    PTXGEN_CHECK_EQUAL_STORES = 1 << 17, /**< races of a store that changes nothing, which RACES,
                                              WARP_RACES, GLOBAL_RACES and OVERLAP leave out */
    PTXGEN_CHECK_SHARED_BUFFERS = 1 << 18, /**< shared memory outside of the .shared variable that an
                                               address comes from, across the end of one or between
                                               two; all dynamic memory is one */
    PTXGEN_CHECK_LIVELOCK = 1 << 19 /**< threads that spin for ever; off, those that only poll
                                             are a deadlock after a while, others run on */
} ptxgen_emulator_check;

/** Tensor-core arithmetic. */
typedef enum ptxgen_emulator_numerics {
    PTXGEN_NUMERICS_OF_DEVICE = 0, /**< the emulated chip's */
    PTXGEN_NUMERICS_EXACT = 1      /**< exact sums, rounded once */
} ptxgen_emulator_numerics;

/** Zero-initialise for the defaults. */
typedef struct ptxgen_emulator_options {
    uint32_t disabled_checks; /**< bits of ptxgen_emulator_check */
    uint32_t workers;         /**< host threads; 0: one per processor */
    bool spread_always;       /**< several threads even for kernels whose CTAs communicate, whose
                                   races in global memory are then not looked for */
    bool profile;             /**< count, for ptxgen_emulator_profile */
    uint64_t seed;            /**< not 0: to shake out races, the order in which clusters begin,
                                   and they and their warps have their turns, is shuffled, anew for
                                   each launch since the options were set; the same calls have the
                                   same orders, but with spread_always */
    uint64_t max_steps;       /**< not 0: warp instructions after which a launch is stopped */
    ptxgen_emulator_numerics numerics;
    void (*log)(void *user, const char *message); /**< faults and refusals, as they happen */
    void *log_user;
} ptxgen_emulator_options;

/** What a kernel did wrong. */
typedef struct ptxgen_emulator_fault {
    ptxgen_emulator_check check; /**< NONE when there was no fault */
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
    const char *kind;   /**< "integer", "float", "global", "shared", "barrier", … */
    uint32_t line;
    uint64_t warps;                      /**< warp instructions run */
    uint64_t lanes;                      /**< lane instructions: active lanes only */
    uint64_t sectors;                    /**< 32-byte sectors of global memory touched */
    uint64_t bytes_moved, bytes_needed;  /**< sectors × 32, and what the lanes asked for */
    uint64_t shared_accesses, conflicts; /**< shared accesses; extra passes for bank conflicts */
} ptxgen_emulator_line;

typedef struct ptxgen_emulator_profile ptxgen_emulator_profile;

/** Fills the table with the emulator's entry points. Nothing is opened or started. */
PTXGEN_API void ptxgen_emulator_driver(ptxgen_driver *driver);

/**
 * The ordinal of a device by name: "cpu" (ordinal 0), "cpu:sm_80" or "sm_80".
 * Errors: PTXGEN_ERROR_NO_DEVICE, naming the devices there are; PTXGEN_ERROR_INVALID_ARGUMENT for
 * NULL.
 */
PTXGEN_API ptxgen_status ptxgen_emulator_ordinal(const char *name, int *ordinal, ptxgen_error *err);

/** Sets the options of a context that the emulator gave out; they are copied. */
PTXGEN_API ptxgen_status ptxgen_emulator_set_options(ptxgen_cu_context context,
                                                     const ptxgen_emulator_options *options,
                                                     ptxgen_error *err);

/** The last fault of a context; `check` is NONE when there was none, or no such context. */
PTXGEN_API void ptxgen_emulator_last_fault(ptxgen_cu_context context, ptxgen_emulator_fault *fault);

/** Makes a context usable again after a fault. Memory keeps what the kernel left in it. */
PTXGEN_API void ptxgen_emulator_clear_fault(ptxgen_cu_context context);

/** Warp and lane instructions of the last launch, and the seconds that it took; each may be NULL.
 */
PTXGEN_API void ptxgen_emulator_last_launch(ptxgen_cu_context context, uint64_t *warp_steps,
                                            uint64_t *lane_steps, double *seconds);

/**
 * Takes the counts gathered since the last call (options.profile), one entry per instruction in
 * program order, kernel by kernel. The caller frees the profile.
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
