/* SPDX-License-Identifier: Apache-2.0 */
/** Conversions of 2:4 sparse weights, whose forms src/files/layer_sparse24.c describes. */
#ifndef PTXGEN_CLI_SPARSE24_CONVERT_H
#define PTXGEN_CLI_SPARSE24_CONVERT_H

#include "../conversion.h"

#include <ptxgen/linear.h>

/** Forms are those of ptxgen_sparse24_form, and then this one. */
enum { SPARSE24_DENSE = PTXGEN_SPARSE24_CUTLASS + 1, SPARSE24_FORMS };

/**
 * The weight in another form, in spans of its sizes. With `prune` a dense weight has two of each
 * four set to zero first; otherwise it must be 2:4 sparse.
 */
ptxgen_status sparse24_convert(const ptxgen_sparse24_weights *weights, bool prune, int form,
                               ptxgen_span values, ptxgen_span metadata, ptxgen_error *err);

/** Conversions of such weights, to these forms. */
extern const struct layer_kind sparse24_layers;
/** The options of its requests. */
struct sparse24_convert_options {
    int from;   /**< the form of the input; -1: the first that there is */
    bool prune; /**< a dense weight need not be 2:4 sparse */
};

#endif
