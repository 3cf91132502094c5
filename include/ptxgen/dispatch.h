/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Dispatch: given a spec, its loaded kernel, compiled at most once.
 *
 *     ptxgen_dispatcher *dispatcher;                       // one for each CUDA context
 *     ptxgen_dispatcher_create(&driver, NULL, &dispatcher, &err);
 *
 *     ptxgen_rmsnorm_q4k *kernel;
 *     ptxgen_rmsnorm_q4k_dispatch(dispatcher, &spec, &kernel, &err);
 *     ptxgen_rmsnorm_q4k_launch(kernel, &args, stream, &err);
 *     ptxgen_rmsnorm_q4k_destroy(kernel);                  // gives the reference back
 *
 *     ptxgen_dispatcher_destroy(dispatcher);
 *
 * A dispatcher is a registry of loaded kernels in one context. The key is the family with its plan
 * version, and the whole spec, byte by byte, so zero a spec before you fill it. A hit takes no
 * lock and makes no driver call. The first to ask for a new spec plans it and gets the machine code
 * from the disk cache (cache.h), or else emits its PTX for the driver's assembler; who asks for the
 * same one meanwhile waits for that. A failure is remembered: dispatch repeats its error without
 * trying again until `ptxgen_dispatch_retry`.
 *
 * Lifetime. Each success of dispatch is one reference, to be given back once, from any thread, with
 * `ptxgen_release` (or the family's own destroy). A kernel stays loaded, referenced or not, until
 * `ptxgen_dispatcher_unload` or the dispatcher's end. Unloading is safe while launches are in
 * flight: kernels that are still referenced stay, and become unloadable by the next unload after
 * their last reference is gone; before code is taken away, unload waits until the context is idle.
 * So a reference has to outlast the last *enqueue* of a launch, not the launch. A graph that
 * captured a launch enqueues it anew each time: keep the reference as long as the graph.
 * All references go back before the dispatcher is destroyed, and it before its context.
 *
 * Contexts. A dispatcher belongs to the context in its options, or else the one current where it is
 * created; dispatch works whatever is current, and restores it. Several contexts or devices: a
 * dispatcher each. They share the disk cache.
 *
 * Threads. Any number may dispatch, retry, release and unload on one dispatcher at once. Creating
 * and destroying is for one thread. The log is called from whichever thread has something to
 * say, and must not dispatch.
 * A thread that is cancelled (pthread_cancel) inside a call of dispatch.h, cache.h or tune.h is
 * cancelled after it.
 *
 * Processes. CUDA does not survive fork: in the child, a dispatcher refuses to compile, and
 * destroying it only frees memory. Destroying it after the driver has shut down is harmless too.
 *
 * Tuning. What `ptxgen tune` found for this device and lies in the cache's folder is planned by
 * (tune.h); it is read once, when the dispatcher is created.
 *
 * Looking and editing. With $PTXGEN_DUMP naming a folder, each kernel that is compiled leaves there
 * NAME.ptx (annotated), NAME.cubin and NAME.log, what the driver's assembler said; nothing is read
 * from the disk cache then. NAME is the family and a hash of spec and target; a link of such a name
 * is replaced, not followed. With $PTXGEN_OVERRIDE naming a folder, a file NAME.ptx in it is
 * assembled instead of the emitted text. It gets executed, so folder and file are to be this user's,
 * no links, and not writable by others, or they are ignored. None of this is silent: what is
 * assembled and what is ignored is logged, and a dispatcher that was given no log ignores the
 * variable.
 *
 * Graph capture. Dispatch and unload before capturing: loading code is not allowed in a capture.
 * Hits, launches and releases are.
 */
#ifndef PTXGEN_DISPATCH_H
#define PTXGEN_DISPATCH_H

#include <ptxgen/cache.h>
#include <ptxgen/family.h>
#include <ptxgen/kernel.h>
#include <ptxgen/tune.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ptxgen_dispatcher ptxgen_dispatcher;

/** A family's loaded entries: what every `ptxgen_<family>` is underneath. */
typedef struct ptxgen_loaded ptxgen_loaded;

/** Zeroed is the default; a NULL pointer to options means the same. */
typedef struct ptxgen_dispatch_options {
    ptxgen_cu_context context;   /**< NULL: the calling thread's current context */
    const ptxgen_target *target; /**< to plan for; copied; NULL: the device's own */
    int max_registers;           /**< as in ptxgen_module_options */
    bool line_info;              /**< likewise */
    const ptxgen_cache *cache;   /**< NULL: one with default options, of the dispatcher's own */
    bool no_cache;               /**< read nothing from disk and write nothing to it */
    bool no_tuning;              /**< plan by the model alone, whatever the cache's folder has */
    const ptxgen_tuning *tuning; /**< kept while it exists; NULL: what the cache's folder has */
    const char *dump_folder;     /**< NULL: $PTXGEN_DUMP; "": none */
    const char *override_folder; /**< NULL: $PTXGEN_OVERRIDE; "": none */
    /** Receives sentences worth a line in a log, none of which is an error of a call. */
    void (*log)(void *user, const char *message);
    void *log_user;
} ptxgen_dispatch_options;

/**
 * Reads the device's facts; compiles nothing. Errors: PTXGEN_ERROR_INVALID_ARGUMENT,
 * PTXGEN_ERROR_WRONG_DEVICE when there is no context, PTXGEN_ERROR_OUT_OF_MEMORY,
 * PTXGEN_ERROR_DRIVER.
 */
PTXGEN_API ptxgen_status ptxgen_dispatcher_create(const ptxgen_driver *driver,
                                                  const ptxgen_dispatch_options *options,
                                                  ptxgen_dispatcher **dispatcher,
                                                  ptxgen_error *err);
/** Waits for the context, then unloads everything. NULL does nothing. */
PTXGEN_API void ptxgen_dispatcher_destroy(ptxgen_dispatcher *dispatcher);

/**
 * One reference to the loaded kernel of a spec, which is compiled when it is new.
 * Errors: the family's refusal of the spec, the builder's, PTXGEN_ERROR_JIT, PTXGEN_ERROR_DRIVER;
 * each of these is remembered for the spec.
 */
PTXGEN_API ptxgen_status ptxgen_dispatch(ptxgen_dispatcher *dispatcher, const ptxgen_family *family,
                                         const void *spec, ptxgen_loaded **loaded,
                                         ptxgen_error *err);
/** The same, but a remembered failure is forgotten and tried once more. */
PTXGEN_API ptxgen_status ptxgen_dispatch_retry(ptxgen_dispatcher *dispatcher,
                                               const ptxgen_family *family, const void *spec,
                                               ptxgen_loaded **loaded, ptxgen_error *err);
/** Gives one reference back. NULL does nothing. */
PTXGEN_API void ptxgen_release(ptxgen_loaded *loaded);

/**
 * Unloads what is loaded and no longer referenced: of one spec, of all of a family (spec NULL) or
 * everything (family NULL), and what earlier calls had to leave. Remembered failures of these are
 * forgotten. `still_referenced`, unless NULL, receives how many kernels had to stay.
 * Errors: PTXGEN_ERROR_DRIVER when the context cannot be waited for, as during a capture or after
 * a fault; then nothing was unloaded.
 */
PTXGEN_API ptxgen_status ptxgen_dispatcher_unload(ptxgen_dispatcher *dispatcher,
                                                  const ptxgen_family *family, const void *spec,
                                                  size_t *still_referenced, ptxgen_error *err);

/** The target that this dispatcher plans for. */
PTXGEN_API const ptxgen_target *ptxgen_dispatcher_target(const ptxgen_dispatcher *dispatcher);

/** Where the machine code came from. */
typedef enum ptxgen_origin {
    PTXGEN_ORIGIN_ASSEMBLER = 0, /**< the driver's, just now */
    PTXGEN_ORIGIN_DISK = 1,      /**< the disk cache */
    PTXGEN_ORIGIN_OVERRIDE = 2   /**< an edited text */
} ptxgen_origin;

/** How a kernel came to be loaded, and the nanoseconds that each part took. */
typedef struct ptxgen_load_report {
    ptxgen_origin origin;
    uint64_t emit_ns;    /**< plan, emission, text; where a memo was on disk, only the plan */
    uint64_t lookup_ns;  /**< key, and reading and checking the disk's memo and entry */
    uint64_t compile_ns; /**< the driver's assembler; 0 on a disk hit */
    uint64_t load_ns;    /**< machine code into the context, entries fetched */
    uint64_t publish_ns; /**< writing to the disk cache */
    size_t text_bytes, cubin_bytes;
    /**
     * NULL when the disk cache has the code, from now or before; else why it is not kept, one
     * sentence (the cache is off, full, locked, too small, not writable …), as long as the
     * reference.
     */
    const char *not_kept;
} ptxgen_load_report;

/* ---- ahead of time ---- */

/** One kernel to be loaded. */
typedef struct ptxgen_warm_item {
    const ptxgen_family *family;
    const void *spec;
} ptxgen_warm_item;

/** What a warm-up tells of each item when it is done with it; lasts for the call. */
typedef struct ptxgen_warm_step {
    const ptxgen_warm_item *item;     /**< the warm-up's own copy */
    size_t index;                     /**< of the item in the list */
    size_t done, count;               /**< items finished, this one included; items in all */
    const ptxgen_load_report *report; /**< NULL when it failed */
    const ptxgen_error *error;        /**< NULL when it did not */
} ptxgen_warm_step;

typedef struct ptxgen_warm ptxgen_warm;

/**
 * Dispatches a list in the background on `threads` threads (0: one for each processor), so that
 * later dispatches hit. Items and specs are copied. `step`, unless NULL, is called from those
 * threads, one call at a time. A failed item is remembered as in dispatch, and the others go on.
 * Errors: PTXGEN_ERROR_INVALID_ARGUMENT, PTXGEN_ERROR_OUT_OF_MEMORY, PTXGEN_ERROR_SYSTEM when not
 * one thread can be started.
 */
PTXGEN_API ptxgen_status ptxgen_warm_start(ptxgen_dispatcher *dispatcher,
                                           const ptxgen_warm_item *items, size_t count,
                                           unsigned threads,
                                           void (*step)(void *user, const ptxgen_warm_step *step),
                                           void *user, ptxgen_warm **warm, ptxgen_error *err);
/**
 * Waits for a warm-up and frees it; with `cancel`, items that were not begun are left out. Returns
 * how many failed. Each warm-up is finished once, before its dispatcher is destroyed. NULL does
 * nothing.
 */
PTXGEN_API size_t ptxgen_warm_finish(ptxgen_warm *warm, bool cancel);

/* ---- what was loaded ---- */

PTXGEN_API const ptxgen_load_report *ptxgen_loaded_report(const ptxgen_loaded *loaded);
PTXGEN_API const ptxgen_family *ptxgen_loaded_family(const ptxgen_loaded *loaded);
/** The family's plan; valid as long as the reference. */
PTXGEN_API const void *ptxgen_loaded_plan(const ptxgen_loaded *loaded);
/** Entry `index` in the order of emission, NULL past the last; valid as long as the reference. */
PTXGEN_API const ptxgen_kernel *ptxgen_loaded_entry(const ptxgen_loaded *loaded, unsigned index);

#ifdef __cplusplus
}
#endif
#endif
