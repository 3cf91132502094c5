/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands behind the driver's handles. Contexts, modules and streams belong to whoever made
 * them; a module's functions live as long as it; streams and events hold no work, because every
 * operation has run when its call returns, unless a stream is capturing.
 *
 * A context may be destroyed while it is another thread's current one, or has modules and streams
 * left. So what stands behind a context is never freed, only used again, and counts its lives; who
 * keeps a context keeps the number of the life that is meant.
 */
#ifndef PTXGEN_EMULATOR_DRIVER_STATE_H
#define PTXGEN_EMULATOR_DRIVER_STATE_H

#include "ptxgen/emulator.h"
#include "src/emulator/chip.h"
#include "src/emulator/device_memory.h"
#include "src/emulator/profile.h"
#include "src/emulator/program.h"

#include <pthread.h>
#include <stdatomic.h>

struct CUctx_st {
    struct CUctx_st *next; /* in the list of live ones, or of those to be used again */
    _Atomic uint64_t life; /* raised when the context is destroyed */
    const struct emu_chip *chip;
    int ordinal;
    struct emu_memory memory;
    ptxgen_emulator_options options;
    pthread_mutex_t lock; /* options, fault, statistics, tally, streams */
    pthread_mutex_t launching;
    ptxgen_emulator_fault fault;
    ptxgen_cu_result poison; /* not SUCCESS after a fault: every call fails with it */
    uint64_t last_steps, last_lane_steps, grids;
    uint64_t orders; /* launches since the options were set */
    double last_seconds;
    struct emu_tally tally;
    struct CUstream_st *default_stream;
    int capturing; /* streams in a capture that forbids unsafe calls */
};

/* A context in one of its lives. */
struct emu_context_ref {
    struct CUctx_st *context;
    uint64_t life;
};

struct CUfunc_st {
    struct CUmod_st *module;
    const struct emu_function *function;
    struct emu_program *program;
    int max_dynamic_shared, carveout, allow_large_cluster;
};

struct CUmod_st {
    struct emu_context_ref home;
    const struct emu_chip *chip;
    struct emu_module *parsed;
    uint64_t *addresses; /* of the module's variables */
    struct CUfunc_st *functions;
    size_t function_count;
};

enum emu_op_kind { EMU_OP_KERNEL, EMU_OP_TO_DEVICE, EMU_OP_TO_HOST, EMU_OP_DEVICE, EMU_OP_SET };

/* One piece of work: run at once, or kept as a node of a graph. */
struct emu_op {
    enum emu_op_kind kind;
    struct CUfunc_st *function;
    uint32_t grid[3], block[3], cluster[3];
    bool explicit_cluster, programmatic;
    uint32_t dynamic_bytes;
    uint8_t *parameters; /* owned by graph nodes */
    uint64_t to, from, bytes;
    const void *host_from;
    void *host_to;
    uint32_t value, value_bytes;
};

struct CUgraph_st {
    struct emu_op *ops;
    size_t count, capacity;
};

struct CUgraphExec_st {
    struct CUgraph_st graph;
};

struct CUstream_st {
    struct emu_context_ref home;
    struct CUgraph_st *capture; /* not NULL while capturing */
    ptxgen_cu_capture_mode mode;
};

struct CUevent_st {
    bool recorded;
    double time; /* seconds */
};

double emu_now(void);

struct emu_context_ref emu_ref_of(struct CUctx_st *context);
/* The context, or NULL when that life of it is over. */
struct CUctx_st *emu_context_of(struct emu_context_ref ref);
/* True for a handle that was given out and not destroyed; the handle may be anything. */
bool emu_context_is_live(const struct CUctx_st *context);
/* The calling thread's context, whether it has a fault or not. */
ptxgen_cu_result emu_bound(struct CUctx_st **context);
/* The same, and its fault if it has one. */
ptxgen_cu_result emu_current(struct CUctx_st **context);
/* The same, but for calls that a capture forbids. */
ptxgen_cu_result emu_current_unsafe(struct CUctx_st **context);
/* The stream behind a handle, the special ones included. */
ptxgen_cu_result emu_stream_of(ptxgen_cu_stream handle, struct CUstream_st **stream);
/* The calling thread's context, or NULL. */
struct CUctx_st *emu_thread_context(void);
const struct emu_chip *emu_chip_of(ptxgen_cu_device device);
void emu_log(struct CUctx_st *context, const char *message);

/* Runs the work now, or adds it to the stream's capture. Takes `parameters` when capturing. */
ptxgen_cu_result emu_enqueue(ptxgen_cu_stream stream, struct emu_op *op);
/* `stream` NULL: none, and all others are waited for. */
ptxgen_cu_result emu_run_op(struct CUctx_st *context, const struct CUstream_st *stream,
                            const struct emu_op *op);
ptxgen_cu_result emu_run_kernel(struct CUctx_st *context, const struct CUstream_st *stream,
                                const struct emu_op *op);

/* CTAs of a function that fit on one SM. */
uint32_t emu_occupancy(const struct CUfunc_st *function, uint32_t threads, size_t dynamic_bytes);
uint32_t emu_register_count(const struct CUfunc_st *function);
ptxgen_cu_result emu_prepare(struct CUfunc_st *function, ptxgen_error *err);

/* The emulator's cubins: a header, then PTX text. */
bool emu_is_cubin(const void *image);
const char *emu_cubin_text(const void *image, size_t *length, ptxgen_error *err);
void *emu_cubin_make(const char *text, size_t length, size_t *size);

/* Parses, checks, places and decodes a module. */
ptxgen_cu_result emu_module_from_text(struct CUctx_st *context, const char *text, size_t length,
                                      struct CUmod_st **module, ptxgen_error *err);
/* Puts a message where the JIT options want the error log. */
void emu_jit_log(unsigned int count, const ptxgen_cu_jit_option *options, void **values,
                 const char *message);

#define PTXGEN_DRIVER_CALL(member, name, symbol, since, need, parameters)                          \
    ptxgen_cu_result emu_cu_##member parameters;
#include <ptxgen/driver_calls.def>

#endif
