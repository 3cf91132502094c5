/* SPDX-License-Identifier: Apache-2.0 */
/* The instruction table as data. Its rows are generated from instr.def and modifiers.def. */
#ifndef PTXGEN_TABLE_H
#define PTXGEN_TABLE_H

#include <ptxgen/ptx.h>

enum ptx_term_kind {
    PTX_TERM_VALUE,   /* one register or immediate */
    PTX_TERM_VECTOR,  /* {…} */
    PTX_TERM_ADDRESS, /* [base + offset] */
    PTX_TERM_TENSOR,  /* [map, {coordinates}] */
    PTX_TERM_CONST,   /* integer constant lo … hi */
    PTX_TERM_LITERAL, /* text */
    PTX_TERM_LABEL
};

enum ptx_term_flag {
    PTX_TERM_WRITTEN = 1,
    PTX_TERM_READ = 2,
    PTX_TERM_REGISTER = 4,     /* no immediate */
    PTX_TERM_BAR = 8,          /* printed after '|' behind the term before it */
    PTX_TERM_UNDEF_OK = 16,    /* read, but its first value may be undefined */
    PTX_TERM_POW2 = 32,        /* constants that are powers of two only */
    PTX_TERM_WGMMA_INT_N = 64, /* n as integer wgmma has it: 8 to 32 by 8, then by 16 */
    PTX_TERM_UPTO = 128        /* an immediate is at most the constant before it */
};

struct ptx_term {
    uint8_t kind, type, flags;
    uint8_t count; /* of a vector or of tensor coordinates; 0: n / divisor */
    uint8_t divisor;
    char space;       /* of an address: g s l p */
    uint16_t literal; /* of a literal: its number */
    int16_t lo, step; /* of a constant; of a value's immediates, where hi is not 0 */
    int32_t hi;
};

struct ptx_need {
    uint8_t ptx; /* major*10+minor */
    uint8_t sm;
    char suffix;
};

enum ptx_op_flag {
    PTX_FLAG_ALIGNED = 1 << 0,
    PTX_FLAG_CTABAR = 1 << 1,
    PTX_FLAG_BARN = 1 << 2,
    PTX_FLAG_BRANCH = 1 << 3,
    PTX_FLAG_EXIT = 1 << 4,
    PTX_FLAG_VARIES = 1 << 5,
    PTX_FLAG_LANEUNI = 1 << 6,
    PTX_FLAG_CTAUNI = 1 << 7,
    PTX_FLAG_CPASYNC = 1 << 8,
    PTX_FLAG_CPWAIT = 1 << 9,
    PTX_FLAG_READSH = 1 << 10,
    PTX_FLAG_MATH = 1 << 11,
    PTX_FLAG_MMA = 1 << 12,
    PTX_FLAG_SHFLIDX = 1 << 13
};

/*
 * One instruction. It holds places in shared arrays instead of pointers, and equal runs of terms
 * and needs are there once: pointers would be relocated at load time and make the library a third
 * larger. The functions below read them.
 */
struct ptx_op {
    uint16_t name, text; /* in ptx_strings */
    uint16_t terms;      /* in ptx_term_runs */
    uint16_t flags;
    uint8_t needs; /* in ptx_needs */
    uint8_t n;     /* in ptx_terms */
    uint8_t term_count, need_count;
    uint8_t operand_count; /* or PTX_OPERANDS_VARY with n */
    uint8_t align;         /* of a constant address offset, in bytes; 0: unchecked */
};
enum { PTX_OPERANDS_VARY = 255 };

/* A string of the table, unpacked. */
enum { PTX_STRING_SIZE = 160 };
struct ptx_string {
    char s[PTX_STRING_SIZE];
};

struct ptx_modifier {
    const char *text;
    uint8_t ptx, sm;
};

struct ptx_modifier_group {
    const char *name;
    uint8_t shift, bits; /* the field in a modifier mask; value 0: not given */
    uint8_t count;
    const struct ptx_modifier *alternatives;
};

/* Strings with their NULs, in which a byte may stand for a pair of bytes, and these for more. */
extern const unsigned char ptx_strings[], ptx_pairs[256][2];
extern const uint16_t ptx_literals[]; /* in ptx_strings */
extern const struct ptx_term ptx_terms[];
extern const uint8_t ptx_term_runs[]; /* in ptx_terms */
extern const struct ptx_need ptx_needs[];
extern const struct ptx_op ptx_ops[];
extern const size_t ptx_op_count;
extern const struct ptx_modifier_group ptx_modifier_groups[];
extern const size_t ptx_modifier_group_count;

/* Unpacks the string at a place of ptx_strings. */
struct ptx_string ptx_unpack(uint16_t place);

static inline struct ptx_string ptx_op_name(const struct ptx_op *op)
{
    return ptx_unpack(op->name);
}

/* With {group} slots. */
static inline struct ptx_string ptx_op_text(const struct ptx_op *op)
{
    return ptx_unpack(op->text);
}

static inline struct ptx_string ptx_literal(const struct ptx_term *term)
{
    return ptx_unpack(ptx_literals[term->literal]);
}

static inline const struct ptx_term *ptx_op_term(const struct ptx_op *op, size_t index)
{
    return &ptx_terms[ptx_term_runs[op->terms + index]];
}

/* The n parameter; kind CONST, hi 0 when there is none. */
static inline const struct ptx_term *ptx_op_n(const struct ptx_op *op)
{
    return &ptx_terms[op->n];
}

static inline const struct ptx_need *ptx_op_needs(const struct ptx_op *op)
{
    return &ptx_needs[op->needs];
}

/* How many operands a term has, given the instruction's n. */
static inline unsigned ptx_term_operands(const struct ptx_term *t, unsigned n)
{
    switch (t->kind) {
    case PTX_TERM_VECTOR: return t->divisor ? n / t->divisor : t->count;
    case PTX_TERM_ADDRESS: return 2;
    case PTX_TERM_TENSOR: return 1u + t->count;
    case PTX_TERM_LITERAL: return 0;
    default: return 1;
    }
}

/* Finds a group by the name between the braces of a slot; `length` excludes a trailing '!'. */
const struct ptx_modifier_group *ptx_find_group(const char *name, size_t length);

/* Whether n is one of a range's shapes, and a value one of a term's constants. */
bool ptx_n_is_legal(const struct ptx_term *range, unsigned n);
bool ptx_constant_fits(const struct ptx_term *term, int64_t value);

/* "sm_90a with PTX 8.0 or …": what the instruction needs. */
enum { PTX_NEEDS_SIZE = 256 };
void ptx_needs_describe(const struct ptx_op *op, char out[PTX_NEEDS_SIZE]);

/* The lowest PTX version at which the target meets one of the needs; 0: it meets none. */
int ptx_needs_met(const struct ptx_need *needs, unsigned count, const ptx_target *target);

#endif
