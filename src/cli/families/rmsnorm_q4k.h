/* SPDX-License-Identifier: Apache-2.0 */
/** What the command's rmsnorm_q4k files share. */
#ifndef PTXGEN_CLI_RMSNORM_Q4K_H
#define PTXGEN_CLI_RMSNORM_Q4K_H

#include "../../harness/buffer.h"
#include "../family.h"
#include "../input_rows.h"
#include "../../harness/random.h"

#include <ptxgen/q4k.h>
#include <ptxgen/rmsnorm_q4k.h>

enum { MATRICES = PTXGEN_RMSNORM_Q4K_MATRICES };

struct rmsnorm_q4k_options {
    ptxgen_rmsnorm_q4k_spec spec;
    bool epsilon_given;
    /* run: names in the file; NULL where not given */
    const char *gguf, *tensors, *norm, *bias, *input, *expect;
};

/** The data of one run: operands in guarded buffers, and how they are laid out. */
struct rmsnorm_q4k_problem {
    ptxgen_rmsnorm_q4k_plan plan;
    uint32_t m;
    uint32_t x_stride, residual_stride, residual_out_stride, y_stride[MATRICES];
    struct buffer x, residual, residual_out, gamma, w[MATRICES], bias[MATRICES], y[MATRICES];
    struct expected expected; /* the file's own output */
    double *exact_x;          /* with it: x before it was rounded to x's type */
};

/** Where operands start and how far apart their rows are; zeroed: aligned and packed. */
struct rmsnorm_q4k_layout {
    uint32_t x_gap, residual_gap, residual_out_gap, y_gap[MATRICES]; /**< elements past a row */
    size_t x_offset, residual_offset, residual_out_offset, gamma_offset, y_offset; /**< bytes */
};

/** Outputs that the spec has: 1 with SwiGLU. */
unsigned rmsnorm_q4k_outputs(const ptxgen_rmsnorm_q4k_spec *spec);
unsigned rmsnorm_q4k_matrices(const ptxgen_rmsnorm_q4k_spec *spec);
/** Refuses a spec without K or N by naming the options. */
ptxgen_status rmsnorm_q4k_make_plan(const ptxgen_rmsnorm_q4k_spec *spec, uint32_t m,
                                    const ptxgen_target *target, ptxgen_rmsnorm_q4k_plan *plan,
                                    ptxgen_error *err);
/** "K=4096 N=14336 M=1 x=f16 y=f16 eps=1e-06 …" */
void rmsnorm_q4k_name(const ptxgen_rmsnorm_q4k_spec *spec, uint32_t m, char *text, size_t size);

/** Makes the plan for the device, and buffers of its sizes, all poison. */
ptxgen_status rmsnorm_q4k_allocate(struct rmsnorm_q4k_problem *p,
                                   const ptxgen_rmsnorm_q4k_spec *spec, uint32_t m,
                                   const struct rmsnorm_q4k_layout *layout, struct device *device,
                                   ptxgen_error *err);
void rmsnorm_q4k_release(struct rmsnorm_q4k_problem *p);
/** Random activations and weights of moderate size. */
void rmsnorm_q4k_fill(struct rmsnorm_q4k_problem *p, struct random *r);
/** Makes some tokens zero, tiny, huge, or gives them a NaN or infinity. */
void rmsnorm_q4k_disturb(struct rmsnorm_q4k_problem *p, struct random *r);
/** `count` super-blocks of random codes and scales. */
void rmsnorm_q4k_random_weights(struct random *r, void *blocks, size_t count);
/** Allocates for, and fills from, the options' file. */
ptxgen_status rmsnorm_q4k_read(struct rmsnorm_q4k_problem *p,
                               const struct rmsnorm_q4k_options *options,
                               const struct run_request *request, struct device *device,
                               ptxgen_error *err);
/** Uploads, launches, and compares every output, gap, guard band and input. */
ptxgen_status rmsnorm_q4k_check(struct rmsnorm_q4k_problem *p, struct device *device,
                                struct check *check, ptxgen_error *err);
/** The part of the check that follows a launch: outputs that are back on the host, and gaps. */
ptxgen_status rmsnorm_q4k_compare(const struct rmsnorm_q4k_problem *p, struct check *check,
                                  ptxgen_error *err);

ptxgen_status rmsnorm_q4k_run(const void *options, const struct run_request *request,
                              struct device *device, struct check *check, ptxgen_error *err);
ptxgen_status rmsnorm_q4k_run_random(uint64_t seed, struct device *device, struct check *check,
                                     ptxgen_error *err);
ptxgen_status rmsnorm_q4k_bench(const void *options, uint32_t m, struct device *device,
                                struct bench_subject *subject, ptxgen_error *err);
/** What one launch moves and computes. */
void rmsnorm_q4k_work(const ptxgen_rmsnorm_q4k_spec *spec, uint32_t m, struct work *work);

#endif
