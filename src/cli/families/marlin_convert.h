/* SPDX-License-Identifier: Apache-2.0 */
/** From one file of 4-bit layers to another; what `ptxgen convert` does. */
#ifndef PTXGEN_CLI_MARLIN_CONVERT_H
#define PTXGEN_CLI_MARLIN_CONVERT_H

#include "../convert_outcome.h"
#include "marlin_layer.h"

#include <ptxgen/types.h>

/** Names by ptxgen_w4_format, then "packed" at CONVERT_PACKED; NULL-terminated. */
extern const char *const convert_formats[];
enum { CONVERT_PACKED = PTXGEN_W4_MARLIN + 1 };

struct convert_request {
    const char *input, *output;
    int to; /**< an index of convert_formats */
    bool to_given;
    const char **layers; /**< prefixes; none: all that the file has */
    size_t layer_count;
    struct layer_choice choice;
    ptxgen_element type; /**< of packed scales */
    bool type_given;
    unsigned threads;
    bool force; /**< replaces an output that is there */
};

ptxgen_status convert(const struct convert_request *request, struct convert_outcome *outcome,
                      ptxgen_error *err);

#endif
