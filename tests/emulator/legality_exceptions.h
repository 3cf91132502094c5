/* SPDX-License-Identifier: Apache-2.0 */
/* Where the emulator's loader and ptxas 13.0 are meant to differ, and why. */
#ifndef EMULATOR_LEGALITY_EXCEPTIONS_H
#define EMULATOR_LEGALITY_EXCEPTIONS_H

#include <stdbool.h>

#define FLOAT_BITS "the emulator takes a float's bits where an operand has 32 or 64 of any type"
#define IN_BRACES                                                                                  \
    "ptxas looks at no type within the braces of loads, stores and reductions, not even for "      \
    "predicates; the emulator does"
#define FRAGMENTS "the emulator looks at the width alone within a fragment"
#define TWICE "ptxas takes some modifiers twice, and some in any place"

static const struct exception {
    const char *rule; /* pattern (fnmatch) of the rule's name in mutate.c */
    const char *line; /* pattern of the changed line */
    bool loads;       /* on the emulator; ptxas says the opposite */
    const char *reason;
} exceptions[] = {
    {"the constant is another", "*lop3.*", false, "a truth table has 8 bits; ptxas drops the rest"},
    {"the constant is another", "cp.async*.wait_group*", false, "more groups than can be pending"},
    {"the constant is another", "wgmma.wait_group*", false, "more groups than can be pending"},
    {"the constant is another", "bar*", false, "more threads than a CTA has"},
    {"a modifier stands twice", "*", false, TWICE},
    {"there is a modifier more", "*", false, TWICE},
    {"a modifier is missing", "wgmma.mma_async.*", false,
     "ptxas takes wgmma without .aligned, which the PTX ISA wants"},
    {"a modifier is missing", "fence.mbarrier_init.release ;", true,
     "the emulator fences for the cluster without its scope too"},
    {"a modifier is missing", "mbarrier.*.cta.shared::cta.b64 *", true,
     "the emulator takes a scope without .relaxed here"},
    {"a modifier is missing", "red.async.relaxed.shared::cluster.*", true,
     "the emulator takes .relaxed without a scope here"},
    {"a register of another kind", "*[[]%half1*", false,
     "ptxas takes 16-bit registers as addresses"},
    {"a register of another kind", "*{*%p1*", false, IN_BRACES},
    {"a register of another kind", "*{*%whole1*", false, IN_BRACES},
    {"a register of another kind", "*{*%real1*", false, IN_BRACES},
    {"a constant for a register", "*{*", false, IN_BRACES},
    {"a register of another kind", "cvt*2.f32 %wide1,*", false,
     "ptxas takes a wider register for a pair of 16-bit floats"},
    {"a register of another kind", "cvt.pack.*%wide1*", false, "ptxas takes wider registers here"},
    {"a register of another kind", "cvt*tf32.f32 %real1,*", true,
     "the emulator takes a float's register for .tf32"},
    {"a constant for a register", "*mma*.sp*0f3F800000*", false,
     "ptxas takes the bits of a float as metadata"},
    {"a constant for a register", "atom*.b128 *", false,
     "ptxas takes a constant here, whose upper half it does not have"},
    {"there is an operand more", "atom.*.exch.b32 *", false,
     "ptxas takes a third operand of an exchange, and drops it"},
    {"the vector has another width", "st.async.*{*", false,
     "ptxas takes a vector where the instruction has none"},
    {"no brackets", "cp.*", false, "ptxas takes some addresses without brackets"},
    {"a constant for a register", "*0[fd]3F*", true, FLOAT_BITS},
    {"a constant for a register", "*matrix*{*}*", true, FRAGMENTS},
    {"a constant for a register", "mma*{*}*", true, FRAGMENTS},
    {"a register of another kind", "mma*{*%whole1*}*", true, FRAGMENTS},
    {"a register of another kind", "mma*{*%real1*}*", true, FRAGMENTS},
    {"the type is another", "ex2.approx*16*", true,
     "the emulator has all of ex2's 16-bit types with and without .ftz"},
    {"a modifier is missing", "testp.f?? *", false, "ptxas takes testp without a property"},
};

#endif
