/* SPDX-License-Identifier: Apache-2.0 */
/** Problems whose operands come from a file: what all families do with one, and what each does. */
#ifndef PTXGEN_CLI_FAMILY_FILE_H
#define PTXGEN_CLI_FAMILY_FILE_H

#include "../harness/problem.h"
#include "family.h"
#include "../files/layer_kinds.h"
#include "../files/number_tensor.h"

/** The rows of activations that a file has, and of the output that it expects of them. */
struct file_rows {
    const ptxgen_tensor *input, *expect; /**< NULL where the options name none */
    uint64_t count;
    uint32_t most; /**< that a launch takes */
};

/** What a family does with a file; `sources` is a struct of its own, zeroed first. */
struct family_file {
    ptxgen_files_format format;
    size_t sources_bytes;
    /** Finds all tensors, by the names of the options, and completes the options' spec by them. */
    ptxgen_status (*find)(const ptxgen_files *store, struct family_options *o, void *sources,
                          struct file_rows *rows, ptxgen_error *err);
    /** Says on stderr which of the layer's tensors are not used; or NULL. */
    void (*warn)(const ptxgen_files *store, const struct family_options *o, const void *sources,
                 const struct file_rows *rows);
    /** Fills the problem, which has random operands, with what the file has but for the rows. */
    ptxgen_status (*take)(struct problem *p, const void *sources, const struct file_rows *rows,
                          ptxgen_error *err);
};

/** Makes the problem of the options' file. */
ptxgen_status family_read(const struct family_options *o, const struct run_request *request,
                          struct device *device, struct problem *p, ptxgen_error *err);

/** Finds the rows that the options name: of k floats each, and of n; with a residual none. */
ptxgen_status file_rows_find(const ptxgen_files *store, const struct family_options *o, uint32_t k,
                             uint32_t n, bool residual, struct file_rows *rows, ptxgen_error *err);
/** The same for the expected output alone. */
ptxgen_status file_expect_find(const ptxgen_files *store, const struct family_options *o,
                               uint32_t n, bool residual, struct file_rows *rows,
                               ptxgen_error *err);
/** Fills an operand with the tensor's first numbers, or with its only one; NULL: leaves it. */
void take_tensor(struct problem *p, unsigned operand, const ptxgen_tensor *tensor);

#endif
