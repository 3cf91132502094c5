/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What instr.def and modifiers.def say, line by line expanded: the model from which the header of
 * emitters and the table are printed.
 */
#ifndef PTXGEN_GENERATOR_INSTRUCTION_H
#define PTXGEN_GENERATOR_INSTRUCTION_H

#include <stdbool.h>
#include <stddef.h>

/* An operand type: its name, as PTX spells it in an instruction of that type ($s), its untyped
 * ($b), unsigned ($u) and doubled ($w) forms, and its constant in <ptxgen/ptx.h>. */
struct type {
    const char *name, *spelt, *bits, *unsigned_, *wide, *constant;
};

extern const struct type types[];
extern const size_t type_count;

const struct type *find_type(const char *name); /* NULL: there is none */

enum { MAX_TERMS = 16, MAX_NEEDS = 8, TEXT = 256 };

struct term {
    char kind; /* r value, v vector, a address, t tensor, c constant, l literal, b label */
    char type[16];
    int count, divisor;
    char space;
    int lo, hi, step;
    bool written, read, reg, bar, undef_ok, pow2, int_n, upto;
    char literal[64];
};

struct instruction {
    char name[TEXT], text[TEXT];
    struct term terms[MAX_TERMS];
    int term_count;
    struct term n; /* hi 0: none */
    struct {
        int ptx, sm;
        char suffix;
    } needs[MAX_NEEDS];
    int need_count;
    unsigned flags;
    int align;
};

/* Calls visit for each instruction that the lines of instr.def stand for. */
void for_each_instruction(void (*visit)(const struct instruction *));

struct modifier {
    const char *group, *name, *text;
    int ptx, target;
};

/* Calls visit for each group of modifiers.def: m names it, m[1] to m[count] are its alternatives,
 * numbered from 1 in `bits` bits of the mask, from bit `shift` on. */
void for_each_group(void (*visit)(const struct modifier *m, int count, int shift, int bits));

/* Ends the program with a message about the line in hand. */
_Noreturn void stop(const char *format, ...) __attribute__((format(printf, 1, 2)));

void print_header(void);
void print_table(void);

#endif
