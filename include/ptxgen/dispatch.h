/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Dispatch: returns the loaded kernel of a spec, and compiles it at most once.
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
 * A dispatcher is a registry of the kernels that are loaded in one context. The key of a kernel is
 * the family with its plan version, and all bytes of the spec, so zero a spec before you fill it. A
 * call that finds its kernel takes no lock and makes no driver call. The first call for a new spec
 * makes the plan, and gets the machine code from the disk cache (cache.h) or else emits the PTX
 * text and has the driver assemble it; other calls for the same spec wait meanwhile. A failure is
 * remembered: dispatch returns the same error without another attempt until
 * `ptxgen_dispatch_retry`.
 *
 * Lifetime. Each successful dispatch gives one reference, which is to be released once, by any
 * thread, with `ptxgen_release` or the family's own destroy. A kernel stays loaded, referenced or
 * not, until `ptxgen_dispatcher_unload` or the end of the dispatcher. Unloading is safe while
 * launches are in flight: it leaves kernels that are still referenced, which a later unload removes
 * once their last reference has been released, and it waits until the context is idle before it
 * removes code. So a reference has to outlast the last *enqueue* of a launch, not the launch. A
 * graph that captured a launch enqueues the launch each time it runs: keep the reference as long as
 * the graph. Release all references before you destroy the dispatcher, and destroy the dispatcher
 * before its context.
 *
 * Contexts. A dispatcher belongs to the context in its options, or else to the context that is
 * current where it is created. Dispatch works whatever context is current, and restores that
 * context. Use one dispatcher for each context or device; they share the disk cache.
 *
 * Threads. Any number of threads may dispatch, retry, release and unload on one dispatcher at the
 * same time. Create and destroy it in one thread. The log function is called from any of these
 * threads, and must not dispatch. A thread that is cancelled (pthread_cancel) inside a call of
 * dispatch.h, cache.h or tune.h is cancelled when the call has ended.
 *
 * Processes. CUDA does not survive fork: in the child process a dispatcher refuses to compile, and
 * destroying it only frees memory. A dispatcher may also be destroyed after the driver has shut
 * down.
 *
 * Tuning. Plans use the tiles that `ptxgen tune` has stored for this device in the cache's folder
 * (tune.h). They are read once, when the dispatcher is created.
 *
 * Dumps and overrides. If $PTXGEN_DUMP names a folder, each kernel that is compiled leaves three
 * files there: NAME.ptx (the annotated text), NAME.cubin, and NAME.log (the output of the driver's
 * assembler); the disk cache is then not read. NAME is the family and a hash of spec and target. A
 * symbolic link of such a name is replaced, not followed. If $PTXGEN_OVERRIDE names a folder, a
 * file NAME.ptx in it is assembled instead of the emitted text. Because that file is executed, it
 * is ignored unless folder and file belong to this user, are no symbolic links, and are not
 * writable by others. The log says which files are assembled and which are ignored; a dispatcher
 * without a log function ignores $PTXGEN_OVERRIDE.
 *
 * Graph capture. Dispatch new specs and unload before you capture a graph, since code cannot be
 * loaded during a capture. Calls that find their kernel, launches and releases are allowed.
 */
#ifndef PTXGEN_DISPATCH_H
#define PTXGEN_DISPATCH_H

#include <ptxgen/cache.h>
#include <ptxgen/family.h>
#include <ptxgen/kernel.h>
#include <ptxgen/pack.h>
#include <ptxgen/tune.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ptxgen_dispatcher ptxgen_dispatcher;

/** A family's loaded entries: what every `ptxgen_<family>` is underneath. */
typedef struct ptxgen_loaded ptxgen_loaded;

