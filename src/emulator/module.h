/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A PTX module as parsed: declarations and statements, names still names. Everything lives in
 * the module's arena; strings point into its own copy of the text.
 */
#ifndef PTXGEN_EMULATOR_MODULE_H
#define PTXGEN_EMULATOR_MODULE_H

#include "ptxgen/status.h"
#include "src/emulator/arena.h"
#include "src/emulator/types.h"

enum emu_operand_kind {
    OPERAND_NONE,
    OPERAND_NAME, /* register, variable, label, function or special register; + offset */
    OPERAND_INT,  /* bits */
    OPERAND_F32,
    OPERAND_F64,
    OPERAND_VECTOR,  /* { items } */
    OPERAND_ADDRESS, /* [ items[0] + offset ] or [ items[0], items[1] … ] for tensors */
    OPERAND_LIST,    /* ( items ), in calls */
    OPERAND_SINK     /* _ */
};

struct emu_arg {
    enum emu_operand_kind kind;
    bool negated;        /* ! before the name */
    struct emu_str name; /* with its .x component when there is one */
    uint64_t bits;       /* value of a literal, offset added to a name */
    struct emu_arg *items;
    uint32_t count;
    struct emu_arg *pair; /* the q of p|q */
};

struct emu_statement {
    struct emu_str mnemonic;
    struct emu_str *modifiers;
    struct emu_arg *operands;
    struct emu_arg guard; /* kind NAME when predicated; negated for @!p */
    uint16_t modifier_count, operand_count;
    uint32_t scope, line, column;
};

struct emu_relocation {
    uint64_t offset, addend;
    struct emu_str symbol;
};

struct emu_variable {
    struct emu_str name;
    enum emu_space space;
    enum emu_type type;
    uint32_t alignment, line;
    uint64_t size; /* bytes; 0 for an extern array of unknown length */
    bool is_extern;
    uint8_t *initial; /* size bytes, or NULL for zeroes */
    struct emu_relocation *relocations;
    size_t relocation_count, relocation_capacity;
};

enum emu_symbol_kind {
    SYMBOL_REGISTER, /* range of `count` when the name is a prefix, else one */
    SYMBOL_VARIABLE,
    SYMBOL_LABEL,
    SYMBOL_TARGETS, /* .branchtargets: operand list of labels */
    SYMBOL_PROTOTYPE,
    SYMBOL_FUNCTION
};

struct emu_symbol {
    struct emu_str name;
    uint32_t scope;
    enum emu_symbol_kind kind;
    enum emu_type type; /* of a register */
    bool is_range;
    uint32_t first, count; /* register numbers; statement index of a label; variable index */
    struct emu_arg *targets;
    uint32_t hash;
    struct emu_symbol *next;
    struct emu_symbol *sibling; /* the one declared before it in its scope */
};

struct emu_scope {
    uint32_t parent;
    struct emu_symbol *last; /* declared in it */
};

struct emu_function {
    struct emu_str name;
    bool is_entry, has_body;
    uint32_t line;
    struct emu_variable *parameters, *results; /* in space PARAM */
    size_t parameter_count, parameter_capacity, result_count, result_capacity;
    struct emu_variable *variables; /* of the body, every space */
    size_t variable_count, variable_capacity;
    struct emu_statement *statements;
    size_t statement_count, statement_capacity;
    uint32_t register_count;
    uint32_t max_threads[3], required_threads[3], required_cluster[3];
    bool explicit_cluster;
    uint32_t max_registers;
};

struct emu_module {
    struct emu_arena arena;
    const char *text;
    size_t length;
    uint32_t version_major, version_minor, address_size, target_line;
    struct emu_str target;
    struct emu_variable *variables;
    size_t variable_count, variable_capacity;
    struct emu_function *functions;
    size_t function_count, function_capacity;
    struct emu_scope *scopes;
    size_t scope_count, scope_capacity;
    uint32_t dynamic_alignment;  /* of the strictest extern shared variable; 0: there is none */
    struct emu_symbol **symbols; /* a hash table of chains, with at least as many buckets */
    uint32_t symbol_count, symbol_buckets;
};

/*
 * Parses `length` bytes (or up to a NUL). On success the caller owns *module and releases it
 * with emu_module_free. Errors are PTXGEN_ERROR_PTX_SYNTAX with "line L, column C: sentence".
 */
ptxgen_status emu_module_parse(const char *text, size_t length, struct emu_module **module,
                               ptxgen_error *err);
void emu_module_free(struct emu_module *module);

/* Looks a name up from `scope` outwards; for a register range, *index is the register. */
const struct emu_symbol *emu_find_symbol(const struct emu_module *module, struct emu_str name,
                                         uint32_t scope, uint32_t *index);

/* Where the last line that was asked for begins, so that the next is near. Zero-initialise. */
struct emu_line_cursor {
    const char *at;
    uint32_t line;
};

/* Line `line` (from 1) of the module's text, without leading blanks. */
struct emu_str emu_source_line(const struct emu_module *module, uint32_t line,
                               struct emu_line_cursor *cursor);

#endif
