/* SPDX-License-Identifier: Apache-2.0 */
/** What the command's marlin files share. */
#ifndef PTXGEN_CLI_MARLIN_H
#define PTXGEN_CLI_MARLIN_H

#include "../../harness/buffer.h"
#include "../family.h"
#include "../input_rows.h"
#include "../../harness/random.h"

#include <ptxgen/marlin.h>

#include <stddef.h>

/** A tile's numbers are a variant's members before its sizes. */
enum { MARLIN_TILE_NUMBERS_BYTES = offsetof(ptxgen_marlin_variant, shared_bytes) };

struct marlin_options {
    ptxgen_marlin_spec spec;
    bool type_given, group_size_given;
    ptxgen_marlin_variant tile;  /* of --tile; tile_m 0: the plan's own */
    const ptxgen_tuning *tuning; /* what the plan goes by; NULL: nothing */
    /* run: the file, and names in it; NULL where not given */
    const char *safetensors, *layer, *up_layer, *format, *input, *expect;
};

/** Checkpoints of one matrix, or of gate and up, and what they need kept; or packed weights. */
struct marlin_weights {
    ptxgen_w4_checkpoint checkpoints[2];
    unsigned count;              /* 0: packed, borrowed from a file */
    ptxgen_marlin_packed packed; /* arrays at any address */
    void *memory[2][5];          /* that the tensors own; NULL where they are a file's */
};

/** The data of one run: operands in guarded buffers, and how they are laid out. */
struct marlin_problem {
    ptxgen_marlin_plan plan;
    uint32_t m;
    uint64_t x_stride, residual_stride, y_stride;
    bool in_place; /* y is the residual */
    struct buffer x, codes, scales, zeros, order, bias, up_bias, residual, y, workspace;
    ptxgen_w4_matrix matrices[2]; /* for the reference: weights, or gate and up */
    struct expected expected;     /* the file's own output */
};

/** Where operands start and how far apart their rows are; zeroed: aligned and packed. */
struct marlin_layout {
    uint32_t x_gap, residual_gap, y_gap;                     /**< elements past a row */
    size_t x_offset, residual_offset, y_offset, bias_offset; /**< bytes */
    bool in_place;
};

/** 2 with SwiGLU. */
unsigned marlin_matrices(const ptxgen_marlin_spec *spec);
/**
 * The plan, with the tile of the options if there is one. Refuses a spec without K or N by naming
 * the options.
 */
ptxgen_status marlin_make_plan(const struct marlin_options *options, uint32_t m,
                               const ptxgen_target *target, ptxgen_marlin_plan *plan,
                               ptxgen_error *err);
/** Leaves the plan the one variant that serves m > 0 rows: one entry to assemble and to time. */
void marlin_keep_variant(ptxgen_marlin_plan *plan, uint32_t m);
/** "K=4096 N=14336 M=1 group=128 f16 …" */
void marlin_name(const ptxgen_marlin_spec *spec, uint32_t m, char *text, size_t size);
/** What one launch moves and computes. */
void marlin_work(const ptxgen_marlin_spec *spec, uint32_t m, struct work *work);

/** Random checkpoints of the spec, in `format`, which can hold it. */
ptxgen_status marlin_random_weights(const ptxgen_marlin_spec *spec, ptxgen_w4_format format,
                                    struct random *r, struct marlin_weights *weights,
                                    ptxgen_error *err);
bool marlin_format_holds(ptxgen_w4_format format, const ptxgen_marlin_spec *spec);
void marlin_release_weights(struct marlin_weights *weights);

/** Makes the plan for the device, and buffers of its sizes, all poison; packs the weights. */
ptxgen_status marlin_allocate(struct marlin_problem *p, const struct marlin_options *options,
                              uint32_t m, const struct marlin_layout *layout,
                              const struct marlin_weights *weights, struct device *device,
                              ptxgen_error *err);
void marlin_release(struct marlin_problem *p);
/** Random activations, biases and residuals of moderate size. */
void marlin_fill(struct marlin_problem *p, struct random *r);
/** Makes some tokens zero, tiny, huge, or gives them a NaN or infinity. */
void marlin_disturb(struct marlin_problem *p, struct random *r);
/** Allocates for, and fills from, the options' file. */
ptxgen_status marlin_read(struct marlin_problem *p, const struct marlin_options *options,
                          const struct run_request *request, struct device *device,
                          ptxgen_error *err);

/** Uploads, launches, and compares outputs, gaps, guard bands and inputs. */
ptxgen_status marlin_check(struct marlin_problem *p, struct device *device, struct check *check,
                           ptxgen_error *err);
/** The part of the check that follows a launch: outputs that are back on the host, and gaps. */
ptxgen_status marlin_compare(const struct marlin_problem *p, struct check *check,
                             ptxgen_error *err);

ptxgen_status marlin_run(const void *options, const struct run_request *request,
                         struct device *device, struct check *check, ptxgen_error *err);
ptxgen_status marlin_run_random(uint64_t seed, struct device *device, struct check *check,
                                ptxgen_error *err);
ptxgen_status marlin_bench(const void *options, uint32_t m, struct device *device,
                           struct bench_subject *subject, ptxgen_error *err);

#endif
