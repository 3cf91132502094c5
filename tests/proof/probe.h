/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the proof asks of both sides. A probe is one instruction of the table with one choice of
 * modifiers, constants and operands; the list of all of them is derived from the table alone.
 */
#ifndef PTXGEN_TESTS_PROOF_PROBE_H
#define PTXGEN_TESTS_PROOF_PROBE_H

#include "src/ptxgen/internal.h"

enum { PROBE_ALL_TERMS = -2, PROBE_NO_TERM = -1 };

struct probe {
    uint16_t op, n;
    uint64_t modifiers;
    int term;      /* the term that is an immediate, or the constant that is varied */
    int64_t value; /* of that immediate or constant */
};

struct probe_list {
    struct probe *probes;
    size_t count, capacity;
};

void probe_list_build(struct probe_list *list);

/* Hands out the registers of a probe's operands. */
struct register_source {
    ptx_operand (*take)(struct register_source *from, const struct ptx_term *term);
    ptx_kernel *kernel;
    ptx_operand param, label;
};
/* Fills `operands` as ptx_emit takes them; how many there are. */
enum { PROBE_MAX_OPERANDS = 320 };
unsigned probe_operands(const struct probe *p, struct register_source *from, ptx_operand *operands);

/* The validator's verdict; *version is the PTX version that it infers, *why the sentence of a
 * refusal. */
bool probe_is_valid(const struct probe *p, const ptx_target *target, int *version,
                    ptxgen_error *why);

#endif
