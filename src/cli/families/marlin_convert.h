/* SPDX-License-Identifier: Apache-2.0 */
/** Conversions of 4-bit layers. */
#ifndef PTXGEN_CLI_MARLIN_CONVERT_H
#define PTXGEN_CLI_MARLIN_CONVERT_H

#include "../conversion.h"
#include "marlin_layer.h"

#include <ptxgen/types.h>

/** Its forms are ptxgen_w4_format's, then "packed". */
extern const struct layer_kind marlin_layers;
/** The options of its requests. */
struct marlin_convert_options {
    struct layer_choice choice; /**< of the input */
    ptxgen_element type;        /**< of packed scales */
    bool type_given;
    unsigned threads;
};

#endif
