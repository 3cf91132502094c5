/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The disagreements between table and assemblers that stand, each with its reason. One that no
 * longer occurs fails the proof.
 */
#ifndef PTXGEN_TESTS_PROOF_EXCEPTIONS_H
#define PTXGEN_TESTS_PROOF_EXCEPTIONS_H

#include <stdbool.h>

struct exception {
    const char *line;        /* pattern (fnmatch) of the PTX line */
    int oldest, newest;      /* releases of the assembler */
    const char *target;      /* pattern */
    int first_ptx, last_ptx; /* versions */
    bool valid;              /* what the validator says; the assembler says the opposite */
    const char *reason;
};

enum { ANY = 999 };

#define OUTSIDE_IMM_LUT                                                                            \
    "a truth table of three inputs has 8 bits; ptxas takes any integer and drops the rest"
#define OUTSIDE_GROUPS                                                                             \
    "ptxas takes any count of groups, a negative one too; to wait until more than 63 (of wgmma: "  \
    "7) "                                                                                          \
    "are pending is to wait for nothing"

static const struct exception exceptions[] = {
    {".target sm_88", 130, ANY, "sm_88", 70, 88, false,
     "PTX 9.0 brought sm_88, and drivers before it do not know the target; ptxas takes it at any "
     "version"},
    {".target sm_101a", 130, ANY, "sm_101a", 86, ANY, true,
     "toolkit 13.0 renamed sm_101 to sm_110; text of a chip-specific target is for older toolkits"},
    {"lop3.b32 *, -1;", 0, ANY, "*", 70, ANY, false, OUTSIDE_IMM_LUT},
    {"lop3.b32 *, 256;", 0, ANY, "*", 70, ANY, false, OUTSIDE_IMM_LUT},
    {"lop3.*.b32 *, -1, %p*;", 120, ANY, "*", 82, ANY, false, OUTSIDE_IMM_LUT},
    {"lop3.*.b32 *, 256, %p*;", 120, ANY, "*", 82, ANY, false, OUTSIDE_IMM_LUT},
    {"mma.sp*.m16n8k32.row.col.f32.f16.f16.f32 *, 2;", 0, ANY, "*", 71, ANY, false,
     "the ISA gives this shape the selectors 0 and 1, as ptxas itself does for bf16 and for f16 "
     "accumulators; here it takes 2 and 3 as well"},
    {"cvt.ftz.f32.bf16 *", 0, 129, "sm_8?", 71, ANY, false,
     "assemblers up to 12.9 take .ftz here below sm_90; 13.0 refuses it, so the table does"},
    {"cvt.rn*.f16x2.e?m?x2 *, [0-9]*;", 118, 118, "sm_90", 78, 78, false,
     "11.8 takes a constant here; no later assembler does"},
    {"cp.async.wait_group -1;", 0, ANY, "*", 70, ANY, false, OUTSIDE_GROUPS},
    {"cp.async.wait_group 64;", 0, ANY, "*", 70, ANY, false, OUTSIDE_GROUPS},
    {"cp.async.bulk.wait_group* -1;", 120, ANY, "*", 80, ANY, false, OUTSIDE_GROUPS},
    {"cp.async.bulk.wait_group* 64;", 120, ANY, "*", 80, ANY, false, OUTSIDE_GROUPS},
    {"wgmma.wait_group.sync.aligned 8;", 120, ANY, "sm_90a", 80, ANY, false, OUTSIDE_GROUPS},
    {"atom.*.b128 *", 120, ANY, "*", 83, 83, false,
     "128-bit atomics came with PTX 8.3 but their scope .sys with 8.4; the table asks 8.4 for all"},
};

enum { EXCEPTION_COUNT = sizeof exceptions / sizeof *exceptions };

#endif
