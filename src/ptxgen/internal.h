/* SPDX-License-Identifier: Apache-2.0 */
/* The builder's own structures. A kernel is a list of instructions over pools; passes read it. */
#ifndef PTXGEN_INTERNAL_H
#define PTXGEN_INTERNAL_H

#include <ptxgen/instr.h>
#include <ptxgen/ptx.h>

#include "table.h"

/* What stands in the instruction list beside the table's instructions. */
enum ptx_pseudo {
    PTX_PSEUDO_LABEL = PTX_OP_COUNT, /* operand 0: the label */
    PTX_PSEUDO_COMMENT,              /* note: the text */
    PTX_PSEUDO_SECTION,              /* note: the name */
    PTX_PSEUDO_RAW,                  /* note: the template; n: how many operands are written */
    PTX_PSEUDO_SHARED_ADDRESS,       /* operand 0 written; n: the buffer */
    PTX_PSEUDO_LOCAL_ADDRESS,
    PTX_PSEUDO_PARAM_ADDRESS /* in param space; cvta.param makes it generic */
};

/* Room for what one kernel may hold: instructions are numbered in 29 bits. */
enum { PTX_MAX_ELEMENTS = 1 << 29, PTX_MAX_DECLARATIONS = UINT16_MAX };

struct ptx_instruction {
    uint16_t op;
    uint16_t n;
    uint16_t flags;  /* of its op */
    uint8_t guarded; /* 0, or '+' for @p, '-' for @!p */
    uint32_t guard;  /* register */
    uint32_t first, count; /* operands in the kernel's pool */
    uint32_t note;         /* offset into the kernel's notes */
    int line;
    const char *file;
    uint64_t modifiers;
};

struct ptx_register {
    uint8_t type;
    uint32_t name; /* after allocation: number within its class */
};

struct ptx_label_state {
    bool bound;
    uint32_t position; /* instruction index of its binding */
    uint32_t note;
};

struct ptx_declaration { /* of a parameter, shared or local buffer */
    uint32_t note;       /* name */
    size_t bytes, align, offset;
    int type;            /* of a scalar parameter, −1 for a block of bytes */
};

enum ptx_class {
    PTX_CLASS_PRED,
    PTX_CLASS_16,
    PTX_CLASS_32,
    PTX_CLASS_64,
    PTX_CLASS_128,
    PTX_CLASSES
};

struct ptx_kernel {
    ptx_module *module;
    struct ptx_kernel *next;
    char *name;
    uint16_t owner; /* what operands of this kernel carry, so that strangers are told apart */

    struct ptx_instruction *code;
    ptx_operand *operands;
    struct ptx_register *registers;
    struct ptx_label_state *labels;
    struct ptx_declaration *params, *shared, *local;
    char *notes;
    uint32_t code_count, operand_count, register_count, label_count, param_count, shared_count,
        local_count, note_bytes;
    size_t code_capacity, operand_capacity, register_capacity, label_capacity, param_capacity,
        shared_capacity, local_capacity, note_capacity;

    uint8_t guarded;
    uint32_t guard;
    unsigned blocks, open_blocks, barriers_used;
    unsigned innermost; /* the number of the innermost open block, 0 when none is open */
    ptx_source innermost_source;
    bool ended;

    unsigned ntid[3], maxntid, minnctapersm, maxnreg, cluster[3];
    size_t shared_bytes, shared_align, local_bytes, local_align, param_bytes;
    uint32_t names[PTX_CLASSES];
    unsigned pressure;
};

/* An instruction with modifiers that was found in order. */
struct ptx_known {
    uint64_t modifiers; /* 0: none yet */
    unsigned op;
};
enum { PTX_KNOWN = 64 };

struct ptx_module {
    ptx_allocator allocator;
    ptx_target target;
    struct ptx_known known[PTX_KNOWN]; /* the last ones, by op */
    int ptx_version; /* lowest that what was emitted so far needs */
    ptx_kernel *kernels, *last_kernel;
    ptx_kernel fallback; /* what ptx_kernel_begin returns when memory has run out */
    unsigned kernel_count;
    bool checks_wait; /* for ptx_module_check */
    ptxgen_error error;
    char *text;
    size_t text_length, text_capacity;
};

/* ---- memory (memory.c) ---- */

