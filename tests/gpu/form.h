/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the differential run compares: a form is one instruction of the builder's table with one
 * choice of modifiers and constants. Where its operands come from follows from its terms, and from
 * rules for the instructions that not every operand is meaningful to.
 */
#ifndef PTXGEN_TESTS_GPU_FORM_H
#define PTXGEN_TESTS_GPU_FORM_H

#include "src/ptxgen/internal.h"

enum { FORM_CONSTANTS = 5, FORM_SOURCES = 20, FORM_LINE = 64, FORM_THREADS = 128 };

/* How random words become operands. */
enum role {
    ROLE_TYPED, /* as the type has it: special, random and nearby values */
    ROLE_NONZERO,
    ROLE_RANGE,     /* lo … hi */
    ROLE_SHIFT,     /* mostly 0 … 70 */
    ROLE_FIELD,     /* of bits, its place or length: 0 … 255, often at an edge of a word */
    ROLE_CONVERTED, /* a float near what narrower types and integers round at */
    ROLE_COMPARED,  /* every other time the word number lo of the thread's memory */
    ROLE_FEW,       /* few different values, so that lanes match */
    ROLE_POLICY,    /* of an L2 cache: what createpolicy gives; others are illegal on a GPU */
    ROLE_F16,
    ROLE_BF16,
    ROLE_TF32,
    ROLE_E4M3,
    ROLE_E5M2,
    ROLE_INTEGER, /* of a matrix, packed */
    ROLE_F32_MATRIX,
    ROLE_F64_MATRIX,
    ROLE_METADATA /* of a sparse matrix; lo: of tf32 */
};

struct source {
    uint8_t type, role;
    int16_t lo, hi;
};

struct form {
    uint16_t op;
    uint64_t modifiers;
    int32_t constants[FORM_CONSTANTS]; /* by the order of the constant terms */
    const char *group;
};

struct form_list {
    struct form *forms;
    size_t count, capacity;
};

/* The forms that a target has; `only` and `skip` (may be NULL) are patterns of instruction names.
 */
void form_list_build(struct form_list *list, const ptx_target *target, const char *only,
                     const char *skip);

/* The forms of one instruction, none where the target lacks it. */
void form_list_add(struct form_list *list, size_t index, const ptx_target *target);

/* True for an instruction that is compared by protocols, not as a function of registers. */
bool form_needs_protocol(const struct ptx_op *op);

/* The group of an instruction; NULL when it is not compared, for *reason. */
const char *form_group(const struct ptx_op *op, const char **reason);

/* The group names in order; NULL past the end. */
const char *form_group_name(size_t index);

/* "add.rz.ftz.f32", constants behind it. */
void form_describe(const struct form *f, char *text, size_t size);

/* True for a term whose operand is the mask of the warp's lanes. */
bool form_is_mask(const struct ptx_op *op, unsigned term);

/* Where operand j of a term comes from. */
struct source form_source(const struct ptx_op *op, unsigned term, unsigned j);

/* The space of the first address ('g', 's', 'l', 'p'; 0: none). */
char form_space(const struct ptx_op *op);

/* What the thread's line of memory holds. */
struct source form_memory(const struct ptx_op *op);

bool form_starts(const struct ptx_op *op, const char *prefix);

#endif
