/* SPDX-License-Identifier: Apache-2.0 */
/** What the command's w8a8 files share. */
#ifndef PTXGEN_CLI_W8A8_H
#define PTXGEN_CLI_W8A8_H

#include "../../harness/buffer.h"
#include "../family.h"
#include "../input_rows.h"
#include "../../harness/random.h"

#include <ptxgen/w8a8.h>

struct w8a8_options {
    ptxgen_w8a8_spec spec;
    bool scales_given;
    ptxgen_w8a8_variant tile; /* of --tile; tile_m 0: the plan's own */
    /* run: the file, and names in it; NULL where not given */
    const char *safetensors, *layer, *input, *expect;
};

/** The data of one run: operands in guarded buffers, and how they are laid out. */
struct w8a8_problem {
    ptxgen_w8a8_plan plan;
    uint32_t m;
    uint32_t x_stride, y_stride;
    struct buffer x, w, w_scale, w_sum, bias, x_scale, x_zero, y, workspace;
    struct expected expected; /* the file's own output */
};

/** Where operands start and how far apart their rows are; zeroed: aligned and packed. */
struct w8a8_layout {
    uint32_t x_gap, y_gap;                     /**< elements past a row */
    uint32_t x_offset, y_offset, scale_offset; /**< elements */
    uint32_t w_offset;                         /**< of the plan's copy_bytes */
};

/**
 * The plan, with the tile of the options if there is one. Refuses a spec without K or N by naming
 * the options.
 */
ptxgen_status w8a8_make_plan(const struct w8a8_options *options, uint32_t m,
                             const ptxgen_target *target, ptxgen_w8a8_plan *plan,
                             ptxgen_error *err);
/** "K=4096 N=14336 M=1 x=f16 y=f16 dynamic …" */
void w8a8_name(const ptxgen_w8a8_spec *spec, uint32_t m, char *text, size_t size);
/** What one launch moves and computes. */
void w8a8_work(const ptxgen_w8a8_spec *spec, uint32_t m, struct work *work);

/** Makes the plan for the device, and buffers of its sizes, all poison. */
ptxgen_status w8a8_allocate(struct w8a8_problem *p, const struct w8a8_options *options, uint32_t m,
                            const struct w8a8_layout *layout, struct device *device,
                            ptxgen_error *err);
void w8a8_release(struct w8a8_problem *p);
/** Random activations, weights, scales and biases of moderate size. */
void w8a8_fill(struct w8a8_problem *p, struct random *r);
/** All scales 1 and x whole numbers: with f64 outputs, y is the accumulators. */
void w8a8_fill_exact(struct w8a8_problem *p, struct random *r);
/** Makes some tokens zero, tiny, huge, or gives them a NaN or infinity. */
void w8a8_disturb(struct w8a8_problem *p, struct random *r);
/** The sums of W's rows, where the spec needs them. */
void w8a8_sum_rows(struct w8a8_problem *p);
/** Allocates for, and fills from, the options' file. */
ptxgen_status w8a8_read(struct w8a8_problem *p, const struct w8a8_options *options,
                        const struct run_request *request, struct device *device,
                        ptxgen_error *err);

/** Uploads, launches, and compares outputs, gaps, guard bands and inputs. */
ptxgen_status w8a8_check(struct w8a8_problem *p, struct device *device, struct check *check,
                         ptxgen_error *err);
/** The part of the check that follows a launch: outputs that are back on the host, and gaps. */
ptxgen_status w8a8_compare(const struct w8a8_problem *p, struct check *check, ptxgen_error *err);

ptxgen_status w8a8_run(const void *options, const struct run_request *request,
                       struct device *device, struct check *check, ptxgen_error *err);
ptxgen_status w8a8_run_random(uint64_t seed, struct device *device, struct check *check,
                              ptxgen_error *err);
ptxgen_status w8a8_bench(const void *options, uint32_t m, struct device *device,
                         struct bench_subject *subject, ptxgen_error *err);

#endif