/** Zeroed options, and NULL for options, are the defaults. */
typedef struct ptxgen_dispatch_options {
    ptxgen_cu_context context;   /**< NULL: the calling thread's current context */
    const ptxgen_target *target; /**< the target of plans, copied; NULL: the device's own */
    int max_registers;           /**< as in ptxgen_module_options */
    bool line_info;              /**< as in ptxgen_module_options */
    const ptxgen_cache *cache;   /**< NULL: the dispatcher opens one with default options */
    bool no_cache;               /**< do not read the disk cache, and do not write to it */
    bool no_tuning;              /**< ignore stored tiles: plans use their model of the chip */
    const ptxgen_tuning *tuning; /**< outlives the dispatcher; NULL: that of the cache's folder */
    const char *dump_folder;     /**< NULL: $PTXGEN_DUMP; "": none */
    const char *override_folder; /**< NULL: $PTXGEN_OVERRIDE; "": none */
    /** Receives sentences for a log. None of them is the error of a call. */
    void (*log)(void *user, const char *message);
    void *log_user;
    /** Packs (pack.h) that are looked into first, in this order; the list is copied. */
    ptxgen_pack *const *packs;
    size_t pack_count;
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
 * Stores one reference to the loaded kernel of a spec in `*loaded`; a new spec is compiled. Errors:
 * a refusal by the family or the builder, PTXGEN_ERROR_JIT, PTXGEN_ERROR_DRIVER. Each of these is
 * remembered for the spec.
 */
PTXGEN_API ptxgen_status ptxgen_dispatch(ptxgen_dispatcher *dispatcher, const ptxgen_family *family,
                                         const void *spec, ptxgen_loaded **loaded,
                                         ptxgen_error *err);
/** Like ptxgen_dispatch, but a spec whose failure is remembered is tried once more. */
PTXGEN_API ptxgen_status ptxgen_dispatch_retry(ptxgen_dispatcher *dispatcher,
                                               const ptxgen_family *family, const void *spec,
                                               ptxgen_loaded **loaded, ptxgen_error *err);
/** Releases one reference. NULL does nothing. */
PTXGEN_API void ptxgen_release(ptxgen_loaded *loaded);

/**
 * Unloads kernels that are not referenced: that of one spec, those of a family (`spec` is NULL), or
 * all (`family` is NULL), and those that earlier calls had to leave because they were referenced.
 * Remembered failures of the same specs are forgotten. `still_referenced`, unless NULL, receives
 * the number of kernels that stay because they are referenced. Errors: PTXGEN_ERROR_DRIVER when the
 * driver cannot wait for the context, as during a capture or after a fault; nothing is unloaded
 * then.
 */
PTXGEN_API ptxgen_status ptxgen_dispatcher_unload(ptxgen_dispatcher *dispatcher,
                                                  const ptxgen_family *family, const void *spec,
                                                  size_t *still_referenced, ptxgen_error *err);

/** The target that this dispatcher plans for. */
PTXGEN_API const ptxgen_target *ptxgen_dispatcher_target(const ptxgen_dispatcher *dispatcher);

/** Where the machine code came from. */
typedef enum ptxgen_origin {
    PTXGEN_ORIGIN_ASSEMBLER = 0, /**< the driver assembled the emitted text */
    PTXGEN_ORIGIN_DISK = 1,      /**< the disk cache had it */
    PTXGEN_ORIGIN_OVERRIDE = 2,  /**< the driver assembled a text from $PTXGEN_OVERRIDE */
    PTXGEN_ORIGIN_PACK = 3       /**< a pack had it */
} ptxgen_origin;

/** How a kernel came to be loaded, and the nanoseconds that each part took. */
typedef struct ptxgen_load_report {
    ptxgen_origin origin;
    uint64_t emit_ns;    /**< plan, emission and text; only the plan if the disk had a memo */
    uint64_t lookup_ns;  /**< computing the key; reading and checking the memo and the entry */
    uint64_t compile_ns; /**< the driver's assembler; 0 if the code came from the disk */
    uint64_t load_ns;    /**< loading the code into the context and fetching its entries */
    uint64_t publish_ns; /**< writing to the disk cache */
    size_t text_bytes, cubin_bytes;
    /**
     * NULL if the disk cache has the code, by this call or an earlier one; else one sentence that
     * says why not (the cache is off, full, locked, too small or not writable, for example). The
     * sentence is valid as long as the reference.
     */
    const char *not_kept;
} ptxgen_load_report;

/* ---- ahead of time ---- */

/** One kernel to be loaded. */
typedef struct ptxgen_warm_item {
    const ptxgen_family *family;
    const void *spec;
} ptxgen_warm_item;

/** The result of one item of a warm-up; valid during the call that receives it. */
typedef struct ptxgen_warm_step {
    const ptxgen_warm_item *item;     /**< the warm-up's own copy of the item */
    size_t index;                     /**< of the item in the list */
    size_t done, count;               /**< items finished, including this one, and items in all */
    const ptxgen_load_report *report; /**< NULL if the item failed */
    const ptxgen_error *error;        /**< NULL if the item did not fail */
} ptxgen_warm_step;

typedef struct ptxgen_warm ptxgen_warm;

/**
 * Dispatches a list of items in the background on `threads` threads (0: one for each processor), so
 * that later dispatches find their kernels. Items and specs are copied. `step`, unless NULL, is
 * called from the background threads, one call at a time. A failure is remembered as in dispatch,
 * and the other items are done. Errors: PTXGEN_ERROR_INVALID_ARGUMENT, PTXGEN_ERROR_OUT_OF_MEMORY,
 * PTXGEN_ERROR_SYSTEM when no thread can be started.
 */
PTXGEN_API ptxgen_status ptxgen_warm_start(ptxgen_dispatcher *dispatcher,
                                           const ptxgen_warm_item *items, size_t count,
                                           unsigned threads,
                                           void (*step)(void *user, const ptxgen_warm_step *step),
                                           void *user, ptxgen_warm **warm, ptxgen_error *err);
/**
 * Waits for a warm-up, frees it, and returns the number of items that failed. With `cancel`, items
 * that have not begun are left out. Every warm-up must be finished once, before its dispatcher is
 * destroyed. NULL does nothing.
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
