/* SPDX-License-Identifier: Apache-2.0 */
/**
 * A launch of a family's kernel on a device: its operands in guarded buffers, its run, and its
 * comparison with the reference.
 *
 *     struct problem p;
 *     const struct kernel_request request = {.spec = &spec};
 *     problem_allocate(&p, &dense_harness, &request, m, NULL, device, err);
 *     problem_fill(&p, &r, err);              // random operands, or fill p.buffers[i].host
 *     problem_check(&p, device, &check, err); // launches, and fills the check
 *     problem_release(&p);
 */
#ifndef PTXGEN_HARNESS_PROBLEM_H
#define PTXGEN_HARNESS_PROBLEM_H

#include "buffer.h"
#include "check.h"
#include "harness.h"
#include "random.h"

/** Where operands start and how far apart their rows are, by operand; zeroed: aligned and packed.
 */
struct layout {
    uint32_t gap[MOST_OPERANDS];   /**< elements past a row, of operands with a stride */
    uint32_t shift[MOST_OPERANDS]; /**< in units of the operand's `shift` */
    bool in_place;                 /**< the output is the residual */
};

/** The output that a file expects; without one `values` is NULL. */
struct expected {
    double *values; /**< for free() */
    size_t columns;
    double unit, least; /**< how the file rounded them: by unit · |value| + least at most */
};

enum { PROBLEM_SPEC_WORDS = 32 };

struct problem {
    const struct harness *harness;
    void *plan; /**< the family's: with the one variant that serves m tokens, with all for none */
    uint64_t spec[PROBLEM_SPEC_WORDS]; /**< as it was asked for */
    uint64_t m;
    unsigned count;
    struct operand operands[MOST_OPERANDS];
    uint64_t strides[MOST_OPERANDS];      /**< elements from row to row */
    struct buffer buffers[MOST_OPERANDS]; /**< zeroed for operands that are not used */
    struct buffer workspace;
    bool in_place;
    void *own;                /**< what the family's reference needs beside the buffers; or NULL */
    struct expected expected; /**< a file's own output */
};

/** Makes the plan for the device, and buffers of its sizes, all poison. `layout` may be NULL. */
ptxgen_status problem_allocate(struct problem *p, const struct harness *harness,
                               const struct kernel_request *request, uint64_t m,
                               const struct layout *layout, struct device *device,
                               ptxgen_error *err);
/** Harmless on a zeroed problem. */
void problem_release(struct problem *p);
/** Random operands of moderate size. */
ptxgen_status problem_fill(struct problem *p, struct random *r, ptxgen_error *err);
/** Ones in an operand of one row, if it is used. */
void problem_fill_ones(struct problem *p, unsigned operand);

/** An element of an operand's host copy; NULL where the operand is not used. */
const void *problem_at(const struct problem *p, unsigned operand, uint64_t row, uint64_t column);
/** The family's arguments for the buffers as they are. */
struct kernel_args problem_args(const struct problem *p);

/** Uploads, launches, and compares outputs, gaps, guard bands and inputs. */
ptxgen_status problem_check(struct problem *p, struct device *device, struct check *check,
                            ptxgen_error *err);
/** The part of the check that follows a launch: outputs that are back on the host, and gaps. */
ptxgen_status problem_compare(const struct problem *p, struct check *check, ptxgen_error *err);
/** The check of a problem whose spec, shape, layout and data are drawn from the seed. */
ptxgen_status problem_run_random(const struct harness *harness, uint64_t seed,
                                 struct device *device, struct check *check, ptxgen_error *err);

#endif
