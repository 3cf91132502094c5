/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The PTX builder: a typed assembler that writes NVIDIA PTX text.
 *
 * A *module* holds kernels and a target. A *kernel* is built by calling emitters in program order;
 * each emitter is one PTX instruction and is named for it: `ptx_add_s32` is `add.s32`,
 * `ptx_ld_global_nc_v4_u32` is `ld.global.nc.v4.u32`. The emitters are in <ptxgen/instr.h>, which
 * is generated from the library's instruction table.
 *
 * Types. Every register type is a C struct of its own (`ptx_u32`, `ptx_f32`, `ptx_pred`, …), so a
 * wrong operand does not compile. Bitwise instructions take the unsigned type of their width. The
 * `ptx_f32_as_u32` family reinterprets without an instruction. A source may also be a constant:
 * `ptx_add_u32(k, x, ptx_imm_u32(4))`.
 *
 * Registers. An emitter returns a new virtual register; its `_to` form writes an existing register,
 * as loop variables and accumulators need. Vectors are plain C arrays. When a kernel ends, a linear
 * scan over live ranges folds the virtual registers into few names.
 *
 * Modifiers beyond the default go to an emitter's `_m` form: `ptx_add_f32_m(k, PTX_RZ | PTX_FTZ,
 * a, b)`.
 *
 * Control flow. `ptx_if`, `ptx_for`, `ptx_loop` are C statements whose body emits the PTX body;
 * `ptx_guarded` puts `@p` on the instructions in its body. Leave such a body only at its end: a C
 * `break` or `return` out of it leaves the block open, which ptx_kernel_end reports.
 *
 * Errors. The first error is sticky: the module keeps it with the kernel, the index of the
 * instruction, the C source line that emitted the instruction, and a sentence. Later emitters do
 * nothing, and the registers that they return are harmless. Check once, with `ptx_module_text` or
 * `ptx_module_status`. Ending a kernel checks what the assembler does not: registers that are read
 * before they are written on some path, barriers under divergence, asynchronous copies that are
 * read without a wait, accesses at constant offsets outside of their buffer or parameter, and so
 * on.
 *
 * What the builder does not check:
 *
 * - What depends on run-time values. The emulator (emulator.h) checks these: bounds and alignment
 *   of computed addresses, shared addresses used as global ones, races, missing barriers, whether a
 *   wait covers the stage that is read, wgmma without its wait, mbarriers without init, warp
 *   collectives whose mask names lanes that do not take part, endless loops.
 * - The instructions of raw text, which the assembler checks, and wgmma without its fence, which
 *   the assembler adds.
 * - What is legal though perhaps not intended: unused results, code behind a `ret`, a predicate
 *   that is written twice, shifts by more than the width, signed values compared as unsigned ones
 *   after a reinterpretation, more live registers than a thread has (the assembler spills them).
 *
 * The text is a pure function of the calls: it depends on no address, time, locale or hash order. C
 * does not define the order in which the arguments of a call are evaluated, so at most one argument
 * of an emitter may itself be an emitter call; otherwise two compilers emit two different texts.
 *
 * Threads: there is no global state, and different threads may build different modules at the same
 * time. Memory comes from the module's allocator, and `ptx_module_destroy` frees all of it.
 *
 *     ptx_target target = {.sm = 80};
 *     ptx_module *m = ptx_module_create(&target, NULL);
 *     ptx_kernel *k = ptx_kernel_begin(m, "scale");
 *     ptx_u64 x = ptx_param_u64(k, "x");
 *     ptx_u32 n = ptx_param_u32(k, "n");
 *     ptx_u32 cta = ptx_sreg_ctaid_x(k), tid = ptx_sreg_tid_x(k);
 *     ptx_u32 i = ptx_mad_lo_u32(k, cta, ptx_imm_u32(256), tid);
 *     ptx_if(k, ptx_setp_lt_u32(k, i, n)) {
 *         ptx_u64 p = ptx_add_u64(k, x, ptx_mul_wide_u32(k, i, ptx_imm_u32(4)));
 *         ptx_st_global_f32(k, p, 0, ptx_mul_f32(k, ptx_ld_global_f32(k, p, 0), ptx_imm_f32(2)));
 *     }
 *     ptx_kernel_end(k);
 *     ptxgen_error err;
 *     const char *text;
 *     if (ptx_module_text(m, 0, &text, NULL, &err) != PTXGEN_OK)
 *         return report(&err);
 *     ptx_module_destroy(m);
 */
#ifndef PTXGEN_PTX_H
#define PTXGEN_PTX_H

#include <ptxgen/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- targets ---- */

/**
 * The target on which the text must run. `suffix` is 0 for a base target, whose text also runs on
 * every later chip; 'a' for exactly that chip; 'f' for that chip's family. `max_ptx` is the highest
 * PTX ISA version that the driver or assembler takes (major × 10 + minor, 78 for 7.8); 0 means that
 * there is no limit.
 */
typedef struct ptx_target {
    int sm;
    char suffix;
    int max_ptx;
} ptx_target;

/** Parses "sm_80", "sm_90a", "sm_120f" into sm and suffix; max_ptx is left 0. */
PTXGEN_API ptxgen_status ptx_target_parse(const char *name, ptx_target *target, ptxgen_error *err);
/** Checks that the target exists, and that a PTX version up to max_ptx has it. */
PTXGEN_API ptxgen_status ptx_target_check(const ptx_target *target, ptxgen_error *err);
/** The first PTX ISA version that has this target; 0 when there is none. */
PTXGEN_API int ptx_target_first_ptx(const ptx_target *target);
/** True when text for `text_target` runs on a chip of compute capability `chip_sm` (90 for 9.0). */
PTXGEN_API bool ptx_target_runs_on(const ptx_target *text_target, int chip_sm);

/* ---- where in the C source ---- */

/** Where in the C source an instruction was emitted. */
typedef struct ptx_source {
    const char *file;
    int line;
} ptx_source;
static inline ptx_source ptx_source_at(const char *file, int line)
{
    ptx_source s;
    s.file = file;
    s.line = line;
    return s;
}
#define PTX_HERE ptx_source_at(__FILE__, __LINE__)

/*
 * Functions that emit, named …_at, take the place of the call in the C source; the macro of the
 * same name without `_at` passes PTX_HERE.
 */

/* ---- values ---- */

typedef enum ptx_type {
    PTX_PRED, PTX_U16, PTX_S16, PTX_F16, PTX_BF16, PTX_U32, PTX_S32, PTX_F32, PTX_F16X2,
    PTX_BF16X2, PTX_U64, PTX_S64, PTX_F64, PTX_B128, PTX_TYPE_COUNT
} ptx_type;

typedef enum ptx_operand_kind {
    PTX_OPERAND_NONE, /**< as a destination: the emitter makes a new register */
    PTX_OPERAND_REGISTER,
    PTX_OPERAND_IMMEDIATE,
    PTX_OPERAND_LABEL,
    PTX_OPERAND_PARAM
} ptx_operand_kind;

/** An untyped operand; programs normally hold the typed structs below. */
typedef struct ptx_operand {
    uint8_t kind; /**< ptx_operand_kind */
    uint8_t type; /**< ptx_type */
    uint16_t reserved; /**< set by the builder: which kernel it belongs to; 0 for a constant */
    uint32_t index; /**< register, label or parameter number within its kernel */
    uint64_t bits;  /**< an immediate's bits, zero- or sign-extended */
} ptx_operand;

typedef struct ptx_pred { ptx_operand o; } ptx_pred;
typedef struct ptx_u16 { ptx_operand o; } ptx_u16;
typedef struct ptx_s16 { ptx_operand o; } ptx_s16;
typedef struct ptx_f16 { ptx_operand o; } ptx_f16;
typedef struct ptx_bf16 { ptx_operand o; } ptx_bf16;
typedef struct ptx_u32 { ptx_operand o; } ptx_u32;
typedef struct ptx_s32 { ptx_operand o; } ptx_s32;
typedef struct ptx_f32 { ptx_operand o; } ptx_f32;
typedef struct ptx_f16x2 { ptx_operand o; } ptx_f16x2;
typedef struct ptx_bf16x2 { ptx_operand o; } ptx_bf16x2;
typedef struct ptx_u64 { ptx_operand o; } ptx_u64;
typedef struct ptx_s64 { ptx_operand o; } ptx_s64;
typedef struct ptx_f64 { ptx_operand o; } ptx_f64;
typedef struct ptx_b128 { ptx_operand o; } ptx_b128;

PTXGEN_API ptx_u16 ptx_imm_u16(uint16_t value);
PTXGEN_API ptx_s16 ptx_imm_s16(int16_t value);
PTXGEN_API ptx_u32 ptx_imm_u32(uint32_t value);
PTXGEN_API ptx_s32 ptx_imm_s32(int32_t value);
PTXGEN_API ptx_u64 ptx_imm_u64(uint64_t value);
PTXGEN_API ptx_s64 ptx_imm_s64(int64_t value);
PTXGEN_API ptx_f32 ptx_imm_f32(float value);
PTXGEN_API ptx_f64 ptx_imm_f64(double value);

/** Reinterpretation: the same register under another type of its width; no instruction. */
#define PTX_REINTERPRET(name, constant, unsigned_name, unsigned_constant)                          \
    static inline ptx_##unsigned_name ptx_##name##_as_##unsigned_name(ptx_##name x)                \
    {                                                                                              \
        ptx_##unsigned_name y;                                                                     \
        y.o = x.o;                                                                                 \
        y.o.type = unsigned_constant;                                                              \
        return y;                                                                                  \
    }                                                                                              \
    static inline ptx_##name ptx_##unsigned_name##_as_##name(ptx_##unsigned_name x)                \
    {                                                                                              \
        ptx_##name y;                                                                              \
        y.o = x.o;                                                                                 \
        y.o.type = constant;                                                                       \
        return y;                                                                                  \
    }
PTX_REINTERPRET(s16, PTX_S16, u16, PTX_U16)
PTX_REINTERPRET(f16, PTX_F16, u16, PTX_U16)
PTX_REINTERPRET(bf16, PTX_BF16, u16, PTX_U16)
PTX_REINTERPRET(s32, PTX_S32, u32, PTX_U32)
PTX_REINTERPRET(f32, PTX_F32, u32, PTX_U32)
PTX_REINTERPRET(f16x2, PTX_F16X2, u32, PTX_U32)
PTX_REINTERPRET(bf16x2, PTX_BF16X2, u32, PTX_U32)
PTX_REINTERPRET(s64, PTX_S64, u64, PTX_U64)
PTX_REINTERPRET(f64, PTX_F64, u64, PTX_U64)
#undef PTX_REINTERPRET

/* ---- modules ---- */

typedef struct ptx_module ptx_module;
typedef struct ptx_kernel ptx_kernel;

/**
 * realloc with the old size: `resize(ctx, NULL, 0, n)` allocates, `resize(ctx, p, old, 0)` frees
 * and returns NULL. Must be usable from the thread that builds the module.
 */
typedef struct ptx_allocator {
    void *(*resize)(void *ctx, void *block, size_t old_size, size_t new_size);
    void *ctx;
} ptx_allocator;

/**
 * Creates a module; `allocator` may be NULL. Returns NULL only if memory runs out; a bad target
 * becomes the module's sticky error. The functions here do nothing for a NULL module or kernel, and
 * ptx_kernel_begin returns a NULL kernel for a NULL module. So a check of the status at the end is
 * enough: ptx_module_status and ptx_module_text refuse NULL.
 */
PTXGEN_API ptx_module *ptx_module_create(const ptx_target *target, const ptx_allocator *allocator);
PTXGEN_API void ptx_module_destroy(ptx_module *module);
PTXGEN_API const ptx_target *ptx_module_target(const ptx_module *module);

/** The sticky error, or PTXGEN_OK. */
PTXGEN_API ptxgen_status ptx_module_status(const ptx_module *module, ptxgen_error *err);
/**
 * Defers the checks of divergence and asynchronous copies, on which the text does not depend: they
 * are left out when a kernel ends, until ptx_module_check runs them for all kernels and returns the
 * module's status. This saves time for a caller that emits a text only to look it up in a cache,
 * and whose text has been checked before.
 */
PTXGEN_API void ptx_module_defer_checks(ptx_module *module);
PTXGEN_API ptxgen_status ptx_module_check(ptx_module *module, ptxgen_error *err);
/** Sets the sticky error unless there is one already; for emitters that call these emitters. */
PTXGEN_API void ptx_kernel_fail(ptx_kernel *kernel, ptxgen_status status, const char *format, ...)
    PTXGEN_PRINTF(3, 4);

enum { PTX_TEXT_ANNOTATE = 1 /**< keep sections, comments and register notes in the text */ };

/**
 * The module as NUL-terminated PTX. The text belongs to the module and lives until the next call or
 * ptx_module_destroy. `length` (may be NULL) excludes the NUL.
 */
PTXGEN_API ptxgen_status ptx_module_text(ptx_module *module, unsigned flags, const char **text,
                                         size_t *length, ptxgen_error *err);
/** The PTX ISA version that the text declares: the lowest that its features and target need. */
PTXGEN_API int ptx_module_ptx_version(const ptx_module *module);

/* ---- kernels ---- */

/*
 * Names of kernels, parameters and labels appear in the text: they consist of ASCII letters, digits
 * and '_', and are not WARP_SZ. Names of buffers, sections and comments appear in the listing only
 * and may be any words.
 */

/**
 * Begins a `.visible .entry`. One kernel of a module is open at a time. Returns NULL only for a
 * NULL module; after an error it returns a kernel whose emitters do nothing.
 */
PTXGEN_API ptx_kernel *ptx_kernel_begin(ptx_module *module, const char *name);
/** Ends and validates the kernel. */
PTXGEN_API void ptx_kernel_end(ptx_kernel *kernel);
PTXGEN_API ptx_module *ptx_kernel_module(ptx_kernel *kernel);

/** Exact CTA shape (.reqntid). Divergence analysis assumes one-dimensional CTAs when y = z = 1. */
PTXGEN_API void ptx_kernel_reqntid(ptx_kernel *kernel, unsigned x, unsigned y, unsigned z);
/**
 * Upper bound of the CTA's threads (.maxntid); the CTA is taken to be one-dimensional. Not together
 * with reqntid.
 */
PTXGEN_API void ptx_kernel_maxntid(ptx_kernel *kernel, unsigned threads);
/** .minnctapersm; needs reqntid or maxntid. */
PTXGEN_API void ptx_kernel_minnctapersm(ptx_kernel *kernel, unsigned ctas);
PTXGEN_API void ptx_kernel_maxnreg(ptx_kernel *kernel, unsigned registers);
/** Exact cluster shape (.reqnctapercluster); needs sm_90 and PTX 7.8. */
PTXGEN_API void ptx_kernel_reqnctapercluster(ptx_kernel *kernel, unsigned x, unsigned y,
                                             unsigned z);

/** Kernel parameters, in the order of declaration. */
typedef struct ptx_param { ptx_operand o; } ptx_param;
/** Declares a parameter of `bytes` with `align`; read it with ptx_ld_param_*. */
PTXGEN_API ptx_param ptx_param_declare(ptx_kernel *kernel, const char *name, size_t bytes,
                                       size_t align);
/** Declares a scalar parameter and loads it. */
#define ptx_param_u32(k, name) ptx_param_u32_at(k, PTX_HERE, name)
#define ptx_param_u64(k, name) ptx_param_u64_at(k, PTX_HERE, name)
#define ptx_param_f32(k, name) ptx_param_f32_at(k, PTX_HERE, name)
PTXGEN_API ptx_u32 ptx_param_u32_at(ptx_kernel *kernel, ptx_source source, const char *name);
PTXGEN_API ptx_u64 ptx_param_u64_at(ptx_kernel *kernel, ptx_source source, const char *name);
PTXGEN_API ptx_f32 ptx_param_f32_at(ptx_kernel *kernel, ptx_source source, const char *name);
/** The generic address of a parameter (a `__grid_constant__` tensor map, say); needs PTX 7.7. */
#define ptx_param_address(k, param) ptx_param_address_at(k, PTX_HERE, param)
PTXGEN_API ptx_u64 ptx_param_address_at(ptx_kernel *kernel, ptx_source source, ptx_param param);

/* ---- shared and local memory ---- */

/**
 * A buffer in shared memory. The builder lays buffers out in order of declaration, at the given
 * alignment (a power of two ≤ 1024). Up to 48 KB in total they are static; beyond that the kernel
 * uses one dynamic block, whose size ptx_kernel_info gives and the launch must pass.
 */
typedef struct ptx_shared { uint32_t index; uint16_t owner; } ptx_shared;
PTXGEN_API ptx_shared ptx_shared_declare(ptx_kernel *kernel, const char *name, size_t bytes,
                                         size_t align);
/** The buffer's address in the shared window. */
#define ptx_shared_address(k, buffer) ptx_shared_address_at(k, PTX_HERE, buffer)
PTXGEN_API ptx_u32 ptx_shared_address_at(ptx_kernel *kernel, ptx_source source, ptx_shared buffer);

/**
 * A buffer in local memory, of which each thread has its own. Buffers are laid out in order of
 * declaration, and all of them together have at most 512 KB.
 */
typedef struct ptx_local { uint32_t index; uint16_t owner; } ptx_local;
PTXGEN_API ptx_local ptx_local_declare(ptx_kernel *kernel, const char *name, size_t bytes,
                                       size_t align);
/** The buffer's address in local space, for ptx_ld_local_* and ptx_st_local_*. */
#define ptx_local_address(k, buffer) ptx_local_address_at(k, PTX_HERE, buffer)
PTXGEN_API ptx_u64 ptx_local_address_at(ptx_kernel *kernel, ptx_source source, ptx_local buffer);

/* ---- labels, barriers ---- */

typedef struct ptx_label { ptx_operand o; } ptx_label;
/** A new label; `name` is a hint for the listing and may be NULL. */
PTXGEN_API ptx_label ptx_label_new(ptx_kernel *kernel, const char *name);
/** Binds the label here; exactly once. */
#define ptx_label_bind(k, label) ptx_label_bind_at(k, PTX_HERE, label)
PTXGEN_API void ptx_label_bind_at(ptx_kernel *kernel, ptx_source source, ptx_label label);

/** A CTA barrier resource: number 0–15 and the count of threads that take part (0: all). */
typedef struct ptx_barrier { uint8_t number; uint16_t threads; } ptx_barrier;
/** Takes the next free barrier number. `threads` must be a multiple of 32, 0 for the whole CTA. */
PTXGEN_API ptx_barrier ptx_barrier_new(ptx_kernel *kernel, unsigned threads);
#define ptx_barrier_wait(k, barrier) ptx_barrier_wait_at(k, PTX_HERE, barrier)
PTXGEN_API void ptx_barrier_wait_at(ptx_kernel *kernel, ptx_source source, ptx_barrier barrier);
/** Arrives without waiting. A barrier of the whole CTA needs .reqntid to know its count. */
#define ptx_barrier_signal(k, barrier) ptx_barrier_signal_at(k, PTX_HERE, barrier)
PTXGEN_API void ptx_barrier_signal_at(ptx_kernel *kernel, ptx_source source, ptx_barrier barrier);

/* ---- structured control flow ---- */

/** The state of one of the statements below, from its beginning to its end. */
typedef struct ptx_block {
    ptx_kernel *kernel;
    ptx_source source;
    ptx_operand head, tail; /* labels */
    ptx_operand counter, limit, step;
    int phase;
    int kind;                      /**< which function began it */
    unsigned number, outer_number; /**< its own, and that of the block around it */
    ptx_source outer;
} ptx_block;

/*
 * Each block must end, by the function of its kind, before the block around it ends, and only
 * ptx_loop and ptx_for may be left by a break. Anything else is PTXGEN_ERROR_STRUCTURE, and the
 * sentence names the lines of the blocks.
 */

PTXGEN_API ptx_block ptx_if_begin(ptx_kernel *kernel, ptx_source source, ptx_pred condition,
                                  bool negate);
PTXGEN_API void ptx_if_end(ptx_block *block);
PTXGEN_API void ptx_if_else_next(ptx_block *block);
PTXGEN_API ptx_block ptx_for_begin(ptx_kernel *kernel, ptx_source source, ptx_u32 counter,
                                   ptx_u32 limit, ptx_u32 step);
PTXGEN_API void ptx_for_end(ptx_block *block);
PTXGEN_API ptx_block ptx_loop_begin(ptx_kernel *kernel, ptx_source source);
PTXGEN_API void ptx_loop_break_if_at(ptx_block *block, ptx_source source, ptx_pred condition,
                                     bool negate);
PTXGEN_API void ptx_loop_end(ptx_block *block);
PTXGEN_API ptx_block ptx_guard_begin(ptx_kernel *kernel, ptx_source source, ptx_pred guard,
                                     bool negate);
PTXGEN_API void ptx_guard_end(ptx_block *block);

#define PTX_CAT_(a, b) a##b
#define PTX_CAT(a, b) PTX_CAT_(a, b)
#define PTX_BLOCK(begin, end)                                                                      \
    for (ptx_block PTX_CAT(ptx_block_, __LINE__) = (begin);                                        \
         PTX_CAT(ptx_block_, __LINE__).phase == 0; end(&PTX_CAT(ptx_block_, __LINE__)))

/** ptx_if(k, p) { … } runs the body where p holds; ptx_unless where it does not. */
#define ptx_if(k, p) PTX_BLOCK(ptx_if_begin(k, PTX_HERE, p, false), ptx_if_end)
#define ptx_unless(k, p) PTX_BLOCK(ptx_if_begin(k, PTX_HERE, p, true), ptx_if_end)
/** ptx_if_else(k, p) { … } else { … }: both branches. */
#define ptx_if_else(k, p)                                                                          \
    for (ptx_block PTX_CAT(ptx_block_, __LINE__) = ptx_if_begin(k, PTX_HERE, p, false);            \
         PTX_CAT(ptx_block_, __LINE__).phase < 2;                                                  \
         ptx_if_else_next(&PTX_CAT(ptx_block_, __LINE__)))                                         \
        if (PTX_CAT(ptx_block_, __LINE__).phase == 0)
/**
 * ptx_for(k, i, limit, step) { … }: the register i, which the caller has initialised, is compared
 * before each iteration (i < limit, unsigned) and increased by step after it. limit and step may be
 * constants; i + step must not pass 2^32.
 */
#define ptx_for(k, i, limit, step)                                                                 \
    PTX_BLOCK(ptx_for_begin(k, PTX_HERE, i, limit, step), ptx_for_end)
/** ptx_loop(k, b) { … ptx_loop_break_if(&b, p, false); … } repeats the body until the break. */
#define ptx_loop(k, b) \
    for (ptx_block b = ptx_loop_begin(k, PTX_HERE); b.phase == 0; ptx_loop_end(&b))
#define ptx_loop_break_if(b, p, negate) ptx_loop_break_if_at(b, PTX_HERE, p, negate)
/**
 * Every instruction emitted in the body carries @p (or @!p). Does not nest, and holds no structured
 * control flow; ptx_bra and ptx_ret in it are conditional.
 */
#define ptx_guarded(k, p) PTX_BLOCK(ptx_guard_begin(k, PTX_HERE, p, false), ptx_guard_end)
#define ptx_guarded_not(k, p) PTX_BLOCK(ptx_guard_begin(k, PTX_HERE, p, true), ptx_guard_end)
/** A C loop that unrolls: i is a C int. */
#define ptx_for_static(i, count) for (int i = 0; i < (count); i++)

/** As the first call in a loop's body: the assembler does not unroll it, which saves JIT time. */
PTXGEN_API void ptx_nounroll_at(ptx_kernel *kernel, ptx_source source);
#define ptx_nounroll(kernel) ptx_nounroll_at(kernel, PTX_HERE)

/* ---- listing ---- */

/** Starts a named section of the listing; ptx_module_kernel_section counts its instructions. */
PTXGEN_API void ptx_section(ptx_kernel *kernel, const char *format, ...) PTXGEN_PRINTF(2, 3);
/**
 * A comment line before the next instruction. Assemblers take ASCII only, so the listing replaces
 * common signs (× · … ≤ ≥ – → and so on) by ASCII characters, and all others by '?'.
 */
PTXGEN_API void ptx_comment(ptx_kernel *kernel, const char *format, ...) PTXGEN_PRINTF(2, 3);

/* ---- analysis results ---- */

/** Facts of an ended kernel. */
typedef struct ptx_kernel_info {
    const char *name;
    size_t instructions;
    size_t virtual_registers;
    unsigned names_pred, names_16, names_32, names_64, names_128; /**< after the linear scan */
    /**
     * The peak of live registers in 32-bit units: 16- and 32-bit registers count one, 64-bit ones
     * two, 128-bit ones four, predicates nothing. The assembler's own count is near this number:
     * higher where the assembler moves loads up, lower where it computes values again.
     */
    unsigned pressure;
    size_t static_shared_bytes, dynamic_shared_bytes;
    size_t local_bytes;
    unsigned threads; /**< of .reqntid or .maxntid, 0 when neither is set */
    unsigned sections;
} ptx_kernel_info;
PTXGEN_API unsigned ptx_module_kernels(const ptx_module *module);
PTXGEN_API ptxgen_status ptx_module_kernel_info(const ptx_module *module, unsigned index,
                                                ptx_kernel_info *info);
/**
 * Name and number of instructions of section `section` of a kernel. Section 0, named "", holds the
 * instructions before the first ptx_section. PTXGEN_ERROR_INVALID_ARGUMENT past the last section.
 */
PTXGEN_API ptxgen_status ptx_module_kernel_section(const ptx_module *module, unsigned index,
                                                   unsigned section, const char **name,
                                                   size_t *instructions);
enum { PTX_NAME_SIZE = 48 }; /* room for an instruction's name */
typedef struct ptx_mix_row { char mnemonic[PTX_NAME_SIZE]; size_t count; } ptx_mix_row;
/**
 * Instruction counts of a kernel: fills up to `capacity` rows (mnemonic and count, most frequent
 * first, ties by mnemonic), and returns the number of different mnemonics. A mnemonic is the
 * emitter's name; all raw instructions are counted as "raw", and the address of a buffer or
 * parameter as a mov. Returns 0 if there is no such kernel, or no memory for the count.
 */
PTXGEN_API size_t ptx_module_kernel_mix(const ptx_module *module, unsigned index, ptx_mix_row *rows,
                                        size_t capacity);

/* ---- the instruction table, for tools ---- */

PTXGEN_API size_t ptx_instruction_count(void);
/**
 * Writes the name of instruction `index`, as "fma_f32", or "" past the last one. The name is
 * NUL-terminated and cut to `size`; PTX_NAME_SIZE bytes are enough.
 */
PTXGEN_API void ptx_instruction_name(size_t index, char *buffer, size_t size);
/**
 * Writes the syntax of an instruction with its alternatives, and the PTX version and target that it
 * needs, as "add{.rn|.rz|.rm|.rp}{.ftz}{.sat}.f32 f32, f32|imm, f32|imm; PTX 7.0 sm_80". The text
 * is NUL-terminated and cut to `size`.
 */
PTXGEN_API void ptx_instruction_describe(size_t index, char *buffer, size_t size);

/* ---- emission underneath the typed emitters ---- */

/**
 * Appends instruction number `op`. `operands` are in the order of the table's operand list, an
 * address counting two (base, immediate offset); destinations of kind NONE receive new registers.
 */
PTXGEN_API void ptx_emit(ptx_kernel *kernel, unsigned op, uint64_t modifiers, unsigned n,
                         ptx_operand *operands, unsigned count, ptx_source source);

/**
 * The escape hatch: emits one instruction that the table lacks, given as text in which %i stands
 * for operands[i], up to %255. The first `written` operands are destinations; those of kind NONE
 * receive new registers of the operand's `type`. `min_ptx` is the PTX version that the instruction
 * needs, or 0. The text must not name registers, and must not branch; its results count as
 * different between lanes.
 */
PTXGEN_API void ptx_raw_at(ptx_kernel *kernel, ptx_source source, const char *text, int min_ptx,
                           ptx_operand *operands, unsigned count, unsigned written);
#define ptx_raw(kernel, text, min_ptx, operands, count, written) \
    ptx_raw_at(kernel, PTX_HERE, text, min_ptx, operands, count, written)

#ifdef __cplusplus
}
#endif
#endif
