/* SPDX-License-Identifier: Apache-2.0 */
/** What the command's dense files share. */
#ifndef PTXGEN_CLI_DENSE_H
#define PTXGEN_CLI_DENSE_H

#include "../buffer.h"
#include "../family.h"
#include "../random.h"

#include <ptxgen/dense.h>

struct dense_options {
    ptxgen_dense_spec spec;
    ptxgen_dense_variant tile; /* of --tile; warp_m 0: the plan's own */
};

/** The data of one run: operands in guarded buffers, and how they are laid out. */
struct dense_problem {
    ptxgen_dense_plan plan;
    uint32_t m;
    uint64_t x_stride, w_stride, residual_stride, y_stride;
    bool in_place; /* Y is the residual */
    struct buffer x, w, bias, residual, y, workspace;
};

/** Where operands start and how far apart their rows are; zeroed: aligned and packed. */
struct dense_layout {
    uint32_t x_gap, w_gap, residual_gap, y_gap;                        /**< elements past a row */
    size_t x_offset, w_offset, residual_offset, y_offset, bias_offset; /**< elements */
    bool in_place;
};

/**
 * The plan, with the tile of the options if there is one, cut down to the variant that serves
 * m > 0 tokens. Refuses a spec without K or N by naming the options.
 */
ptxgen_status dense_make_plan(const struct dense_options *options, uint32_t m,
                              const ptxgen_target *target, ptxgen_dense_plan *plan,
                              ptxgen_error *err);
/** "K=4096 N=14336 M=1 f16 …" */
void dense_name(const ptxgen_dense_spec *spec, uint32_t m, char *text, size_t size);
/** What one launch moves and computes. */
void dense_work(const ptxgen_dense_spec *spec, uint32_t m, struct work *work);

/** Makes the plan for the device, and buffers of its sizes, all poison. */
ptxgen_status dense_allocate(struct dense_problem *p, const struct dense_options *options,
                             uint32_t m, const struct dense_layout *layout, struct device *device,
                             ptxgen_error *err);
void dense_release(struct dense_problem *p);
/** Random operands. */
void dense_fill(struct dense_problem *p, struct random *r);
/** Gives some rows of X, and some residuals, a NaN or an infinity. */
void dense_disturb(struct dense_problem *p, struct random *r);

/** Uploads, launches, and compares outputs, gaps, guard bands and inputs. */
ptxgen_status dense_check(struct dense_problem *p, struct device *device, struct check *check,
                          ptxgen_error *err);
ptxgen_status dense_run(const void *options, const struct run_request *request,
                        struct device *device, struct check *check, ptxgen_error *err);
ptxgen_status dense_run_random(uint64_t seed, struct device *device, struct check *check,
                               ptxgen_error *err);
ptxgen_status dense_bench(const void *options, uint32_t m, struct device *device,
                          struct bench_subject *subject, ptxgen_error *err);

#endif
