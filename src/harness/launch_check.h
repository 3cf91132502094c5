/* SPDX-License-Identifier: Apache-2.0 */
/** What run checks of any family's launches: all that they may and may not write. */
#ifndef PTXGEN_HARNESS_LAUNCH_CHECK_H
#define PTXGEN_HARNESS_LAUNCH_CHECK_H

#include "bench_time.h"
#include "buffer.h"
#include "check.h"
#include "operand.h"

#include <stdbool.h>

/** A problem and its kernel. */
struct launch_check {
    void *problem;                                 /**< handed to prepare and compare */
    struct buffer *const *inputs, *const *outputs; /**< none that was not created */
    size_t input_count, output_count;
    struct buffer *workspace;   /**< its host copy is what the first launch finds; may be NULL */
    uint32_t flags;             /**< words at its start, which every launch leaves 0 */
    struct buffer *activations; /**< the input that launches have anew, where there is a workspace
                                     or where they can overlap */
    int activation_type;        /**< of operand.h */
    bool has_rows;              /**< else a launch writes nothing */
    bool in_place;              /**< an output is an input too: each launch gives another one */

    /** Fills the outputs' host copies with what a launch finds, where not poison; or NULL. */
    void (*prepare)(void *problem);
    bench_launch *launch; /**< enqueues one launch */
    void *launching;
    /** 1 lets a launch begin before the one ahead of it ends; NULL where it cannot. */
    uint32_t *overlap;
    /** Compares the outputs' host copies with the reference. */
    ptxgen_status (*compare)(void *problem, struct check *check, ptxgen_error *err);
};

/**
 * Launches once and compares; inputs, guards and what is not to be written must be untouched. Where
 * there is a workspace, two more launches into it, the first with other activations, must leave its
 * flags 0 as this one did, and the second the same bits. On a GPU ten more, overlapping ones too,
 * must give the same bits, and give the time. On the emulator one more that may overlap a kernel
 * that writes its activations must wait for these, and give the same bits. Where check->once, there
 * is only the first.
 */
ptxgen_status launch_check(const struct launch_check *c, struct device *device, struct check *check,
                           ptxgen_error *err);

#endif