/* Makes room for `need` elements in *data; false (with the sticky error set) when out of memory. */
bool ptx_grow(ptx_module *m, void *data, size_t *capacity, size_t need, size_t element);
static inline bool ptx_reserve(ptx_module *m, void *data, size_t *capacity, size_t need,
                               size_t element)
{
    return need <= *capacity || ptx_grow(m, data, capacity, need, element);
}
void *ptx_scratch(ptx_module *m, size_t bytes); /* zeroed; freed with ptx_release */
void *ptx_unset(ptx_module *m, size_t bytes);   /* the same, not zeroed */
void ptx_release(ptx_module *m, void *block, size_t bytes);
/* Keep a string in the kernel's notes; its offset, 0 being the empty string. */
uint32_t ptx_vnote(ptx_kernel *k, const char *format, va_list args);
uint32_t ptx_note_string(ptx_kernel *k, const char *string);
static inline const char *ptx_note_text(const ptx_kernel *k, uint32_t note)
{
    return k->notes ? k->notes + note : "";
}

/* ---- errors ---- */

static inline bool ptx_failed(const ptx_kernel *k)
{
    return !k || k->module->error.status != PTXGEN_OK;
}
/* What a sentence says of a source file: its name without folders; "?" for NULL. */
const char *ptx_file_name(const char *path);
/* Sets the sticky error for instruction `index`, or for the kernel when it is UINT32_MAX. */
void ptx_fail_at(ptx_kernel *k, uint32_t index, ptxgen_status status, const char *format, ...)
    PTXGEN_PRINTF(4, 5);

bool ptx_is_identifier(const char *name);
/* False, with the sticky error set, when the kernel can no longer be changed. */
bool ptx_open(ptx_kernel *k, const char *what);

/* ---- emission (emit.c) ---- */

void ptx_require_version(ptx_kernel *k, int ptx_version, const char *what);
struct ptx_instruction *ptx_append(ptx_kernel *k, unsigned op, ptx_source source,
                                   const ptx_operand *operands, unsigned count);
ptx_operand ptx_register_new(ptx_kernel *k, ptx_type type);
static inline enum ptx_class ptx_class_of(ptx_type type)
{
    static const uint8_t classes[PTX_TYPE_COUNT] = {
        [PTX_PRED] = PTX_CLASS_PRED,  [PTX_U16] = PTX_CLASS_16,  [PTX_S16] = PTX_CLASS_16,
        [PTX_F16] = PTX_CLASS_16,     [PTX_BF16] = PTX_CLASS_16, [PTX_U32] = PTX_CLASS_32,
        [PTX_S32] = PTX_CLASS_32,     [PTX_F32] = PTX_CLASS_32,  [PTX_F16X2] = PTX_CLASS_32,
        [PTX_BF16X2] = PTX_CLASS_32,  [PTX_U64] = PTX_CLASS_64,  [PTX_S64] = PTX_CLASS_64,
        [PTX_F64] = PTX_CLASS_64,     [PTX_B128] = PTX_CLASS_128};
    return (enum ptx_class)classes[type];
}
/* Reads the number at "%<digits>" in a raw template and steps over it; −1 when there is none. */
long ptx_raw_slot(const char **template);

/* ---- passes over an ended kernel ---- */

struct ptx_basic_block {
    uint32_t first, end;   /* instructions [first, end) */
    uint32_t successors[2];
    unsigned successor_count;
    bool exits;            /* control may leave the kernel at its end */
};

struct ptx_cfg {
    struct ptx_basic_block *blocks;
    uint32_t count;
    uint32_t *block_of; /* by instruction */
};

bool ptx_cfg_build(ptx_kernel *k, struct ptx_cfg *cfg);
void ptx_cfg_free(ptx_kernel *k, struct ptx_cfg *cfg);

/* Successors of a block, cfg->count standing for the kernel's exit; how many there are. */
unsigned ptx_cfg_successors(const struct ptx_cfg *cfg, uint32_t block, uint32_t out[3]);
enum { PTX_NO_BLOCK = UINT32_MAX };
/* Fills ipdom for each block and for the exit; PTX_NO_BLOCK where the exit cannot be reached. */
bool ptx_find_postdominators(ptx_kernel *k, const struct ptx_cfg *cfg, uint32_t *ipdom);

/* One register that one instruction touches. */
struct ptx_reference {
    uint32_t reg;
    uint32_t at : 29;
    bool written : 1, read : 1, undef_ok : 1;
};

/* A run of references, in program order. */
struct ptx_references {
    const struct ptx_reference *list;
    uint32_t count;
};

/* All references of a kernel, by instruction and by register. */
struct ptx_uses {
    struct ptx_reference *by_instruction, *by_register;
    uint32_t *instruction_start, *register_start; /* one more than there are of each */
    uint32_t count;
};

