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
    PTX_PSEUDO_PARAM_ADDRESS
};

struct ptx_instruction {
    uint16_t op;
    uint16_t n;
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

enum ptx_class { PTX_CLASS_PRED, PTX_CLASS_16, PTX_CLASS_32, PTX_CLASS_64, PTX_CLASS_128, PTX_CLASSES };

struct ptx_kernel {
    ptx_module *module;
    struct ptx_kernel *next;
    char *name;

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
    unsigned open_blocks, barriers_used;
    bool ended;

    unsigned ntid[3], maxntid, minnctapersm, maxnreg, cluster[3];
    size_t shared_bytes, shared_align, local_bytes;
    uint32_t names[PTX_CLASSES];
    unsigned pressure;
};

struct ptx_module {
    ptx_allocator allocator;
    ptx_target target;
    int ptx_version; /* lowest that what was emitted so far needs */
    ptx_kernel *kernels, *last_kernel;
    ptx_kernel fallback; /* what ptx_kernel_begin returns when memory has run out */
    unsigned kernel_count;
    ptxgen_error error;
    char *text;
    size_t text_length, text_capacity;
};

/* ---- memory (memory.c) ---- */

/* Makes room for `need` elements in *data; false (with the sticky error set) when out of memory. */
bool ptx_reserve(ptx_module *m, void *data, size_t *capacity, size_t need, size_t element);
void *ptx_scratch(ptx_module *m, size_t bytes); /* zeroed; freed with ptx_release */
void ptx_release(ptx_module *m, void *block, size_t bytes);
/* Keeps a formatted string in the kernel's notes; its offset, 0 being the empty string. */
uint32_t ptx_note(ptx_kernel *k, const char *format, ...) PTXGEN_PRINTF(2, 3);
uint32_t ptx_vnote(ptx_kernel *k, const char *format, va_list args);
static inline const char *ptx_note_text(const ptx_kernel *k, uint32_t note)
{
    return k->notes ? k->notes + note : "";
}

/* ---- errors ---- */

static inline bool ptx_failed(const ptx_kernel *k)
{
    return k->module->error.status != PTXGEN_OK;
}
/* Sets the sticky error for instruction `index`, or for the kernel when it is UINT32_MAX. */
void ptx_fail_at(ptx_kernel *k, uint32_t index, ptxgen_status status, const char *format, ...)
    PTXGEN_PRINTF(4, 5);

/* ---- emission (emit.c) ---- */

void ptx_require_version(ptx_kernel *k, int ptx_version, const char *what);
struct ptx_instruction *ptx_append(ptx_kernel *k, unsigned op, ptx_source source,
                                   const ptx_operand *operands, unsigned count);
ptx_operand ptx_register_new(ptx_kernel *k, ptx_type type);
enum ptx_class ptx_class_of(ptx_type type);
unsigned ptx_term_operands(const struct ptx_term *t, unsigned n);
/* The lowest PTX version at which `target` meets one of the needs; 0 when it never does. */
int ptx_needs_met(const struct ptx_need *needs, unsigned count, const ptx_target *target);

/* One register that an instruction touches. */
struct ptx_reference {
    uint32_t reg;
    bool written, read, undef_ok;
};
enum { PTX_MAX_REFERENCES = 320 };
/* Lists the registers of an instruction, its guard first; how many there are. */
unsigned ptx_references(const ptx_kernel *k, const struct ptx_instruction *i,
                        struct ptx_reference *out);
uint32_t ptx_flags(const struct ptx_instruction *i);

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
/* Checks initialisation, folds registers into names, measures pressure (registers.c). */
void ptx_allocate_registers(ptx_kernel *k, const struct ptx_cfg *cfg);
void ptx_check_divergence(ptx_kernel *k, const struct ptx_cfg *cfg);
void ptx_check_async(ptx_kernel *k, const struct ptx_cfg *cfg);
void ptx_shared_layout(ptx_kernel *k);

/* ---- text (text.c) ---- */

/* The mnemonic with its modifiers; `buffer` has room for PTX_MNEMONIC_SIZE. */
enum { PTX_MNEMONIC_SIZE = 160 };
void ptx_mnemonic(const struct ptx_instruction *i, char *buffer);
enum { PTX_STATIC_SHARED_LIMIT = 48 * 1024 };

/* ---- targets (target.c) ---- */

size_t ptx_target_shared_limit(const ptx_target *target);

#endif
