/* SPDX-License-Identifier: Apache-2.0 */
/** The rows of activations that a file has, and of the output that it expects of them. */
#ifndef PTXGEN_CLI_INPUT_ROWS_H
#define PTXGEN_CLI_INPUT_ROWS_H

#include "../harness/expected.h"
#include "family.h"
#include "tensor_store.h"

/**
 * How many rows of the input a run takes: as many as it asks for, the first ones, or all. Refuses
 * an input of fewer, of none, and one of more than `most` when the run does not say how many.
 * `option` is the letter by which it says so: "m".
 */
ptxgen_status input_rows_choose(const struct run_request *request, const char *option,
                                const struct named_tensor *input, uint64_t rows, uint32_t most,
                                uint32_t *m, ptxgen_error *err);

/** The tensor `expect`, of floats: a row of `columns` for each of the input's `rows`. */
ptxgen_status expected_find(const struct tensor_store *store, const char *expect, const char *input,
                            uint64_t columns, uint64_t rows, const struct named_tensor **tensor,
                            ptxgen_error *err);

/** Copies the first `rows` rows of a tensor, which may be NULL. */
ptxgen_status expected_copy(const struct named_tensor *tensor, uint64_t rows, uint64_t columns,
                            struct expected *expected, ptxgen_error *err);

#endif
