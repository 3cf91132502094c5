/* SPDX-License-Identifier: Apache-2.0 */
/** Conversions of 2:4 sparse weights. */
#ifndef PTXGEN_CLI_SPARSE24_CONVERT_H
#define PTXGEN_CLI_SPARSE24_CONVERT_H

#include "../conversion.h"

/** Its forms are those of sparse24_layer.h. */
extern const struct layer_kind sparse24_layers;
/** The options of its requests. */
struct sparse24_convert_options {
    int from;   /**< the form of the input; -1: the first that there is */
    bool prune; /**< a dense weight need not be 2:4 sparse */
};

#endif
