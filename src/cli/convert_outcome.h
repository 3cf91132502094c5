/* SPDX-License-Identifier: Apache-2.0 */
/** What a conversion of a file has done, in a line. */
#ifndef PTXGEN_CLI_CONVERT_OUTCOME_H
#define PTXGEN_CLI_CONVERT_OUTCOME_H

#include <stddef.h>

struct convert_outcome {
    size_t converted, copied; /**< layers or weights; other tensors */
};

/**
 * "out.safetensors: 1 layer as awq, 3 other tensors copied", on stderr when the output file is the
 * standard output. `what` is one of what was converted: "layer".
 */
void convert_outcome_print(const struct convert_outcome *outcome, const char *output,
                           const char *what, const char *format);

#endif
