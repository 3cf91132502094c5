/* SPDX-License-Identifier: Apache-2.0 */
/** What the command's sparse24 files share. */
#ifndef PTXGEN_CLI_SPARSE24_H
#define PTXGEN_CLI_SPARSE24_H

#include "../../harness/buffer.h"
#include "../family.h"
#include "../input_rows.h"
#include "../../harness/random.h"

#include <ptxgen/sparse24.h>

struct sparse24_options {
    ptxgen_sparse24_spec spec;
    bool dtype_given, y_type_given;
    bool inflate;                 /* bench inflates only */
    ptxgen_sparse24_variant tile; /* of --tile; tile_m 0: the plan's own */
    /* run: the file, and names in it; NULL where not given */
    const char *safetensors, *layer, *input, *expect;
};

/** The data of one run: operands in guarded buffers, and how they are laid out. */
struct sparse24_problem {
    ptxgen_sparse24_plan plan;
    uint32_t m;
    uint64_t x_stride, residual_stride, y_stride;
    bool in_place; /* Y is the residual */
    struct buffer x, w, x_scale, w_scale, bias, residual, y, workspace;
    ptxgen_span values, metadata; /* for the reference, metadata as bytes */
    struct expected expected;     /* the file's own output */
};

/** Where operands start and how far apart their rows are; zeroed: aligned and packed. */
struct sparse24_layout {
    uint32_t x_gap, residual_gap, y_gap;                     /**< elements past a row */
    size_t x_offset, residual_offset, y_offset, bias_offset; /**< elements */
    bool in_place;
};

size_t sparse24_x_element(const ptxgen_sparse24_spec *spec);
/**
 * The plan, with the tile of the options if there is one, cut down to the variant that serves
 * m > 0 tokens. Refuses a spec without K or N by naming the options.
 */
ptxgen_status sparse24_make_plan(const struct sparse24_options *options, uint32_t m,
                                 const ptxgen_target *target, ptxgen_sparse24_plan *plan,
                                 ptxgen_error *err);
/** "K=4096 N=14336 M=1 f16 …" */
void sparse24_name(const ptxgen_sparse24_spec *spec, uint32_t m, char *text, size_t size);
/** What one launch moves and computes, in dense operations. */
ptxgen_status sparse24_work(const ptxgen_sparse24_spec *spec, uint32_t m, struct work *work,
                            ptxgen_error *err);

/** Makes the plan for the device, and buffers of its sizes, all poison. */
ptxgen_status sparse24_allocate(struct sparse24_problem *p, const struct sparse24_options *options,
                                uint32_t m, const struct sparse24_layout *layout,
                                struct device *device, ptxgen_error *err);
void sparse24_release(struct sparse24_problem *p);
/** Random operands; the weight is a random one, pruned, compressed and packed. */
ptxgen_status sparse24_fill(struct sparse24_problem *p, struct random *r, ptxgen_error *err);
/** Makes the problem of the options' file; without an input the activations are random. */
ptxgen_status sparse24_read(struct sparse24_problem *p, const struct sparse24_options *options,
                            const struct run_request *request, struct device *device,
                            ptxgen_error *err);
/** Packs the problem's values and metadata again. */
ptxgen_status sparse24_repack(struct sparse24_problem *p, ptxgen_error *err);
/** Gives some rows of X, and some residuals, a NaN or an infinity. */
void sparse24_disturb(struct sparse24_problem *p, struct random *r);

/** Uploads, launches, and compares outputs, gaps, guard bands and inputs. */
ptxgen_status sparse24_check(struct sparse24_problem *p, struct device *device, struct check *check,
                             ptxgen_error *err);
/** The part of the check that follows a launch: outputs that are back on the host, and gaps. */
ptxgen_status sparse24_compare(const struct sparse24_problem *p, struct check *check,
                               ptxgen_error *err);

ptxgen_status sparse24_run(const void *options, const struct run_request *request,
                           struct device *device, struct check *check, ptxgen_error *err);
ptxgen_status sparse24_run_random(uint64_t seed, struct device *device, struct check *check,
                                  ptxgen_error *err);
ptxgen_status sparse24_bench(const void *options, uint32_t m, struct device *device,
                             struct bench_subject *subject, ptxgen_error *err);

#endif
