/* SPDX-License-Identifier: Apache-2.0 */
/* What the builder's tests share: one-kernel modules and what is expected of their status. */
#ifndef BUILDER_SUPPORT_H
#define BUILDER_SUPPORT_H

#include "tests/status.h"

#include <ptxgen/instr.h>

#include <stdio.h>
#include <string.h>

typedef void (*build_function)(ptx_kernel *k);

/* Builds one kernel of a 128-thread CTA and returns the status of its text. */
static inline ptxgen_status build_for(ptx_target target, build_function build, ptxgen_error *err)
{
    ptx_module *m = ptx_module_create(&target, NULL);
    ptx_kernel *k = ptx_kernel_begin(m, "kernel");
    ptx_kernel_reqntid(k, 128, 1, 1);
    build(k);
    ptx_kernel_end(k);
    const char *text = NULL;
    memset(err, 0, sizeof *err);
    ptxgen_status status = ptx_module_text(m, PTX_TEXT_ANNOTATE, &text, NULL, err);
    ptx_module_destroy(m);
    return status;
}

static inline void refuses_for(ptx_target target, build_function build, ptxgen_status status,
                               const char *const *words)
{
    ptxgen_error err;
    ptxgen_status got = build_for(target, build, &err);
    if (got != status)
        fail_msg("expected %s, got %s: %s", ptxgen_status_name(status), ptxgen_status_name(got),
                 err.message);
    for (; *words; words++)
        assert_says(&err, *words);
}

static inline void accepts_for(ptx_target target, build_function build)
{
    ptxgen_error err;
    if (build_for(target, build, &err) != PTXGEN_OK)
        fail_msg("refused: %s", err.message);
}

static const ptx_target sm_80 = {.sm = 80};
static const ptx_target sm_90a = {.sm = 90, .suffix = 'a'};

/* The words must all be in the sentence. */
#define refuses(build, status, ...) \
    refuses_for(sm_80, build, status, (const char *const[]){__VA_ARGS__, NULL})
#define refuses_on(target, build, status, ...) \
    refuses_for(target, build, status, (const char *const[]){__VA_ARGS__, NULL})
#define accepts(build) accepts_for(sm_80, build)
#define accepts_on(target, build) accepts_for(target, build)

/* Some ready-made ingredients. */
static inline ptx_pred lane_condition(ptx_kernel *k)
{
    return ptx_setp_lt_u32(k, ptx_sreg_laneid(k), ptx_imm_u32(7));
}
static inline ptx_pred warp_condition(ptx_kernel *k)
{
    return ptx_setp_eq_u32(k, ptx_shr_u32(k, ptx_sreg_tid_x(k), ptx_imm_u32(5)), ptx_imm_u32(0));
}
static inline ptx_pred cta_condition(ptx_kernel *k)
{
    return ptx_setp_eq_u32(k, ptx_sreg_ctaid_x(k), ptx_imm_u32(0));
}

/* The test's own name table. */
#define TEST(name) cmocka_unit_test(name)

#endif
