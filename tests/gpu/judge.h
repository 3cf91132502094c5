/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When two results agree. Bits must be equal, except: the payload of a NaN where the ISA leaves it
 * open (f64, neg, abs); approximations, both of which must lie within the ISA's bound of the value
 * computed in double precision.
 */
#ifndef PTXGEN_TESTS_GPU_JUDGE_H
#define PTXGEN_TESTS_GPU_JUDGE_H

#include "form.h"

enum verdict {
    EQUAL,       /* bit for bit */
    WITHIN,      /* different bits, both within the stated bound */
    OPEN_NAN,    /* two NaNs whose payload the ISA leaves open */
    UNSPECIFIED, /* different bits where the ISA states no bound */
    DIFFERENT
};

enum verdict judge(const struct form *f, uint8_t type, const uint64_t *operands, uint64_t a,
                   uint64_t b);

/* The bits by which a result is kept: one NaN stands for all where the payload is open. */
uint64_t judge_canonical(const struct form *f, uint8_t type, uint64_t bits);

/* True for approximations: judge equal bits too. */
bool judge_is_bounded(const struct form *f);

/* What the instruction's results are held to, for the table. */
const char *judge_rule(const struct form *f);

#endif
