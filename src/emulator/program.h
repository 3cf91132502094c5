/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel made ready to run: every name resolved, every modifier a number, each instruction
 * bound to the C function that carries it out. A program is read-only while it runs.
 *
 * Registers are structures of arrays: one register is 32 lanes side by side, and an operand is a
 * byte offset into the warp's register file (bank 0) or the program's constants (bank 1), so
 * that immediates and registers read alike. A predicate is one 32-bit mask.
 */
#ifndef PTXGEN_EMULATOR_PROGRAM_H
#define PTXGEN_EMULATOR_PROGRAM_H

#include "src/emulator/module.h"

struct emu_warp;
struct emu_buffer; /* shared_buffer.h */
struct emu_insn;
typedef void (*emu_exec)(struct emu_warp *warp, const struct emu_insn *insn, uint32_t mask);

struct emu_src {
    uint32_t offset;
    uint32_t slot; /* register number, of a constant the buffer that it is the address of */
    uint8_t bank;  /* 0 registers, 1 constants */
    uint8_t bytes; /* of one lane: 2, 4, 8, 16; 0 for a predicate */
    bool negated;  /* predicates only */
    bool absent;   /* the sink, or no operand */
};

/* What the interpreter's loop has to know about an instruction. */
enum emu_flow {
    FLOW_NEXT,    /* pc + 1 */
    FLOW_BRANCH,  /* the exec function splits the fragment itself */
    FLOW_COLLECT, /* runs when the lanes it names are together: `collect` says which */
    FLOW_CONTROL  /* the exec function moves the fragment itself */
};

enum emu_collect {
    COLLECT_ALIGNED, /* every lane of the warp */
    COLLECT_MEMBERS  /* the lanes of the membermask in operand `members` */
};

enum emu_class {
    CLASS_OTHER,
    CLASS_INTEGER,
    CLASS_FLOAT,
    CLASS_CONVERT,
    CLASS_MOVE,
    CLASS_COMPARE,
    CLASS_MEMORY_GLOBAL,
    CLASS_MEMORY_SHARED,
    CLASS_MEMORY_OTHER,
    CLASS_ATOMIC,
    CLASS_CONTROL,
    CLASS_WARP,
    CLASS_BARRIER,
    CLASS_TENSOR,
    CLASS_ASYNC,
    CLASS_COUNT
};

/* Of strong accesses and fences; 0: none. */
enum emu_sync_scope { SCOPE_NONE, SCOPE_CTA, SCOPE_CLUSTER, SCOPE_GPU, SCOPE_SYS };

enum { EMU_NO_SLOT = 0xffffffffu, EMU_SOURCES = 6 };

struct emu_insn {
    emu_exec exec;
    struct emu_src guard; /* absent when not predicated */
    struct emu_src d, e;  /* destinations */
    struct emu_src s[EMU_SOURCES];
    struct emu_src *list;     /* vector operands, destinations first */
    uint32_t *reads, *writes; /* register slots, for the checks */
    const void *extra;        /* what an instruction alone knows: an mma shape, targets */
    int64_t imm;              /* address offset, lookup table, … */
    uint32_t line, target;
    uint16_t read_count, write_count, list_count;
    uint8_t type, type2; /* enum emu_type */
    uint8_t op, mode, space, vector, flow, collect, class_id, flags;
    uint8_t scope; /* enum emu_sync_scope */
    bool ftz, sat, aligned, reads_clock, strong, has_value, noncoherent;
};

struct emu_slot {
    struct emu_str name;
    enum emu_type type;
    uint32_t offset;
};

enum emu_special {
    SPECIAL_TID_X,
    SPECIAL_TID_Y,
    SPECIAL_TID_Z,
    SPECIAL_NTID_X,
    SPECIAL_NTID_Y,
    SPECIAL_NTID_Z,
    SPECIAL_CTAID_X,
    SPECIAL_CTAID_Y,
    SPECIAL_CTAID_Z,
    SPECIAL_NCTAID_X,
    SPECIAL_NCTAID_Y,
    SPECIAL_NCTAID_Z,
    SPECIAL_LANEID,
    SPECIAL_WARPID,
    SPECIAL_NWARPID,
    SPECIAL_SMID,
    SPECIAL_NSMID,
    SPECIAL_GRIDID,
    SPECIAL_LANEMASK_EQ,
    SPECIAL_LANEMASK_LE,
    SPECIAL_LANEMASK_LT,
    SPECIAL_LANEMASK_GE,
    SPECIAL_LANEMASK_GT,
    SPECIAL_CLOCK,
    SPECIAL_CLOCK_HI,
    SPECIAL_CLOCK64,
    SPECIAL_GLOBALTIMER,
    SPECIAL_GLOBALTIMER_LO,
    SPECIAL_GLOBALTIMER_HI,
    SPECIAL_CLUSTERID_X,
    SPECIAL_CLUSTERID_Y,
    SPECIAL_CLUSTERID_Z,
    SPECIAL_NCLUSTERID_X,
    SPECIAL_NCLUSTERID_Y,
    SPECIAL_NCLUSTERID_Z,
    SPECIAL_CLUSTER_CTAID_X,
    SPECIAL_CLUSTER_CTAID_Y,
    SPECIAL_CLUSTER_CTAID_Z,
    SPECIAL_CLUSTER_NCTAID_X,
    SPECIAL_CLUSTER_NCTAID_Y,
    SPECIAL_CLUSTER_NCTAID_Z,
    SPECIAL_CLUSTER_CTARANK,
    SPECIAL_CLUSTER_NCTARANK,
    SPECIAL_IS_EXPLICIT_CLUSTER,
    SPECIAL_DYNAMIC_SMEM_SIZE,
    SPECIAL_TOTAL_SMEM_SIZE,
    SPECIAL_AGGR_SMEM_SIZE,
    SPECIAL_ZERO,
    SPECIAL_COUNT
};

struct emu_special_use {
    enum emu_special which;
    uint32_t slot;
};

struct emu_parameter {
    uint32_t offset, size;
};

struct emu_program {
    const struct emu_module *module;
    const struct emu_function *function;
    struct emu_arena arena;
    struct emu_insn *code;
    size_t count, capacity;
    struct emu_slot *slots;
    size_t slot_count, slot_capacity;
    struct emu_special_use *specials;
    size_t special_count, special_capacity;
    uint32_t file_bytes; /* register file of one warp */
    uint8_t *constants;
    size_t constant_bytes, constant_capacity;
    struct emu_parameter *parameters;
    uint32_t parameter_count, parameter_bytes;
    uint32_t shared_bytes;      /* static shared memory */
    uint32_t shared_alignment;  /* of the dynamic part */
    uint32_t local_bytes;       /* local memory of one thread */
    struct emu_buffer *buffers; /* of shared memory, in order */
    size_t buffer_count, buffer_capacity;
    uint32_t seam;     /* an aligned access of so many bytes crosses from no buffer into the next */
    uint16_t *homes;   /* by slot: the buffer that the register points into, plus 1; 0: any */
    bool communicates; /* CTAs may depend on each other through global memory */
    bool arrives_relaxed; /* at a cluster's barrier */
    bool uses_proxies;    /* bulk copies, wgmma, or mbarriers of other CTAs */
};

#endif