bool ptx_uses_build(ptx_kernel *k, struct ptx_uses *uses);
void ptx_uses_free(ptx_kernel *k, struct ptx_uses *uses);
/* An instruction's guard comes first. */
static inline struct ptx_references ptx_uses_at(const struct ptx_uses *u, uint32_t instruction)
{
    uint32_t start = u->instruction_start[instruction];
    struct ptx_references r = {u->by_instruction + start,
                               u->instruction_start[instruction + 1] - start};
    return r;
}
static inline struct ptx_references ptx_uses_of(const struct ptx_uses *u, uint32_t reg)
{
    uint32_t start = u->register_start[reg];
    struct ptx_references r = {u->by_register + start, u->register_start[reg + 1] - start};
    return r;
}
/* The index of the first reference of a register's run that stands at instruction `at` or later. */
uint32_t ptx_uses_from(struct ptx_references refs, uint32_t at);
/* True when an instruction in [from, to) writes the register. */
bool ptx_written_between(const struct ptx_uses *u, uint32_t reg, uint32_t from, uint32_t to);

/* ---- liveness (liveness.c, initialised.c) ---- */

/*
 * Registers that live across blocks are numbered densely, and sets of them are kept for each block;
 * the others live within one block and need no sets.
 */
struct ptx_liveness {
    ptx_kernel *k;
    const struct ptx_cfg *cfg;
    const struct ptx_uses *uses;
    uint32_t *number;     /* by register: 1 + its number, 0 when it stays within a block */
    uint32_t *reg;        /* by number */
    uint32_t numbered;
    size_t words;         /* of a set */
    uint64_t *in, *out;   /* by block */
    uint64_t *gen, *kill; /* by block: what it reads first, and what it writes wholly */
    uint8_t *predicated;  /* by register: all of it stands under one guard, so writes are whole */
    uint8_t *completes;   /* by instruction: with the write before it under the opposite guard, it
                             writes wholly */
};

bool ptx_liveness_build(ptx_kernel *k, const struct ptx_cfg *cfg, const struct ptx_uses *uses,
                        struct ptx_liveness *l);
void ptx_liveness_free(struct ptx_liveness *l);
/* Solves the data-flow equations (again, after `predicated` has changed). */
void ptx_liveness_solve(struct ptx_liveness *l);
/*
 * The register's last write before instruction `at`, where it stands in the same basic block under
 * the opposite of that instruction's guard.
 */
enum { PTX_NO_WRITE = UINT32_MAX };
uint32_t ptx_opposite_write(const struct ptx_liveness *l, uint32_t reg, uint32_t at);
/* True when the reference is a write after which nothing of the old value is left. */
static inline bool ptx_kills(const struct ptx_liveness *l, const struct ptx_reference *r)
{
    return r->written && !r->read &&
           (!l->k->code[r->at].guarded || l->completes[r->at] || l->predicated[r->reg]);
}
/* Refuses reads of registers that some path has not written; may refine the liveness. */
void ptx_check_initialised(struct ptx_liveness *l);

static inline bool ptx_has(const uint64_t *set, uint32_t i)
{
    return set[i / 64] >> (i % 64) & 1;
}
static inline void ptx_put(uint64_t *set, uint32_t i)
{
    set[i / 64] |= UINT64_C(1) << (i % 64);
}

/* Folds registers into names and measures pressure (registers.c). */
void ptx_allocate_registers(const struct ptx_liveness *l);
/* Calls hold for each register of each wgmma with the instructions during which it is in use. */
void ptx_hold_asynchronous(const struct ptx_liveness *l,
                           void (*hold)(void *ctx, uint32_t reg, uint32_t first, uint32_t last),
                           void *ctx);
void ptx_check_divergence(ptx_kernel *k, const struct ptx_cfg *cfg, const struct ptx_uses *uses);
void ptx_check_async(ptx_kernel *k, const struct ptx_cfg *cfg, const struct ptx_uses *uses);
void ptx_check_bounds(ptx_kernel *k, const struct ptx_uses *uses);
/* Gives buffers their offsets and checks the totals (declare.c). */
void ptx_lay_out_memory(ptx_kernel *k);

/* ---- text (text.c) ---- */

/* The mnemonic with its modifiers; `buffer` has room for PTX_MNEMONIC_SIZE. */
enum { PTX_MNEMONIC_SIZE = 160 };
void ptx_mnemonic(const struct ptx_instruction *i, char *buffer);
enum { PTX_STATIC_SHARED_LIMIT = 48 * 1024 };

/* ---- targets (target.c) ---- */

size_t ptx_target_shared_limit(const ptx_target *target);

#endif
